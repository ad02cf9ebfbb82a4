"""Python's scope rules: the names that a piece of source binds, and its free variables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeGuard, get_args

from nkic.source import nodes
from nkic.source.nodes import children

Comprehension = nodes.ListComp | nodes.SetComp | nodes.DictComp | nodes.GeneratorExp
Function = nodes.FunctionDef | nodes.Lambda
Scope = Function | nodes.ClassDef | Comprehension
_SCOPES = frozenset(get_args(Scope))  # `type(…) in` is the fastest test for every node


def is_scope(node: nodes.Node) -> TypeGuard[Scope]:
    return type(node) in _SCOPES


def parameters(args: nodes.Arguments) -> tuple[nodes.Arg, ...]:
    """Return every parameter, including `*args` and `**kwargs`, in signature order."""
    stars = (args.vararg,) if args.vararg else ()
    double = (args.kwarg,) if args.kwarg else ()
    return (*args.posonlyargs, *args.args, *stars, *args.kwonlyargs, *double)


def outside(scope: Scope) -> Iterator[nodes.Node]:
    """Yield the parts of a scope that are evaluated in the enclosing scope.

    Annotations belong to neither part: NKI never evaluates them.
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
    """Yield the parts of a scope that see its own names."""
    if isinstance(scope, nodes.FunctionDef | nodes.ClassDef):
        yield from scope.body
    elif isinstance(scope, nodes.Lambda):
        yield scope.body
    else:
        elements = (scope.key, scope.value) if isinstance(scope, nodes.DictComp) else (scope.elt,)
        yield from elements
        for number, clause in enumerate(scope.generators):
            yield clause.target
            yield from clause.ifs
            if number:
                yield clause.iter


def nodes_in_scope(roots: Iterable[nodes.Node], *, live: bool = False) -> Iterator[nodes.Node]:
    """Yield the nodes under `roots` in their own scope; nested scopes are yielded but not entered.

    If `live`, leave out unreachable statements: those that follow a `return`, `raise`, `break` or
    `continue` in their block.
    """
    waiting = list(roots)[::-1]
    while waiting:
        node = waiting.pop()
        yield node
        below = _children_in_scope(node)
        if live and type(node) in _BLOCKS:
            blocks = (getattr(node, name, ()) for name in ("body", "orelse", "finalbody"))
            dead = {statement for block in blocks for statement in block[len(reachable(block)) :]}
            below = [child for child in below if child not in dead]
        waiting += reversed(below)


def _children_in_scope(node: nodes.Node) -> list[nodes.Node]:
    if is_scope(node):
        return list(outside(node))
    if isinstance(node, nodes.AnnAssign):
        return [node.target] if node.value is None else [node.target, node.value]
    return children(node)


_BLOCKS = frozenset({nodes.If, nodes.For, nodes.While, nodes.With, nodes.Try})
_EXITS = nodes.Return | nodes.Raise | nodes.Break | nodes.Continue


def reachable(block: tuple[nodes.Statement, ...]) -> tuple[nodes.Statement, ...]:
    """Return the statements of a block up to the first that leaves it."""
    # The last statement need not be tested: a chain of `elif` is the last one of every `else`.
    ends = (number for number, node in enumerate(block[:-1], 1) if _never_continues(node))
    return block[: next(ends, len(block))]


def _never_continues(node: nodes.Statement) -> bool:
    """Whether no statement after this one is reachable."""
    waiting = [node]
    while waiting:
        at = waiting.pop()
        if isinstance(at, nodes.If) and at.orelse:
            waiting += [at.orelse[-1], at.body[-1]]
        elif not isinstance(at, _EXITS):
            return False
    return True


class Names(NamedTuple):
    """The names that the statements of one scope bind, declare and unbind again."""

    bound: frozenset[str]
    globals: frozenset[str]
    nonlocals: frozenset[str]
    unbound: frozenset[str] = frozenset()


def bound(scope: Scope) -> frozenset[str]:
    return declared(scope).bound


def nonlocals_inside(scope: Scope) -> Iterator[str]:
    """Yield the names that a scope, or a nested one, declares `nonlocal`."""
    waiting: list[Scope] = [scope]
    while waiting:
        at = waiting.pop()
        yield from declared(at).nonlocals
        waiting += [node for node in nodes_in_scope(inside(at)) if is_scope(node)]


def bound_by(roots: Iterable[nodes.Node]) -> frozenset[str]:
    """Return the names that the nodes of one scope bind."""
    return _names(roots).bound


@lru_cache(maxsize=1024)
def declared(scope: Scope) -> Names:
    """Return the names that are local to a scope, and those it declares `global` or `nonlocal`."""
    if isinstance(scope, Comprehension):
        targets = frozenset(n for clause in scope.generators for n in target_names(clause.target))
        return Names(targets, frozenset(), frozenset())
    names = _names(inside(scope))
    bound = names.bound
    if isinstance(scope, Function):
        bound |= {parameter.name for parameter in parameters(scope.args)}
    return names._replace(bound=bound - names.globals - names.nonlocals)


def _names(roots: Iterable[nodes.Node]) -> Names:
    names: set[str] = set()
    declared: dict[type[nodes.Node], set[str]] = {nodes.Global: set(), nodes.Nonlocal: set()}
    unbound: set[str] = set()
    for node in nodes_in_scope(roots):
        if type(node) in _BINDERS:
            names.update(_BINDERS[type(node)](node))
            if isinstance(node, nodes.Delete | nodes.ExceptHandler):
                unbound.update(_BINDERS[type(node)](node))
        elif isinstance(node, nodes.Global | nodes.Nonlocal):
            declared[type(node)].update(node.names)
    global_names, nonlocal_names = declared[nodes.Global], declared[nodes.Nonlocal]
    return Names(
        frozenset(names), frozenset(global_names), frozenset(nonlocal_names), frozenset(unbound)
    )


def loop_carried(body: Sequence[nodes.Statement]) -> tuple[str, ...]:
    """Return the loop-carried variables of a loop's body.

    These are the names that the body assigns by `=` or `+=` and may read before that: their value
    carries over from one iteration to the next.
    """
    names: dict[str, None] = {}
    for node in nodes_in_scope(body):
        names |= dict.fromkeys(_assigned(node))
    read = _upward_exposed(body, set())
    return tuple(name for name in names if name in read)


def _upward_exposed(body: Sequence[nodes.Statement], assigned: set[str]) -> set[str]:
    """Return the upward-exposed uses of a block; add its definite assignments to `assigned`."""
    exposed: set[str] = set()
    for statement in body:
        exposed |= {
            name.id for node in _own_reads(statement) for name in _all_names(node)
        } - assigned
        if isinstance(statement, nodes.Assign):
            assigned |= {name for target in statement.targets for name in target_names(target)}
        elif isinstance(statement, nodes.With):
            exposed |= _upward_exposed(statement.body, assigned)
        elif isinstance(statement, nodes.For | nodes.While):
            inner = assigned | set(
                target_names(statement.target) if isinstance(statement, nodes.For) else ()
            )
            exposed |= _upward_exposed(statement.body, inner) | _upward_exposed(
                statement.orelse, set(assigned)
            )
        elif isinstance(statement, nodes.If):
            yes, no = set(assigned), set(assigned)
            exposed |= _upward_exposed(statement.body, yes) | _upward_exposed(statement.orelse, no)
            assigned |= yes & no
    return exposed


def _own_reads(statement: nodes.Statement) -> Iterator[nodes.Node]:
    """Yield the parts that a statement reads itself, without nested blocks and assigned names."""
    if isinstance(statement, nodes.Assign):
        yield statement.value
        yield from (target for target in statement.targets if not isinstance(target, nodes.Name))
    elif isinstance(statement, nodes.For):
        yield statement.iter
    elif isinstance(statement, nodes.While | nodes.If):
        yield statement.test
    elif isinstance(statement, nodes.With):
        yield from statement.items
    else:
        yield statement


def _assigned(node: nodes.Node) -> Iterator[str]:
    targets = node.targets if isinstance(node, nodes.Assign) else ()
    targets = (node.target,) if isinstance(node, nodes.AugAssign) else targets
    return (target.id for target in targets if isinstance(target, nodes.Name))


def _all_names(node: nodes.Node) -> Iterator[nodes.Name]:
    """Yield every name within a node, including those in functions."""
    if isinstance(node, nodes.Name):
        yield node
    for child in children(node):
        yield from _all_names(child)


def alias_name(alias: nodes.Alias) -> str:
    """Return the name that an import binds: `a` for `import a.b`."""
    return alias.asname or alias.name.partition(".")[0]


def target_names(target: nodes.Expression) -> Iterator[str]:
    """Yield the names that an assignment target binds; attributes and items bind none."""
    waiting = [target]
    while waiting:
        at = waiting.pop()
        if isinstance(at, nodes.Name):
            yield at.id
        elif isinstance(at, nodes.Starred):
            waiting.append(at.value)
        elif isinstance(at, nodes.Tuple | nodes.List):
            waiting += reversed(at.elts)


def _walrus_inside(scope: Comprehension) -> Iterator[str]:
    """Yield the names that `:=` in a comprehension binds in the enclosing scope."""
    waiting = [scope]
    while waiting:
        for node in nodes_in_scope(inside(waiting.pop())):
            if isinstance(node, nodes.NamedExpr):
                yield node.target.id
            elif isinstance(node, Comprehension):
                waiting.append(node)


# By the node's class: the names that the node binds in its own scope.
_BINDERS: dict[type[nodes.Node], Callable[[Any], Iterable[str]]] = {
    **dict.fromkeys((nodes.FunctionDef, nodes.ClassDef), lambda node: (node.name,)),
    **dict.fromkeys(
        (nodes.Import, nodes.ImportFrom),
        lambda node: (alias_name(alias) for alias in node.names if alias.name != "*"),
    ),
    **dict.fromkeys(
        (nodes.ExceptHandler, nodes.MatchStar, nodes.MatchAs),
        lambda node: (node.name,) if node.name else (),
    ),
    **dict.fromkeys(
        (nodes.Assign, nodes.Delete),
        lambda node: (name for target in node.targets for name in target_names(target)),
    ),
    **dict.fromkeys(
        (nodes.AugAssign, nodes.AnnAssign, nodes.For, nodes.NamedExpr),
        lambda node: target_names(node.target),
    ),
    **dict.fromkeys(get_args(Comprehension), _walrus_inside),
    nodes.MatchMapping: lambda node: (node.rest,) if node.rest else (),
    nodes.WithItem: lambda node: target_names(node.optional_vars) if node.optional_vars else (),
    nodes.TypeAlias: lambda node: target_names(node.name),
}


def free_names(
    roots: Iterable[nodes.Node], local: frozenset[str] = frozenset()
) -> Iterator[nodes.Name]:
    """Yield the free names under `roots`, nested scopes included.

    `local` holds names that `roots` see but nested scopes do not: those of a class body.
    Unreachable statements do not count.
    """
    yield from _free_names(roots, local, frozenset())


def free_names_of(scope: Scope) -> Iterator[nodes.Name]:
    names = bound(scope)
    inner_visible = frozenset[str]() if isinstance(scope, nodes.ClassDef) else names
    yield from _free_names(_live_inside(scope), names, inner_visible)


class _Frame(NamedTuple):
    """A scope during the walk.

    `names` holds the names that it alone sees, `globals` those that it takes from the module.
    `local` holds the names that nested scopes see, too; `shadowed` saves how many scopes bound the
    names that it declares global.
    """

    parts: Iterator[nodes.Node]
    names: frozenset[str]
    globals: frozenset[str] = frozenset()
    local: frozenset[str] = frozenset()
    shadowed: tuple[tuple[str, int], ...] = ()


def _free_names(
    roots: Iterable[nodes.Node], own_visible: frozenset[str], inner_visible: frozenset[str]
) -> Iterator[nodes.Name]:
    """Yield the free names; nested scopes see the names in `inner_visible` only."""
    visible = dict.fromkeys(inner_visible, 1)  # the number of enclosing scopes that bind a name
    frames = [_Frame(nodes_in_scope(roots, live=True), own_visible)]
    while frames:
        frame = frames[-1]
        node = next(frame.parts, None)
        if node is None:
            _exit_scope(frames.pop(), visible)
        elif isinstance(node, nodes.Name):
            seen = node.id not in frame.globals and visible.get(node.id)
            if not seen and node.id not in frame.names:
                yield node
        elif is_scope(node):
            frames.append(_enter_scope(node, visible))


def _enter_scope(scope: Scope, visible: dict[str, int]) -> _Frame:
    local, nodes_inside = declared(scope), nodes_in_scope(_live_inside(scope), live=True)
    if isinstance(scope, nodes.ClassDef):  # functions in its body do not see its names
        return _Frame(nodes_inside, local.bound, local.globals)
    shadowed = tuple([(name, visible.pop(name, 0)) for name in local.globals])
    for name in local.bound:
        visible[name] = visible.get(name, 0) + 1
    return _Frame(nodes_inside, frozenset(), frozenset(), local.bound, shadowed)


def _exit_scope(frame: _Frame, visible: dict[str, int]) -> None:
    for name in frame.local:
        visible[name] -= 1
    visible.update(frame.shadowed)


def _live_inside(scope: Scope) -> list[nodes.Node]:
    if isinstance(scope, nodes.FunctionDef):
        return list(reachable(scope.body))
    return list(inside(scope))
