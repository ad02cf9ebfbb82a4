"""Remarks on the search: the trials, the one that was kept, and its gain."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from nkic.base.remark import Kind, Number, Remark, line_of
from nkic.base.text import plural
from nkic.ir.program import Instruction, Program, instructions
from nkic.machine.engines import Engine
from nkic.schedule.placed import engine_of
from nkic.search.stage import Found, Searched, Trial

STAGE = "search"


def remarks(lowered: Program, found: Found) -> Iterator[Remark]:
    """Yield the remarks on the stage's input `lowered` and its output `found`."""
    if found.searched is not None:
        yield _search(found.searched)
    yield from _moved(lowered, found.placed)


def _search(done: Searched) -> Remark:
    """Return one remark on all trials."""
    times = [one.ns for one in done.tried if one.ns is not None]
    last = min([done.first_ns, *times])
    gain = 1 - last / done.first_ns if done.first_ns else 0.0
    numbers: Mapping[str, Number] = {
        "tried": len(done.tried),
        "first_ns": done.first_ns,
        "bound_ns": done.bound_ns,
        "kept_ns": last,
        "gain": gain,
        "kept": describe(done.kept) if done.kept is not None else "the first plan",
    }
    totals = f"{done.first_ns:,.0f} ns, and no order can take less than {done.bound_ns:,.0f} ns"
    if not done.tried:
        text = f"the first plan is close enough to its lower bound: {totals}"
        return Remark(STAGE, "search", Kind.ANALYSIS, None, text, numbers)
    least = min(times, default=None)
    tried = plural(len(done.tried), "other plan")
    if done.kept is None:
        best = "none of them fits" if least is None else f"the best takes {least:,.0f} ns"
        text = f"{tried} tried, none kept: the first takes {totals}; {best}"
        return Remark(STAGE, "search", Kind.MISSED, None, text, numbers)
    text = (
        f"{tried} tried; kept: {describe(done.kept)}, {last:,.0f} ns, {100 * gain:.0f}% less than "
        f"the first, which takes {totals}"
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
        old = {id(one.operands): at for at, one in enumerate(instructions(before)) if one.operands}
        by_line: dict[object, list[tuple[int, Instruction]]] = defaultdict(list)
        for at, one in enumerate(instructions(after)):
            moved = old.get(id(one.operands), at) - at
            if moved > 0 and engine_of(one) is Engine.DMA:
                by_line[line_of(one.at)].append((moved, one))
        for pairs in by_line.values():
            most, first = max(moved for moved, _ in pairs), pairs[0][1]
            text = (
                f"{plural(len(pairs), 'transfer')} planned ahead of the program's order, by "
                f"up to {plural(most, 'instruction')}, as far as memory allows"
            )
            numbers: Mapping[str, Number] = {"moved": len(pairs), "most": most}
            yield Remark(STAGE, "moved-ahead", Kind.PASSED, first.at, text, numbers)
