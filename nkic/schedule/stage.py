"""The schedule stage: orders and wires every core."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from nkic.ir.dependence import DependenceGraph, Edge
from nkic.ir.program import Body, Instruction, Loop, Program, instructions
from nkic.ir.schedule import Schedule, Stream
from nkic.machine.targets import Target
from nkic.schedule.carried import overlaps
from nkic.schedule.iterations import iteration
from nkic.schedule.order import Orderer
from nkic.schedule.placed import stream_ids
from nkic.schedule.semaphores import Wiring


def schedule(
    program: Program,
    graphs: Sequence[DependenceGraph],
    serial: bool = False,
    in_order: bool = False,
) -> Schedule:
    """Return the streams of every core.

    With `serial`, instructions run one at a time in program order; with `in_order`, each engine
    runs its instructions in program order.
    """
    cores, estimate, timed, busiest = [], 0, len(program.cores) == 1, 0
    for body, graph in zip(program.cores, graphs, strict=True):
        target = program.target.used_by(len(program.cores))
        core = _CoreScheduler(target, _chain(body) if serial else graph, serial, in_order)
        cores.append(core.streams(body))
        estimate = max(estimate, core.orderer.now)
        timed = timed and core.is_timed(body)
        busiest = core.orderer.busiest if timed else 0
    return Schedule(program, tuple(cores), estimate / 1000, serial, timed, busiest / 1000)


def _chain(body: Body) -> DependenceGraph:
    """Return a graph in which each instruction waits for the previous one in program order."""
    numbers = [i.number for i in instructions(body)]
    return DependenceGraph({n: (Edge(p, "pin"),) for p, n in itertools.pairwise(numbers)})


class _CoreScheduler:
    def __init__(
        self, target: Target, graph: DependenceGraph, serial: bool, in_order: bool
    ) -> None:
        self.serial = serial
        self.orderer = Orderer(graph, target, in_order)
        self.wiring = Wiring(stream_ids(target), graph, target.semaphores, not serial)

    def streams(self, body: Body) -> tuple[Stream, ...]:
        self.body(body)
        return self.wiring.streams()

    def body(self, body: Body) -> None:
        stretch: list[Instruction] = []
        for item in body:
            if isinstance(item, Instruction):
                stretch.append(item)
                continue
            self.stretch(stretch)
            stretch = []
            self.loop(item)
        self.stretch(stretch)

    def stretch(self, code: list[Instruction]) -> None:
        stretch = self.orderer.known(code)
        order = self.orderer.in_turn(stretch) if self.serial else self.orderer.order(stretch)
        self.wiring.add(stretch, order)

    def is_timed(self, body: Body) -> bool:
        """Return whether the estimate is the time of a run.

        It is not if loops cut the code into stretches, or if the program has a rendezvous with
        other ranks.
        """
        alone = not any(isinstance(item, Loop) or item.row.is_rendezvous for item in body)
        return alone and self.orderer.is_timed

    def loop(self, loop: Loop) -> None:
        body = [item for item in loop.body if isinstance(item, Instruction)]
        if self.serial or len(body) < len(loop.body) or not overlaps(loop):
            self.wiring.loop(loop, lambda: self.body(loop.body))
        else:
            self.wiring.loop(loop, lambda: self.overlapping(body))

    def overlapping(self, code: list[Instruction]) -> None:
        """Add the body of a loop whose iterations overlap."""
        stretch = self.orderer.known(code)
        self.wiring.add(stretch, iteration(self.orderer, stretch))
