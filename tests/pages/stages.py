"""Summaries of every stage's result on a random program: a few readable figures, and a short hash
of the text of each result.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from random import Random

from nkic.artifact.records import Executable
from nkic.artifact.verify import verify, verify_ordered
from nkic.base.diagnostics import ArtifactFailed, CompileFailed, Diagnostic, Remark, Reporter
from nkic.base.source import CallChain, Span
from nkic.compiler.allocate import allocate, peak
from nkic.compiler.check import check
from nkic.compiler.depend import depend
from nkic.compiler.emit import emit
from nkic.compiler.lower import lower
from nkic.compiler.races import warn
from nkic.compiler.remarks import of_allocate as allocate_remarks
from nkic.compiler.remarks import of_lower as lower_remarks
from nkic.compiler.remarks import of_schedule as schedule_remarks
from nkic.compiler.schedule import schedule
from nkic.machine.targets import Buffer
from nkic.program.program import Body, DependenceGraph, Item, Loop, Program, Schedule, slots
from nkic.program.text import graph_text, program_text, schedule_text
from nkic.prove import Finding, prove_addresses, prove_lowered, prove_order, read
from tests.faults import inject
from tests.faults.inject import Fault
from tests.harness.bless import short_sum
from tests.harness.proofs import differences
from tests.harness.whole_programs import random_whole

Graphs = tuple[DependenceGraph, ...]
Setting = tuple[int, int, bool]  # SBUF in bytes, and the arguments `rest` and `pack` of allocate
WAYS = (("scheduled", False, False), ("serial", True, False), ("in order", False, True))
FAULTS = 6  # maximum number of faults of a kind
LINES = 3  # number of neighbouring instructions that share a line of the kernel


def drawn(seed: int) -> str:
    """Return the text of the seed's random program, with lines: one core, or two for odd seeds.
    Drawing it takes seconds, which is why the texts are kept.
    """
    rng = Random(seed)
    found = random_whole(rng, rng.randrange(1, 4), rng.randrange(2, 12), 1 + seed % 2)
    return program_text(replace(found, cores=tuple(_with_lines(body) for body in found.cores)))


def _with_lines(body: Body) -> Body:
    made: list[Item] = []
    for item in body:
        if isinstance(item, Loop):
            made.append(replace(item, body=_with_lines(item.body)))
            continue
        line = 1 + item.number // LINES
        span = Span("k.py", line, 5 + item.number % LINES, line, 40)
        made.append(item._replace(at=CallChain(span)))
    return tuple(made)


def page(found: Program, settings: Sequence[Setting]) -> Iterator[str]:
    """Summarise a program after each stage, for several sizes of memory."""
    report = Reporter()
    check(found, report)
    try:
        lowered = lower(found, report)
    except CompileFailed:
        yield f"refused: {_said(report.all)}"
        return
    assert prove_lowered(found, lowered) == []
    graphs = depend(lowered)
    yield f"lowered: {_text(program_text(lowered))}, {_remarks(lower_remarks(found, lowered))}"
    yield f"depend: {_graphs(graphs)}"
    for size, rest, pack in settings:
        tight = replace(lowered, target=replace(lowered.target, sbuf_usable=size))
        said = "\n  ".join(_allocated(tight, graphs, rest, pack))
        yield f"in {size:,}, rest {rest}{'' if pack else ', not packed'}: {said}"


def _allocated(lowered: Program, graphs: Graphs, rest: int, pack: bool) -> Iterator[str]:
    report = Reporter()
    try:
        placed, graphs = allocate(lowered, graphs, report, rest, pack)
    except CompileFailed:
        yield f"does not fit: {_said(report.all)}"
        return
    peaks = [peak(placed, buffer) for buffer in (Buffer.SBUF, Buffer.PSUM)]
    made = _remarks(allocate_remarks(placed, graphs, rest))
    yield f"{_text(program_text(placed))}, peaks {peaks}, {_graphs(graphs)}, {made}"
    for way, serial, in_order in WAYS:
        done = schedule(placed, graphs, serial, in_order)
        made = _remarks(schedule_remarks(placed, graphs, serial, in_order))
        yield f"{way}: {_scheduled(done)}, {made}"


def _scheduled(done: Schedule) -> str:
    all_ = [slot for core in done.cores for stream in core for slot in slots(stream.items)]
    waits, signals = sum(len(s.waits) for s in all_), sum(len(s.signals) for s in all_)
    report = Reporter()
    warn(done, report)
    times = f"{done.estimate_ns:.3f} ns, busiest {done.busiest_ns:.3f}, timed {done.is_timed}"
    streams = sum(map(len, done.cores))
    found = f"{streams} streams, {waits} waits, {signals} signals"
    return f"{found}, {times}, {_text(schedule_text(done))}, {_said(report.all)}"


def _text(text: str) -> str:
    return f"{text.count(chr(10))} lines {short_sum(text)}"


def _graphs(graphs: Graphs) -> str:
    kinds = Counter(e.kind for g in graphs for edges in g.edges.values() for e in edges)
    counts = " ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
    return f"{counts}, {_text(''.join(map(graph_text, graphs)))}"


def _remarks(found: Iterable[Remark]) -> str:
    all_ = [*found]
    text = "".join(f"{r.name} {r.kind} {r.span} {r.message} {dict(r.numbers)}\n" for r in all_)
    return f"{len(all_)} remarks {short_sum(text)}"


def _said(found: Sequence[Diagnostic]) -> str:
    lines = []
    for one in found:
        labels = [(label.span, label.text) for label in one.labels]
        lines.append(f"{one.code.slug} {one.message} {one.primary} {labels} {one.notes} {one.help}")
    slugs = " ".join(sorted({one.code.slug for one in found}))
    return f"{len(lines)} said {slugs} {short_sum(''.join(lines))}".replace("  ", " ")


# Faults, and the checks that find them.


def broken(found: Program, seed: int) -> Iterator[str]:
    """For each fault, list the rules that a proof or the verifier finds broken, and how often."""
    lowered = lower(found, Reporter())
    placed, graphs = allocate(lowered, depend(lowered), Reporter())
    effects = read(lowered)
    done = schedule(placed, graphs)
    file = emit(done, {})
    yield f"sound: {_found(prove_addresses(placed, effects))} {_judged(done, file)}"
    for fault in _some([*inject.of_schedule(done), *inject.of_offsets(done)], seed):
        yield f"{fault.kind}: {_found(prove_order(lowered, fault.make(), effects))}"
    for fault in _some([*inject.of_addresses(placed)], seed):
        yield f"{fault.kind}: {_found(prove_addresses(fault.make(), effects))}"
    for fault in _some([*inject.of_records(file)], seed):
        yield f"file, {fault.kind}: {_judged(done, fault.make())}"


def _some(faults: list[Fault], seed: int) -> Iterator[Fault]:
    for kind in dict.fromkeys(fault.kind for fault in faults):
        own = [fault for fault in faults if fault.kind == kind]
        yield from Random(seed).sample(own, min(FAULTS, len(own)))


def _found(findings: Sequence[Finding]) -> str:
    rules = Counter(finding.rule for finding in findings)
    text = "".join(map(str, findings))
    return (
        f"{' '.join(f'{rule} {n}' for rule, n in rules.items())} {short_sum(text)}" if text else "-"
    )


def _judged(done: Schedule, file: Executable) -> str:
    said = [_found(differences(done, file))]
    for judge in (verify, verify_ordered):
        try:
            judge(file)
            said.append("-")
        except ArtifactFailed as refused:
            said.append(_said(refused.diagnostics))
    return ", ".join(said)
