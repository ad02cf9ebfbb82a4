"""Faults of the simulated program, reported in terms of the kernel's source."""

from __future__ import annotations

from collections.abc import Sequence

from nkic.base.diagnostics import Diagnostic, Label, ProgramFault, make
from nkic.neff.places import frames, source_of, span_of, user_place
from nkic.neff.records import Executable


def called_from(executable: Executable, place: int) -> list[Label]:
    """Return labels for the calls that led to `source_of`, and for a line of nkic's library."""
    primary, others = user_place(executable, place), frames(executable, place)
    calls = others[others.index(primary) + 1 :] if primary in others else []
    labels = [Label(span, "called from here") for p in calls if (span := span_of(executable, p))]
    inside = span_of(executable, place) if primary != place else None
    return labels if inside is None else [*labels, Label(inside, "this is the instruction")]


def fault(
    executable: Executable,
    slug: str,
    message: str,
    place: int,
    tensor: int = -1,
    help: str = "",
    labels: Sequence[Label] = (),
) -> ProgramFault:
    """Return an error at `place`, with the declaration of `tensor` as a label."""
    labels = [*labels, *called_from(executable, place)]
    if tensor >= 0:
        record = executable.tensors[tensor]
        declared = source_of(executable, record.place)
        if declared is not None:
            labels.insert(0, Label(declared, f"`{record.name}` is declared here"))
    diagnostic: Diagnostic = make(
        slug, message, source_of(executable, place), labels=labels, help=help
    )
    return ProgramFault([diagnostic])
