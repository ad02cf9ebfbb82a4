"""Test register instructions: 32 bits between numbers, registers and memory."""

from typing import Any

import numpy as np
import pytest

from nkic.base.diagnostics import ArtifactFailed, ProgramFault
from tests.harness.instruction import Tile, call, run, tile


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
