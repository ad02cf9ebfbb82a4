"""Further functions of Beta 1's `nki.language`.

Reductions, normalisation, random numbers, and communication between instances of a grid.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from nkic.base.device import KernelError
from nkic.language.beta1.emit import emit, hide, is_hidden, new, result, written_part
from nkic.language.beta1.extents import Extent, cut, extent_of, part_inside, predicate, startable
from nkic.language.beta1.functions import binary, unary
from nkic.language.beta1.isa import (
    dma_copy,
    nc_matmul,
    nc_transpose,
    reduced_axes,
    tensor_reduce,
    tensor_scalar,
)
from nkic.language.beta1.isa import dropout as nisa_dropout
from nkic.language.beta1.moving import (
    IDENTITY,
    check_box,
    copy,
    fill_hidden,
    kind,
    static_cast,
    stdlib,
    tile,
)
from nkic.language.beta1.operators import operator_name
from nkic.language.beta1.tiles import Tile
from nkic.language.dtypes_api import as_dtype
from nkic.language.enums import OPERATORS
from nkic.language.hosted import plain, surface, whole_number, whole_numbers
from nkic.language.provide import num_programs
from nkic.language.trace import active
from nkic.language.views import volume
from nkic.machine import dtypes
from nkic.machine.dtypes import DType
from nkic.machine.operators import ALU
from nkic.machine.targets import Buffer

# ---- reductions ----------------------------------------------------------------------------------


def _folded(op: str, x: Any, axis: Any, dtype: Any, mask: Any, keepdims: bool) -> Tile:
    return tensor_reduce(OPERATORS[op], x, axis, mask=mask, dtype=dtype, keepdims=keepdims)


def _reduction(op: str) -> Callable[..., Tile]:
    def call(
        x: Any, axis: Any, *, dtype: Any = None, mask: Any = None, keepdims: bool = False
    ) -> Tile:
        return _folded(op, x, axis, dtype, mask, keepdims)

    return call


def all(x: Any, axis: Any, *, dtype: Any = None, mask: Any = None) -> Tile:
    """Return 1 where no element is 0, else 0."""
    return _folded("logical_and", x, axis, kind(dtype, dtypes.UINT8), mask, False)


def mean(x: Any, axis: Any, *, dtype: Any = None, mask: Any = None, keepdims: bool = False) -> Tile:
    """Return the mean, computed in float32."""
    source = tile(x, "x")
    total = _folded("add", source, axis, dtypes.FLOAT32, mask, keepdims)
    region = extent_of(source, mask)
    result_type = kind(dtype, source.dtype)
    if region.remaining is not None:
        return _mean_of_rows(total, source, region, axis, keepdims, result_type)
    sizes = source.shape if region.box is None else region.box.sizes
    count = volume(sizes[reduced] for reduced in reduced_axes(axis, source))
    return _scaled(total, 1.0 / count, result_type)


def _mean_of_rows(
    total: Tile, source: Tile, region: Extent, axis: Any, keepdims: bool, dtype: DType
) -> Tile:
    """Divide sums by the number of unmasked elements in each row, or by 1 if there are none."""
    assert region.remaining is not None
    chosen = Tile(cut(predicate(region.remaining, source.shape)._access, region))
    counted = tensor_reduce(OPERATORS["add"], chosen, axis, dtype=dtypes.FLOAT32, keepdims=keepdims)
    scales = unary("reciprocal", binary("maximum", counted, 1.0))
    return _scaled(total, scales, dtype)


def _scaled(output: Tile, factor: Any, dtype: DType) -> Tile:
    """`output * factor`, for the written part of a result."""
    updated = new(output.shape, dtype)
    updated._axes = output._axes
    box, remaining, _ = written_part(output)
    region = Extent(box)
    if is_hidden(output):
        hide(updated)
        return updated
    part = part_inside(output, region)
    times = OPERATORS["multiply"]
    written: dict[str, Any] = {"part": box, "remaining": remaining}
    if isinstance(factor, Tile):
        other = factor.reshape(part.shape)
        return result("tensor_tensor", updated, **written, data1=part, data2=other, op=times)
    return result("tensor_scalar", updated, **written, data=part, op0=times, operand0=factor)


def var(x: Any, axis: Any, *, dtype: Any = None, mask: Any = None) -> Tile:
    """Return the variance, computed in float32."""
    source = tile(x, "x")
    centred = binary(
        "subtract",
        source,
        mean(source, axis, dtype=dtypes.FLOAT32, mask=mask, keepdims=True),
        dtypes.FLOAT32,
        mask,
    )
    squares = unary("square", centred, None, mask)
    return mean(squares, axis, dtype=kind(dtype, source.dtype), mask=mask)


def softmax(
    x: Any, axis: Any, *, dtype: Any = None, compute_dtype: Any = None, mask: Any = None
) -> Tile:
    """exp(x) / sum of exp(x), shifted by the greatest element."""
    source = tile(x, "x")
    largest = _folded("maximum", source, axis, dtypes.FLOAT32, mask, True)
    shifted = binary("subtract", source, largest, dtypes.FLOAT32, mask)
    powers = unary("exp", shifted, compute_dtype and as_dtype(compute_dtype), mask)
    total = _folded("add", powers, axis, dtypes.FLOAT32, mask, True)
    inverse = unary("reciprocal", total)
    normalised: Tile = binary("multiply", powers, inverse, kind(dtype, source.dtype), mask)
    return normalised


def rms_norm(
    x: Any,
    w: Any,
    axis: Any,
    n: Any,
    epsilon: float = 1e-6,
    *,
    dtype: Any = None,
    compute_dtype: Any = None,
    mask: Any = None,
) -> Tile:
    """x / sqrt(sum of x² / n + epsilon) times w."""
    source = tile(x, "x")
    inner = kind(compute_dtype, dtypes.FLOAT32)
    squares = unary("square", source, inner, mask)
    total = _folded("add", squares, axis, dtypes.FLOAT32, mask, True)
    scaled = tensor_scalar(
        total, OPERATORS["multiply"], 1.0 / plain(n), op1=OPERATORS["add"], operand1=epsilon
    )
    scaled = tensor_scalar(scaled, OPERATORS["rsqrt"], 0.0)
    normal = binary("multiply", source, scaled, inner, mask)
    normalised: Tile = binary("multiply", normal, w, kind(dtype, source.dtype), mask)
    return normalised


REDUCTIONS = {
    "sum": _reduction("add"),
    "prod": _reduction("multiply"),
    "max": _reduction("maximum"),
    "min": _reduction("minimum"),
    "all": all,
}
FUNCTIONS = (
    *("mean", "var", "softmax", "rms_norm", "dropout", "rand", "random_seed", "all_reduce"),
    *("gather_flattened", "atomic_rmw", "transpose", "matmul"),
)

# ---- matrices ----


def transpose(x: Any, *, dtype: Any = None, mask: Any = None) -> Tile:
    """Return a new tile with partitions and columns exchanged."""
    output = nc_transpose(x, mask=mask)
    return output if dtype is None else static_cast(output, dtype)


def matmul(x: Any, y: Any, *, transpose_x: bool = False, mask: Any = None) -> Tile:
    """Return x @ y, or x.T @ y, as a new float32 tile in PSUM.

    A mask in the index of a side that is not transposed hides a part of it, as in nc_matmul.
    """
    left = x if transpose_x and isinstance(x, Tile) else tile(x, "x")
    right = y if isinstance(y, Tile) else tile(y, "y")
    _check_terms(left, right, transpose_x)
    return nc_matmul(left if transpose_x else nc_transpose(left), right, mask=mask)


def _check_terms(left: Tile, right: Tile, transposed: bool) -> None:
    """Check that both sides have the same number of terms; the row checks higher ranks."""
    if len(left.shape) != 2 or len(right.shape) != 2:
        return
    rows, columns = left.shape
    terms, what = (rows, "rows") if transposed else (columns, "columns")
    if terms != right.shape[0]:
        raise KernelError(
            "operand-shape",
            f"nl.matmul: x has {terms} {what} {list(left.shape)}, and y {right.shape[0]} rows "
            f"{list(right.shape)}; they must be equal",
            help="transpose_x=True takes x as it is in x.T @ y"
            if not transposed and rows == right.shape[0]
            else f"slice x and y to the same number of {what} and rows",
        )


# ---- random numbers ------------------------------------------------------------------------------


def dropout(x: Any, rate: Any, *, dtype: Any = None, mask: Any = None) -> Tile:
    """Return x with elements replaced by 0 at random."""
    output = nisa_dropout(x, rate, mask=mask)
    return output if dtype is None else copy(output, dtype=dtype)


def rand(shape: Any, dtype: Any = None) -> Tile:
    """Return a tile of random numbers, uniform between 0 and 1."""
    sizes = whole_numbers(shape, "the shape")
    output: Tile = stdlib("rand", sizes, kind(dtype, dtypes.FLOAT32))
    return output


def random_seed(seed: Any, *, mask: Any = None) -> None:
    """Seed all random number generators. A `mask` is refused."""
    if mask is not None:
        raise KernelError(
            "argument-kind",
            "nl.random_seed: a mask cannot leave generators as they are",
            help="leave `mask` out: every partition has a generator of its own",
            argument="mask",
        )
    stdlib("random_seed", tile(seed, "seed"))


# ---- gathers and updates -------------------------------------------------------------------------


def gather_flattened(data: Any, indices: Any, *, mask: Any = None, dtype: Any = None) -> Tile:
    """Gather in each partition the elements of `data` at the flat positions `indices`."""
    output: Tile = stdlib("gather_flattened", tile(data), tile(indices), dtype=dtype)
    return output if mask is None else copy(output, mask=mask)


def atomic_rmw(dst: Any, value: Any, op: Any, *, mask: Any = None) -> None:
    """dst = dst op value in HBM."""
    dma_copy(dst=dst, src=value, mask=mask, dst_rmw_op=op)


def all_reduce(
    x: Any,
    op: Any,
    program_axes: Any,
    *,
    dtype: Any = None,
    mask: Any = None,
    parallel_reduce: bool = True,
    asynchronous: bool = False,
) -> Tile:
    """Reduce x over the instances of the grid along some axes; each of them gets the result.

    That all get it is implied: the kernels that call it use the result in all. The last two options
    do not affect results: an instance waits when it reads data that the other sends.
    """
    name = operator_name(op)
    count = instances(_axes_of_grid(program_axes))
    if count == 1:
        return copy(x, dtype=dtype, mask=mask)
    _check_fold(name, count)
    source = tile(x, "x")
    region = startable(extent_of(source, mask), source.shape)
    if region.remaining is not None and name not in IDENTITY:
        check_box(region, f"nl.all_reduce with {name}")
    if region.remaining is not None:
        source = fill_hidden(source, name, mask)
    elif source._access.tensor.buffer is Buffer.PSUM:
        source = copy(source, mask=mask)
    return _with_other_core(name, source, kind(dtype, source.dtype), region, mask)


def _with_other_core(name: str, local: Tile, dtype: DType, region: Extent, mask: Any) -> Tile:
    """Reduce `local` of both cores, in the same order on both."""
    other = new(local.shape, local.dtype)
    other._axes = local._axes
    if not region.empty:
        sent, rank = part_inside(local, region), 1 - active().ids[0]
        received = part_inside(other, region)
        emit("sendrecv", received, src=sent, send_to_rank=rank, recv_from_rank=rank, pipe_id=0)
    pair = (other, local) if active().ids[0] else (local, other)
    reduced: Tile = binary(name, *pair, dtype, mask)
    return reduced


def _axes_of_grid(written: Any) -> list[Any]:
    """Return axes of the grid.

    Kernels also pass an index along an axis, `[nl.program_id(0)]`, which identifies the axis only
    if the grid has just one.
    """
    axes = [plain(axis) for axis in (written if isinstance(written, list | tuple) else [written])]
    ids = active().ids
    return [0 if len(ids) == 1 and axis == ids[0] else axis for axis in axes]


def _check_fold(name: str, count: int) -> None:
    """Check that the instances run on both cores: those of one core run one after another."""
    trace = active()
    if len(trace.grid) != 1 or count != trace.lnc:
        raise KernelError(
            "not-in-nki",
            f"nl.all_reduce({name}) over {count} instances of the grid {trace.grid}: there must "
            "be two, one on each core",
            help="launch the kernel with `--lnc 2`, or as kernel[nl.nc(2)]; instances on one core "
            "run one after another: keep their partial results in shared HBM, and reduce them in "
            "another kernel",
        )
    if name == "subtract" or name not in ALU or not ALU[name].reducible:
        raise KernelError(
            "operator-not-supported",
            f"nl.all_reduce: the result of `{name}` depends on the order of the instances",
            help="pass np.add, np.multiply, np.maximum or np.minimum",
            argument="op",
        )


# ---- properties of dtypes and grids --------------------------------------------------------------


def sizeinbytes(dtype: Any) -> int:
    """Return the bytes of an element of a dtype."""
    return as_dtype(dtype).size


@surface("min max eps dtype")
class FloatLimits(NamedTuple):
    """`nl.finfo(dtype)`."""

    min: float
    max: float
    eps: float
    dtype: DType


def finfo(dtype: Any) -> FloatLimits:
    """Return the limits of a float dtype."""
    kind = as_dtype(dtype)
    return FloatLimits(kind.lowest, kind.highest, 2.0**-kind.mantissa_bits, kind)


def instances(axes: Any = None) -> int:
    """`nl.num_programs`: the number of instances of the grid along axes, or in total."""
    return num_programs(tuple(axes) if isinstance(axes, list) else axes)


def nc(count: Any) -> int:
    """`nl.nc(n)`: a dimension of a grid that is distributed over cores."""
    return whole_number(count, "the number of cores")


def spmd_dim(*dims: Any) -> int:
    """`nl.spmd_dim(a, b)`: a dimension of a grid composed of several."""
    return volume(whole_numbers(dims, "the grid"))
