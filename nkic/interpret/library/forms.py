"""`typing`: names that annotations use. Nothing is ever checked against them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nkic.interpret import classes
from nkic.interpret.classes import TypingForm
from nkic.interpret.library import abcs
from nkic.interpret.library.namedtuples import NAMED_TUPLE
from nkic.interpret.library.support import unsupported
from nkic.interpret.objects import (
    INSTANCES,
    UNSET,
    Builtin,
    Class,
    ClassMethod,
    Instance,
    no_objects,
)
from nkic.interpret.operators import union
from nkic.interpret.tables import OBJECT, builtin
from nkic.interpret.types.sequences import DICT, FROZENSET, LIST, SET, TUPLE
from nkic.interpret.types.text import STR

if TYPE_CHECKING:
    from nkic.interpret.machine import Machine

_FORMS = (
    *("Any", "Annotated", "AnyStr", "AsyncGenerator", "AsyncIterable", "AsyncIterator"),
    *("AsyncContextManager", "Awaitable", "BinaryIO", "ClassVar", "Concatenate", "ContextManager"),
    *("Coroutine", "Final", "ForwardRef", "IO", "Literal", "LiteralString", "Match", "Never"),
    *("NoReturn", "NotRequired", "ParamSpecArgs", "ParamSpecKwargs", "Pattern", "ReadOnly"),
    *("Required", "Self", "SupportsAbs", "SupportsBytes", "SupportsComplex", "SupportsFloat"),
    *("SupportsIndex", "SupportsInt", "SupportsRound", "TextIO", "TypeAlias", "TypeGuard"),
    *("TypeIs", "Unpack", "NoDefault"),
)


class Alias:
    """Another name of a class, such as `typing.List`, with its own text."""

    __slots__ = ("cls", "name")
    is_form = True

    def __init__(self, name: str, cls: Class) -> None:
        self.name = name
        self.cls = cls

    def accepts(self, m: Machine, value: Any) -> bool:
        """Implement `isinstance(value, List)`."""
        return classes.is_instance(m, value, self.cls)

    def as_base(self, m: Machine) -> Class:
        """Return the base class of `class Row(List[int])`."""
        return self.cls

    def __repr__(self) -> str:
        return f"typing.{self.name}"


_ALIASES: dict[str, Class] = {
    **{"List": LIST, "Dict": DICT, "Tuple": TUPLE, "Set": SET, "FrozenSet": FROZENSET},
    **{name: abcs.MODULE[name] for name in abcs.MODULE if name != "Set"},
    "AbstractSet": abcs.MODULE["Set"],
}

MODULE: dict[str, Any] = {
    **{name: TypingForm(f"typing.{name}") for name in _FORMS},
    **{name: Alias(name, cls) for name, cls in _ALIASES.items()},
    "Text": STR,
    "TYPE_CHECKING": False,
    "NamedTuple": NAMED_TUPLE,
    "get_type_hints": unsupported("get_type_hints", "kernels never evaluate annotations"),
    "get_overloads": unsupported("get_overloads", "keep the functions that you need in a list"),
}


def aliases(collections: Mapping[str, Any]) -> dict[str, Any]:
    """Return the names of `typing` for the classes of `collections`, which are the classes."""
    names = {"deque": "Deque", "defaultdict": "DefaultDict"}
    return {names.get(name, name): cls for name, cls in collections.items()}


# ---- unions -------------------------------------------------------------------------------------


def _union(m: Machine, cls: Class, key: Any) -> Any:
    return union(m, key if key.__class__ is tuple else (key,))


def _optional(m: Machine, cls: Class, key: Any) -> Any:
    return _union(m, cls, (key, None))


def _special(name: str, item: Any) -> Class:
    cls = Class(name, (OBJECT,), {}, module="typing")
    cls.extra["item"] = item
    MODULE[name] = cls
    return cls


_special("Union", _union)
_special("Optional", _optional)
_special("Type", lambda m, cls, key: cls).extra["accepts"] = lambda m, value: isinstance(
    value, Class
)


# ---- base classes without effect ----------------------------------------------------------------


def _base(name: str, *bases: Class) -> Class:
    new_class = Class(name, bases or (OBJECT,), {}, payload=Instance, module="typing")
    new_class.extra |= {"inheritable": True, "item": lambda m, cls, key: cls}
    MODULE[name] = new_class
    return new_class


GENERIC = _base("Generic")
PROTOCOL = _base("Protocol", GENERIC)
PROTOCOL.make = GENERIC.make = no_objects  # the two classes themselves cannot be instantiated


def _protocol(
    m: Machine, name: str, bases: tuple[Class, ...], space: dict[str, Any], fields: dict[str, str]
) -> Class:
    cls = classes.plain(m, name, bases, space, fields)
    if PROTOCOL in bases:
        cls.extra["protocol of"] = [*fields, *(key for key in space if not key.startswith("__"))]
        cls.make = _no_protocol_objects
    return cls


def _no_protocol_objects(m: Machine, cls: Class, /, *_: Any, **__: Any) -> Any:
    raise TypeError("Protocols cannot be instantiated")


PROTOCOL.extra["subclass"] = _protocol


def _runtime_checkable(m: Machine, cls: Any, /) -> Any:
    names = cls.extra.get("protocol of") if isinstance(cls, Class) else None
    if names is None or cls.machine is not m:
        shown = m.repr(cls)
        raise TypeError(f"@runtime_checkable can be only applied to protocol classes, got {shown}")
    cls.extra["accepts"] = lambda m, value: all(_has(m, value, name) for name in names)
    return cls


def _has(m: Machine, value: Any, name: str) -> bool:
    m.charge(4)
    if value.__class__ in INSTANCES and name in value.fields:
        return True
    return m.class_of(value).find(name) is not UNSET


MODULE["runtime_checkable"] = Builtin("runtime_checkable", _runtime_checkable)


def _no_options(m: Machine, cls: Class, /, **named: Any) -> None:
    """Accept keywords after the bases, such as `total=False`."""


def _typed_dict(
    m: Machine, name: str, bases: tuple[Class, ...], space: dict[str, Any], fields: dict[str, str]
) -> Class:
    cls = classes.plain(m, name, bases, space, fields)
    cls.make = _make_dict
    cls.extra["accepts"] = _no_checks
    return cls


def _make_dict(m: Machine, cls: Class, /, *args: Any, **named: Any) -> Any:
    return m.call(DICT, args, named)


def _no_checks(m: Machine, value: Any) -> bool:
    raise TypeError("TypedDict does not support instance and class checks")


TYPED_DICT = _base("TypedDict")
TYPED_DICT.extra["subclass"] = _typed_dict
TYPED_DICT.members["__init_subclass__"] = ClassMethod(Builtin("__init_subclass__", _no_options))


def _call_typed_dict(m: Machine, cls: Class, typename: Any, fields: Any, /, **named: Any) -> Class:
    return _typed_dict(m, m.str(typename), (TYPED_DICT,), {}, {})


TYPED_DICT.make = _call_typed_dict


# ---- functions ----------------------------------------------------------------------------------


def _form_maker(name: str) -> None:
    def call(m: Machine, given: Any = name, /, *args: Any, **named: Any) -> Any:
        m.allocate(100)
        return TypingForm(f"~{m.str(given)}")

    MODULE[name] = Builtin(name, call)


for _name in ("TypeVar", "TypeVarTuple", "ParamSpec", "TypeAliasType"):
    _form_maker(_name)


@builtin("NewType", MODULE)
def _new_type(m: Machine, name: Any, tp: Any) -> Any:
    m.allocate(200)
    return Builtin(m.str(name), lambda m, value, /: value)


@builtin("assert_never", MODULE)
def _assert_never(m: Machine, arg: Any, /) -> Any:
    shown = m.repr(arg)
    if len(shown) > 100:
        shown = f"{shown[:100]}..."
    raise AssertionError(f"Expected code to be unreachable, but got: {shown}")


def _overloaded(m: Machine, /, *args: Any, **named: Any) -> Any:
    raise NotImplementedError(
        "You should not call an overloaded function. A series of @overload-decorated functions "
        "outside a stub module should always be followed by an implementation that is not "
        "@overload-ed."
    )


_OVERLOADED = Builtin("overload", _overloaded)
MODULE["overload"] = Builtin("overload", lambda m, func, /: _OVERLOADED)
MODULE["cast"] = Builtin("cast", lambda m, typ, val: val)
MODULE["assert_type"] = Builtin("assert_type", lambda m, val, typ, /: val)
for _name in ("final", "override", "no_type_check", "clear_overloads", "reveal_type"):
    MODULE[_name] = Builtin(_name, lambda m, value, /: value)


def _with_text(name: str) -> None:
    """Register a decorator with arguments that returns its function unchanged."""

    def call(m: Machine, /, *args: Any, **named: Any) -> Any:
        return Builtin(name, lambda m, value, /: value)

    MODULE[name] = Builtin(name, call)


for _name in ("dataclass_transform", "deprecated"):
    _with_text(_name)


@builtin("is_typeddict", MODULE)
def _is_typeddict(m: Machine, tp: Any, /) -> bool:
    return isinstance(tp, Class) and tp is not TYPED_DICT and tp.is_a(TYPED_DICT)


for _name in ("get_args", "get_origin"):
    MODULE[_name] = unsupported(_name, "pass the information about the type as a value")
