"""The handling of reads of uninitialised bytes.

Reading an entirely uninitialised tile is a fault. Partly uninitialised tiles are tracked, into the
kernel's results too: elements that are still uninitialised there at the end are a fault of the
store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nkic.artifact.records import Executable, InstructionRecord, PatternRecord, source_of
from nkic.base.diagnostics import Diagnostic, Label, Level, ProgramFault, make
from nkic.base.text import grouped
from nkic.machine.instructions.gpsimd import CORE
from nkic.machine.instructions.tensor import GROUP, LANES, QUADRANT, SCALES_PER_QUADRANT
from nkic.machine.operands import Depends, Facts, Operand, Row
from nkic.machine.targets import TARGETS
from nkic.simulate.outcome import called_from, fault
from nkic.simulate.shadow import Shadow
from nkic.simulate.streams import Item, Runner

# ---- The propagation of uninitialised elements --------------------------------------------------
# A copy of a partly uninitialised tile is not yet an error: kernels move whole tiles and use the
# part that they filled. So uninitialised elements are tracked, like poison, to the first
# instruction whose result depends on all that it reads, or to a result of the kernel. This is done
# only for accesses to uninitialised bytes; `Row.depends` says how the elements of a row's results
# depend on those of its sources.

Mask = NDArray[np.bool_]  # partitions (1 in HBM), elements of each


class Source(NamedTuple):
    """A tile that is read, and its initialised elements."""

    operand: Operand
    mask: Mask
    zeros: Callable[[], Mask]  # returns which elements are zero


def results(
    shadow: Shadow, record: InstructionRecord, facts: Facts
) -> list[tuple[PatternRecord, Mask]] | None:
    """Return the initialised elements of each result; None if the row's rule does not apply."""
    row = record.row
    if row is None or row.depends is Depends.WHOLLY:
        return None
    sources = [
        Source(operand, shadow.elements(pattern), partial(shadow.zeros, pattern))
        for operand, pattern in _tiles(row, record)
        if row.access_of(operand, facts).reads
    ]
    defined = []
    for operand, pattern in _tiles(row, record):
        if row.access_of(operand, facts).writes:
            mask = _mask(row, operand, sources, shadow.shape_of(pattern), facts)
            if mask is None:
                return None
            defined.append((pattern, mask))
    return defined


def tile_of(record: InstructionRecord, name: str) -> PatternRecord:
    """Return the operand `name`, which must be a tile."""
    row = record.row
    operand = record.operands[row.operand_index[name]] if row is not None else None
    if type(operand) is not PatternRecord:
        raise TypeError(f"{name} is not a tile")
    return operand


def _tiles(row: Row, record: InstructionRecord) -> Iterator[tuple[Operand, PatternRecord]]:
    for operand, value in zip(row.operands, record.operands, strict=False):
        if type(value) is PatternRecord:
            yield operand, value


Shape = tuple[int, int]


def _mask(
    row: Row, operand: Operand, sources: list[Source], shape: Shape, facts: Facts
) -> Mask | None:
    if row.depends is Depends.QUANTIZED:
        return _quantized(sources, shape, operand.name == "dst_scale")
    return _RULES[row.depends](sources, shape, facts)


def _elementwise(sources: list[Source], shape: Shape, facts: Facts) -> Mask | None:
    """An element depends on those at its position; a single column is broadcast to all columns."""
    mask = np.ones(shape, np.bool_)
    for source in sources:
        initialised = source.mask
        if initialised.size == mask.size:
            mask &= initialised.reshape(shape)
        elif initialised.shape[0] == shape[0]:
            mask &= (
                initialised if initialised.shape[1] == 1 else initialised.all(axis=1, keepdims=True)
            )
        else:
            return None
    return mask


def _by_partition(sources: list[Source], shape: Shape, facts: Facts) -> Mask | None:
    mask = np.ones(shape, np.bool_)
    for source in sources:
        if source.mask.shape[0] != shape[0]:
            return None
        mask &= source.mask.all(axis=1, keepdims=True)
    return mask


def _first_of_core(sources: list[Source], shape: Shape, facts: Facts) -> Mask | None:
    """The first partition of each GpSimd core depends on the source's; the others are unchanged."""
    masks = {source.operand.name: source.mask for source in sources}
    src, mask = masks["src"], masks.get("dst", np.ones(shape, np.bool_))
    mask[::CORE] = np.all(src[::CORE], axis=1, keepdims=True)
    return mask


def _shuffled(sources: list[Source], shape: Shape, facts: Facts) -> Mask | None:
    """Partition i of a quadrant depends on partition `shuffle_mask[i]`; 255 leaves it unchanged."""
    masks = {source.operand.name: source.mask for source in sources}
    src, mask = masks["src"], masks.get("dst", np.ones(shape, np.bool_))
    if src.shape != shape:
        return None
    for row in range(shape[0]):
        taken = facts.attributes["shuffle_mask"][row % QUADRANT]
        if taken < QUADRANT:
            mask[row] = src[row // QUADRANT * QUADRANT + taken]
    return mask


def _product(sources: list[Source], shape: Shape, facts: Facts) -> Mask | None:
    """Row m, column n of a product depend on columns m and n of the two factors.

    A product with zero is initialised: kernels pad one tile with zeros, and leave the other as it
    is.
    """
    sources_by_name = {source.operand.name: source for source in sources}
    rows, columns = _factor(sources_by_name, "stationary"), _factor(sources_by_name, "moving")
    if rows is None or columns is None or rows.written.shape[0] != columns.written.shape[0]:
        return None
    if (rows.written.shape[1], columns.written.shape[1]) != shape:
        return None
    mask = sources_by_name["dst"].mask if "dst" in sources_by_name else np.ones(shape, np.bool_)
    uninitialised = _meet(~rows.written, ~columns.zero) | _meet(~rows.zero, ~columns.written)
    return mask & ~uninitialised


class _Factor(NamedTuple):
    """A factor of a matmul: its initialised elements, and which of those are zero."""

    written: Mask
    zero: Mask


def _factor(sources_by_name: dict[str, Source], name: str) -> _Factor | None:
    source, scale = sources_by_name[name], sources_by_name.get(f"{name}_scale")
    written = source.mask
    if scale is not None:
        rows = np.arange(len(scale.mask)) % QUADRANT < SCALES_PER_QUADRANT
        spread = scale.mask[rows].repeat(GROUP, axis=0)
        if spread.shape != written.shape:
            return None
        written = written & spread
    return _Factor(written, written & source.zeros())


def _meet(one: Mask, other: Mask) -> Mask:
    """Return which columns of `one` and of `other` have a row in common."""
    common: Mask = one.T.astype(np.float32) @ other.astype(np.float32) > 0
    return common


def _quantized(sources: list[Source], shape: Shape, scales: bool) -> Mask | None:
    """A packed element depends on that column of its group: 8 partitions, 4 elements of each.

    So does the scale of the group, which is in one of the first partitions of its quadrant; the
    other partitions of scales depend on the whole quadrant.
    """
    (source,) = sources
    partitions, columns = source.mask.shape
    if columns != LANES * shape[1]:
        return None
    members = source.mask.reshape(-1, SCALES_PER_QUADRANT, GROUP, shape[1], LANES)
    groups: Mask = np.logical_and.reduce(members, axis=(2, 4))
    if scales:
        others = QUADRANT - SCALES_PER_QUADRANT
        other = np.logical_and.reduce(groups, axis=1, keepdims=True).repeat(others, axis=1)
        groups = np.concatenate([groups, other], axis=1)
    else:
        groups = groups.repeat(GROUP, axis=1)
    whole: Mask = groups.reshape(partitions, shape[1])[: shape[0]]
    return whole if whole.shape == shape else None


def _transposed(sources: list[Source], shape: Shape, facts: Facts) -> Mask | None:
    """Row i, column j depends on row j, column i."""
    (source,) = sources
    return source.mask.T.copy() if source.mask.T.shape == shape else None


_RULES = {
    Depends.ELEMENTWISE: _elementwise,
    Depends.BY_PARTITION: _by_partition,
    Depends.FIRST_OF_CORE: _first_of_core,
    Depends.SHUFFLED: _shuffled,
    Depends.PRODUCT: _product,
    Depends.TRANSPOSED: _transposed,
}


# --------------------------------------------------------------------------------------------------

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
        shadow = self.shadows[runner.rank]
        if shadow is not None:
            operands, is_initialised = item.record.operands, shadow.is_initialised
            for i in item.writes:
                pattern: PatternRecord = operands[i]  # type: ignore[assignment]
                if not is_initialised[pattern.tensor]:
                    shadow.note(pattern)

    def note_part(self, runner: Runner, item: Item, written: Mask) -> None:
        """Mark these elements of dst, and what else the item writes, as initialised."""
        shadow, target = self.shadows[runner.rank], tile_of(item.record, "dst")
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
        row, shadow = item.record.row, self.shadows[runner.rank]
        if row is not None and row.depends is Depends.PRODUCT and shadow is not None:
            for pattern in (*item.patterns(item.reads), *(p for _, p in item.checks)):
                if pattern.tensor not in shadow.initial:
                    shadow.clear(pattern)

    def follow(self, runner: Runner, item: Item, missing: PatternRecord) -> None:
        shadow, record = self.shadows[runner.rank], item.record
        if shadow is None:
            return
        facts = self.executable.facts(record, TARGETS[self.executable.target], runner.record.engine)
        defined = results(shadow, record, facts)
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
                target = tile_of(item.record, "dst")
                self._set(shadow, runner, item, missing, target, mask)

    def finish(self) -> None:
        """Raise the fault of the first store that left uninitialised elements in a result."""
        for shadow, pattern, fault_of_store in self.stored:
            if not shadow.elements(pattern).all():
                raise fault_of_store

    def _brought(self, runner: Runner, missing: Missing) -> Mask:
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
        mask: Mask,
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
