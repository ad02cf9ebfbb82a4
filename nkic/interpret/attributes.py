"""Attributes: the value of `owner.name`, and the attributes that may be assigned.

There is one way to look up a name, `find`: first the fields of an object, then the tables of its
class. The attributes of Python objects are never read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from nkic.base.device import KernelError, Missing
from nkic.base.diagnostics import did_you_mean
from nkic.base.text import article
from nkic.interpret.objects import (
    INSTANCES,
    UNSET,
    Builtin,
    Class,
    ClassMethod,
    Function,
    Getter,
    HostFunction,
    Method,
    Property,
    StaticMethod,
    Super,
    Written,
)
from nkic.source import bindings

if TYPE_CHECKING:
    from nkic.interpret.machine import Machine
    from nkic.interpret.modules import World


def get(m: Machine, owner: Any, name: str) -> Any:
    """Return `owner.name`."""
    kind = owner.__class__
    if kind in INSTANCES:
        return _of_instance(m, owner, name)
    if kind is Class:
        return _of_class(m, owner, name)
    special = SPECIAL.get(kind)
    if special is not None:
        return special(m, owner, name)
    cls = m.classes.get(kind) or m.class_of(owner)
    member = cls.find(name)
    if member.__class__ is Getter:
        return member.get(m, owner)
    if member is UNSET:
        member = by_protocol(cls.mro, name)
    if member is UNSET:
        raise missing(m, owner, name)
    return bound(m, member, owner)


def getter(cls: Class | None, kind: type, name: str) -> Callable[[Machine, Any], Any] | None:
    """Return the function that computes `name` for all values of a type, or None if none does.

    Only classes of the kernel change.
    """
    if cls is None or cls.machine is not None or kind is Class or kind in SPECIAL:
        return None
    member = cls.find(name)
    return member.get if member.__class__ is Getter else None


def by_protocol(mro: Sequence[Class], name: str) -> Any:
    """Return a special method that Python defines for all objects or for a builtin type, or UNSET.

    Class tables hold none of these: a class without `__eq__` in its tables compares by identity.
    """
    for cls in mro if name.startswith("__") else ():
        member = cls.extra.get("protocol", _NO_TABLE).get(name, UNSET)
        if member is not UNSET:
            return member
    return UNSET


_NO_TABLE: dict[str, Any] = {}


def _of_instance(m: Machine, owner: Any, name: str) -> Any:
    fields, cls = owner.fields, owner.cls
    member = cls.find(name)
    if member is UNSET:
        value = fields.get(name, UNSET)
        if value is not UNSET:
            return value
        member = by_protocol(cls.mro, name)
        if member is not UNSET:
            return bound(m, member, owner)
        hook = cls.find("__getattr__")
        if hook is not UNSET:
            return m.call(hook, (owner, name), {})
        raise missing(m, owner, name)
    if member.__class__ is Function and name not in fields:
        return Method(member, owner)
    if name in fields and not _is_data_descriptor(member):
        return fields[name]
    try:
        return bound(m, member, owner)
    except AttributeError:
        hook = cls.find("__getattr__")
        if hook is UNSET:
            raise
        return m.call(hook, (owner, name), {})


def bound(m: Machine, member: Any, owner: Any) -> Any:
    """Return a member of a class as an attribute of one of its objects (bind it)."""
    kind = member.__class__
    if kind is Function:
        return Method(member, owner)
    if kind is Builtin:
        return member if member.static else Method(member, owner)
    if kind is Getter:
        return member.get(m, owner)
    if kind is Property:
        if member.fget is None:
            raise AttributeError("unreadable attribute")
        return m.call(member.fget, (owner,), {})
    if kind is StaticMethod:
        return member.function
    if kind is ClassMethod:
        return Method(member.function, m.class_of(owner))
    return _through_get(m, member, owner, m.class_of(owner)) if kind in INSTANCES else member


def _through_get(m: Machine, member: Any, owner: Any, cls: Class) -> Any:
    """Return what the `__get__` of an object in a class returns, or the object if it has none."""
    hook = member.cls.find("__get__")
    return member if hook is UNSET else m.call(hook, (member, owner, cls), {})


def _is_data_descriptor(member: Any) -> bool:
    kind = member.__class__
    if kind is Property or kind is Getter:
        return True
    return kind in INSTANCES and member.cls.find("__set__") is not UNSET


# ---- attributes of classes, functions and methods -----------------------------------------------


def _of_class(m: Machine, owner: Class, name: str) -> Any:
    member = owner.find(name)
    if member is UNSET or member.__class__ is Getter or member.__class__ is Property:
        getter = _CLASS_GETTERS.get(name)
        if getter is not None:
            return getter(m, owner)
        if member is UNSET:
            member = by_protocol(owner.mro, name)
        if member is UNSET:
            raise missing(m, owner, name)
    kind = member.__class__
    if kind is StaticMethod:
        return member.function
    if kind is ClassMethod:
        return Method(member.function, owner)
    return _through_get(m, member, None, owner) if kind in INSTANCES else member


def _mro(m: Machine, owner: Class) -> Any:
    return Method(Builtin("type.mro", lambda m, cls: list(cls.mro)), owner)


_CLASS_GETTERS: dict[str, Any] = {
    "__name__": lambda m, owner: owner.name,
    "__qualname__": lambda m, owner: owner.qualname,
    "__module__": lambda m, owner: owner.module,
    "__doc__": lambda m, owner: owner.members.get("__doc__"),
    "__class__": lambda m, owner: m.class_of(owner),
    "__bases__": lambda m, owner: owner.bases,
    "__mro__": lambda m, owner: owner.mro,
    "mro": _mro,
}


def _of_super(m: Machine, owner: Super, name: str) -> Any:
    mro = owner.cls.mro
    for cls in mro[mro.index(owner.after) + 1 :]:
        member = cls.members.get(name, UNSET)
        if member is UNSET:
            member = by_protocol((cls,), name)
        if member is not UNSET:
            if owner.owner is owner.cls:
                if member.__class__ is ClassMethod:
                    return Method(member.function, owner.owner)
                return member.function if member.__class__ is StaticMethod else member
            if member.__class__ is ClassMethod:
                return Method(member.function, owner.cls)
            return bound(m, member, owner.owner)
    raise AttributeError(f"'super' object has no attribute '{name}'")


def _of_function(m: Machine, owner: Function, name: str) -> Any:
    if owner.attributes is not None and name in owner.attributes:
        return owner.attributes[name]
    getter = _FUNCTION_GETTERS.get(name)
    if getter is None:
        raise missing(m, owner, name)
    return getter(owner)


_FUNCTION_GETTERS: dict[str, Any] = {
    "__name__": lambda owner: owner.name,
    "__qualname__": lambda owner: owner.qualname,
    "__doc__": lambda owner: owner.doc,
    "__module__": lambda owner: owner.runtime.module.name,
    "__wrapped__": lambda owner: _no_wrapped(),
}


def _no_wrapped() -> Any:
    raise AttributeError("'function' object has no attribute '__wrapped__'")


def _of_method(m: Machine, owner: Method, name: str) -> Any:
    if name == "__self__" and owner.owner.__class__ in INSTANCES:
        return owner.owner
    if name == "__func__" and owner.function.__class__ is Function:
        return owner.function
    if owner.function.__class__ is Function:
        return _of_function(m, owner.function, name)
    return _of_builtin(m, owner.function, name)


def _of_builtin(m: Machine, owner: Any, name: str) -> Any:
    if name in ("__name__", "__qualname__"):
        text = getattr(owner, "name", "method")
        return text.rpartition(".")[2] if name == "__name__" else text
    if name == "__doc__":
        return None
    raise missing(m, owner, name)


def _of_property(m: Machine, owner: Property, name: str) -> Any:
    if name in ("setter", "getter", "deleter"):
        return Builtin(f"property.{name}", _PROPERTY[name](owner))
    if name in ("fget", "fset", "fdel"):
        return getattr(owner, name)
    if name == "__doc__":
        return owner.doc
    raise missing(m, owner, name)


_PROPERTY: dict[str, Any] = {
    "getter": lambda prop: lambda m, function: Property(function, prop.fset, prop.fdel, prop.doc),
    "setter": lambda prop: lambda m, function: Property(prop.fget, function, prop.fdel, prop.doc),
    "deleter": lambda prop: lambda m, function: Property(prop.fget, prop.fset, function, prop.doc),
}
SPECIAL: dict[type, Any] = {
    Super: _of_super,
    Function: _of_function,
    Method: _of_method,
    Builtin: _of_builtin,
    HostFunction: _of_builtin,
    Property: _of_property,
}


# ---- provided modules ---------------------------------------------------------------------------


class ModuleNamespace(Protocol):
    """The contents of a provided module, by name."""

    def get(self, m: Machine, name: str) -> Any:
        """Return the value of a name, or UNSET."""

    def missing(self, name: str) -> Exception:
        """Return the error about a missing name."""

    def submodule(self, name: str) -> tuple[str, str, str]:
        """Return slug, message and advice of the error about a missing submodule."""

    def names(self) -> list[str]:
        """Return the names that `from module import *` binds."""

    def keeps(self, name: str) -> bool:
        """Whether the name has the same value at every access, so that it may be memoised."""


class Provided:
    """A provided module as an immutable value. `memo` holds the values found before."""

    __slots__ = ("memo", "module_name", "space", "world")
    is_module = True
    _kind_ = "module"

    def __init__(self, world: World, name: str, space: ModuleNamespace) -> None:
        self.world = world
        self.module_name = name
        self.space = space
        self.memo: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"<module '{self.module_name}'>"


def of_provided(m: Machine, module: Provided, name: str) -> Any:
    """Return `module.name`; a provided module may have submodules."""
    value = module.memo.get(name, UNSET)
    if value is not UNSET:
        return value
    value = module.space.get(m, name)
    if value.__class__ is Written:
        value = module.world.written(value)
    if value is not UNSET:
        if module.space.keeps(name):
            module.memo[name] = value
        return value
    inner = f"{module.module_name}.{name}"
    if inner in module.world.provided:
        return module.world.provide(inner)
    if name in ("__name__", "__doc__"):
        return module.module_name if name == "__name__" else None
    raise hidden(name) or module.space.missing(name)


SPECIAL[Provided] = of_provided


# ---- errors about missing attributes -------------------------------------------------------------

_MISSING_STEPS = 24  # steps to make an error that a kernel catches
NONE_ADVICE = "a function without `return` returns None; a field without a value is None"


def hidden(name: str) -> Missing | None:
    """Return the error about a special name that kernels cannot reach; None for other names."""
    if not bindings.is_hidden(name):
        return None
    text = f"`{name}` is not accessible to kernel code"
    return Missing("hidden-attribute", text, name, bindings.instead_of(name))


def missing(m: Machine, owner: Any, name: str) -> Exception:
    """Return the error about a name that a value does not have."""
    error = hidden(name) or m.hint(owner, name)
    if error is not None:
        return error
    cls = m.class_of(owner)
    m.charge(_MISSING_STEPS)
    if owner is None:
        return Missing("unknown-attribute", f"None has no attribute `{name}`", name, NONE_ADVICE)
    noun = f"`{owner.name}`" if owner.__class__ is Class else f"{article(cls.name)} `{cls.name}`"
    text = f"{noun} has no attribute `{name}`"
    advise = partial(_nearest, name, owner, cls)
    return Missing("unknown-attribute", text, name, advise)


def _nearest(name: str, owner: Any, cls: Class) -> str:
    return did_you_mean(name, public_names(owner, cls))


def public_names(owner: Any, cls: Class) -> list[str]:
    """Return the public names of a value, for `did you mean` and `dir`."""
    members = dict.fromkeys(owner.fields) if owner.__class__ in INSTANCES else {}
    for cls_in_mro in (owner if owner.__class__ is Class else cls).mro:
        members |= dict.fromkeys(cls_in_mro.members)
    return [name for name in members if not name.startswith("_")]


# ---- assignment ---------------------------------------------------------------------------------


def put(m: Machine, owner: Any, name: str, value: Any) -> None:
    """Execute `owner.name = value`."""
    kind = owner.__class__
    if kind in INSTANCES:
        hook = owner.cls.find("__setattr__")
        if hook is not UNSET:
            m.call(hook, (owner, name, value), {})
        else:
            put_field(m, owner, name, value)
    elif kind is Class:
        _put_in_class(m, owner, name, value)
    elif kind is Function and not bindings.is_special(name):
        if owner.attributes is None:
            owner.attributes = {}
        m.allocate(100)
        owner.attributes[name] = value
    elif kind is Function and name in ("__name__", "__qualname__", "__doc__"):
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{name} must be set to a string object")
        setattr(owner, name.strip("_"), value)
    else:
        raise _not_assignable(m, owner, name)


def put_field(m: Machine, owner: Any, name: str, value: Any) -> None:
    """Assign a field of an object, as `object.__setattr__` does."""
    member = owner.cls.find(name)
    kind = member.__class__
    if kind is Property:
        if member.fset is None:
            raise AttributeError(
                f"property '{name}' of '{owner.cls.name}' object has no setter", name=name
            )
        m.call(member.fset, (owner, value), {})
        return
    if kind is Getter:
        raise AttributeError("can't set attribute")
    if kind in INSTANCES and member.cls.find("__set__") is not UNSET:
        m.call(member.cls.find("__set__"), (member, owner, value), {})
        return
    if name == "__class__" or name == "__dict__":
        raise _not_assignable(m, owner, name)
    slots = owner.cls.extra.get("slots")
    if slots is not None and name not in slots and owner.fields.__class__ is dict:
        raise AttributeError(f"'{owner.cls.name}' object has no attribute '{name}'", name=name)
    write_field(m, owner, name, value)


def write_field(m: Machine, owner: Any, name: str, value: Any) -> None:
    """Set a field of an object. There is no other function that sets one."""
    if owner.fields.__class__ is not dict:
        raise _not_assignable(m, owner, name)
    if name not in owner.fields:
        m.allocate(100)
    owner.fields[name] = value


def write_fields(m: Machine, owner: Any, /, **values: Any) -> None:
    """Set several fields of an object."""
    for name, value in values.items():
        write_field(m, owner, name, value)


def remove_field(m: Machine, owner: Any, name: str) -> None:
    """Delete a field of an object. There is no other function that deletes one."""
    if owner.fields.__class__ is not dict:
        raise _not_assignable(m, owner, name)
    if name not in owner.fields:
        raise missing(m, owner, name)
    del owner.fields[name]


def _put_in_class(m: Machine, owner: Class, name: str, value: Any) -> None:
    if owner.machine is None:
        raise _not_assignable(m, owner, name)
    if (
        bindings.is_special(name)
        and not bindings.may_define(name)
        and name not in bindings.ASSIGNABLE
    ):
        raise _not_assignable(m, owner, name)
    check = owner.hook("check_put")
    if check is not None:
        check(m, owner, name)
    m.allocate(100)
    owner.members[name] = value


def remove(m: Machine, owner: Any, name: str) -> None:
    """Execute `del owner.name`."""
    kind = owner.__class__
    if kind in INSTANCES:
        member = owner.cls.find(name)
        hook = owner.cls.find("__delattr__")
        if hook is not UNSET:
            m.call(hook, (owner, name), {})
        elif member.__class__ is Property:
            if member.fdel is None:
                raise AttributeError(
                    f"property '{name}' of '{owner.cls.name}' object has no deleter", name=name
                )
            m.call(member.fdel, (owner,), {})
        else:
            remove_field(m, owner, name)
    elif kind is Class and owner.machine is not None and name in owner.members:
        del owner.members[name]
    elif kind is Function and owner.attributes is not None and name in owner.attributes:
        del owner.attributes[name]
    else:
        raise _not_assignable(m, owner, name)


def _not_assignable(m: Machine, owner: Any, name: str) -> KernelError:
    if bindings.is_special(name) or bindings.is_hidden(name):
        text = f"`{name}` is not accessible to kernel code"
        return KernelError("hidden-attribute", text, help=bindings.instead_of(name))
    return KernelError(
        "hidden-attribute",
        f"attribute `{name}` of {describe(m, owner)} cannot be assigned",
        help="only objects of the kernel's own classes have assignable fields",
    )


def describe(m: Machine, owner: Any) -> str:
    """Describe a value in words: "the class `A`", "a value of type `int`"."""
    if owner.__class__ is Class:
        return f"the class `{owner.name}`"
    module = getattr(owner, "module_name", "") if hasattr(owner, "is_module") else ""
    return f"the module `{module}`" if module else f"a value of type `{m.class_of(owner).name}`"
