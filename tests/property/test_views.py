"""Compare random chains of view operations with NumPy on an array of element numbers.

Element i of the storage has the value i. The elements that a view addresses, by its shape, strides
and offset, must equal the result of NumPy's own operation on the array of the same shape.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nkic.base.source import NOWHERE, CallChain
from nkic.compiler.check import out_of_bounds
from nkic.language import indexing, views
from nkic.machine import dtypes
from nkic.machine.targets import Buffer
from nkic.program.program import Tensor, View

FLOAT32 = dtypes.find("float32")
HERE = CallChain(NOWHERE)


def tensor(shape: tuple[int, ...], buffer: Buffer, dtype: str = "float32") -> Tensor:
    found = dtypes.find(dtype)
    assert found is not None
    return Tensor(0, "t", found, shape, buffer, HERE)


def addressed(view: View) -> np.ndarray[Any, Any]:
    """Return the element numbers that `view` reads."""
    total = np.full(view.shape, view.offset)
    for axis, stride in enumerate(view.strides):
        shape = [1] * len(view.shape)
        shape[axis] = -1
        total = total + stride * np.arange(view.shape[axis]).reshape(shape)
    return total


def kept(array: np.ndarray[Any, Any], on_chip: bool) -> np.ndarray[Any, Any]:
    """Return NumPy's result with the dimensions that NKI never drops."""
    while array.ndim < (2 if on_chip else 1):
        array = array[..., None]
    return array


Pair = tuple[View, np.ndarray[Any, Any]]


def do_index(data: st.DataObject, pair: Pair) -> Pair:
    view, array = pair
    chip = views.on_chip(view)
    key: list[Any] = []
    plain: list[Any] = []
    for axis, size in enumerate(view.shape[: data.draw(st.integers(1, len(view.shape)))]):
        start = data.draw(st.integers(0, size - 1))
        stop = data.draw(st.integers(start + 1, size))
        step = 1 if axis == 0 and chip else data.draw(st.integers(1, 3))
        sign = data.draw(st.sampled_from([0, size]))
        form = data.draw(st.sampled_from(["int", "slice", "ds", "all"]))
        if form == "int":
            key.append(start - sign)
            plain.append(slice(start, start + 1) if axis == 0 and chip else start)
        elif form == "slice":
            key.append(slice(start - sign, stop, step))
            plain.append(slice(start, stop, step))
        elif form == "ds":
            key.append(indexing.DynamicSlice(start, stop - start))
            plain.append(slice(start, stop))
        else:
            key.append(slice(None))
            plain.append(slice(None))
    if data.draw(st.booleans()):
        key.append(...)
    return indexing.index(view, tuple(key)), kept(array[tuple(plain)], chip)


def do_slice(data: st.DataObject, pair: Pair) -> Pair:
    view, array = pair
    dim = data.draw(st.integers(0, len(view.shape) - 1))
    start = data.draw(st.integers(0, view.shape[dim] - 1))
    stop = data.draw(st.integers(start + 1, view.shape[dim]))
    step = 1 if dim == 0 and views.on_chip(view) else data.draw(st.integers(1, 3))
    key = (slice(None),) * dim + (slice(start, stop, step),)
    return indexing.slice_dim(view, dim, start, stop, step), array[key]


def do_permute(data: st.DataObject, pair: Pair) -> Pair:
    view, array = pair
    first = 1 if views.on_chip(view) else 0
    tail = data.draw(st.permutations(range(first, len(view.shape))))
    dims = (*range(first), *tail)
    return views.permute(view, dims), array.transpose(dims)


def do_expand(data: st.DataObject, pair: Pair) -> Pair:
    view, array = pair
    dim = data.draw(st.integers(1 if views.on_chip(view) else 0, len(view.shape)))
    return views.expand_dim(view, dim), np.expand_dims(array, dim)


def do_broadcast(data: st.DataObject, pair: Pair) -> Pair:
    view, array = pair
    first = 1 if views.on_chip(view) else 0
    ones = [d for d in range(first, len(view.shape)) if view.shape[d] == 1]
    assume(ones)
    dim = data.draw(st.sampled_from(ones))
    size = data.draw(st.integers(1, 3))
    shape = (*view.shape[:dim], size, *view.shape[dim + 1 :])
    return views.broadcast(view, dim, size), np.broadcast_to(array, shape)


def do_squeeze(data: st.DataObject, pair: Pair) -> Pair:
    view, array = pair
    chip = views.on_chip(view)
    ones = [d for d in range(1 if chip else 0, len(view.shape)) if view.shape[d] == 1]
    assume(ones and len(view.shape) > (2 if chip else 1))
    dim = data.draw(st.sampled_from(ones))
    return views.squeeze_dim(view, dim), array.squeeze(dim)


def splits(data: st.DataObject, size: int) -> tuple[int, ...]:
    factor = data.draw(st.sampled_from([n for n in range(1, size + 1) if size % n == 0]))
    return (factor, size // factor)


def do_reshape_dim(data: st.DataObject, pair: Pair) -> Pair:
    view, array = pair
    first = 1 if views.on_chip(view) else 0
    dim = data.draw(st.integers(first, len(view.shape) - 1))
    parts = splits(data, view.shape[dim])
    shape = (*view.shape[:dim], *parts, *view.shape[dim + 1 :])
    asked = data.draw(st.sampled_from([parts, (-1, parts[1]), (parts[0], -1)]))
    return views.reshape_dim(view, dim, asked), array.reshape(shape)


def do_reshape(data: st.DataObject, pair: Pair) -> Pair:
    view, array = pair
    first = view.shape[:1] if views.on_chip(view) else ()
    rest = int(np.prod(view.shape[len(first) :]))
    middle, inner = splits(data, rest)
    shape = (*first, *splits(data, middle), inner)
    try:
        return views.reshape(view, shape), array.reshape(shape)
    except views.ViewError as error:
        assert error.slug == "reshape-layout"
        assert not shares_memory(array, shape), "NumPy reshapes it without a copy"
        return pair


def shares_memory(array: np.ndarray[Any, Any], shape: tuple[int, ...]) -> bool:
    """Return whether NumPy reshapes `array` without a copy."""
    again = array.view()
    try:
        again.shape = shape
    except AttributeError:
        return False
    return True


STEPS = [
    do_index,
    do_slice,
    do_permute,
    do_expand,
    do_broadcast,
    do_squeeze,
    do_reshape_dim,
    do_reshape,
]
SHAPES = st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=2, max_size=4).map(tuple)


@settings(max_examples=150)
@given(
    st.data(), SHAPES, st.sampled_from([Buffer.SBUF, Buffer.PSUM, Buffer.HBM, Buffer.SHARED_HBM])
)
def test_chains_address_what_numpy_addresses(
    data: st.DataObject, shape: tuple[int, ...], buffer: Buffer
) -> None:
    view = views.whole(tensor(shape, buffer))
    pair: Pair = (view, np.arange(int(np.prod(shape))).reshape(shape))
    for step in data.draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=5)):
        pair = step(data, pair)
        found, expected = pair
        assert found.shape == expected.shape
        assert np.array_equal(addressed(found), expected)
        assert found.tensor is view.tensor


@settings(max_examples=100)
@given(st.data(), SHAPES)
def test_contiguity_is_numpys(data: st.DataObject, shape: tuple[int, ...]) -> None:
    view = views.whole(tensor(shape, Buffer.HBM))
    pair: Pair = (view, np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape))
    for step in data.draw(st.lists(st.sampled_from(STEPS[:3]), max_size=3)):
        pair = step(data, pair)
    assert views.is_contiguous(pair[0]) == pair[1].flags.c_contiguous


@settings(max_examples=100)
@given(st.data())
def test_a_pattern_reads_what_as_strided_reads(data: st.DataObject) -> None:
    storage = np.arange(4 * 24)
    pairs = data.draw(
        st.lists(st.tuples(st.integers(0, 30), st.integers(1, 5)), min_size=1, max_size=3)
    )
    offset = data.draw(st.integers(0, 20))
    view = views.whole(tensor((4, 24), Buffer.HBM))
    last = offset + sum(step * (size - 1) for step, size in pairs)
    found = indexing.access_pattern(view, pairs, offset)
    wrong = out_of_bounds(found, "dma_copy", "src")
    assert (wrong is not None) == (last >= storage.size)
    if wrong is not None:
        assert f"element {last}; there are 96" in wrong.message
        return
    expected = np.lib.stride_tricks.as_strided(
        storage[offset:], [size for _, size in pairs], [step * 8 for step, _ in pairs]
    )
    assert np.array_equal(addressed(found), expected)
    assert views.pattern(found) == [list(pair) for pair in pairs]


@settings(max_examples=80)
@given(st.data(), st.sampled_from(["int8", "float16", "int32", "float32"]))
def test_reinterpreted_bytes_are_numpys(data: st.DataObject, other: str) -> None:
    shape = (2, data.draw(st.sampled_from([1, 2, 3])), data.draw(st.sampled_from([1, 2, 4, 6])))
    first = data.draw(st.sampled_from(["int8", "float16", "float32"]))
    view = views.whole(tensor(shape, Buffer.HBM, first))
    array = np.arange(int(np.prod(shape)) * view.dtype.size, dtype=np.uint8)
    row = data.draw(st.integers(0, shape[1] - 1))
    view = indexing.index(view, (slice(None), slice(row, shape[1])))
    typed = array.view(first).reshape(shape)[:, row:]
    dtype = dtypes.find(other)
    assert dtype is not None
    if typed.shape[-1] * typed.itemsize % dtype.size:
        try:
            views.reinterpret(view, dtype)
        except views.ViewError as error:
            assert error.slug == "dtype-view"
            return
        raise AssertionError(f"{first}{shape} became {other}")
    found = views.reinterpret(view, dtype)
    expected = typed.view(other)
    assert found.shape == expected.shape
    bytes_read = addressed(found)[..., None] * dtype.size + np.arange(dtype.size)
    assert np.array_equal(
        array[bytes_read].reshape(-1), np.frombuffer(expected.tobytes(), np.uint8)
    )


@settings(max_examples=60)
@given(st.permutations(["a", "b", "c", "d"]), st.integers(0, 3))
def test_rearrange_is_split_permute_merge(order: list[str], cut: int) -> None:
    sizes = {"a": 2, "b": 3, "c": 2, "d": 5}
    view = views.whole(tensor((6, 10), Buffer.HBM))
    target = [group for group in (tuple(order[:cut]), tuple(order[cut:])) if group]
    try:
        found = views.rearrange(view, (("a", "b"), ("c", "d")), target, {"a": 2, "d": 5})
    except views.ViewError as error:
        assert error.slug == "reshape-layout"
        assert any((x, y) not in pairwise("abcd") for group in target for x, y in pairwise(group))
        return
    array = np.arange(60).reshape(2, 3, 2, 5).transpose(["abcd".index(name) for name in order])
    shape = [int(np.prod([sizes[name] for name in group])) for group in target]
    assert np.array_equal(addressed(found), array.reshape(shape))
