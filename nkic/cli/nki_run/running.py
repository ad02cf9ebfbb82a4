"""A run: read the file, bind the inputs, simulate, write, compare, report."""

from __future__ import annotations

import copy
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TextIO

from numpy.typing import NDArray

from nkic.artifact.read import info, load, open_file
from nkic.artifact.verify import verify_ordered
from nkic.base import files, levels
from nkic.base.diagnostics import Diagnostic, LimitHit, NkicError, ProgramFault, bad_value, make
from nkic.base.files import STANDARD
from nkic.base.text import clean, plural
from nkic.cli.common import Session
from nkic.cli.common.options import is_named
from nkic.cli.nki_run import debugging, outputs, reporting
from nkic.cli.nki_run.options import CommandLine, lines_of
from nkic.cli.nki_run.outputs import Writer
from nkic.machine.targets import TARGETS, load_machine
from nkic.report import profile, run_report
from nkic.report.figures import figures, run_options, trust_in
from nkic.report.resources import executions, resources
from nkic.report.run_report import RunReport
from nkic.report.verdict import QUESTION_EVENTS, Insight, insight
from nkic.simulate import Result, RunOptions, compare, simulate_ranks
from nkic.simulate.compare import Comparison
from nkic.simulate.expectations import transposed_input
from nkic.simulate.inputs import (
    BoundInputs,
    Numbers,
    Wanted,
    bind,
    load_expected,
    parse_fill,
    parse_inputs,
    signature_of,
)
from nkic.simulate.memory import check_memory
from nkic.simulate.outcome import MAX_ITERATIONS
from nkic.simulate.watching import Quit

if TYPE_CHECKING:
    from rich.progress import Progress

OUTPUTS_DIFFER = 1
JSON: dict[str, Any] = {"indent": 1, "allow_nan": False, "ensure_ascii": True}
Arrays = Mapping[str, NDArray[Any]]


def run_kernel(line: CommandLine, session: Session) -> int:
    lines = lines_of(line)
    wanted = [_wanted(each) for each in lines]
    options, fail_on = _options(line, session), _fail_on(line.fail_if)
    first = _RunCommand(lines[0], session)
    jobs = [first, *(first.of(command_line) for command_line in lines[1:])]
    bound = [job.bind(requested) for job, requested in zip(jobs, wanted, strict=True)]
    expected = [job.expected() for job in jobs]
    asked = line.dump or line.expect_at or line.changes or line.stop_at
    observers = debugging.Debugging(lines, session, first.settings) if asked else None
    arrays = [each.arrays for each in bound]
    started = time.perf_counter()
    try:
        results = _simulated(first, arrays, options, observers)
    except Quit:
        session.status("the run ended at the prompt; nothing was written")
        return 0
    seconds = time.perf_counter() - started if line.time else None
    session.lift_time_limit()
    divergences = _write(jobs, results, observers)
    done = []
    for job, bound_inputs, result, reference in zip(jobs, bound, results, expected, strict=True):
        compared = job.compare(result.outputs, reference)
        if line.ranks == 1 and not _passed(compared):
            job.find_cause(bound_inputs.arrays, result, options, reference)
        done.append((job, job.summary(bound_inputs, result, compared, options, seconds), compared))
    code = _report(done, line)
    if divergences:
        session.report(divergences)
    for _, run, _ in done:
        diagnostics = [
            make("not-finite", f"output `{clean(row.name)}` has {plural(count, f'{kind} element')}")
            for row in run.outputs
            for kind, count in (("nan", row.nan), ("inf", row.inf))
            if count and kind in fail_on
        ]
        if diagnostics:
            raise ProgramFault(diagnostics)
    if races := _races(first, arrays, options):
        raise ProgramFault(races)
    passed = all(_passed(compared) for _, _, compared in done)
    return code if passed and not divergences else OUTPUTS_DIFFER


def _simulated(
    job: _RunCommand,
    arrays: Sequence[Arrays],
    options: RunOptions,
    observers: debugging.Debugging | None,
) -> list[Result]:
    """Run all ranks, with a progress bar; a failure also names the races of `_races`."""
    total = executions(job.executable)
    observing = observers.observers if observers is not None else ()
    try:
        with shown(job.session, total and total * len(arrays)) as bar:
            watched = replace(options, watch=bar) if bar is not None else options
            return simulate_ranks(job.executable, arrays, watched, observing)
    except ProgramFault as fault:
        raise ProgramFault([*fault.diagnostics, *_races(job, arrays, options)]) from fault


def _write(
    jobs: Sequence[_RunCommand], results: Sequence[Result], observers: debugging.Debugging | None
) -> list[Diagnostic]:
    """Report remarks, write the outputs, and return the divergences from --expect-at."""
    for job, result in zip(jobs, results, strict=True):
        job.remark(result.remarks, ProgramFault)
    for job, result in zip(jobs, results, strict=True):
        job.writer.write(result.outputs, job.program_id, job.settings)
    if observers is None:
        return []
    return [
        divergence
        for rank, job in enumerate(jobs)
        for divergence in observers.finish(rank, job.line)
    ]


def _races(job: _RunCommand, arrays: Sequence[Arrays], options: RunOptions) -> list[Diagnostic]:
    """Return the races that other orders of the run reveal, if --fuzz-order is given."""
    if job.line.fuzz_order is None:
        return []
    return debugging.fuzz(job.session, job.executable, arrays, options, job.line.fuzz_order)


def _report(done: list[Done], line: CommandLine) -> int:
    """Report the figures and verdicts of every rank: as JSON on standard output, or in words.

    Returns the exit code of the budgets.
    """
    if line.json:
        runs = [job.record(run) for job, run, _ in done]
        document = runs[0] if len(runs) == 1 else {"ranks": runs}
        files.write(STANDARD, json.dumps({"schema": 1, **document}, **JSON) + "\n")
    code = 0
    for rank, (job, run, compared) in enumerate(done):
        if len(done) > 1:
            job.session.tell("rank", f"rank {rank}:", rank=rank)
        code = max(code, job.report(run, compared))
    return code


class _RunCommand:
    """A loaded and verified artifact, with the options of its run."""

    def __init__(self, line: CommandLine, session: Session) -> None:
        self.line = line
        self.session = session
        self.settings = outputs.tolerances_of(line)
        self.data = open_file(line.artifact, signed_by=line.require_signature)
        self.executable = load(self.data)
        if line.race_check is not False and line.fuzz_order is None:  # other orders find them
            verify_ordered(self.executable)
        session.sources = self.executable.sources.get
        self.signature = signature_of(self.executable)
        if not line.expect_at:  # with it, tolerances may be those of any tensor
            outputs.refuse_ignored(self.settings, self.signature)
        self.writer = Writer(line, session, self.signature)
        if line.fuzz_order is not None:
            debugging.orders_of(line.fuzz_order)
        if line.source or wants_reports(line):
            reporting.check(line, self.executable)
        self.rules = {p.name: self.settings.rule(p.name, p.dtype) for p in self.signature.outputs}
        self.insight: Insight | None = None
        self.cause = ""  # of outputs that are not as expected, if it is known

    def of(self, line: CommandLine) -> _RunCommand:
        """Return the job of another rank: the same artifact, other files."""
        job = copy.copy(self)
        job.line = line
        job.writer = Writer(line, self.session, self.signature)
        return job

    def bind(self, wanted: Wanted) -> BoundInputs:
        memory = self.session.limits.get("memory")
        check_memory(self.executable, int(memory) if memory else None, self.line.ranks)
        bound = bind(self.signature, wanted)
        self.remark(bound.remarks, NkicError)
        return bound

    def remark(self, diagnostics: Sequence[Diagnostic], failure: type[NkicError]) -> None:
        """Report remarks; raise `failure` with them if one is an error."""
        remarks = levels.judged(diagnostics, self.session.levels, self.executable.sources, failure)
        if remarks and self.session.verbosity >= 0:
            self.session.report(remarks)

    def expected(self) -> dict[str, Numbers]:
        if self.line.expected is None:
            return {}
        skipped = [name for name, rule in self.rules.items() if rule.mode == "skip"]
        return load_expected(self.signature, self.line.expected, skipped)

    def program_id(self) -> str:
        return info(self.data).artifact_id

    def compare(self, outputs: Arrays, expected: Mapping[str, Numbers]) -> list[Comparison]:
        return [
            compare.compare(p.name, outputs[p.name], p.dtype, expected[p.name], self.rules[p.name])
            for p in self.signature.outputs
            if p.name in expected
        ]

    def find_cause(
        self, inputs: Arrays, result: Result, options: RunOptions, expected: Mapping[str, Numbers]
    ) -> None:
        """Find out why outputs are not as expected, if other inputs tell it."""

        def is_expected(outputs: Arrays) -> bool:
            return _passed(self.compare(outputs, expected))

        self.cause = transposed_input(
            self.executable, inputs, result.instructions, options, is_expected
        )

    def summary(
        self,
        bound: BoundInputs,
        result: Result,
        compared: list[Comparison],
        options: RunOptions,
        seconds: float | None,
    ) -> RunReport:
        comparisons = [compare.as_json(comparison) for comparison in compared]
        run = figures(
            self.executable, self.program_id(), bound, result, options, comparisons, seconds
        )
        run = replace(run, trust=trust_in(result, options.target_of(self.executable)))
        self.insight = insight_of(result, self.line, self.session)
        if self.insight is None or not self.line.verdict:
            return run
        return replace(run, verdict=self.insight.verdict.as_json())

    def record(self, run: RunReport) -> dict[str, Any]:
        """Return the run for programs: with the costs of lines, if its time was analysed."""
        record = run_report.record(run)
        if self.insight is None:
            return record
        sources = self.executable.sources
        texts = reporting.sources(self.line, self.executable) if self.line.source else sources
        return profile.profile(self.insight, record, texts)

    def report(self, run: RunReport, compared: list[Comparison]) -> int:
        """Report figures and verdicts in words, unless JSON is requested, and errors in any case.

        Returns the exit code of --fail-if.
        """
        if not self.line.json:
            self._tell(run, compared)
        code = 0
        if self.insight is not None and wants_reports(self.line):
            code = reporting.write(self.line, self.session, self.insight, run)
        wrong = [
            compare.diagnostic(comparison, self.cause)
            for comparison in compared
            if not comparison.passed
        ]
        if wrong:
            self.session.report(wrong)
        return code

    def _tell(self, run: RunReport, compared: list[Comparison]) -> None:
        for text in run.prints:
            self.session.tell("print", text.lines(self.executable.cores), **vars(text))
        if left := run_report.left_out_line(run):
            self.session.tell("prints-left-out", left, count=run.prints_left_out)
        if not self.line.outputs and self.line.bless is None and self.session.verbosity >= 0:
            files.write(STANDARD, "".join(f"{row.line}\n" for row in run.outputs))
        for row in run.outputs:
            if row.error_bound is not None:
                bound = vars(row.error_bound)
                self.session.tell("error-bound", row.bound_line, output=row.name, **bound)
        for instruction in run.unbounded:
            self.session.tell(
                "unbounded", f"no error bound after {clean(instruction)}", instruction=instruction
            )
        used = resources(self.executable)
        self.session.tell("resources", used.used, resources=used.as_json())
        lines = [run_report.cycles_line(run, TARGETS[run.target]), run_report.device_line(run)]
        self.session.tell(
            "run",
            "\n".join(lines),
            cycles=run.cycles,
            time_ns=run.time_ns,
            launch_ns=run.launch_ns,
            likely_error_percent=run.trust.percent,
            machine=run.machine,
        )
        if self.insight is not None and self.line.verdict:
            verdict = self.insight.verdict
            self.session.tell("verdict", "\n".join(verdict.lines), verdict=verdict.as_json())
        for comparison in compared:
            if comparison.passed:
                facts = compare.as_json(comparison)
                self.session.tell("compare", compare.verdict(comparison), **facts)


Done = tuple[_RunCommand, RunReport, list[Comparison]]


def _passed(compared: Sequence[Comparison]) -> bool:
    return all(comparison.passed for comparison in compared)


def _options(line: CommandLine, session: Session) -> RunOptions:
    cycles, iterations = session.limit("cycles"), session.limit("iterations")
    return run_options(
        vars(line),
        os.environ,
        max_cycles=int(cycles) if cycles is not None else None,
        timeout_s=session.limit("time"),
        max_iterations=int(iterations or MAX_ITERATIONS),
        machine=load_machine(line.machine) if line.machine else None,
        trace=events_wanted(line, session),
    )


def _wanted(line: CommandLine) -> Wanted:
    files = line.input_files
    if len(files) > 1:
        raise bad_value("--inputs names two files", "put all arrays into one, or write NAME=@FILE")
    single = parse_inputs(filter(is_named, line.inputs))
    return Wanted(files[0] if files else None, single, parse_fill(line.fill), line.cast)


def _fail_on(text: str | None) -> list[str]:
    """Return the words of --fail-if that are kinds of values; the others are rules on figures."""
    kinds = [kind.strip() for kind in text.split(",")] if text is not None else []
    for kind in kinds:
        if kind not in ("nan", "inf") and ">" not in kind:
            message = f"--fail-if {clean(kind)}: expected FIGURE>LIMIT, nan or inf"
            raise bad_value(message, "for example cycles>+2%,sbuf_peak>24MiB,nan")
    return kinds


MAX_EVENTS = 100_000  # per rank; longer runs have no verdict
MAX_REPORTED = 1_000_000  # the same if a report was requested
MAX_QUESTION_EVENTS = 2_000_000  # events that are then run again, over all questions


def wants_reports(line: CommandLine) -> bool:
    """Whether an option needs the trace of the run."""
    return bool(line.report or line.against or line.baseline or ">" in (line.fail_if or ""))


def events_wanted(line: CommandLine, session: Session) -> int:
    """Return how many events a run has to keep for the requested reports."""
    if wants_reports(line):
        return MAX_REPORTED
    return MAX_EVENTS if session.verbosity >= 0 or line.json else 0  # for the likely error


def insight_of(result: Result, line: CommandLine, session: Session) -> Insight | None:
    """Return the analysis of a run; None for a run that was too long to be recorded."""
    recorded = result.recorded
    needs_verdict = line.verdict and (session.verbosity >= 0 or line.json)
    if not needs_verdict and not wants_reports(line):
        return None
    if recorded is None or not (recorded.trace.events or wants_reports(line)):
        return None
    if not recorded.trace.complete:
        if wants_reports(line):
            text = f"the run has more than {MAX_REPORTED:,} events, too many for a report"
            help = "report on a smaller shape, or on fewer iterations of a loop"
            raise LimitHit([make("memory-limit", text, help=help)])
        session.status(f"no verdict: more than {events_wanted(line, session):,} events")
        return None
    max_events = MAX_QUESTION_EVENTS if wants_reports(line) else QUESTION_EVENTS
    return insight(recorded.trace, recorded.again if recorded.can_repeat else None, max_events)


AFTER = 1.0  # seconds until the bar appears


class Bar:
    """A progress bar that appears once the run has lasted long enough.

    `total` is the number of instructions, None if it is determined at run time.
    """

    def __init__(self, stream: TextIO, total: int | None, after: float = AFTER) -> None:
        self.stream = stream
        self.total = total
        self.begin = time.monotonic() + after
        self.progress: Progress | None = None

    def __call__(self, done: int) -> None:
        if time.monotonic() < self.begin:
            return
        if self.progress is None:
            self.progress = self._make_progress()
            self.progress.start()
        self.progress.update(self.progress.task_ids[0], completed=done)

    def _make_progress(self) -> Progress:
        # Imported here because most runs are over before there is anything to show.
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeRemainingColumn as Remaining

        console = Console(file=self.stream, highlight=False, emoji=False, markup=False)
        columns = (TextColumn("{task.description}", markup=False), BarColumn())
        counters = (MofNCompleteColumn(), Remaining())
        progress = Progress(
            *columns, *counters, console=console, transient=True, refresh_per_second=4
        )
        progress.add_task("instructions", total=self.total)
        return progress

    def close(self) -> None:
        if self.progress is not None:
            self.progress.stop()


@contextmanager
def shown(session: Session, total: int | None) -> Iterator[Bar | None]:
    """Show a bar on standard error if that is a terminal that a person reads."""
    is_interactive = session.verbosity >= 0 and session.format == "human"
    bar = Bar(sys.stderr, total) if is_interactive and sys.stderr.isatty() else None
    try:
        yield bar
    finally:
        if bar is not None:
            bar.close()
