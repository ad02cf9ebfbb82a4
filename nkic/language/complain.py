"""Errors and warnings that do not stop evaluation, reported at the kernel's current expression."""

from __future__ import annotations

from collections.abc import Iterable

from nkic.base.diagnostics import Fix, Label, Level, make, within
from nkic.base.source import CallChain, Span
from nkic.base.suggest import respelt
from nkic.ir.tensors import Tensor
from nkic.language.trace import active, here


def complain(
    slug: str,
    message: str,
    *,
    help: str = "",
    about: Iterable[Tensor] = (),
    level: Level = Level.ERROR,
    fixes: Iterable[Fix] = (),
    argument: str = "",
    position: int | None = None,
    at: CallChain | None = None,
    labels: Iterable[Label] = (),
) -> None:
    """Report a problem at the kernel's current call, with the calls that led to it.

    `argument` names the parameter that is wrong, `position` its index among positional arguments:
    the message then points to that argument if the call spells it out. `at` overrides the location.
    """
    active().recording()
    at = at or here()
    locations = at.user_frames()
    labels = [*labels, *(Label(span, "called from here") for span in locations[1:])]
    labels += [Label(tensor.at.primary, f"`{tensor.name}` is {shown(tensor)}") for tensor in about]
    location = locations[0]
    if argument and at.span == location:
        location = active().locate(at, argument, position)
    labels += _iterations(slug, location)
    module = active().module_of(location.path)
    fixes = [*fixes, *respelt(help, module.source if module else None, location)]
    diagnostic = make(
        slug,
        message,
        location,
        help=help,
        labels=labels,
        level=level,
        fixes=fixes,
        notes=within(at),
    )
    active().report.add(diagnostic)


def _iterations(slug: str, span: Span) -> list[Label]:
    """Return labels with the current iterations of the enclosing loops.

    They cover the loops around `span` and around the nearest callers. Empty if the problem was
    already reported in an earlier iteration.
    """
    trace = active()
    return [] if trace.report.knows(slug, span) else trace.loop_context()


def shown(tensor: Tensor) -> str:
    """Describe a tensor: `float32[128, 512] in sbuf`."""
    sizes = ", ".join(map(str, tensor.shape))
    return f"{tensor.dtype.name}[{sizes}] in {tensor.buffer.value}"
