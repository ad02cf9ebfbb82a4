"""Test error bounds of moved elements: by gathers, shuffles and run-time offsets; and of further
products.
"""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.unit.simulate.bounds.test_error_bounds import bounded, drawn

Array = NDArray[Any]
FACTOR = float(np.float32(1.1))
RESULT = "result = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)"
SHUFFLED = f"""
    y = nl.multiply(x, 1.1)
    {RESULT}
    nisa.memset(dst=result, value=0.0)
    nisa.nc_stream_shuffle(dst=result, src=y, shuffle_mask=[31] + [255] * 30 + [0])
"""
GATHERED = f"""
    y = nl.multiply(x, 1.1)
    {RESULT}
    nisa.nc_n_gather(dst=result, data=y, indices=i)
"""
BY_CORE = f"""
    y = nl.multiply(x, 1.1)
    {RESULT}
    nisa.local_gather(dst=result, src_buffer=y, index=i)
"""
# Through HBM: rows at an offset from a loop's counter, at those of an index, and back.
IN_HBM = """
    y = nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=y, src=nl.multiply(x, 1.1))
    result = nl.ndarray((128, 8), dtype=nl.{dtype}, buffer=nl.sbuf)
"""
COUNTED = (
    IN_HBM
    + """
    nl.fori_loop(0, 8, lambda n: nisa.dma_copy(
        dst=result[:, nl.ds(n, 2)],
        src=y.ap([[8, 128], [1, 2]], scalar_offset=n, indirect_dim=1)), 2)
"""
)
BY_ROW = (
    IN_HBM
    + """
    nisa.dma_copy(dst=result, src=y.ap([[8, 128], [1, 8]], vector_offset=i, indirect_dim=0))
"""
)
SKIPPING = (
    IN_HBM
    + """
    nisa.memset(dst=result, value=0.0)
    nisa.dma_copy(dst=result, src=y.ap([[8, 128], [1, 8]], vector_offset=i, indirect_dim=0),
                  oob_mode=nisa.oob_mode.skip)
"""
)
SCATTERED = """
    y = nl.multiply(x, 1.1)
    z = nl.ndarray((128, 8), dtype=nl.{dtype}, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=z.ap([[8, 128], [1, 8]], vector_offset=i, indirect_dim=0), src=y)
    result = nl.ndarray((128, 8), dtype=nl.{dtype}, buffer=nl.sbuf)
    nisa.dma_copy(dst=result, src=z)
"""
ROWS = np.random.default_rng(7).permutation(128).astype(np.int32)[:, None]
BEYOND = np.where(ROWS % 5 == 0, 1000, ROWS).astype(np.int32)


def shuffled(x: Array, i: Array) -> Array:
    found = np.zeros_like(x)
    found[0::32], found[31::32] = x[31::32], x[0::32]
    return found


def by_core(x: Array, i: Array) -> Array:
    """Read the index of 16 partitions down its columns."""
    found = [x[p][i[p - p % 16 : p - p % 16 + 16].T.reshape(-1)] for p in range(128)]
    return np.stack(found)


def skipping(x: Array, i: Array) -> Array:
    return np.where(i < 128, x[i[:, 0] % 128], 0.0)


def scattered(x: Array, i: Array) -> Array:
    found = np.empty_like(x)
    found[i[:, 0]] = x
    return found


SMALL = np.random.default_rng(3).integers(0, 8, (128, 8))
CASES: dict[str, tuple[str, Array, Any]] = {
    "shuffled": (SHUFFLED, ROWS, shuffled),
    "gathered": (GATHERED, SMALL.astype(np.uint32), lambda x, i: np.take_along_axis(x, i, 1)),
    "by core": (BY_CORE, (SMALL[:, :1] % 8).astype(np.uint16), by_core),
    "counted": (COUNTED, ROWS, lambda x, i: x),
    "by row": (BY_ROW, ROWS, lambda x, i: x[i[:, 0]]),
    "skipping": (SKIPPING, BEYOND, skipping),
    "scattered": (SCATTERED, ROWS, scattered),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", CASES)
def test_bounds_move_with_what_they_are_of(name: str, dtype: str) -> None:
    body, index, reference = CASES[name]
    if dtype != "float32" and "{dtype}" not in body:
        pytest.skip("this instruction moves float32 here")
    x = drawn((128, 16 if name == "by core" else 8), 1)
    exact = reference(x.astype(np.float64) * FACTOR, index.astype(np.int64))
    cases = bounded(body.format(dtype=dtype), {"x": x, "i": index})
    for found, bound, result in cases:
        off = np.abs(found - exact)
        assert not result.uncovered
        assert np.isfinite(bound).all()
        assert (off <= bound).all()
        assert off.max() > 0, "there is something to bound"
        half_a_step = 2.0**-9 if dtype == "bfloat16" else 2.0**-24
        assert name == "by core" or (bound <= 5 * half_a_step * np.abs(exact) + 1e-30).all()


def test_an_index_that_was_rounded_leads_anywhere() -> None:
    body = """
    y = nl.multiply(x, 1.1)
    i = nl.copy(nl.multiply(x, 0.3), dtype=nl.uint32)
    result = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.nc_n_gather(dst=result, data=y, indices=i)
    """
    (_, bound, result), *_ = bounded(body, {"x": np.abs(drawn((128, 4), 1))})
    assert np.isinf(bound).all()
    assert [row for row, _ in result.uncovered] == ["nc_n_gather"]


def test_a_register_that_was_rounded_leads_anywhere() -> None:
    body = (
        IN_HBM.format(dtype="float32")
        + """
    one = nl.copy(nl.multiply(x[0:1, 0:1], 0.0), dtype=nl.int32)
    n = nisa.register_alloc()
    nisa.register_load(n, one)
    nisa.dma_copy(dst=result, src=y.ap([[8, 128], [1, 8]], scalar_offset=n, indirect_dim=1))
    """
    )
    (_, bound, result), *_ = bounded(body, {"x": drawn((128, 8), 1)})
    assert np.isinf(bound).all()
    assert "dma_copy" in [row for row, _ in result.uncovered]


DOUBLE = """
    p = nl.ndarray((128, 32), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=p, stationary=x.reshape((128, 2, 128)), moving=y.reshape((128, 2, 32)),
                   perf_mode=nisa.matmul_perf_mode.double_row)
    result = nl.copy(p)
"""


def test_double_row() -> None:
    kind = np.dtype(ml_dtypes.float8_e5m2)
    x, y = drawn((128, 256), 1).astype(kind), drawn((128, 64), 2).astype(kind)
    a, b = (one.astype(np.float64).reshape(128, 2, -1) for one in (x, y))
    exact = np.einsum("kpm,kpn->mn", a, b)
    for found, bound, result in bounded(DOUBLE, {"x": x, "y": y}):
        off = np.abs(found - exact)
        assert not result.uncovered
        assert (off <= bound).all() and bound.max() < 1e-3 * np.abs(exact).max()


MX = """
    a = x.view(nl.float8_e4m3fn_x4)
    b = y.view(nl.float8_e4m3fn_x4)
    p = nl.ndarray((64, 48), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul_mx(dst=p, stationary=a, moving=b, stationary_scale=s, moving_scale=t)
    result = nl.copy(p)
"""


def scaled(words: Array, scales: Array) -> Array:
    """Return (4 K, columns) of packed elements, each times the scale of its 8 partitions by 4
    elements.
    """
    elements = words.view(np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float64)
    powers = 2.0 ** (scales.astype(np.float64) - 127)
    rows = [powers[p // 32 * 32 + p % 32 // 8] for p in range(len(words))]
    numbers: Array = elements.reshape(len(words), -1, 4) * np.stack(rows)[:, :, None]
    return numbers.transpose(0, 2, 1).reshape(-1, words.shape[1])


def test_microscaled_products() -> None:
    rng = np.random.default_rng(4)
    values = [rng.integers(0, 0x70, (64, 4 * n)).astype(np.uint8) for n in (64, 48)]
    x, y = (one.view(np.uint32) for one in values)
    s, t = (rng.integers(120, 132, one.shape).astype(np.uint8) for one in (x, y))
    exact = scaled(x, s).T @ scaled(y, t)
    arrays: dict[str, Array] = {"x": x, "y": y, "s": s, "t": t}
    for found, bound, result in bounded(MX, arrays, "trn3"):
        off = np.abs(found - exact)
        assert not result.uncovered
        assert (off <= bound).all() and bound.max() < 1e-3 * np.abs(exact).max()
