"""Functions, methods, properties, `super`, generators, iterators, and `type` itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nkic.evaluate.classes import TypingForm
from nkic.evaluate.errors import KernelError
from nkic.evaluate.iteration import HOST_ITERATORS
from nkic.evaluate.objects import (
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
from nkic.evaluate.operators import Union
from nkic.evaluate.tables import builtin_class, getter, method
from nkic.evaluate.types.shared import (
    arguments_by_name,
    check_arity,
    check_call,
    check_owner,
    constructor,
    reject_keywords,
)

if TYPE_CHECKING:
    from nkic.evaluate.machine import Machine

TYPE = builtin_class("type", Class)
FUNCTION = builtin_class("function", Function)
BUILTIN = builtin_class("builtin_function_or_method", Builtin)
HOST = builtin_class("function", HostFunction)
METHOD = builtin_class("method", Method)
PROPERTY = builtin_class("property", Property)
STATIC = builtin_class("staticmethod", StaticMethod)
CLASS_METHOD = builtin_class("classmethod", ClassMethod)
SUPER = builtin_class("super", Super)
GENERATOR = builtin_class("generator", Generator)
LAZY_ITERATOR = builtin_class("iterator", LazyIterator)
FORM = builtin_class("_SpecialForm", TypingForm, module="typing")
UNION = builtin_class("UnionType", Union, module="types")
NONE = builtin_class("NoneType", type(None))
ELLIPSIS = builtin_class("ellipsis", type(...))
NOT_IMPLEMENTED = builtin_class("NotImplementedType", type(NotImplemented))


# ---- type ---------------------------------------------------------------------------------------


@constructor(TYPE)
def make_type(m: Machine, cls: Class, /, *args: Any, **named: Any) -> Class:
    """Return `type(value)`. Only class statements create classes."""
    if len(args) == 1 and not named:
        return m.class_of(args[0])
    if len(args) == 3:
        raise KernelError(
            "not-in-nki",
            "a class cannot be created by calling `type`",
            help="write a class statement, which may be inside a function",
        )
    raise TypeError("type() takes 1 or 3 arguments")


for _cls in (NONE, ELLIPSIS, NOT_IMPLEMENTED):

    def _same(m: Machine, cls: Class, /, *args: Any, **named: Any) -> Any:
        if args or named:
            raise TypeError(f"{cls.name} takes no arguments")
        return {NONE: None, ELLIPSIS: ..., NOT_IMPLEMENTED: NotImplemented}[cls]

    constructor(_cls)(_same)


# ---- properties and methods ---------------------------------------------------------------------


@constructor(PROPERTY)
def make_property(m: Machine, cls: Class, /, *args: Any, **named: Any) -> Property:
    """Return `property(fget, fset, fdel, doc)`."""
    bound = arguments_by_name("property", ("fget", "fset", "fdel", "doc"), args, named)
    m.allocate(72)
    return Property(**{"doc": _doc(bound.get("fget")), **bound})


def _doc(function: Any) -> Any:
    return function.doc if isinstance(function, Function) else None


def _wrapping(cls: Class, kind: type[StaticMethod | ClassMethod]) -> None:
    """Register the constructor and the attributes of `staticmethod` or `classmethod`."""

    def make(m: Machine, _: Class, /, *args: Any, **named: Any) -> StaticMethod | ClassMethod:
        check_call(cls.name, args, named, 1, 1)
        m.allocate(48)
        return kind(args[0])

    constructor(cls)(make)
    getter(cls, "__func__")(lambda m, owner: owner.function)
    getter(cls, "__wrapped__")(lambda m, owner: owner.function)
    getter(cls, "__name__")(lambda m, owner: m.attribute(owner.function, "__name__"))
    getter(cls, "__doc__")(lambda m, owner: m.attribute(owner.function, "__doc__"))


_wrapping(STATIC, StaticMethod)
_wrapping(CLASS_METHOD, ClassMethod)


@constructor(SUPER)
def make_super(m: Machine, cls: Class, /, *args: Any, **named: Any) -> Super:
    """Return `super(cls, owner)`. The compiler handles `super()`."""
    reject_keywords("super", named)
    if not args:
        raise RuntimeError("super(): no arguments")
    check_arity("super", args, 1, 2)
    if not isinstance(args[0], Class):
        kind = m.class_of(args[0]).name
        raise TypeError(f"super() argument 1 must be a type, not {kind}")
    if len(args) == 1:
        raise TypeError("super() needs an object: write `super()` inside the method")
    return m.super_of(args[0], args[1])


# ---- generators ---------------------------------------------------------------------------------


@method(GENERATOR, "send")
def _send(m: Machine, owner: Any, value: Any, /) -> Any:
    check_owner(m, owner, Generator, "send")
    return m.resume(owner, value)


@method(GENERATOR, "throw")
def _throw(m: Machine, owner: Any, kind: Any, /, *more: Any) -> Any:
    check_owner(m, owner, Generator, "throw")
    value = more[0] if more and more[0] is not None else UNSET
    if isinstance(kind, Class) and value is not UNSET:
        kind = value if value.__class__ in INSTANCES else m.call(kind, (value,), None)
    return m.resume(owner, m.exception_of(kind, UNSET), "throw")


@method(GENERATOR, "close")
def _close(m: Machine, owner: Any, /) -> None:
    check_owner(m, owner, Generator, "close")
    if owner.running:
        raise ValueError("generator already executing")
    m.deepen()
    m.push_resumed(owner.frame)
    closing, m.closing = m.closing, True
    try:
        owner.values.close()
    finally:
        m.closing = closing
        m.stack.pop()
        m.level -= 1


@method(GENERATOR, "__next__")
def _next(m: Machine, owner: Any, /) -> Any:
    check_owner(m, owner, Generator, "__next__")
    return m.resume(owner, None)


getter(GENERATOR, "gi_running")(lambda m, owner: owner.running)
getter(GENERATOR, "__name__")(lambda m, owner: owner.function.name)
getter(GENERATOR, "__qualname__")(lambda m, owner: owner.function.qualname)


@method(LAZY_ITERATOR, "__next__")
def _next_step(m: Machine, owner: Any, /) -> Any:
    m.charge(2)
    return next(owner)


def _itself(m: Machine, owner: Any, /) -> Any:
    return owner


for _cls in (GENERATOR, LAZY_ITERATOR):
    method(_cls, "__iter__")(_itself)


# ---- Python's own iterators ---------------------------------------------------------------------


def _iterator(kind: type) -> Class:
    cls = builtin_class(kind.__name__, kind)
    method(cls, "__next__")(_next_step)
    method(cls, "__iter__")(_itself)
    return cls


ITERATORS = {kind: _iterator(kind) for kind in HOST_ITERATORS}
