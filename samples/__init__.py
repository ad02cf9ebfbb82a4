"""Kernels to learn from and to test with: one folder each, see README.md."""
