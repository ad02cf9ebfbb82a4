"""The files to write: --emit and -o, parsed before anything is compiled."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nkic.base.diagnostics import UsageFailed, make
from nkic.base.files import STANDARD, real
from nkic.base.suggest import suggestion
from nkic.driver.forms import FORMS
from nkic.driver.pipeline import ASSEMBLY, SCHEDULE

DEPS = "deps"  # describes the run, not the kernel, so it is not among the forms
KINDS = (*FORMS, DEPS)
_SUFFIXES = {kind: form.suffix for kind, form in FORMS.items()} | {DEPS: ".d"}
_NEXT = re.compile(rf",(?=(?:{'|'.join(KINDS)})(?:=|,|$))")  # a path may contain commas


class Output(NamedTuple):
    """A file to write."""

    kind: str
    path: str


def outputs(emit: Sequence[str], output: str | None, stem: str) -> tuple[Output, ...]:
    """Return what to write where. `stem` names the files without a path, in the working directory.

    Raises `UsageFailed` for unknown kinds and for paths used twice.
    """
    wanted = [_kind(kind) for value in emit for kind in _NEXT.split(value)] or [("neff", None)]
    files = tuple(Output(*pair) for pair in _with_paths(wanted, output, stem))
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
    """Raise `UsageFailed` if an output would replace a file that was read."""
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


def _escaped(path: str) -> str:
    return re.sub(r"([ #\\])", r"\\\1", path).replace("$", "$$")


def _kind(request: str) -> tuple[str, str | None]:
    kind, equals, path = request.partition("=")
    if kind not in KINDS:
        raise _bad(f"--emit: there is no output `{kind}`", suggestion(kind, KINDS))
    if equals and not path:
        raise _bad(f"--emit {request}: no path after `=`", f"--emit {kind}=FILE, or {kind}=-")
    return kind, path or None


def _with_paths(
    wanted: Sequence[tuple[str, str | None]], output: str | None, stem: str
) -> Iterator[tuple[str, str]]:
    without_path = [kind for kind, path in wanted if path is None]
    named_kind = _named_by_output(without_path, output)
    for kind, path in wanted:
        default = output if kind == named_kind and output is not None else stem + _SUFFIXES[kind]
        yield kind, path or default


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
