"""Which names a piece of source binds, and which it takes from outside: Python's scope rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeGuard, get_args

from nkic.syntax import nodes
from nkic.syntax.walk import children

Comprehension = nodes.ListComp | nodes.SetComp | nodes.DictComp | nodes.GeneratorExp
Function = nodes.FunctionDef | nodes.Lambda
Scope = Function | nodes.ClassDef | Comprehension
_SCOPES = frozenset(get_args(Scope))  # asked of every node: `type(…) in` is the fastest question


def is_scope(node: nodes.Node) -> TypeGuard[Scope]:
    """Whether a node has names of its own."""
    return type(node) in _SCOPES


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
        below = _own_children(node)
        if live and type(node) in _BLOCKS:
            dead = _unreachable(node)
            below = [part for part in below if part not in dead]
        waiting += reversed(below)


def _own_children(node: nodes.Node) -> list[nodes.Node]:
    if is_scope(node):
        return list(outside(node))
    if isinstance(node, nodes.AnnAssign):
        return [node.target] if node.value is None else [node.target, node.value]
    return children(node)


_BLOCKS = frozenset({nodes.If, nodes.For, nodes.While, nodes.With, nodes.Try})
_LEAVES = nodes.Return | nodes.Raise | nodes.Break | nodes.Continue


def _unreachable(node: nodes.Node) -> set[nodes.Node]:
    blocks = (getattr(node, name, ()) for name in ("body", "orelse", "finalbody"))
    return {part for block in blocks for part in block[len(reachable(block)) :]}


def reachable(block: tuple[nodes.Statement, ...]) -> tuple[nodes.Statement, ...]:
    """The statements of a block up to the first that leaves it."""
    # Of the last one nobody has to know: a chain of `elif` is the last one of every `else`.
    ends = (number for number, node in enumerate(block[:-1], 1) if _leaves(node))
    return block[: next(ends, len(block))]


def _leaves(node: nodes.Statement) -> bool:
    """Nothing after the statement is ever reached."""
    waiting = [node]
    while waiting:
        at = waiting.pop()
        if isinstance(at, nodes.If) and at.orelse:
            waiting += [at.orelse[-1], at.body[-1]]
        elif not isinstance(at, _LEAVES):
            return False
    return True


class Names(NamedTuple):
    """What the statements of one scope say of names."""

    bound: frozenset[str]
    globals: frozenset[str]
    nonlocals: frozenset[str]


def bound(scope: Scope) -> frozenset[str]:
    """The names that are local to a scope."""
    return _local(scope).bound


def declared(scope: Scope) -> Names:
    """The names that a scope binds, and those that it declares `global` or `nonlocal`."""
    return _local(scope)


def nonlocals_inside(scope: Scope) -> Iterator[str]:
    """The names that a scope, or one in it, takes from outside by `nonlocal`."""
    waiting: list[Scope] = [scope]
    while waiting:
        at = waiting.pop()
        yield from _local(at).nonlocals
        waiting += [node for node in own(inside(at)) if is_scope(node)]


def bound_by(parts: Iterable[nodes.Node]) -> frozenset[str]:
    """The names that the nodes of one scope bind."""
    return _names(parts).bound


@lru_cache(maxsize=1024)
def _local(scope: Scope) -> Names:
    """The names of a scope: those bound are local to it."""
    if isinstance(scope, Comprehension):
        targets = frozenset(n for part in scope.generators for n in target_names(part.target))
        return Names(targets, frozenset(), frozenset())
    found = _names(inside(scope))
    names = found.bound
    if isinstance(scope, Function):
        names |= {parameter.name for parameter in parameters(scope.args)}
    return found._replace(bound=names - found.globals - found.nonlocals)


def _names(parts: Iterable[nodes.Node]) -> Names:
    names: set[str] = set()
    declared: dict[type[nodes.Node], set[str]] = {nodes.Global: set(), nodes.Nonlocal: set()}
    for node in own(parts):
        if type(node) in _BINDERS:
            names.update(_BINDERS[type(node)](node))
        elif isinstance(node, nodes.Global | nodes.Nonlocal):
            declared[type(node)].update(node.names)
    outer, around = declared[nodes.Global], declared[nodes.Nonlocal]
    return Names(frozenset(names), frozenset(outer), frozenset(around))


def handed_on(body: Sequence[nodes.Statement]) -> tuple[str, ...]:
    """The names that a loop's body assigns by `=` or `+=` and may read before it does: what one
    turn leaves in them reaches the next.
    """
    names: dict[str, None] = {}
    for part in own(body):
        names |= dict.fromkeys(_assigned(part))
    read = _read_first(body, set())
    return tuple(name for name in names if name in read)


def _read_first(body: Sequence[nodes.Statement], done: set[str]) -> set[str]:
    """What a block may read that is not in `done`, to which it adds what it surely assigns."""
    found: set[str] = set()
    for one in body:
        found |= {name.id for part in _heads(one) for name in _all_names(part)} - done
        if isinstance(one, nodes.Assign):
            done |= {name for target in one.targets for name in target_names(target)}
        elif isinstance(one, nodes.With):
            found |= _read_first(one.body, done)
        elif isinstance(one, nodes.For | nodes.While):
            inner = done | set(target_names(one.target) if isinstance(one, nodes.For) else ())
            found |= _read_first(one.body, inner) | _read_first(one.orelse, set(done))
        elif isinstance(one, nodes.If):
            yes, no = set(done), set(done)
            found |= _read_first(one.body, yes) | _read_first(one.orelse, no)
            done |= yes & no
    return found


def _heads(one: nodes.Statement) -> Iterator[nodes.Node]:
    """What a statement reads by itself, beside the blocks in it and the names it assigns."""
    if isinstance(one, nodes.Assign):
        yield one.value
        yield from (target for target in one.targets if not isinstance(target, nodes.Name))
    elif isinstance(one, nodes.For):
        yield one.iter
    elif isinstance(one, nodes.While | nodes.If):
        yield one.test
    elif isinstance(one, nodes.With):
        yield from one.items
    else:
        yield one


def _assigned(part: nodes.Node) -> Iterator[str]:
    targets = part.targets if isinstance(part, nodes.Assign) else ()
    targets = (part.target,) if isinstance(part, nodes.AugAssign) else targets
    return (one.id for one in targets if isinstance(one, nodes.Name))


def _all_names(part: nodes.Node) -> Iterator[nodes.Name]:
    """Every name within a part, in functions too."""
    if isinstance(part, nodes.Name):
        yield part
    for child in children(part):
        yield from _all_names(child)


def alias_name(alias: nodes.Alias) -> str:
    """The name that an import binds: `a` for `import a.b`."""
    return alias.asname or alias.name.partition(".")[0]


def target_names(target: nodes.Expression) -> Iterator[str]:
    """The names that an assignment target binds; attributes and items bind none."""
    waiting = [target]
    while waiting:
        at = waiting.pop()
        if isinstance(at, nodes.Name):
            yield at.id
        elif isinstance(at, nodes.Starred):
            waiting.append(at.value)
        elif isinstance(at, nodes.Tuple | nodes.List):
            waiting += reversed(at.elts)


def _of_definition(node: nodes.FunctionDef | nodes.ClassDef) -> Iterable[str]:
    return (node.name,)


def _of_import(node: nodes.Import | nodes.ImportFrom) -> Iterable[str]:
    return (alias_name(alias) for alias in node.names if alias.name != "*")


def _of_capture(node: nodes.ExceptHandler | nodes.MatchStar | nodes.MatchAs) -> Iterable[str]:
    return (node.name,) if node.name else ()


def _of_rest(node: nodes.MatchMapping) -> Iterable[str]:
    return (node.rest,) if node.rest else ()


def _of_targets(node: nodes.Assign | nodes.Delete) -> Iterable[str]:
    return (name for target in node.targets for name in target_names(target))


def _of_target(
    node: nodes.AugAssign | nodes.AnnAssign | nodes.For | nodes.NamedExpr,
) -> Iterable[str]:
    return target_names(node.target)


def _of_with(node: nodes.WithItem) -> Iterable[str]:
    return target_names(node.optional_vars) if node.optional_vars is not None else ()


def _of_alias(node: nodes.TypeAlias) -> Iterable[str]:
    return target_names(node.name)


def _walrus_inside(scope: Comprehension) -> Iterator[str]:
    """`:=` inside a comprehension binds in the scope around it."""
    waiting = [scope]
    while waiting:
        for node in own(inside(waiting.pop())):
            if isinstance(node, nodes.NamedExpr):
                yield node.target.id
            elif isinstance(node, Comprehension):
                waiting.append(node)


# The names that one node binds in its own scope, by the node's class.
_BINDERS: dict[type[nodes.Node], Callable[[Any], Iterable[str]]] = {
    **dict.fromkeys((nodes.FunctionDef, nodes.ClassDef), _of_definition),
    **dict.fromkeys((nodes.Import, nodes.ImportFrom), _of_import),
    **dict.fromkeys((nodes.ExceptHandler, nodes.MatchStar, nodes.MatchAs), _of_capture),
    **dict.fromkeys((nodes.Assign, nodes.Delete), _of_targets),
    **dict.fromkeys((nodes.AugAssign, nodes.AnnAssign, nodes.For, nodes.NamedExpr), _of_target),
    **dict.fromkeys(get_args(Comprehension), _walrus_inside),
    nodes.MatchMapping: _of_rest,
    nodes.WithItem: _of_with,
    nodes.TypeAlias: _of_alias,
}


def taken_from_outside(
    parts: Iterable[nodes.Node], local: frozenset[str] = frozenset()
) -> Iterator[nodes.Name]:
    """Every use of a name in `parts`, nested scopes included, that nothing there binds.

    `local` are names that `parts` see and scopes nested in them do not: those of a class body.
    Statements that no way leads to do not count.
    """
    yield from _taken(parts, local, frozenset())


def taken_by(scope: Scope) -> Iterator[nodes.Name]:
    """Every use of a name inside a scope that nothing there binds."""
    names = bound(scope)
    below = frozenset[str]() if isinstance(scope, nodes.ClassDef) else names
    yield from _taken(_live_inside(scope), names, below)


class _Frame(NamedTuple):
    """A scope that is being walked.

    `names` are those that it alone sees, `globals` those that it takes from the module.
    `entered` are its names that scopes in it see too; `covered` is how often the names that it
    declares global were in sight before.
    """

    parts: Iterator[nodes.Node]
    names: frozenset[str]
    globals: frozenset[str] = frozenset()
    entered: frozenset[str] = frozenset()
    covered: tuple[tuple[str, int], ...] = ()


def _taken(
    parts: Iterable[nodes.Node], here: frozenset[str], below: frozenset[str]
) -> Iterator[nodes.Name]:
    """`here` are the names that `parts` see, `below` those that scopes in them see."""
    in_sight = dict.fromkeys(below, 1)  # how many of the scopes around bind a name
    frames = [_Frame(own(parts, live=True), here)]
    while frames:
        frame = frames[-1]
        node = next(frame.parts, None)
        if node is None:
            _leave(frames.pop(), in_sight)
        elif isinstance(node, nodes.Name):
            seen = node.id not in frame.globals and in_sight.get(node.id)
            if not seen and node.id not in frame.names:
                yield node
        elif is_scope(node):
            frames.append(_enter(node, in_sight))


def _enter(scope: Scope, in_sight: dict[str, int]) -> _Frame:
    local, parts = _local(scope), own(_live_inside(scope), live=True)
    if isinstance(scope, nodes.ClassDef):  # functions in its body do not see its names
        return _Frame(parts, local.bound, local.globals)
    covered = tuple([(name, in_sight.pop(name, 0)) for name in local.globals])
    for name in local.bound:
        in_sight[name] = in_sight.get(name, 0) + 1
    return _Frame(parts, frozenset(), frozenset(), local.bound, covered)


def _leave(frame: _Frame, in_sight: dict[str, int]) -> None:
    for name in frame.entered:
        in_sight[name] -= 1
    in_sight.update(frame.covered)


def _live_inside(scope: Scope) -> list[nodes.Node]:
    if isinstance(scope, nodes.FunctionDef):
        return list(reachable(scope.body))
    return list(inside(scope))
