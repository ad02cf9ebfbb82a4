"""The abstract view of one instruction that rules, cost formulas and engine choices receive.

The compiler builds `Facts` from views, before addresses exist; the runner builds them from the
records of an untrusted file. Both then use the same rows. Operands are seen as tiles: partitions,
and the free dimensions of each partition in elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

from nkic.machine.dtypes import DType
from nkic.machine.engines import Engine
from nkic.machine.memory import Buffer
from nkic.machine.targets import Target


class Tile(NamedTuple):
    """A tensor operand. In HBM, `partitions` is 0 and `dims` holds every dimension.

    `dims` are (step, num) pairs in elements, outermost first. `dynamic`: the address depends on a
    run-time offset. `indexed`: it depends on a vector of offsets, one per outermost element in HBM
    and one per element on chip. `offsets` is the tile that holds the offsets, if any.
    """

    buffer: Buffer
    dtype: DType
    start: int
    partitions: int
    dims: tuple[tuple[int, int], ...]
    dynamic: bool = False
    indexed: bool = False
    offsets: Tile | None = None

    @property
    def on_chip(self) -> bool:
        return self.buffer.on_chip

    @property
    def free(self) -> int:
        """Elements per partition; in HBM, all elements."""
        return prod(num for _, num in self.dims)

    @property
    def elements(self) -> int:
        """The total number of elements."""
        return self.free * (self.partitions if self.on_chip else 1)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape as the user sees it."""
        sizes = tuple(num for _, num in self.dims)
        return (self.partitions, *sizes) if self.on_chip else sizes

    @property
    def contiguous(self) -> bool:
        """Whether the innermost dimension runs over adjacent elements."""
        inner = [step for step, num in self.dims if num > 1]
        return not inner or inner[-1] == 1

    def __str__(self) -> str:
        sizes = ", ".join(map(str, self.shape))
        return f"{self.dtype.name}[{sizes}] in {self.buffer.value}"


class Register(NamedTuple):
    """A scalar register, numbered within the program. Each engine has its own copy."""

    number: int


Value = Tile | Register | float | int | None


def trips(start: int | Register, stop: int | Register, step: int) -> int | None:
    """Return the trip count of a counted loop; None if a register determines it."""
    if isinstance(start, Register) or isinstance(stop, Register):
        return None
    return max(0, -((start - stop) // step))


@dataclass(frozen=True)
class Facts:
    """An instruction as the functions of the instruction table see it."""

    target: Target
    operands: Mapping[str, Value]
    attributes: Mapping[str, Any]
    engine: Engine | None = None

    def tile(self, name: str) -> Tile:
        """Return the operand `name`, which must be a tile."""
        value = self.operands[name]
        if not isinstance(value, Tile):
            raise TypeError(f"operand {name} is {value!r}, not a tile")
        return value

    def maybe(self, name: str) -> Tile | None:
        """Return the operand `name` if it is a tile, otherwise None."""
        value = self.operands.get(name)
        return value if isinstance(value, Tile) else None

    @cached_property
    def tiles(self) -> dict[str, Tile]:
        """The tile operands, by name."""
        return {name: v for name, v in self.operands.items() if isinstance(v, Tile)}
