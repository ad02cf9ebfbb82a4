"""Compile expressions to closures, which take the frame and return the value."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from nkic.interpret import attributes
from nkic.interpret.attributes import Provided
from nkic.interpret.budget import CLASS_COST
from nkic.interpret.compare import compare
from nkic.interpret.compile.units import (
    GLOBAL,
    CallArguments,
    Unit,
    Variable,
    check_name,
    dict_of,
    hidden,
    load_global,
    nothing,
    plain_call,
    refusing_complex,
    tuple_of,
    unset,
)
from nkic.interpret.machine import NESTED, admit
from nkic.interpret.objects import (
    AT,
    FUNCTION,
    INSTANCES,
    MACHINE,
    UNSET,
    Class,
    Evaluate,
    Frame,
    Function,
    Refused,
)
from nkic.interpret.operators import OPERATIONS, SMALL, unary
from nkic.source import bindings, nodes

# ------------------------------------------------------------------------------------------------
# Operators as closures; two small integers are combined without calling the machine.


def _add(node: nodes.BinOp, left: Evaluate, right: Evaluate) -> Evaluate:
    apply = OPERATIONS["+"]

    def run(f: Frame) -> Any:
        a, b = left(f), right(f)
        if a.__class__ is int and b.__class__ is int:
            result = a + b
            if -SMALL < result < SMALL:
                return result
        f[AT] = node
        return apply(f[MACHINE], a, b)

    return run


def _subtract(node: nodes.BinOp, left: Evaluate, right: Evaluate) -> Evaluate:
    apply = OPERATIONS["-"]

    def run(f: Frame) -> Any:
        a, b = left(f), right(f)
        if a.__class__ is int and b.__class__ is int:
            result = a - b
            if -SMALL < result < SMALL:
                return result
        f[AT] = node
        return apply(f[MACHINE], a, b)

    return run


HALF = 1 << 31


def _multiply(node: nodes.BinOp, left: Evaluate, right: Evaluate) -> Evaluate:
    apply = OPERATIONS["*"]

    def run(f: Frame) -> Any:
        a, b = left(f), right(f)
        plain = a.__class__ is int and b.__class__ is int
        if plain and -HALF < a < HALF and -HALF < b < HALF:
            return a * b
        f[AT] = node
        return apply(f[MACHINE], a, b)

    return run


def _divided(symbol: str, function: Callable[[int, int], int]) -> Any:
    apply = OPERATIONS[symbol]

    def compile_(node: nodes.BinOp, left: Evaluate, right: Evaluate) -> Evaluate:
        def run(f: Frame) -> Any:
            a, b = left(f), right(f)
            plain = a.__class__ is int and b.__class__ is int
            if plain and 0 < b < SMALL and -SMALL < a < SMALL:
                return function(a, b)
            f[AT] = node
            return apply(f[MACHINE], a, b)

        return run

    return compile_


def small_literal(node: nodes.Expression) -> int | None:
    value = node.value if isinstance(node, nodes.Constant) else None
    return value if type(value) is int and value < HALF else None


# For integers below 2 ** 31, whose results need no check of the limits.
SMALL_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}
ARITHMETIC: dict[str, Callable[[nodes.BinOp, Evaluate, Evaluate], Evaluate]] = {
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "//": _divided("//", operator.floordiv),
    "%": _divided("%", operator.mod),
}


def comparison_function(op: str) -> Callable[[Any, Any, Any], Any]:
    """Return the function of a comparison; it takes machine, left and right."""
    if op == "is":
        return lambda m, left, right: left is right
    if op == "is not":
        return lambda m, left, right: left is not right
    if op == "in":
        return lambda m, left, right: m.contains(right, left)
    if op == "not in":
        return lambda m, left, right: not m.contains(right, left)
    return lambda m, left, right: compare(m, op, left, right)


_FAST: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def compile_comparison(node: nodes.Compare, op: str, left: Evaluate, right: Evaluate) -> Evaluate:
    if op == "is" or op == "is not":
        expected = op == "is"
        return lambda f: (left(f) is right(f)) is expected
    test, fast = comparison_function(op), _FAST.get(op)
    if fast is None:

        def run(f: Frame) -> Any:
            a, b = left(f), right(f)
            f[AT] = node
            return test(f[MACHINE], a, b)

        return run

    def run_fast(f: Frame) -> Any:
        a, b = left(f), right(f)
        if a.__class__ is int and b.__class__ is int:
            return fast(a, b)
        f[AT] = node
        return test(f[MACHINE], a, b)

    return run_fast


# ---- Reads of attributes and calls of methods, which remember what they found last --------------
# Most places in a kernel meet values of one class, and call one function. What they remember is
# one tuple, since evaluations in several threads may share these closures.


def attribute(node: nodes.Attribute, owner: Evaluate, name: str) -> Evaluate:
    get, instances = attributes.get, INSTANCES
    last: tuple[Class | None, Any] = None, None  # a shared class, and its function for `name`

    def load(f: Frame) -> Any:
        nonlocal last
        value = owner(f)
        f[AT] = node
        m, kind = f[MACHINE], value.__class__
        if kind is Provided:
            memoised = value.memo.get(name, UNSET)
            if memoised is not UNSET:
                return memoised
        elif kind not in instances:
            cls = m.classes.get(kind)
            known, read = last
            if cls is known and cls is not None:
                return read(m, value)
            read = attributes.getter(cls, kind, name)
            if read is not None:
                last = cls, read
        return get(m, value, name)

    return load


def attribute_of_global(
    node: nodes.Attribute, owner: str, name: str, otherwise: Evaluate
) -> Evaluate:
    """Return the closure that reads an attribute of a global variable, most often a module."""

    def load(f: Frame) -> Any:
        value = f[FUNCTION].globals.get(owner, UNSET)
        if value.__class__ is Provided:
            memoised = value.memo.get(name, UNSET)
            if memoised is not UNSET:
                f[AT] = node
                return memoised
        return otherwise(f)

    return load


def method_call(
    node: nodes.Call,
    func: nodes.Attribute,
    module: str,
    owner: Evaluate,
    name: str,
    arguments: CallArguments,
) -> Evaluate:
    """Return the closure of `owner.name(…)`, which makes no bound method of a kernel's function.

    `module` is the owner's name if it is a global variable.
    """
    get, instances, nested = attributes.get, INSTANCES, NESTED
    positional, keywords, values, form = arguments
    # A value called with all arguments in one sequence, its function, and the steps of the call.
    last: tuple[Any, Any, int] = UNSET, None, 0

    def run(f: Frame) -> Any:
        nonlocal last
        value: Any = f[FUNCTION].globals.get(module, UNSET) if module else UNSET
        if value is UNSET:
            value = owner(f)
        f[AT] = func
        m = f[MACHINE]
        member: Any = UNSET
        if value.__class__ is Provided:
            member = value.memo.get(name, UNSET)
        elif value.__class__ in instances and name not in value.fields:
            method = value.cls.find(name)
            if method.__class__ is Function:
                args = (value, *positional(f))
                named = None if keywords is None else keywords(f)
                f[AT] = node
                return m.invoke(method, args, named)
        if member is UNSET:
            member = get(m, value, name)
        kind = member.__class__
        known, call, cost = last
        if member is not known and values is not None:
            vectorcall = member.vectorcall if kind is Class else m.vectorcalls.get(kind)
            if vectorcall is not None:
                known, call = member, vectorcall(member, form)
                cost = CLASS_COST if kind is Class else 0
                last = known, call, cost
        if member is known and values is not None:
            each = values(f)
            f[AT] = node
            m.left -= cost
            for value in each:
                if value.__class__ in nested:
                    admit(m, (value,))
            return call(each)
        args, named = positional(f), None if keywords is None else keywords(f)
        f[AT] = node
        if kind is Class:
            m.left -= CLASS_COST
            return member.make(m, member, *args, **(named or {}))
        return m.call(member, args, named)

    return run


MAX_DEPTH = 1500  # of nested expressions
_WEIGHTS = {nodes.Slice: 14, nodes.Dict: 58, nodes.Set: 54, nodes.Lambda: 80, nodes.Call: 4}


class Expressions:
    def __init__(self, unit: Unit) -> None:
        self.unit = unit

    def expression(self, node: nodes.Expression) -> Evaluate:
        unit = self.unit
        unit.cost += _WEIGHTS.get(type(node), 1)
        unit.depth += 1
        if unit.depth > MAX_DEPTH:
            raise Refused(
                "nesting-too-deep",
                "this expression is nested too deeply to be evaluated",
                node.span,
                "assign parts of it to variables",
            )
        closure: Evaluate = _COMPILERS[type(node)](self, node)
        unit.depth -= 1
        return closure

    def expressions(self, parts: Sequence[nodes.Expression]) -> tuple[Evaluate, ...]:
        return tuple([self.expression(part) for part in parts])

    def together(
        self, parts: Sequence[nodes.Expression], closures: tuple[Evaluate, ...]
    ) -> Evaluate:
        """Return the closure that builds a tuple; it reads assigned variables at once."""
        slots = [self.local(part) for part in parts]
        if len(slots) > 1 and self.unit.assigned.issuperset(slots):
            return itemgetter(*slots)
        return tuple_of(closures)

    # ---- names -----------------------------------------------------------------------------

    def constant(self, node: nodes.Constant) -> Evaluate:
        value = node.value
        if isinstance(value, complex):
            return refusing_complex(node)
        if isinstance(value, int) and value.bit_length() > 1 << 16:
            raise Refused("too-large", "the number is too large for kernel code", node.span)
        return lambda f: value

    def name(self, node: nodes.Name) -> Evaluate:
        """Compile a read of a variable."""
        if node.id == "__debug__":
            return lambda f: True
        check_name(node.id, node.span)
        return self.load(self.unit.mangled(node.id), node)

    def load(self, name: str, node: nodes.Node) -> Evaluate:
        unit = self.unit
        if unit.in_class_body:
            return self._class_name(name, node)
        return self.variable(name, unit.find(name) or GLOBAL, node)

    def variable(self, name: str, at: Variable, node: nodes.Node) -> Evaluate:
        """Return the closure that reads a variable at a known location."""
        if at.slot < 0:
            return load_global(name, node)
        unit, slot = self.unit, at.slot
        if at.boxed:

            def cell(f: Frame) -> Any:
                value = f[slot][0]
                if value is UNSET:
                    f[AT] = node
                    raise unset(name)
                return value

            return cell

        if slot in unit.assigned:
            return itemgetter(slot)

        def local(f: Frame) -> Any:
            value = f[slot]
            if value is UNSET:
                f[AT] = node
                raise unset(name)
            return value

        return local

    def _class_name(self, name: str, node: nodes.Node) -> Evaluate:
        """Return the closure that reads a name in a class body: the body's own names come first."""
        otherwise = self.variable(name, self.unit.find(name) or GLOBAL, node)
        space = NAMESPACE

        def load(f: Frame) -> Any:
            value = f[space].get(name, UNSET)
            return otherwise(f) if value is UNSET else value

        return load

    # ---- attributes and items --------------------------------------------------------------

    def attribute(self, node: nodes.Attribute) -> Evaluate:
        name = self.unit.mangled(node.attr)
        if bindings.is_hidden(name) and name not in _READABLE:
            raise hidden(name, node.span)
        load = attribute(node, self.expression(node.value), name)
        module = self._global(node.value)
        return attribute_of_global(node, module, name, load) if module else load

    def subscript(self, node: nodes.Subscript) -> Evaluate:
        owner, key = self.expression(node.value), self.expression(node.slice)

        def load(f: Frame) -> Any:
            value, index = owner(f), key(f)
            if index.__class__ is int and (value.__class__ is list or value.__class__ is tuple):
                f[AT] = node
                return value[index]
            f[AT] = node
            read = f[MACHINE].items.get(value.__class__)
            return f[MACHINE].item(value, index) if read is None else read(value, index)

        return load

    def slice(self, node: nodes.Slice) -> Evaluate:
        parts = (node.lower, node.upper, node.step)
        if parts == (None, None, None):
            everything = slice(None)
            return lambda f: everything
        lower, upper, step = (
            nothing if bound is None else self.expression(bound) for bound in parts
        )

        def make(f: Frame) -> Any:
            first, last = lower(f), upper(f)
            by = None if step is nothing else step(f)
            if first.__class__ is slice or last.__class__ is slice or by.__class__ is slice:
                f[AT] = node
                raise TypeError("slice bounds cannot be slices")
            return slice(first, last, by)

        return make

    # ---- calls -----------------------------------------------------------------------------

    def call(self, node: nodes.Call) -> Evaluate:
        if isinstance(node.func, nodes.Name) and node.func.id == "super" and not node.args:
            super_call = self._super(node)
            if super_call is not None:
                return super_call
        arguments = self._call_arguments(node)
        if isinstance(node.func, nodes.Attribute) and self._is_plain_attribute(node.func.attr):
            func = node.func
            owner, name = self.expression(func.value), self.unit.mangled(func.attr)
            return method_call(node, func, self._global(func.value), owner, name, arguments)
        return plain_call(
            node, self.expression(node.func), arguments.positional, arguments.keywords
        )

    def _call_arguments(self, node: nodes.Call) -> CallArguments:
        if any(isinstance(argument, nodes.Starred) for argument in node.args):
            # errors point where Python's do
            alone = node if len(node.args) == 1 and not node.keywords else None
            return CallArguments(self.sequence(node.args, alone), self._keywords(node))
        first = self.expressions(node.args)
        if any(argument.arg is None for argument in node.keywords):
            return CallArguments(tuple_of(first), self._keywords(node))
        names, others = self._named(node)
        keywords = dict_of(names, others) if names else None
        nodes_of_all = [*node.args, *[keyword.value for keyword in node.keywords]]
        every = self.together(nodes_of_all, (*first, *others))
        positional = self.together(node.args, first) if names else every
        return CallArguments(positional, keywords, every, (len(first), names))

    def _named(self, node: nodes.Call) -> tuple[tuple[str, ...], tuple[Evaluate, ...]]:
        names = tuple([keyword.arg or "" for keyword in node.keywords])
        return names, self.expressions([keyword.value for keyword in node.keywords])

    def _is_plain_attribute(self, attribute: str) -> bool:
        """Whether the attribute needs no check of hidden names."""
        return attribute not in _READABLE and not bindings.is_hidden(self.unit.mangled(attribute))

    def _keywords(self, node: nodes.Call) -> Evaluate | None:
        if not node.keywords:
            return None
        if all(keyword.arg is not None for keyword in node.keywords):
            return dict_of(*self._named(node))
        parts = [(keyword.arg, self.expression(keyword.value)) for keyword in node.keywords]

        def merged(f: Frame) -> dict[str, Any]:
            keywords: dict[str, Any] = {}
            for name, value in parts:
                entries = {name: value(f)} if name else f[MACHINE].keyword_mapping(value(f))
                double = keywords.keys() & entries.keys()
                if double:
                    f[AT] = node
                    name = min(map(str, double))
                    text = f"got multiple values for keyword argument '{name}'"
                    raise TypeError(f"{_callee_name(node)}() {text}")
                keywords |= entries
            return keywords

        return merged

    def _super(self, node: nodes.Call) -> Evaluate | None:
        """Compile `super()` inside a method."""
        at, scope = self.unit.find("__class__"), self.unit
        if at is None or at.slot < 0 or self.unit.find("super") is not GLOBAL:
            return None
        while scope.kind != "function" and scope.parent is not None:
            scope = scope.parent
        args = getattr(scope.node, "args", None)
        first = [*args.posonlyargs, *args.args, args.vararg] if args is not None else []
        if not first or first[0] is None:
            return None
        cls = self.variable("__class__", at, node)
        first_argument = self.load(first[0].name, node)

        def make(f: Frame) -> Any:
            f[AT] = node
            return f[MACHINE].super_of(cls(f), first_argument(f))

        return make

    def sequence(
        self, elts: Sequence[nodes.Expression], error_node: nodes.Node | None = None
    ) -> Evaluate:
        """Return a closure that builds a list of elements, some of them starred.

        `error_node` is the node that errors of unpacking point at; by default, the starred element.
        """
        parts = [
            (True, self.expression(element.value), error_node or element)
            if isinstance(element, nodes.Starred)
            else (False, self.expression(element), element)
            for element in elts
        ]

        def make(f: Frame) -> list[Any]:
            elements: list[Any] = []
            for star, part, node in parts:
                value = part(f)
                if star:
                    f[AT] = node
                    f[MACHINE].extend_list(elements, value)
                else:
                    elements.append(value)
            return elements

        return make

    def starred(self, node: nodes.Starred) -> Evaluate:
        """Refuse a starred expression outside of displays and calls."""
        raise Refused("bad-syntax", "can't use starred expression here", node.span)

    # ---- operators -------------------------------------------------------------------------

    def binary(self, node: nodes.BinOp) -> Evaluate:
        left, right = self.expression(node.left), self.expression(node.right)
        if node.op in ARITHMETIC:
            fused = self._fused(node, left)
            return fused or ARITHMETIC[node.op](node, left, right)
        apply = OPERATIONS[node.op]

        def run(f: Frame) -> Any:
            a, b = left(f), right(f)
            f[AT] = node
            return apply(f[MACHINE], a, b)

        return run

    def _fused(self, node: nodes.BinOp, left: Evaluate) -> Evaluate | None:
        """Compile an operator of a local variable and a small literal without operand closures."""
        slot, number = self.local(node.left), small_literal(node.right)
        if slot < 0 or number is None:
            return None
        apply, fast = OPERATIONS[node.op], SMALL_OPERATIONS.get(node.op)
        if fast is None or (number <= 0 and node.op in ("//", "%")):
            return None

        def run(f: Frame) -> Any:
            operand = f[slot]
            if operand.__class__ is int and -HALF < operand < HALF:
                return fast(operand, number)
            operand = left(f)
            f[AT] = node
            return apply(f[MACHINE], operand, number)

        return run

    def local(self, node: nodes.Expression) -> int:
        """Return the slot of a variable without a cell, or -1 for any other expression."""
        unit = self.unit
        if not isinstance(node, nodes.Name) or unit.in_class_body:
            return -1
        at = unit.find(unit.mangled(node.id)) or GLOBAL
        return -1 if at.boxed else at.slot

    def _global(self, node: nodes.Expression) -> str:
        """Return the name of a variable of the module, or "" for any other expression."""
        unit = self.unit
        if not isinstance(node, nodes.Name) or unit.in_class_body or node.id == "__debug__":
            return ""
        name = unit.mangled(node.id)
        return name if (unit.find(name) or GLOBAL).slot < 0 else ""

    def unary(self, node: nodes.UnaryOp) -> Evaluate:
        operand, symbol = self.expression(node.operand), node.op
        if symbol == "not":
            test = self.test(operand, node.operand)
            return lambda f: not test(f)

        def run(f: Frame) -> Any:
            value = operand(f)
            if symbol == "-" and (value.__class__ is int or value.__class__ is float):
                return -value
            f[AT] = node
            return unary(f[MACHINE], symbol, value)

        return run

    def test(self, value: Evaluate, node: nodes.Node) -> Evaluate:
        def run(f: Frame) -> bool:
            result = value(f)
            if result is True or result is False:
                return bool(result)
            f[AT] = node
            return bool(f[MACHINE].truth(result))

        return run

    def boolean(self, node: nodes.BoolOp) -> Evaluate:
        """Compile `a and b and c` or `a or b or c`."""
        parts, deciding = self.expressions(node.values), node.op == "or"
        *first, last = parts
        places = node.values

        def run(f: Frame) -> Any:
            for number, part in enumerate(first):
                value = part(f)
                if value is True or value is False:
                    decided = value
                else:
                    f[AT] = places[number]
                    decided = f[MACHINE].truth(value)
                if decided is deciding:
                    return value
            return last(f)

        return run

    def comparison(self, node: nodes.Compare) -> Evaluate:
        if len(node.ops) == 1:
            left, right = self.expression(node.left), self.expression(node.comparators[0])
            return compile_comparison(node, node.ops[0], left, right)
        parts = self.expressions((node.left, *node.comparators))
        tests = [comparison_function(op) for op in node.ops]

        def run(f: Frame) -> Any:
            left, result = parts[0](f), None
            for test, part in zip(tests, parts[1:], strict=True):
                right = part(f)
                f[AT] = node
                result = test(f[MACHINE], left, right)
                if result is not True and not f[MACHINE].truth(result):
                    return result
                left = right
            return result

        return run

    def conditional(self, node: nodes.IfExp) -> Evaluate:
        test = self.test(self.expression(node.test), node.test)
        body, orelse = self.expression(node.body), self.expression(node.orelse)
        return lambda f: body(f) if test(f) else orelse(f)

    def await_(self, node: nodes.Await) -> Evaluate:
        """Refuse `await`, which kernels do not support."""
        raise Refused("not-in-nki", "`await` cannot be used in kernel code", node.span)

    def yield_(self, node: nodes.Yield | nodes.YieldFrom) -> Evaluate:
        """Refuse a `yield` that `generators` could not hoist out of its expression."""
        raise Refused(
            "not-in-nki",
            "`yield` cannot be used inside this expression",
            node.span,
            "assign its value to a variable on a line of its own",
        )


def _callee_name(node: nodes.Call) -> str:
    func = node.func
    if isinstance(func, nodes.Attribute):
        return func.attr
    return func.id if isinstance(func, nodes.Name) else "function"


NAMESPACE = 3  # the slot of a class body that holds its namespace
# Special names that kernel code may read nevertheless; `attributes` defines their values.
_READABLE = frozenset(
    bindings.words("""
        __bases__ __mro__ mro __dict__ __setattr__ __getattribute__ __getattr__ __delattr__
        __new__ __init_subclass__ __class_getitem__ __set_name__ __get__ __set__ __delete__
        __module__ __func__ __self__ __wrapped__ __missing__ __slots__ __annotations__
        __match_args__ __cause__ __context__ __notes__ __subclasses__
    """)
)


_COMPILERS: dict[type[nodes.Node], Callable[[Any, Any], Evaluate]] = {
    nodes.Constant: Expressions.constant,
    nodes.Name: Expressions.name,
    nodes.Attribute: Expressions.attribute,
    nodes.Subscript: Expressions.subscript,
    nodes.Slice: Expressions.slice,
    nodes.Starred: Expressions.starred,
    nodes.Call: Expressions.call,
    nodes.UnaryOp: Expressions.unary,
    nodes.BinOp: Expressions.binary,
    nodes.BoolOp: Expressions.boolean,
    nodes.Compare: Expressions.comparison,
    nodes.IfExp: Expressions.conditional,
    nodes.Await: Expressions.await_,
    nodes.Yield: Expressions.yield_,
    nodes.YieldFrom: Expressions.yield_,
}
