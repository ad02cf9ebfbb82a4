"""Test the resource line: its counts and units."""

import json
from collections.abc import Mapping
from dataclasses import replace
from xml.etree import ElementTree

import pytest

import nkic
from nkic.artifact.records import Executable, InstructionRecord, LoopRecord, StreamRecord
from nkic.machine.operands import Register
from nkic.machine.targets import TARGETS, TRN1, TRN2, Engine
from nkic.report.allocations import allocations, as_json, in_use, order, svg, text
from nkic.report.costs import Uses
from nkic.report.resources import cycles, resources
from tests.harness.executables import LOAD, STORE, sample
from tests.harness.traced import SAMPLES, executable

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


# ------------------------------------------------------------------------------------------------
# Test the on-chip resources of a compiled kernel: each figure against a separate count.

NAMES = ("01_tensor_add", "06_matmul", "10_attention", "15_language")


@pytest.fixture(scope="module", params=NAMES)
def program(request: pytest.FixtureRequest) -> Executable:
    return nkic.compile(str(SAMPLES / request.param / "kernel.py")).executable


def test_every_instruction_is_a_step(program: Executable) -> None:
    records = [i for s in program.streams for i in s.items if isinstance(i, InstructionRecord)]
    seen = list(order(program))
    assert sorted(map(id, seen)) == sorted(map(id, records))
    _, steps = allocations(program)
    assert steps == sum(resources(program).instructions.values())


def test_nothing_reads_before_it_is_written(program: Executable) -> None:
    """The order is one that the program allows: tensors on chip are written first."""
    uses = Uses(program, TARGETS[program.target])
    stream_of = {id(item): stream for stream in program.streams for item in stream.items}
    written = set()
    for item in order(program):
        stream = stream_of[id(item)]
        found = [u for u in uses.of(item, stream.engine, stream.core) if u.box.memory[1] != "hbm"]
        assert all(use.tensor in written for use in found if use.reads and not use.writes)
        written |= {use.tensor for use in found if use.writes}


def test_tensors_in_use_do_not_share_bytes(program: Executable) -> None:
    found, _ = allocations(program)
    for one in found:
        for other in found:
            apart = one is other or (one.core, one.memory) != (other.core, other.memory)
            together = one.first <= other.last and other.first <= one.last
            rows = one.partition < other.partition + other.partitions
            rows = rows and other.partition < one.partition + one.partitions
            columns = one.address < other.address + other.bytes
            columns = columns and other.address < one.address + one.bytes
            assert apart or not (together and rows and columns), (one, other)


def test_bytes_in_use(program: Executable) -> None:
    found, steps = allocations(program)
    own = [one for one in found if one.memory == "sbuf"]
    levels = in_use(own, steps)
    assert len(levels) == steps
    for step in range(0, steps, max(1, steps // 20)):
        assert levels[step] == sum(one.total for one in own if one.first <= step <= one.last)
    assert max(levels) <= resources(program).sbuf_bytes


def test_the_text_names_every_place(program: Executable) -> None:
    found, _ = allocations(program)
    shown = text(program)
    assert shown.startswith(resources(program).line)
    for one in found:
        assert one.place in shown
    record = json.loads(json.dumps(as_json(program)))
    assert len(record["tensors"]) == len(found)


def test_banks() -> None:
    program = executable(
        "def kernel(x):\n"
        "    out = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.shared_hbm)\n"
        "    t = nl.load(x)\n"
        "    p = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.psum)\n"
        "    nisa.tensor_copy(dst=p, src=t)\n"
        "    u = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.sbuf)\n"
        "    nisa.tensor_copy(dst=u, src=p)\n"
        "    nl.store(out, u)\n"
        "    return out\n",
        x="float32[128,1024]",
    )
    (psum,) = [one for one in allocations(program)[0] if one.memory == "psum"]
    assert (psum.banks, psum.bytes, psum.first + 1) == ([0, 1], 4096, psum.last)


def test_the_picture_has_a_box_for_every_tensor(program: Executable) -> None:
    drawn = svg(program)
    assert drawn == svg(program)
    assert drawn.count("http") == 1  # the name of the format
    titles = [one.text for one in ElementTree.fromstring(drawn).iter() if one.tag.endswith("title")]
    found, _ = allocations(program)
    assert len(titles) == len(found)
    for one in found:
        said = f"from byte {one.address}, steps {one.first} to {one.last}"
        assert any(t and t.startswith(f"{one.name} ({one.place})") and said in t for t in titles)


def test_names_cannot_become_markup_in_the_picture(program: Executable) -> None:
    evil = "</text><script>"
    tensors = tuple(one._replace(name=evil) for one in program.tensors)
    drawn = svg(replace(program, tensors=tensors))
    assert "<script" not in drawn
    ElementTree.fromstring(drawn)
