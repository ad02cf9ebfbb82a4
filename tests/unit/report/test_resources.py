"""Test the resource line: its counts and units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from nkic.artifact.records import Executable, InstructionRecord, LoopRecord, StreamRecord
from nkic.machine.operands import Register
from nkic.machine.targets import TRN1, TRN2, Engine
from nkic.report.resources import cycles, resources
from tests.harness.executables import LOAD, STORE, sample

TILE = 128 * 16 * 4  # bytes that LOAD and STORE each move
DONE = InstructionRecord(None, (), (), (), (), -1)


def loop(length: int, stop: int | Register) -> LoopRecord:
    return LoopRecord(length, Register(0), 0, stop, 1, None, -1)


def dma(*items: InstructionRecord | LoopRecord) -> Executable:
    return replace(sample(), streams=(StreamRecord(0, Engine.DMA, 0, items),))


def with_notes(notes: Mapping[str, str]) -> Executable:
    return replace(sample(), meta=notes)


def test_the_line() -> None:
    notes = {"sbuf_peak": str(50 * 1024), "psum_peak": "8192", "estimate_ns": "34350"}
    assert resources(with_notes(notes)).line == (
        "add: SBUF 6.2/26.0 MiB (24%) reserved, PSUM 4/8 banks, 7 instr "
        "(PE 0 ACT 0 POOL 0 DVE 2 SP 0 DMA 5), DMA 16.4 kB, "
        "estimated at 41,220 cycles (nki-run simulates them)"
    )


@pytest.mark.parametrize(
    ("items", "transfers"),
    [
        ((LOAD, STORE), 2),
        ((LOAD, DONE, STORE), 2),
        ((loop(1, 5), LOAD, STORE), 6),
        ((loop(3, 5), LOAD, loop(1, 7), STORE, LOAD), 5 * (1 + 7) + 1),
        ((loop(2, 3), loop(1, 4), LOAD, STORE), 13),
        ((loop(1, Register(1)), LOAD), 1),
        ((loop(1, 0), LOAD), 0),
    ],
)
def test_transfers_count_with_their_loops(
    items: tuple[InstructionRecord | LoopRecord, ...], transfers: int
) -> None:
    found = resources(dma(*items))
    assert found.dma_bytes == transfers * TILE
    assert found.instructions["DMA"] == sum(item in (LOAD, STORE) for item in items)


@pytest.mark.parametrize("text", ["", "-1", "1e9", "²", "9" * 30])
def test_strange_notes_count_as_none(text: str) -> None:
    found = resources(with_notes({"sbuf_peak": text, "psum_peak": text, "estimate_ns": text}))
    assert (found.sbuf_bytes, found.psum_banks, found.cycles) == (0, 0, 0)


@pytest.mark.parametrize(("byte", "banks"), [("0", 0), ("1", 1), ("2048", 1), ("2049", 2)])
def test_banks_count_as_soon_as_they_are_touched(byte: str, banks: int) -> None:
    assert resources(with_notes({"psum_peak": byte})).psum_banks == banks


def test_cycles_are_of_the_base_clock() -> None:
    assert (cycles(1000, TRN1), cycles(1000, TRN2)) == (1400, 1200)


def test_names_from_a_file_are_harmless() -> None:
    assert resources(replace(sample(), name="a\x1b[2J\nb")).line.startswith("a\\x1b[2J\\nb: SBUF")
