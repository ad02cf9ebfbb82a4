"""Models of elementwise instructions, on the vector engine or others:

`nki.isa`, the page of each one.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine.dtypes import DTYPES
from nkic.machine.operands import Row
from nkic.machine.operators import ALU
from tests.harness.drawing import Draw
from tests.harness.instruction import Tile
from tests.harness.model import Bits, Given, Results, Settings, Shape, model
from tests.harness.operators import apply, bits, fold, fold_bits, whole
from tests.harness.reference import INTEGER_BITS, stored

Array = NDArray[Any]
WORDS = ("int32", "uint32")


def copied(given: Given, source: str) -> Array | Bits:
    """Return the same bits within one type; otherwise convert through float32."""
    if given.dtype("dst") == given.dtype(source):
        return Bits(given.elements(source))
    return given.rounded("dst", given.numbers(source))


def unsigned(given: Given, name: str) -> Array:
    """Return the bits of elements."""
    elements = given.elements(name)
    return elements.view(f"u{elements.itemsize}")


def cut(words: Array, dtype: str) -> Array:
    """Truncate or zero-extend bits to elements of a type."""
    size = DTYPES[dtype].size
    return words.astype(f"u{size}").view(np.dtype("uint8" if dtype == "bool" else dtype))


def bit_operand(given: Given, name: str) -> Array | int | None:
    return unsigned(given, name) if given.is_tile(name) else given[name]


def all_words(given: Given, *names: str) -> bool:
    return all(given.dtype(n) in WORDS for n in names if given.is_tile(n))


def wrapped(found: Array, dtype: str) -> Array:
    """Truncate integers to 32 bits."""
    words = np.array([int(v) & 0xFFFFFFFF for v in found.ravel()], np.uint32)
    return words.view(dtype).reshape(found.shape)


@model("tensor_copy")
def tensor_copy(given: Given) -> Results:
    return {"dst": copied(given, "src")}


@model("memset")
def memset(given: Given) -> Results:
    value, dtype = given["value"], given.dtype("dst")
    zeros = np.zeros_like(given.elements("dst"))
    if dtype in INTEGER_BITS or DTYPES[dtype].kind == "packed":
        return {"dst": zeros + np.array(int(value)).astype(zeros.dtype)}
    return {"dst": given.rounded("dst", np.array(value, np.float32))}


@model("tensor_tensor")
def tensor_tensor(given: Given) -> Results:
    op, dtype = given["op"], given.dtype("dst")
    if ALU[op].group == "bitvec":
        found = bits(op, unsigned(given, "data1"), unsigned(given, "data2"))
        return {"dst": cut(found, dtype)}
    exact = given.engine == "gpsimd" and all_words(given, "dst", "data1", "data2")
    if exact and op not in ("power", "bypass"):
        return {"dst": wrapped(whole(op, given["data1"], given["data2"]), dtype)}
    return {"dst": given.rounded("dst", apply(op, given.numbers("data1"), given.numbers("data2")))}


@model("tensor_scalar")
def tensor_scalar(given: Given) -> Results:
    op1 = given["op1"]
    stages = [(given["op0"], "operand0", given["reverse0"])]
    if op1 is not None:
        stages.append((op1, "operand1", given["reverse1"]))
    names = [name for _, name, _ in stages]
    if ALU[stages[0][0]].group == "bitvec":
        words = unsigned(given, "data")
        for op, name, reverse in stages:
            words = bits(op, words, bit_operand(given, name), reverse)
        return {"dst": cut(words, given.dtype("dst"))}
    if _addresses(given, stages, names):
        found = given["data"].astype(object)
        for op, name, reverse in stages:
            operand = given[name]
            operand = operand if isinstance(operand, np.ndarray) else np.array(int(operand))
            found = wrapped(whole(op, found, operand, reverse), given.dtype("dst"))
        return {"dst": found}
    value = given.numbers("data")
    for op, name, reverse in stages:
        operand = None if given[name] is None else given.numbers(name)
        value = apply(op, value, operand, reverse)
    return {"dst": given.rounded("dst", value)}


def _addresses(given: Given, stages: list[tuple[str, str, bool]], names: list[str]) -> bool:
    """docs/fidelity.md: operands that are all 32-bit integers, a vector among them, are exact."""
    return (
        all_words(given, "dst", "data", *names)
        and any(given.is_tile(name) for name in names)
        and all(given.is_tile(name) or float(given[name] or 0).is_integer() for name in names)
        and all(ALU[op].arity == 2 and op != "power" for op, _, _ in stages)
        and all(given[name] is not None for name in names)
    )


@model("scalar_tensor_tensor")
def scalar_tensor_tensor(given: Given) -> Results:
    between = apply(
        given["op0"], given.numbers("data"), given.numbers("operand0"), given["reverse0"]
    )
    found = apply(given["op1"], between, given.numbers("operand1"), given["reverse1"])
    return {"dst": given.rounded("dst", found)}


def reduced(draw: Draw, row: Row, settings: Settings) -> dict[str, Shape]:
    """Draw data of 1 to 3 free dimensions, of which the last ones are reduced."""
    partitions = draw.pick([1, 3, 32, 40])
    sizes = [draw.pick([1, 2, 3, 5, 8]) for _ in range(draw.integer(1, 3))]
    kept = draw.integer(0, len(sizes) - 1)
    settings["axis"] = tuple(range(kept + 1, len(sizes) + 1))
    left = int(np.prod(sizes[:kept], dtype=int))
    return {"data": (partitions, *sizes), "dst": (partitions, left)}


def _any_axis(draw: Draw) -> tuple[int, ...]:
    return draw.pick([(1,), (2,), (1, 2), (3,), (2, 3)])


@model("tensor_reduce", reduced, settings={"axis": _any_axis}, silent=("keepdims",))
def tensor_reduce(given: Given) -> Results:
    op, axis, negate = given["op"], given["axis"], given["negate"]
    shape = given.tile("data").shape
    rows = (shape[0], -1, int(np.prod(shape[axis[0] :], dtype=int)))
    if ALU[op].group == "bitvec":
        found = fold_bits(op, unsigned(given, "data").reshape(rows))
        return {"dst": cut(found, given.dtype("dst"))}
    total = fold(op, given.numbers("data").reshape(rows))
    return {"dst": given.rounded("dst", -total if negate else total)}


@model("tensor_tensor_scan")
def tensor_tensor_scan(given: Given) -> Results:
    a, b = given.numbers("data0"), given.numbers("data1")
    carry = np.broadcast_to(given.numbers("initial"), (len(a), 1))
    columns = []
    for i in range(a.shape[1]):
        between = apply(given["op0"], a[:, i : i + 1], carry, given["reverse0"])
        carry = apply(given["op1"], between, b[:, i : i + 1], given["reverse1"])
        columns.append(carry)
    return {"dst": given.rounded("dst", np.concatenate(columns, 1))}


def statistics(draw: Draw, row: Row, settings: Settings) -> dict[str, Shape]:
    partitions = draw.pick([1, 3, 40])
    return {"data": (partitions, draw.pick([1, 2, 3, 9, 24, 512])), "dst": (partitions, 6)}


def _tame(*names: str) -> Any:
    """Draw no special values: their statistics are meaningless."""

    def fill(draw: Draw, values: Settings) -> None:
        for name in names:
            of = values[name]
            if isinstance(of, Tile):
                window = of.window(of.tensor.contents)
                window[...] = draw.numbers(window.shape, of.dtype, 4)

    return fill


@model("bn_stats", statistics, fill=_tame("data"))
def bn_stats(given: Given) -> Results:
    x = given.numbers("data")
    low, high = [], []
    for part in (x[:, 0::2], x[:, 1::2]):
        count = part.shape[1]
        mean = part.sum(1) / max(count, 1)
        spread = ((part - mean[:, None]) ** 2).sum(1)
        size, square = 1e-12 * np.abs(part).sum(1), 1e-12 * (part**2).sum(1)
        found = np.stack([np.full(len(x), float(count)), mean, spread], 1)
        off = np.stack([np.zeros(len(x)), size, square], 1)
        low.append(found - off)
        high.append(found + off)
    bounds = np.concatenate(low, 1), np.concatenate(high, 1)
    middle, slack = (bounds[0] + bounds[1]) / 2, (bounds[1] - bounds[0]) / 2
    return {"dst": given.near("dst", middle, slack)}


def aggregates(draw: Draw, row: Row, settings: Settings) -> dict[str, Shape]:
    partitions = draw.pick([1, 3, 40])
    return {"data": (partitions, 3 * draw.integer(1, 8)), "dst": (partitions, 2)}


def _counts(draw: Draw, values: Settings) -> None:
    """Return counts, means and squares as bn_stats writes them."""
    of = values["data"]
    shape = (of.partitions, int(np.prod(of.shape[1:])) // 3)
    counts = draw.rng.integers(1, 9, shape)
    parts = (counts, draw.rng.standard_normal(shape) * 4, draw.rng.random(shape) * 9 * counts)
    elements = np.stack(parts, 2).reshape(of.shape)
    of.window(of.tensor.contents)[...] = stored(elements, of.dtype)


@model("bn_aggr", aggregates, fill=_counts)
def bn_aggr(given: Given) -> Results:
    x = given.numbers("data")
    counts, means, spreads = x[:, 0::3], x[:, 1::3], x[:, 2::3]
    none = counts.sum(1) == 0
    total = np.where(none, 1, counts.sum(1))
    mean = (counts * means).sum(1) / total
    spread = (spreads + counts * (means - mean[:, None]) ** 2).sum(1) / total
    slack = 1e-12 * (1 + np.abs(means).max(1) ** 2 + np.abs(spreads).sum(1))
    found = np.stack([mean, spread], 1) * ~none[:, None]
    return {"dst": given.near("dst", found, slack[:, None])}


@model("reciprocal")
def reciprocal(given: Given) -> Results:
    return {"dst": given.rounded("dst", apply("reciprocal", given.numbers("data"), None))}


@model("tensor_copy_predicated")
def tensor_copy_predicated(given: Given) -> Results:
    taken = (given["predicate"] != 0) != given["reverse_pred"]
    src = given["src"]
    if not isinstance(src, np.ndarray):
        src = given.rounded("dst", np.array(src, np.float32))
    return {"dst": Bits(np.where(taken, src, given["dst"]))}
