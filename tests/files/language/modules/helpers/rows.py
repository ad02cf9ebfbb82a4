"""Imports its package while that imports it: a circle that Python accepts."""

from . import shapes

PARTITIONS = 64 * 2


def halves(n):
    return shapes.half(n), n - shapes.half(n)
