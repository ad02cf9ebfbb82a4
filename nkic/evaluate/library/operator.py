"""`operator`: the operators as functions, and the getters of items, attributes and methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nkic.evaluate import attributes
from nkic.evaluate.compare import COMPARISONS, compare
from nkic.evaluate.library.support import charge_arguments, library_class, methods, repr_of
from nkic.evaluate.objects import UNSET, Builtin
from nkic.evaluate.operators import BINARY, OPERATIONS, in_place, unary
from nkic.evaluate.tables import builtin

if TYPE_CHECKING:
    from nkic.evaluate.machine import Machine
    from nkic.evaluate.texts import Writer

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


# ---- getters ------------------------------------------------------------------------------------

ITEM_GETTER = library_class("itemgetter", "operator")
ATTRIBUTE_GETTER = library_class("attrgetter", "operator")
METHOD_CALLER = library_class("methodcaller", "operator")
for _cls in (ITEM_GETTER, ATTRIBUTE_GETTER, METHOD_CALLER):
    MODULE[_cls.name] = _cls


@methods(ITEM_GETTER, "__init__")
def _init_items(m: Machine, owner: Any, item: Any, /, *items: Any) -> None:
    charge_arguments(m, items, {})
    attributes.write_field(m, owner, "items", (item, *items))


@methods(ITEM_GETTER, "__call__")
def _items(m: Machine, owner: Any, obj: Any, /) -> Any:
    keys = owner.fields["items"]
    if len(keys) == 1:
        return m.item(obj, keys[0])
    m.elements(len(keys), "the tuple")
    return tuple([m.item(obj, key) for key in keys])


@methods(ATTRIBUTE_GETTER, "__init__")
def _init_attributes(m: Machine, owner: Any, attr: Any, /, *attrs: Any) -> None:
    charge_arguments(m, attrs, {})
    if not all(isinstance(name, str) for name in (attr, *attrs)):
        raise TypeError("attribute name must be a string")
    names = tuple([str.__str__(name) for name in (attr, *attrs)])
    attributes.write_field(m, owner, "attrs", names)


@methods(ATTRIBUTE_GETTER, "__call__")
def _attributes(m: Machine, owner: Any, obj: Any, /) -> Any:
    names = owner.fields["attrs"]
    if len(names) == 1:
        return _by_path(m, obj, names[0])
    return tuple([_by_path(m, obj, name) for name in names])


def _by_path(m: Machine, obj: Any, path: str) -> Any:
    m.charge(len(path) >> 2)
    for name in path.split("."):
        obj = m.call(m.builtins["getattr"], (obj, name), None)
    return obj


@methods(METHOD_CALLER, "__init__")
def _init_method(m: Machine, owner: Any, name: Any, /, *args: Any, **named: Any) -> None:
    if not isinstance(name, str):
        raise TypeError("method name must be a string")
    charge_arguments(m, args, named)
    attributes.write_fields(m, owner, name=str.__str__(name), args=args, keywords=named)


@methods(METHOD_CALLER, "__call__")
def _method(m: Machine, owner: Any, obj: Any, /) -> Any:
    fields = owner.fields
    method = m.call(m.builtins["getattr"], (obj, fields["name"]), None)
    charge_arguments(m, fields["args"], fields["keywords"])
    return m.call(method, fields["args"], fields["keywords"])


def _texts(name: str, key: str) -> Any:
    def show(m: Machine, owner: Any, writer: Writer) -> None:
        parts = [("", arg) for arg in owner.fields.get(key, ())]
        writer.named(f"operator.{name}", parts)

    return show


repr_of(ITEM_GETTER)(_texts("itemgetter", "items"))
repr_of(ATTRIBUTE_GETTER)(_texts("attrgetter", "attrs"))


@repr_of(METHOD_CALLER)
def _show_caller(m: Machine, owner: Any, writer: Writer) -> None:
    fields = owner.fields
    parts = [("", fields.get("name")), *(("", arg) for arg in fields.get("args", ()))]
    writer.named("operator.methodcaller", [*parts, *fields.get("keywords", {}).items()])
