"""Rows of the vector engine, including instructions that scalar or gpsimd may run instead.

Tiles are read and written as streams: per partition, the elements in the order of the
dimensions. Ranks may differ if the counts are equal.
"""

from __future__ import annotations

from nkic.base.text import grouped
from nkic.machine import costs
from nkic.machine.constraints import (
    all_int32,
    arithmetic,
    binary,
    elements,
    elementwise,
    engine_since,
    exactly,
    has_operator,
    integers_for_bitvec,
    no_operator,
    not_both_psum,
    not_float32,
    operators,
    packed_as_is,
    reducing,
    same_dtype,
    same_partitions,
    wrong_operator,
)
from nkic.machine.dtypes import DType
from nkic.machine.instructions.parts import (
    alu,
    flag,
    indirect_without,
    no_indirect_addresses,
    no_scatter_to_psum,
    optional,
    result,
    scalar,
    source,
)
from nkic.machine.operands import (
    Access,
    Attribute,
    AttributeKind,
    Depends,
    Facts,
    Operand,
    Row,
    Tile,
    Violation,
)
from nkic.machine.operators import ALU, Operator
from nkic.machine.rules import shown
from nkic.machine.targets import Buffer, Engine

# ---- Rules and engine choices of the vector engine's rows ---------------------------------------

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
            text = f"`{op}` is {operator}, which has one input, and `{name}` is {shown(value)}"
            return Violation("operand-missing", text, name, f"pass None or 0 as `{name}`")
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
    text = f"`{name}` is {shown(value)}, but bitvec operators take integers"
    return Violation("bitvec-dtype", text, name, f"pass an int or an integer tile as `{name}`")


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
    text = f"`data` has {data.free} elements per partition, but must have a multiple of 3"
    hint = "pass the complete output of `nisa.bn_stats`: 6 elements for each call"
    return Violation("operand-shape", text, "data", hint)


# ---- Warnings for integer constants whose value tensor_scalar changes ---------------------------

STAGES = (("op0", "operand0", "reverse0"), ("op1", "operand1", "reverse1"))


def changed_constants(facts: Facts, cores: int) -> Violation | None:
    """Warn of a constant that loses bits, shifts out every bit, or is rounded."""
    for op, name, reverse in STAGES:
        value, operator = facts.operands[name], ALU.get(facts.attributes[op])
        if type(value) is not int or operator is None or operator.arity != 2:
            continue
        data = facts.tile("data").dtype
        counts = operator.shifts and not facts.attributes[reverse]
        violation = _shifted_out(name, value, data) if counts else _cut(name, value, data)
        if violation is not None and (operator.group == "bitvec" or _in_integers(facts)):
            return violation
    return inexact_constants(facts, cores)


def _in_integers(facts: Facts) -> bool:
    """Return whether this is address arithmetic (a vector of integers), not float32."""
    operators = [facts.attributes[op] for op, _, _ in STAGES]
    vectors = any(isinstance(facts.operands[name], Tile) for _, name, _ in STAGES)
    exact = all(op is None or ALU[op].integers for op in operators)
    return vectors and exact and all_int32(facts)


def _shifted_out(name: str, count: int, data: DType) -> Violation | None:
    if 0 <= count < data.bits:
        return None
    return Violation(
        "shift-count",
        f"`{name}` is {count}, but elements of `data` have {data.bits} bits ({data.name}): every "
        "bit is shifted out, and the result is always 0",
        name,
        f"shift by 0 to {data.bits - 1}; for a negative count, shift the other way",
    )


def _cut(name: str, value: int, data: DType) -> Violation | None:
    lowest, highest = -(1 << data.bits - 1), (1 << data.bits) - 1
    if lowest <= value <= highest:
        return None
    return Violation(
        "constant-overflow",
        f"`{name}` is {value}, of which the {data.bits} bits of {data.name} hold the lowest only: "
        f"{value & highest}; they hold {lowest} to {highest}",
        name,
        f"use a constant from {lowest} to {highest}, or a wider type for `data`",
    )


# --------------------------------------------------------------------------------------------------

VECTOR = (Engine.VECTOR,)
COPYING = (Engine.VECTOR, Engine.SCALAR, Engine.GPSIMD)
FILLING = (Engine.VECTOR, Engine.GPSIMD)
BN_STATS_MAX = 512  # nki.language.tile_size.bn_stats_fmax
MODES = "Trainium2 architecture guide, Vector Engine Performance Mode"

ROWS = (
    Row(
        name="tensor_copy",
        opcode=40,
        moves=True,
        copies=True,
        maps=True,
        depends=Depends.ELEMENTWISE,
        doc="dst = src; the same bits if the types are equal, else converted through float32.",
        parameters=("dst", "src", "engine", "name"),
        operands=(result(indexed=True, packed=True), source("src", indexed=True, packed=True)),
        engines=COPYING,
        by_workload=copying_engines,
        cost=costs.copying("src"),
        rules=(
            elementwise("dst", "src"),
            packed_as_is,
            engine_since(
                Engine.SCALAR, 3, "use `nisa.activation` with `op=nl.copy`, or another engine"
            ),
            no_scatter_to_psum,
            indirect_without(Engine.GPSIMD, "vector"),
        ),
        source=f"nki.isa.tensor_copy; {MODES}",
    ),
    Row(
        name="memset",
        opcode=41,
        moves=True,
        doc="Every element of dst = value.",
        parameters=("dst", "value", "engine", "name"),
        operands=(result(packed=True),),
        attributes=(Attribute("value", AttributeKind.NUMBER, into="dst"),),
        engines=FILLING,
        default_engine=fill_engine,
        cost=costs.filling,
        rules=(fill_value,),
        source="nki.isa.memset; migration guide to NKI 0.3.0 (strict type matching)",
    ),
    Row(
        name="tensor_tensor",
        opcode=42,
        maps=True,
        first="data1",
        stages=(("op", "data2", ""),),
        depends=Depends.ELEMENTWISE,
        doc="dst = data1 op data2, element by element.",
        parameters=("dst", "data1", "data2", "op", "engine", "name"),
        operands=(result(indexed=True), source("data1", indexed=True), source("data2")),
        attributes=(alu(),),
        engines=FILLING,
        default_engine=binary_engine,
        cost=costs.two_tiles("data1", "data2"),
        rules=(
            elementwise("dst", "data1", "data2"),
            not_both_psum("data1", "data2"),
            binary("op"),
            integers_for_bitvec("op", "dst", "data1", "data2"),
        ),
        warn=inexact_tiles,
        source=f"nki.isa.tensor_tensor; NKI API common fields, math operators; {MODES}",
    ),
    Row(
        name="tensor_scalar",
        opcode=43,
        maps=True,
        first="data",
        stages=STAGES,
        depends=Depends.ELEMENTWISE,
        doc="dst = (data op0 operand0) op1 operand1, each operand a number or one per partition.",
        parameters=(
            *("dst", "data", "op0", "operand0", "reverse0"),
            *("op1", "operand1", "reverse1", "engine", "name"),
        ),
        operands=(
            result(indexed=True),
            source("data", indexed=True),
            scalar("operand0", optional=True),
            scalar("operand1", optional=True, default=None),
        ),
        attributes=(
            alu("op0"),
            flag("reverse0"),
            optional("op1", AttributeKind.ALU),
            flag("reverse1"),
        ),
        engines=COPYING,
        default_engine=scalar_engine,
        cost=costs.scalar_operands,
        rules=(
            elementwise("dst", "data"),
            same_partitions("data", "operand0", "operand1"),
            second_stage,
            unary_operand,
            same_group,
            engine_since(Engine.SCALAR, 3, "use `nisa.activation`, or another engine"),
            scalar_operators,
            integers_for_bitvec("op0", "dst", "data"),
            scalar_operand_types,
            no_scatter_to_psum,
            no_indirect_addresses,
        ),
        warn=changed_constants,
        source=f"nki.isa.tensor_scalar; NKI API common fields, engine selection; {MODES}",
    ),
    Row(
        name="scalar_tensor_tensor",
        opcode=44,
        maps=True,
        first="data",
        stages=STAGES,
        depends=Depends.ELEMENTWISE,
        doc="dst = (data op0 operand0) op1 operand1, operand1 a tile like data.",
        parameters=(
            *("dst", "data", "op0", "operand0", "op1", "operand1"),
            *("reverse0", "reverse1", "name"),
        ),
        operands=(result(), source("data"), scalar("operand0"), source("operand1")),
        attributes=(alu("op0"), alu("op1"), flag("reverse0"), flag("reverse1")),
        engines=VECTOR,
        cost=costs.scalar_then_tile,
        rules=(
            elementwise("dst", "data", "operand1"),
            same_partitions("data", "operand0"),
            not_both_psum("data", "operand1"),
            operators(("op0",), group="arithmetic"),
            arithmetic("op1"),
        ),
    ),
    Row(
        name="tensor_reduce",
        opcode=45,
        depends=Depends.BY_PARTITION,
        doc="Folds the last dimensions of data with op: R consecutive elements in the stream of "
        "data become one in the stream of dst.",
        parameters=("dst", "op", "data", "axis", "negate", "keepdims", "name"),
        # `axis` counts dimensions, so lower keeps those of data.
        operands=(result(indexed=True), source("data", indexed=True, keep_rank=True)),
        attributes=(alu(), Attribute("axis", AttributeKind.INTS), flag("negate"), flag("keepdims")),
        engines=VECTOR,
        cost=costs.reducing,
        rules=(
            kept_partitions,
            trailing_axes,
            reducing("op"),
            integers_for_bitvec("op", "dst", "data"),
            negates_numbers,
        ),
        source="nki.isa.tensor_reduce; NKI API common fields, legal reduction operators",
    ),
    Row(
        name="tensor_tensor_scan",
        opcode=46,
        depends=Depends.BY_PARTITION,
        doc="dst[i] = (data0[i] op0 dst[i - 1]) op1 data1[i], starting from initial.",
        operands=(result(), source("data0"), source("data1"), scalar("initial")),
        attributes=(alu("op0"), alu("op1"), flag("reverse0"), flag("reverse1")),
        engines=VECTOR,
        cost=costs.scanning,
        rules=(
            elementwise("dst", "data0", "data1"),
            same_partitions("dst", "initial"),
            not_both_psum("data0", "data1"),
            arithmetic("op0", "op1"),
        ),
    ),
    Row(
        name="bn_stats",
        opcode=47,
        depends=Depends.BY_PARTITION,
        doc="Count, mean and variance x count of data's even elements, then of its odd ones.",
        operands=(result(), source("data")),
        engines=VECTOR,
        cost=costs.per_element("data"),
        rules=(
            same_partitions("dst", "data"),
            elements("data", 1, BN_STATS_MAX),
            exactly("dst", 6, "count, mean and variance x count, twice"),
        ),
    ),
    Row(
        name="bn_aggr",
        opcode=48,
        depends=Depends.BY_PARTITION,
        doc="Mean and variance of all elements that the triples (count, mean, variance x count) "
        "in data summarise.",
        operands=(result(), source("data")),
        engines=VECTOR,
        cost=costs.per_element("data", 13 / 3),
        rules=(same_partitions("dst", "data"), triples, exactly("dst", 2, "mean and variance")),
    ),
    Row(
        name="reciprocal",
        opcode=49,
        maps=True,
        depends=Depends.ELEMENTWISE,
        doc="dst = 1 / data.",
        operands=(result(), source("data")),
        engines=VECTOR,
        cost=costs.per_element("data", 8),
        rules=(elementwise("dst", "data"),),
        source="nki.isa.reciprocal; NKI API common fields, engine selection (8 N cycles)",
    ),
    Row(
        name="tensor_copy_predicated",
        opcode=50,
        moves=True,
        depends=Depends.ELEMENTWISE,
        selects=("dst", "src"),
        doc="dst = src where predicate is not 0 (where it is 0, if reversed); else unchanged.",
        operands=(
            Operand("dst", Access.UPDATE, indexed=True),
            source("src", number=True, into="dst"),
            source("predicate", dtypes=frozenset({"uint8", "uint16", "uint32"}), indexed=True),
        ),
        attributes=(flag("reverse_pred"),),
        engines=VECTOR,
        cost=costs.predicated,
        rules=(
            elementwise("dst", "predicate", "src"),
            not_both_psum("src", "predicate"),
            same_dtype("dst", "src"),
        ),
    ),
    Row(
        name="max8",
        opcode=51,
        depends=Depends.BY_PARTITION,
        doc="The 8 largest elements of each partition of src, in descending order.",
        operands=(result(max_rank=2), source("src", max_rank=3)),
        engines=VECTOR,
        cost=costs.per_element("src"),
        rules=(
            same_partitions("dst", "src"),
            elements("src", 8, 16_384),
            exactly("dst", 8, "the 8 largest values"),
        ),
    ),
)
