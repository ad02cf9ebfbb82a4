"""Options that make no sense together: an error, because one of them would be ignored."""

from __future__ import annotations

from nkic.base.diagnostics import UsageFailed, make
from nkic.base.files import STANDARD
from nkic.cli.nkic.options import CommandLine
from nkic.driver.forms import FORMS
from nkic.driver.pipeline import ASSEMBLY, SCHEDULE

IR = ".ir"
PRINTED = (IR, SCHEDULE, ASSEMBLY)  # the suffixes of programs in the text form
CONFIG = "config"  # the table of --print which is about the rest of the command line
_FOR_RUNNER = ("neff",)
_ABOUT_KERNELS = ("kernel", "arg", "const", "like", "nki", "target", "grid", "lnc")
_ABOUT_SOURCE = ("include", "module")
_ABOUT_SCHEDULES = ("optimise", "serial", "spill", "machine")
_ABOUT_OUTPUTS = ("output", "emit", *_ABOUT_SCHEDULES, "embed_source", "force")
_ABOUT_PROGRAM = ("report", "max", "remarks", "print_changed")
_ABOUT_RUNNING = ("check", "time_passes", *_ABOUT_PROGRAM)
_ABOUT_MIGRATING = ("migrate", "in_place", "verify")


def refuse_conflicts(line: CommandLine) -> None:
    """Raises `UsageFailed` for the first conflict."""
    if line.json and line.print is None and not line.list_kernels:
        text = "`--json` is for `--print` and `--list-kernels`"
        advice = "messages are JSON with `--message-format json`"
        raise UsageFailed([make("conflicting-options", text, help=advice)])
    if line.print == CONFIG:
        _refuse(line, f"--print {CONFIG}", ("list_kernels",), "it prints a table and exits")
        return
    if line.print is not None:
        others = ("source", "list_kernels", *_ABOUT_KERNELS, *_ABOUT_SOURCE, *_ABOUT_OUTPUTS)
        both = (*_ABOUT_RUNNING, *_ABOUT_MIGRATING)
        _refuse(line, "--print", (*others, *both), "it prints a table and exits")
        return
    if line.source is None:
        advice = "for example `nkic kernel.py`, or `nkic -` for standard input"
        if line.migrate is not None and line.migrate.endswith(".py"):
            advice = f"the file comes first: `nkic {line.migrate} --migrate`"
        if line.remarks is not None and line.remarks.endswith(".py"):
            advice = f"the file comes first: `nkic {line.remarks} --remarks`"
        raise UsageFailed([make("missing-argument", "missing the kernel's file", help=advice)])
    if line.stdin_name is not None and line.source != STANDARD:
        _say("--stdin-name", line.source, "it names what comes from standard input")
    if line.list_kernels:
        about = tuple(name for name in _ABOUT_KERNELS if name != "nki")
        unwanted = (*about, *_ABOUT_SOURCE, *_ABOUT_OUTPUTS, *_ABOUT_RUNNING, *_ABOUT_MIGRATING)
        _refuse(line, "--list-kernels", unwanted, "it lists the kernels and exits")
    if line.check:
        kept = tuple(name for name in _ABOUT_OUTPUTS if name != "spill")  # decides about errors
        unwanted = (*kept, *_ABOUT_PROGRAM)
        _refuse(line, "--check", unwanted, "it writes nothing")
    _refuse_in_migration(line)
    _refuse_made(line.source)
    if line.source.endswith(PRINTED):
        why = "a printed program already has its kernel, target and arguments"
        unwanted = ("list_kernels", "migrate", *_ABOUT_KERNELS, *_ABOUT_SOURCE)
        _refuse(line, line.source, unwanted, why)
    if line.source.endswith((SCHEDULE, ASSEMBLY)):
        _refuse(line, line.source, _ABOUT_SCHEDULES, "a printed schedule is not scheduled again")


def _refuse_in_migration(line: CommandLine) -> None:
    """Raises `UsageFailed` for options that only a migration has, or that it lacks."""
    if line.migrate is None:
        for name in ("in_place", "verify"):
            if getattr(line, name):
                text = f"`--{name.replace('_', '-')}` is for `--migrate`"
                raise UsageFailed([make("conflicting-options", text, help="add `--migrate`")])
        return
    others = ("emit", "serial", "spill", "embed_source", *_ABOUT_RUNNING)
    _refuse(line, "--migrate", others, "it writes source, not a program")
    if line.in_place:
        _refuse(line, "--in-place", ("output",), "both say where to write the new source")
        if line.source == STANDARD:
            _say("--in-place", STANDARD, "standard input has no place")


def _refuse_made(source: str) -> None:
    """Raises `UsageFailed` for a file that nkic made and does not take."""
    made = [(kind, form) for kind, form in FORMS.items() if source.endswith(form.suffix)]
    if source.endswith(PRINTED) or not made:
        return
    kind, form = made[0]
    advice = "nkic takes what `--emit ir`, `lowered`, `allocated` and `sched` print"
    if kind in _FOR_RUNNER:
        advice = f"`nki-run {source}` takes it"
    text = f"`{source}` is what `--emit {kind}` writes ({form.meaning}), not a kernel"
    raise UsageFailed([make("bad-usage", text, help=advice)])


def _refuse(line: CommandLine, option: str, others: tuple[str, ...], why: str) -> None:
    for name in others:
        value = getattr(line, name)
        if value or (value == 0 and value is not False):  # -O0 was given, too
            _say(option, line.source or "" if name == "source" else _flag(name), why)


def _flag(name: str) -> str:
    return "-O" if name == "optimise" else f"--{name.replace('_', '-')}"


def _say(option: str, other: str, why: str) -> None:
    text = f"`{option}` and `{other}` cannot be used together: {why}"
    raise UsageFailed([make("conflicting-options", text, help=f"leave out `{other}`")])
