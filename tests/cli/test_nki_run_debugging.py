"""Inspection of runs: dumps, watches, intermediates of a reference, the prompt, other orders."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nkic.artifact.encode import write
from nkic.artifact.read import load
from nkic.artifact.records import Executable, InstructionRecord
from nkic.cli.common import run
from nkic.cli.nkic import command as compiler
from tests.cli.nki_run_fixtures import nki, process, refused
from tests.harness.commands import Run

__all__ = ["nki"]  # a fixture, which uses this file's `folder`

KERNEL = """\
# /// nkic
# [args]
# a = "float32[256, 8]"
# b = "bfloat16[256, 8]"
# ///
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def sums(a, b):
    out = nl.ndarray((256, 8), dtype=a.dtype, buffer=nl.shared_hbm)
    for i in range(2):
        x = nl.ndarray((128, 8), dtype=a.dtype, buffer=nl.sbuf)
        y = nl.ndarray((128, 8), dtype=b.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=x, src=a[nl.ds(i * 128, 128)])
        nisa.dma_copy(dst=y, src=b[nl.ds(i * 128, 128)])
        acc = nl.ndarray((128, 8), dtype=a.dtype, buffer=nl.sbuf)
        nisa.tensor_tensor(dst=acc[:, 0:4], data1=x[:, 0:4], data2=y[:, 0:4], op=nl.add)
        nisa.tensor_tensor(dst=acc[:, 4:8], data1=x[:, 4:8], data2=y[:, 4:8], op=nl.subtract)
        nisa.tensor_scalar(dst=acc, data=acc, op0=nl.multiply, operand0=0.5)
        nisa.dma_copy(dst=out[nl.ds(i * 128, 128)], src=acc)
    return out
"""
LOAD, LOAD_B, ADD, SUBTRACT, HALVE, STORE = (
    next(n for n, text in enumerate(KERNEL.splitlines(), 1) if what in text)
    for what in ("dst=x, src", "dst=y, src", "op=nl.add", "op=nl.sub", "dst=acc, data", "dst=out[")
)
RNG = np.random.default_rng(7)
A, B = (RNG.integers(-9, 9, (256, 8)).astype(np.float32) for _ in range(2))
SUM = np.concatenate([A[:, :4] + B[:, :4], A[:, 4:] - B[:, 4:]], axis=1)
RUN = ("kernel.neff", "--inputs", "data.npz", "--no-verdict")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("kernel")
    (folder / "k.py").write_text(KERNEL, encoding="utf-8")
    words = [str(folder / "k.py"), "-o", str(folder / "k.neff"), "--embed-source"]
    assert run(compiler, "nkic", words) == 0
    return (folder / "k.neff").read_bytes()


@pytest.fixture
def folder(made: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernel.neff").write_bytes(made)
    bits = (B.view(np.uint32) >> 16).astype(np.uint16).view("V2")  # exact: small integers
    np.savez("data.npz", a=A, b=bits)
    return tmp_path


def test_every_write_is_dumped_with_its_place_and_time(nki: Run, folder: Path) -> None:
    reports = ("--report", "json=p.json", "--report", "counters=c.parquet")
    done = nki("debug", *RUN, "--dump", "all=d", *reports)
    assert done.code == 0, done.err
    rows = json.loads((folder / "d" / "index.json").read_text())["writes"]
    assert [row["number"] for row in rows] == list(range(12))
    by_line = {line: [r for r in rows if r["line"] == line] for line in (LOAD, ADD, HALVE, STORE)}
    for line, name in ((LOAD, "x"), (ADD, "acc"), (HALVE, "acc"), (STORE, "out")):
        assert sorted((r["tensor"], r["time"]) for r in by_line[line]) == [(name, 0), (name, 1)]
    by_line = {line: sorted(rows, key=lambda r: r["time"]) for line, rows in by_line.items()}
    contents = [_array(folder / "d", row) for row in by_line[LOAD]]
    assert np.array_equal(contents, [A[:128], A[128:]])
    halves = [_array(folder / "d", row) for row in by_line[HALVE]]
    assert np.array_equal(halves, [SUM[:128] / 2, SUM[128:] / 2])
    assert all(row["unrolled"] == f"i={row['time']}" for row in rows)
    (first, second) = by_line[ADD]
    assert first["region"] == [[0, 128], [0, 4]] and first["engine"] == "core0.vector"
    assert first["unwritten"] == second["unwritten"] == 128 * 4
    assert {tuple(map(tuple, r["region"])) for r in by_line[STORE]} == {
        ((0, 128), (0, 8)),
        ((128, 256), (0, 8)),
    }
    assert first["min"] <= first["mean"] <= first["max"] and first["nan"] == 0
    _times_are_those_of_the_trace(rows)


def _array(folder: Path, row: dict[str, Any]) -> Any:
    return np.load(folder / row["file"])[row["array"]]


def _times_are_those_of_the_trace(rows: list[dict[str, Any]]) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    events = parquet.read_table("c.parquet").to_pylist()
    seen = sorted((e["line"], e["start_ps"], e["complete_ps"]) for e in events)
    told = [(r["line"], round(1000 * r["start_ns"]), round(1000 * r["done_ns"])) for r in rows]
    assert sorted(told) == seen


def test_dumps_of_some_lines(nki: Run, folder: Path) -> None:
    done = nki("debug", *RUN, "--dump", f"all@{HALVE}:{STORE}=d", "-q")
    assert (done.code, done.err) == (0, "")
    rows = json.loads((folder / "d" / "index.json").read_text())["writes"]
    assert {row["line"] for row in rows} == {HALVE, STORE}
    assert sorted(path.name for path in (folder / "d").iterdir()) == [
        "acc.npz",
        "index.json",
        "out.npz",
    ]
    refused(nki("debug", *RUN, "--dump", "all@1:x=d"), 2, "bad-value")
    (folder / "file").write_text("")
    refused(nki("debug", *RUN, "--dump", "all=file"), 2, "cannot-write")


def test_a_watch_tells_every_change(nki: Run) -> None:
    part = f"acc[0, 4:{8}]"
    done = nki(
        "debug", *RUN, "--changes", part, "--message-format", "json", "-o", "output_0=@o.npy"
    )
    events = [json.loads(line) for line in done.err.splitlines()]
    told = [event for event in events if event.get("type") == "watch"]
    # The first write of each acc changes the whole watched part, which was uninitialised. Later
    # writes are reported if they change a value.
    lines = sorted(event["line"] for event in told if event["line"] != ADD)
    assert lines == [SUBTRACT, SUBTRACT, HALVE, HALVE]
    for event, row in zip([e for e in told if e["line"] == HALVE], (0, 128), strict=True):
        values = SUM[row, 4:] / 2
        assert (event["min"], event["max"]) == (values.min(), values.max())
        assert event["changed"] == np.count_nonzero(values)
        assert event["engine"] == "core0.vector" and event["region"] == [[0, 128], [0, 8]]
    shown = nki("debug", *RUN, "--changes", "y").err
    assert (
        f"y  line {LOAD_B} (i=0)  " in shown
        and "wrote [0:128, 0:8], 1,024 elements changed" in shown
    )


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--changes", "ac"), "did you mean `acc`?"),
        (("--changes", "acc[200]"), "index 200 is outside axis 0 of `acc`"),
        (("--changes", "acc[0, 0, 0]"), "`acc` has 2 dimensions"),
        (("--changes", "acc[x]"), "names no tensor"),
        (("--dump", f"acc@{LOAD}=a.npz"), f"written in lines {ADD}, {SUBTRACT}, {HALVE}"),
        (("--expect-at", "1=r.npz"), f"the nearest lines that do: {LOAD}"),
        (("--expect-at", "x"), "expected LINE=FILE.npz"),
        (("--break", "1"), f"the nearest lines with one: {LOAD}"),
        (("--break", "q.py:3"), "no file `q.py`"),
        (("--break", "here"), "is not a breakpoint"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(
    nki: Run, words: tuple[str, str], text: str
) -> None:
    assert text in refused(nki(*RUN, *words), 2, "bad-value")


def test_conflicts(nki: Run) -> None:
    for words in (
        ("--break", "20", "--json"),
        ("--changes", "acc", "--outputs-as", "f32"),
        ("--changes", "acc", "--rtol", "0.1"),
        ("--break", "20", "--inputs", "-"),
    ):
        refused(nki("debug", "kernel.neff", "--no-verdict", *words), 2, "conflicting-options")


# A reference's intermediates


@pytest.fixture
def reference(nki: Run) -> dict[str, Any]:
    """Return the dump of a correct run."""
    assert nki("debug", *RUN, "--dump", f"acc@{HALVE}=r.npz", "-q").code == 0
    return {name: array.copy() for name, array in np.load("r.npz").items()}


def test_a_run_is_as_a_reference_that_was_dumped(nki: Run, reference: dict[str, Any]) -> None:
    assert np.array_equal(reference["acc"], [SUM[:128] / 2, SUM[128:] / 2])
    done = nki("debug", *RUN, "--expect-at", f"{HALVE}=r.npz")
    assert done.code == 0 and "--expect-at: 2 comparisons, all as expected" in done.err
    np.savez("last.npz", acc=reference["acc"][1])  # in acc's shape after the last write
    assert nki("debug", *RUN, "--expect-at", f"{HALVE}=last.npz").code == 0


def test_the_first_line_where_they_part(nki: Run, reference: dict[str, Any]) -> None:
    wrong = reference["acc"].copy()
    wrong[1, 3, 5] += 0.25
    np.savez("wrong.npz", acc=wrong)
    np.savez("x.npz", x=[A[:128], A[128:] + 1])
    at = ("--expect-at", f"{HALVE}=wrong.npz")
    text = refused(nki("debug", *RUN, *at, "-o", "output_0=@o.npy"), 1, "intermediate-differs")
    assert f"k.py:{HALVE}:9: error" in text
    assert f"after line {HALVE}, `acc` differs from `wrong.npz`: 1 of 1,024" in text
    assert "written the 2nd time (i=1) at " in text and "1 comparison before it agreed" in text
    assert "first: [3, 5] is" in text and "off by 0.25" in text
    text = refused(
        nki("debug", *RUN, *at, "--expect-at", f"{LOAD}=x.npz"), 1, "intermediate-differs"
    )
    assert f"after line {LOAD}, `x`" in text and "1 after it did not" in text
    assert nki("debug", *RUN, *at, "--atol", "acc=0.25").code == 0
    assert "did you mean `acc`?" in refused(
        nki("debug", *RUN, *at, "--atol", "ac=1"), 2, "bad-value"
    )


def test_elements_that_nobody_has_written_yet_are_left_out(
    nki: Run, reference: dict[str, Any]
) -> None:
    there = np.full((2, 128, 8), np.nan, np.float32)
    there[:, :, :4] = SUM.reshape(2, 128, 8)[:, :, :4]
    np.savez("half.npz", acc=there)
    assert nki("debug", *RUN, "--expect-at", f"{ADD}=half.npz").code == 0
    assert nki("debug", *RUN, "--expect-at", f"{SUBTRACT}=half.npz").code == 1


def test_a_reference_must_fit(nki: Run, reference: dict[str, Any]) -> None:
    np.savez("one.npz", acc=reference["acc"][:1])
    text = refused(
        nki("debug", *RUN, "--expect-at", f"{HALVE}=one.npz"), 4, "expected-does-not-fit"
    )
    assert "holds 1 array, and the line writes the tensor 2 times" in text
    np.savez("wide.npz", acc=np.zeros((128, 9), np.float32))
    text = refused(
        nki("debug", *RUN, "--expect-at", f"{HALVE}=wide.npz"), 4, "expected-does-not-fit"
    )
    assert "is float32[128, 9], not float32[128, 8]" in text
    np.savez("other.npz", c=np.zeros((128, 8), np.float32))
    refused(nki("debug", *RUN, "--expect-at", f"{HALVE}=other.npz"), 2, "bad-value")


# The prompt


def prompt(folder: Path, commands: str, *words: str) -> tuple[int, str]:
    done = process(*RUN, *words, stdin=commands.encode())
    assert b"Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout.decode()


def test_a_prompt_shows_what_tensors_hold(folder: Path) -> None:
    commands = "print x[0:2, 0]\nprint acc\nstep\nprint acc[1]\ntime\nquit\n"
    code, out = prompt(folder, commands, "--break", f"k.py:{SUBTRACT}", "-o", "output_0=@o.npy")
    lines = out.splitlines()
    assert code == 0 and not (folder / "o.npy").exists()
    assert lines[0].startswith(f"k.py:{SUBTRACT}: tensor_tensor on core0.vector is about to start")
    assert lines[1] == f"  {SUBTRACT} | {KERNEL.splitlines()[SUBTRACT - 1]}"
    assert "unwritten 512" in out  # half of acc
    row = next(line for line in lines if line.startswith("[") and "[[" not in line)
    printed = {line for line in lines if line.startswith("[")}
    assert row and np.array2string(SUM[1]) in {" ".join(p.split()) for p in printed} | printed


def test_a_prompt_goes_step_by_step(folder: Path) -> None:
    commands = "step 2\nnext\ncontinue 3\ncontinue\nbreak\nclear\nwhere\nfoo\nstep x\nc\n"
    code, out = prompt(folder, commands, "--break", f"{HALVE}", "-o", "output_0=@o.npy")
    assert code == 0 and np.array_equal(np.load("o.npy"), SUM / 2)
    stops = [line for line in out.splitlines() if "is about to start" in line]
    assert stops[0].startswith(f"kernel.py:{HALVE}") or stops[0].startswith(f"k.py:{HALVE}")
    halves = [stop for stop in stops if f"py:{HALVE}:" in stop]
    assert len(halves) >= 2
    assert "error: there is no command `foo`" in out and "`x` is not a number of repetitions" in out
    assert "error: `continue` takes no argument, but was given `3`" in out
    assert f"breakpoints: {HALVE}" in out and "breakpoints: none" in out
    assert "dst = written: acc#2[0:128, 0:8] float32 at sbuf partitions 0:128" in out


def test_a_prompt_knows_engines_queues_and_memory(folder: Path) -> None:
    code, out = prompt(
        folder, "engines\nqueues\nmemory\ntensors\nprint accc\nprint acc#9\n", "--break", f"{ADD}:1"
    )
    assert code == 0 and "output_0" in out  # the run continues at the end of the input
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert f"core0.vector 0 instructions started about to start tensor_tensor (k.py:{ADD})" in lines
    stores = [line for line in lines if f"next dma_copy (k.py:{STORE})" in line]
    assert stores and all("waits for core0.vector" in line for line in stores)
    assert any("1 started" in line or "2 started" in line for line in lines)
    held = [
        line.partition(":")[0] for line in lines if "sbuf partitions" in line and "core" in line
    ]
    assert {"x#1", "y#1"} <= set(held) and "acc#1" not in held
    assert any(line.startswith("out: float32[256, 8]") and "not written yet" in line
               for line in lines)  # fmt: skip
    assert "error: there is no tensor `accc`" in out and "did you mean `acc`?" in out
    assert "there are 2 tensors `acc`, and no #9" in out


# Other orders


def lost(executable: Executable, stream: str) -> Executable:
    """Remove the waits of the first item that has any from a stream."""
    streams = list(executable.streams)
    number = next(n for n, one in enumerate(streams) if one.name == stream)
    items = list(streams[number].items)
    at = next(n for n, item in enumerate(items) if getattr(item, "waits", ()))
    item = items[at]
    assert isinstance(item, InstructionRecord)
    items[at] = item._replace(waits=())
    streams[number] = streams[number]._replace(items=tuple(items))
    return replace(executable, streams=tuple(streams))


def test_orders_of_a_sound_file_give_the_same(nki: Run) -> None:
    done = nki("debug", *RUN, "--fuzz-order", "12:5")
    assert done.code == 0, done.err
    assert (
        "--fuzz-order: 12 other orders of seed 5 "
        "(4 with eager DMA, 4 with late DMA, 4 with mixed DMA): same outputs"
    ) in done.err


@pytest.mark.parametrize("checks", ["--init-check", "--no-init-check"])
def test_a_lost_wait_is_found_with_both_lines(nki: Run, folder: Path, checks: str) -> None:
    sound = load((folder / "kernel.neff").read_bytes())
    store = next(
        s.name for s in sound.streams
        if s.name.startswith("core0.dma") and getattr(s.items[0], "waits", None)
    )  # fmt: skip
    (folder / "broken.neff").write_bytes(write(lost(sound, store)))
    words = ("broken.neff", *RUN[1:], "--fuzz-order", "16", checks)
    done = nki(*words)
    assert done.code == 5
    said = done.err[done.err.index("error[NKI0909]") :]
    found = re.findall(r"(\w+) of line (\d+) on (core0.\w+)", said)
    assert ("dma_copy", str(STORE), store) in found and len(found) == 2
    (other,) = [one for one in found if one[2] == "core0.vector"]
    assert int(other[1]) in (ADD, SUBTRACT, HALVE)
    if checks == "--init-check":  # before the last write of acc the uninitialised read fails
        assert other[:2] == ("tensor_tensor", str(SUBTRACT)) or other[1] == str(HALVE)
    assert "race over `acc`: no semaphore orders the two" in said
    again = nki(*words).err
    assert again[again.index("error[NKI0909]") :] == said
