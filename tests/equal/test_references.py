"""A kernel beside a function of NumPy: the reference is run as it is, over the field."""

import importlib
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkic
from nkic.simulate.field.elements import PRIMES, TOP
from nkic.simulate.field.functions import Order, ordered
from nkic.simulate.field.traced import MOVES, Places, Traced, Untraceable, followed
from tests.equal.kernels import compiled
from tests.equal.test_pairs import ONLINE, PRODUCT, RMS, SOFTMAX, VARIANCE


@pytest.fixture(autouse=True)
def in_an_order() -> Iterator[None]:
    with ordered(Order()):
        yield


def softmax(x: Any, w: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def unguarded(x: Any, w: Any) -> Any:
    e = np.exp(x)
    return e / np.sum(e, axis=1)[:, None]


def rms(x: Any, w: Any) -> Any:
    return x / np.sqrt(np.mean(np.square(x), -1, keepdims=True) + 1e-6) * w


def rms_without_eps(x: Any, w: Any) -> Any:
    return x / np.sqrt(np.mean(x**2, -1, keepdims=True)) * w


def variance(x: Any, w: Any) -> Any:
    return np.var(x, axis=1, keepdims=True)


def by_moments(x: Any, w: Any) -> Any:
    return (x * x).mean(1, keepdims=True) - x.mean(1, keepdims=True) ** 2


def products(x: Any, w: Any) -> Any:
    return x.T @ w


def by_einsum(x: Any, w: Any) -> Any:
    return np.einsum("ki,kj->ij", x, w)


def in_halves(x: Any, w: Any) -> Any:
    out = np.zeros_like(x, shape=(32, 32))
    for half in (slice(0, 12), slice(12, 24)):
        out = out + np.dot(np.transpose(x[half]), w[half])
    return out


def by_stores(x: Any, w: Any) -> Any:
    out, order = np.empty((32, 32), np.float32), np.zeros(32, np.int64)
    for i in range(32):
        order[i] = i
        row = np.array([np.dot(x[:, i], w[:, j]) for j in range(16)])
        out[i, :16] = row
        out[i, 16:] = np.asarray(x[:, i] @ w[:, 16:], dtype=np.float32)
    return out[order]


def by_ndarray(x: Any, w: Any) -> Any:
    out = np.ndarray((32, 32), dtype=np.float32)
    out[:] = 0
    assert isinstance(out, np.ndarray)
    out += x.T @ w
    return out


def by_wrong_stores(x: Any, w: Any) -> Any:
    out = np.zeros((32, 32), dtype=np.float32)
    out[:31] = x.T[:31] @ w
    return out


@pytest.mark.parametrize(
    ("body", "function"),
    [
        (SOFTMAX, softmax),
        (ONLINE, softmax),
        (SOFTMAX, unguarded),
        (RMS, rms),
        (VARIANCE, variance),
        (VARIANCE, by_moments),
        (PRODUCT, products),
        (PRODUCT, by_einsum),
        (PRODUCT, in_halves),
    ],
)
def test_a_kernel_equals_its_reference(body: str, function: Callable[..., Any]) -> None:
    found = nkic.equal(compiled(body), function)
    assert found.verdict == "equal", found.text
    assert found.bits > 40


@pytest.mark.parametrize(
    ("body", "function"),
    [
        (SOFTMAX, lambda x, w: softmax(x, w) * 1.5),
        (RMS, rms_without_eps),
        (VARIANCE, lambda x, w: np.var(x, axis=1, keepdims=True, ddof=1)),
        (PRODUCT, lambda x, w: w.T @ x),
    ],
)
def test_another_function_is_told_with_inputs(body: str, function: Callable[..., Any]) -> None:
    found = nkic.equal(compiled(body), function)
    assert found.verdict == "different", found.text
    assert "with --fill" in found.text


def test_a_reference_may_store_into_arrays_that_it_makes() -> None:
    found = nkic.equal(compiled(PRODUCT), by_stores)
    assert found.verdict == "equal", found.text
    assert nkic.equal(compiled(PRODUCT), eval("lambda x, w: stores(x, w)", {"stores": by_ndarray}))
    assert by_stores.__globals__["np"] is np  # as it was
    other = nkic.equal(compiled(PRODUCT), by_wrong_stores)
    assert other.verdict == "different", other.text


def test_a_type_to_which_a_reference_rounds_is_named() -> None:
    found = nkic.equal(compiled("out = nl.multiply(x, 2.0)"), lambda x, w: x.astype("float16") * 2)
    assert "float16 at test_references.py:" in found.text and found.verdict == "equal", found.text


def test_what_elements_do_not_have_is_named() -> None:
    def sorting(x: Any, w: Any) -> Any:
        return np.sort(x, axis=1)

    def deciding(x: Any, w: Any) -> Any:
        return x if x.max() > 0 else x * 1

    body = "    out = nl.multiply(x, 1.0)"
    for function, said in ((sorting, "numpy.sort at"), (deciding, "a decision by an element at")):
        found = nkic.equal(compiled(body), function)
        text = f"undecided: {said} test_references.py:"
        assert found.verdict in ("undecided", "different") and (text in found.text or not found)
    assert "undecided: a decision by an element at test_references.py:" in found.text


def test_names_and_shapes_correspond() -> None:
    kernel = compiled(PRODUCT)
    by_name = nkic.equal(kernel, lambda w_hbm, x_hbm: x_hbm.T @ w_hbm)
    assert by_name.verdict == "equal"
    with pytest.raises(nkic.RunError, match="the function has the parameters x, and the kernel"):
        nkic.equal(kernel, lambda x: x)
    with pytest.raises(nkic.RunError, match="different outputs"):
        nkic.equal(kernel, lambda x, w: x)


# ---- each function of NumPy, against NumPy on the elements' own residues ------------------------
# The top residue of small whole numbers is the number itself, so that NumPy's results on whole
# numbers are the expected ones modulo the prime.

PROJECT = Path(__file__).resolve().parents[2]
RNG = np.random.default_rng(3)
A, B = (RNG.integers(1, 9, (4, 3, 6)).astype(np.float64) for _ in range(2))
CALLS: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "mixed": lambda a, b: 2 * a - b[0] + 1 - (-a),
    "power": lambda a, b: a**3,
    "divide": lambda a, b: (a * b) / b,
    "extremes": lambda a, b: np.maximum(a, 4) - np.minimum(a, b),
    "clip": lambda a, b: np.clip(a, 2, 5),
    "where": lambda a, b: np.where(a > 4, a, b),
    "comparisons": lambda a, b: (a >= b) + 2 * (a == b) + 4 * (a < b) + 8 * np.logical_not(a > b),
    "sums": lambda a, b: a.sum() + np.sum(b, axis=(0, 2), keepdims=True),
    "reduce": lambda a, b: np.add.reduce(a) + np.maximum.reduce(b, axis=0),
    "deviation": lambda a, b: np.std(np.stack([a, a + 4]), axis=0),
    "flatten": lambda a, b: a.T.flatten() + b.ravel(),
    "sum of rows": lambda a, b: a.sum(-1),
    "largest": lambda a, b: a.max(axis=1) + np.min(b, axis=1) + np.amax(a, 1),
    "product": lambda a, b: np.prod(a[:, :, :3], axis=-1),
    "mean": lambda a, b: np.mean(a * 6, axis=2),
    "cumsum": lambda a, b: np.cumsum(a, axis=1),
    "flat cumsum": lambda a, b: np.cumsum(a),
    "matmul": lambda a, b: a @ b.transpose(0, 2, 1),
    "vector": lambda a, b: a @ b[0, 0],
    "row": lambda a, b: a[0, 0] @ b[0].T,
    "broadcast matmul": lambda a, b: np.matmul(a, b[0].T),
    "dot": lambda a, b: np.dot(a[0], b[0].T),
    "einsum": lambda a, b: np.einsum("bij,bkj->ikb", a, b),
    "einsum of one": lambda a, b: np.einsum("bij->jb", a),
    "einsum of three": lambda a, b: np.einsum("bij,bij,bik->bk", a, b, a),
    "implicit einsum": lambda a, b: np.einsum("ij,jk", a[0], b[0].T),
    "outer": lambda a, b: np.outer(a[0, 0], b[0, 0]),
    "norm": lambda a, b: np.linalg.norm(np.broadcast_to(a[:1, :1, :1], (1, 4, 1)), axis=1),
    "triangle": lambda a, b: np.tril(a) + np.triu(b, 1),
    "reshape": lambda a, b: a.reshape(2, -1, 6)[..., ::-1],
    "join": lambda a, b: np.concatenate([a, b], axis=2),
    "stack": lambda a, b: np.stack([a, b, a * 0], 1),
    "split": lambda a, b: np.split(a, 3, axis=2)[1],
    "repeat": lambda a, b: np.repeat(a, 2, axis=0) - np.tile(b, (2, 1, 1)),
    "roll": lambda a, b: np.roll(a, 1, axis=2) - np.flip(b, 0),
    "windows": lambda a, b: np.lib.stride_tricks.sliding_window_view(a, 3, axis=2).sum(-1),
    "index": lambda a, b: a[[2, 0], :, None, 1:3],
    "move": lambda a, b: np.moveaxis(a, 0, -1) * np.swapaxes(np.swapaxes(b, 0, 1), 1, 2),
    "take": lambda a, b: np.take(a, [1, 2], axis=1) + np.expand_dims(b[:, 0], 1),
    "diagonal": lambda a, b: np.diagonal(a[:3, :3, 0]),
    "like": lambda a, b: np.ones_like(a) + np.full_like(b, 3),
    "sign": lambda a, b: np.sign(a - 4) + np.tanh(0 * b),
    "shape": lambda a, b: a * len(a) + np.shape(b)[1] + a.ndim + b.size,
}


def views(a: Any, b: Any) -> Any:
    """Stores are seen through every view, and by no copy."""
    out = a.copy()
    row, copy, turned = out[1], out[1].astype(np.float64), out.T
    for line, value in zip(out, (1.0, 2.0, 3.0, 4.0), strict=True):
        line[1:, ::3] = value
    turned[5] = b.T[0]
    flat = out.reshape(-1)
    flat[::7] += 2
    out -= 1
    return row * 1000 + copy * 10000 + np.squeeze(out[:1], 0)


def stored(a: Any, b: Any) -> Any:
    out = np.zeros_like(a)
    out[1:, 0] = b[1:, 2]
    out[:, 1, ::2] = 7.0
    return out


CALLS |= {"stored": stored, "views": views}


@pytest.mark.parametrize("name", CALLS)
def test_a_function_of_numpy_over_the_field(name: str) -> None:
    call = CALLS[name]
    places = Places()
    base = Traced.variable(np.random.default_rng(1), (1,), places)
    wanted = np.asarray(call(A.copy(), B.copy()))
    found = call(base.of(A.copy()), base.of(B.copy()))
    assert found.shape == wanted.shape
    residues = found.elements.residues[TOP].reshape(wanted.shape)
    assert np.array_equal(residues, np.rint(wanted).astype(np.int64) % PRIMES[TOP])


def test_functions_that_move_elements_are_numpys() -> None:
    spaces = (np, np.lib.stride_tricks)
    assert [name for name in MOVES if not any(hasattr(space, name) for space in spaces)] == []


def test_what_is_refused_has_its_line() -> None:
    x: Any = Traced.variable(np.random.default_rng(1), (2, 3), Places())
    for refused in (
        lambda: np.sort(x),
        lambda: np.floor(x),
        lambda: x.astype(np.int32),
        lambda: float(x[0, 0]),
        lambda: np.add.accumulate(x),
        lambda: np.einsum("ii->i", x[:, :2]),
        lambda: np.asarray(x),
        lambda: np.sum(x, out=x[0]),
        lambda: np.clip(x, 0, 1, out=x),
        lambda: np.sum(x, initial=1.0),
        lambda: np.sum(x, dtype=np.int32),
        lambda: np.add(x, x, where=np.ones((2, 3), np.bool_)),
        lambda: np.take(np.arange(6), x),
        lambda: np.take(np.arange(6), indices=x),
        lambda: np.arange(6)[x],
        lambda: x[x > 0],
        lambda: np.where(x),
        lambda: np.zeros_like(x, dtype=np.int8),
        lambda: x.tolist(),
        lambda: x.sort(),
    ):
        with pytest.raises(Untraceable, match=r" at test_references\.py:\d+$"):
            refused()
    with pytest.raises(Untraceable, match="an index that depends on elements at"):
        np.take(x, indices=x)


class Library:
    """A library of arrays that takes NumPy's and its own alone, as PyTorch does."""

    def relu(self, x: Any) -> Any:
        if type(x) is not np.ndarray:
            raise TypeError(f"relu(): argument 'x' must be an array, not {type(x).__name__}")
        return np.maximum(x, 0)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: Library().relu(x),
        lambda x, w: np.maximum(x.flatten("F").reshape(x.shape[::-1]).T, 0),
        lambda x, w: np.maximum(np.einsum(x, [0, 1]), 0),
        lambda x, w: np.maximum(np.concatenate([x, x], 0, np.empty((48, 32), np.float32))[:24], 0),
        lambda x, w: np.maximum(np.frombuffer(memoryview(x), np.float32).reshape(x.shape), 0),
        lambda x, w: np.maximum(x.astype(np.float32, "C", "same_kind"), 0),
    ],
)
def test_a_call_that_takes_numbers_alone_is_undecided(function: Callable[..., Any]) -> None:
    """Also with more arguments than the function over the field has: the function itself runs."""
    kernel = compiled("    out = nl.maximum(x, 0.0)")
    answer = nkic.equal(kernel, function)
    assert answer.verdict == "undecided"
    assert re.fullmatch(r"undecided: a call .* at test_references\.py:\d+", answer.lines[0])


def unsayable(x: Any) -> Any:
    class Unsayable(Exception):
        def __str__(self) -> str:
            raise ValueError("no text")

    raise Unsayable


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (memoryview, r"TypeError: .*\)$"),
        (unsayable, r"Unsayable: .*\) at test_references\.py:\d+$"),
    ],
)
def test_what_a_reference_raises_is_said(function: Callable[..., Any], said: str) -> None:
    """Also if no line of Python raised it, or if its text cannot be had."""
    x: Any = Traced.variable(np.random.default_rng(1), (2, 3), Places())
    with pytest.raises(Untraceable, match=said):
        followed(partial(function, x), x)


def test_a_sample_equals_its_reference() -> None:
    """The mask of a row is a store into a view of it, by an integer input."""
    module = importlib.import_module("samples.14_masked_fill.reference")
    kernel = nkic.compile(
        PROJECT / "samples" / "14_masked_fill" / "kernel.py",
        inputs={"x": "float16[130,40]", "lengths": "int32[130]"},
    )
    lengths = np.arange(130, dtype=np.int32) % 41
    assert nkic.equal(kernel, module.reference, {"lengths": lengths}).verdict == "equal"
    other = nkic.equal(
        kernel, lambda x, lengths: module.reference(x, lengths + 1), {"lengths": lengths}
    )
    assert other.verdict == "different"
