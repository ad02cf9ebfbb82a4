"""Test activation functions on every finite bfloat16 and float16 of their range, against long
double.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nkic.machine.operators import ACTIVATIONS
from nkic.simulate.numerics import quiet
from nkic.simulate.numerics.elementwise import FUNCTIONS

Long = NDArray[Any]
L = np.longdouble
SIGMOID_GELU = L(1.702)
ERF = np.vectorize(math.erf, otypes=[np.float64])
ERFC = np.vectorize(math.erfc, otypes=[np.float64])


def sigmoid(x: Long) -> Long:
    return 1 / (1 + np.exp(-x))


def softplus(x: Long) -> Long:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def phi(x: Long) -> Long:
    found: Long = ERFC(-(x / np.sqrt(L(2))).astype(float)).astype(L) / 2
    return found


TRUE: dict[str, Callable[[Long], Long]] = {
    "square": np.square,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "sin": np.sin,
    "arctan": np.arctan,
    "tanh": np.tanh,
    "sigmoid": sigmoid,
    "softplus": softplus,
    "mish": lambda x: x * np.tanh(softplus(x)),
    "silu": lambda x: x * sigmoid(x),
    "silu_dx": lambda x: sigmoid(x) * (1 + x * sigmoid(-x)),
    "erf": lambda x: ERF(x.astype(float)).astype(L),
    "erf_dx": lambda x: 2 / np.sqrt(L(np.pi)) * np.exp(-x * x),
    "gelu": lambda x: x * phi(x),
    "gelu_dx": lambda x: phi(x) + x * np.exp(-x * x / 2) / np.sqrt(2 * L(np.pi)),
    "gelu_apprx_tanh": lambda x: x * sigmoid(2 * np.sqrt(2 / L(np.pi)) * (x + 0.044715 * x**3)),
    "gelu_apprx_sigmoid": lambda x: x * sigmoid(SIGMOID_GELU * x),
    "gelu_apprx_sigmoid_dx": lambda x: (
        sigmoid(SIGMOID_GELU * x) * (1 + SIGMOID_GELU * x * sigmoid(-SIGMOID_GELU * x))
    ),
}
CHOOSING = {"copy", "abs", "sign", "relu", "prelu"}  # they do not round


def every_pattern(name: str) -> NDArray[np.float32]:
    wide = (np.arange(1 << 16, dtype=np.uint32) << 16).view(np.float32)
    half = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
    values = np.unique(np.concatenate([wide, half]))
    values = values[np.isfinite(values)]
    row = ACTIVATIONS[name]
    size = np.abs(values) if row.by_magnitude else values
    covered: NDArray[np.float32] = values[(size >= row.low) & (size <= row.high)]
    return covered


def test_every_function_is_tried() -> None:
    assert TRUE.keys() | CHOOSING == ACTIVATIONS.keys()


@pytest.mark.parametrize("name", TRUE)
def test_rounded_once_from_the_true_value(name: str) -> None:
    values = every_pattern(name)
    found = np.empty_like(values)
    with quiet():
        FUNCTIONS[name](values, found, np.zeros((), np.float32))
        exact = TRUE[name](values.astype(L))
        nearest = exact.astype(np.float32)
    assert len(values) > 40_000
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(nearest))
    finite = np.isfinite(found)
    unit = np.maximum(np.spacing(np.abs(nearest[finite])), np.float32(2.0**-149)).astype(L)
    assert (np.abs(found[finite].astype(L) - exact[finite]) / unit).max() <= 0.500001
