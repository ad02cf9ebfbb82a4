"""Comparison of two runs: their profiles, and limits on regressions."""
