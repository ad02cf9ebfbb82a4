"""Engines by workload: who runs the instructions that a row leaves to how much there is to do.

`nki.isa.tensor_copy`, `engine`: the compiler "selects best engine based on engine workload". How
it weighs the work is not published. Here an instruction stays with the first of its engines, as
in the public pictures of kernels that the tensor engine bounds, unless that engine would have
nearly as much to do as any other, and enough for that to matter; then the engines share, in program
order: the one that would be done first takes the instruction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from nkic.ir.program import Body, Instruction, Item, Loop, Operand
from nkic.ir.tensors import AccessPattern
from nkic.machine.engines import Engine
from nkic.machine.targets import Target
from nkic.machine.timing import Timing, timing

# An engine is busy that has this part of the most that engines with no choice have to do.
BUSY = 0.75
# Picoseconds of work with which an engine is busy, outside of loops: with less, the latencies of a
# few transfers bound a kernel.
LEAST = 10_000_000
# Picoseconds that an engine may lie behind: what one of them did long ago says nothing of now.
WINDOW = 10_000_000

Choices = Mapping[int, Sequence[Engine]]  # by number of instruction, the first taken by default
_Key = tuple[object, ...]


def share_out(body: Body, choices: Choices, target: Target) -> Body:
    """`body` with an engine for each instruction of `choices`. Each device loop is a workload of
    its own, as its turns repeat it.
    """
    return _Sharer(choices, target).body(body)


class _Sharer:
    def __init__(self, choices: Choices, target: Target) -> None:
        self.choices = choices
        self.target = target
        self.engines = {engine for engines in choices.values() for engine in engines}
        self.known: dict[_Key, Timing] = {}

    def body(self, body: Body, least: int = LEAST) -> Body:
        inner = [
            replace(item, body=self.body(item.body, least=0)) if isinstance(item, Loop) else item
            for item in body
        ]
        if not self.is_busy([item for item in inner if isinstance(item, Instruction)], least):
            return tuple(inner)
        until = dict.fromkeys(self.engines, 0)
        return tuple([self.item(item, until) for item in inner])

    def is_busy(self, items: Sequence[Instruction], least: int) -> bool:
        """Whether engines with a choice bound the body, each instruction where it is, and have
        `least` picoseconds of work.
        """
        if not any(one.number in self.choices for one in items):
            return False
        work = Counter[Engine]()
        for one in items:
            assert one.engine is not None  # the row chose one where the kernel did not
            its = self.timing(one, one.engine)
            work[one.engine] += its.pool or its.hold
            work[its.by] += its.trigger
        ours = max(work[engine] for engine in self.engines)
        others = max((work[engine] for engine in work if engine not in self.engines), default=0)
        return ours >= max(least, BUSY * others)

    def item(self, item: Item, until: dict[Engine, int]) -> Item:
        if isinstance(item, Loop):
            return item
        choices = self.choices.get(item.number)
        one = item._replace(engine=self.first_done(item, choices, until)) if choices else item
        if one.engine in until:
            self.passes(until, one.engine, self.timing(one, one.engine).hold)
        return one

    def first_done(
        self, one: Instruction, choices: Sequence[Engine], until: Mapping[Engine, int]
    ) -> Engine:
        """The engine that would have done it first; of several, the first in `choices`."""
        return min(choices, key=lambda engine: until[engine] + self.timing(one, engine).hold)

    def passes(self, until: dict[Engine, int], engine: Engine, hold: int) -> None:
        """`engine` is held for so long, and the others follow it."""
        until[engine] += hold
        least = until[engine] - WINDOW
        for other, time in until.items():
            until[other] = max(time, least)

    def timing(self, one: Instruction, engine: Engine) -> Timing:
        """What it takes of `engine`, looked up once per signature."""
        key = (engine, one.row, one.attributes, *map(shape, one.operands))
        found = self.known.get(key)
        if found is None:
            facts = replace(one.facts(self.target), engine=engine)
            found = self.known[key] = timing(one.row, facts, engine)
        return found


def shape(operand: Operand) -> object:
    """What engines and costs hang on: an access pattern without its place."""
    if type(operand) is AccessPattern:
        return (operand.tensor.buffer, operand.dtype.code, operand.partitions, operand.dims)
    return operand
