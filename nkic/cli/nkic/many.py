"""Many files: each is compiled as one alone, in a process of its own, and all are summed up.

A process does what the command does with one file, under the same limits and a watcher of its own.
It records its messages, which are repeated here in the order of the files, so that every format of
messages is written once, over all files.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from nkic.base import files, watcher
from nkic.base.diagnostics import (
    Diagnostic,
    Fix,
    Label,
    Level,
    NkicError,
    apart,
    bad_value,
    from_json,
    make,
    need,
    to_json,
)
from nkic.base.files import STANDARD
from nkic.base.render import text
from nkic.base.source import SourceFile, Span
from nkic.base.text import aligned, clean, grouped, plural
from nkic.base.worker import leave_streams
from nkic.cli.common import Session
from nkic.cli.common.main import INTERNAL, INTERRUPTED, Terminated, attempt
from nkic.cli.common.options import Given, filled, given_options
from nkic.cli.nkic import outputs, prints
from nkic.cli.nkic.carry_out import refuse_conflicts
from nkic.cli.nkic.options import OVER_FILES, CommandLine
from nkic.compiler import pipeline
from nkic.compiler.loader import MAX_BYTES, Loader
from nkic.compiler.request import parse_options, typed_kernels
from nkic.report import compare
from nkic.source.parser import decode

CompileFile = Callable[[CommandLine, Session, Given], int]
NO_KERNEL = "no-kernel"
NONE = "no kernels"  # the result of a file that has none: it is no error among many
RESULTS = {0: "ok", 1: "rejected", 2: "not done", 6: "over a limit", INTERNAL: "internal error"}
SIGNAL = "interrupted"
ORDER = (*RESULTS.values(), SIGNAL, NONE)
FIGURES = {"cycles": "cycles", "sbuf_peak": "sbuf_bytes", "psum_banks": "psum_banks"}
HEAD = ("file", "result", "errors", "warnings", "kernel", "SBUF", "cycles")


# ---- which files, and what is written for each --------------------------------------------------


class Found(NamedTuple):
    """A file, and the name for what is written for it, without a suffix; `named` on the command
    line, and not found in a folder.
    """

    path: str
    stem: str
    named: bool


def found_in(sources: Iterable[str]) -> list[Found]:
    """Return the files, once each, in the order of the command line; those of a folder by name."""
    once: dict[Path, Found] = {}
    for source in sources:
        if not files.is_folder(source):
            path = Path(source)
            once.setdefault(files.real(source), Found(str(path), path.stem, True))
            continue
        for path in _python_files(Path(source)):
            stem = str(path.relative_to(source).with_suffix(""))
            once.setdefault(files.real(path), Found(str(path), stem, False))
    return [*once.values()]


def _folders(folder: Path) -> Iterator[str]:
    """Yield a folder and those in it, but no hidden ones, and no virtual environments."""
    for home, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if f[0] != "." and f != "__pycache__")
        if "pyvenv.cfg" in names:
            folders.clear()
        else:
            yield home


def _python_files(folder: Path) -> Iterator[Path]:
    for home in _folders(folder):
        yield from sorted(files.in_folder(home, "*.py", folder))


def lines_for(line: CommandLine, found: Sequence[Found]) -> list[CommandLine]:
    """Return each file's command line. Raises `UsageFailed` for files that overwrite each other."""
    given = filled(CommandLine, {})
    alone = replace(line, json=False, **{name: getattr(given, name) for name in OVER_FILES})
    if line.baseline is not None and line.fail_if is not None:
        own_rules = [rule for rule in line.fail_if.split(",") if "+" not in rule]
        alone = replace(alone, fail_if=",".join(own_rules) or None)
    if len(found) == 1 and found[0].named:
        return [replace(alone, sources=(found[0].path,))]
    folder = _folder(line.output)
    own: list[CommandLine] = []
    writers: dict[str, str] = {}
    for one in found:
        stem = str(Path(folder, one.stem))
        wanted = () if line.check else outputs.outputs(line.emit, None, stem)
        for output in wanted:
            if not output.path.startswith(stem):
                text = f"--emit {output.kind}={output.path}: several files would be written to it"
                raise bad_value(text, f"--emit {output.kind}, and -o FOLDER")
            if (other := writers.setdefault(output.path, one.path)) != one.path:
                text = f"`{other}` and `{one.path}` would both be written to `{output.path}`"
                raise bad_value(text, "name the folder that holds both, with -o FOLDER")
        emit = tuple(f"{output.kind}={output.path}" for output in wanted) if line.emit else ()
        path = wanted[0].path if wanted and not line.emit else None
        own.append(replace(alone, sources=(one.path,), emit=emit, output=path))
    for home in {Path(path).parent for path in writers if folder}:
        files.make_folder(home)
    return own


def lines_of_kernels(line: CommandLine, session: Session) -> list[CommandLine]:
    """Return a command line for each kernel that has types, if a file has several kernels.

    What is written for a kernel has its name behind that of the file.
    """
    try:
        session.set_limits()
        loader = Loader.beside(str(line.source), line.include)
        explicit = parse_options(args=line.arg, consts=line.const, **vars(line))
        source = loader.main(str(line.source))
        if line.kernel is not None or len(pipeline.list_kernels(source)) < 2:
            return [line]
        names = typed_kernels(source, explicit, os.environ)
    except (NkicError, OSError, MemoryError):  # compiling says why
        return [line]

    def named(path: str, kernel: str) -> str:
        kind, equals, target = path.rpartition("=")
        return f"{kind}{equals}{Path(target).with_stem(f'{Path(target).stem}-{kernel}')}"

    def own(kernel: str) -> CommandLine:
        output = named(line.output, kernel) if line.output else None
        emit = tuple(named(each, kernel) for each in line.emit)
        return replace(line, kernel=kernel, output=output, emit=emit)

    return [own(name) for name in names] or [line]


def _folder(output: str | None) -> str:
    """Return the folder that -o names for several files; empty for the working directory."""
    if output is not None and (output.endswith(("-", ".neff")) or files.is_file(output)):
        raise bad_value(f"-o: `{output}` is a file, and there are several to write", "-o FOLDER")
    return output or ""


# ---- one file -----------------------------------------------------------------------------------


@dataclass
class Recorder(Session):
    """Records what a session would write."""

    said: list[Any] = field(default_factory=list)

    def warn_of_settings(self) -> None:
        """Leave it to the session of all files."""

    def report(self, diagnostics: Sequence[Diagnostic]) -> None:
        self._reported += diagnostics
        if diagnostics:
            self.said.append(("report", to_json(diagnostics)))

    def artifact(self, kind: str, path: str, **fields: object) -> None:
        self.said.append(("artifact", kind, path, fields))

    def status(self, text: str, level: int = 0) -> None:
        self.said.append(("status", text, level))

    def tell(self, type: str, text: str, /, **fields: object) -> None:
        self.said.append(("tell", type, text, fields))


@dataclass
class Outcome:
    """What became of a file; `inputs` are the files that were read for it."""

    path: str
    code: int
    said: Sequence[Any] = ()
    inputs: Sequence[str] = ()
    hidden: int = 0
    has_kernels: bool = True
    diagnostics: list[Diagnostic] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    resources: Mapping[str, Any] = field(default_factory=dict)
    before: Mapping[str, Any] = field(default_factory=dict)  # the resources of the baseline

    @classmethod
    def read(cls, path: str, data: bytes) -> Outcome:
        """Return what a process sent. Raises `LookupError`, `TypeError` or `ValueError`."""
        code, inputs, hidden, said = json.loads(data)
        outcome = cls(path, int(code), said, [path, *map(str, inputs)], int(hidden))
        for what, *rest in said:
            if what == "report":
                outcome.diagnostics += from_json(rest[0])
            elif what == "artifact":
                outcome.written.append(rest[1])
                outcome.resources = _together(outcome.resources, rest[2].get("resources"))
        return outcome

    def count(self, level: Level) -> int:
        return sum(diagnostic.level is level for diagnostic in self.diagnostics)

    @property
    def result(self) -> str:
        return RESULTS.get(self.code, SIGNAL) if self.has_kernels else NONE

    def without_kernel(self) -> Outcome:
        """Return the outcome for a file that has no kernel, if this is one."""
        is_one = [d.code.slug for d in self.diagnostics if d.primary is None] == [NO_KERNEL]
        is_one = is_one and len(self.diagnostics) == 1
        return Outcome(self.path, 0, inputs=self.inputs, has_kernels=False) if is_one else self

    @property
    def row(self) -> tuple[str, ...]:
        used = self.resources
        share = f"{100 * used['sbuf_bytes'] / used['sbuf_limit']:.0f}%" if used else "-"
        told = (used["kernel"], share, self.cycles) if used else ("-", "-", "-")
        errors, warnings = self.count(Level.ERROR), self.count(Level.WARNING)
        return (clean(self.path), self.result, str(errors), str(warnings), *map(clean, told))

    @property
    def cycles(self) -> str:
        now, before = self.resources["cycles"], self.before.get("cycles")
        change = f" ({100 * (now / before - 1):+.1f}%)" if before else ""
        return f"{grouped(now)}{change}"

    def judged(self, rules: Sequence[compare.Rule], before: Mapping[str, Any]) -> None:
        """Compare with the figures of a baseline, and add an error for each rule that breaks."""
        self.before = before
        help = "nki-run compare shows which lines cost more, from runs' --json"
        broken = compare.broken(rules, _figures(self.resources), _figures(before), {}, help)
        if broken:
            place = Label(Span(self.path, 0, 0, 0, 0))
            broken = [replace(diagnostic, primary=place) for diagnostic in broken]
            self.diagnostics += broken
            self.said = [*self.said, ("report", to_json(broken))]
            self.code = max(self.code, 1)

    @property
    def json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "result": self.result,
            "exit": self.code,
            "errors": self.count(Level.ERROR),
            "warnings": self.count(Level.WARNING),
            "written": self.written,
            "resources": self.resources or None,
            **({"before": self.before} if self.before else {}),
        }


def _together(one: Mapping[str, Any], other: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return the resources of a file's kernels: the cycles of all, and the most memory."""
    if not one or not other or one == other:
        return other or one
    most = {name: max(one[name], other[name]) for name in ("sbuf_bytes", "psum_banks")}
    kernel, cycles = f"{one['kernel']}, {other['kernel']}", one["cycles"] + other["cycles"]
    return {**one, **most, "kernel": kernel, "cycles": cycles}


def _figures(resources: Mapping[str, Any]) -> dict[str, float]:
    """Return the figures of --fail-if."""
    return {figure: float(resources[name]) for figure, name in FIGURES.items()}


class Running(NamedTuple):
    """The process of one file; `life` is a pipe whose end ends it."""

    number: int
    process: int
    life: int


@dataclass
class Pool:
    """Compiles files, `jobs` at a time, each in a process that is forked from this one."""

    compile_file: CompileFile
    session: Session
    jobs: int
    running: dict[Connection, Running] = field(default_factory=dict)

    def outcomes(self, lines: Sequence[CommandLine]) -> Iterator[Outcome]:
        """Yield what became of each file, in their order."""
        early: dict[int, Outcome] = {}
        begun = following = 0
        try:
            while following < len(lines):
                while begun < len(lines) and len(self.running) < self.jobs:
                    self.start(begun, lines[begun])
                    begun += 1
                ready = wait([*self.running])
                for connection in [each for each in self.running if each in ready]:
                    number = self.running[connection].number
                    early[number] = self.ended(connection, str(lines[number].source))
                while following in early:
                    yield early.pop(following)
                    following += 1
        finally:
            self.end()

    def start(self, number: int, line: CommandLine) -> None:
        ours, its = Pipe(duplex=False)
        ends, life = os.pipe()
        process = os.fork()
        if process == 0:
            code = INTERRUPTED
            try:
                for each in (life, *(other.life for other in self.running.values())):
                    os.close(each)
                watcher.end_with(ends)
                leave_streams()
                code = self.work(line, its)
            finally:
                os._exit(code)
        its.close()
        os.close(ends)
        self.running[ours] = Running(number, process, life)

    def work(self, line: CommandLine, connection: Connection) -> int:
        """Compile a file in a process that watches another, and send its messages."""
        session = self.session
        ended = watcher.fork(again=True)
        recorder = Recorder(
            session.tool, session.argv, limits=session.limits, levels=session.levels
        )
        recorder.own_process = session.own_process
        if ended is None:
            code = max(
                attempt(partial(self.compile_file, one, recorder, {}), recorder)
                for one in lines_of_kernels(line, recorder)
            )
        elif ended.reason is watcher.Reason.ITSELF:
            return ended.code  # it has sent them
        else:
            from nkic.cli.common import crash  # rarely needed

            code = crash.exit_code(ended)
            if ended.reason is not watcher.Reason.SIGNAL:
                recorder.report([crash.of_ended(ended, session.tool)])
        inputs = [*recorder.inputs()]
        message = json.dumps([code, inputs, recorder.hidden, recorder.said])
        connection.send_bytes(message.encode())
        return code

    def ended(self, connection: Connection, path: str) -> Outcome:
        running = self.running.pop(connection)
        try:
            outcome = Outcome.read(path, connection.recv_bytes())
        except (EOFError, OSError, LookupError, TypeError, ValueError):
            text = f"internal error in {self.session.tool}: no answer about `{clean(path)}`"
            outcome = Outcome(path, INTERNAL, diagnostics=[make("internal-error", text)])
            outcome.said = [("report", to_json(outcome.diagnostics))]
        finally:
            connection.close()
            os.waitpid(running.process, 0)
            os.close(running.life)
        return outcome

    def end(self) -> None:
        """End what runs, which removes its half-written files."""
        for running in self.running.values():
            with suppress(ProcessLookupError):
                os.kill(running.process, signal.SIGTERM)
        for running in self.running.values():
            os.waitpid(running.process, 0)
            os.close(running.life)
        self.running.clear()


# ---- all files ----------------------------------------------------------------------------------


def carry_out(line: CommandLine, session: Session, compile_file: CompileFile) -> int:
    """Compile all files, report, and return the exit code of the worst. Raises `UsageFailed`."""
    refuse_conflicts(line, given_options())
    if line.watching:
        need("--watch needs", "watchfiles")
    report = line.bug_report
    try:
        held = [*Path(report).iterdir()] if report is not None and files.is_folder(report) else []
    except OSError as error:
        raise files.refused(error, files.cannot_read(str(report), error)) from error
    if held:  # what is there would be taken for a part of it, and attached
        text = f"--bug-report {report}: the folder is not empty, it holds `{min(held).name}`"
        raise bad_value(text, "name a folder that is not there yet; it is made")
    session.warn_of_settings()
    files.setting(files.KERNELS)  # says once what is wrong with the project's settings
    many = _Many(line, session, compile_file)
    many.check()
    return many.watch() if line.watching else many.code


ROUNDS = 10  # of --fix: a fix may make room for another one
MAX_BASELINE = 64 << 20  # bytes
WAKE = 2000  # milliseconds between looks at files whose changes nobody told of
Stamp = tuple[int, int]


class _Many:
    def __init__(self, line: CommandLine, session: Session, compile_file: CompileFile) -> None:
        self.line, self.session = line, session
        mine = watcher.page()
        if mine is not None:
            mine.grace += 1  # the files' processes have as long as this one would have
        self.pool = Pool(compile_file, session, line.jobs or _processors())
        self.rules, self.baseline = _baseline(line)
        self.found: list[Found] = []
        self.outcomes: dict[str, Outcome] = {}
        self.texts: dict[str, SourceFile | None] = {}
        self.stamps: dict[str, Stamp | None] = {}  # of all files that were read, when they were
        session.sources = self.source

    @property
    def code(self) -> int:
        """The exit code of the worst."""
        return max((outcome.code for outcome in self.outcomes.values()), default=0)

    def source(self, path: str) -> SourceFile | None:
        """Return a file that one of the processes has read."""
        if path not in self.texts and path in self.stamps:
            try:
                self.texts[path] = decode(files.read_bytes(path, MAX_BYTES), path)
            except NkicError:  # it is gone, or no text
                self.texts[path] = None
        return self.texts.get(path)

    def check(self, changed: Collection[str] | None = None) -> None:
        """Compile all files, or those that depend on changed ones, and report."""
        self.found = found_in(self.line.sources)
        if not self.found:
            raise bad_value("there is no Python file in the folder", "name a kernel's file")
        lines = dict(zip(self.found, lines_for(self.line, self.found), strict=True))
        before = self.outcomes
        self.outcomes = {f.path: before[f.path] for f in self.found if f.path in before}
        due = self.found if changed is None else self.due(changed)
        for number in range(ROUNDS + 1):
            for outcome in self.compiled({one: lines[one] for one in due}):
                self.outcomes[outcome.path] = outcome
                if not self.line.fix:
                    self.repeat(outcome)
            now = self.apply_fixes() if self.line.fix and number < ROUNDS else ()
            if not now:
                break
            due = self.due(now)
        done = [self.outcomes[one.path] for one in self.found]
        if changed is not None:
            done = [outcome for outcome in done if outcome is not before.get(outcome.path)]
        for outcome in done if self.line.fix else ():
            self.repeat(outcome)
        self.write_summary(done)

    def due(self, changed: Collection[str]) -> list[Found]:
        """Return the files that depend on changed ones, or that are new."""
        old = {path for path, each in self.outcomes.items() if not {*each.inputs} & {*changed}}
        return [one for one in self.found if one.path not in old]

    def compiled(self, lines: Mapping[Found, CommandLine]) -> Iterator[Outcome]:
        """Compile files, and yield what became of them."""
        kernel = self.line.kernel
        has = {f: kernel is not None or _may_have_kernels(f.path) for f in lines}
        self.note(one.path for one in lines)
        done = self.pool.outcomes([line for one, line in lines.items() if has[one]])
        for one in lines:
            nothing = Outcome(one.path, 0, inputs=[one.path], has_kernels=False)
            outcome = next(done).without_kernel() if has[one] else nothing
            self.note(path for path in outcome.inputs if path not in self.stamps)
            if outcome.resources and one.path in self.baseline:
                outcome.judged(self.rules, self.baseline[one.path])
            yield outcome

    def note(self, paths: Iterable[str]) -> None:
        """Note what the files are like now."""
        for path in paths:
            self.stamps[path] = _stamp(path)
            self.texts.pop(path, None)

    def repeat(self, outcome: Outcome) -> None:
        """Write the messages about a file, and then what became of it."""
        self.session.hidden += outcome.hidden
        for what, *rest in outcome.said:
            if what == "report":
                self.session.report(from_json(rest[0]))
            elif what == "artifact":
                self.session.artifact(rest[0], rest[1], **rest[2])
            elif what == "status":
                self.session.status(*rest)
            elif what == "tell":
                self.session.tell(rest[0], f"{outcome.path}: {rest[1]}", **rest[2])
        self.session.event("file", **outcome.json)

    def write_summary(self, done: Sequence[Outcome]) -> None:
        line, outcomes = self.line, [*self.outcomes.values()]
        if line.junit is not None:
            files.write(line.junit, junit(outcomes))
        if line.bug_report is not None:
            self.write_bug_report(Path(line.bug_report))
        if line.json:
            files.write(STANDARD, prints.document("files", [one.json for one in outcomes]))
        elif self.session.verbosity >= 0 and line.junit != STANDARD:
            named = {one.path for one in self.found if one.named}  # others are only counted
            rows = [each.row for each in done if each.has_kernels or each.path in named]
            table = aligned([HEAD, *rows]) if rows else ""
            files.write(STANDARD, f"{table}{_verdict(outcomes)}\n")

    def write_bug_report(self, folder: Path) -> None:
        """Write what a report of a fault needs; the user's source only if asked."""
        from nkic.cli.common import crash  # rarely needed

        found = [d for outcome in self.outcomes.values() for d in outcome.diagnostics]
        results = json.dumps([one.json for one in self.outcomes.values()], indent=1)
        texts = {
            "run.json": crash.circumstances(self.session),
            "results.json": f"{results}\n",
            "messages.jsonl": "".join(text.json_line(d, lambda path: None) for d in found),
        }
        for number, path in enumerate(sorted(self.stamps) if self.line.with_source else ()):
            source = self.source(path)
            if source is not None:
                texts[f"source/{crash.in_report(number, path)}"] = source.text
        for name, content in texts.items():
            files.make_folder((folder / name).parent)
            files.write(str(folder / name), content)
        self.session.tell("bug-report", f"wrote {folder}: attach it", path=str(folder))

    # ---- fixes -----------------------------------------------------------------------------

    def apply_fixes(self) -> list[str]:
        """Apply the safe fixes of messages to the files, and return those that changed.

        Of fixes that meet, the first is applied: the next round has the others, if they still hold.
        """
        own = {files.real(one.path): one.path for one in self.found}
        fixes: dict[str, list[Fix]] = {}
        for outcome in self.outcomes.values():
            for fix in (fix for found in outcome.diagnostics for fix in found.fixes):
                if path := own.get(files.real(fix.span.path)):
                    moved = replace(fix, span=fix.span._replace(path=path))
                    fixes.setdefault(path, []).append(moved)
        changed = set[Path]()
        for path, some in fixes.items():
            kept, source = sorted(apart(some), key=lambda fix: fix.span), self.source(path)
            if kept and source is not None:
                new = source.replaced((fix.span, fix.replacement) for fix in kept)
                outputs.replace_text(path, source.text, new)
                changed.add(files.real(path))
            for fix in kept if source is not None else ():
                text = f"fixed {clean(str(fix.span))}: {fix.title}"
                line, column = fix.span[1:3]
                self.session.tell("fixed", text, path=path, line=line, column=column, fix=fix.title)
        return [path for path in self.stamps if files.real(path) in changed]

    # ---- watching --------------------------------------------------------------------------

    def watch(self) -> int:
        """Compile again what changes, until interrupted; return the exit code of the worst."""
        try:
            from watchfiles import watch  # needs a package, and time in which a signal may come

            while True:
                now = {path: _stamp(path) for path in self.stamps}
                changed = {path for path, stamp in now.items() if stamp != self.stamps[path]}
                present = {one.path for one in found_in(self.line.sources)}
                if changed or present != self.outcomes.keys():
                    self.session.begin_again()
                    self.note(changed)
                    self.check(changed)
                    continue
                homes = {str(Path(path).parent) for path in self.stamps}
                homes |= {home for source in self.line.sources for home in _folders(Path(source))}
                seen = [home for home in homes if files.is_folder(home)]
                told = watch(
                    *seen,
                    recursive=False,
                    watch_filter=None,
                    rust_timeout=WAKE,
                    yield_on_timeout=True,
                )
                with closing(told):
                    next(told, None)
        except (KeyboardInterrupt, Terminated):
            return self.code


def _baseline(line: CommandLine) -> tuple[list[compare.Rule], dict[str, Any]]:
    """Return the rules that compare, and the resources of the baseline by path."""
    if line.baseline is None:
        return [], {}
    data = files.read_bytes(line.baseline, MAX_BASELINE)
    try:
        found = json.loads(data)["files"]
        resources = {one["path"]: one["resources"] for one in found if one["resources"]}
        for each in resources.values():
            _figures(each)
    except (ValueError, LookupError, TypeError, RecursionError):
        message = (
            f"--baseline: `{line.baseline}` is not the output of `nkic --json` for several files"
        )
        raise bad_value(message, "nkic FOLDER -j 1 --json > base.json") from None
    words = [rule for rule in (line.fail_if or "").split(",") if "+" in rule]
    rules = compare.rules(",".join(words) or None)
    for rule in rules:
        if rule.figure not in FIGURES:
            text = f"--fail-if {clean(rule.text)}: a compilation does not tell {rule.figure}"
            raise bad_value(text, f"known are: {', '.join(FIGURES)}")
    return rules, resources


def _stamp(path: str) -> Stamp | None:
    """Return what tells that a file has changed; None if there is none."""
    try:
        facts = Path(path).stat()
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_size


def _processors() -> int:
    with suppress(AttributeError):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _may_have_kernels(path: str) -> bool:
    """Return whether a file names nki, as the decorator of every kernel does."""
    try:
        return not path.endswith(".py") or b"nki" in files.read_regular(path, MAX_BYTES)
    except NkicError:
        return True  # the compilation says what is wrong


def _verdict(outcomes: Sequence[Outcome]) -> str:
    results = [outcome.result for outcome in outcomes]
    counts = [f"{results.count(each)} {each}" for each in ORDER if each in results]
    return f"{plural(len(outcomes), 'file')}: {', '.join(counts)}"


def junit(outcomes: Sequence[Outcome]) -> str:
    """Return the results as XML of JUnit: a case for each file."""
    failed = sum(outcome.code == 1 for outcome in outcomes)
    broken = sum(outcome.code > 1 for outcome in outcomes)
    skipped = sum(not outcome.has_kernels for outcome in outcomes)
    counts = {"tests": len(outcomes), "failures": failed, "errors": broken, "skipped": skipped}
    facts = {name: str(count) for name, count in counts.items()}
    suites = ElementTree.Element("testsuites", facts)
    suite = ElementTree.SubElement(suites, "testsuite", {"name": "nkic", **facts})
    for outcome in outcomes:
        path = clean(outcome.path)
        case = ElementTree.SubElement(suite, "testcase", classname="nkic", name=path, file=path)
        said = [clean(text.header(d)) for d in outcome.diagnostics]
        if not outcome.has_kernels:
            ElementTree.SubElement(case, "skipped", message=NONE)
        elif outcome.code:
            errors = [clean(d.message) for d in outcome.diagnostics if d.level is Level.ERROR]
            message = errors[0] if errors else outcome.result
            kind = "failure" if outcome.code == 1 else "error"
            ElementTree.SubElement(case, kind, message=message).text = "\n".join(said)
        elif said:
            ElementTree.SubElement(case, "system-out").text = "\n".join(said)
    ElementTree.indent(suites)
    declaration = '<?xml version="1.0" encoding="utf-8"?>\n'
    return f"{declaration}{ElementTree.tostring(suites, 'unicode')}\n"
