"""Test that the numbers of operands stand for the operands of the records, from both makers."""

from __future__ import annotations

import pytest

from nkic.base.source import SourceFile
from nkic.driver import pipeline
from nkic.driver.pipeline import compile_source
from nkic.neff.operands import Operands, operands_of
from nkic.neff.records import Executable, InstructionRecord
from nkic.neff.write import write
from nkic.specialise.request import Request
from tests.harness.executables import sample
from tests.unit.simulate.test_psum import KERNEL


def check(executable: Executable, operands: Operands) -> None:
    values, references = operands
    assert values[0] is None
    assert len({id(value) for value in values}) == len(values)
    for stream, its in zip(executable.streams, references, strict=True):
        items = [item for item in stream.items if isinstance(item, InstructionRecord)]
        expected = [operand for item in items for operand in item.operands]
        assert list(map(id, expected)) == [id(values[reference]) for reference in its]


def test_operands_of_records() -> None:
    check(sample(), operands_of(sample()))


def test_operands_that_emit_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    filled: list[Operands] = []

    def new(values: list[None], references: list[list[int]]) -> Operands:
        filled.append(Operands(list(values), references))
        return filled[-1]

    monkeypatch.setattr(pipeline, "Operands", new)
    done = compile_source(SourceFile("k.py", KERNEL), Request(), lambda *_: None)
    check(done.executable, filled[0])
    assert write(done.executable) == done.data
