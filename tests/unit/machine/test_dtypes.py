"""Test element types: limits against NumPy and ml_dtypes, names, and codes in files."""

import copy
import pickle
from math import inf, nan, nextafter
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nkic.machine import dtypes
from nkic.machine.dtypes import ALIASES, BY_CODE, DTYPES, find, suggest

NKI_NAMES = [
    *("bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"),
    *("float16", "float32", "bfloat16", "tfloat32", "float8_e4m3", "float8_e4m3fn"),
    *("float8_e5m2", "float8_e8m0fnu", "float8_e5m2_x4", "float8_e4m3fn_x4", "float4_e2m1fn_x4"),
]


def test_every_type_of_the_language_is_here_and_no_other() -> None:
    assert {find(name) for name in NKI_NAMES} == set(DTYPES.values())


@pytest.mark.parametrize(
    "name", ["float16", "float32", "bfloat16", "float8_e4m3", "float8_e4m3fn", "float8_e5m2"]
)
def test_float_limits(name: str) -> None:
    dtype = DTYPES[name]
    finfo: Any = ml_dtypes.finfo  # untyped
    info = finfo(name)
    assert (dtype.lowest, dtype.highest) == (float(info.min), float(info.max))
    assert dtype.smallest == float(info.smallest_subnormal)
    assert (dtype.exponent_bits, dtype.mantissa_bits) == (info.nexp, info.nmant)
    assert dtype.size == np.dtype(info.dtype).itemsize
    assert dtype.has_inf == (name != "float8_e4m3fn")


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "uint8", "uint16", "uint32"])
def test_integer_limits(name: str) -> None:
    dtype = DTYPES[name]
    info = np.iinfo(name)
    assert (dtype.lowest, dtype.highest) == (info.min, info.max)
    assert dtype.size == info.dtype.itemsize
    assert dtype.kind == ("uint" if name.startswith("u") else "int")


FLOATS = ("float32", "bfloat16", "float16", "float8_e4m3", "float8_e4m3fn", "float8_e5m2")
# Halfway from the largest finite number to the next one, for each type with such a float.
HALFWAY = (2.0**128 - 2.0**103, 2.0**128 - 2.0**119, 65520.0, 248.0, 464.0, 61440.0)


def near(limit: float) -> st.SearchStrategy[float]:
    return st.floats(0.9, 1.1).map(limit.__mul__)


@given(st.one_of(st.floats(allow_nan=False), *map(near, HALFWAY)), st.sampled_from([1, -1]))
@example(1e300, 1)
def test_numbers_overflow_that_ml_dtypes_makes_infinite(value: float, sign: int) -> None:
    with np.errstate(over="ignore"):
        single = np.float32(sign * value)
        for name in FLOATS:
            lost = not np.isfinite(single.astype(np.dtype(name)).astype(np.float32))
            wanted = bool(lost and np.isfinite(value))
            assert DTYPES[name].overflows(sign * value) is wanted, name


@pytest.mark.parametrize(("name", "halfway"), [*zip(FLOATS, HALFWAY, strict=True)])
def test_a_number_halfway_overflows_unless_the_largest_is_even(name: str, halfway: float) -> None:
    dtype, even = DTYPES[name], name == "float8_e4m3fn"
    assert (dtype.halfway, dtype.ends_even) == (halfway, even)
    assert not dtype.overflows(halfway * (1 - 2.0**-24))
    assert dtype.overflows(halfway) is not even
    assert dtype.overflows(-halfway * (1 + 2.0**-23))


def test_numbers_are_rounded_to_float32_first() -> None:
    """As in the engine: 65520 less 2**-40 is 65520 in float32, and infinite in float16."""
    assert DTYPES["float16"].overflows(65520 * (1 - 2.0**-40))
    assert not DTYPES["float32"].overflows(nextafter(HALFWAY[0], 0))


@pytest.mark.parametrize("dtype", DTYPES.values())
def test_infinity_and_nan_on_purpose_never_overflow(dtype: dtypes.DType) -> None:
    assert not any(dtype.overflows(value) for value in (inf, -inf, nan, 0, 1.0))


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_integers_overflow_beyond_their_limits(name: str) -> None:
    dtype = DTYPES[name]
    low, high = int(dtype.lowest), int(dtype.highest)
    found = [dtype.overflows(value) for value in (low - 1, low, high, high + 0.4, high + 1)]
    assert found == [True, False, False, False, True]


def test_packed_types_hold_four_elements() -> None:
    sizes = {d.name: (d.size, d.lanes) for d in DTYPES.values() if d.kind == "packed"}
    assert sizes == {
        "float8_e4m3fn_x4": (4, 4),
        "float8_e5m2_x4": (4, 4),
        "float4_e2m1fn_x4": (2, 4),
    }
    assert dtypes.FLOAT8_E5M2_X4.element is dtypes.FLOAT8_E5M2


def test_codes_never_change() -> None:
    """Files contain these codes. A new type gets a new number; no line is ever edited."""
    assert {code: dtype.name for code, dtype in sorted(BY_CODE.items())} == {
        1: "float32",
        2: "tfloat32",
        3: "bfloat16",
        4: "float16",
        5: "float8_e4m3",
        6: "float8_e4m3fn",
        7: "float8_e5m2",
        8: "float8_e8m0fnu",
        9: "float8_e4m3fn_x4",
        10: "float8_e5m2_x4",
        11: "float4_e2m1fn_x4",
        16: "int8",
        17: "int16",
        18: "int32",
        19: "int64",
        24: "uint8",
        25: "uint16",
        26: "uint32",
        32: "bool",
    }


def test_aliases_lead_to_types_and_hide_none() -> None:
    assert not set(ALIASES) & set(DTYPES)
    assert set(ALIASES.values()) <= set(DTYPES)
    assert find("bf16") is dtypes.BFLOAT16
    assert find("float8e4") is dtypes.FLOAT8_E4M3
    assert find("bool_") is dtypes.BOOL
    assert find("float64") is None


def test_suggestions() -> None:
    assert suggest("blfoat16") == ["bfloat16"]
    assert suggest("Float32") == ["float32"]
    assert suggest("quaternion") == []


@pytest.mark.parametrize("dtype", [*DTYPES.values(), dtypes.FLOAT4_E2M1FN], ids=str)
def test_copies_are_the_same_object(dtype: dtypes.DType) -> None:
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert copy.deepcopy(dtype) is dtype
