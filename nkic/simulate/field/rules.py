"""What instructions compute over the field, by written operand, before conversion to its type.

Rows with `stages` and rows that copy need no rule of their own. A rule has the name of its row in
simulate/semantics. Rows in `UNDECIDED` have no meaning over the field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from nkic.artifact.records import Executable, PatternRecord
from nkic.machine.dtypes import DType
from nkic.machine.operands import Row
from nkic.machine.operators import ALU
from nkic.machine.targets import PARTITIONS, Engine
from nkic.simulate.beside import Operands, Records, RecordStore
from nkic.simulate.field.elements import LEVELS, Elements, Size, choose, join
from nkic.simulate.field.functions import FIELD, Algebra
from nkic.simulate.numerics.elementwise import INTEGERS
from nkic.simulate.plans import registering
from nkic.simulate.semantics.binding import stages_of, swaps
from nkic.simulate.semantics.dma import PERMUTATIONS
from nkic.simulate.semantics.gpsimd import CORE, indices
from nkic.simulate.semantics.vector import KEEP, QUADRANT

# ------------------------------------------------------------------------------------------------
# The elements of all tensors of a program, in records that patterns address like memory.


def record(number: Any, levels: int) -> np.dtype[Any]:
    """Return the record of an element that consists of so many numbers of a type."""
    notes = [("origin", "i4"), ("loose", "i4")]
    return np.dtype([("residues", number, levels), ("value", np.float64), *notes])


class Store(RecordStore):
    def __init__(
        self,
        executable: Executable,
        algebra: Algebra = FIELD,
        dtype: np.dtype[Any] = record(np.int64, LEVELS),  # noqa: B008
    ) -> None:
        super().__init__(executable, dtype)
        self.algebra = algebra
        self._sizes: dict[int, Size] = {}

    def read(self, pattern: PatternRecord) -> Elements | None:
        """Return the elements of an access, (partitions, elements); None of another type."""
        window = self.window(pattern)
        if window is None:
            return None
        return elements_of(window.reshape(self.shape(pattern)), self.size(pattern.tensor))

    def is_on_chip(self, tensor: int) -> bool:
        return self._tensors[tensor].buffer.on_chip

    def size(self, tensor: int) -> Size:
        return self._sizes.get(tensor, Size())

    def write(self, pattern: PatternRecord, elements: Elements) -> None:
        """Set the elements; all of a tensor are undecided after a write of other bits."""
        window = self.window(pattern)
        self.grow(pattern.tensor, elements.size)
        if window is not None:
            window[...] = records_of(elements, self._dtype).reshape(window.shape)
            return
        whole = self.whole(pattern.tensor)
        whole["value"], whole["origin"] = np.nan, elements.origin.max(initial=0)

    def grow(self, tensor: int, size: Size) -> None:
        """Note the size of elements that a tensor gets."""
        self._sizes[tensor] = self.size(tensor).joined(size)

    def reads_same(self, accessed: DType, own: DType) -> bool:
        """Return whether both types read the same numbers from the same bits, but for rounding."""
        return accessed is own or (
            accessed.size == own.size == 4 and accessed.is_float and own.is_float
        )


def elements_of(records: Any, size: Size) -> Elements:
    residues = np.moveaxis(records["residues"], -1, 0).copy()
    parts = [records[name].copy() for name in ("value", "origin", "loose")]
    return Elements(residues, parts[0], parts[1], parts[2], size)


def records_of(elements: Elements, dtype: np.dtype[Any]) -> Records:
    records = np.empty(elements.value.shape, dtype)
    records["residues"] = np.moveaxis(elements.residues, 0, -1)
    records["value"], records["origin"], records["loose"] = elements[1:4]
    return records


# ---- An instruction as a rule of `field` sees it: its operands as elements ----------------------

Lanes = dict[str, Elements]  # accumulators of an engine, (128, 1)
ACCUMULATOR = "accumulator"


class Operation(Operands[Store, Lanes]):
    @property
    def over(self) -> Algebra:
        return self._store.algebra

    def dtype(self, name: str) -> DType | None:
        operand = self.pattern(name)
        return operand.dtype if operand is not None else None

    def is_on_chip(self, name: str) -> bool:
        operand = self.pattern(name)
        return operand is not None and self._store.is_on_chip(operand.tensor)

    def get(self, name: str, default: float = 0.0) -> Elements:
        operand = self.operands.get(name)
        if type(operand) is PatternRecord:
            found = self._store.read(operand)
            if found is None:  # the bits of a tensor in another size
                found = self.over.unknown(self._store.shape(operand)).undecided(self.place)
            return found
        number = float(operand) if isinstance(operand, int | float) else default
        return self.over.constant(np.full((1, 1), float(np.float32(number))))

    def accumulators(self, data: str) -> tuple[Elements, slice]:
        """Return the engine's accumulators, (128, 1), and the lanes of a tile.

        Those of the scalar engine begin at 0; others are NaN until an instruction sets them.
        """
        unset = self.over.constant(np.full((PARTITIONS, 1), 0.0 if self.is_scalar else np.nan))
        first = self.first(data)
        lanes = slice(first, first + self.sizes(data)[0])
        return self.lanes.setdefault(ACCUMULATOR, unset), lanes

    def accumulate(self, data: str, column: Elements) -> None:
        """Set the accumulators of the lanes of a tile."""
        registers, lanes = self.accumulators(data)
        before, after = (
            registers.at(np.s_[s]) for s in (slice(lanes.start), slice(lanes.stop, None))
        )
        self.lanes[ACCUMULATOR] = join([before, column, after], 0)

    @property
    def is_scalar(self) -> bool:
        return Engine.SCALAR in self.row.engines


Results = Mapping[str, Elements]
FieldRule = Callable[[Operation], Results | None]
RULES: dict[str, FieldRule] = {}
UNDECIDED: dict[str, str] = {}


# A rule for the results of rows returns None if the field has no meaning for them.
over_field = partial(registering, RULES)


def undecided(why: str, *names: str) -> None:
    """Register rows whose results are those of the run if all that they read is constant, and
    have no meaning over the field otherwise.
    """
    UNDECIDED.update(dict.fromkeys(names, why))


# --------------------------------------------------------------------------------------------------

undecided("selects by value", "max8", "nc_find_index8", "nc_match_replace8", "topk")
undecided("counts by value", "nonzero_with_count", "sequence_bounds")
undecided("draws random numbers", "dropout", "rng", "rand2", "rand_get_state")
undecided("sets random numbers", "set_rng_seed", "rand_set_state")
undecided("stores a register", "register_store", "scalar_store")
undecided("counts from a register", "iota")
undecided("prepares an exchange", "all_gather_v_prepare", "all_to_all_v_prepare")
undecided("works on quantised numbers", "quantize_mx", "nc_matmul_mx")


def rule_of(row: Row) -> FieldRule | None:
    if row.stages:
        return staged
    return copied if row.copies else RULES.get(row.name)


def why_undecided(row: Row) -> str:
    """Return why the field has no meaning for a row without a rule; empty if it has a rule."""
    if rule_of(row) is not None:
        return ""
    if row.is_rendezvous:
        return "exchanges data"
    writes = [operand for operand in row.operands if operand.access.writes]
    scalar = all(operand.register or not operand.buffers for operand in writes)
    return UNDECIDED.get(row.name, "sets a register" if scalar else "")


def copied(operation: Operation) -> Results | None:
    source = operation.get("src")
    return {"dst": source.moved(lambda x: x.reshape(_shape(operation, "dst")))}


def _shape(operation: Operation, name: str) -> tuple[int, int]:
    rows, *free = operation.sizes(name)
    return rows, int(np.prod(free))


def staged(operation: Operation) -> Results | None:
    """Elementwise arithmetic: the operand `first`, then each stage."""
    result: Elements | None = operation.get(operation.row.first)
    for op, operand, reverse in stages_of(operation.row, operation.attributes):
        if result is not None:
            result = _apply(operation, op, reverse, result, operation.get(operand))
    return _only(result)


def _apply(
    operation: Operation, op: str, reverse: Any, a: Elements, b: Elements
) -> Elements | None:
    operator = operation.over.operators.get(op)
    if operator is None:
        return None
    return operator(*((b, a) if swaps(op, reverse) else (a, b)), operation.place)


def _only(result: Elements | None) -> Results | None:
    return {"dst": result} if result is not None else None


@over_field("memset")
def memset(operation: Operation) -> Results | None:
    value, dtype = operation.attributes["value"], operation.dtype("dst")
    bits = dtype.mantissa_bits + 1 if dtype is not None and dtype.is_float else 24
    return {"dst": operation.over.constant(np.full((1, 1), float(value)), bits)}


@over_field("nc_transpose", "dma_transpose")
def transposed(operation: Operation) -> Results | None:
    if "data" in operation.operands:
        return {"dst": operation.get("data").moved(np.transpose)}
    sizes, on_chip = operation.sizes("src"), operation.is_on_chip("src")
    shape = sizes if on_chip else sizes[1:]
    axes, into = PERMUTATIONS.get(len(shape)), _shape(operation, "dst")
    if axes is None:
        return None
    source = operation.get("src")
    return {"dst": source.moved(lambda x: x.reshape(shape).transpose(axes).reshape(into))}


@over_field("affine_select")
def affine_select(operation: Operation) -> Results | None:
    offset = operation.operands.get("offset")
    if not isinstance(offset, int | None):
        return None
    values, shape = operation.attributes, _shape(operation, "dst")
    index = indices(values["pattern"], values["channel_multiplier"], shape[0]) + (offset or 0)
    mask = np.zeros(index.shape, np.bool_)
    INTEGERS[values["cmp_op"]](index, np.zeros((), np.int32), mask)
    fill = operation.over.constant(np.full((1, 1), float(np.float32(values["on_false_value"]))))
    return {"dst": choose(mask, operation.get("on_true_tile"), fill)}


@over_field("tensor_copy_predicated")
def tensor_copy_predicated(operation: Operation) -> Results | None:
    mask = _mask(operation)
    return {
        "dst": operation.over.selected(
            mask, operation.get("src"), operation.get("dst"), operation.place
        )
    }


def _mask(operation: Operation) -> Elements:
    flags = operation.get("predicate")
    if not operation.attributes["reverse_pred"]:
        return flags
    return operation.over.operators["logical_not"](flags, flags, operation.place)


@over_field("select_reduce")
def select_reduce(operation: Operation) -> Results | None:
    on_true, on_false = operation.get("on_true"), operation.get("on_false")
    result = operation.over.selected(_mask(operation), on_true, on_false, operation.place)
    return _accumulated(operation, result, "maximum", "on_true")


@over_field("range_select")
def range_select(operation: Operation) -> Results | None:
    values, tile = operation.attributes, operation.get("on_true_tile")
    index = operation.over.constant(
        values["range_start"] + np.arange(tile.value.shape[1], dtype=np.float64)[None]
    )
    sides = [
        operation.over.operators[values[f"comp_op{i}"]](
            index, operation.get(f"bound{i}"), operation.place
        )
        for i in range(2)
    ]
    mask = operation.over.operators["logical_and"](sides[0], sides[1], operation.place)
    fill = operation.over.constant(np.full((1, 1), float(np.float32(values["on_false_value"]))))
    result = operation.over.selected(mask, tile, fill, operation.place)
    return _accumulated(operation, result, "maximum", "on_true_tile")


@over_field("reciprocal")
def reciprocal(operation: Operation) -> Results | None:
    return _only(operation.over.invert(operation.get("data"), operation.place))


@over_field("activation", "activation_reduce")
def activation(operation: Operation) -> Results | None:
    inner = operation.over.multiply(
        operation.get("data"), operation.get("scale", 1.0), operation.place
    )
    inner = operation.over.add(inner, operation.get("bias"), operation.place)
    name = operation.attributes["op"]
    if name not in operation.over.functions:
        return None
    result = operation.over.functions[name](inner, operation.place)
    return _accumulated(operation, result, "add", "data")


@over_field("activate2")
def activate2(operation: Operation) -> Results | None:
    values, inner = operation.attributes, operation.get("data")
    for i in range(2):
        op, operand = values[f"op{i}"], operation.get(f"imm{i}")
        found = _apply(operation, op, values[f"reverse{i}"], inner, operand)
        if found is None:
            return None
        inner = found
    if values["op"] == "prelu":
        result = operation.over.prelu(inner, operation.get("relu_param"), operation.place)
    else:
        result = operation.over.functions[values["op"]](inner, operation.place)
    return _accumulated(operation, result, values["reduce_op"] or "add", "data")


@over_field("exponential")
def exponential(operation: Operation) -> Results | None:
    inner = operation.over.add(
        operation.get("src"),
        operation.over.negative(operation.get("max_value")),
        operation.place,
    )
    result = operation.over.exp(inner, operation.place)
    return _accumulated(operation, result, "add", "src", operation.get("reduce_init"))


@over_field("tensor_scalar_reduce")
def tensor_scalar_reduce(operation: Operation) -> Results | None:
    values, data = operation.attributes, operation.get("data")
    result = _apply(operation, values["op0"], False, data, operation.get("operand0"))
    if result is None:
        return None
    return _accumulated(
        operation, result, values["reduce_op"], "data", operation.get("reduce_init")
    )


def _accumulated(
    operation: Operation, result: Elements, op: str, data: str, initial: Elements | None = None
) -> Results | None:
    """Return the results, and the accumulators after `reduce_cmd`."""
    command = operation.attributes.get("reduce_cmd", "reset_reduce")
    identity = ALU[op].identity or 0.0
    registers, lanes = operation.accumulators(data)
    result = result.spread(_shape(operation, "dst"))
    column = registers.at(lanes)
    if command.startswith("reset"):
        column = operation.over.constant(np.full(column.value.shape, identity))
    elif command == "load_reduce" and initial is not None:
        column = initial.spread(column.value.shape)
    elif command == "idle" and not operation.is_scalar:  # which may disturb them
        column = operation.over.constant(np.full(column.value.shape, np.nan))
    if command.endswith("reduce"):
        total = operation.over.reduction(op, result, operation.place)
        if total is None:
            return None
        total = total.at(np.s_[..., None])
        column = operation.over.operators[op](column, total, operation.place)
    operation.accumulate(data, column)
    if operation.attributes.get("reduce_res_negate"):
        column = operation.over.negative(column)
    return {"dst": result, "reduce_res": column}


@over_field("tensor_scalar_cumulative")
def tensor_scalar_cumulative(operation: Operation) -> Results | None:
    if operation.attributes["reduce_cmd"] == "reduce":
        return None
    values, src = operation.attributes, operation.get("src")
    first = _apply(operation, values["op0"], False, src, operation.get("imm0"))
    if first is None or values["op1"] not in operation.over.operators:
        return None
    loads = values["reduce_cmd"] == "load_reduce"
    identity = operation.over.constant(np.full((1, 1), ALU[values["op1"]].identity or 0.0))
    carry, columns = (operation.get("imm1") if loads else identity), []
    for i in range(src.value.shape[1]):
        column = first.at(np.s_[:, i : i + 1])
        carry = operation.over.operators[values["op1"]](column, carry, operation.place)
        columns.append(carry)
    operation.accumulate("src", carry.spread((src.value.shape[0], 1)))
    return {"dst": join(columns, 1)}


@over_field("tensor_tensor_scan")
def tensor_tensor_scan(operation: Operation) -> Results | None:
    values, carry = operation.attributes, operation.get("initial")
    data, columns = [operation.get(f"data{i}") for i in range(2)], []
    for i in range(data[0].value.shape[1]):
        a, b = (tile.at(np.s_[:, i : i + 1]) for tile in data)
        inner = _apply(operation, values["op0"], values["reverse0"], a, carry)
        if inner is None:
            return None
        outer = _apply(operation, values["op1"], values["reverse1"], inner, b)
        if outer is None:
            return None
        carry = outer
        columns.append(carry)
    return {"dst": join(columns, 1)}


@over_field("tensor_reduce")
def tensor_reduce(operation: Operation) -> Results | None:
    data, sizes = operation.get("data"), operation.sizes("data")
    kept = int(np.prod(sizes[: len(sizes) - len(operation.attributes["axis"])]))
    rows = data.moved(lambda x: x.reshape(kept, -1))
    total = operation.over.reduction(operation.attributes["op"], rows, operation.place)
    if total is None:
        return None
    total = operation.over.negative(total) if operation.attributes["negate"] else total
    return {"dst": total.moved(lambda x: x.reshape(_shape(operation, "dst")))}


@over_field("tensor_partition_reduce")
def tensor_partition_reduce(operation: Operation) -> Results | None:
    rows = operation.get("data").moved(np.transpose)
    total = operation.over.reduction(operation.attributes["op"], rows, operation.place)
    if total is None:
        return None
    return {"dst": total.moved(lambda x: x.reshape(_shape(operation, "dst")))}


@over_field("dma_compute")
def dma_compute(operation: Operation) -> Results | None:
    shape = _shape(operation, "dst")
    sources = [
        operation.get(name).moved(lambda x: x.reshape(shape))
        for name in operation.operands
        if name != "dst" and operation.pattern(name) is not None
    ]
    total = sources[0]
    for source in sources[1:]:
        total = operation.over.add(total, source, operation.place)
    return {"dst": total}


@over_field("nc_matmul")
def nc_matmul(operation: Operation) -> Results | None:
    left, right = (_contracted(operation, name) for name in ("stationary", "moving"))
    result = operation.over.matmul(left, right, operation.place)
    if operation.attributes["accumulate"]:
        result = operation.over.add(operation.get("dst"), result, operation.place)
    return {"dst": result}


def _contracted(operation: Operation, name: str) -> Elements:
    """Return an operand as (rows of the contraction, columns)."""
    operand = operation.get(name)
    if operation.attributes["perf_mode"] != "double_row":
        return operand
    pairs = operand.moved(lambda x: x.reshape(len(x), 2, -1))
    halves = [pairs.at(np.s_[:, i]) for i in range(2)]
    return join(halves, 0)


@over_field("nc_n_gather")
def nc_n_gather(operation: Operation) -> Results | None:
    data, places = operation.get("data"), operation.get("indices")
    if places.varies.any():
        return None
    clamped = np.minimum(places.value, data.value.shape[1] - 1).astype(np.int64)
    return {"dst": data.moved(lambda x: np.take_along_axis(x, clamped, axis=1))}


@over_field("local_gather")
def local_gather(operation: Operation) -> Results | None:
    data, places = operation.get("src_buffer"), operation.get("index")
    if places.varies.any():
        return None
    run, count = (operation.attributes[n] for n in ("num_elem_per_idx", "num_valid_indices"))
    cores, last = len(data.value) // CORE, data.value.shape[1] - 1
    firsts = places.value.reshape(cores, CORE, -1).transpose(0, 2, 1).reshape(cores, -1)[:, :count]
    found = (firsts[:, :, None].astype(np.int64) + np.arange(run)).reshape(cores, -1)
    every = np.repeat(np.minimum(found, last), CORE, axis=0)
    return {"dst": data.moved(lambda x: np.take_along_axis(x, every, axis=1))}


@over_field("nc_stream_shuffle")
def nc_stream_shuffle(operation: Operation) -> Results:
    lanes = np.arange(operation.sizes("dst")[0])
    mask = np.array(operation.attributes["shuffle_mask"])[lanes % QUADRANT]
    source, before = operation.get("src"), operation.get("dst")
    taken = np.where(mask == KEEP, 0, lanes - lanes % QUADRANT + mask)
    return {"dst": choose((mask != KEEP)[:, None], source.at(taken), before)}


@over_field("bn_stats")
def bn_stats(operation: Operation) -> Results:
    data, parts = operation.get("data"), []
    for first in (0, 1):
        part = data.at(np.s_[:, first::2])
        count = part.value.shape[1]
        share = operation.over.invert(
            operation.over.constant(np.full((1, 1), float(max(count, 1))))
        )
        mean = operation.over.multiply(_total(part, operation), share)
        off = operation.over.add(part, operation.over.negative(mean))
        spread = _total(operation.over.multiply(off, off), operation)
        number = operation.over.constant(np.full(mean.value.shape, float(count)))
        parts += [number, mean, spread]
    return {"dst": join(parts, 1)}


def _total(rows: Elements, operation: Operation) -> Elements:
    return operation.over.sum_of(rows, operation.place).at(np.s_[:, None])


@over_field("bn_aggr")
def bn_aggr(operation: Operation) -> Results | None:
    data = operation.get("data")
    count, mean, spread = (data.at(np.s_[:, i::3]) for i in range(3))
    if count.varies.any():
        return None
    share = operation.over.invert(_total(count, operation))
    centre = operation.over.multiply(_total(operation.over.multiply(count, mean), operation), share)
    off = operation.over.add(mean, operation.over.negative(centre))
    between = operation.over.multiply(count, operation.over.multiply(off, off))
    variance = operation.over.multiply(
        _total(operation.over.add(spread, between), operation), share
    )
    return {"dst": join([centre, variance], 1)}
