"""Construction of this package's errors: a CompileFailed with one located diagnostic."""

from __future__ import annotations

from collections.abc import Iterable

from nkic.base.diagnostics import CompileFailed, Fix, Label, make
from nkic.base.source import Span


def refusal(
    slug: str,
    message: str,
    span: Span,
    *,
    label: str = "",
    labels: Iterable[Label] = (),
    help: str = "",
    fixes: Iterable[Fix] = (),
) -> CompileFailed:
    """Return the exception for source text that is not in the language."""
    diagnostic = make(slug, message, span, label=label, labels=labels, help=help, fixes=fixes)
    return CompileFailed([diagnostic])
