"""Rows that a kernel of Beta 1 repeats in all partitions, made by the tensor engine.

"Partition-dim broadcast often requires a separate instruction on TensorE" (fused Mamba tutorial,
of nl.broadcast_to; architecture guide, alternative uses of the tensor engine): a product with ones.
Its result is in PSUM. The one instruction that reads it reads it there if it can, as in the
tutorial's profiles, where PSUM is full of such rows; otherwise it is copied to SBUF. The library's
shuffle and copies stay where the tensor engine cannot reach the row, or PSUM has no room.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from nkic.ir.program import Instruction, Item
from nkic.ir.tensors import Tensor, View
from nkic.language.beta1.access import part_of
from nkic.language.beta1.emit import Repeated, emit, state
from nkic.language.beta1.recorded import bodies
from nkic.language.beta1.tiles import Tile
from nkic.language.tensors.views import whole
from nkic.language.trace import Trace
from nkic.machine.dtypes import FLOAT32, DType
from nkic.machine.memory import MEMORIES, PARTITIONS, PSUM_BANK_BYTES, Buffer
from nkic.machine.rules import violations

BANK = PSUM_BANK_BYTES // 4  # columns of float32, which a product fills
_TYPES = ("float32", "bfloat16", "float16")  # what a product with 1 leaves as it is
_STARTS = (0, 32, 64)  # where operands of the tensor engine start


class _Plan(NamedTuple):
    """A row to be repeated: `reader` is the place of the instruction that reads PSUM, or -1."""

    end: int
    row: View
    tile: Tensor
    reader: int


def multiply(trace: Trace) -> None:
    """Replaces what the library recorded for such rows by products with ones."""
    for body in trace.bodies:
        groups = {one.first: one for one in state().repeated if one.body is body}
        plain = [item for item in body if isinstance(item, Instruction)]
        if not groups or len(plain) < len(body) or bodies.has_fixed(plain, MEMORIES):
            continue
        plans = _Planning(trace, plain).plans(groups.values())
        if plans:
            _Rewriting(trace, plain, plans).rewrite(body)


class _Planning:
    """Which rows are made so, and which of those are read in PSUM, in the order of the program."""

    def __init__(self, trace: Trace, body: Sequence[Instruction]) -> None:
        self.target = trace.target
        self.body = list(body)
        self.uses = bodies.uses(body, MEMORIES)
        self.banks = self._in_use()

    def _in_use(self) -> list[int]:
        """Banks of PSUM in use at each place."""
        found = [0] * len(self.body)
        for tensor, places in self.uses.items():
            if tensor.buffer is Buffer.PSUM:
                for place in range(places[0], places[-1] + 1):
                    found[place] += -(-tensor.bytes // PSUM_BANK_BYTES)
        return found

    def plans(self, groups: Iterable[Repeated]) -> dict[int, _Plan]:
        """By the place where the library's instructions begin."""
        found = {group.first: self._plan(group) for group in groups}
        return {place: plan for place, plan in found.items() if plan is not None}

    def _plan(self, group: Repeated) -> _Plan | None:
        shuffle = self.body[group.first]
        if shuffle.row.name != "nc_stream_shuffle":
            return None
        row, dst = shuffle.operand("src"), shuffle.operand("dst")
        assert isinstance(row, View)
        assert isinstance(dst, View)
        if not _is_reached(row, dst) or not self._takes(group.first, group.first, spare=0):
            return None
        return _Plan(group.end, row, dst.tensor, self._reader(group, dst.tensor))

    def _takes(self, first: int, last: int, spare: int) -> bool:
        """Whether a bank is free from one place to another, and `spare` ones beside it; it is in
        use then.
        """
        places, most = range(first, last + 1), self.target.psum_banks - spare
        if any(self.banks[place] >= most for place in places):
            return False
        for place in places:
            self.banks[place] += 1
        return True

    def _reader(self, group: Repeated, tile: Tensor) -> int:
        """The place of the only instruction that reads the tile, if it may read PSUM."""
        places = [place for place in self.uses[tile] if place >= group.end]
        if len(places) != 1 or tile.bytes > PSUM_BANK_BYTES or tile.dtype is not FLOAT32:
            return -1
        item = self.body[places[0]]
        there = Tensor(-1, tile.name, tile.dtype, tile.shape, Buffer.PSUM, tile.at)
        moved = bodies.substituted(item, {tile: there})
        if _writes(item, tile):
            return -1
        if violations(item.row, moved.facts(self.target)):
            return -1
        if not self._takes(group.first + 1, places[0], spare=1):
            return -1
        self.body[places[0]] = moved  # for the next row that it reads
        return places[0]


def _is_reached(row: View, dst: View) -> bool:
    """The tensor engine can read the row, and gives its elements as they are."""
    tensor = row.tensor
    return (
        tensor.buffer is Buffer.SBUF
        and row.dynamic is None
        and len(row.shape) == len(dst.tensor.shape) == 2
        and row.dtype is dst.tensor.dtype
        and row.dtype.name in _TYPES
        and row.offset // row.pitch in _STARTS
    )


def _writes(item: Instruction, tile: Tensor) -> bool:
    return any(
        isinstance(operand, View) and operand.tensor is tile and spec.access.writes
        for operand, spec in zip(item.operands, item.row.operands, strict=True)
    )


class _Rewriting:
    """The walk through a body that puts products in the place of what the library recorded."""

    def __init__(
        self, trace: Trace, body: Sequence[Instruction], plans: Mapping[int, _Plan]
    ) -> None:
        self.trace = trace
        self.items = body
        self.plans = plans
        self.ones: dict[DType, Tensor] = {}
        self.homes: dict[Tensor, Tensor] = {}
        self.added: set[int] = set()

    def rewrite(self, body: list[Item]) -> None:
        """Gives `body` its new instructions."""
        trace, before = self.trace, self.trace.body
        made: list[Item] = []
        trace.body, place = made, 0
        while place < len(self.items):
            item, plan = self.items[place], self.plans.get(place)
            if plan is None:
                made.append(bodies.substituted(item, self.homes))
            else:
                self._repeat(plan, item)
            place = place + 1 if plan is None else plan.end
        trace.body = before
        body[:] = bodies.renumbered(made, self.added)

    def _repeat(self, plan: _Plan, at: Instruction) -> None:
        """A product for each bank of columns, copied if several instructions read it."""
        row, tile = plan.row, plan.tile
        held = self._held(row, tile, at)
        for start in range(0, row.shape[1], BANK):
            size = min(BANK, row.shape[1] - start)
            shape = (tile.shape[0], size)
            result = self.trace.declare(shape, FLOAT32, Buffer.PSUM, tile.name, at.at)
            moving = Tile(part_of(row, (0, start), (1, size)))
            self._add(at, "nc_matmul", Tile(whole(result)), stationary=held, moving=moving)
            if plan.reader >= 0:
                self.homes[tile] = result
            else:
                goal = Tile(part_of(whole(tile), (0, start), shape))
                self._add(at, "tensor_copy", goal, src=Tile(whole(result)))

    def _held(self, row: View, tile: Tensor, at: Instruction) -> Tile:
        """Ones in the row's partition, as many as the tile has partitions."""
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
