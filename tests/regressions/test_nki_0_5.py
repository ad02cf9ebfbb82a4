"""Bugs of the vendor's simulator fixed in NKI 0.5.0, by its release notes."""

import ml_dtypes
import numpy as np
import pytest

from nkic.base.diagnostics import CompileFailed
from nkic.base.profiles import Profile
from tests.regressions.kernel import floats, kernel, wholes


def test_skipping_rows_of_packed_elements() -> None:
    """dma_copy of x4 types failed for out-of-bounds rows with oob_mode.skip."""
    data = np.random.default_rng(0).integers(0, 2**32, (40, 6), np.uint32)
    at = np.array([[2], [39], [40], [7]] * 8, np.int32)
    found = kernel(
        """
        i = nl.load(at)
        t = nl.ndarray((32, 6), dtype=nl.float8_e4m3fn_x4, buffer=nl.sbuf)
        nisa.memset(dst=t, value=0)
        rows = data.view(nl.float8_e4m3fn_x4)
        rows = rows.ap([[6, 32], [1, 6]], vector_offset=i, indirect_dim=0)
        nisa.dma_copy(dst=t, src=rows, oob_mode=nisa.oob_mode.skip)
        return to_hbm(t.view(nl.uint32))
        """,
        target="trn3",
        data=data,
        at=at,
    )
    expected = np.where(at < 40, data[np.minimum(at[:, 0], 39)], 0)
    np.testing.assert_array_equal(found, expected)


def test_a_convolution_with_operands_of_three_dimensions() -> None:
    """nc_matmul with operands of more than two dimensions, as in a convolution."""
    image, weights = wholes(-3, 4, 16, 8, 10), wholes(-3, 4, 16, 3, 3, 12, seed=1)
    found = kernel(
        """
        x, w = nl.load(image), nl.load(weights)
        p = nl.ndarray((12, 6, 8), dtype=nl.float32, buffer=nl.psum)
        for i in range(3):
            for j in range(3):
                nisa.nc_matmul(dst=p, stationary=w[:, i, j, :], moving=x[:, i : i + 6, j : j + 8])
        t = nl.ndarray((12, 6, 8), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=t, src=p)
        return to_hbm(t)
        """,
        image=image,
        weights=weights,
    )
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), axis=(1, 2))
    np.testing.assert_array_equal(found, np.einsum("cyxij,cijo->oyx", windows, weights))


@pytest.mark.parametrize("number", [0, 1, 4])
def test_a_while_loop_ends(number: int) -> None:
    """A while loop over a register did not terminate correctly."""
    found = kernel(
        """
        left, t = nl.load(n), nl.zeros((1, 1), dtype=nl.float32)
        r = nisa.register_alloc()
        nisa.register_load(r, left)
        while r:
            nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=1.0)
            nisa.tensor_scalar(dst=left, data=left, op0=nl.subtract, operand0=1.0)
            nisa.register_load(r, left)
        return to_hbm(t)
        """,
        profile=Profile.NKI_0_6,
        n=np.array([[number]], np.int32),
    )
    assert found.tolist() == [[number]]


def test_a_gathering_transpose_leaves_out_what_is_outside() -> None:
    """Out-of-bounds rows overwrote the destination with zeros."""
    data = np.random.default_rng(3).integers(0, 2**15, (40, 64), np.int16)
    at = np.arange(16, dtype=np.uint32)[:, None] * 3
    at[5] = 40
    found = kernel(
        """
        t = nl.full((64, 16), -1, dtype=nl.int16)
        src = data.ap([[64, 16], [1, 64]], vector_offset=nl.load(at), indirect_dim=0)
        nisa.dma_transpose(dst=t, src=src, axes=(1, 0), oob_mode=nisa.oob_mode.skip)
        return to_hbm(t)
        """,
        data=data,
        at=at,
    )
    np.testing.assert_array_equal(found, np.where(at < 40, data[np.minimum(at[:, 0], 39)], -1).T)


def test_a_reshape_keeps_the_number_of_elements() -> None:
    """Reshapes that change the number of elements were not rejected."""
    with pytest.raises(CompileFailed, match="elements"):
        kernel("return to_hbm(nl.load(x.reshape((4, 9))))", x=floats(4, 8))


def test_the_greatest_elements_of_a_group_are_rounded() -> None:
    """The scale is twice that of the OCP sample algorithm, so that no element saturates."""
    x = np.full((32, 4), 1.99, np.float32).astype(ml_dtypes.bfloat16)
    found = kernel(
        """
        q = nl.ndarray((32, 1), dtype=nl.float8_e4m3fn_x4, buffer=nl.sbuf)
        s = nl.ndarray((4, 1), dtype=nl.float8_e8m0fnu, buffer=nl.sbuf)
        nisa.quantize_mx(dst=q, src=nl.load(x), dst_scale=s)
        return to_hbm(q.view(nl.uint32)), to_hbm(s)
        """,
        target="trn3",
        x=x,
    )
    elements = found[0].view(ml_dtypes.float8_e4m3fn).astype(np.float64)
    assert (elements * found[1].astype(np.float64)[0, 0] == 2.0).all()


def test_the_greatest_elements_of_a_group_were_clamped() -> None:
    """Previously the scale was that of the OCP sample algorithm: 1 for 1.99 · 2^8."""
    x = np.full((32, 4), 1.99 * 2**8, np.float32).astype(ml_dtypes.bfloat16)
    found = kernel(
        """
        q = nl.ndarray((32, 1), dtype=nl.float8_e4m3fn_x4, buffer=nl.sbuf)
        s = nl.ndarray((4, 1), dtype=nl.uint8, buffer=nl.sbuf)
        nisa.quantize_mx(dst=q, src=nl.load(x), dst_scale=s)
        return to_hbm(q.view(nl.uint32)), to_hbm(s)
        """,
        target="trn3",
        profile=Profile.NKI_0_4,
        x=x,
    )
    assert (found[0].view(ml_dtypes.float8_e4m3fn).astype(np.float64) == 448).all()
    assert (found[1] == 127).all()
