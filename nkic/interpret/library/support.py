"""Helpers for the modules of the library: their classes, methods and text forms.

The objects of library classes are the interpreter's own (`Instance` and its subclasses) under a
class that no evaluation owns. Their private state is in their fields under a `Hidden` name, which
no kernel can spell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from nkic.base.device import KernelError
from nkic.interpret import classes
from nkic.interpret.objects import INSTANCES, Builtin, Class, Code, Frozen, Instance, rename
from nkic.interpret.tables import OBJECT, refuse_owner
from nkic.interpret.texts import Writer

if TYPE_CHECKING:
    from nkic.interpret.machine import Machine

_Function = TypeVar("_Function", bound=Callable[..., Any])
Show = Callable[["Machine", Any, Writer], None]


class Hidden(str):
    """A field name that is equal to no name of a kernel."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other


# ---- classes ------------------------------------------------------------------------------------


def library_class(name: str, module: str, *bases: Class, **options: Any) -> Class:
    """Return a class whose objects are set up by its `__init__`; kernels may inherit from it."""
    cls = Class(name, bases or (OBJECT,), {}, make=classes.construct, module=module, **options)
    cls.extra["inheritable"] = True
    cls.extra["slots"] = frozenset()
    return cls


def final(cls: Class) -> Class:
    """Forbid kernels to inherit from a class or to instantiate it."""
    cls.extra.pop("inheritable", None)
    return cls


def new_instance(m: Machine, cls: Class, **fields: Any) -> Instance:
    m.allocate(232)
    instance = Instance()
    instance.cls, instance.fields, instance.serial = cls, fields, m.serial()
    return instance


def methods(cls: Class, *names: str) -> Callable[[_Function], _Function]:
    """Register a method `(m, owner, …)` of a class; it refuses objects of other classes."""

    def add(function: _Function) -> _Function:
        checked_methods(cls, dict.fromkeys(names[::-1], function))
        return function

    return add


def checked_methods(cls: Class, functions: Mapping[str, Callable[..., Any]]) -> None:
    """Like `methods`, for methods by name."""
    for name, function in functions.items():
        cls.members[name] = Builtin(f"{cls.name}.{name}", _checked(cls, name, function))
        rename(function, f"{cls.name}.{name}")


def _checked(cls: Class, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(m: Machine, owner: Any, /, *args: Any, **named: Any) -> Any:
        check_owner(m, owner, cls, name)
        return function(m, owner, *args, **named)

    return call


def check_owner(m: Machine, owner: Any, cls: Class, name: str) -> None:
    """Raise if a method is called on an object of another class."""
    if not is_instance_of(owner, cls):
        refuse_owner(m, owner, cls.name, name)


def is_instance_of(value: Any, cls: Class) -> bool:
    """Whether the value is an object of a library class or of a subclass."""
    return value.__class__ in INSTANCES and value.cls.is_a(cls)


# ---- texts --------------------------------------------------------------------------------------


class _Apart(Writer):
    """A writer of one object by a given function."""

    def by(self, show: Show, owner: Any) -> str:
        show(self.m, owner, self)
        return "".join(self._parts)


def representation(name: str, show: Show) -> Builtin:
    """Return the `__repr__` method for a function that writes an object."""

    def call(m: Machine, owner: Any, writer: Writer | None = None, /) -> str | None:
        if writer is None:
            return _Apart(m, m.limits.length).by(show, owner)
        if not isinstance(writer, Writer):
            raise TypeError("expected 0 arguments, got 1")
        show(m, owner, writer)
        return None

    return Builtin(f"{name}.__repr__", call)


def repr_of(cls: Class) -> Callable[[Show], Show]:
    """Register the function `(m, owner, writer)` that writes the objects of the class."""

    def add(show: Show) -> Show:
        def checked(m: Machine, owner: Any, writer: Writer) -> None:
            check_owner(m, owner, cls, "__repr__")
            show(m, owner, writer)

        cls.members["__repr__"] = representation(cls.name, checked)
        return show

    return add


# ---- signatures ---------------------------------------------------------------------------------


class Signature:
    """The attributes of a function that `bind` reads: a generated constructor's parameters.

    `defaults` are those of the last positional parameters.
    """

    def __init__(
        self,
        name: str,
        positional: Sequence[str],
        defaults: Sequence[Any],
        keyword_only: Sequence[str] = (),
        keyword_defaults: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = self.qualname = name
        self.code = Code(name, name, None, None)  # type: ignore[arg-type]
        self.code.positional = tuple(positional)
        self.code.keyword_only = tuple(keyword_only)
        self.defaults = tuple(defaults)
        self.keyword_defaults = dict(keyword_defaults or {})


# ---- arguments ----------------------------------------------------------------------------------


def kernel_class(m: Machine, cls: Any, decorator: str) -> Class:
    """Return the class that a decorator changes. Raises unless it is one of the kernel's own."""
    if not isinstance(cls, Class):
        raise TypeError(f"{decorator} takes a class, not a value of type '{m.class_of(cls).name}'")
    if cls.machine is not m or cls.members.__class__ is Frozen:
        raise KernelError(
            "hidden-attribute",
            f"`{decorator}` cannot change the class `{cls.name}`",
            help="define a class that inherits from it, and decorate that",
        )
    return cls


def unsupported(name: str, help: str) -> Builtin:
    """Return a function of the module that kernels cannot call."""

    def call(m: Machine, /, *args: Any, **named: Any) -> Any:
        raise KernelError("not-in-nki", f"`{name}` is not available in kernel code", help=help)

    return Builtin(name, call)


def charge_arguments(m: Machine, args: Sequence[Any], named: Mapping[str, Any]) -> None:
    """Charge for arguments before they are stored."""
    m.elements(len(args) + 3 * len(named), "the arguments")
