"""The locations of PSUM that matmuls have written, and the parts of a matmul.

A tensor's bytes are the bits of one integer, those of its first partition first. A pattern with a
run-time offset counts as all of its tensor.
"""

from __future__ import annotations

from functools import lru_cache

from nkic.ir.program import Instruction, Operand
from nkic.ir.tensors import AccessPattern, Tensor, View
from nkic.machine.patterns import Dims

ROWS = ("stationary", "stationary_scale")  # whose columns are the partitions of dst
COLUMNS = ("moving", "moving_scale")  # whose columns are the elements of a partition of dst


class Accumulated:
    """What matmuls have written so far, in program order.

    `whole` has the ids of patterns that lie in it as a whole.
    """

    def __init__(self) -> None:
        self.bytes: dict[int, int] = {}  # by tensor number
        self.whole: set[int] = set()

    def before(self, tensor: Tensor, area: int) -> int:
        """Return the bytes of `area` that were written before."""
        written = self.bytes.get(tensor.number)
        return 0 if written is None else written & area

    def add(self, tensor: Tensor, area: int) -> None:
        """Note a write of the bytes `area`."""
        written = self.bytes.get(tensor.number)
        if written is None:
            self.bytes[tensor.number] = area
        elif written | area != written:
            whole = _all(tensor.partitions * tensor.bytes)  # one integer for all full tensors
            self.bytes[tensor.number] = whole if written | area == whole else written | area


def bytes_of(operand: View | AccessPattern) -> int:
    """Return the bytes that `operand` covers."""
    tensor, size = operand.tensor, operand.dtype.size
    if operand.dynamic is not None:
        return _all(tensor.partitions * tensor.bytes)
    offset, dims = _flat(operand)
    low = offset + sum([step * (num - 1) for step, num in dims if step < 0])
    bits = _bits(dims, size)
    return bits << low * size if low else bits


@lru_cache(maxsize=64)
def _all(count: int) -> int:
    return (1 << count) - 1


@lru_cache(maxsize=64)
def _bits(dims: Dims, size: int) -> int:
    """Return the bytes that (step, num) pairs cover, from the lowest on."""
    bits = (1 << size) - 1
    for step, num in reversed(dims):
        done = 1
        while done < num:
            more = min(done, num - done)
            bits |= bits << abs(step) * size * more
            done += more
    return bits


def _flat(operand: View | AccessPattern) -> tuple[int, Dims]:
    """Return the offset and all dimensions, partitions first, in elements."""
    if isinstance(operand, View):
        return operand.offset, tuple(zip(operand.strides, operand.shape, strict=True))
    pitch = operand.tensor.bytes // operand.dtype.size
    dims = ((pitch, operand.partitions), *operand.dims)
    return operand.start * pitch + operand.offset, dims


def part_of(whole: Instruction, part: Instruction) -> int:
    """Return the bytes of dst that `part` computes just as `whole` does; 0 if it does not.

    It has some of the partitions of dst, and some consecutive elements of each.
    """
    row = whole.row
    dst, own = _tile(whole.operands[row.accumulator]), _tile(part.operands[row.accumulator])
    if dst is None or own is None or own.tensor is not dst.tensor or own.dtype is not dst.dtype:
        return 0
    (first, count, elements), (start, partitions, own_elements) = _listed(dst), _listed(own)
    if own_elements[0] not in elements:
        return 0
    rows = range(count)[start - first : start - first + partitions]
    at = elements.index(own_elements[0])
    columns = range(len(elements))[at : at + len(own_elements)]
    if start < first or len(rows) != partitions or elements[at : columns.stop] != own_elements:
        return 0
    pairs = row.has_setting(row.pairs, whole.attributes)
    taken = dict.fromkeys(ROWS, rows) | dict.fromkeys(COLUMNS, columns)
    for name, index in row.operand_index.items():
        value, made = whole.operands[index], part.operands[index]
        if index == row.accumulator:
            continue
        if name not in taken or _tile(value) is None:
            if made is not value:
                return 0
        elif not _takes(value, made, taken[name], pairs):
            return 0
    return bytes_of(own)


def _takes(value: Operand, made: Operand, columns: range, pairs: bool) -> bool:
    """Return whether `made` has these columns of `value`; of both of each pair, with `pairs`."""
    one, other = _tile(value), _tile(made)
    if one is None or other is None:
        return False
    if other.tensor is not one.tensor or other.dtype is not one.dtype:
        return False
    first, count, elements = _listed(one)
    groups = _flat(one)[1][1][1] if pairs else 1
    if pairs and _flat(other)[1][1] != _flat(one)[1][1]:
        return False
    size = len(elements) // groups
    own = [elements[group * size + column] for group in range(groups) for column in columns]
    return _listed(other) == (first, count, own)


def _tile(operand: Operand) -> View | AccessPattern | None:
    """Return an operand in memory without a run-time offset."""
    if isinstance(operand, View | AccessPattern) and operand.dynamic is None:
        return operand
    return None


def _listed(operand: View | AccessPattern) -> tuple[int, int, list[int]]:
    """Return the first partition, their number, and the offsets of the elements in each."""
    offset, ((_, partitions), *dims) = _flat(operand)
    start, first = divmod(offset, operand.tensor.bytes // operand.dtype.size)
    elements = [first]
    for step, num in dims:
        elements = [element + step * index for element in elements for index in range(num)]
    return start, partitions, elements
