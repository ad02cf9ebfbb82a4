"""Carry out a command line: check its options together, read, compile, write, report."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any

from nkic.artifact import signature
from nkic.base import files, levels, limits, watch
from nkic.base.diagnostics import (
    CompileFailed,
    Diagnostic,
    NkicError,
    UsageFailed,
    bad_value,
    make,
    need,
)
from nkic.base.files import STANDARD, confined
from nkic.base.source import SourceFile, Span
from nkic.cli.common import Session, streams
from nkic.cli.common.options import (
    Given,
    fail,
    given_options,
    refuse,
    refuse_by_table,
    refuse_excluded,
    refuse_pair,
    rows,
)
from nkic.cli.nkic import outputs, prints
from nkic.cli.nkic.options import CommandLine
from nkic.cli.nkic.outputs import Output
from nkic.cli.nkic.replay import CachedRun, remember_types, tell_prints, tell_written
from nkic.compiler import pipeline
from nkic.compiler.compiled import DEFAULT, Compiled, CompileOptions
from nkic.compiler.forms import FORMS
from nkic.compiler.loader import MAX_BYTES, Loader
from nkic.compiler.pipeline import IR, IS_DESCRIBED, IS_SCHEDULED, PRINTED, SCHEDULED
from nkic.compiler.request import find_profile, parse_options, request_for
from nkic.machine.targets import load_machine
from nkic.report.resources import resources
from nkic.specialise.request import RequestOptions

STDIN_NAME = "<stdin>"
# How the text forms begin; no Python source does.
_PRINTED_HEADS = {
    "program": re.compile(rb"program [^\s=]+ on \w+\s*$", re.MULTILINE),
    "listing": re.compile(rb"nkix \d+\.\d+\s*$", re.MULTILINE),
}


def carry_out(
    line: CommandLine, session: Session, cached: CachedRun | None = None, given: Given | None = None
) -> int:
    """Carry out the command line, cache the artifact in `cached`, and return the exit code.

    `given` are the options to check together, by default those of the command line. Raises
    `NkicError` with all errors found.
    """
    refuse_conflicts(line, given_options() if given is None else given)
    session.warn_of_settings()
    if line.print == CONFIG:
        files.write(STANDARD, _config(line, session))
        return 0
    if line.print not in (None, KERNELS):
        files.write(STANDARD, prints.table(str(line.print), session.color, as_json=line.json))
        return 0
    session.set_limits()
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
        head = ("setting", "value", "from")
        rows = [*prints.config_rows(job.requested, source, session)]
        if line.json:
            return prints.document(CONFIG, [dict(zip(head, row, strict=True)) for row in rows])
        return streams.table([head, *rows], session.color)


class _CompileCommand:
    def __init__(self, line: CommandLine, session: Session) -> None:
        self.line = line
        self.session = session
        self.key: Any = None  # that signs the artifact
        from_stdin = line.source == STANDARD
        self.path = line.stdin_name or STDIN_NAME if from_stdin else str(line.source)
        self.loader = Loader.beside(self.path, line.include, _modules(line.module))
        session.sources, session.inputs = self.loader.source, self.inputs
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
        data = files.read_bytes(STANDARD, MAX_BYTES) if self.line.source == STANDARD else None
        if data is not None and not self.path.endswith(PRINTED):
            _refuse_printed(data)
        return self.loader.main(self.path, data)

    @cached_property
    def requested(self) -> RequestOptions:
        """The requested arguments and target of the kernel. Raises `UsageFailed`."""
        line = self.line
        return parse_options(args=line.arg, consts=line.const, **vars(line))

    def list_kernels(self) -> None:
        """Print the signatures, which are the same in every version of NKI."""
        if self.line.nki is not None:
            find_profile(self.line.nki, "--nki")
        kernels = pipeline.list_kernels(self.source())
        text = "".join(f"{kernel.signature}\n" for kernel in kernels)
        if self.line.json:
            records = [{"name": kernel.name, "signature": kernel.signature} for kernel in kernels]
            text = prints.document(KERNELS, records)
        files.write(STANDARD, text)

    def migrate(self, version: str) -> int:
        need("--migrate needs", "libcst")
        from nkic.cli.nkic.rewriting import Migration  # libcst

        source = self.source()
        request = request_for(source, self.requested, os.environ)
        task = Migration(self.line, self.session, source, request)
        return task.carry_out(find_profile(version, "--migrate"), self.loader)

    def advise(self) -> int:
        from nkic.cli.nkic.rewriting import Advising  # NumPy is slow to import

        source = self.source()
        request = request_for(source, self.requested, os.environ)
        return Advising(self.line, self.session, source, request).carry_out(self.options(()))

    # ---- compiling -------------------------------------------------------------------------

    def build(self, cached: CachedRun | None = None) -> None:
        """Compile, write the requested outputs, report them, and cache the artifact in `cached`."""
        line = self.line
        wanted = self.outputs()
        limits = outputs.rules(line.fail_if) if line.fail_if is not None else []
        wanted_reports = outputs.wanted_reports(line.report) if line.report else []
        if line.sign is not None:
            if all(output.kind != "neff" for output in wanted):
                fail("`--sign` signs an artifact, and none is written", "leave it out")
            self.key = signature.private_key(line.sign)
        source = self.source()
        if self.path.endswith(PRINTED):
            outputs.refuse_earlier_stages(wanted, self.path)
        options = self.options(wanted)
        compiled = Compiled(source)
        if cached is not None:
            cached.note(self.loader.probes)
        self.compile(source, options, compiled)
        if line.prove_source:
            self.prove_source(source, options, compiled)
        self.session.lift_time_limit()
        warnings = self.report(compiled)
        outputs.refuse_overwriting(wanted, self.inputs())
        for report in wanted_reports:
            colour, shown = self.session.color, self.loader.shown
            outputs.write_report(report, colour, compiled, options.level, shown)
        diagnostics = outputs.exceeded(limits, compiled) if limits else []
        if diagnostics:
            raise CompileFailed(diagnostics)
        for output in wanted:
            self.write(output, compiled, wanted)
        kernel = compiled.program.name if compiled.program is not None else ""
        types = self.types()
        if cached is not None:
            facts = {"warnings": warnings, "kernel": kernel, "types": types}
            self.keep(cached, wanted[0].path, compiled, facts)
        remember_types(line, kernel, types)

    def outputs(self) -> Sequence[Output]:
        if self.line.check:
            return ()
        return outputs.outputs(self.line.emit, self.line.output, Path(self.path).stem.strip("<>"))

    def last_stage(self, wanted: Sequence[Output]) -> str:
        line = self.line
        if line.fail_if is not None or line.report or line.advise or line.prove_source:
            return FORMS["neff"].stage
        return pipeline.LAST_CHECK if line.check else outputs.last_stage(wanted)

    def options(self, wanted: Sequence[Output]) -> CompileOptions:
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
            limits=limits.evaluation(self.session.limits),
            level=DEFAULT.level if line.optimise is None else line.optimise,
            spill=line.spill,
            keep=None if line.report else read,
        )

    def types(self) -> list[str] | None:
        """Return the types that the command gives; None if it leaves parts of them open."""
        types = {**self.requested.like, **self.requested.args}
        told = [f"{name}={kind}" for name, kind in types.items()]
        return told if all(kind.is_complete for kind in types.values()) else None

    def keep(self, cached: CachedRun, path: str, compiled: Compiled, facts: dict[str, Any]) -> None:
        """Cache the file written to `path`, its messages, and the look-ups that it depends on."""
        probes, used = self.loader.probes, resources(compiled.executable)
        if compiled.program is not None:
            probes.contents.update(compiled.program.reads)
        cached.keep(
            probes,
            compiled.data,
            path=path,
            hidden=self.session.hidden,
            messages=compiled.messages,
            summary=used.line,
            resources=used.as_json(),
            **facts,
        )

    def compile(self, source: SourceFile, options: CompileOptions, compiled: Compiled) -> None:
        """Run the stages, filling `compiled`, which the report of an internal error includes."""
        try:
            if self.path.endswith(PRINTED):
                pipeline.compile_text(source, self.loader.neighbour, options, compiled)
                return
            request = request_for(source, self.requested, os.environ)
            pipeline.compile_source(source, request, self.loader, options, compiled)
        except NkicError:
            raise
        except Exception:
            self.attach(compiled)
            raise

    def prove_source(self, source: SourceFile, options: CompileOptions, compiled: Compiled) -> None:
        from nkic.cli.nkic.proving import prove_source  # the Python interface

        request = request_for(source, self.requested, os.environ)
        prove_source(self.path, request, options, compiled)

    def see(self, span: Span) -> None:
        """Record the current place, in case the compilation must be ended from outside."""
        watch.note(span._replace(path=self.loader.shown(span.path)))

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
        tell_prints(self.session, compiled.messages)
        if self.line.time:
            stages = [timing._asdict() for timing in compiled.timings]
            self.session.tell("timings", prints.times(compiled.timings), stages=stages)
        return warnings

    def write(self, output: Output, compiled: Compiled, wanted: Sequence[Output]) -> None:
        if output.kind == outputs.DEPS:
            target = next((each.path for each in wanted if each.kind != outputs.DEPS), "all")
            content: str | bytes = outputs.dependencies(target, self.inputs())
        elif output.kind == "neff" and self.key is not None:
            content = signature.sign(compiled.data, self.key)
        else:
            content = FORMS[output.kind].make(compiled)
        files.write(output.path, content, force=self.line.force)
        data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
        used = resources(compiled.executable) if output.kind == "neff" else None
        told = (used.line, used.as_json()) if used is not None else None
        tell_written(self.session, output.kind, output.path, data, told)

    def inputs(self) -> list[str]:
        """Return every file read, as the user would name it."""
        named = [path for path in (self.line.like, self.line.machine) if path is not None]
        return [*self.loader.files, *named]


def _refuse_printed(data: bytes) -> None:
    """Raise `UsageFailed` for a printed program or listing on standard input without its name."""
    form = next((form for form, head in _PRINTED_HEADS.items() if head.match(data)), None)
    if form is not None:
        text = f"standard input is a printed {form}, not a kernel's file"
        suffix = pipeline.ASSEMBLY if form == "listing" else IR
        advice = f"say so by its name: --stdin-name x{suffix}"
        advice += f", or x{pipeline.SCHEDULE} if it is a schedule" if suffix == IR else ""
        raise UsageFailed([make("bad-usage", text, help=advice)])


def _modules(values: Sequence[str]) -> dict[str, str]:
    modules: dict[str, str] = {}
    for value in values:
        name, equals, path = value.partition("=")
        if not equals or not path or not all(p.isidentifier() for p in name.split(".")):
            text = f"--module {value}: expected NAME=PATH"
            raise bad_value(text, "for example --module tiling=../lib/tiling.py")
        modules[name] = path
    return modules


CONFIG, KERNELS = "config", "kernels"  # the tables of --print about the rest of the command line
_FOR_RUNNER = ("neff",)
TABLE = rows(CommandLine)


_ALONE = ("print", "migrate", "advise", "report", "stdin_name")


def refuse_conflicts(line: CommandLine, given: Given) -> None:
    if line.print == CONFIG:
        return
    if line.json and line.print is None and not line.is_many:
        fail(
            "`--json` is for `--print`, and for several files",
            "messages are JSON with `--message-format json`",
        )
    if line.is_several:
        for name in _ALONE:
            if name in given:
                fail(
                    f"`{given[name]}` is about one file", f"name one, or leave out `{given[name]}`"
                )
    refuse_by_table(TABLE, given, KERNELS if line.print == KERNELS else "")
    if line.print in (None, KERNELS):
        for source in line.sources or (_source_path(line),):
            _refuse_for(source, line, given)
    refuse_excluded(TABLE, given)
    if line.in_place and line.source == STANDARD:
        refuse_pair("--in-place", STANDARD, "standard input cannot be replaced")
    if line.prove_source and line.source == STANDARD:
        refuse_pair("--prove-source", STANDARD, "Python evaluates files")
    if line.is_many and STANDARD in line.sources:
        fail("standard input is compiled alone", "name a file, or leave out the others")


def _source_path(line: CommandLine) -> str:
    """Return the path of the kernel's file. Raises `UsageFailed` if none is given."""
    if line.source is not None:
        return line.source
    advice = "for example `nkic kernel.py`, or `nkic -` for standard input"
    if line.migrate is not None and line.migrate.endswith(".py"):
        advice = f"the file comes first: `nkic {line.migrate} --migrate`"
    raise UsageFailed([make("missing-argument", "missing the kernel's file", help=advice)])


def _refuse_for(source: str, line: CommandLine, given: Given) -> None:
    """Reject options that do not apply to a source of this name."""
    if source != STANDARD:
        why = "`--stdin-name` names a kernel that is read from standard input"
        refuse(given, source, ["stdin_name"], why)
    _refuse_generated(source)
    if source.endswith(PRINTED):
        about = ["print"] if line.print == KERNELS else []
        refuse(given, source, [*about, "migrate", *_about("source")], IS_DESCRIBED)
    if source.endswith(SCHEDULED):
        refuse(given, source, _about("schedule"), IS_SCHEDULED)


def _about(what: str) -> Iterator[str]:
    return (name for name, row in TABLE.items() if row.about == what)


def _refuse_generated(source: str) -> None:
    """Raise `UsageFailed` for a file that nkic wrote but cannot read."""
    matching = [(kind, form) for kind, form in FORMS.items() if source.endswith(form.suffix)]
    if source.endswith(PRINTED) or not matching:
        return
    kind, form = matching[0]
    advice = "nkic takes what `--emit ir`, `lowered`, `allocated` and `sched` print"
    if kind in _FOR_RUNNER:
        advice = f"`nki-run {source}` takes it"
    text = f"`{source}` is what `--emit {kind}` writes ({form.meaning}), not a kernel"
    raise UsageFailed([make("bad-usage", text, help=advice)])
