"""Rendering of diagnostics: for people (human, short), programs (JSON lines) and services.

Services use workflow commands of GitHub, or SARIF, which is a single document: `sarif.log` creates
it at the end. The formats are imported when something is reported.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from nkic.base.diagnostics import Diagnostic, Level
from nkic.base.source import Sources
from nkic.base.text import plural

# ---- Colour of text, if enabled. It adds no information to the text -----------------------------

ROLES = {
    "error": "1;31",
    "warning": "1;33",
    "remark": "1;36",
    "message": "1",
    "frame": "1;34",  # line numbers, bars, secondary labels
    "removed": "31",
    "added": "32",
}


class Paint(NamedTuple):
    """The capabilities of a stream."""

    colour: bool = False
    ascii: bool = False  # its encoding lacks most of Unicode

    def __call__(self, text: str, role: str) -> str:
        """Return `text` in the colour of a role, if colour is enabled."""
        return f"\x1b[{ROLES[role]}m{text}\x1b[0m" if self.colour and text else text


PLAIN = Paint()


# ---- Paths for services, relative to the root of the repository ---------------------------------


def from_root(path: str) -> str:
    """Return `path` relative to the root of the repository of the current folder, with slashes.

    Without a repository, the current folder is the root. Paths outside of it stay absolute, and
    names that are not files (`<stdin>`) are unchanged.
    """
    if path.startswith("<"):
        return path
    folder = Path.cwd()
    root, absolute = _root(folder), Path(os.path.normpath(folder / path))  # links are not resolved
    inside = absolute.is_relative_to(root)
    return (absolute.relative_to(root) if inside else absolute).as_posix()


@lru_cache(maxsize=64)
def _root(folder: Path) -> Path:
    """Return the nearest folder at or above with `.git`, a folder or (in a worktree) a file."""
    folders = (folder, *folder.parents)
    return next((ancestor for ancestor in folders if (ancestor / ".git").exists()), folder)


# --------------------------------------------------------------------------------------------------

SARIF = "sarif"
FORMATS = ("human", "short", "json", SARIF, "github")


def render(
    diagnostics: Sequence[Diagnostic], format: str, sources: Sources, paint: Paint = PLAIN
) -> str:
    """Render diagnostics in order, in one of `FORMATS` except `SARIF`, with a final line ending.

    In the human format, a blank line separates them.
    """
    from nkic.base.render import text

    if format == "github":
        return "".join(text.github_line(d, from_root) for d in diagnostics)
    if format == "json":
        return "".join(text.json_line(d, sources) for d in diagnostics)
    if format == "short":
        return "".join(text.header(d, paint) + "\n" for d in diagnostics)
    return "\n".join(text.render(d, sources, paint) for d in diagnostics)


def summary(diagnostics: Sequence[Diagnostic], max_errors: int = 0) -> str:
    """Return the last line for people: `2 errors, 1 warning`; empty without diagnostics.

    With `max_errors` errors, it says that the tool stopped there.
    """
    counts = Counter(d.level for d in diagnostics)
    if max_errors and counts[Level.ERROR] >= max_errors:
        remainder = summary([d for d in diagnostics if d.level is not Level.ERROR])
        stop = f"{plural(max_errors, Level.ERROR.value)}, and gave up: --limit errors=N shows more"
        return f"{stop}; {remainder}" if remainder else stop
    return ", ".join(plural(counts[level], level.value) for level in Level if counts[level])
