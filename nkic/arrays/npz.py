"""npz files: arrays by name, read as untrusted input, written deterministically.

NumPy forgets the types that it does not have: bfloat16 comes back as raw two-byte elements, `V2`.
Files written here therefore carry a member `__nki_dtypes__`: a JSON object from array name to NKI
type, as an array of bytes. Members whose names begin with `__` are not arrays of a kernel.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from nkic.arrays import npy
from nkic.arrays.archive import Content, Member, members
from nkic.arrays.failures import Damaged, refuse
from nkic.arrays.npy import NpyHeader
from nkic.arrays.offers import Offer
from nkic.arrays.streams import Opened
from nkic.base.text import clean, grouped
from nkic.machine import dtypes
from nkic.machine.dtypes import DType

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
    header = _header(stream, member)
    read = partial(_read, stream, member, header)
    return Offer(path, header.element, header.shape, dtype, read, member.name)


def _header(stream: BinaryIO, member: Member) -> NpyHeader:
    """Return the header, if its sizes agree with those of the directory."""
    header = npy.read_header(Content(stream, member))
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
    return npy.read_data(content, header)


def _types(stream: BinaryIO, listed: tuple[Member, ...]) -> dict[str, DType]:
    """Return the types recorded in a file written by nkic; unknown types are left out."""
    member = next((m for m in listed if m.name == DTYPES_MEMBER + _SUFFIX), None)
    if member is None:
        return {}
    if member.size > MAX_DTYPES_BYTES:
        raise Damaged(f"`{DTYPES_MEMBER}` has {grouped(member.size)} bytes")
    text = _read(stream, member, _header(stream, member)).tobytes()
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
    """Write the arrays in order, then `types` (NKI types by name). The bytes do not depend on the
    time.
    """
    recorded = json.dumps(dict(types), ensure_ascii=True).encode()
    entries = {**arrays, DTYPES_MEMBER: np.frombuffer(recorded, np.uint8)}
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, array in entries.items():
            member = zipfile.ZipInfo(clean(name) + _SUFFIX)  # dated 1980
            member.create_system = 3  # Unix, wherever this runs
            with archive.open(member, "w", force_zip64=True) as content:
                np.lib.format.write_array(content, array, (1, 0), allow_pickle=False)
