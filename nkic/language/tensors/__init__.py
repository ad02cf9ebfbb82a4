"""Tensors as kernels see them: how they are made, views, and the operations that give new ones."""
