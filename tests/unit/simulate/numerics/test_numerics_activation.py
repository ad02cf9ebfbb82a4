"""Test activation functions against the mathematical ones, one number at a time."""

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nkic.machine.operators import ACTIVATIONS
from nkic.simulate.numerics import elementwise, quiet
from nkic.simulate.numerics.elementwise import FUNCTIONS, _sine

INF, NAN = math.inf, math.nan
SLOPE = 0.25


def apply(name: str, values: list[float] | NDArray[np.float32]) -> NDArray[np.float32]:
    x = np.array(values, np.float32)
    out = np.empty_like(x)
    with quiet():
        FUNCTIONS[name](x, out, np.array(SLOPE, np.float32))
    return out


def power_of_e(x: float) -> Decimal:
    return Decimal(x).exp()


def sigmoid(x: float) -> Decimal:
    return 1 / (1 + power_of_e(-x))


def phi(x: float) -> Decimal:
    """Return the normal distribution; `math.erfc` keeps its relative accuracy in the tail."""
    return Decimal(math.erfc(-x / math.sqrt(2)) / 2)


def mish(x: float) -> Decimal:
    e = power_of_e(x)
    return Decimal(x) * (e * e + 2 * e) / (e * e + 2 * e + 2)


def silu_dx(x: float) -> Decimal:
    return sigmoid(x) * (1 + Decimal(x) * (1 - sigmoid(x)))


def gelu_apprx_sigmoid_dx(x: float) -> Decimal:
    gate = sigmoid(1.702 * x)
    return gate * (1 + Decimal(1.702 * x) * (1 - gate))


def gelu_apprx_tanh(x: float) -> Decimal:
    return Decimal(x) * sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))


TRUE: dict[str, Callable[[float], float | Decimal]] = {
    "copy": lambda x: x,
    "square": lambda x: x * x,
    "abs": abs,
    "sign": lambda x: (x > 0) - (x < 0),
    "relu": lambda x: max(x, 0),
    "prelu": lambda x: x if x > 0 else SLOPE * x,
    "exp": power_of_e,
    "log": math.log,
    "sqrt": math.sqrt,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "sin": math.sin,
    "arctan": math.atan,
    "tanh": math.tanh,
    "sigmoid": sigmoid,
    "softplus": lambda x: (1 + power_of_e(x)).ln(),
    "mish": mish,
    "silu": lambda x: Decimal(x) * sigmoid(x),
    "silu_dx": silu_dx,
    "erf": math.erf,
    "erf_dx": lambda x: 2 / math.sqrt(math.pi) * math.exp(-x * x),
    "gelu": lambda x: Decimal(x) * phi(x),
    "gelu_dx": lambda x: phi(x) + Decimal(x * math.exp(-x * x / 2) / math.sqrt(2 * math.pi)),
    "gelu_apprx_tanh": gelu_apprx_tanh,
    "gelu_apprx_sigmoid": lambda x: Decimal(x) * sigmoid(1.702 * x),
    "gelu_apprx_sigmoid_dx": gelu_apprx_sigmoid_dx,
}


def samples(name: str) -> NDArray[np.float32]:
    """Draw numbers of all sizes within the valid range, more densely in its middle."""
    row = ACTIVATIONS[name]
    rng = np.random.default_rng(7)
    wide = np.ldexp(rng.standard_normal(300), rng.integers(-40, 6, 300))
    values = np.concatenate([wide, rng.uniform(-15, 15, 700)]).astype(np.float32)
    magnitude = np.abs(values)
    if row.by_magnitude:
        return values[(magnitude >= row.low) & (magnitude <= row.high)]
    if row.low >= 0:
        values = magnitude
    return values[(values >= row.low) & (values <= row.high)]


def test_the_references_are_complete() -> None:
    assert set(TRUE) == set(ACTIVATIONS)


@pytest.mark.parametrize("name", sorted(TRUE))
def test_within_a_hundredth_of_correct_rounding(name: str) -> None:
    """The error is half a unit in the last place for the single rounding, and 1 % for the rest."""
    values = samples(name)
    found = apply(name, values)
    with localcontext(prec=40):
        expected = np.array([float(TRUE[name](float(v))) for v in values])
    unit = np.maximum(np.spacing(np.abs(expected.astype(np.float32))), np.float32(2.0**-149))
    error = np.abs(found.astype(float) - expected) / unit
    assert error.max() <= 0.51


def test_float64_functions_of_our_own() -> None:
    x = np.linspace(-14.9, 14.9, 20_011)
    tail = np.array([math.erfc(-v / math.sqrt(2)) / 2 for v in x])
    np.testing.assert_allclose(elementwise.probability(x), tail, rtol=1e-10)
    error = np.array([math.erf(v) for v in x])
    np.testing.assert_allclose(elementwise.erf(x), error, rtol=1e-13)
    near_zero = np.geomspace(1e-30, 1e-2, 1001)
    error = np.array([math.erf(v) for v in near_zero])
    np.testing.assert_allclose(elementwise.erf(near_zero), error, rtol=1e-13)
    x = np.linspace(-math.pi, math.pi, 10_001)
    np.testing.assert_allclose(_sine(x), np.sin(x), rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("name", "zero"),
    [
        ("sin", math.pi),
        ("log", 1),
        ("silu_dx", -1.2784645),
        ("gelu_dx", -0.7517915),
        ("gelu_apprx_sigmoid_dx", -0.7511545),
    ],
)
def test_next_to_a_zero_crossing(name: str, zero: float) -> None:
    """Where terms cancel, a tenth of a unit is lost."""
    middle = np.float32(zero).view(np.uint32)
    values = np.arange(middle - 200, middle + 200, dtype=np.uint32).view(np.float32)
    values = values[values < math.pi]
    with localcontext(prec=40):
        expected = np.array([float(TRUE[name](float(v))) for v in values])
    assert expected.min() < 0 < expected.max() or name == "sin"
    error = np.abs(apply(name, values) - expected) / np.spacing(np.abs(expected.astype(np.float32)))
    assert error.max() <= 0.6


@pytest.mark.parametrize(
    ("name", "at_minus", "at_plus"),
    [
        ("exp", 0, INF),
        ("tanh", -1, 1),
        ("sigmoid", 0, 1),
        ("softplus", 0, INF),
        ("mish", 0, INF),
        ("silu", 0, INF),
        ("silu_dx", 0, 1),
        ("erf", -1, 1),
        ("erf_dx", 0, 0),
        ("gelu", 0, INF),
        ("gelu_dx", 0, 1),
        ("gelu_apprx_tanh", 0, INF),
        ("gelu_apprx_sigmoid", 0, INF),
        ("gelu_apprx_sigmoid_dx", 0, 1),
        ("relu", 0, INF),
        ("prelu", -INF, INF),
        ("sign", -1, 1),
        ("arctan", -math.pi / 2, math.pi / 2),
        ("sin", -INF, INF),  # of its cubic
        ("reciprocal", 0, 0),
    ],
)
def test_limits(name: str, at_minus: float, at_plus: float) -> None:
    expected = np.array([at_minus, at_plus], np.float32)
    np.testing.assert_array_equal(apply(name, [-INF, INF]), expected)
    finite = apply(name, [-3e38, 3e38])
    if not np.isinf(expected).any():
        np.testing.assert_allclose(finite, expected, atol=1e-30)


@pytest.mark.parametrize("name", sorted(TRUE))
def test_nan_in_nan_out(name: str) -> None:
    assert np.isnan(apply(name, [1, NAN, 2])).tolist() == [False, True, False]


@pytest.mark.parametrize("name", ["arctan", "copy", "erf", "sin", "sqrt", "tanh"])
def test_minus_zero_stays(name: str) -> None:
    assert np.signbit(apply(name, [-0.0, 0.0])).tolist() == [True, False]


def test_sine_beyond_pi_is_the_cubic_of_the_device() -> None:
    """NKI API common fields: sin(9.0) returns about 27.65."""
    found = apply("sin", [9.0, -9.0, math.pi / 2, 3.2])
    assert found[0] == pytest.approx(27.65, abs=0.005)
    assert found[1] == -found[0]
    assert found[2] == 1
    assert found[3] == pytest.approx(math.sin(3.2), abs=1e-6)  # the two branches meet at pi


def test_outside_their_ranges_the_others_are_true() -> None:
    assert apply("log", [2.0**100, 0, -1])[:2].tolist() == [np.float32(100 * math.log(2)), -INF]
    assert np.isnan(apply("log", [-1])).all()
    assert apply("sqrt", [2.0**-140]).tolist() == [2.0**-70]
    assert apply("reciprocal", [2.0**100]).tolist() == [2.0**-100]
    assert apply("arctan", [1e6]).tolist() == [np.float32(math.atan(1e6))]


def test_subnormal_results_are_kept() -> None:
    assert apply("exp", [-103.0]).tolist() == [np.float32(math.exp(-103))]
    assert 0 < apply("exp", [-103.0])[0] < 2.0**-126


def test_prelu_takes_one_slope_for_each_partition() -> None:
    x = np.full((3, 4), -2, np.float32)
    slopes = np.array([[0], [0.5], [2]], np.float32)
    FUNCTIONS["prelu"](x, x, slopes)
    assert x[:, 0].tolist() == [0, -1, -4]


@pytest.mark.parametrize("name", sorted(TRUE))
def test_block_size_and_layout_do_not_matter(name: str) -> None:
    x = np.abs(np.random.default_rng(3).standard_normal((40, 600)).astype(np.float32)) + 0.01
    by_itself = np.stack([apply(name, row) for row in x])
    columns = np.empty((600, 40), np.float32).T
    np.copyto(columns, x)
    with quiet():
        FUNCTIONS[name](columns, columns, np.array(SLOPE, np.float32))
    np.testing.assert_array_equal(columns, by_itself)


# ------------------------------------------------------------------------------------------------
# Test activation functions on every finite bfloat16 and float16 of their range, against long
# double.

Long = NDArray[Any]
L = np.longdouble
SIGMOID_GELU = L(1.702)
ERF = np.vectorize(math.erf, otypes=[np.float64])
ERFC = np.vectorize(math.erfc, otypes=[np.float64])


def exact_sigmoid(x: Long) -> Long:
    return 1 / (1 + np.exp(-x))


def softplus(x: Long) -> Long:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def exact_phi(x: Long) -> Long:
    found: Long = ERFC(-(x / np.sqrt(L(2))).astype(float)).astype(L) / 2
    return found


EXACT: dict[str, Callable[[Long], Long]] = {
    "square": np.square,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "sin": np.sin,
    "arctan": np.arctan,
    "tanh": np.tanh,
    "sigmoid": exact_sigmoid,
    "softplus": softplus,
    "mish": lambda x: x * np.tanh(softplus(x)),
    "silu": lambda x: x * exact_sigmoid(x),
    "silu_dx": lambda x: exact_sigmoid(x) * (1 + x * exact_sigmoid(-x)),
    "erf": lambda x: ERF(x.astype(float)).astype(L),
    "erf_dx": lambda x: 2 / np.sqrt(L(np.pi)) * np.exp(-x * x),
    "gelu": lambda x: x * exact_phi(x),
    "gelu_dx": lambda x: exact_phi(x) + x * np.exp(-x * x / 2) / np.sqrt(2 * L(np.pi)),
    "gelu_apprx_tanh": lambda x: (
        x * exact_sigmoid(2 * np.sqrt(2 / L(np.pi)) * (x + 0.044715 * x**3))
    ),
    "gelu_apprx_sigmoid": lambda x: x * exact_sigmoid(SIGMOID_GELU * x),
    "gelu_apprx_sigmoid_dx": lambda x: (
        exact_sigmoid(SIGMOID_GELU * x) * (1 + SIGMOID_GELU * x * exact_sigmoid(-SIGMOID_GELU * x))
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
    assert EXACT.keys() | CHOOSING == ACTIVATIONS.keys()


@pytest.mark.parametrize("name", EXACT)
def test_rounded_once_from_the_true_value(name: str) -> None:
    values = every_pattern(name)
    found = np.empty_like(values)
    with quiet():
        FUNCTIONS[name](values, found, np.zeros((), np.float32))
        exact = EXACT[name](values.astype(L))
        nearest = exact.astype(np.float32)
    assert len(values) > 40_000
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(nearest))
    finite = np.isfinite(found)
    unit = np.maximum(np.spacing(np.abs(nearest[finite])), np.float32(2.0**-149)).astype(L)
    assert (np.abs(found[finite].astype(L) - exact[finite]) / unit).max() <= 0.500001
