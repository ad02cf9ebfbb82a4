"""`object`, and the special methods that every object has if they are looked up by name.

The tables of classes omit the special methods that Python defines for every object: the interpreter
treats a class without `__eq__` as one that compares by identity. Kernels may still call
`super().__init__()` or `object.__setattr__(self, name, value)`; a second table,
`extra["protocol"]`, serves as the fallback of attribute access for these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nkic.evaluate import attributes, classes
from nkic.evaluate.objects import (
    INSTANCES,
    UNSET,
    Builtin,
    Class,
    ClassMethod,
    ErrorInstance,
    Function,
    Getter,
    Instance,
)
from nkic.evaluate.tables import OBJECT
from nkic.evaluate.texts import full_name
from nkic.evaluate.types.shared import constructor, inheritable

if TYPE_CHECKING:
    from nkic.evaluate.machine import Machine

_Function = Callable[..., Any]


def protocol(cls: Class, *special: str, static: bool = False) -> Callable[[_Function], _Function]:
    """Register a function `(m, owner, …)` in the second table of a class."""

    def add(function: _Function) -> _Function:
        table = cls.extra.setdefault("protocol", {})
        for name in special:
            table[name] = Builtin(f"{cls.name}.{name}", function, static=static)
        return function

    return add


@constructor(OBJECT)
def _make(m: Machine, cls: Class, /, *args: Any, **named: Any) -> Instance:
    if args or named:
        raise TypeError(f"{cls.name}() takes no arguments")
    return classes.blank(m, cls)  # type: ignore[no-any-return]


@inheritable(OBJECT)
def _content(m: Machine, cls: Class, payload: type, args: Any, named: Any) -> Instance:
    return Instance()


OBJECT.members["__class__"] = Getter("__class__", lambda m, owner: m.class_of(owner))
OBJECT.members["__doc__"] = Getter("__doc__", lambda m, owner: None)
OBJECT.members["__module__"] = Getter("__module__", lambda m, owner: m.class_of(owner).module)


# ---- creation -----------------------------------------------------------------------------------


@protocol(OBJECT, "__new__", static=True)
def _new(m: Machine, cls: Any, /, *args: Any, **named: Any) -> Any:
    """Return a new object without calling `__init__`, as `object.__new__` and `int.__new__` do."""
    if not isinstance(cls, Class):
        kind = m.class_of(cls).name
        raise TypeError(f"object.__new__(X): X is not a type object ({kind})")
    if cls.machine is None:
        return cls.make(m, cls, *args, **named)
    if cls.extra.get("abstract"):
        raise classes._cannot_make(cls)
    if cls.payload is Instance and (args or named) and _takes_none(cls):
        raise TypeError("object.__new__() takes exactly one argument (the type to instantiate)")
    return classes.blank(m, cls, args, named)


def _takes_none(cls: Class) -> bool:
    return cls.find("__new__") is not UNSET or cls.find("__init__") is UNSET


@protocol(OBJECT, "__init__")
def _init(m: Machine, owner: Any, /, *args: Any, **named: Any) -> None:
    cls = m.class_of(owner)
    if (args or named) and cls.payload is Instance:
        text = "object.__init__() takes exactly one argument (the instance to initialize)"
        raise TypeError(text)


def _init_subclass(m: Machine, cls: Class, /, **named: Any) -> None:
    if named:
        raise TypeError(f"{cls.name}.__init_subclass__() takes no keyword arguments")


OBJECT.extra["protocol"]["__init_subclass__"] = ClassMethod(
    Builtin("object.__init_subclass__", _init_subclass)
)


# ---- attributes ---------------------------------------------------------------------------------


@protocol(OBJECT, "__setattr__")
def _setattr(m: Machine, owner: Any, name: Any, value: Any, /) -> None:
    _check_field(m, owner, name, "__setattr__")
    attributes.put_field(m, owner, name, value)


@protocol(OBJECT, "__delattr__")
def _delattr(m: Machine, owner: Any, name: Any, /) -> None:
    _check_field(m, owner, name, "__delattr__")
    member = owner.cls.find(name)
    if name in owner.fields and not attributes._is_data_descriptor(member):
        attributes.remove_field(m, owner, name)
    elif member.__class__ is Function or member is UNSET:
        raise attributes.missing(m, owner, name)
    else:
        raise AttributeError(f"'{owner.cls.name}' object attribute '{name}' is read-only")


def _check_field(m: Machine, owner: Any, name: Any, method: str) -> None:
    if owner.__class__ not in INSTANCES:
        raise attributes._not_assignable(m, owner, str(name))
    attribute_name(m, name)
    if name.startswith("__") and name.endswith("__"):
        raise attributes._not_assignable(m, owner, name)


def attribute_name(m: Machine, name: Any) -> str:
    """Return a computed attribute name. Raises `TypeError` if it is not a string."""
    if not isinstance(name, str):
        raise TypeError(f"attribute name must be string, not '{m.class_of(name).name}'")
    m.charge(len(name) >> 4)
    return str.__str__(name)


@protocol(OBJECT, "__getattribute__")
def _getattribute(m: Machine, owner: Any, name: Any, /) -> Any:
    return attributes.get(m, owner, attribute_name(m, name))


# ---- comparison and text ------------------------------------------------------------------------


@protocol(OBJECT, "__eq__")
def _eq(m: Machine, owner: Any, other: Any, /) -> Any:
    return True if owner is other else NotImplemented


@protocol(OBJECT, "__ne__")
def _ne(m: Machine, owner: Any, other: Any, /) -> Any:
    method = m.class_of(owner).find("__eq__")
    if method is UNSET or method is None:
        return False if owner is other else NotImplemented
    result = m.call(method, (owner, other), None)
    return result if result is NotImplemented else not m.truth(result)


@protocol(OBJECT, "__lt__", "__le__", "__gt__", "__ge__")
def _order(m: Machine, owner: Any, other: Any, /) -> Any:
    return NotImplemented


@protocol(OBJECT, "__hash__")
def _hash(m: Machine, owner: Any, /) -> int:
    if owner.__class__ in (Instance, ErrorInstance):
        return int(owner.serial)
    return m.call(m.builtins["hash"], (owner,), None)  # type: ignore[no-any-return]


@protocol(OBJECT, "__repr__")
def _repr(m: Machine, owner: Any, /) -> str:
    if owner.__class__ is Instance:
        return f"<{full_name(owner.cls)} object>"
    return m.repr(owner)


@protocol(OBJECT, "__str__")
def _str(m: Machine, owner: Any, /) -> str:
    return m.repr(owner)


@protocol(OBJECT, "__format__")
def _format(m: Machine, owner: Any, spec: Any, /) -> str:
    if not isinstance(spec, str):
        raise TypeError(f"__format__() argument must be str, not {m.class_of(spec).name}")
    if spec:
        kind = m.class_of(owner).name
        raise TypeError(f"unsupported format string passed to {kind}.__format__")
    return m.str(owner)
