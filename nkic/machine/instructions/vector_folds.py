"""Rows of the vector engine that compute element by element and also reduce."""

from __future__ import annotations

from dataclasses import replace

from nkic.base.profiles import Profile
from nkic.machine import costs
from nkic.machine.constraints import (
    elements,
    elementwise,
    exactly,
    float32_vectors,
    not_both_psum,
    operators,
    same_dtype,
    same_partitions,
    uneven,
    wrong_operator,
)
from nkic.machine.instructions.parts import alu, choice, flag, result, scalar, source
from nkic.machine.operands import (
    Access,
    Attribute,
    AttributeKind,
    Depends,
    Effects,
    Facts,
    Row,
    Rule,
    Tile,
    Violation,
)
from nkic.machine.operators import ALU
from nkic.machine.rules import shown
from nkic.machine.targets import Engine
from nkic.machine.tiles import start_partitions

# ------------------------------------------------------------------------------------------------
# The vector engine's accumulators, one float32 per lane: the state "vector.accumulator".
# exponential, range_select, select_reduce, tensor_scalar_reduce and tensor_scalar_cumulative
# share them. `reduce_cmd` selects how an instruction updates them; `idle` leaves them undefined.
# Source: `nki.isa`, "Accumulator behavior" of these instructions.

STATE = ("vector.accumulator",)
FLOATS = frozenset({"float32", "tfloat32", "bfloat16", "float16", "float8_e4m3", "float8_e5m2"})
READ_OUT = result("reduce_res", column=True, optional=True, default=None)


def accumulating(facts: Facts) -> Effects:
    """Return the effects of `reduce_cmd`: only `reduce` reads the state, and `idle` clobbers it."""
    return Effects(STATE if facts.attributes["reduce_cmd"] == "reduce" else (), STATE)


def reduces_with(*names: str) -> Rule:
    """`reduce_op` is one of `names`."""
    expected = f"one of {', '.join(names)}" if len(names) > 1 else names[0]

    def rule(facts: Facts) -> Violation | None:
        op = facts.attributes["reduce_op"]
        return None if op in names else wrong_operator("reduce_op", ALU[op], expected)

    return rule


def initial(name: str, only: bool = True) -> Rule:
    """load_reduce has a value `name` to load; if `only`, other commands take None or 0."""

    def rule(facts: Facts) -> Violation | None:
        command, value = facts.attributes["reduce_cmd"], facts.operands[name]
        if command == "load_reduce":
            return _no_value(name) if value is None else None
        if not only or value is None or (not isinstance(value, Tile) and value == 0):
            return None
        text = f"`{name}` is {shown(value)} and `reduce_cmd` is {command}, which does not load it"
        hint = f"pass `reduce_cmd=nisa.reduce_cmd.load_reduce`, or leave out `{name}`"
        return Violation("operand-missing", text, name, hint)

    return rule


def _no_value(name: str) -> Violation:
    text = f"`reduce_cmd` is load_reduce and `{name}` is None"
    hint = f"pass the initial values of the accumulators as `{name}`"
    return Violation("operand-missing", text, name, hint)


def nothing_to_read(facts: Facts) -> Violation | None:
    """`reduce_res` is not given with `idle`, which leaves the accumulators undefined."""
    if facts.attributes["reduce_cmd"] != "idle" or facts.operands["reduce_res"] is None:
        return None
    text = "`reduce_res` is given and `reduce_cmd` is idle, which leaves the accumulators unknown"
    hint = "pass `reduce_cmd=nisa.reduce_cmd.reset_reduce`, or leave out `reduce_res`"
    return Violation("operand-missing", text, "reduce_res", hint)


def stage(op: str, operand: str) -> Rule:
    """The operand of an operator with two inputs is given; with one input, it is None or 0."""

    def rule(facts: Facts) -> Violation | None:
        name, value = facts.attributes[op], facts.operands[operand]
        if ALU[name].arity == 2:
            return None if value is not None else _incomplete(op, name, operand, "is None")
        if value is None or (not isinstance(value, Tile) and value == 0):
            return None
        return _incomplete(op, f"{name}, which has one input,", operand, f"is {shown(value)}")

    return rule


def _incomplete(op: str, name: str, operand: str, text: str) -> Violation:
    expected = (
        f"pass `{operand}` as well" if text == "is None" else f"pass None or 0 as `{operand}`"
    )
    return Violation(
        "operand-missing", f"`{op}` is {name} and `{operand}` {text}", operand, expected
    )


# --------------------------------------------------------------------------------------------------

VECTOR = (Engine.VECTOR,)
FP32_MIN = -3.4028234663852886e38  # the lowest finite float32
FP32_MIN_ULP = 2.0**104
EXACT = 1 << 24  # indices are compared in float32, which is exact up to here
FLOAT32 = frozenset({"float32"})
ANY_FLOAT = FLOATS | {"float8_e4m3fn"}
NARROW = ANY_FLOAT | {"int8", "int16", "uint8", "uint16"}  # no 32-bit integers
CUMULATED = NARROW - {"tfloat32"}
RANGES = ("equal", "less", "less_equal", "greater", "greater_equal")
CUMULATIVE = ("add", "subtract", "multiply", "maximum", "minimum")
REDUCTIONS = ("add", "multiply", "maximum", "minimum")
READ_FLOAT = result("reduce_res", dtypes=ANY_FLOAT, column=True, optional=True, default=None)


def not_reversed(facts: Facts) -> Violation | None:
    """`reverse0`, a parameter of the call that the instruction does not support yet, is False."""
    if not facts.attributes["reverse0"]:
        return None
    text = "`reverse0` is True, which the instruction does not support"
    hint = "use `nisa.tensor_scalar` with `reverse0`, then `nisa.tensor_reduce`"
    return Violation("operator-not-supported", text, "reverse0", hint)


def accumulates(facts: Facts) -> Violation | None:
    """`op1` is supported by tensor_scalar_cumulative."""
    op = facts.attributes["op1"]
    if op in CUMULATIVE:
        return None
    return wrong_operator("op1", ALU[op], f"one of {', '.join(CUMULATIVE)}")


def range_comparisons(facts: Facts) -> Violation | None:
    """`comp_op0` and `comp_op1` compare order or equality."""
    for name in ("comp_op0", "comp_op1"):
        op = facts.attributes[name]
        if op not in RANGES:
            return wrong_operator(name, ALU[op], f"one of {', '.join(RANGES)}")
    return None


def lowest_fill(facts: Facts) -> Violation | None:
    """`on_false_value` is the lowest float32, the hardware's only fill value."""
    value = facts.attributes["on_false_value"]
    if abs(value - FP32_MIN) < FP32_MIN_ULP / 2:
        return None
    text = f"`on_false_value` is {value}, but must be the lowest float32, {FP32_MIN:.8g}"
    hint = f"pass {FP32_MIN:.8g}, or use `nisa.select_reduce`"
    return Violation("fill-value", text, "on_false_value", hint)


def exact_range(facts: Facts) -> Violation | None:
    """`range_start` and all indices are integers that float32 represents exactly."""
    start, count = facts.attributes["range_start"], facts.tile("on_true_tile").free
    if -EXACT <= start <= EXACT - count:
        return None
    return Violation(
        "index-count",
        f"`range_start` is {start} and counts {count} elements; indices must be within {EXACT} "
        "of 0, to be exact in float32",
        "range_start",
        f"subtract part of `range_start` from both bounds, so that at most {EXACT - count} is left",
    )


ROWS = (
    Row(
        name="tensor_scalar_reduce",
        opcode=52,
        depends=Depends.ELEMENTWISE,
        doc="dst = data op0 operand0. reduce_cmd selects how the results of a partition, folded "
        "with reduce_op, update the accumulators, which are then copied to reduce_res.",
        parameters=(
            *("dst", "data", "op0", "operand0", "reduce_op", "reduce_res", "reverse0"),
            *("reduce_cmd", "reduce_init", "reduce_res_negate", "name"),
        ),
        operands=(
            result(indexed=True),
            source("data", indexed=True),
            scalar("operand0", optional=True),
            replace(READ_OUT, optional_since=Profile.NKI_0_6),
            scalar("reduce_init", optional=True, default=None),
        ),
        attributes=(
            alu("op0"),
            alu("reduce_op"),
            flag("reverse0"),
            choice("reduce_cmd", "reset_reduce", "reset_reduce", "reduce", "load_reduce"),
            flag("reduce_res_negate"),
        ),
        engines=VECTOR,
        cost=costs.per_element("data", read_out=True),
        rules=(
            elementwise("dst", "data"),
            same_partitions("data", "operand0", "reduce_res", "reduce_init"),
            operators(("op0",), group="arithmetic"),
            stage("op0", "operand0"),
            float32_vectors("operand0", "reduce_init"),
            reduces_with(*REDUCTIONS),
            not_reversed,
            initial("reduce_init"),
        ),
        effects=accumulating,
    ),
    Row(
        name="tensor_scalar_cumulative",
        opcode=53,
        depends=Depends.BY_PARTITION,
        doc="dst[i] = (src[i] op0 imm0) op1 dst[i - 1], starting from the accumulator.",
        parameters=("dst", "src", "op0", "op1", "imm0", "imm1", "reduce_cmd", "name"),
        operands=(
            result(indexed=True, dtypes=CUMULATED),
            source("src", indexed=True, dtypes=CUMULATED),
            scalar("imm0"),
            scalar("imm1", optional=True, default=None),
        ),
        attributes=(
            alu("op0"),
            alu("op1"),
            choice("reduce_cmd", "reset_reduce", "reset_reduce", "reduce", "load_reduce"),
        ),
        engines=VECTOR,
        cost=costs.per_element("src", basis=costs.UNKNOWN),
        rules=(
            elementwise("dst", "src"),
            same_partitions("src", "imm0", "imm1"),
            operators(("op0",), group="arithmetic"),
            stage("op0", "imm0"),
            float32_vectors("imm0", "imm1"),
            accumulates,
            initial("imm1", only=False),  # the published example also passes it with reduce
        ),
        effects=accumulating,
    ),
    Row(
        name="select_reduce",
        opcode=54,
        depends=Depends.BY_PARTITION,
        selects=("on_true",),
        doc="dst = on_true where predicate is not 0 (where it is 0, if reversed), else on_false; "
        "reduce_res = the maximum of each partition.",
        operands=(
            result(),
            source("predicate", dtypes=frozenset({"int8", "uint8", "int16", "uint16"})),
            source("on_true", dtypes=CUMULATED | {"bool"}),
            scalar("on_false", into="dst"),
            READ_FLOAT,
        ),
        attributes=(
            choice("reduce_cmd", "idle", "idle", "reset_reduce", "reduce"),
            alu("reduce_op", default="maximum"),
            flag("reverse_pred"),
        ),
        engines=VECTOR,
        cost=costs.two_tiles("on_true", "predicate", costs.UNKNOWN),
        rules=(
            elementwise("dst", "predicate", "on_true"),
            same_partitions("dst", "on_false", "reduce_res"),
            not_both_psum("on_true", "predicate"),
            reduces_with("maximum"),
            nothing_to_read,
        ),
        effects=accumulating,
    ),
    Row(
        name="range_select",
        opcode=55,
        depends=Depends.BY_PARTITION,
        selects=("on_true_tile",),
        doc="dst = on_true_tile where the index in the partition, counted from range_start, "
        "compares true with both bounds, else the lowest float32; reduce_res = the maximum.",
        parameters=(
            *("dst", "on_true_tile", "comp_op0", "comp_op1", "bound0", "bound1", "reduce_cmd"),
            *("reduce_res", "reduce_op", "range_start", "on_false_value", "name"),
        ),
        operands=(
            result(),
            source("on_true_tile", dtypes=ANY_FLOAT),
            source("bound0", dtypes=FLOAT32, column=True),
            source("bound1", dtypes=FLOAT32, column=True),
            READ_OUT,
        ),
        attributes=(
            alu("comp_op0"),
            alu("comp_op1"),
            choice("reduce_cmd", "reset_reduce", "idle", "reset", "reduce", "reset_reduce"),
            alu("reduce_op", default="maximum"),
            Attribute("range_start", AttributeKind.INT32, default=0),
            Attribute("on_false_value", AttributeKind.NUMBER, default=FP32_MIN),
        ),
        engines=VECTOR,
        cost=costs.per_element("on_true_tile"),
        rules=(
            elementwise("dst", "on_true_tile"),
            same_partitions("on_true_tile", "bound0", "bound1", "reduce_res"),
            range_comparisons,
            reduces_with("maximum"),
            nothing_to_read,
            exact_range,
            lowest_fill,
        ),
        effects=accumulating,
        generation=3,
    ),
)


# ------------------------------------------------------------------------------------------------
# Rows of the vector engine that find 8 values in each partition, or move partitions.

INDICES = frozenset({"uint16", "uint32"})
LONGEST = 16_384  # elements per partition in a search
QUADRANT = 32  # partitions within which a shuffle moves data
KEEP = 255  # in a shuffle mask: leave the partition unchanged

SEARCH = (elements("data", 8, LONGEST), exactly("vals", 8, "the values to find"))


def same_length(facts: Facts) -> Violation | None:
    """Partitions have the same length; their numbers may differ."""
    dst, src = facts.tile("dst"), facts.tile("src")
    return None if dst.free == src.free else uneven("dst", dst, "src", src)


def shuffle_mask(facts: Facts) -> Violation | None:
    """The mask has 32 entries, each 255 or a partition of the quadrant that src has."""
    mask, src, dst = facts.attributes["shuffle_mask"], facts.tile("src"), facts.tile("dst")
    if len(mask) != QUADRANT:
        return _bad_mask(
            f"has {len(mask)} entries, but must have {QUADRANT}",
            f"pass one entry for each of the {QUADRANT} partitions of a quadrant",
        )
    for index, entry in enumerate(mask):
        if entry != KEEP and not 0 <= entry < QUADRANT:
            return _bad_mask(
                f"has {entry} at {index}; entries are 0 to {QUADRANT - 1}, or {KEEP}",
                f"use {KEEP} for partitions that must not change",
            )
    for partition in range(dst.partitions):
        entry = mask[partition % QUADRANT]
        source = partition - partition % QUADRANT + entry
        if entry != KEEP and source >= src.partitions:
            return _bad_mask(
                f"copies partition {source} of `src`, which has {src.partitions}, to partition "
                f"{partition} of `dst`",
                "use several instructions, one for each quadrant of `dst`",
            )
    return None


def _bad_mask(text: str, hint: str) -> Violation:
    return Violation("shuffle-mask", f"`shuffle_mask` {text}", "shuffle_mask", hint)


def shuffled_starts(facts: Facts) -> Violation | None:
    """src and dst start at a partition allowed for the longer one."""
    longer = max(facts.tile("src").partitions, facts.tile("dst").partitions)
    allowed = start_partitions(longer)
    for name in ("src", "dst"):
        tile = facts.tile(name)
        if tile.start not in allowed:
            return Violation(
                "start-partition",
                f"`{name}` starts at partition {tile.start}; where `src` or `dst` has {longer} "
                f"partitions it must start at {' or '.join(map(str, allowed))}",
                name,
                "use several instructions, one for each quadrant",
            )
    return None


def shuffled_access(name: str, facts: Facts) -> Access | None:
    """Return UPDATE for a dst that keeps partitions: they must have been written before."""
    return Access.UPDATE if name == "dst" and KEEP in facts.attributes["shuffle_mask"] else None


SEARCH_ROWS = (
    Row(
        name="nc_find_index8",
        opcode=56,
        depends=Depends.BY_PARTITION,
        doc="The index in each partition of data of each of the 8 vals: equal ones match the "
        "first, the second … occurrence; all bits set if there is none.",
        operands=(
            result(dtypes=INDICES, max_rank=2),
            source("data", max_rank=3),
            source("vals", max_rank=3),
        ),
        engines=VECTOR,
        cost=costs.per_element("data"),
        rules=(
            same_partitions("dst", "data", "vals"),
            *SEARCH,
            exactly("dst", 8, "an index for each value"),
        ),
        source="nki.isa.nc_find_index8; nki.isa.nc_match_replace8 (equal values)",
    ),
    Row(
        name="nc_match_replace8",
        opcode=57,
        depends=Depends.BY_PARTITION,
        doc="dst = data with the first occurrence of each of the 8 vals replaced by imm; dst_idx "
        "= their indices: of equal vals, the last one takes the first occurrence.",
        parameters=("dst", "data", "vals", "imm", "dst_idx", "name"),
        operands=(
            result(),
            source("data", max_dims=2),
            source("vals", max_dims=2),
            result("dst_idx", dtypes=INDICES, max_dims=1, optional=True, default=None),
        ),
        attributes=(Attribute("imm", AttributeKind.NUMBER, into="dst"),),
        engines=VECTOR,
        cost=costs.per_element("data"),
        rules=(
            elementwise("dst", "data"),
            same_partitions("data", "vals", "dst_idx"),
            *SEARCH,
            exactly("dst_idx", 8, "an index for each value"),
        ),
    ),
    Row(
        name="nc_stream_shuffle",
        opcode=58,
        depends=Depends.SHUFFLED,
        doc="In each quadrant of 32 partitions, partition i of dst = partition shuffle_mask[i] of "
        "src; 255 leaves it unchanged.",
        operands=(result(packed=True), source("src", packed=True)),
        attributes=(Attribute("shuffle_mask", AttributeKind.INTS),),
        engines=VECTOR,
        cost=costs.per_element("src"),
        rules=(same_dtype("dst", "src"), same_length, shuffled_starts, shuffle_mask),
        access=shuffled_access,
    ),
)
