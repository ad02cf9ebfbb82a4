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
        "labels": [_label(one) for one in d.labels],
        "notes": list(d.notes),
        "help": d.help,
        "fixes": [[list(f.span), f.replacement, f.title, f.sure] for f in d.fixes],
        "count": d.count,
    }


def _label(label: Label) -> list[Any]:
    return [list(label.span), label.text]


def from_json(found: Sequence[Any]) -> tuple[Diagnostic, ...]:
    """Parse diagnostics. Raises `ValueError`, `LookupError` or `TypeError` for anything else."""
    return tuple(_diagnostic(one) for one in found)


def _diagnostic(found: dict[str, Any]) -> Diagnostic:
    primary = found["primary"]
    return Diagnostic(
        code(_text(found["code"])),
        Level(found["level"]),
        _text(found["message"]),
        _label_of(primary) if primary is not None else None,
        tuple(map(_label_of, found["labels"])),
        tuple(map(_text, found["notes"])),
        _text(found["help"]),
        tuple(Fix(_span(a), _text(b), _text(c), bool(d)) for a, b, c, d in found["fixes"]),
        _number(found["count"]),
    )


def _label_of(found: Sequence[Any]) -> Label:
    place, text = found
    return Label(_span(place), _text(text))


def _span(found: Sequence[Any]) -> Span:
    path, *numbers = found
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
