"""Diagnostics as workflow commands, which GitHub shows beside the lines of a pull request.

Source: GitHub's documentation, workflow commands. Columns are given only within one line,
because annotations have none across several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nkic.base.diagnostics import Diagnostic, Level
from nkic.base.render.short import repetition
from nkic.base.source import Span
from nkic.base.text import clean

COMMANDS = {Level.ERROR: "error", Level.WARNING: "warning", Level.REMARK: "notice"}


def line(diagnostic: Diagnostic, path_of: Callable[[str], str] = str) -> str:
    """Return the command, one line; `path_of` converts paths to be relative to the root."""
    location = [*_properties(diagnostic.primary.span, path_of)] if diagnostic.primary else []
    code = diagnostic.code
    properties = [*location, ("title", f"{code.number} {code.slug}")]
    written = ",".join(f"{name}={_property(value)}" for name, value in properties)
    return f"::{COMMANDS[diagnostic.level]} {written}::{_data(_message(diagnostic))}\n"


def harmless(text: str) -> str:
    """Return text of a kernel, with lines escaped that GitHub would interpret as commands."""
    lines = text.replace("##[", "## [").split("\n")
    return "\n".join(f"| {line}" if line.lstrip().startswith("::") else line for line in lines)


def _properties(span: Span, path_of: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    yield "file", path_of(span.path)
    if span.line < 1:  # for the file as a whole
        return
    yield "line", str(span.line)
    yield "endLine", str(max(span.line, span.end_line))
    if span.end_line == span.line and span.column >= 1:
        yield "col", str(span.column)
        yield "endColumn", str(max(span.column, span.end_column))


def _message(diagnostic: Diagnostic) -> str:
    paragraphs = [diagnostic.message + repetition(diagnostic.count)]
    paragraphs += [f"note: {note}" for note in diagnostic.notes]
    paragraphs += [f"help: {diagnostic.help}"] if diagnostic.help else []
    return clean("\n".join(paragraphs), keep="\n")


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(clean(text, keep="\r\n")).replace(":", "%3A").replace(",", "%2C")
