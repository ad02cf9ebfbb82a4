"""Rows of the DMA engines: transfers between HBM and SBUF, and within each.

They run in DMA queues, so `Engine.DMA` is their only engine. The `engine` argument of the call
is an attribute here: the sequencer that commands the descriptor hardware. `dma_costs.dma_trigger`
determines the engine that triggers a transfer and how long that keeps the engine busy.
"""

from __future__ import annotations

from dataclasses import replace

from nkic.base.profiles import Profile
from nkic.machine import costs
from nkic.machine.constraints import packed_as_is, same_dtype, wide_as_is, wrong_operator
from nkic.machine.instructions.parts import alu, choice, optional, result, source
from nkic.machine.operands import (
    SBUF,
    SBUF_OR_HBM,
    Attribute,
    AttributeKind,
    Depends,
    Facts,
    Row,
    Tile,
    Violation,
)
from nkic.machine.operators import ALU
from nkic.machine.patterns import cuts
from nkic.machine.targets import PARTITIONS, Buffer, Engine
from nkic.machine.tiles import V4_TYPES, compile_for, type_too_new

# ---- Rules of the DMA rows ----------------------------------------------------------------------

AXES = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}  # by rank of src
TRANSPOSE_ROWS = (1, 2, 4, 8, 16)  # values of src.shape[0] that the descriptor hardware transposes
TRANSPOSE_COLUMNS = 128
PRIORITIES = 4


def same_elements(facts: Facts) -> Violation | None:
    """dst and src have the same number of elements; shapes may differ."""
    dst, src = facts.tile("dst"), facts.tile("src")
    if dst.elements == src.elements:
        return None
    return Violation(
        "element-count-mismatch",
        f"`src` has {src.elements} elements {_shape(src)} and `dst` has {dst.elements} "
        f"{_shape(dst)}; they must be equal",
        "src",
        "slice both to the same number of elements",
        other="dst",
    )


def known_types(facts: Facts) -> Violation | None:
    """Before NeuronCore-v4, the types it introduced are moved but not converted."""
    dst, src = facts.tile("dst"), facts.tile("src")
    if facts.target.generation >= 4 or dst.dtype is src.dtype:
        return None
    if "packed" in (dst.dtype.kind, src.dtype.kind):
        return None  # no target converts them, which is another rule's
    wrong = next((n for n in ("dst", "src") if facts.tile(n).dtype.name in V4_TYPES), "")
    return type_too_new(wrong, facts.tile(wrong), facts.target) if wrong else None


def computed_types(facts: Facts) -> Violation | None:
    """Before NeuronCore-v4, DMA engines do not compute with the types it introduced."""
    for name, tile in facts.tiles.items():
        if facts.target.generation < 4 and tile.dtype.name in V4_TYPES:
            return type_too_new(name, tile, facts.target)
    return None


def _shape(tile: Tile) -> str:
    return str(list(tile.shape))


def descriptor_mode(facts: Facts) -> Violation | None:
    """dma_copy meets the constraints of hardware descriptors and of their triggering engine."""
    mode, engine = facts.attributes["dge_mode"], facts.attributes["engine"]
    if mode != "hwdge":
        if engine == "unknown":
            return None
        return _bad_mode(
            f"`engine` is {engine}, which requires dge_mode.hwdge, but `dge_mode` is {mode}",
            "engine",
            "pass `dge_mode=nisa.dge_mode.hwdge`, or leave out `engine`",
        )
    dst, src = facts.tile("dst").dtype, facts.tile("src").dtype
    if dst is not src:
        text = f"`src` is {src.name} and `dst` is {dst.name}; dge_mode.hwdge does not convert"
        hint = "use dge_mode.swdge, or reinterpret one of them with `.view()`"
        return Violation("dtype-mismatch", text, "dst", hint)
    return _before_v3("`dge_mode` is hwdge", facts)


def _bad_mode(text: str, name: str, hint: str) -> Violation:
    return Violation("dma-mode", text, name, hint)


def _before_v3(text: str, facts: Facts) -> Violation | None:
    if facts.target.generation >= 3:
        return None
    return Violation(
        "needs-newer-target",
        f"{text}, which needs trn2; the target is {facts.target.name}",
        "dge_mode",
        f"leave out `dge_mode`, or {compile_for('trn2')}",
    )


def gathering(facts: Facts) -> Violation | None:
    """A vector of indices needs software descriptors, an operand in HBM, and v3."""
    for name, tile in facts.tiles.items():
        if not tile.indexed:
            continue
        mode = facts.attributes.get("dge_mode", "unknown")
        if mode not in ("unknown", "swdge"):
            return _bad_mode(
                f"`{name}` has a `vector_offset`, which only dge_mode.swdge supports, but "
                f"`dge_mode` is {mode}",
                "dge_mode",
                "leave out `dge_mode`",
            )
        if tile.on_chip:
            text = f"`{name}` is indexed and is in {tile.buffer.value}, but must be in hbm"
            hint = "gather within SBUF with `nisa.tensor_copy` (trn3) or `nisa.nc_n_gather`"
            return Violation("buffer-not-allowed", text, name, hint)
        if facts.target.generation < 3:
            return Violation(
                "needs-newer-target",
                f"`{name}` has a `vector_offset`, which needs trn2; the target is "
                f"{facts.target.name}",
                name,
                f"move row by row with `scalar_offset`, or {compile_for('trn2')}",
                True,
            )
    return None


def one_index_each(facts: Facts) -> Violation | None:
    """There is one index per row gathered or scattered: shape (rows, 1)."""
    for name, tile in facts.tiles.items():
        index, rows = tile.offsets, _rows(tile)
        if tile.indexed and index is not None and (index.partitions, index.free) != (rows, 1):
            return _bad_indices(name, tile, index, f"must be [{rows}, 1], one index for each row")
    return None


def _rows(tile: Tile) -> int:
    return tile.dims[0][1] if tile.dims else 1


def _bad_indices(name: str, tile: Tile, index: Tile, expected: str) -> Violation:
    return Violation(
        "operand-shape",
        f"the `vector_offset` of `{name}` is {_shape(index)} for {_rows(tile)} rows, but "
        f"{expected}",
        name,
        f"pass a tile with one index per partition for the {_rows(tile)} rows",
        True,
    )


def whole_rows(facts: Facts) -> Violation | None:
    """The other operands divide evenly into as many rows as are gathered or scattered."""
    sides = facts.tiles
    counts = {
        name: _rows(tile)
        for name, tile in sides.items()
        if tile.indexed and not tile.on_chip  # on chip, `gathering` refuses it
    }
    for name, tile in sides.items():
        for indexed, rows in counts.items():
            if indexed != name and not _falls_into(tile, rows):
                return Violation(
                    "operand-shape",
                    f"`{indexed}` has {rows} rows by `vector_offset`, but `{name}` "
                    f"{_shape(tile)} cannot be divided into as many",
                    name,
                    f"make `{name}` a tile of {rows} partitions, or rows",
                )
    return None


def _falls_into(tile: Tile, rows: int) -> bool:
    if tile.indexed:
        return _rows(tile) == rows
    if not tile.on_chip:
        return cuts(tile.dims, rows) is not None
    if tile.partitions % rows == 0:
        return True
    return rows % tile.partitions == 0 and cuts(tile.dims, rows // tile.partitions) is not None


def priority(facts: Facts) -> Violation | None:
    """`priority` is a class of service, 0 to 3."""
    value = facts.attributes["priority"]
    if value is None or 0 <= value < PRIORITIES:
        return None
    text = f"`priority` is {value}, but must be 0 to {PRIORITIES - 1}"
    hint = "pass 0 for the highest priority and 3 for the lowest"
    return Violation("dma-mode", text, "priority", hint)


# dma_transpose


def transposed_shape(facts: Facts) -> Violation | None:
    """`axes` is the one permutation of each rank, and dst has the permuted shape."""
    src, dst, axes = facts.tile("src"), facts.tile("dst"), facts.attributes["axes"]
    rank = len(src.shape)
    permutation = AXES.get(rank)
    if permutation is None:
        return _bad_axes(f"`src` has {rank} dimensions; 2, 3 or 4 can be transposed", "src")
    if axes is not None and axes != permutation:
        text = f"`axes` is {list(axes[:8])}; with {rank} dimensions it must be {list(permutation)}"
        return _bad_axes(text, "axes", "leave out `axes`")
    expected = tuple(src.shape[axis] for axis in permutation)
    if dst.shape == expected:
        return None
    hint = f"make `dst` a tile of shape {list(expected)}"
    if expected[0] > PARTITIONS:
        hint = f"transpose parts of `src` that make at most {PARTITIONS} rows"
    text = f"`dst` is {_shape(dst)}, but `src` transposed is {list(expected)}"
    return _bad_axes(text, "dst", hint if len(dst.shape) == rank else _RANK)


_RANK = "reshape with `.reshape()`: `dst` has the rank of `src`"


def _bad_axes(text: str, name: str, hint: str = _RANK) -> Violation:
    return Violation("operand-shape", text, name, hint)


def transposed_type(facts: Facts) -> Violation | None:
    """Elements have 2 or 4 bytes; 2 if descriptors are generated on the device."""
    src = facts.tile("src")
    strict = src.indexed or facts.attributes["dge_mode"] == "hwdge"
    sizes = (2,) if strict else (2, 4)
    if src.dtype.size in sizes:
        return None
    return Violation(
        "dtype-not-supported",
        f"`src` is {src.dtype.name}, of {8 * src.dtype.size} bits; "
        f"{' or '.join(str(8 * s) for s in sizes)} bits can be transposed",
        "src",
        "use a 16-bit type, or `nisa.nc_transpose`",
    )


def transpose_mode(facts: Facts) -> Violation | None:
    """swdge is for run-time offsets; `gathering` checks vectors of indices.

    The sources differ: dma_transpose names only unknown and hwdge for direct transposes; the
    reference of descriptor generation adds none, and any mode for a run-time offset. The wider
    one is followed, because no mode changes a value.
    """
    mode, src = facts.attributes["dge_mode"], facts.tile("src")
    if mode == "swdge" and not src.dynamic:
        return _bad_mode(
            "`dge_mode` is swdge; a transpose without a run-time offset takes unknown, none or "
            "hwdge",
            "dge_mode",
            "leave out `dge_mode`",
        )
    if facts.attributes["oob_mode"] == "skip" and not src.dynamic:
        return _bad_mode(
            "`oob_mode` is skip, but no run-time offset can be out of bounds",
            "oob_mode",
            "leave out `oob_mode`",
        )
    return _before_v3("`dge_mode` is hwdge", facts) if mode == "hwdge" else None


def transposed_by_hardware(facts: Facts) -> Violation | None:
    """hwdge transposes 16 rows (2-D), or rows x columns a multiple of 16, up to 128 columns."""
    src = facts.tile("src")
    shape = src.shape
    if facts.attributes["dge_mode"] != "hwdge" or src.indexed or not shape:
        return None  # for a single element, the rule of ranks reports the error
    rows = (16,) if len(shape) == 2 else TRANSPOSE_ROWS
    if shape[0] not in rows:
        text = f"`src` has {shape[0]} rows; hwdge transposes {' or '.join(map(str, rows))}"
    elif len(shape) > 2 and shape[0] * shape[-2] % 16:
        text = (
            f"`src` has {shape[0]} x {shape[-2]} rows; for hwdge the product must be a "
            "multiple of 16"
        )
    else:
        return transposed_columns(facts)
    return Violation(
        "operand-shape", text, "src", "leave out `dge_mode`, or divide `src` differently"
    )


def transposed_columns(facts: Facts) -> Violation | None:
    """The last dimension has at most 128 elements."""
    columns = facts.tile("src").shape[-1]
    if columns <= TRANSPOSE_COLUMNS:
        return None
    return Violation(
        "tile-size",
        f"the last dimension of `src` has {columns} elements; at most {TRANSPOSE_COLUMNS} can "
        "be transposed",
        "src",
        f"transpose {TRANSPOSE_COLUMNS} columns at a time",
    )


def transposed_rows_gathered(facts: Facts) -> Violation | None:
    """A gathering transpose has rows in sixteens, up to 128 columns, one middle dimension."""
    src = facts.tile("src")
    if not src.indexed:
        return None
    shape, index = src.shape, src.offsets
    if index is not None and (text := _transposing_indices(index)):
        return _bad_indices("src", src, index, text)
    if shape[0] % 16:
        text = f"`src` gathers {shape[0]} rows, which must be a multiple of 16"
    elif len(shape) == 4 and 1 not in shape[1:3]:
        text = f"`src` is {list(shape)}; one of the middle dimensions must be 1"
    else:
        return transposed_columns(facts)
    return Violation("operand-shape", text, "src", "pad the rows, or transpose in parts")


def _transposing_indices(index: Tile) -> str:
    """Return the violated constraint of a gathering transpose on its indices, or nothing."""
    rows, columns = index.partitions, index.free
    if not index.on_chip or index.buffer is not Buffer.SBUF:
        return "must be in sbuf"
    if index.dtype.name != "uint32":
        return f"must be uint32, not {index.dtype.name}"
    if rows % 16 or not 16 <= rows <= PARTITIONS:
        return f"must have 16, 32 … {PARTITIONS} partitions"
    return f"must have {PARTITIONS} partitions" if columns > 1 and rows != PARTITIONS else ""


# --------------------------------------------------------------------------------------------------

DMA = (Engine.DMA,)
OUT_OF_BOUNDS = choice("oob_mode", "error", "error", "skip")
SKIPPED = (OUT_OF_BOUNDS.name, "skip")
DESCRIPTORS = choice("dge_mode", "unknown", "unknown", "swdge", "hwdge", "none")
PRIORITY = optional("priority", AttributeKind.INT, generation=4)

ROWS = (
    Row(
        name="dma_copy",
        opcode=10,
        skips=SKIPPED,
        moves=True,
        copies=True,
        depends=Depends.ELEMENTWISE,
        doc="dst = src, element by element in the order of the dimensions, converted through "
        "float32 if the types differ.",
        operands=(
            result(buffers=SBUF_OR_HBM, indexed=True, packed=True, wide=True),
            source("src", buffers=SBUF_OR_HBM, indexed=True, packed=True, wide=True),
        ),
        attributes=(
            PRIORITY,
            OUT_OF_BOUNDS,
            DESCRIPTORS,
            choice("engine", "unknown", "unknown", "sync", "scalar"),
        ),
        engines=DMA,
        cost=costs.dma_copying,
        rules=(
            same_elements,
            packed_as_is,
            wide_as_is,
            known_types,
            descriptor_mode,
            gathering,
            one_index_each,
            whole_rows,
            priority,
        ),
        source="nki.isa.dma_copy; NKI DMA overview; migration guide to NKI 0.3.0",
    ),
    Row(
        name="dma_transpose",
        opcode=11,
        skips=SKIPPED,
        rows_last=True,
        moves=True,
        doc="dst = src with its dimensions reversed; of four, the middle two keep their order.",
        in_blocks=True,
        # The permutation refers to dimensions, so lower keeps them.
        operands=(
            result(buffers=SBUF, keep_rank=True, packed=True),
            source("src", buffers=SBUF_OR_HBM, keep_rank=True, indexed=True, packed=True),
        ),
        attributes=(optional("axes", AttributeKind.INTS), PRIORITY, DESCRIPTORS, OUT_OF_BOUNDS),
        engines=DMA,
        cost=costs.dma_transposing,
        rules=(
            transposed_shape,
            same_dtype("dst", "src"),
            transposed_type,
            transpose_mode,
            gathering,
            transposed_by_hardware,
            transposed_rows_gathered,
            priority,
        ),
        source="nki.isa.dma_transpose; Trainium2 architecture guide, DMA transpose; descriptor "
        "generation engine reference",
    ),
)


# ------------------------------------------------------------------------------------------------
# The DMA engines' sum of tiles: at fixed addresses, or accumulated by gather or scatter.

SOURCES = tuple(f"src{i}" for i in range(16))


def only_sums(facts: Facts) -> Violation | None:
    """`reduce_op` is add."""
    op = facts.attributes["reduce_op"]
    return None if op == "add" else wrong_operator("reduce_op", ALU[op], "add")


def ones(facts: Facts) -> Violation | None:
    """There are as many `scales` as sources, and each is 1."""
    scales = facts.attributes["scales"]
    if scales is None:
        return None
    count = len(facts.tiles) - 1
    if len(scales) != count:
        text = f"`scales` has {len(scales)} numbers and `srcs` has {count} tiles"
    elif wrong := [scale for scale in scales if scale != 1]:
        text = f"`scales` has {wrong[0]:g}; each must be 1.0"
    else:
        return None
    hint = "leave out `scales`, and scale with `nisa.tensor_scalar`"
    return Violation("dma-mode", text, "scales", hint)


def sources_as_long(facts: Facts) -> Violation | None:
    """Every source has as many elements as dst; shapes may differ."""
    dst = facts.tile("dst")
    for name, tile in facts.tiles.items():
        if tile.elements != dst.elements:
            return Violation(
                "element-count-mismatch",
                f"`{name}` has {tile.elements} elements {list(tile.shape)} and `dst` has "
                f"{dst.elements} {list(dst.shape)}; they must be equal",
                name,
                "slice both to the same number of elements",
            )
    return None


def fixed_places(facts: Facts) -> Violation | None:
    """There are no run-time offsets, except vectors of indices: descriptors are precomputed."""
    for name, tile in facts.tiles.items():
        if tile.dynamic and not tile.indexed:
            return Violation(
                "dma-mode",
                f"`{name}` has a run-time offset, but the addresses must be known at compile time",
                name,
                f"copy `{name}` with `nisa.dma_copy`, and add with `nisa.tensor_tensor`",
            )
    return None


def modify(facts: Facts) -> Violation | None:
    """A vector of indices is used as HBM[indices] += SBUF, or SBUF += HBM[indices]."""
    indexed = [name for name, tile in facts.tiles.items() if tile.indexed]
    if not indexed:
        return _only_with_indices(facts)
    dst, *sources = facts.tiles.values()
    if len(sources) != 2:
        text = f"takes 2 sources with a `vector_offset`, not {len(sources)}"
    elif not facts.attributes["unique_indices"]:
        text = "needs unique_indices=True with a `vector_offset`"
        hint = "add up the data of equal indices first, and leave out `unique_indices`"
        return Violation("dma-mode", text, "unique_indices", hint)
    elif sum(tile.indexed for tile in sources) != 1:
        text = "takes a `vector_offset` on exactly one of the sources"
    elif dst not in sources:
        text = (
            "with a `vector_offset` adds to the former content of `dst`: one of the sources "
            "must be `dst`"
        )
    else:
        return _in_sbuf(facts)
    return _bad_modify(text)


def _only_with_indices(facts: Facts) -> Violation | None:
    if facts.attributes["oob_mode"] != "skip":
        return None
    text = "`oob_mode` is skip, but no source has a `vector_offset` that could be out of bounds"
    return Violation("dma-mode", text, "oob_mode", "leave out `oob_mode`")


def _in_sbuf(facts: Facts) -> Violation | None:
    fixed = [name for name, tile in facts.tiles.items() if not tile.indexed]
    wrong = next((name for name in fixed if facts.tile(name).buffer is not Buffer.SBUF), "")
    return _bad_modify(f"needs `{wrong}` in sbuf, the other side of a gather") if wrong else None


def _bad_modify(text: str) -> Violation:
    hint = "pass srcs=[dst, data]: dst indexed and data in SBUF, or the other way round"
    return Violation("dma-mode", text, "dst", hint)


COMPUTE_ROWS = (
    Row(
        name="dma_compute",
        opcode=12,
        skips=SKIPPED,
        doc="dst = the sum of srcs, element by element in the order of the dimensions, in float32.",
        parameters=("dst", "srcs", "reduce_op", "scales", "unique_indices", "oob_mode", "name"),
        operands=(
            result(buffers=SBUF_OR_HBM, indexed=True),
            source(SOURCES[0], buffers=SBUF_OR_HBM, indexed=True),
            source(SOURCES[1], buffers=SBUF_OR_HBM, indexed=True, optional=True, default=None),
            *(
                source(name, buffers=SBUF_OR_HBM, optional=True, default=None)
                for name in SOURCES[2:]
            ),
        ),
        attributes=(
            alu("reduce_op"),
            optional("scales", AttributeKind.NUMBERS),
            Attribute("unique_indices", AttributeKind.BOOL, default=True, since=Profile.NKI_0_3),
            replace(OUT_OF_BOUNDS, since=Profile.NKI_0_4),
        ),
        engines=(Engine.DMA,),
        cost=costs.dma_computing,
        rules=(
            only_sums,
            ones,
            computed_types,
            sources_as_long,
            fixed_places,
            modify,
            gathering,
            one_index_each,
            whole_rows,
        ),
        spread="srcs",
    ),
)
