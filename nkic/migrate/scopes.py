"""The function around a node, and the names that a part of a function reads."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import libcst as cst

from nkic.migrate.sheet import Sheet
from nkic.migrate.tree import children


def scope_of(sheet: Sheet, node: cst.CSTNode) -> cst.FunctionDef | None:
    """Return the function around a node; None at the top of the file and in a class."""
    around = (p for p in sheet.parents(node) if isinstance(p, cst.FunctionDef | cst.ClassDef))
    nearest = next(around, None)
    return nearest if isinstance(nearest, cst.FunctionDef) else None


def read_in(node: cst.CSTNode, outside: Collection[int] = ()) -> set[str]:
    """Return the names that are read in `node`, nested functions included, without `outside`."""
    body = node.body if isinstance(node, cst.FunctionDef) else node
    return set(_read(body, outside))


def _read(node: cst.CSTNode, outside: Collection[int]) -> Iterator[str]:
    if id(node) in outside:
        return
    if isinstance(node, cst.Name):
        yield node.value
    for child in _read_children(node):
        yield from _read(child, outside)


def _read_children(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the children that are read: no assignment targets, attribute names, …"""
    if isinstance(node, cst.Attribute):
        yield node.value
    elif isinstance(node, cst.Arg | cst.Param | cst.FunctionDef | cst.ClassDef):
        yield from (
            child
            for child in children(node)
            if not isinstance(child, cst.Name) or child is _value(node)
        )
    elif isinstance(node, cst.AssignTarget | cst.For | cst.AnnAssign | cst.NamedExpr):
        yield from (child for child in children(node) if child is not node.target)
        yield from _read_by_setting(node.target)
    else:
        yield from children(node)


def _value(node: cst.CSTNode) -> cst.CSTNode | None:
    return node.value if isinstance(node, cst.Arg) else None


def _read_by_setting(target: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the parts of a target that are read: those that are not plain names."""
    if isinstance(target, cst.Tuple | cst.List):
        for element in target.elements:
            yield from _read_by_setting(element.value)
    elif not isinstance(target, cst.Name):
        yield target
