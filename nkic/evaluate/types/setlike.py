"""`set` and `frozenset`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nkic.evaluate import containers
from nkic.evaluate.objects import Builtin, Class
from nkic.evaluate.sets import KernelFrozenSet, KernelSet, ordered, unordered
from nkic.evaluate.tables import builtin_class, method
from nkic.evaluate.types.shared import call_host, check_call, check_owner, constructor, host_method

if TYPE_CHECKING:
    from nkic.evaluate.machine import Machine

SET = builtin_class("set", KernelSet)
FROZENSET = builtin_class("frozenset", KernelFrozenSet)
_SET_TYPES = ((SET, set), (FROZENSET, frozenset))


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


# ---- methods of both ----------------------------------------------------------------------------


def _copy(m: Machine, owner: Any, /) -> Any:
    return containers.copy_set(m, owner) if isinstance(owner, set) else owner


def _union(m: Machine, owner: Any, /, *others: Any) -> Any:
    elements = containers.copy_set(m, owner)
    for other in others:
        containers.add_all(m, elements, other)
    return elements if isinstance(owner, set) else KernelFrozenSet(unordered(elements))


def _intersection(m: Machine, owner: Any, /, *others: Any) -> Any:
    elements: set[Any] = containers.copy_set(m, owner)
    for other in others:
        other_set = containers.as_set(m, other, len(elements))
        m.check_keys(elements, len(other_set))
        set.intersection_update(elements, other_set)
    return _same_type(owner, unordered(elements))


def _difference(m: Machine, owner: Any, /, *others: Any) -> Any:
    elements = containers.copy_set(m, owner)
    for other in others:
        set.difference_update(elements, containers.as_set(m, other, len(elements)))
    return _same_type(owner, unordered(elements))


def _symmetric_difference(m: Machine, owner: Any, other: Any, /) -> Any:
    elements = containers.copy_set(m, owner)
    other_set = containers.as_set(m, other, len(elements))
    m.allocate(8 * 3 * len(other_set))
    set.symmetric_difference_update(elements, other_set)
    return _same_type(owner, unordered(elements))


def _issubset(m: Machine, owner: Any, other: Any, /) -> bool:
    other_set = containers.as_set(m, other, 0)
    m.check_keys(owner, len(other_set))
    return len(owner) <= len(other_set) and all(
        element in other_set for element in unordered(owner)
    )


def _issuperset(m: Machine, owner: Any, other: Any, /) -> bool:
    other_set = containers.as_set(m, other, len(owner))
    return len(other_set) <= len(owner) and all(
        element in owner for element in unordered(other_set)
    )


def _isdisjoint(m: Machine, owner: Any, other: Any, /) -> bool:
    other_set = containers.as_set(m, other, len(owner))
    return not any(element in owner for element in unordered(other_set))


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
    call_host(m, containers.add, (m, owner, item))


def _charge_lookup(m: Machine, owner: Any, args: Any) -> None:
    for item in args:
        m.check_key(item, len(owner))


host_method(SET, set, "discard", _charge_lookup)
host_method(SET, set, "remove", _charge_lookup)


@method(SET, "pop")
def _pop(m: Machine, owner: Any, /) -> Any:
    check_owner(m, owner, set, "pop")
    m.charge(len(owner))
    if not owner:
        raise KeyError("pop from an empty set")
    first = ordered(m, owner)[0]
    m.check_key(first, len(owner))
    set.discard(owner, first)
    return first


host_method(SET, set, "clear", lambda m, owner, args: m.charge(len(owner) >> 1))


@method(SET, "update")
def _update(m: Machine, owner: Any, /, *others: Any) -> None:
    check_owner(m, owner, set, "update")
    for other in others:
        containers.add_all(m, owner, other)


def _replace_elements(m: Machine, owner: Any, elements: Any) -> None:
    set.clear(owner)
    set.update(owner, unordered(elements))


@method(SET, "intersection_update")
def _intersection_update(m: Machine, owner: Any, /, *others: Any) -> None:
    check_owner(m, owner, set, "intersection_update")
    _replace_elements(m, owner, _intersection(m, owner, *others))


@method(SET, "difference_update")
def _difference_update(m: Machine, owner: Any, /, *others: Any) -> None:
    check_owner(m, owner, set, "difference_update")
    for other in others:
        set.difference_update(owner, containers.as_set(m, other, len(owner)))


@method(SET, "symmetric_difference_update")
def _symmetric_difference_update(m: Machine, owner: Any, other: Any, /) -> None:
    check_owner(m, owner, set, "symmetric_difference_update")
    _replace_elements(m, owner, _symmetric_difference(m, owner, other))
