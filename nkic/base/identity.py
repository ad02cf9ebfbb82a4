"""Values compared by identity, which must not be copied."""

from __future__ import annotations

from typing import Self


class Identical:
    """A mixin for objects whose copies are the object itself.

    This applies to `copy.copy`, `copy.deepcopy` and therefore `dataclasses.asdict`. The closed
    world does the same: it copies only containers and the kernel's own objects.
    """

    __slots__ = ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self
