"""Test limits, patterns, roundings and times to the last unit.

Each of these was once changed by one in the code, and only tests of golden text noticed.
"""

from dataclasses import replace

import pytest

from nkic.artifact.records import (
    Executable,
    InstructionRecord,
    LoopRecord,
    PatternRecord,
    StreamRecord,
    TensorRecord,
)
from nkic.artifact.verify import Unsound, pattern_problem, verify, verify_rendezvous
from nkic.base.diagnostics import ArtifactFailed, Reporter
from nkic.compiler.allocate import allocate
from nkic.compiler.check_memory import check_rendezvous
from nkic.compiler.depend import depend
from nkic.compiler.lower import lower
from nkic.compiler.races import races
from nkic.compiler.schedule import schedule
from nkic.machine.dtypes import DTYPES
from nkic.machine.instructions import ROWS
from nkic.machine.operands import Register
from nkic.machine.targets import TRN2, Buffer, Engine
from nkic.machine.timing import semaphore_ps, timing
from nkic.program.effects import touches_of
from nkic.program.program import Program
from nkic.prove import read
from nkic.prove.model import READ, UPDATE, WRITE
from nkic.simulate import RunOptions, simulate
from tests.programs import code, declare, load, op, program
from tests.unit.instances import Case, tile
from tests.unit.simulate.test_machine import DATA, HBM, TILE, build

# Rules


@pytest.mark.parametrize("columns", [128, 129])
def test_the_array_holds_128_columns(columns: int) -> None:
    message = "`stationary` has 129 elements per partition; trn2 takes at most 128"
    Case(
        "nc_matmul",
        {
            "stationary": tile(f"bfloat16[128, {columns}]"),
            "moving": tile("bfloat16[128, 512]"),
            "dst": tile("float32[128, 512] psum"),
        },
        message if columns > 128 else "",
        "tile-size" if columns > 128 else "",
    ).holds()


# The verifier's bounds

BYTES = TensorRecord("t", DTYPES["uint8"], (2, 16), Buffer.SBUF, 0, "internal", 0, 0)


@pytest.mark.parametrize(
    ("offset", "dims", "good"),
    [
        (0, ((1, 16),), True),
        (0, ((1, 17),), False),  # one byte too many
        (1, ((1, 16),), False),
        (15, ((-1, 16),), True),
        (14, ((-1, 16),), False),  # one byte before the first
        (-1, ((1, 1),), False),
        (15, ((1, 1),), True),
        (16, ((1, 1),), False),
        (0, ((15, 2),), True),
        (0, ((16, 2),), False),
    ],
)
def test_an_access_ends_with_its_tensor(
    offset: int, dims: tuple[tuple[int, int], ...], good: bool
) -> None:
    found = pattern_problem(PatternRecord(0, DTYPES["uint8"], 0, 2, offset, dims), BYTES, 1 << 20)
    assert (not found) == good, found


@pytest.mark.parametrize(("start", "partitions", "good"), [(0, 2, 1), (1, 2, 0), (-1, 1, 0)])
def test_an_access_ends_with_its_partitions(start: int, partitions: int, good: int) -> None:
    pattern = PatternRecord(0, DTYPES["uint8"], start, partitions, 0, ((1, 1),))
    assert (not pattern_problem(pattern, BYTES, 1 << 20)) == bool(good)


# Trip counts of loops


def in_a_loop(start: int, stop: int, step: int) -> str:
    barrier = op(0, "core_barrier", "gpsimd", data="%0[0; 1x4]", cores="(0, 1)")
    return f"core\n  loop 1 $0 = {start} to {stop} by {step}\n    {barrier}\n  end"


def rendezvous(first: tuple[int, int, int], second: tuple[int, int, int]) -> Program:
    head = "%0 h: float32[4] shared_hbm\n"
    return program(head + in_a_loop(*first) + "\n" + in_a_loop(*second))


def record(start: int, stop: int, step: int) -> LoopRecord:
    return LoopRecord(1, Register(0), start, stop, step, None, -1)


TRIPS = [
    ((0, 5, 2), (0, 6, 2), True),  # three times
    ((0, 5, 2), (0, 4, 2), False),  # three and two
    ((0, 5, 2), (1, 4, 1), True),
    ((3, 4, 5), (0, 1, 1), True),  # once
    ((3, 4, 5), (0, 2, 1), False),
    ((4, 4, 1), (9, 2, 3), True),  # never
    ((0, 1, 2), (0, 0, 2), False),
]


@pytest.mark.parametrize(("first", "second", "same"), TRIPS)
def test_a_started_step_is_a_whole_trip(
    first: tuple[int, int, int], second: tuple[int, int, int], same: bool
) -> None:
    report = Reporter()
    check_rendezvous(rendezvous(first, second), report)
    assert (not report.errors) == same
    assert (record(*first).trips == record(*second).trips) == same
    assert [record(*one).trips for one in (first, second)] == [
        len(range(*one)) for one in (first, second)
    ]


@pytest.mark.parametrize(("first", "second", "same"), TRIPS)
def test_the_verifier_counts_trips_alike(
    first: tuple[int, int, int], second: tuple[int, int, int], same: bool
) -> None:
    tensor = TensorRecord("h", DTYPES["float32"], (4,), Buffer.SHARED_HBM, -1, "internal", 0, 0)
    access = PatternRecord(0, DTYPES["float32"], 0, 0, 0, ((1, 4),))
    barrier = InstructionRecord(ROWS["core_barrier"], (access,), ((0, 1),), (), (), -1)
    streams = tuple(
        StreamRecord(core, Engine.GPSIMD, 0, (record(*loop), barrier))
        for core, loop in enumerate((first, second))
    )
    found = Executable("t", "trn2", 2, 0, 1, (tensor,), (), (), streams)
    if same:
        verify_rendezvous(found, TRN2)
        verify(found)
    else:
        with pytest.raises(ArtifactFailed, match="around a rendezvous runs"):
            verify(found)


def test_cores_that_meet_for_different_instructions_are_refused() -> None:
    tensor = TensorRecord("h", DTYPES["float32"], (4,), Buffer.SHARED_HBM, -1, "internal", 0, 0)
    access = PatternRecord(0, DTYPES["float32"], 0, 0, 0, ((1, 4),))
    records = [
        InstructionRecord(ROWS[name], (access,), ((0, 1),), (), (), -1)
        for name in ("core_barrier", "sendrecv")
    ]
    for one, other in (records, reversed(records)):
        streams = tuple(
            StreamRecord(core, Engine.GPSIMD, 0, (item,)) for core, item in enumerate((one, other))
        )
        found = Executable("t", "trn2", 2, 0, 1, (tensor,), (), (), streams)
        with pytest.raises(Unsound, match=r"^gpsimd: core 0 reaches \w+ here, but core 1 \w+"):
            verify_rendezvous(found, TRN2)


# Effects of instructions on their operands

MATMUL = """
%0 a: bfloat16[128, 128] sbuf
%1 b: bfloat16[128, 512] sbuf
%2 c: float32[128, 512] psum
core
  {}
"""


def matmul(accumulate: str) -> str:
    return op(
        0,
        "nc_matmul",
        "tensor",
        dst="%2[0+128, 0; 1x512]",
        stationary="%0[0+128, 0; 1x128]",
        moving="%1[0+128, 0; 1x512]",
        accumulate=accumulate,
    )


@pytest.mark.parametrize(("accumulate", "reads"), [("True", True), ("False", False)])
def test_a_matmul_reads_its_result_if_it_accumulates(accumulate: str, reads: bool) -> None:
    found = program(MATMUL.format(matmul(accumulate)))
    (one,) = code(found)
    touches = touches_of(found.cores[0], found.target)[one.number]
    (dst,) = (t for t in touches if t.pattern.tensor.number == 2)
    assert (dst.reads, dst.writes) == (reads, True)
    assert touches[-1] is dst  # reads come first
    (reading,) = read(found)
    modes = {storage: mode for _, mode, storage in reading.touches[one.number]}
    assert modes == {0: READ, 1: READ, 2: UPDATE if reads else WRITE}


def test_a_barrier_stands_between_all_that_comes_before_and_after() -> None:
    found = rendezvous((0, 1, 1), (0, 1, 1))
    (one,) = code(found)
    (touch,) = touches_of(found.cores[0], found.target)[one.number]
    assert (touch.reads, touch.writes) == (True, True)
    (reading, _) = read(found)
    assert [mode for _, mode, _ in reading.touches[one.number]] == [UPDATE]


# Engines


def test_equal_operands_with_other_attributes_may_need_another_engine() -> None:
    def line(number: int, operator: str, operand: str) -> str:
        return op(
            number,
            "tensor_scalar",
            "any",
            dst="%1[0+128, 0; 1x64]",
            data="%0[0+128, 0; 1x64]",
            op0=f"'{operator}'",
            operand0=operand,
        )

    head = [declare(i, f"t{i}", "128, 64") for i in range(2)]
    body = [line(0, "add", "1.0"), line(1, "rsqrt", "1.0"), line(2, "add", "1.0")]
    found = lower(program("\n".join([*head, "core", *(f"  {b}" for b in body)])), Reporter())
    assert [one.engine for one in code(found)] == [Engine.VECTOR, Engine.GPSIMD, Engine.VECTOR]


# Times


def test_a_signal_takes_its_time() -> None:
    """An item that waits for a signal starts 20 ns after it."""
    lines = [
        load(0, f"%2{TILE}", f"%0{HBM}"),
        op(1, "tensor_scalar", dst=f"%3{TILE}", data=f"%2{TILE}", op0="'add'", operand0="1.0"),
        load(2, f"%1{HBM}", f"%3{TILE}"),
    ]
    executable = build(*lines)
    together = simulate(executable, {"x": DATA}).time_ns
    alone = [
        simulate(replace(executable, streams=(bare(stream),)), {"x": DATA}, UNCHECKED).time_ns
        for stream in executable.streams
    ]
    assert len(alone) == 3
    assert together == pytest.approx(sum(alone) + 2 * 20, abs=1e-6)
    assert semaphore_ps(TRN2) == 20_000


UNCHECKED = RunOptions(check_init=False)


def bare(stream: StreamRecord) -> StreamRecord:
    """Return a stream that waits for no other."""
    items = [i._replace(waits=()) for i in stream.items if isinstance(i, InstructionRecord)]
    return stream._replace(items=tuple(items))


WIDE = 128 * 8192


def transfers(count: int) -> Executable:
    """Return large transfers, each on its own queue."""
    tensor = TensorRecord("h", DTYPES["float32"], (WIDE,), Buffer.HBM, 0, "internal", 0, 0)
    row = ROWS["dma_copy"]
    streams = []
    for queue in range(count):
        values = {
            name: PatternRecord(2 * queue + at, DTYPES["float32"], 0, 0, 0, ((1, WIDE),))
            for at, name in enumerate(("dst", "src"))
        }
        operands = tuple(values.get(o.name, o.default) for o in row.operands)
        attributes = tuple(a.default for a in row.attributes)
        item = InstructionRecord(row, operands, attributes, (), (), -1)
        streams.append(StreamRecord(0, Engine.DMA, queue, (item,)))
    tensors = (tensor,) * (2 * count)
    return Executable("t", "trn2", 1, 0, 0, tensors, (), (), tuple(streams))


def test_transfers_of_all_queues_share_the_engines() -> None:
    """Their data move one after the other, and their fixed latencies overlap."""
    found = transfers(8)
    one, eight = (simulate(transfers(n), {}, UNCHECKED).time_ns for n in (1, 8))
    item = found.streams[0].items[0]
    assert isinstance(item, InstructionRecord)
    facts = found.facts(item, TRN2, Engine.DMA)
    pool = timing(ROWS["dma_copy"], facts, Engine.DMA).pool / 1000
    assert pool > 0.1 * one
    assert eight == pytest.approx(one + 7 * pool, abs=1e-6)


# Races of two cores


@pytest.mark.parametrize("together", [True, False])
def test_an_engine_knows_what_it_did_before_it_met_the_other_core(together: bool) -> None:
    barrier = op(1, "core_barrier", "sync", data="%0[0; 1x4]", cores="(0, 1)")
    reads = op(0, "register_load", "sync", dst="$0", src="%0[0; 1x1]")
    writes = load(2, "%0[0; 1x4]", "%1[0; 1x4]")
    first, second = ([reads, barrier], [barrier, writes]) if together else ([reads], [writes])
    text = ["%0 h: int32[4] shared_hbm", "%1 w: int32[4] shared_hbm"]
    for body in (first, second):
        text += ["core", *(f"  {line}" for line in body)]
    found = program("\n".join(text))
    placed, graphs = allocate(found, depend(found), Reporter())
    assert len(races(schedule(placed, graphs))) == (not together)
