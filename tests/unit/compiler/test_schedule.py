"""Test schedule with printed programs; its results are proven."""

from collections.abc import Iterator, Sequence
from itertools import product, repeat
from pathlib import Path
from random import Random
from typing import Any

import pytest

from nkic.base.diagnostics import Reporter
from nkic.compiler.allocate import _orders, allocate, joined
from nkic.compiler.depend import depend
from nkic.compiler.lower import lower
from nkic.compiler.remarks import MIN_WAIT_PS, Issue, _waits
from nkic.compiler.schedule import ListScheduler, Orderer, _Lane, schedule
from nkic.compiler.semaphores import FIRST_STREAM, Wiring, engine_of, first_users
from nkic.compiler.tight import frugal, sink
from nkic.machine.targets import TARGETS, TRN2, Buffer, Engine, Target
from nkic.machine.timing import overlaps_commands, semaphore_ps
from nkic.program.program import (
    AccessPattern,
    Edge,
    Instruction,
    Program,
    Schedule,
    StreamLoop,
    instructions,
    slots,
)
from nkic.program.text import read_program, schedule_text
from nkic.prove import prove_order, read
from tests.programs import code, copy, declare, load, op, program

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


# ------------------------------------------------------------------------------------------------
# Test when the list scheduler lets an instruction start, and which queue a transfer takes.

STAGES = Path(__file__).parents[2] / "data/stages"
TENSORS = [
    "%0 x: float32[128, 512] shared_hbm",
    *(declare(i, f"t{i}", "128, 512") for i in range(1, 6)),
]


def scheduler(*body: str) -> ListScheduler:
    """Return the scheduler of a program without loops, in which all instructions wait for the
    first.
    """
    found = program("\n".join([*TENSORS, "core", *(f"  {line}" for line in body)]))
    here = code(found)
    return begun(found, here, [[0] if index else [] for index in range(len(here))])


def begun(found: Program, here: Sequence[Instruction], waits: list[Sequence[int]]) -> ListScheduler:
    (graph, *_) = depend(found)
    orderer = Orderer(graph, found.target)
    made = ListScheduler(orderer, orderer.known(here)._replace(waits=waits))
    made.begin()
    next(made.issues())
    return made


def test_an_engine_knows_of_its_own_results_without_a_signal() -> None:
    made = scheduler(
        op(0, "reciprocal", dst=f"%1{TILE}", data=f"%2{TILE}"),
        op(1, "reciprocal", dst=f"%3{TILE}", data=f"%1{TILE}"),
        copy(2, f"%4{TILE}", f"%1{TILE}", "gpsimd"),
    )
    assert made.ready_at[1] == made.done[0]
    assert made.ready_at[2] == made.done[0] + semaphore_ps(made.orderer.target)


def test_a_queue_does_not() -> None:
    """Transfers of one queue are in progress at the same time."""
    made = scheduler(
        load(0, f"%1{TILE}", "%0[0; 512x128, 1x512]"),
        load(1, "%0[0; 512x128, 1x512]", f"%1{TILE}"),
    )
    assert made.ready_at[1] == made.done[0] + semaphore_ps(made.orderer.target)


def test_a_sum_goes_on_before_its_result_is_there() -> None:
    """A matmul that accumulates onto the same address need not wait for the first one's latency."""
    psum, other = "%1[0+128, 0; 1x512]", "%6[0+128, 0; 1x512]"
    held, moving = {"stationary": "%2[0+128, 0; 1x128]"}, {"moving": f"%3{TILE}"}
    first, adds = {"accumulate": "False"}, {"accumulate": "True"}
    sums = ["%1 sums: float32[128, 512] psum", "%6 others: float32[128, 512] psum"]
    text = [TENSORS[0], sums[0], *TENSORS[2:], sums[1], "core"]
    text += [
        op(0, "nc_matmul", "tensor", dst=psum, **held, **moving, **first),
        op(1, "nc_matmul", "tensor", dst=psum, **held, **moving, **adds),
        op(2, "nc_matmul", "tensor", dst=other, **held, **moving, **first),
    ]
    found = program("\n".join(text))
    made = begun(found, code(found), [[], [0], [0]])
    assert made.classes[0].first.latency > 0
    assert made.ready_at[1] == made.done[0] - made.classes[0].first.latency
    assert made.ready_at[2] == made.done[0]


@pytest.mark.parametrize("target", TARGETS.values(), ids=str)
def test_one_engine_triggers_the_transfers_of_all_queues(target: Target) -> None:
    """So that the queues of one direction differ only in what they still have to move."""
    assert len(set(target.queue_engines)) == 1


@pytest.mark.parametrize("seed", range(4))
def test_a_transfer_takes_the_queue_whose_data_have_moved_first(seed: int) -> None:
    rng = Random(seed)
    rows = [rng.choice([1, 16, 128]) for _ in range(30)]
    made = scheduler(
        *(load(i, f"%1[0+{n}, 0; 1x512]", f"%0[0; 512x{n}, 1x512]") if rng.random() < 0.6
          else load(i, f"%0[0; 512x{n}, 1x512]", f"%1[0+{n}, 0; 1x512]")
          for i, n in enumerate(rows)),
    )  # fmt: skip
    taken = set()
    for issues in repeat(made.issues(), len(rows) - 1):
        until = list(made.queues)
        index = next(issues)
        queues = list(made.classes[index].queues)
        queue = made.streams[index] - FIRST_STREAM[Engine.DMA]
        assert queue == min(queues, key=lambda q: (until[q], q))
        taken.add(queue)
    assert len(taken) == TRN2.dma_queues


@pytest.mark.parametrize("engine", [Engine.SYNC, Engine.SCALAR])
def test_an_engine_triggers_transfers_in_turn(engine: Engine) -> None:
    """Beside its own work, or else between its instructions."""
    assert _Lane(engine).trigger(0, 3) == 0
    for free, commanded, start, time in product(range(3), repeat=4):
        lane = _Lane(engine, free)
        lane.commanded = commanded
        begins = max(start, commanded if engine is Engine.SCALAR else free)
        assert lane.trigger(start, time) == begins
        assert (lane.commanded, lane.free) == (begins + time, max(free, begins + time))


@pytest.mark.parametrize("seed", range(20))
def test_a_table_is_first_used_where_no_way_leads_from_another_user(seed: int) -> None:
    rng = Random(seed)
    tables = {n: rng.choice(["", "exp", "gelu"]) for n in range(8)}
    waits = {n: [m for m in range(n) if rng.random() < 0.25] for n in tables}

    def before(number: int) -> set[int]:
        return {m for source in waits[number] for m in (source, *before(source))}

    users = [n for n, table in tables.items() if table]
    wanted = {n for n in users if all(tables[m] != tables[n] for m in before(n))}
    assert first_users(tables, waits) == wanted


def plainly_busiest(made: ListScheduler) -> int:
    """Find the busiest engine by a sum for each engine."""
    busy = dict.fromkeys(Engine, 0)
    for one in made.code:
        times, engine = made.orderer.timings.of(one), engine_of(one)
        if engine is not Engine.DMA:
            busy[engine] += times.hold
            continue
        busy[engine] += times.pool
        busy[times.by] += 0 if overlaps_commands(times.by) else times.trigger
    return max(busy.values())


@pytest.mark.parametrize(
    "body",
    [
        [op(0, "reciprocal", dst=f"%1{TILE}", data=f"%2{TILE}")],
        [load(i, f"%1{TILE}", "%0[0; 512x128, 1x512]") for i in range(3)],
        [
            op(0, "reciprocal", dst=f"%1{TILE}", data=f"%2{TILE}"),
            *(load(i, f"%1{TILE}", "%0[0; 512x128, 1x512]") for i in range(1, 4)),
            *(copy(i, f"%4{TILE}", f"%1{TILE}", "gpsimd") for i in range(4, 6)),
        ],
        [*(copy(i, f"%4{TILE}", f"%1{TILE}", e) for i, e in enumerate(["vector", "gpsimd"] * 2))],
    ],
)
def test_the_busiest_engine_has_the_most_to_do(body: list[str]) -> None:
    made = scheduler(*body)
    assert made.busiest() == plainly_busiest(made) > 0


@pytest.mark.parametrize("seed", [0, 1, 2, 5])
def test_the_busiest_engine_of_a_random_program_has_the_most_to_do(seed: int) -> None:
    found = lower(read_program((STAGES / f"{seed}.ir").read_text("utf-8")), Reporter())
    for body in found.cores:
        here = [*instructions(body)]
        made = begun(found, here, [[] for _ in here])
        assert made.busiest() == plainly_busiest(made) > 0


# ------------------------------------------------------------------------------------------------
# Test which instructions are delayed, in printed programs.

WHOLE = "[0+128, 0; 1x64]"
SINK_TENSORS = [declare(i, f"t{i}", "128, 64") for i in range(4)]


def order(*body: str) -> list[str]:
    """Return the instructions' names in their new order, in an SBUF that is too small."""
    found = program("\n".join([*SINK_TENSORS, "core", *(f"  {line}" for line in body)]))
    (graph,) = depend(found)
    moved, _ = sink(found.cores[0], graph, {Buffer.SBUF}, TRN2)
    return [one.row.name for one in instructions(moved)]


def other(number: int) -> str:
    """Return an instruction that is independent of the others."""
    return op(number, "memset", dst=f"%3{WHOLE}", value="0.0")


def test_a_first_write_is_put_off_until_it_is_needed() -> None:
    body = [
        op(0, "iota", "gpsimd", dst=f"%0{WHOLE}", pattern="((1, 64),)", offset="0"),
        other(1),
        other(2),
        copy(3, f"%1{WHOLE}", f"%0{WHOLE}"),
    ]
    assert order(*body) == ["memset", "memset", "iota", "tensor_copy"]


def test_what_reads_its_own_destination_stays() -> None:
    """%0 is already in use: delaying an addition to it frees nothing."""
    body = [
        op(0, "memset", dst=f"%0{WHOLE}", value="1.0"),
        op(1, "reciprocal", dst=f"%0{WHOLE}", data=f"%0{WHOLE}"),
        other(2),
        other(3),
        copy(4, f"%1{WHOLE}", f"%0{WHOLE}"),
    ]
    assert order(*body) == ["memset", "reciprocal", "memset", "memset", "tensor_copy"]


def test_what_writes_again_what_was_read_stays() -> None:
    body = [
        op(0, "memset", dst=f"%0{WHOLE}", value="1.0"),
        copy(1, f"%1{WHOLE}", f"%0{WHOLE}"),
        op(2, "reciprocal", dst=f"%0{WHOLE}", data=f"%1{WHOLE}"),
        other(3),
        other(4),
        op(
            5, "tensor_tensor", dst=f"%2{WHOLE}", data1=f"%0{WHOLE}", data2=f"%1{WHOLE}", op="'add'"
        ),
    ]
    names = order(*body)
    assert names.index("reciprocal") == 2


# ------------------------------------------------------------------------------------------------
# Test the order with the least memory in use: by a plain search, and the order among equals.

TILES = [declare(i, f"t{i}", "128, 64") for i in range(4)]


def frugal_order(*body: str, backwards: bool = False) -> list[str]:
    """Return the tensors that are written, in the new order."""
    found = program("\n".join([*TILES, "core", *body]))
    (graph,) = depend(found)
    made = frugal(found.cores[0], graph, found.target, backwards)
    assert made is not None
    return [_written(one) for one in instructions(made[0])]


def _written(one: Instruction) -> str:
    dst = one.operands[0]
    assert isinstance(dst, AccessPattern)
    return dst.tensor.name


def fill(number: int, tile: int) -> str:
    return op(number, "memset", dst=f"%{tile}{WHOLE}", value="0.0")


@pytest.mark.parametrize("backwards", [False, True])
def test_equals_stay_in_program_order_or_come_in_the_other(backwards: bool) -> None:
    wanted = ["t3", "t0", "t2", "t1"]
    body = [fill(i, int(name[1])) for i, name in enumerate(wanted)]
    assert frugal_order(*body, backwards=backwards) == (wanted[::-1] if backwards else wanted)


def test_both_orders_of_equals_are_tried() -> None:
    wanted = ["t3", "t0", "t2", "t1"]
    body = [fill(i, int(name[1])) for i, name in enumerate(wanted)]
    found = program("\n".join([*TILES, "core", *body]))
    (graph,) = depend(found)
    tried = [one for one, _ in _orders(found.cores[0], graph, [Buffer.SBUF], TRN2)]
    orders = [[_written(one) for one in instructions(each)] for each in tried]
    assert orders == [wanted, wanted, wanted[::-1]]


@pytest.mark.parametrize("backwards", [False, True])
def test_what_ends_a_tensor_comes_before_what_begins_one(backwards: bool) -> None:
    """t1 takes over from t0, t3 from t2: no two of them need to be live at the same time."""
    body = [fill(0, 0), fill(1, 2), copy(2, f"%1{WHOLE}", f"%0{WHOLE}")]
    body += [copy(3, f"%3{WHOLE}", f"%2{WHOLE}")]
    pairs = [["t0", "t1"], ["t2", "t3"]]
    wanted = pairs[::-1] if backwards else pairs
    assert frugal_order(*body, backwards=backwards) == [*wanted[0], *wanted[1]]


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize(
    ("body", "moves"),
    [
        ([fill(i, 0) for i in range(400)], True),
        ([fill(i, 0) for i in range(401)], False),
        ([fill(0, 0), f"{fill(1, 1)} pinned 1"], False),
        (["loop 1 $0 = 0 to 4 by 1", f"  {fill(0, 0)}", "end", fill(1, 1)], False),
    ],
)
def test_long_programs_loops_and_what_is_pinned_keep_their_order(
    body: list[str], moves: bool, backwards: bool
) -> None:
    found = program("\n".join([*TILES, "core", *(f"  {line}" for line in body)]))
    (graph,) = depend(found)
    assert (frugal(found.cores[0], graph, found.target, backwards) is not None) == moves


Used = tuple[int, ...]  # the tiles of an instruction; it writes the first


def drawn(seed: int) -> tuple[list[int], list[Used]]:
    """Draw the columns of a few tiles, and the users of each tile, some of them repeated."""
    rng = Random(seed)
    columns = [rng.choice([16, 32, 64]) for _ in range(5)]
    code = [tuple(rng.sample(range(5), rng.choice([1, 2, 2, 2]))) for _ in range(9)]
    return columns, code


def least(columns: list[int], code: list[Used], sign: int) -> Iterator[int]:
    """Of the ready instructions, always choose the one after which the fewest columns are in
    use.
    """
    left = set(range(len(code)))
    while left:
        ready = [n for n in left if not any(_meet(code[m], code[n]) for m in left if m < n)]
        number = min(ready, key=lambda n: (_in_use(columns, code, left - {n}), sign * n))
        left.remove(number)
        yield number


def _meet(one: Used, other: Used) -> bool:
    return one[0] in other or other[0] in one


def _in_use(columns: list[int], code: list[Used], left: set[int]) -> int:
    """Return the columns of tiles that have been used and will be used again."""
    before = {tile for n, used in enumerate(code) if n not in left for tile in used}
    return sum(columns[tile] for tile in before & {tile for n in left for tile in code[n]})


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_the_next_is_after_which_least_is_in_use(seed: int, backwards: bool) -> None:
    columns, code = drawn(seed)
    tiles = [declare(i, f"t{i}", f"128, {count}") for i, count in enumerate(columns)]
    parts = [f"%{i}[0+128, 0; 1x{count}]" for i, count in enumerate(columns)]
    body = []
    for n, (first, *rest) in enumerate(code):
        step = copy(n, parts[first], parts[rest[0]]) if rest else ""
        body.append(step or op(n, "memset", dst=parts[first], value="0.0"))
    found = program("\n".join([*tiles, "core", *body]))
    (graph,) = depend(found)
    made = frugal(found.cores[0], graph, found.target, backwards)
    assert made is not None
    wanted = [code[n] for n in least(columns, code, -1 if backwards else 1)]
    assert [_used(one) for one in instructions(made[0])] == wanted


def _used(one: Instruction) -> Used:
    names = [o.tensor.name for o in one.operands if isinstance(o, AccessPattern)]
    return tuple(int(name[1:]) for name in names)


# ------------------------------------------------------------------------------------------------
# Test sums of times in the remarks of schedule.

REMARK_TILES = "".join(f"{declare(i, name, '128, 4')}\n" for i, name in enumerate("ab"))
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
    (one,) = code(program(f"{REMARK_TILES}core\n{op(number, 'tensor_copy', dst=A, src=B)}"))
    return one
