"""npy files: the header, and the array behind it.

The header is a Python dict as text; it is matched, not evaluated. Layout: the documentation of
`numpy.lib.format`.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, BinaryIO, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from nkic.artifact.archive import Content, Damaged, Member, Opened, Plain, called, members, refuse
from nkic.base.text import clean, grouped
from nkic.machine import dtypes
from nkic.machine.codecs import storage
from nkic.machine.dtypes import BFLOAT16, BOOL, DTYPES, TFLOAT32, DType

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


# ---- Offers: arrays that might become inputs, described by their files --------------------------


@dataclass(frozen=True)
class Offer:
    """An array that might become an input.

    `dtype` is the NKI type if the source names it; `element` is NumPy's stored type. `read` returns
    the data, of `element` and `shape`, or raises `Damaged`.
    """

    path: str
    element: Element
    shape: tuple[int, ...]
    dtype: DType | None
    read: Callable[[], NDArray[Any]]
    member: str = ""

    def __str__(self) -> str:
        name = self.nki_dtype.name if self.nki_dtype else f"{self.element}"
        return f"{name}[{', '.join(map(str, self.shape))}]"

    @property
    def origin(self) -> str:
        return called(self.path)

    @property
    def nki_dtype(self) -> DType | None:
        """The NKI type, if the source names one that the stored elements can represent."""
        if self.dtype is not None and self.element in (raw(self.dtype), natural(self.dtype)):
            return self.dtype
        return None

    def is_of(self, dtype: DType) -> bool:
        """Whether its bytes are of `dtype`: by name, or as far as NumPy's types can tell."""
        if self.nki_dtype is not None:
            return self.nki_dtype is dtype
        if dtype is not TFLOAT32 and dtype.lanes == 1 and natural(dtype) != raw(dtype):
            return self.element == natural(dtype)
        return self.element == raw(dtype) or (dtype.lanes > 1 and self.element == natural(dtype))

    def load(self) -> NDArray[Any]:
        """Return the data as stored. Raises `InputFailed`."""
        try:
            return self.read()
        except Damaged as error:
            refuse(self.path, error, self.member.removesuffix(".npy"))

    def load_as(self, dtype: DType) -> NDArray[Any]:
        """Return the data in the storage type of `dtype`, which `is_of` has accepted."""
        array = self.load()
        if dtype is BOOL:
            return np.not_equal(array.view(np.uint8), 0).view(np.uint8)
        return array.view(storage(dtype))


def raw(dtype: DType) -> Element:
    """Return the element as which NumPy stores a type that it does not have."""
    return Element("V", dtype.size)


def natural(dtype: DType) -> Element:
    """Return NumPy's own type for `dtype`.

    For packed elements, whose bytes are not numbers, it is an unsigned integer; for other types
    that NumPy lacks, raw bytes.
    """
    if dtype is BOOL:
        return Element("b", 1)
    stored = storage(dtype)
    lacks = dtype.is_float and stored.kind != "f"
    return raw(dtype) if lacks else Element(stored.kind, stored.itemsize)


def of_numpy(element: Element) -> DType | None:
    """Return the NKI type of elements without a recorded type; None if there is none."""
    if element == ("V", 2):  # what a bfloat16 array becomes in NumPy's files
        return BFLOAT16
    return DTYPES.get(str(element))


def offer_npy(file: Opened, path: str) -> Offer:
    """Return an npy file's array; `file` stays open until it is loaded. Raises `InputFailed`."""
    try:
        header = read_header(Plain(file))
        if header.start + header.data_bytes != file.size:
            text = f"its header declares {grouped(header.start + header.data_bytes)} bytes"
            raise Damaged(f"{text}, the file has {grouped(file.size)}")
    except Damaged as error:
        refuse(path, error)

    def read() -> NDArray[Any]:
        source = Plain(file)
        source.read(header.start)
        return read_data(source, header)

    return Offer(path, header.element, header.shape, None, read)


def offer_raw(file: Opened, path: str, dtype: DType, shape: tuple[int, ...]) -> Offer:
    """Return a file of bare elements: little-endian, in C order. Raises `InputFailed`."""
    wanted = prod(shape) * dtype.size
    if file.size != wanted:
        sizes = ", ".join(map(str, shape))
        text = f"{dtype}[{sizes}] takes {grouped(wanted)} bytes, it has {grouped(file.size)}"
        refuse(path, Damaged(text))
    header = NpyHeader(raw(dtype), False, False, shape, 0)
    return Offer(path, raw(dtype), shape, dtype, lambda: read_data(Plain(file), header))


# ---- npz files: arrays by name, read as untrusted input, written deterministically --------------
# NumPy forgets the types that it does not have: bfloat16 comes back as raw two-byte elements,
# `V2`. Files written here therefore carry a member `__nki_dtypes__`: a JSON object from array name
# to NKI type, as an array of bytes. Members whose names begin with `__` are not arrays of a
# kernel.

DTYPES_MEMBER = "__nki_dtypes__"
MAX_DTYPES_BYTES = 1 << 20
_SUFFIX = ".npy"
_HIDDEN = "__"
_MAX_DEFLATE = 1100  # deflate shrinks data by a factor of at most 1032


def read_npz(file: Opened, path: str) -> dict[str, Offer]:
    """Return every array of the file by name; only headers are read. Raises `InputFailed`.

    The offers read from `file`, which must stay open until they have been loaded.
    """
    try:
        listed = members(file.stream, file.size)
        types = _types(file.stream, listed)
    except Damaged as error:
        refuse(path, error)
    return dict(_offers(file.stream, listed, types, path))


def _offers(
    stream: BinaryIO, listed: tuple[Member, ...], types: Mapping[str, DType], path: str
) -> Iterator[tuple[str, Offer]]:
    for member in listed:
        name = member.name.removesuffix(_SUFFIX)
        if name.startswith(_HIDDEN):
            continue
        try:
            yield name, _offer(stream, member, types.get(name), path)
        except Damaged as error:
            refuse(path, error, name)


def _offer(stream: BinaryIO, member: Member, dtype: DType | None, path: str) -> Offer:
    if not member.name.endswith(_SUFFIX):
        raise Damaged("it is not an npy array", help="write arrays with numpy.savez")
    header = _member_header(stream, member)
    read = partial(_read, stream, member, header)
    return Offer(path, header.element, header.shape, dtype, read, member.name)


def _member_header(stream: BinaryIO, member: Member) -> NpyHeader:
    """Return the header, if its sizes agree with those of the directory."""
    header = read_header(Content(stream, member))
    wanted = header.start + header.data_bytes
    if wanted != member.size:
        text = f"its header declares {grouped(wanted)} bytes, its directory {grouped(member.size)}"
        raise Damaged(text)
    if member.size > member.packed * _MAX_DEFLATE:
        raise Damaged("it declares more data than its compressed bytes can hold")
    return header


def _read(stream: BinaryIO, member: Member, header: NpyHeader) -> NDArray[Any]:
    content = Content(stream, member)
    content.read(header.start)
    return read_data(content, header)


def _types(stream: BinaryIO, listed: tuple[Member, ...]) -> dict[str, DType]:
    """Return the types recorded in a file written by nkic; unknown types are left out."""
    member = next((m for m in listed if m.name == DTYPES_MEMBER + _SUFFIX), None)
    if member is None:
        return {}
    if member.size > MAX_DTYPES_BYTES:
        raise Damaged(f"`{DTYPES_MEMBER}` has {grouped(member.size)} bytes")
    text = _read(stream, member, _member_header(stream, member)).tobytes()
    try:
        recorded = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Damaged(f"`{DTYPES_MEMBER}` is not JSON") from error
    if not isinstance(recorded, dict):
        raise Damaged(f"`{DTYPES_MEMBER}` is not a JSON object")
    pairs = ((name, dtypes.DTYPES.get(str(value))) for name, value in recorded.items())
    return {name: dtype for name, dtype in pairs if dtype is not None}


def write_npz(
    stream: BinaryIO, arrays: Mapping[str, NDArray[Any]], types: Mapping[str, str]
) -> None:
    """Write the arrays in order, then `types` (NKI types by name); the time changes no byte."""
    recorded = json.dumps(dict(types), ensure_ascii=True).encode()
    entries = {**arrays, DTYPES_MEMBER: np.frombuffer(recorded, np.uint8)}
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, array in entries.items():
            member = zipfile.ZipInfo(clean(name) + _SUFFIX)  # dated 1980
            member.create_system = 3  # Unix, wherever this runs
            with archive.open(member, "w", force_zip64=True) as content:
                np.lib.format.write_array(content, array, (1, 0), allow_pickle=False)
