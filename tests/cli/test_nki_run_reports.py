"""Reports of `nki-run`: what is printed, written and rejected."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from nkic.cli.nki_run import insights
from nkic.machine.engines import SHORT_NAMES
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
    done = nki(*RUN, "--annotate", "--timeline", "--source", "k.py", "-O", "a=@a.npy")
    assert done.code == 0, done.err
    source = [line.split(" | ")[-1] for line in done.out.splitlines() if " | " in line]
    assert "  14      nisa.dma_copy(dst=x, src=a)" in source
    assert [row for row in done.out.splitlines() if row.startswith("DVE ")]
    without = nki(*RUN, "--annotate", "-O", "a=@a.npy")
    assert "dma_copy" not in without.out and "|   14" in without.out


def test_a_timeline_has_colours_on_a_terminal(nki: Run) -> None:
    words = (*RUN, "--timeline", "-O", "a=@a.npy")
    plain, coloured = (nki(*words, "--color", how).out for how in ("never", "always"))
    assert re.search(r"(?m)^\x1b\[31mDMA", coloured) and "\x1b" not in plain
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == plain


def test_a_window_needs_a_timeline(nki: Run) -> None:
    refused(nki(*RUN, "--window", "0:1"), 2, "conflicting-options")
    assert "is not of the form FROM:TO" in nki(*RUN, "--timeline", "--window", "2:1").err
    done = nki(*RUN, "--timeline", "--window", "0.5:1.5", "-O", "a=@a.npy")
    assert done.out.splitlines()[0].split() == ["0.50", "us", "1.50", "us"]


def test_source_must_be_what_was_compiled(nki: Run, folder: Path) -> None:
    (folder / "k.py").write_text(KERNEL + "\n", encoding="utf-8")
    refused(nki(*RUN, "--source", "k.py"), 2, "conflicting-options")
    text = refused(nki(*RUN, "--annotate", "--source", "k.py"), 2, "bad-value")
    assert "is not a file that this kernel was compiled from" in text


def test_summary_and_profile(nki: Run, folder: Path) -> None:
    done = nki(*RUN, "--summary-json", "s.json", "--report", "json=p.json", "--json")
    run, profile = json.loads(done.out), json.loads(Path("p.json").read_text())
    ((key, values),) = json.loads(Path("s.json").read_text()).items()
    assert key == run["id"] == profile["id"]
    assert values["total_time"] == pytest.approx(run["time_ns"] * 1e-9)
    assert profile["cycles"] == run["cycles"] and profile["verdict"] == run["verdict"]
    assert sum(profile["instructions"].values()) == run["instructions"]
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
    assert "say nothing" not in refused(nki(*RUN, "--trace", "t.txt"), 2, "bad-value")
    refused(nki(*RUN, "--report", "pdf=x"), 2, "bad-value")
    refused(nki(*RUN, "--report", "json"), 2, "bad-value")
    refused(nki(*RUN, "--annotate", "--json"), 2, "conflicting-options")
    refused(nki(*RUN, "--report", "json=p.json", "--trace", "p.json"), 2, "conflicting-options")
    refused(nki("kernel.neff", "--info", "--timeline"), 2, "conflicting-options")
    monkeypatch.setattr("nkic.report.views.perfetto.find_spec", lambda name: None)
    monkeypatch.setattr("nkic.report.views.counters.find_spec", lambda name: None)
    for words, meant in (
        (("--html", "r.html"), "--report html=FILE"),
        (("--md=x",), "--report md=FILE"),
    ):
        assert f"did you mean `{meant}`?" in refused(nki(*RUN, *words), 2, "unknown-option")
    assert "pip install pyarrow" in refused(nki(*RUN, "--counters", "c.parquet"), 2, "bad-value")
    assert "pip install perfetto" in refused(nki(*RUN, "--trace", "t.pftrace"), 2, "bad-value")


def test_a_timeline_in_ascii(folder: Path) -> None:
    done = process(*RUN, "--timeline", "-O", "a=@a.npy", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0 and done.stdout.isascii() and b"DVE " in done.stdout
    done = process(*RUN, "--timeline", "-O", "a=@a.npy", PYTHONIOENCODING="utf-8")
    assert not done.stdout.isascii()


def test_each_rank_has_its_own_reports(nki: Run) -> None:
    two = ("kernel.neff", "--inputs", "data.npz", "--ranks", "2")
    refused(nki(*two, "--trace", "t.json"), 2, "bad-value")
    done = nki(*two, "--trace", "t{rank}.json", "--report", "json=p{rank}.json")
    assert done.code == 0, done.err
    assert Path("t0.json").is_file() and Path("p1.json").is_file()


def test_a_page_for_people(nki: Run, folder: Path) -> None:
    (folder / "k.py").write_text(KERNEL, encoding="utf-8")
    done = nki(*RUN, "--report", "html=r.html", "--source", "k.py", "-q")
    assert (done.code, done.out, done.err) == (0, "", "")
    text = Path("r.html").read_text("utf-8")
    assert text.startswith("<!DOCTYPE html>") and "nisa.dma_copy(dst=x, src=a)" in text


def test_a_run_that_is_too_long_to_look_into(
    nki: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(insights, "MAX_EVENTS", 3)
    monkeypatch.setattr(insights, "MAX_REPORTED", 3)
    done = nki(*RUN, "-v")
    assert done.code == 0 and "no verdict: more than 3 events" in done.err
    text = refused(nki(*RUN, "--report", "json=p.json"), 6, "memory-limit")
    assert "more than 3 events" in text and not Path("p.json").exists()


def test_a_run_against_a_baseline(nki: Run, folder: Path) -> None:
    assert nki(*RUN, "--save-baseline", "b.json", "-q").code == 0
    done = nki(*RUN, "--baseline", "b.json", "--fail-if", "cycles>+0,dma_bytes>+0")
    assert done.code == 0 and "against the baseline: no change" in done.err
    text = refused(nki(*RUN, "--fail-if", "cycles>10"), 1, "budget-exceeded")
    assert "more than 10" in text
    lower = json.loads(Path("b.json").read_text())
    lower["cycles"] = lower["cycles"] // 2
    Path("b.json").write_text(json.dumps(lower))
    done = nki(*RUN, "--baseline", "b.json", "--fail-if", "cycles>+2%", "--report", "md=m.md")
    assert done.code == 1 and "cycles " in Path("m.md").read_text()
    refused(nki(*RUN, "--fail-if", "cycles>+2%"), 2, "conflicting-options")
    refused(nki(*RUN, "--fail-if", "nothing"), 2, "bad-value")
    refused(nki(*RUN, "--baseline", "data.npz"), 2, "bad-value")


def test_two_profiles_side_by_side(nki: Run, folder: Path) -> None:
    nki(*RUN, "--report", "json=a.json", "-q")
    nki("kernel.neff", "--fill", "ones", "--report", "json=b.json", "-q")
    done = nki("--diff", "a.json", "b.json")
    assert done.code == 0 and done.out.startswith("scale on trn2, then scale on trn2: the same")
    assert json.loads(nki("--diff", "a.json", "b.json", "--json").out)["lines"] == []
    done = nki("--diff", "a.json", "b.json", "--fail-if", "cycles>1", "--report", "md=m.md")
    assert (done.code, Path("m.md").read_text()[:4]) == (1, "### ")
    refused(nki("--diff", "a.json", "kernel.neff"), 2, "bad-value")
    refused(nki("--diff", "a.json", "b.json", "--timeline"), 2, "conflicting-options")
    refused(nki("kernel.neff", "--diff", "a.json", "b.json"), 2, "conflicting-options")


def test_two_compiled_kernels_side_by_side(nki: Run, folder: Path) -> None:
    done = nki("--diff", "kernel.neff", "kernel.neff")
    assert (done.code, done.out) == (0, "the files are identical\n")
    found = json.loads(nki("--diff", "kernel.neff", "kernel.neff", "--json").out)
    assert (found["verdict"], found["lines"]) == ("identical", [])
    refused(nki("--diff", "kernel.neff", "kernel.neff", "--fail-if", "cycles>1"), 2,
            "conflicting-options")  # fmt: skip
    (folder / "bad.neff").write_bytes((folder / "kernel.neff").read_bytes()[:-1])
    assert nki("--diff", "kernel.neff", "bad.neff").code == 3


def test_tensors_are_dumped_where_a_line_has_written_them(nki: Run, folder: Path) -> None:
    lines = KERNEL.splitlines()
    loads, scales = (
        next(n for n, text in enumerate(lines, 1) if what in text)
        for what in ("dma_copy(dst=x, src=a)", "tensor_scalar(dst=x")
    )
    words = [f"x@{loads}=before.npz", f"x@{scales}=after.npz", f"y@{loads + 4}=y.npz"]
    done = nki(*RUN, *(w for word in words for w in ("--dump-tensor", word)), "-q")
    assert done.code == 0, done.err
    assert np.array_equal(np.load("before.npz")["x"], [A])
    assert np.array_equal(np.load("after.npz")["x"], [2 * A])
    assert np.array_equal(np.load("y.npz")["y"].view(BF16), [B])
    text = refused(nki(*RUN, "--dump-tensor", "x@1=x.npz"), 2, "bad-value")
    assert f"it is written in lines {loads}, {scales}" in text
    assert "NKI0003" in nki(*RUN, "--dump-tensor", "xx@1=x.npz").err
    refused(nki(*RUN, "--dump-tensor", "x=x.npz"), 2, "bad-value")
