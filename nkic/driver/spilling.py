"""Programs that exceed SBUF: spill tiles to HBM if the user asks for it, and report them.

Otherwise the error says how many bytes spilling would move.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from nkic import spill
from nkic.allocate import allocate
from nkic.base.diagnostics import CompileFailed, Diagnostic, Label, Reporter, code
from nkic.base.source import Span
from nkic.base.text import decimal, plural
from nkic.depend import depend
from nkic.ir.dependence import DependenceGraph
from nkic.ir.program import Loop, Program, instructions
from nkic.search import fit

Graphs = tuple[DependenceGraph, ...]
# Shares of SBUF that may be live at once; smaller ones if the live tensors cannot be packed without
# gaps.
SHARES = (1.0, 0.97, 0.94, 0.9, 0.85, 0.8, 0.7)
MAX_ADVISED = 50_000  # instructions up to which an error states the traffic of spilling
MAX_NAMED = 5  # places that a report names
OVERFLOW = code("sbuf-overflow")
IN_PSUM = code("psum-overflow")
OF_SBUF = (
    "--spill moves tiles of SBUF, not of PSUM, which DMA does not access: copy sums to SBUF with "
    "nisa.tensor_copy before starting more of them"
)


class Fitted(NamedTuple):
    """A program with its graphs, and both again with addresses and reuse edges.

    `spilled` is set if tiles wait in HBM.
    """

    lowered: Program
    graphs: Graphs
    placed: Program
    reusing: Graphs
    spilled: spill.Spilled | None = None


def fit_or_spill(lowered: Program, graphs: Graphs, report: Reporter, may_spill: bool) -> Fitted:
    """Allocate addresses for `lowered`, or, if `may_spill`, for a program with less live at once.

    Reports what does not fit, and what was spilled. Raises `CompileFailed`.
    """
    attempt = Reporter(report.max_errors)
    with suppress(CompileFailed):
        return Fitted(lowered, graphs, *fit(lowered, graphs, attempt))
    first = spill.spill(lowered) if may_spill or _is_cheap(lowered) else None
    fitted = _spilled(lowered, first) if may_spill and first is not None else None
    if fitted is not None:
        report.add(_warning(fitted))
        return fitted
    for diagnostic in attempt.all:
        report.add(_advised(diagnostic, attempt.all, first, may_spill))
    raise CompileFailed(report.all)


def _is_cheap(program: Program) -> bool:
    return sum(1 for body in program.cores for _ in instructions(body)) <= MAX_ADVISED


def _spilled(lowered: Program, first: spill.Spilled) -> Fitted | None:
    """Spill to the largest share of SBUF in which everything can be allocated; None if there is
    none.
    """
    for share in SHARES if first.enough else ():
        spilled = first if share == 1.0 else spill.spill(lowered, share)
        graphs = depend(spilled.program)
        with suppress(CompileFailed):
            placed, reusing = allocate(spilled.program, graphs, Reporter(1))
            return Fitted(spilled.program, graphs, placed, reusing, spilled)
    return None


# ---- messages ------------------------------------------------------------------------------------


def _advised(
    diagnostic: Diagnostic,
    diagnostics: tuple[Diagnostic, ...],
    first: spill.Spilled | None,
    was_tried: bool,
) -> Diagnostic:
    """Return the error, with what spilling would do or did not achieve."""
    if was_tried and diagnostic.code is IN_PSUM:
        return replace(diagnostic, help=f"{diagnostic.help}; {OF_SBUF}")
    if first is None or any(each.code is not OVERFLOW for each in diagnostics):
        return diagnostic
    if first.stuck is not None:
        return (
            replace(diagnostic, help=f"{diagnostic.help}; {_stuck(first.stuck)}")
            if was_tried
            else diagnostic
        )
    if was_tried:
        return replace(
            diagnostic, help=f"{diagnostic.help}; even with --spill the free memory is fragmented"
        )
    stored, loaded, _ = first.traffic
    traffic = f"which moves {decimal(stored + loaded)} to and from HBM"
    return replace(
        diagnostic, help=f"{diagnostic.help}; or spill tiles to HBM with --spill, {traffic}"
    )


def _stuck(step: spill.Step) -> str:
    """Explain why spilling other tiles does not make room at `step`."""
    if not isinstance(step.item, Loop):
        return "--spill cannot help: a single instruction needs more memory than there is"
    span, need = step.item.at.primary, f"{step.inner:,} bytes per partition"
    return (
        "--spill works around device loops, not inside them: an iteration of the loop at "
        f"{span.path}:{span.line} needs {need}, so use fewer or smaller tiles in it, or write "
        "it with `range`, which is unrolled"
    )


def _warning(fitted: Fitted) -> Diagnostic:
    """Return a warning that names the spilled tensors, where they were declared, and their
    traffic.
    """
    spilled = fitted.spilled
    assert spilled is not None
    groups = _by_declaration(spilled)
    tiles = [tile for _, group in groups for tile in group]
    reporter = Reporter()
    reporter.warning(
        OVERFLOW.slug,
        f"SBUF has no room for all tensors that are live at once: {plural(len(tiles), 'tensor')} "
        f"{'are' if len(tiles) > 1 else 'is'} spilled to HBM, {_traffic(tiles)}",
        groups[0][0],
        labels=[Label(place, _label(group)) for place, group in groups[:MAX_NAMED]],
        notes=_more(groups[MAX_NAMED:]),
        help="use smaller blocks, or order the loops so that fewer tiles are live at once",
    )
    return reporter.all[0]


_Group: TypeAlias = "tuple[Span, list[spill.Away]]"  # in quotes: `spill` is loaded when used


def _by_declaration(spilled: spill.Spilled) -> list[_Group]:
    """Return the tensors by place of declaration, those with most traffic first."""
    groups: dict[Span, list[spill.Away]] = defaultdict(list)
    for tile in (tile for core in spilled.away for tile in core):
        groups[tile.tensor.at.primary].append(tile)
    return sorted(
        groups.items(), key=lambda pair: -sum(tile.moved + tile.remade for tile in pair[1])
    )


def _label(group: list[spill.Away]) -> str:
    names = list(dict.fromkeys(f"`{tile.tensor.name}`" for tile in group))
    name = f" {names[0]}" if len(names) == 1 else ""
    return f"{plural(len(group), 'tensor')}{name} from here: {_traffic(group)}"


def _more(groups: list[_Group]) -> Iterator[str]:
    tiles = [tile for _, group in groups for tile in group]
    if tiles:
        yield f"{plural(len(tiles), 'more tensor')}: {_traffic(tiles)}"


def _traffic(tiles: list[spill.Away]) -> str:
    stored, loaded, remade = spill.Traffic.of(tiles)
    text = f"{decimal(stored)} stored, {decimal(loaded)} loaded"
    return f"{text}, recomputed {plural(remade, 'time')}" if remade else text
