"""Host-side values that a traced kernel may hold, and their conversion.

Host code that imports `nki.language` gets objects that are meaningful to frameworks as well, and
NumPy has its own scalars. Where the API expects one of its own values, these stand for one.
"""

from __future__ import annotations

import dataclasses
import inspect
import reprlib
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple, TypeVar

from nkic.base.device import KernelError, bind_fields

# ---- What kernels see of the API's values --------------------------------------------------------

Kind = TypeVar("Kind", bound=type)


class Surface(NamedTuple):
    """The attributes that kernels may access. Whether its values can be called; whether kernels
    may call the class itself, or pass it to isinstance.
    """

    names: tuple[str, ...]
    has_calls: bool
    is_called: bool


SURFACES: dict[type, Surface] = {}


def surface(
    names: str = "", *, public: bool = False, called: bool = False
) -> Callable[[Kind], Kind]:
    """Decorate a class whose values kernels hold with the attributes that exist for them.

    With `public`, these are its public ones besides. Python's own code sees all attributes.
    """

    def declare(kind: Kind) -> Kind:
        own = [vars(base) | vars(base).get("__annotations__", {}) for base in kind.__mro__[:-1]]
        also = [name for part in own for name in part if public and not name.startswith("_")]
        shown = tuple(dict.fromkeys([*names.split(), *also]))
        SURFACES[kind] = Surface(shown, any("__call__" in part for part in own), called)
        return kind

    return declare


# ---- Formatting of kernels' values for messages -------------------------------------------------


class _Writer(reprlib.Repr):
    """Python's writer of abridged texts, which writes the bounds of slices in full."""

    def repr_slice(self, value: slice, level: int) -> str:
        parts = (value.start, value.stop, value.step)
        return f"slice({', '.join(self.repr1(part, level - 1) for part in parts)})"


_WRITER = _Writer()
_WRITER.maxlevel, _WRITER.maxlist, _WRITER.maxtuple, _WRITER.maxdict = 4, 8, 8, 8
_WRITER.maxstring = _WRITER.maxother = _WRITER.maxlong = 200


def brief(value: Any, length: int = 60) -> str:
    """Format a value briefly, even a list that is cyclic or has shared parts."""
    if isinstance(value, list | tuple) and len(value) > 8:
        return f"a {type(value).__name__} of {len(value)}"
    try:
        text = " ".join(_WRITER.repr(value).split())
    except Exception:  # a kernel's own __repr__ may raise
        return f"a {type(value).__name__}"
    return text if len(text) <= length else f"{text[:length]}…"


def plain(value: Any) -> Any:
    """Return the API value that `value` stands for, or `value` itself.

    Classes of such host-side values have a method `__nki__`. A NumPy scalar becomes a Python
    number.
    """
    kind = type(value)
    convert = getattr(kind, "__nki__", None)
    if convert is not None:
        return convert(value)
    if kind.__module__ == "numpy" and hasattr(kind, "item") and value.ndim == 0:
        return value.item()
    return value


def is_array(value: Any) -> bool:
    """Return whether the value is NumPy's array, or holds one, without importing NumPy."""
    kind = type(value)
    return hasattr(kind, "holds_array") or (kind.__name__, kind.__module__) == ("ndarray", "numpy")


def whole_number(value: Any, noun: str) -> int:
    """Return a number of a kernel as an int. Raises `KernelError`; `noun` names the number."""
    number = plain(value)
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if not isinstance(number, int):
        raise KernelError("argument-kind", f"{noun} must be an int, not {brief(value)}")
    return int(number)


def whole_numbers(values: Any, noun: str) -> tuple[int, ...]:
    """Return the numbers of a tuple or list as ints, or one number as a tuple of one."""
    listed = values if isinstance(values, tuple | list) else (values,)
    return tuple(whole_number(value, f"each number of {noun}") for value in listed)


# ---- Objects of `nki`: kernels, decorators, groups ----------------------------------------------


@surface("groups", called=True)
class ReplicaGroup:
    """`nki.collectives.ReplicaGroup`: lists of ranks; the ranks of one list work together."""

    def __init__(self, groups: Any) -> None:
        for group in groups if isinstance(groups, list | tuple) else [groups]:
            ranks = group if isinstance(group, list | tuple) else [group]
            if any(isinstance(rank, _NOT_RANKS) for rank in ranks):
                raise KernelError(
                    "argument-kind",
                    "a ReplicaGroup takes lists of ranks",
                    help="write ReplicaGroup([[0, 1], [2, 3]])",
                )
        self.groups = groups

    def ranks(self) -> Any:
        return self.groups

    def __repr__(self) -> str:
        return f"ReplicaGroup(groups={self.groups!r})"


_NOT_RANKS = (list, tuple, dict, set, frozenset, ReplicaGroup)


@surface("__name__")
class Decorator:
    """A decorator of NKI. Called with options, it returns a copy with those options."""

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


@surface("with_schedule __getitem__ __name__")
class Kernel:
    """A function under `nki.jit`. Calling it in a kernel inlines its body there."""

    def __init__(self, function: Callable[..., Any], schedule: tuple[Any, ...] = ()) -> None:
        self.function = function
        self.schedule = schedule
        self.__name__ = getattr(function, "__name__", None) or getattr(function, "name", "kernel")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __getitem__(self, grid: Any) -> Kernel:
        return self

    __iter__ = None  # otherwise Python would iterate over grids 0, 1, 2 … forever

    def with_schedule(self, edges: Any) -> Kernel:
        """Return the kernel with additional ordering edges among its named instructions."""
        return Kernel(self.function, (*self.schedule, *edges))

    def __repr__(self) -> str:
        return f"<kernel {self.__name__}>"


# ---- classes of kernels, for the Python interpreter ---------------------------------------------


class NKIObject:
    """Base class of kernels' classes. Its fields are those declared as `name: type`.

    A class without `__init__` gets one from its fields, like a dataclass, but a field without a
    default may be omitted and is then None. A class attribute with a plain value is a field as
    well.
    """

    def __init__(self, *values: Any, **named: Any) -> None:
        names = field_names(type(self))
        fields = bind_fields(type(self).__name__, names, values, named)
        for name in names:
            value = fields[name] if name in fields else _default(type(self), name)
            object.__setattr__(self, name, value)  # works for frozen dataclasses too
        self.__post_init__()

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if cls.__init__ is NKIObject.__init__:  # `@dataclass` keeps it in the class itself
            cls.__init__ = NKIObject.__init__  # type: ignore[method-assign]

    def __post_init__(self, *_: Any) -> None:
        """Called after the fields are set."""

    def __eq__(self, other: object) -> Any:
        return self.__dict__ == other.__dict__ if type(self) is type(other) else NotImplemented

    def __hash__(self) -> int:
        return hash(type(self).__qualname__)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__qualname__}({fields})"


def field_names(cls: type) -> list[str]:
    """Return the fields of a class: its declarations and its attributes with plain values."""
    names: dict[str, None] = {}
    for kind in reversed(cls.__mro__):
        if kind in (object, NKIObject):
            continue
        declared = inspect.get_annotations(kind)
        names |= {name: None for name, note in declared.items() if "ClassVar" not in str(note)}
        attributes = vars(kind).items()
        names |= dict.fromkeys(n for n, v in attributes if n not in declared and _is_value(n, v))
    return list(names)


def _default(cls: type, name: str) -> Any:
    field = getattr(cls, "__dataclass_fields__", {}).get(name)
    if field is not None and field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return getattr(cls, name, None)


def _is_value(name: str, value: Any) -> bool:
    hidden = (FunctionType, type, staticmethod, classmethod, property, Decorator, Kernel)
    return not name.startswith("__") and not isinstance(value, hidden)
