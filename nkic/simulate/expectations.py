"""What was expected: tensors after source lines have written them, and inputs read transposed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nkic.artifact.archive import opened
from nkic.artifact.arrays import Offer, read_npz
from nkic.artifact.records import Executable, TensorRecord, source_of
from nkic.base.diagnostics import (
    Diagnostic,
    InputFailed,
    Label,
    LimitHit,
    NkicError,
    bad_value,
    code,
    make,
    suggestion,
)
from nkic.base.text import clean, grouped, plural
from nkic.machine.targets import PARTITIONS, Engine
from nkic.simulate.compare import EVERY, Comparison, ToleranceSettings, compare, diagnostic
from nkic.simulate.inputs import Numbers, numbers_of, shape_as
from nkic.simulate.observed import Execution, Observer, Scene, Stored, Write
from nkic.simulate.outcome import RunOptions
from nkic.simulate.shadow import Mask
from nkic.simulate.stage import simulate

MAX_BYTES = 1 << 30  # limit on a file read from a pipe, and on all compared tensors
Offers = Mapping[str, Offer]  # arrays by the tensor's name


class Expected(NamedTuple):
    """The expected tensors after a line: the arrays of a file, or those of a caller."""

    line: int
    path: str
    arrays: Offers | None = None


class Reference(NamedTuple):
    """A tensor of the reference, after the line's last write or, with `each`, after every write."""

    path: str
    numbers: Numbers
    each: bool


class Snapshot(NamedTuple):
    write: Write
    record: TensorRecord
    stored: Stored
    written: Mask


class Judged(NamedTuple):
    """A comparison, and its write: the `time`-th of its line from 0, or the last."""

    write: Write
    time: int | None
    path: str
    comparison: Comparison


class Expectations(Observer):
    """Compares tensors with the expectations, given as a list for every rank.

    `judged` has all comparisons, by rank, in order of the writes.
    """

    def __init__(self, expected: Sequence[Sequence[Expected]], settings: ToleranceSettings) -> None:
        self.expected, self.settings = expected, settings
        self.judged: list[list[Judged]] = []
        self._executable: Any = None
        self._references: list[dict[tuple[str, int], Reference]] = []
        self._snapshots: list[dict[tuple[str, int], list[Snapshot]]] = []
        self._bytes = 0

    def begin(self, scene: Scene) -> None:
        """Read the expected arrays. Raises `UsageFailed` and `InputFailed`."""
        references: dict[tuple[str, int], Reference] = {}
        for expected in self.expected[scene.rank]:
            scene.writes.check_line("--expect-at", expected.line)
            for name, tensor in self._read(scene, expected).items():
                if (name, expected.line) in references:
                    path = clean(references[name, expected.line].path)
                    _refuse(name, expected, f"appears twice: in `{path}`")
                references[name, expected.line] = tensor
        self._refuse_ignored(scene, [name for name, _ in references])
        self._executable = scene.executable
        self._references.append(references)
        self.judged.append([])
        self._snapshots.append({})

    def _refuse_ignored(self, scene: Scene, names: Sequence[str]) -> None:
        compared = [*names, *(output.name for output in scene.executable.outputs)]
        for key, values in self.settings.by_name.items():
            for name in values:
                if name not in (EVERY, *compared):
                    text = f"tolerance `{key}`: nothing called `{clean(name)}` is compared"
                    raise bad_value(text, suggestion(name, compared, "there are"))

    def _read(self, scene: Scene, expected: Expected) -> dict[str, Reference]:
        if expected.arrays is not None:
            return self._fitting(scene, expected, expected.arrays)
        with opened(expected.path, MAX_BYTES) as file:
            return self._fitting(scene, expected, read_npz(file, expected.path))

    def _fitting(self, scene: Scene, expected: Expected, offers: Offers) -> dict[str, Reference]:
        if not offers:
            text = f"--expect-at {expected.line}: `{clean(expected.path)}` holds no array"
            raise bad_value(text, "give arrays by tensors' names")
        references = {}
        for name, offer in offers.items():
            scene.writes.check(f"--expect-at {expected.line}", name, expected.line)
            record = scene.tensors.record(scene.writes.tensors[name, expected.line][0])
            shape = shape_as(offer, record.shape, record.dtype)
            each = len(offer.shape) == len(record.shape) + 1
            if shape is None or offer.shape[each:] != shape:
                sizes = ", ".join(map(str, record.shape))
                _refuse(
                    name, expected, f"is {offer}, not {record.dtype}[{sizes}], or several of these"
                )
            references[name] = Reference(expected.path, numbers_of(offer, record.dtype), each)
        return references

    def after(self, execution: Execution) -> None:
        scene = execution.scene
        for write in scene.writes.of(execution):
            key = write.name, write.line
            reference = self._references[scene.rank].get(key)
            if reference is not None:
                snapshots = self._snapshots[scene.rank].setdefault(key, [])
                if not reference.each and snapshots and snapshots[0].write.key <= write.key:
                    snapshots.clear()  # only the last write counts
                if reference.each or not snapshots:
                    snapshots.append(self._snapshot(scene, write))

    def _snapshot(self, scene: Scene, write: Write) -> Snapshot:
        stored, written = scene.tensors.contents(write.tensor), scene.tensors.written(write.tensor)
        self._bytes += stored.nbytes + written.nbytes
        if self._bytes > MAX_BYTES:
            text = f"the tensors to compare exceed {grouped(MAX_BYTES)} bytes"
            help = "give a tensor in its own shape, which is compared after the last write alone"
            raise LimitHit([make("memory-limit", text, help=help)])
        return Snapshot(write, scene.tensors.record(write.tensor), stored, written)

    def end(self) -> None:
        """Compare. Raises `InputFailed` if the number of writes is not the expected one."""
        for rank, snapshots in enumerate(self._snapshots):
            for key, reference in self._references[rank].items():
                tensors = sorted(snapshots.get(key, ()), key=lambda tensor: tensor.write.key)
                if reference.each and len(tensors) != len(reference.numbers):
                    has = plural(len(reference.numbers), "array")
                    times = plural(len(tensors), "time")
                    text = f"holds {has}, and the line writes the tensor {times}"
                    _refuse(key[0], Expected(key[1], reference.path), text)
                for time, tensor in enumerate(tensors):
                    numbers = reference.numbers[time] if reference.each else reference.numbers
                    self.judged[rank].append(self._judge(tensor, time, reference, numbers))
            self.judged[rank].sort(key=lambda judged: (judged.write.done, judged.write.start))

    def _judge(self, tensor: Snapshot, time: int, reference: Reference, numbers: Numbers) -> Judged:
        write, record, stored, written = tensor
        rule = self.settings.rule(write.name, record.dtype)
        actual, expected_numbers = _zero_uninitialised(stored, numbers, written, record.dtype.lanes)
        if actual.size * record.dtype.lanes != expected_numbers.size:
            expected = Expected(write.line, reference.path)
            _refuse(write.name, expected, f"has other sizes than the tensor's {record.shape}")
        compared = compare(write.name, actual, record.dtype, expected_numbers, rule)
        return Judged(write, time if reference.each else None, reference.path, compared)

    def first_difference(self, rank: int) -> Diagnostic | None:
        judged = self.judged[rank]
        failures = [n for n, entry in enumerate(judged) if not entry.comparison.passed]
        if not failures:
            return None
        first, *later = failures
        return _difference(self._executable, judged[first], first, len(later))


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
    ending = "th" if number // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _zero_uninitialised(
    stored: Stored, numbers: Numbers, mask: Mask, lanes: int
) -> tuple[Stored, Numbers]:
    if mask.all() or numbers.shape[:-1] != mask.shape[:-1]:
        return stored, numbers
    wide = mask.repeat(lanes, axis=-1)
    return np.where(mask, stored, stored.dtype.type(0)), np.where(wide, numbers, 0.0)


def _refuse(name: str, expected: Expected, problem: str) -> None:
    text = f"--expect-at {expected.line}: `{clean(name)}` of `{clean(expected.path)}` {problem}"
    help = "--dump NAME@LINE=FILE.npz writes arrays of the expected shape"
    raise InputFailed([make("expected-does-not-fit", text, help=help)])


# ---- Inputs that a kernel should have read transposed: a mistake that no shape shows -------------
# nc_matmul computes `stationary.T @ moving`. A kernel that forgets to transpose a square tile
# compiles and gives other numbers; it gives the right ones if the input is transposed instead.

Arrays = Mapping[str, NDArray[Any]]
_LIMIT = 20_000  # instructions of all these runs


def transposed_input(
    executable: Executable,
    inputs: Arrays,
    instructions: int,
    options: RunOptions,
    is_expected: Callable[[Arrays], bool],
) -> str:
    """Return a sentence that names the input whose transpose gives what is expected, or "".

    The run on `inputs`, whose outputs differ from that, executed so many `instructions`.
    """
    if not any(stream.engine is Engine.TENSOR for stream in executable.streams):
        return ""
    others = [(what, name, array) for name in inputs for what, array in _turned(name, inputs[name])]
    if instructions * len(others) > _LIMIT:
        return ""
    plain = replace(options, trace=0, timeline=0, watch=None, report_bounds=False)
    for what, name, array in others:
        try:
            outputs = simulate(executable, {**inputs, name: array}, plain).outputs
        except NkicError:
            continue
        if is_expected(outputs):
            return (
                f"with {what} transposed, the kernel computes what was expected: "
                "nc_matmul computes `stationary.T @ moving`, so the operand on the left is "
                "loaded transposed"
            )
    return ""


def _turned(name: str, array: NDArray[Any]) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the array transposed, and with each of its tiles transposed."""
    if array.ndim != 2 or array.shape[0] == 1:
        return
    rows, columns = array.shape
    if rows == columns:
        yield f"`{clean(name)}`", np.ascontiguousarray(array.T)
    if max(rows, columns) > PARTITIONS and not (rows % PARTITIONS or columns % PARTITIONS):
        tiles = array.reshape(rows // PARTITIONS, PARTITIONS, columns // PARTITIONS, PARTITIONS)
        what = f"each {PARTITIONS} x {PARTITIONS} tile of `{clean(name)}`"
        yield what, tiles.swapaxes(1, 3).reshape(array.shape)
