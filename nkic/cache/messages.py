"""Diagnostics to JSON and back, to repeat the warnings of a cached artifact."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from nkic.base.diagnostics import Diagnostic, Fix, Label, Level, code
from nkic.base.source import Span


def to_json(diagnostics: Iterable[Diagnostic]) -> list[Any]:
    """Convert diagnostics to JSON-serialisable lists."""
    return [_one(diagnostic) for diagnostic in diagnostics]


def _one(d: Diagnostic) -> dict[str, Any]:
    return {
        "code": d.code.slug,
        "level": d.level.value,
        "message": d.message,
        "primary": _label(d.primary) if d.primary is not None else None,
        "labels": [_label(label) for label in d.labels],
        "notes": list(d.notes),
        "help": d.help,
        "fixes": [[list(f.span), f.replacement, f.title, f.sure] for f in d.fixes],
        "count": d.count,
    }


def _label(label: Label) -> list[Any]:
    return [list(label.span), label.text]


def from_json(records: Sequence[Any]) -> tuple[Diagnostic, ...]:
    """Parse diagnostics. Raises `ValueError`, `LookupError` or `TypeError` for anything else."""
    return tuple(_diagnostic(record) for record in records)


def _diagnostic(record: dict[str, Any]) -> Diagnostic:
    primary = record["primary"]
    return Diagnostic(
        code(_text(record["code"])),
        Level(record["level"]),
        _text(record["message"]),
        _label_of(primary) if primary is not None else None,
        tuple(map(_label_of, record["labels"])),
        tuple(map(_text, record["notes"])),
        _text(record["help"]),
        tuple(Fix(_span(a), _text(b), _text(c), bool(d)) for a, b, c, d in record["fixes"]),
        _number(record["count"]),
    )


def _label_of(record: Sequence[Any]) -> Label:
    span, text = record
    return Label(_span(span), _text(text))


def _span(record: Sequence[Any]) -> Span:
    path, *numbers = record
    line, column, end_line, end_column = map(_number, numbers)
    return Span(_text(path), line, column, end_line, end_column)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("expected a string")
    return value


def _number(value: Any) -> int:
    if type(value) is not int:
        raise TypeError("expected a number")
    return value
