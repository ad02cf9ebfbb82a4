"""Reports of `nki-run`: what is printed, written and rejected."""

from __future__ import annotations

import json
import re
import shlex
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from nkic.cli.nki_run import running
from nkic.machine.targets import SHORT_NAMES
from tests.cli.nki_run_fixtures import (
    BF16,
    KERNEL,
    RUN,
    A,
    B,
    artifact,
    folder,
    nki,
    process,
    refused,
)
from tests.harness.commands import Run

__all__ = ["artifact", "folder", "nki"]  # fixtures


def test_annotated_source_and_timeline(nki: Run, folder: Path) -> None:
    (folder / "k.py").write_text(KERNEL, encoding="utf-8")
    done = nki(
        "profile",
        *RUN,
        "--report",
        "annotate",
        "--report",
        "timeline",
        "--source",
        "k.py",
        "-o",
        "a=@a.npy",
    )
    assert done.code == 0, done.err
    source = [line.split(" | ")[-1] for line in done.out.splitlines() if " | " in line]
    assert "  14      nisa.dma_copy(dst=x, src=a)" in source
    assert [row for row in done.out.splitlines() if row.startswith("DVE ")]
    without = nki("profile", *RUN, "--report", "annotate", "-o", "a=@a.npy")
    assert "dma_copy" not in without.out and "|   14" in without.out


def test_a_timeline_has_colours_on_a_terminal(nki: Run) -> None:
    words = (*RUN, "--report", "timeline", "-o", "a=@a.npy")
    plain, coloured = (nki(*words, "--color", how).out for how in ("never", "always"))
    assert re.search(r"(?m)^\x1b\[31mDMA", coloured) and "\x1b" not in plain
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == plain


def test_a_window_of_a_timeline(nki: Run) -> None:
    refused(nki("profile", *RUN, "--report", "annotate@0:1"), 2, "bad-value")
    assert "is not of the form FROM:TO" in nki("profile", *RUN, "--report", "timeline@2:1").err
    done = nki("profile", *RUN, "--report", "timeline@0.5:1.5", "-o", "a=@a.npy")
    assert done.out.splitlines()[0].split() == ["0.50", "us", "1.50", "us"]


def test_source_must_be_what_was_compiled(nki: Run, folder: Path) -> None:
    (folder / "k.py").write_text(KERNEL + "\n", encoding="utf-8")
    refused(nki("profile", *RUN, "--source", "k.py"), 2, "bad-value")
    text = refused(nki("profile", *RUN, "--report", "annotate", "--source", "k.py"), 2, "bad-value")
    assert "is not a file that this kernel was compiled from" in text


def test_summary_and_profile(nki: Run, folder: Path) -> None:
    done = nki("profile", *RUN, "--report", "neuron=s.json", "--report", "json=p.json", "--json")
    run, profile = json.loads(done.out), json.loads(Path("p.json").read_text())
    assert run == profile and run["neuron"] == json.loads(Path("s.json").read_text())[run["id"]]
    ((key, values),) = json.loads(Path("s.json").read_text()).items()
    assert key == run["id"] == profile["id"]
    assert values["total_time"] == pytest.approx(run["time_ns"] * 1e-9)
    assert sum(profile["mix"].values()) == run["instructions"]
    assert sum(row["executions"] for row in profile["lines"]) == run["instructions"]
    critical = sum(row["critical_ns"] for row in profile["lines"])
    assert critical == pytest.approx(run["time_ns"])
    for name, use in run["engines"].items():
        short = {engine.value: short for engine, short in SHORT_NAMES.items()}[name[6:]]
        rows = [row[kind] for row in profile["lines"] for kind in ("busy_ns", "trigger_ns")]
        busy = sum(row.get(short, 0) for row in rows)
        assert busy == pytest.approx(use["busy_ns"])
    assert profile["memory"]["sbuf"]["peak_bytes"] == 128 * 8 * 4 + 4 * 16 * 2


def test_traces_are_the_same_in_every_run(nki: Run, folder: Path) -> None:
    pytest.importorskip("perfetto")
    files = ("t.json", "t.json.gz", "t.pftrace")
    words = [word for name in files for word in ("--trace", name)]
    assert nki(*RUN, *words).code == 0
    before = [Path(name).read_bytes() for name in files]
    assert nki(*RUN, *words).code == 0
    assert [Path(name).read_bytes() for name in files] == before
    assert len(json.loads(before[0])["traceEvents"]) > 6


def test_reports_that_cannot_be_made(nki: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "trace=t.txt" in refused(nki("profile", *RUN, "--report", "trace=t.txt"), 2, "bad-value")
    refused(nki("profile", *RUN, "--report", "pdf=x"), 2, "bad-value")
    refused(nki("profile", *RUN, "--report", "json"), 2, "bad-value")
    refused(nki("profile", *RUN, "--report", "annotate", "--json"), 2, "conflicting-options")
    words = ("--report", "json=p.json", "--report", "trace=p.json")
    refused(nki("profile", *RUN, *words), 2, "conflicting-options")
    refused(nki("inspect", "kernel.neff", "--report", "timeline"), 2, "unknown-option")
    monkeypatch.setattr("nkic.base.diagnostics.find_spec", lambda name: None)
    for option, meant in (("--html", "--report html=FILE"), ("--md", "--report md=FILE")):
        assert f"did you mean `{meant}`?" in refused(
            nki("profile", *RUN, option, "r"), 2, "unknown-option"
        )
    assert "pip install pyarrow" in refused(
        nki("profile", *RUN, "--report", "counters=c.parquet"), 2, "bad-usage"
    )
    assert "pip install perfetto" in refused(
        nki("profile", *RUN, "--report", "trace=t.pftrace"), 2, "bad-usage"
    )


def test_a_timeline_in_ascii(folder: Path) -> None:
    done = process(
        "profile",
        *RUN,
        "--report",
        "timeline",
        "-o",
        "a=@a.npy",
        PYTHONIOENCODING="ascii",
        PYTHONUTF8="0",
    )
    assert done.returncode == 0 and done.stdout.isascii() and b"DVE " in done.stdout
    done = process(
        "profile", *RUN, "--report", "timeline", "-o", "a=@a.npy", PYTHONIOENCODING="utf-8"
    )
    assert not done.stdout.isascii()


def test_each_rank_has_its_own_reports(nki: Run) -> None:
    two = ("kernel.neff", "--inputs", "data.npz", "--ranks", "2")
    refused(nki("profile", *two, "--report", "trace=t.json"), 2, "bad-value")
    done = nki("profile", *two, "--report", "trace=t{rank}.json", "--report", "json=p{rank}.json")
    assert done.code == 0, done.err
    assert Path("t0.json").is_file() and Path("p1.json").is_file()


def test_a_page_for_people(nki: Run, folder: Path) -> None:
    (folder / "k.py").write_text(KERNEL, encoding="utf-8")
    done = nki("profile", *RUN, "--report", "html=r.html", "--source", "k.py", "-q")
    assert (done.code, done.out, done.err) == (0, "", "")
    text = Path("r.html").read_text("utf-8")
    assert text.startswith("<!DOCTYPE html>") and "nisa.dma_copy(dst=x, src=a)" in text


def test_reports_tell_their_command_and_are_the_same_again(nki: Run) -> None:
    words = (*RUN, "--report", "html=r.html", "--report", "md=r.md", "-q")
    made = []
    for _ in range(2):
        assert nki(*words).code == 0
        made.append([Path(name).read_text("utf-8") for name in ("r.html", "r.md")])
    assert made[0] == made[1]
    for text in made[0]:
        said = unescape(text).replace("\\", "")
        assert shlex.join(["nki-run", *words]) in said
        assert re.search(r"likely within \d\d % of a device's \(dma\.start_hwdge_ns \d %", said)
        assert "of the critical path and is likely within" in said and "launch about 14 us" in said


def test_a_run_that_is_too_long_to_look_into(
    nki: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "MAX_EVENTS", 3)
    monkeypatch.setattr(running, "MAX_REPORTED", 3)
    done = nki(*RUN, "-v")
    assert done.code == 0 and "no verdict: more than 3 events" in done.err
    text = refused(nki("profile", *RUN, "--report", "json=p.json"), 6, "memory-limit")
    assert "more than 3 events" in text and not Path("p.json").exists()


def test_a_run_against_a_baseline(nki: Run, folder: Path) -> None:
    assert nki("profile", *RUN, "--report", "json=b.json", "-q").code == 0
    done = nki(*RUN, "--baseline", "b.json", "--fail-if", "cycles>+0,dma_bytes>+0")
    assert done.code == 0 and "against the baseline: no change" in done.err
    text = refused(nki(*RUN, "--fail-if", "cycles>10"), 1, "budget-exceeded")
    assert "more than 10" in text
    lower = json.loads(Path("b.json").read_text())
    lower["cycles"] = lower["cycles"] // 2
    Path("b.json").write_text(json.dumps(lower))
    done = nki(
        "profile", *RUN, "--baseline", "b.json", "--fail-if", "cycles>+2%", "--report", "md=m.md"
    )
    assert done.code == 1 and "cycles " in Path("m.md").read_text()
    refused(nki(*RUN, "--fail-if", "cycles>+2%"), 2, "conflicting-options")
    refused(nki(*RUN, "--fail-if", "nothing"), 2, "bad-value")
    refused(nki(*RUN, "--baseline", "data.npz"), 2, "bad-value")


def test_two_profiles_side_by_side(nki: Run, folder: Path) -> None:
    nki("profile", *RUN, "--report", "json=a.json", "-q")
    nki("profile", "kernel.neff", "--fill", "ones", "--report", "json=b.json", "-q")
    done = nki("compare", "a.json", "b.json")
    assert done.code == 0 and done.out.startswith("scale on trn2, then scale on trn2: the same")
    assert json.loads(nki("compare", "a.json", "b.json", "--json").out)["lines"] == []
    done = nki("compare", "a.json", "b.json", "--fail-if", "cycles>1", "--report", "md=m.md")
    assert (done.code, Path("m.md").read_text()[:4]) == (1, "### ")
    refused(nki("compare", "a.json", "kernel.neff"), 2, "bad-value")
    refused(nki("compare", "a.json", "b.json", "--report", "timeline"), 2, "bad-value")
    refused(nki("compare", "kernel.neff", "a.json", "b.json"), 2, "bad-usage")


def test_two_compiled_kernels_side_by_side(nki: Run, folder: Path) -> None:
    done = nki("compare", "kernel.neff", "kernel.neff")
    assert (done.code, done.out) == (0, "the files are identical\n")
    found = json.loads(nki("compare", "kernel.neff", "kernel.neff", "--json").out)
    assert (found["verdict"], found["lines"]) == ("identical", [])
    refused(nki("compare", "kernel.neff", "kernel.neff", "--fail-if", "cycles>1"), 2,
            "conflicting-options")  # fmt: skip
    (folder / "bad.neff").write_bytes((folder / "kernel.neff").read_bytes()[:-1])
    assert nki("compare", "kernel.neff", "bad.neff").code == 3


def test_tensors_are_dumped_where_a_line_has_written_them(nki: Run, folder: Path) -> None:
    lines = KERNEL.splitlines()
    loads, scales = (
        next(n for n, text in enumerate(lines, 1) if what in text)
        for what in ("dma_copy(dst=x, src=a)", "tensor_scalar(dst=x")
    )
    words = [f"x@{loads}=before.npz", f"x@{scales}=after.npz", f"y@{loads + 4}=y.npz"]
    done = nki("debug", *RUN, *(w for word in words for w in ("--dump", word)), "-q")
    assert done.code == 0, done.err
    assert np.array_equal(np.load("before.npz")["x"], [A])
    assert np.array_equal(np.load("after.npz")["x"], [2 * A])
    assert np.array_equal(np.load("y.npz")["y"].view(BF16), [B])
    text = refused(nki("debug", *RUN, "--dump", "x@1=x.npz"), 2, "bad-value")
    assert f"it is written in lines {loads}, {scales}" in text
    assert "NKI0003" in nki("debug", *RUN, "--dump", "xx@1=x.npz").err
    refused(nki("debug", *RUN, "--dump", "x=x.npz"), 2, "bad-value")


def test_a_run_beside_the_vendor_s_profile(nki: Run, folder: Path) -> None:
    at = {"timestamp": 0, "opcode": "TENSOR_SCALAR", "engine": "vector"}
    line = 1 + KERNEL.splitlines().index(
        "    nisa.tensor_scalar(dst=x, data=x, op0=nl.multiply, operand0=2.0)"
    )
    rows = [{**at, "duration": 2600, "nki_source_location": f"k.py:{line}"}]
    Path("p.json").write_text(json.dumps({"instruction": rows}), "utf-8")
    done = nki("profile", *RUN, "--against", "p.json", "--no-verdict")
    assert done.code == 0
    (row,) = [text for text in done.out.splitlines() if text.startswith(f"k.py:{line} ")]
    assert re.fullmatch(rf"k\.py:{line} +DVE +1 +0\.\d+ +2\.60 +\d+\.\d+", row.rstrip())
    assert f"line {line} of k.py (DVE): predicted 0." in done.err
    assert "measured 2.60 us" in done.err
    Path("p.json").write_text("{}", "utf-8")
    assert "no list `instruction`" in nki("profile", *RUN, "--against", "p.json").err


def test_two_runs_say_whether_they_can_be_told_apart(nki: Run) -> None:
    nki(*RUN, "--report", "json=a.json", "-q")
    nki(*RUN, "--report", "json=b.json", "-q")
    text = nki("compare", "a.json", "b.json").out
    assert "the second takes 1.00 of the first's time, likely 0.92 to 1.08: not disting" in text
    found = json.loads(nki("compare", "a.json", "b.json", "--json").out)["order"]
    assert found["ratio"] == 1 and not found["distinguishable"]
    old = json.loads(Path("a.json").read_text("utf-8"))
    Path("a.json").write_text(json.dumps(old | {"trust": {"kind": "", "percent": 5}}), "utf-8")
    assert "of the first's time" not in nki("compare", "a.json", "b.json").out
