"""Errors that stop the evaluation of a kernel.

`KernelError` is raised by what kernels call: it says what is wrong, not where, because the
place is in the frames that it passes on its way out (`failures`).
"""

from __future__ import annotations

from collections.abc import Sequence

from nkic.base.diagnostics import Label
from nkic.base.source import Span


class KernelError(Exception):
    """The kernel cannot be evaluated further.

    `argument` names the parameter that has the wrong value, `position` its place among
    positional arguments: then the message points at the argument instead of the whole call.
    `span` is where else it points: at the import of what is used.
    """

    def __init__(
        self,
        slug: str,
        message: str,
        *,
        help: str = "",
        argument: str = "",
        position: int | None = None,
        labels: Sequence[Label] = (),
        notes: Sequence[str] = (),
        span: Span | None = None,
    ) -> None:
        super().__init__(message)
        self.slug = slug
        self.message = message
        self.help = help
        self.argument = argument
        self.position = position
        self.labels = tuple(labels)
        self.notes = tuple(notes)
        self.span = span
