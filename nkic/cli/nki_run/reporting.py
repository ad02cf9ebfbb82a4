"""The printed and written reports of a run."""

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

from nkic.base import files
from nkic.base.diagnostics import bad_value
from nkic.base.files import STANDARD
from nkic.base.source import SourceFile
from nkic.base.suggest import suggestion
from nkic.base.text import clean
from nkic.cli.common import Session, pages
from nkic.cli.nki_run import comparing
from nkic.cli.nki_run.options import REPORTS, TO_STDOUT, CommandLine
from nkic.neff.records import Executable
from nkic.report import run_report
from nkic.report.compare import measured
from nkic.report.compare.changes import Changes
from nkic.report.compare.profiles import profile_of
from nkic.report.insight.verdict import Insight
from nkic.report.page import page
from nkic.report.run_report import RunReport
from nkic.report.views import (
    annotate,
    chrome,
    counters,
    lanes,
    markdown,
    perfetto,
    profile,
)

SOURCE_LIMIT = 1 << 26  # bytes of a source file
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
    """Yield the reports that --report requests. Raises `UsageFailed`."""
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
        if kind == "counters" and not counters.is_there():
            text = "--report counters needs the package pyarrow"
            raise bad_value(text, "pip install pyarrow")
        if at:
            _window(part)
        yield Wanted(kind, path or STANDARD, part)


ARTIFACTS = {"neuron": "json", "counters": "parquet"}  # the kinds of files, for programs
SUFFIXES = {"neuron": "json", "trace": "json", "counters": "parquet"}
TRACES: dict[str, Callable[[Insight], bytes]] = {
    ".json": chrome.trace,
    ".json.gz": chrome.compressed,
    ".pftrace": perfetto.trace,
}


def _trace_of(path: str) -> Callable[[Insight], bytes]:
    """Return the writer for the trace format of a path's suffix. Raises `UsageFailed`."""
    ending = next((ending for ending in TRACES if path.endswith(ending)), None)
    if ending is None:
        raise bad_value(
            f"--report trace={clean(path)}: the file's name does not tell its format",
            f"end it in {_ENDINGS}",
        )
    if ending == ".pftrace" and not perfetto.is_there():
        text = "--report trace: a .pftrace file needs the package perfetto, which is not installed"
        raise bad_value(text, "pip install perfetto, or write FILE.json")
    return TRACES[ending or ".json"]


_ENDINGS = f"{', '.join([*TRACES][:-1])} or {[*TRACES][-1]}"


def check(line: CommandLine, executable: Executable) -> None:
    """Raise `UsageFailed` for errors that are known before the run."""
    comparing.baseline_of(line)
    list(wanted(line))
    sources(line, executable)


def write(line: CommandLine, session: Session, analysis: Insight, run: RunReport) -> int:
    """Write all requested reports, and return the exit code of --fail-if."""
    texts = sources(line, analysis.trace.executable)
    baseline = comparing.baseline_of(line)
    document = profile.profile(analysis, run_report.record(run), texts)
    compared = comparing.tell_changes(session, baseline, document) if baseline is not None else None
    command = shlex.join((session.tool, *session.argv))
    facts = Facts(analysis, run, texts, compared, command)
    if line.against is not None:
        rows = measured.beside(analysis.trace, line.against)
        files.write(STANDARD, "" if line.json else measured.text(rows))
        session.tell("against", rows[0].words, rows=[asdict(row) for row in rows])
    for report in wanted(line):
        _file(session, report, _content(report, facts, document, session.color))
    return comparing.judge(line.fail_if, session, baseline, profile_of(document))


def _content(report: Wanted, facts: Facts, document: Mapping[str, Any], colour: str) -> str | bytes:
    """Return the text or the bytes of a report."""
    match report.kind:
        case "annotate":
            return annotate.annotated(facts.insight, facts.sources)
        case "timeline":
            text = _lanes(report.part, facts.insight)
            return pages.styled(text, colour, lanes.style_of) if report.path == STANDARD else text
        case "html":
            return page.page(*facts)
        case "md":
            return markdown.markdown(facts.insight, facts.run, facts.compared, facts.command)
        case "neuron":
            return profile.as_json({document["id"]: document["neuron"]})
        case "trace":
            return _trace_of(report.path)(facts.insight)
        case "counters":
            return counters.parquet(facts.insight)
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
    """Return the timeline, as wide as the terminal, in ASCII if the stream supports nothing
    else.
    """
    width = shutil.get_terminal_size((WIDTH, 0)).columns if sys.stdout.isatty() else WIDTH
    encoding = (sys.stdout.encoding or "").lower()
    blocks = lanes.BLOCKS if encoding.startswith("utf") else lanes.ASCII
    return lanes.text(insight, width, blocks, _window(part) if part else None)


def _file(session: Session, report: Wanted, content: str | bytes) -> None:
    files.write(report.path, content)
    if report.path != STANDARD:
        session.wrote(ARTIFACTS.get(report.kind, report.kind), report.path)


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
