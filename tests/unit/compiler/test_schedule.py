"""Test schedule with printed programs; its results are proven."""

from typing import Any

import pytest

from nkic.base.diagnostics import Reporter
from nkic.compiler.allocate import allocate
from nkic.compiler.depend import depend
from nkic.compiler.schedule import schedule
from nkic.compiler.semaphores import Wiring
from nkic.machine.targets import Engine
from nkic.program.program import Program, Schedule, StreamLoop, slots
from nkic.program.text import schedule_text
from nkic.prove import prove_order, read
from tests.programs import copy, declare, load, op, program

TILE = "[0+128, 0; 1x512]"


def tiles(count: int, hbm: int = 2) -> str:
    shared = [f"%{i} h{i}: float32[128, 512] shared_hbm" for i in range(hbm)]
    chip = [declare(hbm + i, f"t{i}", "128, 512") for i in range(count)]
    return "\n".join([*shared, *chip])


def scheduled(found: Program, serial: bool = False) -> Schedule:
    placed, graphs = allocate(found, depend(found), Reporter())
    done = schedule(placed, graphs, serial)
    assert prove_order(found, done, read(found)) == []
    return done


def streams(done: Schedule) -> str:
    """Return the streams alone, as text."""
    text = schedule_text(done)
    return text[text.index("stream ") :].rstrip()


ROUND_TRIP = "\n".join(
    [
        tiles(2),
        "core",
        "  " + load(0, f"%2{TILE}", "%0[0; 512x128, 1x512]"),
        "  " + op(1, "reciprocal", dst=f"%3{TILE}", data=f"%2{TILE}"),
        "  " + load(2, "%1[0; 512x128, 1x512]", f"%3{TILE}"),
    ]
)


def test_a_load_a_step_and_a_store() -> None:
    assert streams(scheduled(program(ROUND_TRIP))) == "\n".join(
        [
            "stream 0 vector",
            "  #1 wait 0x1 signal 1",
            "stream 0 dma0",
            "  #0 signal 0",
            "stream 0 dma4",
            "  #2 wait 1x1",
        ]
    )


def test_queue_order_needs_no_semaphore_on_an_engine_but_on_a_dma_queue() -> None:
    vector = [
        op(0, "reciprocal", dst=f"%2{TILE}", data=f"%3{TILE}"),
        copy(1, f"%4{TILE}", f"%2{TILE}"),
    ]
    text = "\n".join([tiles(3), "core", *(f"  {line}" for line in vector)])
    assert streams(scheduled(program(text))) == "stream 0 vector\n  #0\n  #1"
    away = "%1[0; 512x128, 1x512]"
    dma = [load(0, away, f"%2{TILE}"), load(1, away, f"%3{TILE}")]
    text = "\n".join([tiles(2), "core", *(f"  {line}" for line in dma)])
    assert (
        streams(scheduled(program(text), serial=True))
        == "stream 0 dma0\n  #0 signal 0\n  #1 wait 0x1"
    )


def test_loads_are_spread_over_the_queues_towards_the_chip() -> None:
    """A queue triggers a transfer when the preceding one has moved its data."""
    body = [load(i, f"%{2 + i}{TILE}", "%0[0; 512x128, 1x512]") for i in range(5)]
    done = scheduled(program("\n".join([tiles(5), "core", *(f"  {line}" for line in body)])))
    assert [(s.id.queue, len(s.items)) for s in done.cores[0]] == [(0, 2), (1, 1), (2, 1), (3, 1)]


def test_a_wait_that_another_implies_is_dropped() -> None:
    """#2 needs #0 and #1; #1 has already waited for #0."""
    body = [
        load(0, f"%2{TILE}", "%0[0; 512x128, 1x512]"),
        copy(1, f"%3{TILE}", f"%2{TILE}"),
        op(
            2,
            "tensor_tensor",
            "gpsimd",
            dst=f"%4{TILE}",
            data1=f"%2{TILE}",
            data2=f"%3{TILE}",
            op="'add'",
        ),
    ]
    done = scheduled(program("\n".join([tiles(3), "core", *(f"  {line}" for line in body)])))
    (gpsimd,) = (s for s in done.cores[0] if s.id.engine is Engine.GPSIMD)
    (slot,) = slots(gpsimd.items)
    assert len(slot.waits) == 1


def test_what_leads_to_the_longest_way_goes_first() -> None:
    """Both loads are ready at once; the load before the longer chain is issued first."""
    body = [
        load(0, f"%2{TILE}", "%0[0; 512x128, 1x512]"),
        load(1, f"%3{TILE}", "%0[0; 512x128, 1x512]"),
        op(2, "reciprocal", dst=f"%4{TILE}", data=f"%3{TILE}"),
        load(3, "%1[0; 512x128, 1x512]", f"%4{TILE}"),
    ]
    done = scheduled(program("\n".join([tiles(3), "core", *(f"  {line}" for line in body)])))
    loads = next(s for s in done.cores[0] if str(s.id) == "dma0")
    order = [s.instruction.number for s in slots(loads.items) if s.instruction]
    assert order[0] == 1


def test_no_reorder_keeps_program_order() -> None:
    body = [
        copy(0, f"%2{TILE}", f"%3{TILE}") + " pinned 1",
        op(1, "reciprocal", dst=f"%4{TILE}", data=f"%5{TILE}") + " pinned 1",
    ]
    done = scheduled(program("\n".join([tiles(4), "core", *(f"  {line}" for line in body)])))
    (vector,) = done.cores[0]
    assert [s.instruction.number for s in slots(vector.items) if s.instruction] == [0, 1]


def test_serial_orders_every_pair() -> None:
    done = scheduled(program(ROUND_TRIP), serial=True)
    assert streams(done).count(" wait ") == 2
    assert done.estimate_ns > 0


LOOP = "\n".join(
    [
        tiles(2),
        "core",
        "  " + load(0, f"%2{TILE}", "%0[0; 512x128, 1x512]"),
        "  loop 1 $0 = 0 to 4 by 1",
        "    " + op(1, "reciprocal", dst=f"%3{TILE}", data=f"%2{TILE}"),
        "    " + copy(2, f"%2{TILE}", f"%3{TILE}", "gpsimd"),
        "  end",
        "  " + load(3, "%1[0; 512x128, 1x512]", f"%2{TILE}"),
    ]
)


def test_a_device_loop_keeps_semaphores_balanced_and_is_ordered() -> None:
    done = scheduled(program(LOOP))
    loops = [item for s in done.cores[0] for item in s.items if isinstance(item, StreamLoop)]
    assert len(loops) == 2  # only vector and gpsimd
    taken: dict[int, int] = {}
    given: dict[int, int] = {}
    for loop in loops:
        for slot in slots(loop.items):
            for wait in slot.waits:
                taken[wait.semaphore] = taken.get(wait.semaphore, 0) + wait.amount
            for signal in slot.signals:
                given[signal] = given.get(signal, 0) + 1
    assert taken == given


def test_without_semaphores_for_it_turns_do_not_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams have one for each pair; overlapping iterations need additional ones."""
    made = Wiring.__init__

    def few(self: Wiring, streams: Any, graph: Any, most: int, overlaps: bool = True) -> None:
        made(self, streams, graph, 13 * 12 + 8, overlaps)

    overlapping = scheduled(program(LOOP))
    monkeypatch.setattr(Wiring, "__init__", few)
    barred = scheduled(program(LOOP))
    counts = [
        sum(len(item.items) for s in done.cores[0] for item in s.items if type(item) is StreamLoop)
        for done in (overlapping, barred)
    ]
    assert counts == [2, 6]  # a barrier is two items of each stream


@pytest.mark.parametrize("serial", [False, True])
def test_the_same_program_gives_the_same_schedule(serial: bool) -> None:
    assert streams(scheduled(program(LOOP), serial)) == streams(scheduled(program(LOOP), serial))


def test_a_program_of_nothing_keeps_no_engine_busy() -> None:
    done = scheduled(program(f"{tiles(1)}\ncore"))
    assert (done.estimate_ns, done.busiest_ns, done.is_timed) == (0.0, 0.0, True)


def test_loops_one_after_the_other_take_the_same_semaphores() -> None:
    """All signals of a loop's iterations have been waited for when it ends."""
    lines = LOOP.split("\n")
    first, end = (n for n, line in enumerate(lines) if line.strip().startswith(("loop", "end")))
    loop = "\n".join(lines[first : end + 1])
    again = loop.replace("loop 1 $0", "loop 2 $0").replace("#1 ", "#4 ").replace("#2 ", "#5 ")
    twice = "\n".join([*lines[: end + 1], again, *lines[end + 1 :]])
    once, both = (_semaphores(scheduled(program(text))) for text in (LOOP, twice))
    assert len(once) == len(both)


def _semaphores(done: Schedule) -> set[int]:
    return {s for stream in done.cores[0] for slot in slots(stream.items) for s in slot.signals}
