"""What to compile a kernel for, and where each part of it was said."""

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
from nkic.specialise.runtime_values import LiveEntry


@dataclass(frozen=True)
class TensorType:
    """Type of a tensor argument. A dtype or shape of None is left to another source.

    `origin` is who said so, for messages; `note` why it cannot be used as it is.
    """

    dtype: DType | None = None
    shape: tuple[int, ...] | None = None
    origin: str = ""
    note: str = ""

    @property
    def known(self) -> bool:
        """Both halves are there."""
        return self.dtype is not None and self.shape is not None

    def filled(self, other: TensorType) -> TensorType:
        """This type with the halves that it lacks taken from `other`."""
        return TensorType(
            self.dtype or other.dtype,
            self.shape if self.shape is not None else other.shape,
            self.origin or other.origin,
            self.note or other.note,
        )

    def __str__(self) -> str:
        sizes = "" if self.shape is None else f"[{','.join(map(str, self.shape))}]"
        return (self.dtype.name if self.dtype else "DTYPE") + sizes


@dataclass(frozen=True)
class Spread:
    """Which core runs an instance of the grid: cores take turns along `axis` after `run` instances
    each.
    """

    axis: int = 0
    run: int = 1

    def core(self, ids: Sequence[int], cores: int) -> int:
        """The core of the instance with these program ids."""
        return ids[self.axis] // self.run % cores


@dataclass(frozen=True)
class RequestOptions:
    """What one source says: the command line, a call, the inline block. `like` are examples of
    tensor arguments, as `Request` has them.
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


@dataclass(frozen=True)
class Request:
    """Everything a compilation depends on besides the source.

    `args` and `consts` are what the user said; names that only `like` knows are examples and
    need not occur in the kernel. `consts` may hold dotted names and descriptions (`live`), whose
    tensors are `parts`. `grid` is the SPMD launch grid; `lnc` the number of physical cores that
    run the kernel together, `spread` how a grid of several instances for each lies on them.
    `entry` is the kernel where a running program asks for it, `schedule` what its `with_schedule`
    was given.
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

    @property
    def programs(self) -> int:
        """Kernel instances in the launch grid."""
        return prod(self.grid)


def combine(
    command: RequestOptions, block: RequestOptions, profile: Profile = profiles.DEFAULT
) -> Request:
    """One request; for every part the command line wins over its `like`, and that over the block.

    `profile` is that of the file where nobody says one.
    """
    examples = {name: kind for name, kind in command.like.items() if name not in command.args}
    usable = {name: kind for name, kind in examples.items() if kind.known and not kind.note}
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
    )


def _first(*values: Any) -> Any:
    return next(value for value in values if value is not None)


def _unless(values: Mapping[str, Any], *others: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in values.items() if not any(k in other for other in others)}
