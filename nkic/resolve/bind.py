"""Module level: which names a file binds, and by which of its statements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nkic.base.source import SourceFile
from nkic.syntax import nodes, scopes
from nkic.syntax.bindings import Binding, Import, Kind, SourceModule
from nkic.syntax.walk import walk

_DEFINITIONS = {nodes.FunctionDef: Kind.FUNCTION, nodes.ClassDef: Kind.CLASS}
_SETTLED = frozenset({Kind.FUNCTION, Kind.IMPORT})


def bind(
    name: str, source: SourceFile, tree: nodes.Module, *, trusted: bool = False
) -> SourceModule:
    """The module that a file makes."""
    stars = tuple(_star_imports(tree))[::-1]
    return SourceModule(name, source, tree, _bindings(tree), stars, trusted)


class _Definition(NamedTuple):
    """One statement that binds a name."""

    place: int
    node: nodes.Statement
    simple: bool  # it does nothing else: a definition or an import on module level


def _bindings(tree: nodes.Module) -> dict[str, Binding]:
    found: dict[str, list[_Definition]] = {}
    for index, statement in enumerate(tree.body):
        simple = isinstance(statement, nodes.FunctionDef | nodes.ClassDef | nodes.Import)
        simple = simple or isinstance(statement, nodes.ImportFrom)
        for name in sorted(scopes.bound_by([statement])):
            found.setdefault(name, []).append(_Definition(index, statement, simple))
    bindings = {name: _binding(name, places) for name, places in found.items()}
    return _with_changes(tree, bindings)


def _binding(name: str, places: list[_Definition]) -> Binding:
    indices = tuple(definition.place for definition in places)
    node, span = places[0].node, places[0].node.span
    if len(places) > 1 or not places[0].simple:
        return Binding(name, Kind.VALUE, indices, span, _only_definition(name, places))
    if isinstance(node, nodes.FunctionDef | nodes.ClassDef):
        return Binding(name, _DEFINITIONS[type(node)], indices, node.name_span, node)
    return Binding(name, Kind.IMPORT, indices, span, target=_target(name, node))


def _only_definition(
    name: str, places: list[_Definition]
) -> nodes.FunctionDef | nodes.ClassDef | None:
    """The function or class among several ways to bind a name, such as `f = nki.jit(f)`."""
    parts = (node for place in places for node in scopes.own([place.node]))
    definitions = (n for n in parts if isinstance(n, nodes.FunctionDef | nodes.ClassDef))
    found = [node for node in definitions if node.name == name]
    return found[0] if len(found) == 1 else None


def _target(name: str, node: nodes.Statement) -> Import:
    if isinstance(node, nodes.ImportFrom):
        alias = next(a for a in node.names if scopes.alias_name(a) == name)
        return Import(request(node), alias.name)
    assert isinstance(node, nodes.Import)
    alias = next(a for a in node.names if scopes.alias_name(a) == name)
    return Import(alias.name if alias.asname else name)


def import_targets(module: SourceModule, binding: Binding) -> tuple[Import, ...]:
    """The imports that may bind a name: one, or several in `try: … except ImportError: …`."""
    if binding.target is not None:
        return (binding.target,)
    parts = scopes.own(module.tree.body[index] for index in binding.statements)
    imports = (n for n in parts if isinstance(n, nodes.Import | nodes.ImportFrom))
    found = (n for n in imports if any(scopes.alias_name(a) == binding.name for a in n.names))
    return tuple(_target(binding.name, node) for node in found)


def request(node: nodes.ImportFrom) -> str:
    """The module of a `from` import as written: `..utils.names`."""
    return "." * node.level + (node.module or "")


def _star_imports(tree: nodes.Module) -> Iterator[str]:
    for node in scopes.own([tree]):
        if isinstance(node, nodes.ImportFrom) and any(a.name == "*" for a in node.names):
            yield request(node)


def _with_changes(tree: nodes.Module, bindings: dict[str, Binding]) -> dict[str, Binding]:
    """Adds the statements that change a value without binding a name: `TABLE["a"] = 1`."""
    same = _aliases(tree)
    changes: dict[str, list[int]] = {}
    for index, statement in enumerate(tree.body):
        for name in sorted(set(_changed(statement))):
            for one in same.get(name, [name]):
                changes.setdefault(one, []).append(index)
    return {name: _changing(old, changes.get(name, [])) for name, old in bindings.items()}


def _aliases(tree: nodes.Module) -> dict[str, list[str]]:
    """Names that may hold one value, by each of them: `b = a` on module level."""
    same: dict[str, list[str]] = {}
    for node in tree.body:
        if isinstance(node, nodes.Assign) and isinstance(node.value, nodes.Name):
            targets = [target.id for target in node.targets if isinstance(target, nodes.Name)]
            known = [one for name in (*targets, node.value.id) for one in same.get(name, [name])]
            group = list(dict.fromkeys(known))
            same.update(dict.fromkeys(group, group))
    return same


def _changing(binding: Binding, changes: list[int]) -> Binding:
    later = [index for index in changes if index > binding.statements[0]]
    if binding.kind in _SETTLED or not later:
        return binding
    statements = tuple(sorted({*binding.statements, *later}))
    return Binding(binding.name, Kind.VALUE, statements, binding.span, binding.node)


def _changed(statement: nodes.Statement) -> Iterator[str]:
    """The names whose value a module-level statement changes in place.

    Those in loops and branches count; `if __name__ == "__main__":` holds host code.
    """
    if isinstance(statement, nodes.If):
        if not any(isinstance(n, nodes.Name) and n.id == "__name__" for n in walk(statement.test)):
            parts = (*statement.body, *statement.orelse)
            yield from (name for part in parts for name in _changed(part))
    elif isinstance(statement, nodes.For):
        yield from (name for part in statement.body for name in _changed(part))
    elif isinstance(statement, nodes.Expr) and isinstance(statement.value, nodes.Call):
        yield from _method_owner(statement.value)
    elif isinstance(statement, nodes.Assign | nodes.Delete):
        yield from (name for target in statement.targets for name in _root(target))
    elif isinstance(statement, nodes.AugAssign):
        yield from _root(statement.target)


def _method_owner(call: nodes.Call) -> Iterator[str]:
    if isinstance(call.func, nodes.Attribute):
        yield from _root(call.func)


def _root(target: nodes.Expression) -> Iterator[str]:
    """The name at the left end of `name[…].attribute…`; nothing for a bare name."""
    inner = target
    while isinstance(inner, nodes.Attribute | nodes.Subscript):
        inner = inner.value
    if inner is not target and isinstance(inner, nodes.Name):
        yield inner.id
