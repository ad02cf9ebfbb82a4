"""Compile statements that contain a `yield` to closures that are Python generators.

Such a closure yields the values of the kernel's generator, and returns the result that a
statement's closure returns. Statements without a `yield` are compiled as everywhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from nkic.evaluate.budget import FREE_ITERATIONS, LATER_ITERATIONS, BudgetExhausted
from nkic.evaluate.code import AT, BREAK, CONTINUE, MACHINE, Frame
from nkic.evaluate.compile.patterns import Patterns
from nkic.evaluate.compile.targets import Run
from nkic.evaluate.compile.units import Variable
from nkic.evaluate.errors import Refused
from nkic.evaluate.exceptions import is_fatal
from nkic.syntax import nodes, scopes

GeneratorRun = Callable[[Frame], Any]  # a generator function
_YIELDS = nodes.Yield | nodes.YieldFrom
# All operands of these are evaluated, in the order of their fields.
_STRICT = nodes.BinOp | nodes.Call | nodes.Tuple | nodes.List | nodes.Subscript | nodes.UnaryOp
_ALSO_STRICT = nodes.Attribute | nodes.Compare | nodes.Keyword | nodes.Starred


def yields(node: nodes.Node) -> bool:
    """Whether the node contains a `yield` that belongs to its own unit."""
    return any(isinstance(inner, _YIELDS) for inner in scopes.nodes_in_scope([node]))


class Generators(Patterns):
    """The compiler for the bodies of generator functions."""

    def generator_block(self, body: Sequence[nodes.Statement]) -> GeneratorRun:
        """Return the closure of a sequence of statements, as a generator function."""
        outer, self.unit.assigned = self.unit.assigned, self.unit.assigned.copy()
        parts = [
            (True, self._generator_statement(node))
            if yields(node)
            else (False, self.statement(node))
            for node in body
        ]
        self.unit.assigned = outer

        def run(f: Frame) -> Any:
            for is_generator, part in parts:
                outcome = (yield from part(f)) if is_generator else part(f)
                if outcome is not None:
                    return outcome
            return None

        return run

    def _generator_statement(self, node: nodes.Statement) -> GeneratorRun:
        self.unit.cost += 1
        compile_ = _COMPILERS.get(type(node))
        if compile_ is not None:
            closure: GeneratorRun = compile_(self, node)
            return closure
        return self._with_hoisted_yields(node)

    # ---- yields in expressions -------------------------------------------------------------

    def _with_hoisted_yields(self, node: nodes.Statement) -> GeneratorRun:
        """Compile a simple statement: hoist its yields into temporary variables."""
        before: list[tuple[GeneratorRun | Run, bool]] = []
        fields = ("value", "exc", "test", "targets")
        field = next(name for name in fields if getattr(node, name, None))
        value = getattr(node, field)
        if not isinstance(value, tuple):
            node = replace(node, **{field: self._hoist(value, before)})
        after = self.statement(node)

        def run(f: Frame) -> Any:
            for step, is_generator in before:
                if is_generator:
                    yield from step(f)
                else:
                    step(f)
            return after(f)

        return run

    def _hoist(self, node: Any, before: list[tuple[GeneratorRun | Run, bool]]) -> Any:
        """Replace the yields in an expression by variables; append the code that sets them."""
        if isinstance(node, _YIELDS):
            return self._yield_variable(node, before)
        if not yields(node):
            return node
        if isinstance(node, nodes.BoolOp) and not any(map(yields, node.values[1:])):
            return replace(node, values=(self._hoist(node.values[0], before), *node.values[1:]))
        if isinstance(node, nodes.IfExp) and not yields(node.body) and not yields(node.orelse):
            return replace(node, test=self._hoist(node.test, before))
        if not isinstance(node, _STRICT | _ALSO_STRICT):
            return node
        changes: dict[str, Any] = {}
        operands = [f for f in _operand_fields(node) if getattr(node, f) is not None]
        last = max(n for n, f in enumerate(operands) if _any_yields(getattr(node, f)))
        for number, name in enumerate(operands):
            value = getattr(node, name)
            if number > last:
                break
            changes[name] = self._operand(value, before)
        return replace(node, **changes)

    def _operand(self, value: Any, before: list[tuple[GeneratorRun | Run, bool]]) -> Any:
        if isinstance(value, tuple):
            last = max((n for n, operand in enumerate(value) if yields(operand)), default=-1)
            return tuple(
                self._operand(operand, before) if number <= last else operand
                for number, operand in enumerate(value)
            )
        if yields(value) or isinstance(value, nodes.Constant | nodes.Keyword | nodes.Starred):
            return self._hoist(value, before)
        slot, name = self._temporary(value)
        read = self.expression(value)

        def keep(f: Frame) -> None:
            f[slot] = read(f)

        before.append((keep, False))
        return name

    def _temporary(self, node: nodes.Node) -> tuple[int, nodes.Name]:
        slot = self.unit.slot()
        name = f".{slot}"
        self.unit.scope.variables[name] = Variable(slot, False)
        return slot, nodes.Name(node.span, name)

    def _yield_variable(
        self, node: Any, before: list[tuple[GeneratorRun | Run, bool]]
    ) -> nodes.Name:
        slot, name = self._temporary(node)
        inner = None if node.value is None else self._hoist(node.value, before)
        value = None if inner is None else self.expression(inner)
        delegates = isinstance(node, nodes.YieldFrom)

        def give(f: Frame) -> Any:
            content = None if value is None else value(f)
            f[AT] = node
            if delegates:
                f[slot] = yield from f[MACHINE].delegate(content)
            else:
                f[slot] = yield content

        before.append((give, True))
        return name

    # ---- blocks ----------------------------------------------------------------------------

    def _simple(self, node: nodes.Expr) -> GeneratorRun:
        """Compile a `yield value` statement."""
        value = node.value
        if isinstance(value, nodes.Yield) and (value.value is None or not yields(value.value)):
            content = None if value.value is None else self.expression(value.value)

            def give(f: Frame) -> Any:
                value_of_yield = None if content is None else content(f)
                f[AT] = value
                yield value_of_yield

            return give
        return self._with_hoisted_yields(node)

    def _if(self, node: nodes.If) -> GeneratorRun:
        test = self.test(self.expression(node.test), node.test)
        body, orelse = self.generator_block(node.body), self.generator_block(node.orelse)

        def run(f: Frame) -> Any:
            return (yield from (body if test(f) else orelse)(f))

        return run

    def _for(self, node: nodes.For) -> GeneratorRun:
        if node.is_async:
            raise self.no_async(node.span)
        values, store, header = self.expression(node.iter), self.store(node.target), node.iter
        body, cost = self.loop_body(node.body, self.generator_block)
        orelse = self.generator_block(node.orelse)

        def run(f: Frame) -> Any:
            m, each = f[MACHINE], values(f)
            f[AT] = header
            for value in m.iterate_each(each):
                m.left -= cost
                if m.left < 0:
                    raise BudgetExhausted(m.limits)
                store(f, value)
                outcome = yield from body(f)
                if outcome is BREAK:
                    return None
                if outcome is not None and outcome is not CONTINUE:
                    return outcome
                f[AT] = header
            return (yield from orelse(f))

        return run

    def _while(self, node: nodes.While) -> GeneratorRun:
        test = self.test(self.expression(node.test), node.test)
        body, cost = self.loop_body(node.body, self.generator_block)
        orelse = self.generator_block(node.orelse)

        def run(f: Frame) -> Any:
            m, iterations = f[MACHINE], 0
            while test(f):
                iterations += 1
                m.left -= cost if iterations < FREE_ITERATIONS else cost * LATER_ITERATIONS
                if m.left < 0:
                    raise BudgetExhausted(m.limits)
                outcome = yield from body(f)
                if outcome is BREAK:
                    return None
                if outcome is not None and outcome is not CONTINUE:
                    return outcome
            return (yield from orelse(f))

        return run

    def _with(self, node: nodes.With) -> GeneratorRun:
        if node.is_async:
            raise self.no_async(node.span)
        run = self.generator_block(node.body)
        for item in reversed(node.items):
            run = self._generator_with_item(item, run)
        return run

    def _generator_with_item(self, item: nodes.WithItem, body: GeneratorRun) -> GeneratorRun:
        value = self.expression(item.context_expr)
        store = None if item.optional_vars is None else self.store(item.optional_vars)

        def run(f: Frame) -> Any:
            m, manager = f[MACHINE], value(f)
            f[AT] = item.context_expr
            entered, leave = m.enter_context(manager)
            try:
                if store is not None:
                    store(f, entered)
                outcome = yield from body(f)
            except Exception as error:
                if not m.suppresses(leave, error, f, item.context_expr):
                    raise
                return None
            except GeneratorExit:
                if m.closing:
                    leave(None)
                raise
            leave(None)
            return outcome

        return run

    def _try(self, node: nodes.Try) -> GeneratorRun:
        if node.is_star:
            raise Refused("not-in-nki", "`except*` cannot be used in kernel code", node.span)
        body, orelse = self.generator_block(node.body), self.generator_block(node.orelse)
        handlers = [self._generator_handler(handler) for handler in node.handlers]
        run = _generator_try_except(body, handlers, orelse)
        return (
            _generator_finally(run, self.generator_block(node.finalbody)) if node.finalbody else run
        )

    def _generator_handler(
        self, node: nodes.ExceptHandler
    ) -> tuple[Any, Any, Any, GeneratorRun, Any]:
        bare = self.handler(replace(node, body=()))
        return (*bare[:3], self.generator_block(node.body), node)

    def _match(self, node: nodes.Match) -> GeneratorRun:
        subject, cases = self.expression(node.subject), self.cases(node, self.generator_block)

        def run(f: Frame) -> Any:
            value = subject(f)
            for pattern, guard, body in cases:
                f[AT] = node.subject
                if pattern(f, value) and (guard is None or guard(f)):
                    return (yield from body(f))
            return None

        return run


def _generator_try_except(
    body: GeneratorRun, handlers: list[Any], orelse: GeneratorRun
) -> GeneratorRun:
    def run(f: Frame) -> Any:
        m = f[MACHINE]
        try:
            outcome = yield from body(f)
        except Exception as error:
            handler, value = m.handler_for(f, error, handlers, None)
            if handler is None:
                raise
        else:
            return outcome if outcome is not None else (yield from orelse(f))
        _, store, forget, block, _ = handler
        if store is not None:
            store(f, value)
        m.handling.append(value)
        try:
            return (yield from block(f))
        finally:
            m.handling.remove(value)
            if forget is not None:
                forget(f)

    return run


def _generator_finally(body: GeneratorRun, last: GeneratorRun) -> GeneratorRun:
    def run(f: Frame) -> Any:
        m = f[MACHINE]
        try:
            outcome = yield from body(f)
        except GeneratorExit:
            if m.closing:
                yield from last(f)
            raise
        except Exception as error:
            if is_fatal(error):
                raise
            m.note(error)
            with m.handling_of(error):
                override = yield from last(f)
            if override is not None:
                return override
            raise
        override = yield from last(f)
        return outcome if override is None else override

    return run


def _operand_fields(node: nodes.Node) -> list[str]:
    names = {
        nodes.BinOp: ["left", "right"],
        nodes.Call: ["func", "args", "keywords"],
        nodes.Tuple: ["elts"],
        nodes.List: ["elts"],
        nodes.Subscript: ["value", "slice"],
        nodes.UnaryOp: ["operand"],
        nodes.Attribute: ["value"],
        nodes.Compare: ["left", "comparators"],
        nodes.Keyword: ["value"],
        nodes.Starred: ["value"],
    }
    return names[type(node)]


def _any_yields(value: Any) -> bool:
    return any(map(yields, value)) if isinstance(value, tuple) else yields(value)


_COMPILERS: dict[type[nodes.Node], Callable[[Any, Any], GeneratorRun]] = {
    nodes.Expr: Generators._simple,
    nodes.If: Generators._if,
    nodes.For: Generators._for,
    nodes.While: Generators._while,
    nodes.With: Generators._with,
    nodes.Try: Generators._try,
    nodes.Match: Generators._match,
}
