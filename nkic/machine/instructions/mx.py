"""Rows of the microscaling formats (OCP MX), from NeuronCore-v4 on.

A group of 32 elements has one scale: 8 partitions with one packed element of four each. The
scales of partitions 32 q to 32 q + 31 are in four partitions of the same quadrant q, starting
at 0, 4, 8 or 12, so that the scales of four tiles fit into one.
"""

from __future__ import annotations

from nkic.base.profiles import Profile
from nkic.machine import costs
from nkic.machine.constraints import same_partitions
from nkic.machine.engines import Engine
from nkic.machine.facts import Facts, Tile
from nkic.machine.instructions import tensor_rules
from nkic.machine.instructions.parts import optional, result, source
from nkic.machine.instructions.tensor import matmul_access
from nkic.machine.operands import (
    PSUM,
    SBUF,
    Attribute,
    AttributeKind,
    Depends,
    Row,
    Rule,
    Violation,
)

QUADRANT = 32  # partitions
GROUP = 8  # partitions of one group
SCALES_PER_QUADRANT = QUADRANT // GROUP
LANES = 4  # elements of one packed element
PACKED_FP8 = frozenset({"float8_e4m3fn_x4", "float8_e5m2_x4"})
PACKED = PACKED_FP8 | {"float4_e2m1fn_x4"}
SCALES = frozenset({"float8_e8m0fnu", "uint8"})
SCALE_STARTS = (0, 4, 8, 12)  # within a quadrant


def whole_quadrants(name: str) -> Rule:
    """The number of partitions is a multiple of 32."""

    def rule(facts: Facts) -> Violation | None:
        count = facts.tile(name).partitions
        if count % QUADRANT == 0:
            return None
        return Violation(
            "operand-shape",
            f"`{name}` has {count} partitions, which must be a multiple of {QUADRANT}",
            name,
            f"pad `{name}` with zeros to whole quadrants of {QUADRANT} partitions",
        )

    return rule


def scales_of(name: str, scale: str) -> Rule:
    """Each 8 packed elements of `name` have one scale, at the expected partition."""

    def rule(facts: Facts) -> Violation | None:
        data, scales = facts.tile(name), facts.tile(scale)
        if scales.free != data.free:
            return _columns(name, data, scale, scales)
        required = scale_partitions(data.partitions)
        if scales.partitions < required:
            return _too_few_partitions(name, data, scale, scales)
        if scales.start in [data.start // QUADRANT * QUADRANT + at for at in SCALE_STARTS]:
            return None
        return _wrong_start(name, data, scale, scales)

    return rule


def scale_partitions(partitions: int) -> int:
    """Return the number of partitions from the first scale to the last."""
    return max(0, partitions // QUADRANT - 1) * QUADRANT + QUADRANT // GROUP


def _columns(name: str, data: Tile, scale: str, scales: Tile) -> Violation:
    return Violation(
        "element-count-mismatch",
        f"`{scale}` has {scales.free} elements per partition and `{name}` has {data.free}; "
        "they must be equal",
        scale,
        f"slice `{scale}` to {data.free} elements per partition",
    )


def _too_few_partitions(name: str, data: Tile, scale: str, scales: Tile) -> Violation:
    required = scale_partitions(data.partitions)
    return Violation(
        "operand-shape",
        f"`{scale}` has {scales.partitions} partitions; the scales of {data.partitions} "
        f"partitions of `{name}` are spread over {required}",
        scale,
        f"make `{scale}` a tile of {data.partitions} partitions",
    )


def _wrong_start(name: str, data: Tile, scale: str, scales: Tile) -> Violation:
    return Violation(
        "operand-shape",
        f"`{scale}` starts at partition {scales.start} and `{name}` at {data.start}; scales start "
        "0, 4, 8 or 12 partitions into the same quadrant of 32",
        scale,
        f"slice `{scale}` so that it starts at one of these partitions",
    )


def quartered(facts: Facts) -> Violation | None:
    """Four elements of src are packed into one of dst."""
    src, dst = facts.tile("src"), facts.tile("dst")
    if src.free % LANES:
        return Violation(
            "operand-shape",
            f"`src` has {src.free} elements per partition, which must be a multiple of {LANES}",
            "src",
            f"pad `src` with zeros to {-(-src.free // LANES) * LANES}",
        )
    if dst.free == src.free // LANES:
        return None
    return Violation(
        "element-count-mismatch",
        f"`dst` has {dst.free} elements per partition; {src.free} of `src` are packed into "
        f"{src.free // LANES}",
        "dst",
        f"make `dst` a tile of shape [{src.partitions}, {src.free // LANES}]",
    )


def even_columns(facts: Facts) -> Violation | None:
    """The number of stationary columns is even: the array reads them in pairs."""
    columns = facts.tile("stationary").free
    if columns % 2 == 0:
        return None
    return Violation(
        "operand-shape",
        f"`stationary` has {columns} columns, which must be even",
        "stationary",
        "pad `stationary` with one column of zeros",
    )


def rows_only(facts: Facts) -> Violation | None:
    """The array is tiled by rows, not by columns."""
    size: tuple[int, ...] = facts.attributes["tile_size"] or ()
    if len(size) < 2 or size[1] == tensor_rules.ARRAY:
        return None
    return Violation(
        "matmul-mode",
        f"the column size is {size[1]}, but must be {tensor_rules.ARRAY}: nc_matmul_mx is tiled "
        "by rows only",
        "tile_size",
        "pass, for example, `tile_position=(64, 0), tile_size=(64, 128)`",
    )


def indexed_together(name: str, scale: str) -> Rule:
    """Data and scales are both gathered by the same index, or neither is."""

    def rule(facts: Facts) -> Violation | None:
        data, scales = facts.tile(name), facts.tile(scale)
        same_index = not data.indexed or data.offsets == scales.offsets
        if data.indexed == scales.indexed and same_index:
            return None
        return Violation(
            "indexed-operand",
            f"`{name}` and `{scale}` must both use `.indirect()` with the same index, or neither",
            scale,
            f"pass the index of `{name}` for `{scale}` too",
        )

    return rule


def indexed_untiled(facts: Facts) -> Violation | None:
    """`.indirect()` operands use the whole array."""
    position = facts.attributes["tile_position"] or ()
    indexed = [name for name, tile in facts.tiles.items() if tile.indexed]
    if not indexed or not any(position):
        return None
    return Violation(
        "indexed-operand",
        f"`{indexed[0]}` uses `.indirect()` at the array position {position[:2]}, which the "
        "tensor engine does not support",
        indexed[0],
        "leave out `tile_position`",
    )


ROWS = (
    Row(
        name="quantize_mx",
        opcode=66,
        depends=Depends.QUANTIZED,
        doc="dst = src divided by its group's power of two, rounded to 8 bits; dst_scale = the "
        "powers. Four consecutive elements are packed into one.",
        parameters=("dst", "src", "dst_scale", "name"),
        operands=(
            result(buffers=SBUF, dtypes=PACKED_FP8, packed=True),
            source("src", buffers=SBUF, dtypes=tensor_rules.HALF_TYPES),
            result("dst_scale", buffers=SBUF, dtypes=SCALES, scales=True),
        ),
        attributes=(
            # Before NKI 0.5: the scale of OCP's sample conversion, which clamps (release notes).
            Attribute("headroom", AttributeKind.BOOL, True, since=Profile.NKI_0_5, former=False),
        ),
        engines=(Engine.VECTOR,),
        # Four elements per cycle, by the Trainium3 architecture guide.
        cost=costs.per_element("src", 1 / LANES, basis=costs.NEW_IN_V4),
        rules=(
            whole_quadrants("src"),
            same_partitions("src", "dst"),
            quartered,
            scales_of("dst", "dst_scale"),
        ),
        generation=4,
        source="nki.isa.quantize_mx; MXFP matrix multiplication guide, scale tensor",
    ),
    Row(
        name="nc_matmul_mx",
        opcode=32,
        accumulates="accumulate",
        depends=Depends.PRODUCT,
        doc="dst = transpose(stationary) x moving, each element multiplied by its group's scale; "
        "the four elements of a packed one are contracted. Added to dst if accumulate is True.",
        parameters=(
            *("dst", "stationary", "moving", "stationary_scale", "moving_scale"),
            *("tile_position", "tile_size", "accumulate", "name"),
        ),
        operands=(
            result(buffers=PSUM, dtypes=frozenset({"float32", "bfloat16"}), indexed=True),
            source("stationary", buffers=SBUF, dtypes=PACKED, packed=True, indexed=True),
            source("moving", buffers=SBUF, dtypes=PACKED, packed=True, indexed=True),
            source("stationary_scale", buffers=SBUF, dtypes=SCALES, scales=True, indexed=True),
            source("moving_scale", buffers=SBUF, dtypes=SCALES, scales=True, indexed=True),
        ),
        attributes=(
            optional("tile_position", AttributeKind.INTS),
            optional("tile_size", AttributeKind.INTS),
            optional("accumulate", AttributeKind.BOOL, since=Profile.NKI_0_3),
        ),
        engines=(Engine.TENSOR,),
        # Four times the work of a product of 16-bit floats in the same time: one pass.
        cost=costs.matmul,
        rules=(
            whole_quadrants("stationary"),
            same_partitions("stationary", "moving"),
            tensor_rules.matmul_sizes,
            even_columns,
            tensor_rules.matmul_shape,
            tensor_rules.tiling,
            rows_only,
            scales_of("stationary", "stationary_scale"),
            scales_of("moving", "moving_scale"),
            indexed_together("stationary", "stationary_scale"),
            indexed_together("moving", "moving_scale"),
            indexed_untiled,
        ),
        access=matmul_access,
        operations=tensor_rules.matmul_operations,
        generation=4,
        source="nki.isa.nc_matmul_mx; MXFP matrix multiplication guide, data and scale tensor",
    ),
)
