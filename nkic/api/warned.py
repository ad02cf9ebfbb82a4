"""Compiler warnings issued as Python warnings, at the user's file and line."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePath
from types import ModuleType
from typing import Any

from nkic.base.diagnostics import Diagnostic, Level


class NkicWarning(UserWarning):
    """A warning about a kernel.

    `code` is its number, with which the text begins so that filters find it:
    `warnings.filterwarnings("ignore", "NKI0252")`.
    """

    def __init__(self, text: str, code: str = "") -> None:
        super().__init__(text)
        self.code = code


def warn(remarks: Iterable[Diagnostic], path_of: Callable[[str], str]) -> None:
    """Issue the warnings. `path_of` gives the file on this machine for a place's path."""
    for diagnostic in remarks:
        if diagnostic.level is Level.WARNING:
            _warn(diagnostic, path_of)


def _warn(diagnostic: Diagnostic, path_of: Callable[[str], str]) -> None:
    code = diagnostic.code.number
    help = f" (help: {diagnostic.help})" if diagnostic.help else ""
    message = NkicWarning(f"{code}: {diagnostic.message}{help}", code)
    if diagnostic.primary is None:
        warnings.warn(message, stacklevel=2)
        return
    span = diagnostic.primary.span
    path = path_of(span.path)
    module = next(_modules(path), None)
    # Python drops warnings that have no module name, as if it were shutting down.
    name = module.__name__ if module is not None else PurePath(path).stem
    registry: dict[Any, Any] | None = None
    if module is not None:
        registry = module.__dict__.setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, NkicWarning, path, span.line, name, registry)


def _modules(path: str) -> Iterator[ModuleType]:
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == path:
            yield module
