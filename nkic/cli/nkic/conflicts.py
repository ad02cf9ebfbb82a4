"""Combinations of options that nkic rejects."""

from __future__ import annotations

from nkic.base.diagnostics import UsageFailed, make
from nkic.base.files import STANDARD
from nkic.cli.common.conflicts import Given, fail, needs, refuse, refuse_all_but, refuse_pair
from nkic.cli.nkic.options import CommandLine
from nkic.driver.forms import FORMS
from nkic.driver.pipeline import ASSEMBLY, SCHEDULE

IR = ".ir"
PRINTED = (IR, SCHEDULE, ASSEMBLY)  # the suffixes of programs in the text form
CONFIG = "config"  # the table of --print that describes the rest of the command line
_FOR_RUNNER = ("neff",)
_ABOUT_KERNELS = ("kernel", "arg", "const", "like", "nki", "target", "grid", "lnc")
_ABOUT_SOURCE = ("include", "module")
_ABOUT_SCHEDULES = ("optimise", "serial", "spill", "machine")
_ALWAYS = ("max_errors", "time_limit", "no_cache")  # accepted in every mode
_OF_FILES = ("source", "stdin_name", *_ABOUT_KERNELS, *_ABOUT_SOURCE, *_ALWAYS)
# The modes that do something other than compile to an artifact, each with the options that it
# accepts and what it does instead.
_MODES = {
    "print": (("json", *_ALWAYS), "prints a table and exits"),
    "list_kernels": (
        ("source", "stdin_name", "nki", "json", *_ALWAYS),
        "lists the kernels and exits",
    ),
    "migrate": ((*_OF_FILES, "output", "in_place", "verify"), "writes source, not a program"),
    "check": ((*_OF_FILES, "spill", "time_passes"), "writes nothing"),  # --spill: what fits
}


def refuse_conflicts(line: CommandLine, given: Given) -> None:
    """Raise `UsageFailed` for the first conflict."""
    if line.json and line.print is None and not line.list_kernels:
        advice = "messages are JSON with `--message-format json`"
        fail("`--json` is for `--print` and `--list-kernels`", advice)
    if line.print == CONFIG:
        refuse(
            given,
            f"--print {CONFIG}",
            ["list_kernels"],
            f"`--print {CONFIG}` prints a table and exits",
        )
        return
    mode = next((mode for mode in _MODES if mode in given), None)
    if mode is not None:
        accepted, does = _MODES[mode]
        refuse_all_but(given, given[mode], (mode, *accepted), does)
    if mode != "print":
        _refuse_for(_source(line), given)
        _refuse_in_migration(line, given)


def _source(line: CommandLine) -> str:
    """Return the path of the kernel's file. Raises `UsageFailed` if none is given."""
    if line.source is not None:
        return line.source
    advice = "for example `nkic kernel.py`, or `nkic -` for standard input"
    for name, value in (("--migrate", line.migrate), ("--remarks", line.remarks)):
        if value is not None and value.endswith(".py"):
            advice = f"the file comes first: `nkic {value} {name}`"
    raise UsageFailed([make("missing-argument", "missing the kernel's file", help=advice)])


def _refuse_for(source: str, given: Given) -> None:
    """Reject options that do not apply to a source of this name."""
    if source != STANDARD:
        why = "`--stdin-name` names a kernel that is read from standard input"
        refuse(given, source, ["stdin_name"], why)
    _refuse_generated(source)
    if source.endswith(PRINTED):
        why = "a printed program already has its kernel, target and arguments"
        refuse(given, source, ["list_kernels", "migrate", *_ABOUT_KERNELS, *_ABOUT_SOURCE], why)
    if source.endswith((SCHEDULE, ASSEMBLY)):
        refuse(given, source, _ABOUT_SCHEDULES, "a printed schedule is not scheduled again")


def _refuse_in_migration(line: CommandLine, given: Given) -> None:
    """Raise `UsageFailed` for options that need a migration, and for conflicts among them."""
    if line.migrate is None:
        needs(given, ["in_place", "verify"], "--migrate")
    if line.in_place:
        refuse(given, "--in-place", ["output"], "both say where to write the new source")
        if line.source == STANDARD:
            refuse_pair("--in-place", STANDARD, "standard input cannot be replaced")


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
