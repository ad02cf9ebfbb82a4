"""Values of a running Python program, described: what `nkic.api.call` hands to the compiler.

A description is frozen data. It names what source defines (a class, a function, a member of an
enumeration) and holds what only the program knows (the fields of an object, the cells of a
closure); the specialiser evaluates the source that is named and fills in the rest, so that no
code of the user's program is executed. Numbers, text, None, ranges, slices and tuples describe
themselves. `number` tells objects apart: where one occurs again, `Again` stands for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class RuntimeValue:
    """The description of one argument. It shows as `text`, without addresses."""

    value: Any
    text: str

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Part:
    """A tensor inside an argument, by its name among the inputs: `weights.0`."""

    name: str


@dataclass(frozen=True)
class Named:
    """What a module calls so: a function, a class; the module itself where the name is empty."""

    module: str
    name: str


@dataclass(frozen=True)
class Member:
    """A member of an enumeration, or several of its flags, which then have no name."""

    owner: Any
    name: str
    value: Any


@dataclass(frozen=True)
class Many:
    """A list, a set or a frozenset, as `kind` says; the elements of a set in a fixed order."""

    number: int
    kind: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Table:
    """A dictionary."""

    number: int
    items: tuple[tuple[Any, Any], ...]


@dataclass(frozen=True)
class Instance:
    """An object of a class: its fields by name."""

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
    """A function by its place: the line of `def`, `lambda` or the first decorator.

    `cells` are the variables of the functions around it; defaults by the parameter's name.
    """

    number: int
    module: str
    name: str
    line: int
    cells: tuple[tuple[str, Any], ...] = ()
    defaults: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class BoundAttribute:
    """A method with its object, or any other attribute of a described value."""

    owner: Any
    name: str


@dataclass(frozen=True)
class Partial:
    """`functools.partial`."""

    function: Any
    values: tuple[Any, ...]
    named: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Again:
    """An object that was described before."""

    number: int


@dataclass(frozen=True)
class LiveEntry:
    """The kernel as a function of a running program, in place of a name in a file.

    `module` is its module's dotted name. `globals` are values of modules that their source does
    not have, or that the program has changed: by the module's name, then the variable's.
    """

    function: Function
    globals: tuple[tuple[str, tuple[tuple[str, Any], ...]], ...] = ()

    def names(self, module: str) -> frozenset[str]:
        """The variables of a module that the running program gives."""
        return frozenset(name for name, _ in dict(self.globals).get(module, ()))
