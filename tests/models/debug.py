"""Models of instructions that print."""

import numpy as np

from nkic.machine.dtypes import DTYPES
from tests.harness.drawing import Draw
from tests.harness.instruction import Outcome, Tile, call
from tests.harness.scenes import Before, Scene, Wanted, exchange

PREFIXES = ("", "x", "sum of {rows}:", "\u03a3 \\n")


@exchange("device_print")
def device_print(draw: Draw, target: str) -> Scene:
    """Print the string, and the tile's elements at this moment in its dimensions, in order."""
    tiles = [_any(draw) for _ in range(draw.integer(1, 3))]
    prefixes = [draw.pick(PREFIXES) for _ in tiles]
    calls = [
        call("device_print", tensor=tile, print_prefix=prefix)
        for tile, prefix in zip(tiles, prefixes, strict=True)
    ]

    def judge(outcome: Outcome, before: Before) -> None:
        found = outcome.result.printed
        assert [(p.prefix, p.core, p.dtype.name) for p in found] == [
            (prefix, 0, tile.dtype) for prefix, tile in zip(prefixes, tiles, strict=True)
        ]
        for printed, tile in zip(found, tiles, strict=True):
            assert printed.values.shape == (tile.shape if _on_chip(tile) else tile.shape[1:])
            assert printed.values.tobytes() == before(0, tile).tobytes()

    def expected(rank: int, before: Before) -> dict[Tile, Wanted]:
        return {}

    return Scene([calls], expected, judge=judge)


def _on_chip(tile: Tile) -> bool:
    return tile.tensor.buffer == "sbuf"


def _any(draw: Draw) -> Tile:
    buffer, free = draw.pick(["sbuf", "hbm"]), draw.factors(draw.pick([1, 12, 24]), 3)
    shape = tuple(free) if buffer == "hbm" else (draw.pick([1, 3, 40]), *free)
    assert np.prod(shape) > 0
    names = [name for name, dtype in DTYPES.items() if not dtype.is_wide]
    return draw.tile(shape, draw.pick(names), buffer, exact=True, reads=True)
