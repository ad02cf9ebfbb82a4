"""Machine files: TOML files that override timing figures.

    target = "trn2"          # optional: refuse other targets
    contention = "all"       # other cores that use HBM: alone, pair or all

    [vector]
    interval_sbuf = 58       # the parameter `vector.interval_sbuf`

`nki-run calibrate --print machine` lists every parameter. An unknown name is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from types import MappingProxyType
from typing import Any

from nkic.base import files
from nkic.base.diagnostics import bad_value, did_you_mean
from nkic.machine.clock import TABLE, Parameter
from nkic.machine.targets import ALONE, CONTENTION, TARGETS, Target, find, likely_error

MAX_BYTES = 1 << 20


@dataclass(frozen=True)
class MachineFile:
    """The contents of a machine file; `hash` is the sha256 of its meaning, in hex."""

    path: str
    figures: Mapping[str, float]
    contention: str | None = None
    target: str | None = None

    @property
    def hash(self) -> str:
        """Equal for files with equal meaning."""
        meaning = [*sorted(self.figures.items()), self.contention]
        return sha256(repr(meaning).encode()).hexdigest()

    def applied(self, target: Target) -> Target:
        """Return `target` with these figures. Raises `UsageFailed` if it is not the file's."""
        if self.target not in (None, target.name):
            text = (
                f"{self.path}: its figures are for {self.target}, but the kernel is for "
                f"{target.name}"
            )
            raise bad_value(
                text, "compile the kernel for that target, or pass another machine file"
            )
        return replace(
            target,
            figures=MappingProxyType({**target.figures, **self.figures}),
            contention=self.contention or target.contention,
            machine=self.hash,
        )


def load_machine(path: str) -> MachineFile:
    """Read and parse a machine file. Raises `UsageFailed`."""
    return read_machine(path, files.read_bytes(path, MAX_BYTES).decode("utf-8", "replace"))


def read_machine(path: str, text: str) -> MachineFile:
    """Parse the text of a machine file. Raises `UsageFailed`."""
    try:
        mapping = files.toml(text)
    except ValueError as error:
        raise bad_value(f"{path}: not valid TOML: {error}") from error
    return figures_of(path, mapping)


def figures_of(path: str, mapping: Mapping[str, Any]) -> MachineFile:
    """Return the machine file equivalent to a mapping, by section or by full names ("dma.done_ns").

    Raises `UsageFailed`.
    """
    sections = dict(mapping)
    target, contention = sections.pop("target", None), sections.pop("contention", None)
    if target is not None and (not isinstance(target, str) or find(target) is None):
        raise bad_value(
            f"{path}: there is no target `{target}`", f"known are: {', '.join(TARGETS)}"
        )
    if contention is not None and contention not in CONTENTION:
        text = f"{path}: contention is `{contention}`, which is not one of {', '.join(CONTENTION)}"
        raise bad_value(text)
    figures = {name: _value(path, name, value) for name, value in _flat(sections)}
    named = find(target) if target is not None else None
    return MachineFile(path, figures, contention, named.name if named is not None else None)


def written(figures: Mapping[str, float], target: str, contention: str | None = None) -> str:
    lines = [f'target = "{target}"', *([f'contention = "{contention}"'] if contention else [])]
    section = ""
    for name, value in sorted(figures.items()):
        group, _, key = name.partition(".")
        if group != section:
            lines += ["", f"[{group}]"]
            section = group
        lines.append(f"{key} = {value:.6g}  # {TABLE[name].unit}: {TABLE[name].says}")
    return "\n".join(lines) + "\n"


def _flat(sections: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for group, inner in sections.items():
        if not isinstance(inner, Mapping):
            yield group, inner
            continue
        for name, value in inner.items():
            yield f"{group}.{name}", value


def _value(path: str, name: str, value: Any) -> float:
    parameter = TABLE.get(name)
    if parameter is None:
        suggestion = did_you_mean(name, TABLE) or "`nki-run calibrate --print machine` lists them"
        raise bad_value(f"{path}: there is no parameter `{name}`", suggestion)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise bad_value(f"{path}: {name} is {value!r}, but must be a number ({parameter.unit})")
    return _in_range(path, parameter, float(value))


def _in_range(path: str, parameter: Parameter, value: float) -> float:
    if parameter.minimum <= value <= parameter.maximum:
        return value
    span = f"{parameter.minimum:g} to {parameter.maximum:g} {parameter.unit}"
    raise bad_value(f"{path}: {parameter.name} is {value:g}, outside {span}")


# ------------------------------------------------------------------------------------------------
# Listings of the timing figures, as `nki-run calibrate --print machine` prints them.

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
