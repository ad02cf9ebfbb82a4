"""The order of the stages, and the only module that knows it.

    kernel.py → parse → resolve → specialise → check → lower → depend → allocate → schedule
              → search → emit

`compile_source` runs all stages, `compile_text` those after a printed program. The results of
lower, allocate and schedule are proven by their audits, and the result of emit is verified, in
every compilation. A finding of theirs is a bug of nkic and never the kernel's fault, so it is an
`AuditFailed`, not a diagnostic.
"""

from __future__ import annotations

import resource
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import PurePath
from time import perf_counter_ns
from typing import Any, NamedTuple, TypeAlias

from nkic import __version__, prove
from nkic.artifact import assemble, pace
from nkic.artifact.container import unpack
from nkic.artifact.encode import write
from nkic.artifact.read import load as read_artifact
from nkic.artifact.records import Executable
from nkic.artifact.verify import verify
from nkic.base.collector import without_collector
from nkic.base.diagnostics import (
    ArtifactFailed,
    CompileFailed,
    Diagnostic,
    Label,
    Reporter,
    UsageFailed,
    code,
)
from nkic.base.limits import Limits
from nkic.base.source import NOWHERE, SHIPPED, SourceFile, Span
from nkic.base.text import decimal, plural
from nkic.base.watch import watched
from nkic.compiler import allocate, spill
from nkic.compiler.check import Locate, find, find_edges, find_shared_elements
from nkic.compiler.check_memory import (
    check_rendezvous,
    find_banks,
    find_foreign_accumulation,
    find_unread,
    find_unset_registers,
    find_unwritten,
)
from nkic.compiler.compiled import DEFAULT, Compiled, CompileOptions, StageTiming
from nkic.compiler.depend import depend
from nkic.compiler.emit import emit
from nkic.compiler.lower import lower
from nkic.compiler.races import warn as warn_of_races
from nkic.compiler.schedule import schedule
from nkic.compiler.search import ScheduledProgram, fit, search
from nkic.compiler.warnings import warn
from nkic.language import library
from nkic.language.trace import here
from nkic.machine.targets import Buffer
from nkic.program import effects
from nkic.program import text as program_text
from nkic.program.overlap import Groups
from nkic.program.program import (
    DependenceGraph,
    Instruction,
    Loop,
    Program,
    Schedule,
    instructions,
    paths,
)
from nkic.source.bind import Load
from nkic.source.bindings import Kernel, Resolved
from nkic.source.parse import parse
from nkic.source.resolve import list_kernels as kernels_of
from nkic.source.resolve import resolve
from nkic.specialise import PROVIDED, native, specialise
from nkic.specialise.request import Request

# ---- The build notes that a file carries --------------------------------------------------------


def build_notes(ordered: Schedule, level: int) -> dict[str, str]:
    """Return the producer, options and resource use of a build; the program does not depend on
    them. Of the levels only 0 is noted, which keeps the author's order.
    """
    program = ordered.program
    return {
        "producer": f"nkic {__version__}",
        **program.notes,
        "serial": "yes" if ordered.serial else "no",
        "sbuf_peak": str(allocate.peak(program, Buffer.SBUF)),
        "psum_peak": str(allocate.peak(program, Buffer.PSUM)),
        "machine": program.target.machine or "default",
        "estimate_ns": f"{ordered.estimate_ns:.0f}",
        **({"level": "0"} if not level else {}),
    }


def timed(executable: Executable, ordered: Schedule) -> Executable:
    """Replace the scheduler's estimate with the simulated time of a run, if it can be determined.

    It is the scheduler's own simulated time, or else that of the records.
    """
    target = ordered.program.target
    picoseconds: int | None = round(ordered.estimate_ns * 1000)
    if not ordered.is_timed:
        picoseconds = pace.duration(executable, target.used_by(executable.cores))
    if picoseconds is None:
        return executable
    cycles = -(-picoseconds * target.base_clock_mhz // 1_000_000)
    timing = {"estimate_ns": f"{picoseconds / 1000:.0f}", "estimate_cycles": str(cycles)}
    return replace(executable, meta={**executable.meta, **timing})


# ------------------------------------------------------------------------------------------------
# Programs that exceed SBUF: spill tiles to HBM if the user asks for it, and report them.
# Otherwise the error says how many bytes spilling would move.

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
    """A program and graphs, both again with addresses and reuse; `spilled` if tiles wait in HBM."""

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
    """Spill to the largest share of SBUF in which everything can be allocated; None without one."""
    for share in SHARES if first.enough else ():
        spilled = first if share == 1.0 else spill.spill(lowered, share)
        graphs = depend(spilled.program)
        with suppress(CompileFailed):
            placed, reusing = allocate.allocate(spilled.program, graphs, Reporter(1))
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
    """Return a warning that names the spilled tensors, their declarations, and their traffic."""
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


# --------------------------------------------------------------------------------------------------

STAGES = {
    "parse": "source text to a syntax tree",
    "resolve": "names, imports, what the kernel reaches, the kernel subset",
    "specialise": "the kernel evaluated for its arguments: instructions and device loops",
    "check": "every instruction against the instruction table",
    "lower": "views to access patterns, engines chosen, accumulation decided",
    "lower-audit": "proof: every recorded instruction is there once, with the same operands",
    "depend": "the dependences between instructions",
    "allocate": "addresses in SBUF and PSUM",
    "schedule": "a stream of instructions per engine and queue, ordered by semaphores",
    "search": "other addresses and orders, if engines wait longer than necessary",
    "allocate-audit": "proof: no two live tensors share a byte, all are inside their memories",
    "schedule-audit": "proof: conflicting accesses of a core are in program order, and there is "
    "no deadlock",
    "emit": "streams to records",
    "verify": "proof: the records satisfy the rules that the runner enforces",
    "write": "records to the bytes of the file",
    "file-audit": "proof: the bytes, read back, contain what was proven",
}
ABOUT_ARGUMENTS = {"unknown-argument", "argument-type-missing"}  # errors of the command line
SCHEDULE = ".sched"  # the suffix of a printed schedule
ASSEMBLY = ".asm"  # the suffix of printed records
IR = ".ir"
PRINTED = (IR, SCHEDULE, ASSEMBLY)  # the suffixes of programs in the text form
SCHEDULED = (SCHEDULE, ASSEMBLY)  # those that are not scheduled again
# Why they take fewer options than a kernel's source.
IS_DESCRIBED = "a printed program already has its kernel, target and arguments"
IS_SCHEDULED = "a printed schedule is not scheduled again"
LAST_CHECK = "schedule-audit"  # no later stage finds errors in a kernel


class AuditFailed(Exception):
    """A stage produced a wrong program: a bug of nkic."""

    def __init__(self, stage: str, findings: Sequence[object]) -> None:
        self.stage = stage
        more = f", and {len(findings) - 1} more" if len(findings) > 1 else ""
        super().__init__(f"{stage} produced a wrong program: {findings[0]}{more}")


Step = tuple[str, Any]  # a stage's name, and its result
Find = Callable[[str], SourceFile | None]  # returns a file of the kernel by its path


def compile_source(
    source: SourceFile,
    request: Request,
    load: Load,
    options: CompileOptions = DEFAULT,
    compiled: Compiled | None = None,
) -> Compiled:
    """Compile a kernel's file. `load` returns the files of imported modules.

    Raises `CompileFailed` with every error found, or `UsageFailed` for arguments that the kernel
    does not have. `compiled`, if given, is filled stage by stage: after a failure it holds the
    results until then.
    """
    report = Reporter(options.max_errors)
    steps = _from_source(source, request, load, report, options)
    return _run(steps, report, options, compiled or Compiled(source))


def compile_text(
    text: SourceFile,
    find: Find,
    options: CompileOptions = DEFAULT,
    compiled: Compiled | None = None,
) -> Compiled:
    """Compile a printed program: the text of `--emit ir`, `lowered`, `allocated`, `sched` or `asm`.

    Schedules and listings are recognised by their suffix. A schedule is proven unchanged; records
    are verified, as the runner verifies an untrusted file. `find` returns the kernel's files if
    they are available. Raises as `compile_source` does.
    """
    report = Reporter(options.max_errors)
    begin = {SCHEDULE: _from_schedule, ASSEMBLY: _from_assembly}.get(
        PurePath(text.path).suffix, _from_text
    )
    steps = begin(text, find, report, options)
    return _run(steps, report, options, compiled or Compiled(text))


class Tracing(NamedTuple):
    """A live kernel that was traced and is yet to be compiled."""

    traced: native.Traced
    report: Reporter


def trace_live(
    kernel: native.LiveKernel, request: Request, options: CompileOptions = DEFAULT
) -> Tracing:
    """Call a live function to trace its program; this replaces parse, resolve and specialise.

    Raises `CompileFailed`, and whatever the function itself raises.
    """
    report = Reporter(options.max_errors)
    try:
        traced = native.trace_kernel(kernel, request, report, parse)
    except CompileFailed as failure:
        _refuse_arguments(report)
        report.settle()
        failed = CompileFailed(sorted(report.all, key=_span_of))
        failed.frames = failure.frames
        raise failed from failure
    _refuse_arguments(report)
    program = replace(traced.program, notes=request.notes)
    return Tracing(traced._replace(program=program), report)


def compile_traced(tracing: Tracing, options: CompileOptions = DEFAULT) -> Compiled:
    """Compile the result of `trace_live`. Raises `CompileFailed`."""
    traced, report = tracing
    locate = _locate(traced.resolved)
    steps = _from_program(traced.program, traced.sources, locate, report, options)
    return _run(steps, report, options, Compiled(traced.resolved.kernel.module.source))


def list_kernels(source: SourceFile) -> tuple[Kernel, ...]:
    return kernels_of(source, parse)


def _from_source(
    source: SourceFile, request: Request, load: Load, report: Reporter, options: CompileOptions
) -> Iterator[Step]:
    tree = parse(source)
    yield "parse", tree

    resolved = resolve(
        source,
        request.kernel,
        load=load,
        parse=lambda file: tree if file is source else parse(file),
        provided=PROVIDED,
        report=report,
        profile=request.profile,
        **_entry(request),
    )
    if report.errors:
        report.settle()
    report.stop_if_errors()
    yield "resolve", resolved

    yield from _from_program(
        _specialised(resolved, request, report, options.limits),
        {path: module.source for path, module in resolved.library.modules.items()},
        _locate(resolved),
        report,
        options,
    )


def _entry(request: Request) -> dict[str, Any]:
    """Return the arguments of `resolve` for a kernel that is a function of a running program."""
    entry = request.entry
    if entry is None:
        return {}
    function = entry.function
    cells = {name for name, _ in function.cells}

    def names(module: str) -> frozenset[str]:
        globals_used = entry.names(module)
        return globals_used | cells if module == function.module else globals_used

    return {"name": function.module, "line": function.line, "supplied": names}


def _from_text(
    text: SourceFile, find: Find, report: Reporter, options: CompileOptions
) -> Iterator[Step]:
    with _read(text, report):
        program = program_text.read_program(text.text)
    steps = _from_program(program, _sources(program, find), None, report, options)
    yield from _blaming_text(steps, text, report)


def _blaming_text(steps: Iterator[Step], text: SourceFile, report: Reporter) -> Iterator[Step]:
    """Report what the proofs find in a printed program, and what the runner would find in the file,
    as errors in the text.
    """
    try:
        for step in steps:
            if step[0] == "write":
                read_artifact(step[1])
            yield step
    except ArtifactFailed as failure:
        reasons = "; ".join(d.message for d in failure.diagnostics)
        report.fatal("bad-program-text", f"`{text.path}` is not a program: {reasons}")
    except AuditFailed as failure:
        report.fatal("bad-program-text", f"`{text.path}` cannot be run as a program: {failure}")


def _from_schedule(
    text: SourceFile, find: Find, report: Reporter, options: CompileOptions
) -> Iterator[Step]:
    """Continue a printed schedule with the proofs."""
    with _read(text, report):
        ordered = program_text.read_schedule(text.text)
    program = ordered.program
    yield "specialise", program
    yield "allocate", program
    yield "schedule", ordered
    yield "search", ScheduledProgram(program, (), ordered)
    steps = _proven(program, ordered, _sources(program, find), report, options)
    yield from _blaming_text(steps, text, report)


def _from_assembly(
    text: SourceFile, find: Find, report: Reporter, options: CompileOptions
) -> Iterator[Step]:
    """Turn printed records into a file if they verify; without a program nothing can be proven."""

    def steps() -> Iterator[Step]:
        executable = assemble.assemble(text.text)
        yield "emit", executable
        verify(executable)
        yield "verify", None
        yield "write", write(executable, embed_source=options.embed_source)

    yield from _blaming_text(steps(), text, report)


@contextmanager
def _read(text: SourceFile, report: Reporter) -> Iterator[None]:
    """Report an unreadable program text as an error in the file."""
    try:
        yield
    except (ValueError, LookupError, TypeError, SyntaxError, RecursionError) as error:
        report.fatal("bad-program-text", f"`{text.path}` is not a program: {error}")


def _sources(program: Program, find: Find) -> dict[str, SourceFile]:
    shipped = {file.path: file for file in library.sources().values()}
    source_files = {path: shipped.get(path) or find(path) for path in paths(program)}
    return {path: source for path, source in source_files.items() if source is not None}


def _from_program(
    program: Program,
    sources: Mapping[str, SourceFile],
    locate: Locate | None,
    report: Reporter,
    options: CompileOptions,
) -> Iterator[Step]:
    """Run the stages from the program on. A result that only one stage reads is freed after it."""
    yield "specialise", program
    if report.full:
        raise CompileFailed(report.all)
    if options.machine is not None:
        program = replace(program, target=options.machine.applied(program.target))
    groups = _check(program, locate, report)
    yield "check", None

    lowered = lower(program, report, groups)
    del groups
    yield "lower", lowered
    _prove("lower", prove.prove_lowered(program, lowered))
    del program
    yield "lower-audit", None
    find_unwritten(lowered, report)
    find_unset_registers(lowered, report)
    find_unread(lowered, report)
    find_shared_elements(lowered, report)
    find_foreign_accumulation(lowered, report)

    graphs = depend(lowered)
    yield "depend", graphs

    fitted = fit_or_spill(lowered, graphs, report, options.spill)
    _prove("spill", prove.prove_spilled(lowered, fitted.lowered))
    lowered, graphs, placed, reusing, _ = fitted
    del fitted
    yield "allocate", placed

    if options.frees_early(placed):  # needed only if the schedule can be shortened
        effects.forget()
        graphs, reusing = (), tuple([DependenceGraph(graph.edges) for graph in reusing])
    ordered = schedule(placed, reusing, options.serial, options.level == 0)
    yield "schedule", ordered

    scheduled = ScheduledProgram(placed, reusing, ordered)
    if options.level and not options.serial:
        # computed again if they were freed
        scheduled = search(lowered, lambda: graphs or depend(lowered), scheduled, options.level)
    placed, ordered = scheduled.placed, scheduled.schedule
    yield "search", scheduled
    graphs = reusing = ()
    del scheduled
    find_banks(placed, report)
    report.stop_if_errors()
    notes = build_notes(ordered, options.level)
    if len(ordered.cores) == 1:
        effects.forget()  # from here on, only races between several cores need them
    yield from _proven(lowered, ordered, sources, report, options, notes)


def _check(program: Program, locate: Locate | None, report: Reporter) -> Groups:
    """Report the errors and warnings of a program, and return its groups of like instructions.

    Raises `CompileFailed` if there are errors.
    """
    sound, groups = find(program, report, locate)
    if not report.errors:
        check_rendezvous(program, report)
        find_edges(program, report)
    if report.errors:
        later = Reporter(report.max_errors)
        with suppress(Exception):  # the missing instructions must not cause new errors
            lowered = lower(sound, later)
            allocate.allocate(lowered, depend(lowered), later)
        for diagnostic in later.all:
            report.add(diagnostic)
        raise CompileFailed(report.all)
    warn(program, groups, report)
    return groups


def _proven(
    lowered: Program,
    ordered: Schedule,
    sources: Mapping[str, SourceFile],
    report: Reporter,
    options: CompileOptions,
    notes: Mapping[str, str] | None = None,
) -> Iterator[Step]:
    """Run the proofs, and make the file with them; `notes`, if missing, are made after them."""
    readings = prove.read(lowered)
    _prove("allocate", prove.prove_addresses(ordered.program, readings))
    yield "allocate-audit", None

    _prove("schedule", prove.prove_order(lowered, ordered, readings))
    del readings
    warn_of_races(ordered, report)
    effects.forget()
    yield "schedule-audit", None

    executable = emit(ordered, sources, notes or build_notes(ordered, options.level))
    executable = timed(executable, ordered)
    yield "emit", executable
    try:
        verify(executable)
        yield "verify", None
        data = write(executable, embed_source=options.embed_source)
        yield "write", data
    except ArtifactFailed as failure:
        # A program too large for the file format is the kernel's fault.
        if any(d.code.slug == "artifact-limit" for d in failure.diagnostics):
            raise CompileFailed(failure.diagnostics) from failure
        raise AuditFailed("emit", [d.message for d in failure.diagnostics]) from failure
    sections = {name: section.data for name, section in unpack(data).sections.items()}
    _prove("write", prove.prove_file(ordered, sections))
    yield "file-audit", None


def _run(
    steps: Iterator[Step], report: Reporter, options: CompileOptions, compiled: Compiled
) -> Compiled:
    """Take the steps up to `options.last`, and return diagnostics in source order."""
    try:
        memory = options.limits.memory if options.limits is not None else None
        watch = watched(options.seconds, lambda: here().span, options.see, memory)
        with without_collector(), watch:
            _take(steps, options, compiled)
    except CompileFailed as failure:
        raise CompileFailed(sorted(failure.diagnostics, key=_span_of)) from failure
    compiled.warnings = tuple(sorted(report.all, key=_span_of))
    return compiled


def _take(steps: Iterator[Step], options: CompileOptions, compiled: Compiled) -> None:
    """Record the result and the time of each step, and free what nothing will read."""
    before = perf_counter_ns()
    for stage, result in steps:
        now = perf_counter_ns()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        compiled.timings.append(StageTiming(stage, now - before, peak))
        compiled.results[stage] = result
        if stage == "search":
            compiled.first_plan = compiled.results["schedule"]
            compiled.results |= {"allocate": result.placed, "schedule": result.schedule}
        del result
        if stage == options.last:
            return
        compiled.free_results(stage, options.keep)
        before = perf_counter_ns()


def _span_of(diagnostic: Diagnostic) -> Span:
    return diagnostic.primary.span if diagnostic.primary is not None else NOWHERE


def _specialised(
    resolved: Resolved, request: Request, report: Reporter, limits: Limits | None
) -> Program:
    """Return the program, unless the arguments are wrong, there are too many errors, or its size
    ran away. With other errors it continues to check, which may find more.
    """
    try:
        program = specialise(resolved, request, report, limits)
    except CompileFailed as failure:
        _refuse_arguments(report)
        report.settle()
        raise CompileFailed(report.all) from failure
    _refuse_arguments(report)
    report.settle()
    if report.full or any(d.code.slug == "runaway" for d in report.errors):
        raise CompileFailed(report.all)
    return replace(program, notes=request.notes)


def _refuse_arguments(report: Reporter) -> None:
    """Turn errors of the command line into `UsageFailed`: they are not the kernel's fault."""
    if any(d.code.slug in ABOUT_ARGUMENTS for d in report.errors):
        raise UsageFailed(report.all)


def _locate(resolved: Resolved) -> Locate:
    """Return a function that finds an instruction's argument in the user's source."""

    def locate(instruction: Instruction, parameter: str, within: Collection[str] = ()) -> Span:
        location, parameters = instruction.at, instruction.row.parameters
        if location.span.path.startswith(SHIPPED):
            return location.primary
        position = parameters.index(parameter) if parameter in parameters else None
        return resolved.locate(location, parameter, position, within)

    return locate


def _prove(stage: str, findings: Sequence[object]) -> None:
    """Raise `AuditFailed` if there are findings."""
    if findings:
        raise AuditFailed(stage, findings)
