"""The error for a race found by fuzzing: what two instructions do to the same bytes."""

from __future__ import annotations

from collections.abc import Iterator

from nkic.base.diagnostics import Diagnostic, Label, make
from nkic.base.text import clean, listed
from nkic.neff.places import source_of
from nkic.neff.records import Executable, PatternRecord
from nkic.simulate.debug.fuzz import Party, Race
from nkic.simulate.debug.writes import line_of, written


def diagnostic(executable: Executable, race: Race, seed: int) -> Diagnostic:
    """Return the error."""
    drawn = race.drawn
    order = f"order {drawn.number} of seed {seed}, with {drawn.transfers.value} DMA"
    note = f"{order}, gives {race.difference}"
    first, second = race.first, race.second
    help = "compile the kernel again: nkic proves that its output orders all conflicts"
    if first is None or second is None:
        text = "the outputs depend on an order that no semaphore enforces"
        return make("order-race", text, notes=[note], help=help)
    if first.runner.unit != second.runner.unit:
        help = "put `nisa.core_barrier` between them: nothing else orders two cores"
    both = listed(_what(executable, party) for party in (first, second))
    conflicts = sorted(set(_conflicts(executable, race, first, second)))
    over = f" over {listed(conflicts)}" if conflicts else " over a register or an engine's state"
    second_span, first_span = (
        source_of(executable, party.item.record.place) for party in (second, first)
    )
    return make(
        "order-race",
        f"{both} race{over}: no semaphore orders the two",
        second_span,
        labels=[Label(first_span, "the normal run executes this one first")] if first_span else [],
        notes=[f"{note}; the order of these two instructions makes the difference"],
        help=help,
    )


def _what(executable: Executable, party: Party) -> str:
    record = party.item.record
    name = record.row.name if record.row is not None else "nothing"
    return f"{name} of line {line_of(executable, record.place)} on {party.runner.name}"


def _conflicts(executable: Executable, race: Race, a: Party, b: Party) -> Iterator[str]:
    """Yield the names of the tensors over which they conflict.

    They conflict if one of two accesses is a write and they may share bytes.
    """
    memory = race.machine.memories[a.runner.rank]
    names = executable.tensors
    for first, first_writes in _accesses(executable, race, a):
        for second, second_writes in _accesses(executable, race, b):
            if (first_writes or second_writes) and memory.may_overlap(
                first.standing, second.standing
            ):
                both = {names[first.tensor].name, names[second.tensor].name}
                yield listed(f"`{clean(name)}`" for name in sorted(both))


def _accesses(
    executable: Executable, race: Race, party: Party
) -> Iterator[tuple[PatternRecord, bool]]:
    runner, item = party
    target = race.machine.options.target_of(executable)
    writes = written(executable, target, runner, item)
    for operand in item.record.operands:
        if isinstance(operand, PatternRecord):
            yield operand, operand in writes.get(operand.tensor, ())
