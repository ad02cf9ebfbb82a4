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

from nkic.ir.program import Body, Instruction, Item, Loop, Work
from nkic.machine.engines import Engine
from nkic.machine.targets import Target
from nkic.machine.timing import Timing, timing

# An engine is busy if its work is at least this fraction of the maximum of the fixed engines.
BUSY_FRACTION = 0.75
# Minimum work of a busy engine in picoseconds, outside of loops: with less, the latencies of a few
# transfers dominate a kernel.
MIN_WORK_PS = 10_000_000
# Picoseconds that an engine may be behind the others: work of long ago does not affect the choice.
WINDOW_PS = 10_000_000

Choices = Mapping[int, Sequence[Engine]]  # by instruction number; the first is the default


def share_out(body: Body, choices: Choices, target: Target) -> Body:
    """Return `body` with an engine for each instruction of `choices`. All know their work.

    Each device loop is a workload of its own, because its iterations repeat it.
    """
    return _Sharer(choices, target).body(body)


class _Sharer:
    def __init__(self, choices: Choices, target: Target) -> None:
        self.choices = choices
        self.target = target
        self.engines = {engine for engines in choices.values() for engine in engines}
        self.timings: dict[tuple[Work | None, Engine], Timing] = {}

    def body(self, body: Body, min_work_ps: int = MIN_WORK_PS) -> Body:
        inner = [
            replace(item, body=self.body(item.body, min_work_ps=0))
            if isinstance(item, Loop)
            else item
            for item in body
        ]
        if not self.is_busy([item for item in inner if isinstance(item, Instruction)], min_work_ps):
            return tuple(inner)
        until = dict.fromkeys(self.engines, 0)
        return tuple([self.item(item, until) for item in inner])

    def is_busy(self, items: Sequence[Instruction], min_work_ps: int) -> bool:
        """Return whether the engines with a choice bound the body under the default choices.

        They must have at least `min_work_ps` picoseconds of work.
        """
        if not any(instruction.number in self.choices for instruction in items):
            return False
        work = Counter[Engine]()
        counts = Counter([instruction.work for instruction in items])
        for instruction in {instruction.work: instruction for instruction in items}.values():
            engine, count = instruction.engine, counts[instruction.work]
            assert engine is not None  # the row chose one if the kernel did not
            cost = self.timing(instruction, engine)
            work[engine] += (cost.pool or cost.hold) * count
            work[cost.by] += cost.trigger * count
        shared_work = max(work[engine] for engine in self.engines)
        fixed_work = max((work[engine] for engine in work if engine not in self.engines), default=0)
        return shared_work >= max(min_work_ps, BUSY_FRACTION * fixed_work)

    def item(self, item: Item, until: dict[Engine, int]) -> Item:
        if isinstance(item, Loop):
            return item
        choices = self.choices.get(item.number)
        instruction = (
            item._replace(engine=self.first_done(item, choices, until)) if choices else item
        )
        if instruction.engine in until:
            self.advance(
                until, instruction.engine, self.timing(instruction, instruction.engine).hold
            )
        return instruction

    def first_done(
        self, instruction: Instruction, choices: Sequence[Engine], until: Mapping[Engine, int]
    ) -> Engine:
        """Return the engine that would finish first; of several, the first in `choices`."""
        return min(
            choices, key=lambda engine: until[engine] + self.timing(instruction, engine).hold
        )

    def advance(self, until: dict[Engine, int], engine: Engine, hold: int) -> None:
        """Add `hold` to the time of `engine`, and advance the others to its window."""
        until[engine] += hold
        earliest = until[engine] - WINDOW_PS
        for other, time in until.items():
            until[other] = max(time, earliest)

    def timing(self, instruction: Instruction, engine: Engine) -> Timing:
        """Return the timing of `instruction` on `engine`, memoised by work."""
        key = (instruction.work, engine)
        cached = self.timings.get(key)
        if cached is None:
            facts = replace(instruction.facts(self.target), engine=engine)
            cached = self.timings[key] = timing(instruction.row, facts, engine)
        return cached
