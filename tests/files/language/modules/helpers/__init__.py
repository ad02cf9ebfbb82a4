"""A package that hands names on."""

from .rows import PARTITIONS as ROWS
from .rows import halves
from .shapes import *
