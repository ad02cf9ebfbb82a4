"""The fields of dataclasses: the result of `field(…)`, and the declarations of a class body."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nkic.evaluate import attributes
from nkic.evaluate.errors import Missing
from nkic.evaluate.library.support import (
    final,
    is_instance_of,
    library_class,
    new_instance,
    repr_of,
)
from nkic.evaluate.objects import INSTANCES, UNSET, Class, Getter, shared_instance

if TYPE_CHECKING:
    from nkic.evaluate.machine import Machine
    from nkic.evaluate.texts import Writer

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
    """Return a field, as `dataclasses.field` does."""
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
    """Whether the value is a result of `field(…)`."""
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
        _set_class_default(cls, spec)
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
    _check_special(m, cls, name, kind, field_object)
    _check_default(m, name, field_object.fields["default"], kind)
    return Spec(m, name, kind, field_object, kw_only and kind != "classvar")


def _check_special(m: Machine, cls: Class, name: str, kind: str, field_object: Any) -> None:
    if kind != "field" and field_object.fields["default_factory"] is not MISSING:
        raise TypeError(f"field {name} cannot have a default factory")
    if kind == "classvar" and field_object.fields["kw_only"] is not MISSING:
        raise TypeError(f"field {name} is a ClassVar but specifies kw_only")


def _check_default(m: Machine, name: str, default: Any, kind: str) -> None:
    if kind != "classvar" and _is_mutable(default):
        shown = m.repr(m.class_of(default))
        raise ValueError(
            f"mutable default {shown} for field {name} is not allowed: use default_factory"
        )


def _is_mutable(default: Any) -> bool:
    if default.__class__ in INSTANCES:
        method = default.cls.find("__hash__")
        return method is None or (method is UNSET and isinstance(default, list | dict | set))
    return isinstance(default, list | dict | set)


def _set_class_default(cls: Class, spec: Spec) -> None:
    """Assign the default of `field(default=…)` to the class attribute, as Python does."""
    if is_field(cls.members.get(spec.name)):
        if spec.default is MISSING:
            del cls.members[spec.name]
        else:
            cls.members[spec.name] = spec.default


def all_specs(m: Machine, cls: Class, kw_only: bool) -> dict[str, Spec]:
    """Return the fields of a class and of its bases, in their order."""
    specs: dict[str, Spec] = {}
    for base in reversed(cls.mro[1:]):
        specs |= base.extra.get("dataclass", {})
    specs |= own_specs(m, cls, kw_only)
    m.elements(len(specs), "the fields")
    return specs
