"""Values that are what they are: a copy of one would stand for nothing."""

from __future__ import annotations

from typing import Self


class Identical:
    """`copy.copy`, `copy.deepcopy` and with it `dataclasses.asdict` give the value itself, as the
    closed world does, where only containers and the kernel's own objects are copied.
    """

    __slots__ = ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self
