"""npy files: the header, and the array behind it.

The header is a Python dict as text; it is matched, not evaluated. Layout: the documentation of
`numpy.lib.format`.
"""

from __future__ import annotations

import re
from math import prod
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from nkic.arrays.failures import Damaged
from nkic.base.text import clean

MAGIC = b"\x93NUMPY"
MAX_HEADER = 10_000  # bytes; NumPy's own limit
MAX_RANK = 32
# No pattern can match the same text in two ways, so any header is matched in linear time.
_KEY = r"""\s*['"](?:descr|fortran_order|shape)['"]\s*:\s*"""
_ITEM = _KEY + r"""(?:['"][^'"]*['"]|True|False|\([\dL,\s]*\))\s*"""
_HEADER = re.compile(rf"\{{{_ITEM},{_ITEM},{_ITEM}(?:,\s*)?\}}\s*")
_SIZE = re.compile(r"\s*(\d{1,19})L?\s*")
_VALUE = r"""['"]{key}['"]\s*:\s*(['"][^'"]*['"]|True|False|\([^)]*\))"""
_DESCR = re.compile(r"([<>|=]?)([a-zA-Z?])(\d{0,4})")
_WORDS = {"f": "float", "i": "int", "u": "uint", "c": "complex"}
_OTHERS = {"b": "bool", "S": "bytes", "U": "text", "M": "dates", "m": "time spans"}
# The elements that can be read: kind and bytes per element.
_SIZES = {"f": (2, 4, 8), "i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "b": (1,), "V": (1, 2, 4)}


class Source(Protocol):
    """Bytes in order, exactly as many as requested. Raises `Damaged`."""

    def read(self, count: int) -> bytes: ...

    def fill(self, target: memoryview) -> None: ...

    def finish(self) -> None: ...


class Element(NamedTuple):
    """NumPy's kind and size of an element: `("f", 4)`, `("V", 2)`."""

    kind: str
    size: int

    def __str__(self) -> str:
        if self.kind in _WORDS:
            return f"{_WORDS[self.kind]}{self.size * 8}"
        return _OTHERS.get(self.kind, f"{self.kind}{self.size}")

    @property
    def readable(self) -> bool:
        """Whether it is a number, a truth value, or raw bytes of the size of some NKI type."""
        return self.size in _SIZES.get(self.kind, ())


class NpyHeader(NamedTuple):
    """The header of an npy file. `start` is the size of the header in bytes."""

    element: Element
    big_endian: bool
    fortran: bool
    shape: tuple[int, ...]
    start: int

    @property
    def data_bytes(self) -> int:
        """The number of bytes after the header."""
        return prod(self.shape) * self.element.size


def read_header(source: Source) -> NpyHeader:
    """Return the header of an npy file. Raises `Damaged`."""
    start = source.read(8)
    if start[:6] != MAGIC:
        raise Damaged("it is not an npy array", help="write arrays with numpy.savez or numpy.save")
    if start[6] not in (1, 2, 3):
        raise Damaged(f"it is an npy array of version {start[6]}.{start[7]}; 1 to 3 can be read")
    width = 2 if start[6] == 1 else 4
    length = int.from_bytes(source.read(width), "little")
    if length > MAX_HEADER:
        raise Damaged(f"its npy header has {length:,} bytes, the limit is {MAX_HEADER:,}")
    encoding = "utf-8" if start[6] == 3 else "latin-1"
    return _header(source.read(length).decode(encoding, "replace"), 8 + width + length)


def _header(text: str, start: int) -> NpyHeader:
    if re.search(r"""['"]descr['"]\s*:\s*\[""", text):
        raise Damaged("it is a structured array", "array-kind", "save each field as its own array")
    if not _HEADER.fullmatch(text):
        raise Damaged(f"its npy header is wrong: {clean(text[:80])}")
    big_endian, element = _element(_value(text, "descr").strip("'\""))
    shape = _shape(_value(text, "shape"))
    return NpyHeader(element, big_endian, _value(text, "fortran_order") == "True", shape, start)


def _value(text: str, key: str) -> str:
    match = re.search(_VALUE.replace("{key}", key), text)
    if match is None:
        raise Damaged(f"its npy header has no `{key}`")
    return match[1]


def _shape(text: str) -> tuple[int, ...]:
    """Parse `(2, 3)`, `(2,)` or `()`."""
    words = text.strip("()").removesuffix(",").split(",") if text != "()" else []
    sizes = [_SIZE.fullmatch(word) for word in words]
    if len(sizes) > MAX_RANK or None in sizes:
        raise Damaged(f"its shape is wrong: {clean(text[:80])}")
    return tuple(int(size[1]) for size in sizes if size)


def _element(descr: str) -> tuple[bool, Element]:
    match = _DESCR.fullmatch(descr)
    if match is None:
        raise Damaged(f"its npy header names the type `{clean(descr[:40])}`")
    order, kind, size = match.groups()
    if kind == "O":
        help = "convert it first, as in array.astype(numpy.float32)"
        raise Damaged("it holds Python objects, which nkic does not unpickle", "array-kind", help)
    width = int(size or 1) * (4 if kind == "U" else 1)
    if (kind, width) == ("f", 1):  # ml_dtypes' float8_e5m2; NumPy has no such type
        kind = "V"
    return order == ">", Element("b" if kind == "?" else kind, width)


def read_data(source: Source, header: NpyHeader) -> NDArray[Any]:
    """Return the array, in this machine's byte order and C order.

    The caller must have checked the header: as much memory is allocated as it says.
    """
    raw = np.empty(header.data_bytes, np.uint8)
    source.fill(raw.data)
    source.finish()
    element = header.element
    array = raw.view(f"{element.kind}{element.size}")
    if header.big_endian and element.size > 1 and element.kind != "V":
        array = array.byteswap()
    order = "F" if header.fortran else "C"
    shaped: NDArray[Any] = array.reshape(header.shape, order=order)  # type: ignore[call-overload]
    return np.ascontiguousarray(shaped).reshape(header.shape)
