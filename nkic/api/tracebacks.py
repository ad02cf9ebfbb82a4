"""Tracebacks that show the user's code: without nkic's frames, and with the kernel's."""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from nkic.api.errors import ApiError
from nkic.base.diagnostics import Diagnostic, Level
from nkic.base.source import SHIPPED, Span

_P = ParamSpec("_P")
_R = TypeVar("_R")
_CALLED = "called from here"


def boundary(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Make exceptions leave the function without nkic's frames: a bare `raise` adds none."""

    @functools.wraps(function)
    def call(*args: _P.args, **named: _P.kwargs) -> _R:
        __tracebackhide__ = True  # for pytest and IPython
        try:
            return function(*args, **named)
        except ApiError as error:
            error.__cause__, error.__suppress_context__ = None, True
            error.with_traceback(error.frames)
            raise
        except Exception as error:
            error.with_traceback(without_nkic(error.__traceback__))
            raise

    return call


def without_nkic(traceback: TracebackType | None) -> TracebackType | None:
    """Return the traceback of a user's exception without nkic's frames.

    If nkic itself raised the exception, the traceback is returned unchanged.
    """
    tracebacks: list[TracebackType] = []
    at = traceback
    while at is not None:
        is_nkic = _is_nkic(at)
        if is_nkic and at.tb_next is None:
            return traceback
        if not is_nkic:
            tracebacks.append(at)
        at = at.tb_next
    shortened: TracebackType | None = None
    for entry in reversed(tracebacks):
        shortened = TracebackType(shortened, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return shortened


def _is_nkic(traceback: TracebackType) -> bool:
    name = str(traceback.tb_frame.f_globals.get("__name__", ""))
    return name == "nkic" or name.startswith("nkic.")


def of_places(
    diagnostics: Sequence[Diagnostic], path_of: Callable[[str], str]
) -> TracebackType | None:
    """Return a traceback through the places of the first error.

    It serves errors that are found after the kernel's frames are gone.
    """
    first = next(
        (diagnostic for diagnostic in diagnostics if diagnostic.level is Level.ERROR), None
    )
    if first is None or first.primary is None:
        return None
    calls = [label.span for label in first.labels if label.text == _CALLED]
    traceback: TracebackType | None = None
    for span in (first.primary.span, *calls):
        if not span.path.startswith(SHIPPED):
            frame = _frame(span, path_of(span.path))
            traceback = TracebackType(traceback, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return traceback


def _frame(span: Span, path: str) -> TracebackType:
    """Return the traceback of an exception raised at a place."""
    raised = ast.Raise(exc=ast.Name("stop", ast.Load()), cause=None)
    for node in ast.walk(raised):
        at: Any = node
        at.lineno, at.end_lineno = span.line, max(span.line, span.end_line)
        at.col_offset, at.end_col_offset = span.column - 1, span.end_column - 1
    code = compile(ast.Module([raised], []), path, "exec")
    try:
        exec(code.replace(co_name=_function(path, span.line)), {"stop": _Stop()})
    except _Stop as stop:
        assert stop.__traceback__ is not None and stop.__traceback__.tb_next is not None
        return stop.__traceback__.tb_next
    raise AssertionError("unreachable")


def _function(path: str, line: int) -> str:
    """Return the name of the innermost function around a line, as tracebacks show it."""
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except SyntaxError:
        return "kernel"
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    around = [node for node in functions if node.lineno <= line <= (node.end_lineno or 0)]
    return max(around, key=lambda node: node.lineno).name if around else "kernel"


class _Stop(Exception):
    """Raised to get a frame."""
