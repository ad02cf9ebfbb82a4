"""Element types: the size, range and precision of one element of a tensor.

`DTYPES` holds every type that `nki.language` names. This module does not import NumPy, so that both
tools start fast; `codecs.py` converts between the bytes of a type and numbers.

Sources: `nki.language` data types (names, sign/exponent/mantissa bits, "stored as uint8", packed
types, `0xFF` is NaN); NKI library kernel helpers (largest float8 values); IEEE 754 and OCP 8-bit
floating point (bit patterns of infinities and NaNs).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from math import copysign, frexp, inf, isfinite
from struct import pack, unpack
from typing import Any, Literal

from nkic.base.diagnostics import nearest

Kind = Literal["float", "int", "uint", "bool", "packed"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DType:
    """One element type. There is one object per type: compare with `is`, or with `==`, also to a
    name.

    `code` identifies the type in files: stable, never reused. `lowest` and `highest` are the finite
    limits, `smallest` is the smallest positive value, subnormals included (1 for integers). Packed
    types hold `lanes` elements of the type `element`, the first in the lowest bits; their limits
    are those of one element.
    """

    _kind_ = "dtype"

    name: str
    code: int
    size: int  # bytes
    kind: Kind
    lowest: float
    highest: float
    smallest: float
    exponent_bits: int = 0
    mantissa_bits: int = 0  # without the implicit leading one
    bias: int = 0  # of the exponent
    has_inf: bool = False
    has_nan: bool = False
    lanes: int = 1
    element: DType | None = None

    @property
    def bits(self) -> int:
        """The number of bits of one element, all lanes together."""
        return self.size * 8

    @property
    def itemsize(self) -> int:
        """Alias of `size`, for compatibility with NumPy."""
        return self.size

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point type; packed types are not."""
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        """Whether it is an integer type; bool is not."""
        return self.kind in ("int", "uint")

    @property
    def is_wide(self) -> bool:
        """Whether it has more bits than engines compute with: 64-bit types are only moved and
        loaded.
        """
        return self.size > 4

    @property
    def halfway(self) -> float:
        """Of a float type: the midpoint between the largest finite number and its would-be
        successor.
        """
        last_bit = 2.0 ** (frexp(self.highest)[1] - 1 - self.mantissa_bits)
        return self.highest + last_bit / 2

    @property
    def ends_even(self) -> bool:
        """Of a float type: whether `halfway` rounds to the largest finite number, which is even."""
        last_bit = 2 * (self.halfway - self.highest)
        return self.highest / last_bit % 2 == 0

    def overflows(self, value: float) -> bool:
        """Return whether a finite number exceeds the limits once it is rounded.

        It is rounded to float32, as constants are, and then to this type.
        """
        if not isfinite(value) or self.kind in ("bool", "packed"):
            return False
        if self.is_integer:
            return not self.lowest <= round(value) <= self.highest
        size, limit = abs(_in_float32(value)), self.halfway
        return size > limit or (size == limit and not self.ends_even)

    @property
    def dtype(self) -> Any:
        """The NumPy type of this name, for NumPy's protocol: `np.zeros(shape, nl.float32)`.

        Types that NumPy lacks come from ml_dtypes.
        """
        with suppress(ImportError):
            import_module("ml_dtypes")
        return import_module("numpy").dtype(self.name)

    def __eq__(self, other: object) -> bool:
        # NKI documents dtypes as text (`DType = str`): kernels may pass their names.
        if self is other or type(other) is DType:
            return self is other
        return self.name == (other if type(other) is str else _type_name(other))

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name  # kernels print types, and lists of them

    def __format__(self, spec: str) -> str:
        return format(self.name, spec)

    def __reduce__(self) -> tuple[Any, ...]:
        # A copied or unpickled type is the same object, so that identity remains equality.
        return _by_name, (self.name,)


def _in_float32(value: float) -> float:
    """Return the nearest float32, or an infinity if the value is out of range."""
    try:
        rounded: float = unpack("<f", pack("<f", value))[0]
    except OverflowError:
        return copysign(inf, value)
    return rounded


def _type_name(value: object) -> str:
    """Return the name of an element type, or an empty string for numbers, arrays and tensors."""
    kind = type(value)
    is_type = isinstance(value, type) or "dtype" in kind.__name__.lower()
    return element(value) if is_type else ""


_ELEMENTS = ("numpy", "ml_dtypes", "torch", "jax")


def element(value: Any) -> str:
    """Return the name of a NumPy, ml_dtypes, PyTorch or JAX element type, or an empty string."""
    kind = value if isinstance(value, type) else type(value)
    if kind.__module__.partition(".")[0] not in _ELEMENTS:
        return ""
    if isinstance(value, type):
        return value.__name__.rstrip("_")
    inner = getattr(value, "dtype", value)  # JAX's scalar types hold NumPy's
    name = getattr(inner, "name", None)
    return name if isinstance(name, str) else str(value).removeprefix("torch.")


def _float(
    name: str,
    code: int,
    size: int,
    bits: tuple[int, int],
    highest: float,
    specials: str = "inf nan",
) -> DType:
    exponent, mantissa = bits
    bias = (1 << (exponent - 1)) - 1
    return DType(
        name,
        code,
        size,
        "float",
        lowest=-highest,
        highest=highest,
        smallest=2.0 ** (1 - bias - mantissa),
        exponent_bits=exponent,
        mantissa_bits=mantissa,
        bias=bias,
        has_inf="inf" in specials,
        has_nan="nan" in specials,
    )


def _integer(name: str, code: int, size: int) -> DType:
    bits = size * 8
    if name.startswith("u"):
        return DType(name, code, size, "uint", 0, 2**bits - 1, 1)
    return DType(name, code, size, "int", -(2 ** (bits - 1)), 2 ** (bits - 1) - 1, 1)


def _packed(code: int, size: int, element: DType) -> DType:
    return DType(
        f"{element.name}_x4",
        code,
        size,
        "packed",
        element.lowest,
        element.highest,
        element.smallest,
        lanes=4,
        element=element,
    )


FLOAT32 = _float("float32", 1, 4, (8, 23), (2 - 2.0**-23) * 2.0**127)
# 1 + 8 + 10 bits in a 4-byte element; that the unused bits are the 13 low ones is assumed.
TFLOAT32 = _float("tfloat32", 2, 4, (8, 10), (2 - 2.0**-10) * 2.0**127)
BFLOAT16 = _float("bfloat16", 3, 2, (8, 7), (2 - 2.0**-7) * 2.0**127)
FLOAT16 = _float("float16", 4, 2, (5, 10), 65504.0)
FLOAT8_E4M3 = _float("float8_e4m3", 5, 1, (4, 3), 240.0)
FLOAT8_E4M3FN = _float("float8_e4m3fn", 6, 1, (4, 3), 448.0, "nan")
FLOAT8_E5M2 = _float("float8_e5m2", 7, 1, (5, 2), 57344.0)
# A power of two without sign or zero; the scale of a group in the MX formats.
FLOAT8_E8M0FNU = DType(
    "float8_e8m0fnu", 8, 1, "float", 2.0**-127, 2.0**127, 2.0**-127, 8, 0, 127, has_nan=True
)
# Occurs only inside packed elements, where it takes half a byte. `nki.language` does not name it,
# so it is not in DTYPES.
FLOAT4_E2M1FN = _float("float4_e2m1fn", 12, 1, (2, 1), 6.0, "")
FLOAT8_E4M3FN_X4 = _packed(9, 4, FLOAT8_E4M3FN)
FLOAT8_E5M2_X4 = _packed(10, 4, FLOAT8_E5M2)
FLOAT4_E2M1FN_X4 = _packed(11, 2, FLOAT4_E2M1FN)
INT8 = _integer("int8", 16, 1)
INT16 = _integer("int16", 17, 2)
INT32 = _integer("int32", 18, 4)
INT64 = _integer("int64", 19, 8)
UINT8 = _integer("uint8", 24, 1)
UINT16 = _integer("uint16", 25, 2)
UINT32 = _integer("uint32", 26, 4)
BOOL = DType("bool", 32, 1, "bool", 0, 1, 1)  # stored as uint8: 0 or 1

DTYPES: dict[str, DType] = {
    dtype.name: dtype
    for dtype in (
        *(FLOAT32, TFLOAT32, BFLOAT16, FLOAT16),
        *(FLOAT8_E4M3, FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT8_E8M0FNU),
        *(FLOAT8_E4M3FN_X4, FLOAT8_E5M2_X4, FLOAT4_E2M1FN_X4),
        *(INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, BOOL),
    )
}
BY_CODE: dict[int, DType] = {dtype.code: dtype for dtype in DTYPES.values()}

ALIASES = {
    **{"f32": "float32", "fp32": "float32"},
    **{"tf32": "tfloat32"},
    **{"bf16": "bfloat16"},
    **{"f16": "float16", "fp16": "float16", "half": "float16"},
    **{"float8e4": "float8_e4m3", "fp8_e4m3": "float8_e4m3", "f8e4m3": "float8_e4m3"},
    **{"float8e5": "float8_e5m2", "fp8_e5m2": "float8_e5m2", "f8e5m2": "float8_e5m2"},
    **{"fp8_e4m3fn": "float8_e4m3fn", "f8e4m3fn": "float8_e4m3fn"},
    **{"e8m0": "float8_e8m0fnu", "f8e8m0": "float8_e8m0fnu", "f8e8m0fnu": "float8_e8m0fnu"},
    **{
        "i8": "int8",
        "i16": "int16",
        "i32": "int32",
        "i64": "int64",
        "s8": "int8",
        "s16": "int16",
        "s32": "int32",
    },
    **{"s64": "int64"},
    **{"u8": "uint8", "u16": "uint16", "u32": "uint32"},
    **{"bool_": "bool", "pred": "bool"},
}


def find(name: str) -> DType | None:
    """Return the type called `name`, in full or by a short name (bf16, u8), or None."""
    return DTYPES.get(ALIASES.get(name, name))


def suggest(name: str) -> list[str]:
    """Return the full names that `name` probably means; empty if none is close."""
    near = nearest(name, (*DTYPES, *ALIASES))
    return [ALIASES.get(near, near)] if near else []


def _by_name(name: str) -> DType:
    return FLOAT4_E2M1FN if name == FLOAT4_E2M1FN.name else DTYPES[name]
