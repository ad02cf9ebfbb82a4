"""Rules for run-time offsets: their memory, type and number.

`.ap(scalar_offset=…)` takes one integer, `.ap(vector_offset=…)` one per gathered or scattered row.
Both are in SBUF, from which descriptors are generated. `.indirect()` takes a column of
free-dimension offsets, shared by all partitions of a tile.

Offset i of a tile is in partition i mod G of its index, column i div G, where G is 16, or 32 for
the tensor engine. Only the first G partitions of the index are read: the formula names no others,
although the index has as many partitions as the tile (assumed; docs/fidelity.md).

Sources: `nki.isa.dma_copy` (indirect addressing: an SBUF tensor of shape (P, 1); a 1x1 SBUF tensor
or a register); `nki.language.NkiTensor.indirect`; "tensor indirection" of each instruction in
`nki.isa` (start partitions).
"""

from __future__ import annotations

from collections.abc import Iterator

from nkic.machine.engines import Engine
from nkic.machine.facts import Facts, Tile
from nkic.machine.memory import Buffer
from nkic.machine.operands import Row, Violation

WORD = 4  # bytes of the largest offset
QUADRANT = 32  # partitions; an index starts at a multiple of it
_GROUP, _TENSOR_GROUP = 16, 32


def group(row: Row) -> int:
    """Return the number of index partitions over which consecutive offsets are spread."""
    return _TENSOR_GROUP if Engine.TENSOR in row.engines else _GROUP


def offset_capacity(index: Tile, row: Row) -> int:
    """Return the number of offsets that an index holds for an instruction of `row`."""
    lanes = group(row)
    if index.partitions >= lanes:
        return lanes * index.free
    return index.partitions  # further offsets would be in partitions that the index lacks


def wrong_indices(row: Row, facts: Facts) -> Iterator[Violation]:
    """Yield at most one error per operand with a run-time offset."""
    for name, tile in facts.tiles.items():
        if tile.offsets is None:
            continue
        if tile.indexed and tile.on_chip:
            wrong = _wrong_index(name, tile, tile.offsets, row) or _wrong_start(
                name, tile, tile.offsets, row, facts
            )
        else:
            wrong = _wrong_offsets(name, tile, tile.offsets)
        if wrong is not None:
            yield wrong


def _wrong_offsets(name: str, tile: Tile, offsets: Tile) -> Violation | None:
    """Check buffer and type of the offsets of `.ap()`; the rows check the length of a vector."""
    kind = "vector_offset" if tile.indexed else "scalar_offset"
    subject, slug = f"the `{kind}` of `{name}` is", "operand-shape"
    if offsets.buffer is not Buffer.SBUF:
        slug, text = "buffer-not-allowed", f"in {offsets.buffer.value}, but must be in sbuf"
        hint = f"copy it to SBUF with `nisa.{_copy_from(offsets)}` first"
    elif not offsets.dtype.is_integer or offsets.dtype.size > WORD:
        slug, text = "dtype-not-supported", f"{offsets.dtype.name}, but must be an integer"
        hint = "make it a tile of nl.int32 or nl.uint32"
    elif not tile.indexed and offsets.elements != 1:
        text = f"{list(offsets.shape)}, but must be [1, 1]: one offset for the whole pattern"
        hint = "pass one element, such as `index[0:1, 0:1]`"
    else:
        return None
    return Violation(slug, f"{subject} {text}", name, hint, True)


def _copy_from(offsets: Tile) -> str:
    return "tensor_copy" if offsets.buffer is Buffer.PSUM else "dma_copy"


def _wrong_index(name: str, tile: Tile, index: Tile, row: Row) -> Violation | None:
    capacity = offset_capacity(index, row)
    if index.buffer is not Buffer.SBUF:
        text, hint = f"an index in {index.buffer.value}, but it must be in sbuf", "copy it to SBUF"
    elif not index.dtype.is_integer or index.dtype.size > WORD:
        text, hint = f"an index of {index.dtype.name}", "make the index a tile of nl.uint32"
    elif index.partitions != tile.partitions:
        text = f"{tile.partitions} partitions and its index {index.partitions}"
        hint = "give the index tile the same number of partitions"
    elif tile.free > capacity:
        text = f"{tile.free} offsets, and its index {list(index.shape)} holds {capacity} for this "
        text += f"engine: offset i in partition i mod {group(row)}, column i div {group(row)}"
        hint = f"pass `num_elem`, at most {capacity}, or make the index wider"
    else:
        return None
    return Violation("indexed-operand", f"`{name}` has {text}", name, hint, True)


def _wrong_start(name: str, tile: Tile, index: Tile, row: Row, facts: Facts) -> Violation | None:
    """Check start partitions: of a source and its index, or of a scattered dst and the source."""
    expected = _start_wanted(name, tile, row, facts)
    if index.start % QUADRANT:
        text = f"the index of `{name}` starts at partition {index.start}, which must be a "
        text += f"multiple of {QUADRANT}"
    elif expected is not None and index.start != expected[0]:
        text = f"the index of `{name}` starts at partition {index.start}, but must start where "
        text += f"{expected[1]} does, at {expected[0]}"
    else:
        return None
    hint = "keep the tiles and their indices in the same partitions"
    return Violation("start-partition", text, name, hint, True)


def _start_wanted(name: str, tile: Tile, row: Row, facts: Facts) -> tuple[int, str] | None:
    if not row.operands[row.operand_index[name]].access.writes:
        return tile.start, f"`{name}`"
    leader = next((o.name for o in row.operands if o.indexed and not o.access.writes), "")
    source = facts.maybe(leader)
    if source is None:
        return None
    if source.buffer is Buffer.SBUF:
        return source.start, f"`{leader}`"
    if source.offsets is not None and source.indexed:
        return source.offsets.start, f"the index of `{leader}`"
    return None
