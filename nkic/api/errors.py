"""What a caller is told: exceptions that carry the diagnostics of the commands, warnings at the
user's file and line, and tracebacks without nkic's frames, and with the kernel's.
"""

from __future__ import annotations

import ast
import functools
import linecache
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePath
from types import ModuleType, TracebackType
from typing import Any, NoReturn, ParamSpec, TypeVar

from nkic.base.diagnostics import Diagnostic, Level, NkicError, bad_argument
from nkic.base.render import render
from nkic.base.source import SHIPPED, Sources, Span


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

    __module__ = "nkic"  # as users import it; tracebacks show this name


class RunError(ApiError):
    """The artifact or its inputs are rejected, or the simulated program failed."""

    __module__ = "nkic"


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


_P = ParamSpec("_P")
_R = TypeVar("_R")
_CALLED = "called from here"
_SHORTENED = "_nkic_shortened"  # in the `__dict__` of an exception


def boundary(
    function: Callable[_P, _R], misuse: Callable[[Any, Any], Exception | None] | None = None
) -> Callable[_P, _R]:
    """Make exceptions leave the function without nkic's frames: a bare `raise` adds none.

    `misuse` returns the exception for arguments that it refuses.
    """

    @functools.wraps(function)
    def call(*args: _P.args, **named: _P.kwargs) -> _R:
        __tracebackhide__ = True  # for pytest and IPython
        try:
            if misuse is not None and (refused := misuse(args, named)) is not None:
                raise refused
            return function(*args, **named)
        except (ApiError, NkicError) as error:
            error.__cause__, error.__suppress_context__ = None, True
            error.with_traceback(getattr(error, "frames", None))
            raise
        except Exception as error:
            whole = error.__traceback__
            if whole is not None and whole.tb_next is None:  # of the call itself
                error.with_traceback(None)
                raise
            short = without_nkic(whole, shortened=_SHORTENED in error.__dict__)
            error.__dict__.update({} if short is whole else {_SHORTENED: True})
            error.with_traceback(short)
            raise

    return call


def without_nkic(traceback: TracebackType | None, shortened: bool = False) -> TracebackType | None:
    """Return the traceback of a user's exception without nkic's frames.

    If nkic itself raised the exception, the traceback is returned unchanged. One that was already
    `shortened` where it left a function inside may end in nkic and still be the user's.
    """
    tracebacks: list[TracebackType] = []
    at = traceback
    while at is not None:
        module = str(at.tb_frame.f_globals.get("__name__", ""))
        is_nkic = module == "nkic" or module.startswith("nkic.")
        if is_nkic and at.tb_next is None and not shortened:
            return traceback
        if not is_nkic and module != "inspect":  # which binds arguments
            tracebacks.append(at)
        at = at.tb_next
    kept: TracebackType | None = None
    for entry in reversed(tracebacks):
        kept = TracebackType(kept, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return kept


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
