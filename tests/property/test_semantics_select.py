"""Instructions that reduce on the way, search, gather and shuffle, on random tiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.harness.instruction import Tile, built, call, tile
from tests.harness.reference import loaded, same, single, stored
from tests.property.test_semantics import (
    FLOATS,
    OPS,
    SHAPES,
    TYPES,
    Shape,
    apply,
    few,
    scalars,
    tiles,
    values,
)

Array = NDArray[Any]
NARROW = [name for name in TYPES if name not in ("int32", "uint32", "bool")]
FLAGS = st.booleans()


def both_ways(row: str, engine: str = "any", target: str = "trn2", **values: Any) -> list[Array]:
    """What each result holds, (partitions, free); decoded memory and bytes give the same bits."""
    program = built([call(row, engine, **values)], target)
    one, other = program.run(), program.run(raw=True)
    for tensor, contents in one.memory.items():
        np.testing.assert_array_equal(contents, other.memory[tensor])
    return [one[dst].reshape(dst.partitions, -1) for dst in program.written]


def number(value: Tile | float) -> Array:
    return values(value) if isinstance(value, Tile) else np.full((1, 1), value, np.float32)


def aliased(draw: st.DrawFn, dst: Tile, shape: Shape, dtypes: list[str]) -> Tile:
    """A source of its own, or dst's very elements."""
    return dst if draw(FLAGS) else tiles(draw, shape, dtypes)


@given(st.data(), SHAPES, OPS, st.sampled_from(["maximum", "minimum"]))
@few
def test_tensor_scalar_reduce(data: st.DataObject, shape: Shape, op: str, fold: str) -> None:
    dst = tiles(data.draw, shape)
    x, operand = aliased(data.draw, dst, shape, TYPES), scalars(data.draw, shape.partitions)
    total = tiles(data.draw, Shape(shape.partitions, 1), FLOATS)
    expected = apply(op, loaded(values(x)), number(operand))
    found = both_ways(
        "tensor_scalar_reduce",
        **{"dst": dst, "data": x, "op0": op, "operand0": operand},
        **{"reduce_op": fold, "reduce_res": total},
    )
    same(found[0], stored(expected, dst.dtype))
    reduce = np.maximum if fold == "maximum" else np.minimum
    same(found[1], stored(reduce.reduce(expected, axis=1, keepdims=True), total.dtype))


@given(st.data(), SHAPES, OPS, st.sampled_from(["add", "subtract", "multiply", "minimum"]))
@few
def test_tensor_scalar_cumulative(data: st.DataObject, shape: Shape, op0: str, op1: str) -> None:
    dst = tiles(data.draw, shape, NARROW)
    x, operand = aliased(data.draw, dst, shape, NARROW), scalars(data.draw, shape.partitions)
    terms = apply(op0, loaded(values(x)), number(operand))
    register: Any = {"multiply": 1.0, "minimum": np.inf}.get(op1, 0.0)
    expected = np.empty_like(terms)
    for i in range(terms.shape[1]):
        register = expected[:, i] = apply(op1, terms[:, i], register)
    (found,) = both_ways("tensor_scalar_cumulative", dst=dst, src=x, op0=op0, op1=op1, imm0=operand)
    same(found, stored(expected, dst.dtype))


@given(st.data(), SHAPES, FLAGS)
@few
def test_select_reduce(data: st.DataObject, shape: Shape, reverse: bool) -> None:
    dst = tiles(data.draw, shape)
    plain = [name for name in NARROW if name != "tfloat32"]
    x = tiles(data.draw, shape, plain, memory="sbuf")
    flags = tiles(data.draw, shape, ["int8", "uint8", "int16", "uint16"])
    otherwise = scalars(data.draw, shape.partitions)
    most = tiles(data.draw, Shape(shape.partitions, 1), FLOATS)
    mask = (values(flags) != 0) != reverse
    expected = np.where(mask, loaded(values(x)), number(otherwise))
    found = both_ways(
        "select_reduce",
        **{"dst": dst, "predicate": flags, "on_true": x, "on_false": otherwise},
        **{"reduce_res": most, "reduce_cmd": "reset_reduce", "reverse_pred": reverse},
    )
    same(found[0], stored(expected, dst.dtype))
    same(found[1], stored(expected.max(axis=1, keepdims=True), most.dtype))


@given(st.data(), SHAPES, st.integers(-20, 20))
@few
def test_range_select(data: st.DataObject, shape: Shape, start: int) -> None:
    dst = tiles(data.draw, shape)
    x = aliased(data.draw, dst, shape, FLOATS) if dst.dtype in FLOATS else None
    x = x or tiles(data.draw, shape, FLOATS)
    rng = np.random.default_rng(abs(start))
    low, high = (
        tile(rng.integers(-20, 40, (shape.partitions, 1)).astype(np.float32)) for _ in range(2)
    )
    index = start + np.arange(shape.free)
    mask = (index >= values(low)) & (index < values(high))
    expected = np.where(mask, loaded(values(x)), np.finfo(np.float32).min)
    (found,) = both_ways(
        "range_select",
        **{"dst": dst, "on_true_tile": x, "comp_op0": "greater_equal", "comp_op1": "less"},
        **{"bound0": low, "bound1": high, "range_start": start},
    )
    same(found, stored(expected, dst.dtype))


@given(st.data(), SHAPES)
@few
def test_nc_stream_shuffle(data: st.DataObject, shape: Shape) -> None:
    dst = tiles(data.draw, shape)
    src = aliased(data.draw, dst, shape, [dst.dtype])
    entries = st.sampled_from([255, *range(min(32, shape.partitions))])
    if shape.partitions > 32:
        entries = st.sampled_from([255, *range(shape.partitions - 32)])
    mask = data.draw(st.lists(entries, min_size=32, max_size=32))
    expected = values(dst).copy()
    for partition in range(shape.partitions):
        if mask[partition % 32] != 255:
            expected[partition] = values(src)[partition // 32 * 32 + mask[partition % 32]]
    (found,) = both_ways("nc_stream_shuffle", dst=dst, src=src, shuffle_mask=tuple(mask))
    same(found, expected)


@given(st.data(), SHAPES, st.integers(1, 40))
@few
def test_nc_n_gather(data: st.DataObject, shape: Shape, length: int) -> None:
    dst = tiles(data.draw, Shape(shape.partitions, length), memory="sbuf")
    x = tiles(data.draw, shape, [dst.dtype], memory="sbuf")
    rng = np.random.default_rng(length)
    at = rng.integers(0, shape.free, (shape.partitions, length)).astype(np.uint32)
    (found,) = both_ways("nc_n_gather", dst=dst, data=x, indices=tile(at))
    same(found, np.take_along_axis(values(x), at.astype(np.int64), axis=1))


@given(st.data(), SHAPES, st.sampled_from(["add", "average", "maximum"]))
@few
def test_tensor_partition_reduce(data: st.DataObject, shape: Shape, op: str) -> None:
    dst = tiles(data.draw, Shape(1, shape.free), memory="sbuf")
    x = tiles(data.draw, shape, ["float16", "bfloat16", "int8", "uint16"], memory="sbuf")
    fold = {"add": np.sum, "average": np.mean, "maximum": np.max}[op]
    with np.errstate(all="ignore"):
        expected = fold(loaded(values(x)).astype(np.float64), axis=0, keepdims=True)
    (found,) = both_ways("tensor_partition_reduce", dst=dst, op=op, data=x)
    same(found, stored(single(expected), dst.dtype))


@pytest.mark.parametrize("row", ["nc_find_index8", "nc_match_replace8"])
@given(data=st.data())
@few
def test_values_are_found(row: str, data: st.DataObject) -> None:
    shape = Shape(data.draw(st.sampled_from([1, 40])), data.draw(st.sampled_from([8, 24, 36])))
    x = tiles(data.draw, shape, dims=2)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    wanted = np.take_along_axis(values(x), rng.integers(0, shape.free, (shape[0], 8)), axis=1)
    vals = tile(wanted, dtype=x.dtype)
    more: dict[str, Any] = {"dst": tile((shape.partitions, 8), dtype="uint32")}
    if row == "nc_match_replace8":
        more = {"dst_idx": more["dst"], "dst": tiles(data.draw, shape), "imm": 3.0}
    places = both_ways(row, data=x, vals=vals, **more)[-1].astype(np.int64)
    numbers, targets = loaded(values(x)), loaded(values(vals))
    there = places != 2**32 - 1
    picked = np.take_along_axis(numbers, np.where(there, places, 0), axis=1)
    assert (picked == targets)[there].all()
    first = 0 if row == "nc_find_index8" else 7  # the one that looks before the others
    assert there[:, first][~np.isnan(targets[:, first])].all()
