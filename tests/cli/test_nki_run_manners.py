"""Errors of nki-run, and its behaviour at the terminal."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from nkic.base import levels
from nkic.cli.common import run
from nkic.cli.nki_run import EXAMPLES, main, outputs, running
from nkic.cli.nkic import command as compiler
from tests.cli.nki_run_fixtures import (
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
from tests.harness.commands import ROOT, Run

__all__ = ["artifact", "folder", "nki"]

# ---- errors --------------------------------------------------------------------------------


def test_inputs_that_do_not_fit(nki: Run) -> None:
    text = refused(nki("kernel.neff", "-i", "b=iota", "-i", "c=3"), 4, "inputs-do-not-fit")
    assert "✗ a  float32[128, 8]  missing" in text
    assert "✓ b  bfloat16[4, 16]" in text
    assert "✗ c                   no such input\n" in text


def test_arrays_without_their_option(nki: Run) -> None:
    text = refused(nki("kernel.neff", "data.npz"), 2, "bad-usage")
    assert "help: arrays are given with `--inputs data.npz`" in text


def test_marks_have_a_form_in_ascii(folder: Path) -> None:
    done = process("kernel.neff", LC_ALL="C", PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    assert b"x a  float32[128, 8]  missing" in done.stderr


def test_cast_is_remarked(nki: Run, folder: Path) -> None:
    np.savez("data.npz", a=A.astype(np.float64) + 1e-9, b=B.astype(np.float32))
    assert "--cast converts it" in refused(nki(*RUN), 4, "inputs-do-not-fit")
    done = nki(*RUN, "--cast", "--message-format", "short")
    assert done.code == 0
    assert "remark[NKI1005]: input `a` of `data.npz`, float64[128, 8], was cast" in done.err


@pytest.mark.parametrize(
    ("words", "code", "slug"),
    [
        ((), 2, "missing-argument"),
        (("none.neff",), 2, "cannot-read"),
        ((".",), 2, "cannot-read"),
        (("data.npz",), 3, "not-an-artifact"),
        (("kernel.neff", "--inputs", "none.npz"), 2, "cannot-read"),
        (("kernel.neff", "--inputs", "."), 2, "cannot-read"),
        (("kernel.neff", "--inputs", "kernel.neff"), 4, "bad-array-file"),
        (("kernel.neff", "--inputs", "o.npz"), 4, "array-kind"),
        (("kernel.neff", "-i", "a=what"), 2, "bad-value"),
        (("kernel.neff", "--fill", "what"), 2, "bad-value"),
        ((*RUN, "--expected", "data.npz"), 4, "expected-does-not-fit"),
        ((*RUN, "--outputs", "no/folder/o.npz"), 2, "cannot-write"),
        ((*RUN, "--outputs", "/dev/full"), 2, "cannot-write"),
        ((*RUN, "--outputs", "."), 2, "cannot-write"),
        ((*RUN, "-o", "output_2=-"), 2, "bad-value"),
        ((*RUN, "-o", "output_0="), 2, "bad-value"),
        ((*RUN, "--limit", "cycles=10"), 6, "cycle-limit"),
        ((*RUN, "--limit", "cycles=0"), 2, "bad-value"),
        ((*RUN, "--limit", "time=nan"), 2, "bad-value"),
        ((*RUN, "--limit", "memory=1M"), 6, "memory-limit"),
        ((*RUN, "--limit", "memory=much"), 2, "bad-value"),
        ((*RUN, "--fail-if", "all"), 2, "bad-value"),
        (("inspect", *RUN), 2, "unknown-option"),
        (("inspect", "kernel.neff", "--check", "--disasm"), 2, "conflicting-options"),
        (("inspect", "kernel.neff", "--no-init-check"), 2, "unknown-option"),
        (("inspect", "kernel.neff", "--engine", "vector"), 2, "conflicting-options"),
        ((*RUN, "--engine", "vector"), 2, "unknown-option"),
        (("debug", *RUN), 2, "missing-argument"),
        ((*RUN, "--inputs", "e.npz"), 2, "bad-value"),
        (("compare", "a.json"), 2, "missing-argument"),
        (("inspect",), 2, "missing-argument"),
        (("calibrate",), 2, "missing-argument"),
        ((*RUN, "--rtol", "1"), 2, "conflicting-options"),
        ((*RUN, "--outputs-as", "f32"), 2, "conflicting-options"),
        ((*RUN, "--outputs", "-", "--json"), 2, "conflicting-options"),
        ((*RUN, "--outputs", "data.npz"), 2, "conflicting-options"),
        ((*RUN, "--outputs", "x", "--bless", "x"), 2, "conflicting-options"),
        (("-", "--inputs", "-"), 2, "conflicting-options"),
        ((*RUN, "--ouputs", "o"), 2, "unknown-option"),
    ],
)
def test_one_clear_error(nki: Run, folder: Path, words: Any, code: int, slug: str) -> None:
    np.savez("o.npz", a=np.array([None]), b=B)
    before = sorted(folder.iterdir())
    refused(nki(*words), code, slug)
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("words", "slug"),
    [
        ((*RUN, "--outputs", "circle"), "cannot-write"),
        ((*RUN, "--outputs", "circle/o.npz"), "cannot-write"),
        (("kernel.neff", "--inputs", "circle"), "cannot-read"),
    ],
)
def test_links_in_a_circle_are_refused_and_stay(
    nki: Run, folder: Path, words: Any, slug: str
) -> None:
    Path("circle").symlink_to("circle")
    refused(nki(*words), 2, slug)
    assert Path("circle").is_symlink()


def test_outputs_may_go_to_a_device(nki: Run) -> None:
    """zipfile calls tell() on its output, which is always 0 for /dev/null."""
    assert nki(*RUN, "--outputs", os.devnull).code == 0


def test_faults_of_the_program_end_with_5(nki: Run, folder: Path) -> None:
    lines = [line for line in KERNEL.split("\n") if "src=a" not in line]
    Path("bad.py").write_text("\n".join(lines), encoding="utf-8")
    assert run(compiler, "nkic", ["bad.py", "--embed-source", "-W", "NKI0536"]) == 0
    text = refused(nki("bad.neff", "--fill", "zeros"), 5, "uninitialised-read")
    assert "bad.py:14:5: error[NKI0901]" in text
    assert "14 |     nisa.tensor_scalar(dst=x" in text  # the artifact contains the source text
    assert nki("bad.neff", "--fill", "zeros", "--no-init-check").code == 0


def test_internal_errors_end_with_70(nki: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "simulate_ranks", lambda *_: 1 // 0)
    monkeypatch.setenv("NKIC_CRASH_DIR", ".")
    assert "ZeroDivisionError" in refused(nki(*RUN), 70, "internal-error")


def test_interrupted_writing_leaves_nothing(
    nki: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(stream: Any, *_: Any) -> None:
        stream.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(outputs, "write_npz", interrupted)
    before = sorted(folder.iterdir())
    assert nki(*RUN, "--outputs", "o.npz").code == 130
    assert sorted(folder.iterdir()) == before


def test_a_closed_pipe_ends_quietly(folder: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    child = subprocess.Popen(
        [sys.executable, "-m", "nkic.cli.nki_run", "inspect", "kernel.neff", "--disasm"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=write,
        stderr=subprocess.PIPE,
    )
    os.close(write)
    _, said = child.communicate(timeout=60)
    assert (child.returncode, said) == (128 + signal.SIGPIPE, b"")


# ---- messages, help, start-up --------------------------------------------------------------


def test_messages_as_json(nki: Run) -> None:
    done = nki(*RUN, "--expected", "e.npz", "--message-format", "json", "--outputs", "o.npz")
    events = [json.loads(line) for line in done.err.splitlines()]
    assert [event["type"] for event in events] == [
        "artifact", "resources", "run", "verdict", "compare", "compare"
    ]  # fmt: skip
    np.savez("e.npz", output_0=A, output_1=B)
    done = nki(*RUN, "--expected", "e.npz", "--message-format", "json", "--message-file", "m.json")
    said = [json.loads(line) for line in done.err.splitlines()]
    found = [event for event in said if event["type"] == "diagnostic"]
    assert [event["code"] for event in found] == ["NKI1007", "NKI1007"]
    assert [json.loads(line) for line in Path("m.json").read_text().splitlines()] == said
    schema = (ROOT / "nkic/base/render/diagnostic.schema.json").read_text()
    for event in found:
        jsonschema.validate(event, json.loads(schema))


def test_examples_in_the_help_run(nki: Run) -> None:
    assert len(EXAMPLES) == 4
    for line, _ in EXAMPLES:
        tool, *words = shlex.split(line)
        assert tool == "nki-run"
        assert nki(*words).code == 0, line


def test_help_names_every_input_generator(nki: Run) -> None:
    text = nki("--help").out
    for word in ("zeros", "ones", "iota", "randn(seed)", "uniform(lo,hi,seed)", "poison"):
        assert word in text
    assert len(nki("-h").out.splitlines()) < 50


def imported(*words: str) -> set[str]:
    """Return the modules that a command line imports."""
    code = f"""
import sys
from nkic.cli.common import run
from nkic.cli.nki_run import command
run(command, "nki-run", {list(words)!r})
sys.stderr.write("\\n" + " ".join(sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        encoding="utf-8",
        check=True,
        timeout=60,
    )
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("words", [("--version",), ("--help",), ("-h",), ("--explain", "NKI1004")])
def test_answers_without_numpy(words: tuple[str, ...]) -> None:
    assert imported(*words) & {"numpy", "lark", "msgpack", "rich", "zipfile"} == set()


def test_nothing_of_the_compiler_is_imported(folder: Path) -> None:
    found = {name.split(".")[1] for name in imported(*RUN, "-q") if name.startswith("nkic.")}
    assert found == {"artifact", "base", "cli", "machine", "program", "prove", "report", "simulate"}


def test_version_and_explain(nki: Run) -> None:
    assert nki("--version").out.startswith("nki-run 0.")
    assert nki("--explain", "outputs-differ").out.startswith("# NKI1007 outputs-differ: ")
    assert levels.page("1004").startswith("# NKI1004 inputs-do-not-fit")


def test_main_is_the_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["nki-run", "--version"])
    assert main() == 0
