"""The NKI version of a file, inferred from its imports."""

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
    """Return Beta 1 for a file that imports `neuronxcc` and not `nki`, else the default version.

    If it imports both, as files for either version do, the decorators of the kernel decide,
    provided they come from one package only.
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
    """Yield the names that imports bind, each with its root package."""
    for whole, renamed, package, members in _IMPORTS.findall(text):
        root = (whole or package).partition(".")[0]
        for member in members.strip(" ()\\").split(",") if package else ():
            yield root, member.split()[-1] if member.split() else ""
        if whole:
            yield root, renamed or root


def _decorators(text: str, kernel: str | None) -> Iterator[str]:
    """Yield the first name of each decorator of the kernel, or of all decorated functions if there
    is no such kernel.
    """
    decorated = _DECORATED.findall(text)
    of_kernel = [lines for lines, name in decorated if name == kernel]
    for lines in of_kernel or [lines for lines, _ in decorated]:
        yield from re.findall(r"(?m)^@[ \t]*(\w+)", lines)
