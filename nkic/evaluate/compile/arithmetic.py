"""Operators as closures; two small integers are combined without calling the machine."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from nkic.evaluate.code import AT, MACHINE, Evaluate, Frame
from nkic.evaluate.compare import compare
from nkic.evaluate.operators import OPERATIONS, SMALL
from nkic.syntax import nodes


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
    """Return the value of a literal that is a small integer, or None."""
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
