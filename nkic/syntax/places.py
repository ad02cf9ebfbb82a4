"""Definitions by their position in a file."""

from __future__ import annotations

from nkic.syntax import nodes
from nkic.syntax.bindings import SourceModule
from nkic.syntax.walk import walk

Function = nodes.FunctionDef | nodes.Lambda
LAMBDA = "<lambda>"


def function_at(module: SourceModule, name: str, line: int) -> Function:
    """Return the function called `name` whose `def`, `lambda` or first decorator is on a line.

    Raises `LookupError` if there is none, or more than one.
    """
    candidates = [node for node in walk(module.tree) if _starts_at(node, name, line)]
    if len(candidates) != 1:
        count = f"{len(candidates)} functions" if candidates else "no function"
        raise LookupError(f"{module.source.path} has {count} {name} in line {line}")
    only = candidates[0]
    assert isinstance(only, nodes.FunctionDef | nodes.Lambda)
    return only


def _starts_at(node: nodes.Node, name: str, line: int) -> bool:
    if isinstance(node, nodes.Lambda):
        return name == LAMBDA and node.span.line == line
    if not isinstance(node, nodes.FunctionDef) or node.name != name:
        return False
    starts = [node.span.line, *(decorator.span.line for decorator in node.decorators)]
    return line in starts
