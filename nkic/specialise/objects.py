"""Classes of kernel code: `NKIObject`, dataclasses, enums, and what may be a base or decorator."""

from __future__ import annotations

import abc
import dataclasses
import enum
import functools
import inspect
import operator
import types
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from nkic.base.suggest import did_you_mean
from nkic.specialise import kernel_enums
from nkic.specialise.budget import Limits, check_length
from nkic.specialise.errors import KernelError
from nkic.specialise.kernel_sets import stable_hash
from nkic.specialise.kinds import real


class NKIObject:
    """Base of the classes of kernels. Fields are what `name: type` declares.

    A class without `__init__` gets one from its fields, as a dataclass does; a field without
    default may then be left out and is None. A plain value in the class is a field as well.
    """

    def __post_init__(self, *_: Any) -> None:
        """Called after the fields are set."""

    def __eq__(self, other: object) -> Any:
        if type(self) is not type(other):
            return NotImplemented
        return _stepping(self, self.__dict__) == other.__dict__

    def __hash__(self) -> int:
        return hash(type(self).__qualname__)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__qualname__}({fields})"


class ReplicaGroup(NKIObject):
    """`nki.collectives.ReplicaGroup`: lists of ranks, each of which works together."""

    def __init__(self, groups: Any) -> None:
        self.groups = groups

    def ranks(self) -> Any:
        """The lists, under whatever name a package that poses as `nki` keeps them."""
        return next(iter(self.__dict__.values()), ())


class Decorator:
    """A decorator that NKI knows. Called with options, it gives itself with those options."""

    def __init__(self, name: str, apply: Callable[..., Any], **options: Any) -> None:
        self.__name__ = name
        self._apply = apply
        self._options = options

    def __call__(self, target: Any = None, **options: Any) -> Any:
        if target is None:
            return Decorator(self.__name__, self._apply, **{**self._options, **options})
        return self._apply(target, **{**self._options, **options})

    def __repr__(self) -> str:
        return f"<decorator {self.__name__}>"


class Kernel:
    """A function under `nki.jit`. Called in a kernel, its body becomes part of that kernel."""

    def __init__(self, function: Callable[..., Any], schedule: tuple[Any, ...] = ()) -> None:
        self.function = function
        self.schedule = schedule
        self.__name__ = getattr(function, "__name__", "kernel")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __getitem__(self, grid: Any) -> Kernel:
        return self

    __iter__ = None  # or Python would go through the grids 0, 1, 2 … for ever

    def with_schedule(self, edges: Any) -> Kernel:
        """The kernel with further order among its named instructions."""
        return Kernel(self.function, (*self.schedule, *edges))

    def __repr__(self) -> str:
        return f"<kernel {self.__name__}>"


# ---- dataclasses --------------------------------------------------------------------------------


def dataclass(target: type, **options: Any) -> type:
    """`dataclasses.dataclass`, with a `__repr__` that keeps to the limits of text."""
    if issubclass(target, NKIObject):
        _complete_fields(target)
    shows, own = options.pop("repr", True), {*target.__dict__}
    made: type = dataclasses.dataclass(target, repr=False, **options)
    if shows and "__repr__" not in own:
        made.__repr__ = _field_repr  # type: ignore[assignment]
    for name, method in _field_methods(made).items():
        if callable(made.__dict__.get(name)) and name not in own:
            setattr(made, name, method)
    return made


def _stepping(owner: Any, values: Any) -> Any:
    """Values of an object that are about to be compared: that costs steps.

    Python's own methods of dataclasses would compare shared objects again and again, for ever.
    """
    nesting = getattr(type(owner), "__nkic__", None)
    if nesting is None:  # an object of NKIObject itself: it has no fields
        return values
    nesting.step()
    return nesting.compared(values)


def _field_methods(made: type) -> dict[str, Callable[..., Any]]:
    """`==`, `<` and the like, and `hash`, of a dataclass."""
    fields = dataclasses.fields(made)
    compared = tuple(field.name for field in fields if field.compare)
    hashed = tuple(f.name for f in fields if (f.compare if f.hash is None else f.hash))

    def field_hash(self: Any) -> int:
        own = tuple(getattr(self, name) for name in hashed)
        return stable_hash(type(self).__nkic__.hashed(_stepping(self, own)))

    orders = (operator.eq, operator.lt, operator.le, operator.gt, operator.ge)
    methods = {f"__{compare.__name__}__": _comparing(compare, compared) for compare in orders}
    return {**methods, "__hash__": field_hash}


def _comparing(compare: Callable[[Any, Any], Any], names: tuple[str, ...]) -> Callable[..., Any]:
    """A method that compares the fields of two objects of one class."""

    def method(self: Any, other: Any) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        own = tuple(getattr(self, name) for name in names)
        return compare(_stepping(self, own), tuple(getattr(other, name) for name in names))

    return method


def _field_repr(self: Any) -> str:
    shown = (field.name for field in dataclasses.fields(self) if field.repr)
    parts = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
    return f"{type(self).__qualname__}({parts})"


def shown_fields(value: Any) -> tuple[str, list[tuple[str, Any]]] | None:
    """Name and fields of an object that shows as `Name(field=value)`; None for others."""
    kind = type(value)
    if getattr(kind, "__repr__", None) is _field_repr:
        named = [field.name for field in dataclasses.fields(value) if field.repr]
        return kind.__qualname__, [(name, getattr(value, name)) for name in named]
    if getattr(kind, "__repr__", None) is NKIObject.__repr__:
        return kind.__qualname__, list(value.__dict__.items())
    if isinstance(value, tuple) and hasattr(kind, "_fields") and "__repr__" in kind.__dict__:
        return kind.__name__, list(zip(kind._fields, value, strict=True))
    return None


def as_dict(value: Any) -> dict[str, Any]:
    """`dataclasses.asdict`; tensors and other objects of ours stay the same objects."""
    return {name: _plain(part, as_dict) for name, part in _counted_fields(value)}


def as_tuple(value: Any) -> tuple[Any, ...]:
    """`dataclasses.astuple`, likewise."""
    return tuple(_plain(part, as_tuple) for _, part in _counted_fields(value))


def _counted_fields(value: Any) -> list[tuple[str, Any]]:
    """Fields whose containers are about to be copied, which goes into shared ones again."""
    found = [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    _stepping(value, tuple(part for _, part in found))
    return found


def _plain(value: Any, inner: Callable[[Any], Any]) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return inner(value)
    if isinstance(value, list | tuple):
        return type(value)(_plain(part, inner) for part in value)
    if isinstance(value, dict):
        return {key: _plain(part, inner) for key, part in value.items()}
    return value


# ---- what the translation asks ------------------------------------------------------------------


def finish_class(made: type) -> type:
    """Called with every class that kernel code defines, after its decorators."""
    if issubclass(made, NKIObject) and not dataclasses.is_dataclass(made):
        _give_init(made)
    if getattr(made, "__repr__") is object.__repr__:  # noqa: B009
        made.__repr__ = _plain_repr  # type: ignore[assignment]
    return made


def work_of_making(made: type) -> int:
    """Steps for making such a class: Python compiles the methods of some."""
    if dataclasses.is_dataclass(made):
        return 2000
    if issubclass(made, tuple | enum.Enum):
        return 600
    return 100


def _plain_repr(self: Any) -> str:
    return f"<{type(self).__qualname__} object>"


def _give_init(made: type) -> None:
    """`__init__` from the fields, where no class in the kernel's source has one."""
    inherited = next(kind for kind in made.__mro__ if "__init__" in kind.__dict__)
    if inherited is object or hasattr(inherited.__dict__["__init__"], "_from_fields"):
        made.__init__ = _init_of(made)  # type: ignore[misc]


def _init_of(made: type) -> Callable[..., None]:
    names = _field_names(made)
    defaults = {name: getattr(made, name, None) for name in names}

    def __init__(self: Any, *values: Any, **named: Any) -> None:  # noqa: N807
        _set_fields(self, defaults, _given(made.__name__, names, values, named))

    __init__._from_fields = True  # type: ignore[attr-defined]
    return __init__


def set_fields(made: NKIObject, values: tuple[Any, ...], named: dict[str, Any]) -> None:
    """What the `__init__` of a class without one does."""
    kind = type(made)
    names = _field_names(kind)
    defaults = {name: getattr(kind, name, None) for name in names}
    _set_fields(made, defaults, _given(kind.__name__, names, values, named))


def _set_fields(made: Any, defaults: dict[str, Any], given: dict[str, Any]) -> None:
    for name, default in defaults.items():
        setattr(made, name, given.get(name, default))
    made.__post_init__()


def _given(
    owner: str, names: list[str], values: tuple[Any, ...], named: dict[str, Any]
) -> dict[str, Any]:
    if len(values) > len(names):
        raise TypeError(f"{owner}() takes {len(names)} fields but {len(values)} were given")
    given = dict(zip(names, values, strict=False))
    for name, value in named.items():
        if name in given:
            raise TypeError(f"{owner}() got multiple values for field {name!r}")
        if name not in names:
            help = did_you_mean(name, names) or f"its fields are {', '.join(names) or 'none'}"
            text = f"a `{owner}` has no field `{name}`"
            raise KernelError("wrong-call", text, help=help, argument=name)
        given[name] = value
    return given


def _field_names(made: type) -> list[str]:
    found: dict[str, None] = {}
    for kind in reversed(made.__mro__):
        for name, marker in inspect.get_annotations(kind).items():
            if marker is not ClassVar:
                found[name] = None
        found |= dict.fromkeys(_plain_values(kind)) if kind is not NKIObject else {}
    return list(found)


def _plain_values(kind: type) -> list[str]:
    """Names that a class gives a value without declaring a type."""
    declared = inspect.get_annotations(kind)
    values = {name: value for name, value in kind.__dict__.items() if name not in declared}
    hidden = (types.FunctionType, type, staticmethod, classmethod, property, Decorator)
    return [
        name
        for name, value in values.items()
        if not name.startswith("__") and not isinstance(value, hidden)
    ]


def _complete_fields(target: type) -> None:
    """What NKI's own classes forgive in a dataclass: fields without type or default."""
    declared = dict(inspect.get_annotations(target))
    for name, marker in declared.items():
        if marker is not ClassVar and name not in target.__dict__:
            setattr(target, name, None)
    target.__annotations__ = {**declared, **dict.fromkeys(_plain_values(target), object)}


_BUILTIN_DECORATORS = (staticmethod, classmethod, property)


def check_decorator(value: Any) -> Any:
    """A decorator, if it is one that NKI knows."""
    if isinstance(value, Decorator) or real(value) in _BUILTIN_DECORATORS:
        return value
    if isinstance(getattr(value, "__self__", None), property):  # @x.setter
        return value
    raise KernelError(
        "unknown-decorator",
        f"`{getattr(value, '__name__', type(value).__name__)}` is no decorator that NKI knows",
        help="call the function inside another one instead of decorating it",
    )


_BASES = (NKIObject, *kernel_enums.KINDS.values(), abc.ABC)


def check_base(value: Any) -> Any:
    """A base class, if kernel classes may have it."""
    value = real(value)
    allowed = value in (*_BASES, object, NamedTuple) or hasattr(value, "__mro_entries__")
    if allowed or (isinstance(value, type) and _is_own(value)):
        return value
    name = value.__name__ if isinstance(value, type) else type(value).__name__
    raise KernelError(
        "wrong-base",
        f"a kernel's class cannot inherit from `{name}`",
        help="inherit from `nl.NKIObject`, `Enum`, `NamedTuple` or a class of your own",
    )


def _is_own(value: type) -> bool:
    return "__nkic__" in value.__dict__ or issubclass(value, Exception)


def partial(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """`functools.partial`, of not too many arguments: each call copies them."""
    made = functools.partial(function, *args, **kwargs)
    check_length(len(made.args) + len(made.keywords), "the arguments of the partial", _FEW)
    return made


_FEW = Limits(length=255)
