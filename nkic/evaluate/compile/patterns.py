"""Compile `match`: patterns become closures that test a value and bind names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nkic.evaluate import attributes, classes, exceptions
from nkic.evaluate.code import AT, MACHINE, Frame
from nkic.evaluate.compile.statements import Statements
from nkic.evaluate.compile.targets import Run
from nkic.evaluate.errors import KernelError, Refused
from nkic.evaluate.objects import INSTANCES, UNSET, Class
from nkic.syntax import names, nodes

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
        """Compile `match subject`."""
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
        """Return the closure of a pattern."""
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
            if names.is_hidden(name):
                text = f"`{name}` cannot be used in a pattern"
                raise Refused("hidden-attribute", text, node.span, names.instead_of(name))
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
        if names.is_hidden(name):
            text = f"`{name}` cannot be used in a pattern"
            raise KernelError("hidden-attribute", text, help=names.instead_of(name))
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
