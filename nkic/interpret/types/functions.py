"""Functions, methods, properties, `super`, generators, iterators, and `type` itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from nkic.base.device import KernelError
from nkic.interpret import attributes, classes, exceptions
from nkic.interpret.classes import TypingForm
from nkic.interpret.containers import DICT_ITEMS, DICT_KEYS, DICT_VALUES, HOST_ITERATORS
from nkic.interpret.objects import (
    INSTANCES,
    UNSET,
    Builtin,
    Class,
    ClassMethod,
    ErrorInstance,
    Function,
    Generator,
    Getter,
    HostFunction,
    Instance,
    LazyIterator,
    Method,
    Property,
    StaticMethod,
    Super,
)
from nkic.interpret.operators import Union
from nkic.interpret.tables import (
    OBJECT,
    arguments_by_name,
    builtin,
    builtin_class,
    check_arity,
    check_call,
    constructor,
    getter,
    inheritable,
    iterator_of,
    method,
    reject_keywords,
)
from nkic.interpret.texts import full_name

if TYPE_CHECKING:
    from nkic.interpret.machine import Machine


# ------------------------------------------------------------------------------------------------
# `object`, and the special methods that every object has if they are looked up by name.
# The tables of classes omit the special methods that Python defines for every object: the
# interpreter treats a class without `__eq__` as one that compares by identity. Kernels may still
# call `super().__init__()` or `object.__setattr__(self, name, value)`; a second table,
# `extra["protocol"]`, serves as the fallback of attribute access for these.

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


inheritable(OBJECT)(lambda m, cls, payload, args, named: Instance())


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
    if (
        cls.payload is Instance
        and (args or named)
        and (cls.find("__new__") is not UNSET or cls.find("__init__") is UNSET)
    ):
        raise TypeError("object.__new__() takes exactly one argument (the type to instantiate)")
    return classes.blank(m, cls, args, named)


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
    _check_field(m, owner, name)
    attributes.put_field(m, owner, name, value)


@protocol(OBJECT, "__delattr__")
def _delattr(m: Machine, owner: Any, name: Any, /) -> None:
    _check_field(m, owner, name)
    member = owner.cls.find(name)
    if name in owner.fields and not attributes._is_data_descriptor(member):
        attributes.remove_field(m, owner, name)
    elif member.__class__ is Function or member is UNSET:
        raise attributes.missing(m, owner, name)
    else:
        raise AttributeError(f"'{owner.cls.name}' object attribute '{name}' is read-only")


def _check_field(m: Machine, owner: Any, name: Any) -> None:
    attribute_name(m, name)
    if owner.__class__ not in INSTANCES:
        raise attributes._not_assignable(m, owner, str.__str__(name))
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


protocol(OBJECT, "__eq__")(lambda m, owner, other, /: True if owner is other else NotImplemented)


@protocol(OBJECT, "__ne__")
def _ne(m: Machine, owner: Any, other: Any, /) -> Any:
    method = m.class_of(owner).find("__eq__")
    if method is UNSET or method is None:
        return False if owner is other else NotImplemented
    result = m.call(method, (owner, other), None)
    return result if result is NotImplemented else not m.truth(result)


protocol(OBJECT, "__lt__", "__le__", "__gt__", "__ge__")(lambda m, owner, other, /: NotImplemented)


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


protocol(OBJECT, "__str__")(lambda m, owner, /: m.repr(owner))


@protocol(OBJECT, "__format__")
def _format(m: Machine, owner: Any, spec: Any, /) -> str:
    if not isinstance(spec, str):
        raise TypeError(f"__format__() argument must be str, not {m.class_of(spec).name}")
    if spec:
        kind = m.class_of(owner).name
        raise TypeError(f"unsupported format string passed to {kind}.__format__")
    return m.str(owner)


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


method(GENERATOR, "send")(lambda m, owner, value, /: m.resume(owner, value))


@method(GENERATOR, "throw")
def _throw(m: Machine, owner: Any, kind: Any, /, *more: Any) -> Any:
    value = more[0] if more and more[0] is not None else UNSET
    if isinstance(kind, Class) and value is not UNSET:
        kind = value if value.__class__ in INSTANCES else m.call(kind, (value,), None)
    return m.resume(owner, m.exception_of(kind, UNSET), "throw")


@method(GENERATOR, "close")
def _close(m: Machine, owner: Any, /) -> None:
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


method(GENERATOR, "__next__")(lambda m, owner, /: m.resume(owner, None))


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


# ---- The builtin functions that return or consume iterators -------------------------------------
# Each iterator is a `LazyIterator`, which pays for every element: Python's own iterators would
# recurse on the C stack.

LAZY: dict[str, Any] = {}
_ITERATOR_BYTES = 400  # bytes
_CALL_STEPS = 10  # steps for an element that a function is called with
_EXHAUSTED = object()


def lazily(m: Machine, name: str, values: Iterator[Any]) -> LazyIterator:
    """Return an iterator over the values, which pay for themselves."""
    m.allocate(_ITERATOR_BYTES)
    return LazyIterator(m, name, values)


# ---- iterators ----------------------------------------------------------------------------------


@builtin("iter", LAZY)
def _iter(m: Machine, *args: Any, **named: Any) -> Any:
    check_call("iter", args, named, 1, 2)
    if len(args) == 2:
        if not is_callable(m, args[0]):
            raise TypeError("iter(v, w): v must be callable")
        return lazily(m, "callable_iterator", _until(m, *args))
    value = args[0]
    m.allocate(64)
    if value.__class__ in INSTANCES:
        method = value.cls.find("__iter__")
        if method is not UNSET and method is not None:
            iterator = m.call(method, (value,), None)
            if _is_iterator(m, iterator):
                return iterator
            raise TypeError(f"iter() returned non-iterator of type '{m.class_of(iterator).name}'")
    return iterator_of(m, value)


def _is_iterator(m: Machine, value: Any) -> bool:
    kind = value.__class__
    if kind in INSTANCES:
        return value.cls.find("__next__") is not UNSET
    return kind is LazyIterator or kind is Generator or kind in ITERATORS


def _until(m: Machine, function: Any, sentinel: Any) -> Iterator[Any]:
    while True:
        m.charge(_CALL_STEPS)
        value = _call_or_exhausted(m, function, ())
        if value is _EXHAUSTED or m.equal(value, sentinel):
            return
        yield value


def _call_or_exhausted(m: Machine, function: Any, args: Sequence[Any]) -> Any:
    """Return the result of a function, or `_EXHAUSTED` if it raises `StopIteration`."""
    try:
        return m.call(function, args, None)
    except Exception as error:
        if exceptions.is_a(m, error, "StopIteration"):
            return _EXHAUSTED
        raise


@builtin("next", LAZY)
def _next_item(m: Machine, *args: Any, **named: Any) -> Any:
    check_call("next", args, named, 1, 2)
    if not _is_iterator(m, args[0]):
        raise TypeError(f"'{m.class_of(args[0]).name}' object is not an iterator")
    try:
        if args[0].__class__ in INSTANCES:
            return m.call(args[0].cls.find("__next__"), (args[0],), None)
        return next(args[0])
    except Exception as error:
        if len(args) == 2 and exceptions.is_a(m, error, "StopIteration"):
            return args[1]
        raise


@builtin("enumerate", LAZY)
def _enumerate(m: Machine, iterable: Any, start: Any = 0) -> LazyIterator:
    return lazily(m, "enumerate", _numbered(m, iterator_of(m, iterable), m.index(start)))


def _numbered(m: Machine, values: Iterator[Any], number: int) -> Iterator[tuple[int, Any]]:
    for value in values:
        m.charge(8)
        yield number, value
        number += 1


@builtin("map", LAZY)
def _map(m: Machine, *args: Any, **named: Any) -> LazyIterator:
    reject_keywords("map", named)
    if len(args) < 2:
        raise TypeError("map() must have at least two arguments.")
    parts = [iterator_of(m, value) for value in args[1:]]
    if len(parts) == 1:
        return lazily(m, "map", _mapped_one(m, args[0], parts[0]))
    return lazily(m, "map", _mapped(m, args[0], parts))


def _mapped_one(m: Machine, function: Any, values: Iterator[Any]) -> Iterator[Any]:
    for value in values:
        m.charge(_CALL_STEPS)
        result = _call_or_exhausted(m, function, (value,))
        if result is _EXHAUSTED:
            return
        yield result


def _mapped(m: Machine, function: Any, parts: list[Iterator[Any]]) -> Iterator[Any]:
    while True:
        m.charge(_CALL_STEPS + 2 * len(parts))
        values: list[Any] = []
        for part in parts:
            value = next(part, _EXHAUSTED)
            if value is _EXHAUSTED:
                return
            values.append(value)
        result = _call_or_exhausted(m, function, values)
        if result is _EXHAUSTED:
            return
        yield result


@builtin("filter", LAZY)
def _filter(m: Machine, function: Any, iterable: Any, /) -> LazyIterator:
    return lazily(m, "filter", _filtered(m, function, iterator_of(m, iterable)))


def _filtered(m: Machine, function: Any, values: Iterator[Any]) -> Iterator[Any]:
    for value in values:
        m.charge(_CALL_STEPS)
        verdict = value if function is None else _call_or_exhausted(m, function, (value,))
        if verdict is _EXHAUSTED:
            return
        if m.truth(verdict):
            yield value


@builtin("zip", LAZY)
def _zip(m: Machine, /, *iterables: Any, strict: Any = False) -> LazyIterator:
    parts = [iterator_of(m, value) for value in iterables]
    return lazily(m, "zip", _zipped(m, parts, m.truth(strict)))


def _zipped(m: Machine, parts: list[Any], strict: bool) -> Iterator[tuple[Any, ...]]:
    while parts:
        m.charge(8 + 2 * len(parts))
        values: list[Any] = []
        for part in parts:
            value = next(part, _EXHAUSTED)
            if value is _EXHAUSTED:
                if strict:
                    _check_all_end(parts, len(values))
                return
            values.append(value)
        yield tuple(values)


def _check_all_end(parts: list[Any], ended: int) -> None:
    """For `zip(strict=True)`: raise unless all iterators end together; number `ended` has ended."""
    if ended:
        raise ValueError(_uneven(ended, "shorter"))
    for index, part in enumerate(parts[1:], 1):
        if next(part, _EXHAUSTED) is not _EXHAUSTED:
            raise ValueError(_uneven(index, "longer"))


def _uneven(index: int, how: str) -> str:
    others = "argument 1" if index == 1 else f"arguments 1-{index}"
    return f"zip() argument {index + 1} is {how} than {others}"


@builtin("reversed", LAZY)
def _reversed(m: Machine, sequence: Any, /) -> Any:
    value = sequence
    if value.__class__ in INSTANCES:
        method = value.cls.find("__reversed__")
        if method is not UNSET and method is not None:
            return m.call(method, (value,), None)
        if value.cls.find("__getitem__") is not UNSET:
            return lazily(m, "reversed", _backwards(m, value, m.length(value)))
    if isinstance(value, list | range):
        m.allocate(64)
        return list.__reversed__(value) if isinstance(value, list) else reversed(value)
    if isinstance(value, str | tuple | bytes | dict | DICT_KEYS | DICT_VALUES | DICT_ITEMS):
        return lazily(m, "reversed", each(m, _host_reversed(value)))
    hook = value.hook("reversed") if isinstance(value, Class) else None
    if hook is not None:
        return hook(m, value)
    special = m.class_of(value).find("__reversed__")
    if special is not UNSET:
        return m.call(special, (value,), None)
    raise TypeError(f"'{m.class_of(value).name}' object is not reversible")


def _host_reversed(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        return dict.__reversed__(value)
    if isinstance(value, str | tuple):
        kind: Any = str if isinstance(value, str) else tuple
        return iter(kind.__getitem__(value, slice(None, None, -1)))
    iterator: Iterator[Any] = reversed(value)
    return iterator


def each(m: Machine, values: Iterator[Any]) -> Iterator[Any]:
    """Yield the values of one of Python's own iterators, at two steps each."""
    for value in values:
        m.charge(2)
        yield value


def _backwards(m: Machine, value: Any, index: int) -> Iterator[Any]:
    while index > 0:
        index -= 1
        m.charge(2)
        yield m.item(value, index)


def is_callable(m: Machine, value: Any) -> bool:
    kind = value.__class__
    if kind in INSTANCES:
        return value.cls.find("__call__") is not UNSET
    return kind is Function or kind in m.callables
