"""The builtins of kernel code: Python's, where they are safe, and guarded ones where not.

Iterating builtins are generators here, not Python's own classes, because chains of those
(`map` over `map` over `map` …) overrun the C stack, which no error handler survives.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from operator import index
from types import FunctionType
from typing import Any

from nkic.specialise.budget import RECORDING, Budget, check_range
from nkic.specialise.guards import Guards
from nkic.specialise.kernel_sets import KernelFrozenSet, KernelSet, stable_hash
from nkic.specialise.kinds import Kinds
from nkic.syntax import names

Print = Callable[[str], None]
_SMALL = 64  # bits of an integer that need no look at the limits
_PLAIN = frozenset({int, float, bool})
_FREE = 64  # elements that a builtin may go through for the step that its call costs

# Names that are classes too. Called, they are guarded; otherwise they are a stand-in.
_CLASSES: dict[str, Any] = {
    "int": int,
    "list": list,
    "tuple": tuple,
    "dict": dict,
    "set": KernelSet,
    "frozenset": KernelFrozenSet,
    "str": str,
    "type": type,
    "slice": slice,
    "property": property,
    "staticmethod": staticmethod,
    "classmethod": classmethod,
}


class Builtins:
    """The functions that need a guard, under one budget. `show` gets what is printed."""

    def __init__(self, budget: Budget, guards: Guards, show: Print) -> None:
        self._budget = budget
        self._guards = guards
        self._show = show

    def print_(self, *values: Any, sep: Any = " ", end: Any = "\n", **ignored: Any) -> None:
        """Hands the text to whoever compiles; `file` and `flush` mean nothing there."""
        unknown = ignored.keys() - {"file", "flush"}
        if unknown:
            raise TypeError(f"print() got an unexpected keyword argument {min(unknown)!r}")
        texts = [self._guards.texts.text(value) for value in values]
        shown = (" " if sep is None else sep).join(texts) + ("\n" if end is None else end)
        self._budget.charge(RECORDING + len(shown))  # all of it is kept until the end
        self._show(shown)

    def range_(self, *bounds: Any) -> range:
        """A range that could be gone through within the limits."""
        return check_range(range(*bounds), self._budget.limits)

    def int_(self, *value: Any, **base: Any) -> int:
        """An integer; text in hexadecimal spells ones of any size."""
        made = int(*value, **base)
        if made.bit_length() > _SMALL:
            self._budget.allow_bits(made.bit_length())
        return made

    def list_(self, values: Any = ()) -> list[Any]:
        """A list of the elements."""
        made = list(values)
        self._counted(made)
        return made

    def tuple_(self, values: Any = ()) -> tuple[Any, ...]:
        """A tuple of the elements."""
        return tuple(self._counted(values if isinstance(values, tuple) else list(values)))

    def set_(self, values: Any = ()) -> KernelSet:
        """A set of the elements."""
        return KernelSet(self._guards.nesting.keys(self._counted(list(values))))

    def frozenset_(self, values: Any = ()) -> KernelFrozenSet:
        """A frozen set of the elements."""
        return KernelFrozenSet(self._guards.nesting.keys(self._counted(list(values))))

    def dict_(self, *pairs: Any, **named: Any) -> dict[Any, Any]:
        """A dict of the pairs."""
        given = [self._entries(one) for one in pairs]
        made = dict(*given, **named)
        self._counted(made)
        return made

    def _entries(self, pairs: Any) -> Any:
        """What a dict is made from, its keys counted."""
        if isinstance(pairs, dict):
            return pairs
        found = [tuple(pair) for pair in pairs]
        self._guards.nesting.keys(pair[0] for pair in found if pair)
        return found

    def _counted(self, values: Any) -> Any:
        if len(values) > _FREE:
            self._budget.charge(len(values) - _FREE)
            self._budget.allow_length(len(values), f"the {type(values).__name__}")
        return values

    def sum_(self, values: Any, /, start: Any = 0) -> Any:
        """The sum, with the limits of every single addition."""
        total = start
        for value in self._counted(list(values)):
            total = self._guards.add(total, value)
        return total

    def min_(self, *values: Any, **options: Any) -> Any:
        """The least."""
        return min(*self._several(values), **options)

    def max_(self, *values: Any, **options: Any) -> Any:
        """The greatest."""
        return max(*self._several(values), **options)

    def _several(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(values) == 2 and values[0].__class__ in _PLAIN and values[1].__class__ in _PLAIN:
            return values
        found = values if len(values) > 1 else tuple(self._counted(list(one)) for one in values)
        self._guards.nesting.all_compared(found if len(values) > 1 else found[0] if found else ())
        return found

    def sorted_(self, values: Any, /, **options: Any) -> list[Any]:
        """A sorted list."""
        return sorted(self._guards.nesting.all_compared(self._counted(list(values))), **options)

    def isinstance_(self, value: Any, kinds: Any, /) -> bool:
        """Whether the value is of one of the kinds."""
        return isinstance(value, self._kinds(kinds))

    def issubclass_(self, kind: Any, kinds: Any, /) -> bool:
        """Whether the class is one of the kinds or inherits from it."""
        return issubclass(kind, self._kinds(kinds))

    def _kinds(self, kinds: Any) -> Any:
        return self._guards.nesting.compared(kinds) if isinstance(kinds, tuple) else kinds

    def any_(self, values: Any, /) -> bool:
        """Whether any element is true."""
        return any(self._ticking(values))

    def all_(self, values: Any, /) -> bool:
        """Whether all elements are true."""
        return all(self._ticking(values))

    def _ticking(self, values: Any) -> Iterator[Any]:
        tick = self._budget.tick
        for value in values:
            tick()
            yield value

    def enumerate_(self, iterable: Any, start: Any = 0) -> Iterator[tuple[int, Any]]:
        """Pairs of number and element."""
        return _numbered(iter(iterable), start)

    def zip_(self, *iterables: Any, strict: Any = False) -> Iterator[tuple[Any, ...]]:
        """Tuples of elements."""
        return _zipped(zip(*iterables, strict=strict))

    def map_(self, function: Any, /, *iterables: Any) -> Iterator[Any]:
        """`function` of the elements."""
        if not iterables:
            raise TypeError("map() must have at least two arguments.")
        return _mapped(function, zip(*iterables, strict=False))

    def filter_(self, function: Any, iterable: Any, /) -> Iterator[Any]:
        """The elements for which `function` is true."""
        return _filtered(bool if function is None else function, iter(iterable))

    def reversed_(self, values: Any, /) -> Iterator[Any]:
        """The elements from the last to the first."""
        return _passed_on(reversed(values))

    def iter_(self, values: Any, /) -> Iterator[Any]:
        """An iterator over the elements."""
        return iter(self._guards.in_order(values))

    def type_(self, value: Any, /) -> Any:
        """The class of a value, or a stand-in for it."""
        return self._guards.kinds.of(type(value))

    def slice_(self, *bounds: Any) -> slice:
        """A slice. Of slices in slices Python cannot let go: that overruns the C stack."""
        if any(isinstance(bound, slice) for bound in bounds):
            raise TypeError("the bounds of a slice are no slices")
        return slice(*self._guards.nesting.keys(bounds))

    def property_(self, fget: Any = None, fset: Any = None, fdel: Any = None) -> property:
        """A property of a kernel's class."""
        return property(*map(_function, (fget, fset, fdel)))

    def staticmethod_(self, function: Any, /) -> Any:
        """A method without `self`."""
        return staticmethod(_function(function))

    def classmethod_(self, function: Any, /) -> Any:
        """A method of the class."""
        return classmethod(_function(function))

    def hash_(self, value: Any, /) -> int:
        """A number, equal for equal values, the same in every process."""
        return stable_hash(self._guards.nesting.hashed(value))

    def setattr_(self, owner: Any, name: Any, value: Any, /) -> None:
        """`owner.name = value`."""
        self._guards.set_attribute(owner, name, value)

    def delattr_(self, owner: Any, name: Any, /) -> None:
        """`del owner.name`."""
        self._guards.delete_attribute(owner, name)

    def getattr_(self, owner: Any, name: Any, /, *default: Any) -> Any:
        """`owner.name`, or the default where there is none."""
        return self._guards.get_attribute(owner, name, *default)

    def hasattr_(self, owner: Any, name: Any, /) -> bool:
        """Whether there is `owner.name`."""
        return self._guards.has_attribute(owner, name)

    def str_(self, value: Any = "") -> Any:
        """The text of a value."""
        return self._guards.texts.text(value)

    def repr_(self, value: Any, /) -> Any:
        """The text of a value, as source where possible."""
        return self._guards.texts.representation(value)

    def format_(self, value: Any, spec: Any = "", /) -> Any:
        """The text of a value under a specification."""
        return self._guards.texts.formatted(value, spec)

    def round_(self, number: Any, ndigits: Any = None) -> Any:
        """A number rounded to so many digits."""
        if hasattr(ndigits, "__index__"):
            self._budget.allow_bits(4 * abs(index(ndigits)))
            self._budget.copied(abs(index(ndigits)))
        return round(number) if ndigits is None else round(number, ndigits)

    def pow_(self, base: Any, exp: Any, mod: Any = None) -> Any:
        """`base ** exp`."""
        return self._guards.power(base, exp, mod)

    def guarded(self) -> dict[str, Callable[..., Any]]:
        """The guarded functions by the names that kernels call."""
        found = (name for name in dir(self) if name.endswith("_") and not name.startswith("_"))
        return {name[:-1]: getattr(self, name) for name in sorted(found)}


def namespace(budget: Budget, guards: Guards, show: Print) -> dict[str, Any]:
    """Every builtin by name; under `@name` what a call of it calls, where that differs.

    A bare `list` is a stand-in for the class and a bare `range` the guarded function;
    `@class list` and `@class range` are for `isinstance`.
    """
    guarded = Builtins(budget, guards, show).guarded()
    plain = {name: getattr(builtins, name) for name in names.BUILTINS}
    guards.kinds = Kinds({kind: guarded[name] for name, kind in _CLASSES.items()})
    stand_ins = {name: guards.kinds.of(kind) for name, kind in _CLASSES.items()}
    calls = {f"@{name}": guarded[name] for name in _CLASSES}
    classes = {f"@class {name}": kind for name, kind in {**_CLASSES, "range": range}.items()}
    return {**plain, **guarded, **stand_ins, **calls, **classes}


def has(name: str) -> bool:
    """Kernels have a builtin of this name."""
    return name in names.BUILTINS


# The builtins that translated code calls under another name than it reads them.
CALLED_APART = frozenset(_CLASSES)
# Those that `isinstance` reads under another name.
TESTED_APART = frozenset({*_CLASSES, "range"})


def _function(value: Any) -> Any:
    """What a property or method is made of; chains of them overrun the C stack when they go."""
    if value is None or isinstance(value, FunctionType):
        return value
    raise TypeError(f"a method is made of a function, not of a {type(value).__name__}")


def _numbered(values: Iterator[Any], number: Any) -> Iterator[tuple[int, Any]]:
    for value in values:
        yield number, value
        number += 1


def _zipped(tuples: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    yield from tuples


def _mapped(function: Any, tuples: Iterator[tuple[Any, ...]]) -> Iterator[Any]:
    for values in tuples:
        yield function(*values)


def _filtered(function: Any, values: Iterator[Any]) -> Iterator[Any]:
    for value in values:
        if function(value):
            yield value


def _passed_on(values: Iterator[Any]) -> Iterator[Any]:
    yield from values
