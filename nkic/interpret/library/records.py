"""Classes whose annotated names are their fields: the base class that NKI calls `NKIObject`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nkic.base.device import KernelError
from nkic.base.diagnostics import did_you_mean
from nkic.interpret import attributes, classes
from nkic.interpret.compare import equal, stable_hash
from nkic.interpret.library.support import check_owner, representation
from nkic.interpret.objects import (
    INSTANCES,
    UNSET,
    Builtin,
    Class,
    ClassMethod,
    Function,
    Getter,
    Instance,
    Property,
    StaticMethod,
)
from nkic.interpret.tables import OBJECT

if TYPE_CHECKING:
    from nkic.interpret.machine import Machine
    from nkic.interpret.texts import Writer

_NOT_FIELDS = (Function, Class, StaticMethod, ClassMethod, Property, Builtin, Getter)


def field_class() -> Class:
    """Return `NKIObject`, a base class whose subclasses declare the fields of their objects.

    A class without `__init__` gets one that assigns its fields and calls `__post_init__`; a field
    without a default may be omitted and is then None. A plain value in the class body is a field,
    too.
    """
    name, make = "NKIObject", classes.construct
    cls = Class(name, (OBJECT,), {}, payload=Instance, make=make, module="nki.language")
    cls.extra |= {"inheritable": True, "subclass": _subclass, "record": True}
    cls.members |= {
        "__post_init__": Builtin("__post_init__", lambda m, owner, /, *values: None),
        "__eq__": Builtin("__eq__", _eq),
        "__hash__": Builtin("__hash__", _hash),
        "__repr__": representation(name, _show),
    }
    return cls


def _eq(m: Machine, owner: Any, other: Any, /) -> Any:
    if owner.__class__ not in INSTANCES or m.class_of(owner) is not m.class_of(other):
        return NotImplemented
    m.charge(1 + len(owner.fields))
    return equal(m, owner.fields, other.fields)


def _hash(m: Machine, owner: Any, /) -> int:
    return stable_hash(m, m.class_of(owner).qualname)


def _show(m: Machine, owner: Any, writer: Writer) -> None:
    writer.named(m.class_of(owner).qualname, list(owner.fields.items()))


# ---- the fields of a class ----------------------------------------------------------------------


def _subclass(
    m: Machine, name: str, bases: tuple[Class, ...], space: dict[str, Any], fields: dict[str, str]
) -> Class:
    cls = classes.plain(m, name, bases, space, fields)
    holder = next((ancestor for ancestor in cls.mro if "__init__" in ancestor.members), None)
    if holder is None or holder.members["__init__"] is holder.extra.get("given init"):
        init = Builtin(f"{name}.__init__", _init_of(cls))
        cls.members["__init__"] = cls.extra["given init"] = init
    return cls


def _init_of(cls: Class) -> Any:
    def call(m: Machine, owner: Any, /, *values: Any, **named: Any) -> None:
        check_owner(m, owner, cls, "__init__")
        names = field_names(cls)
        m.charge(10 * len(names))
        values_by_name = _field_values(cls.name, names, values, named)
        for name in names:
            value = values_by_name.get(name, UNSET)
            if value is UNSET:
                default = cls.find(name)
                value = None if default is UNSET else default
            attributes.put(m, owner, name, value)
        m.call(attributes.get(m, owner, "__post_init__"), (), None)

    return call


def _field_values(
    owner: str, names: list[str], values: tuple[Any, ...], named: dict[str, Any]
) -> dict[str, Any]:
    if len(values) > len(names):
        raise TypeError(f"{owner}() takes {len(names)} fields but {len(values)} were given")
    values_by_name = dict(zip(names, values, strict=False))
    for name, value in named.items():
        if name in values_by_name:
            raise TypeError(f"{owner}() got multiple values for field {name!r}")
        if name not in names:
            help = did_you_mean(name, names) or f"its fields are {', '.join(names) or 'none'}"
            text = f"a `{owner}` has no field `{name}`"
            raise KernelError("wrong-call", text, help=help, argument=name)
        values_by_name[name] = value
    return values_by_name


def field_names(cls: Class) -> list[str]:
    """Return the fields of a class and its bases, in their order."""
    names: dict[str, None] = {}
    for ancestor in reversed(cls.mro):
        if ancestor.machine is None:
            continue
        names |= {name: None for name, marker in ancestor.fields.items() if marker != "ClassVar"}
        names |= dict.fromkeys(_plain_values(ancestor))
    return list(names)


def _plain_values(cls: Class) -> list[str]:
    """Return the names that a class body assigns without an annotation."""
    return [
        name
        for name, value in cls.members.items()
        if name not in cls.fields
        and not name.startswith("__")
        and not isinstance(value, _NOT_FIELDS)
    ]


def complete(m: Machine, cls: Class) -> None:
    """Let a record class be a dataclass, with the fields that have no annotation or default."""
    if not cls.hook("record"):
        return
    generated = cls.extra.pop("given init", None)
    if generated is not None and cls.members.get("__init__") is generated:
        del cls.members["__init__"]
    for name, marker in cls.fields.items():
        if marker != "ClassVar" and name not in cls.members:
            cls.members[name] = None
    cls.fields |= dict.fromkeys(_plain_values(cls), "")
