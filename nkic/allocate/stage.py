"""The allocation stage: live ranges, addresses and reuse edges, per core and memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from nkic.allocate.fixed import check_fixed
from nkic.allocate.liveness import Lifetime, lifetimes_in
from nkic.allocate.place import REST, TIGHT_ALIGN, Addresses, DoesNotFit, Space, place, space_of
from nkic.allocate.reuse import reuse_edges
from nkic.allocate.roles import by_role
from nkic.base.diagnostics import Reporter
from nkic.ir.dependence import DependenceGraph
from nkic.ir.program import Body, Program
from nkic.machine.memory import MEMORIES, Buffer
from nkic.machine.targets import Target

Graphs = tuple[DependenceGraph, ...]
Core = tuple[Addresses, Body, DependenceGraph]


def allocate(
    program: Program,
    graphs: Graphs,
    report: Reporter,
    rest: int = REST,
    pack: bool = True,
    roles: bool = False,
) -> tuple[Program, Graphs]:
    """Assign addresses to all on-chip tensors; report what does not fit, for all memories at once.

    `rest` is the number of free slots of a kind before the oldest is reused; `pack` enables
    packing, which may take a second; `roles` groups PSUM banks by role if that fits.
    """
    chosen: Addresses = {}
    bodies, new_graphs = [], []
    strategy = Strategy(rest, pack, roles)
    for body, graph in zip(program.cores, graphs, strict=True):
        addresses, body, graph = _core(body, graph, program.target, report, strategy)
        chosen |= addresses
        bodies.append(body)
        new_graphs.append(graph)
    report.stop_if_errors()
    return replace(program, cores=tuple(bodies), addresses=chosen), tuple(new_graphs)


class Strategy(NamedTuple):
    """The parameters of placement, as in `allocate`."""

    rest: int
    pack: bool
    roles: bool = False


def _core(
    body: Body, graph: DependenceGraph, target: Target, report: Reporter, strategy: Strategy
) -> Core:
    """Place in program order or, if a memory is too small, in an order that needs less of it.

    Errors are reported for the program as written.
    """
    spaces = [space_of(buffer, target) for buffer in MEMORIES]
    lives = lifetimes_in(body, target, MEMORIES)
    memories = list(zip(spaces, lives, strict=True))
    valid = [check_fixed(own, space, target, report) for space, own in memories]
    filled = [
        _fill(body, *memory, target, strategy)
        for memory, is_valid in zip(memories, valid, strict=True)
        if is_valid
    ]
    tight = [memory for memory in filled if memory.failure is not None]
    if tight and all(valid):
        for moved, moved_graph in _orders(
            body, graph, [memory.space.buffer for memory in tight], target
        ):
            lives = lifetimes_in(moved, target, MEMORIES)
            refilled = [
                _fill(moved, *memory, target, strategy)
                for memory in zip(spaces, lives, strict=True)
            ]
            if all(memory.failure is None for memory in refilled):
                return _joined(refilled, moved, moved_graph)
    for memory in tight:
        memory.report(target, report)
    return _joined(filled, body, graph)


def _orders(
    body: Body, graph: DependenceGraph, tight: Sequence[Buffer], target: Target
) -> Iterator[tuple[Body, DependenceGraph]]:
    """Yield other orders of the program, whose peak memory use may be lower."""
    # Imported here because few programs need them.
    from nkic.allocate.frugal import frugal
    from nkic.allocate.sink import sink

    yield sink(body, graph, tight, target)
    for backwards in (False, True):
        reordered = frugal(body, graph, target, backwards)
        if reordered is not None:
            yield reordered


def _joined(filled: Sequence[_Filled], body: Body, graph: DependenceGraph) -> Core:
    addresses: Addresses = {}
    for memory in filled:
        addresses |= memory.addresses
        graph = graph.plus(reuse_edges(memory.lives, memory.addresses, graph))
    return addresses, body, graph


class _Filled(NamedTuple):
    """One memory of a core: its live ranges and their addresses, or the failure."""

    space: Space
    lives: list[Lifetime]
    addresses: Addresses
    failure: DoesNotFit | None = None

    def report(self, target: Target, report: Reporter) -> None:
        """Report the tensor that does not fit, if there is one."""
        if self.failure is not None:
            from nkic.allocate.explain_overflow import report_overflow  # rarely needed

            report_overflow(self.failure, self.space, target, report)


def _fill(
    body: Body, space: Space, lives: list[Lifetime], target: Target, strategy: Strategy
) -> _Filled:
    try:
        return _Filled(space, lives, addresses(body, lives, space, target, strategy))
    except DoesNotFit as failure:
        return _Filled(space, [], {}, failure)


def addresses(
    body: Body, lives: Sequence[Lifetime], space: Space, target: Target, strategy: Strategy
) -> Addresses:
    """Place in program order, else by size, else with smaller gaps, else side by side.

    Raises the DoesNotFit of the first strategy if all fail.
    """
    if (
        strategy.roles
        and space.buffer is Buffer.PSUM
        and not any(life.tensor.fixed for life in lives)
    ):
        with suppress(DoesNotFit):
            return by_role(lives, space)
    try:
        return place(lives, space, strategy.rest)
    except DoesNotFit:
        if not strategy.pack:
            raise
        from nkic.allocate.pack import pack  # lazy: nothing else in a compilation needs NumPy

        with suppress(DoesNotFit):
            return pack(lives, space)
        if space.buffer is Buffer.SBUF:
            from nkic.allocate.movable import movable  # rarely needed

            tight = replace(space, align=TIGHT_ALIGN)
            for moving in ((), movable(body, target)):
                with suppress(DoesNotFit):
                    return pack(lives, tight, moving)
        raise
