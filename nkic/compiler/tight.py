"""The error for a full memory: the holders, their declarations, and the missing amount."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from nkic.base.diagnostics import Label, Reporter
from nkic.base.source import Span
from nkic.compiler.allocate import (
    Addresses,
    DoesNotFit,
    Lifetime,
    Ranges,
    Space,
    apart,
    fit,
    range_of,
    requested,
)
from nkic.machine.operands import Facts
from nkic.machine.rules import signature, violations
from nkic.machine.targets import PARTITIONS, PSUM_BANK_BYTES, Address, Buffer, Engine, Target
from nkic.machine.tiles import start_partitions
from nkic.program.effects import Touches, touches_of
from nkic.program.program import (
    AccessPattern,
    Body,
    DependenceGraph,
    Instruction,
    Item,
    Loop,
    Tensor,
    instructions,
    renumbered,
)

SHOWN = 5  # source locations of holders that are listed, largest holder first


def report_overflow(failure: DoesNotFit, space: Space, target: Target, report: Reporter) -> None:
    """Report one error at the tensor that does not fit, with labels at the largest holders."""
    tensor = failure.life.tensor
    holders = sorted(failure.live, key=lambda life: (-space.size(life.tensor), life.first))
    used = sum(space.size(life.tensor) for life in holders)
    size = space.size(tensor)
    slug, unit = ("psum-overflow", "bank") if space.buffer is Buffer.PSUM else ("sbuf-overflow", "")
    message = (
        f"no room for `{tensor.name}` in {space.buffer.value.upper()}: it takes "
        f"{_amount(size, unit)} per partition, {_amount(used, unit)} are in use, and "
        f"{target.name} has {_amount(space.capacity, unit)}"
    )
    groups = _by_place(holders)
    report.error(
        slug,
        message,
        tensor.at,
        labels=[_label(place, group, space, unit) for place, group in groups[:SHOWN]],
        notes=_more(groups[SHOWN:], space, unit),
        help=_advice(size, used, space),
    )


_Group = tuple[Span, list[Lifetime]]


def _by_place(holders: Sequence[Lifetime]) -> list[_Group]:
    """Group the holders by their declaration, in the order of each group's largest holder."""
    groups: dict[Span, list[Lifetime]] = {}
    for life in holders:
        groups.setdefault(life.tensor.at.primary, []).append(life)
    return list(groups.items())


def _label(span: Span, group: list[Lifetime], space: Space, unit: str) -> Label:
    names = list(dict.fromkeys(f"`{life.tensor.name}`" for life in group))
    amount = _amount(sum(space.size(life.tensor) for life in group), unit)
    if len(group) == 1:
        return Label(span, f"{names[0]} holds {amount}")
    which = f" {names[0]}" if len(names) == 1 else ""
    return Label(span, f"{len(group)} tensors{which} from here hold {amount}")


def _amount(size: int, unit: str) -> str:
    if unit == "bank":
        banks = size // PSUM_BANK_BYTES
        return f"{banks} bank" if banks == 1 else f"{banks} banks"
    return f"{size:,} bytes"


def _more(groups: Sequence[_Group], space: Space, unit: str) -> list[str]:
    lives = [life for _, group in groups for life in group]
    if not lives:
        return []
    total = sum(space.size(life.tensor) for life in lives)
    return [f"{len(lives)} more tensors hold {_amount(total, unit)}"]


def _advice(size: int, used: int, space: Space) -> str:
    if size > space.capacity:
        return "split the tensor into tiles along its free dimension"
    if used + size <= space.capacity:
        return "the free bytes are fragmented: declare the larger tensors first"
    return "use smaller tiles, or end live ranges earlier: a tensor is live until its last access"


# ------------------------------------------------------------------------------------------------
# A memory-saving order: the instruction that frees most, or takes least, goes first.
# Another order may have freed bytes that program order still holds. Among the ready instructions,
# the one that leaves the fewest bytes in use goes next; ties are broken by program order or its
# reverse. Bytes are weighted by partitions, since tensors of at most 64 partitions may be placed
# side by side.

MAX_INSTRUCTIONS = 400  # instructions: each step scans all that are ready


def frugal(
    body: Body, graph: DependenceGraph, target: Target, backwards: bool
) -> tuple[Body, DependenceGraph] | None:
    """Return the program in the memory-saving order.

    Return None if it is long, or contains device loops or instructions that must not move.
    """
    code = [item for item in body if not isinstance(item, Loop)]
    immovable = any(instruction.pinned or instruction.row.is_rendezvous for instruction in code)
    if len(code) < len(body) or len(code) > MAX_INSTRUCTIONS or immovable:
        return None
    return renumbered(tuple(_Order(code, graph, target, backwards).go()), graph)


class _Order:
    def __init__(
        self, code: list[Instruction], graph: DependenceGraph, target: Target, backwards: bool
    ) -> None:
        self.code = {instruction.number: instruction for instruction in code}
        self.sign = -1 if backwards else 1
        touched = touches_of(tuple(code), target)
        self.tensors = {number: _tensors(touched, number) for number in self.code}
        self.left = Counter(t for tensors in self.tensors.values() for t in tensors)
        self.held: set[Tensor] = set()
        self.waiters: dict[int, list[int]] = defaultdict(list)
        self.missing: Counter[int] = Counter()
        for number in self.code:
            for source in {e.source for e in graph.sources(number)} & self.code.keys():
                self.waiters[source].append(number)
                self.missing[number] += 1

    def go(self) -> Iterable[Instruction]:
        """Yield the instructions in their new order."""
        ready = {number for number in self.code if not self.missing[number]}
        while ready:
            number = min(ready, key=self._price)
            ready.remove(number)
            yield self.code[number]
            for tensor in self.tensors[number]:
                self.held.add(tensor)
                self.left[tensor] -= 1
            for waiter in self.waiters[number]:
                self.missing[waiter] -= 1
                if not self.missing[waiter]:
                    ready.add(waiter)

    def _price(self, number: int) -> tuple[int, int]:
        """Return the change in bytes in use after the instruction, and a tie-breaker."""
        tensors = self.tensors[number]
        allocated = sum(_size(tensor) for tensor in tensors if tensor not in self.held)
        freed = sum(_size(tensor) for tensor in tensors if self.left[tensor] == 1)
        return allocated - freed, self.sign * number


def _tensors(touched: Touches, number: int) -> frozenset[Tensor]:
    tensors = (touch.pattern.tensor for touch in touched[number])
    return frozenset(tensor for tensor in tensors if tensor.on_chip)


def _size(tensor: Tensor) -> int:
    return tensor.bytes * tensor.partitions


# ------------------------------------------------------------------------------------------------
# The tensors that may start at another partition than 0, so that they can lie side by side.
# A compute engine's lanes map one to one to partitions, and each operand may start at the
# partitions that its partition count allows (Trainium/Inferentia2 architecture guide,
# cross-partition connectivity). Some tensors do not move: operands of the tensor engine, since the
# PE array's row follows from the partition; tensors with run-time offsets or exchanged between
# cores; and operands of instructions that use accumulators or random number generators, which
# belong to the lanes.


def movable(body: Body, target: Target) -> set[int]:
    """Return the numbers of the tensors that may start at any partition that their size allows.

    Every instruction of `body` must stay legal at each of these partitions.
    """
    seen: set[int] = set()
    immovable: set[int] = set()
    cache: dict[Hashable, bool] = {}
    for instruction in instructions(body):
        facts = None
        for name, pattern in _patterns(instruction):
            tensor = pattern.tensor
            seen.add(tensor.number)
            if tensor.number in immovable:
                continue
            facts = facts or instruction.facts(target)
            if not _may_move(instruction, facts, name, pattern, cache):
                immovable.add(tensor.number)
            immovable |= _sources(pattern)
    return seen - immovable


def _patterns(instruction: Instruction) -> Iterator[tuple[str, AccessPattern]]:
    for name, index in instruction.row.operand_index.items():
        operand = instruction.operands[index]
        if isinstance(operand, AccessPattern) and operand.tensor.on_chip:
            yield name, operand


def _sources(pattern: AccessPattern) -> set[int]:
    """Return the tensor that holds the pattern's run-time offsets, as a set of at most one."""
    dynamic = pattern.dynamic
    if dynamic is None or not isinstance(dynamic.source, AccessPattern):
        return set()
    return {dynamic.source.tensor.number}


def _may_move(
    instruction: Instruction,
    facts: Facts,
    name: str,
    pattern: AccessPattern,
    cache: dict[Hashable, bool],
) -> bool:
    tensor = pattern.tensor
    starts = () if tensor.fixed is not None else start_partitions(tensor.partitions)[1:]
    if not starts or pattern.dynamic is not None:
        return False
    if (
        instruction.engine is Engine.TENSOR
        or instruction.row.is_rendezvous
        or any(instruction.row.effects(facts))
    ):
        return False
    return all(_legal(instruction, _moved(facts, name, start), cache) for start in starts)


def _moved(facts: Facts, name: str, offset: int) -> Facts:
    tile = facts.tile(name)
    operands = {**facts.operands, name: tile._replace(start=tile.start + offset)}
    return Facts(facts.target, operands, facts.attributes, facts.engine)


def _legal(instruction: Instruction, facts: Facts, cache: dict[Hashable, bool]) -> bool:
    key = signature(instruction.row, facts)
    if key not in cache:
        cache[key] = not violations(instruction.row, facts)
    return cache[key]


# ------------------------------------------------------------------------------------------------
# Packing by size: the largest tensor first, each at the lowest bytes free over its live range.
# This fits programs for which program order leaves fragmented memory. A tensor that does not fit
# moves to the front of the order and packing restarts, for a number of tries; then it is size
# times live range, and then live range alone. Tensors of at most 64 partitions may also lie side by
# side, two or four over the same bytes: a compute engine reaches 64 partitions from partition 0 or
# 64, and 32 from every multiple of 32 (Trainium/Inferentia2 architecture guide, data access).

# limit on compared pairs of tensors with overlapping live ranges; a second or two
MAX_PAIRS = 40_000_000
MAX_PLACEMENTS = 100_000  # limit on placements over all tries; similar time
MAX_TRIES = 150


def pack(lives: Sequence[Lifetime], space: Space, movable: Collection[int] = ()) -> Addresses:
    """Return an address for each tensor; those of `movable` may start at any partition.

    Raises DoesNotFit if every try fails.
    """
    fixed, free, addresses = apart(lives)
    orders = [sorted(free, key=partial(key, space)) for key in (_by_size, _by_area, _by_length)]
    failure = DoesNotFit(orders[0][0], [])
    if _least(lives, space, movable) > space.capacity:
        raise failure
    overlaps = _Overlaps(lives)
    tries = min(
        MAX_TRIES, MAX_PAIRS // max(1, overlaps.pairs), MAX_PLACEMENTS // max(1, len(lives))
    )
    for i, order in enumerate(orders):
        for _ in range((tries + i) // len(orders)):
            try:
                return addresses | _in_order(order, fixed, space, movable, overlaps)
            except DoesNotFit as raised:
                failure = raised
            order.remove(failure.life)
            order.insert(0, failure.life)
    raise failure


def _by_size(space: Space, life: Lifetime) -> tuple[int, int]:
    return -space.size(life.tensor), life.first


def _by_area(space: Space, life: Lifetime) -> tuple[int, int]:
    return -space.size(life.tensor) * (life.last - life.first + 1), life.first


def _by_length(space: Space, life: Lifetime) -> tuple[int, int]:
    return life.first - life.last, -space.size(life.tensor)


def _least(lives: Sequence[Lifetime], space: Space, movable: Collection[int]) -> int:
    """Return a lower bound of the bytes per partition that any packing needs."""
    change: Counter[int] = Counter()
    for life in lives:
        share = space.size(life.tensor) * _rows(life.tensor, movable)
        change[life.first] += share
        change[life.last + 1] -= share
    return max(accumulate(change[at] for at in sorted(change)), default=0) // PARTITIONS


def _rows(tensor: Tensor, movable: Collection[int]) -> int:
    """Return the number of partitions that no other tensor can share at the same bytes."""
    if tensor.fixed is not None:
        return tensor.partitions
    return PARTITIONS // len(start_partitions(tensor.partitions)) if movable else PARTITIONS


def _in_order(
    order: Sequence[Lifetime],
    fixed: Sequence[Lifetime],
    space: Space,
    movable: Collection[int],
    overlaps: _Overlaps,
) -> Addresses:
    placed = _Placed(overlaps)
    for life in fixed:
        placed.add(life, requested(life.tensor).partition, *range_of(life, space))
    addresses: Addresses = {}
    for life in order:
        address = _lowest(life, placed, space, movable)
        addresses[life.tensor.number] = address
        placed.add(life, address.partition, address.byte, address.byte + space.size(life.tensor))
    return addresses


def _lowest(life: Lifetime, placed: _Placed, space: Space, movable: Collection[int]) -> Address:
    """Return the lowest free bytes over any partitions at which the tensor may start.

    Among equals, the highest partition wins, as most tensors start at 0.
    """
    best: Address | None = None
    for partition in reversed(_starts(life.tensor, movable)):
        taken = placed.beside(life, partition)
        byte = fit(taken, space.capacity, space.size(life.tensor), 0)
        if byte is not None and (best is None or byte < best.byte):
            best = Address(partition, byte)
    if best is None:
        raise DoesNotFit(life, [])
    return best


def _starts(tensor: Tensor, movable: Collection[int]) -> tuple[int, ...]:
    return start_partitions(tensor.partitions) if tensor.number in movable else (0,)


class _Overlaps:
    """Pairs of tensors with overlapping live ranges.

    `lives` are in order of first access: a live range overlaps some of those that began earlier,
    and the following ones up to its own end.
    """

    def __init__(self, lives: Sequence[Lifetime]) -> None:
        self.index = {life.tensor.number: i for i, life in enumerate(lives)}
        firsts = [life.first for life in lives]
        self.ends = [bisect_right(firsts, life.last) for life in lives]
        self.before: list[NDArray[np.int64]] = []
        alive: list[int] = []
        for i, life in enumerate(lives):
            alive = [other for other in alive if lives[other].last >= life.first]
            self.before.append(np.array(alive, np.int64))
            alive.append(i)
        self.pairs = len(lives) + 2 * sum(map(len, self.before))

    def beside(self, number: int) -> NDArray[np.int64]:
        """Return the indices of the tensors that are live together with this one."""
        i = self.index[number]
        return np.concatenate([self.before[i], np.arange(i + 1, self.ends[i])])


class _Placed:
    """The partitions and bytes of each placed tensor; an unplaced tensor has no partitions."""

    def __init__(self, overlaps: _Overlaps) -> None:
        self.overlaps = overlaps
        self.table: NDArray[np.int64] = np.zeros((4, len(overlaps.index)), np.int64)

    def add(self, life: Lifetime, partition: int, low: int, high: int) -> None:
        row = (partition, partition + life.tensor.partitions, low, high)
        self.table[:, self.overlaps.index[life.tensor.number]] = row

    def beside(self, life: Lifetime, partition: int) -> Ranges:
        """Return the bytes that `life` cannot use if it starts at `partition`, in order."""
        boxes = self.table[:, self.overlaps.beside(life.tensor.number)]
        top, bottom, low, high = boxes
        overlaps = (top < partition + life.tensor.partitions) & (bottom > partition)
        return sorted(zip(low[overlaps].tolist(), high[overlaps].tolist(), strict=True))


# ---- Postpone first writes until their results are needed, if live ranges are too long ----------
# A kernel may fill many tiles long before it uses them; in program order all of them are live from
# then on. An instruction whose result is not needed for a while, and that does not extend another
# live range, moves to just before the first instruction that depends on it.


def sink(
    body: Body, graph: DependenceGraph, tight: Collection[Buffer], target: Target
) -> tuple[Body, DependenceGraph]:
    """Return the program in an order that shortens the live ranges in the `tight` memories.

    Live ranges in the other memories do not grow. The instructions are renumbered in the new order,
    in the body and in the graph.
    """
    order = _SinkOrder(body, graph, touches_of(body, target), tight)
    return renumbered(order.body(body), graph)


@dataclass
class _Use:
    """The item positions of a tensor's first read and last access."""

    read: int
    last: int


class _SinkOrder:
    """Reorders bodies; a device loop keeps its position, and its body is reordered separately."""

    def __init__(
        self, body: Body, graph: DependenceGraph, touched: Touches, tight: Collection[Buffer]
    ) -> None:
        self.graph = graph
        self.touched = touched
        self.tight = tight
        self.dependents: dict[int, list[int]] = defaultdict(list)
        for instruction in instructions(body):
            for edge in graph.sources(instruction.number):
                if not edge.distance:
                    self.dependents[edge.source].append(instruction.number)

    def body(self, body: Body, loops: tuple[int, ...] = ()) -> Body:
        """Return `body`, nested in the loops of these numbers, in its new order."""
        items = [
            replace(item, body=self.body(item.body, (*loops, item.number)))
            if isinstance(item, Loop)
            else item
            for item in body
        ]
        uses = self._uses(items, loops)
        anchors = self._anchors(items, uses)
        keys = [(a, a == at, at) for at, a in enumerate(anchors)]
        return tuple(items[at] for _, _, at in sorted(keys))

    def _anchors(self, items: list[Item], uses: dict[int, _Use]) -> list[int]:
        """Return, for each item, the position of the item that it moves before, or its own."""
        at_item = {
            instruction.number: at
            for at, item in enumerate(items)
            for instruction in instructions((item,))
        }
        anchors = list(range(len(items)))
        for at in reversed(anchors.copy()):
            item = items[at]
            if isinstance(item, Loop) or item.pinned or item.row.is_rendezvous:
                continue
            dependents = (
                at_item.get(number, len(items)) for number in self.dependents[item.number]
            )
            target = min((anchors[d] for d in dependents if d < len(items)), default=at)
            if target > at + 1 and self._gains(item, at, target, uses):
                anchors[at] = target
        return anchors

    def _gains(self, item: Instruction, at: int, target: int, uses: dict[int, _Use]) -> bool:
        """Return whether the move frees more bytes than it holds, and extend the live ranges."""
        freed: Counter[Buffer] = Counter()
        longer = []
        for touch in self.touched[item.number]:
            tensor = touch.pattern.tensor
            use = uses.get(tensor.number)
            if use is None:
                continue
            if touch.writes and not touch.reads and use.read > at:
                freed[tensor.buffer] += tensor.bytes
            elif touch.reads and use.last < target:
                if tensor.fixed is not None:
                    return False  # its bytes may belong to another tensor afterwards
                freed[tensor.buffer] -= tensor.bytes
                longer.append(use)
        if min(freed.values(), default=0) < 0 or not any(freed[b] > 0 for b in self.tight):
            return False
        for use in longer:
            use.last = target
        return True

    def _uses(self, items: list[Item], loops: tuple[int, ...]) -> dict[int, _Use]:
        """Return the tensors declared in this body, by number."""
        uses: dict[int, _Use] = {}
        for at, item in enumerate(items):
            for instruction in instructions((item,)):
                for touch in self.touched[instruction.number]:
                    tensor = touch.pattern.tensor
                    if not tensor.on_chip or tensor.scope != loops:
                        continue
                    use = uses.setdefault(tensor.number, _Use(len(items), at))
                    use.last = at
                    use.read = min(use.read, at) if touch.reads else use.read
        return uses
