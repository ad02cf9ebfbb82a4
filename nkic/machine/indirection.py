"""Tensor indirection (`.indirect()`): a column of free-dimension offsets, the same for all
partitions of a tile.

Offset i of a tile is in partition i mod G of its index, column i div G, where G is 16, or 32
for the tensor engine. Only those first G partitions of the index are read: the formula names
no others, though the index has as many partitions as the tile (assumed; docs/fidelity.md).

Sources: `nki.language.NkiTensor.indirect`; "tensor indirection" of each instruction in
`nki.isa` (start partitions).
"""

from __future__ import annotations

from collections.abc import Iterator

from nkic.machine.engines import Engine
from nkic.machine.facts import Facts, Tile
from nkic.machine.memory import Buffer
from nkic.machine.operands import Row, Violation

QUADRANT = 32  # partitions: where an index may start
_GROUP, _TENSOR_GROUP = 16, 32


def group(row: Row) -> int:
    """Partitions of an index over which successive offsets are spread."""
    return _TENSOR_GROUP if Engine.TENSOR in row.engines else _GROUP


def offsets_held(index: Tile, row: Row) -> int:
    """How many offsets an index holds for an instruction of `row`."""
    lanes = group(row)
    if index.partitions >= lanes:
        return lanes * index.free
    return index.partitions  # the next ones would lie in partitions that it does not have


def wrong_indices(row: Row, facts: Facts) -> Iterator[Violation]:
    """At most one complaint for each operand that is indexed on chip."""
    for name, tile in facts.tiles.items():
        if tile.indexed and tile.on_chip and tile.offsets is not None:
            wrong = _wrong_index(name, tile, tile.offsets, row) or _wrong_start(
                name, tile, tile.offsets, row, facts
            )
            if wrong is not None:
                yield wrong


def _wrong_index(name: str, tile: Tile, index: Tile, row: Row) -> Violation | None:
    held = offsets_held(index, row)
    if index.buffer is not Buffer.SBUF:
        text, hint = f"an index in {index.buffer.value}, but it must be in sbuf", "copy it to SBUF"
    elif not index.dtype.is_integer:
        text, hint = f"an index of {index.dtype.name}", "make the index a tile of nl.uint32"
    elif index.partitions != tile.partitions:
        text = f"{tile.partitions} partitions and its index {index.partitions}"
        hint = "make the index a tile of as many partitions"
    elif tile.free > held:
        text = f"{tile.free} offsets, and its index {list(index.shape)} holds {held} for this "
        text += f"engine: offset i in partition i mod {group(row)}, column i div {group(row)}"
        hint = f"pass `num_elem`, at most {held}, or make the index wider"
    else:
        return None
    return Violation("indexed-operand", f"`{name}` has {text}", name, hint)


def _wrong_start(name: str, tile: Tile, index: Tile, row: Row, facts: Facts) -> Violation | None:
    """Which partitions must agree: a source and its index, a scattered dst's and the source."""
    wanted = _start_wanted(name, tile, row, facts)
    if index.start % QUADRANT:
        text = f"the index of `{name}` starts at partition {index.start}, which must be a "
        text += f"multiple of {QUADRANT}"
    elif wanted is not None and index.start != wanted[0]:
        text = f"the index of `{name}` starts at partition {index.start}, but must start where "
        text += f"{wanted[1]} does, at {wanted[0]}"
    else:
        return None
    hint = "keep the tiles and their indices in the same partitions"
    return Violation("start-partition", text, name, hint)


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
