"""The numbers used in sections. docs/neff.md lists them; they never change.

Every section is an array of records. In `layout`, `code`, `meta` and `lines`, a record is an array
that starts with its kind. `const` and `src` are flat, so that large binary data cannot nest. A
record of `debug` describes one tensor. `iterations` has texts and, for each item, the number of its
text.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NoReturn

from nkic.base.diagnostics import ArtifactFailed, make
from nkic.base.text import LONGEST, clean
from nkic.machine import dtypes
from nkic.machine.dtypes import DType
from nkic.machine.targets import MAX_RANK, MAX_SIZE

# ---- Refusal of files: always `ArtifactFailed`, with the section and the byte offset ------------

MAX_SHOWN_CHARACTERS = 40


class Malformed(Exception):
    """A part of a section violates the format. A caller that knows the position refuses the file.

    `slug` names the diagnostic's code.
    """

    def __init__(self, message: str, slug: str = "artifact-malformed") -> None:
        super().__init__(message)
        self.slug = slug


def refuse(
    slug: str,
    message: str,
    section: str = "",
    offset: int | None = None,
    *,
    help: str = "",
    notes: tuple[str, ...] = (),
) -> NoReturn:
    """Raise `ArtifactFailed`. `offset` counts bytes from the start of the file."""
    location = [f"section `{clean(section)}`"] if section else []
    location += [f"byte {offset:,}"] if offset is not None else []
    suffix = f" ({', '.join(location)})" if location else ""
    help = help or _ADVICE.get(slug, "")
    raise ArtifactFailed([make(slug, message + suffix, help=help, notes=notes)])


_ADVICE = {"artifact-damaged": "transfer the file again, as binary, or recompile the kernel"}


def shown(value: Any) -> str:
    """Return a short, printable form of a value from a file; containers show only their type."""
    if value is None:
        return "nil"
    if isinstance(value, int | float):
        return f"{value}"
    if isinstance(value, str):
        return f'"{clean(value[:MAX_SHOWN_CHARACTERS])}"'
    if isinstance(value, bytes):
        return "binary data"
    if isinstance(value, dict):
        return "a map"
    return "an array" if type(value) is tuple else "an extension type"


def at_most(number: int, limit: int, subject: str, help: str = "") -> None:
    """Refuse to write more than the format allows."""
    if number > limit:
        refuse("artifact-limit", f"{number:,} {subject}; the limit is {limit:,}", help=help)


# ------------------------------------------------------------------------------------------------
# The limits of the format, part of docs/neff.md. Tests cover each limit and one above it.
# A reader may raise `file_bytes` and `hbm_bytes` at the user's request; the others are fixed, so
# that every reader of a version accepts the same files.

INT32 = 2**31 - 1
INT64 = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Limits:
    """The maximum size of each part of a file, inclusive."""

    file_bytes: int = 1 << 30
    header_bytes: int = 1 << 20
    sections: int = 64
    record_bytes: int = 1 << 16  # one record of a section, except constants and source text
    string_bytes: int = LONGEST
    source_bytes: int = 16 << 20  # embedded text of one file
    parameters: int = 512  # inputs; the same for outputs
    notes: int = 1024  # arguments and build flags together
    files: int = 4096
    places: int = 4_000_000
    tensors: int = 1_000_000
    rank: int = MAX_RANK  # of a tensor, and of an access pattern's free dimensions
    dimension: int = MAX_SIZE
    hbm_bytes: int = 16 << 30  # all HBM tensors together
    semaphores: int = 4096  # per core
    registers: int = 4096
    values: int = 4_000_000  # different operands
    forms: int = 1_000_000  # different pairs of opcode and attributes
    streams: int = 256
    items: int = 4_000_000  # instructions, empty slots and loops, all streams together
    operands: int = 64  # of one instruction; the same for its attributes
    waits: int = 64  # of one item; the same for its signals
    loop_depth: int = 8
    trips: int = INT32  # of one counted loop


LIMITS = Limits()


# --------------------------------------------------------------------------------------------------

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
PLACES_PER_RECORD = 1024


# ------------------------------------------------------------------------------------------------
# Typed access to decoded msgpack: every value from a file passes through one of these.
# `bool` is not an int, a float is never accepted as an int, and an extension type, which msgpack
# decodes as a tuple, is not an array. All functions raise `Malformed`; `slug` is the code of an
# exceeded limit.


def integer(value: Any, low: int, high: int, subject: str) -> int:
    """Return `value`, which must be an integer from `low` to `high`."""
    if type(value) is not int or not low <= value <= high:
        raise Malformed(f"{subject} is {shown(value)}, not an integer from {low} to {high}")
    return value


def integers(values: Any, low: int, high: int, subject: str) -> tuple[int, ...]:
    """Return `values`, which must be an array of integers from `low` to `high`."""
    if type(values) is not tuple:
        raise Malformed(f"{subject} is {shown(values)}, not an array")
    for value in values:
        if type(value) is not int or not low <= value <= high:
            raise Malformed(f"{subject}: {shown(value)} is not an integer from {low} to {high}")
    return values


def array(
    value: Any, low: int, high: int, subject: str, slug: str = "artifact-malformed"
) -> tuple[Any, ...]:
    """Return `value`, an array of `low` to `high` elements; `slug` is the error for too many."""
    if type(value) is not tuple:
        raise Malformed(f"{subject} is {shown(value)}, not an array")
    if len(value) > high:
        raise Malformed(f"{subject}: {len(value):,} elements; at most {high:,} are allowed", slug)
    if len(value) < low:
        raise Malformed(f"{subject}: {len(value)} elements; at least {low} are needed")
    return value


def text(value: Any, limit: int, subject: str) -> str:
    """Return `value`, which must be a printable string of at most `limit` bytes."""
    if type(value) is not str:
        raise Malformed(f"{subject} is {shown(value)}, not a string")
    size = len(value.encode())
    if size > limit:
        raise Malformed(f"{subject}: {size:,} bytes; the limit is {limit:,}", "artifact-limit")
    if clean(value) != value:
        raise Malformed(f"{subject} {shown(value)} has control characters")
    return value


def binary(value: Any, subject: str) -> bytes:
    if type(value) is not bytes:
        raise Malformed(f"{subject} is {shown(value)}, not binary data")
    return value


def kind_of(record: Any, kinds: int) -> int:
    """Return the kind of a record: its first field."""
    kind = record[0] if type(record) is tuple and record else None
    if type(kind) is not int or not 0 <= kind < kinds:
        raise Malformed(f"a record has the unknown kind {shown(kind)}")
    return kind


def fields(record: tuple[Any, ...], count: int, subject: str) -> tuple[Any, ...]:
    if len(record) != count + 1:
        raise Malformed(f"{subject} has {count} fields after its kind, not {len(record) - 1}")
    return record[1:]


def dtype_of(code: Any) -> DType:
    dtype = dtypes.BY_CODE.get(integer(code, 0, INT32, "a dtype"))
    if dtype is None:
        raise Malformed(f"there is no dtype {code}")
    return dtype
