"""Test register instructions: 32 bits between numbers, registers and memory."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nkic.artifact.encode import write
from nkic.artifact.read import read
from nkic.base.diagnostics import ArtifactFailed, CompileFailed, Level, ProgramFault
from nkic.base.source import SourceFile
from nkic.compiler.forms import FORMS
from nkic.compiler.pipeline import compile_text
from nkic.simulate import outcome, simulate
from tests.harness.instruction import Tile, call, run, tile
from tests.harness.language import Array, simulated


def stored_register(*steps: Any, dtype: str = "int32", buffer: str = "sbuf") -> Any:
    """Return the bytes of register 0 in memory after the steps."""
    dst = tile((1, 1), dtype=dtype) if buffer == "sbuf" else tile((1,), dtype=dtype, buffer=buffer)
    outcome = run([*steps, call("register_store", "sync", dst=dst, src="$0")])
    return outcome[dst].item()


@pytest.mark.parametrize("number", [0, 7, -1, 2**31 - 1, -(2**31)])
def test_register_alloc_and_move(number: int) -> None:
    assert stored_register(call("register_alloc", "sync", dst="$0", x=number)) == number
    assert stored_register(call("register_move", "sync", dst="$0", src=number)) == number


def test_a_register_that_is_given_nothing_cannot_be_read() -> None:
    created = call("register_alloc", "sync", dst="$0", x=None)
    with pytest.raises(ProgramFault, match="a register is read before anything has set it"):
        stored_register(created)
    assert stored_register(created, call("register_move", "sync", dst="$0", src=3)) == 3


def test_register_move_copies_another() -> None:
    steps = [
        call("register_alloc", "sync", dst="$1", x=41),
        call("register_move", "sync", dst="$0", src="$1"),
        call("register_move", "sync", dst="$1", src=5),
    ]
    assert stored_register(*steps) == 41


def loading(src: Tile) -> Any:
    return call("register_load", "sync", dst="$0", src=src)


@pytest.mark.parametrize("buffer", ["sbuf", "hbm"])
@pytest.mark.parametrize(
    ("dtype", "number"),
    [("int32", -5), ("uint32", 2**32 - 2), ("int8", -128), ("uint8", 200), ("int16", -300)],
)
def test_register_load_takes_one_element(buffer: str, dtype: str, number: int) -> None:
    """From either memory, with the sign of its type; stored in the same type it is unchanged."""
    values = np.array([9, number, 9]).astype(dtype)
    one = tile(values if buffer == "hbm" else values[None], buffer=buffer)
    one = one.over(offset=1, dims=((1, 1),))
    assert stored_register(loading(one), dtype=dtype, buffer=buffer) == number


@pytest.mark.parametrize(("dtype", "number"), [("uint8", 200), ("int8", -56), ("uint16", 65_000)])
def test_narrow_integers_keep_their_value(dtype: str, number: int) -> None:
    assert stored_register(loading(tile(np.array([[number]], dtype)))) == number


def test_register_store_cuts_what_is_too_wide() -> None:
    move = call("register_move", "sync", dst="$0", src=0x1FE)
    assert stored_register(move, dtype="uint8") == 0xFE
    assert stored_register(move, dtype="int8") == -2
    assert (
        stored_register(call("register_move", "sync", dst="$0", src=-1), dtype="uint32")
        == 2**32 - 1
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_floats_are_not_loaded(dtype: str) -> None:
    """Assumed: a sequencer has no floating-point numbers."""
    one = tile(np.array([[1.5]], np.float32), dtype=dtype)
    with pytest.raises(ArtifactFailed, match=f"`src` is {dtype}, but a register takes an integer"):
        stored_register(loading(one))


def test_more_than_one_element_is_refused() -> None:
    with pytest.raises(ArtifactFailed, match="has 2 elements"):
        stored_register(loading(tile(np.zeros((1, 2), np.int32))))


# ------------------------------------------------------------------------------------------------
# Test the output of programs: "device_print".

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
