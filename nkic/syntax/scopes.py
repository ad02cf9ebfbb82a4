"""Which names a piece of source binds, and which it takes from outside: Python's scope rules."""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator

from nkic.syntax import nodes
from nkic.syntax.walk import children

Comprehension = nodes.ListComp | nodes.SetComp | nodes.DictComp | nodes.GeneratorExp
Function = nodes.FunctionDef | nodes.Lambda
Scope = Function | nodes.ClassDef | Comprehension


def parameters(args: nodes.Arguments) -> tuple[nodes.Arg, ...]:
    """Every parameter, `*args` and `**kwargs` included, in the order of the signature."""
    stars = (args.vararg,) if args.vararg else ()
    double = (args.kwarg,) if args.kwarg else ()
    return (*args.posonlyargs, *args.args, *stars, *args.kwonlyargs, *double)


def outside(scope: Scope) -> Iterator[nodes.Node]:
    """The parts of a scope that are evaluated in the scope around it.

    Annotations are in neither part: NKI never evaluates them.
    """
    if isinstance(scope, Comprehension):
        yield scope.generators[0].iter
        return
    if isinstance(scope, nodes.ClassDef):
        yield from (*scope.decorators, *scope.bases, *scope.keywords)
        return
    if isinstance(scope, nodes.FunctionDef):
        yield from scope.decorators
    yield from scope.args.defaults
    yield from (default for default in scope.args.kw_defaults if default is not None)


def inside(scope: Scope) -> Iterator[nodes.Node]:
    """The parts of a scope that see its own names."""
    if isinstance(scope, nodes.FunctionDef | nodes.ClassDef):
        yield from scope.body
    elif isinstance(scope, nodes.Lambda):
        yield scope.body
    else:
        yield from _inside_comprehension(scope)


def _inside_comprehension(scope: Comprehension) -> Iterator[nodes.Node]:
    elements = (scope.key, scope.value) if isinstance(scope, nodes.DictComp) else (scope.elt,)
    yield from elements
    for number, part in enumerate(scope.generators):
        yield part.target
        yield from part.ifs
        if number:
            yield part.iter


def own(parts: Iterable[nodes.Node], *, live: bool = False) -> Iterator[nodes.Node]:
    """The nodes of `parts` that belong to their scope: nested scopes are given, not entered.

    With `live`, statements that follow a `return`, `raise`, `break` or `continue` in their block
    are left out: no way leads to them.
    """
    waiting = list(parts)[::-1]
    while waiting:
        node = waiting.pop()
        yield node
        below = list(_own_children(node))
        if live and isinstance(node, _BLOCKS):
            dead = _unreachable(node)
            below = [part for part in below if part not in dead]
        waiting.extend(reversed(below))


def _own_children(node: nodes.Node) -> Iterator[nodes.Node]:
    if isinstance(node, Scope):
        return outside(node)
    if isinstance(node, nodes.AnnAssign):
        return iter((node.target,) if node.value is None else (node.target, node.value))
    return children(node)


_BLOCKS = nodes.If | nodes.For | nodes.While | nodes.With | nodes.Try
_LEAVES = nodes.Return | nodes.Raise | nodes.Break | nodes.Continue


def _unreachable(node: nodes.Node) -> list[nodes.Node]:
    blocks = (getattr(node, name, ()) for name in ("body", "orelse", "finalbody"))
    return [part for block in blocks for part in block[len(reachable(block)) :]]


def reachable(block: tuple[nodes.Statement, ...]) -> tuple[nodes.Statement, ...]:
    """The statements of a block up to the first that leaves it."""
    ends = (number for number, node in enumerate(block, 1) if _leaves(node))
    return block[: next(ends, len(block))]


def _leaves(node: nodes.Statement) -> bool:
    """Nothing after the statement is ever reached."""
    if isinstance(node, nodes.If) and node.orelse:
        return _leaves(node.body[-1]) and _leaves(node.orelse[-1])
    return isinstance(node, _LEAVES)


def bound(scope: Scope) -> frozenset[str]:
    """The names that are local to a scope."""
    if isinstance(scope, Comprehension):
        return frozenset(n for part in scope.generators for n in target_names(part.target))
    names = bound_by(inside(scope))
    if isinstance(scope, Function):
        names |= {parameter.name for parameter in parameters(scope.args)}
    return names - declared(inside(scope), nodes.Global | nodes.Nonlocal)


def bound_by(parts: Iterable[nodes.Node]) -> frozenset[str]:
    """The names that the nodes of one scope bind."""
    return frozenset(name for node in own(parts) for name in _binds(node))


def declared(
    parts: Iterable[nodes.Node], kinds: type[nodes.Node] | types.UnionType
) -> frozenset[str]:
    """The names in the `global` or `nonlocal` statements of one scope."""
    found = (node for node in own(parts) if isinstance(node, kinds))
    return frozenset(n for node in found for n in node.names)  # type: ignore[attr-defined]


def _binds(node: nodes.Node) -> Iterator[str]:
    """The names that one node binds in its own scope."""
    if isinstance(node, nodes.FunctionDef | nodes.ClassDef):
        yield node.name
    elif isinstance(node, nodes.Import | nodes.ImportFrom):
        yield from (alias_name(alias) for alias in node.names if alias.name != "*")
    elif isinstance(node, nodes.ExceptHandler | nodes.MatchStar | nodes.MatchAs):
        yield from [node.name] if node.name else []
    elif isinstance(node, nodes.MatchMapping):
        yield from [node.rest] if node.rest else []
    elif isinstance(node, Comprehension):
        yield from _walrus_inside(node)
    else:
        yield from (name for target in _targets(node) for name in target_names(target))


def alias_name(alias: nodes.Alias) -> str:
    """The name that an import binds: `a` for `import a.b`."""
    return alias.asname or alias.name.partition(".")[0]


def _targets(node: nodes.Node) -> tuple[nodes.Expression, ...]:
    """What a node assigns to."""
    if isinstance(node, nodes.Assign | nodes.Delete):
        return node.targets
    if isinstance(node, nodes.AugAssign | nodes.AnnAssign | nodes.For | nodes.NamedExpr):
        return (node.target,)
    if isinstance(node, nodes.WithItem) and node.optional_vars is not None:
        return (node.optional_vars,)
    return (node.name,) if isinstance(node, nodes.TypeAlias) else ()


def target_names(target: nodes.Expression) -> Iterator[str]:
    """The names that an assignment target binds; attributes and items bind none."""
    if isinstance(target, nodes.Name):
        yield target.id
    elif isinstance(target, nodes.Starred):
        yield from target_names(target.value)
    elif isinstance(target, nodes.Tuple | nodes.List):
        yield from (name for part in target.elts for name in target_names(part))


def _walrus_inside(scope: Comprehension) -> Iterator[str]:
    """`:=` inside a comprehension binds in the scope around it."""
    for node in own(inside(scope)):
        if isinstance(node, nodes.NamedExpr):
            yield node.target.id
        elif isinstance(node, Comprehension):
            yield from _walrus_inside(node)


def taken_from_outside(
    parts: Iterable[nodes.Node], local: frozenset[str] = frozenset()
) -> Iterator[nodes.Name]:
    """Every use of a name in `parts`, nested scopes included, that nothing there binds.

    `local` are names that `parts` see and scopes nested in them do not: those of a class body.
    Statements that no way leads to do not count.
    """
    yield from _taken(list(parts), local, frozenset())


def taken_by(scope: Scope) -> Iterator[nodes.Name]:
    """Every use of a name inside a scope that nothing there binds."""
    names = bound(scope)
    below = frozenset[str]() if isinstance(scope, nodes.ClassDef) else names
    yield from _taken(_live_inside(scope), names, below)


def _taken(
    parts: list[nodes.Node], here: frozenset[str], below: frozenset[str]
) -> Iterator[nodes.Name]:
    waiting = [(parts, here, below)]
    while waiting:
        pieces, here, below = waiting.pop()
        for node in own(pieces, live=True):
            if isinstance(node, nodes.Name):
                if node.id not in here:
                    yield node
            elif isinstance(node, Scope):
                names = bound(node) | below - declared(inside(node), nodes.Global)
                # Functions in a class body do not see the names of the class.
                deeper = below if isinstance(node, nodes.ClassDef) else names
                waiting.append((_live_inside(node), names, deeper))


def _live_inside(scope: Scope) -> list[nodes.Node]:
    if isinstance(scope, nodes.FunctionDef):
        return list(reachable(scope.body))
    return list(inside(scope))
