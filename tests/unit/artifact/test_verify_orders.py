"""Test `nki-run --race-check` within one core: accesses that nothing in the file orders."""

from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkic
from nkic.artifact.encode import write
from nkic.artifact.records import Executable, InstructionRecord, PatternRecord, TensorRecord
from nkic.artifact.verify import verify, verify_ordered
from nkic.artifact.verify_orders import _area, _whole
from nkic.base.diagnostics import ArtifactFailed, ProgramFault
from nkic.machine.dtypes import DTYPES
from nkic.machine.targets import Buffer
from nkic.simulate import RunOptions, simulate
from tests.cli.nki_run_fixtures import artifact, folder, nki
from tests.harness.commands import Run
from tests.harness.proofs import make, slots, with_stream
from tests.programs import copy, declare, load, op, program

__all__ = ["artifact", "folder", "nki"]  # fixtures
TILE, HBM = "[0+128, 0; 1x512]", "[0; 512x128, 1x512]"
HEAD = [
    *(f"%{i} h{i}: float32[128, 512] shared_hbm" for i in range(2)),
    *(declare(2 + i, f"t{i}", "128, 512") for i in range(2)),
    "%4 word: int32[1, 1] shared_hbm",
    "input x = %0",
    "input word = %4",
    "output output_0 = %1",
    "core",
]
STRAIGHT = [
    load(0, f"%2{TILE}", f"%0{HBM}"),
    op(1, "reciprocal", dst=f"%3{TILE}", data=f"%2{TILE}"),
    copy(2, f"%2{TILE}", f"%3{TILE}", "gpsimd"),
    load(3, f"%1{HBM}", f"%2{TILE}"),
]
LOOP = [
    op(0, "register_load", "sync", dst="$1", src="%4[0; 1x1]"),
    load(1, f"%2{TILE}", f"%0{HBM}"),
    "loop 1 $0 = 0 to $1 by 1",
    "  " + op(2, "reciprocal", dst=f"%3{TILE}", data=f"%2{TILE}"),
    "  " + copy(3, f"%2{TILE}", f"%3{TILE}", "gpsimd"),
    "  " + copy(4, "%3[0+128, 0; 1x1] by scalar $0 stride 1 limit 512 axis 1", "%2[0+128, 0; 1x1]"),
    "end",
    load(5, f"%1{HBM}", f"%2{TILE}"),
]


def executable(*body: str) -> Executable:
    found = make(program("\n".join([*HEAD, *(f"  {line}" for line in body)])))
    return found.file()


def changed(found: Executable, stream: int, at: int, **fields: Any) -> Executable:
    record = found.streams[stream]
    new = record.items[at]._replace(**fields)
    items = (*record.items[:at], new, *record.items[at + 1 :])
    return with_stream(found, stream, record._replace(items=items))


@pytest.mark.parametrize("body", [STRAIGHT, LOOP])
def test_what_the_compiler_writes_is_ordered(body: list[str]) -> None:
    verify_ordered(executable(*body))


def test_columns_of_a_tile_of_rows_may_be_written_in_any_order() -> None:
    whole, halves = "[0+128, 0; 8x4, 1x8]", [f"[0+128, {at}; 8x4, 1x4]" for at in (0, 4)]
    head = [line.replace("128, 512", "128, 4, 8") for line in HEAD]
    body = [
        load(0, f"%2{whole}", "%0[0; 32x128, 1x32]"),
        op(1, "reciprocal", dst=f"%3{halves[0]}", data=f"%2{halves[0]}"),
        copy(2, f"%3{halves[1]}", f"%2{halves[1]}", "gpsimd"),
        load(3, "%1[0; 32x128, 1x32]", f"%3{whole}"),
    ]
    found = make(program("\n".join([*head, *(f"  {line}" for line in body)]))).file()
    verify_ordered(found)


def test_every_wait_of_an_instruction_that_is_dropped_is_found() -> None:
    found, count = executable(*STRAIGHT), 0
    for stream, at, item in slots(found):
        if item.waits:
            broken = changed(found, stream, at, waits=())
            verify(broken)  # it may give wrong numbers, and nothing worse
            with pytest.raises(ArtifactFailed, match="nothing orders it and another access to"):
                verify_ordered(broken)
            count += 1
    assert count == 3


def test_every_neighbours_that_change_places_are_found() -> None:
    """Two loads of one queue, and a reader of each: waits and signals stay in place."""
    columns = [f"[0+128, {at}; 1x256]" for at in (0, 256)]
    found = executable(
        *(load(i, f"%2{own}", f"%0[{256 * i}; 512x128, 1x256]") for i, own in enumerate(columns)),
        *(op(2 + i, "reciprocal", dst=f"%3{own}", data=f"%2{own}")
          for i, own in enumerate(columns)),
        load(4, f"%1{HBM}", f"%3{TILE}"),
    )  # fmt: skip
    verify_ordered(found)
    names = set()
    for stream, record in enumerate(found.streams):
        for at in range(len(record.items) - 1):
            one, two = record.items[at : at + 2]
            assert isinstance(one, InstructionRecord) and isinstance(two, InstructionRecord)
            swapped = (
                two._replace(waits=one.waits, signals=one.signals),
                one._replace(waits=two.waits, signals=two.signals),
            )
            items = (*record.items[:at], *swapped, *record.items[at + 2 :])
            broken = with_stream(found, stream, record._replace(items=items))
            verify(broken)
            with pytest.raises(ArtifactFailed, match="nothing orders it and another access to"):
                verify_ordered(broken)
            names.add(record.name)
    assert "core0.vector" in names


def test_the_message_tells_both_streams_the_tensor_and_the_line() -> None:
    found = executable(*STRAIGHT)
    stream, at = next((s, a) for s, a, i in slots(found) if i.row and i.row.name == "reciprocal")
    with pytest.raises(ArtifactFailed) as caught:
        verify_ordered(changed(found, stream, at, waits=()))
    (one,) = caught.value.diagnostics
    # The two have no order, so either may be reported as the later one.
    assert one.message.startswith("core0.dma0 item 0, dma_copy: nothing orders it and another ")
    assert "access to `t0` by gpsimd" in one.message
    assert any("k.py:10:1" in note for note in one.notes)


def test_a_decision_that_nothing_orders_is_found() -> None:
    found = executable(*LOOP)
    for stream, record in enumerate(found.streams):
        if record.name != "core0.gpsimd":
            continue
        bare = tuple(
            i._replace(waits=()) if isinstance(i, InstructionRecord) and i.row is None else i
            for i in record.items
        )
        broken = with_stream(found, stream, record._replace(items=bare))
        with pytest.raises(ArtifactFailed, match="another access to register 1 by gpsimd"):
            verify_ordered(broken)


def test_bytes_that_change_hands_are_looked_at() -> None:
    text = [
        "%1 a: float32[128, 512] sbuf fixed (0, 0)",
        "%2 b: float32[128, 512] sbuf fixed (0, 0)",
        "core",
        "  " + op(0, "memset", "vector", dst=f"%1{TILE}", value="0.0"),
        "  " + op(1, "memset", "gpsimd", dst=f"%2{TILE}", value="1.0"),
    ]
    found = make(program("\n".join(text))).file()
    verify_ordered(found)
    stream = next(s for s, r in enumerate(found.streams) if r.name == "core0.gpsimd")
    with pytest.raises(ArtifactFailed, match="the bytes of `a`"):
        verify_ordered(changed(found, stream, 0, waits=()))


def test_state_of_an_engine_is_looked_at() -> None:
    """Nothing but the debug stream orders two prints of different tiles."""
    found = executable(
        *(load(i, f"%{2 + i}{TILE}", f"%0{HBM}") for i in range(2)),
        *(op(2 + i, "device_print", "dma", tensor=f"%{2 + i}{TILE}", print_prefix=f"'{i}'")
          for i in range(2)),
    )  # fmt: skip
    verify_ordered(found)
    (first, _, one), (second, at, other) = [
        (s, at, i) for s, at, i in slots(found) if i.row and i.row.name == "device_print"
    ]
    assert first != second
    kept = tuple(wait for wait in other.waits if wait[0] not in one.signals)
    assert len(kept) == len(other.waits) - 1
    with pytest.raises(ArtifactFailed, match=r"another access to debug\.stream by dma"):
        verify_ordered(changed(found, second, at, waits=kept))


def test_the_command_asks_for_it_by_default(nki: Run) -> None:
    found = executable(*STRAIGHT)
    np.savez("in.npz", x=np.ones((128, 512), np.float32), word=np.zeros((1, 1), np.int32))
    wait = next((s, at) for s, at, i in slots(found) if i.waits and i.signals)
    for name, one in (("good", found), ("bad", changed(found, *wait, waits=()))):
        Path(f"{name}.neff").write_bytes(write(one))
        for asked in ((), ("--race-check",)):
            run = nki(f"{name}.neff", "--inputs", "in.npz", *asked)
            assert run.code == (0 if name == "good" else 3), run.err
            assert ("nothing orders it and another access to" in run.err) == (name == "bad")
    run = nki("bad.neff", "--inputs", "in.npz", "--no-race-check")
    assert "nothing orders" not in run.err


ARRAYS = {"x": np.ones((128, 512), np.float32), "word": np.zeros((1, 1), np.int32)}


@pytest.mark.parametrize("asked", [None, True])
def test_python_asks_for_it_by_default(asked: bool | None) -> None:
    found = executable(*STRAIGHT)
    wait = next((s, at) for s, at, i in slots(found) if i.waits and i.signals)
    nkic.run(nkic.Artifact(write(found)), ARRAYS, race_check=asked)
    bad = nkic.Artifact(write(changed(found, *wait, waits=())))
    for _ in range(2):  # whether or not it has been asked for before
        with pytest.raises(nkic.RunError, match="nothing orders it and another access to"):
            nkic.run(bad, ARRAYS, race_check=asked)


def test_python_proves_a_file_once(monkeypatch: pytest.MonkeyPatch) -> None:
    proven = list[Executable]()
    monkeypatch.setattr("nkic.api.artifact.verify_ordered", proven.append)
    artifact = nkic.Artifact(write(executable(*STRAIGHT)))
    for asked in (False, True, None, True):
        nkic.run(artifact, ARRAYS, race_check=asked)
        assert proven == [artifact.executable] * (asked is not False)


def test_python_does_without_it_if_told_to() -> None:
    found = executable(*STRAIGHT)
    wait = next((s, at) for s, at, i in slots(found) if i.waits and i.signals)
    bad = nkic.Artifact(write(changed(found, *wait, waits=())))
    try:
        nkic.run(bad, ARRAYS, race_check=False)
    except nkic.RunError as error:  # what the race does to the values
        assert "nothing orders" not in str(error)


def test_a_run_by_itself_does_not_ask_for_it() -> None:
    found = executable(*STRAIGHT)
    stream, at = next((s, a) for s, a, i in slots(found) if i.row and i.row.name == "tensor_copy")
    broken = changed(found, stream, at, waits=())
    outcome = simulate(found, ARRAYS, RunOptions(check_races=True)).outputs["output_0"]
    assert np.array_equal(outcome, ARRAYS["x"])
    with pytest.raises(ProgramFault):  # here it has an effect: the copy runs before the data exist
        simulate(broken, ARRAYS)


@pytest.mark.parametrize("shape", [(128, 64), (32, 4, 8), (7, 1, 3)])
@pytest.mark.parametrize("buffer", [Buffer.SBUF, Buffer.SHARED_HBM])
def test_an_access_of_all_elements_covers_the_whole(shape: tuple[int, ...], buffer: Buffer) -> None:
    tensor = TensorRecord("t", DTYPES["float16"], shape, buffer, 0, "internal", 0, 0, -1)
    start, rows, count = (0, shape[0], prod(shape[1:])) if buffer.on_chip else (0, 0, prod(shape))
    pattern = PatternRecord(0, tensor.dtype, start, rows, 0, ((1, count),))
    assert _area(pattern, tensor) == _whole(tensor)
