"""Classes with fields: the base class `NKIObject`, and what `dataclasses.dataclass` derives.

Python's own module generates and compiles source for them; here they are closures over the list of
fields.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from nkic.base.device import KernelError, Missing, bind_fields
from nkic.interpret import attributes, classes, exceptions
from nkic.interpret.classes import bind, note_slots
from nkic.interpret.compare import compare, equal, stable_hash
from nkic.interpret.library.support import (
    Signature,
    check_owner,
    final,
    is_instance_of,
    kernel_class,
    library_class,
    new_instance,
    repr_of,
    representation,
)
from nkic.interpret.objects import (
    FIRST,
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
    shared_instance,
)
from nkic.interpret.tables import OBJECT

if TYPE_CHECKING:
    from nkic.interpret.machine import Machine
    from nkic.interpret.texts import Writer

# ---- `NKIObject`: classes whose annotated names are their fields --------------------------------

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
        "__repr__": representation(name, _show_record),
    }
    return cls


def _eq(m: Machine, owner: Any, other: Any, /) -> Any:
    if owner.__class__ not in INSTANCES or m.class_of(owner) is not m.class_of(other):
        return NotImplemented
    m.charge(1 + len(owner.fields))
    return equal(m, owner.fields, other.fields)


def _hash(m: Machine, owner: Any, /) -> int:
    return stable_hash(m, m.class_of(owner).qualname)


def _show_record(m: Machine, owner: Any, writer: Writer) -> None:
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
        values_by_name = bind_fields(cls.name, names, values, named)
        for name in names:
            value = values_by_name.get(name, UNSET)
            if value is UNSET:
                default = cls.find(name)
                value = None if default is UNSET else default
            attributes.put(m, owner, name, value)
        m.call(attributes.get(m, owner, "__post_init__"), (), None)

    return call


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


# ---- `dataclasses` ------------------------------------------------------------------------------

FIELD = final(library_class("Field", "dataclasses"))
_MISSING = final(library_class("_MISSING_TYPE", "dataclasses"))
MISSING = shared_instance(_MISSING)


@repr_of(_MISSING)
def _show_missing(m: Machine, owner: Any, writer: Writer) -> None:
    writer.add("<dataclasses._MISSING_TYPE object>")


class Spec:
    """One field. `kind` is "field", "classvar" or "initvar"; omitted values are MISSING."""

    __slots__ = (
        *("name", "kind", "default", "factory", "init", "repr", "hash", "compare", "kw_only"),
        "shown",
    )

    def __init__(self, m: Machine, name: str, kind: str, field_object: Any, kw_only: bool) -> None:
        self.name = name
        self.kind = kind
        self.default: Any = field_object.fields["default"]
        self.factory: Any = field_object.fields["default_factory"]
        self.init: bool = field_object.fields["init"]
        self.repr: bool = field_object.fields["repr"]
        self.hash: bool | None = field_object.fields["hash"]
        self.compare: bool = field_object.fields["compare"]
        explicit = field_object.fields["kw_only"]
        self.kw_only: bool = kw_only if explicit is MISSING else explicit
        attributes.write_field(m, field_object, "kw_only", self.kw_only)
        self.shown = field_object

    @property
    def required(self) -> bool:
        """Whether a call must supply the value."""
        return self.default is MISSING and self.factory is MISSING


def field(
    m: Machine,
    /,
    *,
    default: Any = MISSING,
    default_factory: Any = MISSING,
    init: Any = True,
    repr: Any = True,
    hash: Any = None,
    compare: Any = True,
    metadata: Any = None,
    kw_only: Any = MISSING,
) -> Any:
    if default is not MISSING and default_factory is not MISSING:
        raise ValueError("cannot specify both default and default_factory")
    return new_instance(
        m,
        FIELD,
        name=None,
        default=default,
        default_factory=default_factory,
        init=m.truth(init),
        repr=m.truth(repr),
        hash=None if hash is None else m.truth(hash),
        compare=m.truth(compare),
        metadata={} if metadata is None else metadata,
        kw_only=kw_only if kw_only is MISSING else m.truth(kw_only),
    )


def _no_type(m: Machine, owner: Any) -> Any:
    text = "the type of a field is not kept: kernels never evaluate annotations"
    raise Missing("unknown-attribute", text, "type", "describe the field in its metadata")


FIELD.members["type"] = Getter("type", _no_type)


@repr_of(FIELD)
def _show(m: Machine, owner: Any, writer: Writer) -> None:
    writer.named("Field", list(owner.fields.items()))


def is_field(value: Any) -> bool:
    return is_instance_of(value, FIELD)


# ---- the fields of a class ----------------------------------------------------------------------


def own_specs(m: Machine, cls: Class, kw_only: bool) -> dict[str, Spec]:
    """Return the fields that a class body declares."""
    specs: dict[str, Spec] = {}
    markers = list(cls.fields.items())
    m.charge(20 * len(markers))
    has_marker = False
    for name, marker in markers:
        if marker == "KW_ONLY":
            if has_marker:
                raise TypeError(f"'{name}' is KW_ONLY, but KW_ONLY has already been specified")
            has_marker = kw_only = True
            continue
        specs[name] = _spec(m, cls, name, marker, kw_only)
    for name, value in cls.members.items():
        if is_field(value) and name not in cls.fields:
            raise TypeError(f"'{name}' is a field but has no type annotation")
    for spec in specs.values():
        if is_field(cls.members.get(spec.name)):
            if spec.default is MISSING:
                del cls.members[spec.name]
            else:
                cls.members[spec.name] = spec.default
    return {name: spec for name, spec in specs.items() if spec.kind != "classvar"}


def _spec(m: Machine, cls: Class, name: str, marker: str, kw_only: bool) -> Spec:
    value = cls.find(name)
    if value is UNSET or value.__class__ is Getter:
        value = MISSING
    field_object = value if is_field(value) else field(m, default=value)
    if field_object.fields["name"] is not None:  # one field object under several names
        field_object = new_instance(m, FIELD, **field_object.fields)
    attributes.write_field(m, field_object, "name", name)
    kind = {"ClassVar": "classvar", "InitVar": "initvar"}.get(marker, "field")
    if kind != "field" and field_object.fields["default_factory"] is not MISSING:
        raise TypeError(f"field {name} cannot have a default factory")
    if kind == "classvar" and field_object.fields["kw_only"] is not MISSING:
        raise TypeError(f"field {name} is a ClassVar but specifies kw_only")
    default = field_object.fields["default"]
    if kind != "classvar" and _is_mutable(default):
        shown = m.repr(m.class_of(default))
        raise ValueError(
            f"mutable default {shown} for field {name} is not allowed: use default_factory"
        )
    return Spec(m, name, kind, field_object, kw_only and kind != "classvar")


def _is_mutable(default: Any) -> bool:
    if default.__class__ in INSTANCES:
        method = default.cls.find("__hash__")
        return method is None or (method is UNSET and isinstance(default, list | dict | set))
    return isinstance(default, list | dict | set)


def all_specs(m: Machine, cls: Class, kw_only: bool) -> dict[str, Spec]:
    """Return the fields of a class and of its bases, in their order."""
    specs: dict[str, Spec] = {}
    for base in reversed(cls.mro[1:]):
        specs |= base.extra.get("dataclass", {})
    specs |= own_specs(m, cls, kw_only)
    m.elements(len(specs), "the fields")
    return specs


class DataclassOptions(NamedTuple):
    init: bool = True
    repr: bool = True
    eq: bool = True
    order: bool = False
    unsafe_hash: bool = False
    frozen: bool = False
    match_args: bool = True
    kw_only: bool = False
    slots: bool = False
    weakref_slot: bool = False


def dataclass(m: Machine, cls: Any = None, /, **named: Any) -> Any:
    """Implement `@dataclass` and `@dataclass(frozen=True)`."""
    for name in named:
        if name not in DataclassOptions._fields:
            raise TypeError(f"dataclass() got an unexpected keyword argument '{name}'")
    options = DataclassOptions(**{name: m.truth(value) for name, value in named.items()})
    if cls is None:
        return Builtin("wrap", lambda m, cls, /: process(m, cls, options))
    return process(m, cls, options)


def process(m: Machine, value: Any, options: DataclassOptions) -> Class:
    """Add the methods that the fields and the options call for."""
    cls = kernel_class(m, value, "dataclass")
    m.allocate(8000)
    complete(m, cls)
    specs = all_specs(m, cls, options.kw_only)
    annotations = cls.members.get("__annotations__")
    inherited = {name for base in cls.mro[1:] for name in base.extra.get("dataclass", ())}
    same = annotations.__class__ is dict and set(annotations) | inherited == set(specs)
    if annotations is not None and not same:
        text = f"`__annotations__` of `{cls.name}` has other names than its fields"
        help = "write the fields as annotated names alone: kernels never evaluate annotations"
        raise KernelError("hidden-attribute", text, help=help)
    _check_frozen(cls, options)
    explicit = _has_hash(cls)
    fields = [spec for spec in specs.values() if spec.kind == "field"]
    cls.extra["dataclass"] = specs
    cls.extra["frozen"] = options.frozen
    if options.order and not options.eq:
        raise ValueError("eq must be true if order is true")
    _add_repr_and_order(cls, fields, options)
    if options.frozen:
        names = {spec.name for spec in fields}
        for method, verb in (("__setattr__", "assign to"), ("__delattr__", "delete")):
            if method in cls.members:
                raise TypeError(f"Cannot overwrite attribute {method} in class {cls.name}")
            cls.members[method] = Builtin(f"{cls.name}.{method}", _refusing(cls, names, verb))
    _add_hash(cls, fields, options, explicit)
    if options.init:
        _add_method(cls, "__init__", _init(m, cls, specs, options))
    if options.match_args and "__match_args__" not in cls.members:
        init_fields = [s.name for s in specs.values() if s.init and not s.kw_only]
        cls.members["__match_args__"] = tuple(init_fields)
    if options.weakref_slot and not options.slots:
        raise TypeError("weakref_slot is True but slots is False")
    if options.slots:
        _add_slots(m, cls, fields)
    return cls


def _add_method(cls: Class, name: str, method: Any) -> None:
    cls.members.setdefault(name, method)


def _has_hash(cls: Class) -> bool:
    """Whether the class body defines `__hash__`. (Python sets None if it defines `__eq__`.)"""
    if "__hash__" not in cls.members:
        return False
    return cls.members["__hash__"] is not None or "__eq__" not in cls.members


def _check_frozen(cls: Class, options: DataclassOptions) -> None:
    dataclass_bases = [base for base in cls.mro[1:] if "dataclass" in base.extra]
    frozen = any(base.extra.get("frozen") for base in dataclass_bases)
    if frozen and not options.frozen:
        raise TypeError("cannot inherit non-frozen dataclass from a frozen one")
    if dataclass_bases and not frozen and options.frozen:
        raise TypeError("cannot inherit frozen dataclass from a non-frozen one")


# ---- __init__ -----------------------------------------------------------------------------------


def _default(spec: Spec) -> Any:
    return _FROM_FACTORY if spec.default is MISSING else spec.default


_FROM_FACTORY = object()  # a default from a factory


def _init(m: Machine, cls: Class, specs: dict[str, Spec], options: DataclassOptions) -> Builtin:
    init_fields = [spec for spec in specs.values() if spec.init]
    _check_order(init_fields)
    plain = [spec for spec in init_fields if not spec.kw_only]
    keyword_only = [spec for spec in init_fields if spec.kw_only]
    signature: Any = Signature(
        f"{cls.qualname}.__init__",
        ["self", *(spec.name for spec in plain)],
        [_default(spec) for spec in plain if not spec.required],
        [spec.name for spec in keyword_only],
        {spec.name: _default(spec) for spec in keyword_only if not spec.required},
    )
    parameters = [*plain, *keyword_only]
    later_fields = [
        spec
        for spec in specs.values()
        if not spec.init and spec.kind == "field"
        if spec.factory is not MISSING or (options.slots and not spec.required)
    ]
    put = attributes.put_field if options.frozen else attributes.put

    def call(m: Machine, /, *args: Any, **named: Any) -> None:
        values = bind(m, signature, args, named)[FIRST:]
        owner, field_values = values[0], values[1:]
        check_owner(m, owner, cls, "__init__")
        first: list[Any] = []
        for spec, value in zip(parameters, field_values, strict=True):
            if value is _FROM_FACTORY:
                value = m.call(spec.factory, (), None)
            if spec.kind == "initvar":
                first.append((spec, value))
            else:
                put(m, owner, spec.name, value)
        for spec in later_fields:
            value = spec.default if spec.factory is MISSING else m.call(spec.factory, (), None)
            put(m, owner, spec.name, value)
        _call_post_init(m, cls, owner, first, specs)

    return Builtin(f"{cls.name}.__init__", call, parameters=[s.name for s in parameters])


def _call_post_init(
    m: Machine, cls: Class, owner: Any, first: list[Any], specs: dict[str, Spec]
) -> None:
    if owner.cls.find("__post_init__") is UNSET:
        return
    order = list(specs)
    first.sort(key=lambda pair: order.index(pair[0].name))
    values = tuple([value for _, value in first])
    m.call(attributes.get(m, owner, "__post_init__"), values, None)


def _check_order(init_fields: list[Spec]) -> None:
    has_default = False
    for spec in init_fields:
        if spec.kw_only:
            continue
        if spec.required and has_default:
            raise TypeError(f"non-default argument '{spec.name}' follows default argument")
        has_default = not spec.required


# ---- text, comparison, hash ---------------------------------------------------------------------


def _add_repr_and_order(cls: Class, fields: list[Spec], options: DataclassOptions) -> None:
    if options.repr:
        _add_method(cls, "__repr__", _repr(cls, [spec.name for spec in fields if spec.repr]))
    names = tuple(spec.name for spec in fields if spec.compare)
    if options.eq:
        _add_method(cls, "__eq__", _comparing(cls, "__eq__", "==", names))
    if options.order:
        for method, symbol in _ORDERS.items():
            if method in cls.members:
                raise TypeError(
                    f"Cannot overwrite attribute {method} in class {cls.name}. "
                    "Consider using functools.total_ordering"
                )
            _add_method(cls, method, _comparing(cls, method, symbol, names))


_ORDERS = {"__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">="}


def _repr(cls: Class, names: list[str]) -> Builtin:
    def show(m: Machine, owner: Any, writer: Writer) -> None:
        parts = [(name, attributes.get(m, owner, name)) for name in names]
        writer.named(m.class_of(owner).qualname, parts)

    return representation(cls.name, show)


def _values(m: Machine, owner: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
    m.elements(len(names), "the fields")
    fields, find = owner.fields, attributes.get
    return tuple([fields[n] if n in fields else find(m, owner, n) for n in names])


def _comparing(cls: Class, method: str, symbol: str, names: tuple[str, ...]) -> Builtin:
    def call(m: Machine, owner: Any, other: Any, /) -> Any:
        if owner.__class__ not in INSTANCES or other.__class__ not in INSTANCES:
            return NotImplemented
        if owner.cls is not other.cls:
            return NotImplemented
        return compare(m, symbol, _values(m, owner, names), _values(m, other, names))

    return Builtin(f"{cls.name}.{method}", call)


def _add_hash(cls: Class, fields: list[Spec], options: DataclassOptions, explicit: bool) -> None:
    if options.unsafe_hash and explicit:
        raise TypeError(f"Cannot overwrite attribute __hash__ in class {cls.name}")
    if explicit:
        return
    if options.unsafe_hash or (options.eq and options.frozen):
        hashed = [s for s in fields if (s.compare if s.hash is None else s.hash)]
        names = tuple(spec.name for spec in hashed)

        def call(m: Machine, owner: Any, /) -> int:
            return stable_hash(m, _values(m, owner, names))

        cls.members["__hash__"] = Builtin(f"{cls.name}.__hash__", call)
    elif options.eq:
        cls.members["__hash__"] = None


# ---- frozen, slots ------------------------------------------------------------------------------


def _refusing(cls: Class, names: set[str], verb: str) -> Callable[..., None]:
    def call(m: Machine, owner: Any, name: Any, /, *value: Any) -> None:
        if m.class_of(owner) is cls or name in names:
            text = f"cannot {verb} field {m.repr(name)}"
            raise exceptions.make(m, "FrozenInstanceError", (text,))
        if value:
            attributes.put_field(m, owner, name, value[0])
        else:
            attributes.remove_field(m, owner, name)

    return call


def _add_slots(m: Machine, cls: Class, fields: list[Spec]) -> None:
    if "__slots__" in cls.members:
        raise TypeError(f"{cls.name} already specifies __slots__")
    names = cls.members["__slots__"] = tuple(spec.name for spec in fields)
    for name in names:
        cls.members.pop(name, None)
    note_slots(m, cls, cls.members)
