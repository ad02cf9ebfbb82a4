"""Test the on-chip resources of a compiled kernel: each figure against a separate count."""

from __future__ import annotations

import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest

import nkic
from nkic.artifact.records import Executable, InstructionRecord
from nkic.machine.targets import TARGETS
from nkic.report.allocations import allocations, as_json, in_use, order, svg, text
from nkic.report.costs import Uses
from nkic.report.resources import resources
from tests.harness.traced import SAMPLES, executable

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
