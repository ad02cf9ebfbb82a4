"""The printed and written reports of a run, its baseline, and the limits of its figures."""

from __future__ import annotations

import codecs
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from hashlib import sha256
from typing import Any, NamedTuple

from nkic.artifact.records import Executable
from nkic.base import files
from nkic.base.diagnostics import bad_value, need, suggestion
from nkic.base.files import STANDARD
from nkic.base.source import SourceFile
from nkic.base.text import clean
from nkic.cli.common import Session, streams
from nkic.cli.nki_run.options import REPORTS, TO_STDOUT, CommandLine
from nkic.report import compare, lanes, measured, page, profile, run_report, traces
from nkic.report.compare import LIMIT, Changes, Profile, changes, profile_of, read_profile
from nkic.report.run_report import RunReport
from nkic.report.verdict import Insight

SOURCE_LIMIT = 1 << 26  # bytes of a source file
NO = 1  # the exit code of an exceeded budget
WIDTH = 120  # of a timeline if the terminal's width is unknown


class Facts(NamedTuple):
    """The contents of a report; `compared` is what changed, `command` the command line."""

    insight: Insight
    run: RunReport
    sources: Mapping[str, SourceFile]
    compared: Changes | None
    command: str


class Wanted(NamedTuple):
    """A requested report; `part` restricts it, as in `timeline@10:20`."""

    kind: str
    path: str
    part: str = ""


def wanted(line: CommandLine) -> Iterator[Wanted]:
    for value in line.report:
        name, equals, path = value.partition("=")
        kind, at, part = name.partition("@")
        if kind not in REPORTS or (at and kind != "timeline"):
            text = f"--report: there is no report `{clean(name)}`"
            raise bad_value(text, suggestion(kind, REPORTS))
        if not path and (equals or kind not in TO_STDOUT):
            example = f"for example {kind}=run.{SUFFIXES.get(kind, kind)}"
            raise bad_value(f"--report {clean(value)}: expected {kind}=FILE", example)
        if kind == "trace":
            _trace_of(path)
        if kind == "counters":
            need("--report counters needs", "pyarrow")
        if at:
            _window(part)
        yield Wanted(kind, path or STANDARD, part)


ARTIFACTS = {"neuron": "json", "counters": "parquet"}  # the kinds of files, for programs
SUFFIXES = {"neuron": "json", "trace": "json", "counters": "parquet"}
TRACES: dict[str, Callable[[Insight], bytes]] = {
    ".json": traces.trace,
    ".json.gz": traces.compressed,
    ".pftrace": traces.perfetto_trace,
}


def _trace_of(path: str) -> Callable[[Insight], bytes]:
    """Return the writer for the trace format of a path's suffix. Raises `UsageFailed`."""
    ending = next((ending for ending in TRACES if path.endswith(ending)), None)
    if ending is None:
        raise bad_value(
            f"--report trace={clean(path)}: the file's name does not tell its format",
            f"end it in {_ENDINGS}",
        )
    if ending == ".pftrace":
        instead = ", or write FILE.json"
        need("--report trace: a .pftrace file needs", "perfetto", instead=instead)
    return TRACES[ending or ".json"]


_ENDINGS = f"{', '.join([*TRACES][:-1])} or {[*TRACES][-1]}"


def check(line: CommandLine, executable: Executable) -> None:
    baseline_of(line)
    list(wanted(line))
    sources(line, executable)
    if line.against is not None:
        list(measured.read(line.against))


def write(line: CommandLine, session: Session, analysis: Insight, run: RunReport) -> int:
    """Write all requested reports, and return the exit code of --fail-if."""
    texts = sources(line, analysis.trace.executable)
    baseline = baseline_of(line)
    document = profile.profile(analysis, run_report.record(run), texts)
    compared = tell_changes(session, baseline, document) if baseline is not None else None
    command = shlex.join((session.tool, *session.argv))
    facts = Facts(analysis, run, texts, compared, command)
    if line.against is not None:
        rows = measured.beside(analysis.trace, line.against)
        files.write(STANDARD, "" if line.json else measured.text(rows))
        session.tell("against", rows[0].words, rows=[asdict(row) for row in rows])
    for report in wanted(line):
        files.write(report.path, _content(report, facts, document, session.color))
        if report.path != STANDARD:
            session.wrote(ARTIFACTS.get(report.kind, report.kind), report.path)
    return judge(line.fail_if, session, baseline, profile_of(document))


def _content(report: Wanted, facts: Facts, document: Mapping[str, Any], colour: str) -> str | bytes:
    match report.kind:
        case "annotate":
            return lanes.annotated(facts.insight, facts.sources)
        case "timeline":
            text = _lanes(report.part, facts.insight)
            return streams.styled(text, colour, lanes.style_of) if report.path == STANDARD else text
        case "html":
            return page.page(*facts)
        case "md":
            return lanes.markdown(facts.insight, facts.run, facts.compared, facts.command)
        case "neuron":
            return profile.as_json({document["id"]: document["neuron"]})
        case "trace":
            return _trace_of(report.path)(facts.insight)
        case "counters":
            return traces.parquet(facts.insight)
    return profile.as_json({"schema": 1, **document})


def _window(part: str) -> lanes.Window:
    """Return the part of a run in `10:20` or `10.5:20` microseconds. Raises `UsageFailed`."""
    number = r"(\d{1,12}(?:\.\d{1,6})?)"
    match = re.fullmatch(f"{number}:{number}", part.strip())
    if match is None or float(match[1]) >= float(match[2]):
        text = f"--report timeline@{clean(part)}: `{clean(part)}` is not of the form FROM:TO"
        raise bad_value(text, "for example timeline@10:20.5, in microseconds")
    start, end = (round(float(time) * 1_000_000) for time in match.groups())
    return lanes.Window(start, end, 1)


def _lanes(part: str, insight: Insight) -> str:
    """Return the timeline, as wide as the terminal, in ASCII if the stream has nothing else."""
    width = shutil.get_terminal_size((WIDTH, 0)).columns if sys.stdout.isatty() else WIDTH
    encoding = (sys.stdout.encoding or "").lower()
    blocks = lanes.BLOCKS if encoding.startswith("utf") else lanes.ASCII
    return lanes.text(insight, width, blocks, _window(part) if part else None)


def sources(line: CommandLine, executable: Executable) -> dict[str, SourceFile]:
    """Return the source texts in the artifact, and those of --source, which must match the
    artifact's hashes.

    Raises `UsageFailed`.
    """
    source_files = dict(executable.sources)
    by_hash = {file.sha256: file.path for file in executable.files}
    for path in line.source:
        data = files.read_bytes(path, SOURCE_LIMIT).removeprefix(codecs.BOM_UTF8)
        name = by_hash.get(sha256(data).hexdigest())
        if name is None:
            text = f"--source: `{clean(path)}` is not a file that this kernel was compiled from"
            raise bad_value(
                text,
                "give the file as it was when the kernel was compiled, or compile the kernel again",
            )
        source_files[name] = SourceFile(name, data.decode("utf-8", "replace"))
    return source_files


# ---- the baseline, and the limits of figures


def baseline_of(line: CommandLine) -> Profile | None:
    compare.rules(line.fail_if)
    if line.baseline is None:
        return None
    return read_profile(files.read_bytes(line.baseline, LIMIT), line.baseline)


def tell_changes(session: Session, before: Profile, profile: Mapping[str, Any]) -> Changes:
    """Report what this run changes, in a few lines."""
    comparison = changes(before, profile_of(profile))
    rows = [row for row in comparison.figures if row.change]
    shown = [f"{r.name} {r.before:,.0f} to {r.after:,.0f} ({r.share})" for r in rows]
    text = f"against the baseline: {', '.join(shown) or 'no change'}"
    session.tell("baseline", text, changes=comparison.as_json())
    return comparison


def judge(rules: str | None, session: Session, before: Profile | None, after: Profile) -> int:
    figures = before.figures if before is not None else None
    diagnostics = compare.broken(compare.rules(rules), after.figures, figures, after.capacities)
    if diagnostics:
        session.report(diagnostics)
    return NO if diagnostics else 0
