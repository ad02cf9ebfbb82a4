"""What the translation knows of the place it is at: names, loops, the class around it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypedDict

from nkic.base.source import SourceFile, Span
from nkic.specialise.errors import KernelError
from nkic.syntax import names, nodes, scopes


class Place(TypedDict):
    """A span as Python's `ast` has it: columns in bytes of UTF-8, counted from 0."""

    lineno: int
    col_offset: int
    end_lineno: int
    end_col_offset: int


class Refused(KernelError):
    """Source that cannot be translated, at a place of its own."""

    def __init__(self, slug: str, message: str, span: Span, help: str = "") -> None:
        super().__init__(slug, message, help=help, span=span)


class Frame:
    """A function or class body that is being translated.

    `loops` are the variables that hold what the loops around go through, innermost last.
    """

    def __init__(self, local: frozenset[str], is_class: bool = False) -> None:
        self.local = local
        self.is_class = is_class
        self.loops: list[str] = []
        self.soft_imports = 0  # `try` blocks around that catch a failing import


class Scope:
    """The state of one translation. `own` are the names of builtins that the module defines."""

    def __init__(self, source: SourceFile, own: frozenset[str]) -> None:
        self._source = source
        self._ascii = source.text.isascii()
        self._own = own
        self._frames: list[Frame] = [Frame(frozenset())]
        self._classes: list[str] = []
        self._temporaries = 0

    @property
    def frame(self) -> Frame:
        """The innermost function or class body."""
        return self._frames[-1]

    @contextmanager
    def inside(self, scope: scopes.Scope) -> Iterator[Frame]:
        """Translates what is inside a function, lambda, class or comprehension."""
        is_class = isinstance(scope, nodes.ClassDef)
        self._frames.append(Frame(scopes.bound(scope), is_class))
        if isinstance(scope, nodes.ClassDef):
            self._classes.append(scope.name)
        yield self.frame
        self._frames.pop()
        if is_class:
            self._classes.pop()

    def is_builtin(self, name: str) -> bool:
        """The name means a builtin here."""
        if name not in names.BUILTINS or name in self._own:
            return False
        inner = self._frames[-1]
        around = (frame for frame in self._frames[:-1] if not frame.is_class)
        return name not in inner.local and not any(name in frame.local for frame in around)

    def temporary(self) -> str:
        """A variable that source cannot name."""
        self._temporaries += 1
        return f"@{self._temporaries}"

    def mangled(self, attribute: str) -> str:
        """`__name` as Python renames it inside classes."""
        private = attribute.startswith("__") and not attribute.endswith("__")
        if not private or not self._classes:
            return attribute
        return f"_{self._classes[-1].lstrip('_')}{attribute}"

    def at(self, span: Span) -> Place:
        """The place of a node."""
        _, line, column, end_line, end_column = span
        if not self._ascii:
            column, end_column = self._bytes(line, column), self._bytes(end_line, end_column)
        return {
            "lineno": line,
            "col_offset": column - 1,
            "end_lineno": end_line,
            "end_col_offset": end_column - 1,
        }

    def _bytes(self, line: int, column: int) -> int:
        text = self._source.line(line)
        return len(text[: column - 1].encode("utf-8", "surrogatepass")) + 1


LOAD, STORE, DEL = ast.Load(), ast.Store(), ast.Del()


def name(text: str, place: Place, context: ast.expr_context = LOAD) -> ast.Name:
    """A variable."""
    return ast.Name(text, context, **place)


def call(function: str, place: Place, *arguments: ast.expr) -> ast.Call:
    """A call of one of our own functions."""
    return ast.Call(name(function, place), list(arguments), [], **place)


def check_name(text: str, span: Span) -> None:
    """Refuses special names, which belong to Python itself."""
    if names.is_special(text) and text not in names.ASSIGNABLE:
        raise Refused(
            "hidden-attribute",
            f"`{text}` is out of reach of kernel code",
            span,
            names.instead_of(text),
        )
