"""Rows of the vector engine, including instructions that scalar or gpsimd may run instead.

Tiles are read and written as streams: per partition, the elements in the order of the
dimensions. Ranks may differ if the counts are equal.
"""

from __future__ import annotations

from nkic.machine import costs
from nkic.machine.constraints import (
    arithmetic,
    binary,
    elements,
    elementwise,
    engine_since,
    exactly,
    integers_for_bitvec,
    not_both_psum,
    operators,
    packed_as_is,
    reducing,
    same_dtype,
    same_partitions,
)
from nkic.machine.engines import Engine
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
from nkic.machine.instructions.vector import integers, rules
from nkic.machine.operands import Access, Attribute, AttributeKind, Depends, Operand, Row

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
        operands=(
            result(indexed=True, packed=True),
            source("src", indexed=True, packed=True),
        ),
        engines=COPYING,
        by_workload=rules.copying_engines,
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
        default_engine=rules.fill_engine,
        cost=costs.filling,
        rules=(rules.fill_value,),
        source="nki.isa.memset; migration guide to NKI 0.3.0 (strict type matching)",
    ),
    Row(
        name="tensor_tensor",
        opcode=42,
        maps=True,
        depends=Depends.ELEMENTWISE,
        doc="dst = data1 op data2, element by element.",
        parameters=("dst", "data1", "data2", "op", "engine", "name"),
        operands=(result(indexed=True), source("data1", indexed=True), source("data2")),
        attributes=(alu(),),
        engines=FILLING,
        default_engine=rules.binary_engine,
        cost=costs.two_tiles("data1", "data2"),
        rules=(
            elementwise("dst", "data1", "data2"),
            not_both_psum("data1", "data2"),
            binary("op"),
            integers_for_bitvec("op", "dst", "data1", "data2"),
        ),
        warn=rules.inexact_tiles,
        source=f"nki.isa.tensor_tensor; NKI API common fields, math operators; {MODES}",
    ),
    Row(
        name="tensor_scalar",
        opcode=43,
        maps=True,
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
        default_engine=rules.scalar_engine,
        cost=costs.scalar_operands,
        rules=(
            elementwise("dst", "data"),
            same_partitions("data", "operand0", "operand1"),
            rules.second_stage,
            rules.unary_operand,
            rules.same_group,
            engine_since(Engine.SCALAR, 3, "use `nisa.activation`, or another engine"),
            rules.scalar_operators,
            integers_for_bitvec("op0", "dst", "data"),
            rules.scalar_operand_types,
            no_scatter_to_psum,
            no_indirect_addresses,
        ),
        warn=integers.changed_constants,
        source=f"nki.isa.tensor_scalar; NKI API common fields, engine selection; {MODES}",
    ),
    Row(
        name="scalar_tensor_tensor",
        opcode=44,
        maps=True,
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
        source="nki.isa.scalar_tensor_tensor",
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
            rules.kept_partitions,
            rules.trailing_axes,
            reducing("op"),
            integers_for_bitvec("op", "dst", "data"),
            rules.negates_numbers,
        ),
        source="nki.isa.tensor_reduce; NKI API common fields, legal reduction operators",
    ),
    Row(
        name="tensor_tensor_scan",
        opcode=46,
        depends=Depends.BY_PARTITION,
        doc="dst[i] = (data0[i] op0 dst[i - 1]) op1 data1[i], starting from initial.",
        parameters=(
            *("dst", "data0", "data1", "initial", "op0", "op1"),
            *("reverse0", "reverse1", "name"),
        ),
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
        source="nki.isa.tensor_tensor_scan",
    ),
    Row(
        name="bn_stats",
        opcode=47,
        depends=Depends.BY_PARTITION,
        doc="Count, mean and variance x count of data's even elements, then of its odd ones.",
        parameters=("dst", "data", "name"),
        operands=(result(), source("data")),
        engines=VECTOR,
        cost=costs.per_element("data"),
        rules=(
            same_partitions("dst", "data"),
            elements("data", 1, BN_STATS_MAX),
            exactly("dst", 6, "count, mean and variance x count, twice"),
        ),
        source="nki.isa.bn_stats",
    ),
    Row(
        name="bn_aggr",
        opcode=48,
        depends=Depends.BY_PARTITION,
        doc="Mean and variance of all elements that the triples (count, mean, variance x count) "
        "in data summarise.",
        parameters=("dst", "data", "name"),
        operands=(result(), source("data")),
        engines=VECTOR,
        cost=costs.per_element("data", 13 / 3),
        rules=(
            same_partitions("dst", "data"),
            rules.triples,
            exactly("dst", 2, "mean and variance"),
        ),
        source="nki.isa.bn_aggr",
    ),
    Row(
        name="reciprocal",
        opcode=49,
        maps=True,
        depends=Depends.ELEMENTWISE,
        doc="dst = 1 / data.",
        parameters=("dst", "data", "name"),
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
        doc="dst = src where predicate is not 0 (where it is 0, if reversed); else unchanged.",
        parameters=("dst", "src", "predicate", "reverse_pred", "name"),
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
        source="nki.isa.tensor_copy_predicated",
    ),
    Row(
        name="max8",
        opcode=51,
        depends=Depends.BY_PARTITION,
        doc="The 8 largest elements of each partition of src, in descending order.",
        parameters=("dst", "src", "name"),
        operands=(result(max_rank=2), source("src", max_rank=3)),
        engines=VECTOR,
        cost=costs.per_element("src"),
        rules=(
            same_partitions("dst", "src"),
            elements("src", 8, 16_384),
            exactly("dst", 8, "the 8 largest values"),
        ),
        source="nki.isa.max8",
    ),
)
