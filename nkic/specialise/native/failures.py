"""Conversion of errors in traced kernels to diagnostics, and tracebacks without nkic's frames."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType

from nkic.base.diagnostics import Diagnostic, Label, make
from nkic.base.kernel_errors import KernelError
from nkic.base.source import NOWHERE, SHIPPED, Span
from nkic.base.suggest import respelt
from nkic.evaluate.failures import MAX_CALLS, loop_values, shortened
from nkic.language.texts import brief
from nkic.specialise.native.call_sites import CallSite, CallSites
from nkic.syntax.bindings import Resolved


def explain(error: KernelError, places: CallSites, resolved: Resolved) -> Diagnostic:
    """Return the diagnostic for an error that ended the evaluation of a kernel."""
    found = places.of(error.__traceback__)
    own = [place for place in found if not place.span.path.startswith(SHIPPED)] or found
    span = error.span or _span(error, own, places, resolved)
    calls = [place.span for place in own[0 if error.span is not None else 1 :]]
    labels = [Label(at, "called from here") for at in shortened(calls)]
    module = places.sources.module(span.path)
    source = module.source if module is not None else None
    return make(
        error.slug,
        error.message,
        span if span != NOWHERE else None,
        labels=[*error.labels, *loop_context(own[:MAX_CALLS], places), *labels],
        notes=error.notes,
        help=error.help,
        fixes=respelt(error.help, source, span),
    )


def _span(error: KernelError, own: list[CallSite], places: CallSites, resolved: Resolved) -> Span:
    if not own:
        return NOWHERE
    if not error.argument:
        return own[0].span
    return resolved.locate(places.chain_of([own[0].span]), error.argument, error.position)


def loop_context(call_sites: list[CallSite], places: CallSites) -> list[Label]:
    """Return ``here `i` is 3`` for the loops around the locations, outermost first."""
    return [label for place in call_sites for label in _loop_context(place, places)]


def _loop_context(place: CallSite, places: CallSites) -> Iterator[Label]:
    module = places.sources.module(place.span.path)
    local = place.frame.f_locals
    for loop in module.loops_around(place.span) if module is not None else ():
        yield from loop_values(loop, local, brief)


def only_own(traceback: TracebackType | None) -> TracebackType | None:
    """Return a traceback without nkic's frames."""
    kept: list[TracebackType] = []
    while traceback is not None:
        name = str(traceback.tb_frame.f_globals.get("__name__", ""))
        if name != "nkic" and not name.startswith("nkic."):
            kept.append(traceback)
        traceback = traceback.tb_next
    made: TracebackType | None = None
    for one in reversed(kept):
        made = TracebackType(made, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return made
