"""The handling of reads of uninitialised bytes.

Reading an entirely uninitialised tile is a fault. Partly uninitialised tiles are tracked, into the
kernel's results too: elements that are still uninitialised there at the end are a fault of the
store.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from nkic.base.diagnostics import Diagnostic, Label, Level, ProgramFault, make
from nkic.base.text import grouped
from nkic.machine.operands import Depends
from nkic.machine.targets import TARGETS
from nkic.neff.places import source_of
from nkic.neff.records import Executable, PatternRecord
from nkic.simulate.faults import called_from, fault
from nkic.simulate.storage import definedness
from nkic.simulate.storage.shadow import Shadow
from nkic.simulate.streams import Item, Runner

Missing = PatternRecord | None


class Unwritten:
    """Handles accesses to uninitialised bytes: tracked if possible, else a fault."""

    def __init__(self, executable: Executable, shadows: Sequence[Shadow | None]) -> None:
        self.executable = executable
        self.shadows = shadows  # by rank
        self.results = {p.tensor for p in executable.outputs}
        # stores of uninitialised elements into results
        self.stored: list[tuple[Shadow, PatternRecord, ProgramFault]] = []

    def read(self, runner: Runner, item: Item) -> Missing:
        """Return the first operand with uninitialised bytes, or raise if they cannot be tracked."""
        shadow = self.shadows[runner.rank]
        if shadow is not None and item.reads:
            operands, is_initialised = item.record.operands, shadow.is_initialised
            for i in item.reads:
                pattern: PatternRecord = operands[i]  # type: ignore[assignment]
                if not is_initialised[pattern.tensor] and not shadow.is_written(pattern):
                    return self._missing(runner, item, pattern)
        for check, pattern in item.checks:
            if not check():
                return self._missing(runner, item, pattern)
        return None

    def note(self, runner: Runner, item: Item) -> None:
        """Mark the bytes that the item writes as initialised."""
        shadow = self.shadows[runner.rank]
        if shadow is not None:
            operands, is_initialised = item.record.operands, shadow.is_initialised
            for i in item.writes:
                pattern: PatternRecord = operands[i]  # type: ignore[assignment]
                if not is_initialised[pattern.tensor]:
                    shadow.note(pattern)

    def note_part(self, runner: Runner, item: Item, written: definedness.Mask) -> None:
        """Mark these elements of dst, and what else the item writes, as initialised."""
        shadow, target = self.shadows[runner.rank], definedness.tile_of(item.record, "dst")
        if shadow is None or shadow.is_initialised[target.tensor] or target.dynamic is not None:
            self.note(runner, item)
            return
        initialised = shadow.elements(target) | written.reshape(shadow.shape_of(target))
        self.note(runner, item)
        shadow.set_elements(target, initialised)

    def _missing(self, runner: Runner, item: Item, pattern: PatternRecord) -> PatternRecord:
        if not self._can_follow(runner, item, pattern):
            raise self._fault(runner, item, pattern)
        return pattern

    def _can_follow(self, runner: Runner, item: Item, pattern: PatternRecord) -> bool:
        row, shadow = item.record.row, self.shadows[runner.rank]
        if row is None or row.depends is Depends.WHOLLY or item.dynamic is not None:
            return False
        if shadow is None:
            return False
        unset, total = shadow.missing(pattern)
        return unset < total or pattern.tensor in shadow.origins

    def prepare(self, runner: Runner, item: Item) -> None:
        """Zero uninitialised factors: they may be NaN, but their products with 0 are defined."""
        row, shadow = item.record.row, self.shadows[runner.rank]
        if row is not None and row.depends is Depends.PRODUCT and shadow is not None:
            for pattern in (*item.patterns(item.reads), *(p for _, p in item.checks)):
                if pattern.tensor not in shadow.initial:
                    shadow.clear(pattern)

    def follow(self, runner: Runner, item: Item, missing: PatternRecord) -> None:
        """Record which parts of the results are uninitialised."""
        shadow, record = self.shadows[runner.rank], item.record
        if shadow is None:
            return
        facts = self.executable.facts(record, TARGETS[self.executable.target], runner.record.engine)
        defined = definedness.results(shadow, record, facts)
        if defined is None:
            raise self._fault(runner, item, missing)
        for pattern, mask in defined:
            self._set(shadow, runner, item, missing, pattern, mask)

    def exchange(self, arrivals: Sequence[tuple[Runner, Item, Missing]]) -> None:
        """Record this for a rendezvous whose contributions are partly uninitialised."""
        brought = {
            (runner.rank, runner.core): (missing, self._brought(runner, missing))
            for runner, _, missing in arrivals
        }
        for runner, item, _ in arrivals:
            shadow, source = self.shadows[runner.rank], item.rendezvous and item.rendezvous.source
            if shadow is None or source is None:
                continue
            missing, mask = brought[runner.rank, source]
            if missing is not None:
                target = definedness.tile_of(item.record, "dst")
                self._set(shadow, runner, item, missing, target, mask)

    def finish(self) -> None:
        """Raise the fault of the first store that left uninitialised elements in a result."""
        for shadow, pattern, fault_of_store in self.stored:
            if not shadow.elements(pattern).all():
                raise fault_of_store

    def _brought(self, runner: Runner, missing: Missing) -> definedness.Mask:
        shadow = self.shadows[runner.rank]
        if shadow is None or missing is None:
            return np.ones((1, 1), np.bool_)
        return shadow.elements(missing)

    def _set(
        self,
        shadow: Shadow,
        runner: Runner,
        item: Item,
        missing: PatternRecord,
        pattern: PatternRecord,
        mask: definedness.Mask,
    ) -> None:
        if pattern.tensor in self.results and not mask.all():
            found = self._fault(runner, item, missing)
            if pattern.tensor in shadow.initial:  # reads of it are not checked
                raise found
            self.stored.append((shadow, pattern, found))
        origin = shadow.origins.get(missing.tensor, (item.record.place, missing.tensor))
        if pattern.tensor != origin[1]:
            shadow.origins.setdefault(pattern.tensor, origin)
        shadow.set_elements(pattern, mask.reshape(shadow.shape_of(pattern)))

    def _fault(self, runner: Runner, item: Item, missing: PatternRecord) -> ProgramFault:
        record, row = item.record, item.record.row
        shadow = self.shadows[runner.rank] if missing.dynamic is None else None
        unset, total = shadow.missing(missing) if shadow is not None else (0, 0)
        origin = shadow.origins.get(missing.tensor) if shadow is not None else None
        name = self.executable.tensors[missing.tensor].name
        first = self.executable.tensors[origin[1]].name if origin is not None else name
        cause = f", computed from uninitialised bytes of `{first}`"
        reason = " before it is written" if first == name else cause
        part = "" if unset == total else f" ({unset} of the {total} parts it reads)"
        return fault(
            self.executable,
            "uninitialised-read",
            f"{row.name if row else ''} reads `{name}`{reason}{part}",
            record.place,
            missing.tensor,
            help=f"write `{first}` first: load it, or fill it with nisa.memset",
            labels=self._source(origin),
        )

    def _source(self, origin: tuple[int, int] | None) -> list[Label]:
        """Return a label at the origin of the uninitialised bytes, if it is another tensor."""
        span = source_of(self.executable, origin[0]) if origin is not None else None
        if origin is None or span is None:
            return []
        first = self.executable.tensors[origin[1]].name
        return [Label(span, f"the uninitialised bytes of `{first}` are read here")]


# ---- uninitialised results ----


def never_written(executable: Executable, shadow: Shadow) -> list[Diagnostic]:
    """Return a warning for each output that is not fully written, in order.

    An output that is also an input has been written by the caller.
    """
    warnings = []
    for number, output in enumerate(executable.outputs):
        if output.tensor in shadow.initial:
            continue
        missing = _missing(executable, shadow, output.tensor)
        if missing:
            warnings.append(_not_written(executable, number, missing))
    return warnings


def _missing(executable: Executable, shadow: Shadow, tensor: int) -> str:
    """Describe the unwritten part of an HBM tensor; empty if all is written."""
    if shadow.is_initialised[tensor]:
        return ""
    flags, record = shadow.flags.get(tensor), executable.tensors[tensor]
    if flags is None:
        return "all"
    if flags.array.all():
        return ""
    count = prod(record.shape)
    written = flags.whole(record.dtype.size)
    unset = count - int(np.count_nonzero(written))
    if unset in (0, count):
        return "all" if unset else ""
    first = [int(i) for i in np.unravel_index(int(written.argmin()), record.shape)]
    return f"{grouped(unset)} of its {grouped(count)} elements, the first at {first}"


def _not_written(executable: Executable, number: int, missing: str) -> Diagnostic:
    output = executable.outputs[number]
    record = executable.tensors[output.tensor]
    name = f"output {number}, `{record.name}`,"
    slug, text = "output-not-written", f"{name} was not written by any instruction that ran"
    if missing != "all":
        slug, text = "output-partly-written", f"{name} was written only in part: not {missing}"
    return make(
        slug,
        text,
        source_of(executable, record.place),
        labels=called_from(executable, record.place),
        help="write all of it: unwritten HBM holds arbitrary data",
        level=Level.WARNING,
    )
