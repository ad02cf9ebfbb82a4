"""`set` and `frozenset`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nkic.evaluate import containers
from nkic.evaluate.objects import Builtin, Class
from nkic.evaluate.sets import KernelFrozenSet, KernelSet
from nkic.evaluate.tables import builtin_class, method
from nkic.evaluate.types.shared import call_host, check_call, check_owner, constructor, host_method

if TYPE_CHECKING:
    from nkic.evaluate.machine import Machine

SET = builtin_class("set", KernelSet)
FROZENSET = builtin_class("frozenset", KernelFrozenSet)
_SET_TYPES = ((SET, set), (FROZENSET, frozenset))
_ENTRY_STEPS = 10  # steps for an element that may be new
_SORT_STEPS = 48  # steps per element for sorting the set to find its first element
_NUMBERS = (int, float)


@constructor(SET)
def make_set(m: Machine, cls: Class, /, *args: Any, **named: Any) -> KernelSet:
    """Return `set(values)`."""
    check_call("set", args, named, 0, 1)
    return containers.make_set(m, args[0] if args else ())


@constructor(FROZENSET)
def make_frozenset(m: Machine, cls: Class, /, *args: Any, **named: Any) -> KernelFrozenSet:
    """Return `frozenset(values)`."""
    check_call("frozenset", args, named, 0, 1)
    if args and args[0].__class__ is KernelFrozenSet:
        return args[0]
    return containers.make_frozenset(m, args[0] if args else ())


def _same_type(owner: Any, values: Any) -> Any:
    """Return a set of the same type as `owner`."""
    return KernelSet(values) if isinstance(owner, set) else KernelFrozenSet(values)


def _unordered(values: Any) -> Any:
    """Iterate over the elements in hash order, if the order does not matter."""
    return (set if isinstance(values, set) else frozenset).__iter__(values)


# ---- methods of both ----------------------------------------------------------------------------


def _copy(m: Machine, owner: Any, /) -> Any:
    m.allocate(8 * 3 * len(owner))
    return _same_type(owner, _unordered(owner)) if isinstance(owner, set) else owner


def _union(m: Machine, owner: Any, /, *others: Any) -> Any:
    m.allocate(8 * 3 * len(owner))
    elements = KernelSet(_unordered(owner))
    for other in others:
        containers.add_all(m, elements, _unordered_or_same(m, other))
    return elements if isinstance(owner, set) else KernelFrozenSet(_unordered(elements))


def _unordered_or_same(m: Machine, other: Any) -> Any:
    return list(_unordered(other)) if isinstance(other, set | frozenset) else other


def _intersection(m: Machine, owner: Any, /, *others: Any) -> Any:
    m.allocate(8 * 3 * len(owner))
    elements: Any = set(_unordered(owner))
    for other in others:
        other_set = containers.as_set(m, other)
        elements = set.intersection(elements, other_set)
    return _same_type(owner, elements)


def _difference(m: Machine, owner: Any, /, *others: Any) -> Any:
    m.allocate(8 * 3 * len(owner))
    elements = set(_unordered(owner))
    for other in others:
        set.difference_update(elements, containers.as_set(m, other))
    return _same_type(owner, elements)


def _symmetric_difference(m: Machine, owner: Any, other: Any, /) -> Any:
    other_set = containers.as_set(m, other)
    m.allocate(8 * 3 * (len(owner) + len(other_set)))
    return _same_type(
        owner, set.symmetric_difference(set(_unordered(owner)), set(_unordered(other_set)))
    )


def _issubset(m: Machine, owner: Any, other: Any, /) -> bool:
    other_set = containers.as_set(m, other)
    m.charge(len(owner))
    return len(owner) <= len(other_set) and all(
        element in other_set for element in _unordered(owner)
    )


def _issuperset(m: Machine, owner: Any, other: Any, /) -> bool:
    other_set = containers.as_set(m, other)
    return len(other_set) <= len(owner) and all(
        element in owner for element in _unordered(other_set)
    )


def _isdisjoint(m: Machine, owner: Any, other: Any, /) -> bool:
    other_set = containers.as_set(m, other)
    m.charge(len(other_set))
    return not any(element in owner for element in _unordered(other_set))


def _add(name: str, function: Callable[..., Any]) -> None:
    """Register a function as a method of both set types."""
    for cls, kind in _SET_TYPES:
        cls.members[name] = Builtin(f"{cls.name}.{name}", _checked(kind, name, function))


def _checked(kind: type, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(m: Machine, owner: Any, /, *args: Any) -> Any:
        check_owner(m, owner, kind, name)
        return function(m, owner, *args)

    return call


for _name, _function in (
    ("copy", _copy),
    ("union", _union),
    ("intersection", _intersection),
    ("difference", _difference),
    ("symmetric_difference", _symmetric_difference),
    ("issubset", _issubset),
    ("issuperset", _issuperset),
    ("isdisjoint", _isdisjoint),
):
    _function.__qualname__ = f"set.{_name}"
    _add(_name, _function)


# ---- methods that modify a set ------------------------------------------------------------------


@method(SET, "add")
def _add_one(m: Machine, owner: Any, item: Any, /) -> None:
    check_owner(m, owner, set, "add")
    m.charge(_ENTRY_STEPS)
    m.check_key(item, len(owner))
    call_host(m, set.add, (owner, item))
    m.allow_length(len(owner), "the set")


def _charge_lookup(m: Machine, owner: Any, args: Any) -> None:
    for item in args:
        m.check_key(item, len(owner))


host_method(SET, set, "discard", _charge_lookup)
host_method(SET, set, "remove", _charge_lookup)


@method(SET, "pop")
def _pop(m: Machine, owner: Any, /) -> Any:
    check_owner(m, owner, set, "pop")
    m.charge(1 + 2 * len(owner))
    if not all(isinstance(value, _NUMBERS) for value in _unordered(owner)):
        m.charge(_SORT_STEPS * len(owner))  # they are sorted by their text
    return KernelSet.pop(owner)


host_method(SET, set, "clear", lambda m, owner, args: m.charge(len(owner) >> 1))


@method(SET, "update")
def _update(m: Machine, owner: Any, /, *others: Any) -> None:
    check_owner(m, owner, set, "update")
    for other in others:
        containers.add_all(m, owner, _unordered_or_same(m, other))


def _replace_elements(m: Machine, owner: Any, elements: Any) -> None:
    set.clear(owner)
    set.update(owner, _unordered(elements))


@method(SET, "intersection_update")
def _intersection_update(m: Machine, owner: Any, /, *others: Any) -> None:
    check_owner(m, owner, set, "intersection_update")
    _replace_elements(m, owner, _intersection(m, owner, *others))


@method(SET, "difference_update")
def _difference_update(m: Machine, owner: Any, /, *others: Any) -> None:
    check_owner(m, owner, set, "difference_update")
    for other in others:
        set.difference_update(owner, containers.as_set(m, other))


@method(SET, "symmetric_difference_update")
def _symmetric_difference_update(m: Machine, owner: Any, other: Any, /) -> None:
    check_owner(m, owner, set, "symmetric_difference_update")
    _replace_elements(m, owner, _symmetric_difference(m, owner, other))
