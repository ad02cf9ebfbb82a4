"""Test the measurement of errors of public kernels (tests/conformance)."""

import ml_dtypes
import numpy as np
import pytest

from tests.conformance.sample_cases import ELEMENTS, packed, quantised
from tests.conformance.worst_errors import Draw, error


def test_errors_are_in_units_of_the_greatest_and_of_eps() -> None:
    found = np.array([[4.0, 1.0]], ml_dtypes.bfloat16)
    measured = error(found, np.array([4.0, 1.25]))
    assert measured == ("bfloat16", 0.25, 0.0625, 8.0)


def test_what_should_be_nan_is_not_compared() -> None:
    measured = error(np.array([1.0, 7.0], np.float32), np.array([1.0, np.nan]))
    assert measured.absolute == 0


def test_integers_must_be_equal() -> None:
    assert error(np.array([1, 2, 3], np.int32), np.array([1, 0, 3])).eps == 1


def test_a_result_that_is_not_finite_is_an_error() -> None:
    with pytest.raises(AssertionError, match="not finite"):
        error(np.array([np.inf], np.float32), np.array([1.0]))


@pytest.mark.parametrize("dtype", sorted(ELEMENTS))
def test_packed_words_are_elements_times_scales(dtype: str) -> None:
    words, scales, numbers = packed(Draw(""), dtype, 32, 4)
    kind, per_byte = ELEMENTS[dtype]
    codes = words.view(np.uint8).reshape(32, 4, -1)
    if per_byte == 2:
        codes = np.stack([codes & 15, codes >> 4], axis=-1).reshape(32, 4, 4)
    size = np.exp2(scales[2, 1].astype(float) - 127)  # of partitions 16 to 23
    wanted = np.ascontiguousarray(codes[17, 1]).view(kind).astype(float) * size
    np.testing.assert_array_equal(numbers[17, 1], wanted)


def test_quantised_numbers_that_are_exact_stay() -> None:
    x = np.tile(np.array([1, -2, 0.5, 3], ml_dtypes.bfloat16), (8, 1))
    np.testing.assert_array_equal(quantised(x, "float8_e5m2")[:, 0], x.astype(float))
