"""Models of two cores: barriers and swaps."""

from typing import Any

from nkic.machine.dtypes import DTYPES
from tests.harness.drawing import Draw
from tests.harness.instruction import Call, Tile, call, tile
from tests.harness.model import Bits
from tests.harness.scenes import Before, Scene, Wanted, exchange

ENGINES = ("any", "gpsimd", "sync", "tensor", "vector", "scalar")
GPSIMD_BYTES = {4: 1024, 2: 512, 1: 256}


@exchange("core_barrier")
def core_barrier(draw: Draw, target: str) -> Scene:
    """Each core writes half of a tensor, and after the barrier reads the other half.

    A kernel for one core may have a barrier, too.
    """
    size, dtype = draw.pick([1, 12, 600]), draw.pick([d for d in DTYPES if DTYPES[d].lanes == 1])
    if draw.chance(0.2):
        return _alone(draw, size, dtype)
    shared = tile((2, size), dtype=dtype, buffer="hbm")
    shared.tensor.buffer = "shared_hbm"
    halves = [shared.over(offset=core * size, dims=((1, size),)) for core in (0, 1)]
    sources, results = ([_row(draw, size, dtype) for _ in halves] for _ in range(2))
    engine = draw.pick(ENGINES)
    cores = [
        [
            copied(halves[core], sources[core]),
            call("core_barrier", engine, data=shared, cores=(0, 1)),
            copied(results[core], halves[1 - core]),
        ]
        for core in (0, 1)
    ]

    def expected(rank: int, before: Before) -> dict[Tile, Wanted]:
        return {results[core]: Bits(before(rank, sources[1 - core])) for core in (0, 1)}

    return Scene(cores, expected)


def _alone(draw: Draw, size: int, dtype: str) -> Scene:
    source, result = _row(draw, size, dtype), _row(draw, size, dtype)
    shared = tile((1, size), dtype=dtype, buffer="hbm")
    shared.tensor.buffer = "shared_hbm"
    barrier = call("core_barrier", draw.pick(ENGINES), data=shared, cores=(0,))
    calls = [copied(shared, source), barrier, copied(result, shared)]
    return Scene([calls], lambda rank, before: {result: Bits(before(rank, source))})


def _row(draw: Draw, size: int, dtype: str) -> Tile:
    return draw.tile((1, size), dtype, "sbuf", dims=3)


def copied(dst: Tile, src: Tile) -> Call:
    return call("dma_copy", dst=dst, src=src)


@exchange("sendrecv")
def sendrecv(draw: Draw, target: str) -> Scene:
    """dst of a core is the src of the core that it receives from: the other core, or itself."""
    engine = draw.pick(["dma", "gpsimd_dma"])
    dtype = draw.pick([name for name in DTYPES if not DTYPES[name].is_wide])
    most = GPSIMD_BYTES.get(DTYPES[dtype].size, 1024) // DTYPES[dtype].size
    shape = (draw.pick([1, 3, 32, 128]), min(draw.pick([1, 12, 256, 300]), most))
    swap, pipe = draw.chance(0.8), draw.pick([0, 1, 5])
    peers = (1, 0) if swap else (0, 1)
    tiles = [tuple(draw.tile(shape, dtype, dims=3) for _ in "ds") for _ in peers]
    cores = [
        [_swap(dst, src, peer, pipe, engine)] for (dst, src), peer in zip(tiles, peers, strict=True)
    ]

    def expected(rank: int, before: Before) -> dict[Tile, Wanted]:
        return {dst: Bits(before(rank, tiles[peers[c]][1])) for c, (dst, _) in enumerate(tiles)}

    return Scene(cores, expected)


def _swap(dst: Tile, src: Tile, peer: int, pipe: int, engine: str) -> Call:
    ranks: dict[str, Any] = {"send_to_rank": peer, "recv_from_rank": peer}
    return call("sendrecv", dst=dst, src=src, **ranks, pipe_id=pipe, dma_engine=engine)
