"""Test the iterations of Python's loops, which distinguish the instructions of one line."""

import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from nkic.artifact.assemble import assemble
from nkic.artifact.disassemble import disassemble, dump
from nkic.artifact.encode import write
from nkic.artifact.read import read
from nkic.artifact.records import Executable, InstructionRecord
from nkic.base.diagnostics import ArtifactFailed
from nkic.compiler.request import parse_options
from nkic.machine.targets import Engine
from tests.harness import two_ways
from tests.harness.executables import ROWS, sample
from tests.harness.tamper import records, with_records

FILL = "nisa.memset(dst=t, value=0.0)"
HEAD = """\
import nki
import nki.isa as nisa
import nki.language as nl


def fill(t, k):
    for part in range(2):
        nisa.memset(dst=t[:, part * 4 : part * 4 + 4], value=float(k + part))


@nki.jit
def kernel(a):
    out = nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.sbuf)
"""
TAIL = """
    nisa.dma_copy(dst=out, src=t)
    return out
"""
CASES = {
    "no loop": ("fill(t, 1)", ["part=0", "part=1"]),
    "nested": (
        f"for m in range(0, 4, 2):\n        for n in range(2):\n            {FILL}",
        ["m=0 n=0", "m=0 n=1", "m=2 n=0", "m=2 n=1"],
    ),
    "calls": (
        "for m in range(2):\n        fill(t, m)",
        ["m=0 part=0", "m=0 part=1", "m=1 part=0", "m=1 part=1"],
    ),
    "several variables": (
        f"for i, (name, k) in enumerate([('x', 5), ('y', 7)]):\n        {FILL}",
        ["i=0 k=5", "i=1 k=7"],
    ),
    "comprehension": (
        "for m in range(2):\n        _ = [nisa.memset(dst=t, value=float(n)) for n in range(2)]",
        ["m=0", "m=0", "m=1", "m=1"],
    ),
    "lambda": (
        "for m in range(2):\n        go = lambda: nisa.memset(dst=t, value=float(m))\n        go()",
        ["m=0 m=0", "m=1 m=1"],
    ),
    "after": (
        "for m in range(2):\n        pass\n    nisa.memset(dst=t, value=0.0)",
        [""],
    ),
}


def compiled(tmp_path: Path, body: str) -> Executable:
    """Compile the kernel in both ways of evaluation, which must give the same bytes."""
    path = tmp_path / "k.py"
    path.write_text(f"{HEAD}    {body}\n{TAIL}")
    request = two_ways.request_in(path, parse_options(args=["a=float32[2,2]"]))
    with two_ways.live_module(path) as module, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        native, closed = two_ways.both(module.kernel, two_ways.as_call(request))
    assert native.raised is None and closed.raised is None
    assert native.data is not None and native.data == closed.data
    return read(native.data)


def fills(found: Executable) -> list[str]:
    items = [i for s in found.streams for i in s.items if isinstance(i, InstructionRecord)]
    return sorted(
        found.iterations[i.iterations] if i.iterations >= 0 else ""
        for i in items
        if i.row is not None and i.row.name == "memset"
    )


@pytest.mark.parametrize("name", CASES)
def test_turns_of_both_ways(tmp_path: Path, name: str) -> None:
    body, wanted = CASES[name]
    assert fills(compiled(tmp_path, body)) == wanted


def test_turns_in_listings(tmp_path: Path) -> None:
    found = compiled(tmp_path, CASES["calls"][0])
    listing = disassemble(found)
    assert "k.py:8 [m=1 part=0]\n" in listing
    text = dump(found)
    assert 'iteration "m=1 part=0"' in text
    assert assemble(text) == found


def turned() -> Executable:
    """Return the sample with iterations in its first stream."""
    made = sample()
    stream, *rest = made.streams
    first, *items = stream.items
    assert isinstance(first, InstructionRecord)
    own = stream._replace(items=(first._replace(iterations=1), *items))
    return replace(made, streams=(own, *rest), iterations=("i=0", "i=1"))


def test_turns_are_written_and_read() -> None:
    assert read(write(turned(), embed_source=True), rows=ROWS) == turned()
    assert read(write(sample()), rows=ROWS).iterations == ()


@pytest.mark.parametrize(
    ("index", "record", "says"),
    [
        (0, [0, "a\nb"], "control characters"),
        (0, [0, 7], "an iteration is 7, not a string"),
        (0, [0], "an iteration has 1 fields after its kind, not 0"),
        (0, [2, "i=0"], "kind 2"),
        (2, [1, 3], "iteration: 2 is not an integer from -1 to 1"),
        (2, [1, -1], "iteration: -2 is not an integer from -1 to 1"),
        (2, [1, True], "step to an item's iteration: True"),
        (2, [0, "i=2"], "it describes 0 instructions; there are 10"),
        (0, [1, 0], "a record of kind 0 is not allowed here"),
    ],
)
def test_wrong_turns_are_refused(index: int, record: list[object], says: str) -> None:
    data = write(turned(), embed_source=True)
    found = records(data, "iterations")
    found[index] = record
    with pytest.raises(ArtifactFailed, match=says):
        read(with_records(data, "iterations", found), rows=ROWS)


def test_turns_are_no_part_of_what_a_program_means() -> None:
    one, other = write(turned()), write(sample())
    assert records(one, "code") == records(other, "code")
    assert Engine.VECTOR in {stream.engine for stream in turned().streams}
