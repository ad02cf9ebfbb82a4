"""The meaning of names through imports: `nl.add` is `nki.language.add`."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Mapping

import libcst as cst

from nkic.migrate.tree import bound, code, visible

Scope = cst.FunctionDef | cst.Module


class Imports:
    """The imports of a file, by the function that contains them.

    A name that a function sets by other means is local to it.
    """

    def __init__(self, tree: cst.Module, around: Callable[[cst.CSTNode], Iterator[cst.CSTNode]]):
        self._tree = tree
        self._around = around
        self._of: dict[int, Mapping[str, str]] = {}
        self._set: dict[int, set[str]] = {}

    def meaning(self, node: cst.CSTNode) -> str:
        """Return the qualified name of an expression; "" if it is not imported."""
        if isinstance(node, cst.Attribute):
            owner = self.meaning(node.value)
            return f"{owner}.{node.attr.value}" if owner else ""
        if not isinstance(node, cst.Name):
            return ""
        for scope in self._scopes(node):
            if node.value in self._imported(scope):
                return self._imported(scope)[node.value]
            if node.value in self._bound(scope):
                return ""
        return ""

    def is_builtin(self, node: cst.CSTNode, name: str) -> bool:
        """Whether the expression is Python's built-in `name`."""
        return (
            isinstance(node, cst.Name)
            and node.value == name
            and hasattr(builtins, name)
            and not any(
                name in self._imported(scope) or name in self._bound(scope)
                for scope in self._scopes(node)
            )
        )

    def _scopes(self, node: cst.CSTNode) -> Iterator[Scope]:
        for parent in self._around(node):
            if isinstance(parent, cst.FunctionDef | cst.Module):
                yield parent

    def _imported(self, scope: Scope) -> Mapping[str, str]:
        if id(scope) not in self._of:
            body = scope.body if isinstance(scope, cst.FunctionDef) else scope
            self._of[id(scope)] = {
                name: meant for node in visible(body) for name, meant in _imports(node)
            }
        return self._of[id(scope)]

    def _bound(self, scope: Scope) -> set[str]:
        if id(scope) not in self._set:
            self._set[id(scope)] = bound(scope)
        return self._set[id(scope)]


def _imports(node: cst.CSTNode) -> Iterator[tuple[str, str]]:
    if isinstance(node, cst.Import):
        for alias in node.names:
            name = code(alias.name)
            first = name.partition(".")[0]
            yield (code(alias.asname.name), name) if alias.asname else (first, first)
    elif isinstance(node, cst.ImportFrom) and not isinstance(node.names, cst.ImportStar):
        package = "." * len(node.relative) + (code(node.module) if node.module else "")
        for alias in node.names:
            name_node = alias.asname.name if alias.asname else alias.name
            yield code(name_node), f"{package}.{code(alias.name)}"
