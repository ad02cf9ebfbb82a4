"""`typing`: names that annotations use, which nothing is ever checked against; and named tuples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from keyword import iskeyword
from typing import TYPE_CHECKING, Any

from nkic.interpret import classes
from nkic.interpret.classes import TypingForm, bind
from nkic.interpret.library import abcs
from nkic.interpret.library.support import Signature, check_owner, representation, unsupported
from nkic.interpret.objects import (
    FIRST,
    INSTANCES,
    UNSET,
    Builtin,
    Class,
    ClassMethod,
    Getter,
    Instance,
    StaticMethod,
    TupleInstance,
    no_objects,
)
from nkic.interpret.operators import union
from nkic.interpret.tables import OBJECT, builtin
from nkic.interpret.types.sequences import DICT, FROZENSET, LIST, SET, TUPLE
from nkic.interpret.types.text import STR, split

if TYPE_CHECKING:
    from nkic.interpret.machine import Machine
    from nkic.interpret.texts import Writer

# ---- `collections.namedtuple` and `typing.NamedTuple` -------------------------------------------

FUNCTIONS: dict[str, Any] = {}


# ---- methods ------------------------------------------------------------------------------------


def _content(m: Machine, cls: Class, payload: type, args: Any, named: Any) -> Any:
    return TupleInstance(args)


def _make_instance(m: Machine, cls: Class, values: Sequence[Any]) -> Any:
    m.elements(len(values), "the tuple")
    return classes.blank(m, cls, values)


def _new(base: Class, signature: Any, m: Machine, /, *args: Any, **named: Any) -> Any:
    cls, *values = bind(m, signature, args, named)[FIRST:]
    if not isinstance(cls, Class) or not cls.is_a(base):
        raise TypeError(f"{signature.name}() takes a class that inherits from the named tuple")
    return _make_instance(m, cls, values)


def _make(names: tuple[str, ...], m: Machine, cls: Class, iterable: Any, /) -> Any:
    values = m.to_list(iterable)
    if len(values) != len(names):
        raise TypeError(f"Expected {len(names)} arguments, got {len(values)}")
    return _make_instance(m, cls, values)


def _replace(names: tuple[str, ...], m: Machine, owner: Any, /, **changes: Any) -> Any:
    values = [changes.pop(n, v) for n, v in zip(names, tuple.__iter__(owner), strict=True)]
    if changes:
        raise ValueError(f"Got unexpected field names: {list(changes)!r}")
    return _make_instance(m, owner.cls, values)


def _asdict(names: tuple[str, ...], m: Machine, owner: Any, /) -> dict[str, Any]:
    m.elements(3 * len(names), "the dict")
    return dict(zip(names, tuple.__iter__(owner), strict=True))


def _field(cls: Class, name: str, index: int) -> Getter:
    def get(m: Machine, owner: Any) -> Any:
        check_owner(m, owner, cls, name)
        return tuple.__getitem__(owner, index)

    return Getter(name, get)


def _method(cls: Class, name: str, call: Any, names: tuple[str, ...]) -> Builtin:
    def checked(m: Machine, owner: Any, /, *args: Any, **named: Any) -> Any:
        check_owner(m, owner, cls, name)
        return call(names, m, owner, *args, **named)

    return Builtin(f"{cls.name}.{name}", checked)


# ---- creation of classes ------------------------------------------------------------------------


def make_class(
    m: Machine,
    name: str,
    names: tuple[str, ...],
    defaults: dict[str, Any],
    space: dict[str, Any],
    renamed: bool = False,
) -> Class:
    m.allocate(4000 + 400 * len(names) + 4 * len(name))  # methods are called after the class
    _check_names(names, renamed)
    cls = Class(name, (TUPLE,), {}, payload=tuple, make=classes.construct, machine=m)
    cls.extra |= {"content": _content, "fields": names}
    signature = Signature(f"{cls.name}.__new__", ("_cls", *names), tuple(defaults.values()))
    cls.members |= {
        "__new__": StaticMethod(Builtin(signature.name, partial(_new, cls, signature))),
        "_make": ClassMethod(Builtin("_make", partial(_make, names))),
        "_replace": _method(cls, "_replace", _replace, names),
        "_asdict": _method(cls, "_asdict", _asdict, names),
        "_fields": names,
        "_field_defaults": dict(defaults),
        "__match_args__": names,
        "__repr__": representation(name, _checked_show(cls, names)),
    }
    cls.members |= {
        field_name: _field(cls, field_name, index) for index, field_name in enumerate(names)
    }
    for key, value in space.items():
        if key in _KEPT or key == "_asdict":
            raise AttributeError(f"Cannot overwrite NamedTuple attribute {key}")
        if key not in cls.extra["fields"]:
            cls.members[key] = value
    if "__eq__" in space and "__hash__" not in space:
        cls.members["__hash__"] = None
    return cls


def _checked_show(cls: Class, names: tuple[str, ...]) -> Any:
    def show(m: Machine, owner: Any, writer: Writer) -> None:
        check_owner(m, owner, cls, "__repr__")
        writer.named(owner.cls.name, list(zip(names, tuple.__iter__(owner), strict=True)))

    return show


_KEPT = frozenset({"__new__", "__init__", "_fields", "_field_defaults", "_make", "_replace"})


def _check_names(names: Sequence[str], renamed: bool = False) -> None:
    seen: set[str] = set()
    for name in names:
        if not name.isidentifier():
            raise ValueError(f"Type names and field names must be valid identifiers: {name!r}")
        if iskeyword(name):
            raise ValueError(f"Type names and field names cannot be a keyword: {name!r}")
        if name.startswith("_") and not renamed:
            raise ValueError(f"Field names cannot start with an underscore: {name!r}")
        if name in seen:
            raise ValueError(f"Encountered duplicate field name: {name!r}")
        seen.add(name)


def _subclass(
    m: Machine, name: str, bases: tuple[Class, ...], space: dict[str, Any], fields: dict[str, str]
) -> Class:
    """Create a class from `class Pair(NamedTuple)`."""
    if len(bases) > 1 and any(base.extra.get("item") is None for base in bases[1:]):
        raise TypeError("can only inherit from a NamedTuple type and Generic")
    defaults: dict[str, Any] = {}
    for field in fields:
        if field in space:
            defaults[field] = space[field]
        elif defaults:
            described = f"default field{'s' if len(defaults) > 1 else ''} {', '.join(defaults)}"
            raise TypeError(f"Non-default namedtuple field {field} cannot follow {described}")
    return make_class(m, name, tuple(fields), defaults, space)


NAMED_TUPLE = Class("NamedTuple", (TUPLE,), {}, payload=tuple, module="typing")
NAMED_TUPLE.extra |= {"inheritable": True, "subclass": _subclass}


def _call(m: Machine, cls: Class, typename: Any, fields: Any = (), /, **named: Any) -> Class:
    """Create a class from `NamedTuple("Pair", [("left", int)])`."""
    pairs = [m.unpack(pair, 2) for pair in m.to_list(fields)]
    names = tuple([_text(m, name) for name, _ in pairs]) or tuple(named)
    return make_class(m, _text(m, typename), names, {}, {})


NAMED_TUPLE.make = _call


def _text(m: Machine, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("Type names and field names must be strings")
    return str.__str__(value)


@builtin("namedtuple", FUNCTIONS)
def _namedtuple(
    m: Machine,
    typename: Any,
    field_names: Any,
    *,
    rename: Any = False,
    defaults: Any = None,
    module: Any = None,
) -> Class:
    if isinstance(field_names, str):
        split(m, field_names, ())
        field_names = field_names.replace(",", " ").split()
    names = [m.str(field) for field in m.to_list(field_names)]
    renamed = m.truth(rename)
    names = _renamed(names) if renamed else names
    values = [] if defaults is None else m.to_list(defaults)
    if len(values) > len(names):
        raise TypeError("Got more default values than field names")
    defaults_by_name = dict(zip(names[len(names) - len(values) :], values, strict=True))
    return make_class(m, m.str(typename), tuple(names), defaults_by_name, {}, renamed)


def _renamed(names: Sequence[str]) -> list[str]:
    valid: dict[str, None] = {}
    for index, name in enumerate(names):
        bad = not name.isidentifier() or iskeyword(name) or name.startswith("_")
        valid[f"_{index}" if bad or name in valid else name] = None
    return [*valid]


# ---- Names of annotations -----------------------------------------------------------------------

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
