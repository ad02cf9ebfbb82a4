"""Splitting of matmuls whose dst is partly written.

The accumulation flag applies to everything that an instruction writes. Each part therefore covers
partitions of dst (columns of stationary) and elements of it (columns of moving) of which all or
none were written before.
"""

from __future__ import annotations

from collections.abc import Iterator

from nkic.ir.program import Instruction, Operand, Work
from nkic.ir.tensors import AccessPattern
from nkic.lower.accumulate import Band
from nkic.machine.patterns import Dims

COLUMNS = ("stationary", "stationary_scale")  # dst's partitions
ELEMENTS = ("moving", "moving_scale")  # dst's free dimensions
Range = tuple[int, int]


def parts(matmul: Instruction, bands: list[Band]) -> Iterator[tuple[Instruction, bool]]:
    """Yield the matmuls equivalent to `matmul`, and whether each accumulates.

    `bands` are the parts of its dst written before. No operand may have a run-time offset.
    """
    dst = matmul.operand("dst")
    if not isinstance(dst, AccessPattern):
        raise TypeError("a matmul without dst")
    pairs = matmul.row.has_setting(matmul.row.pairs, matmul.attributes)
    column_streams = [_columns(matmul, name, pairs) for name in COLUMNS]
    element_streams = [dst.dims, *(_columns(matmul, name, pairs) for name in ELEMENTS)]
    for band in bands:
        rows = (band.first - dst.start, band.end - dst.start)
        for low, high in _common(column_streams, rows):
            for first, end, accumulates in _runs(dst, band.written):
                for start, stop in _common(element_streams, (first, end)):
                    piece = _piece(matmul, (low, high), (start, stop), pairs)
                    yield piece, accumulates


def _columns(matmul: Instruction, name: str, pairs: bool) -> Dims:
    """Return the dimensions of an operand that make up its columns."""
    if name not in matmul.row.operand_index:
        return ()
    operand = matmul.operand(name)
    dims = operand.dims if isinstance(operand, AccessPattern) else ()
    return dims[1:] if pairs else dims


def _runs(dst: AccessPattern, written: int) -> Iterator[tuple[int, int, bool]]:
    """Yield runs in dst's stream of elements: start, end, and whether they were written before."""
    before = [bool(written >> offset * dst.dtype.size & 1) for offset in _offsets(dst)]
    first = 0
    for end in range(1, len(before) + 1):
        if end == len(before) or before[end] != before[first]:
            yield first, end, before[first]
            first = end


def _offsets(dst: AccessPattern) -> list[int]:
    offsets = [dst.offset]
    for step, num in dst.dims:
        offsets = [offset + step * index for offset in offsets for index in range(num)]
    return offsets


def _common(streams: list[Dims], elements: Range) -> Iterator[Range]:
    """Yield `elements` in the fewest pieces that are patterns in each of the streams."""
    for dims in streams:
        pieces = _pieces(dims, *elements) if dims else [elements]
        if len(pieces) > 1:
            for piece in pieces:
                yield from _common(streams, piece)
            return
    yield elements


def _pieces(dims: Dims, low: int, high: int) -> list[Range]:
    """Return elements `low` to `high` of a stream in pieces that are single patterns."""
    inner = 1
    for _, num in dims[1:]:
        inner *= num
    if len(dims) <= 1 or (low % inner == 0 and high % inner == 0):
        return [(low, high)]
    first, last = low // inner, (high - 1) // inner
    if first == last:
        base = first * inner
        return [(a + base, b + base) for a, b in _pieces(dims[1:], low - base, high - base)]
    middle = (-(-low // inner) * inner, high // inner * inner)
    ends = [(low, middle[0]), middle, (middle[1], high)]
    return [(a, b) for a, b in ends if a < b]


def _cut(dims: Dims, low: int, high: int) -> tuple[int, Dims]:
    """Return the offset of elements `low` to `high`, and their dimensions."""
    if not dims:
        return 0, dims
    inner = 1
    for _, num in dims[1:]:
        inner *= num
    step, _ = dims[0]
    if low % inner == 0 and high % inner == 0:
        return low // inner * step, ((step, (high - low) // inner), *dims[1:])
    base = low // inner
    offset, inner_dims = _cut(dims[1:], low - base * inner, high - base * inner)
    return base * step + offset, ((step, 1), *inner_dims)


def _piece(matmul: Instruction, rows: Range, columns: Range, pairs: bool) -> Instruction:
    operands = list(matmul.operands)
    for name, index in matmul.row.operand_index.items():
        operand = operands[index]
        if not isinstance(operand, AccessPattern):
            continue
        if name in COLUMNS:
            operands[index] = _sliced(operand, rows, pairs)
        else:
            operands[index] = _sliced(operand, columns, pairs and name != "dst")
        if name == "dst":
            operands[index] = _rows_of(operands[index], rows)
    return matmul._replace(operands=tuple(operands), work=Work())


def _sliced(pattern: AccessPattern, elements: Range, pairs: bool) -> AccessPattern:
    head, dims = (pattern.dims[:1], pattern.dims[1:]) if pairs else ((), pattern.dims)
    offset, sliced_dims = _cut(dims, *elements)
    return pattern._replace(offset=pattern.offset + offset, dims=(*head, *sliced_dims))


def _rows_of(operand: Operand, rows: Range) -> Operand:
    if not isinstance(operand, AccessPattern):
        return operand
    low, high = rows
    return operand._replace(start=operand.start + low, partitions=high - low)
