"""Exceptions that carry the diagnostics of the commands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import NoReturn

from nkic.base.diagnostics import Diagnostic, NkicError, bad_argument
from nkic.base.render import Sources, render


def no_sources(path: str) -> None:
    """Return no source, for messages without excerpts."""


class ApiError(Exception):
    """An error in a kernel, its arguments or its run.

    `diagnostics` holds every error and remark found; the text is what the commands would print,
    uncoloured.
    """

    def __init__(self, diagnostics: Iterable[Diagnostic], sources: Sources = no_sources) -> None:
        self.diagnostics = tuple(diagnostics)
        self.frames: TracebackType | None = None  # the kernel's own frames if Python evaluated it
        super().__init__(render(self.diagnostics, "human", sources).rstrip("\n"))

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        # Exceptions cross process boundaries (pytest-xdist, multiprocessing) with their text.
        return _restored, (type(self), self.diagnostics, str(self))


class CompileError(ApiError):
    """The kernel is rejected, or cannot be compiled for these arguments."""


class RunError(ApiError):
    """The artifact or its inputs are rejected, or the simulated program failed."""


def _restored(kind: type[ApiError], diagnostics: tuple[Diagnostic, ...], text: str) -> ApiError:
    error = kind(diagnostics)
    error.args = (text,)
    return error


@contextmanager
def raising(
    kind: type[ApiError],
    sources: Sources = no_sources,
    relocated: Callable[[Iterable[Diagnostic]], Iterable[Diagnostic]] = lambda diagnostics: (
        diagnostics
    ),
) -> Iterator[None]:
    """Turn the errors of the stages into `kind`."""
    try:
        yield
    except NkicError as error:
        failure = kind(relocated(error.diagnostics), sources)
        failure.frames = getattr(error, "frames", None)
        raise failure from None


def refuse(message: str, help: str = "") -> NoReturn:
    """Reject an argument of a call."""
    raise bad_argument(message, help)
