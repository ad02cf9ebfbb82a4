"""Conversion of errors in traced kernels to diagnostics, and tracebacks without nkic's frames."""

from __future__ import annotations

from collections.abc import Iterator
from traceback import walk_tb
from types import TracebackType

from nkic.base.diagnostics import Diagnostic, Label, Reporter, make
from nkic.base.kernel_errors import KernelError
from nkic.base.source import NOWHERE, SHIPPED, Span
from nkic.base.suggest import respelt
from nkic.evaluate.failures import MAX_CALLS, loop_values, shortened
from nkic.language.texts import brief
from nkic.language.trace import has_failed
from nkic.specialise.native.call_sites import CallSite, CallSites
from nkic.syntax.bindings import Resolved


def explain(error: KernelError, call_sites: CallSites, resolved: Resolved) -> Diagnostic:
    """Return the diagnostic for an error that ended the evaluation of a kernel."""
    sites = call_sites.of(error.__traceback__)
    user_sites = [site for site in sites if not site.span.path.startswith(SHIPPED)] or sites
    span = error.span or _span(error, user_sites, call_sites, resolved)
    calls = [site.span for site in user_sites[0 if error.span is not None else 1 :]]
    labels = [Label(at, "called from here") for at in shortened(calls)]
    module = call_sites.sources.module(span.path)
    source = module.source if module is not None else None
    return make(
        error.slug,
        error.message,
        span if span != NOWHERE else None,
        labels=[*error.labels, *loop_context(user_sites[:MAX_CALLS], call_sites), *labels],
        notes=error.notes,
        help=error.help,
        fixes=respelt(error.help, source, span),
    )


def follows(error: KernelError, report: Reporter) -> bool:
    """Return whether a function of nkic's own failed because it has the result of a call that was
    refused, and reported.
    """
    frames = (frame for frame, _ in walk_tb(error.__traceback__))
    inside = (f for f in frames if str(f.f_globals.get("__name__", "")).startswith("nkic."))
    return bool(report.errors) and any(has_failed(v) for f in inside for v in f.f_locals.values())


def _span(
    error: KernelError, sites: list[CallSite], call_sites: CallSites, resolved: Resolved
) -> Span:
    if not sites:
        return NOWHERE
    if not error.argument:
        return sites[0].span
    return resolved.locate(call_sites.chain_of([sites[0].span]), error.argument, error.position)


def loop_context(sites: list[CallSite], call_sites: CallSites) -> list[Label]:
    """Return ``here `i` is 3`` for the loops around the locations, outermost first."""
    return [label for site in sites for label in _loop_context(site, call_sites)]


def _loop_context(site: CallSite, call_sites: CallSites) -> Iterator[Label]:
    module = call_sites.sources.module(site.span.path)
    local = site.frame.f_locals
    for loop in module.loops_around(site.span) if module is not None else ():
        yield from loop_values(loop, local, brief)


def user_traceback(traceback: TracebackType | None) -> TracebackType | None:
    """Return a traceback without nkic's frames."""
    entries: list[TracebackType] = []
    while traceback is not None:
        name = str(traceback.tb_frame.f_globals.get("__name__", ""))
        if name != "nkic" and not name.startswith("nkic."):
            entries.append(traceback)
        traceback = traceback.tb_next
    result: TracebackType | None = None
    for entry in reversed(entries):
        result = TracebackType(result, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return result
