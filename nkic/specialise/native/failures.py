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
    sites = places.of(error.__traceback__)
    user_sites = [place for place in sites if not place.span.path.startswith(SHIPPED)] or sites
    span = error.span or _span(error, user_sites, places, resolved)
    calls = [place.span for place in user_sites[0 if error.span is not None else 1 :]]
    labels = [Label(at, "called from here") for at in shortened(calls)]
    module = places.sources.module(span.path)
    source = module.source if module is not None else None
    return make(
        error.slug,
        error.message,
        span if span != NOWHERE else None,
        labels=[*error.labels, *loop_context(user_sites[:MAX_CALLS], places), *labels],
        notes=error.notes,
        help=error.help,
        fixes=respelt(error.help, source, span),
    )


def _span(error: KernelError, sites: list[CallSite], places: CallSites, resolved: Resolved) -> Span:
    if not sites:
        return NOWHERE
    if not error.argument:
        return sites[0].span
    return resolved.locate(places.chain_of([sites[0].span]), error.argument, error.position)


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
    result: TracebackType | None = None
    for entry in reversed(kept):
        result = TracebackType(result, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return result
