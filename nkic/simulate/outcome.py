"""The options of a run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nkic.artifact.records import Executable, frames, source_of, span_of, user_place
from nkic.base.diagnostics import Diagnostic, Label, Level, ProgramFault, make
from nkic.base.text import grouped, plural
from nkic.machine.codecs import decode, unpack
from nkic.machine.dtypes import DType
from nkic.machine.operators import SummationOrder
from nkic.machine.targets import TARGETS, MachineFile, Target

MAX_ITERATIONS = 1_000_000


@dataclass(frozen=True)
class RunOptions:
    """The options of a run.

    `check_init`: reading uninitialised bytes is a fault. `precise`: round to each destination's
    type; if off, values between instructions stay float32, which separates logic errors from
    rounding. `max_cycles` (of the base clock), `timeout_s` (host seconds): LimitHit beyond.
    `max_iterations`: the limit on the iterations of a loop with a run-time bound. `timeline`: the
    number of instructions whose times are kept. `trace`: the number of events per rank that are
    kept, with the cause of each wait. `watch` is called now and then with the number of
    instructions executed so far. `check_races`: unordered accesses of two cores to shared HBM are a
    fault; those of one core need no run (`artifact.verify.verify_ordered`).
    `accumulate`: the order and type in which instructions add; None is as measured on a device, or
    "exact" if not measured. `blas_threads`: the limit on NumPy's BLAS threads (`threads`).
    `report_bounds`: report the maximum distance of each result element from exact arithmetic.
    `machine`: timing figures that replace the target's own. `values`: if off, only time passes and
    outputs are meaningless; for programs in which no value decides what is run.
    """

    check_init: bool = True
    precise: bool = True
    max_cycles: int | None = None
    timeout_s: float | None = None
    max_iterations: int = MAX_ITERATIONS
    timeline: int = 0
    check_races: bool = False
    accumulate: SummationOrder | None = None
    blas_threads: int = 1
    report_bounds: bool = False
    machine: MachineFile | None = None
    values: bool = True
    trace: int = 0
    watch: Callable[[int], object] | None = None

    @property
    def copies_less(self) -> bool:
        """Whether tiles may be views of HBM tensors.

        No option may depend on uninitialised bytes, and rounding must be at its proper place.
        """
        return self.check_init and self.precise and not (self.report_bounds or self.check_races)

    @property
    def threads(self) -> int:
        """The number of BLAS threads: one with float32, as more of them add in another order."""
        return 1 if self.accumulate == "float32" else self.blas_threads

    def target_of(self, executable: Executable) -> Target:
        target = TARGETS[executable.target]
        if self.machine is not None:
            target = self.machine.applied(target)
        return target.used_by(executable.cores)


# ---- Faults of the simulated program, reported in terms of the kernel's source ------------------


def called_from(executable: Executable, place: int) -> list[Label]:
    """Return labels for the calls that led to `source_of`, and for a line of nkic's library."""
    primary, others = user_place(executable, place), frames(executable, place)
    calls = others[others.index(primary) + 1 :] if primary in others else []
    labels = [Label(span, "called from here") for p in calls if (span := span_of(executable, p))]
    inside = span_of(executable, place) if primary != place else None
    return labels if inside is None else [*labels, Label(inside, "this is the instruction")]


def fault(
    executable: Executable,
    slug: str,
    message: str,
    place: int,
    tensor: int = -1,
    help: str = "",
    labels: Sequence[Label] = (),
) -> ProgramFault:
    """Return an error at `place`, with the declaration of `tensor` as a label."""
    labels = [*labels, *called_from(executable, place)]
    if tensor >= 0:
        record = executable.tensors[tensor]
        declared = source_of(executable, record.place)
        if declared is not None:
            labels.insert(0, Label(declared, f"`{record.name}` is declared here"))
    diagnostic: Diagnostic = make(
        slug, message, source_of(executable, place), labels=labels, help=help
    )
    return ProgramFault([diagnostic])


# ---- The output of `nl.device_print` while a program runs ---------------------------------------
# On the device the runtime writes such tensors to a debug stream. Here they are kept with their
# values, in order, up to a limit, since a loop may print forever.

MAX_BYTES = 64 << 20
MAX_PRINTS = 10_000
SHOWN = 64  # elements of a tensor that is shown in full


class Printed(NamedTuple):
    """One print: its string, and the tensor in the storage type of its element type."""

    core: int
    prefix: str
    dtype: DType
    values: NDArray[np.generic]

    @property
    def text(self) -> str:
        """The values as text: for a large tensor, those at the ends of each dimension."""
        return np.array2string(
            self._numbers(), max_line_width=100, precision=6, threshold=SHOWN, edgeitems=3
        )

    def _numbers(self) -> NDArray[np.generic]:
        if self.dtype.element is not None:
            return unpack(self.values, self.dtype)
        return decode(self.values, self.dtype) if self.dtype.is_float else self.values


@dataclass
class Prints:
    """The prints of one run. `left_out` counts those after the limit."""

    kept: list[Printed] = field(default_factory=list)
    left_out: int = 0
    _bytes: int = 0

    def add(self, core: int, prefix: str, dtype: DType, values: NDArray[np.generic]) -> None:
        if len(self.kept) >= MAX_PRINTS or self._bytes + values.nbytes > MAX_BYTES:
            self.left_out += 1
            return
        self._bytes += values.nbytes
        self.kept.append(Printed(core, prefix, dtype, np.array(values)))

    def clear(self) -> None:
        self.kept.clear()
        self.left_out = self._bytes = 0


# ---- Remarks on a run, beside its outputs: where a device would behave differently --------------
# A step records a remark without knowing its instruction; the machine, which knows it, files the
# remark under the instruction's source line. Repeated remarks on a line are counted.


class Remark(NamedTuple):
    """A remark on one execution of an instruction; `text` is on the first of `things`."""

    slug: str
    text: str
    help: str
    things: int = 1
    level: Level = Level.REMARK
    other: int = -1  # a second place, with `label`
    label: str = ""


@dataclass
class _Sum:
    """All remarks of one kind on one line."""

    first: Remark
    place: int
    count: int = 0
    times: int = 0


@dataclass
class Remarks:
    """The remarks on one kernel's run. `fresh` are those of the current step."""

    fresh: list[Remark] = field(default_factory=list)
    _sums: dict[tuple[str, object], _Sum] = field(default_factory=dict)
    _lines: dict[int, object] = field(default_factory=dict)  # by place

    def add(self, remark: Remark) -> None:
        self.fresh.append(remark)

    def drop(self, slugs: Collection[str]) -> None:
        self.fresh[:] = [remark for remark in self.fresh if remark.slug not in slugs]

    def settle(self, executable: Executable, place: int) -> None:
        """File the remarks of the step that has run under the instruction at `place`."""
        line = self._lines.get(place)
        if line is None:
            span = source_of(executable, place)
            line = self._lines[place] = (span.path, span.line) if span is not None else place
        for remark in self.fresh:
            total = self._sums.setdefault((remark.slug, line), _Sum(remark, place))
            total.count += remark.things
            total.times += 1
        self.fresh.clear()

    def has(self, slug: str) -> bool:
        return any(present == slug for present, _ in self._sums)

    def clear(self) -> None:
        self.fresh.clear()
        self._sums.clear()

    def diagnostics(self, executable: Executable) -> list[Diagnostic]:
        return [_diagnostic(total, executable) for total in self._sums.values()]


def _diagnostic(remark_sum: _Sum, executable: Executable) -> Diagnostic:
    first, labels = remark_sum.first, called_from(executable, remark_sum.place)
    span = source_of(executable, first.other)
    if span is not None:
        labels.insert(0, Label(span, first.label))
    notes = []
    if remark_sum.times > 1:
        total = (
            f", {grouped(remark_sum.count)} in all" if remark_sum.count > remark_sum.times else ""
        )
        notes.append(f"{plural(remark_sum.times, 'execution')} of this line{total}")
    return make(
        first.slug,
        first.text,
        source_of(executable, remark_sum.place),
        labels=labels,
        notes=notes,
        help=first.help,
        level=first.level,
    )
