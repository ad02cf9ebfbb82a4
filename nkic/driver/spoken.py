"""The version of NKI that a file speaks, where nobody says it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nkic.base import profiles
from nkic.base.profiles import Profile
from nkic.base.source import SourceFile

_OLD, _TODAY = "neuronxcc", "nki"
_OLD_IMPORT = re.compile(rf"(?m)^[ \t]*(?:from|import)[ \t]+{_OLD}\b")
_IMPORT = re.compile(rf"(?m)^[ \t]*(?:from|import)[ \t]+{_TODAY}\b(?!\.language\.constants)")
_IMPORTS = re.compile(
    r"(?m)^[ \t]*(?:import[ \t]+([\w.]+)(?:[ \t]+as[ \t]+(\w+))?"
    r"|from[ \t]+([\w.]+)[ \t]+import[ \t]+([^\n#]+))"
)
_DECORATED = re.compile(r"(?m)^((?:@.*\n(?:[ \t)].*\n)*)+)def[ \t]+(\w+)")


def profile_of(source: SourceFile | None, kernel: str | None = None) -> Profile:
    """Beta 1 where a file imports `neuronxcc`, and not `nki` beside it. Where it imports both, as
    files do that are for either, the decorator of the kernel says it, if that is of one alone.
    """
    text = source.text if source is not None else ""
    if _OLD not in text or not _OLD_IMPORT.search(text):
        return profiles.DEFAULT
    if not _IMPORT.search(text):
        return Profile.BETA1
    bound = list(_bound(text))
    used = set(_decorators(text, kernel))
    roots = {root for root, name in bound if name in used}
    return Profile.BETA1 if roots == {_OLD} else profiles.DEFAULT


def _bound(text: str) -> Iterator[tuple[str, str]]:
    """The names that imports bind, each after the package that it comes from."""
    for whole, renamed, package, members in _IMPORTS.findall(text):
        root = (whole or package).partition(".")[0]
        for member in members.strip(" ()\\").split(",") if package else ():
            yield root, member.split()[-1] if member.split() else ""
        if whole:
            yield root, renamed or root


def _decorators(text: str, kernel: str | None) -> Iterator[str]:
    """What the decorators of a kernel begin with, or those of all functions that have some."""
    found = _DECORATED.findall(text)
    wanted = [lines for lines, name in found if name == kernel]
    for lines in wanted or [lines for lines, _ in found]:
        yield from re.findall(r"(?m)^@[ \t]*(\w+)", lines)
