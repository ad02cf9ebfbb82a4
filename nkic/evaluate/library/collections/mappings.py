"""`collections.defaultdict`, `OrderedDict` and `ChainMap`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nkic.evaluate import attributes
from nkic.evaluate.containers import copy_dict, keyed
from nkic.evaluate.library.abcs import MUTABLE_MAPPING
from nkic.evaluate.library.support import is_instance_of, library_class, methods, repr_of
from nkic.evaluate.objects import Class, DictInstance, Getter
from nkic.evaluate.types.mappings import DICT

if TYPE_CHECKING:
    from nkic.evaluate.machine import Machine
    from nkic.evaluate.texts import Writer


def content(m: Machine, cls: Class, payload: type, args: Any, named: Any) -> Any:
    """Return the empty dict that represents a new object before its `__init__`."""
    return DictInstance()


def dict_class(name: str) -> Class:
    """Return a class whose objects are dicts."""
    cls = library_class(name, "collections", DICT, payload=dict)
    cls.extra |= {"content": content, "copied": True}
    return cls


def fill(m: Machine, owner: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Fill an object as `dict.__init__` does."""
    DICT.members["__init__"].call(m, owner, *args, **named)


def plain(m: Machine, owner: Any) -> dict[Any, Any]:
    """Return the entries as a plain dict."""
    return copy_dict(m, owner)


# ---- defaultdict --------------------------------------------------------------------------------

DEFAULT_DICT = dict_class("defaultdict")


@methods(DEFAULT_DICT, "__init__")
def _init(m: Machine, owner: Any, default_factory: Any = None, /, *args: Any, **named: Any) -> None:
    if default_factory is not None and not m.call(m.builtins["callable"], (default_factory,), None):
        raise TypeError("first argument must be callable or None")
    attributes.write_field(m, owner, "default_factory", default_factory)
    fill(m, owner, args, named)


DEFAULT_DICT.extra["slots"] = frozenset({"default_factory"})


@methods(DEFAULT_DICT, "__missing__")
def _missing(m: Machine, owner: Any, key: Any, /) -> Any:
    factory = owner.fields.get("default_factory")
    if factory is None:
        raise KeyError(key)
    value = m.call(factory, (), None)
    m.charge(25)
    m.check_key(key, dict.__len__(owner))
    m.allow_length(dict.__len__(owner) + 1, "the dict")
    dict.__setitem__(owner, key, value)
    return value


@methods(DEFAULT_DICT, "copy", "__copy__")
def _copy(m: Machine, owner: Any) -> Any:
    return m.call(owner.cls, (owner.fields.get("default_factory"), plain(m, owner)), None)


@methods(DEFAULT_DICT, "__or__")
def _or(m: Machine, owner: Any, other: Any, /) -> Any:
    return _union(m, _copy, owner, other)


def _union(m: Machine, copy: Callable[[Machine, Any], Any], owner: Any, other: Any) -> Any:
    """Return `owner | other`: a copy, merged with the other dict."""
    if not isinstance(other, dict):
        return NotImplemented
    merged = copy(m, owner)
    m.merge(merged, other)
    return merged


@repr_of(DEFAULT_DICT)
def _show(m: Machine, owner: Any, writer: Writer) -> None:
    writer.add("defaultdict(")
    writer.value(owner.fields.get("default_factory"))
    writer.add(", ")
    writer.container(plain(m, owner), "{", "}")
    writer.add(")")


# ---- OrderedDict --------------------------------------------------------------------------------

ORDERED_DICT = dict_class("OrderedDict")


@methods(ORDERED_DICT, "__init__")
def _ordered_init(m: Machine, owner: Any, /, *args: Any, **named: Any) -> None:
    fill(m, owner, args, named)


@methods(ORDERED_DICT, "move_to_end")
def _move_to_end(m: Machine, owner: Any, key: Any, last: Any = True) -> None:
    m.check_key(key, dict.__len__(owner))
    if not dict.__contains__(owner, key):
        raise KeyError(key)
    value = dict.pop(owner, key)
    if m.truth(last):
        dict.__setitem__(owner, key, value)
        return
    rest = plain(m, owner)
    dict.clear(owner)
    dict.__setitem__(owner, key, value)
    m.merge(owner, rest)


@methods(ORDERED_DICT, "popitem")
def _popitem(m: Machine, owner: Any, last: Any = True) -> Any:
    if not dict.__len__(owner):
        raise KeyError("dictionary is empty")
    if m.truth(last):
        return dict.popitem(owner)
    m.charge(dict.__len__(owner) >> 3)  # deleted entries before it are skipped
    key = next(dict.__iter__(owner))
    return key, dict.pop(owner, key)


@methods(ORDERED_DICT, "copy", "__copy__")
def _ordered_copy(m: Machine, owner: Any) -> Any:
    return m.call(owner.cls, (plain(m, owner),), None)


@methods(ORDERED_DICT, "__eq__")
def _ordered_eq(m: Machine, owner: Any, other: Any, /) -> Any:
    if not isinstance(other, dict):
        return NotImplemented
    left, right = plain(m, owner), plain(m, other)
    same = m.equal(left, right)
    if same and is_instance_of(other, ORDERED_DICT):
        return m.equal(list(left), list(right))
    return same


ORDERED_DICT.members["__hash__"] = None


@methods(ORDERED_DICT, "__or__")
def _ordered_or(m: Machine, owner: Any, other: Any, /) -> Any:
    return _union(m, _ordered_copy, owner, other)


@repr_of(ORDERED_DICT)
def _show_ordered(m: Machine, owner: Any, writer: Writer) -> None:
    writer.add(f"{owner.cls.name}(")
    if not dict.__len__(owner):
        writer.add(")")
        return
    if sys.version_info >= (3, 12):
        writer.container(plain(m, owner), "{", "}")
    else:
        writer.container(list(dict.items(owner)), "[", "]")
    writer.add(")")


# ---- ChainMap -----------------------------------------------------------------------------------

CHAIN_MAP = library_class("ChainMap", "collections", MUTABLE_MAPPING)


@methods(CHAIN_MAP, "__init__")
def _chain_init(m: Machine, owner: Any, /, *maps: Any) -> None:
    attributes.write_field(m, owner, "maps", list(maps) or [{}])


CHAIN_MAP.extra["slots"] = frozenset({"maps"})


def _maps(m: Machine, owner: Any) -> list[Any]:
    return m.to_list(owner.fields.get("maps", ()))


def _holder(m: Machine, owner: Any, key: Any) -> Any:
    return next((mapping for mapping in _maps(m, owner) if m.contains(mapping, key)), None)


@methods(CHAIN_MAP, "__getitem__")
def _chain_item(m: Machine, owner: Any, key: Any, /) -> Any:
    holder = _holder(m, owner, key)
    if holder is None:
        return m.call(m.attribute(owner, "__missing__"), (key,), None)
    return m.item(holder, key)


@methods(CHAIN_MAP, "__missing__")
def _chain_missing(m: Machine, owner: Any, key: Any, /) -> Any:
    raise KeyError(key)


@methods(CHAIN_MAP, "__contains__")
def _chain_has(m: Machine, owner: Any, key: Any, /) -> bool:
    return _holder(m, owner, key) is not None


@methods(CHAIN_MAP, "get")
def _chain_get(m: Machine, owner: Any, key: Any, default: Any = None) -> Any:
    holder = _holder(m, owner, key)
    return default if holder is None else m.item(holder, key)


def _all_keys(m: Machine, owner: Any) -> dict[Any, Any]:
    keys: dict[Any, Any] = {}
    for mapping in reversed(_maps(m, owner)):
        m.merge(keys, keyed(m, ((key, None) for key in m.iterate(mapping))))
    return keys


@methods(CHAIN_MAP, "__iter__")
def _chain_iter(m: Machine, owner: Any) -> Any:
    return iter(_all_keys(m, owner))


@methods(CHAIN_MAP, "__len__")
def _chain_len(m: Machine, owner: Any) -> int:
    return len(_all_keys(m, owner))


@methods(CHAIN_MAP, "__bool__")
def _chain_bool(m: Machine, owner: Any) -> bool:
    return any(m.truth(mapping) for mapping in _maps(m, owner))


def _first(m: Machine, owner: Any) -> Any:
    return m.item(owner.fields.get("maps"), 0)


@methods(CHAIN_MAP, "__setitem__")
def _chain_put(m: Machine, owner: Any, key: Any, value: Any, /) -> None:
    m.put_item(_first(m, owner), key, value)


@methods(CHAIN_MAP, "__delitem__")
def _chain_del(m: Machine, owner: Any, key: Any, /) -> None:
    if not m.contains(_first(m, owner), key):
        raise KeyError(f"Key not found in the first mapping: {m.repr(key)}")
    m.remove_item(_first(m, owner), key)


@methods(CHAIN_MAP, "new_child")
def _new_child(m: Machine, owner: Any, child: Any = None, /, **named: Any) -> Any:
    if child is None:
        first: Any = named
    else:
        first = child
        for key, value in named.items():
            m.put_item(first, key, value)
    return m.call(owner.cls, (first, *_maps(m, owner)), None)


@methods(CHAIN_MAP, "copy", "__copy__")
def _chain_copy(m: Machine, owner: Any) -> Any:
    maps = _maps(m, owner)
    first = m.call(m.attribute(maps[0], "copy"), (), None)
    return m.call(owner.cls, (first, *maps[1:]), None)


def _parents(m: Machine, owner: Any) -> Any:
    return m.call(owner.cls, tuple(_maps(m, owner)[1:]), None)


CHAIN_MAP.members["parents"] = Getter("parents", _parents)


@repr_of(CHAIN_MAP)
def _show_chain(m: Machine, owner: Any, writer: Writer) -> None:
    writer.named(owner.cls.name, [("", mapping) for mapping in _maps(m, owner)])
