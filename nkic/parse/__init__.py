"""parse: a file's text → its syntax tree, by `grammar/nki.lark`.

Any valid Python file through 3.12 is accepted; a file that is not gets one located error.
"""

from __future__ import annotations

import codecs
import re
from functools import lru_cache

from nkic.base.diagnostics import CompileFailed
from nkic.base.source import SourceFile, Span
from nkic.parse.build import parser
from nkic.parse.lexer import lex
from nkic.parse.parser import Unexpected
from nkic.parse.refuse import refusal
from nkic.syntax.nodes import Module

__all__ = ["decode", "parse"]

_CODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")


@lru_cache(maxsize=64)
def _parse(path: str, text: str) -> Module:
    tokens = lex(SourceFile(path, text))
    try:
        return parser().parse(list(tokens.tokens), path)
    except Unexpected as error:
        if tokens.failure is not None:
            raise tokens.failure from None
        span = tokens.tokens[error.index].span(path)
        raise refusal("bad-syntax", "this is not valid Python", span) from None


def parse(source: SourceFile) -> Module:
    """The syntax tree of `source`; CompileFailed with one located error if it is not Python."""
    return _parse(source.path, source.text)


def decode(data: bytes, path: str) -> SourceFile:
    """A file's bytes as text, by its byte-order mark or its PEP 263 declaration."""
    if data.startswith(codecs.BOM_UTF8):
        data = data[3:]
    encoding = "utf-8"
    for line in data.split(b"\n", 2)[:2]:
        if found := _CODING.match(line):
            encoding = found[1].decode()
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise refusal("not-utf8", f"{path} is not {encoding}", Span(path, line, 1, line, 2)) from None
    except LookupError:
        span = Span(path, 1, 1, 1, 2)
        raise refusal("unknown-encoding", f"the encoding {encoding} is unknown", span) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise refusal("nul-byte", f"{path} has a NUL byte", Span(path, line, 1, line, 2))
    return SourceFile(path, text)
