"""--machine, and the subcommand calibrate."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nkic.cli.common import run
from nkic.cli.nkic import command as compiler
from nkic.machine.clock import TABLE
from nkic.machine.targets import TRN2, read_machine
from tests.cli.nki_run_fixtures import KERNEL, RUN, artifact, folder, nki, refused
from tests.harness.commands import Run

__all__ = ["artifact", "folder", "nki"]
TEXT = "[dma]\ndone_ns = 1298\n"


def test_a_machine_file_changes_the_time_and_is_named(nki: Run, folder: Path) -> None:
    Path("m.toml").write_text(TEXT, "utf-8")
    plain = json.loads(nki(*RUN, "--json").out)
    given = json.loads(nki(*RUN, "--json", "--machine", "m.toml").out)
    assert plain["machine"] == "default"
    assert given["machine"] == read_machine("m.toml", TEXT).hash
    # A load followed by a store, each of which completes 1,000 ns later.
    assert given["time_ns"] - plain["time_ns"] == pytest.approx(2000)
    launch = TRN2.figures["launch.before_ns"] + TRN2.figures["launch.after_ns"]
    assert given["launch_ns"] == launch
    assert given["trust"]["percent"] > 0 and given["trust"]["checked"]
    words = nki(*RUN, "--machine", "m.toml").err
    assert f"machine {given['machine'][:12]}; on a device about " in words


def test_what_is_wrong_with_it_is_said(nki: Run, folder: Path) -> None:
    Path("m.toml").write_text("[dma]\ndonens = 1298\n", "utf-8")
    text = refused(nki(*RUN, "--machine", "m.toml"), 2, "bad-value")
    assert "there is no parameter `dma.donens`" in text
    assert "did you mean `dma.done_ns`?" in text
    Path("m.toml").write_text("target = 'trn1'", "utf-8")
    text = refused(nki(*RUN, "--machine", "m.toml"), 2, "bad-value")
    assert "its figures are for trn1, but the kernel is for trn2" in text
    assert "no.toml" in refused(nki(*RUN, "--machine", "no.toml"), 2, "cannot-read")


def test_the_figures_are_printed_with_standing_and_source(nki: Run, folder: Path) -> None:
    lines = nki("calibrate", "--print", "machine").out.splitlines()
    assert lines[0].split() == [
        *("target", "parameter", "value", "unit", "likely", "error"),
        *("standing", "source", "meaning"),
    ]
    assert len(lines) == 1 + 3 * (1 + len(TABLE))
    Path("m.toml").write_text(TEXT, "utf-8")
    found = json.loads(nki("calibrate", "--print", "machine", "--machine", "m.toml", "--json").out)
    given = [row for row in found["machine"] if row["standing"] == "given"]
    assert {(row["parameter"], row["value"]) for row in given} == {("dma.done_ns", 1298.0)}


def test_the_microkernels_are_printed(nki: Run) -> None:
    text = nki("calibrate", "--print", "microkernels").out
    compile(text, "microkernels.py", "exec")
    assert "@nki.jit" in text


@pytest.mark.parametrize(
    "words",
    [
        ("profiles", "--print", "machine"),
        ("--print", "microkernels", "--machine", "m.toml"),
        ("--print", "machine", "--target", "trn1"),
        ("--print", "microkernels", "--json"),
        ("profiles", "--json"),
        ("profiles", "--machine", "m.toml"),
    ],
)
def test_what_would_be_ignored_is_refused(nki: Run, words: tuple[str, ...]) -> None:
    refused(nki("calibrate", *words), 2, "conflicting-options")


def test_a_folder_without_profiles_is_refused(nki: Run, folder: Path) -> None:
    assert "no profile of a microkernel" in refused(nki("calibrate", "."), 2, "bad-value")


def test_the_compiler_schedules_by_it_and_says_so(nki: Run, folder: Path) -> None:
    Path("k.py").write_text(KERNEL, "utf-8")
    Path("m.toml").write_text(TEXT, "utf-8")
    assert run(compiler, "nkic", ("k.py", "-o", "other.neff", "--machine", "m.toml")) == 0
    assert read_machine("m.toml", TEXT).hash in nki("inspect", "other.neff").out
    found = json.loads(nki("other.neff", *RUN[1:], "--machine", "m.toml", "--json").out)
    assert found["resources"]["cycles"] == found["cycles"], "est. is of that machine"


def test_figures_are_fitted_to_rows_of_kernels(nki: Run, folder: Path) -> None:
    Path("k.py").write_text(KERNEL, "utf-8")
    assert run(compiler, "nkic", ("k.py", "-o", "k.neff")) == 0
    us = json.loads(nki("k.neff", *RUN[1:], "--json").out)["time_ns"] / 1000
    Path("rows.csv").write_text(f"file,latency_us\nk.neff,{us + 1}\n", "utf-8")
    words = ("calibrate", "rows.csv", "--figures", "dma.done_ns")
    text = nki(*words).out
    assert text.startswith("# 1 observations; the clock is off by 0.0 % (median), with its own")
    Path("m.toml").write_text(text, "utf-8")
    assert read_machine("m.toml", text).figures["dma.done_ns"] == pytest.approx(798, rel=0.05)
    found = json.loads(nki("k.neff", *RUN[1:], "--machine", "m.toml", "--json").out)
    assert found["time_ns"] / 1000 == pytest.approx(us + 1, rel=0.01)
    silent = refused(nki(*words[:3], "tensor.fill_ns"), 2, "bad-value")
    assert "no row tells anything about tensor.fill_ns" in silent
    assert "do not say which figures to fit" in refused(
        nki("calibrate", "rows.csv"), 2, "bad-value"
    )
    many = refused(nki(*words[:3], "dma.done_ns,dma.start_hwdge_ns"), 2, "bad-value")
    assert "2 figures do not follow from 1 observations" in many
    assert "is for a file of rows" in refused(nki("calibrate", ".", *words[2:]), 2, "bad-value")
