"""The vendor profiler's measurements of the microkernels.

A profile is the JSON that `neuron-explorer view --output-format json` writes: an object with a list
`instruction`, each with `timestamp` and `duration` in ns, `opcode`, and a `label` that contains the
name that the kernel gave to the instruction (Neuron Explorer, device profiles). Files are
untrusted: a missing field or one of another type is an error with its place.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, Protocol, TypeGuard

from nkic.base import files
from nkic.base.diagnostics import bad_value
from nkic.machine.clock.probes import ARRIVAL, INTERVAL, PROBES, REPEATS, SPAN, Probe
from nkic.machine.targets import Target

MAX_BYTES = 1 << 28
PROBE, AFTER = "nkic_probe", "nkic_after"  # names of instructions
LATEST = 1 << 63  # ns, of a timestamp
SHORTEST = 1  # ns: less than two cycles of any engine
WEIGHTS = "LDWEIGHTS"  # a part of a product that its MATMUL hides


class Predictable(Protocol):
    """Something that was measured: a microkernel, or a whole kernel."""

    @property
    def figures(self) -> tuple[str, ...]:
        """The figures that the measurement determines."""

    def predicted(self, target: Target) -> float:
        """Return the predicted time in ns."""


class Observation(NamedTuple):
    """A microkernel or kernel with its measured time in ns."""

    probe: Predictable
    ns: float


class _Timed(NamedTuple):
    start: float
    duration: float


def read_profiles(folder: str) -> list[Observation]:
    """Read every profile of a folder, named after its microkernel: `vector_reduce.json`.

    Raises `UsageFailed`.
    """
    observations: list[Observation] = []
    for probe in PROBES:
        path = Path(folder) / f"{probe.name}.json"
        if path.is_file():
            text = files.read_bytes(str(path), MAX_BYTES).decode("utf-8", "replace")
            observations.append(observed(probe, _parsed(str(path), text), str(path)))
    if not observations:
        if not Path(folder).is_dir():
            raise bad_value(f"{folder}: there is no such folder")
        names = ", ".join(sorted({f"{probe.name}.json" for probe in PROBES})[:3])
        raise bad_value(f"{folder}: it holds no profile of a microkernel", f"such as {names}")
    return observations


def observed(probe: Probe, profile: Any, path: str) -> Observation:
    """Return the measurement in a microkernel's profile. Raises `UsageFailed`."""
    ns = _measured(probe, profile, path)
    if ns < SHORTEST:
        text = f"{path}: the time measured is {ns:g} ns, but must be at least {SHORTEST} ns"
        raise bad_value(text)
    return Observation(probe, ns)


def _measured(probe: Probe, profile: Any, path: str) -> float:
    rows = profile.get("instruction") if isinstance(profile, dict) else None
    if not isinstance(rows, list):
        raise bad_value(
            f"{path}: it has no list `instruction`", "write it with --output-format json"
        )
    seen = sorted(_named(rows, PROBE, path))
    if probe.quantity == ARRIVAL:
        return _arrival(seen, sorted(_named(rows, AFTER, path)), path)
    if probe.quantity == SPAN:
        return _span(seen, path)
    if len(seen) < REPEATS or len(seen) % REPEATS:
        raise bad_value(f"{path}: {len(seen)} instructions are named {PROBE}, of {REPEATS} repeats")
    parts = len(seen) // REPEATS  # a product in float32 is two instructions
    if probe.quantity == INTERVAL:
        starts = [instruction.start for instruction in seen[::parts]]
        # Some may wait: for an activation table, or among triggers for the store.
        return median(b - a for a, b in pairwise(starts))
    ends = [last.start + last.duration - first.start for first, last in _pairs(seen, parts)]
    return median(ends[1:])


def _pairs(seen: list[_Timed], parts: int) -> Iterable[tuple[_Timed, _Timed]]:
    return zip(seen[::parts], seen[parts - 1 :: parts], strict=True)


def _span(seen: list[_Timed], path: str) -> float:
    if len(seen) != 2:
        raise bad_value(f"{path}: {len(seen)} instructions are named {PROBE}, and not two")
    return seen[1].start - seen[0].start


def _arrival(triggers: list[_Timed], after: list[_Timed], path: str) -> float:
    if len(triggers) != 1 or len(after) != 1:
        raise bad_value(f"{path}: one instruction named {PROBE} and one named {AFTER} are expected")
    return after[0].start - triggers[0].start


def _named(rows: list[Any], name: str, path: str) -> Iterable[_Timed]:
    for row in rows:
        if not isinstance(row, Mapping) or name not in str(row.get("label", "")):
            continue
        if row.get("opcode") == WEIGHTS:
            continue
        start, duration = row.get("timestamp"), row.get("duration")
        if not _is_time(start) or not _is_time(duration):
            raise bad_value(f"{path}: an instruction has no timestamp or duration in ns")
        yield _Timed(float(start), float(duration))


def _is_time(value: Any) -> TypeGuard[float]:
    return type(value) in (int, float) and 0 <= value < LATEST


def _parsed(path: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise bad_value(f"{path}: no JSON: {error}") from error
