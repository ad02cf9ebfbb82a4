"""Spellings of earlier releases: taken with a warning, or refused with the new spelling.

A table maps an option to its new words: {} is a value, {name} and {rest} are the parts of a value
NAME=REST. A first word without a dash is the subcommand that takes them now. What cannot be
translated begins with `REFUSED`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from nkic.base.diagnostics import Diagnostic, Level, UsageFailed, make

REFUSED = "!"


class Translated(NamedTuple):
    """Words of a command line, the subcommand that they need, and warnings."""

    words: list[str]
    command: str
    warnings: list[Diagnostic]


def translated(tool: str, words: Sequence[str], old: Mapping[str, str]) -> Translated:
    """Return the words in today's spelling. Raises `UsageFailed`."""
    found: list[str] = []
    command, warnings, left = "", list[Diagnostic](), iter(words)
    for word in left:
        if word == "--":
            found += [word, *left]
            break
        name = word[:2] if word[1:2] != "-" else word.partition("=")[0]
        if name not in old:
            found.append(word)
            continue
        now = old[name]
        count = now.count("{}") + now.count("{rest}")
        attached = [word[len(name) :].removeprefix("=")] if word != name else []
        values = attached if attached and count else [*islice(left, count)]
        if now.startswith(REFUSED) or len(values) < count:
            raise UsageFailed([_diagnostic(name, spelt(tool, now), Level.ERROR)])
        new = [_filled(part, values) for part in now.split()]
        if attached and not count:  # an option whose value could be left out
            new[-1] += f"={attached[0]}"
        warnings.append(_diagnostic(name, spelt(tool, " ".join(new)), Level.WARNING))
        if not new[0].startswith("-"):
            command = new.pop(0)
        found += new
    return Translated(found, command, warnings)


def _filled(part: str, values: list[str]) -> str:
    name, equals, rest = values[0].rpartition("=") if values else ("", "", "")
    part = part.replace("{name}", name + equals).replace("{rest}", rest)
    return part.replace("{}", values.pop(0)) if "{}" in part else part


def spelt(tool: str, now: str) -> str:
    """Return a new spelling for a message."""
    now = now.removeprefix(REFUSED).replace("{name}", "").replace("{rest}", "{}")
    return now.replace("{}", "…") if now.startswith("-") else f"{tool} {now}".replace("{}", "…")


def _diagnostic(name: str, now: str, level: Level) -> Diagnostic:
    advice = "write the new spelling; the next release does not take the old one"
    advice = advice if level is Level.WARNING else f"write `{now}`"
    return make("old-spelling", f"`{name}` is now spelt `{now}`", help=advice, level=level)
