"""The syntax tree to closures."""
