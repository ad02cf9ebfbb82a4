"""Compile `match`: patterns become closures that test a value and bind names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nkic.evaluate import attributes
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
        subject, cases = self.expression(node.subject), []
        for case in node.cases:
            guard = None if case.guard is None else self.test(self.expression(case.guard), case)
            cases.append((self.pattern(case.pattern), guard, self.block(case.body)))

        def run(f: Frame) -> Any:
            value = subject(f)
            for pattern, guard, body in cases:
                f[AT] = node.subject
                if pattern(f, value) and (guard is None or guard(f)):
                    return body(f)
            return None

        return run

    def pattern(self, node: nodes.Pattern) -> Matches:
        """Return the closure of a pattern."""
        self.unit.cost += 2
        found: Matches = _PATTERNS[type(node)](self, node)
        return found

    def _capture(self, name: str | None, node: nodes.Node) -> Any:
        if name is None:
            return lambda f, value: None
        return self.store_name(self.unit.mangled(name), node)

    def _value(self, node: nodes.MatchValue) -> Matches:
        value = self.expression(node.value)
        return lambda f, found: f[MACHINE].equal(found, value(f))

    def _singleton(self, node: nodes.MatchSingleton) -> Matches:
        wanted = node.value
        return lambda f, found: found is wanted

    def _as(self, node: nodes.MatchAs) -> Matches:
        inner = None if node.pattern is None else self.pattern(node.pattern)
        store = self._capture(node.name, node)

        def matches(f: Frame, found: Any) -> bool:
            if inner is not None and not inner(f, found):
                return False
            store(f, found)
            return True

        return matches

    def _or(self, node: nodes.MatchOr) -> Matches:
        parts = [self.pattern(one) for one in node.patterns]
        return lambda f, found: any(part(f, found) for part in parts)

    def _star(self, node: nodes.MatchStar) -> Matches:
        store = self._capture(node.name, node)

        def matches(f: Frame, found: Any) -> bool:
            store(f, found)
            return True

        return matches

    def _sequence(self, node: nodes.MatchSequence) -> Matches:
        stars = [n for n, one in enumerate(node.patterns) if isinstance(one, nodes.MatchStar)]
        if len(stars) > 1:
            raise Refused("bad-syntax", "multiple starred expressions in pattern", node.span)
        parts = [self.pattern(one) for one in node.patterns]
        before = stars[0] if stars else len(parts)

        def matches(f: Frame, found: Any) -> bool:
            m = f[MACHINE]
            if not m.is_sequence(found):
                return False
            count = m.length(found)
            if count < len(parts) - len(stars) or (not stars and count > len(parts)):
                return False
            values = m.to_list(found)
            if stars:
                after = count - (len(parts) - before - 1)
                values = [*values[:before], values[before:after], *values[after:]]
            return all(part(f, value) for part, value in zip(parts, values, strict=True))

        return matches

    def _mapping(self, node: nodes.MatchMapping) -> Matches:
        keys = self.expressions(node.keys)
        parts = [self.pattern(one) for one in node.patterns]
        rest = self._capture(node.rest, node) if node.rest is not None else None

        def matches(f: Frame, found: Any) -> bool:
            if not isinstance(found, dict) or len(found) < len(keys):
                return False
            wanted = [key(f) for key in keys]
            for key in wanted:
                f[MACHINE].check_key(key, len(found))
            if not all(key in found for key in wanted):
                return False
            if not all(part(f, found[key]) for part, key in zip(parts, wanted, strict=True)):
                return False
            if rest is not None:
                f[MACHINE].elements(2 * len(found), "the dict")
                rest(f, {key: value for key, value in found.items() if key not in wanted})
            return True

        return matches

    def _class(self, node: nodes.MatchClass) -> Matches:
        for name in node.kwd_attrs:
            if names.is_hidden(name):
                text = f"`{name}` cannot be used in a pattern"
                raise Refused("hidden-attribute", text, node.span, names.instead_of(name))
        cls = self.expression(node.cls)
        positional = [self.pattern(one) for one in node.patterns]
        named = [
            (self.unit.mangled(name), self.pattern(one))
            for name, one in zip(node.kwd_attrs, node.kwd_patterns, strict=True)
        ]

        def matches(f: Frame, found: Any) -> bool:
            kind = cls(f)
            f[AT] = node
            m = f[MACHINE]
            if not m.is_class(kind):
                raise TypeError("called match pattern must be a class")
            if not m.isinstance(found, kind):
                return False
            wanted = _positional(m, kind, len(positional))
            if wanted is None:
                return positional[0](f, found) and _named(f, found, named)
            pairs = [*zip(wanted, positional, strict=False), *named]
            return _named(f, found, pairs)

        return matches


def _positional(m: Any, kind: Any, count: int) -> Sequence[str] | None:
    """Return the attributes that positional patterns match; None for the value itself."""
    if not count:
        return ()
    found = kind.find("__match_args__") if isinstance(kind, Class) else UNSET
    if found is UNSET and _matches_itself(kind):
        if count > 1:
            raise TypeError(f"{kind.name}() accepts 1 positional sub-pattern ({count} given)")
        return None
    if found is UNSET:
        found = ()
    if not isinstance(found, tuple):
        raise TypeError(f"{kind.name}.__match_args__ must be a tuple")
    if count > len(found):
        raise TypeError(
            f"{kind.name}() accepts {len(found)} positional sub-patterns ({count} given)"
        )
    if not all(isinstance(name, str) for name in found):
        raise TypeError("__match_args__ elements must be strings")
    return found


def _matches_itself(kind: Any) -> bool:
    """Whether the class is a builtin whose positional pattern matches the value itself."""
    mro = kind.mro if isinstance(kind, Class) else ()
    return any(one.name in _MATCH_SELF and one.machine is None for one in mro)


def _named(f: Frame, found: Any, pairs: Sequence[tuple[str, Matches]]) -> bool:
    m = f[MACHINE]
    for name, part in pairs:
        if names.is_hidden(name):
            text = f"`{name}` cannot be used in a pattern"
            raise KernelError("hidden-attribute", text, help=names.instead_of(name))
        try:
            value = attributes.get(m, found, name)
        except AttributeError:
            return False
        except Exception as error:
            if found.__class__ in INSTANCES and m.is_attribute_error(error):
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
