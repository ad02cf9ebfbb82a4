"""Encoding of all sections except `code`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from operator import sub
from typing import Any

import msgpack

from nkic.base.text import clean
from nkic.machine.memory import BUFFER_CODES
from nkic.neff.columns import Columns
from nkic.neff.failures import refuse
from nkic.neff.layout import PLACES_PER_RECORD, ROLES, Iterations, Layout, Lines, Meta
from nkic.neff.limits import LIMITS
from nkic.neff.records import (
    Executable,
    FileRecord,
    PlaceRecord,
    TensorRecord,
)

_PLACED = int(Layout.PLACED)  # the kind of most records of tensors


def printable(value: str) -> str:
    """Return `value` as text for files: no control characters, cut to the limit for strings."""
    cleaned = clean(value)
    if len(cleaned) * 4 <= LIMITS.string_bytes:
        return cleaned
    return cleaned.encode()[: LIMITS.string_bytes].decode(errors="ignore")


def relative(path: str) -> str:
    """Return `path` as a path for files: relative, and never outside the current folder."""
    names = [name for name in path.replace("\\", "/").split("/") if name not in ("", ".")]
    components = ["_" if name == ".." else name for name in names] or ["_"]
    return printable("/".join([components[0].removesuffix(":") or "_", *components[1:]]))


def layout(executable: Executable) -> bytes:
    """Encode the kernel's properties, its tensors and its parameters."""
    e = executable
    kernel = (Layout.KERNEL, printable(e.name), e.target, e.cores, e.semaphores, e.registers)
    inputs = [(Layout.INPUT, printable(p.name), p.tensor) for p in e.inputs]
    outputs = [(Layout.OUTPUT, printable(p.name), p.tensor) for p in e.outputs]
    return _array([kernel, *_tensors(e.tensors), *inputs, *outputs])


def _tensors(tensors: Iterable[TensorRecord]) -> Iterator[tuple[Any, ...]]:
    """Yield the tensors; one that differs from an earlier one only in its byte refers to that."""
    last: dict[tuple[Any, ...], tuple[int, int]] = {}  # index and byte, keyed by all other fields
    for index, t in enumerate(tensors):
        _, dtype, shape, buffer, core, role, partition, byte, _ = t
        kind = (dtype.code, shape, buffer, core, role, partition)
        earlier = last.get(kind)
        if earlier is not None:
            yield (_PLACED, index - earlier[0], byte - earlier[1])
        else:
            codes = (BUFFER_CODES[buffer], core, ROLES.index(role))
            yield (Layout.TENSOR, dtype.code, shape, *codes, partition, byte)
        last[kind] = index, byte


def const(executable: Executable) -> bytes:
    """Encode the contents of constants, in the order of their tensors."""
    ordered = sorted(executable.constants.items())
    return _array([value for constant in ordered for value in constant])


def meta(executable: Executable) -> bytes:
    """Encode information for people: how the kernel was specialised and built."""
    rows = [(Meta.ARGUMENT, *row) for row in executable.arguments.items()]
    rows += [(Meta.FLAG, *row) for row in executable.meta.items()]
    return _array([(kind, printable(key), printable(value)) for kind, key, value in rows])


def src(files: Iterable[FileRecord], embed_source: bool) -> bytes:
    """Encode the source files' names and hashes, and their text if `embed_source`."""
    return _array([item for file in files for item in _file(file, embed_source)])


def _file(file: FileRecord, embed_source: bool) -> tuple[str, bytes, str | None]:
    return relative(file.path), bytes.fromhex(file.sha256), file.text if embed_source else None


def lines(places: tuple[PlaceRecord, ...], columns: Columns) -> bytes:
    """Encode the source places, and the place of each item of the streams."""
    _check_callers(places)
    records = [(Lines.PLACE, *place) for place in places]
    used = [head.place for items in columns.streams for head in items.heads]
    return _array([*records, *((Lines.ITEMS, *chunk) for chunk in _chunks(used))])


def _check_callers(places: tuple[PlaceRecord, ...]) -> None:
    if any(place.caller >= index for index, place in enumerate(places)):
        raise ValueError("a place must come after the place of its caller")


def _chunks(values: list[int]) -> Iterator[list[int]]:
    for start in range(0, len(values), PLACES_PER_RECORD):
        yield values[start : start + PLACES_PER_RECORD]


def debug(executable: Executable) -> bytes:
    """Encode the tensors' names and places."""
    names = {name: printable(name) for name in {t.name for t in executable.tensors}}
    return _array([(names[t.name], t.place) for t in executable.tensors])


def iterations(names: tuple[str, ...], columns: Columns) -> bytes:
    """Encode the iterations of Python loops, and the iteration that made each item."""
    texts = [(Iterations.TEXT, printable(text)) for text in names]
    used = list(chain.from_iterable([items.iterations for items in columns.streams]))
    steps = list(map(sub, used, [-1, *used[:-1]]))
    return _array([*texts, *((Iterations.ITEMS, *chunk) for chunk in _chunks(steps))])


def _array(records: Iterable[Any]) -> bytes:
    try:
        encoded: bytes = msgpack.packb(list(records))
    except ValueError as error:  # the limit of msgpack itself: 4 GiB
        refuse("artifact-limit", f"a section is too large: {error}")
    return encoded
