"""Do the cores of a kernel reach the same rendezvous, in the same order, with matching operands?

A core that waits at a barrier or a sendrecv for a partner that never comes, or that comes to
another one first, waits forever. The cores' programs are known, so this is found here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nkic.base.diagnostics import Label, Reporter
from nkic.base.source import Span
from nkic.ir.program import Body, Instruction, Item, Loop, Program
from nkic.ir.tensors import AccessPattern, View
from nkic.machine.engines import Engine
from nkic.machine.facts import Facts
from nkic.machine.operands import Access, Violation

SLUG = "core-meeting"


def check_rendezvous(program: Program, report: Reporter) -> None:
    """Reports the first rendezvous that the cores of `program` do not all reach."""
    _Rendezvous(program, report).bodies(program.cores)


class _Rendezvous:
    def __init__(self, program: Program, report: Reporter) -> None:
        self.target = program.target
        self.report = report

    def bodies(self, bodies: Sequence[Body]) -> bool:
        """Walks the cores side by side; whether they agree."""
        rows = [list(_with_rendezvous(body)) for body in bodies]
        for index in range(max(map(len, rows), default=0)):
            items = [row[index] if index < len(row) else None for row in rows]
            if not self.items(items, [row[-1] if row else None for row in rows]):
                return False
        return True

    def items(self, items: Sequence[Item | None], last: Sequence[Item | None]) -> bool:
        """One item of each core; None where a core has no more, `last` is what it had last."""
        found = [item for item in items if item is not None]
        if len(found) < len(items):
            self.missing(items, last)
        elif loops := [item for item in found if isinstance(item, Loop)]:
            return self.loops(loops, found) and self.bodies([loop.body for loop in loops])
        else:
            return self.instructions([item for item in found if isinstance(item, Instruction)])
        return False

    def missing(self, items: Sequence[Item | None], last: Sequence[Item | None]) -> None:
        core = next(n for n, item in enumerate(items) if item is not None)
        other = next(n for n, item in enumerate(items) if item is None)
        item, before = items[core], last[other]
        if item is None:
            return
        text = f"core {core} waits at {_name(item)} for core {other}, which has no more rendezvous"
        labels = [_label(other, "came last to", before)] if before is not None else []
        self.complain(text, item, labels)

    def loops(self, loops: Sequence[Loop], found: Sequence[Item]) -> bool:
        """Loops around a rendezvous run as often on each core, as far as that is known now."""
        trips = {loop.trips for loop in loops}
        if len(loops) == len(found) and len(trips) == 1:
            return True
        times = " and ".join(str(loop.trips or "?") for loop in loops)
        text = f"core 0 comes to {_name(found[0])} here, and core 1 to {_name(found[-1])}"
        if len(loops) == len(found):
            text = f"this loop around a rendezvous runs {times} times on core 0 and 1"
        self.complain(text, found[0], [_label(1, "is at", found[-1])])
        return False

    def instructions(self, found: Sequence[Instruction]) -> bool:
        """One instruction of each core."""
        first, last = found[0], found[-1]
        others = [_label(1, "is at", last)] if len(found) > 1 else []
        if any(one.row is not first.row for one in found):
            text = f"core 0 comes to {_name(first)} here, and core 1 to {_name(last)}"
            self.complain(text, first, others)
            return False
        facts = [one.facts(self.target) for one in found]
        wrong = first.row.rendezvous_rule(facts) if first.row.rendezvous_rule else None
        wrong = wrong or _engines(found, facts) or _tensors(found)
        if wrong is not None:
            self.complain(wrong.message, first, others, wrong.help)
        return wrong is None

    def complain(self, text: str, item: Item, labels: Sequence[Label], help: str = "") -> None:
        calls = [Label(span, "called from here") for span in item.at.user_frames()[1:]]
        advice = help or "let both cores reach the same rendezvous in the same order"
        self.report.error(SLUG, text, item.at.primary, labels=[*labels, *calls], help=advice)


def _with_rendezvous(body: Body) -> Iterator[Item]:
    for item in body:
        if isinstance(item, Instruction):
            if item.row.is_rendezvous:
                yield item
        elif any(True for _ in _with_rendezvous(item.body)):
            yield item


def _name(item: Item) -> str:
    return "a device loop" if isinstance(item, Loop) else item.row.name


def _label(core: int, what: str, item: Item) -> Label:
    span: Span = item.at.primary
    return Label(span, f"core {core} {what} {_name(item)}")


def _engines(found: Sequence[Instruction], facts: Sequence[Facts]) -> Violation | None:
    """All cores use the same engine."""
    names = [_engine(one, fact).value for one, fact in zip(found, facts, strict=True)]
    if len(set(names)) == 1:
        return None
    text = f"{found[0].row.name}: runs on {names[0]} on core 0 and on {names[-1]} on core 1"
    return Violation(SLUG, text, help="pass the same `engine` on both cores")


def _engine(one: Instruction, facts: Facts) -> Engine:
    return one.engine or one.row.choose(facts)


def _tensors(found: Sequence[Instruction]) -> Violation | None:
    """What the cores share is one tensor."""
    first = found[0]
    for index, operand in enumerate(first.operands):
        rule = first.row.operands[index]
        if not isinstance(operand, View | AccessPattern) or rule.access is not Access.ORDER:
            continue
        other = found[-1].operands[index]
        if isinstance(other, View | AccessPattern) and other.tensor is not operand.tensor:
            text = (
                f"{first.row.name}: core 0 synchronises on `{operand.tensor.name}` and core 1 on "
                f"`{other.tensor.name}`"
            )
            return Violation(SLUG, text, help="pass the same tensor on both cores")
    return None
