"""Comparison of tensors, after source lines have written them, with a reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from nkic.arrays.npz import read_npz
from nkic.arrays.offers import Offer
from nkic.arrays.streams import opened
from nkic.base.diagnostics import Diagnostic, InputFailed, Label, LimitHit, UsageFailed, code, make
from nkic.base.suggest import did_you_mean
from nkic.base.text import clean, grouped, plural
from nkic.neff.records import TensorRecord
from nkic.simulate.comparison.compare import Comparison, compare
from nkic.simulate.comparison.compare_report import diagnostic
from nkic.simulate.comparison.tolerance import EVERY, ToleranceSettings
from nkic.simulate.debug.observed import Execution, Observer, Scene
from nkic.simulate.debug.tensors import Stored
from nkic.simulate.debug.writes import Write, Writes
from nkic.simulate.faults import source_of
from nkic.simulate.io.expected import numbers_of, shape_as
from nkic.simulate.io.numbers import Numbers
from nkic.simulate.storage.flags import Mask

MAX_BYTES = 1 << 30  # limit on a file read from a pipe, and on all compared tensors
Given = Mapping[str, Offer]  # arrays by the tensor's name


class Expected(NamedTuple):
    """The expected tensors after a line: the arrays of a file, or those of a caller."""

    line: int
    path: str
    arrays: Given | None = None


class Wanted(NamedTuple):
    """A tensor of the reference, after the line's last write or, with `each`, after every write."""

    path: str
    numbers: Numbers
    each: bool


class Found(NamedTuple):
    """A tensor after a write, and which of its elements were initialised."""

    write: Write
    record: TensorRecord
    stored: Stored
    written: Mask


class Judged(NamedTuple):
    """A comparison, and its write: the `time`-th of its line from 0, or the last."""

    write: Write
    time: int | None
    path: str
    found: Comparison


class Expectations(Observer):
    """Compares tensors with the expectations, given as a list for every rank.

    `judged` has all comparisons, by rank, in order of the writes.
    """

    def __init__(self, expected: Sequence[Sequence[Expected]], settings: ToleranceSettings) -> None:
        self.expected = expected
        self.settings = settings
        self.judged: list[list[Judged]] = []
        self._executable: Any = None
        self._writes: list[Writes] = []
        self._wanted: list[dict[tuple[str, int], Wanted]] = []
        self._kept: list[dict[tuple[str, int], list[Found]]] = []
        self._bytes = 0

    def begin(self, scene: Scene) -> None:
        """Read the expected arrays. Raises `UsageFailed` and `InputFailed`."""
        writes = Writes(scene)
        wanted: dict[tuple[str, int], Wanted] = {}
        for expected in self.expected[scene.rank]:
            writes.check_line("--expect-at", expected.line)
            for name, tensor in self._read(scene, writes, expected).items():
                if (name, expected.line) in wanted:
                    _refuse(
                        name,
                        expected,
                        f"appears twice: in `{clean(wanted[name, expected.line].path)}`",
                    )
                wanted[name, expected.line] = tensor
        self._refuse_ignored(scene, [name for name, _ in wanted])
        self._executable = scene.executable
        self._writes.append(writes)
        self._wanted.append(wanted)
        self.judged.append([])
        self._kept.append({})

    def _refuse_ignored(self, scene: Scene, names: Sequence[str]) -> None:
        """Raise `UsageFailed` for a tolerance that would be ignored."""
        known = [*names, *(output.name for output in scene.executable.outputs)]
        for key, values in self.settings.by_name.items():
            for name in values:
                if name not in (EVERY, *known):
                    text = f"tolerance `{key}`: nothing called `{clean(name)}` is compared"
                    help = did_you_mean(name, known) or f"there are: {', '.join(known)}"
                    raise UsageFailed([make("bad-value", text, help=help)])

    def _read(self, scene: Scene, writes: Writes, expected: Expected) -> dict[str, Wanted]:
        if expected.arrays is not None:
            return self._chosen(scene, writes, expected, expected.arrays)
        with opened(expected.path, MAX_BYTES) as file:
            return self._chosen(scene, writes, expected, read_npz(file, expected.path))

    def _chosen(
        self, scene: Scene, writes: Writes, expected: Expected, offers: Given
    ) -> dict[str, Wanted]:
        if not offers:
            text = f"--expect-at {expected.line}: `{clean(expected.path)}` holds no array"
            raise UsageFailed([make("bad-value", text, help="give arrays by tensors' names")])
        wanted = {}
        for name, offer in offers.items():
            writes.check(f"--expect-at {expected.line}", name, expected.line)
            record = scene.tensors.record(writes.tensors[name, expected.line][0])
            shape = shape_as(offer, record.shape, record.dtype)
            each = len(offer.shape) == len(record.shape) + 1
            if shape is None or offer.shape[each:] != shape:
                sizes = ", ".join(map(str, record.shape))
                _refuse(
                    name, expected, f"is {offer}, not {record.dtype}[{sizes}], or several of these"
                )
            wanted[name] = Wanted(expected.path, numbers_of(offer, record.dtype), each)
        return wanted

    def after(self, execution: Execution) -> None:
        """Record the tensors to compare."""
        scene = execution.scene
        for write in self._writes[scene.rank].of(execution):
            key = write.name, write.line
            wanted = self._wanted[scene.rank].get(key)
            if wanted is not None:
                kept = self._kept[scene.rank].setdefault(key, [])
                if not wanted.each and kept and kept[0].write.key <= write.key:
                    kept.clear()  # only the last write counts
                if wanted.each or not kept:
                    kept.append(self._found(scene, write))

    def _found(self, scene: Scene, write: Write) -> Found:
        stored, written = scene.tensors.contents(write.tensor), scene.tensors.written(write.tensor)
        self._bytes += stored.nbytes + written.nbytes
        if self._bytes > MAX_BYTES:
            text = f"the tensors to compare exceed {grouped(MAX_BYTES)} bytes"
            help = "give a tensor in its own shape, which is compared after the last write alone"
            raise LimitHit([make("memory-limit", text, help=help)])
        return Found(write, scene.tensors.record(write.tensor), stored, written)

    def end(self) -> None:
        """Compare. Raises `InputFailed` if the number of writes is not the expected one."""
        for rank, kept in enumerate(self._kept):
            for key, wanted in self._wanted[rank].items():
                tensors = sorted(kept.get(key, ()), key=lambda tensor: tensor.write.key)
                if wanted.each and len(tensors) != len(wanted.numbers):
                    has = plural(len(wanted.numbers), "array")
                    times = plural(len(tensors), "time")
                    text = f"holds {has}, and the line writes the tensor {times}"
                    _refuse(key[0], Expected(key[1], wanted.path), text)
                for time, tensor in enumerate(tensors):
                    numbers = wanted.numbers[time] if wanted.each else wanted.numbers
                    self.judged[rank].append(self._judge(tensor, time, wanted, numbers))
            self.judged[rank].sort(key=lambda judged: (judged.write.done, judged.write.start))

    def _judge(self, tensor: Found, time: int, wanted: Wanted, numbers: Numbers) -> Judged:
        write, record, stored, written = tensor
        rule = self.settings.rule(write.name, record.dtype)
        actual, wanted_numbers = _zero_uninitialised(stored, numbers, written, record.dtype.lanes)
        if actual.size * record.dtype.lanes != wanted_numbers.size:
            expected = Expected(write.line, wanted.path)
            _refuse(write.name, expected, f"has other sizes than the tensor's {record.shape}")
        compared = compare(write.name, actual, record.dtype, wanted_numbers, rule)
        return Judged(write, time if wanted.each else None, wanted.path, compared)

    def parted(self, rank: int) -> Diagnostic | None:
        """Return the error for the first line where the rank differs from the reference, if any."""
        judged = self.judged[rank]
        first = next((n for n, judgement in enumerate(judged) if not judgement.found.passed), None)
        if first is None:
            return None
        later = sum(not judgement.found.passed for judgement in judged[first + 1 :])
        return _difference(self._executable, judged[first], first, later)


def _difference(executable: Any, judged: Judged, before: int, later: int) -> Diagnostic:
    write, _, path, comparison = judged
    base = diagnostic(comparison)
    name = clean(write.name)
    _, _, difference = base.message.partition(": ")
    text = f"after line {write.line}, `{name}` differs from `{clean(path)}`: {difference}"
    when = "last" if judged.time is None else f"the {ordinal(judged.time + 1)} time"
    iteration = f" ({write.unrolled})" if write.unrolled else ""
    note = f"written {when}{iteration} at {write.done / 1e6:.3f} us by {write.stream.name}; "
    note += f"{plural(before, 'comparison')} before it agreed"
    note += f", {later} after it did not" if later else ""
    span = source_of(executable, write.record.place)
    return replace(
        base,
        code=code("intermediate-differs"),
        message=text,
        primary=Label(span, "") if span else None,
        notes=(note, *base.notes),
    )


def ordinal(number: int) -> str:
    """Return `1st`, `2nd`, `11th`, …"""
    ending = "th" if number // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _zero_uninitialised(
    stored: Stored, numbers: Numbers, mask: Mask, lanes: int
) -> tuple[Stored, Numbers]:
    """Return both with zeros for uninitialised elements."""
    if mask.all() or numbers.shape[:-1] != mask.shape[:-1]:
        return stored, numbers
    wide = mask.repeat(lanes, axis=-1)
    return np.where(mask, stored, stored.dtype.type(0)), np.where(wide, numbers, 0.0)


def _refuse(name: str, expected: Expected, problem: str) -> None:
    text = f"--expect-at {expected.line}: `{clean(name)}` of `{clean(expected.path)}` {problem}"
    help = "--dump-tensor writes arrays of the expected shape"
    raise InputFailed([make("expected-does-not-fit", text, help=help)])
