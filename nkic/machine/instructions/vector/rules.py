"""Rules and engine choices of the vector engine's rows."""

from __future__ import annotations

from nkic.base.text import grouped
from nkic.machine.arguments import shown
from nkic.machine.constraints import (
    all_int32,
    has_operator,
    no_operator,
    not_float32,
    same_partitions,
    wrong_operator,
)
from nkic.machine.engines import Engine
from nkic.machine.facts import Facts, Tile
from nkic.machine.memory import Buffer
from nkic.machine.operands import Violation
from nkic.machine.operators import ALU, Operator

EXACT_BITS = 24  # of an integer, in float32
SMALL_FILL = 64  # elements per partition up to which a fill takes the minimum interval
SCALAR_V3_PAIRS = (("multiply", "add"), ("multiply", None), ("add", None))


def in_psum(facts: Facts) -> bool:
    """Return whether a tile is in PSUM, which gpsimd cannot access."""
    return any(tile.buffer is Buffer.PSUM for tile in facts.tiles.values())


# Engine choices.


def fill_engine(facts: Facts) -> Engine:
    """memset: long fills of SBUF on gpsimd, which is less loaded; the others on vector.

    The reference leaves the choice to the compiler; this one is nkic's own.
    """
    dst = facts.tile("dst")
    small = dst.free <= SMALL_FILL
    return Engine.VECTOR if small or dst.buffer is Buffer.PSUM else Engine.GPSIMD


def copying_engines(facts: Facts) -> tuple[Engine, ...]:
    """tensor_copy: vector or scalar, by workload (`nki.isa.tensor_copy`, `engine`).

    Only between floats, for which both give the same bits; only vector is documented to preserve
    integers. gpsimd is not considered: it shares vector's port to SBUF.
    """
    tiles = facts.tiles.values()
    plain = all(tile.dtype.is_float and not tile.indexed for tile in tiles)
    has_scalar = facts.target.generation >= 3
    return (Engine.VECTOR, Engine.SCALAR) if plain and has_scalar else ()


def binary_engine(facts: Facts) -> Engine:
    """tensor_tensor: power, and 32-bit integers in SBUF, on gpsimd; the rest on vector."""
    op = ALU[facts.attributes["op"]]
    generation = facts.target.generation
    if not op.runs_on(Engine.VECTOR, generation) and op.runs_on(Engine.GPSIMD, generation):
        return Engine.GPSIMD
    exact = op.integers and all_int32(facts) and not in_psum(facts)
    return Engine.GPSIMD if exact else Engine.VECTOR


def scalar_engine(facts: Facts) -> Engine:
    """tensor_scalar: rsqrt on gpsimd, the rest on vector."""
    ops = (facts.attributes["op0"], facts.attributes["op1"])
    return Engine.GPSIMD if "rsqrt" in ops else Engine.VECTOR


# memset


def fill_value(facts: Facts) -> Violation | None:
    """`value` has the kind of dst and is within its range; packed types take only 0.

    0.0 is accepted as the integer 0, because published kernels use it.
    """
    value, dtype = facts.attributes["value"], facts.tile("dst").dtype
    if value == 0 or dtype.kind == "float":
        return None
    if dtype.kind == "packed":
        text, hint = "a packed type takes 0 only", "load the packed data with `nisa.dma_copy`"
    elif isinstance(value, float):
        text = "which takes an int"
        hint = "pass an int, without a decimal point, or allocate `dst` as float32"
    elif not dtype.lowest <= value <= dtype.highest:
        text = f"which holds {int(dtype.lowest)} to {int(dtype.highest)}"
        hint = "use a value in that range, or a wider type for `dst`"
    else:
        return None
    return Violation(
        "fill-value", f"`value` is {shown(value)} and `dst` is {dtype.name}, {text}", "value", hint
    )


# tensor_scalar


def second_stage(facts: Facts) -> Violation | None:
    """`op1` and `operand1` come together; `operand0` is given if `op0` has two inputs."""
    op0, op1 = facts.attributes["op0"], facts.attributes["op1"]
    first, second = facts.operands["operand0"], facts.operands["operand1"]
    if ALU[op0].arity == 2 and first is None:
        return _missing("operand0", f"`op0` is {op0} and `operand0` is None")
    if op1 is None and second is not None:
        return _missing("op1", "`operand1` is given and `op1` is None")
    if op1 is not None and ALU[op1].arity == 2 and second is None:
        return _missing("operand1", f"`op1` is {op1} and `operand1` is None")
    return None


def _missing(name: str, text: str) -> Violation:
    return Violation("operand-missing", text, name, f"pass `{name}` as well")


def unary_operand(facts: Facts) -> Violation | None:
    """The operand of an operator with one input is None or 0."""
    for op, name in (("op0", "operand0"), ("op1", "operand1")):
        operator, value = facts.attributes[op], facts.operands[name]
        if operator is None or ALU[operator].arity == 2 or value is None:
            continue
        if isinstance(value, Tile) or value != 0:
            return Violation(
                "operand-missing",
                f"`{op}` is {operator}, which has one input, and `{name}` is {shown(value)}",
                name,
                f"pass None or 0 as `{name}`",
            )
    return None


def same_group(facts: Facts) -> Violation | None:
    """Both operators are arithmetic, or both are bitvec operators."""
    op0, op1 = facts.attributes["op0"], facts.attributes["op1"]
    if op1 is None or ALU[op0].group == ALU[op1].group:
        return None
    return Violation(
        "operator-mix",
        f"`op0` is {op0} ({ALU[op0].group}) and `op1` is {op1} ({ALU[op1].group}); "
        "they must be of the same group",
        "op1",
        "use two instructions",
    )


def scalar_operators(facts: Facts) -> Violation | None:
    """The engine has both operators; gpsimd has only rsqrt, v3's scalar engine three pairs."""
    op0, op1 = facts.attributes["op0"], facts.attributes["op1"]
    if facts.engine is Engine.GPSIMD and (op0, op1) != ("rsqrt", None):
        name = "op0" if op0 != "rsqrt" else "op1"
        return wrong_operator(name, ALU[facts.attributes[name]], "rsqrt alone, on gpsimd")
    if facts.engine is Engine.SCALAR and facts.target.generation < 4:
        return None if (op0, op1) in SCALAR_V3_PAIRS else _not_on_scalar(op0, op1)
    for name in ("op0", "op1"):
        op = facts.attributes[name]
        if op is not None and not has_operator(facts, ALU[op]):
            return no_operator(name, ALU[op], facts)
    return None


def _not_on_scalar(op0: str, op1: str | None) -> Violation:
    return Violation(
        "operator-not-supported",
        f"`op0` is {op0} and `op1` is {op1}; the scalar engine of trn2 does multiply, add, "
        "or multiply then add",
        "op0",
        "use `engine=nisa.engine.vector`",
    )


def scalar_operand_types(facts: Facts) -> Violation | None:
    """Vectors are float32 in arithmetic and integers in bitvec, where numbers are ints.

    If data, dst and the vectors are all 32-bit integers, operators that are exact on integers
    accept them, too: the reference names this case (address arithmetic) without describing it.
    """
    bitvec = ALU[facts.attributes["op0"]].group == "bitvec"
    ops = (facts.attributes["op0"], facts.attributes["op1"])
    exact = all_int32(facts) and all(op is None or ALU[op].integers for op in ops)
    for name in ("operand0", "operand1"):
        value = facts.operands[name]
        if value is None:
            continue
        wrong = _bitvec_operand(name, value) if bitvec else _number_operand(name, value, exact)
        if wrong is not None:
            return wrong
    return None


def _number_operand(name: str, value: object, exact: bool) -> Violation | None:
    if not isinstance(value, Tile) or exact or value.dtype.name == "float32":
        return None
    return not_float32(name, value)


def _bitvec_operand(name: str, value: object) -> Violation | None:
    if isinstance(value, int):
        return None
    if isinstance(value, Tile) and (value.dtype.is_integer or value.dtype.kind == "bool"):
        return None
    return Violation(
        "bitvec-dtype",
        f"`{name}` is {shown(value)}, but bitvec operators take integers",
        name,
        f"pass an int or an integer tile as `{name}`",
    )


# 32-bit integers


def inexact_tiles(facts: Facts, cores: int) -> Violation | None:
    """tensor_tensor: warn unless gpsimd runs it, the only engine exact on 32-bit integers."""
    op = ALU[facts.attributes["op"]]
    if not all_int32(facts) or not op.integers or op.name.startswith("logical_"):
        return None
    engine = facts.engine or binary_engine(facts)
    if engine is Engine.GPSIMD:
        return None
    reason = ", because of an operand in PSUM," if in_psum(facts) else ""
    return _inexact(
        f"the {engine.value} engine{reason} computes in float32: from 2**24 on, int32 is rounded"
    )


def inexact_constants(facts: Facts, cores: int) -> Violation | None:
    """tensor_scalar: warn of a number for 32-bit integers that float32 cannot represent."""
    if not all_int32(facts) or ALU[facts.attributes["op0"]].group == "bitvec":
        return None
    values = {name: facts.operands[name] for name in ("operand0", "operand1")}
    if any(isinstance(value, Tile) for value in values.values()):
        return None  # with a vector of integers, arithmetic is exact
    for name, value in values.items():
        if isinstance(value, int) and _digits(value) > EXACT_BITS:
            text = (
                f"`{name}` is {grouped(value)}, which is rounded, because arithmetic is in float32"
            )
            return _inexact(text)
    return None


def _inexact(text: str) -> Violation:
    hint = "nisa.tensor_tensor on gpsimd, without PSUM, is exact for 32-bit integers"
    return Violation("inexact-int32", text, "", hint)


def _digits(value: int) -> int:
    """Return the number of bits from the first to the last bit set."""
    return (abs(value) // (value & -value)).bit_length() if value else 0


# tensor_reduce


def trailing_axes(facts: Facts) -> Violation | None:
    """`axis` names the last dimensions of data, ascending and without the partition dimension.

    dst has one element for each group of elements that these dimensions span.
    """
    axes, data, dst = facts.attributes["axis"], facts.tile("data"), facts.tile("dst")
    rank = len(data.dims) + 1
    if 0 in axes:
        return _across_partitions(axes)
    if not axes or axes != tuple(range(max(1, rank - len(axes)), rank)):
        return Violation(
            "reduction-axis",
            f"`axis` is {shown_axes(axes)}; it must name the last free dimensions of `data`, "
            f"which {'is 1' if rank == 2 else f'are 1 to {rank - 1}'}",
            "axis",
            f"use `axis={rank - 1}`, or transpose first" if rank > 1 else "",
        )
    outer_dims = data.dims[: axes[0] - 1]
    remaining = 1
    for _, num in outer_dims:
        remaining *= num
    if dst.free == remaining:
        return None
    return Violation(
        "element-count-mismatch",
        f"`dst` has {dst.free} elements per partition; `data` reduced over {shown_axes(axes)} "
        f"has {remaining}",
        "dst",
        f"make `dst` a tile of shape [{data.partitions}, {remaining}]",
    )


def kept_partitions(facts: Facts) -> Violation | None:
    """dst has the partitions of data. (`trailing_axes` reports an `axis` that names them.)"""
    return None if 0 in facts.attributes["axis"] else _SAME_PARTITIONS(facts)


_SAME_PARTITIONS = same_partitions("dst", "data")


def _across_partitions(axes: tuple[int, ...]) -> Violation:
    return Violation(
        "reduction-axis",
        f"`axis` is {shown_axes(axes)}, and axis 0 is the partition dimension, across which the "
        "vector engine does not reduce",
        "axis",
        "reduce each row with `axis=1`; across partitions use `nisa.tensor_partition_reduce`, or "
        "`nisa.nc_matmul` with a `stationary` of ones",
    )


def shown_axes(axes: tuple[int, ...]) -> str:
    """Return axes as users write them."""
    return shown(axes[0]) if len(axes) == 1 else f"({', '.join(map(str, axes))[:60]})"


def negates_numbers(facts: Facts) -> Violation | None:
    """`negate` is used only with arithmetic operators."""
    op: Operator = ALU[facts.attributes["op"]]
    if not facts.attributes["negate"] or op.group == "arithmetic":
        return None
    return wrong_operator("op", op, "arithmetic where `negate` is True")


# bn_aggr


def triples(facts: Facts) -> Violation | None:
    """The length of data is a multiple of 3: (count, mean, variance x count)."""
    data = facts.tile("data")
    if data.free % 3 == 0:
        return None
    return Violation(
        "operand-shape",
        f"`data` has {data.free} elements per partition, but must have a multiple of 3",
        "data",
        "pass the complete output of `nisa.bn_stats`: 6 elements for each call",
    )
