"""Engine choice by workload, for instructions whose row allows several engines.

`nki.isa.tensor_copy`, `engine`: the compiler "selects best engine based on engine workload". How it
weighs the work is not published. Here, an instruction stays on the first of its engines, as in the
public figures of kernels bound by the tensor engine, unless that engine would have nearly as much
work as any other, and enough for it to matter. Then the engines share the instructions in program
order: each goes to the engine that would finish it first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from nkic.ir.program import Body, Instruction, Item, Loop, cost_key
from nkic.machine.engines import Engine
from nkic.machine.targets import Target
from nkic.machine.timing import Timing, timing

# An engine is busy if its work is at least this fraction of the maximum of the fixed engines.
BUSY = 0.75
# Minimum work of a busy engine in picoseconds, outside of loops: with less, the latencies of a few
# transfers dominate a kernel.
LEAST = 10_000_000
# Picoseconds that an engine may be behind the others: work of long ago does not affect the choice.
WINDOW = 10_000_000

Choices = Mapping[int, Sequence[Engine]]  # by instruction number; the first is the default
_Key = tuple[object, ...]


def share_out(body: Body, choices: Choices, target: Target) -> Body:
    """Return `body` with an engine for each instruction of `choices`.

    Each device loop is a workload of its own, because its iterations repeat it.
    """
    return _Sharer(choices, target).body(body)


class _Sharer:
    def __init__(self, choices: Choices, target: Target) -> None:
        self.choices = choices
        self.target = target
        self.engines = {engine for engines in choices.values() for engine in engines}
        self.timings: dict[_Key, Timing] = {}

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
        """Return whether the engines with a choice bound the body under the default choices.

        They must have at least `least` picoseconds of work.
        """
        if not any(one.number in self.choices for one in items):
            return False
        work = Counter[Engine]()
        for one in items:
            assert one.engine is not None  # the row chose one if the kernel did not
            cost = self.timing(one, one.engine)
            work[one.engine] += cost.pool or cost.hold
            work[cost.by] += cost.trigger
        ours = max(work[engine] for engine in self.engines)
        others = max((work[engine] for engine in work if engine not in self.engines), default=0)
        return ours >= max(least, BUSY * others)

    def item(self, item: Item, until: dict[Engine, int]) -> Item:
        if isinstance(item, Loop):
            return item
        choices = self.choices.get(item.number)
        one = item._replace(engine=self.first_done(item, choices, until)) if choices else item
        if one.engine in until:
            self.advance(until, one.engine, self.timing(one, one.engine).hold)
        return one

    def first_done(
        self, one: Instruction, choices: Sequence[Engine], until: Mapping[Engine, int]
    ) -> Engine:
        """Return the engine that would finish first; of several, the first in `choices`."""
        return min(choices, key=lambda engine: until[engine] + self.timing(one, engine).hold)

    def advance(self, until: dict[Engine, int], engine: Engine, hold: int) -> None:
        """Add `hold` to the time of `engine`, and advance the others to its window."""
        until[engine] += hold
        least = until[engine] - WINDOW
        for other, time in until.items():
            until[other] = max(time, least)

    def timing(self, one: Instruction, engine: Engine) -> Timing:
        """Return the timing of `one` on `engine`, memoised by signature."""
        key = (engine, one.row, one.attributes, *map(cost_key, one.operands))
        found = self.timings.get(key)
        if found is None:
            facts = replace(one.facts(self.target), engine=engine)
            found = self.timings[key] = timing(one.row, facts, engine)
        return found
