"""The printed and written reports of a run."""

from __future__ import annotations

import codecs
import json
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from typing import NamedTuple

from nkic.base import files
from nkic.base.diagnostics import bad_value
from nkic.base.files import STANDARD
from nkic.base.source import SourceFile
from nkic.base.suggest import suggestion
from nkic.base.text import clean
from nkic.cli.common import Session, pages
from nkic.cli.nki_run import comparing
from nkic.cli.nki_run.options import CommandLine
from nkic.neff.records import Executable
from nkic.report import run_report
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
    summary,
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


Maker = Callable[[Facts], str]
KINDS: dict[str, Maker] = {
    "html": lambda facts: page.page(*facts),
    "json": lambda facts: profile.as_json(
        profile.profile(facts.insight, run_report.record(facts.run), facts.sources)
    ),
    "md": lambda facts: markdown.markdown(facts.insight, facts.run, facts.compared, facts.command),
}


def kinds(line: CommandLine) -> Iterator[tuple[str, str]]:
    """Yield the words of --report as kind and path. Raises `UsageFailed`."""
    for value in line.report:
        kind, equals, path = value.partition("=")
        if kind not in KINDS:
            text = f"--report: there is no report `{clean(kind)}`"
            raise bad_value(text, suggestion(kind, KINDS))
        if not equals or not path:
            raise bad_value(
                f"--report {clean(value)}: expected KIND=FILE", f"for example {kind}=run.{kind}"
            )
        yield kind, path


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
            f"--trace {clean(path)}: the file's name does not tell its format",
            f"end it in {_ENDINGS}",
        )
    if ending == ".pftrace" and not perfetto.is_there():
        text = "--trace: a .pftrace file needs the package perfetto, which is not installed"
        raise bad_value(text, "pip install perfetto, or write FILE.json")
    return TRACES[ending or ".json"]


_ENDINGS = f"{', '.join([*TRACES][:-1])} or {[*TRACES][-1]}"


def check(line: CommandLine, executable: Executable) -> None:
    """Raise `UsageFailed` for errors that are known before the run."""
    comparing.baseline_of(line)
    list(kinds(line))
    for path in line.trace:
        _trace_of(path)
    if line.counters is not None and not counters.is_there():
        raise bad_value("--counters needs the package pyarrow", "pip install pyarrow")
    sources(line, executable)


def write(line: CommandLine, session: Session, analysis: Insight, run: RunReport) -> int:
    """Write all requested reports, and return the exit code of --fail-if."""
    texts = sources(line, analysis.trace.executable)
    if line.annotate:
        files.write(STANDARD, annotate.annotated(analysis, texts))
    if line.timeline:
        text = pages.styled(_lanes(line, analysis), session.color, lanes.style_of)
        files.write(STANDARD, text)
    if line.summary_json is not None:
        values = {run.id: summary.summary(analysis)}
        _file(session, "json", line.summary_json, json.dumps(values, indent=1) + "\n")
    if line.counters is not None:
        _file(session, "parquet", line.counters, counters.parquet(analysis))
    for path in line.trace:
        _file(session, "trace", path, _trace_of(path)(analysis))
    baseline = comparing.baseline_of(line)
    profile_record = profile.profile(analysis, run_report.record(run), texts)
    if line.save_baseline is not None:
        _file(session, "json", line.save_baseline, profile.as_json(profile_record))
    compared = (
        comparing.tell_changes(session, baseline, profile_record) if baseline is not None else None
    )
    command = shlex.join((session.tool, *session.argv))
    facts = Facts(analysis, run, texts, compared, command)
    for kind, path in kinds(line):
        _file(session, kind, path, KINDS[kind](facts))
    return comparing.judge(line, session, baseline, profile_of(profile_record))


def _lanes(line: CommandLine, insight: Insight) -> str:
    """Return the timeline, as wide as the terminal, in ASCII if the stream supports nothing
    else.
    """
    width = shutil.get_terminal_size((WIDTH, 0)).columns if sys.stdout.isatty() else WIDTH
    encoding = (sys.stdout.encoding or "").lower()
    blocks = lanes.BLOCKS if encoding.startswith("utf") else lanes.ASCII
    window = None
    if line.window is not None:
        start, end = (round(time * 1_000_000) for time in line.window)
        window = lanes.Window(start, end, 1)
    return lanes.text(insight, width, blocks, window)


def _file(session: Session, kind: str, path: str, content: str | bytes) -> None:
    files.write(path, content)
    if path != STANDARD:
        session.wrote(kind, path)


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
