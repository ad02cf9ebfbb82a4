"""Test other orders of a run, and writes in program order."""

from collections import Counter

import numpy as np
import pytest

from nkic.artifact.records import Executable, PatternRecord
from nkic.artifact.verify import verify
from nkic.base.diagnostics import ArtifactFailed, UsageFailed
from nkic.simulate import RunOptions, simulate_ranks
from nkic.simulate.fuzz import (
    Action,
    Bisection,
    Drawn,
    Fuzz,
    Kind,
    Party,
    Recorded,
    Scripted,
    Transfers,
)
from nkic.simulate.observed import Write, line_of, part, written
from nkic.simulate.watching import Breakpoint, breakpoint_of
from tests.faults import inject
from tests.faults.cases import OWN, Subject, subject

ORDERS = 32


@pytest.mark.parametrize("name", ["06_matmul:matmul_basic", "10_attention", *OWN])
def test_every_order_of_a_sound_program_gives_the_same(name: str) -> None:
    found = subject(name)
    fuzz = Fuzz(found.compiled.executable, [found.inputs], RunOptions(), 3)
    assert fuzz.search(6) is None


@pytest.mark.parametrize("name", ["03_transpose", *OWN])
def test_the_order_of_a_run_in_time_can_be_followed(name: str) -> None:
    """The order of the run is one of the orders that are tried, step by step."""
    found = subject(name)
    executable, recorded = found.compiled.executable, Recorded()
    (usual,) = simulate_ranks(executable, [found.inputs], RunOptions(), [recorded])
    machine, outcome = Fuzz(executable, [found.inputs], RunOptions(), 0).run(Scripted(recorded.log))
    assert machine.log == recorded.log and not outcome.failure
    assert [name for name, _ in outcome.outputs] == [*usual.outputs]


def test_orders_differ_and_keep_to_their_seed() -> None:
    found = subject("03_transpose")
    fuzz = Fuzz(found.compiled.executable, [found.inputs], RunOptions(), 0)
    logs = [tuple(fuzz.run(Drawn(seed, n))[0].log) for seed in (0, 1) for n in range(3)]
    assert len(set(logs)) == 6
    assert tuple(fuzz.run(Drawn(1, 2))[0].log) == logs[5]
    assert len({frozenset(log) for log in logs}) == 1  # the same actions each time
    assert [Drawn(0, n).transfers for n in range(4)] == [*Transfers, Transfers.EAGER]


def test_eager_and_late_transfers() -> None:
    found = subject("01_tensor_add")
    fuzz = Fuzz(found.compiled.executable, [found.inputs], RunOptions(), 0)
    (eager, _), (late, _) = fuzz.run(Drawn(0, 0)), fuzz.run(Drawn(0, 1))
    starts = [n for n, action in enumerate(eager.log) if action.kind is Kind.START]
    for at in starts:
        kinds = [action.kind for action in eager.log[at : at + 3]]
        assert kinds == [Kind.START, Kind.MOVE, Kind.COMPLETE]
    first = next(n for n, action in enumerate(late.log) if action.kind is Kind.MOVE)
    streams = {a.stream for a in late.log[:first] if a.kind is Kind.START}
    assert len(streams) > 1 and late.log[first - 1].kind in (Kind.RUN, Kind.START)


def broken(found: Subject, kind: str) -> list[Executable]:
    """Return the file with a fault of that kind, at each place where the file is still accepted."""
    made = []
    for fault in inject.of_records(found.compiled.executable):
        if fault.kind == kind:
            executable = fault.make()
            try:
                verify(executable)
            except ArtifactFailed:
                continue
            made.append(executable)
    return made


@pytest.mark.parametrize("name", ["03_transpose", "07_softmax", "state"])
@pytest.mark.parametrize("kind", ["lost wait", "early signal"])
def test_a_missing_wait_is_found(name: str, kind: str) -> None:
    """Try each of a sample; the two instructions access the same bytes, and one of them writes."""
    found, seen = subject(name), Counter[bool]()
    for executable in broken(found, kind)[::3]:
        race = Fuzz(executable, [found.inputs], RunOptions(), 0).search(ORDERS)
        seen[race is not None] += 1
        if race is not None and race.first is not None and race.second is not None:
            assert race.first.runner.index != race.second.runner.index
            assert _conflict(executable, race.first, race.second)
    assert seen[True] and not seen[False], (name, kind, seen)


def _conflict(executable: Executable, one: Party, other: Party) -> bool:
    target = RunOptions().target_of(executable)
    touched = []
    for party in (one, other):
        operands = [o for o in party.item.record.operands if isinstance(o, PatternRecord)]
        numbers = {o.tensor for o in operands}
        writes = set(written(executable, target, party.runner, party.item))
        touched.append((numbers, writes))
    (a, a_writes), (b, b_writes) = touched
    spans = [{_span(executable, n) for n in numbers} for numbers in (a, a_writes, b, b_writes)]
    return _meet(spans[1], spans[2]) or _meet(spans[0], spans[3])


def _span(executable: Executable, number: int) -> tuple[str, int, int, int]:
    tensor = executable.tensors[number]
    if not tensor.buffer.on_chip:
        return f"hbm{number}", 0, 0, 1
    return tensor.buffer.value, tensor.core, tensor.byte, tensor.byte + tensor.bytes


def _meet(some: set[tuple[str, int, int, int]], others: set[tuple[str, int, int, int]]) -> bool:
    return any(a[:2] == b[:2] and a[2] < b[3] and b[2] < a[3] for a in some for b in others)


def test_the_pair_is_found_between_two_orders() -> None:
    """Only whether 3 comes before 1 matters; 0 to 4 represent items of separate streams."""
    steps = [Action(stream, Kind.RUN, 0) for stream in range(5)]
    tried = []

    def is_normal(order: list[Action]) -> bool:
        tried.append(order)
        return order.index(steps[1]) < order.index(steps[3])

    usual, other = [steps[i] for i in (0, 1, 2, 3, 4)], [steps[i] for i in (4, 3, 2, 1, 0)]
    found = Bisection(is_normal).search(usual, other)  # type: ignore[arg-type]
    assert found == (steps[1], steps[3])
    assert all(sorted(order) == sorted(steps) for order in tried)
    assert Bisection(lambda order: True).search(usual, other) is None


def test_writes_of_unrolled_loops_are_in_the_order_of_the_program() -> None:
    found = subject("01_tensor_add")
    executable = found.compiled.executable
    assert line_of(executable, -1) == 0
    stream, record = executable.streams[0], executable.streams[0].items[0]
    made = [
        Write(0, stream, record, 0, "x", 1, None, (), iterations, 0, 0)  # type: ignore[arg-type]
        for iterations in ("i=10 j=0", "i=2 j=1", "i=2 j=0")
    ]
    assert [one.unrolled for one in sorted(made, key=lambda one: one.key)] == [
        "i=2 j=0",
        "i=2 j=1",
        "i=10 j=0",
    ]


def test_parts_and_breakpoints_as_users_write_them() -> None:
    array = np.arange(24).reshape(4, 6)
    for text, there in (
        ("x", array),
        ("x[1]", array[1]),
        ("x[-1, 2:4]", array[-1, 2:4]),
        ("x[:, 0]", array[:, 0]),
        ("x[1:, :-1]", array[1:, :-1]),
        ("x[2, 3]", array[2, 3:4]),
    ):
        assert np.array_equal(part(text).of(array), there), text
    for text in ("", "x[", "x[a]", "x[1,,2]", "x[1:2:3]", "[1]"):
        with pytest.raises(UsageFailed):
            part(text)
    assert breakpoint_of("12") == Breakpoint("", 12)
    assert breakpoint_of("12:3") == Breakpoint("", 12, 3)
    assert breakpoint_of("a/k.py:12:3") == Breakpoint("a/k.py", 12, 3)
    for text in ("k.py", "k.py:0x", "k.py:1:0", ""):
        with pytest.raises(UsageFailed):
            breakpoint_of(text)
