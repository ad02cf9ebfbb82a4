"""Compile units: functions, lambdas, generator expressions, classes, module-level statements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from nkic.base.source import SourceFile
from nkic.interpret.budget import CALL_COST, FREE_ITERATIONS, LATER_ITERATIONS, BudgetExhausted
from nkic.interpret.compile import expressions, statements
from nkic.interpret.compile.expressions import NAMESPACE
from nkic.interpret.compile.statements import Patterns
from nkic.interpret.compile.targets import Run
from nkic.interpret.compile.units import Unit, Variable, captured_names, check_name
from nkic.interpret.exceptions import is_fatal
from nkic.interpret.objects import (
    AT,
    BREAK,
    CONTINUE,
    FIRST,
    FUNCTION,
    MACHINE,
    UNSET,
    Code,
    Evaluate,
    Frame,
    Function,
    Refused,
)
from nkic.source import nodes, scopes

# ---- Compile statements that contain a `yield` to closures that are Python generators -----------
# Such a closure yields the values of the kernel's generator, and returns the result that a
# statement's closure returns. Statements without a `yield` are compiled as everywhere else.

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
        run: GeneratorRun = self.with_(node, self.generator_block, self._generator_with_item)
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
        handlers = [self.handler(handler, self.generator_block) for handler in node.handlers]
        run = _generator_try_except(body, handlers, orelse)
        return (
            _generator_finally(run, self.generator_block(node.finalbody)) if node.finalbody else run
        )

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


_FUNCTION_WEIGHT = 80  # steps for the bytes of a function
Decorators = list[tuple[Evaluate, nodes.Node]]


class Functions(Generators):
    """The complete compiler: the most derived of its classes."""

    def function(self, node: nodes.FunctionDef) -> Run:
        if node.is_async:
            raise self.no_async(node.name_span)
        check_name(node.name, node.name_span)
        decorators = self._decorators(node)
        make = self._maker(node, node.name)
        store = self.store_name(self.unit.mangled(node.name), node)

        def run(f: Frame) -> None:
            values = [decorator(f) for decorator, _ in decorators]
            store(f, _decorated(f, make(f), values, decorators))

        return run

    def _decorators(self, node: Any) -> Decorators:
        return [(self.expression(decorator), decorator) for decorator in node.decorators]

    def _maker(self, node: scopes.Function, name: str) -> Evaluate:
        """Return the closure that creates a function object."""
        self.unit.cost += _FUNCTION_WEIGHT
        args = node.args
        defaults = self.expressions(args.defaults)
        named = [
            (arg.name, self.expression(value))
            for arg, value in zip(args.kwonlyargs, args.kw_defaults, strict=True)
            if value is not None
        ]
        code = _function_code(self.unit, node, name)
        outer_slots = code.outer_slots

        def make(f: Frame) -> Function:
            runtime = f[FUNCTION].runtime
            function = Function(
                code,
                runtime,
                tuple([value(f) for value in defaults]),
                {key: value(f) for key, value in named},
                tuple([f[slot] for slot in outer_slots]),
            )
            if runtime.world.is_defining and not runtime.is_library:
                runtime.world.note(function)
            return function

        return make

    def lambda_(self, node: nodes.Lambda) -> Evaluate:
        return self._maker(node, "<lambda>")

    def generator_expression(self, node: nodes.GeneratorExp) -> Evaluate:
        first, at = self.expression(node.generators[0].iter), node.generators[0].iter
        code = _generator_code(self.unit, node)
        outer_slots = code.outer_slots

        def make(f: Frame) -> Any:
            values = first(f)
            f[AT] = at
            function = Function(
                code, f[FUNCTION].runtime, (), {}, tuple([f[slot] for slot in outer_slots])
            )
            m = f[MACHINE]
            return m.invoke(function, (iter(m.iterate_each(values)),), None)

        return make

    def class_(self, node: nodes.ClassDef) -> Run:
        decorators = self._decorators(node)
        bases = self.sequence(node.bases)
        named = [(keyword.arg, self.expression(keyword.value)) for keyword in node.keywords]
        code = _class_code(self.unit, node)
        outer_slots, store = code.outer_slots, self.store_name(self.unit.mangled(node.name), node)
        self.unit.cost += 400

        def run(f: Frame) -> None:
            m = f[MACHINE]
            values = [decorator(f) for decorator, _ in decorators]
            parents = bases(f)
            options = {key or "**": value(f) for key, value in named}
            f[AT] = node
            cls = m.make_class(
                code, f[FUNCTION].runtime, parents, options, [f[slot] for slot in outer_slots]
            )
            store(f, _decorated(f, cls, values, decorators))

        return run


def _decorated(f: Frame, definition: Any, values: list[Any], decorators: Decorators) -> Any:
    """Return a function or class after its decorators, of which the last one comes first."""
    for value, (_, node) in reversed(list(zip(values, decorators, strict=True))):
        f[AT] = node
        definition = f[MACHINE].call(value, (definition,), None)
    return definition


# ---- units --------------------------------------------------------------------------------------


def _function_code(parent: Unit, node: scopes.Function, name: str) -> Code:
    unit = Unit(parent.source, parent, node, "function", name)
    bound = scopes.bound(node)
    captured = captured_names(node, bound)
    parameters = [unit.mangled(arg.name) for arg in scopes.parameters(node.args)]
    for arg in scopes.parameters(node.args):
        check_name(arg.name, arg.span)
    ordered = dict.fromkeys([*parameters, *sorted(map(unit.mangled, bound))])
    unit.scope.declare(ordered, frozenset(map(unit.mangled, captured)))
    for arg in scopes.parameters(node.args):
        unit.assign(nodes.Name(arg.span, arg.name))
    compiler = Functions(unit)
    if isinstance(node, nodes.Lambda):
        is_generator = yields(node.body)
        statement = nodes.Return(node.body.span, node.body)
        run = (
            compiler.generator_block([statement]) if is_generator else compiler.statement(statement)
        )
    else:
        is_generator = any(map(yields, node.body))
        run = compiler.generator_block(node.body) if is_generator else compiler.block(node.body)
    code = _code(unit, node, run, parameters)
    code.is_generator = is_generator
    _signature(code, node.args, unit)
    code.doc = _docstring(node.body) if isinstance(node, nodes.FunctionDef) else None
    return code


def _signature(code: Code, args: nodes.Arguments, unit: Unit) -> None:
    plain = [unit.mangled(arg.name) for arg in (*args.posonlyargs, *args.args)]
    code.args = args
    code.positional = tuple(plain)
    code.positional_only = len(args.posonlyargs)
    code.keyword_only = tuple(unit.mangled(arg.name) for arg in args.kwonlyargs)
    code.vararg = args.vararg.name if args.vararg else ""
    code.kwarg = args.kwarg.name if args.kwarg else ""
    if not code.keyword_only and not code.vararg and not code.kwarg:
        code.simple_arity = len(plain)


def _code(unit: Unit, node: nodes.Node, run: Run, parameters: Iterable[str] = ()) -> Code:
    variables = unit.outermost_scope.variables
    first = frozenset(parameters)
    cell_parameters = tuple(at.slot for name, at in variables.items() if at.boxed and name in first)
    cell_locals = tuple(at.slot for name, at in variables.items() if at.boxed and name not in first)
    code = Code(
        name=unit.name,
        qualname=unit.qualname,
        node=node,
        source=unit.source,
        run=run,
        size=unit.size,
        cost=unit.cost + CALL_COST,
        cell_parameters=cell_parameters,
        cell_locals=cell_locals,
        free=tuple(unit.free.values()),
        outer_slots=tuple(unit.outer_slots),
        names={name: (at.slot, at.boxed) for name, at in variables.items()},
    )
    code.unset_locals = (UNSET,) * (unit.size - FIRST - len(list(parameters)))
    code.is_plain_entry = not (cell_parameters or cell_locals or code.free)
    code.names |= {name: (slot, True) for name, slot in unit.free.items()}
    return code


def _docstring(body: tuple[nodes.Statement, ...]) -> str | None:
    first = body[0] if body else None
    if isinstance(first, nodes.Expr) and isinstance(first.value, nodes.Constant):
        value = first.value.value
        return value if isinstance(value, str) else None
    return None


_ITERATOR = ".0"  # the parameter of a generator expression


def _generator_code(parent: Unit, node: nodes.GeneratorExp) -> Code:
    unit = Unit(parent.source, parent, node, "generator", "<genexpr>")
    bound = scopes.bound(node)
    unit.scope.declare([_ITERATOR], frozenset())
    unit.scope.declare(sorted(bound), captured_names(node, bound))
    compiler = Functions(unit)
    slot = unit.scope.variables[_ITERATOR].slot
    loops, (elt,), cost = compiler._clauses(node, lambda f: f[slot], (node.elt,))
    run = _generator_loops(loops, elt, cost, node.elt)
    code = _code(unit, node, run, [_ITERATOR])
    code.is_generator, code.simple_arity, code.positional = True, 1, (_ITERATOR,)
    return code


def _generator_loops(
    loops: list[Any], elt: Evaluate, cost: int, node_of_element: nodes.Node
) -> Callable[..., Any]:

    def innermost(f: Frame) -> Any:
        value = elt(f)
        f[AT] = node_of_element
        yield value

    run = innermost
    for values, store, tests, node in reversed(loops):
        run = _generator_loop(values, store, tests, run, cost, node)
    return run


def _generator_loop(
    values: Evaluate, store: Any, tests: Any, inner: Any, cost: int, node: nodes.Node
) -> Callable[..., Any]:
    def run(f: Frame) -> Any:
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
                yield from inner(f)
            f[AT] = node

    return run


def _class_code(parent: Unit, node: nodes.ClassDef) -> Code:
    unit = Unit(parent.source, parent, node, "class", node.name)
    unit.class_name = node.name
    assert unit.slot() == NAMESPACE
    unit.scope.declare(["__class__"], frozenset({"__class__"}))
    run = Functions(unit).block(node.body)
    code = _code(unit, node, run)
    code.doc = _docstring(node.body)
    return code


def _module_unit(source: SourceFile) -> Unit:
    return Unit(source, None, None, "module", "<module>")


@lru_cache(maxsize=8192)
def compile_statement(source: SourceFile, node: nodes.Statement) -> Code:
    """Compile a module-level statement. Raises `Refused`."""
    unit = _module_unit(source)
    return _code(unit, node, Functions(unit).statement(node))


def compile_expression(source: SourceFile, node: nodes.Expression) -> Code:
    """Compile a module-level expression to code that returns its value. Raises `Refused`."""
    unit = _module_unit(source)
    return _code(unit, node, Functions(unit).statement(nodes.Return(node.span, node)))


def compile_function(
    source: SourceFile, node: scopes.Function, around: str, cells: Iterable[str]
) -> tuple[Code, tuple[str, ...]]:
    """Compile a single function in the function `around`, which is empty for none.

    Return its code and the names of its cells, in slot order.
    """
    unit = _module_unit(source)
    enclosing = Unit(source, unit, None, "function", around)
    cell_names = sorted(cells)
    enclosing.scope.declare(cell_names, frozenset(cell_names))
    name = node.name if isinstance(node, nodes.FunctionDef) else "<lambda>"
    code = _function_code(enclosing, node, name)
    by_slot = {at.slot: key for key, at in enclosing.scope.variables.items()}
    return code, tuple(by_slot[slot] for slot in code.outer_slots)


expressions._COMPILERS |= {
    nodes.Lambda: Functions.lambda_,
    nodes.NamedExpr: Functions.walrus,
    nodes.ListComp: Functions.list_comprehension,
    nodes.SetComp: Functions.set_comprehension,
    nodes.DictComp: Functions.dict_comprehension,
    nodes.GeneratorExp: Functions.generator_expression,
}
statements._COMPILERS |= {
    nodes.FunctionDef: Functions.function,
    nodes.ClassDef: Functions.class_,
    nodes.Match: Functions.match,
}
