"""Semantics of `nki.collectives`: the contribution of each rank, and its result.

Elements are counted in the order of a tile's dimensions, partitions first, as in a slice along
dimension 0. Values that are only moved keep their bits. Source: `nki.collectives`; what it leaves
open is in docs/fidelity.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.simulate.plans import Decoded, Refused, Rendezvous, Step, rendezvous, semantics
from nkic.simulate.tile import Tile

Array = NDArray[Any]
Mask = NDArray[np.bool_]
Brought = Mapping[int, Any]
REDUCTIONS: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "minimum": np.minimum,
    "maximum": np.maximum,
}


def _group(decoded: Decoded) -> tuple[int, ...]:
    """Return the group of this rank, or an empty tuple if it is in none."""
    groups = decoded.attributes["replica_group"]
    return next((group for group in groups if decoded.state.rank in group), ())


def _before(decoded: Decoded, steps: int = 1) -> int:
    """Return the rank `steps` places before this one in the ring, in the group's order."""
    group = _group(decoded)
    return group[(group.index(decoded.state.rank) - steps) % len(group)] if group else 0


def _floats(tile: Tile) -> Array:
    return np.array(tile.load(tile.sizes)(), np.float32).reshape(-1)


def _bits(tile: Tile) -> Array:
    return tile.bits().reshape(-1).copy()


def _reduced(decoded: Decoded, values: Sequence[Array]) -> Array:
    function, total = REDUCTIONS[decoded.attributes["op"]], values[0]
    for value in values[1:]:
        total = function(total, value)
    return total


def _mine(decoded: Decoded, values: Array) -> Array:
    """Return this rank's part of an array that is split among the group."""
    group = _group(decoded)
    part: Array = values.reshape(len(group), -1)[group.index(decoded.state.rank)]
    return part


@rendezvous("all_reduce")
def all_reduce(decoded: Decoded) -> Rendezvous:
    dst, src = decoded.tile("dst"), decoded.tile("src")
    return Rendezvous(
        lambda: _floats(src),
        lambda contributions: dst.put(_reduced(decoded, list(contributions.values()))),
        _group(decoded),
    )


@rendezvous("reduce_scatter")
def reduce_scatter(decoded: Decoded) -> Rendezvous:
    dst, src = decoded.tile("dst"), decoded.tile("src")

    def accept(contributions: Brought) -> None:
        dst.put(_mine(decoded, _reduced(decoded, list(contributions.values()))))

    return Rendezvous(lambda: _floats(src), accept, _group(decoded))


@rendezvous("all_gather")
def all_gather(decoded: Decoded) -> Rendezvous:
    dst, src = decoded.tile("dst"), decoded.tile("src")
    along = decoded.attributes["collective_dim"]

    def accept(contributions: Brought) -> None:
        rows = [part.reshape(src.partitions if along else 1, -1) for part in contributions.values()]
        dst.put_bits(np.concatenate(rows, axis=1))

    return Rendezvous(lambda: _bits(src), accept, _group(decoded))


@rendezvous("all_to_all")
def all_to_all(decoded: Decoded) -> Rendezvous:
    dst, src = decoded.tile("dst"), decoded.tile("src")

    def accept(contributions: Brought) -> None:
        dst.put_bits(np.concatenate([_mine(decoded, part) for part in contributions.values()]))

    return Rendezvous(lambda: _bits(src), accept, _group(decoded))


@rendezvous("collective_permute")
def collective_permute(decoded: Decoded) -> Rendezvous:
    """Exchange along pairs; a rank that no pair names does not take part and does not wait."""
    dst, src = decoded.tile("dst"), decoded.tile("src")
    pairs, rank = decoded.attributes["source_target_pairs"], decoded.state.rank
    source = next((source for source, target in pairs if target == rank), None)
    group = tuple(sorted({one for pair in pairs for one in pair}))

    def accept(contributions: Brought) -> Mask | None:
        if source is None:
            return np.zeros(dst.sizes, np.bool_)
        dst.put_bits(contributions[source])
        return None

    return Rendezvous(lambda: _bits(src), accept, group if rank in group else (rank,))


@rendezvous("collective_permute_implicit")
def collective_permute_implicit(decoded: Decoded) -> Rendezvous:
    dst, src, source = decoded.tile("dst"), decoded.tile("src"), _before(decoded)
    return Rendezvous(
        lambda: _bits(src),
        lambda contributions: dst.put_bits(contributions[source]),
        _group(decoded),
    )


@rendezvous("collective_permute_implicit_reduce")
def collective_permute_implicit_reduce(decoded: Decoded) -> Rendezvous:
    dst, source = decoded.tile("dst"), _before(decoded)
    sources = [decoded.tile(name) for name in ("src0", "src1")]
    return Rendezvous(
        lambda: _reduced(decoded, [_floats(tile) for tile in sources]),
        lambda contributions: dst.put(contributions[source]),
        _group(decoded),
    )


@rendezvous("all_gather_v")
def all_gather_v(decoded: Decoded) -> Rendezvous:
    """Every rank sends the one chunk that the first column of its counts describes."""
    return _counted(decoded, lambda position: 0)


@rendezvous("all_to_all_v")
def all_to_all_v(decoded: Decoded) -> Rendezvous:
    return _counted(decoded, lambda position: position)


@rendezvous("all_gather_v_trigger")
def all_gather_v_trigger(decoded: Decoded) -> Rendezvous:
    return _counted(decoded, lambda position: 0, "prepared")


@rendezvous("all_to_all_v_trigger")
def all_to_all_v_trigger(decoded: Decoded) -> Rendezvous:
    return _counted(decoded, lambda position: position, "prepared")


@semantics("all_gather_v_prepare")
@semantics("all_to_all_v_prepare")
def prepare(decoded: Decoded) -> Step:
    """Take the counts now: later changes to the tensor have no effect."""
    prepared, counts = decoded.tile("prepared"), decoded.tile("metadata_tensor")
    return lambda: prepared.put_bits(counts.bits())


def _counted(
    decoded: Decoded, column: Callable[[int], int], by: str = "metadata_tensor"
) -> Rendezvous:
    """Return the exchange of chunks whose counts are given at run time.

    A sender's chunk for a receiver is described by `column` of its counts, for the receiver's
    position. The counts are those of the operand `by`; the received counts are written to
    metadata_tensor.
    """
    dst, src, counts = (decoded.tile(name) for name in ("dst", "src", "metadata_tensor"))
    taken = decoded.tile(by)
    group, rank = _group(decoded), decoded.state.rank
    counts_known, displaced = (decoded.attributes[n] for n in ("recv_counts_known", "has_rdispls"))

    def offer() -> tuple[Array, Array]:
        return _bits(src), _table(taken, len(group))

    def accept(contributions: Brought) -> Mask:
        own_table, own_column = contributions[rank][1], column(group.index(rank))
        received = _bits(dst)
        written = np.zeros(received.size, np.bool_)
        for position, (elements, table) in enumerate(contributions.values()):
            count, first = int(table[0, own_column]), int(table[1, own_column])
            space = received.size // len(group)
            slot = int(own_table[3, position]) if displaced else position * space
            _check_chunk(
                count, first, elements.size, slot, received.size if displaced else slot + space
            )
            received[slot : slot + count] = elements[first : first + count]
            written[slot : slot + count] = True
            own_table[2, position] = count
        dst.put_bits(received)
        if not counts_known:
            after = _table(counts, len(group))
            after[2] = own_table[2]
            counts.put_bits(after)
        return written

    return Rendezvous(offer, accept, group)


def _check_chunk(count: int, first: int, size: int, slot: int, end: int) -> None:
    """Check that the chunk is inside its source and fits its destination."""
    if first + count > size:
        raise Refused(f"a chunk of elements {first} to {first + count} exceeds its {size}")
    if slot + count > end:
        raise Refused(f"a chunk of {count} elements exceeds its space of {end - slot}")


def _table(tile: Tile, ranks: int) -> Array:
    return tile.bits().reshape(-1, ranks).copy()


@semantics("rank_id")
def rank_id(decoded: Decoded) -> Step:
    return _telling(decoded, decoded.state.rank)


@semantics("collective_permute_implicit_current_processing_rank_id")
def current_rank(decoded: Decoded) -> Step:
    return _telling(decoded, _before(decoded, decoded.attributes["iteration_id"]))


def _telling(decoded: Decoded, rank: int) -> Step:
    dst: Any = decoded.operands["dst"]

    def step() -> None:
        decoded.state.registers[dst.number] = rank

    return step
