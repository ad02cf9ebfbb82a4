"""Diagnostics as text: for people (human, short), for programs (JSON lines) and for services
(workflow commands of GitHub; SARIF, which is one document and not line by line, so that
`sarif.log` makes it when everything has been said).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from nkic.base.diagnostics import Diagnostic, Level
from nkic.base.render import github, human, json_lines, short
from nkic.base.render.human import Sources
from nkic.base.render.paint import PLAIN, Paint
from nkic.base.render.places import from_root
from nkic.base.text import plural

__all__ = ["FORMATS", "PLAIN", "SARIF", "Paint", "Sources", "render", "summary"]

SARIF = "sarif"
FORMATS = ("human", "short", "json", SARIF, "github")


def render(
    diagnostics: Sequence[Diagnostic], format: str, sources: Sources, paint: Paint = PLAIN
) -> str:
    """The diagnostics in one of `FORMATS` but `SARIF`, in their order, with the last line's end.

    For people, a blank line stands between any two.
    """
    if format == "github":
        return "".join(github.line(d, from_root) for d in diagnostics)
    if format == "json":
        return "".join(json_lines.line(d, sources) for d in diagnostics)
    if format == "short":
        return "".join(short.header(d, paint) + "\n" for d in diagnostics)
    return "\n".join(human.render(d, sources, paint) for d in diagnostics)


def summary(diagnostics: Sequence[Diagnostic], most: int = 0) -> str:
    """`2 errors, 1 warning`: the last line for people. Empty when nothing was said. After `most`
    errors, that is where the tool stopped.
    """
    found = Counter(d.level for d in diagnostics)
    if most and found[Level.ERROR] >= most:
        rest = summary([d for d in diagnostics if d.level is not Level.ERROR])
        stop = f"{plural(most, Level.ERROR.value)}, and gave up: --max-errors shows more"
        return f"{stop}; {rest}" if rest else stop
    return ", ".join(plural(found[level], level.value) for level in Level if found[level])
