"""Comparison of arrays: distances, tolerances and statistics."""
