"""Compile comprehensions, which run in the enclosing frame, and the clauses of generators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from nkic.evaluate.budget import BudgetExhausted
from nkic.evaluate.code import AT, MACHINE, Evaluate, Frame
from nkic.evaluate.compile.targets import Targets
from nkic.evaluate.compile.units import Names, captured_names
from nkic.evaluate.errors import Refused
from nkic.evaluate.objects import UNSET
from nkic.syntax import nodes, scopes

Emit = Callable[[Frame, Any], None]  # adds one element to the result


class Comprehensions(Targets):
    """The compiler for the comprehensions of one unit."""

    @contextmanager
    def _scope(self, node: scopes.Comprehension) -> Iterator[tuple[int, ...]]:
        """Open the comprehension's scope; yield the slots that need a new cell at every run."""
        unit = self.unit
        bound = scopes.bound(node)
        names = Names(unit, unit.scope, node)
        names.declare(sorted(bound), captured_names(node, bound))
        unit.scope, before = names, unit.scope
        yield tuple(at.slot for at in names.variables.values() if at.boxed)
        unit.scope = before

    def _clauses(
        self, node: scopes.Comprehension, first: Evaluate, parts: tuple[nodes.Expression, ...]
    ) -> tuple[list[Any], tuple[Evaluate, ...], int]:
        """Return a comprehension's loops, the closures of `parts`, and the cost per iteration."""
        unit = self.unit
        outer, unit.cost = unit.cost, 2
        loops = []
        for number, clause in enumerate(node.generators):
            if clause.is_async:
                raise Refused("not-in-nki", "`async` cannot be used in kernel code", clause.span)
            values = first if number == 0 else self.expression(clause.iter)
            store = self.store(clause.target)
            unit.assign(clause.target)
            tests = tuple(self.test(self.expression(test), test) for test in clause.ifs)
            loops.append((values, store, tests, clause.iter))
        parts_of_element = self.expressions(parts)
        cost, unit.cost = unit.cost, outer + 1
        return loops, parts_of_element, cost

    def list_comprehension(self, node: nodes.ListComp) -> Evaluate:
        """Compile `[elt for …]`."""
        first = self.expression(node.generators[0].iter)
        with self._scope(node) as cells:
            loops, (elt,), cost = self._clauses(node, first, (node.elt,))

        def emit(f: Frame, elements: list[Any]) -> None:
            elements.append(elt(f))
            if len(elements) > f[MACHINE].limits.length:
                f[AT] = node
                f[MACHINE].allow_length(len(elements), "the list")

        return _filling(list, _nested(loops, emit, cost + 4), cells)

    def set_comprehension(self, node: nodes.SetComp) -> Evaluate:
        """Compile `{elt for …}`."""
        values = self.list_comprehension(nodes.ListComp(node.span, node.elt, node.generators))

        def make(f: Frame) -> Any:
            elements = values(f)
            f[AT] = node
            return f[MACHINE].make_set(elements)

        return make

    def dict_comprehension(self, node: nodes.DictComp) -> Evaluate:
        """Compile `{key: value for …}`."""
        first = self.expression(node.generators[0].iter)
        with self._scope(node) as cells:
            loops, (key, value), cost = self._clauses(node, first, (node.key, node.value))

        def emit(f: Frame, entries: dict[Any, Any]) -> None:
            name, content = key(f), value(f)
            f[AT] = node
            f[MACHINE].put_item(entries, name, content)

        return _filling(dict, _nested(loops, emit, cost + 4), cells)


def _filling(kind: type, run: Emit, cells: tuple[int, ...]) -> Evaluate:
    """Return a closure that creates a container of the type and lets `run` fill it."""

    def make(f: Frame) -> Any:
        for slot in cells:
            f[slot] = [UNSET]
        elements = kind()
        run(f, elements)
        return elements

    return make


def _nested(loops: list[Any], emit: Emit, cost: int) -> Emit:
    """Nest the loops; the innermost one emits."""
    run = emit
    for values, store, tests, node in reversed(loops):
        run = _loop(values, store, tests, run, cost, node)
    return run


def _loop(
    values: Evaluate, store: Emit, tests: Any, inner: Emit, cost: int, node: nodes.Node
) -> Emit:
    def run(f: Frame, result: Any) -> None:
        m = f[MACHINE]
        each = values(f)
        f[AT] = node
        for value in m.iterate_each(each):
            m.left -= cost
            if m.left < 0:
                raise BudgetExhausted(m.limits)
            store(f, value)
            for test in tests:
                if not test(f):
                    break
            else:
                inner(f, result)
            f[AT] = node

    return run
