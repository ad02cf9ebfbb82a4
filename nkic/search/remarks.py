"""Remarks on the search: the trials, the one that was kept, and its gain."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from nkic.base.remark import Kind, Number, Remark, line_of
from nkic.base.text import plural
from nkic.ir.program import Instruction, Program, instructions
from nkic.machine.engines import Engine
from nkic.schedule.placed import engine_of
from nkic.search.stage import ScheduledProgram, Searched, Trial

STAGE = "search"


def remarks(lowered: Program, result: ScheduledProgram) -> Iterator[Remark]:
    """Yield the remarks on the stage's input `lowered` and its output `result`."""
    if result.searched is not None:
        yield _search(result.searched)
    yield from _moved(lowered, result.placed)


def _search(searched: Searched) -> Remark:
    """Return one remark on all trials."""
    times = [trial.ns for trial in searched.tried if trial.ns is not None]
    kept_ns = min([searched.first_ns, *times])
    gain = 1 - kept_ns / searched.first_ns if searched.first_ns else 0.0
    numbers: Mapping[str, Number] = {
        "tried": len(searched.tried),
        "first_ns": searched.first_ns,
        "bound_ns": searched.bound_ns,
        "kept_ns": kept_ns,
        "gain": gain,
        "kept": describe(searched.kept) if searched.kept is not None else "the first plan",
    }
    bounds = (
        f"{searched.first_ns:,.0f} ns, and no order can take less than {searched.bound_ns:,.0f} ns"
    )
    if not searched.tried:
        text = f"the first plan is close enough to its lower bound: {bounds}"
        return Remark(STAGE, "search", Kind.ANALYSIS, None, text, numbers)
    best_ns = min(times, default=None)
    tried = plural(len(searched.tried), "other plan")
    if searched.kept is None:
        best = "none of them fits" if best_ns is None else f"the best takes {best_ns:,.0f} ns"
        text = f"{tried} tried, none kept: the first takes {bounds}; {best}"
        return Remark(STAGE, "search", Kind.MISSED, None, text, numbers)
    text = (
        f"{tried} tried; kept: {describe(searched.kept)}, {kept_ns:,.0f} ns, "
        f"{100 * gain:.0f}% less than the first, which takes {bounds}"
    )
    return Remark(STAGE, "search", Kind.PASSED, None, text, numbers)


def describe(trial: Trial) -> str:
    """Return a description of the trial."""
    if trial.share is None:
        banks = ", with separate PSUM banks for each declaration"
        order = ", on each engine too" if trial.in_order else ""
        return f"program order{order}{banks if trial.roles else ''}"
    first = "program order" if trial.by_program else "the longest path"
    return f"planned with {100 * trial.share:.0f}% of memory, {first} first"


def _moved(lowered: Program, placed: Program) -> Iterator[Remark]:
    """Yield the lines whose transfers come earlier in the new order than in the program."""
    for before, after in zip(lowered.cores, placed.cores, strict=True):
        # A new order has new instruction numbers, but the same operands.
        old = {
            id(instruction.operands): index
            for index, instruction in enumerate(instructions(before))
            if instruction.operands
        }
        by_line: dict[object, list[tuple[int, Instruction]]] = defaultdict(list)
        for index, instruction in enumerate(instructions(after)):
            moved = old.get(id(instruction.operands), index) - index
            if moved > 0 and engine_of(instruction) is Engine.DMA:
                by_line[line_of(instruction.at)].append((moved, instruction))
        for pairs in by_line.values():
            farthest, first = max(moved for moved, _ in pairs), pairs[0][1]
            text = (
                f"{plural(len(pairs), 'transfer')} planned ahead of the program's order, by "
                f"up to {plural(farthest, 'instruction')}, as far as memory allows"
            )
            numbers: Mapping[str, Number] = {"moved": len(pairs), "most": farthest}
            yield Remark(STAGE, "moved-ahead", Kind.PASSED, first.at, text, numbers)
