"""The names and attributes that a definition or a value mentions, whoever reaches it.

The result depends on the source alone, so it is memoised across compilations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from nkic.base.source import Span
from nkic.syntax import names, nodes, scopes
from nkic.syntax.walk import walk

Definition = nodes.FunctionDef | nodes.ClassDef


class Path(NamedTuple):
    """A chain of attributes that starts with a name: `root.first.second`."""

    root: str
    attributes: tuple[str, ...]


class Mentions(NamedTuple):
    """The names and attributes in a piece of source.

    `uses` holds the free names in source order, `called` the functions of the calls. `near` holds
    all names, for suggestions; `hidden` the attributes and methods with special names.
    """

    uses: tuple[nodes.Name, ...]
    called: frozenset[nodes.Expression]
    attributes: frozenset[str]
    paths: tuple[Path, ...]
    near: frozenset[str]
    hidden: tuple[tuple[str, Span], ...]


@lru_cache(maxsize=2048)
def of_definition(definition: Definition, is_method: bool) -> Mentions:
    """Return the mentions of a function, or of a class without the bodies of its methods."""
    pieces = _evaluated_parts(definition, is_method)
    all_nodes = [node for piece in pieces for node in walk(piece)]
    hidden = tuple(mention for node in (definition, *all_nodes) for mention in _hidden(node))
    if is_method:
        uses = scopes.free_names_of(definition)
    else:
        is_class = isinstance(definition, nodes.ClassDef)
        local = scopes.bound(definition) if is_class else frozenset[str]()
        uses = scopes.free_names(pieces, local)
    return _mentions(all_nodes, uses, hidden)


@lru_cache(maxsize=2048)
def of_values(statements: tuple[nodes.Statement, ...]) -> Mentions:
    """Return the mentions of the values that these statements assign to a name."""
    values = [value for statement in statements for value in _value_parts(statement)]
    all_nodes = [node for value in values for node in walk(value)]
    return _mentions(all_nodes, scopes.free_names(values), ())


def methods(definition: Definition) -> tuple[nodes.FunctionDef, ...]:
    """Return the methods of a class; a function has none."""
    if isinstance(definition, nodes.FunctionDef):
        return ()
    return tuple([node for node in definition.body if isinstance(node, nodes.FunctionDef)])


def _mentions(
    all_nodes: list[nodes.Node],
    uses: Iterable[nodes.Name],
    hidden: tuple[tuple[str, Span], ...],
) -> Mentions:
    attributes = [node for node in all_nodes if isinstance(node, nodes.Attribute)]
    owners = {node.value for node in attributes}  # the path of `a.b.c` covers `a.b`
    all_names = {node.id for node in all_nodes if isinstance(node, nodes.Name)}
    all_names |= {node.name for node in all_nodes if isinstance(node, nodes.Arg)}
    return Mentions(
        tuple(sorted(uses, key=lambda node: node.span)),
        frozenset(node.func for node in all_nodes if isinstance(node, nodes.Call)),
        frozenset(node.attr for node in attributes),
        tuple([path for node in attributes if node not in owners and (path := path_of(node))]),
        frozenset(all_names),
        hidden,
    )


def _evaluated_parts(definition: Definition, is_method: bool) -> list[nodes.Node]:
    """Return the parts that are evaluated with a definition: of a class, not its methods' bodies.

    The signature of a method belongs to its class.
    """
    if isinstance(definition, nodes.FunctionDef):
        return list(definition.body) if is_method else [definition]
    plain = [node for node in definition.body if not isinstance(node, nodes.FunctionDef)]
    signatures = [part for method in methods(definition) for part in scopes.outside(method)]
    return [*scopes.outside(definition), *plain, *signatures]


def _value_parts(statement: nodes.Statement) -> Iterator[nodes.Node]:
    """Yield the value of a statement; of an assignment, without the targets."""
    if isinstance(statement, nodes.Assign):
        yield statement.value
    elif not isinstance(statement, nodes.AnnAssign):
        yield statement
    elif statement.value is not None:
        yield statement.value


def path_of(expression: nodes.Expression) -> Path | None:
    """Return the path of `a.b.c`, or of a bare name; None for other expressions."""
    attributes: list[str] = []
    while isinstance(expression, nodes.Attribute):
        attributes.append(expression.attr)
        expression = expression.value
    if not isinstance(expression, nodes.Name):
        return None
    return Path(expression.id, tuple(reversed(attributes)))


def _hidden(node: nodes.Node) -> Iterator[tuple[str, Span]]:
    if isinstance(node, nodes.Attribute) and names.is_hidden(node.attr):
        if not _is_frozen_assignment(node):
            yield node.attr, node.span
    elif isinstance(node, nodes.ClassDef):
        for method in methods(node):
            if not names.may_define(method.name):
                yield method.name, method.name_span


def _is_frozen_assignment(node: nodes.Attribute) -> bool:
    """Whether this is `object.__setattr__`, which frozen dataclasses use in `__post_init__`."""
    owner = node.value
    return node.attr == "__setattr__" and isinstance(owner, nodes.Name) and owner.id == "object"
