"""Faults of the simulated program, told in terms of the kernel's source."""

from __future__ import annotations

from collections.abc import Sequence

from nkic.base.diagnostics import Diagnostic, Label, ProgramFault, make
from nkic.base.source import Span
from nkic.neff.places import frames, users
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


def source_of(executable: Executable, place: int) -> Span | None:
    """Where to point for `place`: the innermost line that the user wrote."""
    return span_of(executable, users(executable, place))


def called_from(executable: Executable, place: int) -> list[Label]:
    """The calls that led to `source_of`; where it stands for a line of nkic's own library, that."""
    primary, others = users(executable, place), frames(executable, place)
    calls = others[others.index(primary) + 1 :] if primary in others else []
    found = [Label(span, "called from here") for p in calls if (span := span_of(executable, p))]
    inside = span_of(executable, place) if primary != place else None
    return found if inside is None else [*found, Label(inside, "this is the instruction")]


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
    labels = [*labels, *called_from(executable, place)]
    if tensor >= 0:
        record = executable.tensors[tensor]
        declared = source_of(executable, record.place)
        if declared is not None:
            labels.insert(0, Label(declared, f"`{record.name}` is declared here"))
    found: Diagnostic = make(slug, message, source_of(executable, place), labels=labels, help=help)
    return ProgramFault([found])
