"""The files to write: --emit and -o, parsed before anything is compiled."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nkic.base.diagnostics import UsageFailed, make
from nkic.base.files import STANDARD, real
from nkic.base.suggest import did_you_mean
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
    wanted = [_kind(word) for words in emit for word in _NEXT.split(words)] or [("neff", None)]
    found = tuple(Output(*one) for one in _with_paths(wanted, output, stem))
    for index, one in enumerate(found):
        for other in found[index + 1 :]:
            if one.path == other.path or one.kind == other.kind:
                _clash(one, other)
    return found


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
    what, lacking = "program", ["tokens", "ast", "resolved"]
    if path.endswith((SCHEDULE, ASSEMBLY)):
        what, lacking = "schedule", [*lacking, "lowered", "graph"]
    if path.endswith(ASSEMBLY):
        what, lacking = "listing", [*lacking, "ir", "allocated", "sched"]
    for output in wanted:
        if output.kind in lacking:
            raise _bad(f"--emit {output.kind}: not possible from a printed {what}")


def dependencies(target: str, sources: Sequence[str]) -> str:
    """Return the dependencies of the outputs as a rule for make and ninja."""
    return f"{_escaped(target)}: {' '.join(map(_escaped, sources))}\n"


def _escaped(path: str) -> str:
    return re.sub(r"([ #\\])", r"\\\1", path).replace("$", "$$")


def _kind(word: str) -> tuple[str, str | None]:
    kind, equals, path = word.partition("=")
    if kind not in KINDS:
        near = did_you_mean(kind, KINDS) or f"known are: {', '.join(KINDS)}"
        raise _bad(f"--emit: there is no output `{kind}`", near)
    if equals and not path:
        raise _bad(f"--emit {word}: no path after `=`", f"--emit {kind}=FILE, or {kind}=-")
    return kind, path or None


def _with_paths(
    wanted: Sequence[tuple[str, str | None]], output: str | None, stem: str
) -> Iterator[tuple[str, str]]:
    free = [kind for kind, path in wanted if path is None]
    named = _named_by_output(free, output)
    for kind, path in wanted:
        default = output if kind == named and output is not None else stem + _SUFFIXES[kind]
        yield kind, path or default


def _named_by_output(free: Sequence[str], output: str | None) -> str:
    """Return the kind that -o names: the artifact, or the only one without a path."""
    if output is None:
        return ""
    if "neff" in free or len(free) == 1:
        return "neff" if "neff" in free else free[0]
    if not free:
        raise _bad("-o: every output of --emit already has a path", "leave out -o")
    raise _bad(
        f"-o: which of {', '.join(free)} does it belong to?",
        f"--emit {free[0]}={output} says which",
    )


def _clash(one: Output, other: Output) -> None:
    if one.kind == other.kind:
        raise _bad(f"--emit: `{one.kind}` is given twice")
    raise _bad(
        f"--emit: {one.kind} and {other.kind} would both be written to `{one.path}`",
        "give each its own path, and at most one `-`",
    )


def _bad(message: str, help: str = "") -> UsageFailed:
    return UsageFailed([make("conflicting-options", message, help=help)])
