"""Compile the syntax tree to closures."""
