"""Offers: arrays that might become inputs, described by their files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.arrays import npy
from nkic.arrays.failures import Damaged, called, refuse
from nkic.arrays.npy import Element
from nkic.arrays.streams import Opened, Plain
from nkic.base.text import grouped
from nkic.machine.codecs import storage
from nkic.machine.dtypes import BFLOAT16, BOOL, DTYPES, TFLOAT32, DType


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
        """Its source, for messages."""
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
        if _numpy_has(dtype):
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


def _numpy_has(dtype: DType) -> bool:
    """Whether NumPy's natural type for `dtype` represents no other NKI type."""
    return dtype is not TFLOAT32 and dtype.lanes == 1 and natural(dtype) != raw(dtype)


def offer_npy(file: Opened, path: str) -> Offer:
    """Return the array of an npy file. Raises `InputFailed`. `file` must stay open until it is
    loaded.
    """
    try:
        header = npy.read_header(Plain(file))
        if header.start + header.data_bytes != file.size:
            text = f"its header declares {grouped(header.start + header.data_bytes)} bytes"
            raise Damaged(f"{text}, the file has {grouped(file.size)}")
    except Damaged as error:
        refuse(path, error)

    def read() -> NDArray[Any]:
        source = Plain(file)
        source.read(header.start)
        return npy.read_data(source, header)

    return Offer(path, header.element, header.shape, None, read)


def offer_raw(file: Opened, path: str, dtype: DType, shape: tuple[int, ...]) -> Offer:
    """Return a file of bare elements: little-endian, in C order. Raises `InputFailed`."""
    wanted = prod(shape) * dtype.size
    if file.size != wanted:
        sizes = ", ".join(map(str, shape))
        text = f"{dtype}[{sizes}] takes {grouped(wanted)} bytes, it has {grouped(file.size)}"
        refuse(path, Damaged(text))
    header = npy.NpyHeader(raw(dtype), False, False, shape, 0)
    return Offer(path, raw(dtype), shape, dtype, lambda: npy.read_data(Plain(file), header))
