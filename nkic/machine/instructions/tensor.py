"""Rows of the tensor engine: a 128 x 128 array that holds one matrix and streams the other."""

from __future__ import annotations

from nkic.base.profiles import Profile
from nkic.machine import costs
from nkic.machine.constraints import same_dtype, same_partitions, too_many
from nkic.machine.instructions.parts import choice, flag, optional, result, source
from nkic.machine.operands import (
    PSUM,
    SBUF,
    Access,
    Attribute,
    AttributeKind,
    Depends,
    Facts,
    Row,
    Rule,
    Tile,
    Violation,
)
from nkic.machine.patterns import reach
from nkic.machine.targets import PSUM_BANK_BYTES, Buffer, Engine, Target

# ---- Rules and engine choices of the tensor engine's rows ---------------------------------------

ARRAY = 128  # rows and columns of processing elements
VECTOR_TRANSPOSE = 32  # rows and columns of the vector engine's largest transpose
WIDE_TYPES = frozenset({"float32", "tfloat32"})
FP8_TYPES = frozenset({"float8_e4m3", "float8_e5m2", "float8_e4m3fn"})
HALF_TYPES = frozenset({"float16", "bfloat16"})
MATMUL_TYPES = WIDE_TYPES | FP8_TYPES | HALF_TYPES
TILE_SIZES = {2: (64, 128), 3: (32, 64, 128), 4: (32, 64, 128)}  # by generation


def columns_of_factors(facts: Facts) -> tuple[int, int]:
    """Return the stationary and the moving columns, which double_row reads in pairs."""
    rows = 2 if facts.attributes.get("perf_mode") == "double_row" else 1
    return facts.tile("stationary").free // rows, facts.tile("moving").free // rows


# nc_matmul: shapes


def matmul_shape(facts: Facts) -> Violation | None:
    """dst is [M, N] for stationary [K, M] and moving [K, N]; free dimensions are flattened."""
    stationary_columns, moving_columns = columns_of_factors(facts)
    dst = facts.tile("dst")
    if stationary_columns > ARRAY or moving_columns > moving_limit(facts.target, dst):
        return None  # `matmul_sizes` reports it; no dst would fit
    if dst.partitions != stationary_columns:
        return Violation(
            "partition-mismatch",
            f"`dst` has {dst.partitions} partitions and `stationary` has "
            f"{stationary_columns} columns; they must be equal",
            "dst",
            f"make `dst` a tile of shape [{stationary_columns}, {moving_columns}]",
        )
    if dst.free != moving_columns:
        return Violation(
            "element-count-mismatch",
            f"`dst` has {dst.free} elements per partition and `moving` has "
            f"{moving_columns} columns; they must be equal",
            "dst",
            f"make `dst` a tile of shape [{stationary_columns}, {moving_columns}]",
        )
    return None


def matmul_sizes(facts: Facts) -> Violation | None:
    """Columns are within the limits of the array and of PSUM."""
    stationary_columns, moving_columns = columns_of_factors(facts)
    limit = moving_limit(facts.target, facts.tile("dst"))
    if stationary_columns > ARRAY:
        return too_many("stationary", stationary_columns, ARRAY, facts)
    return too_many("moving", moving_columns, limit, facts) if moving_columns > limit else None


def moving_limit(target: Target, dst: Tile) -> int:
    """Return the limit on columns of a moving operand, which doubles for 16-bit results in PSUM."""
    wide = target.generation >= 4 and dst.dtype.size == 2
    return target.matmul_free * 2 if wide else target.matmul_free


def within_bank(facts: Facts) -> Violation | None:
    """Before v4, dst is within one PSUM bank. (`matmul_sizes` reports too many elements.)"""
    dst = facts.tile("dst")
    size = dst.dtype.size
    used = reach(dst.dims) * size
    if facts.target.generation >= 4 or used <= PSUM_BANK_BYTES or dst.free * size > PSUM_BANK_BYTES:
        return None
    return Violation(
        "psum-bank",
        f"`dst` spans {used} bytes per partition; on {facts.target.name} it must fit in one "
        f"PSUM bank of {PSUM_BANK_BYTES}",
        "dst",
        f"write at most {PSUM_BANK_BYTES // size} {dst.dtype.name} elements without gaps",
    )


# nc_matmul: types


def matmul_types(facts: Facts) -> Violation | None:
    """32-bit floats are not mixed with others, nor the two kinds of 8-bit e4m3."""
    names = (facts.tile("stationary").dtype.name, facts.tile("moving").dtype.name)
    if set(names) == {"float8_e4m3", "float8_e4m3fn"}:
        hint = "use one of the two formats for both"
    elif (names[0] in WIDE_TYPES) != (names[1] in WIDE_TYPES):
        hint = "copy the 32-bit operand into a bfloat16 tile, or the other into a float32 tile"
    else:
        return None
    return Violation(
        "dtype-mismatch",
        f"`stationary` is {names[0]} and `moving` is {names[1]}, which cannot be multiplied",
        "moving",
        hint,
    )


def matmul_result_type(facts: Facts) -> Violation | None:
    """dst is float32; bfloat16 on v4; from v3 on, a transpose keeps its operand's type."""
    dst = facts.tile("dst").dtype
    allowed = result_types(facts)
    if dst.name in allowed:
        return None
    text = f"`dst` is {dst.name}; on {facts.target.name} it must be {' or '.join(allowed)}"
    hint = "allocate `dst` as float32 and convert when you copy it to SBUF"
    return Violation("dtype-not-supported", text, "dst", hint)


def result_types(facts: Facts) -> tuple[str, ...]:
    """Return the types that a matmul may write to PSUM. 8-bit transposes write 16-bit elements."""
    allowed = ["float32"]
    if facts.target.generation >= 4:
        allowed.append("bfloat16")
    if facts.attributes.get("is_transpose") and facts.target.generation >= 3:
        operand = facts.tile("stationary").dtype
        allowed += ("bfloat16", "float16") if operand.size == 1 else (operand.name,)
    return tuple(dict.fromkeys(allowed))


def slow_types(facts: Facts, cores: int) -> Violation | None:
    """Warn of float32, which takes several passes, except for operands of ones and zeros."""
    if any(facts.tile(name).dtype.name != "float32" for name in ("stationary", "moving")):
        return None
    marks = ("is_transpose", "is_stationary_onezero", "is_moving_onezero")
    if any(facts.attributes[name] for name in marks):
        return None
    return Violation(
        "float32-matmul",
        "float32 takes 4 passes through the tensor engine",
        "moving",
        "bfloat16 takes 1: copy stationary and moving to bfloat16 where that precision is "
        "sufficient",
    )


# nc_matmul: modes


def double_row(facts: Facts) -> Violation | None:
    """double_row has 8-bit floats in pairs of rows: two in each processing element."""
    if facts.attributes["perf_mode"] != "double_row":
        return None
    for name in ("stationary", "moving"):
        if (wrong := _not_paired(name, facts.tile(name))) is not None:
            return wrong
    return _not_with_double_row(facts)


def _not_paired(name: str, tile: Tile) -> Violation | None:
    if tile.dtype.name not in FP8_TYPES:
        text = f"`{name}` is {tile.dtype.name}; double_row takes 8-bit floats"
        hint = "use float8_e4m3 or float8_e5m2, or leave out `perf_mode`"
        return Violation("dtype-not-supported", text, name, hint)
    pairs = tile.dims[0][1] if tile.dims else 1
    if pairs == 2:
        return None
    text = f"the first free dimension of `{name}` has {pairs} elements; double_row needs 2"
    return Violation("operand-shape", text, name, f"arrange `{name}` as [partitions, 2, columns]")


def _not_with_double_row(facts: Facts) -> Violation | None:
    columns = (facts.attributes["tile_size"] + (ARRAY, ARRAY))[1]
    if facts.attributes["is_transpose"]:
        conflict = "`is_transpose`"
    elif columns != ARRAY:
        conflict = f"a column tile of {columns}"
    else:
        return None
    text = f"`perf_mode` is double_row, which cannot be combined with {conflict}"
    return Violation("matmul-mode", text, "perf_mode", "remove one of them")


def tiling(facts: Facts) -> Violation | None:
    """The array tile has a supported size, and a position that is a multiple of it."""
    position = facts.attributes["tile_position"] or ()
    size = facts.attributes["tile_size"] or ()
    if not position and not size:
        return None
    if len(position) != 2 or len(size) != 2:
        return _bad_tiling(
            f"`tile_position` has {len(position)} numbers and `tile_size` has {len(size)}; "
            "both need a row and a column"
        )
    allowed = TILE_SIZES[facts.target.generation]
    for axis, at, extent in zip(("row", "column"), position, size, strict=True):
        if extent not in allowed:
            return _bad_tiling(
                f"the {axis} size is {extent}; {facts.target.name} has "
                f"{', '.join(map(str, allowed))}"
            )
        if at % extent or not 0 <= at < ARRAY:
            return _bad_tiling(
                f"the {axis} position is {at}; it must be a multiple of {extent} below {ARRAY}"
            )
    return _beyond_tile(facts, *size)


def _bad_tiling(text: str) -> Violation:
    return Violation(
        "matmul-mode",
        text,
        "tile_size",
        "leave out both, or pass, for example, `tile_position=(64, 0), tile_size=(64, 128)`",
    )


def _beyond_tile(facts: Facts, rows: int, columns: int) -> Violation | None:
    stationary_columns, _ = columns_of_factors(facts)
    used = facts.tile("stationary").partitions
    if used > rows:
        return _bad_tiling(f"`stationary` has {used} partitions and the tile {rows} rows")
    if stationary_columns > columns:
        return _bad_tiling(f"`stationary` has {stationary_columns} columns and the tile {columns}")
    return None


def indexed_matmul(facts: Facts) -> Violation | None:
    """`.indirect()` is not used for a transpose's moving operand, a tiled or a 32-bit one."""
    position = facts.attributes["tile_position"]
    for name, tile in facts.tiles.items():
        if not tile.indexed:
            continue
        if name == "moving" and facts.attributes["is_transpose"]:
            text = "is the moving operand of a transpose"
        elif any(position):
            text = f"is used at the array position {position[:2]}"
        elif name != "dst" and tile.dtype.name in WIDE_TYPES:
            text = f"is {tile.dtype.name}"
        else:
            continue
        return Violation(
            "indexed-operand",
            f"`{name}` uses `.indirect()` and {text}, which the tensor engine does not support",
            name,
            "copy the elements into a tile with `nisa.tensor_copy` first",
        )
    return None


# nc_transpose


def transpose_engine(facts: Facts) -> Engine:
    """Return tensor from SBUF to PSUM, vector otherwise (release notes of NKI 0.4.0)."""
    from_sbuf = facts.tile("data").buffer is Buffer.SBUF
    to_psum = facts.tile("dst").buffer is Buffer.PSUM
    return Engine.TENSOR if from_sbuf and to_psum else Engine.VECTOR


def transposed_shape(facts: Facts) -> Violation | None:
    """dst has the partitions of data as columns, and its columns as partitions."""
    data, dst = facts.tile("data"), facts.tile("dst")
    if data.free > ARRAY or (dst.partitions, dst.free) == (data.free, data.partitions):
        return None  # no tile has so many partitions: see below
    return Violation(
        "operand-shape",
        f"`dst` is [{dst.partitions}, {dst.free}], but `data` transposed is "
        f"[{data.free}, {data.partitions}]",
        "dst",
        f"make `dst` a tile of shape [{data.free}, {data.partitions}]",
    )


def transposed_size(facts: Facts) -> Violation | None:
    """data is at most 128 x 128 on the tensor engine, 32 x 32 on the vector engine."""
    data = facts.tile("data")
    limit = ARRAY if facts.engine is Engine.TENSOR else VECTOR_TRANSPOSE
    if data.partitions <= limit and data.free <= limit:
        return None
    engine = facts.engine.value if facts.engine else ""
    return Violation(
        "tile-size",
        f"`data` is [{data.partitions}, {data.free}]; the {engine} engine transposes at most "
        f"[{limit}, {limit}]",
        "data",
        f"transpose {limit} columns of `data` at a time"
        if limit == ARRAY
        else "put `dst` in PSUM, so that the tensor engine transposes up to [128, 128]",
    )


def transposed_buffers(facts: Facts) -> Violation | None:
    """The tensor engine reads SBUF and writes PSUM."""
    if facts.engine is not Engine.TENSOR or transpose_engine(facts) is Engine.TENSOR:
        return None
    data = facts.tile("data")
    name, required = ("data", "sbuf") if data.buffer is Buffer.PSUM else ("dst", "psum")
    hint = f"put `{name}` in {required.upper()}"
    if max(data.partitions, data.free) <= VECTOR_TRANSPOSE:
        hint = f"use `engine=nisa.engine.vector`, or {hint}"
    return Violation(
        "buffer-not-allowed",
        f"`{name}` is in {facts.tile(name).buffer.value}, but the tensor engine needs it in "
        f"{required}",
        name,
        hint,
    )


def matmul_operations(facts: Facts) -> int:
    """Return the multiplications and additions of a product: one of each per pair of elements.

    A transpose, which multiplies by an identity, is not arithmetic of the kernel: 0. All elements
    of paired rows and of packed elements count.
    """
    return 0 if facts.attributes.get("is_transpose") else _products(facts)


def transposing_operations(facts: Facts) -> int:
    """Return the same of a product with an identity, which only moves data; 0 for others.

    A transpose on the tensor engine is such a product of its data (`nki.isa.nc_transpose`).
    """
    data = facts.maybe("data")
    if data is not None:
        on_tensor = facts.engine is Engine.TENSOR
        return 2 * data.partitions * data.partitions * data.free if on_tensor else 0
    return _products(facts) if facts.attributes["is_transpose"] else 0


def _products(facts: Facts) -> int:
    stationary, moving = facts.tile("stationary"), facts.tile("moving")
    pairs = 2 if facts.attributes.get("perf_mode") == "double_row" else 1
    lanes = stationary.dtype.lanes
    return 2 * stationary.partitions * lanes * stationary.free * moving.free // pairs


# --------------------------------------------------------------------------------------------------


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
        # double_row pairs the rows of the first free dimension, so lower keeps the dimensions.
        operands=(
            result(buffers=PSUM, indexed=True, one_bank=True),
            *(
                source(name, buffers=SBUF, dtypes=MATMUL_TYPES, keep_rank=True, indexed=True)
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
            double_row,
            matmul_sizes,
            matmul_shape,
            matmul_types,
            matmul_result_type,
            within_bank,
            tiling,
            indexed_matmul,
        ),
        access=matmul_access,
        warn=slow_types,
        operations=matmul_operations,
        transposing=transposing_operations,
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
        default_engine=transpose_engine,
        cost=costs.transposing,
        transposing=transposing_operations,
        rules=(transposed_buffers, transposed_size, transposed_shape, same_dtype("dst", "data")),
        source="nki.isa.nc_transpose; release notes of NKI 0.4.0 (engine by buffer of dst)",
    ),
)


# ---- Rows of the microscaling formats (OCP MX), from NeuronCore-v4 on ---------------------------
# A group of 32 elements has one scale: 8 partitions with one packed element of four each. The
# scales of partitions 32 q to 32 q + 31 are in four partitions of the same quadrant q, starting
# at 0, 4, 8 or 12, so that the scales of four tiles fit into one.

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
        text = f"`{name}` has {count} partitions, which must be a multiple of {QUADRANT}"
        hint = f"pad `{name}` with zeros to whole quadrants of {QUADRANT} partitions"
        return Violation("operand-shape", text, name, hint)

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
        text = f"`src` has {src.free} elements per partition, which must be a multiple of {LANES}"
        hint = f"pad `src` with zeros to {-(-src.free // LANES) * LANES}"
        return Violation("operand-shape", text, "src", hint)
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
    text = f"`stationary` has {columns} columns, which must be even"
    hint = "pad `stationary` with one column of zeros"
    return Violation("operand-shape", text, "stationary", hint)


def rows_only(facts: Facts) -> Violation | None:
    """The array is tiled by rows, not by columns."""
    size: tuple[int, ...] = facts.attributes["tile_size"] or ()
    if len(size) < 2 or size[1] == ARRAY:
        return None
    text = f"the column size is {size[1]}, but must be {ARRAY}: nc_matmul_mx is tiled by rows only"
    hint = "pass, for example, `tile_position=(64, 0), tile_size=(64, 128)`"
    return Violation("matmul-mode", text, "tile_size", hint)


def indexed_together(name: str, scale: str) -> Rule:
    """Data and scales are both gathered by the same index, or neither is."""

    def rule(facts: Facts) -> Violation | None:
        data, scales = facts.tile(name), facts.tile(scale)
        same_index = not data.indexed or data.offsets == scales.offsets
        if data.indexed == scales.indexed and same_index:
            return None
        text = f"`{name}` and `{scale}` must both use `.indirect()` with the same index, or neither"
        hint = f"pass the index of `{name}` for `{scale}` too"
        return Violation("indexed-operand", text, scale, hint)

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


MX_ROWS = (
    Row(
        name="quantize_mx",
        opcode=66,
        depends=Depends.QUANTIZED,
        doc="dst = src divided by its group's power of two, rounded to 8 bits; dst_scale = the "
        "powers. Four consecutive elements are packed into one.",
        parameters=("dst", "src", "dst_scale", "name"),
        operands=(
            result(buffers=SBUF, dtypes=PACKED_FP8, packed=True),
            source("src", buffers=SBUF, dtypes=HALF_TYPES),
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
            matmul_sizes,
            even_columns,
            matmul_shape,
            tiling,
            rows_only,
            scales_of("stationary", "stationary_scale"),
            scales_of("moving", "moving_scale"),
            indexed_together("stationary", "stationary_scale"),
            indexed_together("moving", "moving_scale"),
            indexed_untiled,
        ),
        access=matmul_access,
        operations=matmul_operations,
        generation=4,
        source="nki.isa.nc_matmul_mx; MXFP matrix multiplication guide, data and scale tensor",
    ),
)
