"""Assembly of the HTML page."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from importlib.resources import files
from string import Template
from typing import Any, NamedTuple

from nkic.base.source import SourceFile
from nkic.machine.engines import SHORT_NAMES, Engine
from nkic.report import run_report
from nkic.report.compare.changes import Changes
from nkic.report.insight.verdict import Insight
from nkic.report.page.data import columns
from nkic.report.page.parts import Links, Parts, changed, escaped, resources, table
from nkic.report.page.roofline import roofline
from nkic.report.run_report import RunReport


class Section(NamedTuple):
    """A part of the page, with its finished HTML."""

    id: str
    title: str
    html: str


def page(
    insight: Insight,
    run: RunReport,
    sources: Mapping[str, SourceFile],
    compared: Changes | None = None,
    command: str = "",
) -> str:
    """Return the page, the same for the same run; every text in it is escaped.

    `sources` are the known texts, `compared` the changes against a baseline, `command` is the
    command line, if there is one.
    """
    links = Links(insight, sources)
    parts = Parts(insight, links)
    sections = [*_sections(parts, run, sources, compared, command)]
    style, script = _asset("page.css"), _asset("page.js")
    drawn = columns(insight)
    line = run_report.time_line(run)
    tracks = ", ".join(track["name"] for track in drawn["tracks"])
    return Template(_asset("page.html")).substitute(
        title=escaped(f"{run.kernel}: {run.cycles:,} cycles"),
        kernel=escaped(run.kernel),
        line=escaped(line),
        device=escaped(run_report.device_line(run)),
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
        links="".join(f'<a href="#{s.id}">{escaped(s.title)}</a>' for s in (*_FIRST, *sections)),
        verdict="".join(f"<p>{links.linked(words)}</p>" for words in insight.verdict.lines),
        legend=_legend(drawn),
        timeline_label=escaped(f"Timeline of {run.kernel}: {tracks}, critical path. {line}"),
        memory_label="Bytes of SBUF and PSUM that hold data over time",
        owners=parts.owners(),
        sections="".join(_section(s) for s in sections),
        data=_embedded(drawn),
    )


_FIRST = (
    Section("verdict", "Verdict", ""),
    Section("time", "Timeline", ""),
    Section("memories", "Memory", ""),
)


def _sections(
    parts: Parts,
    run: RunReport,
    sources: Mapping[str, SourceFile],
    compared: Changes | None,
    command: str,
) -> Iterator[Section]:
    """Yield the sections without a script, in order."""
    if compared is not None:
        yield Section("changes", "Against the baseline", changed(compared))
    yield Section("what-if", "What if", parts.answers())
    yield Section("critical", "Critical path", parts.critical())
    yield Section("source", "Source", parts.annotated(sources))
    yield Section("roofline", "Roofline", roofline(parts.insight))
    yield Section("resources", "Resources", resources(run))
    rows = run_report.about(run, parts.insight.trace.executable, command)
    yield Section("about", "About this run", table("About this run", ("", ""), rows))


def _section(section: Section) -> str:
    title = escaped(section.title)
    head = f'<section id="{section.id}" aria-label="{title}"><h2>{title}</h2>'
    return f"{head}{section.html}</section>\n"


def _legend(drawn: Mapping[str, Any]) -> str:
    """Return what the colours and heights of the timeline mean."""
    engines = dict.fromkeys(track["engine"] for track in drawn["tracks"])
    marks = [(name, SHORT_NAMES[Engine(name)]) for name in engines]
    if any(track["triggers"] for track in drawn["tracks"]):
        marks.append(("half", "half height: triggers a transfer"))
    marks.append(("path", "below a lane: on the critical path"))
    return "".join(f'<li><i class="{mark}"></i>{words}</li>' for mark, words in marks)


def _embedded(value: object) -> str:
    """Return JSON in which no text can end the script element."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    """Return the hash by which the page's policy allows this text and no other."""
    return f"sha256-{base64.b64encode(sha256(text.encode()).digest()).decode('ascii')}"
