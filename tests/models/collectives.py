"""Models of collectives: several ranks with one or two cores, each exchanging with the same core of
the others.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine.dtypes import DTYPES
from nkic.machine.operands import Row
from nkic.machine.targets import TARGETS
from tests.harness.drawing import Draw
from tests.harness.instruction import Call, Tile, call, tile
from tests.harness.model import Bits, Given, Results, Settings, Shape, model
from tests.harness.scenes import Before, Scene, Wanted, exchange, near, numbers

Array = NDArray[Any]
Groups = tuple[tuple[int, ...], ...]
REDUCED: dict[str, Callable[..., Array]] = {"add": np.sum, "minimum": np.min, "maximum": np.max}
NAMES = [name for name, dtype in DTYPES.items() if not dtype.is_wide]
PLAIN = [name for name in NAMES if DTYPES[name].lanes == 1]
PRIORITIES = (None, 0, 1, 3)


def _groups(draw: Draw, size: int = 0) -> Groups:
    """Draw all ranks in groups of one size, in any order."""
    size = size or draw.pick([1, 2, 4])
    ranks = draw.rng.permutation(size * draw.pick([1, 2] if size < 4 else [1]))
    return tuple(tuple(map(int, group)) for group in ranks.reshape(-1, size))


def _group(groups: Groups, rank: int) -> tuple[int, ...]:
    return next(group for group in groups if rank in group)


def _previous(groups: Groups, rank: int, steps: int = 1) -> int:
    """Return the previous rank of the ring, which follows the order of the group."""
    group = _group(groups, rank)
    return group[(group.index(rank) - steps) % len(group)]


class _Part:
    """One core's call, and the dst that it produces on a rank."""

    def __init__(self, made: Call, of: Callable[[int, Before], dict[Tile, Wanted]]) -> None:
        self.call, self.of = made, of


def _scene(
    draw: Draw, target: str, groups: Groups, part: Callable[[], _Part], cores: int = 0
) -> Scene:
    """Return the scene, with a priority, which changes no value, if the target has priorities."""
    generation = TARGETS[target].generation
    parts = [part() for _ in range(cores or draw.pick([1, 2] if generation >= 3 else [1]))]
    priority = draw.pick(PRIORITIES) if generation >= 4 else None
    for one in parts:
        one.call.values["priority"] = priority

    def expected(rank: int, before: Before) -> dict[Tile, Wanted]:
        return {t: wanted for one in parts for t, wanted in one.of(rank, before).items()}

    return Scene([[one.call] for one in parts], expected, sum(map(len, groups)))


def _memory(draw: Draw) -> str:
    return draw.pick(["sbuf", "hbm"])


def _tile(draw: Draw, memory: str, shape: tuple[int, int], dtype: str) -> Tile:
    """Draw a tile of (partitions, elements), or of the same number of elements in a row."""
    if memory == "hbm":
        return draw.tile((shape[0] * shape[1],), dtype, "hbm", dims=3)
    return draw.tile(shape, dtype, dims=1)


def _plain(target: str) -> list[str]:
    """Return the types that engines of the target add and compare: NeuronCore-v4 added two."""
    newer = {"float8_e4m3fn", "float8_e8m0fnu"} if TARGETS[target].generation < 4 else set()
    return [name for name in PLAIN if name not in newer]


def _shape(draw: Draw) -> tuple[int, int]:
    return draw.pick([1, 3, 32]), draw.pick([1, 5, 24])


def _reduction(values: list[Array], op: str, dtype: str) -> Wanted:
    """Reduce in float64; float32 sums in any order are close to it."""
    whole = np.stack([numbers(value) for value in values])
    slack = np.abs(whole).sum(axis=0) * len(values) * 2.0**-23 if op == "add" else 0.0
    return near(REDUCED[op](whole, axis=0), np.asarray(slack), dtype)


@exchange("all_reduce")
def all_reduce(draw: Draw, target: str) -> Scene:
    groups, memory, op = _groups(draw), _memory(draw), draw.pick([*REDUCED])
    shape, dtype = _shape(draw), draw.pick(_plain(target))

    def part() -> _Part:
        dst, src = (_tile(draw, memory, shape, dtype) for _ in "ds")
        made = call("all_reduce", dst=dst, src=src, replica_group=groups, op=op)
        return _Part(
            made,
            lambda rank, before: {
                dst: _reduction([before(r, src) for r in _group(groups, rank)], op, dtype)
            },
        )

    return _scene(draw, target, groups, part)


@exchange("reduce_scatter")
def reduce_scatter(draw: Draw, target: str) -> Scene:
    """A rank keeps the part whose number is its position in the group."""
    groups, memory, op = _groups(draw), _memory(draw), draw.pick([*REDUCED])
    (rows, columns), dtype, count = _shape(draw), draw.pick(_plain(target)), len(groups[0])

    def part() -> _Part:
        dst = _tile(draw, memory, (rows, columns), dtype)
        src = _tile(draw, memory, (rows * count, columns), dtype)

        def of(rank: int, before: Before) -> dict[Tile, Wanted]:
            place = _group(groups, rank).index(rank)
            parts = [before(r, src).reshape(count, *_like(dst)) for r in _group(groups, rank)]
            return {dst: _reduction([one[place] for one in parts], op, dtype)}

        return _Part(_call("reduce_scatter", groups, dst, src, op=op), of)

    return _scene(draw, target, groups, part)


def _like(of: Tile) -> tuple[int, int]:
    return of.partitions, int(np.prod([num for _, num in of.dims], dtype=int))


def _call(name: str, groups: Groups, dst: Tile, src: Tile, **more: Any) -> Call:
    given = {"collective_dim": 0, **more}
    return call(name, dst=dst, src=src, replica_group=groups, **given)


@exchange("all_gather")
def all_gather(draw: Draw, target: str) -> Scene:
    groups, memory, dtype = _groups(draw), _memory(draw), draw.pick(NAMES)
    along = draw.pick([0, 1]) if memory == "sbuf" else 0
    (rows, columns), count = _shape(draw), len(groups[0])
    whole = (rows, columns * count) if along else (rows * count, columns)

    def part() -> _Part:
        dst = _tile(draw, memory, whole, dtype)
        src = _tile(draw, memory, (rows, columns), dtype)

        def of(rank: int, before: Before) -> dict[Tile, Wanted]:
            parts = [before(r, src) for r in _group(groups, rank)]
            gathered = np.concatenate(parts, axis=along if memory == "sbuf" else 1)
            return {dst: Bits(gathered)}

        return _Part(_call("all_gather", groups, dst, src, collective_dim=along), of)

    return _scene(draw, target, groups, part)


@exchange("all_to_all")
def all_to_all(draw: Draw, target: str) -> Scene:
    """Part i of rank r's src is part r of rank i's dst, counted in the group."""
    groups, dtype, size = _groups(draw), draw.pick(NAMES), draw.pick([1, 5, 24])
    count = len(groups[0])

    def part() -> _Part:
        dst, src = (draw.tile((count * size,), dtype, "hbm", dims=3) for _ in "ds")

        def of(rank: int, before: Before) -> dict[Tile, Wanted]:
            place = _group(groups, rank).index(rank)
            parts = [before(r, src).reshape(count, size)[place] for r in _group(groups, rank)]
            return {dst: Bits(np.concatenate(parts)[None])}

        return _Part(_call("all_to_all", groups, dst, src), of)

    return _scene(draw, target, groups, part)


# Chunks whose sizes are known only at run time.


def _counted(
    name: str, draw: Draw, target: str, groups: Groups, displaced: bool, cores: int
) -> Scene:
    """Return each rank's table, row by row: elements sent, from where, received, to where."""
    count, dtype, known = len(groups[0]), draw.pick(NAMES), draw.chance()
    room, size = draw.pick([1, 6, 20]), draw.pick([4, 30])
    ranks = sum(map(len, groups))
    sent = draw.rng.integers(0, min(room, size) + 1, (ranks, count))
    first = draw.rng.integers(0, size - sent + 1)
    places = np.array([draw.rng.permutation(count) for _ in range(ranks)]) * room
    column = (lambda place: place) if name.startswith("all_to_all") else (lambda place: 0)

    def received(rank: int) -> list[int]:
        place = column(_group(groups, rank).index(rank))
        return [int(sent[r, place]) for r in _group(groups, rank)]

    def table(rank: int) -> Array:
        rows = [sent[rank], first[rank], [99] * count, places[rank]]
        return np.array(rows[: 3 + displaced], np.uint32)

    tables: list[Tile] = []
    split = name.endswith("_trigger")
    prepared: list[Tile] = []

    def part() -> _Part:
        dst = draw.tile((count * room,), dtype, "hbm", dims=3)
        src = draw.tile((size,), dtype, "hbm", dims=3)
        shape = (3 + displaced, count)
        memory = _memory(draw)
        held = tile(shape if memory == "hbm" else (1, *shape), dtype="uint32", buffer=memory)
        tables.append(held)

        def of(rank: int, before: Before) -> dict[Tile, Wanted]:
            place, out = column(_group(groups, rank).index(rank)), before(rank, dst)[0].copy()
            for n, r in enumerate(_group(groups, rank)):
                at = places[rank, n] if displaced else n * room
                chunk = before(r, src)[0, first[r, place] :][: sent[r, place]]
                out[at : at + len(chunk)] = chunk
            after = np.zeros_like(table(rank)) if split else table(rank)
            after[2] = after[2] if known else received(rank)
            return {dst: Bits(out[None]), held: Bits(after.reshape(1, -1))}

        flags: dict[str, Any] = {"recv_counts_known": known, "has_rdispls": displaced}
        if split:
            prepared.append(tile(shape, dtype="uint32", buffer="hbm"))
            flags["prepared"] = prepared[-1]
        made = call(name, dst=dst, src=src, metadata_tensor=held, replica_group=groups, **flags)
        return _Part(made, of)

    scene = _scene(draw, target, groups, part, cores)

    def fill(rank: int, window: Callable[[Tile], Array]) -> None:
        for held in prepared or tables:
            window(held)[...] = table(rank).reshape(held.shape)
        for held in tables if prepared else ():  # rewritten after the counts were read
            window(held)[...] = 0

    return scene._replace(fill=fill)


@exchange("all_gather_v")
def all_gather_v(draw: Draw, target: str) -> Scene:
    """Four ranks of two cores; the first column of a rank's table describes its only chunk."""
    return _counted("all_gather_v", draw, target, _groups(draw, 4), False, 2)


@exchange("all_to_all_v")
def all_to_all_v(draw: Draw, target: str) -> Scene:
    """The positions of received chunks can be given from trn3 on."""
    displaced = TARGETS[target].generation >= 4 and draw.chance(0.8)
    return _counted("all_to_all_v", draw, target, _groups(draw), displaced, 0)


@exchange("all_gather_v_trigger")
def all_gather_v_trigger(draw: Draw, target: str) -> Scene:
    return _counted("all_gather_v_trigger", draw, target, _groups(draw, 4), False, 2)


@exchange("all_to_all_v_trigger")
def all_to_all_v_trigger(draw: Draw, target: str) -> Scene:
    displaced = TARGETS[target].generation >= 4 and draw.chance(0.8)
    return _counted("all_to_all_v_trigger", draw, target, _groups(draw), displaced, 0)


def _table(draw: Draw, row: Row, settings: Settings) -> dict[str, Shape]:
    ranks = draw.pick([1, 2, 4])
    return {"prepared": (3, ranks), "metadata_tensor": draw.pick([(3, ranks), (1, 3 * ranks)])}


def _taken(given: Given) -> Results:
    found = given.elements("metadata_tensor")
    return {"prepared": Bits(found.reshape(given.elements("prepared").shape))}


for _name in ("all_gather_v_prepare", "all_to_all_v_prepare"):
    model(_name, _table)(_taken)


# Permutations.


@exchange("collective_permute")
def collective_permute(draw: Draw, target: str) -> Scene:
    """A rank that is not the target of any pair keeps its dst."""
    ranks, dtype, size = draw.pick([1, 2, 4]), draw.pick(NAMES), draw.pick([1, 5, 24])
    sources, targets = draw.rng.permutation(ranks), draw.rng.permutation(ranks)
    pairs = [(int(a), int(b)) for a, b in zip(sources, targets, strict=True)]
    pairs = pairs[: draw.integer(1, ranks)]

    def part() -> _Part:
        dst, src = (draw.tile((size,), dtype, "hbm", dims=3) for _ in "ds")
        made = call("collective_permute", dst=dst, src=src, source_target_pairs=tuple(pairs))
        source = {b: a for a, b in pairs}
        return _Part(
            made,
            lambda rank, before: {
                dst: Bits(before(source[rank], src) if rank in source else before(rank, dst))
            },
        )

    return _scene(draw, target, (tuple(range(ranks)),), part)


@exchange("collective_permute_implicit")
def collective_permute_implicit(draw: Draw, target: str) -> Scene:
    groups, memory, dtype, shape = _groups(draw), _memory(draw), draw.pick(NAMES), _shape(draw)
    channel = draw.integer(0, 3)

    def part() -> _Part:
        dst, src = (_tile(draw, memory, shape, dtype) for _ in "ds")
        made = _implicit("collective_permute_implicit", groups, dst=dst, src=src)
        made.values["channel_id"] = channel
        return _Part(made, lambda rank, before: {dst: Bits(before(_previous(groups, rank), src))})

    return _scene(draw, target, groups, part)


def _implicit(name: str, groups: Groups, **tiles: Tile) -> Call:
    values: dict[str, Any] = {**tiles, "replica_group": groups}
    return call(name, **values)


@exchange("collective_permute_implicit_reduce")
def collective_permute_implicit_reduce(draw: Draw, target: str) -> Scene:
    groups, memory, dtype, shape = (
        _groups(draw),
        _memory(draw),
        draw.pick(_plain(target)),
        _shape(draw),
    )
    op, channel = draw.pick([*REDUCED]), draw.integer(0, 3)

    def part() -> _Part:
        dst, src0, src1 = (_tile(draw, memory, shape, dtype) for _ in range(3))
        name = "collective_permute_implicit_reduce"
        made = _implicit(name, groups, dst=dst, src0=src0, src1=src1)
        made.values.update(op=op, channel_id=channel)

        def of(rank: int, before: Before) -> dict[Tile, Wanted]:
            source = _previous(groups, rank)
            values = [before(source, src0), before(source, src1)]
            return {dst: _reduction(values, op, dtype)}

        return _Part(made, of)

    return _scene(draw, target, groups, part)


# Ranks in registers.


def _told(draw: Draw, groups: Groups, made: Call, rank_of: Callable[[int], int]) -> Scene:
    """Store the register."""
    held = tile((1, 1), dtype="int32")
    calls = [made, call("register_store", "sync", dst=held, src=made.values["dst"])]

    def expected(rank: int, before: Before) -> dict[Tile, Wanted]:
        return {held: np.array([[rank_of(rank)]], np.int32)}

    return Scene([calls], expected, sum(map(len, groups)))


@exchange("rank_id")
def rank_id(draw: Draw, target: str) -> Scene:
    return _told(draw, _groups(draw), call("rank_id", "sync", dst="$1"), lambda rank: rank)


@exchange("collective_permute_implicit_current_processing_rank_id")
def current_rank(draw: Draw, target: str) -> Scene:
    """After a step around the ring, data come from the preceding rank."""
    groups, steps, channel = _groups(draw), draw.integer(0, 5), draw.integer(0, 3)
    name = "collective_permute_implicit_current_processing_rank_id"
    given: dict[str, Any] = {"iteration_id": steps, "replica_group": groups, "channel_id": channel}
    made = call(name, "sync", dst="$1", **given)
    return _told(draw, groups, made, lambda rank: _previous(groups, rank, steps))
