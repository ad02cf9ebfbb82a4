"""Directives in the comments of a case file: how to run it, and the diagnostics to expect.

# test: check                     the stage after which to stop; `compile` is the last
# args: a=float32[128,512] b=float32[128,512]
# const: n=3
# nki: 0.5                        and kernel, target, grid, lnc, like the options
# emit: ir                        compare this form with NAME.ir.expected
x = f(y)  # error[NKI0312]: part of the message
# error@+1[out-of-bounds]: for the next line; also @-2 and so on
# warning[NKI0701]: part of the message
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

_DIRECTIVE = re.compile(r"# ([a-z]+): (.*)")
_EXPECTATION = re.compile(
    r"# (?P<level>error|warning|remark)(?:@(?P<offset>[+-]\d+))?\[(?P<code>[\w-]+)\]: (?P<text>.+)"
)
_ANY_EXPECTATION = re.compile(r"# (?:error|warning|remark)\b(?:@\S*)?\[")
WORDS = ("test", "args", "const", "nki", "kernel", "target", "grid", "lnc", "emit", "serial")


class Expected(NamedTuple):
    """An expected diagnostic: its line, its code's number or slug, and part of its message."""

    line: int
    level: str
    code: str
    text: str


@dataclass(frozen=True)
class Case:
    """A file under tests/files."""

    path: Path
    text: str
    words: dict[str, str] = field(default_factory=dict)
    expected: tuple[Expected, ...] = ()


class BadCase(Exception):
    """Raised if the case file itself is wrong."""


def read_case(path: Path) -> Case:
    """Read the directives at the top of a file, and the expectations in all of it."""
    text = path.read_text(encoding="utf-8")
    words = dict(_words(text, path))
    return Case(path, text, words, tuple(expectations(text, path)))


def _words(text: str, path: Path) -> Iterator[tuple[str, str]]:
    """Return the comments before the first other line."""
    for line in text.splitlines():
        found = _DIRECTIVE.fullmatch(line)
        if found is None:
            return
        if found[1] not in WORDS:
            raise BadCase(f"{path.name}: unknown directive `{found[1]}`")
        yield found[1], found[2].strip()


def expectations(text: str, path: Path) -> Iterator[Expected]:
    """Return the diagnostics that the comments expect.

    Malformed expectations are errors, not comments.
    """
    for number, line in enumerate(text.splitlines(), 1):
        for start in _ANY_EXPECTATION.finditer(line):
            found = _EXPECTATION.match(line, start.start())
            if found is None:
                raise BadCase(f"{path.name}:{number}: malformed expectation: {line.strip()}")
            at = number + int(found["offset"] or 0)
            yield Expected(at, found["level"], found["code"], found["text"].strip())
