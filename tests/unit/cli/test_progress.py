"""Test the progress of a run: right counts, shown late, and only on a terminal."""

import io

import pytest

import nkic
from nkic.base.source import SourceFile
from nkic.cli.common import Session
from nkic.cli.nki_run import running
from nkic.cli.nki_run.running import Bar
from nkic.report.resources import executions
from nkic.simulate import machine, stage
from tests.harness.traced import HEAD, SAMPLES, run


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_total_is_what_a_run_executes() -> None:
    for name in ("06_matmul", "11_selective_scan"):
        program = nkic.compile(str(SAMPLES / name / "kernel.py")).executable
        assert executions(program) == run(program).instructions


def test_loops_count_with_their_trips() -> None:
    text = (
        "def kernel(x):\n"
        "    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n"
        "    t = nl.load(x)\n"
        "    def body(i):\n"
        "        nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=1.0)\n"
        "    nl.fori_loop(0, 7, body)\n"
        "    nl.store(out, t)\n"
        "    return out\n"
    )
    source = SourceFile("k.py", HEAD + text)
    program = nkic.compile(source, inputs={"x": "float32[128,8]"}).executable
    assert executions(program) == run(program).instructions == 9


def test_a_run_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (machine, stage):
        monkeypatch.setattr(module, "WATCH_INTERVAL", 10)
    program = nkic.compile(str(SAMPLES / "06_matmul" / "kernel.py")).executable
    seen: list[int] = []
    total = run(program, watch=seen.append).instructions
    assert seen == sorted(seen) and 0 < seen[0] < total and total - 20 <= seen[-1] <= total


def test_a_bar_shows_itself_late_and_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    late, soon = Terminal(), Terminal()
    for stream, after in ((late, 1000.0), (soon, 0.0)):
        bar = Bar(stream, 40, after)
        bar(10)
        bar.close()
    assert late.getvalue() == ""
    assert "instructions" in soon.getvalue() and "10/40" in soon.getvalue()


def test_only_people_at_a_terminal_see_it(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [(Terminal(), Session("nki-run"), True), (io.StringIO(), Session("nki-run"), False)]
    cases += [(Terminal(), Session("nki-run", verbosity=-1), False)]
    cases += [(Terminal(), Session("nki-run", format="json"), False)]
    for stream, session, expected in cases:
        monkeypatch.setattr("sys.stderr", stream)
        with running.shown(session, 10) as bar:
            assert (bar is not None) is expected
