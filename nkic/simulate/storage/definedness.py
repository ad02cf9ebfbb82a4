"""The propagation of uninitialised elements.

A copy of a partly uninitialised tile is not yet an error: kernels move whole tiles and use the part
that they filled. So uninitialised elements are tracked, like poison, to the first instruction whose
result depends on all that it reads, or to a result of the kernel. This is done only for accesses to
uninitialised bytes; `Row.depends` says how the elements of a row's results depend on those of its
sources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nkic.machine.facts import Facts
from nkic.machine.instructions.gpsimd_gather import CORE
from nkic.machine.instructions.mx import GROUP, LANES, QUADRANT, SCALES_PER_QUADRANT
from nkic.machine.operands import Depends, Operand, Row
from nkic.neff.records import InstructionRecord, PatternRecord
from nkic.simulate.storage.shadow import Shadow

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
    """An element depends on all of its partition."""
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
