"""Tensors as kernels see them: views, and the operations that make new ones."""
