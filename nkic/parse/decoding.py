"""Decode a file's bytes by Python's rules: byte order mark, declared encoding, or UTF-8."""

from __future__ import annotations

import codecs
import re

from nkic.base.diagnostics import CompileFailed, refusal
from nkic.base.source import SourceFile, Span

_DECLARATION = re.compile(rb"[ \t\f]*#[^\n\r]*?coding[:=][ \t]*([-\w.]+)")
_BLANK = re.compile(rb"[ \t\f]*(?:#[^\n\r]*)?\Z")
_LINE_END = re.compile(rb"\r\n|\r|\n")


def decode(data: bytes, path: str) -> SourceFile:
    """Return the text of a source file, without its byte order mark."""
    marked = data.startswith(codecs.BOM_UTF8)
    data = data.removeprefix(codecs.BOM_UTF8)
    name, span = _declared(data, path)
    codec = _codec(name, span)
    if marked and not re.fullmatch("utf[-_]8([-_].*)?", name, re.IGNORECASE):  # as strict as Python
        message = f"the file starts with the byte order mark of UTF-8, but declares `{name}`"
        raise refusal("unknown-encoding", message, span, help="remove one of the two")
    try:
        text = data.decode(codec)
    except UnicodeError as error:
        raise _undecodable(data, error, name, path) from None
    if "\0" in text:
        raise _nul_byte(text, path)
    return SourceFile(path, text)


def _declared(data: bytes, path: str) -> tuple[str, Span]:
    """Return the encoding declared in one of the first two lines, and its span; or UTF-8."""
    for number, line in enumerate(_LINE_END.split(data, maxsplit=2)[:2], 1):
        if match := _DECLARATION.match(line):
            start, end = match.span(1)
            return match[1].decode("ascii", "replace"), Span(
                path, number, start + 1, number, end + 1
            )
        if not _BLANK.match(line):
            break
    return "utf-8", Span(path, 1, 1, 1, 1)


def _codec(name: str, span: Span) -> str:
    """Return Python's name for the text encoding called `name`."""
    try:
        codec = codecs.lookup(name)
        "".encode(codec.name)  # rejects codecs that do not encode text, such as rot13
    except (LookupError, UnicodeError):
        message = f"there is no text encoding called `{name}`"
        help = "save the file as UTF-8 and remove the declaration"
        raise refusal("unknown-encoding", message, span, help=help) from None
    return "utf-8" if codec.name == "utf-8-sig" else codec.name


def _undecodable(data: bytes, error: UnicodeError, name: str, path: str) -> CompileFailed:
    start = error.start if isinstance(error, UnicodeDecodeError) else 0
    line, column = _position(data[:start].decode(name, "replace"))
    return refusal(
        "not-utf8",
        f"the byte 0x{data[start]:02X} is not a character in the encoding {name}",
        Span(path, line, column, line, column + 1),
        help="save the file as UTF-8, or declare its encoding: `# -*- coding: latin-1 -*-`",
    )


def _nul_byte(text: str, path: str) -> CompileFailed:
    line, column = _position(text[: text.index("\0")])
    span = Span(path, line, column, line, column + 1)
    message = "the file contains a NUL character, which source text cannot contain"
    return refusal("nul-byte", message, span, help="save the file as plain text in UTF-8")


def _position(before: str) -> tuple[int, int]:
    lines = re.split("\r\n|\r|\n", before)
    return len(lines), len(lines[-1]) + 1
