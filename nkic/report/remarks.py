"""Remarks as text, by source line, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from nkic.base.remark import Kind, Remark
from nkic.base.source import NOWHERE
from nkic.base.text import clean

SCHEMA = 1
MARKS = {Kind.PASSED: "+", Kind.MISSED: "-", Kind.ANALYSIS: " "}
Shown = Callable[[str], str]  # maps a path to the user's spelling


def text(remarks: Sequence[Remark], shown: Shown) -> str:
    """Return a line per remark; `+` marks what was done for the kernel, `-` what was not."""
    lines = []
    for remark in remarks:
        location = clean(location_of(remark, shown)) or "kernel"
        message = clean(remark.message)
        lines.append(f"{location}: {MARKS[remark.kind]} {remark.stage}/{remark.name}: {message}\n")
    return "".join(lines)


def location_of(remark: Remark, shown: Shown) -> str:
    """Return `kernel.py:12:5`; empty for the kernel as a whole."""
    span = remark.span
    return str(span._replace(path=shown(span.path))) if span is not NOWHERE else ""


def as_json(remarks: Sequence[Remark], shown: Shown) -> str:
    """Return every remark with its figures, for programs, in the order of the text."""
    record = {"schema": SCHEMA, "remarks": [_record(remark, shown) for remark in remarks]}
    return json.dumps(record, indent=1, allow_nan=False) + "\n"


def _record(remark: Remark, shown: Shown) -> dict[str, Any]:
    span = remark.span
    path = None if span is NOWHERE else shown(span.path)
    calls = [f"{shown(s.path)}:{s.line}" for s in remark.at.user_frames()[1:]] if remark.at else []
    return {
        "stage": remark.stage,
        "name": remark.name,
        "kind": remark.kind.value,
        "path": path,
        "line": span.line,
        "column": span.column,
        "called_from": calls,
        "message": remark.message,
        "numbers": dict(remark.numbers),
    }
