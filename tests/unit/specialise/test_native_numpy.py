"""Test NumPy's functions on tensors, and early exits from device loops, where Python evaluates."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nkic.artifact.read import read
from nkic.artifact.records import InstructionRecord
from nkic.base.diagnostics import Diagnostic, Level
from nkic.compiler.request import parse_options
from tests.harness import two_ways
from tests.harness.two_ways import Outcome

HEAD = """\
import numpy as np

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a, bias=None):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    x = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    t = nl.ndarray((128, 1), dtype=a.dtype, buffer=nl.sbuf)
    u = nl.ndarray((128, 1), dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    nisa.memset(dst=t, value=1.0)
    nisa.memset(dst=u, value=2.0)
    {body}
    nisa.dma_copy(dst=out, src=x)
    return out
"""
FIRST = HEAD[: HEAD.index("{body}")].count("\n") + 1  # the line of the body
Ways = Callable[..., list[Outcome]]


@pytest.fixture
def ways(tmp_path: Path) -> Iterator[Ways]:
    """Return the outcomes of both ways for a kernel with this body, native first."""

    def evaluated(body: str, nki: str = "0.6") -> list[Outcome]:
        path = tmp_path / "asks.py"
        path.write_text(HEAD.format(body=body))
        request = two_ways.request_in(path, parse_options(args=["a=float32[128,64]"], nki=nki))
        with two_ways.live_module(path) as module:
            return two_ways.both(module.kernel, two_ways.as_call(request))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield evaluated


def _errors(said: tuple[Diagnostic, ...]) -> list[Diagnostic]:
    return [one for one in said if one.level is Level.ERROR]


def arithmetic(data: bytes) -> list[tuple[object, ...]]:
    """Return the instructions of a file."""
    items = [item for stream in read(data).streams for item in stream.items]
    found = [one for one in items if isinstance(one, InstructionRecord)]
    return [(one.row, one.operands, one.attributes) for one in found]


@pytest.mark.parametrize(
    ("asked", "message", "advice"),
    [
        ("np.sum(x)", "`numpy.sum` does not take `x`", "write nl.sum(t, axis=1)"),
        ("np.where(t > 0, x, 0)", "`numpy.where` does not take `t`", "write nl.where"),
        ("np.fft.fft(x)", "`numpy.fft` does not take `x`", "multiply by the matrix"),
        ("np.tanh(x)", "`x` cannot be converted to a number", "nl.tanh computes it"),
        ("np.hypot(t, u)", "`t` cannot be converted", "write `nl.sqrt(nl.add("),
        ("np.multiply(t, 2.0)", "`t` cannot be converted", "nl.multiply computes it"),
        ("np.asarray(x)", "`x` cannot be converted to an array", "compute with `nl` functions"),
        ("np.from_dlpack(x)", "`x` cannot be converted to an array", "compute with `nl` functions"),
        ("np.ones((128, 64)) * x", "a NumPy array cannot be", "as an argument"),
        ("x - np.ones((128, 64))", "a NumPy array cannot be", "as an argument"),
    ],
)
def test_functions_of_numpys_own_where_python_evaluates(
    asked: str, message: str, advice: str, ways: Ways
) -> None:
    (error,) = _errors(ways(f"y = {asked}")[0].said)
    assert message in error.message
    assert advice in error.help
    assert error.primary is not None
    assert error.primary.span.line == FIRST


@pytest.mark.parametrize(
    "body",
    [
        "y = np.float32(2.0) * t",
        "y = np.float32(2.0) - t",
        "y = np.int32(2) < t",
        "y = np.ones(()) / t",
        "assert np.shape(x) == (128, 64) and np.ndim(x) == 2",
    ],
)
def test_numbers_of_numpy_are_operands_and_shapes_are_known(body: str, ways: Ways) -> None:
    assert _errors(ways(body)[0].said) == []


def test_operators_after_numpys_numbers_are_those_of_pythons_numbers(ways: Ways) -> None:
    for theirs, ours in (("np.float32(2.0) - t", "2.0 - t"), ("np.int32(2) < t", "2 < t")):
        numpys, pythons = (ways(f"y = {one}")[0].data for one in (theirs, ours))
        assert numpys is not None and pythons is not None
        assert arithmetic(numpys) == arithmetic(pythons)


@pytest.mark.parametrize(
    ("body", "word", "line"),
    [
        ("for k in nl.dynamic_range(4):\n        if bias is None:\n            break", "break", 3),
        (
            "for k in nl.dynamic_range(4):\n        for _ in range(2):\n            return out",
            "",
            3,
        ),
        ("go = nisa.register_alloc(3)\n    while go:\n        break", "break", 3),
    ],
)
def test_leaving_a_loop_on_the_device_is_said_where_it_is_left(
    body: str, word: str, line: int, ways: Ways
) -> None:
    for way in ways(body, nki="0.5"):
        error = _errors(way.said)[-1]
        assert f"`{word or 'return'}` cannot leave a loop that runs on the device" in error.message
        assert "the body is compiled once" in error.help
        assert error.primary is not None
        assert error.primary.span.line == FIRST + line - 1
