"""Rows of the tensor engine: a 128 x 128 array that holds one matrix and streams the other."""

from __future__ import annotations

from nkic.base.profiles import Profile
from nkic.machine import costs
from nkic.machine.constraints import same_dtype, same_partitions
from nkic.machine.engines import Engine
from nkic.machine.facts import Facts
from nkic.machine.instructions import tensor_rules as rules
from nkic.machine.instructions.parts import choice, flag, optional, result, source
from nkic.machine.operands import PSUM, SBUF, Access, Attribute, AttributeKind, Depends, Row


def matmul_access(name: str, facts: Facts) -> Access | None:
    """Return the access to dst: an accumulating matmul updates it. Lower resolves None."""
    if name != "dst":
        return None
    return Access.UPDATE if facts.attributes["accumulate"] else Access.WRITE


ROWS = (
    Row(
        name="nc_matmul",
        opcode=30,
        accumulates="accumulate",
        pairs=("perf_mode", "double_row"),
        depends=Depends.PRODUCT,
        doc="dst = transpose(stationary) x moving, added to dst if accumulate is True.",
        parameters=(
            *("dst", "stationary", "moving", "is_stationary_onezero", "is_moving_onezero"),
            *("is_transpose", "accumulate", "tile_position", "tile_size", "perf_mode", "name"),
        ),
        # double_row pairs the rows of the first free dimension, so lower keeps the dimensions.
        operands=(
            result(buffers=PSUM, indexed=True, one_bank=True),
            *(
                source(name, buffers=SBUF, dtypes=rules.MATMUL_TYPES, keep_rank=True, indexed=True)
                for name in ("stationary", "moving")
            ),
        ),
        attributes=(
            flag("is_stationary_onezero"),
            flag("is_moving_onezero"),
            flag("is_transpose"),
            optional("accumulate", AttributeKind.BOOL, since=Profile.NKI_0_3),
            Attribute("tile_position", AttributeKind.INTS, default=()),
            Attribute("tile_size", AttributeKind.INTS, default=()),
            choice("perf_mode", "none", "none", "double_row", generation=3),
        ),
        engines=(Engine.TENSOR,),
        cost=costs.matmul,
        rules=(
            same_partitions("stationary", "moving"),
            rules.double_row,
            rules.matmul_sizes,
            rules.matmul_shape,
            rules.matmul_types,
            rules.matmul_result_type,
            rules.within_bank,
            rules.tiling,
            rules.indexed_matmul,
        ),
        access=matmul_access,
        warn=rules.slow_types,
        operations=rules.matmul_operations,
        transposing=rules.transposing_operations,
        source="nki.isa.nc_matmul; Trainium2 architecture guide, built-in transpose support",
    ),
    Row(
        name="nc_transpose",
        opcode=31,
        moves=True,
        depends=Depends.TRANSPOSED,
        doc="dst = data with partitions and (flattened) free dimensions exchanged.",
        parameters=("dst", "data", "engine", "name"),
        operands=(result(packed=True, one_bank=True), source("data", packed=True)),
        engines=(Engine.TENSOR, Engine.VECTOR),
        default_engine=rules.transpose_engine,
        cost=costs.transposing,
        transposing=rules.transposing_operations,
        rules=(
            rules.transposed_buffers,
            rules.transposed_size,
            rules.transposed_shape,
            same_dtype("dst", "data"),
        ),
        source="nki.isa.nc_transpose; release notes of NKI 0.4.0 (engine by buffer of dst)",
    ),
)
