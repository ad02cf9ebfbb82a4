"""Tensors: creation, views, and the operations that return new views."""
