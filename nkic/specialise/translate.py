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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType

from nkic.specialise import location
from nkic.specialise.scope import Refused, Scope
from nkic.specialise.statements import Statements
from nkic.syntax import nodes
from nkic.syntax.bindings import SourceModule

_DEEP = 20_000  # levels of Python functions, which since 3.11 need none of the C stack


def translate(
    module: SourceModule, statement: nodes.Statement, defines: Callable[[str], bool]
) -> CodeType:
    """The code of one module-level statement, or of an expression as a statement.

    `defines` says whether the module itself binds a name. Raises `Refused` for source that
    cannot be translated.
    """
    with _deep_recursion(statement):
        body = Statements(Scope(module.source, defines)).statement(statement)
    return _compiled(module, statement, ast.Module(body, []), "exec")


def translate_expression(
    module: SourceModule, expression: nodes.Expression, defines: Callable[[str], bool]
) -> CodeType:
    """The code that gives the value of an expression."""
    with _deep_recursion(expression):
        body = Statements(Scope(module.source, defines)).load(expression)
    return _compiled(module, expression, ast.Expression(body), "eval")


def _compiled(
    module: SourceModule, node: nodes.Node, tree: ast.Module | ast.Expression, mode: str
) -> CodeType:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's doubts about style are not ours
            code: CodeType = compile(tree, module.source.path, mode, dont_inherit=True, optimize=0)
    except RecursionError:
        raise _too_deep(node) from None
    except (SyntaxError, ValueError) as error:
        raise _impossible(module, node, error) from None
    location.register(code, module.source)
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


def _impossible(module: SourceModule, node: nodes.Node, error: Exception) -> Refused:
    """Python's compiler knows rules that no grammar shows, such as `return` outside a function."""
    text = error.msg if isinstance(error, SyntaxError) and error.msg else str(error)
    return Refused("not-in-nki", f"Python does not accept this: {text}", node.span)
