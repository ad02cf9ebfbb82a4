"""Listings of the timing figures, as `nki-run calibrate --print machine` prints them."""

from __future__ import annotations

from collections.abc import Iterator

from nkic.machine.clock.figures import Parameter
from nkic.machine.clock.machine_file import MachineFile
from nkic.machine.clock.table import TABLE
from nkic.machine.targets import ALONE, TARGETS, Target, likely_error

HEAD = ("target", "parameter", "value", "unit", "likely error", "standing", "source", "meaning")
FROM_FILE = "machine file"


def rows(machine: MachineFile | None = None) -> list[tuple[str, ...]]:
    """Return a header, then a row for each target's contention and parameters."""
    lines: list[tuple[str, ...]] = [HEAD]
    for record in records(machine):
        value = record["value"]
        shown = f"{value:g}" if isinstance(value, float | int) else str(value)
        error = record["likely_error"]
        percent = "" if error is None or not value else f"{100 * float(str(error)):.0f} %"
        cells = {**record, "value": shown, "likely error": percent}
        lines.append(tuple(str(cells[name]) for name in HEAD))
    return lines


def records(machine: MachineFile | None = None) -> list[dict[str, object]]:
    """Return the same as records for JSON, of the targets to which the machine file applies."""
    selected = [t for t in TARGETS.values() if machine is None or machine.target in (None, t.name)]
    return [record for target in selected for record in _of(target, machine)]


def _of(target: Target, machine: MachineFile | None) -> Iterator[dict[str, object]]:
    contention = machine.contention if machine is not None else None
    yield {
        "target": target.name,
        "parameter": "contention",
        "value": contention or target.contention,
        "unit": "alone, pair or all",
        "likely_error": None,
        "standing": "given" if contention else "documented",
        "source": FROM_FILE
        if contention
        else "two cores share a stack of HBM; architecture guides",
        "meaning": f"other cores that use HBM; a kernel on two cores is never {ALONE}",
    }
    for row in TABLE.values():
        yield _figure(row, target, machine)


def _figure(row: Parameter, target: Target, machine: MachineFile | None) -> dict[str, object]:
    figure = row.of(target.generation)
    target = machine.applied(target) if machine is not None else target
    override = machine.figures.get(row.name) if machine is not None else None
    return {
        "target": target.name,
        "parameter": row.name,
        "value": figure.value if override is None else override,
        "unit": row.unit,
        "likely_error": round(likely_error(row.name, target), 4),
        "standing": figure.standing.value if override is None else "given",
        "source": figure.source if override is None else FROM_FILE,
        "meaning": row.says,
    }
