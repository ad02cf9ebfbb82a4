"""Test calibration on profiles that the simulator makes of the microkernels on another machine."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from nkic.artifact.pace import Clock
from nkic.artifact.records import Executable
from nkic.base.diagnostics import UsageFailed
from nkic.base.source import SourceFile
from nkic.compiler.pipeline import compile_source
from nkic.machine.clock import TABLE
from nkic.machine.targets import TRN2, MachineFile
from nkic.report.calibrate import AFTER, PROBE, Observation, fitted, observed, read_profiles, source
from nkic.report.probes import DURATION, INTERVAL, PROBES, SPAN
from nkic.simulate import RunOptions, simulate
from nkic.specialise.inline import parse_arg
from nkic.specialise.request import Request

TEXT = source()
DATA = np.ones((128, 4096), np.float32)
# Another machine: every fitted figure is different, by up to a third.
OTHER = {
    "vector.clock_mhz": 1100.0,
    "vector.interval_sbuf": 70.0,
    "vector.duration_psum": 180.0,
    "vector.pointer": 40.0,
    "issue.least": 80.0,
    "issue.least_dynamic": 500.0,
    "issue.semaphore_ns": 30.0,
    "scalar.table_ns": 900.0,
    "tensor.issue": 6.0,
    "tensor.warm_up_ns": 5000.0,
    "tensor.cold_rate": 0.6,
    "dma.transpose_hbm": 0.7,
    "dma.transpose_sbuf": 0.4,
    "vector.scan": 90.0,
    "scalar.interval_psum": 66.0,
    "scalar.function": 140.0,
    "gpsimd.start": 200.0,
    "tensor.clock_mhz": 2800.0,
    "tensor.fill_ns": 90.0,
    "tensor.load_32_ns": 240.0,
    "dma.start_hwdge_ns": 1200.0,
    "dma.engine_rate": 21.0,
    "dma.descriptor_ns": 22.0,
    "dma.trigger_hwdge_ns": 650.0,
    "dma.trigger_swdge_ns": 500.0,
}


def compiled(kernel: str) -> Executable:
    args = {"x": dict([parse_arg("x=float32[128, 4096]")])["x"]}
    request = Request(kernel=kernel, args=args, target=TRN2)
    return compile_source(SourceFile("m.py", TEXT), request, lambda name, at: None).executable


def profile(kernel: str, figures: Mapping[str, float]) -> dict[str, Any]:
    """Return the profile that a profiler would write of the kernel on a machine with these
    figures.
    """
    executable, lines = compiled(kernel), TEXT.splitlines()
    machine = MachineFile("m.toml", figures)
    options = RunOptions(timeline=1000, machine=machine, check_init=False)
    clock = Clock(executable, machine.applied(TRN2))
    streams = {stream.name: stream for stream in executable.streams}
    rows = []
    for busy in simulate(executable, {"x": DATA}, options).timeline:
        stream = streams[busy.stream]
        times, _ = clock.of(busy.record, stream.engine, stream.queue)
        label = lines[executable.places[busy.record.place].line - 1]
        duration = (times.hold + times.latency) / 1000
        rows.append({"timestamp": busy.start / 1000, "duration": duration, "label": label})
    return {"summary": [], "instruction": rows}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("profiles")
    for name in {probe.name for probe in PROBES}:
        (made / f"{name}.json").write_text(json.dumps(profile(name, OTHER)), "utf-8")
    return made


def test_figures_of_another_machine_are_found(folder: Path) -> None:
    found = read_profiles(str(folder))
    assert len(found) == len(PROBES)
    fit = fitted(found, TRN2)
    assert fit.before > 0.03 and fit.error < 0.002
    for name, value in fit.figures.items():
        wanted = OTHER.get(name, TRN2.figures[name])
        near = 2.5 if TABLE[name].unit == "cycles" else 0.02 * wanted  # cycles are whole numbers
        assert value == pytest.approx(wanted, abs=max(near, 0.02 * wanted)), name


def test_nothing_changes_where_the_clock_is_right() -> None:
    seen = [Observation(probe, probe.predicted(TRN2)) for probe in PROBES]
    fit = fitted(seen, TRN2)
    assert fit.error == fit.before == 0
    assert fit.figures == pytest.approx({name: TRN2.figures[name] for name in fit.figures})


def test_every_probe_shows_what_it_is_for() -> None:
    """A change of the figure changes the time that the clock computes for the microkernel."""
    for probe in PROBES:
        for name in probe.figures:
            figures = {**TRN2.figures, name: 1.3 * TRN2.figures[name]}
            other = MachineFile("m.toml", MappingProxyType(figures)).applied(TRN2)
            assert probe.predicted(other) != probe.predicted(TRN2), (probe.name, name)


def test_which_figures_no_microkernel_shows() -> None:
    """docs/timing.md gives the reasons."""
    shown = {name for probe in PROBES for name in probe.figures}
    loads = {f"{one}.register_load_ns" for one in ("gpsimd", "scalar", "sync", "tensor", "vector")}
    rest = {
        *("sync.clock_mhz", "issue.register_cycles", "issue.full_rate_stride"),
        *("tensor.load_rate", "tensor.cool_down_ns", "tensor.least_use", "gpsimd.dma_rate"),
        *("dma.done_ns", "dma.trigger_prepared_ns", "dma.engine_rate_shared", "dma.link_rate"),
        *("dma.descriptor_bytes", "dma.partitions", "launch.before_ns", "launch.after_ns"),
    }
    assert set(TABLE) - shown == loads | rest


def test_a_span_needs_two_ends() -> None:
    probe = next(p for p in PROBES if p.quantity == SPAN)
    assert observed(probe, {"instruction": [row(10.0), row(900.0)]}, "p").ns == 890
    with pytest.raises(UsageFailed, match="3 instructions are named nkic_probe, and not two"):
        observed(probe, {"instruction": [row(1.0), row(2.0), row(3.0)]}, "p")


def test_the_file_for_a_device_is_python_that_imports_nki_alone() -> None:
    tree = ast.parse(TEXT)
    names = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    assert names == {"numpy", "nki", "nki.isa", "nki.language", "os", "subprocess", "sys"}
    assert TEXT.count("@nki.jit") == len({probe.name for probe in PROBES})


def row(start: float, label: str = PROBE, **more: Any) -> dict[str, Any]:
    return {"timestamp": start, "duration": 50.0, "label": label, **more}


def test_weights_do_not_count_and_halves_belong_together() -> None:
    """A product in float32 is two MATMULs each, among LDWEIGHTS."""
    probe = next(p for p in PROBES if p.name == "tensor_32" and p.quantity == INTERVAL)
    rows = [row(100.0 * i) for i in range(12)]
    rows += [row(100.0 * i + 1, opcode="LDWEIGHTS") for i in range(12)]
    assert observed(probe, {"instruction": rows}, "p").ns == 200


def test_a_duration_ends_with_the_last_part() -> None:
    probe = next(p for p in PROBES if p.name == "tensor_16" and p.quantity == DURATION)
    rows = [row(100.0 * i) for i in range(12)]
    assert observed(probe, {"instruction": rows}, "p").ns == 150


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ([], "no list `instruction`"),
        ({"instruction": 3}, "no list `instruction`"),
        ({"instruction": [row(1)]}, "1 instructions are named nkic_probe, of 6 repeats"),
        *(
            ({"instruction": [row(1) | {"timestamp": time}]}, "no timestamp or duration in ns")
            for time in ("x", True, -1, 10**400, float("nan"), float("inf"))
        ),
        ({"instruction": [row(1) | {"duration": -1}]}, "no timestamp or duration in ns"),
        ({"instruction": [row(7)] * 6}, "the time measured is 0 ns, but must be at least 1 ns"),
    ],
)
def test_a_profile_that_says_something_else_is_refused(content: Any, said: str) -> None:
    probe = next(p for p in PROBES if p.quantity == INTERVAL)
    with pytest.raises(UsageFailed, match=said):
        observed(probe, content, "p.json")


def test_an_arrival_needs_both_ends() -> None:
    probe = next(p for p in PROBES if p.quantity == "arrival")
    rows = [row(10.0), row(1500.0, AFTER)]
    assert observed(probe, {"instruction": rows}, "p").ns == 1490
    with pytest.raises(UsageFailed, match="one instruction named"):
        observed(probe, {"instruction": rows[:1]}, "p")


def test_a_folder_without_profiles_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageFailed, match="there is no such folder"):
        read_profiles(str(tmp_path / "x"))
    with pytest.raises(UsageFailed, match="it holds no profile of a microkernel"):
        read_profiles(str(tmp_path))
