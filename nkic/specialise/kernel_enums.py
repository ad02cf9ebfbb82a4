"""The enumerations of kernel code: Python's, with a look at values before they are hashed."""

from __future__ import annotations

import enum
from typing import Any

from nkic.specialise.budget import Budget, Limits
from nkic.specialise.nesting import Nesting

_VALUES = Limits(length=4096, depth=100)  # of a member's value: it is hashed without a step


class _Kind(enum.EnumMeta):
    def __new__(metacls, cls: str, bases: Any, classdict: Any, **options: Any) -> Any:
        _nesting().keys([*classdict.values()])
        return super().__new__(metacls, cls, bases, classdict, **options)

    def __call__(cls, value: Any, *args: Any, **options: Any) -> Any:
        return super().__call__(_nesting().key(value), *args, **options)


def _nesting() -> Nesting:
    return Nesting(Budget(_VALUES))


class Enum(enum.Enum, metaclass=_Kind):
    """`enum.Enum`."""


class IntEnum(enum.IntEnum, metaclass=_Kind):
    """`enum.IntEnum`."""


class Flag(enum.Flag, metaclass=_Kind):
    """`enum.Flag`."""


class IntFlag(enum.IntFlag, metaclass=_Kind):
    """`enum.IntFlag`."""


KINDS = {kind.__name__: kind for kind in (Enum, IntEnum, Flag, IntFlag)}
