"""Test sums of times in the remarks of schedule."""

import pytest

from nkic.compiler.allocate import joined
from nkic.compiler.remarks import MIN_WAIT_PS, Issue, _waits
from nkic.machine.targets import Engine
from nkic.program.program import Edge, Instruction
from tests.programs import code, declare, op, program

TILES = "".join(f"{declare(i, name, '128, 4')}\n" for i, name in enumerate("ab"))
A, B = "%0[0+128, 0; 1x4]", "%1[0+128, 0; 1x4]"


@pytest.mark.parametrize(
    ("spans", "union"),
    [
        ([], []),
        ([(0, 4), (2, 6), (8, 9)], [(0, 6), (8, 9)]),
        ([(8, 9), (0, 4), (4, 5)], [(0, 5), (8, 9)]),
        ([(0, 9), (2, 3), (4, 12), (20, 21)], [(0, 12), (20, 21)]),
    ],
)
def test_times_at_work_are_counted_once(
    spans: list[tuple[int, int]], union: list[tuple[int, int]]
) -> None:
    assert joined(spans) == union


@pytest.mark.parametrize(
    ("waited", "told"), [(MIN_WAIT_PS - 1, 0), (MIN_WAIT_PS, 1), (MIN_WAIT_PS + 1, 1)]
)
def test_a_nanosecond_of_waiting_is_told(waited: int, told: int) -> None:
    one, other = (_copy(number) for number in (0, 1))
    issue = Issue(other, Engine.VECTOR, 500, 500 + waited, 500 + waited, 9000, Edge(0, "raw"))
    assert len([*_waits([issue], {0: one, 1: other})]) == told


def _copy(number: int) -> Instruction:
    (one,) = code(program(f"{TILES}core\n{op(number, 'tensor_copy', dst=A, src=B)}"))
    return one
