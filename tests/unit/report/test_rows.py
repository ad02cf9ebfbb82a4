"""Figures fitted to times of whole kernels."""

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from nkic.artifact.records import Executable
from nkic.base.diagnostics import UsageFailed
from nkic.machine.targets import TRN2, Engine, Target
from nkic.report.calibrate import Observation, Whole, figures_named, fitted, read_rows
from tests.unit.report.test_trust import compiled

OTHER = {"dma.engine_rate": 21.0, "scalar.clock_mhz": 1000.0}
MACHINE = replace(TRN2, figures=MappingProxyType({**TRN2.figures, **OTHER}))
COLUMNS = {"small.neff": 1024, "large.neff": 4096, "huge.neff": 8192}
KERNELS = {name: compiled(columns).executable for name, columns in COLUMNS.items()}


def load(path: str) -> Executable:
    return KERNELS[Path(path).name]


def measured(name: str, target: Target = MACHINE) -> tuple[float, float]:
    """Return the latency in us, and the share in percent for which scalar is active."""
    whole, busy = (Whole(KERNELS[name], (), e).predicted(target) for e in (None, Engine.SCALAR))
    return whole / 1000, 100 * busy / whole


def rows(path: Path, lines: list[str], figures: str = ",".join(OTHER)) -> list[Observation]:
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return [*read_rows(str(path), figures_named(figures), TRN2, load)]


def test_the_figures_of_another_machine_are_found(tmp_path: Path) -> None:
    lines = ["op,file,latency_us,scalar_active,bytes"]
    for name, columns in COLUMNS.items():
        us, percent = measured(name)
        lines.append(f"copy,{name},{us},{percent},{2 * 128 * columns * 4}")
    observations = rows(tmp_path / "r.csv", lines)
    assert len(observations) == 6
    fit = fitted(observations, TRN2)
    assert fit.figures == pytest.approx(OTHER, rel=0.01)
    assert fit.error < 0.001 < 0.05 < fit.before
    assert fit.left_out < 0.01 and not fit.silent


def test_the_error_of_what_is_left_out_is_the_greater(tmp_path: Path) -> None:
    noise = dict(zip(COLUMNS, (1.05, 0.95, 1.03), strict=True))
    lines = ["file,latency_us", *(f"{n},{measured(n)[0] * noise[n]}" for n in COLUMNS)]
    fit = fitted(rows(tmp_path / "r.csv", lines, "dma.engine_rate"), TRN2)
    assert fit.left_out > fit.error > 0.01
    silent = fitted(rows(tmp_path / "r.csv", lines, "tensor.fill_ns"), TRN2)
    assert list(silent.silent) == ["tensor.fill_ns"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["kernel,latency_us", "a,1"], "it has no column `file`"),
        (["file,latency_us"], "it has no rows"),
        (["file,latency_us", "k.py,3"], "r.csv:2: `k.py` is a source"),
        (["file,latency_us", "small.neff,"], "r.csv:2: it has no latency_us"),
        (["file,latency_us", "small.neff,fast"], "latency_us is `fast`, not a number above 0"),
        (["file,latency_us", "small.neff,nan"], "latency_us is `nan`"),
        (["file,latency_us", "small.neff,-3"], "latency_us is `-3`"),
        (["file,latency_us", "small.neff,3,4"], "as many cells as the first line"),
        (["file,latency_us,pe_active", "small.neff,9,120"], "above 0 and up to 100"),
        (["file,latency_us,bytes", "small.neff,9,72000000"], "moved 72,000,000 bytes, and the"),
    ],
)
def test_bad_rows_are_refused_with_their_place(
    tmp_path: Path, lines: list[str], message: str
) -> None:
    with pytest.raises(UsageFailed) as refused:
        rows(tmp_path / "r.csv", lines)
    assert message in refused.value.diagnostics[0].message


@pytest.mark.parametrize("names", [None, "", "dma.rate"])
def test_figures_must_be_named(names: str | None) -> None:
    with pytest.raises(UsageFailed):
        figures_named(names)
