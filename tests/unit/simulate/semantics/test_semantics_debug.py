"""Test the output of programs: "device_print"."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from nkic.artifact.encode import write
from nkic.artifact.read import read
from nkic.base.diagnostics import CompileFailed, Level
from nkic.base.source import SourceFile
from nkic.compiler.forms import FORMS
from nkic.compiler.pipeline import compile_text
from nkic.simulate import outcome, simulate
from tests.harness.language import Array, simulated

HEAD = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
"""
X = np.arange(32, dtype=np.float32).reshape(4, 8).astype(ml_dtypes.bfloat16)


def printed(body: str, a: Array = X, lnc: int = 1) -> list[outcome.Printed]:
    text = HEAD + "".join(f"    {line}\n" for line in body.splitlines())
    return list(simulated(text, {"a": a}, lnc=lnc)[1].printed)


def test_values_are_those_of_the_moment_in_program_order() -> None:
    found = printed(
        "x = nl.load(a)\n"
        "nl.device_print('before', x)\n"
        "nisa.tensor_scalar(dst=x, data=x, op0=nl.multiply, operand0=2)\n"
        "nl.device_print(tensor=x[:, 2:4], print_prefix='after')\n"
        "nl.device_print('in', a.reshape((2, 2, 8)))\n"
    )
    assert [(p.prefix, p.core, p.dtype.name) for p in found] == [
        ("before", 0, "bfloat16"),
        ("after", 0, "bfloat16"),
        ("in", 0, "bfloat16"),
    ]
    numbers = [p.values.view(ml_dtypes.bfloat16) for p in found]
    assert np.array_equal(numbers[0], X)
    assert np.array_equal(numbers[1], X[:, 2:4] * 2)
    assert np.array_equal(numbers[2], X.reshape(2, 2, 8))


def test_loops_print_each_time() -> None:
    found = printed(
        "n = nl.zeros((1, 1), dtype=nl.int32)\n"
        "def body(i):\n"
        "    nisa.tensor_scalar(dst=n, data=n, op0=nl.add, operand0=5)\n"
        "    nl.device_print('n', n)\n"
        "nl.fori_loop(0, 3, body)\n"
        "nl.device_print('end', n)"
    )
    assert [(p.prefix, int(p.values[0, 0])) for p in found] == [
        *(("n", 5), ("n", 10), ("n", 15), ("end", 15))
    ]


def test_each_core_prints_its_own() -> None:
    found = printed(
        "x = nl.full((1, 2), nl.program_id(0), dtype=nl.int8)\nnl.device_print('x', x)",
        lnc=2,
    )
    assert sorted((p.core, p.values.tolist()) for p in found) == [(0, [[0, 0]]), (1, [[1, 1]])]


def test_text_shows_numbers_and_the_ends_of_large_tensors() -> None:
    found = printed("nl.device_print('a', a)\nnl.device_print('n', nl.full((1, 2), 7, nl.uint8))")
    assert found[0].text.splitlines()[0] == "[[ 0.  1.  2.  3.  4.  5.  6.  7.]"
    assert found[1].text == "[[7 7]]"
    large = printed("nl.device_print('a', a)", np.ones((128, 600), np.float32))
    assert "..." in large[0].text and len(large[0].text) < 600


def test_what_is_kept_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcome, "MAX_PRINTS", 2)
    text = f"{HEAD}    nl.fori_loop(0, 5, lambda i: nl.device_print('a', a))\n"
    result = simulated(text, {"a": X})[1]
    assert (len(result.printed), result.prints_left_out) == (2, 3)


def test_any_string_survives_the_file_and_the_text_form() -> None:
    prefix = 'ä "quoted"\n\t; # 🙂, )='
    text = f"{HEAD}    nl.device_print({prefix!r}, a)\n"
    compiled, _ = simulated(text, {"a": X})
    again = read(write(compiled.executable))
    assert simulate(again, {"a": X.view(np.uint16)}).printed[0].prefix == prefix
    lowered = SourceFile("k.ir", str(FORMS["lowered"].make(compiled)))
    from_text = compile_text(lowered, lambda path: None)
    assert simulate(from_text.executable, {"a": X.view(np.uint16)}).printed[0].prefix == prefix


@pytest.mark.parametrize(
    ("call", "slug", "said"),
    [
        ("nl.device_print(3, a)", "argument-kind", "`print_prefix`"),
        ("nl.device_print('x' * 5000, a)", "argument-kind", "`print_prefix`"),
        ("nl.device_print('\\ud800', a)", "argument-kind", "`print_prefix`"),
        ("nl.device_print('x', 3)", "argument-kind", "`tensor`"),
        ("nl.device_print('x')", "wrong-call", "`tensor` is missing"),
        (
            "nl.device_print('x', nl.zeros((1, 1), nl.float32, nl.psum))",
            "buffer-not-allowed",
            "psum",
        ),
    ],
)
def test_what_cannot_be_printed(call: str, slug: str, said: str) -> None:
    with pytest.raises(CompileFailed) as caught:
        printed(call)
    (found,) = [one for one in caught.value.diagnostics if one.level is Level.ERROR]
    assert (found.code.slug, said in found.message) == (slug, True), found.message
