"""The stage: lifetimes, addresses, reuse edges, for every core and both memories."""

from __future__ import annotations

from dataclasses import replace

from nkic.allocate.explain_overflow import report_overflow
from nkic.allocate.fixed import check_fixed
from nkic.allocate.liveness import lifetimes
from nkic.allocate.place import Addresses, DoesNotFit, place, space_of
from nkic.allocate.reuse import reuse_edges
from nkic.base.diagnostics import Reporter
from nkic.ir.dependence import DependenceGraph
from nkic.ir.program import Body, Program
from nkic.machine.memory import Buffer

Graphs = tuple[DependenceGraph, ...]


def allocate(program: Program, graphs: Graphs, report: Reporter) -> tuple[Program, Graphs]:
    """Addresses for all on-chip tensors; reports what does not fit, all memories at once."""
    addresses: Addresses = {}
    done = []
    for body, graph in zip(program.cores, graphs, strict=True):
        for buffer in (Buffer.SBUF, Buffer.PSUM):
            found, graph = _fill(program, body, graph, buffer, report)
            addresses |= found
        done.append(graph)
    report.stop_if_errors()
    return replace(program, addresses=addresses), tuple(done)


def _fill(
    program: Program, body: Body, graph: DependenceGraph, buffer: Buffer, report: Reporter
) -> tuple[Addresses, DependenceGraph]:
    lives = lifetimes(body, program.target, buffer)
    space = space_of(buffer, program.target)
    if not check_fixed(lives, space, program.target, report):
        return {}, graph
    try:
        addresses = place(lives, space)
    except DoesNotFit as failure:
        report_overflow(failure, lives, space, program.target, report)
        return {}, graph
    return addresses, graph.plus(reuse_edges(lives, addresses, graph))
