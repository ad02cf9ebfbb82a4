"""Translate: kernel source to Python code objects with the same lines and columns.

Takes statements of a module, gives code to execute in the module's closed namespace. The code
is Python's own, with exact semantics and at full speed, except that

* names that lead out of the closed world are refused, here and in `guards`;
* operations whose result could fill the memory are checked;
* every call and every turn of a loop counts a step;
* loops over device ranges and register conditions call hooks;
* annotations are left out, and decorators and base classes are checked.
"""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import CodeType

from nkic.base.source import SourceFile
from nkic.specialise import location
from nkic.specialise.scope import Refused, Scope
from nkic.specialise.statements import Statements
from nkic.syntax import nodes

_DEEP = 20_000  # levels of Python functions, which since 3.11 need none of the C stack


@lru_cache(maxsize=4096)
def translate(source: SourceFile, statement: nodes.Statement, own: frozenset[str]) -> CodeType:
    """The code of one module-level statement, or of an expression as a statement.

    `own` are the names of builtins that the module itself binds. Raises `Refused` for source that
    cannot be translated. Later compilations of the same source get the same code.
    """
    with _deep_recursion(statement):
        body = Statements(Scope(source, own)).statement(statement)
    return _compiled(source, statement, ast.Module(body, []), "exec")


def translate_expression(
    source: SourceFile, expression: nodes.Expression, own: frozenset[str]
) -> CodeType:
    """The code that gives the value of an expression."""
    with _deep_recursion(expression):
        body = Statements(Scope(source, own)).load(expression)
    return _compiled(source, expression, ast.Expression(body), "eval")


def _compiled(
    source: SourceFile, node: nodes.Node, tree: ast.Module | ast.Expression, mode: str
) -> CodeType:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's doubts about style are not ours
            code: CodeType = compile(tree, source.path, mode, dont_inherit=True, optimize=0)
    except RecursionError:
        raise _too_deep(node) from None
    except (SyntaxError, ValueError) as error:
        raise _impossible(node, error) from None
    location.register(code, source)
    return code


@contextmanager
def _deep_recursion(node: nodes.Node) -> Iterator[None]:
    """Room for source that is nested as deep as the parser allows."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _DEEP))
    try:
        yield
    except RecursionError:
        raise _too_deep(node) from None
    finally:
        sys.setrecursionlimit(before)


def _too_deep(node: nodes.Node) -> Refused:
    text = "this is nested too deep to be compiled"
    return Refused("nesting-too-deep", text, node.span, "name parts of it and use the names")


def _impossible(node: nodes.Node, error: Exception) -> Refused:
    """Python's compiler knows rules that no grammar shows, such as `return` outside a function."""
    text = error.msg if isinstance(error, SyntaxError) and error.msg else str(error)
    return Refused("not-in-nki", f"Python does not accept this: {text}", node.span)
