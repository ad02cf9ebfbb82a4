"""Break a case in every way, and find which check notices."""

from collections import Counter
from collections.abc import Iterable, Iterator
from random import Random
from typing import Any

from nkic.artifact.records import Executable
from nkic.artifact.verify import verify, verify_ordered
from nkic.base.diagnostics import ArtifactFailed, CompileFailed, LimitHit, ProgramFault, Reporter
from nkic.compiler.allocate import allocate
from nkic.compiler.check import find_shared_elements
from nkic.compiler.check_memory import (
    find_foreign_accumulation,
    find_unread,
    find_unset_registers,
    find_unwritten,
)
from nkic.compiler.depend import depend
from nkic.compiler.emit import emit
from nkic.compiler.schedule import schedule as scheduled
from nkic.program.program import Program
from nkic.prove import prove_addresses, prove_lowered, prove_order, read
from tests.faults import inject
from tests.faults.cases import Subject, outcome
from tests.faults.inject import Fault
from tests.faults.lowered import of_lowered
from tests.harness.proofs import differences

# The checks, in their order.
PROOF, VERIFIER, RACES, RUNNER, SAME, SILENT = (
    *("proof", "verifier", "race check", "runner", "same values", "silent"),
)
NOTICED = (PROOF, VERIFIER, RACES, RUNNER, SAME, SILENT)
Key = tuple[str, str, str]  # of what, kind, who
Table = Counter[Key]
WHATS = ("lowered", "schedule", "allocation", "file", "lowered, not proven", "file, not proven")
UNPROVEN = {"lowered, not proven", "file, not proven"}


def sweep(subject: Subject, limit: int | None, table: Table, unproven: int = 10) -> Iterator[str]:
    """Count in `table`; yield the faults that changed values silently, or that the race check finds
    and the proofs do not.

    Try at most `limit` of a kind, and `unproven` of a kind for readers of the file who do not have
    the program; and a third of these for the stages after lower, without lower's own proof.
    """
    recorded, lowered = subject.stage("specialise"), subject.stage("lower")
    broken_lowered = list(of_lowered(lowered))
    for fault in _chosen(broken_lowered, limit, subject.name):
        broken = fault.make()
        who = PROOF if prove_lowered(recorded, broken) else _compiled(subject, broken)
        yield from _note(table, subject, "lowered", fault, who)
    for fault in _chosen(broken_lowered, unproven // 3, subject.name):
        table["lowered, not proven", fault.kind, _compiled(subject, fault.make())] += 1
    schedule, placed = subject.stage("schedule"), subject.stage("allocate")
    executable = subject.compiled.executable
    of_streams = [*inject.of_schedule(schedule), *inject.of_offsets(schedule)]
    # The graphs with the edges for reused bytes are not kept: compute them again.
    edges = list(inject.of_edges(placed, _graphs(subject)))
    for fault in _chosen([*of_streams, *edges], limit, subject.name):
        broken = fault.make()
        who = PROOF if subject.order(broken) else _run(subject, emit(broken, {}))
        yield from _note(table, subject, "schedule", fault, who)
    for fault in _chosen(inject.of_addresses(placed), limit, subject.name):
        who = _allocation(subject, fault.make())
        yield from _note(table, subject, "allocation", fault, who)
    for fault in _chosen(inject.of_records(executable), limit, subject.name):
        broken = fault.make()
        who = PROOF if differences(schedule, broken) else _run(subject, broken)
        yield from _note(table, subject, "file", fault, who)
    for fault in _chosen(inject.of_records(executable), unproven, subject.name):
        table["file, not proven", fault.kind, _run(subject, fault.make())] += 1


def _note(table: Table, subject: Subject, what: str, fault: Fault, who: str) -> Iterator[str]:
    table[what, fault.kind, who] += 1
    if who in (SILENT, RACES):
        yield f"{subject.name}: {what}, {fault.kind}: {who}"


def _compiled(subject: Subject, lowered: Program) -> str:
    """Try the stages after lower, and their proofs; a stage that fails counts as the verifier."""
    report = Reporter()
    try:
        find_unwritten(lowered, report)
        find_unset_registers(lowered, report)
        find_unread(lowered, report)
        find_shared_elements(lowered, report)
        find_foreign_accumulation(lowered, report)
        report.stop_if_errors()
        placed, graphs = allocate(lowered, depend(lowered), report)
        ordered, readings = scheduled(placed, graphs), read(lowered)
        if prove_addresses(placed, readings) or prove_order(lowered, ordered, readings):
            return PROOF
        executable = emit(ordered, {})
    except (CompileFailed, ValueError, LookupError, TypeError, AssertionError, AttributeError):
        return VERIFIER
    return _run(subject, executable)


def _graphs(subject: Subject) -> Any:
    lowered = subject.stage("lower")
    return allocate(lowered, depend(lowered), Reporter())[1]


def _allocation(subject: Subject, placed: Program) -> str:
    """Yield faults in addresses, with the checks of addresses, then those of their schedule."""
    if subject.addresses(placed):
        return PROOF
    ordered = scheduled(placed, _graphs(subject))
    return PROOF if subject.order(ordered) else _run(subject, emit(ordered, {}))


def _run(subject: Subject, executable: Executable) -> str:
    try:
        verify(executable)
    except ArtifactFailed:
        return VERIFIER
    try:
        verify_ordered(executable)
    except ArtifactFailed:
        return RACES
    try:
        found = outcome(executable, subject.inputs, races=True)
    except (ProgramFault, LimitHit, ArtifactFailed):
        return RUNNER
    return SAME if found == subject.outputs else SILENT


def _chosen(faults: Iterable[Fault], limit: int | None, seed: str) -> list[Fault]:
    """Return all faults, or `limit` of each kind, always the same ones."""
    found = list(faults)
    if limit is None:
        return found
    rng, kept = Random(seed), []
    for kind in dict.fromkeys(fault.kind for fault in found):
        own = [fault for fault in found if fault.kind == kind]
        kept += own if len(own) <= limit else rng.sample(own, limit)
    return kept


def markdown(table: Table) -> str:
    """Return the table of docs/faults.md."""
    lines = ["| of | fault | all | " + " | ".join(NOTICED) + " |", "|---|---|" + "---:|" * 7]
    for what in WHATS:
        kinds = dict.fromkeys(kind for w, kind, _ in table if w == what)
        for kind in sorted(kinds):
            cells = [table[what, kind, who] for who in NOTICED]
            figures = " | ".join(f"{n:,}" for n in (sum(cells), *cells))
            lines.append(f"| {what} | {kind} | {figures} |")
    return "\n".join(lines) + "\n"
