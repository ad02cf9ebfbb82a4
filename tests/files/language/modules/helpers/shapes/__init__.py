"""A package in a package."""

from ..rows import PARTITIONS
from .sizes import WIDTHS, half

_HIDDEN = 1


def whole():
    return PARTITIONS
