"""Test the proof of device loops with overlapping iterations: loop-carried waits."""

import pytest

from nkic.machine.targets import Engine
from nkic.program.program import Program, Slot, StreamItem, StreamLoop
from nkic.prove import prove_order, read
from tests.harness.proofs import Items, Made, edited, in_loops, make, slot
from tests.programs import copy, declare, op, program
from tests.unit.prove.test_prove_addresses import WHOLE, loops, work
from tests.unit.prove.test_prove_order import LOOP, LOOP_HEAD, TILE, made, memset, tiles


def without_carried(items: Items) -> None:
    """Remove the vector engine's wait for gpsimd's previous iteration."""
    (one,) = map(slot, items)
    on_vector = one.instruction is not None and one.instruction.engine is Engine.VECTOR
    items[:] = [one._replace(waits=()) if on_vector else one._replace(signals=())]


def test_bytes_that_come_back_are_found() -> None:
    """In a loop two tensors alternate on the same bytes: the second iteration takes them over
    again.
    """
    text = [
        "%1 a: float32[128, 512] sbuf fixed (0, 0) scope (1,)",
        "%2 b: float32[128, 512] sbuf fixed (0, 0) scope (1,)",
        "core",
        "  loop 1 $0 = 0 to 4 by 1",
        "    " + memset(0, 1),
        "    " + memset(1, 2, "gpsimd"),
        "  end",
    ]
    found = make(program("\n".join(text)))
    assert found.order() == []

    assert found.rules(in_loops(found.schedule, without_carried)) == {"bytes"}


def test_an_iteration_that_starts_too_early_is_found() -> None:
    """Without a wait for the previous iteration, the next reciprocal may not see the copy."""
    found = made(tiles(2), *LOOP)
    assert found.rules(in_loops(found.schedule, without_carried)) == {"memory"}


def first_iteration(found: Made) -> int:
    """Return the semaphore by which the vector engine waits for gpsimd's previous iteration."""
    (vector,) = (s for s in found.schedule.cores[0] if s.id.engine is Engine.VECTOR)
    (loop,) = (item for item in vector.items if isinstance(item, StreamLoop))
    return slot(loop.items[0]).waits[0].semaphore


@pytest.mark.parametrize(("signals", "rule"), [(0, "deadlock"), (1, ""), (2, "memory")])
def test_the_first_turn_takes_one_signal_from_before_the_loop(signals: int, rule: str) -> None:
    found = made(tiles(2), *LOOP)
    carried = first_iteration(found)

    def given(items: Items) -> None:
        at = next(i for i, item in enumerate(items) if isinstance(item, StreamLoop)) - 1
        one = slot(items[at])
        rest = tuple(s for s in one.signals if s != carried)
        assert len(rest) == len(one.signals) - 1
        items[at] = one._replace(signals=(*rest, *signals * (carried,)))

    assert found.rules(edited(found.schedule, "gpsimd", given)) == ({rule} if rule else set())


def test_a_loop_that_registers_decide_overlaps_unless_a_turn_sets_them() -> None:
    def slots_of(inside: str) -> int:
        body = (
            op(0, "register_load", "sync", dst="$0", src="%2[0+1, 0; 1x1]"),
            "loop 1 $1 = 0 to $0 by 1",
            "  " + memset(1, 4, "gpsimd"),
            "  " + inside,
            "end",
        )
        found = made(LOOP_HEAD, *body)
        (sync, *_) = (s for s in found.schedule.cores[0] if s.id.engine is Engine.SYNC)
        loops = [item for item in sync.items if isinstance(item, StreamLoop)]
        return sum(len(item.items) for item in loops)

    assert slots_of(op(2, "register_move", "sync", dst="$2", src="3")) == 1
    assert slots_of(op(2, "register_move", "sync", dst="$0", src="3")) > 1


NESTED = (
    "loop 1 $0 = 0 to 4 by 1",
    "  " + memset(0, 2, "gpsimd"),
    "  loop 2 $1 = 0 to 4 by 1",
    "    " + copy(1, f"%3{TILE}", f"%2{TILE}"),
    "  end",
    "  " + copy(2, f"%4{TILE}", f"%2{TILE}", "scalar"),
    "  " + copy(3, f"%5{TILE}", f"%3{TILE}"),
    "end",
)


def outer(found: Made, engine: Engine) -> tuple[StreamItem, ...]:
    (stream,) = (s for s in found.schedule.cores[0] if s.id.engine is engine)
    (loop,) = (item for item in stream.items if isinstance(item, StreamLoop))
    return loop.items


def test_turns_around_a_loop_wait_for_what_they_share_alone() -> None:
    """The next iteration's memset waits for the scalar engine's copy after the inner loop, but not
    for the vector engine's, and no barrier ends an iteration.
    """
    found = made(tiles(4), *NESTED)
    first, last = slot(outer(found, Engine.GPSIMD)[0]), slot(outer(found, Engine.SCALAR)[-1])
    assert first.instruction is not None and last.instruction is not None
    assert [wait.semaphore for wait in first.waits] == list(last.signals) != []
    final = slot(outer(found, Engine.VECTOR)[-1])
    assert final.instruction is not None and final.signals == ()


def test_a_turn_that_starts_too_early_after_an_inner_loop_is_found() -> None:
    found = made(tiles(4), *NESTED)
    (carried,) = slot(outer(found, Engine.GPSIMD)[0]).waits

    def without(items: Items) -> None:
        for at, item in enumerate(items):
            if isinstance(item, Slot):
                waits = tuple(w for w in item.waits if w.semaphore != carried.semaphore)
                signals = tuple(s for s in item.signals if s != carried.semaphore)
                items[at] = item._replace(waits=waits, signals=signals)

    assert found.rules(in_loops(found.schedule, without)) == {"memory"}


def test_loops_inside_each_other_carry_by_semaphores_of_their_own() -> None:
    """Both loops carry from gpsimd to vector: the signals of one loop must not be taken for the
    other's.
    """
    inner = (
        "  loop 2 $1 = 0 to 4 by 1",
        "    " + op(1, "reciprocal", dst=f"%4{TILE}", data=f"%3{TILE}"),
        "    " + copy(2, f"%3{TILE}", f"%4{TILE}", "gpsimd"),
        "  end",
    )
    body = (memset(0, 2), *inner, copy(3, f"%5{TILE}", f"%2{TILE}", "gpsimd"))
    found = made(tiles(4), "loop 1 $0 = 0 to 4 by 1", *body, "end")
    items = outer(found, Engine.VECTOR)
    (loop,) = (item for item in items if isinstance(item, StreamLoop))
    (one,), (two,) = slot(items[0]).waits, slot(loop.items[0]).waits
    assert one.semaphore != two.semaphore


def test_all_streams_decide_about_a_loop_that_holds_another_one() -> None:
    """An iteration sets the register that decides how often the loop runs.

    It must not do so before the streams with only the inner loop's barriers have decided, too.
    """
    body = (
        op(0, "register_load", "sync", dst="$0", src="%2[0+1, 0; 1x1]"),
        "loop 1 $1 = 0 to $0 by 1",
        "  " + op(1, "register_move", "sync", dst="$0", src="3"),
        "  loop 2 $2 = 0 to 4 by 1",
        "    " + memset(2, 4, "gpsimd"),
        "  end",
        "end",
    )
    found = made(LOOP_HEAD, *body)
    for stream in found.schedule.cores[0]:
        (loop,) = (item for item in stream.items if isinstance(item, StreamLoop))
        assert slot(loop.items[0]).instruction is None  # there is a barrier before everything else


# ------------------------------------------------------------------------------------------------
# The proofs take linear time, device loops included: work is counted, not timed.


def order(done: Made) -> int:
    readings = read(done.lowered)
    return work(lambda: prove_order(done.lowered, done.schedule, readings))


def straight(count: int) -> Program:
    """Return a program with eight tiles in rotation on two engines: reads, writes, waits, and
    reused bytes.
    """
    tensors = [declare(i, f"t{i}", "128, 256") for i in range(count)]
    body = [op(0, "memset", dst=f"%0{WHOLE}", value="0.0")]
    engines = ("vector", "gpsimd")
    body += [copy(i, f"%{i}{WHOLE}", f"%{i - 1}{WHOLE}", engines[i % 2]) for i in range(1, count)]
    return program("\n".join([*tensors, "core", *(f"  {line}" for line in body)]))


def test_ten_times_the_instructions_are_ten_times_the_work() -> None:
    few, many = make(straight(500)), make(straight(5_000))
    assert few.order() == [] == many.order()
    assert order(many) <= 10.2 * order(few)


def test_ten_times_the_loops_are_ten_times_the_work() -> None:
    few, many = make(loops(8)), make(loops(80))
    assert few.order() == [] == many.order()
    assert order(many) <= 10.2 * order(few)


@pytest.mark.slow
def test_so_they_are_for_thousands_of_loops() -> None:
    few, many = make(loops(1_600)), make(loops(16_000))
    assert order(many) <= 10.2 * order(few)
