"""Instructions on random tiles: any strides, types and memories give what the words say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nkic.machine.dtypes import DTYPES
from tests.harness.instruction import Tile, built, call, tile
from tests.harness.reference import INTEGER_BITS, loaded, numpy_type, same, single, stored

Array = NDArray[Any]

FLOATS = ["float32", "bfloat16", "float16", "float8_e4m3", "float8_e5m2", "tfloat32"]
TYPES = [*FLOATS, *INTEGER_BITS, "bool"]
few = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))


class Shape(NamedTuple):
    partitions: int
    free: int


SHAPES = st.builds(Shape, st.sampled_from([1, 3, 32, 40]), st.sampled_from([1, 5, 12, 24, 36]))


def factors(draw: st.DrawFn, free: int, most: int) -> list[int]:
    """`free` as a product of at most `most` sizes, ones among them."""
    sizes = []
    while len(sizes) < most - 1 and draw(st.booleans()):
        sizes.append(draw(st.sampled_from([d for d in range(1, free + 1) if free % d == 0])))
        free //= sizes[-1]
    return [*sizes, free]


def steps_of(draw: st.DrawFn, sizes: Sequence[int]) -> list[int]:
    """Steps of dimensions that lie in any order, with gaps, forwards or backwards."""
    order = draw(st.permutations(range(len(sizes))))
    steps, next_step = [0] * len(sizes), 1
    for axis in order:
        steps[axis] = next_step * draw(st.sampled_from([1, 1, 2]))
        next_step = abs(steps[axis]) * sizes[axis]
        steps[axis] *= draw(st.sampled_from([1, 1, 1, -1]))
    return steps


def numbers(draw: st.DrawFn, shape: Sequence[int], dtype: str) -> Array:
    """Elements of all sizes that suit the type, specials or any bits among them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kind = numpy_type(dtype)
    if dtype in INTEGER_BITS or (dtype != "bool" and draw(st.sampled_from([False, False, True]))):
        bits = rng.integers(0, 256, (*shape, kind.itemsize), np.uint8)
        return bits.view(kind)[..., 0]
    values = rng.standard_normal(shape) * 2.0 ** rng.integers(-12, 12, shape)
    specials = draw(st.sampled_from([[], [], [np.nan, np.inf, -np.inf, -0.0, 1e30]]))
    for special in specials:
        values[rng.random(shape) < 0.1] = special
    return values.astype(np.float32)


def tiles(
    draw: st.DrawFn,
    shape: Shape,
    dtypes: Sequence[str] = TYPES,
    memory: str = "sbuf psum",
    dims: int = 3,
) -> Tile:
    """A tile of `shape` somewhere, with contents. (In HBM there is one partition.)"""
    sizes = factors(draw, shape.free, dims)
    dtype, buffer = draw(st.sampled_from(list(dtypes))), draw(st.sampled_from(memory.split()))
    starts = [0, 64] if shape.partitions > 32 else [0, 32, 96]
    return tile(
        numbers(draw, sizes if buffer == "hbm" else (shape.partitions, *sizes), dtype),
        dtype=dtype,
        buffer=buffer,
        start=draw(st.sampled_from(starts)) if buffer != "hbm" else 0,
        offset=draw(st.integers(0, 3)),
        steps=steps_of(draw, sizes),
        room=draw(st.integers(0, 2)),
    )


def values(of: Tile) -> Array:
    """The elements before the run, (partitions, free)."""
    return np.ascontiguousarray(of.window(of.tensor.contents)).reshape(of.partitions, -1)


def both_ways(row: str, dst: Tile, *, engine: str = "any", **values: Any) -> Array:
    """The elements of dst; memory kept decoded or as bytes gives the same, everywhere."""
    program = built([call(row, engine, dst=dst, **values)])
    one, other = program.run(), program.run(raw=True)
    same(one[dst], other[dst])
    return one[dst].reshape(dst.partitions, -1)


def moved(row: str, dst: Tile, *, engine: str = "any", **values: Any) -> bytes:
    """The same for what is moved bit for bit, NaN with its sign and payload."""
    program = built([call(row, engine, dst=dst, **values)])
    one, other = program.run()[dst], program.run(raw=True)[dst]
    assert one.tobytes() == other.tobytes()
    return one.tobytes()


BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "greater": np.greater,
    "less_equal": np.less_equal,
    "equal": np.equal,
    "logical_xor": lambda a, b: (a != 0) ^ (b != 0),
}


def apply(op: str, a: Array, b: Array, reverse: bool = False) -> Array:
    """An operator of float32 numbers, in float64, rounded to float32."""
    a, b = (b, a) if reverse else (a, b)
    with np.errstate(all="ignore"):
        return single(BINARY[op](np.asarray(a, np.float64), np.asarray(b, np.float64)))


OPS = st.sampled_from(sorted(BINARY))
FLAGS = st.booleans()


@given(st.data(), SHAPES, OPS)
@few
def test_tensor_tensor(data: st.DataObject, shape: Shape, op: str) -> None:
    dst, a = tiles(data.draw, shape), tiles(data.draw, shape)
    b = tiles(data.draw, shape, memory="sbuf")
    found = both_ways("tensor_tensor", dst, engine="vector", data1=a, data2=b, op=op)
    same(found, stored(apply(op, loaded(values(a)), loaded(values(b))), dst.dtype))


def scalars(draw: st.DrawFn, partitions: int, memory: str = "sbuf psum") -> Tile | float:
    """A number, or a float32 in each partition."""
    if draw(st.booleans()):
        return draw(st.sampled_from([0.0, 1.5, -3.0, 0.1, 1e10]))
    return tiles(draw, Shape(partitions, 1), ["float32"], memory)


def column(scalar: Tile | float) -> Array:
    """What broadcasts: (partitions, 1), or a float32."""
    return values(scalar) if isinstance(scalar, Tile) else np.array(scalar, np.float32)


@given(st.data(), SHAPES, st.tuples(OPS, st.one_of(st.none(), OPS)), FLAGS, FLAGS)
@few
def test_tensor_scalar(
    data: st.DataObject, shape: Shape, ops: tuple[str, str | None], reverse0: bool, reverse1: bool
) -> None:
    x, (op0, op1) = tiles(data.draw, shape), ops
    # Integers on both sides, and in vectors, are computed exactly: test_semantics_vector.py.
    dst = tiles(data.draw, shape, FLOATS if x.dtype.endswith("int32") else TYPES)
    first, second = (scalars(data.draw, shape.partitions) for _ in range(2))
    operands = {"data": x, "op0": op0, "operand0": first, "reverse0": reverse0}
    if op1:
        operands |= {"op1": op1, "operand1": second, "reverse1": reverse1}
    found = both_ways("tensor_scalar", dst, engine="vector", **operands)
    expected = apply(op0, loaded(values(x)), column(first), reverse0)
    if op1:
        expected = apply(op1, expected, column(second), reverse1)
    same(found, stored(expected, dst.dtype))


@given(st.data(), SHAPES, st.tuples(OPS, OPS), FLAGS, FLAGS)
@few
def test_scalar_tensor_tensor(
    data: st.DataObject, shape: Shape, ops: tuple[str, str], reverse0: bool, reverse1: bool
) -> None:
    dst, x = tiles(data.draw, shape), tiles(data.draw, shape)
    y, scalar = tiles(data.draw, shape, memory="sbuf"), scalars(data.draw, shape.partitions)
    operands = {"data": x, "op0": ops[0], "operand0": scalar, "op1": ops[1], "operand1": y}
    reverse = {"reverse0": reverse0, "reverse1": reverse1}
    found = both_ways("scalar_tensor_tensor", dst, **operands, **reverse)
    between = apply(ops[0], loaded(values(x)), column(scalar), reverse0)
    same(found, stored(apply(ops[1], between, loaded(values(y)), reverse1), dst.dtype))


@given(st.data(), SHAPES, st.tuples(OPS, OPS), FLAGS, FLAGS)
@few
def test_tensor_tensor_scan(
    data: st.DataObject, shape: Shape, ops: tuple[str, str], reverse0: bool, reverse1: bool
) -> None:
    dst, x = tiles(data.draw, shape), tiles(data.draw, shape)
    y, initial = tiles(data.draw, shape, memory="sbuf"), scalars(data.draw, shape.partitions)
    operands = {"data0": x, "data1": y, "initial": initial, "op0": ops[0], "op1": ops[1]}
    reverse = {"reverse0": reverse0, "reverse1": reverse1}
    found = both_ways("tensor_tensor_scan", dst, **operands, **reverse)
    carry = np.broadcast_to(column(initial), (shape.partitions, 1))
    columns = []
    for a, b in zip(loaded(values(x)).T, loaded(values(y)).T, strict=True):
        between = apply(ops[0], a[:, None], carry, reverse0)
        carry = apply(ops[1], between, b[:, None], reverse1)
        columns.append(carry)
    same(found, stored(np.concatenate(columns, 1), dst.dtype))


FOLDS: dict[str, Callable[[Array], Array]] = {
    "add": lambda rows: rows.sum(2),
    "subtract": lambda rows: rows[:, :, 0] - rows[:, :, 1:].sum(2),
    "multiply": lambda rows: rows.prod(2),
    "maximum": lambda rows: rows.max(2),
    "minimum": lambda rows: rows.min(2),
    "logical_and": lambda rows: (rows != 0).all(2),
}


@given(st.data(), SHAPES, st.sampled_from(sorted(FOLDS)), FLAGS)
@few
def test_tensor_reduce(data: st.DataObject, shape: Shape, op: str, negate: bool) -> None:
    x = tiles(data.draw, shape, ["bfloat16", "float8_e4m3", "int8", "int32"])
    kept = data.draw(st.integers(1, len(x.dims)))
    left = prod(x.shape[1:kept])
    dst = tiles(data.draw, Shape(shape.partitions, left))
    axis = tuple(range(kept, len(x.shape)))
    found = both_ways("tensor_reduce", dst, data=x, op=op, axis=axis, negate=negate)
    with np.errstate(all="ignore"):
        rows = loaded(values(x)).astype(np.float64).reshape(shape.partitions, left, -1)
        total = FOLDS[op](rows) * (-1.0 if negate else 1.0)
    same(found, stored(single(total), dst.dtype))


@given(st.data(), SHAPES)
@few
def test_activation(data: st.DataObject, shape: Shape) -> None:
    dst, x = tiles(data.draw, shape), tiles(data.draw, shape)
    scale, bias = scalars(data.draw, shape.partitions), scalars(data.draw, shape.partitions)
    if data.draw(FLAGS):
        bias = tiles(data.draw, Shape(shape.partitions, 1), ["bfloat16", "float16", "int8"])
    found = both_ways("activation", dst, data=x, op="copy", scale=scale, bias=bias)
    scaled = apply("multiply", loaded(values(x)), column(scale))
    same(found, stored(apply("add", scaled, loaded(column(bias))), dst.dtype))


@given(st.data(), SHAPES, st.sampled_from(["vector", "scalar", "gpsimd"]), st.sampled_from(TYPES))
@few
def test_tensor_copy(data: st.DataObject, shape: Shape, engine: str, dtype: str) -> None:
    memory = "sbuf" if engine == "gpsimd" else "sbuf psum"
    dst = tiles(data.draw, shape, [dtype], memory)
    x = tiles(data.draw, shape, TYPES if data.draw(FLAGS) else [dtype], memory)
    if x.dtype == dtype:
        assert moved("tensor_copy", dst, engine=engine, src=x) == values(x).tobytes()
    else:
        found = both_ways("tensor_copy", dst, engine=engine, src=x)
        same(found, stored(loaded(values(x)), dtype))


@given(st.data(), SHAPES, st.sampled_from(TYPES), FLAGS)
@few
def test_dma_copy(data: st.DataObject, shape: Shape, dtype: str, converts: bool) -> None:
    """Partitions and free dimensions of one side are any dimensions of the other."""
    inside = tiles(data.draw, shape, [dtype], "sbuf", 4)
    outside = Shape(1, shape.partitions * shape.free)
    other = tiles(data.draw, outside, TYPES if converts else [dtype], "hbm", 4)
    dst, src = data.draw(st.permutations([inside, other]))
    if dst.dtype == src.dtype:
        assert moved("dma_copy", dst, engine="dma", src=src) == values(src).tobytes()
    else:
        found = both_ways("dma_copy", dst, engine="dma", src=src)
        same(found, stored(loaded(values(src)), dst.dtype))


@given(st.data(), SHAPES, st.sampled_from(TYPES), FLAGS)
@few
def test_tensor_copy_predicated(
    data: st.DataObject, shape: Shape, dtype: str, reverse: bool
) -> None:
    dst = tiles(data.draw, shape, [dtype])
    flags = tiles(data.draw, shape, ["uint8", "uint16", "uint32"], "sbuf")
    chosen = np.random.default_rng(shape.free).random(flags.shape) < 0.5
    flags.window(flags.tensor.contents)[...] *= chosen.astype(flags.dtype)
    src = tiles(data.draw, shape, [dtype]) if data.draw(FLAGS) else 0.3
    operands = {"src": src, "predicate": flags, "reverse_pred": reverse}
    found = moved("tensor_copy_predicated", dst, **operands)
    taken = (values(flags) != 0) != reverse
    new = values(src) if isinstance(src, Tile) else stored(np.array(src), dtype)
    assert found == np.where(taken, new, values(dst)).tobytes()


@st.composite
def patterns(draw: st.DrawFn, free: int) -> tuple[tuple[int, int], ...]:
    return tuple((draw(st.integers(-300, 300)), size) for size in factors(draw, free, 4))


def affine(pattern: Sequence[tuple[int, int]], multiplier: int, offset: int, rows: int) -> Array:
    """The documented loop, dimension by dimension, in 32 bits."""
    index = np.zeros((rows, 1), np.int64) + offset + multiplier * np.arange(rows)[:, None]
    for step, num in pattern:
        index = (index[:, :, None] + step * np.arange(num)).reshape(rows, -1)
    return index.astype(np.uint32).astype(np.int32)


@given(st.data(), SHAPES, st.sampled_from([0, -7, 1000, 2**31 - 3]), st.integers(-500, 500))
@few
def test_iota(data: st.DataObject, shape: Shape, offset: int, multiplier: int) -> None:
    dst, pattern = tiles(data.draw, shape, memory="sbuf"), data.draw(patterns(shape.free))
    operands = {"pattern": pattern, "offset": offset, "channel_multiplier": multiplier}
    found = both_ways("iota", dst, **operands)
    expected = affine(pattern, multiplier, offset, shape.partitions)
    if dst.dtype in INTEGER_BITS:
        info = np.iinfo(dst.dtype)
        same(found, np.clip(expected.astype(np.int64), info.min, info.max).astype(dst.dtype))
    else:
        same(found, stored(expected, dst.dtype))


COMPARISONS = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "less": np.less,
    "less_equal": np.less_equal,
}


@given(st.data(), SHAPES, st.sampled_from(sorted(COMPARISONS)), st.integers(-40, 40))
@few
def test_affine_select(data: st.DataObject, shape: Shape, op: str, offset: int) -> None:
    dst, x = tiles(data.draw, shape, memory="sbuf"), tiles(data.draw, shape, memory="sbuf")
    pattern, multiplier = data.draw(patterns(shape.free)), data.draw(st.integers(-9, 9))
    otherwise = data.draw(st.sampled_from([0.0, -3.4e38, 1.5, 300.0]))
    operands = {"on_true_tile": x, "on_false_value": otherwise, "cmp_op": op, "offset": offset}
    found = both_ways(
        "affine_select", dst, pattern=pattern, channel_multiplier=multiplier, **operands
    )
    taken = COMPARISONS[op](affine(pattern, multiplier, offset, shape.partitions), 0)
    new = values(x) if x.dtype == dst.dtype else stored(loaded(values(x)), dst.dtype)
    same(found, np.where(taken, new, stored(np.array(otherwise), dst.dtype)))


@given(st.data(), SHAPES)
@few
def test_reciprocal(data: st.DataObject, shape: Shape) -> None:
    dst, x = tiles(data.draw, shape), tiles(data.draw, shape)
    found = both_ways("reciprocal", dst, data=x)
    with np.errstate(all="ignore"):
        same(found, stored(single(1 / loaded(values(x)).astype(np.float64)), dst.dtype))


@given(st.data(), st.sampled_from([1, 3, 32]), st.sampled_from([1, 8, 24, 32]), FLAGS)
@few
def test_nc_transpose(data: st.DataObject, rows: int, columns: int, on_tensor: bool) -> None:
    dtype = data.draw(st.sampled_from(TYPES))
    memory = ("psum", "sbuf") if on_tensor else ("sbuf psum", "sbuf psum")
    dst = tiles(data.draw, Shape(columns, rows), [dtype], memory[0])
    x = tiles(data.draw, Shape(rows, columns), [dtype], memory[1])
    engine = "tensor" if on_tensor else "vector"
    assert moved("nc_transpose", dst, engine=engine, data=x) == values(x).T.tobytes()


@given(st.data(), st.integers(2, 4), st.sampled_from(["float32", "float16", "int16", "uint32"]))
@few
def test_dma_transpose(data: st.DataObject, rank: int, dtype: str) -> None:
    axes = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}[rank]
    shape = data.draw(st.lists(st.integers(1, 6), min_size=rank, max_size=rank))
    in_hbm, given_axes = data.draw(FLAGS), data.draw(FLAGS)
    x = tile(
        numbers(data.draw, shape, dtype),
        dtype=dtype,
        buffer="hbm" if in_hbm else "sbuf",
        steps=steps_of(data.draw, shape if in_hbm else shape[1:]),
    )
    turned = [shape[axis] for axis in axes]
    dst = tile(tuple(turned), dtype=dtype, steps=steps_of(data.draw, turned[1:]), offset=1)
    found = moved("dma_transpose", dst, engine="dma", src=x, axes=axes if given_axes else None)
    assert found == x.window(x.tensor.contents).reshape(shape).transpose(axes).tobytes()


CHAINED: dict[str, dict[str, Any]] = {
    "tensor_copy": {},
    "tensor_scalar": {"op0": "add", "operand0": 1.0, "op1": "multiply", "operand1": 2.0},
    "activation": {"op": "relu", "scale": 2.0, "bias": 2.0},
}


@given(
    st.data(), st.sampled_from(sorted(CHAINED)), st.sampled_from(["float32", "bfloat16", "int8"])
)
@few
def test_all_is_read_before_any_is_overwritten(data: st.DataObject, row: str, dtype: str) -> None:
    """dst is another view of the tensor that holds the data."""
    sizes = factors(data.draw, 12, 3)
    x = tile(
        np.arange(24.0).reshape(2, *sizes),
        dtype=dtype,
        steps=steps_of(data.draw, sizes),
        room=data.draw(st.integers(4, 8)),
    )
    room = x.tensor.bytes // DTYPES[dtype].size
    dst = x.over(offset=data.draw(st.integers(0, room - 12)), dims=((1, 12),))
    before = loaded(values(x)).astype(np.float64)
    found = both_ways(row, dst, **{"src" if row == "tensor_copy" else "data": x}, **CHAINED[row])
    after = before if row == "tensor_copy" else before * 2 + 2
    same(found, stored(after, dtype))
