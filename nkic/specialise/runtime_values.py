"""Descriptions of a running Python program's values: what `nkic.api.call` passes to the compiler.

A description is frozen data. It names what source defines (a class, a function, a member of an
enumeration) and holds what only the program knows (the fields of an object, the cells of a
closure). The specialiser evaluates the named source and fills in the rest, so that no code of the
user's program is executed. Numbers, strings, None, ranges, slices and tuples describe themselves.
`number` identifies an object; further occurrences of it are `BackReference`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class RuntimeValue:
    """The description of one argument. Its repr is `text`, without addresses."""

    value: Any
    text: str

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True)
class InnerTensor:
    """A tensor inside an argument, by its name among the inputs: `weights.0`."""

    name: str


@dataclass(frozen=True)
class Named:
    """A name in a module: a function or a class. An empty name is the module itself."""

    module: str
    name: str


@dataclass(frozen=True)
class Member:
    """A member of an enumeration, or a combination of flags, which has no name."""

    owner: Any
    name: str
    value: Any


@dataclass(frozen=True)
class Collection:
    """A list, set or frozenset, according to `kind`; elements of a set are in a fixed order."""

    number: int
    kind: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Table:
    """A dictionary."""

    number: int
    items: tuple[tuple[Any, Any], ...]


@dataclass(frozen=True)
class Made:
    """An object that a call of `owner` makes."""

    number: int
    owner: Any
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Instance:
    """An object of a class, with its fields by name."""

    number: int
    owner: Any
    fields: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Record:
    """A named tuple."""

    owner: Any
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Function:
    """A function by its location: the line of `def`, `lambda` or the first decorator.

    `around` is the qualified name of the outer function, or empty. `column` is that of the first
    instruction, to tell lambdas in one line apart. `cells` are the
    variables of enclosing functions; `defaults` are by parameter name; `attributes` have been set.
    """

    number: int
    module: str
    name: str
    around: str
    line: int
    column: int
    cells: tuple[tuple[str, Any], ...] = ()
    defaults: tuple[tuple[str, Any], ...] = ()
    attributes: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class BoundAttribute:
    """A bound method, or another attribute of a described value."""

    owner: Any
    name: str


@dataclass(frozen=True)
class Partial:
    """`functools.partial`."""

    function: Any
    values: tuple[Any, ...]
    named: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class ConstantData:
    """An array that is not part of an argument: elements in row-major order, little-endian."""

    dtype: str
    shape: tuple[int, ...]
    digest: str  # of `data`
    data: bytes = field(repr=False)


@dataclass(frozen=True)
class Unavailable:
    """A value that cannot be described. Its use is an error."""

    text: str
    help: str


@dataclass(frozen=True)
class BackReference:
    """An object described earlier."""

    number: int


@dataclass(frozen=True)
class LiveEntry:
    """The kernel as a function of a running program, instead of a name in a file.

    `globals` are the module-level variables that the kernel and what it calls use, by the module's
    name, then the variable's; `attributes` those of classes, and the defaults of functions, by the
    names of module and class or function. What their source alone defines is left out. `objects`
    holds every numbered description.
    """

    function: Function
    globals: tuple[tuple[str, tuple[tuple[str, Any], ...]], ...] = ()
    attributes: tuple[tuple[tuple[str, str], tuple[tuple[str, Any], ...]], ...] = ()
    objects: Mapping[int, Any] = field(default_factory=dict, repr=False)

    def names(self, module: str) -> frozenset[str]:
        """Return the variables of a module that the running program provides."""
        return frozenset(name for name, _ in dict(self.globals).get(module, ()))
