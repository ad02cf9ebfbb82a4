"""Models of instructions that search for eight values, or move partitions."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine.operands import Row
from tests.harness.drawing import Draw
from tests.harness.model import Bits, Given, Results, Settings, Shape, model
from tests.harness.reference import single

Array = NDArray[Any]


def searched(draw: Draw, row: Row, settings: Settings) -> dict[str, Shape]:
    partitions, free = draw.pick([1, 3, 40]), draw.pick([8, 9, 24, 36])
    eight = {"vals", "dst_idx"} | ({"dst"} if row.name != "nc_match_replace8" else set())
    return {o.name: (partitions, 8 if o.name in eight else free) for o in row.operands}


@model("max8", searched)
def max8(given: Given) -> Results:
    """Descending order; NaN before infinity (docs/fidelity.md)."""
    x = given.numbers("src")
    ranked = np.lexsort((-np.nan_to_num(x, nan=0, posinf=np.inf, neginf=-np.inf), ~np.isnan(x)))
    return {"dst": given.rounded("dst", np.take_along_axis(x, ranked, 1)[:, :8])}


def _wanted(draw: Draw, values: Settings) -> None:
    """Draw values of which some occur, some more than once."""
    data, vals = values["data"], values["vals"]
    if data.dtype != vals.dtype or draw.chance(0.2):
        return
    elements = np.ascontiguousarray(data.window(data.tensor.contents)).reshape(data.partitions, -1)
    at = draw.rng.integers(0, elements.shape[1], (len(elements), 8))
    at[:, draw.integer(0, 7)] = at[:, draw.integer(0, 7)]
    window = vals.window(vals.tensor.contents)
    found = np.take_along_axis(elements, at, 1)
    found = np.where(draw.rng.random(found.shape) < 0.85, found, found.dtype.type(7))
    window[...] = found.reshape(window.shape)


def _occurrences(x: Array, wanted: Array, order: range) -> list[list[int]]:
    """Return the index of each value, or -1; equal values take successive occurrences in
    `order`.
    """
    found = []
    for row, values in zip(x, wanted, strict=True):
        places, taken = [-1] * 8, set[int]()
        for slot in order:
            for i, element in enumerate(row):
                if element == values[slot] and i not in taken:
                    places[slot] = i
                    taken.add(i)
                    break
        found.append(places)
    return found


def _indices(places: list[list[int]], dtype: str) -> Array:
    return np.array(places, np.int64).astype(np.uint32).astype(dtype)


@model("nc_find_index8", searched, fill=_wanted)
def nc_find_index8(given: Given) -> Results:
    places = _occurrences(given.numbers("data"), given.numbers("vals"), range(8))
    return {"dst": _indices(places, given.dtype("dst"))}


@model("nc_match_replace8", searched, fill=_wanted)
def nc_match_replace8(given: Given) -> Results:
    x = given.numbers("data")
    places = _occurrences(x, given.numbers("vals"), range(7, -1, -1))
    found = x.copy()
    for row, at in enumerate(places):
        found[row, [i for i in at if i >= 0]] = single(np.array(given["imm"]))
    results: Results = {"dst": given.rounded("dst", found)}
    if given["dst_idx"] is not None:
        results["dst_idx"] = _indices(places, given.dtype("dst_idx"))
    return results


def shuffled(draw: Draw, row: Row, settings: Settings) -> dict[str, Shape]:
    partitions, free = draw.pick([1, 20, 32, 40, 64, 128]), draw.pick([1, 5, 24])
    last = min(32, partitions) if partitions <= 32 else (partitions - 1) % 32 + 1
    settings["shuffle_mask"] = tuple(draw.pick([255, *range(last)]) for _ in range(32))
    if draw.chance():
        settings["shuffle_mask"] = tuple(draw.pick(range(last)) for _ in range(32))
    return {"dst": (partitions, free), "src": (partitions, free)}


@model("nc_stream_shuffle", shuffled)
def nc_stream_shuffle(given: Given) -> Results:
    found, src = given["dst"].copy(), given["src"]
    for partition in range(len(found)):
        entry = given["shuffle_mask"][partition % 32]
        if entry != 255:
            found[partition] = src[partition // 32 * 32 + entry]
    return {"dst": Bits(found)}
