"""Views of Beta 1 address what NumPy's index arrays address: keys, parts, shapes, overlaps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nkic.base.device import KernelError
from nkic.base.diagnostics import Reporter
from nkic.base.profiles import Profile
from nkic.base.source import CallChain, Span
from nkic.language import views
from nkic.language.beta1 import access, emit, extents, indices
from nkic.language.beta1.masks import Box
from nkic.language.beta1.tiles import Tile
from nkic.language.indexing import DynamicSlice
from nkic.language.trace import Trace, active, tracing
from nkic.machine.dtypes import DTYPES
from nkic.machine.targets import DEFAULT, Buffer
from nkic.program.program import View

Addresses = NDArray[np.int64]
SHAPE = (4, 3, 5)
MEMORIES = (Buffer.HBM, Buffer.SBUF)
AT = CallChain(Span("k.py", 1, 1, 1, 2))


@pytest.fixture(autouse=True)
def traced() -> Iterator[None]:
    with tracing(Trace(DEFAULT, Profile.BETA1, Reporter(20))):
        yield


def view_of(shape: tuple[int, ...], buffer: Buffer, kind: str = "float32") -> View:
    return views.whole(active().declare(shape, DTYPES[kind], buffer, "t", AT))


def addresses(view: View) -> Addresses:
    grids = np.indices(view.shape, dtype=np.int64)
    return np.asarray(view.offset + sum(g * s for g, s in zip(grids, view.strides, strict=True)))


def values(index: indices.Index) -> Addresses:
    grids = np.indices(index.shape, dtype=np.int64)
    return np.asarray(index.start + sum(g * d.step for g, d in zip(grids, index.dims, strict=True)))


def axes_of(number: int) -> frozenset[int]:
    return frozenset([-1 - number])


# ---- keys ----------------------------------------------------------------------------------------

# Each part as text that both evaluate: `i` and `j` are columns and rows of numbers.
PARTS = (
    *("s[:]", "s[1:3]", "s[0:3:2]", "s[-2:]", "0", "2", "-1", "i", "j", "2 * i - 1", "2 - j"),
    *("i + j", "j[0, 1]", "s[1:9]", "s[0:1]", "i[0:1]", "i - j"),
)
NAMES = {"s": np.s_}


def both(text: str) -> tuple[Any, Any]:
    """Return a part as the kernel has it, and its numbers: an array, or a slice."""
    number = indices.arange
    ours = eval(text, {**NAMES, "i": number(2)[:, None], "j": number(3)[None, :]})
    theirs = eval(text, {**NAMES, "i": np.arange(2)[:, None], "j": np.arange(3)[None, :]})
    return ours, theirs


def indexed(
    shape: Sequence[int], parts: Sequence[Any]
) -> tuple[list[Addresses], list[int], list[int | None]]:
    """Return the index of each dimension, over all dimensions of the result.

    Also whose dimension each of the result's is (-1: of the arrays, -2: a new one).
    """
    arrays, axis = [], 0
    for part in parts:
        if part is not None:
            if not isinstance(part, slice):
                arrays.append(np.asarray(part) + (shape[axis] if np.ndim(part) == 0 > part else 0))
            axis += 1
    common = np.broadcast_shapes(*(a.shape for a in arrays))
    advanced = any(a.ndim for a in arrays)
    result: list[tuple[int, int]] = []  # size, and dimension of the tensor
    lines: dict[int, tuple[int, Addresses]] = {}
    first, axis, placed = -1, 0, False
    for part in parts:
        if part is None:
            result.append((1, -2))
            continue
        if isinstance(part, slice):
            start = part.start or 0
            stop = shape[axis] if part.stop is None else part.stop
            line = np.arange(start + shape[axis] * (start < 0), stop, part.step or 1)
            lines[axis] = len(result), line
            result.append((len(line), axis))
        elif not placed and advanced:
            first, placed = len(result), True
            result += [(size, -1) for size in common]
        axis += 1
    rank, found, waiting = len(result), [], iter(arrays)
    for axis in range(len(shape)):
        if axis in lines:
            at, line = lines[axis]
            found.append(line.reshape([-1 if n == at else 1 for n in range(rank)]))
        else:
            one = next(waiting)
            after = rank - first - len(common) if advanced else 0
            found.append(one.reshape(one.shape + (1,) * after) if advanced else one)
    return found, [size for size, _ in result], [axis for _, axis in result]


def walks_partitions(wanted: list[Addresses], sizes: list[int], single: bool) -> bool:
    """Return whether dimension 0 walks partitions, each once, and nothing else does."""
    if single:
        return True
    rank = len(sizes)
    rows = np.broadcast_to(wanted[0], sizes)
    if (rows != rows[(slice(None), *(slice(0, 1),) * (rank - 1))]).any():
        return False
    others = [np.broadcast_to(one, sizes) for one in wanted[1:]]
    if any((one != one[:1]).any() for one in others):
        return False
    return sizes[0] == 1 or bool((np.diff(rows, axis=0) != 0).all())


@pytest.mark.parametrize("buffer", MEMORIES)
@pytest.mark.parametrize("first", PARTS)
def test_a_key_takes_what_numpy_takes(first: str, buffer: Buffer) -> None:
    view = view_of(SHAPE, buffer)
    axes = tuple(map(axes_of, range(3)))
    refused = 0
    for texts in product([first], PARTS, (":", "s[0:3:2]", "2", "i", "2 - j")):
        pairs = [(slice(None), slice(None)) if t == ":" else both(t) for t in texts]
        for key in ((0, 1, 2), (0, 1), (0, None, 1, 2), (None, 0, 1, 2), (0, 1, None, 2)):
            ours = tuple(None if n is None else pairs[n][0] for n in key)
            parts = [None if n is None else pairs[n][1] for n in key]
            parts += [slice(None)] * (3 - sum(n is not None for n in key))
            if None in key and texts[1:] not in (("s[1:3]", "2 - j"), ("i", ":"), ("2", "i")):
                continue
            refused += one_key(view, axes, ours, parts)
    assert buffer is Buffer.SBUF or not refused


def one_key(view: View, axes: access.Axes, ours: Any, parts: list[Any]) -> int:
    wanted, sizes, whose = indexed(SHAPE, parts)
    on_chip = view.tensor.on_chip
    single = not isinstance(parts[0], slice | None) and np.ndim(parts[0]) == 0
    try:
        found = access.take(view, axes, ours, lambda value: None)
    except KernelError as error:
        assert on_chip and error.slug == "partition-dimension"
        first_is_new = parts[0] is None
        assert first_is_new or not walks_partitions(wanted, sizes, single)
        return 1
    address = sum(w * s for w, s in zip(wanted, view.strides, strict=True))
    reached = addresses(found.view)
    expected = np.broadcast_to(address, sizes)
    if on_chip and single and reached.size != expected.size:  # a partition repeated is kept once
        expected = expected[:1]
    assert reached.shape[int(on_chip and single) :] == expected.shape or len(sizes) < 2 or on_chip
    np.testing.assert_array_equal(reached.squeeze(), expected.squeeze())
    if on_chip:
        assert len(found.view.shape) >= 2
        if parts[0] is not None:  # else an instruction refuses what leaves its partition
            walked, rest = divmod(found.view.strides[0], view.strides[0])
            assert walked and not rest
    if len(found.axes) == len(whose) and parts[0] is not None:
        for dim, axis in enumerate(whose):
            if axis is not None and axis >= 0:
                whole = sizes[dim] == SHAPE[axis]
                assert found.axes[dim] == (axes_of(axis) if whole else frozenset())
            elif axis == -2:
                assert found.axes[dim] == frozenset()
            elif sizes[dim] > 1:
                assert found.axes[dim] and not found.axes[dim] & {-1, -2, -3}
    beyond = {n for n, w in enumerate(wanted) if w.min() < 0 or w.max() >= SHAPE[n]}
    assert {one.axis for one in found.outside} == beyond
    for one in found.outside:
        assert one.size == SHAPE[one.axis]
        assert len(one.part.dims) == len(found.view.shape)
        mine = np.broadcast_to(wanted[one.axis], sizes).squeeze()
        theirs = np.broadcast_to(values(one.part), found.view.shape).squeeze()
        if mine.shape == theirs.shape:
            np.testing.assert_array_equal(theirs, mine)
    return 0


@pytest.mark.parametrize("buffer", MEMORIES)
def test_an_ellipsis_stands_for_what_is_missing(buffer: Buffer) -> None:
    view, axes = view_of(SHAPE, buffer), tuple(map(axes_of, range(3)))
    full = addresses(view)
    for key in (
        np.s_[...], np.s_[..., 2], np.s_[1:3, ...], np.s_[0:2, ..., 1:4], np.s_[..., 1:2, :],
        np.s_[1:, 1, ..., 3], np.s_[:, 1:3, 0:5:2, ...], np.s_[2:4], np.s_[..., None],
        np.s_[:, None, ..., 1:3], np.s_[3:4, 2, 4], np.s_[0:1, 0:1],
    ):  # fmt: skip
        found = access.take(view, axes, key, lambda value: None).view
        wanted = full[key]
        wanted = wanted.reshape(*wanted.shape, 1) if wanted.ndim < 2 and buffer.on_chip else wanted
        np.testing.assert_array_equal(addresses(found), wanted)
    many: tuple[Any, ...] = (np.s_[0, 0, 0, 0], np.s_[..., 0, 0, 0, 0], np.s_[:, :, None, :, 0])
    for more in many:
        with pytest.raises(KernelError, match="4 indices for 3 dimensions"):
            access.take(view, axes, more, lambda value: None)


@pytest.mark.parametrize("key", [2, -1, np.s_[1], np.s_[1, 2], np.s_[1, 2, 3]])
def test_a_number_keeps_the_partition(key: Any) -> None:
    for buffer in MEMORIES:
        view = view_of(SHAPE, buffer)
        found = access.take(view, tuple(map(axes_of, range(3))), key, lambda value: None).view
        wanted = addresses(view)[key]
        if not buffer.on_chip and not wanted.ndim:
            wanted = wanted.reshape(1)
        if buffer.on_chip:
            wanted = wanted[None] if wanted.ndim else wanted.reshape(1, 1)
            assert found.strides[0] == 15
        np.testing.assert_array_equal(addresses(found), wanted)


def test_a_slice_of_nothing_and_other_values_are_refused() -> None:
    view, axes = view_of(SHAPE, Buffer.HBM), tuple(map(axes_of, range(3)))
    for key, text in (
        (np.s_[2:2], "slice 2:2:1 of dimension 0 has no elements; shape is (4, 3, 5)"),
        (np.s_[:, 2:1], "slice 2:1:1 of dimension 1 has no elements"),
        (np.s_[:, :, ::-1], "the step of a slice of dimension 2 must be at least 1, not -1"),
        (np.s_[:, 2:0:-2], "the step of a slice of dimension 1 must be at least 1, not -2"),
        (np.s_[0:3:0], "the step of a slice of dimension 0 must be at least 1, not 0"),
        (np.s_[:, -2:-2], "slice 1:1:1 of dimension 1 has no elements"),
        (np.s_[:, 1.0:2], "the bounds of a slice must be ints, not 1.0"),
        ("a", "a tensor cannot be indexed with"),
        (True, "a tensor cannot be indexed with"),
        (1.5, "a tensor cannot be indexed with"),
    ):
        with pytest.raises(KernelError) as raised:
            access.take(view, axes, key, lambda value: None)
        assert raised.value.message.startswith(text)
        assert ("`//`" in (raised.value.help or "")) == ("1.0" in text)
    for last in (1, 2):
        assert access.take(view, axes, np.s_[last - 1 : last], lambda v: None).view.shape[0] == 1


@pytest.mark.parametrize("buffer", MEMORIES)
def test_nl_ds_is_a_slice(buffer: Buffer) -> None:
    view, axes = view_of(SHAPE, buffer), tuple(map(axes_of, range(3)))
    full = addresses(view)
    i = indices.arange(6)
    for start, size in product(range(3), range(1, 3)):
        for at in (start, i[start]):
            key = (slice(None), DynamicSlice(0, 3), DynamicSlice(at, size))
            found = access.take(view, axes, key, lambda value: None)
            np.testing.assert_array_equal(addresses(found.view), full[:, :, start : start + size])
            assert not found.outside
    found = access.take(view, axes, DynamicSlice(1, 3), lambda value: None)
    np.testing.assert_array_equal(addresses(found.view), full[1:4])
    beyond = access.take(view, axes, DynamicSlice(2, 3), lambda value: None).outside
    assert [(one.axis, one.part.bounds) for one in beyond] == [(0, (2, 4))]


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("buffer", MEMORIES)
def test_an_element_read_at_run_time_adds_to_the_index(axis: int, buffer: Buffer) -> None:
    view, axes = view_of(SHAPE, buffer), tuple(map(axes_of, range(3)))
    source = view_of((4, 6), Buffer.SBUF, "int32")._replace(shape=(1, 1), offset=8)

    def is_tile(value: Any) -> View | None:
        return source if value == "tile" else None

    element = access.AtRunTime(source, indices.Index(0, ()))
    i = indices.arange(4)[:, None, None]
    for index, start, length in (
        ("tile", 0, 1),
        (element.moved(2), 2, 1),
        (DynamicSlice("tile", 2), 0, 2),
        (DynamicSlice(element.moved(1), 2), 1, 2),
        (element.moved(indices.arange(2)), 0, 2),
    ):
        key: list[Any] = [slice(None)] * 3
        key[axis] = index
        try:
            found = access.take(view, axes, tuple(key), is_tile).view
        except KernelError as error:
            assert buffer.on_chip and axis == 0 and error.slug == "partition-dimension"
            continue
        parts: list[Any] = [slice(None)] * 3
        parts[axis] = slice(start, start + length)
        wanted = addresses(view)[tuple(parts)]
        np.testing.assert_array_equal(addresses(found).squeeze(), wanted.squeeze())
        dynamic = found.dynamic
        assert dynamic is not None
        assert dynamic[:1] + dynamic[2:] == ("scalar", view.strides[axis], SHAPE[axis], axis)
        flat = dynamic.source
        assert isinstance(flat, View)
        assert (flat.shape, flat.strides, flat.offset) == ((1, 1), (6, 1), 8)
    both_ = (i, "tile", "tile")
    with pytest.raises(KernelError, match="can be indexed with one tile only"):
        access.take(view, axes, both_, is_tile)


def test_rows_are_gathered_by_a_column_of_a_tile() -> None:
    source = view_of((4, 6), Buffer.SBUF, "int32")._replace(shape=(3, 1), offset=2)
    i, j = indices.arange(3)[:, None], indices.arange(5)[None, :]
    column = access.AtRunTime(source, i * 0)
    wide, axes = view_of((9, 5), Buffer.HBM), (axes_of(0), axes_of(1))
    found = access.take(wide, axes, (column, j), lambda value: None).view
    assert (found.shape, found.strides, found.offset) == ((3, 5), (5, 1), 0)
    assert found.dynamic is not None and isinstance(found.dynamic.source, View)
    assert found.dynamic[:1] + found.dynamic[2:] == ("vector", 5, 9, 0)
    flat = found.dynamic.source
    assert (flat.shape, flat.strides, flat.offset) == ((3, 1), (6, 1), 2)
    part = access.part_of(found, (1, 2), (2, 3))
    assert (part.shape, part.offset) == ((2, 3), 2)
    assert part.dynamic is not None and isinstance(part.dynamic.source, View)
    assert (part.dynamic.source.shape, part.dynamic.source.offset) == ((2, 1), 8)
    other = access.take(wide, axes, (source, slice(1, 3)), lambda value: source).view
    assert other.shape == (3, 1, 2) and other.offset == 1
    with pytest.raises(KernelError, match="rows can be gathered from HBM only"):
        access.take(view_of((9, 5), Buffer.SBUF), axes, (column, j), lambda value: None)


# ---- other shapes --------------------------------------------------------------------------------

SHAPES = [s for rank in (1, 2, 3, 4) for s in product((1, 2, 3), repeat=rank) if prod(s) < 13]


@pytest.mark.parametrize("buffer", MEMORIES)
def test_a_broadcast_is_that_of_numpy_but_for_the_partitions(buffer: Buffer) -> None:
    on_chip = buffer.on_chip
    for shape in SHAPES[3 * on_chip :]:
        view = view_of(shape, buffer)
        full = addresses(view)
        for target in SHAPES[3 * on_chip :]:
            missing = len(target) - len(shape)
            one = full
            if on_chip and missing > 0:
                one = one.reshape(shape[0], *(1,) * missing, *shape[1:])
            elif missing < 0:
                kept = list(shape)
                for at in range(len(kept) - 1, on_chip - 1, -1):
                    if len(kept) > len(target) and kept[at] == 1:
                        del kept[at]
                one = one.reshape(kept)
            legal = one.ndim <= len(target) and (not on_chip or one.shape[0] == target[0])
            try:
                wanted = np.broadcast_to(one, target) if legal else None
            except ValueError:
                wanted = None
            found = access.broadcast(view, target)
            assert (found is None) == (wanted is None), (shape, target)
            if found is not None and wanted is not None:
                np.testing.assert_array_equal(addresses(found), wanted)
            fits = prod(shape) == prod(target) and (not on_chip or shape[0] == target[0])
            fitted = access.fitted(view, target)
            assert (fitted is None) == (wanted is None and not fits), (shape, target)
            if fitted is not None and wanted is None:
                np.testing.assert_array_equal(addresses(fitted), full.reshape(target))


@pytest.mark.parametrize("buffer", MEMORIES)
def test_a_target_in_the_shape_of_its_value(buffer: Buffer) -> None:
    on_chip = buffer.on_chip
    for shape, target in product(SHAPES[3 * on_chip :], repeat=2):
        tile = view_of((*shape[:-1], 2 * shape[-1]), buffer)
        view = tile._replace(shape=shape, strides=(*tile.strides[:-1], 2 * tile.strides[-1]))
        found = emit.shaped_like(view, target)
        real = [n for n in shape if n > 1] == [n for n in target if n > 1]
        assert (found is not None) == (real and not (on_chip and shape[0] != target[0]))
        if found is not None:
            np.testing.assert_array_equal(addresses(found), addresses(view).reshape(target))
            assert not on_chip or found.strides[0] == view.strides[0]


def test_a_part_and_a_permutation() -> None:
    view = view_of((2, 3, 4), Buffer.HBM)
    full = addresses(view)
    for starts in product(range(2), repeat=3):
        sizes = tuple(n - at for n, at in zip(view.shape, starts, strict=True))
        part = access.part_of(view, starts, sizes)
        slices = tuple(slice(at, at + n) for at, n in zip(starts, sizes, strict=True))
        np.testing.assert_array_equal(addresses(part), full[slices])
        again = access.part_of(part, (0, 1, 1), (1, sizes[1] - 1, 1))
        np.testing.assert_array_equal(addresses(again), full[slices][:1, 1:, 1:2])
    np.testing.assert_array_equal(
        addresses(access.permuted(view, (2, 0, 1))), full.transpose(2, 0, 1)
    )
    np.testing.assert_array_equal(addresses(access.permuted(view, (0, 2))), full[:, 0])


# ---- overlaps ------------------------------------------------------------------------------------


def hull(view: View) -> list[tuple[int, int]]:
    """Return the first and last element that a view reaches: rows and columns, or addresses."""
    reached = addresses(view)
    if not view.tensor.on_chip:
        return [(int(reached.min()), int(reached.max()))]
    pitch = prod(view.tensor.shape[1:])
    return [(int(n.min()), int(n.max())) for n in (reached // pitch, reached % pitch)]


@pytest.mark.parametrize("buffer", MEMORIES)
def test_views_overlap_where_their_ranges_do(buffer: Buffer) -> None:
    view = view_of((4, 6), buffer)
    axes = (axes_of(0), axes_of(1))
    columns = [slice(0, 2), slice(2, 4), slice(1, 3), slice(0, 6, 3), slice(5, 6), slice(None)]
    rows = [slice(0, 1), slice(1, 3), slice(2, 4), slice(None)]
    found = [access.take(view, axes, key, lambda v: None).view for key in product(rows, columns)]
    backwards = (slice(None), 4 - indices.arange(3))
    found.append(access.take(view, axes, backwards, lambda v: None).view)
    for first, second in product(found, repeat=2):
        wanted = all(
            a[0] <= b[1] and b[0] <= a[1] for a, b in zip(hull(first), hull(second), strict=True)
        )
        assert emit.overlap(first, second) == wanted, (first, second)
    other = view_of((4, 6), buffer)
    assert not emit.overlap(view, other)
    if buffer.on_chip:
        for one in found:
            assert emit.covers(one) == (np.unique(addresses(one)).size == 24)
        twice, row = view._replace(strides=(6, 0)), view._replace(shape=(4, 1, 6))
        assert not emit.covers(twice) and emit.covers(row._replace(strides=(6, 0, 1)))


def test_a_run_time_offset_may_be_anywhere() -> None:
    view = view_of((4, 6), Buffer.SBUF)
    source = view_of((1, 1), Buffer.SBUF, "int32")
    key, axes = (slice(None), source), (axes_of(0), axes_of(1))
    moved = access.take(view, axes, key, lambda v: v if v is source else None)
    part = access.part_of(view, (0, 5), (4, 1))
    assert emit.overlap(moved.view, part) and emit.overlap(part, moved.view)


def test_an_engine_starts_at_some_partitions() -> None:
    """At 0, 64 with up to 64, at 32 and 96 with up to 32."""
    view = view_of((128, 2), Buffer.SBUF)
    for start in range(128):
        for count in {1, 31, 32, 33, 63, 64, 65, 128 - start}:
            if start + count <= 128:
                part = access.part_of(view, (start, 0), (count, 2))
                legal = {0: 128, 32: 32, 64: 64, 96: 32}
                assert emit.can_start(part) == (count <= legal.get(start, 0)), (start, count)


# ---- parts of operands ---------------------------------------------------------------------------


def test_a_region_grows_to_a_partition_at_which_an_engine_starts() -> None:
    for start in range(128):
        for size in {1, 20, 32, 33, 64, 128 - start}:
            if start + size > 128:
                continue
            region = extents.startable(extents.Extent(Box((start, 1), (size, 3))), (128, 5))
            box = region.box
            assert box is not None and box.starts[1:] == (1,) and box.sizes[1:] == (3,)
            (first, _), (count, _) = box
            legal = {0: 128, 32: 32, 64: 64, 96: 32}
            assert count <= legal.get(first, 0) and first + count == start + size
            assert all(start + size - n > most for n, most in legal.items() if first < n <= start)
            assert (region.remaining is None) == (first == start)
            if region.remaining is not None:
                for row in range(first, start + size):
                    assert region.remaining.holds(Box((row, 0), (1, 5))) == (row >= start)


def test_an_operand_is_repeated_then_cut() -> None:
    region = extents.Extent(Box((1, 2), (2, 3)))
    for shape in ((4, 6), (4, 1)):
        tile = Tile(view_of(shape, Buffer.SBUF))
        found = extents.expanded(tile, (4, 6), region)._access
        wanted = np.broadcast_to(addresses(tile._access), (4, 6))[1:3, 2:5]
        np.testing.assert_array_equal(addresses(found), wanted)
        part = extents.column(tile, region)._access
        np.testing.assert_array_equal(addresses(part), addresses(tile._access)[1:3])
    row = Tile(view_of((1, 6), Buffer.SBUF))
    assert extents.column(row, region) is row
    with pytest.raises(KernelError, match=r"\(4, 5\) cannot be broadcast with \(4, 6\)"):
        extents.expanded(Tile(view_of((4, 5), Buffer.SBUF)), (4, 6))


def test_the_order_of_a_region_follows_a_permutation() -> None:
    region = extents.Extent(Box((1, 2, 3), (4, 5, 6)))
    assert extents.reordered(region, (2, 0, 1)).box == Box((3, 1, 2), (6, 4, 5))
    assert extents.reordered(extents.ALL, (1, 0)) is extents.ALL


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_one_element_too_far_is_refused_on_either_side(over: int) -> None:
    tensor = Tile(view_of((8, 6), Buffer.SBUF))
    i, j = indices.arange(8)[:, None], indices.arange(4)[None, :]
    for start, axis, size in ((over, 1, 6), (2 + over, 1, 6)):
        legal = 0 <= start <= 2
        tile = tensor[i, j + start]
        assert bool(tile._outside) != legal
        for low, count in ((0, 4), (1, 3), (0, 3), (1, 2)):
            box = extents.Extent(Box((0, low), (8, count)))
            inside = start + low >= 0 and start + low + count <= 6
            if inside:
                extents.check_inside(tile, box)
            else:
                low_, high = start + low, start + low + count - 1
                text = f"the index of dimension {axis} goes from {low_} to {high}, which has {size}"
                with pytest.raises(KernelError) as raised:
                    extents.check_inside(tile, box)
                assert raised.value.message.startswith(text)
                assert "mask=(index < 6)" in (raised.value.help or "")
    one = tensor[i, 6 if over > 0 else 5 + over]
    if over > 0:
        with pytest.raises(KernelError, match="dimension 1 is 6, which has 6 elements") as raised:
            extents.check_inside(one, extents.ALL)
        assert raised.value.help == "indices of it go from 0 to 5"
    else:
        extents.check_inside(one, extents.ALL)
