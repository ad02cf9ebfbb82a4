"""The spill stage: inserts the stores and reloads of every core's tiles."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import heappop, heappush
from itertools import chain, count
from typing import NamedTuple, TypeGuard

from nkic.compiler.allocate import Space, lifetimes, most_at_once, space_of
from nkic.machine.instructions import ROWS
from nkic.machine.operands import HBM, SBUF
from nkic.machine.targets import SPILLED, Buffer, Engine, Target
from nkic.program.effects import Touches, state_effects, touches_of
from nkic.program.program import (
    AccessPattern,
    Body,
    Instruction,
    Item,
    Loop,
    Operand,
    Program,
    Tensor,
    instructions,
)

# ------------------------------------------------------------------------------------------------
# The items of a body as seen by SBUF: the tiles that each needs, and whether it is repeatable.


class Step(NamedTuple):
    """An instruction, or a device loop as a whole.

    `tensors` are the SBUF tensors that it accesses but does not declare, each once; `written` has
    the numbers of those that it writes. `inner` is the peak of its own tensors, in bytes per
    partition.
    """

    item: Item
    tensors: tuple[Tensor, ...]
    written: frozenset[int]
    inner: int


def steps(body: Body, target: Target, space: Space) -> list[Step]:
    touched = touches_of(body, target)
    return [_step(item, touched, target, space) for item in body]


def _step(item: Item, touched: Touches, target: Target, space: Space) -> Step:
    accessed: dict[Tensor, bool] = {}
    number = item.number if isinstance(item, Loop) else -1
    for instruction in instructions((item,)):
        for touch in touched[instruction.number]:
            tensor = touch.pattern.tensor
            if tensor.buffer is space.buffer and number not in tensor.scope:
                accessed[tensor] = accessed.get(tensor, False) or touch.writes
    written = frozenset(tensor.number for tensor, writes in accessed.items() if writes)
    inner = _inner(item, target, space) if isinstance(item, Loop) else 0
    return Step(item, tuple(accessed), written, inner)


def _inner(loop: Loop, target: Target, space: Space) -> int:
    """Return the peak of the bytes of tensors that a loop declares."""
    lives = lifetimes((loop,), target, space.buffer)
    return most_at_once([life for life in lives if loop.number in life.tensor.scope], space.size)


def immovable(program: Program) -> frozenset[int]:
    """Return the tensors that must not move: those at fixed addresses, and those in rendezvous."""
    numbers = {tensor.number for tensor in program.tensors if tensor.fixed is not None}
    for body in program.cores:
        for instruction in instructions(body):
            if instruction.row.is_rendezvous:
                numbers |= {
                    o.tensor.number for o in instruction.operands if isinstance(o, AccessPattern)
                }
    return frozenset(numbers)


def constant_tensors(program: Program) -> frozenset[int]:
    """Return the tensors in HBM that no instruction of any core writes."""
    written: set[int] = set()
    for body in program.cores:
        for touches in touches_of(body, program.target).values():
            written |= {touch.pattern.tensor.number for touch in touches if touch.writes}
    hbm_tensors = (tensor for tensor in program.tensors if not tensor.on_chip)
    return frozenset(tensor.number for tensor in hbm_tensors if tensor.number not in written)


def repeatable(
    item: Item, tensor: Tensor, touched: Touches, target: Target, constants: Collection[int]
) -> bool:
    """Return whether `item`, the first writer of `tensor`, computes the same at any later position.

    It must write nothing else, and read only the tensors `constants`.
    """
    if not isinstance(item, Instruction) or item.pinned or item.after or item.row.is_rendezvous:
        return False
    effects = state_effects(item, target)
    if effects.reads or effects.writes:
        return False
    return all(_reads_constants(item, tensor, touched, constants))


def _reads_constants(
    item: Instruction, tensor: Tensor, touched: Touches, constants: Collection[int]
) -> Iterator[bool]:
    for touch in touched[item.number]:
        yield touch.pattern.dynamic is None
        if touch.writes:
            yield touch.pattern.tensor is tensor and not touch.reads
        else:
            yield touch.pattern.tensor.number in constants


# ------------------------------------------------------------------------------------------------
# Decides which tiles leave SBUF, and when, in one walk through a body in program order.
# This is Belady's rule for tiles of different sizes and costs: among the tiles not needed now, the
# one leaves that frees the most bytes for the longest time, per byte moved. A tile that has
# changed since it was last in HBM is moved twice, any other tile once.

Declare = Callable[[Tensor, Buffer], Tensor]  # declares a new tensor like another one
MayRepeat = Callable[[Item, Tensor], bool]


class Away(NamedTuple):
    """A tile that left SBUF: how often it was stored, reloaded, and recomputed.

    An unchanged tile is reloaded from its original source; a recomputation needs no transfer.
    """

    tensor: Tensor
    stored: int
    loaded: int
    remade: int

    @property
    def bytes(self) -> int:
        return self.tensor.bytes * self.tensor.partitions

    @property
    def moved(self) -> int:
        """The bytes stored and loaded."""
        return (self.stored + self.loaded) * self.bytes


class Traffic(NamedTuple):
    """The cost of spilling: bytes stored and loaded, and the number of recomputations."""

    stored: int
    loaded: int
    remade: int

    @classmethod
    def of(cls, away: Iterable[Away]) -> Traffic:
        totals = [(a.stored * a.bytes, a.loaded * a.bytes, a.remade) for a in away]
        return cls(*map(sum, zip((0, 0, 0), *totals, strict=True)))


class Move(NamedTuple):
    """An inserted copy of `src` to `dst`; without `src`, the item at `maker` again into `dst`."""

    dst: Tensor
    src: Tensor | None
    maker: int = -1


@dataclass
class Plan:
    """The moves right before and after each item, by its index in the body.

    `names` maps the tensors that the item uses, by number, to their new tiles. `stuck` is the first
    step that needs more memory than is available.
    """

    before: dict[int, list[Move]] = field(default_factory=lambda: defaultdict(list))
    after: dict[int, list[Move]] = field(default_factory=lambda: defaultdict(list))
    names: dict[int, dict[int, Tensor]] = field(default_factory=dict)
    away: list[Away] = field(default_factory=list)
    stuck: Step | None = None


@dataclass
class _Tile:
    """A tile: the item indices of its uses, the next of them, and its current location."""

    tensor: Tensor
    size: int
    uses: list[int] = field(default_factory=list)
    next: int = 0  # index into the uses
    in_sbuf: Tensor | None = None  # the tile that holds it in SBUF
    in_hbm: Tensor | None = None  # the tensor that holds it in HBM
    maker: int = -1  # the item that recomputes or reloads it
    changed: bool = False  # since it was last in HBM, or computed
    written: int = -1  # the item that last wrote it
    started: bool = False
    stored: int = 0
    loaded: int = 0
    remade: int = 0

    @property
    def next_use(self) -> int:
        return self.uses[self.next]


@dataclass
class Walk:
    """A walk through a body; `capacity` in bytes per partition, `fixed` the immovable tensors."""

    steps: Sequence[Step]
    space: Space
    capacity: int
    fixed: frozenset[int]
    declare: Declare
    may_repeat: MayRepeat
    used: int = 0
    plan: Plan = field(default_factory=Plan)
    tiles: dict[int, _Tile] = field(default_factory=dict)
    # Candidates for eviction, by size and whether they must be stored: the furthest next use first.
    heaps: dict[tuple[int, bool], list[tuple[int, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def __post_init__(self) -> None:
        for index, step in enumerate(self.steps):
            for tensor in step.tensors:
                tile = _Tile(tensor, self.space.size(tensor))
                self.tiles.setdefault(tensor.number, tile).uses.append(index)

    def run(self) -> Plan:
        for index, step in enumerate(self.steps):
            needed = [self.tiles[tensor.number] for tensor in step.tensors]
            missing = sum(tile.size for tile in needed if tile.in_sbuf is None)
            self._make_room(index, step, missing + step.inner)
            inside = {tile.tensor: self._reload(tile, index) for tile in needed}
            moved = {tensor.number: now for tensor, now in inside.items() if now is not tensor}
            if moved:
                self.plan.names[index] = moved
            for tile in needed:
                self._record_use(tile, index, step)
        self.plan.away = [
            Away(tile.tensor, tile.stored, tile.loaded, tile.remade)
            for tile in self.tiles.values()
            if tile.stored or tile.loaded or tile.remade
        ]
        return self.plan

    def _make_room(self, index: int, step: Step, missing: int) -> None:
        while (lacking := self.used + missing - self.capacity) > 0:
            tile = self._victim(index, lacking)
            if tile is None:
                self.plan.stuck = self.plan.stuck or step
                return
            self._evict(tile)

    def _victim(self, index: int, lacking: int) -> _Tile | None:
        """Return the tile to evict next, or None if all tiles are needed now or must stay."""
        best: tuple[float, int] | None = None
        for (size, changed), heap in self.heaps.items():
            while heap and not self._is_valid(heap[0], changed):
                heappop(heap)
            if not heap or -heap[0][0] <= index:
                continue
            distance = -heap[0][0] - index
            worth = distance * min(1.0, lacking / size) / (2 if changed else 1)
            if best is None or worth > best[0]:
                best = worth, heap[0][1]
        return self.tiles[best[1]] if best is not None else None

    def _is_valid(self, entry: tuple[int, int], changed: bool) -> bool:
        tile = self.tiles[entry[1]]
        return tile.in_sbuf is not None and tile.next_use == -entry[0] and tile.changed is changed

    def _evict(self, tile: _Tile) -> None:
        assert tile.in_sbuf is not None
        if tile.changed:
            tile.in_hbm = tile.in_hbm or self.declare(tile.tensor, Buffer.HBM)
            self.plan.after[tile.written].append(Move(tile.in_hbm, tile.in_sbuf))
            tile.stored += 1
            tile.changed = False
        tile.in_sbuf = None
        self.used -= tile.size

    def _reload(self, tile: _Tile, index: int) -> Tensor:
        """Return the tensor in SBUF that holds a tile now."""
        if tile.in_sbuf is not None:
            return tile.in_sbuf
        self.used += tile.size
        if not tile.started:
            tile.started, tile.in_sbuf = True, tile.tensor
            return tile.tensor
        tile.in_sbuf = self.declare(tile.tensor, tile.tensor.buffer)
        if tile.in_hbm is not None or self._is_loaded(tile):
            tile.loaded += 1
        else:
            tile.remade += 1
        self.plan.before[index].append(Move(tile.in_sbuf, tile.in_hbm, tile.maker))
        return tile.in_sbuf

    def _is_loaded(self, tile: _Tile) -> bool:
        item = self.steps[tile.maker].item
        return isinstance(item, Instruction) and item.engine is Engine.DMA

    def _record_use(self, tile: _Tile, index: int, step: Step) -> None:
        if tile.tensor.number in step.written or tile.written < 0:
            first = tile.written < 0 and tile.tensor.number in step.written
            repeatable = first and self.may_repeat(step.item, tile.tensor)
            tile.maker = index if repeatable else -1
            tile.changed = not repeatable
            tile.written = index
        tile.next += 1
        if tile.next == len(tile.uses):
            tile.in_sbuf = None
            self.used -= tile.size
        elif tile.tensor.number not in self.fixed:
            kind = (tile.size, tile.changed)
            heappush(self.heaps[kind], (-tile.next_use, tile.tensor.number))


# --------------------------------------------------------------------------------------------------

# The transfer between SBUF and HBM, element by element.
COPY = next(
    row
    for row in ROWS.values()
    if row.copies and row.engines == (Engine.DMA,) and row.operands[0].buffers >= SBUF | HBM
)


@dataclass(frozen=True)
class Spilled:
    """The `program`, and the tiles of each core that left SBUF.

    `stuck` is an instruction or device loop that by itself needs more than the available memory, so
    that spilling cannot help.
    """

    program: Program
    away: tuple[tuple[Away, ...], ...]
    stuck: Step | None = None

    @property
    def enough(self) -> bool:
        """Whether SBUF has room for the tiles of each item."""
        return self.stuck is None

    @property
    def traffic(self) -> Traffic:
        return Traffic.of(chain.from_iterable(self.away))


def spill(program: Program, share: float = 1.0) -> Spilled:
    """Spill tiles of a lowered `program` until at most `share` of SBUF is live in program order."""
    fixed, constants = immovable(program), constant_tensors(program)
    space = space_of(Buffer.SBUF, program.target)
    tensors = list(program.tensors)

    def declare(like: Tensor, buffer: Buffer) -> Tensor:
        name = like.name if buffer.on_chip else f"{like.name}{SPILLED}"
        tensor = Tensor(len(tensors), name, like.dtype, like.shape, buffer, like.at)
        tensors.append(tensor)
        return tensor

    cores, plans = [], []
    for body in program.cores:
        touched, target = touches_of(body, program.target), program.target
        may_repeat = partial(repeatable, touched=touched, target=target, constants=constants)
        items, capacity = steps(body, target, space), int(share * space.capacity)
        plan = Walk(items, space, capacity, fixed, declare, may_repeat).run()
        plans.append(plan)
        cores.append(_Writer(body, plan).body() if plan.away else body)
    away = tuple(tuple(plan.away) for plan in plans)
    spilled = Spilled(replace(program, tensors=tuple(tensors), cores=tuple(cores)), away)
    stored, loaded, _ = spilled.traffic
    notes = {**program.notes, "spill_stored": str(stored), "spill_loaded": str(loaded)}
    stuck = next((plan.stuck for plan in plans if plan.stuck), None)
    return replace(spilled, program=replace(spilled.program, notes=notes), stuck=stuck)


class _Writer:
    """Rewrites a body with the instructions that a plan inserts."""

    def __init__(self, body: Body, plan: Plan) -> None:
        self.old = body
        self.plan = plan
        self.patterns: dict[tuple[int, int], AccessPattern] = {}  # by identity, and tensor
        self.wholes: dict[Tensor, AccessPattern] = {}
        self.attributes = tuple(a.default for a in COPY.attributes)

    def body(self) -> Body:
        """Return the body with its new instruction numbers."""
        return _numbered(list(self._items()))

    def _items(self) -> Iterator[tuple[Item, bool]]:
        """Yield the items, and whether each is the kernel's own."""
        for index, item in enumerate(self.old):
            for move in self.plan.before.get(index, ()):
                yield self._move(move, index, index - 1), False
            yield self._renamed(item, self.plan.names.get(index, {})), True
            for move in self.plan.after.get(index, ()):
                yield self._move(move, index, index + 1), False

    def _move(self, move: Move, index: int, neighbour_index: int) -> Instruction:
        """Return the instruction of a move, between the items at `index` and `neighbour_index`."""
        neighbour, pinned = self._instruction_at(index), 0
        if (
            0 <= neighbour_index < len(self.old)
            and neighbour.pinned == self._instruction_at(neighbour_index).pinned
        ):
            pinned = neighbour.pinned
        if move.src is None:
            maker = self._instruction_at(move.maker)
            names = {o.tensor.number: move.dst for o in maker.operands if _is_tile(o)}
            recomputed = self._with_tensors(maker, names)
            return recomputed._replace(pinned=pinned, name="")
        operands = (self._whole(move.dst), self._whole(move.src))
        return Instruction(
            COPY,
            operands,
            self.attributes,
            Engine.DMA,
            neighbour.at,
            -1,
            "",
            (),
            pinned,
            iterations=neighbour.iterations,
        )

    def _instruction_at(self, index: int) -> Instruction:
        """Return the item at `index`, or the first instruction of a loop."""
        item = self.old[index]
        while isinstance(item, Loop):
            item = item.body[0]
        return item

    def _whole(self, tensor: Tensor) -> AccessPattern:
        if tensor not in self.wholes:
            dims = ((1, tensor.bytes // tensor.dtype.size),)
            pattern = AccessPattern(tensor, tensor.dtype, 0, tensor.partitions, 0, dims)
            self.wholes[tensor] = pattern
        return self.wholes[tensor]

    def _renamed(self, item: Item, names: Mapping[int, Tensor]) -> Item:
        if not names:
            return item
        if isinstance(item, Loop):
            return replace(item, body=tuple(self._renamed(inner, names) for inner in item.body))
        return self._with_tensors(item, names)

    def _with_tensors(self, item: Instruction, names: Mapping[int, Tensor]) -> Instruction:
        operands = [
            self._pattern(operand, names) if isinstance(operand, AccessPattern) else operand
            for operand in item.operands
        ]
        return item._replace(operands=tuple(operands), work=None)

    def _pattern(self, pattern: AccessPattern, names: Mapping[int, Tensor]) -> AccessPattern:
        """Return the pattern over the renamed tensors; equal patterns are interned."""
        dynamic, tensor = pattern.dynamic, names.get(pattern.tensor.number, pattern.tensor)
        if dynamic is not None and isinstance(dynamic.source, AccessPattern):
            source = self._pattern(dynamic.source, names)
            return pattern._replace(tensor=tensor, dynamic=dynamic._replace(source=source))
        if tensor is pattern.tensor:
            return pattern
        key = (id(pattern), tensor.number)
        if key not in self.patterns:
            self.patterns[key] = pattern._replace(tensor=tensor)
        return self.patterns[key]


def _is_tile(operand: Operand) -> TypeGuard[AccessPattern]:
    return isinstance(operand, AccessPattern) and operand.tensor.on_chip


def _numbered(items: Sequence[tuple[Item, bool]]) -> Body:
    """Renumber the items in order, and keep the kernel's explicit dependences."""
    new: dict[int, int] = {}
    order = count()

    def renumbered(item: Item, is_own: bool) -> Item:
        if isinstance(item, Loop):
            return replace(item, body=tuple([renumbered(inner, is_own) for inner in item.body]))
        number = next(order)
        if is_own:
            new[item.number] = number
        return item._replace(number=number, after=tuple(new[n] for n in item.after))

    return tuple([renumbered(item, is_own) for item, is_own in items])
