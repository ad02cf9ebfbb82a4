"""Errors that end the evaluation of a kernel, and that kernel code cannot catch.

They have no position: the evaluator adds it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nkic.base.diagnostics import Label
from nkic.base.source import Span

SECOND_WAY = (
    "a kernel that a program calls is evaluated by Python itself, and may use all of it: "
    "`python -m nkic program.py`"
)


class KernelError(Exception):
    """The kernel cannot be evaluated further.

    `argument` is the parameter with the wrong value, and `position` its index among positional
    arguments: the message then points at the argument instead of the whole call. `span` is another
    place to point at, such as an import.
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


class Missing(KernelError, AttributeError):
    """A missing attribute of a value; `hasattr` and `getattr` with a default catch it.

    `advise` returns the help. Most of these errors are caught, and looking for a near name is a
    thousand times the work of a look-up: it is done when the error is explained.
    """

    def __init__(self, slug: str, message: str, name: str, advise: str | Callable[[], str]) -> None:
        KernelError.__init__(self, slug, message)
        self.name = name
        self._advise = advise

    @property
    def help(self) -> str:
        """What to do instead."""
        if not isinstance(self._advise, str):
            self._advise = self._advise()
        return self._advise

    @help.setter
    def help(self, text: str) -> None:
        self._advise = text
