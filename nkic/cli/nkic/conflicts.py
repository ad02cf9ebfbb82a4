"""Combinations of options that nkic rejects, beyond what the table says."""

from __future__ import annotations

from nkic.base.diagnostics import UsageFailed, make
from nkic.base.files import STANDARD
from nkic.cli.common.conflicts import Given, fail, refuse, refuse_by_table, refuse_pair
from nkic.cli.common.table import rows
from nkic.cli.nkic.options import CommandLine
from nkic.driver.forms import FORMS
from nkic.driver.pipeline import ASSEMBLY, SCHEDULE

IR = ".ir"
PRINTED = (IR, SCHEDULE, ASSEMBLY)  # the suffixes of programs in the text form
CONFIG, KERNELS = "config", "kernels"  # the tables of --print about the rest of the command line
_FOR_RUNNER = ("neff",)
_ABOUT_SOURCE = ("kernel", "arg", "const", "like", "nki", "target", "grid", "lnc", "include")
_ABOUT_SCHEDULES = ("optimise", "serial", "spill", "machine")


def refuse_conflicts(line: CommandLine, given: Given) -> None:
    """Raise `UsageFailed` for the first conflict."""
    if line.print == CONFIG:
        return
    if line.json and line.print is None:
        fail("`--json` is for `--print`", "messages are JSON with `--message-format json`")
    refuse_by_table(rows(CommandLine), given, KERNELS if line.print == KERNELS else "")
    if line.print in (None, KERNELS):
        _refuse_for(_source(line), line, given)
    if line.in_place:
        refuse(given, "--in-place", ["output"], "both say where to write the new source")
        if line.source == STANDARD:
            refuse_pair("--in-place", STANDARD, "standard input cannot be replaced")


def _source(line: CommandLine) -> str:
    """Return the path of the kernel's file. Raises `UsageFailed` if none is given."""
    if line.source is not None:
        return line.source
    advice = "for example `nkic kernel.py`, or `nkic -` for standard input"
    if line.migrate is not None and line.migrate.endswith(".py"):
        advice = f"the file comes first: `nkic {line.migrate} --migrate`"
    raise UsageFailed([make("missing-argument", "missing the kernel's file", help=advice)])


def _refuse_for(source: str, line: CommandLine, given: Given) -> None:
    """Reject options that do not apply to a source of this name."""
    if source != STANDARD:
        why = "`--stdin-name` names a kernel that is read from standard input"
        refuse(given, source, ["stdin_name"], why)
    _refuse_generated(source)
    if source.endswith(PRINTED):
        why = "a printed program already has its kernel, target and arguments"
        about = ["print"] if line.print == KERNELS else []
        refuse(given, source, [*about, "migrate", *_ABOUT_SOURCE, "module"], why)
    if source.endswith((SCHEDULE, ASSEMBLY)):
        refuse(given, source, _ABOUT_SCHEDULES, "a printed schedule is not scheduled again")


def _refuse_generated(source: str) -> None:
    """Raise `UsageFailed` for a file that nkic wrote but cannot read."""
    matching = [(kind, form) for kind, form in FORMS.items() if source.endswith(form.suffix)]
    if source.endswith(PRINTED) or not matching:
        return
    kind, form = matching[0]
    advice = "nkic takes what `--emit ir`, `lowered`, `allocated` and `sched` print"
    if kind in _FOR_RUNNER:
        advice = f"`nki-run {source}` takes it"
    text = f"`{source}` is what `--emit {kind}` writes ({form.meaning}), not a kernel"
    raise UsageFailed([make("bad-usage", text, help=advice)])
