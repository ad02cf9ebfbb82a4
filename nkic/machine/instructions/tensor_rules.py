"""Rules and engine choices of the tensor engine's rows."""

from __future__ import annotations

from nkic.machine.constraints import too_many
from nkic.machine.engines import Engine
from nkic.machine.facts import Facts, Tile
from nkic.machine.memory import PSUM_BANK_BYTES, Buffer
from nkic.machine.operands import Violation
from nkic.machine.patterns import reach
from nkic.machine.targets import Target

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
    return Violation(
        "dtype-not-supported",
        f"`dst` is {dst.name}; on {facts.target.name} it must be {' or '.join(allowed)}",
        "dst",
        "allocate `dst` as float32 and convert when you copy it to SBUF",
    )


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
        return Violation(
            "dtype-not-supported",
            f"`{name}` is {tile.dtype.name}; double_row takes 8-bit floats",
            name,
            "use float8_e4m3 or float8_e5m2, or leave out `perf_mode`",
        )
    pairs = tile.dims[0][1] if tile.dims else 1
    if pairs == 2:
        return None
    return Violation(
        "operand-shape",
        f"the first free dimension of `{name}` has {pairs} elements; double_row needs 2",
        name,
        f"arrange `{name}` as [partitions, 2, columns]",
    )


def _not_with_double_row(facts: Facts) -> Violation | None:
    columns = (facts.attributes["tile_size"] + (ARRAY, ARRAY))[1]
    if facts.attributes["is_transpose"]:
        conflict = "`is_transpose`"
    elif columns != ARRAY:
        conflict = f"a column tile of {columns}"
    else:
        return None
    return Violation(
        "matmul-mode",
        f"`perf_mode` is double_row, which cannot be combined with {conflict}",
        "perf_mode",
        "remove one of them",
    )


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
    if (dst.partitions, dst.free) == (data.free, data.partitions):
        return None
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
        "transpose smaller tiles"
        if limit == ARRAY
        else "put `dst` in PSUM, so that the tensor engine transposes up to [128, 128]",
    )


def transposed_buffers(facts: Facts) -> Violation | None:
    """The tensor engine reads SBUF and writes PSUM."""
    if facts.engine is not Engine.TENSOR or transpose_engine(facts) is Engine.TENSOR:
        return None
    name = "data" if facts.tile("data").buffer is Buffer.PSUM else "dst"
    required = "sbuf" if name == "data" else "psum"
    return Violation(
        "buffer-not-allowed",
        f"`{name}` is in {facts.tile(name).buffer.value}, but the tensor engine needs it in "
        f"{required}",
        name,
        "use `engine=nisa.engine.vector`, or another buffer",
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
