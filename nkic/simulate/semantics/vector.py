"""Semantics of the vector and scalar engines' rows (some also run on gpsimd).

Arithmetic is float32, with one rounding to dst's type; bitvec operators work on bits; gpsimd adds
and multiplies 32-bit integers exactly. Sources: `nki.isa`, the instruction's own page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine.codecs import decode
from nkic.machine.operators import ALU, SummationOrder
from nkic.machine.targets import PARTITIONS, Engine
from nkic.simulate.lost import is_rounded
from nkic.simulate.numerics.elementwise import ARITHMETIC, BITVEC, FUNCTIONS, INTEGERS, select
from nkic.simulate.numerics.elementwise import max8 as largest
from nkic.simulate.numerics.reduction import Indices, cumulative, match8, reduce_bits
from nkic.simulate.numerics.reduction import bn_aggr as aggregated
from nkic.simulate.numerics.reduction import bn_stats as statistics
from nkic.simulate.numerics.reduction import tensor_tensor_scan as scan
from nkic.simulate.plans import Decoded, Step, semantics
from nkic.simulate.semantics.binding import (
    NO_PARAMETER,
    Floats,
    Reduction,
    Stage,
    all_int32,
    binary,
    in_range,
    is_bitvec,
    result,
    shape_of,
    stages_of,
    stale_registers,
    swaps,
    vector,
    words,
)
from nkic.simulate.semantics.dma import as_held, choosing, constant, copy_step, fill_step
from nkic.simulate.tile import Load, Sizes, Tile

# ---- Operators on the bits of integers, and exact arithmetic of 32-bit integers -----------------
# Operands are read as unsigned integers as wide as the data (bitvec), or with the sign of their
# own type (exact). Sources: `nki.isa.tensor_tensor`, `nki.isa.tensor_scalar` (data types).

Array = NDArray[Any]


def bitvec_step(decoded: Decoded, data: str, stages: list[Stage]) -> Step:
    """Return the step dst = data after each stage, truncated or zero-extended to dst (assumed)."""
    tile, dst = decoded.tile(data), decoded.tile("dst")
    kind = np.dtype(f"u{tile.dtype.size}")
    sizes = shape_of(decoded, "dst", data, *_full(decoded, tile, stages)) or dst.sizes
    load = _unsigned(tile, sizes, kind)
    into = words(dst, sizes)
    functions = [(BITVEC[s.op], _bits(decoded, s.operand, sizes, kind), s) for s in stages]
    bits = decoded.scratch.array((dst.partitions, *sizes), kind)

    def step() -> None:
        values = load()
        for function, operand, stage in functions:
            _apply(function, values, operand(), bits, swaps(stage.op, stage.reverse))
            values = bits
        np.copyto(into(), values, casting="unsafe")

    return step


def integer_step(decoded: Decoded, data: str, stages: list[Stage]) -> Step:
    """Return the step dst = data after each stage, in integers that wrap around at 32 bits.

    They are signed if dst is. int64 holds all operands, and all results except for products of
    large unsigned numbers, whose low 32 bits are correct.
    """
    tile, dst = decoded.tile(data), decoded.tile("dst")
    sizes = shape_of(decoded, "dst", data, *_full(decoded, tile, stages)) or dst.sizes
    load, into = tile.seen_as(sizes), dst.seen_as(sizes)
    functions = [(INTEGERS[s.op], _signed(decoded, s.operand, sizes), s) for s in stages]
    shape = (dst.partitions, *sizes)
    wide = decoded.scratch.array(shape, np.int64)
    wrapped = decoded.scratch.array(shape, dst.form.storage)

    def step() -> None:
        values: Array = load().astype(np.int64)
        for function, operand, stage in functions:
            _apply(function, values, operand(), wide, stage.reverse)
            np.copyto(wrapped, wide, casting="unsafe")
            np.copyto(values, wrapped)
        np.copyto(into(), wrapped)

    return step


def reduce_bits_step(op: str, data: Tile, dst: Tile, keep: int) -> Step:
    """Return a step that reduces all dimensions but the first `keep` by a bitvec operator."""
    bits, into = words(data, data.sizes), words(dst, dst.sizes)
    total = np.empty(data.shape[:keep], np.dtype(f"u{data.dtype.size}"))

    def step() -> None:
        reduce_bits(op, bits(), total, keep)
        np.copyto(into(), total.reshape(dst.shape), casting="unsafe")

    return step


def _apply(
    function: Callable[[Array, Array, Array], Any], a: Array, b: Array, out: Array, swapped: bool
) -> None:
    if swapped:
        function(b, a, out)
    else:
        function(a, b, out)


def _full(decoded: Decoded, data: Tile, stages: list[Stage]) -> list[str]:
    """Return the operands that are not vectors, but as large as the data."""
    names = [stage.operand for stage in stages]
    return [n for n in names if (t := decoded.maybe(n)) is not None and t.free == data.free]


def _unsigned(tile: Tile, sizes: Sizes, kind: np.dtype[Any]) -> Callable[[], Array]:
    """Return a function that loads the tile's bits in words of another width."""
    load = tile.seen_as(sizes if tile.free > 1 else (1,) * len(sizes))
    unsigned = np.dtype(f"u{tile.dtype.size}")
    return lambda: load().view(unsigned).astype(kind, copy=False)


def _bits(decoded: Decoded, name: str, sizes: Sizes, kind: np.dtype[Any]) -> Callable[[], Array]:
    """Return a function that loads an operand, a tile or a number, as unsigned words."""
    tile = decoded.maybe(name)
    if tile is not None:
        return _unsigned(tile, sizes, kind)
    mask = (1 << 8 * kind.itemsize) - 1
    number = np.array(int(decoded.number(name)) & mask, kind)
    return lambda: number


def _signed(decoded: Decoded, name: str, sizes: Sizes) -> Callable[[], Array]:
    tile = decoded.maybe(name)
    if tile is not None:
        load = tile.seen_as(sizes if tile.free > 1 else (1,) * len(sizes))
        return lambda: load().astype(np.int64)
    number = np.array(_wrapped(int(decoded.number(name))), np.int64)
    return lambda: number


def _wrapped(number: int) -> int:
    """Return the integer that 32 bits hold; those from 2^31 on are taken to be unsigned."""
    return number if -(1 << 31) <= number < 1 << 32 else number & 0xFFFFFFFF


# ------------------------------------------------------------------------------------------------
# The accumulators of an engine: the effect of `reduce_cmd` on one float32 per lane.
# Lanes are indexed by the partition of the data. The results are accumulated before they are
# rounded to dst's type (assumed; docs/fidelity.md). Those of the vector engine are NaN if no
# instruction has set them, or one with `idle` may have disturbed them (assumed); those of the
# scalar engine, its reduce registers, begin at 0.

MINUS_ONE = np.float32(-1)
Compute = Callable[[], Floats]


class Accumulator:
    """The accumulators as one instruction uses them: `start`, `add`, and finally `read_out`."""

    def __init__(
        self, decoded: Decoded, data: str, op: str, initial: str = "", command: str = ""
    ) -> None:
        """`initial` names the operand that load_reduce loads; `command` is that of the attributes
        by default.
        """
        tile, state = decoded.tile(data), decoded.state
        lanes = slice(tile.first, tile.first + tile.partitions)
        is_scalar = decoded.engine is Engine.SCALAR
        unset = 0.0 if is_scalar else np.nan
        every = state.array("accumulator", lambda: np.full(PARTITIONS, unset, np.float32))
        fresh = state.array("accumulator.fresh", lambda: np.zeros(PARTITIONS, np.bool_))
        self.lanes, self._fresh = every[lanes], fresh[lanes]  # fresh: reset or loaded before
        self.op, self.command = op, command or decoded.attributes["reduce_cmd"]
        self._sets = self.command.startswith(("reset", "load"))
        self._adds = self.command.endswith("reduce")
        self._disturbs = self.command == "idle" and not is_scalar
        loads = self.command == "load_reduce"
        self._initial = vector(decoded, initial, None) if loads else None
        self._column = self.lanes[:, None]
        self._reduce = Reduction(decoded, op)
        self._identity = np.float32(ALU[op].identity or 0)
        self._total = decoded.scratch.floats(self.lanes.shape)
        self._negate = bool(decoded.attributes.get("reduce_res_negate"))
        taker = decoded.maybe("reduce_res") if "reduce_res" in decoded.operands else None
        self._sink = taker.sink() if taker is not None else None
        self._uses = "adds to" if self.command == "reduce" else "reads" if taker is not None else ""
        self._row, self._remarks = decoded.row.name, state.remarks

    def start(self) -> Floats:
        """Apply the command before the first result; return the accumulators, (partitions, 1)."""
        if self._sets:
            self._fresh.fill(True)
            self._column[...] = self._identity if self._initial is None else self._initial()
        elif self._uses and not self._fresh.all():
            self._remarks.add(stale_registers(self._row, self._uses, self.command))
        if self._disturbs:
            self._column[...] = np.nan
            self._fresh.fill(False)
        return self._column

    def add(self, values: Floats) -> None:
        """Reduce the results of each partition, and combine them with its accumulator."""
        self.start()
        if self._adds:
            self._reduce(values, self._total)
            ARITHMETIC[self.op](self.lanes, self._total, self.lanes)

    def read_out(self) -> None:
        if self._sink is None:
            return
        out = self._sink.out()
        np.copyto(out, self._column)
        if self._negate:
            # Not np.negative: that of NumPy 2.4 is wrong if both strides are 16 bytes.
            np.multiply(out, MINUS_ONE, out=out)
        self._sink.store()

    def step(self, compute: Compute, store: Step) -> Step:
        """Return the step of an instruction whose results are also accumulated.

        It stores them first, so that an overlapping `reduce_res` keeps the sum.
        """

        def step() -> None:
            self.add(compute())
            store()
            self.read_out()

        return step


# --------------------------------------------------------------------------------------------------


@semantics("tensor_copy")
def tensor_copy(decoded: Decoded) -> Step:
    """The bits are copied on every engine; only vector and gpsimd are documented to (assumed)."""
    dst, src = decoded.tile("dst"), decoded.tile("src")
    copy = copy_step(dst, src)
    if decoded.engine is not Engine.SCALAR or dst.dtype is not src.dtype:
        return copy
    if src.notes is None or not is_rounded(src.dtype):
        return copy
    notes = src.notes

    def step() -> None:
        raw = src.bits()
        notes.read(raw, decode(raw, src.dtype))
        copy()

    return step


@semantics("memset")
def memset(decoded: Decoded) -> Step:
    return fill_step(decoded.tile("dst"), decoded.attributes["value"])


@semantics("tensor_tensor")
def tensor_tensor(decoded: Decoded) -> Step:
    return _staged(decoded, decoded.engine is Engine.GPSIMD and all_int32(decoded))


@semantics("tensor_scalar")
def tensor_scalar(decoded: Decoded) -> Step:
    """32-bit integers throughout, some of them in a vector: exact (assumed; docs/fidelity.md)."""
    operands = [decoded.operands[operand] for _, operand, _ in decoded.row.stages]
    exact = (
        any(isinstance(value, Tile) for value in operands)
        and all(not isinstance(value, float) or value.is_integer() for value in operands)
        and all_int32(decoded)
    )
    return _staged(decoded, exact)


@semantics("scalar_tensor_tensor")
def scalar_tensor_tensor(decoded: Decoded) -> Step:
    return _staged(decoded, False)


def _staged(decoded: Decoded, exact: bool) -> Step:
    """Return the step dst = the row's first operand after each stage: on bits if the operators do,
    in integers of 32 bits if `exact` and they can, else in float32.
    """
    name, stages = decoded.row.first, stages_of(decoded.row, decoded.attributes)
    if is_bitvec(stages[0].op):
        return bitvec_step(decoded, name, stages)
    if exact and all(ALU[stage.op].integers for stage in stages):
        return integer_step(decoded, name, stages)
    tiles = [stage.operand for stage in stages if not _is_vector(decoded, stage.operand)]
    sizes = shape_of(decoded, "dst", name, *tiles)
    data, (out, store, _) = decoded.tile(name).load(sizes), result(decoded, sizes)
    loads = [
        decoded.tile(s.operand).load(sizes)
        if s.operand in tiles
        else vector(decoded, s.operand, sizes)
        for s in stages
    ]
    functions = [binary(stage.op, stage.reverse) for stage in stages]
    first, operand0 = functions[0], loads[0]
    if len(stages) == 1:

        def one() -> None:
            first(data(), operand0(), out())
            store()

        return one
    second, operand1 = functions[1], loads[1]
    between = decoded.scratch.floats(decoded.tile("dst").shape_in(sizes))

    def two() -> None:
        first(data(), operand0(), between)
        second(between, operand1(), out())
        store()

    return two


def _is_vector(decoded: Decoded, name: str) -> bool:
    """Whether an operand is a number, or has one element per partition."""
    row = decoded.row
    return row.operands[row.operand_index[name]].column


# Sums of 4,096 rows of 128 float32 were bit-identical to those of a loop in float32, for four seeds
# (a trn1.2xlarge; GitHub, LaelaZorana/kernel-grader-mi300x-rocm-trainium-nki, kernel-nki).
REDUCED: Mapping[str, SummationOrder] = {"trn1": "float32"}


@semantics("tensor_reduce")
def tensor_reduce(decoded: Decoded) -> Step:
    """`keepdims` only gives dst's shape dimensions of size 1, which have no effect here."""
    op, data, dst = decoded.attributes["op"], decoded.tile("data"), decoded.tile("dst")
    keep = 1 + len(data.sizes) - len(decoded.attributes["axis"])
    if is_bitvec(op):
        return reduce_bits_step(op, data, dst, keep)
    load, (out, store, _) = data.load(data.sizes), dst.sink()
    total = decoded.scratch.floats((data.partitions, *data.sizes)[:keep])
    flat = total.reshape(dst.partitions, dst.free)
    sign = np.float32(-1 if decoded.attributes["negate"] else 1)
    reduce = Reduction(decoded, op, REDUCED)

    def step() -> None:
        reduce(load(), total, keep)
        np.multiply(flat, sign, out=out())
        store()

    return step


@semantics("tensor_tensor_scan")
def tensor_tensor_scan(decoded: Decoded) -> Step:
    op0, op1, reverse0, reverse1 = decoded.attributes.values()
    data0, data1 = decoded.tile("data0").load(), decoded.tile("data1").load()
    initial, (out, store, _) = vector(decoded, "initial", None), decoded.tile("dst").sink()

    def step() -> None:
        scan(data0(), data1(), initial(), out(), op0, op1, reverse0, reverse1)
        store()

    return step


@semantics("bn_stats")
def bn_stats(decoded: Decoded) -> Step:
    order = decoded.order()
    return _statistics(decoded, "data", lambda values, out: statistics(values, out, order))


@semantics("bn_aggr")
def bn_aggr(decoded: Decoded) -> Step:
    order = decoded.order()
    return _statistics(decoded, "data", lambda values, out: aggregated(values, out, order))


@semantics("max8")
def max8(decoded: Decoded) -> Step:
    return _statistics(decoded, "src", largest)


def _statistics(decoded: Decoded, name: str, function: Callable[[Floats, Floats], Any]) -> Step:
    """Return a step for per-partition statistics, which are written after all data are read."""
    load, (out, store, _) = decoded.tile(name).load(), decoded.tile("dst").sink(buffered=True)

    def step() -> None:
        function(load(), out())
        store()

    return step


@semantics("reciprocal")
def reciprocal(decoded: Decoded) -> Step:
    sizes = shape_of(decoded, "dst", "data")
    data, (out, store, _) = decoded.tile("data").load(sizes), result(decoded, sizes)

    def step() -> None:
        np.reciprocal(data(), out=out())
        store()

    return step


@semantics("tensor_copy_predicated")
def tensor_copy_predicated(decoded: Decoded) -> Step:
    dst, src = decoded.tile("dst"), decoded.maybe("src")
    sizes = shape_of(decoded, "dst", "src", "predicate") or dst.sizes
    flags, into = decoded.tile("predicate").seen_as(sizes), dst.seen_as(sizes)
    compare = np.equal if decoded.attributes["reverse_pred"] else np.not_equal
    number = constant(dst, decoded.number("src"))
    load = as_held(src, dst, sizes) if src else lambda: number
    shape = (dst.partitions, *sizes)
    mask, choose = decoded.scratch.array(shape, np.bool_), choosing(dst.form.unit)
    decoded.selected.update(src=lambda: mask, dst=lambda: ~mask)

    def step() -> None:
        compare(flags(), 0, out=mask)
        window = into()
        choose(mask, load(), window, window)

    return step


# ------------------------------------------------------------------------------------------------
# Semantics of the vector engine's rows with a fused reduction. Arithmetic is float32.


@semantics("tensor_scalar_reduce")
def tensor_scalar_reduce(decoded: Decoded) -> Step:
    op0, reduce_op = decoded.attributes["op0"], decoded.attributes["reduce_op"]
    sizes = shape_of(decoded, "dst", "data")
    data, (out, store, _) = decoded.tile("data").load(sizes), result(decoded, sizes)
    operand, function = vector(decoded, "operand0", sizes), ARITHMETIC[op0]

    def compute() -> Floats:
        result = out()
        function(data(), operand(), result)
        return result

    return Accumulator(decoded, "data", reduce_op, "reduce_init").step(compute, store)


@semantics("tensor_scalar_cumulative")
def tensor_scalar_cumulative(decoded: Decoded) -> Step:
    op0, op1 = decoded.attributes["op0"], decoded.attributes["op1"]
    src, (out, store, _) = decoded.tile("src"), decoded.tile("dst").sink()
    load, operand = src.load(), vector(decoded, "imm0", None)
    accumulator = Accumulator(decoded, "src", op1, "imm1")
    between, function = decoded.scratch.floats(src.shape_in(None)), ARITHMETIC[op0]

    def step() -> None:
        function(load(), operand(), between)
        column = accumulator.start()
        result = out()
        cumulative(between, column, result, op1)
        np.copyto(column, result[:, -1:])
        store()

    return step


@semantics("select_reduce")
def select_reduce(decoded: Decoded) -> Step:
    """`reduce_op` is maximum; the rules reject others."""
    sizes = shape_of(decoded, "dst", "predicate", "on_true")
    chosen, (out, store, _) = decoded.tile("on_true").load(sizes), result(decoded, sizes)
    shape = decoded.tile("dst").shape_in(sizes)
    flags = decoded.tile("predicate").seen_as(shape[1:])
    otherwise = vector(decoded, "on_false", sizes)
    compare = np.equal if decoded.attributes["reverse_pred"] else np.not_equal
    mask = decoded.scratch.array(shape, np.bool_)
    decoded.selected["on_true"] = lambda: mask

    def compute() -> Floats:
        compare(flags(), 0, out=mask)
        result = out()
        select(mask, chosen(), otherwise(), result)
        return result

    return Accumulator(decoded, "on_true", "maximum").step(compute, store)


@semantics("range_select")
def range_select(decoded: Decoded) -> Step:
    """`reduce_op` is maximum; the rules reject others."""
    tile, values = decoded.tile("on_true_tile"), decoded.attributes
    sizes = shape_of(decoded, "dst", "on_true_tile")
    chosen, (out, store, _) = tile.load(sizes), result(decoded, sizes)
    index = (values["range_start"] + np.arange(tile.free)).astype(np.float32)
    shape = decoded.tile("dst").shape_in(sizes)
    index = index.reshape(1, *shape[1:])
    bounds = [vector(decoded, name, sizes) for name in ("bound0", "bound1")]
    compare0, compare1 = ARITHMETIC[values["comp_op0"]], ARITHMETIC[values["comp_op1"]]
    mask, upper_mask = (decoded.scratch.array(shape, np.bool_) for _ in range(2))
    fill = np.array(values["on_false_value"], np.float32)
    decoded.selected["on_true_tile"] = lambda: mask

    def compute() -> Floats:
        compare0(index, bounds[0](), mask)
        compare1(index, bounds[1](), upper_mask)
        np.logical_and(mask, upper_mask, out=mask)
        result = out()
        select(mask, chosen(), fill, result)
        return result

    return Accumulator(decoded, "on_true_tile", "maximum").step(compute, store)


# ---- Semantics of the vector engine's rows that search for values or move partitions ------------
# Values are compared in float32 (assumed; docs/fidelity.md).

UPWARDS, DOWNWARDS = range(8), range(7, -1, -1)
KEEP = 255
QUADRANT = 32


@semantics("nc_find_index8")
def nc_find_index8(decoded: Decoded) -> Step:
    tile, dst = decoded.tile("data"), decoded.tile("dst")
    data, values = tile.load(), decoded.tile("vals").load()
    taken = decoded.scratch.array((tile.partitions, tile.free), np.bool_)
    return lambda: _put(dst, match8(data(), values(), UPWARDS, taken))


@semantics("nc_match_replace8")
def nc_match_replace8(decoded: Decoded) -> Step:
    tile, indices = decoded.tile("data"), decoded.maybe("dst_idx")
    data, values = tile.load(), decoded.tile("vals").load()
    out, store, _ = result(decoded)
    taken = decoded.scratch.array((tile.partitions, tile.free), np.bool_)
    replacement = np.float32(decoded.attributes["imm"])

    def step() -> None:
        positions = match8(data(), values(), DOWNWARDS, taken)
        into = out()
        np.copyto(into, data())
        np.copyto(into, replacement, where=taken)
        store()
        if indices is not None:
            _put(indices, positions)

    return step


def _put(dst: Tile, positions: Indices) -> None:
    """Store indices in an unsigned type; -1 has all bits set."""
    np.copyto(dst.window, positions.reshape(dst.shape), casting="unsafe")


@semantics("nc_stream_shuffle")
def nc_stream_shuffle(decoded: Decoded) -> Step:
    """Bits are moved. dst may be src: all is read before anything is written."""
    dst, src, mask = decoded.tile("dst"), decoded.tile("src"), decoded.attributes["shuffle_mask"]
    into = [p for p in range(dst.partitions) if mask[p % QUADRANT] != KEEP]
    taken = [p - p % QUADRANT + mask[p % QUADRANT] for p in into]
    load = as_held(src, dst, dst.sizes)

    def step() -> None:
        dst.window[into] = load()[taken]

    return step


# ---- Semantics of the vector and scalar engines' rows from NeuronCore-v4 on ---------------------


@semantics("exponential")
def exponential(decoded: Decoded) -> Step:
    """The difference is rounded to float32, as is its exponential."""
    sizes = shape_of(decoded, "dst", "src")
    src, (out, store, _) = decoded.tile("src").load(sizes), result(decoded, sizes)
    greatest, exp = vector(decoded, "max_value", sizes), FUNCTIONS["exp"]
    between = decoded.scratch.floats(decoded.tile("dst").shape_in(sizes))

    def compute() -> Floats:
        np.subtract(src(), greatest(), out=between)
        result = out()
        exp(between, result, NO_PARAMETER)
        return result

    return Accumulator(decoded, "src", "add", "reduce_init").step(compute, store)


@semantics("activate2")
def activate2(decoded: Decoded) -> Step:
    sizes = shape_of(decoded, "dst", "data")
    out, store, _ = result(decoded, sizes)
    inner, parameter = (
        _inner(decoded, sizes, decoded.tile("dst").shape_in(sizes)),
        vector(decoded, "relu_param", sizes),
    )
    function = FUNCTIONS[decoded.attributes["op"]]
    watch = in_range(decoded)

    def compute() -> Floats:
        result, values = out(), inner()
        if watch is not None:
            watch(values)
        function(values, result, parameter())
        return result

    op = decoded.attributes["reduce_op"] or "add"
    return Accumulator(decoded, "data", op).step(compute, store)


def _inner(decoded: Decoded, sizes: Sizes | None, shape: tuple[int, ...]) -> Load:
    """Return a function that loads (data op0 imm0) op1 imm1, without bypassed stages."""
    data, result = decoded.tile("data").load(sizes), decoded.scratch.floats(shape)
    stages = [
        (binary(op, decoded.attributes[f"reverse{i}"]), vector(decoded, f"imm{i}", sizes))
        for i in (0, 1)
        if (op := decoded.attributes[f"op{i}"]) != "bypass"
    ]

    def load() -> Floats:
        values = data()
        for function, operand in stages:
            function(values, operand(), result)
            values = result
        return values

    return load


# ---- Semantics of the scalar engine's rows -------------------------------------------------------


@semantics("activation")
def activation(decoded: Decoded) -> Step:
    """`reduce_op` is add wherever it has an effect; the rules reject others."""
    compute, store = _activating(decoded)
    if decoded.attributes["reduce_cmd"] != "idle" or decoded.maybe("reduce_res") is not None:
        return Accumulator(decoded, "data", "add").step(compute, store)

    def step() -> None:
        compute()
        store()

    return step


@semantics("activation_reduce")
def activation_reduce(decoded: Decoded) -> Step:
    compute, store = _activating(decoded)
    return Accumulator(decoded, "data", "add", command="reset_reduce").step(compute, store)


def _activating(decoded: Decoded) -> tuple[Compute, Step]:
    """Return a function that computes op(data x scale + bias) in float32, and the store to dst."""
    sizes = shape_of(decoded, "dst", "data")
    data, (out, store, _) = decoded.tile("data").load(sizes), result(decoded, sizes)
    scale, bias = vector(decoded, "scale", sizes, 1.0), vector(decoded, "bias", sizes)
    scales, adds = decoded.operands["scale"] != 1.0, decoded.operands["bias"] is not None
    function, watch = FUNCTIONS[decoded.attributes["op"]], in_range(decoded)
    inner = decoded.scratch.floats(decoded.tile("dst").shape_in(sizes))

    def compute() -> Floats:
        values = data()
        if scales:
            values = np.multiply(values, scale(), out=inner)
        if adds:
            values = np.add(values, bias(), out=inner)
        if watch is not None:
            watch(values)
        result = out()
        function(values, result, NO_PARAMETER)
        return result

    return compute, store
