"""The classes of Python's builtin types: all attributes of such values that kernels can reach.

A name that is in none of these tables does not exist for a kernel. All evaluations share the
classes, which are immutable.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from nkic.interpret import containers
from nkic.interpret.classes import TypingForm
from nkic.interpret.compare import COMPARISONS, compare, contains, stable_hash
from nkic.interpret.containers import DICT_ITEMS, DICT_KEYS, DICT_VALUES, KernelFrozenSet, KernelSet
from nkic.interpret.objects import (
    INSTANCES,
    UNSET,
    Builtin,
    Class,
    ClassMethod,
    Function,
    Generator,
    HostFunction,
    LazyIterator,
    Method,
    Property,
    StaticMethod,
    Super,
)
from nkic.interpret.operators import OPERATIONS, Union
from nkic.interpret.tables import OBJECT, call_host, check_owner, number_of, text_of
from nkic.interpret.types import functions
from nkic.interpret.types.functions import (
    BUILTIN,
    CLASS_METHOD,
    ELLIPSIS,
    FORM,
    FUNCTION,
    GENERATOR,
    HOST,
    ITERATORS,
    LAZY_ITERATOR,
    METHOD,
    NONE,
    NOT_IMPLEMENTED,
    PROPERTY,
    STATIC,
    SUPER,
    TYPE,
    UNION,
    each,
    lazily,
    protocol,
)
from nkic.interpret.types.numbers import BOOL, FLOAT, INT
from nkic.interpret.types.sequences import (
    DICT,
    FROZENSET,
    ITEMS,
    KEYS,
    LIST,
    RANGE,
    SET,
    SLICE,
    TUPLE,
    VALUES,
)
from nkic.interpret.types.text import BYTES, STR

if TYPE_CHECKING:
    from nkic.interpret.machine import Machine

# ---- The special methods of Python's builtin types, for calls by name ---------------------------
# Examples are `super().__init__(values)`, `dict.__getitem__(self, key)` and `int.__add__(self,
# other)`. They operate on the number, text or container that an object is, bypass the methods of
# its class, and obey the limits of the operators.

_SETS: tuple[Any, ...] = (set, frozenset, DICT_KEYS, DICT_ITEMS)
_WITH: dict[Class, Any] = {
    INT: int,
    FLOAT: (int, float),
    STR: str,
    BYTES: bytes,
    LIST: list,
    TUPLE: tuple,
    DICT: dict,
    SET: _SETS,
    FROZENSET: _SETS,
    RANGE: range,
}
_KINDS: dict[Class, Any] = {
    **{cls: kind for cls, kind in _WITH.items() if isinstance(kind, type)},
    FLOAT: float,
    SET: set,
    FROZENSET: frozenset,
    KEYS: DICT_KEYS,
    VALUES: DICT_VALUES,
    ITEMS: DICT_ITEMS,
}


def plain(m: Machine, value: Any) -> Any:
    """Return a value of a kernel's subclass as a value of the builtin type."""
    if value.__class__ not in INSTANCES:
        return value
    if isinstance(value, int | float):
        return number_of(value)
    if isinstance(value, str):
        return text_of(m, value)
    if isinstance(value, tuple | list):
        kind: Any = list if isinstance(value, list) else tuple
        m.elements(kind.__len__(value), f"the {kind.__name__}")
        return kind(kind.__iter__(value))
    if isinstance(value, dict):
        return containers.copy_dict(m, value)
    return value


# ---- operators ----------------------------------------------------------------------------------

_ARITHMETIC = {
    **{"+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod"},
    **{"**": "pow", "<<": "lshift", ">>": "rshift", "&": "and", "|": "or", "^": "xor"},
}
_OF: tuple[tuple[tuple[Class, ...], str, bool], ...] = (
    ((INT,), "+ - * / // % ** << >> & | ^", True),
    ((FLOAT,), "+ - * / // % **", True),
    ((SET, FROZENSET, KEYS, ITEMS), "- & | ^", True),
    ((DICT,), "|", True),
    ((STR, BYTES), "+ * %", False),
    ((LIST, TUPLE), "+ *", False),
)


def _operator(cls: Class, symbol: str, declines: bool) -> None:
    kind, accepted = _KINDS[cls], _WITH.get(cls, _SETS)
    name, apply = _ARITHMETIC[symbol], OPERATIONS[symbol]

    def forward(m: Machine, owner: Any, other: Any, /) -> Any:
        check_owner(m, owner, kind, f"__{name}__")
        if declines and not isinstance(other, accepted):
            return NotImplemented
        return apply(m, plain(m, owner), plain(m, other))

    def back(m: Machine, owner: Any, other: Any, /) -> Any:
        check_owner(m, owner, kind, f"__r{name}__")
        if declines and not isinstance(other, accepted):
            return NotImplemented
        return apply(m, plain(m, other), plain(m, owner))

    protocol(cls, f"__{name}__")(forward)
    if declines or symbol == "*":
        protocol(cls, f"__r{name}__")(back)


def _comparison(cls: Class, symbol: str) -> None:
    kind, accepted = _KINDS[cls], _WITH.get(cls, _SETS)
    name = COMPARISONS[symbol]

    def compared(m: Machine, owner: Any, other: Any, /) -> Any:
        check_owner(m, owner, kind, name)
        if not isinstance(other, accepted):
            return NotImplemented
        return compare(m, symbol, plain(m, owner), plain(m, other))

    protocol(cls, name)(compared)


for _classes, _symbols, _declines in _OF:
    for _cls in _classes:
        for _symbol in _symbols.split():
            _operator(_cls, _symbol, _declines)
for _cls in (*_WITH, KEYS, ITEMS):
    for _symbol in COMPARISONS:
        if _symbol in ("==", "!=") or _cls not in (DICT, RANGE):
            _comparison(_cls, _symbol)


# ---- numbers ------------------------------------------------------------------------------------

_UNARY: dict[str, Callable[[Any], Any]] = {
    "abs": abs,
    "neg": lambda number: -number,
    "pos": lambda number: +number,
    "bool": bool,
    "int": int,
    "float": float,
    "trunc": math.trunc,
    "floor": math.floor,
    "ceil": math.ceil,
    "invert": lambda number: ~number,
    "index": lambda number: number.__index__(),
}


def _unary(cls: Class, kind: Any, name: str, function: Callable[[Any], Any]) -> None:
    def call(m: Machine, number: Any, /) -> Any:
        check_owner(m, number, kind, f"__{name}__")
        return function(number_of(number))

    protocol(cls, f"__{name}__")(call)


for _name, _unary_function in _UNARY.items():
    _unary(INT, int, _name, _unary_function)
    if _name not in ("invert", "index"):
        _unary(FLOAT, float, _name, _unary_function)


@protocol(INT, "__round__")
@protocol(FLOAT, "__round__")
def _round(m: Machine, number: Any, /, *digits: Any) -> Any:
    check_owner(m, number, (int, float), "__round__")  # type: ignore[arg-type]
    return m.call(m.builtins["round"], (number_of(number), *digits), None)


@protocol(INT, "__divmod__")
@protocol(FLOAT, "__divmod__")
def _divmod(m: Machine, number: Any, other: Any, /) -> Any:
    if not isinstance(other, int | float):
        return NotImplemented
    return divmod(number_of(number), number_of(other))


# ---- hashes and text ----------------------------------------------------------------------------


def _hash_of(m: Machine, owner: Any, /) -> int:
    return stable_hash(m, plain(m, owner))


def _repr(m: Machine, owner: Any, /) -> str:
    return m.repr(plain(m, owner))


def _str(m: Machine, owner: Any, /) -> str:
    return m.str(plain(m, owner))


def _format(m: Machine, owner: Any, spec: Any, /) -> str:
    return m.format(plain(m, owner), spec)


for _cls in (INT, FLOAT, STR, BYTES, TUPLE, FROZENSET, RANGE):
    protocol(_cls, "__hash__")(_hash_of)
for _cls in (LIST, DICT, SET):
    _cls.extra["protocol"]["__hash__"] = None
for _cls in _WITH:
    protocol(_cls, "__repr__")(_repr)
protocol(STR, "__str__")(_str)
for _cls in (INT, FLOAT, STR):
    protocol(_cls, "__format__")(_format)


# ---- containers ---------------------------------------------------------------------------------

_SIZED = (STR, BYTES, LIST, TUPLE, DICT, SET, FROZENSET, RANGE, KEYS, VALUES, ITEMS)


def _sized(cls: Class, kind: Any) -> None:
    def length(m: Machine, owner: Any, /) -> Any:
        return call_host(m, kind.__len__, (owner,))

    def each(m: Machine, owner: Any, /) -> Any:
        check_owner(m, owner, kind, "__iter__")
        return iter(m.iterate(owner)) if cls in (SET, FROZENSET) else kind.__iter__(owner)

    def has(m: Machine, owner: Any, item: Any, /) -> bool:
        check_owner(m, owner, kind, "__contains__")
        if isinstance(owner, dict):
            m.check_key(item, dict.__len__(owner))
            return dict.__contains__(owner, item)
        return contains(m, plain(m, owner), item)

    protocol(cls, "__len__")(length)
    protocol(cls, "__iter__")(each)
    protocol(cls, "__contains__")(has)


for _cls in _SIZED:
    _sized(_cls, _KINDS[_cls])


@protocol(DICT, "__getitem__")
def _dict_item(m: Machine, owner: Any, key: Any, /) -> Any:
    check_owner(m, owner, dict, "__getitem__")
    m.check_key(key, dict.__len__(owner))
    if owner.__class__ in INSTANCES and not dict.__contains__(owner, key):
        method = owner.cls.find("__missing__")
        if method is not UNSET:
            return m.call(method, (owner, key), None)
    return call_host(m, dict.__getitem__, (owner, key))


@protocol(DICT, "__setitem__")
def _put_dict_item(m: Machine, owner: Any, key: Any, value: Any, /) -> None:
    check_owner(m, owner, dict, "__setitem__")
    m.check_key(key, dict.__len__(owner))
    m.charge(containers.DICT_ENTRY)
    call_host(m, dict.__setitem__, (owner, key, value))
    m.allow_length(dict.__len__(owner), "the dict")


@protocol(DICT, "__delitem__")
def _remove_dict_item(m: Machine, owner: Any, key: Any, /) -> None:
    check_owner(m, owner, dict, "__delitem__")
    m.check_key(key, dict.__len__(owner))
    call_host(m, dict.__delitem__, (owner, key))


@protocol(DICT, "__ior__")
def _dict_update(m: Machine, owner: Any, other: Any, /) -> Any:
    check_owner(m, owner, dict, "__ior__")
    containers.merge_pairs(m, owner, other)
    return owner


@protocol(LIST, "__getitem__")
@protocol(TUPLE, "__getitem__")
@protocol(STR, "__getitem__")
@protocol(BYTES, "__getitem__")
@protocol(RANGE, "__getitem__")
def _item(m: Machine, owner: Any, key: Any, /) -> Any:
    kind = next(
        (base for base in (list, tuple, str, bytes, range) if isinstance(owner, base)), None
    )
    if kind is None:
        check_owner(m, owner, list, "__getitem__")
    if key.__class__ is int and kind is not None:
        return kind.__getitem__(owner, key)
    return m.item(plain(m, owner), key)


@protocol(LIST, "__setitem__")
def _put_list_item(m: Machine, owner: Any, key: Any, value: Any, /) -> None:
    check_owner(m, owner, list, "__setitem__")
    containers._put_in_list(m, owner, key, value)


@protocol(LIST, "__delitem__")
def _remove_list_item(m: Machine, owner: Any, key: Any, /) -> None:
    check_owner(m, owner, list, "__delitem__")
    m.charge(list.__len__(owner) >> 5)
    if key.__class__ is slice:
        removed = set(range(*key.indices(list.__len__(owner))))
        m.allocate(8 * 2 * list.__len__(owner))
        remaining = [
            element for index, element in enumerate(list.__iter__(owner)) if index not in removed
        ]
        list.__setitem__(owner, slice(None), remaining)
    else:
        list.__delitem__(owner, m.index(key))


@protocol(LIST, "__iadd__")
def _extended(m: Machine, owner: Any, other: Any, /) -> Any:
    check_owner(m, owner, list, "__iadd__")
    return m.extend_list(owner, list(list.__iter__(owner)) if other is owner else other)


@protocol(LIST, "__reversed__")
@protocol(DICT, "__reversed__")
def _reversed(m: Machine, owner: Any, /) -> Any:
    check_owner(m, owner, (list, dict), "__reversed__")  # type: ignore[arg-type]
    if isinstance(owner, list):
        return list.__reversed__(owner)
    return lazily(m, "reversed", each(m, dict.__reversed__(owner)))


# ---- All classes --------------------------------------------------------------------------------

_NAMED = (
    *(OBJECT, TYPE, INT, BOOL, FLOAT, STR, BYTES, LIST, TUPLE, DICT, SET, FROZENSET, RANGE),
    *(SLICE, PROPERTY, STATIC, CLASS_METHOD, SUPER),
)


@cache
def table() -> dict[type, Class]:
    """Return the class of every builtin value, by the Python class that represents it."""
    return {
        **{cls.payload: cls for cls in _NAMED if cls is not OBJECT and cls.payload is not None},
        **{set: SET, frozenset: FROZENSET, KernelSet: SET, KernelFrozenSet: FROZENSET},
        **{DICT_KEYS: KEYS, DICT_VALUES: VALUES, DICT_ITEMS: ITEMS},
        **{type(None): NONE, type(...): ELLIPSIS, type(NotImplemented): NOT_IMPLEMENTED},
        **{Function: FUNCTION, Builtin: BUILTIN, HostFunction: HOST, Method: METHOD},
        **{Property: PROPERTY, StaticMethod: STATIC, ClassMethod: CLASS_METHOD, Super: SUPER},
        **{
            Generator: GENERATOR,
            LazyIterator: LAZY_ITERATOR,
            TypingForm: FORM,
            Union: UNION,
            Class: TYPE,
        },
        **ITERATORS,
    }


@cache
def by_name() -> dict[str, Class]:
    """Return the classes that are available by name without an import."""
    return {cls.name: cls for cls in _NAMED}


_ = functions  # imported for the special methods that it registers
