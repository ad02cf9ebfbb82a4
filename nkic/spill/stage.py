"""The spill stage: inserts the stores and reloads of every core's tiles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, count
from typing import TypeGuard

from nkic.allocate.place import space_of
from nkic.ir.effects import touches_of
from nkic.ir.program import Body, Instruction, Item, Loop, Operand, Program
from nkic.ir.tensors import AccessPattern, Tensor
from nkic.machine.engines import Engine
from nkic.machine.instructions import ROWS
from nkic.machine.memory import SPILLED, Buffer
from nkic.machine.operands import HBM, SBUF
from nkic.spill.steps import Step, constant_tensors, immovable, repeatable, steps
from nkic.spill.walk import Away, Move, Plan, Traffic, Walk

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
        """The total cost over all cores."""
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
        return item._replace(operands=self._operands(item.operands, names), work=None)

    def _operands(
        self, operands: Sequence[Operand], names: Mapping[int, Tensor]
    ) -> tuple[Operand, ...]:
        return tuple(
            self._pattern(operand, names) if isinstance(operand, AccessPattern) else operand
            for operand in operands
        )

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
