"""The runner: order, time, written bytes, loops. Programs are printed IR, emitted and executed."""

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nkic.artifact.records import (
    Executable,
    InstructionRecord,
    LoopRecord,
    StreamRecord,
    source_of,
)
from nkic.artifact.verify import verify
from nkic.base.diagnostics import LimitHit, ProgramFault, Reporter
from nkic.compiler.allocate import allocate
from nkic.compiler.depend import depend
from nkic.compiler.emit import emit
from nkic.compiler.schedule import schedule
from nkic.machine.instructions import ROWS
from nkic.machine.operands import Register
from nkic.machine.targets import TRN2, Engine
from nkic.simulate import Result, RunOptions, machine, simulate
from nkic.simulate.machine import CycleLimit, outside_group
from tests.programs import copy, declare, load, op, program

TILE = "[0+128, 0; 1x64]"
HBM = "[0; 64x128, 1x64]"
DATA = np.arange(128 * 64, dtype=np.float32).reshape(128, 64)


def build(*body: str, chip: int = 3, serial: bool = False) -> Executable:
    """Return an executable: %0 is x, %1 output_0, %2 … tiles in SBUF, all 128 x 64 float32."""
    tensors = [f"%{i} {n}: float32[128, 64] shared_hbm" for i, n in enumerate("xy")]
    tensors += [declare(2 + i, f"t{i}", "128, 64") for i in range(chip)]
    text = [*tensors, "input x = %0", "output output_0 = %1", "core", *(f"  {b}" for b in body)]
    found = program("\n".join(text))
    placed, graphs = allocate(found, depend(found), Reporter())
    executable = emit(schedule(placed, graphs, serial), {})
    verify(executable)
    return executable


def run(executable: Executable, **options: Any) -> Result:
    return simulate(executable, {"x": DATA}, RunOptions(**options))


def output(executable: Executable) -> NDArray[np.generic]:
    return run(executable).outputs["output_0"]


ROUND_TRIP = (
    load(0, f"%2{TILE}", f"%0{HBM}"),
    op(1, "tensor_scalar", dst=f"%3{TILE}", data=f"%2{TILE}", op0="'multiply'", operand0="2.0"),
    load(2, f"%1{HBM}", f"%3{TILE}"),
)


def test_values_and_time_of_a_round_trip() -> None:
    result = run(build(*ROUND_TRIP))
    assert np.array_equal(result.outputs["output_0"], DATA * 2)
    # Two transfers of 1.3 us plus their data, and one vector instruction of about 0.2 us.
    assert 3_000 < result.time_ns < 3_600
    assert result.cycles == int(np.ceil(result.time_ns * 1.2))
    assert result.dma_bytes == 2 * DATA.nbytes
    assert result.engines["core0.vector"].instructions == 1


def test_inputs_are_not_written() -> None:
    data = DATA.copy()
    executable = build(*ROUND_TRIP)
    simulate(executable, {"x": data})
    assert np.array_equal(data, DATA)


def test_an_input_updated_in_place_leaves_the_callers_array_alone() -> None:
    body = (
        load(0, f"%2{TILE}", f"%0{HBM}"),
        copy(1, f"%3{TILE}", f"%2{TILE}"),
        load(2, f"%0{HBM}", f"%3{TILE}"),
    )
    data = DATA.copy()
    simulate(build(*body), {"x": data})
    assert np.array_equal(data, DATA)


def test_reading_what_nobody_wrote_is_a_fault_with_both_places() -> None:
    executable = build(copy(0, f"%3{TILE}", f"%2{TILE}"), load(1, f"%1{HBM}", f"%3{TILE}"))
    with pytest.raises(ProgramFault) as caught:
        run(executable)
    (found,) = caught.value.diagnostics
    assert found.code.slug == "uninitialised-read"
    assert "tensor_copy reads `t0` before it is written" in found.message
    assert found.primary is not None and str(found.primary.span).startswith("k.py:")
    assert any("`t0` is declared here" in label.text for label in found.labels)


def test_half_written_is_not_written() -> None:
    half = "[0+128, 0; 1x32]"
    body = (load(0, f"%2{half}", "%0[0; 64x128, 1x32]"), load(1, f"%1{HBM}", f"%2{TILE}"))
    with pytest.raises(ProgramFault, match="1 of the 2 parts"):
        run(build(*body))
    assert run(build(*body), check_init=False).instructions == 2


def test_bytes_of_a_former_owner_are_not_written() -> None:
    """%3 is at %2's former address, and is read before it is written."""
    body = (
        load(0, f"%2{TILE}", f"%0{HBM}"),
        load(1, f"%1{HBM}", f"%2{TILE}"),
        copy(2, f"%4{TILE}", f"%3{TILE}"),
    )
    executable = build(*body, serial=True)
    tensors = [t._replace(byte=0) if t.name in ("t0", "t1") else t for t in executable.tensors]
    with pytest.raises(ProgramFault, match="reads `t1`"):
        run(replace(executable, tensors=tuple(tensors)))


LOOP = (
    load(0, f"%2{TILE}", f"%0{HBM}"),
    "loop 1 $0 = 0 to 10 by 3",
    "  " + op(1, "tensor_scalar", dst=f"%2{TILE}", data=f"%2{TILE}", op0="'add'", operand0="1.0"),
    "  loop 2 $1 = 0 to 2 by 1",
    "    "
    + op(
        2,
        "tensor_scalar",
        "gpsimd",
        dst=f"%3{TILE}",
        data=f"%2{TILE}",
        op0="'rsqrt'",
        operand0="None",
    ),
    "  end",
    "end",
    load(3, f"%1{HBM}", f"%2{TILE}"),
)


def test_nested_device_loops_run_as_often_as_they_say() -> None:
    executable = build(*LOOP)
    result = run(executable)
    assert np.array_equal(result.outputs["output_0"], DATA + 4)  # iterations 0, 3, 6, 9
    assert result.engines["core0.vector"].instructions == 4
    assert result.engines["core0.gpsimd"].instructions == 8


def test_a_loop_takes_as_long_as_its_iterations() -> None:
    once = run(build(*(line.replace("to 10 by 3", "to 1 by 1") for line in LOOP))).time_ns
    four = run(build(*LOOP)).time_ns
    assert four > once + 2.5 * 400  # each iteration runs one vector and two gpsimd instructions


def stream(executable: Executable, name: str) -> StreamRecord:
    return next(s for s in executable.streams if s.name == name)


def with_items(
    executable: Executable, name: str, items: list[InstructionRecord | LoopRecord]
) -> Executable:
    streams = [s._replace(items=tuple(items)) if s.name == name else s for s in executable.streams]
    return replace(executable, streams=tuple(streams))


def test_a_deadlock_names_who_waits_for_what() -> None:
    executable = build(*ROUND_TRIP)
    loads = [
        i._replace(signals=()) if isinstance(i, InstructionRecord) else i
        for i in stream(executable, "core0.dma0").items
    ]
    with pytest.raises(ProgramFault) as caught:
        run(with_items(executable, "core0.dma0", loads))
    (found,) = caught.value.diagnostics
    assert found.code.slug == "deadlock"
    assert found.notes == (
        "core0.vector, at tensor_scalar, k.py:10:1, waits for a signal that never comes",
    )


def test_a_deadlock_names_the_next_instruction_that_would_signal() -> None:
    """The load waits for what the vector engine signals after it."""
    executable = build(*ROUND_TRIP)
    (load_,) = stream(executable, "core0.dma0").items
    assert isinstance(load_, InstructionRecord)
    waiting = load_._replace(waits=((1, 1),))
    last = waiting._replace(row=None, operands=(), attributes=(), place=2)
    for items in ([waiting], [load_._replace(signals=()), waiting, last]):
        with pytest.raises(ProgramFault, match="3 streams wait") as caught:
            run(with_items(executable, "core0.dma0", [*items]))
        assert set(caught.value.diagnostics[0].notes) == {
            "core0.vector, at tensor_scalar, k.py:10:1, waits for dma_copy of core0.dma0 "
            "(k.py:9:1)",
            "core0.dma0, at dma_copy, k.py:9:1, waits for tensor_scalar of core0.vector "
            "(k.py:10:1)",
        }


def test_a_deadlock_names_the_last_instruction_that_has_signalled() -> None:
    executable = build(*ROUND_TRIP)
    (vector,) = stream(executable, "core0.vector").items
    (load_,) = stream(executable, "core0.dma0").items
    assert isinstance(load_, InstructionRecord) and isinstance(vector, InstructionRecord)
    loads: list[InstructionRecord | LoopRecord] = [load_, load_._replace(place=6)]
    found = with_items(executable, "core0.dma0", loads)
    with pytest.raises(ProgramFault, match="2 streams wait") as caught:
        run(with_items(found, "core0.vector", [vector._replace(waits=((0, 3),))]))
    (one,) = caught.value.diagnostics
    assert "waits for dma_copy of core0.dma0 (k.py:11:1)" in one.notes[0]


def test_a_deadlock_at_an_empty_slot_names_the_next_instruction_or_no_line() -> None:
    executable = build(*ROUND_TRIP)
    (load_,) = stream(executable, "core0.dma0").items
    assert isinstance(load_, InstructionRecord)
    slot = load_._replace(row=None, operands=(), attributes=(), place=-1, signals=())
    slot = slot._replace(waits=((1, 9),))
    first = load_._replace(place=0)
    place = f", at {source_of(executable, 0)},"
    cases = (([load_, slot], ""), ([slot, load_], ", at k.py:9:1,"), ([slot, first], place))
    for items, told in cases:
        with pytest.raises(ProgramFault) as caught:
            run(with_items(executable, "core0.dma0", [*items]))
        notes = caught.value.diagnostics[0].notes
        assert any(note.startswith(f"core0.dma0{told} waits for ") for note in notes), notes


def test_an_endless_loop_meets_the_cycle_limit() -> None:
    executable = build(*LOOP)
    endless = Register(5)
    items = [
        i._replace(stop=endless) if isinstance(i, LoopRecord) else i
        for i in stream(executable, "core0.vector").items
    ]
    assert any(isinstance(i, LoopRecord) for i in items)
    with pytest.raises(LimitHit, match="1,000 cycles"):
        run(executable, max_cycles=1000)


def test_an_endless_loop_of_one_stream_meets_the_time_limit() -> None:
    """Its iterations run instructions, or only another loop without iterations."""
    executable = build(*LOOP)
    vector = stream(executable, "core0.vector").items
    loop = next(i for i in vector if isinstance(i, LoopRecord))
    step = next(i for i in vector if isinstance(i, InstructionRecord) and i.row is not None)
    endless = loop._replace(counter=None, condition=Register(0), length=1)
    start = InstructionRecord(ROWS["register_move"], (Register(0), 1), (), (), (), -1)
    nothing = loop._replace(counter=Register(1), start=0, stop=0, length=1)
    body = step._replace(waits=(), signals=())
    items: tuple[InstructionRecord | LoopRecord, ...]
    for items in ((endless, body), (endless._replace(length=2), nothing, body)):
        alone = replace(
            executable,
            streams=(StreamRecord(0, Engine.VECTOR, 0, (start, *items)),),
            registers=2,
        )
        with pytest.raises(LimitHit, match=r"longer than 0\.2 s") as caught:
            run(alone, timeout_s=0.2, check_init=False)
        (note,) = caught.value.diagnostics[0].notes
        assert re.fullmatch(r"this loop had run [1-9][\d,]{2,} times", note)


def test_a_program_without_loops_meets_the_time_limit() -> None:
    with pytest.raises(LimitHit, match="longer than 0 s") as caught:
        run(build(*ROUND_TRIP), timeout_s=0)
    assert caught.value.diagnostics[0].notes == ()


@pytest.mark.parametrize(
    ("value", "loop", "more"),
    [("None", "loop 1 $0 = 0 to $5 by 1", ()), ("1", "loop 1 while $5", ("None",))],
)
def test_a_loop_whose_register_nothing_has_set_is_named(
    value: str, loop: str, more: tuple[str, ...]
) -> None:
    """It is not set where the loop begins, or no longer where it ends."""

    def made(number: int, given: str) -> str:
        return op(number, "register_alloc", dst="$5", x=given)

    add = op(2, "tensor_scalar", dst=f"%2{TILE}", data=f"%2{TILE}", op0="'add'", operand0="1.0")
    inside = [add, *(made(3, given) for given in more)]
    body = [load(0, f"%2{TILE}", f"%0{HBM}"), made(1, value), loop, *inside, "end"]
    with pytest.raises(ProgramFault, match="a register is read before") as caught:
        run(build(*body, load(4, f"%1{HBM}", f"%2{TILE}")))
    (found,) = caught.value.diagnostics
    assert found.primary is not None and found.primary.span.line == 11  # after eight lines


def test_a_limit_of_cycles_is_the_last_that_may_be_reached() -> None:
    limit = CycleLimit(build(*ROUND_TRIP), 1000, TRN2)
    item: Any = SimpleNamespace(record=SimpleNamespace(place=-1))
    at_the_limit: Any = SimpleNamespace(done=limit.limit_ps)
    limit.end(at_the_limit, item, 0)
    beyond: Any = SimpleNamespace(done=limit.limit_ps + 1)
    with pytest.raises(LimitHit, match="1,000 cycles"):
        limit.end(beyond, item, 0)
    assert limit.limit_ps == 1000 * 1_000_000 // TRN2.base_clock_mhz


def test_a_run_is_watched_at_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = {}
    for interval in (1, 2, 5):
        seen: list[int] = []
        monkeypatch.setattr(machine, "WATCH_INTERVAL", interval)
        run(build(*LOOP), watch=seen.append, check_init=False)
        counts[interval] = len(seen)
        assert seen == sorted(seen) and seen[-1] <= 14  # instructions
    # 14 instructions and 4 + 8 iterations; other items wait or signal alone
    assert counts[1] >= 26
    assert [counts[2], counts[5]] == [counts[1] // 2, counts[1] // 5]


@pytest.mark.parametrize(("ranks", "text"), [(8, "0, 1, 2, 3, 4, 5, 6, 7"), (9, "0 to 8")])
def test_the_ranks_of_a_group_are_listed(ranks: int, text: str) -> None:
    (found,) = outside_group(build(*ROUND_TRIP), -1, 0, range(ranks), 2).diagnostics
    assert found.message == f"the collective is for the ranks {text}, and 2 are run"
    assert found.help.startswith(f"run {ranks} ranks")


def test_the_same_run_twice() -> None:
    first, second = run(build(*LOOP)), run(build(*LOOP))
    assert first.time_ns == second.time_ns and first.engines == second.engines
    assert np.array_equal(first.outputs["output_0"], second.outputs["output_0"])


def test_a_copy_onto_itself_reads_before_it_writes() -> None:
    """The operands overlap with different strides: copyto alone would read overwritten elements."""
    row = "%2[0+1, 0; "
    body = (
        load(0, f"%2{TILE}", f"%0{HBM}"),
        copy(1, f"{row}2x3]", f"{row}1x3]"),
        load(2, f"%1{HBM}", f"%2{TILE}"),
    )
    found = output(build(*body))
    assert found[0, :6].tolist() == [0, 1, 1, 3, 2, 5]
