"""Error bounds: a first-order bound on each result element's distance from exact arithmetic.

Along with each value, a run keeps a bound on its distance from the value that the same program
would have without any rounding, of operators, sums or stored values. Inputs and constants count as
exact. Bounds are of first order in the unit roundoff, and hold for every order of addition in
float32. Whatever is not covered is unbounded: infinity, which propagates like any other bound.

An operator is evaluated at the corners of the box of its operands. That bounds any function that is
monotone in each operand, and is of first order for others. The operator's own rounding is added,
half a unit in the last place of float32.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nkic.artifact.records import Executable, InstructionRecord, PatternRecord
from nkic.machine.dtypes import FLOAT32, DType
from nkic.machine.operands import Register
from nkic.machine.operators import ALU
from nkic.machine.targets import Engine, Target
from nkic.simulate.beside import DST, SRC, Follower, Operands, RecordStore, Resolved, values_of
from nkic.simulate.dynamic import Dynamic
from nkic.simulate.memory import Memory
from nkic.simulate.numerics.elementwise import ARITHMETIC, FUNCTIONS
from nkic.simulate.plans import Step, registering
from nkic.simulate.semantics.binding import stages_of, swaps
from nkic.simulate.semantics.tensor import mx_numbers
from nkic.simulate.semantics.vector import KEEP, QUADRANT
from nkic.simulate.tile import Tile

Doubles = NDArray[np.float64]
UNIT = 2.0**-24  # half a unit in the last place of float32, relative
TINY = 2.0**-150  # half the least subnormal of float32
GREATEST = (2 - 2.0**-23) * 2.0**127

# Other operators do not round: they select, or return 0 or 1.
_ROUNDS = frozenset({"add", "subtract", "multiply", "power", "square", "rsqrt", "reciprocal"})
_SINGULAR_AT_ZERO = frozenset({"power", "rsqrt", "reciprocal", "log"})  # pole or domain end
_EQUALITY = frozenset({"equal", "not_equal"})
_TRUTH = frozenset({"logical_and", "logical_or", "logical_xor", "logical_not"})
_UNCOVERED = frozenset({"abs_max", "abs_min", "prelu"})  # work on float32 alone


class Bounded(NamedTuple):
    """Values, and a bound on the error of each. Any shapes that broadcast."""

    value: Doubles
    error: Doubles

    @property
    def exact(self) -> bool:
        return not self.error.any()


def exact(value: Doubles) -> Bounded:
    return Bounded(value, np.zeros(value.shape))


def rounded(result: Bounded) -> Bounded:
    size = np.abs(result.value)
    step = np.where(np.isinf(size), 0.0, UNIT * size + TINY)  # an infinity comes from an operand
    return Bounded(result.value, fitting(size, result.error + step))


def fitting(size: Doubles, error: Doubles) -> Doubles:
    """Return the bounds, infinite for numbers that overflow float32."""
    over: Doubles = np.where(np.isfinite(size) & (size > GREATEST), np.inf, error)
    return over


def operator(op: str, a: Bounded, b: Bounded) -> Bounded | None:
    """Return `a op b`, or None if the operator is not covered."""
    if op in _UNCOVERED or ALU[op].group == "bitvec":
        return None
    function = ARITHMETIC[op]
    unary = ALU[op].arity == 1
    shape = np.broadcast_shapes(a.value.shape, b.value.shape)

    def evaluate(x: Doubles, y: Doubles) -> Doubles:
        out = np.empty(shape)
        function(np.broadcast_to(x, shape), y, out)
        return out

    value = evaluate(a.value, b.value)
    error = _at_corners(evaluate, a, exact(b.value) if unary else b, value)
    if op in _SINGULAR_AT_ZERO:
        error = np.where(np.abs(a.value) <= a.error, np.inf, error)
    if op in _EQUALITY:
        error = np.maximum(error, _undecided(a.value - b.value, a.error + b.error))
    if op in _TRUTH:
        error = np.maximum(error, _undecided(a.value, a.error))
        error = np.maximum(error, 0.0 if unary else _undecided(b.value, b.error))
    result = Bounded(value, error)
    return rounded(result) if op in _ROUNDS else result


def function(name: str, x: Bounded) -> Bounded | None:
    """Return the activation function of `x`, or None if it is not covered."""
    if name in _UNCOVERED:
        return None

    def evaluate(values: Doubles, _: Doubles) -> Doubles:
        out = np.empty(values.shape)
        FUNCTIONS[name](values, out, np.zeros(()))  # type: ignore[arg-type]
        return out

    unused = exact(np.zeros(()))
    value = evaluate(x.value, unused.value)
    error = _at_corners(evaluate, x, unused, value)
    if name in _SINGULAR_AT_ZERO:
        error = np.where(np.abs(x.value) <= x.error, np.inf, error)
    result = Bounded(value, error)
    return result if name in ("copy", "abs", "relu", "sign") else rounded(result)


def _at_corners(
    evaluate: Callable[[Doubles, Doubles], Doubles], a: Bounded, b: Bounded, value: Doubles
) -> Doubles:
    """Return the greatest distance from `value` over the corners."""
    error = np.zeros(value.shape)
    for x, y in product(_corners(a), _corners(b)):
        distance = np.abs(evaluate(x, y) - value)
        # inf - inf occurs at finite operands, and is no error
        same = np.isinf(value) & np.isnan(distance) & np.isfinite(x) & np.isfinite(y)
        error = np.maximum(error, np.where(same, 0.0, distance))
    return np.where(np.isnan(error), np.inf, error)


def _corners(x: Bounded) -> tuple[Doubles, ...]:
    return (x.value,) if x.exact else (x.value - x.error, x.value + x.error)


def _undecided(distance: Doubles, error: Doubles) -> Doubles:
    """Return 1 where the errors may turn zero into nonzero or the reverse."""
    return np.asarray((np.abs(distance) <= error) & (error > 0), np.float64)


def total(terms: Bounded) -> Bounded:
    """Return the sums of the rows, in float32 and any order: n - 1 additions that each round.

    They are unbounded if some order overflows.
    """
    count, size = terms.value.shape[-1], np.abs(terms.value).sum(axis=-1)
    error = terms.error.sum(axis=-1) + max(count - 1, 0) * UNIT * size
    return Bounded(terms.value.sum(axis=-1), fitting(size, error))


def stored(values: Doubles, error: Doubles, dtype: DType) -> Doubles:
    """Return the bounds after storing as `dtype`, which adds half a unit in the last place.

    Conversion to integers is part of the program rather than rounding, and may reach the next
    integer.
    """
    if dtype.is_integer:
        whole: Doubles = error + (error > 0)
        return whole
    if dtype.name not in _UNITS:
        return error if dtype.name == "float32" else np.full(error.shape, np.inf)
    unit, tiny = _UNITS[dtype.name]
    finite = np.where(np.isfinite(values), np.abs(values), 0.0)
    bound: Doubles = error + np.maximum(unit * finite, tiny)
    return bound


# Half a unit in the last place, relative, and half the least subnormal.
_UNITS = {
    "bfloat16": (2.0**-8, 2.0**-134),
    "float16": (2.0**-11, 2.0**-25),
    "tfloat32": (2.0**-11, 2.0**-137),
    "float8_e4m3": (2.0**-4, 2.0**-10),
    "float8_e4m3fn": (2.0**-4, 2.0**-10),
    "float8_e5m2": (2.0**-3, 2.0**-17),
}


# ---- The bounds of all tensors of a program, element by element ---------------------------------


class Store(RecordStore):
    def __init__(self, executable: Executable) -> None:
        super().__init__(executable, np.float64)

    def read(self, pattern: PatternRecord) -> Doubles:
        """Return the bounds of an access, (partitions, elements)."""
        window = self.window(pattern)
        if window is None:
            is_exact = not self.whole(pattern.tensor).any()
            return np.full(self.shape(pattern), 0.0 if is_exact else np.inf)
        return window.reshape(self.shape(pattern))

    def write(self, pattern: PatternRecord, errors: Doubles) -> None:
        """Set the bounds; an access in another element size spoils the whole tensor."""
        window = self.window(pattern)
        if window is not None:
            np.copyto(window, errors.reshape(window.shape))
        elif errors.any():
            self.whole(pattern.tensor)[...] = np.inf


# ---- An instruction as a rule of `bounds` sees it: its operands as values with bounds -----------

Lanes = dict[str, Bounded]  # accumulators of an engine: 128 magnitudes and bounds


class Operation(Operands[Store, Lanes]):
    """An instruction before it runs."""

    def dtype(self, name: str) -> DType:
        operand = self.pattern(name)
        return operand.dtype if operand is not None else FLOAT32

    def get_error(self, name: str) -> Doubles:
        operand = self.pattern(name)
        return self._store.read(operand) if operand is not None else np.zeros((1, 1))

    def scaled(self, name: str) -> Doubles:
        """Return the numbers of a packed tile and its scales, as the tensor engine uses them."""
        operands = (self.pattern(name), self.pattern(f"{name}_scale"))
        data, scale = (Tile(self._memory, tile).bound() for tile in operands if tile is not None)
        return mx_numbers(data, scale)()

    def get(self, name: str, default: float = 0.0) -> Bounded:
        """Return a tile as (partitions, elements), or a number as a 0-dimensional array."""
        operand = self.operands.get(name)
        if type(operand) is PatternRecord:
            return Bounded(values_of(self._memory, operand), self._store.read(operand).copy())
        number = float(operand) if isinstance(operand, int | float) else default
        return exact(np.array(float(np.float32(number))))


Errors = Mapping[str, Doubles]
BoundRule = Callable[[Operation], Errors | None]
RULES: dict[str, BoundRule] = {}


# A rule for the bounds of rows' results returns None if it cannot bound them.
bounded = partial(registering, RULES)


# ---- Rules for the bounds of results, one function for each covered row -------------------------
# A function returns the bounds by written operand, before rounding to that operand's type, or None
# if it cannot bound them. docs/fidelity.md states what is covered.

PARTITIONS = 128


@bounded("memset", "iota")
def made(operation: Operation) -> Errors:
    """Constants are exactly what their type holds."""
    return {"dst": np.zeros(())}


@bounded("tensor_copy", "dma_copy")
def copied(operation: Operation) -> Errors:
    return {"dst": operation.get("src").error}


@bounded("nc_transpose")
def transposed(operation: Operation) -> Errors:
    rows = operation.sizes("data")[0]
    return {"dst": operation.get("data").error.reshape(rows, -1).T}


@bounded("dma_transpose")
def moved_across(operation: Operation) -> Errors | None:
    sizes = [size for size in operation.sizes("src") if size > 1]
    if len(sizes) > 2:
        return None
    return {"dst": operation.get("src").error.reshape((sizes or [1])[0], -1).T}


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


@bounded("tensor_tensor", "tensor_scalar", "scalar_tensor_tensor")
def staged(operation: Operation) -> Errors | None:
    result: Bounded | None = operation.get(operation.row.first)
    for op, operand, reverse in stages_of(operation.row, operation.attributes):
        if result is not None:
            result = _applied(op, reverse, result, operation.get(operand))
    return _named("dst", result)


def _applied(op: str, reverse: bool, a: Bounded, b: Bounded) -> Bounded | None:
    return operator(op, *((b, a) if swaps(op, reverse) else (a, b)))


@bounded("reciprocal")
def reciprocal(operation: Operation) -> Errors | None:
    return _named("dst", operator("reciprocal", operation.get("data"), exact(np.zeros(()))))


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
    size, error = operation.lanes.setdefault("reduce", exact(np.zeros(PARTITIONS)))
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
    if op in ("add", "subtract"):
        return total(rows)
    if op == "average":
        return _quotient(total(rows), rows.value.shape[-1])
    if op in ("maximum", "minimum"):
        extreme = np.maximum if op == "maximum" else np.minimum
        return Bounded(extreme.reduce(rows.value, axis=-1), rows.error.max(axis=-1))
    if op == "multiply":
        value, size = np.prod(rows.value, axis=-1), np.abs(rows.value)
        spread = np.prod(size + rows.error, axis=-1) - np.prod(size, axis=-1)
        roundings = (rows.value.shape[-1] - 1) * UNIT * np.abs(value)
        return Bounded(value, spread + roundings)
    return None


@bounded("nc_n_gather")
def gathered(operation: Operation) -> Errors | None:
    """The bounds of the gathered elements, if the indices are exact."""
    data, indices = operation.get("data"), operation.get("indices")
    if not indices.exact:
        return None
    clamped = np.minimum(indices.value, data.value.shape[1] - 1).astype(np.int64)
    return {"dst": np.take_along_axis(data.error, clamped, axis=1)}


@bounded("local_gather")
def gathered_by_core(operation: Operation) -> Errors | None:
    """The worst bound in each partition, since an index applies to 16 partitions."""
    if not operation.get("index").exact:
        return None
    worst = operation.get("src_buffer").error.max(axis=-1, keepdims=True)
    return {"dst": np.repeat(worst, int(np.prod(operation.sizes("dst")[1:])), axis=1)}


@bounded("nc_stream_shuffle")
def shuffled(operation: Operation) -> Errors:
    """Partitions move within their group of 32."""
    error, source = operation.get("dst").error, operation.get("src").error
    for partition in range(len(error)):
        lane = operation.attributes["shuffle_mask"][partition % QUADRANT]
        if lane != KEEP:
            error[partition] = source[partition - partition % QUADRANT + lane]
    return {"dst": error}


@bounded("max8")
def largest(operation: Operation) -> Errors:
    """Sorting moves no number further than the largest error."""
    return {"dst": operation.get("src").error.max(axis=-1, keepdims=True)}


@bounded("nc_matmul")
def matmul(operation: Operation) -> Errors | None:
    left, right = (_contracted(operation, name) for name in ("stationary", "moving"))
    narrow = all(operation.dtype(name).size <= 2 for name in ("stationary", "moving"))
    return _multiplied(operation, left, right, narrow or bool(operation.attributes["is_transpose"]))


def _contracted(operation: Operation, name: str) -> Bounded:
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
    left, right = (exact(operation.scaled(name)) for name in names)
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
    """The scan, element by element: (data0 op0 carry) op1 data1."""
    data, values = [operation.get(f"data{i}") for i in range(2)], operation.attributes
    carry, error = operation.get("initial"), np.zeros(data[0].value.shape)
    for i in range(len(error[0])):
        column = slice(i, i + 1)
        first, second = (_columns(tile, column) for tile in data)
        inner = _applied(values["op0"], values["reverse0"], first, carry)
        outer = _applied(values["op1"], values["reverse1"], inner, second) if inner else None
        if outer is None:
            return None
        carry = outer
        error[:, column] = carry.error
    return {"dst": error}


def _columns(tile: Bounded, columns: slice) -> Bounded:
    return Bounded(tile.value[:, columns], tile.error[:, columns])


@bounded("bn_stats")
def statistics(operation: Operation) -> Errors:
    data = operation.get("data")
    halves = [_columns(data, slice(i, None, 2)) for i in (0, 1)]  # elements with even, odd index
    return {"dst": np.concatenate([_moments(half) for half in halves], axis=1)}


def _moments(data: Bounded) -> Doubles:
    """Return the bounds of count, mean, and variance times count: (partitions, 3)."""
    mean = _quotient(total(data), max(data.value.shape[1], 1))
    off = rounded(Bounded(data.value - mean.value[:, None], data.error + mean.error[:, None]))
    spread = total(rounded(Bounded(off.value**2, (2 * np.abs(off.value) + off.error) * off.error)))
    return np.stack([np.zeros(len(mean.value)), mean.error, spread.error], axis=1)


def _quotient(dividend: Bounded, divisor: Doubles | int) -> Bounded:
    return rounded(Bounded(dividend.value / divisor, dividend.error / divisor))


@bounded("bn_aggr")
def aggregated(operation: Operation) -> Errors | None:
    data = operation.get("data")
    count, mean, spread = (_columns(data, slice(i, None, 3)) for i in range(3))
    if not count.exact:
        return None
    n = count.value
    elements = np.maximum(n.sum(axis=1), 1)
    centre = _quotient(total(rounded(Bounded(n * mean.value, n * mean.error))), elements)
    off = rounded(Bounded(mean.value - centre.value[:, None], mean.error + centre.error[:, None]))
    off_size = np.abs(off.value)
    between = rounded(Bounded(n * off_size**2, n * (2 * off_size + off.error) * off.error))
    terms = rounded(Bounded(spread.value + between.value, spread.error + between.error))
    variance = _quotient(total(terms), elements)
    return {"dst": np.stack([centre.error, variance.error], axis=1)}


def _named(name: str, bounds: Bounded | None) -> Errors | None:
    return {name: bounds.error} if bounds is not None else None


# --------------------------------------------------------------------------------------------------


class Bounds(Follower):
    """The bounds of all tensors of a rank, updated instruction by instruction.

    `uncovered` counts the instructions that left something unbounded, by row and place.
    """

    def __init__(self, executable: Executable, memory: Memory, target: Target) -> None:
        super().__init__(executable, memory, target)
        self.store = Store(executable)
        self.uncovered: Counter[tuple[str, int]] = Counter()
        self._registers_inexact = False  # whether rounding may have changed some register
        self._lanes: defaultdict[tuple[int, Engine], Lanes] = defaultdict(dict)

    def before(
        self, record: InstructionRecord, core: int, engine: Engine, dynamic: Dynamic | None = None
    ) -> Step:
        into = any(type(operand) is Register for operand in record.operands[:1])
        tiles = [p for p in record.operands if type(p) is PatternRecord]
        if into and not self._are_exact(tiles):
            self._registers_inexact = True
        return super().before(record, core, engine, dynamic)

    def following(self, record: InstructionRecord, core: int, engine: Engine) -> Step:
        operation = Operation(record, self.memory, self.store, self._lanes[core, engine])
        written = self.executable.written(record, self.target, engine)
        patterns = [p for p in record.operands if type(p) is PatternRecord]
        is_dynamic = any(pattern.dynamic is not None for pattern in patterns)
        errors = None if is_dynamic else self._result_errors(operation)
        if errors is None:
            return lambda: self._lose(record, operation, written)
        moves = record.row is not None and record.row.moves

        def after() -> None:
            for name, pattern in written.items():
                error = np.broadcast_to(errors.get(name, np.inf), np.shape(errors.get(name, 0.0)))
                self._keep(pattern, error, moves and self._keeps_bits(operation, pattern))

        return after

    def moving(self, resolved: Resolved, engine: Engine) -> Step:
        dst, src = resolved.pattern(DST), resolved.pattern(SRC)
        gathers, scatters = SRC in resolved.rows, DST in resolved.rows
        taken = self.store.taken(resolved) if gathers else self.store.read(src).copy()
        is_cast = src.dtype is not dst.dtype
        moved = values_of(self.memory, src) if is_cast and not gathers else None

        def after() -> None:
            values = moved if scatters or not is_cast else values_of(self.memory, dst)
            if taken is None or (is_cast and values is None):
                self.lose(resolved.record, engine)
                return
            errors = taken.reshape(resolved.row_count, -1)
            if is_cast and values is not None:
                values = values.reshape(errors.shape)
                errors = np.where(np.isfinite(values), stored(values, errors, dst.dtype), np.inf)
            if not scatters:
                before = self.store.read(dst)
                inside = np.broadcast_to(resolved.inside, resolved.row_count)[:, None]
                kept = np.where(inside, errors, before.reshape(errors.shape))
                self.store.write(dst, kept.reshape(before.shape))
            elif not self.store.put(resolved, errors):
                self.lose(resolved.record, engine)

        return after

    def lose(self, record: InstructionRecord, engine: Engine) -> None:
        operation = Operation(record, self.memory, self.store, {})
        self._lose(record, operation, self.executable.written(record, self.target, engine))

    def of_output(self, tensor: int) -> Doubles:
        return self.store.whole(tensor).reshape(self.executable.tensors[tensor].shape).copy()

    def _result_errors(self, operation: Operation) -> Errors | None:
        """Return the bounds by the row's rule; integer results of exact integers are exact."""
        patterns = [p for p in operation.operands.values() if type(p) is PatternRecord]
        if all(p.dtype.is_integer for p in patterns) and self._are_exact(patterns):
            return dict.fromkeys(operation.operands, np.zeros(()))
        rule = RULES.get(operation.row.name)
        return rule(operation) if rule is not None else None

    def _keep(self, pattern: PatternRecord, error: Doubles, bits: bool) -> None:
        values = values_of(self.memory, pattern)
        whole = np.array(np.broadcast_to(_shaped(error, values.shape), values.shape), np.float64)
        if not bits:
            whole = stored(values, whole, pattern.dtype)
            whole[np.isinf(values)] = np.inf  # an overflow
        whole[np.isnan(whole)] = np.inf
        self.store.write(pattern, whole)

    def _keeps_bits(self, operation: Operation, dst: PatternRecord) -> bool:
        sources = [
            p for n, p in operation.operands.items() if type(p) is PatternRecord and p is not dst
        ]
        return all(p.dtype is dst.dtype or p.dtype.is_integer for p in sources)

    def _lose(
        self, record: InstructionRecord, operation: Operation, written: dict[str, PatternRecord]
    ) -> None:
        for pattern in written.values():
            self.store.write(pattern, np.full(self.store.shape(pattern), np.inf))
        if written:
            self.uncovered[operation.row.name, record.place] += 1

    def _are_exact(self, patterns: list[PatternRecord]) -> bool:
        return not any(self.store.whole(p.tensor).any() for p in patterns)

    def knows_offsets(self, record: InstructionRecord) -> bool:
        dynamic = [p.dynamic for p in record.operands if type(p) is PatternRecord and p.dynamic]
        sources = [record.operands[offset.source] for offset in dynamic]
        tiles = [p for p in sources if type(p) is PatternRecord]
        if len(tiles) < len(sources) and self._registers_inexact:
            return False
        return not any(self.store.read(p).any() for p in tiles)


def _shaped(error: Doubles, shape: tuple[int, ...]) -> Doubles:
    """Return the errors in the shape of what is written, or one for all."""
    return error.reshape(shape) if error.size == int(np.prod(shape)) else error
