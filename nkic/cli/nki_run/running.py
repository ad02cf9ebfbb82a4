"""A run: read the file, bind the inputs, simulate, write, compare, report."""

from __future__ import annotations

import copy
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from nkic.base import files, levels
from nkic.base.diagnostics import Diagnostic, NkicError, ProgramFault, bad_value, make
from nkic.base.files import STANDARD
from nkic.base.text import clean, plural
from nkic.cli.common import Session, process_limits
from nkic.cli.common.table import is_named
from nkic.cli.nki_run import debugging, fuzzing, insights, progress, reporting, tolerances
from nkic.cli.nki_run.conflicts import lines_of
from nkic.cli.nki_run.options import CommandLine
from nkic.cli.nki_run.writing import Writer
from nkic.driver.figures import blas_threads, figures, is_precise
from nkic.machine.clock.machine_file import load_machine
from nkic.machine.operators import ORDERS
from nkic.machine.targets import TARGETS
from nkic.neff.info import info
from nkic.neff.load import load
from nkic.neff.read import open_file
from nkic.report import run_report
from nkic.report.insight.verdict import Insight
from nkic.report.resources import executions, resources
from nkic.report.run_report import RunReport
from nkic.report.views import profile
from nkic.simulate import Result, RunOptions, simulate_ranks
from nkic.simulate.comparison import compare_report
from nkic.simulate.comparison.compare import Comparison, compare
from nkic.simulate.comparison.transposed import transposed_input
from nkic.simulate.io.bind import BoundInputs, Wanted, bind
from nkic.simulate.io.expected import load_expected
from nkic.simulate.io.numbers import Numbers
from nkic.simulate.io.signature import signature_of
from nkic.simulate.io.specs import parse_fill, parse_inputs
from nkic.simulate.options import MAX_ITERATIONS
from nkic.simulate.stage import plain
from nkic.simulate.storage.footprint import check_memory

OUTPUTS_DIFFER = 1
JSON: dict[str, Any] = {"indent": 1, "allow_nan": False, "ensure_ascii": True}
Arrays = Mapping[str, NDArray[Any]]


def run_kernel(line: CommandLine, session: Session) -> int:
    """Run the kernel of the command line, and return the exit code. Raises `NkicError`."""
    lines = lines_of(line)
    wanted = [_wanted(each) for each in lines]
    options, fail_on = _options(line, session), _fail_on(line.fail_if)
    first = _RunCommand(lines[0], session)
    jobs = [first, *(first.of(command_line) for command_line in lines[1:])]
    bound = [job.bind(requested) for job, requested in zip(jobs, wanted, strict=True)]
    expected = [job.expected() for job in jobs]
    observers = _observers(lines, first)
    arrays = [each.arrays for each in bound]
    started = time.perf_counter()
    try:
        results = _simulated(first, arrays, options, observers)
    except debugging.Quit:
        session.status("the run ended at the prompt; nothing was written")
        return 0
    seconds = time.perf_counter() - started if line.time else None
    process_limits.lift_time_limit()
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
        _refuse_values(run, fail_on)
    if races := _races(first, arrays, options):
        raise ProgramFault(races)
    passed = all(_passed(compared) for _, _, compared in done)
    return code if passed and not divergences else OUTPUTS_DIFFER


def _observers(lines: Sequence[CommandLine], job: _RunCommand) -> debugging.Debugging | None:
    """Return the debugging observers of the run; None if no option asks for any."""
    line = lines[0]
    requested = (line.dump, line.expect_at, line.changes, line.stop_at)
    return debugging.Debugging(lines, job.session, job.settings) if any(requested) else None


def _simulated(
    job: _RunCommand,
    arrays: Sequence[Arrays],
    options: RunOptions,
    observers: debugging.Debugging | None,
) -> list[Result]:
    """Run all ranks, with a progress bar; a failure also names the races of `_races`."""
    total = executions(job.executable)
    make = observers.make if observers is not None else plain
    try:
        with progress.shown(job.session, total and total * len(arrays)) as bar:
            watched = replace(options, watch=bar) if bar is not None else options
            return simulate_ranks(job.executable, arrays, watched, make)
    except ProgramFault as fault:
        races = _races(job, arrays, options)
        raise ProgramFault([*fault.diagnostics, *races]) from fault


def _write(
    jobs: Sequence[_RunCommand],
    results: Sequence[Result],
    observers: debugging.Debugging | None,
) -> list[Diagnostic]:
    """Report the remarks of every rank, write its outputs, and return its divergences from
    --expect-at.
    """
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
    return fuzzing.fuzz(job.session, job.executable, arrays, options, job.line.fuzz_order)


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
        self.settings = tolerances.settings(line)
        self.data = open_file(line.artifact)
        self.executable = load(self.data)
        session.sources = self.executable.sources.get
        self.signature = signature_of(self.executable)
        if not line.expect_at:  # with it, tolerances may be those of any tensor
            tolerances.refuse_ignored(self.settings, self.signature)
        self.writer = Writer(line, session, self.signature)
        if line.source or insights.wants_reports(line):
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
        """Return the inputs, and report how they were converted."""
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
        """Return the reference outputs; they are read before the run, to report their errors
        early.
        """
        if self.line.expected is None:
            return {}
        skipped = [name for name, rule in self.rules.items() if rule.mode == "skip"]
        return load_expected(self.signature, self.line.expected, skipped)

    def program_id(self) -> str:
        """Return the id of the program in the file."""
        return info(self.data).artifact_id

    def compare(self, outputs: Arrays, expected: Mapping[str, Numbers]) -> list[Comparison]:
        """Compare every output for which there is a reference."""
        return [
            compare(p.name, outputs[p.name], p.dtype, expected[p.name], self.rules[p.name])
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
        """Return the figures of the run."""
        comparisons = [compare_report.as_json(comparison) for comparison in compared]
        run = figures(
            self.executable, self.program_id(), bound, result, options, comparisons, seconds
        )
        self.insight = insights.insight_of(result, self.line, self.session)
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
        if self.insight is not None and insights.wants_reports(self.line):
            code = reporting.write(self.line, self.session, self.insight, run)
        wrong = [
            compare_report.diagnostic(comparison, self.cause)
            for comparison in compared
            if not comparison.passed
        ]
        if wrong:
            self.session.report(wrong)
        return code

    def _tell(self, run: RunReport, compared: list[Comparison]) -> None:
        self._tell_prints(run)
        if not self.line.outputs and self.line.bless is None and self.session.verbosity >= 0:
            files.write(STANDARD, "".join(f"{row.line}\n" for row in run.outputs))
        self._tell_bounds(run)
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
            insights.tell_verdict(self.insight, self.session)
        for comparison in compared:
            if comparison.passed:
                facts = compare_report.as_json(comparison)
                self.session.tell("compare", compare_report.verdict(comparison), **facts)

    def _tell_bounds(self, run: RunReport) -> None:
        for row in run.outputs:
            if row.error_bound is not None:
                facts = vars(row.error_bound)
                self.session.tell("error-bound", row.bound_line, output=row.name, **facts)
        for instruction in run.unbounded:
            self.session.tell(
                "unbounded", f"no error bound after {clean(instruction)}", instruction=instruction
            )

    def _tell_prints(self, run: RunReport) -> None:
        for row in run.prints:
            self.session.tell("print", row.lines(self.executable.cores), **vars(row))
        if left := run_report.left_out_line(run):
            self.session.tell("prints-left-out", left, count=run.prints_left_out)


Done = tuple[_RunCommand, RunReport, list[Comparison]]


def _passed(compared: Sequence[Comparison]) -> bool:
    return all(comparison.passed for comparison in compared)


def _options(line: CommandLine, session: Session) -> RunOptions:
    precise = line.precise_fp if line.precise_fp is not None else is_precise(os.environ)
    cycles, iterations = session.limit("cycles"), session.limit("iterations")
    return RunOptions(
        check_init=line.init_check,
        precise=precise,
        max_cycles=int(cycles) if cycles is not None else None,
        timeout_s=session.limit("time"),
        max_iterations=int(iterations or MAX_ITERATIONS),
        check_races=line.race_check,
        accumulate=next((order for order in ORDERS if order == line.accumulate), None),
        blas_threads=blas_threads(os.environ),
        report_bounds=line.report_error_bound,
        machine=load_machine(line.machine) if line.machine else None,
        trace=insights.events_wanted(line, session),
    )


def _wanted(line: CommandLine) -> Wanted:
    """Return the requested inputs. Raises `UsageFailed`."""
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


def _refuse_values(run: RunReport, fail_on: list[str]) -> None:
    diagnostics = [
        make("not-finite", f"output `{clean(row.name)}` has {plural(count, f'{kind} element')}")
        for row in run.outputs
        for kind, count in (("nan", row.nan), ("inf", row.inf))
        if count and kind in fail_on
    ]
    if diagnostics:
        raise ProgramFault(diagnostics)
