"""Compile units: functions, lambdas, generator expressions, classes, module-level statements."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from nkic.base.source import SourceFile
from nkic.evaluate.budget import CALL_COST, BudgetExhausted
from nkic.evaluate.code import AT, FIRST, FUNCTION, MACHINE, Code, Evaluate, Frame
from nkic.evaluate.compile import expressions, statements
from nkic.evaluate.compile.expressions import NAMESPACE
from nkic.evaluate.compile.generators import Generators, yields
from nkic.evaluate.compile.targets import Run
from nkic.evaluate.compile.units import Unit, captured_names, check_name
from nkic.evaluate.objects import UNSET, Function
from nkic.syntax import nodes, scopes

_FUNCTION_WEIGHT = 80  # steps for the bytes of a function
Decorators = list[tuple[Evaluate, nodes.Node]]


class Functions(Generators):
    """The complete compiler: the most derived of its classes."""

    def function(self, node: nodes.FunctionDef) -> Run:
        """Compile `def`."""
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
        """Compile `lambda`."""
        return self._maker(node, "<lambda>")

    def generator_expression(self, node: nodes.GeneratorExp) -> Evaluate:
        """Compile `(elt for …)`."""
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
        """Compile `class`."""
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
    """Nest the loops of a generator expression."""

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
