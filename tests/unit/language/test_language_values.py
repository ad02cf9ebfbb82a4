"""Test every function of nki.language against NumPy in float64.

The tests vary sources in SBUF and PSUM, element types, broadcasting, forms of axes, and the dtype
of results.
"""

import math
from collections.abc import Callable
from functools import cache
from math import erf, exp, pi, sqrt
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from nkic.base.diagnostics import CompileFailed
from tests.harness.language import Array, Found, evaluate
from tests.unit.language.test_names import FUNCTIONS

ROWS, COLUMNS = 8, 24
Reference = Callable[..., Any]


def vectorised(function: Callable[[float], float]) -> Reference:
    return np.vectorize(function, otypes=[np.float64])


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def derivative(function: Reference) -> Reference:
    """Differentiate by central differences, with an error of about 1e-10."""
    return lambda x: (function(x + 1e-5) - function(x - 1e-5)) / 2e-5


ERF = vectorised(erf)


def gelu(x: Array) -> Array:
    found: Array = x * (1 + ERF(x / sqrt(2))) / 2
    return found


def gelu_tanh(x: Array) -> Array:
    found: Array = x * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2
    return found


def gelu_sigmoid(x: Array) -> Array:
    return x * sigmoid(1.702 * x)


# Expressions of x from -4 to 4, p from 0.5 to 3, and their values. `exact` results are those of the
# rounded numbers for every type.
ONE: dict[str, Reference] = {
    "nl.exp(x)": np.exp,
    "nl.log(p)": np.log,
    "nl.sqrt(p)": np.sqrt,
    "nl.rsqrt(p)": lambda p: 1 / np.sqrt(p),
    "nl.reciprocal(p)": np.reciprocal,
    "nl.tanh(x)": np.tanh,
    "nl.sigmoid(x)": sigmoid,
    "nl.relu(x)": lambda x: np.maximum(x, 0),
    "nl.gelu(x)": gelu,
    "nl.gelu_apprx_sigmoid(x)": gelu_sigmoid,
    "nl.gelu_apprx_tanh(x)": gelu_tanh,
    "nl.gelu_dx(x)": derivative(gelu),
    "nl.gelu_apprx_sigmoid_dx(x)": derivative(gelu_sigmoid),
    "nl.silu(x)": lambda x: x * sigmoid(x),
    "nl.silu_dx(x)": derivative(lambda x: x * sigmoid(x)),
    "nl.softplus(x)": lambda x: np.log1p(np.exp(x)),
    "nl.mish(x)": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "nl.erf(x)": ERF,
    "nl.erf_dx(x)": vectorised(lambda v: 2 / sqrt(pi) * exp(-v * v)),
    "nl.square(x)": np.square,
    "nl.abs(x)": np.abs,
    "nl.negative(x)": np.negative,
    "nl.sign(x)": np.sign,
    "nl.sin(p)": np.sin,
    "nl.cos(x)": np.cos,
    "nl.tan(nl.multiply(p, 0.4))": lambda p: np.tan(p * 0.4),
    "nl.arctan(nl.multiply(p, 0.5))": lambda p: np.arctan(p * 0.5),
    "nl.floor(x)": np.floor,
    "nl.ceil(x)": np.ceil,
    "nl.trunc(x)": np.trunc,
    "nl.logical_not(nl.greater(x, 0))": lambda x: x <= 0,
    "nl.copy(x)": lambda x: x,
}
TWO: dict[str, Reference] = {
    "nl.add(x, p)": np.add,
    "nl.subtract(x, p)": np.subtract,
    "nl.multiply(x, p)": np.multiply,
    "nl.divide(x, p)": np.divide,
    "nl.maximum(x, p)": np.maximum,
    "nl.minimum(x, p)": np.minimum,
    "nl.power(p, p)": lambda x, p: p**p,
    "nl.mod(x, p)": np.mod,
    "nl.fmod(x, p)": np.fmod,
    "nl.equal(nl.sign(x), 1)": lambda x, p: x > 0,
    "nl.not_equal(x, p)": np.not_equal,
    "nl.less(x, p)": np.less,
    "nl.less_equal(x, p)": np.less_equal,
    "nl.greater(x, p)": np.greater,
    "nl.greater_equal(x, p)": np.greater_equal,
    "nl.logical_and(nl.greater(x, 0), nl.less(p, 2))": lambda x, p: (x > 0) & (p < 2),
    "nl.logical_or(nl.greater(x, 0), nl.less(p, 2))": lambda x, p: (x > 0) | (p < 2),
    "nl.logical_xor(nl.greater(x, 0), nl.less(p, 2))": lambda x, p: (x > 0) ^ (p < 2),
    "nl.where(nl.greater(x, 0), x, p)": lambda x, p: np.where(x > 0, x, p),
    "nl.where(nl.greater(x, 0), 2.0, p)": lambda x, p: np.where(x > 0, 2, p),
    "nl.add(x, p[:, 3:4])": lambda x, p: x + p[:, 3:4],
    "nl.subtract(x[:, 0:1], p)": lambda x, p: x[:, :1] - p,
    "nl.add(2.0, x)": lambda x, p: 2 + x,
    "nl.divide(1.5, p)": lambda x, p: 1.5 / p,
    "nl.expand_dims(x, -1)": lambda x, p: x[:, :, None],
    "nl.broadcast_to(x[:, 0:1], (8, 5))": lambda x, p: np.repeat(x[:, :1], 5, 1),
    "nl.zeros((3, 4), dtype=x.dtype)": lambda x, p: np.zeros((3, 4)),
    "nl.ones((3, 4), dtype=x.dtype)": lambda x, p: np.ones((3, 4)),
    "nl.full((3, 4), 1.5, dtype=x.dtype)": lambda x, p: np.full((3, 4), 1.5),
    "nl.zeros_like(x)": lambda x, p: np.zeros_like(x),
    "nl.shared_identity_matrix(8, dtype=x.dtype)": lambda x, p: np.eye(8),
}
# Sums of 24 numbers of either sign: the error is relative to their size.
FOLDED: dict[str, Reference] = {
    "nl.sum(x, axis=1)": lambda x, p: x.sum(1, keepdims=True),
    "nl.sum(x.reshape((8, 2, 3, 4)), axis=(2, 3))": lambda x, p: x.reshape(8, 2, 12).sum(2),
    "nl.sum(x.reshape((8, 6, 4)), axis=-1, keepdims=True)": lambda x, p: x.reshape(8, 6, 4).sum(
        2, keepdims=True
    ),
    "nl.max(x, axis=[1])": lambda x, p: x.max(1, keepdims=True),
    "nl.min(x.reshape((8, 6, 4)), axis=[1, 2])": lambda x, p: x.min(1, keepdims=True),
    "nl.mean(x, axis=1)": lambda x, p: x.mean(1, keepdims=True),
    "nl.mean(x.reshape((8, 6, 4)), axis=2)": lambda x, p: x.reshape(8, 6, 4).mean(2),
    "nl.prod(p[:, 0:4], axis=1)": lambda x, p: p[:, :4].prod(1, keepdims=True),
    "nl.var(x, axis=1)": lambda x, p: x.var(1, keepdims=True),
    "nl.all(nl.greater(x[:, 0:2], -1.0), axis=1)": lambda x, p: (x[:, :2] > -1).all(
        1, keepdims=True
    ),
    "nl.softmax(x)": lambda x, p: np.exp(x) / np.exp(x).sum(1, keepdims=True),
    "nl.softmax(x.reshape((8, 6, 4)), axis=(1, 2))": lambda x, p: (
        np.exp(x) / np.exp(x).sum(1, keepdims=True)
    ).reshape(8, 6, 4),
    "nl.rms_norm(x, p, axis=1, n=24)": lambda x, p: (
        x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-6) * p
    ),
    "nl.rms_norm(x, p, axis=1, n=12, epsilon=0.5)": lambda x, p: (
        x / np.sqrt((x**2).sum(1, keepdims=True) / 12 + 0.5) * p
    ),
}
TRANSPOSED: dict[str, Reference] = {
    "nl.transpose(x)": lambda x, p: x.T,
    "nl.matmul(x, p, transpose_x=True)": lambda x, p: x.T @ p,
    "nl.matmul(x, nl.copy(nl.transpose(p)))": lambda x, p: x @ p.T,
}
TABLES = {"one": ONE, "two": TWO, "folded": FOLDED, "transposed": TRANSPOSED}
CASES = [(table, e) for table, expressions in TABLES.items() for e in expressions]
KINDS = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
ULP = {"float32": 2.0**-22, "float16": 2.0**-10, "bfloat16": 2.0**-7}
NOT_FROM_PSUM = ("nl.rsqrt",)  # runs on the gpsimd engine, which cannot access PSUM


def inputs(kind: str) -> dict[str, Array]:
    generator = np.random.default_rng(7)
    x = generator.uniform(-4, 4, (ROWS, COLUMNS))
    p = generator.uniform(0.5, 3, (ROWS, COLUMNS))
    return {"x": x.astype(KINDS[kind]), "p": p.astype(KINDS[kind])}


@cache
def results(kind: str, buffer: str) -> dict[str, Found]:
    """Evaluate all supported expressions in one kernel."""
    wanted = [e for _, e in CASES if buffer == "sbuf" or not e.startswith(NOT_FROM_PSUM)]
    return dict(zip(wanted, evaluate(wanted, inputs(kind), buffer), strict=True))


@pytest.mark.parametrize("where", ["float32-sbuf", "float32-psum", "float16-sbuf", "bfloat16-sbuf"])
@pytest.mark.parametrize(("table", "expression"), CASES, ids=[e for _, e in CASES])
def test_value(table: str, expression: str, where: str) -> None:
    kind, buffer = where.split("-")
    if buffer == "psum" and expression.startswith(NOT_FROM_PSUM):
        return
    x, p = (array.astype(np.float64) for array in inputs(kind).values())
    if table == "one":
        wanted = TABLES[table][expression](p if "(p" in expression else x)
    else:
        wanted = TABLES[table][expression](x, p)
    found = results(kind, buffer)[expression].array.astype(np.float64)
    assert found.shape == wanted.shape
    scale = np.abs(wanted).max() if table in ("folded", "transposed") else np.abs(wanted)
    # The argument of a function is also rounded if another function computes it.
    wiggle = 4 * ULP[kind] * (scale + (1 if "nl.multiply" in expression else 0))
    assert (np.abs(found - wanted) <= wiggle + 2e-6).all()


def test_every_function_is_in_the_tables() -> None:
    elsewhere = {
        *("is_hbm", "is_on_chip", "is_psum", "is_sbuf", "no_reorder", "ds", "ndarray", "load"),
        *("store", "program_id", "num_programs", "program_ndim", "shared_constant", "rand"),
        *("device_print", "affine_range", "sequential_range", "static_range", "dynamic_range"),
        *("fori_loop", "while_loop", "random_seed", "empty_like", "load_transpose2d", "dropout"),
        *("gather_flattened", "abs_max", "abs_min", "bitwise_and", "bitwise_or", "bitwise_xor"),
        *("invert", "left_shift", "right_shift"),
    }
    named = {name for name in FUNCTIONS if any(f"nl.{name}(" in e for _, e in CASES)}
    assert set(FUNCTIONS) - named == elsewhere


# Remainders, where the quotient is rounded


@pytest.mark.parametrize("name", ["mod", "fmod"])
def test_remainders_of_multiples_are_zero(name: str) -> None:
    y = np.tile(np.arange(1, 97, dtype=np.float32), (8, 1)) * np.float32(0.5)
    x = y * np.arange(-60, 36, dtype=np.float32) * np.where(np.arange(8) % 2, 1, -1)[:, None]
    for divisor in (y, -y):
        (found,) = evaluate([f"nl.{name}(x, y)"], {"x": x.astype(np.float32), "y": divisor})
        assert np.array_equal(found.array, np.zeros_like(x)), name


@pytest.mark.parametrize("name", ["mod", "fmod"])
def test_remainders_have_the_sign_that_they_should(name: str) -> None:
    x = np.random.default_rng(3).uniform(-50, 50, (16, 64)).astype(np.float32)
    y = np.random.default_rng(4).choice([-7, -2.5, 0.3, 3, 11], (16, 64)).astype(np.float32)
    (found,) = evaluate([f"nl.{name}(x, y)"], {"x": x, "y": y})
    wanted = getattr(np, name)(x.astype(np.float64), y.astype(np.float64))
    np.testing.assert_allclose(found.array, wanted, atol=2e-5)


# Integers


INTEGERS: dict[str, Reference] = {
    "nl.bitwise_and(x, y)": lambda x, y: x & y,
    "nl.bitwise_or(x, y)": lambda x, y: x | y,
    "nl.bitwise_xor(x, 3)": lambda x, y: x ^ 3,
    "nl.invert(x)": lambda x, y: ~x,
    "nl.left_shift(x, 2)": lambda x, y: x << 2,
    "nl.right_shift(x, y)": lambda x, y: x >> y,
    "nl.add(x, y)": lambda x, y: x + y,
    "nl.multiply(x, 3)": lambda x, y: x * 3,
    "nl.maximum(x, y)": np.maximum,
    "nl.less(x, 9)": lambda x, y: (x < 9).astype(x.dtype),
    "nl.sum(x[:, 0:3], axis=1)": lambda x, y: x[:, :3].sum(1, keepdims=True, dtype=x.dtype),
    "nl.copy(x)": lambda x, y: x,
}


@pytest.mark.parametrize("kind", ["int32", "int16", "uint8", "uint32"])
def test_integers(kind: str) -> None:
    x = (np.arange(96).reshape(4, 24) % 20).astype(kind)
    y = (np.arange(96).reshape(4, 24) % 5).astype(kind)
    found = evaluate(list(INTEGERS), {"x": x, "y": y})
    for (expression, reference), one in zip(INTEGERS.items(), found, strict=True):
        assert np.array_equal(one.array, reference(x, y)), expression
        assert one.dtype.name == kind, expression


def test_copies_of_large_integers_are_exact() -> None:
    x = np.array([[2**31 - 1, -(2**31), 2**24 + 1, -(2**24) - 3]], np.int32)
    (found,) = evaluate(["nl.copy(x)"], {"x": x})
    assert np.array_equal(found.array, x)


# Magnitudes, on trn3


def test_the_one_of_greater_or_lesser_magnitude_with_its_sign() -> None:
    x = np.array([[-5, 5, 1, 1, -2.0, 0]], np.float32)
    y = np.array([[3, -3, -1, 4, 2.0, -1]], np.float32)
    found = evaluate(["nl.abs_max(x, y)", "nl.abs_min(x, y)"], {"x": x, "y": y}, target="trn3")
    assert found[0].array.tolist() == [[-5, 5, -1, 4, 2, -1]]  # ties give y
    assert found[1].array.tolist() == [[3, -3, -1, 1, 2, 0]]
    with pytest.raises(CompileFailed, match="abs_max, which the vector engine of trn2"):
        evaluate(["nl.abs_max(x, y)"], {"x": x, "y": y}, target="trn2")


# Loads


def test_loads_and_stores_convert() -> None:
    x = inputs("float32")["x"]
    found = evaluate(
        ["nl.load(x, dtype=nl.bfloat16)", "nl.load_transpose2d(x, dtype=nl.float16)"],
        {"x": x},
        "hbm",
    )
    assert np.array_equal(found[0].array, x.astype(ml_dtypes.bfloat16))
    assert np.array_equal(found[1].array, x.T.astype(np.float16))


# Gathers and random numbers


def test_gather_flattened_counts_through_all_free_dimensions() -> None:
    x = np.random.default_rng(0).normal(size=(8, 4, 6)).astype(np.float32)
    i = np.random.default_rng(1).integers(0, 24, (8, 3, 2)).astype(np.int32)
    (found,) = evaluate(["nl.gather_flattened(x, i)"], {"x": x, "i": i})
    wanted = np.take_along_axis(x.reshape(8, 24), i.reshape(8, 6), 1).reshape(8, 3, 2)
    assert np.array_equal(found.array, wanted)
    (half,) = evaluate(
        ["nl.gather_flattened(data=x, indices=i, dtype=nl.float16)"], {"x": x, "i": i}
    )
    assert np.array_equal(half.array, wanted.astype(np.float16))
    with pytest.raises(CompileFailed, match="axis is 0, not 1"):
        evaluate(["nl.gather_flattened(x, i, axis=1)"], {"x": x, "i": i})


SEEDED = "nl.random_seed(nl.full((1, 1), {seed}, dtype=nl.int32)) or {expression}"


@pytest.mark.parametrize("target", ["trn2", "trn3"])
def test_random_numbers_repeat_for_a_seed_and_are_uniform(target: str) -> None:
    drawn = "nl.rand((128, 500), dtype=nl.float32)"
    wanted = [SEEDED.format(seed=seed, expression=drawn) for seed in (42, 42, 43)]
    one, same, other = (
        f.array for f in evaluate([*wanted], {"x": inputs("float32")["x"]}, target=target)
    )
    assert np.array_equal(one, same) and not np.array_equal(one, other)
    assert one.min() >= 0 and one.max() <= 1
    counts, _ = np.histogram(one, 16, (0, 1))
    expected = one.size / 16
    assert ((counts - expected) ** 2 / expected).sum() < 40  # chi squared, 15 degrees of freedom


@pytest.mark.parametrize("size", [1, 700, 128 * 512 + 3])
def test_random_numbers_fill_tensors_in_hbm(size: int) -> None:
    drawn = f"nl.rand(({size},), dtype=nl.float32, buffer=nl.private_hbm).reshape((1, {size}))"
    (found,) = evaluate(
        [f"nl.load({drawn}[:, {max(0, size - 600)}:{size}])"], {"x": inputs("float32")["x"]}
    )
    assert np.unique(found.array).size == found.array.size


def test_dropout_keeps_or_zeroes() -> None:
    x = np.random.default_rng(0).uniform(1, 2, (128, 400)).astype(np.float32)
    r = np.resize(np.array([[0], [0.25], [0.75], [1]], np.float32), (128, 1))
    found = evaluate(
        ["nl.dropout(x, 0.3)", "nl.dropout(x, r, dtype=nl.bfloat16)"], {"x": x, "r": r}
    )
    dropped = found[0].array == 0
    assert np.array_equal(found[0].array[~dropped], x[~dropped])
    assert abs(dropped.mean() - 0.3) < 0.01
    share = (found[1].array == 0).mean(1).reshape(-1, 4).mean(0)
    np.testing.assert_allclose(share, [0, 0.25, 0.75, 1], atol=0.03)
    assert found[1].dtype.name == "bfloat16"


# The dtype of a result

DTYPES = {
    "nl.exp(x)": "float16",
    "nl.exp(x, dtype=nl.float32)": "float32",
    "nl.add(x, 1)": "float16",
    "nl.add(x, p)": "float32",
    "nl.add(x, p, dtype=nl.bfloat16)": "bfloat16",
    "nl.less(x, p)": "float32",
    "nl.less(x, p, dtype=nl.uint8)": "uint8",
    "nl.sum(x, axis=1)": "float16",
    "nl.mean(x, axis=1, dtype=nl.float32)": "float32",
    "nl.var(x, axis=1)": "float16",
    "nl.softmax(x)": "float16",
    "nl.rms_norm(x, p, axis=1, n=24)": "float16",
    "nl.where(nl.less(x, 0), x, 0.0)": "float16",
    "nl.where(nl.less(x, 0), x, p, dtype=nl.bfloat16)": "bfloat16",
    "nl.matmul(x, x, transpose_x=True)": "float32",
    "nl.transpose(x)": "float16",
    "nl.transpose(x, dtype=nl.float32)": "float32",
    "nl.copy(x, dtype=nl.float8_e4m3)": "float8_e4m3",
    "nl.zeros_like(x)": "float16",
    "nl.zeros_like(x, dtype=nl.float32)": "float32",
    "nl.shared_identity_matrix(4)": "uint8",
}


def test_dtypes_of_results() -> None:
    arrays = {"x": inputs("float16")["x"], "p": inputs("float32")["p"]}
    found = evaluate(list(DTYPES), arrays)
    assert [one.dtype.name for one in found] == list(DTYPES.values())


# ------------------------------------------------------------------------------------------------
# nl.sin, nl.cos and nl.tan reduce their range; the scalar engine's own sine does not.

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
