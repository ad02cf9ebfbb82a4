"""Test reports on a run: every figure against another way to compute it."""

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

import nkic
from nkic.artifact.events import Cause, Change, Trace
from nkic.artifact.pace import Clock
from nkic.artifact.records import Executable, InstructionRecord
from nkic.base.source import SourceFile
from nkic.machine.targets import SHORT_NAMES, Buffer, Engine
from nkic.machine.timing import Timing
from nkic.report.costs import Accounts, Box, Relation, Uses, edges, levels, live_ranges, peak
from nkic.report.critical import critical_path, spending
from nkic.report.questions import questions
from nkic.report.verdict import insight
from nkic.simulate import Result, stage
from tests.harness.traced import HEAD, executable, recorded, run, sample

SAMPLES = (
    *("01_tensor_add", "03_transpose", "06_matmul", "07_softmax", "10_attention"),
    *("11_selective_scan", "13_top8", "15_language"),
)
every_sample = pytest.mark.parametrize("name", SAMPLES)
LINE = HEAD.count("\n")  # of the head; the kernel's own line 1 follows it

NAIVE = """\
def matmul(lhsT, rhs):
    out = nl.ndarray((256, 1024), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    for m in range(0, 256, 128):
        for n in range(0, 1024, 512):
            psum = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
            for k in range(0, 512, 128):
                a = nl.ndarray((128, 128), dtype=lhsT.dtype, buffer=nl.sbuf)
                b = nl.ndarray((128, 512), dtype=rhs.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=a, src=lhsT[k : k + 128, m : m + 128])
                nisa.dma_copy(dst=b, src=rhs[k : k + 128, n : n + 512])
                nisa.nc_matmul(dst=psum, stationary=a, moving=b, accumulate=(k > 0))
            c = nl.ndarray((128, 512), dtype=lhsT.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=c, src=psum)
            nisa.dma_copy(dst=out[m : m + 128, n : n + 512], src=c)
    return out
"""
ONE_BUFFER = """\
def stream(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((128, 2048), dtype=x.dtype, buffer=nl.sbuf)
    for i in range(0, 1024, 128):
        nisa.dma_copy(dst=t, src=x[i : i + 128, :])
        nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=1.0)
        nisa.dma_copy(dst=out[i : i + 128, :], src=t)
    return out
"""
TWO_BUFFERS = ONE_BUFFER.replace(
    "    t = nl.ndarray((128, 2048), dtype=x.dtype, buffer=nl.sbuf)\n", ""
).replace(
    "        nisa.dma_copy(dst=t, src",
    "        t = nl.ndarray((128, 2048), dtype=x.dtype, buffer=nl.sbuf)\n"
    "        nisa.dma_copy(dst=t, src",
)


def naive(dtype: str = "bfloat16") -> Executable:
    return executable(NAIVE, lhsT=f"{dtype}[512,256]", rhs=f"{dtype}[512,1024]")


def answers(result: Result) -> dict[str, float]:
    """Return the gain of every possible what-if."""
    kept = recorded(result)
    path = critical_path(kept.trace)
    accounts = Accounts(kept.trace, path)
    asked = questions(accounts, path, live_ranges(accounts))
    return {one.name: 1 - kept.again(one.change) / kept.trace.end for one in asked}


# ---- the trace -----------------------------------------------------------------------------


@every_sample
def test_every_event_has_a_cause(name: str) -> None:
    trace = recorded(sample(name)).trace
    assert Cause.OTHER not in {event.cause for event in trace.events}
    assert trace.complete and trace.end == max(event.done for event in trace.events)


@every_sample
def test_events_are_those_of_the_result(name: str) -> None:
    result = sample(name)
    trace = recorded(result).trace
    busy: Counter[str] = Counter()
    for event in trace.events:
        stream = trace.streams[event.stream]
        busy[f"core{stream.core}.{stream.engine.value}"] += event.free - event.start
        if event.trigger_hold:
            busy[f"core{stream.core}.{event.triggered_by.value}"] += event.trigger_hold
    assert {n: use.busy_ns for n, use in result.engines.items() if use.busy_ns} == {
        name: pytest.approx(time / 1000) for name, time in busy.items() if time
    }
    assert sum(event.bytes for event in trace.events) == result.dma_bytes
    assert sum(event.record.row is not None for event in trace.events) == result.instructions
    assert trace.end / 1000 == result.time_ns


@every_sample
def test_a_second_run_takes_the_same_time(name: str) -> None:
    kept = recorded(sample(name))
    assert kept.again() == kept.trace.end


def test_loops_on_the_device_are_recorded_with_their_turns() -> None:
    program = executable(
        "def kernel(x):\n"
        "    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n"
        "    t = nl.load(x)\n"
        "    def body(i):\n"
        "        nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=1.0)\n"
        "    nl.fori_loop(0, 3, body)\n"
        "    nl.store(out, t)\n"
        "    return out\n",
        x="float32[128,64]",
    )
    kept = recorded(run(program))
    iterations = [
        e.iterations
        for e in kept.trace.events
        if e.record.row and e.record.row.name[-6:] == "scalar"
    ]
    assert iterations == [(0,), (1,), (2,)]
    assert kept.again() == kept.trace.end


TWO_CORES = """\
def kernel(a):
    out = nl.ndarray((256, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    core, rows = nl.program_id(0), 256 // nl.num_programs(0)
    t = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    u = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=a[core * rows : (core + 1) * rows, :])
    for i in range(core * 20 + 1):
        nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=1.0)
    nisa.sendrecv(src=t, dst=u, send_to_rank=1 - core, recv_from_rank=1 - core, pipe_id=0)
    nisa.dma_copy(dst=out[core * rows : (core + 1) * rows, :], src=u)
    nisa.core_barrier(out, (0, 1))
    return out
"""


def test_cores_that_meet() -> None:
    source = SourceFile("k.py", HEAD + TWO_CORES)
    program = nkic.compile(source, inputs={"a": "float32[256,64]"}, grid=(2,), lnc=2).executable
    kept = recorded(run(program))
    causes = [event.cause for event in kept.trace.events]
    assert Cause.RENDEZVOUS in causes and Cause.OTHER not in causes
    assert kept.again() == kept.trace.end
    path = critical_path(kept.trace)
    assert sum(part.time for part in path) == kept.trace.end
    cores = {kept.trace.streams[kept.trace.events[part.event].stream].core for part in path}
    assert cores == {0, 1}  # core 1 computes longer, but core 0 may store last
    names = {answer.name for answer in insight(kept.trace, kept.again).verdict.answers}
    assert "free-DVE" in names


def test_a_trace_that_is_too_long_says_so() -> None:
    program = naive()
    result = run(program)
    short = run(program, trace=10)
    assert not recorded(short).trace.complete and not recorded(short).can_repeat
    assert short.time_ns == result.time_ns


# ---- the critical path ---------------------------------------------------------------------


@every_sample
def test_the_path_leaves_no_gap(name: str) -> None:
    trace = recorded(sample(name)).trace
    path = critical_path(trace)
    assert path[0].start == 0 and path[-1].end == trace.end
    assert all(one.end == other.start for one, other in pairwise(path))
    assert all(part.time > 0 for part in path)
    assert sum(spending(trace, path).values()) == trace.end


@every_sample
def test_what_is_not_on_the_path_would_gain_nothing(name: str) -> None:
    """Make engines that are not on the path infinitely fast."""
    kept = recorded(sample(name))
    trace = kept.trace
    on_path = {trace.streams[trace.events[p.event].stream].engine for p in critical_path(trace)}
    for engine in {stream.engine for stream in trace.streams} - on_path:
        numbers = {
            i for i, e in enumerate(trace.events) if trace.streams[e.stream].engine is engine
        }
        assert kept.again(without_time(numbers)) == trace.end


def without_time(numbers: set[int]) -> Change:
    return Change(retimed=lambda n, event, t: Timing(0, 0) if n in numbers else t)


# ---- who waits for whom --------------------------------------------------------------------


@every_sample
def test_pairs_found_from_accesses_explain_the_whole_time(name: str) -> None:
    """With them in place of the program's semaphores, the run takes the same time."""
    kept = recorded(sample(name))
    wires = [
        (e.before, e.after)
        for e in edges(kept.trace, Uses(kept.trace.executable, kept.trace.target))
    ]
    assert kept.again(Change(wires=sorted(set(wires)))) == kept.trace.end


def test_a_tile_that_is_filled_again_waits_for_room() -> None:
    trace = recorded(run(executable(ONE_BUFFER, x="float32[1024,2048]"))).trace
    accounts = Accounts(trace, critical_path(trace))
    stalls = accounts.by_line[next(x for x in accounts.by_line if x.number == LINE + 5)].stalls
    assert stalls[Relation.MEMORY.value] > 0
    found = edges(trace, accounts.uses)
    assert sum(edge.relation is Relation.MEMORY for edge in found) == 2 * 7  # load and compute


def test_finding_who_waits_compares_no_box_with_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns of a tile: each shares bytes with no other, whether it stands before or after."""
    columns = """\
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((128, 300), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    for i in range(300):
        c = i * 7 % 300
        nisa.tensor_scalar(dst=t[:, c : c + 1], data=t[:, c : c + 1], op0=nl.add, operand0=1.0)
    nisa.dma_copy(dst=out, src=t)
    return out
"""
    trace = recorded(run(executable(columns, x="float32[128,300]"))).trace
    uses, compared, overlaps = Uses(trace.executable, trace.target), 0, Box.overlaps

    def counted(self: Box, other: Box) -> bool:
        nonlocal compared
        compared += 1
        return overlaps(self, other)

    monkeypatch.setattr(Box, "overlaps", counted)
    found = [(edge.before, edge.after) for edge in edges(trace, uses)]
    assert compared <= 300  # with the whole tile, alone
    transfers = [
        n for n, e in enumerate(trace.events) if trace.streams[e.stream].engine is Engine.DMA
    ]
    load, store = transfers[0], transfers[-1]
    assert sum(before == load for before, _ in found) == 301  # and the store
    assert any(after == store for _, after in found)


# ---- costs of lines ------------------------------------------------------------------------


@every_sample
def test_costs_of_lines_are_those_of_all_events(name: str) -> None:
    result = sample(name)
    trace = recorded(result).trace
    accounts = Accounts(trace, critical_path(trace))
    costs = accounts.by_line.values()
    assert sum(cost.executions for cost in costs) == result.instructions
    assert sum(cost.critical for cost in costs) == trace.end
    for engine, short in SHORT_NAMES.items():
        ends = f".{engine.value}"
        busy = sum(use.busy_ns for n, use in result.engines.items() if n.endswith(ends))
        held = sum(cost.busy[short] + cost.triggers[short] for cost in costs)
        assert held / 1000 == pytest.approx(busy)
    assert sum(sum(c.stalls.values()) for c in costs) == idle(trace)


def idle(trace: Trace) -> int:
    """Return how long streams were idle between their items, including the loading of tables."""
    return sum(event.start - event.idle + event.table for event in trace.events)


def test_bytes_and_operations_of_a_product() -> None:
    trace = recorded(run(naive())).trace
    accounts = Accounts(trace, [])
    by_number = {line.number - LINE: cost for line, cost in accounts.by_line.items()}
    assert by_number[9].hbm_read == 4 * 4 * 128 * 128 * 2
    assert by_number[10].hbm_read == 4 * 4 * 128 * 512 * 2
    assert by_number[14].hbm_written == 256 * 1024 * 2
    assert by_number[11].operations == 2 * 256 * 512 * 1024
    assert by_number[11].executions == 16 and by_number[11].main == "PE"


# ---- memory --------------------------------------------------------------------------------


@every_sample
def test_the_peak_is_the_most_that_is_alive(name: str) -> None:
    trace = recorded(sample(name)).trace
    found = [one for one in live_ranges(Accounts(trace, [])) if one.buffer is Buffer.SBUF]
    most = max(sum(o.bytes for o in found if o.start <= one.start < o.end) for one in found)
    assert peak(found, Buffer.SBUF).bytes == most
    assert sum(size for _, _, size in peak(found, Buffer.SBUF).owners) == most
    target = trace.executable.meta["sbuf_peak"]
    assert 0 < most <= int(target) * 128


def test_a_sum_of_what_is_open_counts_a_transfer_of_nothing() -> None:
    spans = [(0, 10, 5.0), (2, 4, 0.0), (3, 3, 9.0), (4, 10, 1.0)]
    assert levels(spans) == [(0, 5.0), (2, 5.0), (4, 6.0), (10, 0.0)]


# ---- what could be otherwise ---------------------------------------------------------------


def test_an_engine_for_nothing_is_the_run_with_such_a_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = naive()
    gains = answers(run(program))
    known = Clock.of

    def free(self: Clock, record: InstructionRecord, engine: Engine, *more: Any) -> Any:
        found, size = known(self, record, engine, *more)
        return (Timing(0, 0), size) if engine is Engine.TENSOR and record.row else (found, size)

    before = recorded(run(program)).trace.end
    monkeypatch.setattr(Clock, "of", free)
    monkeypatch.setattr(stage, "_cache", [])  # earlier runs had another clock
    assert recorded(run(program)).trace.end == pytest.approx((1 - gains["free-PE"]) * before)


def test_loading_once_is_told_with_its_bytes() -> None:
    found = insight(recorded(run(naive())).trace, recorded(run(naive())).again)
    texts = {answer.name: answer.text for answer in found.verdict.answers}
    assert texts["load-once:rhs"] == (
        "load rhs once and keep it in SBUF (1.0 MiB): 1.0 MiB are loaded again"
    )
    assert texts["load-once:lhsT,rhs"].startswith("load lhsT and rhs once and keep them in SBUF")


def test_another_buffer_gains_what_another_buffer_gains() -> None:
    """Except for the order, in which the compiler then has more choice."""
    one = run(executable(ONE_BUFFER, x="float32[1024,2048]"))
    two = run(executable(TWO_BUFFERS, x="float32[1024,2048]"))
    gains = answers(one)
    gain = gains[f"buffers:k.py:{LINE + 3}"]
    assert gain == pytest.approx(1 - two.time_ns / one.time_ns, abs=0.04)
    assert gain == gains["free-memory"] > 0.2


def test_narrow_products_take_the_time_of_bfloat16() -> None:
    gains = answers(run(naive("float32")))
    assert gains["bf16"] > 0
    assert "bf16" not in answers(run(naive("bfloat16")))


def test_no_question_gains_more_than_its_part_of_the_path() -> None:
    """Except for the tensor engine's warm-up, which changes with other times."""
    kept = recorded(sample("10_attention"))
    path = critical_path(kept.trace)
    accounts = Accounts(kept.trace, path)
    for one in questions(accounts, path, live_ranges(accounts)):
        if one.name.startswith(("free-", "load-", "long-")) and one.name != "free-memory":
            gained = kept.trace.end - kept.again(one.change)
            assert gained <= one.weight + 0.01 * kept.trace.end, one.name


# ---- the verdict ---------------------------------------------------------------------------


def test_the_verdict_names_what_binds() -> None:
    result = run(naive())
    verdict = insight(recorded(result).trace, recorded(result).again).verdict
    assert verdict.bound == "DMA triggers"
    assert verdict.hot[0].line == f"k.py:{LINE + 9}" and verdict.hot[0].engine == "DMA"
    operations = 2 * 256 * 512 * 1024
    assert verdict.mfu == pytest.approx(operations / (2 * 128 * 128 * 2.4 * result.time_ns))
    moved = 4 * 4 * 128 * (128 + 512) * 2 + 256 * 1024 * 2
    assert verdict.mbu == pytest.approx(moved / (16 * 25.3 * result.time_ns))
    assert verdict.lines[0].startswith("bound by DMA triggers: ")


@every_sample
def test_the_verdict_has_at_most_six_lines(name: str) -> None:
    kept = recorded(sample(name))
    lines = insight(kept.trace, kept.again).verdict.lines
    assert 2 < len(lines) <= 6 and not any("\n" in line for line in lines)
