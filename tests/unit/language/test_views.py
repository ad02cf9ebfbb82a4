"""Test each view: documented results, and errors with their limit and number."""

import ast
import re
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

from nkic.base.source import NOWHERE, CallChain
from nkic.language import indexing, views
from nkic.language.indexing import DynamicSlice
from nkic.language.registers import VirtualRegister
from nkic.language.views import ViewError
from nkic.machine import dtypes
from nkic.machine.operands import Register
from nkic.machine.targets import Buffer
from nkic.program.program import Tensor, View


def make(shape: tuple[int, ...], buffer: Buffer = Buffer.SBUF, dtype: str = "float32") -> View:
    found = dtypes.find(dtype)
    assert found is not None
    return views.whole(Tensor(7, "t", found, shape, buffer, CallChain(NOWHERE)))


class Key:
    """`KEY[a, b:c]` is the key that `t[a, b:c]` passes."""

    def __getitem__(self, key: Any) -> Any:
        return key


KEY = Key()
TEXT: Any = "no offset"
SBUF, PSUM, HBM = Buffer.SBUF, Buffer.PSUM, Buffer.SHARED_HBM


@pytest.mark.parametrize(
    ("shape", "buffer", "key", "expected"),
    [
        # The language guide's own examples.
        ((64, 64, 64), SBUF, KEY[0, 0, 10], (1, 1)),
        ((64, 64, 64), SBUF, KEY[:, 0], (64, 64)),
        ((64, 64, 64), SBUF, KEY[:, 0, 10], (64, 1)),
        ((64, 64, 64), SBUF, KEY[0:64, 0, 0:64], (64, 64)),
        ((64, 64, 64), SBUF, KEY[:, :, ::2], (64, 64, 32)),
        ((64, 64, 64), SBUF, KEY[...], (64, 64, 64)),
        ((64, 64, 64), SBUF, KEY[0, ..., :], (1, 64, 64)),
        ((128, 64, 32), SBUF, KEY[:, :, 0], (128, 64)),
        ((4, 128, 32), HBM, KEY[0, :, :], (128, 32)),
        # HBM keeps at least one dimension, PSUM two.
        ((4, 8), HBM, KEY[1, 2], (1,)),
        ((4,), HBM, KEY[-1], (1,)),
        ((4, 8), PSUM, KEY[3], (1, 8)),
        ((4, 8), PSUM, KEY[:, DynamicSlice(2, 3)], (4, 3)),
        ((4, 8), SBUF, KEY[-2:, -8:-1:3], (2, 3)),
    ],
)
def test_shapes(
    shape: tuple[int, ...], buffer: Buffer, key: Any, expected: tuple[int, ...]
) -> None:
    assert indexing.index(make(shape, buffer), key).shape == expected


def test_strides_and_offsets_of_the_guide() -> None:
    whole = make((128, 64))
    view = indexing.slice_dim(whole, 1, 8, 24)
    assert (views.pattern(view), view.offset) == ([[64, 128], [1, 16]], 8)
    assert indexing.access_pattern(whole, [[64, 128], [1, 16]], 8) == view


@pytest.mark.parametrize("buffer", [SBUF, HBM])
@pytest.mark.parametrize(
    "key",
    [
        KEY[:, None],
        KEY[..., None],
        KEY[0:2, None, ..., None, 0:3],
        KEY[1:3, ..., None, 1, :],
        KEY[:, 2, None, None, ::2],
    ],
)
def test_the_reshape_that_is_advised_for_none_gives_the_shape_of_numpy(
    buffer: Buffer, key: tuple[Any, ...]
) -> None:
    view = make((4, 6, 8), buffer)
    with pytest.raises(ViewError) as caught:
        indexing.index(view, key)
    (advised,) = re.findall(r"`.reshape\((\(.*\))\)`", caught.value.help)
    rest = indexing.index(view, tuple(item for item in key if item is not None))
    shape = np.empty((4, 6, 8))[key].shape
    assert views.reshape(rest, ast.literal_eval(advised)).shape == shape


def test_none_before_the_partitions_or_in_too_great_a_number_is_to_be_left_out() -> None:
    with pytest.raises(ViewError) as failed:
        indexing.index(make((128, 64)), (None, slice(None)))
    assert failed.value.help.endswith(indexing.LEAVE_OUT)
    with pytest.raises(ViewError) as failed:
        indexing.index(make((128, 64), HBM), (None,) * 2000)
    assert failed.value.help == ("leave None out: a tensor has at most 8 dimensions, not 2002")


@pytest.mark.parametrize(
    ("key", "slug", "numbers"),
    [
        (KEY[:, 48:80], "index-out-of-bounds", ["48:80", "size 64", "(128, 64)"]),
        (KEY[:, 64], "index-out-of-bounds", ["64", "size 64"]),
        (KEY[:, -65], "index-out-of-bounds", ["-65", "size 64"]),
        (KEY[:, -65:], "index-out-of-bounds", ["slice -65: ", "size 64"]),
        (KEY[:, -66:-65], "index-out-of-bounds", ["slice -66:-65 ", "size 64"]),
        (KEY[:, :-65], "index-out-of-bounds", ["slice :-65 ", "size 64"]),
        (KEY[:, DynamicSlice(60, 8)], "index-out-of-bounds", ["60:68", "size 64"]),
        (KEY[:, DynamicSlice(-8, 8)], "index-out-of-bounds", ["-8:0"]),
        (KEY[:, 5:5], "empty-slice", ["5:5"]),
        (KEY[:, 9:5], "empty-slice", ["9:5"]),
        (KEY[:, ::-1], "bad-index", ["-1"]),
        (KEY[:, ::0], "bad-index", ["not 0"]),
        (KEY[::2], "partition-dimension", ["2"]),
        (KEY[0, 0, 0], "too-many-indices", ["3 indices for 2"]),
        (KEY[..., 0, 0, 0], "too-many-indices", ["3 indices for 2"]),
        (KEY[..., 0, ...], "bad-index", ["one `...`"]),
        (KEY[:, None], "bad-index", ["None"]),
        (KEY[:, True], "bad-index", ["True"]),
        (KEY[:, 1.0], "bad-index", ["1.0"]),
        (KEY[:, "x"], "bad-index", ["'x'"]),
        (KEY[:, 0:2.0], "bad-index", ["2.0"]),
    ],
)
def test_refused_indices(key: Any, slug: str, numbers: list[str]) -> None:
    with pytest.raises(ViewError) as caught:
        indexing.index(make((128, 64)), key)
    assert caught.value.slug == slug
    assert [n for n in numbers if n not in caught.value.message] == []


@pytest.mark.parametrize(
    ("key", "help"),
    [
        (KEY[:, -66:-65], "the lowest one here is -64"),
        (KEY[:, DynamicSlice(-8, 8)], "start at 0 or above"),
        (KEY[:, 60:68], "write `min(68, 64)`"),
    ],
)
def test_what_to_do_about_a_slice_suits_its_end(key: Any, help: str) -> None:
    with pytest.raises(ViewError) as caught:
        indexing.index(make((128, 64)), key)
    assert help in caught.value.help


def test_an_error_knows_the_shape_that_was_wanted() -> None:
    with pytest.raises(ViewError) as caught:
        indexing.index(make((128, 64)), KEY[0:64, 48:80])
    assert caught.value.shape == (128, 32)


Call = Callable[[View], View]


@pytest.mark.parametrize(
    ("call", "slug"),
    [
        (lambda t: views.permute(t, (1, 0, 2)), "partition-dimension"),
        (lambda t: views.permute(t, (0, 1)), "bad-dimension"),
        (lambda t: views.permute(t, (0, -1, 1)), "bad-dimension"),
        (lambda t: views.broadcast(t, 1, 8), "broadcast-size"),
        (lambda t: views.broadcast(t, 0, 8), "broadcast-size"),
        (lambda t: views.broadcast(t, 3, 8), "bad-dimension"),
        (lambda t: views.expand_dim(t, 0), "partition-dimension"),
        (lambda t: views.expand_dim(t, 4), "bad-dimension"),
        (lambda t: views.squeeze_dim(t, 1), "broadcast-size"),
        (lambda t: indexing.slice_dim(t, 1, -1, 2), "index-out-of-bounds"),
        (lambda t: indexing.select(t, 5, 0), "bad-dimension"),
        (lambda t: views.reshape(t, (64, 2, 24)), "partition-dimension"),
        (lambda t: views.reshape(t, (128, 25)), "reshape-size"),
        (lambda t: views.reshape(t, (128, -1)), "bad-shape"),
        (lambda t: views.reshape(t, (128 * 24,)), "bad-dimension"),
        (lambda t: views.reshape(t, (128, 24, *[1] * 31)), "bad-dimension"),
        (lambda t: indexing.access_pattern(t, [[24, 128], *[[1, 1]] * 32]), "bad-dimension"),
        (lambda t: views.reshape_dim(t, 1, (3, 2)), "reshape-size"),
        (lambda t: views.reshape_dim(t, 1, (-1, -1)), "bad-shape"),
        (lambda t: views.reshape_dim(t, 0, (64, 2)), "partition-dimension"),
        (lambda t: views.flatten_dims(t, 0, 1), "partition-dimension"),
        (lambda t: views.flatten_dims(t, 2, 1), "bad-dimension"),
        (lambda t: views.flatten_dims(views.permute(t, (0, 2, 1)), 1, 2), "reshape-layout"),
        (lambda t: views.rearrange(t, ("a", "b"), ("b", "a"), {}), "bad-pattern"),
        (lambda t: views.rearrange(t, ("a", "b", "c"), ("a", "b", "d"), {}), "bad-pattern"),
        (lambda t: views.rearrange(t, ("a", "b", ("c", "d")), "abcd", {}), "bad-pattern"),
        (lambda t: views.rearrange(t, "abc", "abc", {"b": 5}), "bad-pattern"),
        (lambda t: views.rearrange(t, "aab", "aab", {}), "bad-pattern"),
        (lambda t: indexing.access_pattern(t, [[48, 64], [1, 24]]), "partition-dimension"),
        (lambda t: indexing.access_pattern(t, cast(Any, [24, 128])), "bad-pattern"),
        (lambda t: indexing.access_pattern(t, [[24, 128]]), "bad-pattern"),
        (lambda t: indexing.access_pattern(t, [[24, 128], [1, 0]]), "bad-pattern"),
        (lambda t: indexing.access_pattern(t, [[24, 128], [1, 2]], TEXT), "bad-pattern"),
        (lambda t: indexing.vector_select(t, 0, make((4, 1))), "indirect-view"),
        (lambda t: indexing.select_at_run_time(t, 0, Register(0)), "partition-dimension"),
    ],
)
def test_refused_views(call: Call, slug: str) -> None:
    with pytest.raises(ViewError) as caught:
        call(make((128, 4, 6)))
    assert caught.value.slug == slug


# Patterns over the storage


def test_a_pattern_with_one_partition_may_have_any_step() -> None:
    view = indexing.access_pattern(make((1, 24)), [[1, 1], [1, 1]], 5)
    assert (view.shape, view.strides, view.offset) == ((1, 1), (24, 1), 5)


def test_a_pattern_adds_to_the_offset_of_the_view_and_ignores_its_shape() -> None:
    view = indexing.index(make((128, 24)), KEY[:, 4:8])
    assert indexing.access_pattern(view, [[24, 128], [1, 2]]).offset == 4
    assert indexing.access_pattern(view, [[24, 128], [1, 2]], 0).offset == 4
    assert indexing.access_pattern(view, [[24, 128], [1, 2]], 3).offset == 7


def test_a_pattern_of_another_dtype_counts_its_elements() -> None:
    bfloat16 = dtypes.find("bfloat16")
    view = indexing.access_pattern(
        make((128, 256), dtype="int32"), [[512, 128], [1, 512]], 0, None, None, 0, bfloat16
    )
    assert (view.shape, view.dtype.name, view.pitch) == ((128, 512), "bfloat16", 512)
    part = indexing.index(make((128, 256), dtype="bfloat16"), KEY[:, 1:])
    with pytest.raises(ViewError, match="not the start of a float32"):
        indexing.access_pattern(part, [[128, 128], [1, 2]], dtype=dtypes.find("float32"))


# Run-time indices


def test_select_with_a_register() -> None:
    view = indexing.index(make((4, 128, 8), HBM), KEY[VirtualRegister(Register(3))])
    assert view.shape == (128, 8)
    assert view.dynamic == ("scalar", Register(3), 1024, 4, 0)
    assert indexing.index(view, KEY[2:4, 1]).offset == 17


def test_a_slice_from_a_register_stays_inside() -> None:
    view = indexing.index(make((128, 64)), KEY[:, DynamicSlice(VirtualRegister(Register(1)), 16)])
    assert view.shape == (128, 16)
    assert view.dynamic is not None
    assert (view.dynamic.stride, view.dynamic.limit) == (1, 64 - 16 + 1)


def test_vector_select_gathers_rows() -> None:
    indices = make((64, 1), dtype="int32")
    view = indexing.vector_select(make((128, 512), HBM), 0, indices)
    assert view.shape == (64, 512)
    assert view.dynamic == ("vector", indices, 512, 128, 0)
    assert indexing.index(view, KEY[:, 5:9]).shape == (64, 4)
    for key in (KEY[0:32], KEY[3], KEY[0:64:2]):
        with pytest.raises(ViewError, match="gathered at run time"):
            indexing.index(view, key)
    assert views.permute(make((64, 2, 3), HBM), (1, 0, 2)).shape == (2, 64, 3)
    with pytest.raises(ViewError, match="partition dimension"):
        views.permute(view, (1, 0))


def test_ap_with_a_scalar_offset_scales_by_the_stride_of_its_view() -> None:
    view = indexing.access_pattern(
        make((512, 512), HBM), [[512, 128], [1, 256]], 0, Register(0), None, 0
    )
    assert view.dynamic == ("scalar", Register(0), 512, 512, 0)
    rows = views.reshape(make((4, 128, 512), HBM), (512, 512))
    view = indexing.access_pattern(rows, [[512, 8], [1, 512]], 0, Register(0), None, 1)
    assert view.dynamic == ("scalar", Register(0), 1, 512, 1)


def test_one_run_time_index_at_most() -> None:
    once = indexing.index(make((4, 128, 8), HBM), KEY[VirtualRegister(Register(3))])
    register = VirtualRegister(Register(4))
    calls: list[Callable[[], View]] = [
        lambda: indexing.index(once, KEY[register]),
        lambda: indexing.vector_select(once, 0, make((128, 1), dtype="int32")),
        lambda: indexing.index(make((4, 8, 8), HBM), KEY[register, register]),
        lambda: views.reinterpret(once, dtypes.DTYPES["int8"]),
    ]
    for call in calls:
        with pytest.raises(ViewError) as caught:
            call()
        assert caught.value.slug == "indirect-view"
