"""Test which instructions share a plan, and that sharing a plan changes no result."""

import numpy as np
import pytest

from nkic.artifact.records import InstructionRecord, PatternRecord
from nkic.machine.targets import TARGETS, Engine
from nkic.simulate.memory import Memory
from nkic.simulate.plans import Decoder, EngineState, Plan, Planner, Registers
from tests.harness.instruction import call, run, tile
from tests.harness.memories import access, executable, tensor

TENSORS = [tensor("float32", (8, 64), 256 * n) for n in range(4)]


def plans_of(*pairs: tuple[PatternRecord, PatternRecord]) -> list[Plan]:
    """Return the plans of tensor_copy for each (dst, src)."""
    program, target = executable(TENSORS, pairs), TARGETS["trn2"]
    decoder = Decoder(Memory(program), target, True)
    state, engine = EngineState(Registers([])), Engine.VECTOR
    planner = Planner(decoder, engine, state)
    items = [item for item in program.streams[0].items if isinstance(item, InstructionRecord)]
    return [planner.plan(item, item.row) for item in items if item.row is not None]


def at(number: int, offset: int = 0, size: int = 8, start: int = 0) -> PatternRecord:
    return access(number, ((1, size),), offset=offset, start=start, partitions=4)


def test_addresses_make_no_difference() -> None:
    one, two, three = plans_of((at(0), at(1)), (at(2), at(3, 16)), (at(1, 8), at(1, 16)))
    assert one is two is three
    assert one.reads == (1,) and one.writes == (0,)


@pytest.mark.parametrize(
    "other",
    [
        (at(0, size=4), at(1, size=4)),
        (at(0, start=4), at(1)),  # lanes belong to partitions
        (at(0), at(0)),  # the same tile
        (at(0), at(0, 4)),  # which share some bytes
    ],
)
def test_anything_else_does(other: tuple[PatternRecord, PatternRecord]) -> None:
    first, second = plans_of((at(0), at(1)), other)
    assert first is not second


def test_partial_overlaps_have_plans_of_their_own() -> None:
    first, second = plans_of((at(0), at(0, 4)), (at(0), at(0, 6)))
    assert first is not second


def test_zeros_of_both_signs_are_different_numbers() -> None:
    ones = np.ones((4, 8), np.float32)
    data, filled = tile(ones), [tile(ones) for _ in range(4)]
    calls = [
        call("memset", "vector", dst=filled[0], value=0.0),
        call("memset", "vector", dst=filled[1], value=-0.0),
        call("tensor_scalar", "vector", dst=filled[2], data=data, op0="multiply", operand0=0.0),
        call("tensor_scalar", "vector", dst=filled[3], data=data, op0="multiply", operand0=-0.0),
    ]
    found = run(calls)
    signs = [np.signbit(found[each]).all() for each in filled]
    assert signs == [False, True, False, True]


def test_one_plan_serves_many_addresses() -> None:
    rng = np.random.default_rng(3)
    data = [tile(rng.standard_normal((16, 24)).astype(np.float32)) for _ in range(5)]
    results = [each.like() for each in data]
    calls = [
        call("tensor_tensor", "vector", dst=r, data1=d, data2=data[0], op="multiply")
        for r, d in zip(results, data, strict=True)
    ]
    found = run(calls)
    for each, result in zip(data, results, strict=True):
        expected = each.window(each.tensor.contents) * data[0].window(data[0].tensor.contents)
        assert np.array_equal(found[result], expected)
