"""Models of random numbers: XORWOW and the seeding of docs/fidelity.md, in Python's integers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine.operands import Row
from tests.harness.drawing import Draw
from tests.harness.instruction import Call
from tests.harness.model import Bits, Given, Results, Settings, Shape, instance, model
from tests.harness.operators import apply

Array = NDArray[Any]
MASK = 0xFFFFFFFF


def xorwow(state: list[int]) -> int:
    """Draw once from Marsaglia's generator and advance `state`."""
    x, y, z, w, v, d = state
    t = x ^ (x >> 2)
    last = (v ^ (v << 4) ^ t ^ (t << 1)) & MASK
    d = (d + 362437) & MASK
    state[:] = [y, z, w, v, last, d]
    return (last + d) & MASK


def hashed(word: int) -> int:
    """Apply Murmur3's finaliser."""
    word &= MASK
    word = ((word ^ (word >> 16)) * 0x85EBCA6B) & MASK
    word = ((word ^ (word >> 13)) * 0xC2B2AE35) & MASK
    return word ^ (word >> 16)


def seeded(seed: int, generators: int) -> list[list[list[int]]]:
    """Return 128 lanes of generators of six words."""
    start, words = hashed(seed), 6 * generators
    return [
        [[hashed(start + words * lane + 6 * g + i) for i in range(6)] for g in range(generators)]
        for lane in range(128)
    ]


def generators(given: Given) -> list[list[list[int]]]:
    number = {"vector": 4, "gpsimd": 1}[given.engine]
    states: list[list[list[int]]] = given.state.setdefault(
        f"{given.engine} generators", seeded(0, number)
    )
    return states


def drawn(given: Given, name: str) -> Array:
    """Draw words for the partitions of a tile; a lane's generators are used in rotation, and all
    draw equally often.
    """
    of, states = given.tile(name), generators(given)
    count = int(np.prod(of.shape[1:], dtype=int))
    found = []
    for lane in states[of.start : of.start + of.partitions]:
        rounds = -(-count // len(lane))
        found.append([xorwow(one) for _ in range(rounds) for one in lane][:count])
    return np.array(found, np.int64)


def unit(words: Array) -> Array:
    return (words >> 8) / 2.0**24


SETTERS = ("set_rng_seed", "rand_set_state", "rng", "rand_get_state")


def chained(name: str) -> Any:
    """Draw a seed or a state, some draws, and `name` last."""

    def program(draw: Draw, target: str) -> list[Call]:
        known = SETTERS if target != "trn1" else ("set_rng_seed", "rng")
        names = [draw.pick(known) for _ in range(draw.integer(0, 2))]
        return [instance(draw, each, target) for each in (*names, name)]

    return program


def states(draw: Draw, row: Row, settings: Settings) -> dict[str, Shape]:
    return {row.operands[0].name: (draw.pick([1, 3, 32, 128]), draw.pick([6, 24]))}


@model("set_rng_seed", lambda draw, row, settings: {"src_seeds": (1, 1)})
def set_rng_seed(given: Given) -> Results:
    (seed,) = given.elements("src_seeds").view(np.uint32).ravel()
    generators(given)[:] = seeded(int(seed), 4)
    return {}


@model("rand_set_state", states)
def rand_set_state(given: Given) -> Results:
    start = given.tile("src_seeds").start
    for lane, words in zip(generators(given)[start:], given["src_seeds"].tolist(), strict=False):
        lane[:] = [words[i : i + 6] for i in range(0, len(words), 6)]
    return {}


@model("rand_get_state", states, program=chained("rand_get_state"))
def rand_get_state(given: Given) -> Results:
    of = given.tile("dst")
    lanes = generators(given)[of.start : of.start + of.partitions]
    return {"dst": np.array([[w for one in lane for w in one] for lane in lanes], np.uint32)}


@model("rng", program=chained("rng"))
def rng(given: Given) -> Results:
    words, kind = drawn(given, "dst"), given["dst"].dtype
    return {"dst": words.astype(f"u{kind.itemsize}").view(kind)}


def _ordered(draw: Draw, values: Settings) -> None:
    """Draw vectors in which min is not above max."""
    for name, low in (("min", -8), ("max", 4)):
        of = values[name]
        if not isinstance(of, int | float):
            window = of.window(of.tensor.contents)
            window[...] = low + draw.rng.random(window.shape) * 3


@model("rand2", fill=_ordered, program=chained("rand2"))
def rand2(given: Given) -> Results:
    low, high = given.numbers("min"), given.numbers("max")
    scaled = apply("multiply", apply("subtract", high, low), unit(drawn(given, "dst")))
    found = apply("minimum", apply("add", low, scaled), high)
    return {"dst": given.rounded("dst", found)}


def _probabilities(draw: Draw, values: Settings) -> None:
    of = values["prob"]
    if not isinstance(of, int | float):
        window = of.window(of.tensor.contents)
        window[...] = draw.rng.random(window.shape).astype(window.dtype)


@model("dropout", fill=_probabilities, program=chained("dropout"))
def dropout(given: Given) -> Results:
    dropped = unit(drawn(given, "data")) < given.numbers("prob")
    return {"dst": Bits(np.where(dropped, given.rounded("data", np.zeros(1)), given["data"]))}
