"""nl.sin, nl.cos and nl.tan reduce their range; the scalar engine's own sine does not."""

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.harness.language import evaluate

Floats = NDArray[np.float32]
LIMITS = (math.pi, 4.0, 30.0, 355.0, 1e3, 1e4, 1e5, 1e6, 1e7)


def angles(limit: float) -> Floats:
    """Return random angles, and angles close to multiples of a quarter turn, up to the limit."""
    random = np.random.default_rng(int(limit)).uniform(-limit, limit, (128, 56))
    most = int(limit / (math.pi / 2))
    near = np.linspace(-most, most, 128 * 8).round() * (math.pi / 2)
    return np.concatenate([random, near.reshape(128, 8)], axis=1).astype(np.float32)


def true(function: str, x: Floats) -> NDArray[np.float64]:
    exact = np.vectorize(getattr(math, function), otypes=[np.float64])
    found: NDArray[np.float64] = exact(x.astype(np.float64))
    return found


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
@pytest.mark.parametrize("limit", LIMITS)
def test_sine_cosine_and_tangent_are_right_far_from_zero(limit: float, target: str) -> None:
    x = angles(limit)
    found = evaluate(["nl.sin(x)", "nl.cos(x)", "nl.tan(x)"], {"x": x}, target=target)
    sine, cosine, tangent = (one.array.astype(np.float64) for one in found)
    assert np.abs(sine - true("sin", x)).max() < 4e-7
    assert np.abs(cosine - true("cos", x)).max() < 4e-7
    error = np.abs(tangent - true("tan", x)) * true("cos", x) ** 2
    assert error.max() < 8e-7, "as far as a change of the angle by so much would take it"


def test_of_angles_within_a_quarter_turn_the_sine_is_the_engine_s() -> None:
    x = np.linspace(-1.5, 1.5, 128 * 32, dtype=np.float32).reshape(128, 32)
    x[0, :4] = (1e-30, -1e-30, -0.0, 1e-7)  # the reduction of -0 subtracts -0, which gives +0
    function, engine = evaluate(["nl.sin(x)", "sine(x)"], {"x": x}, helpers=ENGINE)
    np.testing.assert_array_equal(function.array, engine.array)


def test_the_engine_s_own_sine_goes_on_as_a_cubic() -> None:
    x = np.full((1, 1), 9.0, np.float32)
    function, engine = evaluate(["nl.sin(x)", "sine(x)"], {"x": x}, helpers=ENGINE)
    assert float(engine.array[0, 0]) == pytest.approx(27.65, abs=5e-3)
    assert float(function.array[0, 0]) == pytest.approx(math.sin(9.0), abs=4e-7)


@pytest.mark.parametrize("buffer", ["sbuf", "psum"])
@pytest.mark.parametrize("kind", [ml_dtypes.bfloat16, np.float16])
def test_narrow_types_are_reduced_in_float32(kind: type, buffer: str) -> None:
    x: NDArray[Any] = angles(6e4).astype(kind)
    found = evaluate(["nl.sin(x)", "nl.cos(x, dtype=nl.float32)"], {"x": x}, buffer)
    sine = true("sin", x.astype(np.float32))
    assert found[0].array.dtype == kind
    step = 2.0**-8 if kind is ml_dtypes.bfloat16 else 2.0**-11
    assert np.abs(found[0].array.astype(np.float64) - sine).max() < 4e-7 + step / 2
    assert np.abs(found[1].array - true("cos", x.astype(np.float32))).max() < 4e-7


ENGINE = """
def sine(x):
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.activation(dst=result, op=nl.sin, data=x)
    return result
"""
