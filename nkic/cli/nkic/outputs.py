"""What is written: --emit and -o, parsed before anything is compiled; --report; and the limits of
--fail-if.
"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from nkic.base import files
from nkic.base.diagnostics import Diagnostic, UsageFailed, bad_value, make, suggestion
from nkic.base.files import STANDARD, real
from nkic.base.text import clean
from nkic.cli.common import streams
from nkic.cli.nkic.options import REPORTS
from nkic.compiler import forms, remarks
from nkic.compiler.compiled import Compiled
from nkic.compiler.forms import FORMS
from nkic.compiler.loader import MAX_BYTES
from nkic.compiler.pipeline import ASSEMBLY, SCHEDULE
from nkic.report import allocations, compare, resources

DEPS = "deps"  # describes the run, not the kernel, so it is not among the forms
KINDS = (*FORMS, DEPS)
_SUFFIXES = {kind: form.suffix for kind, form in FORMS.items()} | {DEPS: ".d"}
_NEXT = re.compile(rf",(?=(?:{'|'.join(KINDS)})(?:=|,|$))")  # a path may contain commas


class Output(NamedTuple):
    kind: str
    path: str


def outputs(emit: Sequence[str], output: str | None, stem: str) -> tuple[Output, ...]:
    """Return what to write where. `stem` names the files without a path, in the working directory.

    Raises `UsageFailed` for unknown kinds and for paths used twice.
    """
    wanted = [_kind(kind) for value in emit for kind in _NEXT.split(value)] or [("neff", None)]
    named = _named_by_output([kind for kind, path in wanted if path is None], output)
    files = tuple(
        Output(kind, path or (output if kind == named and output else stem + _SUFFIXES[kind]))
        for kind, path in wanted
    )
    for number, first in enumerate(files):
        for second in files[number + 1 :]:
            if first.path == second.path or first.kind == second.kind:
                _clash(first, second)
    return files


def last_stage(wanted: Sequence[Output]) -> str:
    """Return the stage after which everything can be written."""
    # Evaluating a kernel may load more files: only after it are they all known.
    kinds = ["ir" if output.kind == DEPS else output.kind for output in wanted]
    return FORMS[max(kinds, key=list(FORMS).index)].stage


def refuse_overwriting(wanted: Sequence[Output], inputs: Sequence[str]) -> None:
    read = {real(path) for path in inputs}
    for output in wanted:
        if output.path != STANDARD and real(output.path) in read:
            raise _bad(f"--emit {output.kind}: `{output.path}` is an input of this compilation")


def refuse_earlier_stages(wanted: Sequence[Output], path: str) -> None:
    """Raise `UsageFailed` for an output of a stage that precedes the printed program."""
    form, unavailable = "program", ["tokens", "ast", "resolved"]
    if path.endswith((SCHEDULE, ASSEMBLY)):
        form, unavailable = "schedule", [*unavailable, "lowered", "graph"]
    if path.endswith(ASSEMBLY):
        form, unavailable = "listing", [*unavailable, "ir", "allocated", "sched"]
    for output in wanted:
        if output.kind in unavailable:
            raise _bad(f"--emit {output.kind}: not possible from a printed {form}")


def dependencies(target: str, sources: Sequence[str]) -> str:
    """Return the dependencies of the outputs as a rule for make and ninja."""
    return f"{_escaped(target)}: {' '.join(map(_escaped, sources))}\n"


def encoded(path: str, before: str, after: str) -> bytes:
    """Return a file's new text in its encoding: UTF-8, with a byte-order mark if it had one.

    Raises `UsageFailed` if the file does not hold the text that it had before.
    """
    data = files.read_bytes(path, MAX_BYTES)
    mark = BOM_UTF8 if data.startswith(BOM_UTF8) else b""
    if data.removeprefix(mark) != before.encode():
        message = f"`{path}` is not in UTF-8, or has changed in the meantime"
        raise UsageFailed([make("cannot-write", message, help="save it as UTF-8")])
    return mark + after.encode()


def replace_text(path: str, before: str, after: str) -> None:
    """Replace a file's text; its permissions stay. Raises `UsageFailed`, as `encoded` does."""
    data, mode = encoded(path, before, after), Path(path).stat().st_mode
    files.write(path, data)
    Path(path).chmod(mode)


def _escaped(path: str) -> str:
    return re.sub(r"([ #\\])", r"\\\1", path).replace("$", "$$")


def _kind(request: str) -> tuple[str, str | None]:
    kind, equals, path = request.partition("=")
    if kind not in KINDS:
        raise _bad(f"--emit: there is no output `{kind}`", suggestion(kind, KINDS))
    if equals and not path:
        raise _bad(f"--emit {request}: no path after `=`", f"--emit {kind}=FILE, or {kind}=-")
    return kind, path or None


def _named_by_output(without_path: Sequence[str], output: str | None) -> str:
    """Return the kind that -o names: the artifact, or the only one without a path."""
    if output is None:
        return ""
    if "neff" in without_path or len(without_path) == 1:
        return "neff" if "neff" in without_path else without_path[0]
    if not without_path:
        raise _bad("-o: every output of --emit already has a path", "leave out -o")
    raise _bad(
        f"-o: which of {', '.join(without_path)} does it belong to?",
        f"--emit {without_path[0]}={output} says which",
    )


def _clash(first: Output, second: Output) -> None:
    if first.kind == second.kind:
        raise _bad(f"--emit: `{first.kind}` is given twice")
    raise _bad(
        f"--emit: {first.kind} and {second.kind} would both be written to `{first.path}`",
        "give each its own path, and at most one `-`",
    )


def _bad(message: str, help: str = "") -> UsageFailed:
    return UsageFailed([make("conflicting-options", message, help=help)])


FIGURES = ("sbuf_peak", "psum_banks")  # the figures that are known without a run
# The formats that file names request beside text.
_FORMATS: dict[str, tuple[str, ...]] = {
    "resources": (".json", ".svg"),
    "remarks": (".json",),
    "changes": (),
}
_OTHER = (".json", ".svg", ".yaml", ".yml", ".html")


class Report(NamedTuple):
    kind: str
    path: str


def wanted_reports(values: Sequence[str]) -> list[Report]:
    return [_wanted_report(value) for value in values]


def _wanted_report(value: str) -> Report:
    kind, equals, path = value.partition("=")
    if kind not in REPORTS or (equals and not path):
        text = f"--report {clean(value)}: there is no such report"
        raise bad_value(text, suggestion(kind, REPORTS))
    formats = _FORMATS[kind]
    if path.endswith(_OTHER) and not path.endswith(formats):
        text = f"--report {clean(value)}: {kind} are not written in this format"
        raise bad_value(text, f"end the file's name in {', '.join((*formats, '.txt'))}")
    return Report(kind, path or STANDARD)


def write_report(
    report: Report, colour: str, compiled: Compiled, level: int, shown: Callable[[str], str]
) -> None:
    """Write a report. `shown` maps a path to the user's spelling of it."""
    path = report.path
    if report.kind == "changes":
        text = clean("".join(forms.changes(compiled)), keep="\n")
        text = streams.difference(text, colour) if path == STANDARD else text
    elif report.kind == "remarks":
        form = resources.as_json if path.endswith(".json") else resources.text
        text = form(remarks.remarks(compiled, level), shown)
    elif path.endswith(".svg"):
        text = allocations.svg(compiled.executable)
    elif path.endswith(".json"):
        text = json.dumps(allocations.as_json(compiled.executable), indent=1) + "\n"
    else:
        text = allocations.text(compiled.executable)
    files.write(path, text)


def rules(text: str | None) -> list[compare.Rule]:
    return compare.rules(text, FIGURES)


def exceeded(limits: Sequence[compare.Rule], compiled: Compiled) -> list[Diagnostic]:
    """Return an error for each figure of the kernel above its limit."""
    used = resources.resources(compiled.executable)
    figures = {"sbuf_peak": used.sbuf_bytes, "psum_banks": used.psum_banks}
    capacities = {"sbuf_peak": used.sbuf_limit, "psum_banks": used.psum_limit}
    help = "nkic --report resources shows which tensors use them, and when"
    return compare.broken(limits, figures, None, capacities, help)
