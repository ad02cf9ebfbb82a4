"""Constructs from kernels of the public nki-library, each reduced to a few lines."""

import numpy as np
import pytest

from nkic.base.diagnostics import ProgramFault
from tests.regressions.kernel import floats, kernel, wholes


def test_a_pattern_beyond_the_end_that_nothing_uses() -> None:
    """The last iteration creates a view out of bounds, but never accesses it."""
    data = floats(16, 30)
    found = kernel(
        """
        t = nl.load(data)
        r = nl.ndarray((16, 10), dtype=nl.float32, buffer=nl.sbuf)
        for i in range(4):
            column = t.ap([[30, 16], [3, 10]], offset=i)
            if i < 3:
                nisa.tensor_copy(dst=r, src=column) if i == 0 else nisa.tensor_tensor(
                    dst=r, data1=r, data2=column, op=nl.add
                )
        return to_hbm(r)
        """,
        data=data,
    )
    parts = data.reshape(16, 10, 3)
    np.testing.assert_array_equal(found, parts[..., 0] + parts[..., 1] + parts[..., 2])


@pytest.mark.parametrize("dim", [1, 2])
def test_a_run_time_index_along_a_dimension_of_size_one(dim: int) -> None:
    """A run-time index applies to the last dimension with its stride, which may have size 1."""
    data, at = floats(2, 3, 1, 8), np.array([[2]], np.int32)
    found = kernel(
        f"""
        i = nl.load(at)
        rows = data.ap([[24, 2], [1, 8]], scalar_offset=i, indirect_dim={dim})
        t = nl.ndarray((2, 8), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=rows)
        return to_hbm(t)
        """,
        data=data,
        at=at,
    )
    np.testing.assert_array_equal(found, data[:, 2, 0])


def test_an_index_beyond_the_dimension_of_its_stride() -> None:
    with pytest.raises(ProgramFault, match="index 3 is outside `data`"):
        kernel(
            """
            i = nl.load(at)
            t = nl.ndarray((1, 8), dtype=nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(dst=t, src=data.ap([[24, 1], [1, 8]], scalar_offset=i, indirect_dim=2))
            return to_hbm(t)
            """,
            data=floats(2, 3, 1, 8),
            at=np.array([[3]], np.int32),
        )


def test_the_value_of_an_enumeration_as_a_string() -> None:
    """nc_matmul accepts the string value of perf_mode."""
    x, w = wholes(-3, 4, 64, 2, 16), wholes(-3, 4, 64, 2, 8, seed=1)
    found = kernel(
        """
        one = nl.ndarray(x.shape, dtype=nl.float8_e4m3, buffer=nl.sbuf)
        two = nl.ndarray(w.shape, dtype=nl.float8_e4m3, buffer=nl.sbuf)
        nisa.tensor_copy(dst=one, src=nl.load(x))
        nisa.tensor_copy(dst=two, src=nl.load(w))
        p = nl.ndarray((16, 8), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=p, stationary=one, moving=two, perf_mode="double_row")
        t = nl.ndarray((16, 8), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=t, src=p)
        return to_hbm(t)
        """,
        x=x,
        w=w,
    )
    np.testing.assert_array_equal(found, np.einsum("kim,kin->mn", x, w))
