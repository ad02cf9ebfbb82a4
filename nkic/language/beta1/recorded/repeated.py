"""Broadcasts of a row to all partitions in Beta 1, computed by the tensor engine.

"Partition-dim broadcast often requires a separate instruction on TensorE" (fused Mamba tutorial, of
nl.broadcast_to; architecture guide, alternative uses of the tensor engine): a product with ones.
Its result is in PSUM. If a single instruction reads it and can read PSUM, it does, as in the
tutorial's profiles, where PSUM is full of such rows; otherwise the result is copied to SBUF. The
library's shuffle and copies remain if the tensor engine cannot read the row, or PSUM has no space.
The copies run on the vector engine (implied: of published selective scans, those that copy such
rows take as much longer as the vector engine would, though the scalar engine has less to do).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from nkic.ir.program import Instruction, Item
from nkic.ir.tensors import Tensor, View
from nkic.language.beta1.access import part_of
from nkic.language.beta1.emit import RowBroadcast, emit, state
from nkic.language.beta1.recorded import bodies
from nkic.language.beta1.tiles import Tile
from nkic.language.tensors.views import whole
from nkic.language.trace import Trace
from nkic.machine.dtypes import FLOAT32, DType
from nkic.machine.engines import Engine
from nkic.machine.memory import MEMORIES, PARTITIONS, PSUM_BANK_BYTES, Buffer
from nkic.machine.rules import violations

BANK = PSUM_BANK_BYTES // 4  # columns of float32 in a bank: the limit of a product
_EXACT_DTYPES = ("float32", "bfloat16", "float16")  # dtypes whose values a product with 1 preserves
_STARTS = (0, 32, 64)  # partitions at which operands of the tensor engine start


class _Plan(NamedTuple):
    """A row to broadcast. `reader` is the index of the instruction that reads PSUM, or -1."""

    end: int
    row: View
    tile: Tensor
    reader: int


def multiply(trace: Trace) -> None:
    """Replace the library's instructions for such broadcasts by products with ones."""
    for body in trace.bodies:
        groups = {group.first: group for group in state().broadcasts if group.body is body}
        plain = [item for item in body if isinstance(item, Instruction)]
        if not groups or len(plain) < len(body) or bodies.has_fixed(plain, MEMORIES):
            continue
        plans = _Planner(trace, plain).plans(groups.values())
        if plans:
            _Rewriter(trace, plain, plans).rewrite(body)


class _Planner:
    """The selection of the rows to replace and of those read in PSUM, in program order."""

    def __init__(self, trace: Trace, body: Sequence[Instruction]) -> None:
        self.target = trace.target
        self.body = list(body)
        self.uses = bodies.uses(body, MEMORIES)
        self.banks = self._in_use()

    def _in_use(self) -> list[int]:
        """Return the number of PSUM banks in use at each instruction."""
        banks = [0] * len(self.body)
        for tensor, indices in self.uses.items():
            if tensor.buffer is Buffer.PSUM:
                for index in range(indices[0], indices[-1] + 1):
                    banks[index] += -(-tensor.bytes // PSUM_BANK_BYTES)
        return banks

    def plans(self, groups: Iterable[RowBroadcast]) -> dict[int, _Plan]:
        """Return the plans by the index of the first instruction that each replaces."""
        plans = {group.first: self._plan(group) for group in groups}
        return {first: plan for first, plan in plans.items() if plan is not None}

    def _plan(self, group: RowBroadcast) -> _Plan | None:
        shuffle = self.body[group.first]
        if shuffle.row.name != "nc_stream_shuffle":
            return None
        row, dst = shuffle.operand("src"), shuffle.operand("dst")
        assert isinstance(row, View)
        assert isinstance(dst, View)
        if not _is_readable(row, dst) or not self._reserve(group.first, group.first, spare=0):
            return None
        return _Plan(group.end, row, dst.tensor, self._reader(group, dst.tensor))

    def _reserve(self, first: int, last: int, spare: int) -> bool:
        """Reserve a PSUM bank for a range of instructions; return whether there was one.

        `spare` further banks must remain free.
        """
        indices, limit = range(first, last + 1), self.target.psum_banks - spare
        if any(self.banks[index] >= limit for index in indices):
            return False
        for index in indices:
            self.banks[index] += 1
        return True

    def _reader(self, group: RowBroadcast, tile: Tensor) -> int:
        """Return the index of the tile's only reader, or -1 if it cannot read PSUM."""
        indices = [index for index in self.uses[tile] if index >= group.end]
        if len(indices) != 1 or tile.bytes > PSUM_BANK_BYTES or tile.dtype is not FLOAT32:
            return -1
        item = self.body[indices[0]]
        in_psum = Tensor(-1, tile.name, tile.dtype, tile.shape, Buffer.PSUM, tile.at)
        moved = bodies.substituted(item, {tile: in_psum})
        if _writes(item, tile):
            return -1
        if violations(item.row, moved.facts(self.target)):
            return -1
        if not self._reserve(group.first + 1, indices[0], spare=1):
            return -1
        self.body[indices[0]] = moved  # it may read another such row
        return indices[0]


def _is_readable(row: View, dst: View) -> bool:
    """Return whether the tensor engine can read the row and preserves its values."""
    tensor = row.tensor
    return (
        tensor.buffer is Buffer.SBUF
        and row.dynamic is None
        and len(row.shape) == len(dst.tensor.shape) == 2
        and row.dtype is dst.tensor.dtype
        and row.dtype.name in _EXACT_DTYPES
        and row.offset // row.pitch in _STARTS
    )


def _writes(item: Instruction, tile: Tensor) -> bool:
    return any(
        isinstance(operand, View) and operand.tensor is tile and spec.access.writes
        for operand, spec in zip(item.operands, item.row.operands, strict=True)
    )


def _on_vector(item: Instruction) -> Instruction:
    """Give a copy that names no engine to the vector engine."""
    copies = item.row.name == "tensor_copy" and item.engine is None
    return item._replace(engine=Engine.VECTOR) if copies else item


class _Rewriter:
    """A rewriter that replaces broadcasts by products."""

    def __init__(
        self, trace: Trace, body: Sequence[Instruction], plans: Mapping[int, _Plan]
    ) -> None:
        self.trace = trace
        self.items = body
        self.plans = plans
        self.ones: dict[DType, Tensor] = {}
        self.replacements: dict[Tensor, Tensor] = {}
        self.added: set[int] = set()

    def rewrite(self, body: list[Item]) -> None:
        """Replace the contents of `body`."""
        trace, before = self.trace, self.trace.body
        rewritten: list[Item] = []
        trace.body, index = rewritten, 0
        while index < len(self.items):
            item, plan = self.items[index], self.plans.get(index)
            if plan is None:
                moved = bodies.substituted(item, self.replacements)
                rewritten.append(moved if moved.operands == item.operands else _on_vector(moved))
            else:
                self._repeat(plan, item)
            index = index + 1 if plan is None else plan.end
        trace.body = before
        body[:] = bodies.renumbered(rewritten, self.added)

    def _repeat(self, plan: _Plan, at: Instruction) -> None:
        """Record a product for each bank of columns, and copies unless a reader takes PSUM."""
        row, tile = plan.row, plan.tile
        ones = self._ones(row, tile, at)
        for start in range(0, row.shape[1], BANK):
            size = min(BANK, row.shape[1] - start)
            shape = (tile.shape[0], size)
            result = self.trace.declare(shape, FLOAT32, Buffer.PSUM, tile.name, at.at)
            moving = Tile(part_of(row, (0, start), (1, size)))
            self._add(at, "nc_matmul", Tile(whole(result)), stationary=ones, moving=moving)
            if plan.reader >= 0:
                self.replacements[tile] = result
            else:
                destination = Tile(part_of(whole(tile), (0, start), shape))
                self._add(at, "tensor_copy", destination, src=Tile(whole(result)))
                copy = self.trace.body.pop()
                assert isinstance(copy, Instruction)
                self.trace.body.append(_on_vector(copy))

    def _ones(self, row: View, tile: Tensor, at: Instruction) -> Tile:
        """Return ones in the row's partition, one per partition of the tile."""
        ones = self.ones.get(row.dtype)
        if ones is None:
            shape = (PARTITIONS, PARTITIONS)
            ones = self.trace.declare(shape, row.dtype, Buffer.SBUF, "ones", at.at)
            self.ones[row.dtype] = ones
            self._add(at, "memset", Tile(whole(ones)), value=1.0)
        first = row.offset // row.pitch
        return Tile(part_of(whole(ones), (first, 0), (1, tile.shape[0])))

    def _add(self, at: Instruction, row: str, dst: Tile, **named: object) -> None:
        emit(row, dst, **named)
        self.added.add(bodies.attribute_last(self.trace, at))
