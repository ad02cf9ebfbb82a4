"""Bugs of the vendor's simulator or compiler fixed in NKI 0.4.0, by its release notes."""

import ml_dtypes
import numpy as np
import pytest

from nkic.base.diagnostics import CompileFailed
from nkic.base.profiles import Profile
from tests.regressions.kernel import floats, kernel, wholes


def test_skipping_rows_keeps_the_bits_of_integers() -> None:
    """dma_copy with oob_mode.skip converted integers through float32."""
    data = np.random.default_rng(1).integers(2**24, 2**31, (64, 8)).astype(np.int32)
    at = np.array([3, 63, 70, 0] * 8, np.int32)[:, None]
    found = kernel(
        """
        i, t = nl.load(at), nl.full((32, 8), -1, dtype=nl.int32)
        rows = data.ap([[8, 32], [1, 8]], vector_offset=i, indirect_dim=0)
        nisa.dma_copy(dst=t, src=rows, oob_mode=nisa.oob_mode.skip)
        return to_hbm(t)
        """,
        data=data,
        at=at,
    )
    expected = np.where(at < 64, data[np.minimum(at[:, 0], 63)], -1)
    np.testing.assert_array_equal(found, expected)


def test_a_shuffle_leaves_what_255_names() -> None:
    """nc_stream_shuffle wrote zeros for mask entries of 255."""
    x, before = floats(32, 6), floats(32, 6, seed=1)
    found = kernel(
        """
        t = nl.load(before)
        nisa.nc_stream_shuffle(dst=t, src=nl.load(x), shuffle_mask=[1, 255] * 16)
        return to_hbm(t)
        """,
        x=x,
        before=before,
    )
    np.testing.assert_array_equal(found[0::2], np.tile(x[1], (16, 1)))
    np.testing.assert_array_equal(found[1::2], before[1::2])


@pytest.mark.parametrize("view", ["t[:, 4:20]", "t.ap([[32, 16], [2, 16]], offset=1)"])
def test_a_local_gather_into_a_part_of_a_tile(view: str) -> None:
    """local_gather gave wrong elements, especially in views of its destination."""
    x, at = floats(16, 40), np.random.default_rng(2).integers(0, 40, (16, 1)).astype(np.uint16)
    found = kernel(
        f"""
        t = nl.full((16, 32), -9.0, dtype=nl.float32)
        nisa.local_gather(dst={view}, src_buffer=nl.load(x), index=nl.load(at))
        return to_hbm(t)
        """,
        x=x,
        at=at,
    )
    expected = np.full((16, 32), -9.0, np.float32)
    places = np.arange(4, 20) if ":" in view else np.arange(16) * 2 + 1
    expected[:, places] = x[:, at[:, 0].astype(int)]
    np.testing.assert_array_equal(found, expected)


def test_a_product_of_operands_with_more_than_two_dimensions() -> None:
    """nc_matmul ignored the dimensions after the second."""
    a, b = wholes(-4, 5, 16, 2, 6), wholes(-4, 5, 16, 5, 2, 2, seed=1)
    found = kernel(
        """
        p = nl.ndarray((12, 20), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=p, stationary=nl.load(a), moving=nl.load(b))
        t = nl.ndarray((12, 20), dtype=nl.float32)
        nisa.tensor_copy(dst=t, src=p)
        return to_hbm(t)
        """,
        a=a,
        b=b,
    )
    np.testing.assert_array_equal(found, a.reshape(16, 12).T @ b.reshape(16, 20))


QUANTIZE = """
    q = nl.ndarray((32, 6), dtype=nl.{kind}_x4, buffer=nl.sbuf)
    s = nl.ndarray((4, 6), dtype=nl.uint8, buffer=nl.sbuf)
    nisa.quantize_mx(dst=q, src=nl.load(x), dst_scale=s)
    words = nl.ndarray((32, 6), dtype=nl.uint32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=words, src=q.view(nl.uint32))
    return words, to_hbm(s)
"""


@pytest.mark.parametrize(("kind", "largest"), [("float8_e4m3fn", 8), ("float8_e5m2", 15)])
def test_quantising_to_packed_types(kind: str, largest: int) -> None:
    """quantize_mx was wrong for float8_e4m3fn_x4; packed types did not work on trn3."""
    x = floats(32, 24).astype(ml_dtypes.bfloat16)
    words, scales = kernel(QUANTIZE.format(kind=kind), target="trn3", x=x)
    for group in range(4):
        part = x[8 * group : 8 * group + 8].astype(np.float64).reshape(8, 6, 4)
        power = np.floor(np.log2(np.abs(part).max(axis=(0, 2)))) - (largest - 1)
        np.testing.assert_array_equal(scales[group], (power + 127).astype(np.uint8))
        elements = (part / 2.0 ** power[:, None]).astype(getattr(ml_dtypes, kind))
        codes = words[8 * group : 8 * group + 8].view(np.uint8).reshape(8, 6, 4)
        np.testing.assert_array_equal(codes, elements.view(np.uint8))


def test_indices_from_a_register() -> None:
    """iota and affine_select ignored an offset in a register."""
    n, x = np.array([[5]], np.int32), floats(4, 8)
    one, two = kernel(
        """
        r = nisa.register_alloc()
        nisa.register_load(r, nl.load(n))
        i = nl.ndarray((4, 8), dtype=nl.int32, buffer=nl.sbuf)
        nisa.iota(dst=i, pattern=[[1, 8]], offset=r, channel_multiplier=10)
        t = nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.sbuf)
        nisa.affine_select(dst=t, pattern=[[-1, 8]], offset=r, channel_multiplier=-1,
                           on_true_tile=nl.load(x), on_false_value=-1.0, cmp_op=nl.greater)
        return to_hbm(i), to_hbm(t)
        """,
        n=n,
        x=x,
    )
    row, column = np.indices((4, 8))
    np.testing.assert_array_equal(one, 5 + 10 * row + column)
    np.testing.assert_array_equal(two, np.where(5 - row - column > 0, x, -1))


def test_sums_have_no_scales() -> None:
    """dma_compute applied scales that the hardware does not have: here they are an error."""
    body = """
        t = nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_compute(t, [x, x], nl.add, {more})
        return to_hbm(t)
    """
    x = wholes(-9, 9, 4, 8)
    np.testing.assert_array_equal(kernel(body.format(more="scales=[1.0, 1.0]"), x=x), 2 * x)
    with pytest.raises(CompileFailed, match=r"`scales` has 0\.5"):
        kernel(body.format(more="scales=[1.0, 0.5]"), x=x)


def test_logical_and() -> None:
    """nl.logical_and gave wrong results."""
    a, b = wholes(0, 2, 4, 8), wholes(0, 2, 4, 8, seed=1)
    found = kernel("return to_hbm(nl.logical_and(nl.load(a), nl.load(b)))", a=a, b=b)
    np.testing.assert_array_equal(found.astype(bool), (a != 0) & (b != 0))


def test_frozen_dataclasses() -> None:
    """Frozen subclasses of NKIObject could not be instantiated."""
    classes = """
    from dataclasses import dataclass


    @dataclass(frozen=True)
    class Scale(nki.language.NKIObject):
        factor: float
        shift: float = 1.0
    """
    x = wholes(-9, 9, 4, 8)
    found = kernel(
        """
        s, t = Scale(2.0), nl.load(x)
        nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=s.factor, op1=nl.add,
                           operand1=s.shift)
        return to_hbm(t)
        """,
        top=classes,
        x=x,
    )
    np.testing.assert_array_equal(found, 2 * x + 1)


def test_a_loop_waits_for_what_came_before_it() -> None:
    """Accesses in a device loop raced with accesses to the same memory around the loop."""
    x = wholes(-9, 9, 128, 64)
    found = kernel(
        """
        t = nl.load(x)
        nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=2.0)
        for i in nl.dynamic_range(3):
            nisa.activation(dst=t, op=nl.copy, data=t, bias=1.0)
        nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=2.0)
        return to_hbm(t)
        """,
        profile=Profile.NKI_0_6,
        x=x,
    )
    np.testing.assert_array_equal(found, (2 * x + 3) * 2)


def test_a_loop_counter_is_not_written() -> None:
    """Writing the counter of a device loop had no effect and was not rejected."""
    body = """
        for i in nl.dynamic_range(3):
            nisa.register_move(i, 7)
        return to_hbm(nl.load(x))
    """
    with pytest.raises(CompileFailed, match="the counter of a loop"):
        kernel(body, profile=Profile.NKI_0_6, x=floats(4, 8))


def test_a_loop_counter_is_an_offset() -> None:
    """The counter of a device loop could not be a scalar_offset."""
    x = floats(3, 128, 16)
    found = kernel(
        """
        t = nl.ndarray((128, 16), dtype=nl.float32, buffer=nl.sbuf)
        out = nl.ndarray((3, 128, 16), dtype=nl.float32, buffer=nl.shared_hbm)
        for i in nl.dynamic_range(3):
            part = [[16, 128], [1, 16]]
            nisa.dma_copy(dst=t, src=x.ap(part, scalar_offset=i, indirect_dim=0))
            nisa.dma_copy(dst=out.ap(part, scalar_offset=i, indirect_dim=0), src=t)
        return out
        """,
        profile=Profile.NKI_0_6,
        x=x,
    )
    np.testing.assert_array_equal(found, x)


def test_the_engine_of_a_transpose_is_the_kernels_choice() -> None:
    """nc_transpose ignored `engine`: vector transposes 32 x 32 blocks, tensor writes PSUM."""
    x = floats(32, 32)
    body = """
        p = nl.ndarray(({n}, {n}), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_transpose(dst=p, data=nl.load(x), engine=nisa.engine.{engine})
        t = nl.ndarray(({n}, {n}), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=t, src=p)
        return to_hbm(t)
    """
    for engine in ("vector", "tensor"):
        found = kernel(body.format(n=32, engine=engine), x=x)
        np.testing.assert_array_equal(found, x.T)
    with pytest.raises(CompileFailed, match="the vector engine transposes at most"):
        kernel(body.format(n=64, engine="vector"), x=floats(64, 64))


def test_bool_outputs_stay_bool() -> None:
    """Outputs of type bool were returned as uint8."""
    found = kernel(
        """
        t = nl.ndarray((4, 8), dtype=nl.bool_, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=t, data=nl.load(x), op0=nl.greater, operand0=0.0)
        return to_hbm(t)
        """,
        x=(x := floats(4, 8)),
    )
    assert found.dtype == np.bool_
    np.testing.assert_array_equal(found, x > 0)


def test_printing_one_dimension_of_hbm() -> None:
    """nl.device_print rejected one-dimensional tensors in HBM."""
    body = "nl.device_print('x', x)\nreturn to_hbm(nl.load(x.reshape((4, 8))))"
    x = floats(32)
    np.testing.assert_array_equal(kernel(body, x=x), x.reshape(4, 8))
