"""Checks that a tile suits its operand: memory, type, partitions, access pattern."""

from __future__ import annotations

from collections.abc import Iterator

from nkic.machine.operands import ON_CHIP, Facts, Operand, Row, Tile, Violation
from nkic.machine.patterns import MAX_NUM, MAX_STEP, Dims, encodable, merged
from nkic.machine.targets import MAX_RANK, PARTITIONS, TARGETS, Buffer, Target

MAX_FREE = 65_536  # elements per partition that one instruction streams
AS_INT32 = (
    "make it nl.int32, an input before the call: `.astype(np.int32)`, of PyTorch "
    "`.to(torch.int32)`; nl.int64 is for nisa.scalar_load, and moved by nisa.dma_copy"
)
V4_TYPES = frozenset(
    {
        *("float8_e4m3fn", "float8_e8m0fnu"),
        *("float8_e4m3fn_x4", "float8_e5m2_x4", "float4_e2m1fn_x4"),
    }
)


def wrong_tiles(row: Row, facts: Facts) -> Iterator[Violation]:
    """Yield at most one error per tile: the first of memory, type, size, partitions and pattern."""
    streams, operands = row.streams, facts.operands
    for operand in row.operands:
        tile = operands.get(operand.name)
        if type(tile) is not Tile:
            continue
        wrong = _wrong_memory(operand, tile)
        if wrong is None and tile.buffer in ON_CHIP:
            wrong = _wrong_partitions(operand, tile)
        if wrong is None and streams:
            wrong = _wrong_access(operand, tile, facts.target)
        elif wrong is None and len(tile.dims) > MAX_RANK:
            wrong = _wrong_rank(operand, tile)
        if wrong is not None:
            yield wrong


def first_target(generation: int) -> str:
    return next(t.name for t in TARGETS.values() if t.generation >= generation)


def compile_for(target: str) -> str:
    return f"compile with `--target {target}`, in Python with NEURON_PLATFORM_TARGET_OVERRIDE"


def _wrong_memory(operand: Operand, tile: Tile) -> Violation | None:
    if tile.buffer not in operand.buffers:
        return _unreachable(operand, tile)
    if operand.dtypes and tile.dtype.name not in operand.dtypes:
        return _bad_dtype(operand, tile)
    if tile.dtype.kind == "packed" and not operand.packed:
        return _is_packed(operand, tile)
    if tile.dtype.is_wide and not operand.wide:
        return _is_wide(operand, tile)
    for _, num in tile.dims:
        if num < 1:
            return _empty(operand, tile)
    if operand.column and tile.free != 1:
        return _not_a_column(operand, tile)
    if operand.max_rank and _rank(tile) > operand.max_rank:
        return _too_many_dimensions(operand, tile)
    if tile.indexed and not (operand.indexed and tile.dims):
        return _not_indexable(operand)
    return None


def _wrong_partitions(operand: Operand, tile: Tile) -> Violation | None:
    if tile.partitions < 1:
        return _empty(operand, tile)
    if tile.partitions > PARTITIONS:
        return _too_tall(operand, tile)
    if not 0 <= tile.start <= PARTITIONS - tile.partitions:
        return _beyond_last_partition(operand, tile)
    return None


def _wrong_access(operand: Operand, tile: Tile, target: Target) -> Violation | None:
    """Check the constraints of compute engines, which DMA does not have."""
    anywhere = tile.start == 0 or operand.scales
    if not anywhere and tile.start not in start_partitions(tile.partitions):
        return _bad_start(operand, tile)
    if len(tile.dims) > 1 and tile.free > MAX_FREE:
        return _too_long(operand, tile)
    if not encodable(tile.dims, operand.max_dims):
        dims = tile.dims if operand.keep_rank else merged(tile.dims, MAX_NUM)
        if not encodable(dims, operand.max_dims):
            return _bad_pattern(operand, dims)
    if target.generation < 4 and tile.dtype.name in V4_TYPES:
        return type_too_new(operand.name, tile, target)
    if target.generation < 4 and tile.indexed:
        return _index_too_new(operand, target)
    return None


def _wrong_rank(operand: Operand, tile: Tile) -> Violation | None:
    """Check that the pattern of a transfer has no more dimensions than a file can hold."""
    kept = operand.keep_rank or (tile.dynamic and not tile.on_chip)
    dims = tile.dims if kept else merged(tile.dims)
    if len(dims) <= MAX_RANK:
        return None
    text = f"`{operand.name}` needs {len(dims)} dimensions; the limit is {MAX_RANK}"
    hint = "use several instructions, each over a part of the tensor"
    return Violation("access-pattern", text, operand.name, hint)


def start_partitions(partitions: int) -> tuple[int, ...]:
    """Return the partitions at which a compute engine's access to `partitions` partitions may
    start.
    """
    if partitions > 64:
        return (0,)
    return (0, 64) if partitions > 32 else (0, 32, 64, 96)


def _unreachable(operand: Operand, tile: Tile) -> Violation:
    takes_hbm = Buffer.HBM in operand.buffers  # most operands accept private and shared HBM alike
    names = sorted(b.value for b in operand.buffers if not (takes_hbm and b is Buffer.SHARED_HBM))
    text = f"`{operand.name}` is in {tile.buffer.value}, but must be in {' or '.join(names)}"
    return Violation("buffer-not-allowed", text, operand.name, _copy_advice(operand, tile))


def _copy_advice(operand: Operand, tile: Tile) -> str:
    copy = "`nisa.tensor_copy`" if tile.on_chip and Buffer.PSUM in operand.buffers else ""
    copy = copy or ("`nisa.tensor_copy`" if tile.buffer is Buffer.PSUM else "`nisa.dma_copy`")
    if operand.access.writes:
        memory = next(b for b in (Buffer.SBUF, *Buffer) if b in operand.buffers).value
        return f"write to a tile in {memory}, then copy it to its destination with {copy}"
    return f"copy `{operand.name}` with {copy} first"


def _bad_dtype(operand: Operand, tile: Tile) -> Violation:
    allowed = sorted(operand.dtypes)
    only = len(allowed) == 1
    expected = allowed[0] if only else f"one of {', '.join(allowed)}"
    text = f"`{operand.name}` is {tile.dtype.name}, but must be {expected}"
    hint = f"make `{operand.name}` a tile of {f'nl.{expected}' if only else 'one of these types'}"
    return Violation("dtype-not-supported", text, operand.name, hint)


def _is_packed(operand: Operand, tile: Tile) -> Violation:
    return Violation(
        "dtype-not-supported",
        f"`{operand.name}` is {tile.dtype.name}, with four numbers in each element, which does "
        "not support arithmetic",
        operand.name,
        "move packed data with `nisa.dma_copy` or `nisa.tensor_copy`",
    )


def _is_wide(operand: Operand, tile: Tile) -> Violation:
    """Return the error for a 64-bit operand: no compute instruction takes one
    (nki.isa.scalar_load).
    """
    return Violation(
        "dtype-not-supported",
        f"`{operand.name}` is {tile.dtype.name}, {tile.dtype.bits} bits; instructions compute with "
        "at most 32",
        operand.name,
        AS_INT32,
    )


def _empty(operand: Operand, tile: Tile) -> Violation:
    text = f"`{operand.name}` has the shape {list(tile.shape)}; every size must be at least 1"
    return Violation("empty-tile", text, operand.name, "check the bounds of the slice")


def _not_a_column(operand: Operand, tile: Tile) -> Violation:
    text = f"`{operand.name}` has {tile.free} elements per partition, but must have exactly 1"
    hint = f"pass one column of `{operand.name}`, such as `[:, 0:1]`"
    return Violation("operand-shape", text, operand.name, hint)


def _rank(tile: Tile) -> int:
    """Return the number of dimensions, including partitions and excluding those of size 1."""
    return 1 + sum(num > 1 for _, num in tile.dims)


def _too_many_dimensions(operand: Operand, tile: Tile) -> Violation:
    return Violation(
        "operand-shape",
        f"`{operand.name}` has {_rank(tile)} dimensions {list(tile.shape)}; at most "
        f"{operand.max_rank} are allowed, including the partitions",
        operand.name,
        f"reshape `{operand.name}` with `.reshape()`, or pass a part of it",
    )


def _not_indexable(operand: Operand) -> Violation:
    text = f"`{operand.name}` cannot be addressed by a vector of indices"
    hint = "gather into a tile with `nisa.dma_copy` first, and use that tile"
    return Violation("indexed-operand", text, operand.name, hint)


def _too_tall(operand: Operand, tile: Tile) -> Violation:
    text = f"`{operand.name}` has {tile.partitions} partitions; there are {PARTITIONS}"
    hint = f"split `{operand.name}` into tiles of at most {PARTITIONS} partitions"
    return Violation("too-many-partitions", text, operand.name, hint)


def _beyond_last_partition(operand: Operand, tile: Tile) -> Violation:
    last = tile.start + tile.partitions - 1
    return Violation(
        "too-many-partitions",
        f"`{operand.name}` covers partitions {tile.start} to {last}; "
        f"the last one is {PARTITIONS - 1}",
        operand.name,
        f"start at partition {PARTITIONS - tile.partitions} or lower",
    )


def _bad_start(operand: Operand, tile: Tile) -> Violation:
    starts = " or ".join(map(str, start_partitions(tile.partitions)))
    return Violation(
        "start-partition",
        f"`{operand.name}` starts at partition {tile.start}; with {tile.partitions} partitions "
        f"it must start at {starts}",
        operand.name,
        f"keep the data at partition {starts}, or move it there with `nisa.dma_copy`",
    )


def _too_long(operand: Operand, tile: Tile) -> Violation:
    return Violation(
        "access-pattern",
        f"`{operand.name}` has {tile.free} elements per partition; "
        f"one instruction takes at most {MAX_FREE}",
        operand.name,
        "use several instructions, each over a part of the tile",
    )


def _bad_pattern(operand: Operand, dims: Dims) -> Violation:
    if len(dims) > operand.max_dims:
        text = f"needs {len(dims)} free dimensions; the limit is {operand.max_dims}"
    elif any(num > MAX_NUM for _, num in dims):
        text = f"has {max(num for _, num in dims)} elements in a dimension; the limit is {MAX_NUM}"
    else:
        step = max((step for step, num in dims if num > 1), key=abs)
        text = f"has a step of {step} elements; the limit is {MAX_STEP}"
    return Violation(
        "access-pattern",
        f"`{operand.name}` {text}",
        operand.name,
        "use several instructions, each over a part of the tile",
    )


def type_too_new(name: str, tile: Tile, target: Target) -> Violation:
    """Return the error for a type that NeuronCore-v4 introduced."""
    return Violation(
        "dtype-target",
        f"`{name}` is {tile.dtype.name}, which needs {first_target(4)}; "
        f"the target is {target.name}",
        name,
        f"use bfloat16 or float8_e4m3, or {compile_for(first_target(4))}",
    )


def _index_too_new(operand: Operand, target: Target) -> Violation:
    return Violation(
        "needs-newer-target",
        f"`{operand.name}` uses `.indirect()`, which needs {first_target(4)}; "
        f"the target is {target.name}",
        operand.name,
        "gather with `nisa.dma_copy` and `vector_offset` instead",
    )
