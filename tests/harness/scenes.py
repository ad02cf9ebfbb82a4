"""Models of communication between several cores or ranks.

    @exchange("sendrecv")
    def sendrecv(draw: Draw, target: str) -> Scene:
        …
        return Scene([[call], [call]], lambda before: {dst: Bits(before(0, src)), …})

A scene is a random program: the calls of each core, for a number of ranks with different
contents. Its expectations are computed from the contents before the run: `before(rank, tile)`
returns a tile's elements on a rank, and `numbers` converts them to what the engines read.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nkic.machine.instructions import ROWS
from nkic.machine.operands import Attribute, Operand
from nkic.machine.rules import violations
from tests.harness.drawing import Draw
from tests.harness.instruction import Call, Contents, Outcome, Tensor, Tile, built_cores
from tests.harness.model import Bits, Near, facts
from tests.harness.reference import loaded, stored

Array = NDArray[Any]
Before = Callable[[int, Tile], Array]
Wanted = Array | Near | Bits


class Scene(NamedTuple):
    """A random program of several cores or ranks.

    `cores`: the calls of each core. `expected`: the results on a rank, by tile. `fill` puts values
    into the contents of a rank. `judge` checks results that are not in memory.
    """

    cores: list[list[Call]]
    expected: Callable[[int, Before], dict[Tile, Wanted]]
    ranks: int = 1
    fill: Callable[[int, Callable[[Tile], Array]], None] | None = None
    judge: Callable[[Outcome, Before], None] | None = None


Maker = Callable[[Draw, str], Scene]
EXCHANGES: dict[str, Maker] = {}


def exchange(name: str) -> Callable[[Maker], Maker]:
    """Register the decorated function as the model of a row."""

    def register(make: Maker) -> Maker:
        assert name in ROWS and name not in EXCHANGES
        EXCHANGES[name] = make
        return make

    return register


class Run:
    """A scene, run on the contents of its ranks."""

    def __init__(self, draw: Draw, scene: Scene, target: str) -> None:
        self.scene = scene
        self.legal(target)
        build = built_cores(scene.cores, target)
        tiles = [v for core in scene.cores for c in core for v in c.values.values()]
        held = [tile for tile in tiles if isinstance(tile, Tile)]
        self.ranks = [self._contents(draw, rank, build.own, held) for rank in range(scene.ranks)]
        self.outcomes = build.run_ranks(self.ranks)

    def legal(self, target: str) -> None:
        """Assert that the rules accept all calls."""
        for call in (call for core in self.scene.cores for call in core):
            found = violations(ROWS[call.row], facts(whole(call), target))
            assert not found, (call.row, found[0].message)

    def _contents(self, draw: Draw, rank: int, own: list[Tensor], tiles: list[Tile]) -> Contents:
        contents = {tensor: tensor.contents.copy() for tensor in own}
        for tile in tiles:
            if tile.tensor in contents:
                window = tile.window(contents[tile.tensor])
                window[...] = draw.numbers(window.shape, tile.dtype, large=6)
        if self.scene.fill:
            self.scene.fill(rank, lambda tile: tile.window(contents[tile.tensor]))
        return contents

    def before(self, rank: int, tile: Tile) -> Array:
        """Return the contents before the run: (partitions, elements of a partition)."""
        window = tile.window(self.ranks[rank][tile.tensor])
        return np.ascontiguousarray(window).reshape(tile.partitions, -1)

    def after(self, rank: int, tile: Tile) -> Array:
        return self.outcomes[rank][tile].reshape(tile.partitions, -1)


def whole(call: Call) -> Call:
    """Return the call with the defaults of omitted operands and attributes."""
    row = ROWS[call.row]
    parameters: list[Operand | Attribute] = [*row.operands, *row.attributes]
    defaults = {one.name: one.default for one in parameters}
    return call._replace(values={**defaults, **call.values})


def numbers(elements: Array) -> Array:
    """Return elements as the engines read them, in float64."""
    return loaded(elements).astype(np.float64)


def near(values: Array, slack: Array, dtype: str) -> Near:
    """Return numbers with an error of at most `slack`, as elements."""
    return Near(stored(values - slack, dtype), stored(values + slack, dtype))
