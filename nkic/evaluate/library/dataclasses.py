"""`dataclasses`: the module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nkic.evaluate import attributes
from nkic.evaluate.classes import TypingForm
from nkic.evaluate.containers import keyed
from nkic.evaluate.library.copying import deep
from nkic.evaluate.library.dataclass import dataclass
from nkic.evaluate.library.specs import FIELD, MISSING, Spec, field
from nkic.evaluate.library.support import unsupported
from nkic.evaluate.objects import INSTANCES, UNSET, Builtin, Class
from nkic.evaluate.tables import builtin

if TYPE_CHECKING:
    from nkic.evaluate.machine import Machine

MODULE: dict[str, Any] = {
    "dataclass": Builtin("dataclass", dataclass),
    "field": Builtin("field", field),
    "Field": FIELD,
    "MISSING": MISSING,
    "KW_ONLY": TypingForm("KW_ONLY"),
    "InitVar": TypingForm("InitVar"),
    "make_dataclass": unsupported("make_dataclass", "write the class out, under `@dataclass`"),
}


def _specs(m: Machine, value: Any) -> dict[str, Spec] | None:
    cls = value if isinstance(value, Class) else m.class_of(value)
    specs: dict[str, Spec] | None = cls.hook("dataclass")
    return specs


def _of_object(m: Machine, value: Any) -> list[Spec] | None:
    if value.__class__ not in INSTANCES:
        return None
    specs = _specs(m, value)
    return None if specs is None else [s for s in specs.values() if s.kind == "field"]


@builtin("fields", MODULE)
def _fields(m: Machine, class_or_instance: Any, /) -> tuple[Any, ...]:
    specs = _specs(m, class_or_instance)
    if specs is None:
        raise TypeError("must be called with a dataclass type or instance")
    m.elements(len(specs), "the fields")
    return tuple([spec.shown for spec in specs.values() if spec.kind == "field"])


@builtin("is_dataclass", MODULE)
def _is_dataclass(m: Machine, obj: Any, /) -> bool:
    return _specs(m, obj) is not None


@builtin("replace", MODULE)
def _replace(m: Machine, obj: Any, /, **changes: Any) -> Any:
    specs = _specs(m, obj)
    if obj.__class__ not in INSTANCES or specs is None:
        raise TypeError("replace() should be called on dataclass instances")
    m.elements(3 * len(specs), "the fields")
    for name, spec in specs.items():
        if not spec.init:
            if name in changes:
                raise ValueError(
                    f"field {name} is declared with init=False, it cannot be specified with "
                    "replace()"
                )
        elif name not in changes:
            if spec.kind == "initvar" and spec.default is MISSING:
                raise ValueError(f"InitVar '{name}' must be specified with replace()")
            changes[name] = attributes.get(m, obj, name)
    return m.call(obj.cls, (), changes)


@builtin("asdict", MODULE)
def _asdict(m: Machine, obj: Any, /, *, dict_factory: Any = None) -> Any:
    if _of_object(m, obj) is None:
        raise TypeError("asdict() should be called on dataclass instances")
    return _plain(m, obj, lambda pairs: _as_dict(m, pairs, dict_factory))


@builtin("astuple", MODULE)
def _astuple(m: Machine, obj: Any, /, *, tuple_factory: Any = None) -> Any:
    if _of_object(m, obj) is None:
        raise TypeError("astuple() should be called on dataclass instances")
    return _plain(m, obj, lambda pairs: _as_tuple(m, pairs, tuple_factory))


def _as_dict(m: Machine, pairs: list[tuple[str, Any]], factory: Any) -> Any:
    m.elements(3 * len(pairs), "the dict")
    return dict(pairs) if factory is None else m.call(factory, (pairs,), None)


def _as_tuple(m: Machine, pairs: list[tuple[str, Any]], factory: Any) -> Any:
    values = [value for _, value in pairs]
    return tuple(values) if factory is None else m.call(factory, (values,), None)


def _plain(m: Machine, value: Any, make: Any) -> Any:
    """Convert a value and all dataclass objects in it. Containers are copied."""

    def plain(part: Any) -> Any:
        return m.nested(_plain, m, part, make)

    m.charge(20)
    fields = _of_object(m, value)
    if fields is not None:
        parts = [(s.name, attributes.get(m, value, s.name)) for s in fields]
        return make([(name, plain(part)) for name, part in parts])
    if isinstance(value, list | tuple):
        m.elements(len(value), "the list")
        return _like(m, value, [plain(part) for part in m.iterate(value)])
    if isinstance(value, dict):
        m.elements(3 * len(value), "the dict")
        pairs = [(plain(k), plain(v)) for k, v in dict.items(value)]
        return keyed(m, pairs) if value.__class__ is dict else _like_dict(m, value, pairs)
    return deep(m, value, {})


def _like(m: Machine, value: Any, parts: list[Any]) -> Any:
    """Return a list or tuple of the same class as `value`."""
    if value.__class__ not in INSTANCES:
        return parts if isinstance(value, list) else tuple(parts)
    if "_fields" in value.cls.members:
        return m.call(value.cls, parts, None)
    return m.call(value.cls, (parts,), None)


def _like_dict(m: Machine, value: Any, pairs: list[Any]) -> Any:
    if value.__class__ in INSTANCES and value.cls.name == "defaultdict":
        copied = m.call(value.cls, (m.attribute(value, "default_factory"),), None)
        for key, part in pairs:
            m.put_item(copied, key, part)
        return copied
    return m.call(m.class_of(value), (pairs,), None)


def replaced(m: Machine, obj: Any, /, **changes: Any) -> Any:
    """`copy.replace`, since Python 3.13, for dataclasses and named tuples."""
    if obj.__class__ in INSTANCES:
        hook = obj.cls.find("__replace__")
        if hook is UNSET:
            hook = obj.cls.find("_replace")
        if hook is not UNSET:
            return m.call(hook, (obj,), changes)
        if obj.cls.hook("dataclass") is not None:
            return MODULE["replace"].call(m, obj, **changes)
    raise TypeError(f"replace() does not support {m.class_of(obj).name} objects")
