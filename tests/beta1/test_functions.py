"""Functions and operators of Beta 1 give NumPy's results, whole and under a mask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import nkic
from nkic.base.source import SourceFile

Array = NDArray[Any]
ROWS, COLUMNS = 64, 32
HEAD = f"""import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a, b):
    i, j = nl.arange({ROWS})[:, None], nl.arange({COLUMNS})[None, :]
    x, y = nl.load(a), nl.load(b)
"""
RNG = np.random.default_rng(5)
A = RNG.integers(1, 9, (ROWS, COLUMNS)).astype(np.float32)
B = (RNG.integers(1, 9, (ROWS, COLUMNS)) / 2).astype(np.float32)


def run(body: str) -> Array:
    """Return `r` of a body over the tiles `x` and `y`."""
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    text = f"{HEAD}{lines}    out = nl.ndarray(r.shape, dtype=r.dtype, buffer=nl.shared_hbm)\n"
    text += "    nl.store(out, r)\n    return out\n"
    inputs = {"a": A, "b": B}
    artifact = nkic.compile(SourceFile("k.py", text), inputs=inputs)
    return np.asarray(nkic.run(artifact, inputs).outputs["output_0"], np.float32)


Function = Callable[[Array, Array], Any]
OPERATORS: dict[str, Function] = {
    "x + y": lambda x, y: x + y,
    "x - y": lambda x, y: x - y,
    "x - 3": lambda x, y: x - 3,
    "5.0 - x": lambda x, y: 5 - x,
    "2 + x": lambda x, y: 2 + x,
    "x * y": lambda x, y: x * y,
    "3.0 * x": lambda x, y: 3 * x,
    "x / y": lambda x, y: x / y,
    "x / 4.0": lambda x, y: x / 4,
    "8.0 / x": lambda x, y: 8 / x,
    "-x": lambda x, y: -x,
    "x > y": lambda x, y: x > y,
    "x > 4": lambda x, y: x > 4,
    "4.0 > x": lambda x, y: x < 4,
    "x <= y": lambda x, y: x <= y,
    "x == y": lambda x, y: x == y,
    "x != y": lambda x, y: x != y,
}
FUNCTIONS: dict[str, Function] = {
    "nl.add(x, y{})": lambda x, y: x + y,
    "nl.add(x, 2.0{})": lambda x, y: x + 2,
    "nl.subtract(x, y{})": lambda x, y: x - y,
    "nl.subtract(2.0, y{})": lambda x, y: 2 - y,
    "nl.multiply(x, y{})": lambda x, y: x * y,
    "nl.divide(x, y{})": lambda x, y: x / y,
    "nl.divide(1.0, y{})": lambda x, y: 1 / y,
    "nl.divide(x, 4.0{})": lambda x, y: x / 4,
    "nl.divide(x, y[:, 3:4]{})": lambda x, y: x / y[:, 3:4],  # a mask may be of the columns
    "nl.divide(x[:, 3:4], y{})": lambda x, y: x[:, 3:4] / y,
    "nl.divide(x, y[0:1, :]{})": lambda x, y: x / y[0:1],
    "nl.maximum(x, y{})": np.maximum,
    "nl.minimum(x, 3.0{})": lambda x, y: np.minimum(x, 3),
    "nl.power(x, 2.0{})": lambda x, y: x**2,
    "nl.greater(x, y{})": lambda x, y: x > y,
    "nl.less(2.0, y{})": lambda x, y: y > 2,
    "nl.equal(x, y{})": lambda x, y: x == y,
    "nl.logical_and(x > 3, y > 2{})": lambda x, y: (x > 3) & (y > 2),
    "nl.exp(x{})": lambda x, y: np.exp(x),
    "nl.sqrt(x{})": lambda x, y: np.sqrt(x),
    "nl.rsqrt(x{})": lambda x, y: 1 / np.sqrt(x),
    "nl.square(x{})": lambda x, y: x * x,
    "nl.negative(x{})": lambda x, y: -x,
    "nl.reciprocal(x{})": lambda x, y: 1 / x,
    "nl.abs(x{})": lambda x, y: np.abs(x),
    "nl.floor(y{})": lambda x, y: np.floor(y),
    "nl.sign(x{})": lambda x, y: np.sign(x),
    "nl.copy(x{})": lambda x, y: x,
    "nl.where(x > y, x, y{})": np.maximum,
    "nl.where(x > y, x, 2.0{})": lambda x, y: np.where(x > y, x, 2),
    "nl.silu(x{})": lambda x, y: x / (1 + np.exp(-x)),
    "nisa.tensor_tensor(x, y, op=np.subtract{})": lambda x, y: x - y,
    "nisa.tensor_scalar(x, np.subtract, 3.0, reverse0=True{})": lambda x, y: 3 - x,
    "nisa.tensor_scalar(x, np.multiply, 3.0, op1=np.add, operand1=y[:, 0:1]{})": (
        lambda x, y: x * 3 + y[:, :1]
    ),
    "nisa.tensor_copy(x{})": lambda x, y: x,
    "nisa.reciprocal(x{})": lambda x, y: 1 / x,
    "nisa.activation(nl.exp, x, scale=0.5, bias=y[:, 0:1]{})": (
        lambda x, y: np.exp(x / 2 + y[:, :1])
    ),
    "nisa.iota(8 * i + j, dtype=nl.float32{})": (
        lambda x, y: 8 * np.arange(ROWS)[:, None] + np.arange(COLUMNS)
    ),
    "nisa.affine_select(i - j > 3, x, 9.0{})": (
        lambda x, y: np.where(np.arange(ROWS)[:, None] - np.arange(COLUMNS) > 3, x, 9)
    ),
    "nisa.scalar_tensor_tensor(data=x, op0=np.add, operand0=1.0, op1=np.multiply, operand1=y{})": (
        lambda x, y: (x + 1) * y
    ),
}
REDUCTIONS: dict[str, Function] = {
    "nl.sum(x, axis=1, keepdims=True{})": lambda x, y: x.sum(1, keepdims=True),
    "nl.max(x, axis=1, keepdims=True{})": lambda x, y: x.max(1, keepdims=True),
    "nl.min(x, axis=1, keepdims=True{})": lambda x, y: x.min(1, keepdims=True),
    "nl.mean(x, axis=1, keepdims=True{})": lambda x, y: x.mean(1, keepdims=True),
    "nl.var(x, axis=1{})": lambda x, y: x.var(1, keepdims=True),
    "nisa.tensor_reduce(np.max, x, axis=[1], keepdims=True{})": lambda x, y: x.max(
        1, keepdims=True
    ),
    "nisa.tensor_reduce(np.add, x, axis=[1], negate=True, keepdims=True{})": (
        lambda x, y: -x.sum(1, keepdims=True)
    ),
}
OTHERS: dict[str, Function] = {
    "nl.transpose(x)": lambda x, y: x.T,
    "nisa.nc_transpose(x)": lambda x, y: x.T,
    "nl.matmul(x, nl.transpose(y))": lambda x, y: x @ y.T,
    "nl.matmul(x, y, transpose_x=True)": lambda x, y: x.T @ y,
    "nl.softmax(x, axis=1)": lambda x, y: np.exp(x) / np.exp(x).sum(1, keepdims=True),
    "x.broadcast_to((64, 32)) + x[:, 0:1]": lambda x, y: x + x[:, :1],
    "nl.broadcast_to(y[:, 3:4], shape=(64, 32)) * x": lambda x, y: y[:, 3:4] * x,
    "x[:, 1:9]": lambda x, y: x[:, 1:9],
    "x[:, 0:32:3] + y[:, 0:32:3]": lambda x, y: (x + y)[:, ::3],
    "x[8:40, 5:21]": lambda x, y: x[8:40, 5:21],
    "x.reshape((64, 4, 8))": lambda x, y: x.reshape(64, 4, 8),
    "x.astype(nl.bfloat16)": lambda x, y: x,
    "nl.full((64, 32), 3.0, dtype=nl.float32)": lambda x, y: np.full_like(x, 3),
    "nl.zeros((64, 5), dtype=nl.float32)": lambda x, y: np.zeros((64, 5)),
    "nl.load(nl.shared_constant(np.eye(8, dtype=np.float32)))": lambda x, y: np.eye(8),
    "nl.load(nl.shared_identity_matrix(16))": lambda x, y: np.eye(16),
}


@pytest.mark.parametrize("text", [*OPERATORS, *OTHERS])
def test_results(text: str) -> None:
    expected = {**OPERATORS, **OTHERS}[text](A, B)
    np.testing.assert_allclose(run(f"r = {text}"), np.float32(expected), rtol=1e-5)


@pytest.mark.parametrize("more", ["", ", dtype=nl.float32"])
@pytest.mark.parametrize("text", [*FUNCTIONS, *REDUCTIONS])
def test_whole_results(text: str, more: str) -> None:
    given = "" if any(name in text for name in ("iota", "where", "logical")) else more
    expected = {**FUNCTIONS, **REDUCTIONS}[text](A, B)
    found = run(f"r = {text.format(given)}")
    np.testing.assert_allclose(found, np.float32(expected), rtol=1e-5)


MASKS: dict[str, Callable[[Array, Array], Array]] = {
    "i < 40": lambda i, j: (i < 40) & (j >= 0),
    "(i >= 32) & (j < 20)": lambda i, j: (i >= 32) & (j < 20),
    "i >= j": lambda i, j: i >= j,
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("text", FUNCTIONS)
def test_a_masked_result_leaves_the_rest(text: str, mask: str) -> None:
    where = MASKS[mask](*np.indices((ROWS, COLUMNS)))
    expected = np.where(where, FUNCTIONS[text](A, B), 7)
    body = f"r = nl.full(({ROWS}, {COLUMNS}), 7.0, dtype=nl.float32)\n"
    found = run(f"{body}r[i, j] = {text.format(f', mask={mask}')}")
    np.testing.assert_allclose(found, np.float32(expected), rtol=1e-5)


@pytest.mark.parametrize("text", REDUCTIONS)
@pytest.mark.parametrize("mask", ["i < 32", "j < 20", "(i < 32) & (j >= 3)"])
def test_a_masked_reduction_is_of_what_the_mask_leaves(text: str, mask: str) -> None:
    rows = 32 if "i" in mask else ROWS
    columns = slice(3, None) if "j >= 3" in mask else slice(0, 20) if "j" in mask else slice(None)
    expected = REDUCTIONS[text](A[:rows, columns], B[:rows, columns])
    body = f"r = nl.full(({ROWS}, 1), 7.0, dtype=nl.float32)\n"
    body += f"s = {text.format(f', mask={mask}')}\nr[0:{rows}, 0:1] = s[0:{rows}, 0:1]"
    found = run(body)
    np.testing.assert_allclose(found[:rows], np.float32(expected), rtol=1e-5)
    assert (found[rows:] == 7).all()


def assigned(places: Any, values: Callable[[Array, Array], Any]) -> Function:
    """Return the model of an assignment to a tile of sevens."""

    def model(x: Array, y: Array) -> Array:
        r = np.full_like(x, 7)
        r[places] = values(x, y)
        return r

    return model


PLACES: dict[str, Function] = {
    "r[0:32, 0:16] = x[32:64, 16:32]": assigned(np.s_[:32, :16], lambda x, y: x[32:, 16:]),
    "r[32:64, :] = x[0:32, :]": assigned(np.s_[32:], lambda x, y: x[:32]),
    "r[:, 4:12] = y[:, 20:28]": assigned(np.s_[:, 4:12], lambda x, y: y[:, 20:28]),
    "r[:, 3:4] = x[:, 5:6]": assigned(np.s_[:, 3:4], lambda x, y: x[:, 5:6]),
    "r[i, 2 * k] = x[i, k]": assigned(np.s_[:, ::2], lambda x, y: x[:, :16]),
    "r[i, k + 9] = y[i, 2 * k + 1]": assigned(np.s_[:, 9:25], lambda x, y: y[:, 1::2]),
    "r[i, 31 - k] = x[i, k]": assigned(np.s_[:, :15:-1], lambda x, y: x[:, :16]),
    "r[i, k] = 5.0": assigned(np.s_[:, :16], lambda x, y: 5),
    "r[0:1, :] = x[0:1, :]": assigned(np.s_[:1], lambda x, y: x[:1]),
    "r[32 + h, j] = y[h, j]": assigned(np.s_[32:], lambda x, y: y[:32]),
    "r[:, -4:] = x[:, -8:-4]": assigned(np.s_[:, -4:], lambda x, y: x[:, -8:-4]),
    "r[-32:, :] = x[-64:-32, :]": assigned(np.s_[-32:], lambda x, y: x[:32]),
    "r = nl.load(a[-8:, -5:-1])": lambda x, y: x[-8:, -5:-1],
    "r[...] = x": assigned(np.s_[:], lambda x, y: x),
    "r += x": lambda x, y: 7 + x,
    "r -= y": lambda x, y: 7 - y,
    "r *= 2.0": lambda x, y: np.full_like(x, 14),
    "r[0:32, :] += x[0:32, :]": assigned(np.s_[:32], lambda x, y: 7 + x[:32]),
    "r = nl.load(a[h, j])": lambda x, y: x[:32],
    "r = nl.load(a[0:32, 4:20])": lambda x, y: x[:32, 4:20],
    "r = nl.load(a[i, 2 * k])": lambda x, y: x[:, ::2],
    "r = nl.load(a[h + 8, j], dtype=nl.float32)": lambda x, y: x[8:40],
    "r = nl.load(a[5:6, :])": lambda x, y: x[5:6],
    "r[i, j] = nl.load(a[i, j], mask=(i < 20))": assigned(np.s_[:20], lambda x, y: x[:20]),
    "r[i, j] = nl.load(a[i + 32, j], mask=(i < 32))": assigned(np.s_[:32], lambda x, y: x[32:]),
    "r[h, j] = nl.load(a[2 * h, j])": assigned(np.s_[:32], lambda x, y: x[::2]),
    "nl.store(s[i, j], x)\nr = nl.load(s)": lambda x, y: x,
    "nl.store(s[h, j], y[32:64, :])\nr = nl.load(s[0:32, :])": lambda x, y: y[32:],
    "nl.store(s, x)\nnl.store(s[i, j], y, mask=(j < 9))\nr = nl.load(s)": (
        lambda x, y: np.where(np.arange(COLUMNS) < 9, y, x)
    ),
    "nl.store(s, x)\nnl.store(s[i, 2 * k], y[i, k])\nr = nl.load(s)": (
        lambda x, y: np.stack([y[:, :16], x[:, 1::2]], 2).reshape(x.shape)
    ),
    "nl.store(s, x)\nnl.store(s[4:8, 3:5], 9.0)\nr = nl.load(s)": (
        lambda x, y: np.where(np.pad(np.ones((4, 2)), ((4, 56), (3, 27))) > 0, 9, x)
    ),
}


@pytest.mark.parametrize("text", PLACES)
def test_places_are_those_of_numpy(text: str) -> None:
    body = f"""k, h = nl.arange(16)[None, :], nl.arange(32)[:, None]
s = nl.ndarray(({ROWS}, {COLUMNS}), dtype=nl.float32, buffer=nl.hbm)
r = nl.full(({ROWS}, {COLUMNS}), 7.0, dtype=nl.float32)
{text}"""
    np.testing.assert_allclose(run(body), np.float32(PLACES[text](A, B)), rtol=1e-6)
