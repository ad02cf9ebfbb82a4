"""Test the last writer of a part of PSUM, by rectangles and by an array of flags; and banks in
files.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nkic.artifact.read import read
from nkic.artifact.records import (
    Executable,
    InstructionRecord,
    LoopRecord,
    PatternRecord,
    StreamRecord,
)
from nkic.artifact.verify import verify
from nkic.base.diagnostics import ArtifactFailed
from nkic.base.source import SourceFile
from nkic.compiler.pipeline import compile_source
from nkic.machine.instructions import ROWS
from nkic.machine.rules import MAX_WRITES, History, Rectangle, Write, bank_problem, banks
from nkic.machine.targets import TRN2, TRN3
from nkic.report.resources import resources
from nkic.specialise.request import Request

SIDE = 12


@st.composite
def rectangles(draw: st.DrawFn) -> Rectangle:
    (top, bottom), (left, right) = (
        sorted(draw(st.lists(st.integers(0, SIDE), min_size=2, max_size=2, unique=True)))
        for _ in "ab"
    )
    return Rectangle(top, bottom, left, right)


def part(flags: np.ndarray, area: Rectangle) -> np.ndarray:
    return flags[area.top : area.bottom, area.left : area.right]


@given(st.lists(st.tuples(rectangles(), st.booleans()), max_size=12), rectangles())
def test_strangers_are_those_whose_bytes_are_still_there(
    writes: list[tuple[Rectangle, bool]], area: Rectangle
) -> None:
    history: History[int] = History()
    flags = np.full((SIDE, SIDE), -1)
    for number, (where, by_matmul) in enumerate(writes):
        history.note(Write(where, None if by_matmul else number))
        part(flags, where)[...] = -1 if by_matmul else number
    expected = {int(n) for n in part(flags, area).ravel()} - {-1}
    assert list(history.foreign_writers(area)) == sorted(expected, reverse=True)


@given(rectangles(), rectangles())
def test_what_is_left_of_a_rectangle(one: Rectangle, other: Rectangle) -> None:
    flags = np.zeros((SIDE, SIDE), int)
    for rest in one.without(other):
        part(flags, rest)[...] += 1
    expected = np.zeros((SIDE, SIDE), int)
    part(expected, one)[...] = 1
    part(expected, other)[...] = 0
    assert np.array_equal(flags, expected)


def test_a_history_stays_short() -> None:
    history: History[int] = History()
    for number in range(3 * MAX_WRITES):
        history.note(Write(Rectangle(0, 1, number, number + 1), number))
    assert len(history.writes) == MAX_WRITES
    history.note(Write(Rectangle(0, 1, 0, 3 * MAX_WRITES), None))
    assert len(history.writes) == 1


def test_banks() -> None:
    assert [*banks(0, 2048)] == [0]
    assert [*banks(2047, 2049)] == [0, 1]
    assert [*banks(6144, 8192)] == [3]
    matmul = ROWS["nc_matmul"]
    assert bank_problem(matmul, "dst", 2048, 4096, TRN2) == ""
    assert "banks 0 to 1" in bank_problem(matmul, "dst", 1024, 3072, TRN2)
    assert bank_problem(matmul, "dst", 1024, 3072, TRN3) == ""
    assert bank_problem(ROWS["memset"], "dst", 1024, 3072, TRN2) == ""


KERNEL = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel():
    one = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.memset(dst=one, value=1.0)
    wide = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=wide[:, 0:256], stationary=one[:, 0:128], moving=one[:, 0:256])
    nisa.nc_matmul(dst=wide[:, 512:768], stationary=one[:, 0:128], moving=one[:, 0:256])
    out = nl.ndarray((128, 256), dtype=nl.float32, buffer=nl.shared_hbm)
    y = nl.ndarray((128, 256), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=y, data1=wide[:, 0:256], data2=one[:, 0:256], op=nl.add)
    nisa.tensor_tensor(dst=y, data1=wide[:, 512:768], data2=y, op=nl.add)
    nisa.dma_copy(dst=out, src=y)
    return out
"""


def compiled() -> Executable:
    return read(compile_source(SourceFile("k.py", KERNEL), Request(), lambda *_: None).data)


def moved(executable: Executable, offset: int, least: int = 0) -> Executable:
    """Return the program with the results of matmuls that begin at element `least` or later at
    another offset of their tensor.
    """

    def item(one: InstructionRecord | LoopRecord) -> InstructionRecord | LoopRecord:
        if not isinstance(one, InstructionRecord) or one.row is not ROWS["nc_matmul"]:
            return one
        dst = one.operands[0]
        assert isinstance(dst, PatternRecord)
        if dst.offset < least:
            return one
        return one._replace(operands=(dst._replace(offset=offset), *one.operands[1:]))

    def stream(one: StreamRecord) -> StreamRecord:
        return one._replace(items=tuple(map(item, one.items)))

    return replace(executable, streams=tuple(map(stream, executable.streams)))


def test_a_file_whose_matmul_crosses_banks_is_refused() -> None:
    executable = compiled()
    verify(executable)
    verify(moved(executable, 256))
    with pytest.raises(ArtifactFailed, match=r"`dst` covers bytes 1,536 to 2,560 .* banks 0 to 1"):
        verify(moved(executable, 384))
    with pytest.raises(ArtifactFailed, match=r"`dst` covers bytes 1,536 to 2,560 .* banks 0 to 1"):
        verify(moved(executable, 384, least=512))  # after one of its shape within a bank


def test_the_report_counts_the_banks_that_are_touched() -> None:
    assert resources(compiled()).psum_banks == 2
