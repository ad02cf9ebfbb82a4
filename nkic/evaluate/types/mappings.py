"""`dict` and its views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nkic.evaluate import containers
from nkic.evaluate.iteration import DICT_ITEMS, DICT_KEYS, DICT_VALUES
from nkic.evaluate.objects import Builtin, Class, DictInstance
from nkic.evaluate.tables import builtin_class, method
from nkic.evaluate.types.shared import (
    call_host,
    check_arity,
    check_owner,
    class_method,
    constructor,
    host_method,
    inheritable,
    no_extra_cost,
)

if TYPE_CHECKING:
    from nkic.evaluate.machine import Machine

DICT = builtin_class("dict", dict)
KEYS = builtin_class("dict_keys", DICT_KEYS)
VALUES = builtin_class("dict_values", DICT_VALUES)
ITEMS = builtin_class("dict_items", DICT_ITEMS)


# ---- creation -----------------------------------------------------------------------------------


@constructor(DICT)
def make_dict(m: Machine, cls: Class, /, *args: Any, **named: Any) -> dict[Any, Any]:
    """Return `dict(pairs, **named)`."""
    entries: dict[Any, Any] = {}
    _fill(m, entries, "dict", args, named)
    return entries


def _fill(m: Machine, entries: dict[Any, Any], name: str, args: Any, named: Any) -> None:
    check_arity(name, args, 0, 1)
    if args:
        containers.merge_pairs(m, entries, args[0])
    if named:
        containers.merge(m, entries, named)


@inheritable(DICT)
def _content(m: Machine, cls: Class, payload: type, args: Any, named: Any) -> Any:
    return DictInstance()


def _init(m: Machine, owner: Any, /, *args: Any, **named: Any) -> None:
    check_owner(m, owner, dict, "__init__")
    _fill(m, owner, "dict", args, named)


DICT.members["__init__"] = Builtin("dict.__init__", _init)


@class_method(DICT, "fromkeys")
def _fromkeys(m: Machine, cls: Class, iterable: Any, value: Any = None, /) -> Any:
    entries: Any = {} if cls is DICT else m.call(cls, (), None)
    for key in m.iterate(iterable):
        m.put_item(entries, key, value)
        m.charge(2)
    return entries


# ---- methods ------------------------------------------------------------------------------------


def _charge_lookup(m: Machine, owner: Any, key: Any, name: str) -> None:
    check_owner(m, owner, dict, name)
    m.check_key(key, dict.__len__(owner))


@method(DICT, "get")
def _get(m: Machine, owner: Any, key: Any, default: Any = None, /) -> Any:
    _charge_lookup(m, owner, key, "get")
    return call_host(m, dict.get, (owner, key, default))


@method(DICT, "setdefault")
def _setdefault(m: Machine, owner: Any, key: Any, default: Any = None, /) -> Any:
    _charge_lookup(m, owner, key, "setdefault")
    m.charge(containers.DICT_ENTRY)
    m.allow_length(dict.__len__(owner) + 1, "the dict")
    return call_host(m, dict.setdefault, (owner, key, default))


@method(DICT, "pop")
def _pop(m: Machine, owner: Any, key: Any, /, *default: Any) -> Any:
    _charge_lookup(m, owner, key, "pop")
    return call_host(m, dict.pop, (owner, key, *default))


@method(DICT, "update")
def _update(m: Machine, owner: Any, /, *args: Any, **named: Any) -> None:
    check_owner(m, owner, dict, "update")
    _fill(m, owner, "update", args, named)


def _charge_length(m: Machine, owner: Any, args: Any) -> None:
    m.charge(dict.__len__(owner) >> 1)


# `popitem` skips deleted entries at the end; Python keeps no count of them.
host_method(DICT, dict, "popitem", no_extra_cost)
host_method(DICT, dict, "clear", _charge_length)
host_method(DICT, dict, "keys", no_extra_cost)
host_method(DICT, dict, "values", no_extra_cost)
host_method(DICT, dict, "items", no_extra_cost)


@method(DICT, "copy")
def _copy(m: Machine, owner: Any, /) -> dict[Any, Any]:
    check_owner(m, owner, dict, "copy")
    return containers.copy_dict(m, owner)


# ---- views --------------------------------------------------------------------------------------


def _isdisjoint(cls: Class) -> None:
    def isdisjoint(m: Machine, view: Any, other: Any, /) -> bool:
        check_owner(m, view, cls.payload, "isdisjoint")
        return not any(m.contains(view, element) for element in m.iterate(other))

    cls.members["isdisjoint"] = Builtin(f"{cls.name}.isdisjoint", isdisjoint)


_isdisjoint(KEYS)
_isdisjoint(ITEMS)
