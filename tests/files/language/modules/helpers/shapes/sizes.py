"""Values that are changed in place, under two names."""

try:
    import torch
except ImportError:
    torch = None

WIDTHS = [64]
more = WIDTHS
more.append(128)
if torch is None:
    WIDTHS.append(256)


def half(n):
    return n // 2
