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
from numpy.typing import NDArray

from nkic.machine import codecs, dtypes
from nkic.machine.codecs import blocks
from nkic.machine.dtypes import ALIASES, BY_CODE, DTYPES, DType, find, suggest

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


# ------------------------------------------------------------------------------------------------
# Compare codecs with ml_dtypes and NumPy, over every relevant bit pattern.

CODED_FLOATS = [
    dtypes.BFLOAT16,
    dtypes.FLOAT16,
    dtypes.FLOAT8_E4M3,
    dtypes.FLOAT8_E4M3FN,
    dtypes.FLOAT8_E5M2,
]
INTEGERS = [d for d in DTYPES.values() if d.is_integer]


def oracle(dtype: DType) -> Any:
    return getattr(ml_dtypes, dtype.name, None) or np.dtype(dtype.name)


def every_float32_near(kept_bits: int) -> NDArray[np.float32]:
    """Return all patterns of the high `kept_bits`, each with low bits at, beside and between
    ties.
    """
    drop = 32 - kept_bits
    half = 1 << (drop - 1)
    low = np.array([0, 1, half - 1, half, half + 1, 2 * half - 1], np.uint32)
    high = np.arange(1 << kept_bits, dtype=np.uint32) << drop
    return (high[:, None] | low).view(np.float32)


def rounded_by_oracle(values: NDArray[np.float32], dtype: DType) -> NDArray[np.float32]:
    with np.errstate(all="ignore"):
        return values.astype(oracle(dtype)).astype(np.float32)


def assert_same_bits(found: NDArray[np.float32], expected: NDArray[np.float32]) -> None:
    nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(found), nan)
    np.testing.assert_array_equal(found.view(np.uint32)[~nan], expected.view(np.uint32)[~nan])


@pytest.mark.parametrize("dtype", CODED_FLOATS, ids=str)
def test_rounding(dtype: DType) -> None:
    values = every_float32_near(10 + dtype.mantissa_bits)
    found = codecs.round_to_grid(values, dtype, np.empty_like(values))
    assert_same_bits(found, rounded_by_oracle(values, dtype))


@pytest.mark.parametrize("dtype", CODED_FLOATS, ids=str)
def test_encoding(dtype: DType) -> None:
    values = every_float32_near(10 + dtype.mantissa_bits)
    with np.errstate(all="ignore"):
        expected = values.astype(oracle(dtype)).view(f"u{dtype.size}")
    found = codecs.encode(values, dtype).view(f"u{dtype.size}")
    nan = np.isnan(rounded_by_oracle(values, dtype))
    np.testing.assert_array_equal(found[~nan], expected[~nan])
    assert len(np.unique(found[nan])) == 1  # the canonical NaN, whatever its sign


@pytest.mark.parametrize("dtype", [*CODED_FLOATS, dtypes.FLOAT8_E8M0FNU], ids=str)
def test_decoding_every_code_and_back(dtype: DType) -> None:
    codes = np.arange(1 << dtype.bits).astype(f"u{dtype.size}")
    values = codecs.decode(codes.view(codecs.storage(dtype)), dtype)
    assert_same_bits(values, codes.view(oracle(dtype)).astype(np.float32))
    finite = ~np.isnan(values)
    again = codecs.encode(values, dtype, on_grid=True).view(codes.dtype)
    np.testing.assert_array_equal(again[finite], codes[finite])


def test_overflow_of_8_bit_floats() -> None:
    """Infinity where the type has one, NaN in float8_e4m3fn; ties go to the even neighbour."""
    values = np.array([240, 247.9, 248, 448, 464, 464.1, 57344, 61439, 61440], np.float32)
    inf, nan = np.inf, np.nan
    expected = {
        dtypes.FLOAT8_E4M3: [240, 240, inf, inf, inf, inf, inf, inf, inf],
        dtypes.FLOAT8_E4M3FN: [240, 240, 256, 448, 448, nan, nan, nan, nan],
        dtypes.FLOAT8_E5M2: [256, 256, 256, 448, 448, 448, 57344, 57344, inf],
    }
    for dtype, results in expected.items():
        for sign in (1, -1):
            found = codecs.round_to_grid(sign * values, dtype, np.empty_like(values))
            np.testing.assert_array_equal(found, sign * np.array(results, np.float32))


def test_tfloat32_keeps_ten_bits_of_mantissa() -> None:
    values = every_float32_near(19)
    found = codecs.round_to_grid(values, dtypes.TFLOAT32, np.empty_like(values))
    finite = np.isfinite(found)
    assert not (found[finite].view(np.uint32) & 0x1FFF).any()
    error = np.abs(found[finite].astype(float) - values[finite])
    step = np.ldexp(1.0, np.maximum(np.frexp(values[finite].astype(float))[1], -125) - 11)
    assert (error <= step / 2).all()
    tie = np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11, -1 - 2.0**-11], np.float32)
    even = codecs.round_to_grid(tie, dtypes.TFLOAT32, np.empty_like(tie))
    assert even.tolist() == [1, 1 + 2.0**-9, -1]


def test_tfloat32_by_integer_arithmetic() -> None:
    """Half of the discarded part is added, less one if the last kept bit is 0."""
    values = np.concatenate([every_float32_near(19).ravel(), every_float32_near(20).ravel()])
    values = values[np.isfinite(values)]
    bits = values.view(np.uint32).astype(np.uint64)
    expected = (bits + 0xFFF + (bits >> 13 & 1)) >> 13 << 13
    found = codecs.round_to_grid(values, dtypes.TFLOAT32, np.empty_like(values))
    np.testing.assert_array_equal(found.view(np.uint32), expected)


@pytest.mark.parametrize("dtype", CODED_FLOATS, ids=str)
def test_rounding_of_any_float32(dtype: DType) -> None:
    """A million patterns, half of them of ordinary size, whose low bits are not close to a tie."""
    rng = np.random.default_rng(11)
    bits = rng.integers(0, 1 << 32, 1 << 20, dtype=np.uint32)
    ordinary = rng.integers(90, 150, 1 << 19).astype(np.uint32) << 23
    bits[: 1 << 19] = bits[: 1 << 19] & 0x807FFFFF | ordinary
    values = bits.view(np.float32)
    found = codecs.round_to_grid(values, dtype, np.empty_like(values))
    assert_same_bits(found, rounded_by_oracle(values, dtype))


def test_powers_of_two() -> None:
    """float8_e8m0fnu. Values below 2^-126 are not compared: ml_dtypes rounds all of them up."""
    values = every_float32_near(16)
    values = values[~(np.abs(values) < 2.0**-126).any(axis=1)]
    found = codecs.round_to_grid(values, dtypes.FLOAT8_E8M0FNU, np.empty_like(values))
    assert_same_bits(found, rounded_by_oracle(values, dtypes.FLOAT8_E8M0FNU))
    small = np.array([1e-45, 2.0**-127, 1.49 * 2.0**-127, 1.5 * 2.0**-127, 0, -1], np.float32)
    found = codecs.round_to_grid(small, dtypes.FLOAT8_E8M0FNU, np.empty_like(small))
    nan = np.nan
    np.testing.assert_array_equal(found, [2.0**-127] * 3 + [2.0**-126, nan, nan])


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_to_integers_nearest_even_saturating(dtype: DType) -> None:
    edge = np.float32(dtype.highest)
    values: list[Any] = [
        0.5,
        1.5,
        2.5,
        -0.5,
        -1.5,
        -2.5,
        3.49,
        -0.0,
        1e30,
        -1e30,
        np.inf,
        -np.inf,
        np.nan,
    ]
    values += [edge, np.nextafter(edge, np.float32(0)), float(dtype.lowest)]
    array = np.array(values, np.float32)
    expected = [
        0 if np.isnan(v) else int(min(max(float(np.rint(v)), dtype.lowest), dtype.highest))
        for v in array
    ]
    assert codecs.encode(array, dtype).tolist() == expected
    on_grid = codecs.round_to_grid(array, dtype, np.empty_like(array))
    assert_same_bits(on_grid, codecs.decode(codecs.encode(array, dtype), dtype))


def test_32_bit_integers_are_rounded_to_nearest_even() -> None:
    raw = np.array([2**24 + 1, 2**24 + 3, 2**31 - 1, -(2**24) - 1], np.int32)
    assert codecs.decode(raw, dtypes.INT32).tolist() == [2**24, 2**24 + 4, 2**31, -(2**24)]


def test_bool_is_one_byte_of_truth() -> None:
    values = np.array([0, -0.0, 0.25, -3, np.nan], np.float32)
    assert codecs.encode(values, dtypes.BOOL).tolist() == [0, 0, 1, 1, 1]
    assert codecs.storage(dtypes.BOOL) == np.uint8


def test_conversion_goes_through_float32_but_not_within_a_type() -> None:
    raw = np.array([2**24 + 1, -7], np.int32)
    same = codecs.convert(raw, dtypes.INT32, dtypes.INT32)
    assert same.tolist() == [2**24 + 1, -7]
    assert codecs.convert(raw, dtypes.INT32, dtypes.UINT32).tolist() == [2**24, 0]
    quiet_and_signalling = np.array([0x7FC1, 0xFF81], np.uint16)
    copied = codecs.convert(quiet_and_signalling, dtypes.BFLOAT16, dtypes.BFLOAT16)
    assert copied.tolist() == quiet_and_signalling.tolist()


@pytest.mark.parametrize("dtype", [d for d in DTYPES.values() if d.kind != "packed"], ids=str)
def test_layout_place_and_size_do_not_matter(dtype: DType) -> None:
    rng = np.random.default_rng(1)
    values = (rng.standard_normal((130, 1200)) * 300).astype(np.float32)
    values[rng.random(values.shape) < 0.001] = np.nan
    expected = codecs.round_to_grid(values, dtype, np.empty_like(values))
    strided = np.empty((1200, 260), np.float32).T[::2]
    np.copyto(strided, values)
    assert_same_bits(codecs.round_to_grid(strided, dtype, strided), expected)
    one = np.array(values[3, 4])
    assert_same_bits(codecs.round_to_grid(one, dtype, one), expected[3, 4])
    raw = codecs.encode(values, dtype, np.empty((1200, 130), codecs.storage(dtype)).T)
    assert_same_bits(codecs.decode(raw, dtype, np.empty_like(strided)), expected)


@pytest.mark.parametrize("name", ["float8_e4m3fn_x4", "float8_e5m2_x4", "float4_e2m1fn_x4"])
def test_packed_elements(name: str) -> None:
    dtype = DTYPES[name]
    assert dtype.element is not None
    raw = np.random.default_rng(2).integers(0, 1 << dtype.bits, (3, 5))
    raw = raw.astype(codecs.storage(dtype))
    values = codecs.unpack(raw, dtype)
    width = dtype.bits // 4
    lanes = raw[..., None] >> (width * np.arange(4)).astype(raw.dtype) & (1 << width) - 1
    codes = lanes.astype(np.uint8).reshape(3, 20)
    assert_same_bits(values, codes.view(oracle(dtype.element)).astype(np.float32))
    again = codecs.unpack(codecs.pack(values, dtype), dtype)
    assert_same_bits(again, values)


def test_packed_types_are_not_rounded_to() -> None:
    one = np.ones(4, np.float32)
    with pytest.raises(ValueError, match="packed"):
        codecs.round_to_grid(one, dtypes.FLOAT8_E5M2_X4, one)
    with pytest.raises(ValueError, match="not packed"):
        codecs.pack(one, dtypes.FLOAT16)


def test_blocks_cover_in_order_and_keep_the_limit() -> None:
    numbers = np.arange(2 * 3 * 50).reshape(2, 3, 50)
    for limit in (1, 7, 50, 120, 10_000):
        parts = [numbers[index] for index in blocks(numbers.shape, limit)]
        assert np.concatenate([p.ravel() for p in parts]).tolist() == list(range(300))
        assert max(p.size for p in parts) <= limit
    rows = [numbers[index].shape for index in blocks(numbers.shape, 7, cut=1)]
    assert rows == [(1, 3, 50), (1, 3, 50)]
