"""The order in which least is in use: what comes first among equals."""

from __future__ import annotations

import pytest

from nkic.allocate.frugal import frugal
from nkic.depend import depend
from nkic.ir.program import Instruction, instructions
from tests.programs import copy, declare, op, program

WHOLE = "[0+128, 0; 1x64]"
TILES = [declare(i, f"t{i}", "128, 64") for i in range(4)]


def order(*body: str, backwards: bool = False) -> list[str]:
    """The tensors that are written, in the new order."""
    found = program("\n".join([*TILES, "core", *body]))
    (graph,) = depend(found)
    made = frugal(found.cores[0], graph, found.target, backwards)
    assert made is not None
    return [_written(one) for one in instructions(made[0])]


def _written(one: Instruction) -> str:
    return one.operands[0].tensor.name  # type: ignore[union-attr]


def fill(number: int, tile: int) -> str:
    return op(number, "memset", dst=f"%{tile}{WHOLE}", value="0.0")


@pytest.mark.parametrize("backwards", [False, True])
def test_equals_stay_in_program_order_or_come_in_the_other(backwards: bool) -> None:
    wanted = ["t3", "t0", "t2", "t1"]
    body = [fill(i, int(name[1])) for i, name in enumerate(wanted)]
    assert order(*body, backwards=backwards) == (wanted[::-1] if backwards else wanted)


@pytest.mark.parametrize("backwards", [False, True])
def test_what_ends_a_tensor_comes_before_what_begins_one(backwards: bool) -> None:
    """t1 takes over from t0, t3 from t2: never are two of them in use that need not be."""
    body = [fill(0, 0), fill(1, 2), copy(2, f"%1{WHOLE}", f"%0{WHOLE}")]
    body += [copy(3, f"%3{WHOLE}", f"%2{WHOLE}")]
    pairs = [["t0", "t1"], ["t2", "t3"]]
    wanted = pairs[::-1] if backwards else pairs
    assert order(*body, backwards=backwards) == [*wanted[0], *wanted[1]]
