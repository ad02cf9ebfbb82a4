"""Rules for the bounds of results, one function for each covered row.

A function returns the bounds by written operand, before rounding to that operand's type, or None if
it cannot bound them. docs/fidelity.md states what is covered.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nkic.simulate.bounds.algebra import UNIT, Bounded, fitting, function, operator, rounded, total
from nkic.simulate.bounds.operation import RULES, Errors, Operation, bounded
from nkic.simulate.semantics.binding import swaps
from nkic.simulate.semantics.vector.search import KEEP, QUADRANT

__all__ = ["RULES"]
Doubles = NDArray[np.float64]
PARTITIONS = 128


@bounded("memset", "iota")
def made(operation: Operation) -> Errors:
    """Constants are exactly what their type holds."""
    return {"dst": np.zeros(())}


@bounded("tensor_copy", "dma_copy")
def copied(operation: Operation) -> Errors:
    return {"dst": operation.get("src").error}


@bounded("nc_transpose", "dma_transpose")
def transposed(operation: Operation) -> Errors | None:
    name = "data" if "data" in operation.operands else "src"
    sizes = [size for size in operation.sizes(name) if size > 1]
    if len(sizes) > 2:
        return None
    rows = operation.sizes(name)[0] if operation.sizes(name)[0] > 1 else (sizes or [1])[0]
    return {"dst": operation.get(name).error.reshape(rows, -1).T}


@bounded("affine_select")
def selected(operation: Operation) -> Errors:
    """The selection is exact; the other value is a constant."""
    return {"dst": operation.get("on_true_tile").error}


@bounded("tensor_copy_predicated")
def predicated(operation: Operation) -> Errors | None:
    if not operation.get("predicate").exact:
        return None
    src, dst = operation.get("src"), operation.get("dst")
    return {"dst": np.maximum(np.broadcast_to(src.error, dst.error.shape), dst.error)}


@bounded("tensor_tensor")
def two_tiles(operation: Operation) -> Errors | None:
    return _named(
        "dst", operator(operation.attributes["op"], operation.get("data1"), operation.get("data2"))
    )


@bounded("tensor_scalar")
def tile_and_numbers(operation: Operation) -> Errors | None:
    return _named("dst", _stages(operation, ("operand0", "operand1"), operation.get("data")))


@bounded("scalar_tensor_tensor")
def tile_number_tile(operation: Operation) -> Errors | None:
    return _named("dst", _stages(operation, ("operand0", "operand1"), operation.get("data")))


def _stages(operation: Operation, names: tuple[str, str], data: Bounded) -> Bounded | None:
    """Return (data op0 operand0) op1 operand1."""
    result: Bounded | None = data
    for i, name in enumerate(names):
        op = operation.attributes[f"op{i}"]
        if op is None or result is None:
            return result
        a, b = result, operation.get(name)
        result = operator(
            op, *((b, a) if swaps(op, operation.attributes[f"reverse{i}"]) else (a, b))
        )
    return result


@bounded("reciprocal")
def reciprocal(operation: Operation) -> Errors | None:
    return _named("dst", operator("reciprocal", operation.get("data"), _number(0.0)))


@bounded("activation", "activation_reduce")
def activated(operation: Operation) -> Errors | None:
    inner, scale = operation.get("data"), operation.get("scale", 1.0)
    if operation.operands["scale"] != 1.0:
        inner = operator("multiply", inner, scale) or inner
    if operation.operands["bias"] is not None:
        inner = operator("add", inner, operation.get("bias")) or inner
    result = function(operation.attributes["op"], inner)
    if result is None:
        return None
    command = operation.attributes.get("reduce_cmd", "reset_reduce")
    return {"dst": result.error, "reduce_res": _accumulated(operation, command, result)}


def _accumulated(operation: Operation, command: str, result: Bounded) -> Doubles:
    """Return the bounds of the reduce registers, whose sizes are kept as sums of magnitudes."""
    nothing = Bounded(np.zeros(PARTITIONS), np.zeros(PARTITIONS))
    size, error = operation.lanes.setdefault("reduce", nothing)
    first = operation.first("data")
    lanes = slice(first, first + result.value.shape[0])
    if command.startswith("reset"):
        size[lanes], error[lanes] = 0, 0
    if command.endswith("reduce"):
        size[lanes] += np.abs(result.value).sum(axis=-1)
        error[lanes] += total(result).error + UNIT * size[lanes]
    return error[lanes, None].copy()


@bounded("tensor_reduce")
def reduced(operation: Operation) -> Errors | None:
    data, sizes = operation.get("data"), operation.sizes("data")
    kept = int(np.prod(sizes[: len(sizes) - len(operation.attributes["axis"])]))
    rows = Bounded(data.value.reshape(kept, -1), data.error.reshape(kept, -1))
    return _named("dst", _folded(operation.attributes["op"], rows))


@bounded("tensor_partition_reduce")
def reduced_over_partitions(operation: Operation) -> Errors | None:
    data = operation.get("data")
    return _named("dst", _folded(operation.attributes["op"], Bounded(data.value.T, data.error.T)))


def _folded(op: str, rows: Bounded) -> Bounded | None:
    """Return the reduction of each row."""
    if op in ("add", "subtract"):
        return total(rows)
    if op == "average":
        value, error = total(rows)
        count = rows.value.shape[-1]
        return rounded(Bounded(value / count, error / count))
    if op in ("maximum", "minimum"):
        extreme = np.maximum if op == "maximum" else np.minimum
        return Bounded(extreme.reduce(rows.value, axis=-1), rows.error.max(axis=-1))
    if op == "multiply":
        value, size = np.prod(rows.value, axis=-1), np.abs(rows.value)
        spread = np.prod(size + rows.error, axis=-1) - np.prod(size, axis=-1)
        own = (rows.value.shape[-1] - 1) * UNIT * np.abs(value)
        return Bounded(value, spread + own)
    return None


@bounded("nc_n_gather")
def gathered(operation: Operation) -> Errors | None:
    """The bounds of the gathered elements, if the indices are exact."""
    data, places = operation.get("data"), operation.get("indices")
    if not places.exact:
        return None
    at = np.minimum(places.value, data.value.shape[1] - 1).astype(np.int64)
    return {"dst": np.take_along_axis(data.error, at, axis=1)}


@bounded("local_gather")
def gathered_by_core(operation: Operation) -> Errors | None:
    """The worst bound in each partition, since an index applies to 16 partitions."""
    if not operation.get("index").exact:
        return None
    return {"dst": _worst_of_rows(operation.get("src_buffer"), operation.sizes("dst"))}


def _worst_of_rows(data: Bounded, sizes: tuple[int, ...]) -> Doubles:
    worst = data.error.max(axis=-1, keepdims=True)
    return np.repeat(worst, int(np.prod(sizes[1:])), axis=1)


@bounded("nc_stream_shuffle")
def shuffled(operation: Operation) -> Errors:
    """Partitions move within their group of 32."""
    error, source = operation.get("dst").error, operation.get("src").error
    for partition in range(len(error)):
        taken = operation.attributes["shuffle_mask"][partition % QUADRANT]
        if taken != KEEP:
            error[partition] = source[partition - partition % QUADRANT + taken]
    return {"dst": error}


@bounded("max8")
def largest(operation: Operation) -> Errors:
    """Sorting moves no number further than the largest error."""
    return {"dst": operation.get("src").error.max(axis=-1, keepdims=True)}


@bounded("nc_matmul")
def product(operation: Operation) -> Errors | None:
    left, right = (_contracted(operation, name) for name in ("stationary", "moving"))
    narrow = all(operation.dtype(name).size <= 2 for name in ("stationary", "moving"))
    return _multiplied(operation, left, right, narrow or bool(operation.attributes["is_transpose"]))


def _contracted(operation: Operation, name: str) -> Bounded:
    """Return an operand as (rows of the contraction, columns)."""
    operand = operation.get(name)
    if operation.attributes["perf_mode"] != "double_row":
        return operand
    value, error = (x.reshape(len(x), 2, -1).transpose(1, 0, 2) for x in operand)
    columns = value.shape[-1]
    return Bounded(value.reshape(-1, columns), error.reshape(-1, columns))


@bounded("nc_matmul_mx")
def scaled_product(operation: Operation) -> Errors | None:
    """The product of exact elements and scales, whose single products are exact."""
    names = ("stationary", "moving")
    if not all(operation.get_error(n).max() == 0 for n in (*names, *(f"{n}_scale" for n in names))):
        return None
    values = [operation.scaled(name) for name in names]
    left, right = (Bounded(numbers, np.zeros(numbers.shape)) for numbers in values)
    return _multiplied(operation, left, right, True)


def _multiplied(operation: Operation, left: Bounded, right: Bounded, are_exact: bool) -> Errors:
    """Return the bounds of a matmul whose single products are exact or rounded."""
    a, b = np.abs(left.value).T, np.abs(right.value)
    size = a @ b
    terms = (a != 0).astype(np.float64) @ (b != 0).astype(np.float64)
    roundings = np.maximum(terms - 1, 0) + (0 if are_exact else 1)
    error = left.error.T @ (b + right.error) + a @ right.error + roundings * UNIT * size
    if operation.attributes["accumulate"]:
        before = operation.get("dst")
        error += before.error + UNIT * (np.abs(before.value) + size)
    return {"dst": fitting(size, error)}


@bounded("tensor_tensor_scan")
def scanned(operation: Operation) -> Errors | None:
    """The scan, element by element."""
    data0, data1 = operation.get("data0"), operation.get("data1")
    carry: Bounded | None = operation.get("initial")
    error = np.zeros(data0.value.shape)
    for i in range(len(error[0])):
        carry = _scan_step(operation, _column(data0, i), _column(data1, i), carry)
        if carry is None:
            return None
        error[:, i : i + 1] = carry.error
    return {"dst": error}


def _scan_step(
    operation: Operation, x: Bounded, y: Bounded, carry: Bounded | None
) -> Bounded | None:
    """Return (x op0 carry) op1 y."""
    for i, pair in enumerate(((x, None), (None, y))):
        if carry is None:
            return None
        a, b = (one or carry for one in pair)
        op, reverse = operation.attributes[f"op{i}"], operation.attributes[f"reverse{i}"]
        carry = operator(op, *((b, a) if swaps(op, reverse) else (a, b)))
    return carry


def _column(tile: Bounded, i: int) -> Bounded:
    return Bounded(tile.value[:, i : i + 1], tile.error[:, i : i + 1])


@bounded("bn_stats")
def statistics(operation: Operation) -> Errors:
    data = operation.get("data")
    parts = [Bounded(data.value[:, i::2], data.error[:, i::2]) for i in (0, 1)]
    return {"dst": np.concatenate([_moments(part) for part in parts], axis=1)}


def _moments(part: Bounded) -> Doubles:
    """Return the bounds of count, mean, and variance times count: (partitions, 3)."""
    count = max(part.value.shape[1], 1)
    value, error = total(part)
    mean = rounded(Bounded(value[:, None] / count, error[:, None] / count))
    off = rounded(Bounded(part.value - mean.value, part.error + mean.error))
    spread = total(rounded(Bounded(off.value**2, (2 * np.abs(off.value) + off.error) * off.error)))
    nothing = np.zeros(len(value))
    return np.stack([nothing, mean.error[:, 0], spread.error], axis=1)


@bounded("bn_aggr")
def aggregated(operation: Operation) -> Errors | None:
    data = operation.get("data")
    count, mean, spread = (Bounded(data.value[:, i::3], data.error[:, i::3]) for i in range(3))
    if not count.exact:
        return None
    whole = np.maximum(count.value.sum(axis=1), 1)
    value, error = total(rounded(Bounded(count.value * mean.value, count.value * mean.error)))
    centre = rounded(Bounded(value / whole, error / whole))
    apart = mean.value - centre.value[:, None]
    off = rounded(Bounded(apart, mean.error + centre.error[:, None]))
    between = rounded(
        Bounded(
            count.value * off.value**2, count.value * (2 * np.abs(apart) + off.error) * off.error
        )
    )
    spread_total = rounded(Bounded(spread.value + between.value, spread.error + between.error))
    value, error = total(spread_total)
    variance = rounded(Bounded(value / whole, error / whole))
    return {"dst": np.stack([centre.error, variance.error], axis=1)}


def _named(name: str, bounds: Bounded | None) -> Errors | None:
    return {name: bounds.error} if bounds is not None else None


def _number(value: float) -> Bounded:
    return Bounded(np.array(value), np.zeros(()))
