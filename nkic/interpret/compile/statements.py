"""Compile statements to closures.

A statement's closure returns None, or the reason to leave the block: BREAK, CONTINUE, or a tuple
with the returned value. Statements that contain a `yield` are in `generators`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nkic.base.device import DeviceCondition, DeviceRange, KernelError, TracedOnce
from nkic.base.source import Span
from nkic.interpret import attributes, classes, exceptions
from nkic.interpret.budget import FREE_ITERATIONS, LATER_ITERATIONS, BudgetExhausted
from nkic.interpret.classes import TypingForm
from nkic.interpret.compile.targets import (
    Comprehensions,
    Run,
    device_for,
    device_while,
    each_iteration,
    finally_,
    try_except,
    with_else,
)
from nkic.interpret.compile.units import assign_local, in_order
from nkic.interpret.objects import (
    AT,
    BREAK,
    CONTINUE,
    FUNCTION,
    INSTANCES,
    MACHINE,
    UNSET,
    Class,
    Frame,
    Refused,
)
from nkic.source import bindings, nodes, scopes

_IMPORT_ERRORS = frozenset({"ImportError", "ModuleNotFoundError", "Exception"})


class Statements(Comprehensions):
    def statement(self, node: nodes.Statement) -> Run:
        self.unit.cost += 1
        closure: Run = _COMPILERS[type(node)](self, node)
        return closure

    def block(self, body: Sequence[nodes.Statement]) -> Run:
        body = [node for node in body if not _does_nothing(node)]
        is_straight = len(body) > 1 and _STRAIGHT.issuperset(map(type, body))
        compile_ = self._effect if is_straight else self.statement
        outer, self.unit.assigned = self.unit.assigned, self.unit.assigned.copy()
        parts = tuple([compile_(node) for node in body])
        self.unit.assigned = outer
        if not parts:
            return lambda f: None
        if len(parts) == 1:
            return parts[0]
        if is_straight:
            return in_order(parts)

        def run(f: Frame) -> Any:
            for part in parts:
                outcome = part(f)
                if outcome is not None:
                    return outcome
            return None

        return run

    def _effect(self, node: nodes.Statement) -> Run:
        """Return a closure of which only the effect counts, not the result."""
        if not isinstance(node, nodes.Expr):
            return self.statement(node)
        self.unit.cost += 1
        return self.expression(node.value)

    # ---- simple statements -----------------------------------------------------------------

    def simple(self, node: nodes.Expr) -> Run:
        value = self.expression(node.value)

        def run(f: Frame) -> None:
            value(f)

        return run

    def assign(self, node: nodes.Assign) -> Run:
        value = self.expression(node.value)
        stores = tuple([self.store(target) for target in node.targets])
        for target in node.targets:
            self.unit.assign(target)
        if len(stores) == 1:
            (store,) = stores
            slot = self.local(node.targets[0])
            if slot >= 0:
                return assign_local(slot, value)

            def run_single(f: Frame) -> None:
                store(f, value(f))

            return run_single

        def run(f: Frame) -> None:
            assigned = value(f)
            for store in stores:
                store(f, assigned)

        return run

    def annotated(self, node: nodes.AnnAssign) -> Run:
        """Compile `target: annotation = value`. Annotations are never evaluated."""
        unit, field = self.unit, None
        if unit.kind == "class" and isinstance(node.target, nodes.Name):
            field = (unit.mangled(node.target.id), _marker(node.annotation))
        store = None
        if node.value is not None:
            store = self.assign(nodes.Assign(node.span, (node.target,), node.value))
        if field is None:
            return store or (lambda f: None)
        name, marker = field

        def run(f: Frame) -> None:
            f[FUNCTION].fields[name] = marker
            if store is not None:
                store(f)

        return run

    def type_alias(self, node: nodes.TypeAlias) -> Run:
        """Compile `type X = …`; only annotations use such names."""
        store = self.store(node.name)
        return lambda f: store(f, TypingForm(node.name.id))

    def return_(self, node: nodes.Return) -> Run:
        value = None if node.value is None else self.expression(node.value)
        if value is None:

            def nothing(f: Frame) -> Any:
                f[AT] = node
                return (None,)

            return nothing

        def run(f: Frame) -> Any:
            outcome = (value(f),)
            f[AT] = node
            return outcome

        return run

    def break_(self, node: nodes.Break) -> Run:

        def run(f: Frame) -> str:
            f[AT] = node
            return BREAK

        return run

    def continue_(self, node: nodes.Continue) -> Run:
        return lambda f: CONTINUE

    def pass_(self, node: nodes.Statement) -> Run:
        """Compile `pass` or a declaration, which the scope analysis has read, to a no-op."""
        return lambda f: None

    def delete_(self, node: nodes.Delete) -> Run:
        return in_order(tuple([self.delete(target) for target in node.targets]))

    def raise_(self, node: nodes.Raise) -> Run:
        exc = None if node.exc is None else self.expression(node.exc)
        cause = None if node.cause is None else self.expression(node.cause)

        def run(f: Frame) -> None:
            value = exc(f) if exc is not None else UNSET
            reason = cause(f) if cause is not None else UNSET
            f[AT] = node
            raise f[MACHINE].exception_of(value, reason)

        return run

    def assert_(self, node: nodes.Assert) -> Run:
        test = self.test(self.expression(node.test), node.test)
        message = None if node.msg is None else self.expression(node.msg)

        def run(f: Frame) -> None:
            if not test(f):
                args = () if message is None else (message(f),)
                f[AT] = node.test
                raise exceptions.make(f[MACHINE], "AssertionError", args)

        return run

    # ---- imports ---------------------------------------------------------------------------

    def import_(self, node: nodes.Import) -> Run:
        soft, parts = self.unit.soft_imports > 0, []
        for alias in node.names:
            request = alias.name if alias.asname else alias.name.partition(".")[0]
            parts.append((request, self.store_name(scopes.alias_name(alias), node)))

        def run(f: Frame) -> None:
            for request, store in parts:
                f[AT] = node
                store(f, f[FUNCTION].runtime.import_module(soft, request))

        return run

    def import_from(self, node: nodes.ImportFrom) -> Run:
        """Compile `from a import b as c`. Star imports are resolved by the module's own table."""
        request, soft = "." * node.level + (node.module or ""), self.unit.soft_imports > 0
        parts = [
            (alias.name, self.store_name(scopes.alias_name(alias), node))
            for alias in (node.names if request != "__future__" else ())
            if alias.name != "*"
        ]

        def run(f: Frame) -> None:
            for name, store in parts:
                f[AT] = node
                store(f, f[FUNCTION].runtime.import_member(soft, request, name))

        return run

    # ---- branches and loops ----------------------------------------------------------------

    def if_(self, node: nodes.If) -> Run:
        """Compile `if` with any number of `elif` branches."""
        branches, orelse = [], node
        while True:
            test = self.test(self.expression(orelse.test), orelse.test)
            branches.append((test, self.block(orelse.body)))
            if len(orelse.orelse) == 1 and isinstance(orelse.orelse[0], nodes.If):
                orelse = orelse.orelse[0]
            else:
                break
        last = self.block(orelse.orelse) if orelse.orelse else None
        if len(branches) == 1:
            (only, body) = branches[0]

            def run_single(f: Frame) -> Any:
                if only(f):
                    return body(f)
                return None if last is None else last(f)

            return run_single

        def run(f: Frame) -> Any:
            for test, body in branches:
                if test(f):
                    return body(f)
            return None if last is None else last(f)

        return run

    def loop_body(
        self, body: Sequence[nodes.Statement], block: Callable[[Any], Run]
    ) -> tuple[Run, int]:
        """Compile the body of a loop by `block`, and return its cost per iteration."""
        unit = self.unit
        outer, unit.cost = unit.cost, 1
        closure = block(body)
        cost, unit.cost = unit.cost, outer
        return closure, cost

    def for_(self, node: nodes.For) -> Run:
        if node.is_async:
            raise self.no_async(node.span)
        values, store = self.expression(node.iter), self.store(node.target)
        outer, self.unit.assigned = self.unit.assigned, self.unit.assigned.copy()
        self.unit.assign(node.target)
        body, cost = self.loop_body(node.body, self.block)
        self.unit.assigned = outer
        orelse = self.block(node.orelse) if node.orelse else None
        header, bound = node.iter, self._bound_in(node.body)

        def run(f: Frame) -> Any:
            m, each = f[MACHINE], values(f)
            f[AT] = header
            if isinstance(each, DeviceRange):
                device_for(f, each, store, body)
                return None if orelse is None else orelse(f)
            iterations, returned = m.iterate(each), None
            once = isinstance(each, TracedOnce)
            if once:
                iterations = each_iteration(f, each, iterations, bound)
            for value in iterations:
                m.left -= cost
                if m.left < 0:
                    f[AT] = header
                    raise BudgetExhausted(m.limits)
                store(f, value)
                outcome = body(f)
                if outcome is not None:
                    if outcome is BREAK:
                        return None
                    if outcome is not CONTINUE and not once:
                        return outcome
                    if outcome is not CONTINUE:  # traced once: return after all iterations
                        returned = outcome
                f[AT] = header
            if returned is not None:
                return returned
            return None if orelse is None else orelse(f)

        return run

    def _bound_in(self, body: Sequence[nodes.Statement]) -> tuple[tuple[str, int, bool], ...]:
        """Return the name, slot and cell flag of the variables that the body of a loop assigns."""
        names = scopes.loop_carried(body)
        places = [(name, self.unit.find(self.unit.mangled(name))) for name in names]
        return tuple((name, at.slot, at.boxed) for name, at in places if at and at.slot >= 0)

    def while_(self, node: nodes.While) -> Run:
        test = self.expression(node.test)
        body, cost = self.loop_body(node.body, self.block)
        orelse = self.block(node.orelse) if node.orelse else None
        header = node.test

        def run(f: Frame) -> Any:
            m, iterations = f[MACHINE], 0
            while True:
                value = test(f)
                if value is not True:
                    f[AT] = header
                    if isinstance(value, DeviceCondition):
                        device_while(f, value, test, body)
                        break
                    if value is False or not m.truth(value):
                        break
                iterations += 1
                m.left -= cost if iterations < FREE_ITERATIONS else cost * LATER_ITERATIONS
                if m.left < 0:
                    f[AT] = header
                    raise BudgetExhausted(m.limits)
                outcome = body(f)
                if outcome is not None:
                    if outcome is BREAK:
                        return None
                    if outcome is not CONTINUE:
                        return outcome
            return None if orelse is None else orelse(f)

        return run

    # ---- with and try ----------------------------------------------------------------------

    def with_(self, node: nodes.With, block: Any = None, enter: Any = None) -> Any:
        if node.is_async:
            raise self.no_async(node.span)
        run = (block or self.block)(node.body)
        for item in reversed(node.items):
            run = (enter or self._with_item)(item, run)
        return run

    def _with_item(self, item: nodes.WithItem, body: Run) -> Run:
        value = self.expression(item.context_expr)
        store = None if item.optional_vars is None else self.store(item.optional_vars)

        def run(f: Frame) -> Any:
            m, manager = f[MACHINE], value(f)
            f[AT] = item.context_expr
            entered, leave = m.enter_context(manager)
            try:
                if store is not None:
                    store(f, entered)
                outcome = body(f)
            except Exception as error:
                if not m.suppresses(leave, error, f, item.context_expr):
                    raise
                return None
            f[AT] = item.context_expr
            leave(None)
            return outcome

        return run

    def try_(self, node: nodes.Try) -> Run:
        """Compile `try` with `except`, `else` and `finally`."""
        if node.is_star:
            raise Refused("not-in-nki", "`except*` cannot be used in kernel code", node.span)
        body = self.try_body(node)
        orelse = self.block(node.orelse) if node.orelse else None
        handlers = [self.handler(handler, self.block) for handler in node.handlers]
        run = try_except(body, handlers, orelse) if handlers else with_else(body, orelse)
        return finally_(run, self.block(node.finalbody)) if node.finalbody else run

    def try_body(self, node: nodes.Try) -> Run:
        """Compile the body of a `try`, where failing imports may be caught."""
        unit = self.unit
        soft = any(_catches_imports(handler) for handler in node.handlers)
        unit.soft_imports += soft
        body = self.block(node.body)
        unit.soft_imports -= soft
        return body

    def handler(
        self, node: nodes.ExceptHandler, block: Callable[[Any], Any]
    ) -> tuple[Any, Any, Any, Any, nodes.ExceptHandler]:
        """Return the class, store, cleanup, block (compiled by `block`) and node of an `except`."""
        kind = None if node.type is None else self.expression(node.type)
        store = forget = None
        if node.name is not None:
            store = self.store_name(self.unit.mangled(node.name), node)
            forget = self.forget(self.unit.mangled(node.name), node)
        return kind, store, forget, block(node.body), node

    def forget(self, name: str, node: nodes.Node) -> Run:
        """Compile `del name` for a name that may be unbound already."""
        delete = self.delete_name(name, node)

        def run(f: Frame) -> None:
            try:
                delete(f)
            except NameError:
                return

        return run

    def no_async(self, span: Span) -> Refused:
        return Refused("not-in-nki", "`async` cannot be used in kernel code", span)


# Statements that do not leave their block.
_STRAIGHT = frozenset({nodes.Expr, nodes.Assign, nodes.AugAssign, nodes.AnnAssign})


def _does_nothing(node: nodes.Statement) -> bool:
    """Whether the statement is a docstring, `pass` or a declaration."""
    if isinstance(node, nodes.Expr):
        return isinstance(node.value, nodes.Constant)
    return isinstance(node, nodes.Pass | nodes.Global | nodes.Nonlocal)


def _marker(annotation: nodes.Expression) -> str:
    """Return the head of a field's annotation, such as `ClassVar` of `ClassVar[int]`."""
    if isinstance(annotation, nodes.Subscript):
        return _marker(annotation.value)
    if isinstance(annotation, nodes.Attribute):
        return annotation.attr
    if isinstance(annotation, nodes.Constant) and isinstance(annotation.value, str):
        return annotation.value.partition("[")[0].rpartition(".")[2]
    return annotation.id if isinstance(annotation, nodes.Name) else ""


def _catches_imports(handler: nodes.ExceptHandler) -> bool:
    caught = [handler.type]
    if isinstance(handler.type, nodes.Tuple):
        caught = list(handler.type.elts)
    names = {node.id for node in caught if isinstance(node, nodes.Name)}
    return handler.type is None or bool(names & _IMPORT_ERRORS)


_COMPILERS: dict[type[nodes.Node], Callable[[Any, Any], Run]] = {
    nodes.Expr: Statements.simple,
    nodes.Assign: Statements.assign,
    nodes.AugAssign: Statements.augmented,
    nodes.AnnAssign: Statements.annotated,
    nodes.TypeAlias: Statements.type_alias,
    nodes.Return: Statements.return_,
    nodes.Delete: Statements.delete_,
    nodes.Raise: Statements.raise_,
    nodes.Assert: Statements.assert_,
    nodes.Import: Statements.import_,
    nodes.ImportFrom: Statements.import_from,
    nodes.Global: Statements.pass_,
    nodes.Nonlocal: Statements.pass_,
    nodes.Pass: Statements.pass_,
    nodes.Break: Statements.break_,
    nodes.Continue: Statements.continue_,
    nodes.If: Statements.if_,
    nodes.While: Statements.while_,
    nodes.For: Statements.for_,
    nodes.With: Statements.with_,
    nodes.Try: Statements.try_,
}


# ---- Compile `match`: patterns become closures that test a value and bind names -----------------

Matches = Callable[[Frame, Any], bool]
# Builtin classes whose only positional pattern matches the value itself.
_MATCH_SELF = frozenset(
    {
        *("bool", "bytearray", "bytes", "dict", "float", "frozenset", "int", "list", "set"),
        *("str", "tuple"),
    }
)


class Patterns(Statements):
    """The compiler for the `match` statements of one unit."""

    def match(self, node: nodes.Match) -> Run:
        subject, cases = self.expression(node.subject), self.cases(node, self.block)

        def run(f: Frame) -> Any:
            value = subject(f)
            for pattern, guard, body in cases:
                f[AT] = node.subject
                if pattern(f, value) and (guard is None or guard(f)):
                    return body(f)
            return None

        return run

    def cases(self, node: nodes.Match, block: Callable[[Any], Run]) -> list[Any]:
        """Return the pattern, the guard and the block of every case, compiled by `block`."""
        cases = []
        for case in node.cases:
            guard = None if case.guard is None else self.test(self.expression(case.guard), case)
            cases.append((self.pattern(case.pattern), guard, block(case.body)))
        return cases

    def pattern(self, node: nodes.Pattern) -> Matches:
        self.unit.cost += 2
        closure: Matches = _PATTERNS[type(node)](self, node)
        return closure

    def _capture(self, name: str | None, node: nodes.Node) -> Any:
        if name is None:
            return lambda f, value: None
        return self.store_name(self.unit.mangled(name), node)

    def _value(self, node: nodes.MatchValue) -> Matches:
        value = self.expression(node.value)
        return lambda f, subject: f[MACHINE].equal(subject, value(f))

    def _singleton(self, node: nodes.MatchSingleton) -> Matches:
        singleton = node.value
        return lambda f, subject: subject is singleton

    def _as(self, node: nodes.MatchAs) -> Matches:
        inner = None if node.pattern is None else self.pattern(node.pattern)
        store = self._capture(node.name, node)

        def matches(f: Frame, subject: Any) -> bool:
            if inner is not None and not inner(f, subject):
                return False
            store(f, subject)
            return True

        return matches

    def _or(self, node: nodes.MatchOr) -> Matches:
        parts = [self.pattern(alternative) for alternative in node.patterns]
        return lambda f, subject: any(part(f, subject) for part in parts)

    def _star(self, node: nodes.MatchStar) -> Matches:
        store = self._capture(node.name, node)

        def matches(f: Frame, subject: Any) -> bool:
            store(f, subject)
            return True

        return matches

    def _sequence(self, node: nodes.MatchSequence) -> Matches:
        stars = [
            n for n, pattern in enumerate(node.patterns) if isinstance(pattern, nodes.MatchStar)
        ]
        if len(stars) > 1:
            raise Refused("bad-syntax", "multiple starred expressions in pattern", node.span)
        parts = [self.pattern(pattern) for pattern in node.patterns]
        before = stars[0] if stars else len(parts)

        def matches(f: Frame, subject: Any) -> bool:
            m = f[MACHINE]
            if not isinstance(subject, list | tuple | range):
                return False
            count = m.length(subject)
            if count < len(parts) - len(stars) or (not stars and count > len(parts)):
                return False
            values = m.to_list(subject)
            if stars:
                after = count - (len(parts) - before - 1)
                values = [*values[:before], values[before:after], *values[after:]]
            return all(part(f, value) for part, value in zip(parts, values, strict=True))

        return matches

    def _mapping(self, node: nodes.MatchMapping) -> Matches:
        keys = self.expressions(node.keys)
        parts = [self.pattern(pattern) for pattern in node.patterns]
        rest = self._capture(node.rest, node) if node.rest is not None else None

        def matches(f: Frame, subject: Any) -> bool:
            if not isinstance(subject, dict) or len(subject) < len(keys):
                return False
            key_values = [key(f) for key in keys]
            for key in key_values:
                f[MACHINE].check_key(key, len(subject))
            if not all(key in subject for key in key_values):
                return False
            if not all(part(f, subject[key]) for part, key in zip(parts, key_values, strict=True)):
                return False
            if rest is not None:
                f[MACHINE].elements(2 * len(subject), "the dict")
                rest(f, {key: value for key, value in subject.items() if key not in key_values})
            return True

        return matches

    def _class(self, node: nodes.MatchClass) -> Matches:
        for name in node.kwd_attrs:
            if bindings.is_hidden(name):
                text = f"`{name}` cannot be used in a pattern"
                raise Refused("hidden-attribute", text, node.span, bindings.instead_of(name))
        cls = self.expression(node.cls)
        positional = [self.pattern(part) for part in node.patterns]
        named = [
            (self.unit.mangled(name), self.pattern(part))
            for name, part in zip(node.kwd_attrs, node.kwd_patterns, strict=True)
        ]

        def matches(f: Frame, subject: Any) -> bool:
            kind = cls(f)
            f[AT] = node
            m = f[MACHINE]
            if not classes.is_class(kind):
                raise TypeError("called match pattern must be a class")
            if not m.isinstance(subject, kind):
                return False
            attribute_names = _positional(m, kind, len(positional))
            if attribute_names is None:
                return positional[0](f, subject) and _named(f, subject, named)
            pairs = [*zip(attribute_names, positional, strict=False), *named]
            return _named(f, subject, pairs)

        return matches


def _positional(m: Any, kind: Any, count: int) -> Sequence[str] | None:
    """Return the attributes that positional patterns match; None for the value itself."""
    if not count:
        return ()
    match_args = kind.find("__match_args__") if isinstance(kind, Class) else UNSET
    if match_args is UNSET and _matches_itself(kind):
        if count > 1:
            raise TypeError(f"{kind.name}() accepts 1 positional sub-pattern ({count} given)")
        return None
    if match_args is UNSET:
        match_args = ()
    if not isinstance(match_args, tuple):
        raise TypeError(f"{kind.name}.__match_args__ must be a tuple")
    if count > len(match_args):
        raise TypeError(
            f"{kind.name}() accepts {len(match_args)} positional sub-patterns ({count} given)"
        )
    if not all(isinstance(name, str) for name in match_args):
        raise TypeError("__match_args__ elements must be strings")
    return match_args


def _matches_itself(kind: Any) -> bool:
    """Whether the class is a builtin whose positional pattern matches the value itself."""
    mro = kind.mro if isinstance(kind, Class) else ()
    return any(cls.name in _MATCH_SELF and cls.machine is None for cls in mro)


def _named(f: Frame, subject: Any, pairs: Sequence[tuple[str, Matches]]) -> bool:
    m = f[MACHINE]
    for name, part in pairs:
        if bindings.is_hidden(name):
            text = f"`{name}` cannot be used in a pattern"
            raise KernelError("hidden-attribute", text, help=bindings.instead_of(name))
        try:
            value = attributes.get(m, subject, name)
        except AttributeError:
            return False
        except Exception as error:
            if subject.__class__ in INSTANCES and exceptions.is_a(m, error, "AttributeError"):
                return False
            raise
        if not part(f, value):
            return False
    return True


_PATTERNS: dict[type[nodes.Node], Callable[[Any, Any], Matches]] = {
    nodes.MatchValue: Patterns._value,
    nodes.MatchSingleton: Patterns._singleton,
    nodes.MatchSequence: Patterns._sequence,
    nodes.MatchMapping: Patterns._mapping,
    nodes.MatchClass: Patterns._class,
    nodes.MatchStar: Patterns._star,
    nodes.MatchAs: Patterns._as,
    nodes.MatchOr: Patterns._or,
}
