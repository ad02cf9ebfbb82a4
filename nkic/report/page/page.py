"""Assembly of the HTML page."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files
from string import Template
from typing import Any, NamedTuple

from nkic.base.source import SourceFile
from nkic.report.compare.changes import Changes
from nkic.report.insight.verdict import Insight
from nkic.report.page import parts
from nkic.report.page.data import columns
from nkic.report.page.parts import escaped
from nkic.report.page.roofline import roofline


class Section(NamedTuple):
    """A part of the page, with its finished HTML."""

    id: str
    title: str
    html: str


def page(
    insight: Insight,
    run: Mapping[str, Any],
    sources: Mapping[str, SourceFile],
    compared: Changes | None = None,
) -> str:
    """Return the page, the same for the same run; every text in it is escaped.

    `run` is the JSON of the run, `sources` the known texts, `compared` the changes against a
    baseline.
    """
    sections = _sections(insight, run, sources, compared)
    style, script = _asset("page.css"), _asset("page.js")
    drawn = columns(insight)
    line = f"{run['cycles']:,} cycles, {run['time_ns'] / 1000:,.2f} us on {run['target']}"
    tracks = ", ".join(track["name"] for track in drawn["tracks"])
    return Template(_asset("page.html")).substitute(
        title=escaped(f"{run['kernel']}: {run['cycles']:,} cycles"),
        kernel=escaped(run["kernel"]),
        line=escaped(line),
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
        links="".join(f'<a href="#{s.id}">{escaped(s.title)}</a>' for s in (*_FIRST, *sections)),
        verdict="".join(f"<p>{escaped(words)}</p>" for words in insight.verdict.lines),
        legend=_legend(drawn),
        timeline_label=escaped(f"Timeline of {run['kernel']}: {tracks}, critical path. {line}"),
        memory_label="Bytes of SBUF and PSUM in use over time",
        owners=parts.owners(insight),
        sections="".join(_section(s) for s in sections),
        data=_embedded(drawn),
    )


_FIRST = (
    Section("verdict", "Verdict", ""),
    Section("time", "Timeline", ""),
    Section("memories", "Memory", ""),
)


def _sections(
    insight: Insight,
    run: Mapping[str, Any],
    sources: Mapping[str, SourceFile],
    compared: Changes | None,
) -> list[Section]:
    """Return the sections without a script, in order."""
    sections = [
        Section("what-if", "What if", parts.answers(insight)),
        Section("critical", "Critical path", parts.critical(insight)),
        Section("source", "Source", parts.annotated(insight, sources)),
        Section("roofline", "Roofline", roofline(insight)),
        Section("resources", "Resources", parts.resources(run)),
    ]
    if compared is not None:
        sections.append(Section("changes", "Against the baseline", parts.compared(compared)))
    return sections


def _section(section: Section) -> str:
    title = escaped(section.title)
    head = f'<section id="{section.id}" aria-label="{title}"><h2>{title}</h2>'
    return f"{head}{section.html}</section>\n"


def _legend(drawn: Mapping[str, Any]) -> str:
    engines = dict.fromkeys(track["engine"] for track in drawn["tracks"])
    marks = [f'<span><i class="{name}"></i>{name}</span>' for name in engines]
    return "".join([*marks, '<span><i class="path"></i>critical path</span>'])


def _embedded(value: object) -> str:
    """Return JSON in which no text can end the script element."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    """Return the hash by which the page's policy allows this text and no other."""
    return f"sha256-{base64.b64encode(sha256(text.encode()).digest()).decode('ascii')}"
