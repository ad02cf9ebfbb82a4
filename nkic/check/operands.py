"""Operands of one instruction that share bytes in a way that no documentation defines.

A destination whose pattern visits an element twice keeps one of two values; a source that overlaps
the destination, but is not the same elements in the same order, is read before or after they are
overwritten. nkic's runner writes elements in order, after it has read all of them (assumed;
docs/fidelity.md); engines work on several elements at a time, and DMA on several descriptors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from nkic.base.diagnostics import Reporter
from nkic.base.text import plural
from nkic.check.stage import call_labels, declaration
from nkic.ir.effects import Operands, Uses, accesses_of
from nkic.ir.program import Instruction, Program, instructions
from nkic.ir.tensors import AccessPattern
from nkic.machine.operands import Depends
from nkic.machine.patterns import Dims, elements, merged, repeats, run

MAX_ELEMENTS = 1 << 16  # elements, or contiguous pieces, of a pattern that is looked at
# Rows that write elements while they read others. A reduction writes when it has read a partition.
_STREAMING = (Depends.ELEMENTWISE, Depends.TRANSPOSED)


def find_shared_elements(lowered: Program, report: Reporter) -> None:
    """Warn of destinations that are hit twice, and of sources that overlap them."""
    for body in lowered.cores:
        accesses = accesses_of(body, lowered.target)
        known: dict[tuple[int, ...], tuple[str, str, AccessPattern] | None] = {}
        for instruction in instructions(body):
            if not _is_candidate(instruction):
                continue
            operands, uses = accesses.of(instruction)
            key = (id(instruction.row), *map(id, operands))
            if key not in known:
                known[key] = _problem(instruction, operands, uses)
            problem = known[key]
            if problem is not None:
                slug, text, dst = problem
                report.warning(
                    slug,
                    f"{instruction.row.name}: {text}",
                    instruction.at.primary,
                    labels=[declaration(dst.tensor), *call_labels(instruction.at)],
                    help=_HELP[slug],
                )


_HELP = {
    "element-written-twice": "let every element of the destination occur once in its pattern",
    "overlapping-operands": "copy the source into a tile of its own first",
}


def _is_candidate(instruction: Instruction) -> bool:
    """Return whether two operands are of one tensor, or one visits an element twice."""
    tensors: list[int] = []
    for operand in instruction.operands:
        if type(operand) is AccessPattern:
            number = operand.tensor.number
            if number in tensors or _repeats(operand.dims):
                return True
            tensors.append(number)
    return False


_repeats = lru_cache(maxsize=4096)(repeats)


def _problem(
    instruction: Instruction, operands: Operands, uses: Uses
) -> tuple[str, str, AccessPattern] | None:
    """Return the code and the text of a warning, and the destination that it is about."""
    row = instruction.row
    if row.is_rendezvous:
        return None
    sources, written = [], []
    for index, reads, writes in uses:
        pattern = operands[index]
        if type(pattern) is AccessPattern and index < len(row.operands):
            if writes:
                written.append((row.operands[index].name, pattern))
            elif reads:
                sources.append((row.operands[index].name, pattern))
    for name, dst in written:
        if dst.dynamic is not None:
            continue
        # With a second result, kernels let the first one hit a single element, and drop it.
        if len(written) == 1 and sources and repeats(dst.dims) and _differ(dst, sources):
            return "element-written-twice", _twice(name, dst), dst
        if row.depends not in _STREAMING:
            continue
        for source, tile in sources:
            if tile.tensor is dst.tensor and tile.dynamic is None and _overlap(dst, tile):
                text = (
                    f"`{source}` and `{name}` overlap in `{dst.tensor.name}`, but are not the "
                    "same elements in the same order: whether an element is read before it is "
                    "overwritten is not defined"
                )
                return "overlapping-operands", text, dst
    return None


# ---- elements that are written twice ----


def _differ(dst: AccessPattern, sources: Sequence[tuple[str, AccessPattern]]) -> bool:
    """Return whether an element may be given different values, and is written twice at all."""
    if all(_repeat_alike(dst.dims, source.dims) for _, source in sources):
        return False
    return elements(dst.dims) <= MAX_ELEMENTS and _distinct(dst.dims) < elements(dst.dims)


def _repeat_alike(dims: Dims, source: Dims) -> bool:
    """Return whether a source repeats its elements wherever the destination does."""
    return (
        len(dims) == len(source)
        and all(
            num == other_num and (step != 0 or other == 0)
            for (step, num), (other, other_num) in zip(dims, source, strict=True)
        )
        and not repeats(tuple(pair for pair in dims if pair[0]))
    )


def _twice(name: str, dst: AccessPattern) -> str:
    count, distinct = elements(dst.dims), _distinct(dst.dims)
    each = " of each partition" if dst.tensor.on_chip else ""
    return (
        f"`{name}` writes {count:,} elements to {plural(distinct, 'place')}{each} of "
        f"`{dst.tensor.name}`; "
        f"its pattern is {[list(pair) for pair in dst.dims]}, and which of several values a place "
        "keeps is not defined"
    )


@lru_cache(maxsize=1024)
def _distinct(dims: Dims) -> int:
    """Return the number of different elements that a pattern visits."""
    return len(set(_visited(dims)))


def _visited(dims: Dims) -> Iterator[int]:
    """Yield the offsets of the elements in order."""
    if not dims:
        yield 0
        return
    (step, num), *inner = dims
    for i in range(num):
        for offset in _visited(tuple(inner)):
            yield i * step + offset


# ---- sources that overlap the destination ----


def _overlap(dst: AccessPattern, source: AccessPattern) -> bool:
    """Return whether the two share bytes, unless they are the same elements in the same order.

    An operand of one element per partition is read before the first result is written.
    """
    on_chip = dst.tensor.on_chip
    if on_chip and elements(source.dims) == 1 < elements(dst.dims):
        return False
    ends = dst.start + dst.partitions, source.start + source.partitions
    if on_chip and min(ends) <= max(dst.start, source.start):
        return False
    (low, high), (other_low, other_high) = dst.extent(), source.extent()
    if low >= other_high or other_low >= high:
        return False
    mine, other = (merged(dst.dims), dst.dtype.size), (merged(source.dims), source.dtype.size)
    distance = source.offset * source.dtype.size - dst.offset * dst.dtype.size
    is_same = mine == other and dst.start == source.start and distance == 0
    return not is_same and _share_bytes(mine, other, distance)


@lru_cache(maxsize=1024)
def _share_bytes(one: tuple[Dims, int], other: tuple[Dims, int], distance: int) -> bool:
    """Return whether two patterns of elements of a size share bytes; `other` is `distance` later.

    False if there are too many pieces to tell.
    """
    pieces = [(*_pieces(*one), 0), (*_pieces(*other), distance)]
    if any(elements(dims) > MAX_ELEMENTS for dims, _, _ in pieces):
        return False
    ranges = sorted(
        (start * size + shift, (start * size + shift) + length, owner)
        for owner, ((dims, length, shift), size) in enumerate(
            zip(pieces, (one[1], other[1]), strict=True)
        )
        for start in set(_visited(dims))
    )
    ends = [-(1 << 63)] * 2  # of the pieces of each pattern so far
    for start, end, owner in ranges:
        if start < ends[1 - owner]:
            return True
        ends[owner] = max(ends[owner], end)
    return False


def _pieces(dims: Dims, size: int) -> tuple[Dims, int]:
    """Return the pattern of the contiguous pieces of a pattern, and their length in bytes."""
    length = run(dims)
    return (dims if length == 1 else dims[:-1]), length * size
