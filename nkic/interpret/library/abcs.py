"""`collections.abc`: classes for which `isinstance` tests what a value supports; and `abc`.

Kernels may inherit from them. `Mapping` and `Sequence` provide the methods that Python derives from
the abstract ones; the other classes provide none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nkic.interpret import classes
from nkic.interpret.containers import DICT_ITEMS, DICT_KEYS, DICT_VALUES, keyed
from nkic.interpret.library.support import checked_methods
from nkic.interpret.objects import (
    INSTANCES,
    UNSET,
    Builtin,
    Class,
    ClassMethod,
    Function,
    Generator,
    Instance,
    LazyIterator,
    Property,
    StaticMethod,
)
from nkic.interpret.tables import OBJECT
from nkic.interpret.types.functions import is_callable

if TYPE_CHECKING:
    from nkic.interpret.machine import Machine

_SETS = (set, frozenset)
_SEQUENCES = (list, tuple, str, bytes, range)
_SIZED = (*_SEQUENCES, *_SETS, dict, DICT_KEYS, DICT_VALUES, DICT_ITEMS)
_LAZY = (LazyIterator, Generator)
MODULE: dict[str, Class] = {}


def _accepting(kinds: tuple[type, ...], methods: tuple[str, ...]) -> Callable[[Any, Any], bool]:
    def accepts(m: Machine, value: Any) -> bool:
        if value.__class__ not in INSTANCES:
            return isinstance(value, kinds)
        if isinstance(value, kinds) and value.__class__ is not Instance:
            return True
        return _defines(value.cls, methods)

    return accepts


def _defines(cls: Class, methods: tuple[str, ...]) -> bool:
    """Whether the class has all methods, and there is at least one."""
    return bool(methods) and all(cls.find(name) not in (UNSET, None) for name in methods)


def _abc(name: str, kinds: tuple[type, ...], methods: str = "", *bases: str) -> Class:
    parents = tuple(MODULE[base] for base in bases) or (OBJECT,)
    new_class = Class(
        name, parents, {}, payload=Instance, make=classes.construct, module="collections.abc"
    )
    names = tuple(f"__{word}__" for word in methods.split())
    new_class.extra |= {"inheritable": True, "accepts": _accepting(kinds, names)}
    new_class.extra["accepts_class"] = _accepting_class(kinds, names)
    new_class.extra["item"] = lambda m, cls, key: cls
    MODULE[name] = new_class
    return new_class


def _accepting_class(
    kinds: tuple[type, ...], methods: tuple[str, ...]
) -> Callable[[Any, Class], bool]:
    """Return the test for `issubclass`, such as `issubclass(list, Sequence)`."""

    def accepts(m: Machine, cls: Class) -> bool:
        payload = cls.payload
        if payload is not None and payload is not Instance and issubclass(payload, kinds or ()):
            return True
        return _defines(cls, methods)

    return accepts


def _is_iterator(m: Machine, value: Any) -> bool:
    if value.__class__ in INSTANCES:
        return value.cls.find("__next__") is not UNSET and value.cls.find("__iter__") is not UNSET
    return isinstance(value, _LAZY) or _is_host_iterator(value)


def _is_host_iterator(value: Any) -> bool:
    return value.__class__.__name__.endswith("iterator") and hasattr(value, "__next__")


def _is_iterable(m: Machine, value: Any) -> bool:
    if value.__class__ in INSTANCES and value.__class__ is Instance:
        return value.cls.find("__iter__") is not UNSET
    return isinstance(value, (*_SIZED, *_LAZY)) or _is_iterator(m, value)


def _is_hashable(m: Machine, value: Any) -> bool:
    if value.__class__ in INSTANCES:
        method = value.cls.find("__hash__")
        if method is not UNSET:
            return method is not None
        return not isinstance(value, list | dict | set)
    return not isinstance(value, list | dict | set | DICT_KEYS | DICT_ITEMS)


_abc("Hashable", (), "hash").extra["accepts"] = _is_hashable
_abc("Iterable", (), "iter").extra["accepts"] = _is_iterable
_abc("Iterator", (), "next iter", "Iterable").extra["accepts"] = _is_iterator
_abc(
    "Reversible",
    (list, tuple, str, bytes, range, dict, DICT_KEYS, DICT_VALUES, DICT_ITEMS),
    "reversed iter",
    "Iterable",
)
_abc("Generator", (Generator,), "", "Iterator")
_abc("Sized", _SIZED, "len")
_abc("Container", _SIZED, "contains")
_abc("Callable", (), "call").extra["accepts"] = is_callable
_abc("Collection", _SIZED, "len iter contains", "Sized", "Iterable", "Container")
SEQUENCE = _abc("Sequence", _SEQUENCES, "", "Reversible", "Collection")
MUTABLE_SEQUENCE = _abc("MutableSequence", (list,), "", "Sequence")
_abc("ByteString", (bytes,), "", "Sequence")
_abc("Set", (*_SETS, DICT_KEYS, DICT_ITEMS), "", "Collection")
_abc("MutableSet", (set,), "", "Set")
MAPPING = _abc("Mapping", (dict,), "", "Collection")
MUTABLE_MAPPING = _abc("MutableMapping", (dict,), "", "Mapping")
_abc("MappingView", (DICT_KEYS, DICT_VALUES, DICT_ITEMS), "", "Sized")
_abc("KeysView", (DICT_KEYS,), "", "MappingView", "Set")
_abc("ItemsView", (DICT_ITEMS,), "", "MappingView", "Set")
_abc("ValuesView", (DICT_VALUES,), "", "MappingView", "Collection")
for _name in ("Awaitable", "Coroutine", "AsyncIterable", "AsyncIterator", "AsyncGenerator"):
    _abc(_name, ())
_abc("Buffer", (bytes,))


# ---- mixin methods of Mapping and Sequence ------------------------------------------------------


_NO_DEFAULT = object()


def _item_or_default(m: Machine, owner: Any, key: Any, default: Any) -> Any:
    try:
        return m.item(owner, key)
    except Exception as error:
        if _is_key_error(m, error):
            return default
        raise


def _is_key_error(m: Machine, error: Exception) -> bool:
    cls = getattr(error, "cls", None)
    if isinstance(cls, Class):
        return cls.is_a(m.builtins["KeyError"])
    return isinstance(error, KeyError)


def _as_dict(m: Machine, value: Any) -> dict[Any, Any]:
    return keyed(m, ((key, m.item(value, key)) for key in m.to_list(value)))


def _eq(m: Machine, owner: Any, other: Any) -> Any:
    if not isinstance(other, dict) and not m.class_of(other).is_a(MAPPING):
        return NotImplemented
    return m.equal(_as_dict(m, owner), _as_dict(m, other))


def _setdefault(m: Machine, owner: Any, key: Any, default: Any = None) -> Any:
    value = _item_or_default(m, owner, key, _NO_DEFAULT)
    if value is not _NO_DEFAULT:
        return value
    m.put_item(owner, key, default)
    return default


def _update(m: Machine, owner: Any, other: Any = (), /, **named: Any) -> None:
    entries: dict[Any, Any] = {}
    m.call(m.builtins["dict"].members["update"], (entries, other), named)
    for key, value in entries.items():
        m.put_item(owner, key, value)


def _pop(m: Machine, owner: Any, key: Any, default: Any = _NO_DEFAULT) -> Any:
    value = _item_or_default(m, owner, key, _NO_DEFAULT)
    if value is _NO_DEFAULT:
        if default is _NO_DEFAULT:
            raise KeyError(key)
        return default
    m.remove_item(owner, key)
    return value


def _each(m: Machine, owner: Any) -> Any:
    for index in range(m.length(owner)):
        m.charge(1)
        yield m.item(owner, index)


def _index(m: Machine, owner: Any, value: Any) -> int:
    for index, element in enumerate(m.iterate(owner)):
        if m.equal(element, value):
            return index
    raise ValueError


def _append(m: Machine, owner: Any, value: Any) -> None:
    m.call(m.attribute(owner, "insert"), (m.length(owner), value), None)


def _extend(m: Machine, owner: Any, values: Any) -> None:
    for value in m.to_list(values):
        m.call(m.attribute(owner, "append"), (value,), None)


_MIXED_IN: dict[Class, dict[str, Callable[..., Any]]] = {
    MAPPING: {
        "get": lambda m, owner, key, default=None: _item_or_default(m, owner, key, default),
        "__contains__": lambda m, owner, key: (
            _item_or_default(m, owner, key, _NO_DEFAULT) is not _NO_DEFAULT
        ),
        "keys": lambda m, owner: keyed(m, ((key, None) for key in m.iterate(owner))).keys(),
        "values": lambda m, owner: {
            n: m.item(owner, key) for n, key in enumerate(m.to_list(owner))
        }.values(),
        "items": lambda m, owner: _as_dict(m, owner).items(),
        "__eq__": _eq,
    },
    MUTABLE_MAPPING: {"setdefault": _setdefault, "update": _update, "pop": _pop},
    SEQUENCE: {
        "__iter__": lambda m, owner: LazyIterator(m, "generator", _each(m, owner)),
        "__reversed__": lambda m, owner: LazyIterator(
            m, "generator", (m.item(owner, n) for n in reversed(range(m.length(owner))))
        ),
        "__contains__": lambda m, owner, value: any(
            m.equal(element, value) for element in m.iterate(owner)
        ),
        "index": _index,
        "count": lambda m, owner, value: sum(
            m.equal(element, value) for element in m.iterate(owner)
        ),
    },
    MUTABLE_SEQUENCE: {"append": _append, "extend": _extend},
}
for _cls, _functions in _MIXED_IN.items():
    checked_methods(_cls, _functions)


# ---- abc ----------------------------------------------------------------------------------------


def _abstractmethod(m: Machine, funcobj: Any, /) -> Any:
    """Mark a function as abstract; a class with such a member cannot be instantiated."""
    function: Any = funcobj
    if isinstance(function, Property):
        function = function.fget
    elif isinstance(function, StaticMethod | ClassMethod):
        function = function.function
    if isinstance(function, Function):
        function.attributes = {**(function.attributes or {}), "__isabstractmethod__": True}
    return funcobj


MANAGER = _abc("AbstractContextManager", (), "enter exit")
MODULE.pop("AbstractContextManager")  # it belongs to `contextlib`
ABC = Class("ABC", (OBJECT,), {}, payload=Instance, make=classes.construct, module="abc")
ABC.extra["inheritable"] = True
ABC_MODULE: dict[str, Any] = {
    "ABC": ABC,
    "ABCMeta": classes.TypingForm("ABCMeta"),
    "abstractmethod": Builtin("abstractmethod", _abstractmethod),
}
