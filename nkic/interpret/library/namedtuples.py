"""`collections.namedtuple` and `typing.NamedTuple`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from keyword import iskeyword
from typing import TYPE_CHECKING, Any

from nkic.interpret import classes
from nkic.interpret.classes import bind
from nkic.interpret.library.support import Signature, check_owner, representation
from nkic.interpret.objects import (
    FIRST,
    Builtin,
    Class,
    ClassMethod,
    Getter,
    StaticMethod,
    TupleInstance,
)
from nkic.interpret.tables import builtin
from nkic.interpret.types.sequences import TUPLE
from nkic.interpret.types.text import split

if TYPE_CHECKING:
    from nkic.interpret.machine import Machine
    from nkic.interpret.texts import Writer

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
