"""Faults of the simulated program, told in terms of the kernel's source."""

from __future__ import annotations

from collections.abc import Sequence

from nkic.base.diagnostics import Diagnostic, Label, ProgramFault, make
from nkic.base.source import Span
from nkic.neff.records import Executable


def span_of(executable: Executable, place: int) -> Span | None:
    """Where in the source `place` is; None where the file does not say."""
    if not 0 <= place < len(executable.places):
        return None
    at = executable.places[place]
    if not 0 <= at.file < len(executable.files):
        return None
    path = executable.files[at.file].path
    return Span(path, at.line, at.column, at.end_line, at.end_column)


def callers_of(executable: Executable, place: int) -> list[Span]:
    """The calls that led to `place`, innermost first."""
    found = []
    seen = set()
    while 0 <= place < len(executable.places) and place not in seen:
        seen.add(place)
        place = executable.places[place].caller
        span = span_of(executable, place)
        if span is not None:
            found.append(span)
    return found


def fault(
    executable: Executable,
    slug: str,
    message: str,
    place: int,
    tensor: int = -1,
    help: str = "",
    labels: Sequence[Label] = (),
) -> ProgramFault:
    """An error at `place`; `tensor` is shown with the place that declared it."""
    labels = [*labels] + [Label(span, "called from here") for span in callers_of(executable, place)]
    if tensor >= 0:
        record = executable.tensors[tensor]
        declared = span_of(executable, record.place)
        if declared is not None:
            labels.insert(0, Label(declared, f"`{record.name}` is declared here"))
    found: Diagnostic = make(slug, message, span_of(executable, place), labels=labels, help=help)
    return ProgramFault([found])
