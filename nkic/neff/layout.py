"""The numbers used in sections. docs/neff.md lists them; they never change.

Every section is an array of records. In `layout`, `code`, `meta` and `lines`, a record is an array
that starts with its kind. `const` and `src` are flat, so that large binary data cannot nest. A
record of `debug` describes one tensor. `iterations` has texts and, for each item, the number of its
text.
"""

from __future__ import annotations

from enum import IntEnum

SECTION_VERSION = 2
SECTIONS = (
    "layout",
    "const",
    "code",
    "meta",
    "src",
    "lines",
    "debug",
    "iterations",
)  # in file order


class Layout(IntEnum):
    """Records of `layout`."""

    KERNEL = 0  # name, target, cores, semaphores, registers
    TENSOR = 1  # dtype, shape, buffer, core, role, partition, byte
    INPUT = 2  # name, tensor
    OUTPUT = 3  # name, tensor
    PLACED = 4  # back, bytes: an earlier tensor, at a byte offset from it


class CodeRecord(IntEnum):
    """Records of `code`."""

    PATTERN = 0  # tensor, dtype, start, partitions, offset, dims, optionally the dynamic part
    REGISTER = 1  # number
    NUMBER = 2  # value
    FORM = 3  # opcode, attributes
    STREAM = 4  # core, engine, queue, number of items
    INSTRUCTION = 5  # form, operands (differences), waits, signals
    LOOP = 6  # length, counter, start, stop, step, condition
    SLOT = 7  # waits, signals
    MOVED = 8  # back, tensor, offset: an earlier pattern, plus differences


class Meta(IntEnum):
    """Records of `meta`: key, value."""

    ARGUMENT = 0
    FLAG = 1


class Lines(IntEnum):
    """Records of `lines`."""

    PLACE = 0  # file, line, column, end line, end column, caller
    ITEMS = 1  # a place for each of the next items


class Iterations(IntEnum):
    """Records of `iterations`."""

    TEXT = 0  # text
    ITEMS = 1  # for each of the next items, the difference of its text's number to the one before


ROLES = ("input", "output", "constant", "internal")
DYNAMIC_KINDS = ("scalar", "vector", "columns")
PLACES_PER_RECORD = 1024
