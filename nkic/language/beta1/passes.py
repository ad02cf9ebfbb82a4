"""Versions of tiles in Beta 1: a tile that is overwritten as a whole gets new memory.

Beta 1's compiler optimised loops over tiles ("NKI compiler will ... allocate", programming model,
memory hierarchy: a kernel names tiles, and the compiler chooses their memory), so that a buffer
declared outside a loop and filled anew in each iteration does not make the iterations wait for each
other. Later versions leave this to the kernel. Implied by published times: a convolution whose one
buffer is refilled for each product keeps the tensor engine busy for nine tenths of its time.

A version starts with an instruction that only writes the tile, after one that read it, if the
writes from there to the next read cover all its elements.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from nkic.base.source import Span
from nkic.language.beta1.access import part_of
from nkic.language.beta1.emit import RowBroadcast, emit, state
from nkic.language.beta1.tiles import Tile
from nkic.language.trace import Trace
from nkic.language.views import whole
from nkic.machine.dtypes import FLOAT32, DType
from nkic.machine.rules import violations
from nkic.machine.targets import MEMORIES, PARTITIONS, PSUM_BANK_BYTES, Buffer, Engine
from nkic.program.program import Instruction, Item, Operand, Tensor, View

# ---- Operations on recorded bodies, shared by the passes that rewrite them ----------------------
# Every function that takes `memories` considers only tensors in those buffers. The tensor that
# holds the index of a dynamic access counts as an operand.

Memories = Collection[Buffer]


def tensors(operands: Sequence[Operand], memories: Memories) -> Iterator[Tensor]:
    """Yield the tensors that the operands access, with repetitions."""
    for operand in operands:
        if not isinstance(operand, View):
            continue
        if operand.tensor.buffer in memories:
            yield operand.tensor
        if operand.dynamic is not None and isinstance(operand.dynamic.source, View):
            yield from tensors([operand.dynamic.source], memories)


def has_fixed(body: Sequence[Instruction], memories: Memories) -> bool:
    return any(t.fixed is not None for item in body for t in tensors(item.operands, memories))


def uses(body: Sequence[Instruction], memories: Memories) -> dict[Tensor, list[int]]:
    indices: dict[Tensor, list[int]] = {}
    for index, item in enumerate(body):
        for tensor in dict.fromkeys(tensors(item.operands, memories)):
            indices.setdefault(tensor, []).append(index)
    return indices


def substituted(item: Instruction, replacements: Mapping[Tensor, Tensor]) -> Instruction:
    """Return the instruction with some of its tensors replaced by others."""

    def replaced(operand: Operand) -> Operand:
        if not isinstance(operand, View):
            return operand
        tensor = replacements.get(operand.tensor, operand.tensor)
        dynamic = operand.dynamic
        if dynamic is not None and isinstance(dynamic.source, View):
            source = replaced(dynamic.source)
            assert isinstance(source, View)
            dynamic = dynamic._replace(source=source)
        return operand._replace(tensor=tensor, dynamic=dynamic)

    return item._replace(operands=tuple(map(replaced, item.operands)))


def attribute_last(trace: Trace, origin: Instruction) -> int:
    """Copy the location, name, region and iterations of `origin` to the last instruction.

    Returns the index of that instruction in the body.
    """
    last = trace.body[-1]
    assert isinstance(last, Instruction)
    trace.body[-1] = last._replace(
        at=origin.at, name=origin.name, pinned=origin.pinned, iterations=origin.iterations
    )
    return len(trace.body) - 1


def renumbered(body: Sequence[Item], added: Collection[int]) -> list[Item]:
    """Return the body with every instruction numbered by its index, and dependencies kept.

    `added` has the indices of instructions that were not part of the original body.
    """
    numbers: dict[int, int] = {}
    for index, item in enumerate(body):
        if isinstance(item, Instruction) and index not in added:
            numbers[item.number] = index
    result: list[Item] = []
    for index, item in enumerate(body):
        assert isinstance(item, Instruction)
        after = tuple(numbers[number] for number in item.after)
        result.append(item._replace(number=index, after=after))
    return result


_MEMORIES = (Buffer.SBUF, Buffer.PSUM)
MANY_WRITES = 4096  # between two reads of one tile; a longer run is taken to cover only a part


def rename(trace: Trace) -> None:
    """Give new tensors to the versions of tiles in every body without device loops."""
    for body in trace.bodies:
        plain = [item for item in body if isinstance(item, Instruction)]
        if len(plain) < len(body):
            continue
        starts = _starts(trace, plain)
        versions: dict[Tensor, Tensor] = {}
        for index, item in enumerate(plain):
            for tensor in starts.get(index, ()):
                versions[tensor] = trace.declare(
                    tensor.shape, tensor.dtype, tensor.buffer, tensor.name, tensor.at
                )
            if versions:
                body[index] = substituted(item, versions)


def _starts(trace: Trace, body: Sequence[Instruction]) -> dict[int, list[Tensor]]:
    """Return the tensors of which a version starts, by the index of an instruction."""
    starts: dict[int, list[Tensor]] = {}
    for tensor, indices in uses(body, _MEMORIES).items():
        if tensor.fixed is None and len(indices) > 2:
            for index in _versions(trace, tensor, [(i, body[i]) for i in indices]):
                starts.setdefault(index, []).append(tensor)
    return starts


def _versions(
    trace: Trace, tensor: Tensor, uses: Sequence[tuple[int, Instruction]]
) -> Iterator[int]:
    """Yield the indices at which a version of the tensor starts, but for its first."""
    was_read = False
    run: list[View] = []
    start = 0
    for index, item in uses:
        written = _only_written(trace, tensor, item)
        if written is None:
            if was_read and run and _cover(tensor, run):
                yield start
            was_read, run = True, []
            continue
        if not run:
            start = index
        run.append(written)


def _only_written(trace: Trace, tensor: Tensor, item: Instruction) -> View | None:
    """Return what the instruction writes of a tensor that it does not read, else None."""
    if item.row.accumulates and item.attribute(item.row.accumulates) is not False:
        return None
    accessing = [
        (operand, spec)
        for operand, spec in zip(item.operands, item.row.operands, strict=True)
        if tensor in tensors([operand], _MEMORIES)
    ]
    if len(accessing) > 1:
        return None
    operand, spec = accessing[0]
    access = item.row.access_of(spec, item.facts(trace.target))
    if access.reads or not isinstance(operand, View) or operand.dynamic is not None:
        return None
    return operand


def _cover(tensor: Tensor, run: Sequence[View]) -> bool:
    """Return whether the views together have every element of the tensor."""
    if len(run) > MANY_WRITES or any(view.shape[0] < tensor.partitions for view in run):
        return False
    free = np.zeros(tensor.free, bool)
    for view in run:
        if view.dtype.size != tensor.dtype.size:
            return False
        strides = view.strides[1:]
        index = np.zeros((), np.int64)
        for size, stride in zip(view.shape[1:], strides, strict=True):
            index = index[..., None] + np.arange(size) * stride
        free[view.offset % tensor.free + index] = True
    return bool(free.all())


# ---- Broadcasts of a row to all partitions in Beta 1, computed by the tensor engine -------------
# "Partition-dim broadcast often requires a separate instruction on TensorE" (fused Mamba tutorial,
# of nl.broadcast_to; architecture guide, alternative uses of the tensor engine): a product with
# ones. Its result is in PSUM. If a single instruction reads it and can read PSUM, it does, as in
# the tutorial's profiles, where PSUM is full of such rows; otherwise the result is copied to SBUF.
# The library's shuffle and copies remain if the tensor engine cannot read the row, or PSUM has no
# space. The copies run on the vector engine (implied: of published selective scans, those that
# copy such rows take as much longer as the vector engine would, though the scalar engine has less
# to do).

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
        if not groups or len(plain) < len(body) or has_fixed(plain, MEMORIES):
            continue
        plans = _Planner(trace, plain).plans(groups.values())
        if plans:
            _Rewriter(trace, plain, plans).rewrite(body)


class _Planner:
    """The selection of the rows to replace and of those read in PSUM, in program order."""

    def __init__(self, trace: Trace, body: Sequence[Instruction]) -> None:
        self.target = trace.target
        self.body = list(body)
        self.uses = uses(body, MEMORIES)
        self.banks = self._in_use()

    def _in_use(self) -> list[int]:
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
        moved = substituted(item, {tile: in_psum})
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
        trace, before = self.trace, self.trace.body
        rewritten: list[Item] = []
        trace.body, index = rewritten, 0
        while index < len(self.items):
            item, plan = self.items[index], self.plans.get(index)
            if plan is None:
                moved = substituted(item, self.replacements)
                rewritten.append(moved if moved.operands == item.operands else _on_vector(moved))
            else:
                self._repeat(plan, item)
            index = index + 1 if plan is None else plan.end
        trace.body = before
        body[:] = renumbered(rewritten, self.added)

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
        self.added.add(attribute_last(self.trace, at))


# ---- Spills of tiles to HBM if a kernel of Beta 1 exceeds the capacity of SBUF ------------------
# Beta 1's compiler inserts them: "when the cumulative size of live data overflows the capacity of
# any on-chip memory, the Neuron compiler inserts the necessary spills or refills" (programming
# model, memory hierarchy). Later versions leave this to the kernel. The choice of tiles is not
# documented; here it is the one whose next use is farthest.

# The fraction of SBUF to fill, and the number of largest tiles to leave free besides: tiles of
# different sizes leave gaps.
FILL_FRACTION, FREE_TILES = 0.85, 2
_ON_CHIP = (Buffer.SBUF,)


def fit(trace: Trace, at: Span) -> None:
    """Insert spills and reloads into the bodies of a trace that exceed SBUF."""
    size = trace.target.sbuf_usable
    for body in trace.bodies:
        plain = [item for item in body if isinstance(item, Instruction)]
        if len(plain) < len(body) or has_fixed(plain, _ON_CHIP) or _peak(plain) <= size:
            continue
        largest = max(t.bytes for t in uses(plain, _ON_CHIP))
        spiller = _Spiller(trace, plain, int(FILL_FRACTION * size) - FREE_TILES * largest)
        body[:] = renumbered(spiller.body(), spiller.added)
        if spiller.stored:
            trace.report.warning(
                "sbuf-overflow",
                f"SBUF has no room for all tiles that are in use at once: tiles are "
                f"stored to HBM {spiller.stored} times and loaded again {spiller.loaded} times",
                at,
                help="use smaller blocks, or order the loops so that fewer tiles are in use at "
                "once",
            )


def _peak(body: Sequence[Instruction]) -> int:
    change = [0] * (len(body) + 1)
    for tensor, indices in uses(body, _ON_CHIP).items():
        change[indices[0]] += tensor.bytes
        change[indices[-1] + 1] -= tensor.bytes
    return max(accumulate(change))


@dataclass
class _Location:
    """The locations of a tile: `on_chip` in SBUF, `spilled` in HBM, or both."""

    on_chip: Tensor | None = None
    spilled: Tensor | None = None
    changed: bool = False


class _Spiller:
    def __init__(self, trace: Trace, body: Sequence[Instruction], capacity: int) -> None:
        self.trace = trace
        self.items = body
        self.capacity = capacity
        self.stored = self.loaded = 0
        self.added: set[int] = set()
        self.uses = uses(body, _ON_CHIP)
        self.locations: dict[Tensor, _Location] = {}
        self.next_uses: dict[Tensor, int] = {}  # in SBUF, with the index of the next use
        self.used = 0

    def body(self) -> list[Item]:
        trace, before = self.trace, self.trace.body
        rewritten: list[Item] = []
        trace.body = rewritten
        for index, item in enumerate(self.items):
            needed = list(dict.fromkeys(tensors(item.operands, _ON_CHIP)))
            self._make_room(needed, item)
            for tensor in needed:
                self._reload(tensor, item)
            locations = {
                t: on_chip for t in needed if (on_chip := self.locations[t].on_chip) is not None
            }
            rewritten.append(substituted(item, locations))
            self._update(index, item, needed)
        trace.body = before
        return rewritten

    def _make_room(self, needed: Sequence[Tensor], item: Instruction) -> None:
        missing = sum(t.bytes for t in needed if t not in self.next_uses)
        while self.used + missing > self.capacity:
            others = [t for t in self.next_uses if t not in needed]
            if not others:
                return
            self._evict(max(others, key=self.next_uses.__getitem__), item)

    def _evict(self, tensor: Tensor, item: Instruction) -> None:
        location = self.locations[tensor]
        assert location.on_chip is not None
        if location.changed:
            if location.spilled is None:
                location.spilled = self._declared(tensor, Buffer.HBM, item)
            self._transfer(location.spilled, location.on_chip, item)
            self.stored += 1
        location.on_chip, location.changed = None, False
        self.used -= tensor.bytes
        del self.next_uses[tensor]

    def _reload(self, tensor: Tensor, item: Instruction) -> None:
        if tensor in self.next_uses:
            return
        location = self.locations.setdefault(tensor, _Location())
        self.used += tensor.bytes
        self.next_uses[tensor] = 0
        if location.spilled is None:
            location.on_chip = tensor
            return
        location.on_chip = self._declared(tensor, Buffer.SBUF, item)
        self._transfer(location.on_chip, location.spilled, item)
        self.loaded += 1

    def _declared(self, like: Tensor, buffer: Buffer, item: Instruction) -> Tensor:
        return self.trace.declare(like.shape, like.dtype, buffer, like.name, item.at)

    def _transfer(self, dst: Tensor, src: Tensor, item: Instruction) -> None:
        emit("dma_copy", Tile(whole(dst)), src=Tile(whole(src)))
        self.added.add(attribute_last(self.trace, item))

    def _update(self, index: int, item: Instruction, needed: Sequence[Tensor]) -> None:
        for operand, spec in zip(item.operands, item.row.operands, strict=True):
            if (
                isinstance(operand, View)
                and spec.access.writes
                and operand.tensor in self.locations
            ):
                self.locations[operand.tensor].changed = True
        for tensor in needed:
            uses = self.uses[tensor]
            at = bisect_right(uses, index)
            if at < len(uses):
                self.next_uses[tensor] = uses[at]
            else:
                self.used -= tensor.bytes
                del self.next_uses[tensor]
