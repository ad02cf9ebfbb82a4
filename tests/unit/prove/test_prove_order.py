"""Test the proof of a schedule: break every rule once; only that rule may report it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from nkic.compiler.depend import depend
from nkic.compiler.semaphores import Wiring
from nkic.machine.targets import Engine
from nkic.program.program import (
    DependenceGraph,
    Loop,
    Program,
    Schedule,
    Slot,
    Stream,
    StreamItem,
    StreamLoop,
    Wait,
    slots,
)
from nkic.prove import RULES
from nkic.prove.model import READ, WRITE, Item, Line, Round
from nkic.prove.order import Ledger, _as_run
from nkic.prove.run import AbstractRun, Clock, Start
from tests.harness.proofs import (
    Items,
    Made,
    dropped,
    edited,
    in_loops,
    make,
    slot,
    swapped,
    without_waits,
)
from tests.programs import copy, declare, load, op, program

TILE = "[0+128, 0; 1x512]"
HBM = "[0; 512x128, 1x512]"


def tiles(count: int, hbm: int = 2) -> str:
    shared = [f"%{i} h{i}: float32[128, 512] shared_hbm" for i in range(hbm)]
    return "\n".join([*shared, *(declare(hbm + i, f"t{i}", "128, 512") for i in range(count))])


def made(head: str, *body: str) -> Made:
    found = make(program("\n".join([head, "core", *(f"  {line}" for line in body)])))
    assert found.order() == []
    return found


def memset(number: int, tile: int, engine: str = "vector", more: str = "") -> str:
    return op(number, "memset", engine, dst=f"%{tile}{TILE}", value="0.0") + more


ROUND_TRIP = (
    load(0, f"%2{TILE}", f"%0{HBM}"),
    op(1, "reciprocal", dst=f"%3{TILE}", data=f"%2{TILE}"),
    load(2, f"%1{HBM}", f"%3{TILE}"),
)


def test_every_missing_wait_is_found() -> None:
    found = made(tiles(2), *ROUND_TRIP)
    for name in ("vector", "dma4"):
        (finding,) = found.order(edited(found.schedule, name, without_waits(0)))
        assert finding.rule == "memory"
        assert "does not wait for" in finding.what and "k.py:" in str(finding)


def test_a_wait_at_the_item_before_is_as_good_and_one_after_is_not() -> None:
    body = (memset(0, 3), load(1, f"%2{TILE}", f"%0{HBM}"), copy(2, f"%4{TILE}", f"%2{TILE}"))
    found = made(tiles(3), *body)

    def shifted(items: Items) -> None:
        one, two = slot(items[0]), slot(items[1])
        items[:] = [one._replace(waits=two.waits), two._replace(waits=())]

    early = edited(found.schedule, "vector", shifted)
    assert found.order(early) == []

    def late(items: Items) -> None:
        two = slot(items[1])
        items[1:] = [two._replace(waits=()), Slot(None, two.waits)]

    assert found.rules(edited(found.schedule, "vector", late)) == {"memory"}


def test_neighbours_the_wrong_way_round_are_found() -> None:
    """Both orders are orders, but only the program's order is right."""
    body = (memset(0, 2), copy(1, f"%3{TILE}", f"%2{TILE}"), memset(2, 2))
    found = made(tiles(2), *body)
    for at in (0, 1):
        (finding,) = found.order(edited(found.schedule, "vector", swapped(at)))
        assert finding.rule == "memory"


def test_reads_may_change_places() -> None:
    body = (memset(0, 2), copy(1, f"%3{TILE}", f"%2{TILE}"), copy(2, f"%4{TILE}", f"%2{TILE}"))
    found = made(tiles(3), *body)
    assert found.order(edited(found.schedule, "vector", swapped(1))) == []


def test_what_stays_apart_within_a_tensor_may_change_places() -> None:
    halves = "[0+128, 0; 1x256]", "[0+128, 256; 1x256]"
    body = [op(i, "memset", dst=f"%2{half}", value="0.0") for i, half in enumerate(halves)]
    found = made(tiles(1), *body)
    assert found.order(edited(found.schedule, "vector", swapped(0))) == []
    body[1] = op(1, "memset", dst="%2[0+128, 255; 1x256]", value="0.0")
    found = made(tiles(1), *body)
    assert found.rules(edited(found.schedule, "vector", swapped(0))) == {"memory"}


def test_an_instruction_left_out_is_found() -> None:
    found = made(tiles(2), *ROUND_TRIP)
    (finding,) = found.order(edited(found.schedule, "vector", dropped(0)))
    assert (finding.rule, finding.what) == ("once", "reciprocal #1 is in no stream")


def test_an_instruction_twice_is_found() -> None:
    found = made(tiles(2), *ROUND_TRIP)

    def twice(items: Items) -> None:
        items.append(slot(items[0])._replace(waits=(), signals=()))

    (finding,) = found.order(edited(found.schedule, "vector", twice))
    assert (finding.rule, finding.what) == ("once", "reciprocal #1 is in the streams twice")


def test_an_instruction_on_another_engine_is_found() -> None:
    found = made(tiles(2), memset(0, 2), memset(1, 3, "gpsimd"))
    (vector, gpsimd) = found.schedule.cores[0]
    swapped_streams = (Stream(vector.id, gpsimd.items), Stream(gpsimd.id, vector.items))
    findings = found.order(replace(found.schedule, cores=(swapped_streams,)))
    assert [(f.rule, f.what) for f in findings] == [
        ("once", "memset #1 is in the stream vector"),
        ("once", "memset #0 is in the stream gpsimd"),
    ]


def test_an_instruction_of_other_operands_is_found() -> None:
    found = made(tiles(2), memset(0, 2), memset(1, 3))

    def other(items: Items) -> None:
        one, two = slot(items[0]).instruction, slot(items[1]).instruction
        assert one is not None and two is not None
        items[0] = slot(items[0])._replace(instruction=one._replace(operands=two.operands))

    assert found.rules(edited(found.schedule, "vector", other)) == {"once"}


def test_a_signal_left_out_is_a_deadlock() -> None:
    found = made(tiles(2), *ROUND_TRIP)

    def silent(items: Items) -> None:
        items[0] = slot(items[0])._replace(signals=())

    finding, later = found.order(edited(found.schedule, "dma0", silent))
    assert finding.rule == later.rule == "deadlock"
    assert "stream vector waits for a signal that never comes at k.py:7:1" in str(finding)


def test_streams_that_wait_for_each_other_are_a_deadlock() -> None:
    found = made(tiles(2), memset(0, 2), memset(1, 3, "gpsimd"))
    one, two = (slot(s.items[0]) for s in found.schedule.cores[0])
    ids = [s.id for s in found.schedule.cores[0]]
    circle = (
        Stream(ids[0], (one._replace(waits=(Wait(0, 1),), signals=(1,)),)),
        Stream(ids[1], (two._replace(waits=(Wait(1, 1),), signals=(0,)),)),
    )
    findings = found.order(replace(found.schedule, cores=(circle,)))
    assert [f.rule for f in findings] == ["deadlock", "deadlock"]


def test_a_semaphore_of_two_waiters_is_found() -> None:
    found = made(tiles(3), memset(0, 2), memset(1, 3, "gpsimd"))

    def waits(items: Items) -> None:
        items[0] = slot(items[0])._replace(waits=(Wait(0, 1),))

    both = edited(edited(found.schedule, "vector", waits), "gpsimd", waits)
    assert found.rules(both) == {"semaphore"}


# Bytes that pass to another tensor


def test_bytes_taken_over_too_early_are_found() -> None:
    """Two tensors at one address, whose instructions are otherwise independent."""
    text = [
        "%1 a: float32[128, 512] sbuf fixed (0, 0)",
        "%2 b: float32[128, 512] sbuf fixed (0, 0)",
        "core",
        "  " + memset(0, 1),
        "  " + memset(1, 2, "gpsimd"),
    ]
    found = make(program("\n".join(text)))
    assert found.order() == []
    (finding,) = found.order(edited(found.schedule, "gpsimd", without_waits(0)))
    assert finding.rule == "bytes" and "takes over bytes of `a`" in finding.what


def test_partitions_side_by_side_have_bytes_of_their_own() -> None:
    """Nothing orders two engines that write them, before a third tensor takes bytes of both."""
    text = [
        *(f"%{1 + i} t{i}: float32[64, 512] sbuf fixed ({64 * i}, 0)" for i in range(2)),
        "%3 later: float32[128, 512] sbuf fixed (0, 1024)",
        "core",
        *("  " + op(i, "memset", engine, dst=f"%{1 + i}[0+64, 0; 1x512]", value="0.0")
          for i, engine in enumerate(("vector", "gpsimd"))),
        "  " + memset(2, 3),
    ]  # fmt: skip
    found = make(program("\n".join(text)))
    assert found.order() == []
    (wait,) = [slot.waits for stream in found.schedule.cores[0] for slot in slots(stream.items)
               if slot.waits]  # fmt: skip
    assert len(wait) == 1  # that of `later` for gpsimd


@pytest.mark.parametrize("start", [0, 32, 64, 96])
def test_bytes_of_any_partitions_taken_over_too_early_are_found(start: int) -> None:
    """Bytes of a tensor over all partitions, taken over by a tensor over some of them, and by four
    at once.
    """
    rows = "[0+32, 0; 1x512]"
    text = [
        "%1 a: float32[128, 512] sbuf fixed (0, 0)",
        *(f"%{2 + i} t{i}: float32[32, 512] sbuf fixed ({32 * i}, 0)" for i in range(4)),
        "core",
        "  " + memset(0, 1),
        *("  " + op(1 + i, "memset", "gpsimd", dst=f"%{2 + i}{rows}", value="0.0")
          for i in (start // 32,)),
    ]  # fmt: skip
    found = make(program("\n".join(text)))
    assert found.order() == []
    (finding,) = found.order(edited(found.schedule, "gpsimd", without_waits(0)))
    assert finding.rule == "bytes" and "takes over bytes of `a`" in finding.what


# Engine state and registers


def state_program() -> Made:
    """Return two reductions of the scalar engine that share its accumulator, and no tensor."""
    column = "[0+128, 0; 1x1]"
    head = tiles(4) + "\n" + "\n".join(declare(6 + i, f"c{i}", "128, 1") for i in range(2))
    lines = [
        op(
            i,
            "activation_reduce",
            "scalar",
            dst=f"%{2 + 2 * i}{TILE}",
            op="'copy'",
            data=f"%{3 + 2 * i}{TILE}",
            reduce_op="'add'",
            reduce_res=f"%{6 + i}{column}",
            bias="0.0",
            scale="1.0",
        )
        for i in range(2)
    ]
    return made(head, *lines)


def test_engine_state_in_the_wrong_order_is_found() -> None:
    found = state_program()
    (finding,) = found.order(edited(found.schedule, "scalar", swapped(0)))
    assert finding.rule == "state" and "scalar.accumulator" in finding.what


REGISTERS = (
    op(0, "register_move", "sync", dst="$0", src="1"),
    op(1, "register_store", "sync", dst="%2[0+1, 0; 1x1]", src="$0"),
    op(2, "register_move", "sync", dst="$0", src="2"),
    op(3, "register_store", "sync", dst="%3[0+1, 0; 1x1]", src="$0"),
)
WORDS = "\n".join(f"%{i} w{i}: int32[1, 1] {'sbuf' if i > 1 else 'shared_hbm'}" for i in range(4))


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_register_in_the_wrong_order_is_found(at: int) -> None:
    found = made(WORDS, *REGISTERS)
    (finding, *_) = found.order(edited(found.schedule, "sync", swapped(at)))
    assert finding.rule == "register" and "register 0" in finding.what


WHILE = (
    op(0, "register_load", "sync", dst="$0", src="%2[0+1, 0; 1x1]"),
    "loop 1 while $0",
    "  " + memset(1, 4, "gpsimd"),
    "  " + op(2, "register_load", "sync", dst="$0", src="%3[0+1, 0; 1x1]"),
    "end",
)
LOOP_HEAD = WORDS + "\n" + declare(4, "t", "128, 512") + "\n"


def test_what_follows_a_decision_in_its_stream_may_change_the_register() -> None:
    """Nothing stands between the decision and the load: no other engine has work in the loop."""
    found = made(WORDS, WHILE[0], WHILE[1], WHILE[3], WHILE[4])
    lines = next(stream for stream in found.schedule.cores[0] if stream.id.engine is Engine.SYNC)
    (around,) = [item for item in lines.items if isinstance(item, StreamLoop)]
    assert [slot.instruction is None for slot in slots(around.items)] == [False]


def test_without_the_barrier_at_its_start_a_loop_is_decided_too_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """gpsimd may decide by the value that sync has set for the next iteration, so that streams
    disagree.
    """
    found = made(LOOP_HEAD, *WHILE)
    barrier, calls = Wiring.barrier, iter(range(99))
    monkeypatch.setattr(
        Wiring, "barrier", lambda self, lines: next(calls) == 1 or barrier(self, lines)
    )
    broken = make(found.lowered)
    assert next(calls) == 4  # before the loop, at the start, at the end, after the loop
    findings = broken.order()
    assert {f.rule for f in findings} == {"register"}


def test_a_bound_that_changes_inside_its_loop_is_found() -> None:
    body = (
        op(0, "register_load", "sync", dst="$0", src="%2[0+1, 0; 1x1]"),
        "loop 1 $1 = 0 to $0 by 1",
        "  " + memset(1, 4, "gpsimd"),
        "end",
        op(2, "register_move", "sync", dst="$0", src="3"),
    )
    found = made(LOOP_HEAD, *body)

    def early(items: Items) -> None:
        items[:] = [slot(i)._replace(waits=()) if isinstance(i, Slot) else i for i in items]

    assert "register" in found.rules(edited(found.schedule, "sync", early))


# Orders that the kernel requests


def test_a_user_edge_that_is_lost_is_found() -> None:
    found = made(tiles(2), memset(0, 2), memset(1, 3, "gpsimd", " after (0,)"))
    (finding,) = found.order(edited(found.schedule, "gpsimd", without_waits(0)))
    assert (finding.rule, "#0" in finding.what) == ("user", True)


def test_a_region_that_is_reordered_is_found() -> None:
    found = made(tiles(2), memset(0, 2, more=" pinned 1"), memset(1, 3, more=" pinned 1"))
    (finding,) = found.order(edited(found.schedule, "vector", swapped(0)))
    assert finding.rule == "pin"


# Loops

LOOP = (
    load(0, f"%2{TILE}", f"%0{HBM}"),
    "loop 1 $0 = 0 to 4 by 1",
    "  " + op(1, "reciprocal", dst=f"%3{TILE}", data=f"%2{TILE}"),
    "  " + copy(2, f"%2{TILE}", f"%3{TILE}", "gpsimd"),
    "end",
    load(3, f"%1{HBM}", f"%2{TILE}"),
)


def test_a_loop_that_keeps_a_signal_is_found() -> None:
    found = made(tiles(2), *LOOP)

    def greedy(items: Items) -> None:
        at = next(i for i, item in enumerate(items) if slot(item).signals)
        items[at] = slot(items[at])._replace(signals=slot(items[at]).signals * 2)

    assert found.rules(in_loops(found.schedule, greedy)) == {"semaphore"}


def test_an_instruction_outside_its_loop_is_found() -> None:
    found = made(tiles(2), *LOOP)

    def out(items: Items) -> None:
        at = next(i for i, item in enumerate(items) if isinstance(item, StreamLoop))
        loop = items[at]
        assert isinstance(loop, StreamLoop)
        first = next(i for i in loop.items if slot(i).instruction is not None)
        rest = tuple(i for i in loop.items if i is not first)
        items[at : at + 1] = [slot(first), StreamLoop(loop.loop, rest)]

    assert found.rules(edited(found.schedule, "vector", out)) == {"once"}


@pytest.mark.parametrize("change", [{"stop": 5}, {"start": 1}, {"step": 2}, {"number": 9}])
def test_a_loop_that_runs_otherwise_is_found(change: dict[str, Any]) -> None:
    found = made(tiles(2), *LOOP)

    def other(items: Items) -> None:
        for at, item in enumerate(items):
            if isinstance(item, StreamLoop):
                items[at] = StreamLoop(replace(item.loop, **change), item.items)

    assert found.rules(edited(found.schedule, "vector", other)) == {"once"}


@pytest.mark.parametrize(
    ("inner", "after", "is_ordered_outside"),
    [
        (memset(1, 3, "gpsimd"), copy(2, f"%3{TILE}", f"%2{TILE}", "gpsimd"), True),
        (copy(1, f"%3{TILE}", f"%2{TILE}", "gpsimd"), memset(2, 2, "gpsimd"), False),
    ],
    ids=["a read after it", "a write after its read"],
)
def test_what_a_loop_may_not_do_orders_nothing_after_it(
    inner: str, after: str, is_ordered_outside: bool
) -> None:
    """A wait inside a loop that may run no iteration: later code cannot rely on it."""
    body = (
        memset(0, 2),
        "loop 1 $0 = 0 to $1 by 1",
        "  " + inner,
        "end",
        after,
    )
    text = "\n".join([tiles(2), "core", *(f"  {line}" for line in body)])
    found = make(program(text))
    (loop,) = (item for item in found.lowered.cores[0] if isinstance(item, Loop))
    numbered = {i.instruction.number: i for s in found.schedule.cores[0]
                for i in slots(s.items) if i.instruction is not None}  # fmt: skip
    bare = {n: i._replace(waits=(), signals=()) for n, i in numbered.items()}
    ids = {s.id.engine.value: s.id for s in found.schedule.cores[0]}

    def hand(vector: list[StreamItem], gpsimd: list[StreamItem]) -> Schedule:
        streams = (Stream(ids["vector"], tuple(vector)), Stream(ids["gpsimd"], tuple(gpsimd)))
        return replace(found.schedule, cores=(streams,))

    waits = (Wait(0, 1),)
    outside = hand(
        [bare[0]._replace(signals=(0,)), StreamLoop(loop, (Slot(None),))],
        [StreamLoop(loop, (bare[1],)), bare[2]._replace(waits=waits)],
    )
    assert found.rules(outside) == (set() if is_ordered_outside else {"memory"})
    # Each iteration signals vector's progress to gpsimd, and no iteration may omit the signal.
    inside = hand(
        [bare[0], StreamLoop(loop, (Slot(None, (), (0,)),))],
        [StreamLoop(loop, (bare[1]._replace(waits=waits),)), bare[2]],
    )
    assert found.rules(inside) == {"memory"}


def test_loops_without_instructions_are_proven() -> None:
    empty = ("loop 1 $0 = 0 to 4 by 1", "  loop 2 $1 = 0 to 4 by 1", "  end", "end")
    found = made(tiles(2), *ROUND_TRIP, *empty)
    assert found.addresses() == []
    inside = (*empty[:3], "  " + memset(0, 2), "  loop 3 $2 = 0 to 1 by 1", *empty[2:])
    assert make(program("\n".join([tiles(2), "core", *inside]))).addresses() == []


# Instructions that allocate delays


def sunk() -> tuple[Program, Made]:
    """Return many tiles that are filled long before they are used: allocate must delay the
    memsets.
    """
    count, size = 30, 4 * 1024
    shape, whole = f"128, {size}", f"[0+128, 0; 1x{size}]"
    head = [declare(i, f"t{i}", shape) for i in range(count + 1)]
    fills = [op(i, "memset", dst=f"%{i}{whole}", value="0.0") for i in range(count)]
    uses = [copy(count + i, f"%{count}{whole}", f"%{i}{whole}") for i in range(count)]
    found = program("\n".join([*head, "core", *(f"  {line}" for line in (*fills, *uses))]))
    return found, make(found)


def test_a_program_that_allocate_reorders_is_proven_in_its_own_order() -> None:
    found, done = sunk()
    assert done.placed.cores != found.cores
    assert done.order() == [] and done.addresses() == []
    body = list(done.placed.cores[0])
    body[0], body[1] = body[1], body[0]  # a copy before the memset that fills its source
    wrong = replace(done.placed, cores=(tuple(body),))
    assert done.placed.cores[0][0] != wrong.cores[0][0]
    missing = replace(done.schedule, program=replace(wrong, cores=(tuple(body[1:]),)))
    assert done.rules(missing) == {"once"}


# The whole


def loose(graph: DependenceGraph, kind: str) -> DependenceGraph:
    edges = {n: tuple(e for e in es if e.kind != kind) for n, es in graph.edges.items()}
    return replace(graph, edges=edges)


CASES: dict[str, tuple[str, Callable[[], Program]]] = {
    "raw": ("memory", lambda: program("\n".join([tiles(2), "core", *ROUND_TRIP]))),
    "user": (
        "user",
        lambda: program(
            "\n".join([tiles(2), "core", memset(0, 2), memset(1, 3, "gpsimd", " after (0,)")])
        ),
    ),
}


@pytest.mark.parametrize("kind", CASES)
def test_a_schedule_of_too_few_edges_is_found(kind: str) -> None:
    rule, text = CASES[kind]
    found = text()
    done = make(found, graphs=tuple(loose(graph, kind) for graph in depend(found)))
    assert {f.rule for f in done.order()} == {rule}


def test_serial_schedules_are_proven() -> None:
    for body in (ROUND_TRIP, LOOP):
        text = "\n".join([tiles(2), "core", *(f"  {line}" for line in body)])
        assert make(program(text), serial=True).order() == []


def test_every_rule_has_a_name_and_a_sentence() -> None:
    of_order = "once semaphore deadlock memory bytes state register user pin"
    assert set(RULES) == set(f"lowered address lane overlap file spilled {of_order}".split())


# ------------------------------------------------------------------------------------------------
# Test the proof of a schedule where a stream reorders the reads of a tensor, or has loops.


def turned_round(found: Made, *, early: bool) -> Schedule:
    """Swap the second and third item of vector.

    With `early`, the signal of the first of the two is given by the second item of the program.
    """
    schedule = edited(found.schedule, "vector", swapped(1))

    def signal(items: Items) -> None:
        one, two = slot(items[1]), slot(items[2])
        assert two.signals and not one.signals
        items[1:3] = [one._replace(signals=two.signals), two._replace(signals=())]

    return edited(schedule, "vector", signal) if early else schedule


def test_whoever_writes_waits_for_all_reads_that_a_stream_turned_round() -> None:
    reads = [copy(i, f"%{2 + i}{TILE}", f"%2{TILE}") for i in (1, 2)]
    found = made(tiles(3), memset(0, 2), *reads, memset(3, 2, "gpsimd"))
    assert found.order(turned_round(found, early=False)) == []
    (finding,) = found.order(turned_round(found, early=True))
    assert finding.rule == "memory" and "`t0`" in finding.what


def test_bytes_that_are_taken_over_wait_for_all_reads_that_a_stream_turned_round() -> None:
    text = [
        "%1 a: float32[128, 512] sbuf fixed (0, 0)",
        "%2 b: float32[128, 512] sbuf fixed (0, 0)",
        *(declare(i, f"t{i}", "128, 512") for i in (3, 4)),
        "core",
        "  " + memset(0, 1),
        *("  " + copy(i, f"%{2 + i}{TILE}", f"%1{TILE}") for i in (1, 2)),
        "  " + memset(3, 2, "gpsimd"),
    ]
    found = make(program("\n".join(text)))
    assert found.order() == found.order(turned_round(found, early=False)) == []
    (finding,) = found.order(turned_round(found, early=True))
    assert finding.rule == "bytes" and "takes over bytes of `a`" in finding.what


def test_a_program_is_told_in_the_order_in_which_its_loops_run() -> None:
    text = [
        tiles(1),
        "core",
        "  loop 1 $0 = 0 to 4 by 1",
        "    " + memset(0, 2),
        "    loop 2 $1 = 0 to 4 by 1",
        "      " + memset(1, 2),
        "    end",
        "  end",
        "  " + memset(2, 2),
    ]
    found = program("\n".join(text))
    told = [(one.number, visit) for one, visit in _as_run(found.cores[0])]
    assert told == [(0, 0), (1, 0), (1, 1), (0, 1), (1, 2), (1, 3), (2, 0)]


# ------------------------------------------------------------------------------------------------
# Test the abstract run of streams: which items are known to be complete when an item starts.

COMPUTE = Engine.VECTOR, Engine.SCALAR, Engine.GPSIMD, Engine.TENSOR
WAIT = ((0, 1),)


def known(*streams: Sequence[Item | Round]) -> dict[int, list[Clock]]:
    """Return, by item, the items known to be complete each time that it starts."""
    lines = [Line(COMPUTE[index], 0, tuple(items)) for index, items in enumerate(streams)]
    run = AbstractRun([lines])
    assert run.run() == []
    run.cores[0].complete_clocks()
    tables = run.cores[0].starts
    return {key: [table[key][2] for table in tables if key in table] for key in tables[0]}


def loop(number: int, *items: Item) -> Round:
    return Round(number, (), -1, items)


def test_what_a_loop_waits_for_in_each_iteration_is_known_after_it() -> None:
    """If the loop does not run at all, none of its items is waited for."""
    signalling, waiting = Item(0, (), (0,)), Item(1, WAIT, ())
    found = known([loop(7, signalling)], [loop(7, waiting), Item(2, (), ())])
    assert found == {0: [[0, 0], [0, 0]], 1: [[1, 0], [2, 0]], 2: [[2, 0]]}
    other = known([loop(7, signalling)], [loop(8, waiting), Item(2, (), ())])
    assert other == {**found, 2: [[0, 0]]}  # another loop, which may not run when this one does


def test_what_came_before_a_loop_is_known_after_it_as_it_was_before() -> None:
    signalling, waiting = Item(0, (), (0,)), Item(1, WAIT, ())
    before = Item(3, (), ())
    found = known([before, loop(7, signalling)], [loop(7, waiting), Item(2, (), ())])
    assert (found[1], found[2]) == ([[2, 0], [3, 0]], [[0, 0]])
    told = known(
        [before._replace(signals=(1,)), loop(7, signalling)],
        [Item(4, ((1, 1),), ()), loop(7, waiting), Item(2, (), ())],
    )
    assert (told[4], told[1], told[2]) == ([[1, 0]], [[2, 0], [3, 0]], [[3, 0]])


def straight(seed: int) -> list[list[Item]]:
    """Draw items in random streams; each may wait for earlier items of other streams."""
    rng = Random(seed)
    streams: list[list[Item]] = [[] for _ in COMPUTE]
    where: list[tuple[int, int]] = []
    signals = 0
    for key in range(16):
        own = rng.randrange(len(streams))
        waits = []
        for source in rng.sample(where, min(len(where), rng.randrange(3))):
            if source[0] != own:
                line, at = source
                one = streams[line][at]
                streams[line][at] = one._replace(signals=(*one.signals, signals))
                waits.append((signals, 1))
                signals += 1
        where.append((own, len(streams[own])))
        streams[own].append(Item(key, tuple(waits), ()))
    return streams


def reached(streams: list[list[Item]]) -> dict[int, set[int]]:
    """Return, by item, all items that are complete before it starts, by plain search."""
    signalling = {signal: one.key for items in streams for one in items for signal in one.signals}
    found: dict[int, set[int]] = {}
    for one in sorted((one for items in streams for one in items), key=lambda one: one.key):
        (own,) = (items for items in streams if one in items)
        before = {other.key for other in own[: own.index(one)]}
        before |= {signalling[semaphore] for semaphore, _ in one.waits}
        found[one.key] = before.union(*(found[key] for key in before))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_streams_without_loops_know_what_is_before_them(seed: int) -> None:
    streams = straight(seed)
    found, before = known(*streams), reached(streams)
    for own, items in enumerate(streams):
        for one in items:
            (clock,) = found[one.key]
            for line, others in enumerate(streams):
                if line != own:
                    wanted = max(
                        (n + 1 for n, other in enumerate(others) if other.key in before[one.key]),
                        default=0,
                    )
                    assert clock[line] == wanted, (one.key, line)


def chain(*waits: tuple[int, ...]) -> tuple[Ledger, list[Start]]:
    """Return the ledger and the starts of three items, each in a stream of its own.

    Each signals the next one, and waits for the semaphores `waits`.
    """
    items = [Item(key, tuple((s, 1) for s in own), (key,)) for key, own in enumerate(waits)]
    run = AbstractRun([[Line(COMPUTE[key], 0, (item,)) for key, item in enumerate(items)]])
    assert run.run() == []
    (core,) = run.cores
    return Ledger(1, core, in_turn=True), [core.starts[0][key] for key in range(3)]


def test_what_a_signalling_item_knew_is_learned_when_an_access_needs_it() -> None:
    ledger, (first, second, third) = chain((), (0,), (1,))
    assert ledger.note(first, [((0,), WRITE, 0)]) == {}
    assert third[2] == [0, 1, 0]  # what it was told
    assert ledger.follows(third, second) and third[2] == [0, 1, 0]
    assert ledger.note(third, [((0,), WRITE, 0)]) == {}
    assert third[2] == [1, 1, 0]


def test_a_write_follows_the_last_write_through_the_reads_or_a_read_is_found() -> None:
    ledger, starts = chain((), (0,), (1,))
    touches = [((0,), WRITE, 0)], [((0,), READ, 0)], [((0,), WRITE, 0)]
    assert [ledger.note(*one) for one in zip(starts, touches, strict=True)] == [{}, {}, {}]
    assert starts[2][2] == [0, 1, 0]  # the read is enough
    ledger, starts = chain((), (), (1,))
    found = [ledger.note(*one) for one in zip(starts, touches, strict=True)]
    assert found == [{}, {0: starts[0]}, {}]
    ledger, starts = chain((), (), (1,))
    found = [ledger.note(starts[n], touches[n]) for n in (0, 2)]
    assert found == [{}, {0: starts[0]}]
