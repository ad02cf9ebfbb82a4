"""Compilation requests: a kernel's target, arguments and options, with their origins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from nkic.base import profiles
from nkic.base.profiles import Profile
from nkic.machine import targets
from nkic.machine.dtypes import DType
from nkic.machine.targets import Target

# ------------------------------------------------------------------------------------------------
# Descriptions of a running Python program's values: what `nkic.api.call` passes to the compiler.
# A description is frozen data. It names what source defines (a class, a function, a member of an
# enumeration) and holds what only the program knows (the fields of an object, the cells of a
# closure). The specialiser evaluates the named source and fills in the rest, so that no code of
# the user's program is executed. Numbers, strings, None, ranges, slices and tuples describe
# themselves. `number` identifies an object; further occurrences of it are `BackReference`.


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


@dataclass(frozen=True)
class TensorType:
    """The type of a tensor argument. A dtype or shape of None is left to another source.

    `origin` is where it was specified, for messages; `note` the reason that it is unusable, if any.
    """

    dtype: DType | None = None
    shape: tuple[int, ...] | None = None
    origin: str = ""
    note: str = ""

    @property
    def is_complete(self) -> bool:
        return self.dtype is not None and self.shape is not None

    def filled(self, fallback: TensorType) -> TensorType:
        """Return this type with missing parts taken from `fallback`."""
        return TensorType(
            self.dtype or fallback.dtype,
            self.shape if self.shape is not None else fallback.shape,
            self.origin or fallback.origin,
            self.note or fallback.note,
        )

    def __str__(self) -> str:
        sizes = "" if self.shape is None else f"[{','.join(map(str, self.shape))}]"
        return (self.dtype.name if self.dtype else "DTYPE") + sizes


@dataclass(frozen=True)
class Spread:
    """How instances go to cores: in turn along `axis`, after `run` instances each."""

    axis: int = 0
    run: int = 1

    def core(self, ids: Sequence[int], cores: int) -> int:
        return ids[self.axis] // self.run % cores


@dataclass(frozen=True)
class RequestOptions:
    """The options of one source: the command line, a call, or the inline block.

    `like` are examples of tensor arguments, as in `Request`.
    """

    kernel: str | None = None
    target: Target | None = None
    profile: Profile | None = None
    grid: tuple[int, ...] | None = None
    lnc: int | None = None
    spread: Spread | None = None
    args: Mapping[str, TensorType] = field(default_factory=dict)
    consts: Mapping[str, Any] = field(default_factory=dict)
    like: Mapping[str, TensorType] = field(default_factory=dict)
    schedule: tuple[Any, ...] = ()
    dge: bool | None = None


@dataclass(frozen=True)
class Request:
    """Everything besides the source on which a compilation depends.

    `args` and `consts` are given by the user; names that only `like` has are examples and need not
    occur in the kernel. `consts` may hold dotted names, and descriptions (`live`) whose tensors are
    in `parts`. `grid` is the SPMD launch grid; `lnc` the number of physical cores that run the
    kernel together, `spread` the assignment of instances to cores if each runs several. `entry` is
    the kernel if a running program requests it, `schedule` the argument of its `with_schedule`.
    `dge` tells whether DMA engines may generate descriptors; None: from Beta 2 on they may.
    """

    kernel: str | None = None
    target: Target = targets.DEFAULT
    profile: Profile = profiles.DEFAULT
    grid: tuple[int, ...] = ()
    lnc: int = 1
    spread: Spread | None = None
    args: Mapping[str, TensorType] = field(default_factory=dict)
    consts: Mapping[str, Any] = field(default_factory=dict)
    like: Mapping[str, TensorType] = field(default_factory=dict)
    parts: Mapping[str, TensorType] = field(default_factory=dict)
    entry: LiveEntry | None = None
    schedule: tuple[Any, ...] = ()
    dge: bool | None = None

    @property
    def notes(self) -> dict[str, str]:
        """The settings that a file tells about itself."""
        return {"nki": self.profile.label, **({"dge": "off"} if self.dge is False else {})}

    @property
    def may_generate_descriptors(self) -> bool:
        """Whether transfers that name no mode have descriptors made during the run."""
        return self.profile is not Profile.BETA1 if self.dge is None else self.dge

    @property
    def programs(self) -> int:
        """Number of kernel instances in the launch grid."""
        return prod(self.grid)


def combine(
    command: RequestOptions, block: RequestOptions, profile: Profile = profiles.DEFAULT
) -> Request:
    """Merge options: the command line overrides its `like`, which overrides the block.

    `profile` is the file's default version.
    """
    examples = {name: kind for name, kind in command.like.items() if name not in command.args}
    usable = {name: kind for name, kind in examples.items() if kind.is_complete and not kind.note}
    return Request(
        kernel=command.kernel or block.kernel,
        target=command.target or block.target or targets.DEFAULT,
        profile=command.profile or block.profile or profile,
        grid=_first(command.grid, block.grid, ()),
        lnc=_first(command.lnc, block.lnc, 1),
        spread=command.spread,
        args=_unless(block.args, command.consts, examples) | dict(command.args),
        consts=_unless(block.consts, command.args, usable) | dict(command.consts),
        like=examples,
        schedule=command.schedule,
        dge=block.dge if command.dge is None else command.dge,
    )


def _first(*values: Any) -> Any:
    return next(value for value in values if value is not None)


def _unless(values: Mapping[str, Any], *excluding: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in values.items() if not any(k in names for names in excluding)}
