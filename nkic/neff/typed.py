"""Typed access to decoded msgpack: every value from a file passes through one of these.

`bool` is not an int, a float is never accepted as an int, and an extension type, which msgpack
decodes as a tuple, is not an array. All functions raise `Malformed`; `slug` is the code of an
exceeded limit.
"""

from __future__ import annotations

from typing import Any

from nkic.base.text import clean
from nkic.machine import dtypes
from nkic.machine.dtypes import DType
from nkic.neff.failures import Malformed, shown
from nkic.neff.limits import INT32


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
    """Return `value`, which must be binary data."""
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
    """Return the fields of a record after its kind."""
    if len(record) != count + 1:
        raise Malformed(f"{subject} has {count} fields after its kind, not {len(record) - 1}")
    return record[1:]


def dtype_of(code: Any) -> DType:
    """Return the dtype with this number."""
    dtype = dtypes.BY_CODE.get(integer(code, 0, INT32, "a dtype"))
    if dtype is None:
        raise Malformed(f"there is no dtype {code}")
    return dtype
