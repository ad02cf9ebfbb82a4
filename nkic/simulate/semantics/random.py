"""Semantics of the rows that draw pseudo-random numbers.

Every engine and target uses XORWOW: one generator per lane of gpsimd, four per lane of vector. The
vector engine's own generator before NeuronCore-v4 is unpublished, and so are the seeding and the
order of draws (assumed; docs/fidelity.md).
"""

from __future__ import annotations

import numpy as np

from nkic.machine.engines import Engine
from nkic.simulate.decode import Decoded, Step, semantics
from nkic.simulate.numerics.xorwow import Words, draw, seeded, uniform
from nkic.simulate.semantics.binding import result, vector
from nkic.simulate.semantics.copying import as_held, constant
from nkic.simulate.storage.memory import PARTITIONS
from nkic.simulate.tile import Tile

GENERATORS = {Engine.VECTOR: 4, Engine.GPSIMD: 1}  # per lane


def _states(decoded: Decoded) -> Words:
    """Return the engine's generator states, (128, words); initially those of seed 0."""
    generators = GENERATORS[decoded.engine]
    return decoded.state.array("random", lambda: seeded(0, PARTITIONS, generators))


def _lanes(decoded: Decoded, tile: Tile) -> Words:
    """Return a view of the states of the partitions of `tile`."""
    return _states(decoded)[tile.first : tile.first + tile.partitions]


@semantics("dropout")
def dropout(decoded: Decoded) -> Step:
    """An element is dropped if a number in [0, 1) is less than its probability."""
    dst, data = decoded.tile("dst"), decoded.tile("data")
    lanes, load = _lanes(decoded, data), as_held(data, dst, dst.sizes)
    probability, zero = vector(decoded, "prob", None), constant(dst, 0.0)

    def step() -> None:
        dropped = uniform(draw(lanes, dst.free)) < probability()
        np.copyto(dst.window, np.where(dropped.reshape(dst.shape), zero, load()))

    return step


@semantics("rng")
def rng(decoded: Decoded) -> Step:
    dst = decoded.tile("dst")
    lanes, kind = _lanes(decoded, dst), np.dtype(f"u{dst.dtype.size}")

    def step() -> None:
        bits = draw(lanes, dst.free).astype(kind).view(dst.form.storage)
        np.copyto(dst.window, bits.reshape(dst.shape))

    return step


@semantics("set_rng_seed")
def set_rng_seed(decoded: Decoded) -> Step:
    states, tile = _states(decoded), decoded.tile("src_seeds")

    def step() -> None:
        (seed,) = np.ascontiguousarray(tile.bits()).view(np.uint32).ravel()
        states[...] = seeded(int(seed), PARTITIONS, GENERATORS[decoded.engine])

    return step


@semantics("rand2")
def rand2(decoded: Decoded) -> Step:
    """min + (max - min) u, u in [0, 1), each operation rounded to float32; at most max."""
    dst = decoded.tile("dst")
    lanes, (out, store, _) = _lanes(decoded, dst), result(decoded)
    low, high = vector(decoded, "min", None), vector(decoded, "max", None)

    def step() -> None:
        numbers = uniform(draw(lanes, dst.free))
        low_values, high_values = low(), high()
        scaled = low_values + (high_values - low_values) * numbers
        np.minimum(scaled, high_values, out=out())
        store()

    return step


@semantics("rand_set_state")
def rand_set_state(decoded: Decoded) -> Step:
    seeds = decoded.tile("src_seeds")
    lanes, load = _lanes(decoded, seeds), seeds.seen_as((seeds.free,))
    return lambda: np.copyto(lanes, load())


@semantics("rand_get_state")
def rand_get_state(decoded: Decoded) -> Step:
    dst = decoded.tile("dst")
    lanes = _lanes(decoded, dst)
    return lambda: np.copyto(dst.window, lanes.reshape(dst.shape))
