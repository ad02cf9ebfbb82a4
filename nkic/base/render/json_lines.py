"""Diagnostics and events for programs: one JSON object per line.

diagnostic.schema.json in this folder describes the objects. Readers should accept unknown fields:
`schema` changes only when the meaning of a field changes.
"""

from __future__ import annotations

import json

from nkic.base.diagnostics import Diagnostic, Fix, Label
from nkic.base.render import human
from nkic.base.source import Sources, Span

SCHEMA = 1

Json = dict[str, object]


def line(diagnostic: Diagnostic, sources: Sources) -> str:
    """Return the diagnostic as a line; `rendered` is its text for people, without colour."""
    return event(
        "diagnostic",
        code=diagnostic.code.number,
        slug=diagnostic.code.slug,
        level=diagnostic.level.value,
        message=diagnostic.message,
        spans=_spans(diagnostic),
        notes=list(diagnostic.notes),
        help=diagnostic.help or None,
        fixes=[_fix(fix) for fix in diagnostic.fixes],
        count=diagnostic.count,
        rendered=human.render(diagnostic, sources),
    )


def event(type: str, /, **fields: object) -> str:
    """Return an event of any type as a line of pure ASCII, which no stream's encoding can alter.

    Floats must be finite. Lone surrogates (from undecodable file names) are escaped.
    """
    record = _valid({"schema": SCHEMA, "type": type, **fields})
    return json.dumps(record, allow_nan=False, ensure_ascii=True) + "\n"


def _valid(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {_valid(key): _valid(item) for key, item in value.items()}
    return [_valid(item) for item in value] if isinstance(value, (list, tuple)) else value


def _spans(diagnostic: Diagnostic) -> list[Json]:
    primary = [_label(diagnostic.primary, True)] if diagnostic.primary else []
    return primary + [_label(label, False) for label in diagnostic.labels]


def _label(label: Label, primary: bool) -> Json:
    return {**_span(label.span), "label": label.text or None, "primary": primary}


def _span(span: Span) -> Json:
    return {
        "file": span.path,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
    }


def _fix(fix: Fix) -> Json:
    return {
        "span": _span(fix.span),
        "replacement": fix.replacement,
        "title": fix.title,
        "applicability": "MachineApplicable" if fix.sure else "MaybeIncorrect",
    }
