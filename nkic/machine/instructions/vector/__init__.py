"""Rows of the vector engine, some of which scalar or gpsimd may run instead, and their rules."""
