"""`operator`: the operators as functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nkic.evaluate.compare import COMPARISONS, compare
from nkic.evaluate.objects import UNSET, Builtin
from nkic.evaluate.operators import BINARY, OPERATIONS, in_place, unary
from nkic.evaluate.tables import builtin

if TYPE_CHECKING:
    from nkic.evaluate.machine import Machine

MODULE: dict[str, Any] = {}
_NAMES = {"and": "and_", "or": "or_"}


def _binary(symbol: str, word: str) -> None:
    apply = OPERATIONS[symbol]
    name = _NAMES.get(word, word)
    MODULE[name] = Builtin(name, lambda m, a, b, /: apply(m, a, b))
    MODULE[f"i{word}"] = Builtin(f"i{word}", lambda m, a, b, /: in_place(m, symbol, a, b))


def _comparison(name: str, symbol: str) -> None:
    MODULE[name] = Builtin(name, lambda m, a, b, /: compare(m, symbol, a, b))


def _unary(symbol: str, *names: str) -> None:
    for name in names:
        MODULE[name] = Builtin(name, lambda m, a, /: unary(m, symbol, a))


for _symbol, (_, _, _word, _) in BINARY.items():
    _binary(_symbol, _word)
for _symbol, _name in COMPARISONS.items():
    _comparison(_name.strip("_"), _symbol)
_unary("-", "neg")
_unary("+", "pos")
_unary("~", "inv", "invert")


# ---- functions ----------------------------------------------------------------------------------


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "abs": lambda m, a, /: m.call(m.builtins["abs"], (a,), None),
    "not_": lambda m, a, /: not m.truth(a),
    "truth": lambda m, a, /: m.truth(a),
    "is_": lambda m, a, b, /: a is b,
    "is_not": lambda m, a, b, /: a is not b,
    "is_none": lambda m, a, /: a is None,
    "is_not_none": lambda m, a, /: a is not None,
    "index": lambda m, a, /: m.index(a),
    "contains": lambda m, a, b, /: m.contains(a, b),
    "getitem": lambda m, a, b, /: m.item(a, b),
    "setitem": lambda m, a, b, c, /: m.put_item(a, b, c),
    "delitem": lambda m, a, b, /: m.remove_item(a, b),
    "call": lambda m, obj, /, *args, **named: m.call(obj, args, named),
}
MODULE |= {name: Builtin(name, call) for name, call in _OPERATIONS.items()}


@builtin("concat", MODULE)
def _concat(m: Machine, a: Any, b: Any, /) -> Any:
    _check_sequence(m, a)
    return OPERATIONS["+"](m, a, b)


@builtin("iconcat", MODULE)
def _iconcat(m: Machine, a: Any, b: Any, /) -> Any:
    _check_sequence(m, a)
    return in_place(m, "+", a, b)


def _check_sequence(m: Machine, value: Any) -> None:
    if m.class_of(value).find("__getitem__") is UNSET and not isinstance(
        value, str | bytes | list | tuple
    ):
        raise TypeError(f"'{m.class_of(value).name}' object can't be concatenated")


@builtin("countOf", MODULE)
def _count_of(m: Machine, a: Any, b: Any, /) -> int:
    count = 0
    for value in m.iterate(a):
        m.charge(16)
        count += m.equal(value, b)
    return count


@builtin("indexOf", MODULE)
def _index_of(m: Machine, a: Any, b: Any, /) -> int:
    for index, value in enumerate(m.iterate(a)):
        m.charge(16)
        if m.equal(value, b):
            return index
    raise ValueError("sequence.index(x): x not in sequence")


@builtin("length_hint", MODULE)
def _length_hint(m: Machine, obj: Any, default: Any = 0, /) -> int:
    try:
        return m.length(obj)
    except TypeError:
        return m.index(default)
