"""One kernel on two physical cores: each core has its own body, memories and streams."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from nkic.artifact.read import read
from nkic.artifact.records import Executable, InstructionRecord, StreamRecord
from nkic.artifact.verify import verify
from nkic.base.diagnostics import ArtifactFailed, ProgramFault
from nkic.base.source import SourceFile
from nkic.compiler.compiled import CompileOptions
from nkic.compiler.pipeline import compile_source
from nkic.machine.targets import TRN2
from nkic.simulate import Result, RunOptions, simulate
from nkic.specialise.inline import parse_arg
from nkic.specialise.request import Request

KERNEL = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    out = nl.ndarray((1024, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    core, rows = nl.program_id(0), 1024 // nl.num_programs(0)
    for start in range(core * rows, (core + 1) * rows, 128):
        t = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=a[start : start + 128, :])
        nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=float(core + 1))
        nisa.dma_copy(dst=out[start : start + 128, :], src=t)
    return out
"""
DATA = np.random.default_rng(0).standard_normal((256, 64)).astype(np.float32)
TALL = np.random.default_rng(1).standard_normal((1024, 64)).astype(np.float32)


def test_each_core_does_its_half_at_the_same_time() -> None:
    found = {}
    for cores in (1, 2):
        request = Request(lnc=cores, grid=(cores,), args=dict([parse_arg("a=float32[1024,64]")]))
        done = compile_source(SourceFile("k.py", KERNEL), request, lambda *_: None)
        executable = read(done.data)
        assert executable.cores == cores
        found[cores] = simulate(executable, {"a": TALL})
    expected = TALL + np.repeat(np.array([1, 2], np.float32), 512)[:, None]
    assert np.array_equal(found[2].outputs["output_0"], expected)
    assert np.array_equal(found[1].outputs["output_0"], TALL + 1)
    assert found[2].engines["core1.vector"].instructions == 4
    assert found[2].time_ns < found[1].time_ns


ONE_ROW = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    own = nl.ds(0, nl.program_id(0))
    src, dst = a[own], out[own]
    for row in range(src.shape[0]):
        t = nl.ndarray((1, 64), dtype=a.dtype, buffer=nl.sbuf)
        nisa.dma_transpose(dst=t, src=src[row], dge_mode=nisa.dge_mode.none)
        nisa.dma_copy(dst=dst[row], src=t)
    return out
"""


def test_a_core_may_have_no_rows() -> None:
    request = Request(lnc=2, grid=(2,), args=dict([parse_arg("a=float32[1,64,1]")]))
    done = compile_source(SourceFile("k.py", ONE_ROW), request, lambda *_: None)
    data = DATA[:1, :, None]
    found = simulate(read(done.data), {"a": data})
    assert np.array_equal(found.outputs["output_0"], data)
    assert not any(busy.instructions for name, busy in found.engines.items() if "core0" in name)


HEAD = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    core, other = nl.program_id(0), 1 - nl.program_id(0)
    out = nl.ndarray((256, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=a[core * 128 : core * 128 + 128, :])
"""
SWAP = """\
    r = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.sendrecv(src=t, dst=r, send_to_rank=other, recv_from_rank=other, pipe_id=0)
    nisa.tensor_tensor(dst=r, data1=r, data2=t, op=nl.subtract)
    nisa.dma_copy(dst=out[core * 128 : core * 128 + 128, :], src=r)
    return out
"""
SWAP_AT = """\
    start = nisa.register_alloc(16)
    r = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=r, value=0.0)
    nisa.sendrecv(
        src=t[:, nl.ds(start, 32)], dst=r[:, nl.ds(start, 32)], send_to_rank=other,
        recv_from_rank=other, pipe_id=0,
    )
    nisa.dma_copy(dst=out[core * 128 : core * 128 + 128, :], src=r)
    return out
"""
HANDOVER = """\
    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=2.0)
    shared = nl.ndarray((256, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=shared[core * 128 : core * 128 + 128, :], src=t)
    nisa.core_barrier(shared, (0, 1))
    nisa.dma_copy(dst=t, src=shared[other * 128 : other * 128 + 128, :])
    nisa.dma_copy(dst=out[core * 128 : core * 128 + 128, :], src=t)
    return out
"""
ODD = (
    "deprecated",
    "read-unwritten",
    "read-never-written",
    "result-not-read",
)  # warnings that some kernels here cause
HALVES = DATA[:128], DATA[128:]


def compiled(body: str, serial: bool = False) -> Executable:
    request = Request(lnc=2, grid=(2,), args=dict([parse_arg("a=float32[256,64]")]))
    source = SourceFile("k.py", HEAD + body)
    done = compile_source(source, request, lambda *_: None, CompileOptions(serial=serial))
    assert [one for one in done.warnings if one.code.slug not in ODD] == []
    return read(done.data)


def run(body: str, serial: bool = False, data: NDArray[np.float32] = DATA) -> Result:
    return simulate(compiled(body, serial), {"a": data})


def test_cores_swap_tiles_at_run_time_offsets() -> None:
    found = run(SWAP_AT).outputs["output_0"]
    expected = np.zeros_like(DATA)
    expected[:128, 16:48], expected[128:, 16:48] = DATA[128:, 16:48], DATA[:128, 16:48]
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("serial", [False, True])
def test_cores_swap_tiles(serial: bool) -> None:
    found = run(SWAP, serial).outputs["output_0"]
    assert np.array_equal(found, np.concatenate([HALVES[1] - HALVES[0], HALVES[0] - HALVES[1]]))


@pytest.mark.parametrize("serial", [False, True])
def test_a_barrier_hands_over_what_the_other_core_wrote(serial: bool) -> None:
    found = run(HANDOVER, serial).outputs["output_0"]
    assert np.array_equal(found, 2 * np.concatenate([HALVES[1], HALVES[0]]))


def test_the_other_core_is_waited_for_however_late_it_comes() -> None:
    """Core 1 is busy for a while; core 0 still receives core 1's final value."""
    late = """\
    for _ in range(40 * core):
        nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=1.0)
"""
    soon, found = run(SWAP), run(late + SWAP)
    first, second = HALVES
    for _ in range(40):
        second = second + np.float32(1)
    assert np.array_equal(
        found.outputs["output_0"], np.concatenate([second - first, first - second])
    )
    assert found.time_ns - soon.time_ns > 40 * 64 / 0.96  # lower bound of 40 instructions


PIPES = """\
    r = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.sendrecv(t[:, 0:32], r[:, 32:64], other, other, pipe_id=core * 0)
    nisa.sendrecv(t[:, 32:64], r[:, 0:32], other, other, 1, nisa.dma_engine.gpsimd_dma)
    nisa.dma_copy(dst=out[core * 128 : core * 128 + 128, :], src=r)
    return out
"""


def test_pipes_and_the_gpsimd_engine() -> None:
    result = run(PIPES)
    swapped = np.concatenate([HALVES[1], HALVES[0]])
    assert np.array_equal(result.outputs["output_0"], np.roll(swapped, 32, axis=1))
    assert result.engines["core1.gpsimd"].instructions == 1


TWO_PIPES = """\
    r = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.sendrecv(t[:, 0:32], r[:, 32:64], other, other, pipe_id=0)
    nisa.sendrecv(t[:, 32:64], r[:, 0:32], other, other, pipe_id=1)
    nisa.dma_copy(dst=out[core * 128 : core * 128 + 128, :], src=r)
    return out
"""


def test_each_pipe_has_a_queue_from_the_last_one_down() -> None:
    queues = {
        (item.attributes[item.row.attribute_index["pipe_id"]], stream.queue)
        for stream in compiled(TWO_PIPES).streams
        for item in stream.items
        if isinstance(item, InstructionRecord) and item.row and item.row.name == "sendrecv"
    }
    last = TRN2.dma_queues - 1
    assert queues == {(0, last), (1, last - 1)}


LOOPED = """\
    r = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    def body(i):
        nisa.sendrecv(t, r, other, other, 0)
        nisa.tensor_tensor(dst=t, data1=r, data2=r, op=nl.add)
        nisa.dma_copy(dst=out[core * 128 : core * 128 + 128, :], src=t)
        nisa.core_barrier(out, (0, 1), engine=nisa.engine.sync)
        nisa.dma_copy(dst=t, src=out[other * 128 : other * 128 + 128, :])
        nisa.core_barrier(out, (0, 1), engine=nisa.engine.sync)
    nl.fori_loop(0, 5, body)
    return out
"""


def test_cores_meet_in_every_iteration_of_a_device_loop() -> None:
    """Each core doubles what it receives; the results are exchanged and exchanged back."""
    halves = [*HALVES]
    for _ in range(5):
        halves = [2 * halves[1], 2 * halves[0]]
        written = halves
        halves = [written[1], written[0]]
    result = run(LOOPED)
    assert np.array_equal(result.outputs["output_0"], np.concatenate(written))
    assert result.engines["core0.sync"].instructions == 10


UNEVEN = """\
    n = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=n, src=t[0:1, 0:1])
    count = nisa.register_alloc()
    nisa.register_load(count, n)
    r = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(r, 0.0)
    nl.fori_loop(0, count, lambda i: nisa.sendrecv(t, r, other, other, 0))
    nisa.core_barrier(out, (0, 1))
    nisa.dma_copy(dst=out[core * 128 : core * 128 + 128, :], src=r)
    return out
"""


def test_loops_that_differ_at_run_time_end_in_a_deadlock_with_both_lines() -> None:
    """Core 0 swaps three times, core 1 twice: core 0 waits to swap and core 1 at the barrier."""
    data = DATA.copy()
    data[0, 0], data[128, 0] = 3, 2
    with pytest.raises(ProgramFault) as caught:
        run(UNEVEN, data=data)
    (found,) = caught.value.diagnostics
    lines = (HEAD + UNEVEN).split("\n")
    barrier = next(i for i, line in enumerate(lines, 1) if "core_barrier" in line)
    swap = next(i for i, line in enumerate(lines, 1) if "sendrecv" in line)
    assert found.code.slug == "deadlock"
    places = {found.primary.span.line} if found.primary else set()
    assert {barrier, swap} <= places | {label.span.line for label in found.labels}
    assert found.message == "15 streams wait for signals that never come"
    assert found.notes[:2] == (  # first, what the author knows
        f"core0.dma7, at sendrecv, k.py:{swap}:38, waits for the other core, which reaches no "
        "further rendezvous",
        f"core1.gpsimd, at core_barrier, k.py:{barrier}:5, waits for the other core",
    )
    assert found.notes[3:] == ("core0.dma0 waits for a signal of core0.dma7",)
    assert [label.text for label in found.labels] == ["core1.gpsimd waits here", "called from here"]
    data[128, 0] = 3
    assert np.array_equal(run(UNEVEN, data=data).outputs["output_0"][:128], data[128:])


def without_last(executable: Executable, core: int, name: str) -> Executable:
    """Remove the last instruction of this row from one core; keep its signals."""

    def left(stream: StreamRecord) -> StreamRecord:
        items = list(stream.items)
        rows = [getattr(getattr(item, "row", None), "name", "") for item in items]
        if stream.core == core and name in rows:
            index = len(rows) - 1 - rows[::-1].index(name)
            last = items[index]
            assert isinstance(last, InstructionRecord)
            items[index] = last._replace(row=None, operands=(), attributes=())
        return stream._replace(items=tuple(items))

    return replace(executable, streams=tuple(map(left, executable.streams)))


@pytest.mark.parametrize(("body", "name"), [(SWAP, "sendrecv"), (HANDOVER, "core_barrier")])
def test_a_file_whose_cores_do_not_meet_is_refused(body: str, name: str) -> None:
    changed = without_last(compiled(body), 1, name)
    with pytest.raises(
        ArtifactFailed, match=r"core 0 waits at .* for core 1, which has no more rendezvous"
    ):
        verify(changed)
    with pytest.raises(ProgramFault, match=r"waits? for signals that never come") as caught:
        simulate(changed, {"a": DATA}, RunOptions(check_init=False))
    notes = caught.value.diagnostics[0].notes
    assert any(f", at {name}, k.py:" in note for note in notes)


def test_a_file_for_two_cores_with_other_ranks_is_refused() -> None:
    executable = compiled(SWAP)
    changed = replace(executable, streams=tuple(map(_to_itself, executable.streams)))
    with pytest.raises(ArtifactFailed, match="core 0 sends to core 1, which receives from core 1"):
        verify(changed)


def _to_itself(stream: StreamRecord) -> StreamRecord:
    """Make core 1 send to itself and receive from itself, so that core 0 has no partner."""
    items = [
        item._replace(attributes=(1, 1, *item.attributes[2:]))
        if isinstance(item, InstructionRecord)
        and item.row is not None
        and item.row.is_rendezvous
        and stream.core
        else item
        for item in stream.items
    ]
    return stream._replace(items=tuple(items))


PADDED = """\
    p = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=p[0:32, :], src=t[0:32, :])
    r = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.sendrecv(p, r, other, other, 0)
    nisa.dma_copy(dst=out[core * 128 : core * 128 + ROWS, :], src=r[0:ROWS, :])
    nisa.dma_copy(dst=out[core * 128 + ROWS : core * 128 + 128, :], src=t[ROWS:128, :])
    return out
"""


def test_what_nobody_wrote_is_swapped_as_such() -> None:
    found = run(PADDED.replace("ROWS", "32")).outputs["output_0"]
    assert np.array_equal(found[:32], HALVES[1][:32])
    assert np.array_equal(found[32:128], HALVES[0][32:])
    with pytest.raises(
        ProgramFault, match="dma_copy reads `r`, computed from uninitialised bytes of `p`"
    ):
        run(PADDED.replace("ROWS", "64"))
    nothing = PADDED.replace("ROWS", "32").replace("(dst=p[0:32", "(dst=t[0:32")
    with pytest.raises(ProgramFault, match="sendrecv reads `p` before it is written"):
        run(nothing)


INTERLEAVED = """\
    nisa.dma_copy(dst=out.ap([[64, 256], [2, 32]], offset=FIRST), src=t)
    return out
"""


@pytest.mark.parametrize(("first", "races"), [("core", False), ("0", True)])
def test_a_race_needs_a_byte_in_common(first: str, races: bool) -> None:
    """Alternate columns: the bounding boxes of the accesses overlap, the accesses do not."""
    request = Request(lnc=2, grid=(2,), args=dict([parse_arg("a=float32[256,64]")]))
    source = SourceFile("k.py", HEAD + INTERLEAVED.replace("FIRST", first))
    found = [one.code.slug for one in compile_source(source, request, lambda *_: None).warnings]
    assert ("core-race" in found) == races


def test_a_swap_orders_what_came_before_it() -> None:
    """As any rendezvous does: data that a core loaded before it can be overwritten after it."""
    body = """\
    shared = nl.ndarray((256, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=shared[core * 128 : core * 128 + 128, :], src=t)
    nisa.dma_copy(dst=t, src=shared[core * 128 : core * 128 + 128, :])
    r = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.sendrecv(t, r, other, other, 0)
    nisa.dma_copy(dst=shared[other * 128 : other * 128 + 128, :], src=r)
    nisa.core_barrier(shared, (0, 1))
    nisa.dma_copy(dst=t, src=shared[core * 128 : core * 128 + 128, :])
    nisa.dma_copy(dst=out[core * 128 : core * 128 + 128, :], src=t)
    return out
"""
    assert np.array_equal(run(body).outputs["output_0"], DATA)
