"""The syntax tree: the nodes inside and around a node.

libcst's own `children` and parents use a visitor that rebuilds every node, which is too slow for a
migration.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import fields
from functools import cache

import libcst as cst

# Layout: the prefixes of fields that do not affect the meaning of a source.
_LAYOUT = ("whitespace", "lpar", "rpar", "leading", "trailing", "lines_after", "comma", "semicolon")
_PUNCTUATION = {
    "header",
    "footer",
    "equal",
    "indent",
    "dot",
    "lbracket",
    "rbracket",
    "lbrace",
    "rbrace",
}


@cache
def _child_fields(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    names = (field.name for field in fields(kind))
    return tuple(n for n in names if not n.startswith(_LAYOUT) and n not in _PUNCTUATION)


def children(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the direct children of a node, without layout."""
    for name in _child_fields(type(node)):
        value = getattr(node, name)
        if isinstance(value, cst.CSTNode):
            yield value
        elif isinstance(value, tuple | list):
            yield from (child for child in value if isinstance(child, cst.CSTNode))


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the node and all its descendants."""
    yield node
    for child in children(node):
        yield from walk(child)


def names_in(node: cst.CSTNode) -> Iterator[cst.Name]:
    """Yield all names in a node, those of attributes and keywords included."""
    return (inner for inner in walk(node) if isinstance(inner, cst.Name))


def visible(node: cst.CSTNode, outside: Collection[int] = ()) -> Iterator[cst.CSTNode]:
    """Yield the nodes of this scope, without those in `outside` (by `id`).

    Nested functions and classes are yielded, but not what is inside.
    """
    if id(node) in outside:
        return
    yield node
    if not isinstance(node, cst.FunctionDef | cst.Lambda | cst.ClassDef):
        for child in children(node):
            yield from visible(child, outside)


def bound(node: cst.CSTNode, outside: Collection[int] = ()) -> set[str]:
    """Return the names that statements in `node` set, without those in `outside` (by `id`)."""
    names: set[str] = set()
    if isinstance(node, cst.FunctionDef):
        names |= {p.name.value for p in walk(node.params) if isinstance(p, cst.Param)}
        node = node.body
    for inner in visible(node, outside):
        names |= set(names_set(inner))
        if isinstance(inner, cst.ImportAlias) and inner.asname is None:
            names.add(code(inner.name).partition(".")[0])
    return names


def parents(tree: cst.Module) -> dict[int, cst.CSTNode]:
    """Return the parent of each node, by the node's `id`."""
    return {id(child): node for node in walk(tree) for child in children(node)}


def names_set(node: cst.CSTNode) -> Iterator[str]:
    """Yield the names that a node itself sets, other than by an import."""
    if isinstance(node, cst.FunctionDef | cst.ClassDef):
        yield node.name.value
    elif isinstance(
        node, cst.AssignTarget | cst.AnnAssign | cst.AugAssign | cst.For | cst.NamedExpr
    ):
        yield from (name.value for name in target_names(node.target))
    elif isinstance(node, cst.AsName):
        yield from (name.value for name in target_names(node.name))


def target_names(target: cst.CSTNode) -> Iterator[cst.Name]:
    """Yield the names that an assignment target sets."""
    if isinstance(target, cst.Name):
        yield target
    elif isinstance(target, cst.Tuple | cst.List):
        for element in target.elements:
            yield from target_names(element.value)


def only_target(statement: cst.CSTNode | None) -> cst.BaseExpression | None:
    """Return the target of an assignment of any kind, if there is only one."""
    if isinstance(statement, cst.Assign) and len(statement.targets) == 1:
        return statement.targets[0].target
    return statement.target if isinstance(statement, cst.AugAssign | cst.AnnAssign) else None


def code(node: cst.CSTNode) -> str:
    """Return the source text of a node."""
    return cst.Module([]).code_for_node(node)
