"""Test search with printed programs: never longer, never below the bound, always proven."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from nkic.base.diagnostics import CompileFailed, Reporter
from nkic.base.source import SourceFile
from nkic.cli.common import run
from nkic.cli.nkic import command
from nkic.compiler import remarks as allocated
from nkic.compiler.allocate import allocate, lifetimes_in, peak, space_of
from nkic.compiler.bound import bound
from nkic.compiler.depend import depend
from nkic.compiler.pipeline import compile_source
from nkic.compiler.schedule import Orderer, schedule
from nkic.compiler.search import (
    ScheduledProgram,
    _banks_are_shared,
    _Memory,
    _Planner,
    fit,
    plan,
    run_ns,
    search,
)
from nkic.compiler.semaphores import Timings
from nkic.machine.targets import TRN2, Buffer, Engine
from nkic.machine.timing import semaphore_ps
from nkic.program.effects import touches_of
from nkic.program.program import Program, Slot, Stream, instructions
from nkic.program.text import read_program, schedule_text
from nkic.prove import prove_addresses, prove_order, read
from nkic.specialise.inline import parse_arg
from nkic.specialise.request import Request
from tests.programs import copy, declare, load, op, program
from tests.timing.busy import most_busy

ATTENTION = Path(__file__).resolve().parents[3] / "samples" / "10_attention" / "kernel.py"
WIDE = 6144  # float32 columns: 24 KiB of each partition, so that SBUF holds eight
ROW = f"[0; {WIDE}x128, 1x{WIDE}]"
TILE = f"[0+128, 0; 1x{WIDE}]"


def pairs(count: int) -> Program:
    """Return pairs of tiles, one for the slow GpSimd and one for the fast vector engine: load,
    step, store.
    """
    head = ["%0 a: float32[128, 6144] shared_hbm", "%1 b: float32[128, 6144] shared_hbm"]
    tiles = [declare(2 + i, f"t{i}", f"128, {WIDE}") for i in range(2 * count)]
    body = []
    for i in range(2 * count):
        tile, engine = f"%{2 + i}{TILE}", "vector" if i % 2 else "gpsimd"
        body += [
            load(3 * i, tile, f"%0{ROW}"),
            op(3 * i + 1, "reciprocal", engine, dst=tile, data=tile)
            if i % 2
            else copy(3 * i + 1, tile, tile, engine),
            load(3 * i + 2, f"%1{ROW}", tile),
        ]
    return program("\n".join([*head, *tiles, "core", *(f"  {line}" for line in body)]))


def first_found(found: Program) -> ScheduledProgram:
    """Return the result of allocate and schedule without a search."""
    placed, graphs = allocate(found, depend(found), Reporter())
    return ScheduledProgram(placed, graphs, schedule(placed, graphs))


def searched(found: Program, level: int) -> ScheduledProgram:
    """Return the result of the search, proven."""
    done = search(found, lambda: depend(found), first_found(found), level)
    readings = read(found)
    assert prove_addresses(done.placed, readings) == []
    assert prove_order(found, done.schedule, readings) == []
    return done


def lower_bound(found: Program) -> float:
    (graph,) = depend(found)
    return bound(found.cores[0], graph, found.target) / 1000


def test_a_plan_beats_program_order_where_psum_is_short(tmp_path: Path) -> None:
    """Attention: eight banks for tiles that several engines pass to one another."""
    text = tmp_path / "lowered.ir"
    assert run(command, "nkic", [str(ATTENTION), f"--emit=lowered={text}"]) == 0
    lowered = read_program(text.read_text("utf-8"))
    graphs = depend(lowered)
    placed, reusing = allocate(lowered, graphs, Reporter())
    first = ScheduledProgram(placed, reusing, schedule(placed, reusing))
    one, two = (search(lowered, lambda: graphs, first, level) for level in (1, 2))
    for done in (one, two):
        assert prove_order(lowered, done.schedule, read(lowered)) == []
    least = bound(lowered.cores[0], graphs[0], lowered.target) / 1000
    assert least <= one.schedule.estimate_ns <= first.schedule.estimate_ns
    assert least <= run_ns(two) <= run_ns(one)
    assert run_ns(two) < run_ns(first)


SOFTMAX = """import nki, nki.isa as nisa, nki.language as nl


@nki.jit
def kernel(q, k, v):
    out = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm)
    x, y, z = nl.load(q), nl.load(k), nl.load(v)
    for i in range(8):
        tops = nl.ndarray((128, 2), nl.float32, buffer=nl.sbuf)
        scores = []
        for n in range(2):
            part = nl.ndarray((128, 512), nl.float32, buffer=nl.psum)
            columns = y[:, n * 512 : n * 512 + 512]
            nisa.nc_matmul(dst=part, stationary=x[:, i * 128 : i * 128 + 128], moving=columns)
            nisa.tensor_reduce(dst=tops[:, n : n + 1], op=nl.maximum, data=part, axis=1)
            scores.append(part)
        top = nl.ndarray((128, 1), nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=top, op=nl.maximum, data=tops, axis=1, negate=True)
        total = nl.ndarray((128, 64), nl.float32, buffer=nl.psum)
        powers = nl.ndarray((128, 1024), nl.bfloat16, buffer=nl.sbuf)
        for n in range(2):
            part = powers[:, n * 512 : n * 512 + 512]
            nisa.activation(dst=part, op=nl.exp, data=scores[n], bias=top)
        for j in range(8):
            turned = nl.ndarray((128, 128), nl.bfloat16, buffer=nl.psum)
            nisa.nc_transpose(dst=turned, data=powers[:, j * 128 : j * 128 + 128])
            across = nl.ndarray((128, 128), nl.bfloat16, buffer=nl.sbuf)
            nisa.tensor_copy(dst=across, src=turned)
            nisa.nc_matmul(dst=total, stationary=across, moving=z, accumulate=j > 0)
        nl.store(out[:, i * 64 : i * 64 + 64], nl.copy(total))
    return out
"""


def test_banks_for_each_place_let_turns_overlap() -> None:
    """In rotation over all banks, each iteration begins at the banks of the preceding iteration's
    last tiles.
    """
    types = ("q=float32[128, 1024]", "k=float32[128, 1024]", "v=bfloat16[128, 64]")
    request = Request(args=dict(map(parse_arg, types)), target=TRN2)
    made = compile_source(SourceFile("k.py", SOFTMAX), request, lambda name, at: None)
    lowered = made.results["lower"]
    first, done = first_found(lowered), searched(lowered, 1)
    assert done.searched is not None
    assert done.searched.kept is not None
    assert done.searched.kept.roles
    assert done.schedule.estimate_ns < 0.9 * first.schedule.estimate_ns
    assert done.schedule.estimate_ns < 1.3 * lower_bound(lowered)
    found = [
        one for one in allocated.of_allocate(done.placed, done.graphs) if one.name == "placement"
    ]
    assert [one.numbers["memory"] for one in found] == ["sbuf", "psum"]
    assert "placed in program order, oldest free slot first" in found[0].message
    assert "placed in program order, with separate banks for each" in found[1].message


@pytest.mark.parametrize("level", [1, 2])
def test_the_same_program_gives_the_same_schedule(level: int) -> None:
    found = pairs(8)
    texts = {schedule_text(searched(found, level).schedule) for _ in range(2)}
    assert len(texts) == 1


def test_what_is_near_the_bound_stays() -> None:
    found = pairs(1)
    first = first_found(found)
    done = search(found, lambda: depend(found), first, 1)
    assert done[:3] == first[:3]
    assert done.searched is not None and done.searched.tried == ()


@pytest.mark.parametrize(("over", "tries"), [(1.005, 0), (1.02, 1)])
def test_two_percent_above_the_bound_are_worth_a_trial(over: float, tries: int) -> None:
    found = pairs(2)
    first = first_found(found)
    later = replace(first.schedule, estimate_ns=over * lower_bound(found), busiest_ns=0.0)
    done = search(found, lambda: depend(found), first._replace(schedule=later), 1)
    assert done.searched is not None and len(done.searched.tried) == tries


def test_the_bound_adds_what_an_engine_cannot_overlap() -> None:
    """One load, then all of GpSimd's work in sequence, then the last store."""
    found = pairs(8)
    times, signal = Timings(found.target), semaphore_ps(found.target)
    code = list(instructions(found.cores[0]))
    load_, step, store = (times.of(one) for one in code[:3])
    total = load_.start + load_.hold + load_.latency + signal
    total += 8 * step.hold + step.latency + signal
    total += store.start + store.hold + store.latency
    assert lower_bound(found) * 1000 >= total


@pytest.mark.parametrize(("over", "asked"), [(1.005, False), (1.02, True)])
def test_the_graphs_are_asked_for_if_the_busiest_engine_does_not_bound_the_time(
    over: float, asked: bool
) -> None:
    found, calls = pairs(2), list[int]()
    first = first_found(found)
    later = replace(first.schedule, estimate_ns=over * first.schedule.busiest_ns)

    def graphs() -> Any:
        calls.append(1)
        return depend(found)

    search(found, graphs, first._replace(schedule=later), 1)
    assert bool(calls) is asked


def test_the_first_of_equals_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    found = pairs(4)
    monkeypatch.setattr("nkic.compiler.search.planned_ns", lambda _: 1e9)
    done = search(found, lambda: depend(found), first_found(found), 2)
    assert done.searched is not None and len(done.searched.tried) > 10
    assert done.searched.kept is None


def test_what_has_a_loop_or_a_fixed_address_keeps_its_order() -> None:
    text = ["%0 a: float32[128, 6144] shared_hbm", "%1 b: float32[128, 6144] shared_hbm"]
    text += [declare(2, "t", f"128, {WIDE}"), "core"]
    lines = [load(0, f"%2{TILE}", f"%0{ROW}"), load(1, f"%1{ROW}", f"%2{TILE}")]
    looped = program("\n".join([*text, "loop 1 $0 = 0 to 2 by 1", *lines, "end"]))
    fixed = program("\n".join([*text, *lines]).replace("] sbuf", "] sbuf fixed (0, 0)"))
    for found in (looped, fixed):
        first = first_found(found)
        assert search(found, partial(depend, found), first, 2) is first
    plain = program("\n".join([*text, *lines]))
    assert search(plain, lambda: depend(plain), first_found(plain), 2).searched is not None


def test_what_uses_no_memory_on_chip_is_planned_too() -> None:
    text = ["%0 a: float32[128, 6144] shared_hbm", "%1 b: float32[128, 6144] shared_hbm"]
    text += [declare(2, "t", f"128, {WIDE}"), "core", "  " + load(0, f"%1{ROW}", f"%0{ROW}")]
    text += ["  " + load(1, f"%2{TILE}", f"%1{ROW}"), "  " + load(2, f"%0{ROW}", f"%2{TILE}")]
    found = program("\n".join(text))
    (graph,) = depend(found)
    planned = plan(found.cores[0], graph, found.target, 1.0, by_program=False)
    assert planned is not None and len(planned[0]) == 3


@pytest.mark.parametrize("room", [2, 3])
def test_a_load_waits_until_the_last_user_of_a_tile_has_signalled(room: int) -> None:
    found = pairs(4)
    (graph,), (body,) = depend(found), found.cores
    target, code = found.target, [*instructions(body)]
    space = space_of(Buffer.SBUF, target)
    (lives,) = lifetimes_in(body, target, (Buffer.SBUF,))
    memory = _Memory(space, lives, (room * 4 * WIDE + 0.5) / space.capacity)
    planner = _Planner(Orderer(graph, target), code, [memory], touches_of(body, target))
    order = planner.plan()
    assert order is not None and sorted(order) == [*range(24)]
    ends = sorted(planner.done[3 * i + 2] + semaphore_ps(target) for i in range(8))
    assert [planner.ready_at[3 * i] for i in range(8)] == [0] * room + ends[: 8 - room]


@pytest.mark.parametrize(("room", "tiles"), [(9 * WIDE, 2), (8 * WIDE, 2), (8 * WIDE - 1, 1)])
def test_a_plan_keeps_within_its_share_of_memory(room: int, tiles: int) -> None:
    """With room for two tiles, a third is loaded only after the last use of one of the first
    two.
    """
    share = (room + 0.5) / TRN2.sbuf_usable
    found = pairs(4)
    (graph,) = depend(found)
    planned = plan(found.cores[0], graph, found.target, share, by_program=False)
    assert planned is not None
    live, most = set(), 0
    last = {2 + i: 3 * i + 2 for i in range(8)}
    order = [_old(one.at.span.line) for one in instructions(planned[0])]
    for number in order:
        live.add(2 + number // 3)
        most = max(most, len(live))
        live -= {tile for tile, end in last.items() if end == number}
    assert most == tiles


def _old(line: int) -> int:
    """Return the former number of the instruction on this line: after ten lines of tensors."""
    return line - 12


def test_a_tensor_larger_than_its_share_cannot_be_planned() -> None:
    found = pairs(2)
    (graph,) = depend(found)
    assert plan(found.cores[0], graph, found.target, 0.1, by_program=False) is None


@pytest.mark.parametrize("pack", [False, True])
def test_plans_are_placed_without_packing_first(
    pack: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, asked = pairs(2), list[bool | None]()

    def allocated(lowered: Program, graphs: Any, report: Reporter, *given: Any) -> Any:
        asked.append(given[1] if given else None)
        if asked[-1] is not pack:
            report.error("sbuf-overflow", "there is no room", found.tensors[0].at)
            raise CompileFailed(report.all)
        return lowered, graphs

    monkeypatch.setattr("nkic.compiler.search.allocate", allocated)
    placed, _ = fit(found, depend(found), Reporter())
    assert len(placed.cores[0]) == len(found.cores[0])
    assert asked == ([None, *[False] * 6, True] if pack else [None, False])


def test_what_no_order_has_room_for_is_said_of_the_program_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An order that could not be planned is not tried again with less memory."""
    found, shares = pairs(8), list[tuple[float, bool]]()

    def planned(_: Any, __: Any, ___: Any, share: float, by_program: bool) -> None:
        shares.append((share, by_program))

    def allocated(_: Any, __: Any, report: Reporter, *given: Any) -> None:
        report.error("sbuf-overflow", "there is no room", found.tensors[0].at)
        raise CompileFailed(report.all)

    monkeypatch.setattr("nkic.compiler.search.plan", planned)
    monkeypatch.setattr("nkic.compiler.search.allocate", allocated)
    with pytest.raises(CompileFailed) as failure:
        fit(found, depend(found), Reporter())
    assert [one.message for one in failure.value.diagnostics] == ["there is no room"]
    assert shares == [(1.0, False), (1.0, True)]


@pytest.mark.parametrize(
    ("cores", "level", "asked"), [(1, 1, False), (1, 2, False), (2, 1, False), (2, 2, True)]
)
def test_runs_are_timed_where_several_cores_may_wait(
    cores: int, level: int, asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = pairs(2)
    found = replace(found, cores=found.cores * cores)
    first, times = first_found(found), list[float]()

    def timed(scheduled: ScheduledProgram) -> float:
        times.append(scheduled.schedule.estimate_ns)
        return times[-1]

    monkeypatch.setattr("nkic.compiler.search.run_ns", timed)
    done = search(found, lambda: depend(found), first, level)
    assert bool(times) is asked and done.searched is not None
    assert done.searched.first_ns == first.schedule.estimate_ns


@pytest.mark.parametrize(
    ("sizes", "lines", "shared"),
    [
        ([512] * 8, 8, False),
        ([512] * 9, 9, True),
        ([512] * 9, 1, False),
        ([512] * 9, 2, True),
        ([513] * 4 + [1], 2, True),  # two banks each, and one
        ([513] * 4, 4, False),
        ([4096], 1, False),
    ],
)
def test_banks_are_shared_by_tiles_of_several_declarations(
    sizes: list[int], lines: int, shared: bool
) -> None:
    tensors = [
        f"%{i} p{i}: float32[128, {size}] psum @k.py:{min(i, lines - 1) + 1}:1-9:9"
        for i, size in enumerate(sizes)
    ]
    assert _banks_are_shared(program("\n".join([*tensors, "core"]))) is shared


def test_level_0_keeps_program_order_on_each_engine() -> None:
    found = pairs(4)
    placed, graphs = allocate(found, depend(found), Reporter())
    done = schedule(placed, graphs, in_order=True)
    assert prove_order(found, done, read(found)) == []
    assert _numbers(done.cores[0], Engine.GPSIMD) == [1, 7, 13, 19]
    assert _numbers(done.cores[0], Engine.VECTOR) == [4, 10, 16, 22]


def _numbers(streams: tuple[Stream, ...], engine: Engine) -> list[int]:
    (own,) = (s for s in streams if s.id.engine is engine)
    placed = [item.instruction for item in own.items if isinstance(item, Slot)]
    return [instruction.number for instruction in placed if instruction is not None]


def test_what_program_order_has_no_room_for_is_planned_to_fit() -> None:
    """Version 4 of the kernel optimisation tutorial.

    The tiles of one block are 320 KiB of each partition, but with four sums at once each tile is
    needed only during its iteration.
    """
    path = Path(__file__).resolve().parents[2] / "timing" / "products.py"
    source = SourceFile(path.name, path.read_text("utf-8"))
    words = ("turned=float32[8192,256]", "rhs=float32[8192,1024]")
    request = Request(kernel="blocked", args=dict(map(parse_arg, words)), target=TRN2)
    made = compile_source(source, request, lambda name, at: None)
    lowered = made.results["lower"]
    with pytest.raises(CompileFailed):
        allocate(lowered, depend(lowered), Reporter())
    assert TRN2.sbuf_usable >= peak(made.results["allocate"], Buffer.SBUF) > 64 * 1024


def test_the_bound_counts_triggers_of_the_engine_that_must_make_them() -> None:
    """Rows of 4 bytes take almost no time to move, but sync triggers every load."""
    head = ["%0 a: float32[128, 64] shared_hbm", "input a = %0"]
    tiles = [declare(1 + i, f"t{i}", "128, 1") for i in range(40)]
    body = [load(i, f"%{1 + i}[0+128, 0; 1x1]", f"%0[{i}; 64x128, 1x1]") for i in range(40)]
    found = program("\n".join([head[0], *tiles, head[1], "core", *(f"  {line}" for line in body)]))
    trigger = TRN2.figures["dma.trigger_hwdge_ns"]
    assert 40 * trigger < lower_bound(found) < 44 * trigger
    assert most_busy(found)[Engine.SYNC] == 40_000 * trigger


def stepped(steps: list[tuple[str, str, dict[str, str]]]) -> Program:
    """Return steps on one tile after the other: each step, by row and engine, reads the preceding
    tile.
    """
    tiles = [declare(i, f"t{i}", "128, 128") for i in range(len(steps) + 1)]
    whole = [f"%{i}[0+128, 0; 1x128]" for i in range(len(steps) + 1)]
    body = [op(0, "memset", dst=whole[0], value="1.0")]
    for i, (name, engine, more) in enumerate(steps):
        source = "src" if name == "tensor_copy" else "data"
        body.append(op(i + 1, name, engine, dst=whole[i + 1], **{source: whole[i]}, **more))
    return program("\n".join([*tiles, "core", *(f"  {line}" for line in body)]))


def activation(function: str) -> tuple[str, str, dict[str, str]]:
    return "activation", "scalar", {"op": repr(function), "bias": "None"}


def test_the_bound_has_the_tables_that_must_be_loaded() -> None:
    """Two functions of one table, and one function of another table.

    Without tables the bound is lower.
    """
    found = stepped([activation("exp"), activation("exp"), activation("sqrt")])
    one = stepped([activation("exp"), activation("exp"), activation("exp")])
    load = TRN2.figures["scalar.table_ns"]
    assert lower_bound(found) == pytest.approx(lower_bound(one) + load, abs=1)
    time = first_found(found).schedule.estimate_ns
    assert lower_bound(found) <= time < lower_bound(found) + 0.2 * load


def test_the_bound_has_a_table_whoever_of_two_loads_it() -> None:
    """Either of two independent instructions may be first, and the engine is occupied."""
    tiles = [declare(i, f"t{i}", "128, 128") for i in range(3)]
    whole = [f"%{i}[0+128, 0; 1x128]" for i in range(3)]
    body = [op(0, "memset", dst=whole[0], value="1.0")]
    for i in (1, 2):
        more = {"op": "'exp'", "bias": "None"}
        body.append(op(i, "activation", "scalar", dst=whole[i], data=whole[0], **more))
    found = program("\n".join([*tiles, "core", *(f"  {line}" for line in body)]))
    time = first_found(found).schedule.estimate_ns
    assert time > 1.5 * TRN2.figures["scalar.table_ns"]
    assert lower_bound(found) == pytest.approx(time, abs=1)


def products(count: int) -> Program:
    """Return products into one bank, one after the other."""
    tensors = [declare(0, "a", "128, 128"), declare(1, "b", "128, 512")]
    tensors.append(declare(2, "c", "128, 512", Buffer.PSUM))
    a, b, c = ("%0[0+128, 0; 1x128]", "%1[0+128, 0; 1x512]", "%2[0+128, 0; 1x512]")
    fills = ((a, "gpsimd"), (b, "vector"))
    body = [op(i, "memset", by, dst=dst, value="1.0") for i, (dst, by) in enumerate(fills)]
    for i in range(count):
        more = {"accumulate": repr(i > 0)}
        body.append(op(2 + i, "nc_matmul", "tensor", dst=c, stationary=a, moving=b, **more))
    return program("\n".join([*tensors, "core", *(f"  {line}" for line in body)]))


@pytest.mark.parametrize("count", [1, 4, 40])
def test_the_bound_knows_that_the_tensor_engine_begins_cold(count: int) -> None:
    """While the tensor engine is cold, it does only a part of the work that it does when warm."""
    found = products(count)
    assert first_found(found).schedule.estimate_ns == pytest.approx(lower_bound(found), rel=0.001)


LOOP = (
    "loop 1 $0 = 0 to 5 by 1",
    "  " + load(0, f"%2{TILE}", f"%0{ROW}"),
    "  " + copy(1, f"%3{TILE}", f"%2{TILE}"),
    "  " + load(2, f"%1{ROW}", f"%3{TILE}"),
    "end",
)


def test_the_bound_of_a_loop_counts_its_turns_and_what_goes_around() -> None:
    """Each iteration loads over the tile that the preceding iteration's copy has read."""
    head = ["%0 a: float32[128, 6144] shared_hbm", "%1 b: float32[128, 6144] shared_hbm"]
    tiles = [declare(2 + i, f"t{i}", f"128, {WIDE}") for i in range(2)]
    found = program("\n".join([*head, *tiles, "core", *(f"  {line}" for line in LOOP)]))
    timings, code = Timings(TRN2), list(instructions(found.cores[0]))
    into, step, _ = (timings.of(one) for one in code)
    iteration = sum(t.start + t.hold + t.latency for t in (into, step)) + 2 * semaphore_ps(TRN2)
    least, took = lower_bound(found) * 1000, first_found(found).schedule
    assert least >= 5 * iteration
    assert least <= run_ns(ScheduledProgram(took.program, (), took)) * 1000 < 1.4 * least
    assert most_busy(found)[Engine.VECTOR] == 5 * step.hold
