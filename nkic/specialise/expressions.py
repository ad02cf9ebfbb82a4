"""Expressions: syntax nodes to Python's `ast`, with guards where NKI's world ends."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from nkic.specialise.builtins import CALLED_APART, TESTED_APART
from nkic.specialise.methods import GUARDED
from nkic.specialise.scope import LOAD, STORE, Place, Refused, Scope, call, check_name, name
from nkic.syntax import names, nodes, scopes

BINARY: dict[str, ast.operator] = {
    "+": ast.Add(),
    "-": ast.Sub(),
    "*": ast.Mult(),
    "/": ast.Div(),
    "//": ast.FloorDiv(),
    "%": ast.Mod(),
    "**": ast.Pow(),
    "<<": ast.LShift(),
    ">>": ast.RShift(),
    "&": ast.BitAnd(),
    "|": ast.BitOr(),
    "^": ast.BitXor(),
    "@": ast.MatMult(),
}
_GUARDED_BINARY = {
    **{"+": "@add", "*": "@mul", "%": "@mod", "**": "@pow", "<<": "@shl"},
    **{"|": "@or", "&": "@and", "^": "@xor", "-": "@sub"},
}
_UNARY: dict[str, ast.unaryop] = {
    "-": ast.USub(),
    "+": ast.UAdd(),
    "~": ast.Invert(),
    "not": ast.Not(),
}
_COMPARE: dict[str, ast.cmpop] = {
    "==": ast.Eq(),
    "!=": ast.NotEq(),
    "<": ast.Lt(),
    "<=": ast.LtE(),
    ">": ast.Gt(),
    ">=": ast.GtE(),
    "is": ast.Is(),
    "is not": ast.IsNot(),
    "in": ast.In(),
    "not in": ast.NotIn(),
}
_TYPE_TESTS = frozenset({"isinstance", "issubclass"})
_SMALL = 1 << 32


class Expressions:
    """Translates expressions at the place that `scope` knows."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._at = scope.at

    def load(self, node: nodes.Expression) -> ast.expr:
        """An expression that is read."""
        found: ast.expr = _LOADERS[type(node)](self, node)
        return found

    def loads(self, parts: Iterable[nodes.Expression]) -> list[ast.expr]:
        """Several of them."""
        return [self.load(part) for part in parts]

    # ---- names and attributes --------------------------------------------------------------

    def _constant(self, node: nodes.Constant) -> ast.expr:
        return ast.Constant(node.value, **self._at(node.span))

    def _name(self, node: nodes.Name) -> ast.expr:
        check_name(node.id, node.span)
        return name(node.id, self._at(node.span))

    def _attribute(self, node: nodes.Attribute) -> ast.expr:
        place = self._at(node.span)
        if node.attr == "__setattr__" and self._is_object(node.value):
            return name("@frozen", place)
        if names.is_hidden(node.attr):
            raise hidden(node)
        return self.attribute(self.load(node.value), node.attr, place)

    def attribute(self, owner: ast.expr, attribute: str, place: Place) -> ast.expr:
        """`owner.attribute`, through the guard where the name asks for it."""
        if attribute.startswith("_") or attribute in GUARDED:
            text = ast.Constant(self.scope.mangled(attribute), **place)
            return call("@.get", place, owner, text)
        return ast.Attribute(owner, attribute, LOAD, **place)

    def _is_object(self, node: nodes.Expression) -> bool:
        return isinstance(node, nodes.Name) and node.id == "object" and self._builtin(node)

    def _builtin(self, node: nodes.Expression) -> bool:
        return isinstance(node, nodes.Name) and self.scope.is_builtin(node.id)

    def _subscript(self, node: nodes.Subscript) -> ast.expr:
        place = self._at(node.span)
        owner = self.load(node.value)
        if isinstance(node.slice, nodes.Slice):
            return call("@cut", place, owner, as_value(self.load(node.slice), place))
        return ast.Subscript(owner, self.index(node.slice), LOAD, **place)

    def index(self, node: nodes.Expression) -> ast.expr:
        """A subscript; what a dict would hash is counted before."""
        if isinstance(node, nodes.Tuple):
            return ast.Tuple([*map(self.index, node.elts)], LOAD, **self._at(node.span))
        if isinstance(node, nodes.Slice):
            bounds = (node.lower, node.upper, node.step)
            parts = [None if bound is None else self.index(bound) for bound in bounds]
            return ast.Slice(*parts, **self._at(node.span))
        if is_flat(node) or isinstance(node, nodes.Starred):
            return self.load(node)
        return call("@key", self._at(node.span), self.load(node))

    def _slice(self, node: nodes.Slice) -> ast.expr:
        bounds = (node.lower, node.upper, node.step)
        parts = [None if bound is None else self.load(bound) for bound in bounds]
        return ast.Slice(*parts, **self._at(node.span))

    def _starred(self, node: nodes.Starred) -> ast.expr:
        return ast.Starred(self.load(node.value), LOAD, **self._at(node.span))

    # ---- calls -----------------------------------------------------------------------------

    def _call(self, node: nodes.Call) -> ast.expr:
        place = self._at(node.span)
        keywords = [*map(self._keyword, node.keywords)]
        arguments = [self._counted(one) for one in self._arguments(node)]
        return ast.Call(self._called(node.func), arguments, keywords, **place)

    def _keyword(self, node: nodes.Keyword) -> ast.keyword:
        place, value = self._at(node.span), self.load(node.value)
        return ast.keyword(node.arg, value if node.arg else call("@spread", place, value), **place)

    def _counted(self, argument: ast.expr) -> ast.expr:
        """An argument; what stands after `*` is copied by the call."""
        if isinstance(argument, ast.Starred):
            value = argument.value
            place: Any = {name: getattr(value, name) for name in value._attributes}
            argument.value = call("@spread", place, value)
        return argument

    def _called(self, func: nodes.Expression) -> ast.expr:
        if isinstance(func, nodes.Name) and func.id in CALLED_APART and self._builtin(func):
            return name(f"@{func.id}", self._at(func.span))
        return self.load(func)

    def _arguments(self, node: nodes.Call) -> list[ast.expr]:
        func = node.func
        if isinstance(func, nodes.Name) and func.id in _TYPE_TESTS and self._builtin(func):
            return [*self.loads(node.args[:1]), *map(self._class_argument, node.args[1:])]
        return self.loads(node.args)

    def _class_argument(self, node: nodes.Expression) -> ast.expr:
        """The second argument of `isinstance`, where `list` and `range` mean the class."""
        if isinstance(node, nodes.Tuple):
            return ast.Tuple([*map(self._class_argument, node.elts)], LOAD, **self._at(node.span))
        if isinstance(node, nodes.Name) and node.id in TESTED_APART and self._builtin(node):
            return name(f"@class {node.id}", self._at(node.span))
        return self.load(node)

    # ---- operators -------------------------------------------------------------------------

    def _unary(self, node: nodes.UnaryOp) -> ast.expr:
        return ast.UnaryOp(_UNARY[node.op], self.load(node.operand), **self._at(node.span))

    def _binary(self, node: nodes.BinOp) -> ast.expr:
        place = self._at(node.span)
        left, right = self.load(node.left), self.load(node.right)
        if node.op in _GUARDED_BINARY and not _is_tame(node):
            return call(_GUARDED_BINARY[node.op], place, left, right)
        return ast.BinOp(left, BINARY[node.op], right, **place)

    def _boolean(self, node: nodes.BoolOp) -> ast.expr:
        operator = ast.And() if node.op == "and" else ast.Or()
        return ast.BoolOp(operator, self.loads(node.values), **self._at(node.span))

    def _compare(self, node: nodes.Compare) -> ast.expr:
        place = self._at(node.span)
        left, rest = self.load(node.left), self.loads(node.comparators)
        if node.ops == ("in",):
            return call("@in", place, left, rest[0])
        if node.ops == ("not in",):
            return ast.UnaryOp(ast.Not(), call("@in", place, left, rest[0]), **place)
        operands = [node.left, *node.comparators]
        parts = [left, *rest]
        for at, op in enumerate(node.ops):
            if "i" not in op and not is_flat(operands[at]) and not is_flat(operands[at + 1]):
                parts[at] = call("@flat", self._at(operands[at].span), parts[at])
        left, *rest = parts
        return ast.Compare(left, [_COMPARE[op] for op in node.ops], rest, **place)

    def _walrus(self, node: nodes.NamedExpr) -> ast.expr:
        check_name(node.target.id, node.target.span)
        target = name(node.target.id, self._at(node.target.span), STORE)
        return ast.NamedExpr(target, self.load(node.value), **self._at(node.span))

    def _ternary(self, node: nodes.IfExp) -> ast.expr:
        test, body, orelse = self.load(node.test), self.load(node.body), self.load(node.orelse)
        return ast.IfExp(test, body, orelse, **self._at(node.span))

    # ---- functions -------------------------------------------------------------------------

    def _lambda(self, node: nodes.Lambda) -> ast.expr:
        place = self._at(node.span)
        arguments = self.parameters(node.args)
        with self.scope.inside(node):
            body = self.load(node.body)
        # Without the step, functions that call each other could run for ever.
        stepping = ast.BoolOp(ast.And(), [call("@tick", place), body], **place)
        return ast.Lambda(arguments, stepping, **place)

    def parameters(self, node: nodes.Arguments) -> ast.arguments:
        """A signature, without annotations: they are never evaluated."""
        return ast.arguments(
            posonlyargs=[self._parameter(arg) for arg in node.posonlyargs],
            args=[self._parameter(arg) for arg in node.args],
            vararg=self._parameter(node.vararg) if node.vararg else None,
            kwonlyargs=[self._parameter(arg) for arg in node.kwonlyargs],
            kw_defaults=[None if one is None else self.load(one) for one in node.kw_defaults],
            kwarg=self._parameter(node.kwarg) if node.kwarg else None,
            defaults=self.loads(node.defaults),
        )

    def _parameter(self, node: nodes.Arg) -> ast.arg:
        check_name(node.name, node.span)
        return ast.arg(node.name, None, **self._at(node.span))

    def _yield(self, node: nodes.Yield) -> ast.expr:
        value = None if node.value is None else self.load(node.value)
        return ast.Yield(value, **self._at(node.span))

    def _yield_from(self, node: nodes.YieldFrom) -> ast.expr:
        return ast.YieldFrom(self.load(node.value), **self._at(node.span))

    def _await(self, node: nodes.Await) -> ast.expr:
        raise Refused("not-in-nki", "`await` cannot be used in kernel code", node.span)

    # ---- displays and comprehensions -------------------------------------------------------

    def _tuple(self, node: nodes.Tuple) -> ast.expr:
        place = self._at(node.span)
        return self._sized(node.elts, ast.Tuple(self.loads(node.elts), LOAD, **place), place)

    def _list(self, node: nodes.List) -> ast.expr:
        place = self._at(node.span)
        return self._sized(node.elts, ast.List(self.loads(node.elts), LOAD, **place), place)

    def _set(self, node: nodes.Set) -> ast.expr:
        place = self._at(node.span)
        return call("@set", place, ast.Tuple(self.loads(node.elts), LOAD, **place))

    def _dict(self, node: nodes.Dict) -> ast.expr:
        place = self._at(node.span)
        keys = [None if key is None else self.index(key) for key in node.keys]
        made = ast.Dict(keys, self.loads(node.values), **place)
        return call("@sized", place, made) if None in node.keys else made

    def _sized(self, parts: Sequence[nodes.Expression], made: ast.expr, place: Place) -> ast.expr:
        """`[*a, *a]` can double a list at every turn of a loop."""
        grows = any(isinstance(part, nodes.Starred) for part in parts)
        return call("@sized", place, made) if grows else made

    def _list_comprehension(self, node: nodes.ListComp) -> ast.expr:
        elements, clauses = self._comprehension(node, [node.elt])
        return ast.ListComp(elements[0], clauses, **self._at(node.span))

    def _set_comprehension(self, node: nodes.SetComp) -> ast.expr:
        place = self._at(node.span)
        elements, clauses = self._comprehension(node, [node.elt])
        return call("@set", place, ast.ListComp(elements[0], clauses, **place))

    def _dict_comprehension(self, node: nodes.DictComp) -> ast.expr:
        place = self._at(node.span)
        elements, clauses = self._comprehension(node, [node.key, node.value])
        key = elements[0] if is_flat(node.key) else call("@key", place, elements[0])
        return ast.DictComp(key, elements[1], clauses, **place)

    def _generator(self, node: nodes.GeneratorExp) -> ast.expr:
        elements, clauses = self._comprehension(node, [node.elt])
        return ast.GeneratorExp(elements[0], clauses, **self._at(node.span))

    def _comprehension(
        self, node: scopes.Comprehension, elements: Sequence[nodes.Expression]
    ) -> tuple[list[ast.expr], list[ast.comprehension]]:
        first = self._each(node.generators[0])
        with self.scope.inside(node):
            clauses = [self._clause(node.generators[0], first)]
            clauses += [self._clause(part, self._each(part)) for part in node.generators[1:]]
            return self.loads(elements), clauses

    def _each(self, node: nodes.Comprehension) -> ast.expr:
        return call("@each", self._at(node.iter.span), self.load(node.iter))

    def _clause(self, node: nodes.Comprehension, iterable: ast.expr) -> ast.comprehension:
        if node.is_async:
            raise Refused("not-in-nki", "`async` cannot be used in kernel code", node.span)
        step = call("@tick", self._at(node.iter.span))
        target = self.simple_target(node.target)
        return ast.comprehension(target, iterable, [step, *self.loads(node.ifs)], 0)

    def simple_target(self, node: nodes.Expression) -> ast.expr:
        """A target of names and items; attributes need a statement of their own."""
        place = self._at(node.span)
        if isinstance(node, nodes.Name):
            check_name(node.id, node.span)
            return name(node.id, place, STORE)
        if isinstance(node, nodes.Starred):
            return ast.Starred(self.simple_target(node.value), STORE, **place)
        if isinstance(node, nodes.Tuple | nodes.List):
            made = ast.Tuple if isinstance(node, nodes.Tuple) else ast.List
            return made([*map(self.simple_target, node.elts)], STORE, **place)
        if isinstance(node, nodes.Subscript):
            return ast.Subscript(self.load(node.value), self.index(node.slice), STORE, **place)
        raise Refused("not-in-nki", "this cannot be assigned to here", node.span)

    # ---- text ------------------------------------------------------------------------------

    def _joined(self, node: nodes.JoinedStr) -> ast.expr:
        place = self._at(node.span)
        parts: list[ast.expr] = [*map(self._part, node.values)]
        made = ast.JoinedStr(parts, **place)
        plain = all(isinstance(part, nodes.Constant) for part in node.values)
        return made if plain else call("@text", place, made)

    def _part(self, node: nodes.Constant | nodes.FormattedValue) -> ast.expr:
        return self._constant(node) if isinstance(node, nodes.Constant) else self._formatted(node)

    def _formatted(self, node: nodes.FormattedValue) -> ast.expr:
        place = self._at(node.span)
        value = self.load(node.value)
        if node.format_spec is None and not node.conversion:
            shown = call("@field", place, value)
        else:
            spec: ast.expr = ast.Constant("", **place)
            if node.format_spec is not None:
                spec = self._joined(node.format_spec)
            conversion = ast.Constant(node.conversion, **place)
            shown = call("@format", place, value, conversion, spec)
        return ast.FormattedValue(shown, -1, None, **place)


def as_value(index: ast.expr, place: Place) -> ast.expr:
    """A subscript as an argument of a call: slices are made by `slice`."""
    if isinstance(index, ast.Slice):
        none = ast.Constant(None, **place)
        bounds = [bound or none for bound in (index.lower, index.upper, index.step)]
        return call("@bounds", place, *bounds)
    if isinstance(index, ast.Tuple):
        parts = [as_value(part, place) for part in index.elts]
        return ast.Tuple(parts, LOAD, **place)
    return index


def hidden(node: nodes.Attribute) -> Refused:
    """The error about reading an attribute that is out of reach."""
    text = f"`{node.attr}` is out of reach of kernel code"
    return Refused("hidden-attribute", text, node.span, names.instead_of(node.attr))


def _is_tame(node: nodes.BinOp) -> bool:
    """The operands' forms alone say that the result cannot grow much."""
    left, right = literal(node.left), literal(node.right)
    if node.op in ("+", "-", "|", "&", "^"):
        return left is not None or right is not None
    if node.op == "%":
        return left is not None
    if isinstance(left, float) or isinstance(right, float):
        return True
    if left is None or right is None:
        return False
    return node.op == "*" or (node.op == "<<" and 0 <= right <= 64)


def is_flat(node: nodes.Expression) -> bool:
    """The form alone says that the value is no container; operators may be a kernel's own."""
    if isinstance(node, nodes.UnaryOp):
        return node.op == "not" or literal(node) is not None
    return isinstance(node, nodes.Constant | nodes.JoinedStr)


def literal(node: nodes.Expression) -> int | float | None:
    """The value of a number literal of usual size."""
    if isinstance(node, nodes.UnaryOp) and node.op == "-":
        value = literal(node.operand)
        return None if value is None else -value
    if not isinstance(node, nodes.Constant) or type(node.value) not in (int, float):
        return None
    number: Any = node.value
    return number if isinstance(number, float) or number < _SMALL else None


_LOADERS: dict[type[nodes.Node], Callable[[Expressions, Any], ast.expr]] = {
    nodes.Constant: Expressions._constant,
    nodes.Name: Expressions._name,
    nodes.Attribute: Expressions._attribute,
    nodes.Subscript: Expressions._subscript,
    nodes.Slice: Expressions._slice,
    nodes.Starred: Expressions._starred,
    nodes.Call: Expressions._call,
    nodes.UnaryOp: Expressions._unary,
    nodes.BinOp: Expressions._binary,
    nodes.BoolOp: Expressions._boolean,
    nodes.Compare: Expressions._compare,
    nodes.NamedExpr: Expressions._walrus,
    nodes.IfExp: Expressions._ternary,
    nodes.Lambda: Expressions._lambda,
    nodes.Yield: Expressions._yield,
    nodes.YieldFrom: Expressions._yield_from,
    nodes.Await: Expressions._await,
    nodes.Tuple: Expressions._tuple,
    nodes.List: Expressions._list,
    nodes.Set: Expressions._set,
    nodes.Dict: Expressions._dict,
    nodes.ListComp: Expressions._list_comprehension,
    nodes.SetComp: Expressions._set_comprehension,
    nodes.DictComp: Expressions._dict_comprehension,
    nodes.GeneratorExp: Expressions._generator,
    nodes.JoinedStr: Expressions._joined,
    nodes.FormattedValue: Expressions._formatted,
}
