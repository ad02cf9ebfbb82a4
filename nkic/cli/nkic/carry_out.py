"""Carry out a command line: read, compile, write, report."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from math import inf
from pathlib import Path

from nkic.base import files, levels
from nkic.base.confine import confined
from nkic.base.diagnostics import (
    CompileFailed,
    Diagnostic,
    NkicError,
    UsageFailed,
    bad_value,
    make,
)
from nkic.base.files import STANDARD
from nkic.base.source import SourceFile, Span
from nkic.base.text import size
from nkic.cli.common import Session, pages, process_limits
from nkic.cli.common.conflicts import given_options
from nkic.cli.nkic import outputs, prints, records, reports, settings
from nkic.cli.nkic.conflicts import CONFIG, IR, KERNELS, PRINTED, refuse_conflicts
from nkic.cli.nkic.options import CommandLine
from nkic.cli.nkic.outputs import Output
from nkic.cli.nkic.replay import CachedRun
from nkic.driver import pipeline
from nkic.driver.compiled import DEFAULT, Compiled, CompileOptions
from nkic.driver.forms import FORMS
from nkic.driver.loader import MAX_BYTES, Loader
from nkic.driver.request import find_profile, parse_options, request_for
from nkic.limits import places, table
from nkic.machine.clock.machine_file import load_machine
from nkic.migrate.need import need_library
from nkic.report.resources import resources
from nkic.specialise.request import RequestOptions

STDIN_NAME = "<stdin>"
# How the text forms begin; no Python source does.
_PRINTED_HEADS = {
    "program": re.compile(rb"program [^\s=]+ on \w+\s*$", re.MULTILINE),
    "listing": re.compile(rb"nkix \d+\.\d+\s*$", re.MULTILINE),
}


def carry_out(line: CommandLine, session: Session, cached: CachedRun | None = None) -> int:
    """Carry out the command line, cache the artifact in `cached`, and return the exit code.

    Raises `NkicError` with all errors found.
    """
    refuse_conflicts(line, given_options())
    process_limits.warn_of_settings(session)
    if line.print == CONFIG:
        files.write(STANDARD, _config(line, session))
        return 0
    if line.print not in (None, KERNELS):
        files.write(STANDARD, prints.table(str(line.print), session.color, as_json=line.json))
        return 0
    process_limits.set_limits(session)
    job = _CompileCommand(line, session)
    with job.failures_shown(), confined(job.loader.folders):
        if line.migrate is not None:
            return job.migrate(line.migrate)
        if line.advise:
            return job.advise()
        if line.print == KERNELS:
            job.list_kernels()
        else:
            job.build(cached)
    return 0


def _config(line: CommandLine, session: Session) -> str:
    """Return the table of --print config; the file, if given, is read for its inline block."""
    job = _CompileCommand(line, session)
    with job.failures_shown():
        source = job.source() if line.source is not None else None
        head, *rows = settings.rows(_request_options(line), source, session)
        if line.json:
            return records.document(CONFIG, records.settings(rows))
        return pages.table([head, *rows], session.color)


class _CompileCommand:
    """The compilation of one kernel file."""

    def __init__(self, line: CommandLine, session: Session) -> None:
        self.line = line
        self.session = session
        self.path = _path(line)
        self.loader = Loader.beside(self.path, line.include, _modules(line.module))
        session.sources = self.loader.source
        session.max_errors = int(session.limit("errors") or 0)

    @contextmanager
    def failures_shown(self) -> Iterator[None]:
        """Make errors name files as the user does, not by their path in the artifact."""
        try:
            yield
        except NkicError as error:
            diagnostics = levels.apply(error.diagnostics, self.session.levels, self.loader.sources)
            raise type(error)(self.loader.relocated(diagnostics)) from error

    # ---- reading ---------------------------------------------------------------------------

    def source(self) -> SourceFile:
        """Read the kernel's file."""
        data = files.read_bytes(STANDARD, MAX_BYTES) if self.line.source == STANDARD else None
        if data is not None and not self.path.endswith(PRINTED):
            _refuse_printed(data)
        return self.loader.main(self.path, data)

    def list_kernels(self) -> None:
        """Print the signatures, which are the same in every version of NKI."""
        if self.line.nki is not None:
            find_profile(self.line.nki, "--nki")
        kernels = pipeline.list_kernels(self.source())
        text = "".join(f"{kernel.signature}\n" for kernel in kernels)
        if self.line.json:
            text = records.document(KERNELS, records.kernels(kernels))
        files.write(STANDARD, text)

    def migrate(self, version: str) -> int:
        """Rewrite the source for another version, and return the exit code."""
        need_library()
        from nkic.cli.nkic.migrating import Migration  # libcst

        source = self.source()
        request = request_for(source, _request_options(self.line), os.environ)
        task = Migration(self.line, self.session, source, request)
        return task.carry_out(find_profile(version, "--migrate"), self.loader)

    def advise(self) -> int:
        """Follow the advice on the kernel, and return the exit code."""
        from nkic.cli.nkic.advising import Advising  # NumPy is slow to import

        source = self.source()
        request = request_for(source, _request_options(self.line), os.environ)
        return Advising(self.line, self.session, source, request).carry_out(self.options(()))

    # ---- compiling -------------------------------------------------------------------------

    def build(self, cached: CachedRun | None = None) -> None:
        """Compile, write the requested outputs, report them, and cache the artifact in `cached`."""
        line = self.line
        wanted = self.outputs()
        limits = reports.rules(line.fail_if) if line.fail_if is not None else []
        wanted_reports = reports.wanted(line.report) if line.report else []
        source = self.source()
        if self.path.endswith(PRINTED):
            outputs.refuse_earlier_stages(wanted, self.path)
        options = self.options(wanted)
        compiled = Compiled(source)
        if cached is not None:
            cached.note(self.loader.probes)
        self.compile(source, options, compiled)
        process_limits.lift_time_limit()
        warnings = self.report(compiled)
        outputs.refuse_overwriting(wanted, self.inputs())
        for report in wanted_reports:
            reports.write(report, self.session.color, compiled, options.level, self.loader.shown)
        diagnostics = reports.exceeded(limits, compiled) if limits else []
        if diagnostics:
            raise CompileFailed(diagnostics)
        for output in wanted:
            self.write(output, compiled, wanted)
        if cached is not None:
            self.keep(cached, wanted[0].path, compiled, warnings)

    def outputs(self) -> Sequence[Output]:
        """Return the requested outputs. Raises `UsageFailed`."""
        if self.line.check:
            return ()
        stem = Path(self.path).stem.strip("<>")
        return outputs.outputs(self.line.emit, self.line.output, stem)

    def last_stage(self, wanted: Sequence[Output]) -> str:
        """Return the last stage that the outputs and reports need."""
        if self.line.fail_if is not None or self.line.report or self.line.advise:
            return FORMS["neff"].stage
        return pipeline.LAST_CHECK if self.line.check else outputs.last_stage(wanted)

    def options(self, wanted: Sequence[Output]) -> CompileOptions:
        """Return the compile options for these outputs. Raises `UsageFailed`."""
        line, seconds = self.line, self.session.limit("time")
        read = frozenset(
            FORMS[output.kind].stage for output in wanted if output.kind != outputs.DEPS
        )
        return CompileOptions(
            serial=line.serial,
            embed_source=line.embed_source,
            last=self.last_stage(wanted),
            max_errors=self.session.max_errors,
            seconds=inf if seconds is None else seconds,
            see=self.see,
            machine=load_machine(line.machine) if line.machine is not None else None,
            limits=table.evaluation(self.session.limits),
            level=DEFAULT.level if line.optimise is None else line.optimise,
            spill=line.spill,
            keep=None if line.report else read,
        )

    def keep(
        self, cached: CachedRun, path: str, compiled: Compiled, warnings: Sequence[Diagnostic]
    ) -> None:
        """Cache the file written to `path` and its messages, with the file-system lookups it
        depends on.
        """
        probes, used = self.loader.probes, resources(compiled.executable)
        if compiled.program is not None:
            probes.contents.update(compiled.program.reads)
        cached.keep(
            probes,
            compiled.data,
            path=path,
            warnings=warnings,
            hidden=self.session.hidden,
            messages=compiled.messages,
            summary=used.line,
            resources=used.as_json(),
        )

    def compile(self, source: SourceFile, options: CompileOptions, compiled: Compiled) -> None:
        """Run the stages, filling `compiled`, which the report of an internal error includes."""
        try:
            if self.path.endswith(PRINTED):
                pipeline.compile_text(source, self.loader.neighbour, options, compiled)
                return
            request = request_for(source, _request_options(self.line), os.environ)
            pipeline.compile_source(source, request, self.loader, options, compiled)
        except NkicError:
            raise
        except Exception:
            self.attach(compiled)
            raise

    def see(self, span: Span) -> None:
        """Record the current place, in case the compilation must be ended from outside."""
        places.note(span._replace(path=self.loader.shown(span.path)))

    def attach(self, compiled: Compiled) -> None:
        """Add the source and the last program to the report of an internal error."""
        for path, source in self.loader.sources.items():
            self.session.attachments[path] = source.text
        for kind in ("allocated", "lowered", "ir"):
            with suppress(Exception):  # the program does not exist, or cannot be printed
                text = str(FORMS[kind].make(compiled))
                self.session.attachments[f"program{FORMS[kind].suffix}"] = text
                return

    # ---- writing ---------------------------------------------------------------------------

    def report(self, compiled: Compiled) -> list[Diagnostic]:
        """Report the warnings, the kernel's prints and the stage times, and return the warnings.

        Raises `CompileFailed` for denied warnings.
        """
        self.session.hidden = levels.hidden(compiled.warnings, self.session.levels)
        diagnostics = compiled.remarks(self.session.levels, self.loader.sources)
        warnings = self.loader.relocated(diagnostics)
        self.session.report(warnings)
        for text in "".join(compiled.messages).splitlines():
            self.session.tell("print", text, message=text)
        if self.line.time:
            stages = [timing._asdict() for timing in compiled.timings]
            self.session.tell("timings", prints.times(compiled.timings), stages=stages)
        return warnings

    def write(self, output: Output, compiled: Compiled, wanted: Sequence[Output]) -> None:
        """Write one output, and report it to people or programs."""
        if output.kind == outputs.DEPS:
            content: str | bytes = outputs.dependencies(_target(wanted), self.inputs())
        else:
            content = FORMS[output.kind].make(compiled)
        files.write(output.path, content, force=self.line.force)
        data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
        facts: dict[str, object] = {"sha256": sha256(data).hexdigest(), "bytes": len(data)}
        if output.kind == "neff":
            used = resources(compiled.executable)
            self.session.status(used.line)
            facts["resources"] = used.as_json()
        self.session.artifact(output.kind, output.path, **facts)
        self.session.status(f"wrote {output.path} ({size(len(data))})", 1)

    def inputs(self) -> list[str]:
        """Return every file read, as the user would name it."""
        named = [path for path in (self.line.like, self.line.machine) if path is not None]
        return [*self.loader.files, *named]


def _target(wanted: Sequence[Output]) -> str:
    """Return the target of the dependency rule."""
    return next((output.path for output in wanted if output.kind != outputs.DEPS), "all")


def _refuse_printed(data: bytes) -> None:
    """Raise `UsageFailed` for a printed program or listing on standard input without its name."""
    form = next((form for form, head in _PRINTED_HEADS.items() if head.match(data)), None)
    if form is not None:
        text = f"standard input is a printed {form}, not a kernel's file"
        suffix = pipeline.ASSEMBLY if form == "listing" else IR
        advice = f"say so by its name: --stdin-name x{suffix}"
        advice += f", or x{pipeline.SCHEDULE} if it is a schedule" if suffix == IR else ""
        raise UsageFailed([make("bad-usage", text, help=advice)])


def _path(line: CommandLine) -> str:
    if line.source == STANDARD:
        return line.stdin_name or STDIN_NAME
    return str(line.source)


def _request_options(line: CommandLine) -> RequestOptions:
    """Return the requested arguments and target of the kernel. Raises `UsageFailed`."""
    return parse_options(
        line.kernel,
        target=line.target,
        nki=line.nki,
        grid=line.grid,
        lnc=line.lnc,
        args=line.arg,
        consts=line.const,
        like=line.like,
    )


def _modules(values: Sequence[str]) -> dict[str, str]:
    modules: dict[str, str] = {}
    for value in values:
        name, equals, path = value.partition("=")
        if not equals or not path or not all(p.isidentifier() for p in name.split(".")):
            text = f"--module {value}: expected NAME=PATH"
            advice = "for example --module tiling=../lib/tiling.py"
            raise bad_value(text, advice)
        modules[name] = path
    return modules
