"""The standard library's functions, compiled and simulated, against NumPy in float64."""

from __future__ import annotations

from collections.abc import Callable
from math import erf
from typing import Any

import numpy as np
import pytest

from nkic.base.diagnostics import CompileFailed
from nkic.base.profiles import Profile
from nkic.base.source import SourceFile
from nkic.compiler.pipeline import compile_source
from nkic.language import library
from nkic.language.provide import names
from nkic.machine import dtypes
from nkic.simulate.stage import simulate
from nkic.specialise.request import Request, TensorType

Array = np.ndarray[Any, Any]
ROWS, COLUMNS = 8, 24

TEMPLATE = """
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def kernel(x, y):
    x, y = nl.load(x), nl.load(y)
    result = {expression}
    out = nl.ndarray(result.shape, dtype=result.dtype, buffer=nl.shared_hbm)
    nl.store(out, result)
    return out
"""


def run(expression: str, x: Array, y: Array, template: str = TEMPLATE) -> Array:
    args = {
        name: TensorType(dtypes.find(str(array.dtype)), array.shape, "test")
        for name, array in (("x", x), ("y", y))
    }
    text = template.format(expression=expression)
    source = SourceFile("kernel.py", text)
    compiled = compile_source(source, Request(args=args), lambda request, importer: None)
    return simulate(compiled.executable, {"x": x, "y": y}).outputs["output_0"]


def numbers(low: float, high: float, seed: int = 0) -> Array:
    return np.random.default_rng(seed).uniform(low, high, (ROWS, COLUMNS)).astype(np.float32)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def phi(x: Array) -> Array:
    found: Array = np.vectorize(lambda v: (1 + erf(v / 2**0.5)) / 2)(x)
    return found


Reference = Callable[[Array, Array], Array]

BINARY: list[tuple[str, Reference]] = [
    ("nl.add(x, y)", np.add),
    ("nl.subtract(x, y)", np.subtract),
    ("nl.multiply(x, y)", np.multiply),
    ("nl.divide(x, y)", np.divide),
    ("nl.divide(x, 3)", lambda x, y: x / 3),
    ("nl.divide(3.0, y)", lambda x, y: 3 / y),
    ("nl.maximum(x, y)", np.maximum),
    ("nl.minimum(x, 0.5)", lambda x, y: np.minimum(x, 0.5)),
    ("nl.subtract(1.0, x)", lambda x, y: 1 - x),
    ("nl.power(y, 2.0)", lambda x, y: y**2),
    ("nl.mod(x, y)", np.mod),
    ("nl.fmod(x, y)", np.fmod),
    ("nl.add(x, y[:, 0:1])", lambda x, y: x + y[:, :1]),
    ("nl.multiply(x[:, 0:1], y)", lambda x, y: x[:, :1] * y),
    ("nl.less(x, y)", lambda x, y: (x < y) * 1.0),
    ("nl.greater_equal(x, y)", lambda x, y: (x >= y) * 1.0),
    ("nl.equal(x, x)", lambda x, y: np.ones_like(x)),
    ("nl.logical_and(nl.greater(x, 0), nl.less(y, 2))", lambda x, y: ((x > 0) & (y < 2)) * 1.0),
    ("x + y * 2.0 - 1", lambda x, y: x + y * 2 - 1),
    ("1.0 / y", lambda x, y: 1 / y),
    ("-abs(x)", lambda x, y: -abs(x)),
    ("(x > y) * x", lambda x, y: (x > y) * x),
    ("nl.where(nl.greater(x, 0.0), x, y)", lambda x, y: np.where(x > 0, x, y)),
]


@pytest.mark.parametrize(("expression", "reference"), BINARY, ids=[e for e, _ in BINARY])
def test_binary(expression: str, reference: Reference) -> None:
    x, y = numbers(-4, 4), numbers(0.5, 3, seed=1)
    expected = reference(x.astype(np.float64), y.astype(np.float64))
    np.testing.assert_allclose(run(expression, x, y), expected, rtol=2e-6, atol=2e-6)


UNARY: list[tuple[str, Callable[[Array], Array], float, float]] = [
    ("exp", np.exp, -4, 4),
    ("log", np.log, 0.1, 9),
    ("sqrt", np.sqrt, 0.1, 9),
    ("rsqrt", lambda x: 1 / np.sqrt(x), 0.1, 9),
    ("reciprocal", np.reciprocal, 0.1, 9),
    ("tanh", np.tanh, -4, 4),
    ("sigmoid", sigmoid, -4, 4),
    ("relu", lambda x: np.maximum(x, 0), -4, 4),
    ("gelu", lambda x: x * phi(x), -4, 4),
    ("silu", lambda x: x * sigmoid(x), -4, 4),
    ("softplus", lambda x: np.log1p(np.exp(x)), -4, 4),
    ("square", np.square, -4, 4),
    ("abs", np.abs, -4, 4),
    ("negative", np.negative, -4, 4),
    ("sign", np.sign, -4, 4),
    ("sin", np.sin, -3.1, 3.1),
    ("cos", np.cos, -4.7, 4.7),
    ("tan", np.tan, -1.4, 1.4),
    ("arctan", np.arctan, -1.5, 1.5),
    ("floor", np.floor, -9, 9),
    ("ceil", np.ceil, -9, 9),
    ("trunc", np.trunc, -9, 9),
    ("logical_not", lambda x: (x == 0) * 1.0, -4, 4),
    ("copy", lambda x: x, -4, 4),
]


@pytest.mark.parametrize(("name", "reference", "low", "high"), UNARY, ids=[u[0] for u in UNARY])
def test_unary(name: str, reference: Callable[[Array], Array], low: float, high: float) -> None:
    x = numbers(low, high)
    found = run(f"nl.{name}(x)", x, x)
    np.testing.assert_allclose(found, reference(x.astype(np.float64)), rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc"])
def test_rounding_of_halves_large_numbers_and_nan(name: str) -> None:
    edges = [-3.7, 3.2, 2.5, 3.5, -2.5, 0.5, -0.5, 0, 8388607.5, -8388609, 3e9, -1e30, 1e30]
    edges += [np.inf, -np.inf, np.nan]
    x = np.resize(np.array(edges, np.float32), (ROWS, COLUMNS))
    assert np.array_equal(run(f"nl.{name}(x)", x, x), getattr(np, name)(x), equal_nan=True)


def test_bits() -> None:
    x = np.arange(ROWS * COLUMNS, dtype=np.int32).reshape(ROWS, COLUMNS)
    y = np.full_like(x, 5)
    assert np.array_equal(run("nl.bitwise_and(x, y)", x, y), x & 5)
    assert np.array_equal(run("nl.bitwise_xor(x, 3)", x, y), x ^ 3)
    assert np.array_equal(run("nl.left_shift(x, 2)", x, y), x << 2)
    assert np.array_equal(run("(x | y) >> 1", x, y), (x | 5) >> 1)
    assert np.array_equal(run("nl.invert(x)", x, y), ~x)


REDUCTIONS: list[tuple[str, Reference]] = [
    ("nl.sum(x, axis=1)", lambda x, y: x.sum(1, keepdims=True)),
    ("nl.max(x, axis=-1, keepdims=True)", lambda x, y: x.max(1, keepdims=True)),
    ("nl.min(x, axis=(1,))", lambda x, y: x.min(1, keepdims=True)),
    ("nl.mean(x, axis=1)", lambda x, y: x.mean(1, keepdims=True)),
    ("nl.var(x, axis=1)", lambda x, y: x.var(1, keepdims=True)),
    ("nl.prod(y, axis=1)", lambda x, y: y.prod(1, keepdims=True)),
    ("nl.sum(x.reshape((8, 4, 6)), axis=2)", lambda x, y: x.reshape(8, 4, 6).sum(2)),
    (
        "nl.sum(x.reshape((8, 4, 6)), axis=[1, 2], keepdims=True)",
        lambda x, y: x.reshape(8, 4, 6).sum((1, 2), keepdims=True),
    ),
    (
        "nl.softmax(x, axis=1)",
        lambda x, y: np.exp(x) / np.exp(x).sum(1, keepdims=True),
    ),
    (
        "nl.rms_norm(x, y, axis=1, n=24)",
        lambda x, y: x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-6) * y,
    ),
    ("nl.transpose(x)", lambda x, y: x.T),
    ("nl.matmul(x, nl.copy(nl.transpose(y)))", lambda x, y: x @ y.T),
    ("nl.matmul(x, y, transpose_x=True)", lambda x, y: x.T @ y),
    ("nl.broadcast_to(x[:, 0:1], (8, 5))", lambda x, y: np.repeat(x[:, :1], 5, 1)),
    ("nl.broadcast_to(x[0:1, :], (4, 24))", lambda x, y: np.repeat(x[:1], 4, 0)),
    ("nl.broadcast_to(x[0:1, :], (100, 24))", lambda x, y: np.repeat(x[:1], 100, 0)),
    ("nl.broadcast_to(x[2:3, 4:8], (33, 4))", lambda x, y: np.repeat(x[2:3, 4:8], 33, 0)),
    ("nl.broadcast_to(x[0:1, 3:4], (70, 5))", lambda x, y: np.full((70, 5), x[0, 3])),
    ("nl.expand_dims(x, 1)", lambda x, y: x[:, None]),
    ("nl.zeros_like(x)", lambda x, y: np.zeros_like(x)),
    ("nl.full((3, 7), 2.5, dtype=nl.float32)", lambda x, y: np.full((3, 7), 2.5)),
    ("nl.shared_identity_matrix(5, dtype=nl.float32)", lambda x, y: np.eye(5)),
]


@pytest.mark.parametrize(("expression", "reference"), REDUCTIONS, ids=[e for e, _ in REDUCTIONS])
def test_reductions_and_layouts(expression: str, reference: Reference) -> None:
    x, y = numbers(-2, 2), numbers(0.5, 1.5, seed=1)
    expected = reference(x.astype(np.float64), y.astype(np.float64))
    found = run(expression, x, y)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("row", "transfers"), [(0, 3), (2, 5)])
def test_a_row_is_repeated_on_chip_where_an_instruction_may_start(row: int, transfers: int) -> None:
    """Loads and a store; two more if it goes through HBM."""
    types = dict.fromkeys("xy", TensorType(dtypes.find("float32"), (ROWS, COLUMNS), "test"))
    text = TEMPLATE.format(expression=f"nl.broadcast_to(x[{row}:{row + 1}, :], (64, {COLUMNS}))")
    source = SourceFile("kernel.py", text)
    compiled = compile_source(source, Request(args=types), lambda request, importer: None)
    streams = [s for s in compiled.executable.streams if s.name.startswith("core0.dma")]
    found = sum(getattr(item, "row", None) is not None for s in streams for item in s.items)
    assert found == transfers


@pytest.mark.parametrize("size", [5, 2048, 2049, 300_000])
def test_constants_in_hbm(size: int) -> None:
    template = f"""
import nki
import nki.language as nl

@nki.jit
def kernel(x, y):
    return nl.full(({size},), {{expression}}, dtype=nl.float32, buffer=nl.shared_hbm)
"""
    x = numbers(0, 1)
    assert np.array_equal(run("1.5", x, x, template), np.full(size, 1.5, np.float32))


def test_assignment_to_parts() -> None:
    template = TEMPLATE.replace("result = {expression}", "result = x\n    {expression}")
    x, y = numbers(-2, 2), numbers(0.5, 1.5, seed=1)
    expected = x.copy()
    expected[:, 4:8] = y[:, 0:4]
    assert np.array_equal(run("x[:, 4:8] = y[:, 0:4]", x, y, template), expected)
    expected[0, 1:3] = 0
    assert np.array_equal(run("x[:, 4:8] = y[:, 0:4]; x[0, 1:3] = 0", x, y, template), expected)


# The dtype of a result


def test_without_dtype_the_result_has_the_type_of_the_tile() -> None:
    x = numbers(-2, 2).astype(np.float16)
    y = numbers(-2, 2, seed=1)
    assert run("nl.exp(x)", x, y).dtype == np.float16
    assert run("nl.exp(x, dtype=nl.float32)", x, y).dtype == np.float32
    assert run("nl.add(x, 1)", x, y).dtype == np.float16
    assert run("x + y", x, y).dtype == np.float32
    assert run("nl.less(x, y, dtype=nl.uint8)", x, y).dtype == np.uint8


INTEGERS = ("int8", "int16", "int32", "uint8", "uint16", "bool")


@pytest.mark.parametrize("first", INTEGERS)
@pytest.mark.parametrize("second", INTEGERS)
def test_promotion_of_integers_is_numpys(first: str, second: str) -> None:
    found = library.promoted(dtypes.DTYPES[first], dtypes.DTYPES[second])
    assert found.name == np.promote_types(first, second).name


def test_promotion_is_as_documented() -> None:
    """The examples of "NKI Type Promotion" in the API's common fields, up to SDK 2.26."""
    for first, second, wanted in (
        ("int32", "float16", "float16"),
        ("uint16", "tfloat32", "tfloat32"),
        ("float32", "tfloat32", "float32"),
        ("float32", "bfloat16", "float32"),
        ("float16", "bfloat16", "float32"),
        ("float8_e4m3", "float16", "float16"),
        ("float8_e4m3", "bfloat16", "bfloat16"),
        ("float8_e4m3", "float8_e5m2", "bfloat16"),
        ("int16", "int32", "int32"),
        ("uint8", "uint16", "uint16"),
        ("uint16", "int32", "int32"),
        ("int8", "uint8", "int16"),
        ("int8", "uint16", "int32"),
        ("int32", "uint32", "float32"),
    ):
        pair = dtypes.DTYPES[first], dtypes.DTYPES[second]
        assert library.promoted(*pair).name == library.promoted(*pair[::-1]).name == wanted


# Errors inside the library point at the user's call


@pytest.mark.parametrize(
    ("expression", "slug", "said"),
    [
        ("nl.add(x, y[0:4, :])", "library-argument", "differ in partitions"),
        ("nl.sum(x, axis=0)", "library-argument", "only the last dimensions can"),
        ("nl.exp(x, 1, 2, 3)", "wrong-call", "nl.exp() takes from 1 to 2"),
        ("nl.exp(x, dtype='flaot32')", "unknown-dtype", "'flaot32'"),
        ("nl.matmul(x, y)", "library-argument", "24 is not 8"),
        ("nl.bitwise_and(x, y)", "bitvec-dtype", "float32"),
        ("nl.bypass(x)", "wrong-call", "no function of tensors"),
        ("nl.random_seed(42)", "library-argument", "not 42"),
    ],
)
def test_errors_point_at_the_call(expression: str, slug: str, said: str) -> None:
    with pytest.raises(CompileFailed) as caught:
        run(expression, numbers(0, 1), numbers(0, 1))
    found = caught.value.diagnostics[0]
    assert (found.code.slug, said in found.message) == (slug, True), found.message
    assert found.primary is not None
    assert (found.primary.span.path, found.primary.span.line) == ("kernel.py", 9)


def test_every_function_is_a_name_of_the_language_and_nothing_else() -> None:
    public = library.public()
    assert len(public) == len(set(public))
    assert set(public) <= set(names(Profile.NKI_0_6, public))
    assert not set(public) & set(names(Profile.BETA2, public)) - {
        *("add", "subtract", "multiply", "maximum", "minimum", "abs_max", "abs_min", "power"),
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "abs"),
        *("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "invert"),
        *("logical_and", "logical_or", "logical_xor", "logical_not", "rsqrt", "reciprocal"),
        *("exp", "log", "sqrt", "tanh", "sigmoid", "relu", "gelu", "gelu_apprx_sigmoid"),
        *("gelu_apprx_tanh", "gelu_dx", "gelu_apprx_sigmoid_dx", "silu", "silu_dx", "softplus"),
        *("mish", "erf", "erf_dx", "square", "sin", "arctan", "sign", "copy"),
    }, "the betas know operators only"
