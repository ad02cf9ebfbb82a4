"""Rendering of diagnostics: for people (human, short), programs (JSON lines) and services.

Services use workflow commands of GitHub, or SARIF, which is a single document: `sarif.log` creates
it at the end. The formats are imported when something is reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from nkic.base.diagnostics import Diagnostic, Level
from nkic.base.render.paint import PLAIN, Paint
from nkic.base.render.places import from_root
from nkic.base.source import Sources
from nkic.base.text import plural

__all__ = ["FORMATS", "PLAIN", "SARIF", "Paint", "Sources", "render", "summary"]

SARIF = "sarif"
FORMATS = ("human", "short", "json", SARIF, "github")


def render(
    diagnostics: Sequence[Diagnostic], format: str, sources: Sources, paint: Paint = PLAIN
) -> str:
    """Render diagnostics in order, in one of `FORMATS` except `SARIF`, with a final line ending.

    In the human format, a blank line separates them.
    """
    from nkic.base.render import github, human, json_lines, short

    if format == "github":
        return "".join(github.line(d, from_root) for d in diagnostics)
    if format == "json":
        return "".join(json_lines.line(d, sources) for d in diagnostics)
    if format == "short":
        return "".join(short.header(d, paint) + "\n" for d in diagnostics)
    return "\n".join(human.render(d, sources, paint) for d in diagnostics)


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
