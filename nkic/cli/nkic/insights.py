"""--remarks and --print-changed: what the stages did, for people and for programs."""

from __future__ import annotations

from collections.abc import Callable

from nkic.base import files
from nkic.base.diagnostics import bad_value
from nkic.base.files import STANDARD
from nkic.base.text import clean
from nkic.cli.common import pages
from nkic.cli.nkic.options import CommandLine
from nkic.driver import changes, remarks
from nkic.driver.compiled import Compiled
from nkic.report import remarks as forms

OTHER_FORMS = (".yaml", ".yml", ".html", ".svg")


def wanted(line: CommandLine) -> bool:
    """Whether an option needs all stages to have run."""
    return line.remarks is not None or line.print_changed


def check(line: CommandLine) -> None:
    """Raise `UsageFailed` for a format that remarks do not have."""
    path = line.remarks or ""
    if path.endswith(OTHER_FORMS):
        text = f"--remarks={clean(path)}: remarks are written as text or as JSON"
        raise bad_value(text, "write --remarks=FILE.json, or FILE.txt")


def write(
    line: CommandLine, colour: str, compiled: Compiled, level: int, shown: Callable[[str], str]
) -> None:
    """Write the requested reports. `shown` maps a path to the user's spelling of it."""
    if line.print_changed:
        text = clean("".join(changes.changes(compiled)), keep="\n")
        files.write(STANDARD, pages.difference(text, colour))
    if line.remarks is not None:
        form = forms.as_json if line.remarks.endswith(".json") else forms.text
        files.write(line.remarks, form(remarks.remarks(compiled, level), shown))
