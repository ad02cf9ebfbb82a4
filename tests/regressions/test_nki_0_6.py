"""Bugs of the vendor's simulator fixed in NKI 0.6.0, by its release notes."""

import ml_dtypes
import numpy as np
import pytest

from nkic.base.diagnostics import CompileFailed
from tests.harness.reference import stored
from tests.regressions.kernel import floats, kernel, wholes

ALL_ONES = 2**32 - 1


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_float32_to_integers(dtype: str) -> None:
    """Round to nearest, ties to even, and saturate, unlike NumPy's casts."""
    x = np.array([[0.5, 1.5, 2.5, -0.5, -1.5, 126.5, 127.5, 1e10, -1e10, np.inf, 4e9, 2147483520]])
    found = kernel(
        f"""
        t = nl.ndarray((1, 12), dtype=nl.{dtype}, buffer=nl.sbuf)
        nisa.tensor_copy(dst=t, src=nl.load(x))
        return to_hbm(t)
        """,
        x=x.astype(np.float32),
    )
    info = np.iinfo(dtype)
    exact = np.clip(np.rint(x.astype(np.float32).astype(np.float64)), info.min, info.max)
    np.testing.assert_array_equal(found, exact.astype(np.int64).astype(dtype))


def test_equal_values_are_replaced_from_the_last_one_on() -> None:
    """nc_match_replace8 processes the values backwards: the published example."""
    data = np.array([[1, 2, 3, 4, 8, 8, 8, 8, 8, 8, 8]], np.float32)
    vals = np.array([[3, 8, 8, 8, 8, 8, 8, 8]], np.float32)
    places, replaced = kernel(
        """
        t = nl.ndarray((1, 11), dtype=nl.float32, buffer=nl.sbuf)
        i = nl.ndarray((1, 8), dtype=nl.uint32, buffer=nl.sbuf)
        nisa.nc_match_replace8(dst=t, data=nl.load(data), vals=nl.load(vals), imm=0.0, dst_idx=i)
        return to_hbm(i), to_hbm(t)
        """,
        data=data,
        vals=vals,
    )
    assert places.tolist() == [[2, 10, 9, 8, 7, 6, 5, 4]]
    assert replaced.tolist() == [[1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0]]


def test_values_that_are_nowhere_and_values_that_are_equal() -> None:
    """nc_find_index8 gives all ones for absent values, and successive indices for equal values."""
    data = np.array([[5, 7, 5, 1, 5, 2, 0, 3, 9]], np.float32)
    vals = np.array([[5, 5, 5, 5, 7, 4, 9, 1]], np.float32)
    found = kernel(
        """
        i = nl.ndarray((1, 8), dtype=nl.uint32, buffer=nl.sbuf)
        nisa.nc_find_index8(dst=i, data=nl.load(data), vals=nl.load(vals))
        return to_hbm(i)
        """,
        data=data,
        vals=vals,
    )
    assert found.tolist() == [[0, 2, 4, ALL_ONES, 1, ALL_ONES, 8, 3]]


def test_a_sum_that_lies_over_the_result() -> None:
    """activation lost the sum if reduce_res was in dst's own memory."""
    x = wholes(-9, 9, 8, 16)
    found = kernel(
        """
        t = nl.ndarray((8, 16), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=t, op=nl.copy, data=nl.load(x), reduce_op=nl.add,
                        reduce_res=t[:, 3:4], reduce_cmd=nisa.reduce_cmd.reset_reduce)
        return to_hbm(t)
        """,
        x=x,
    )
    expected = x.copy()
    expected[:, 3] = x.sum(1)
    np.testing.assert_array_equal(found, expected)


def test_scales_of_two_tensors_in_one_tile() -> None:
    """quantize_mx rejected or corrupted slices of a buffer of scales."""
    x, y = (floats(32, 16, seed=i).astype(ml_dtypes.bfloat16) for i in (0, 1))
    found = kernel(
        """
        s = nl.ndarray((32, 4), dtype=nl.uint8, buffer=nl.sbuf)
        nisa.memset(dst=s, value=0)
        a = nl.ndarray((32, 4), dtype=nl.float8_e5m2_x4, buffer=nl.sbuf)
        b = nl.ndarray((32, 4), dtype=nl.float8_e5m2_x4, buffer=nl.sbuf)
        nisa.quantize_mx(dst=a, src=nl.load(x), dst_scale=s[0:4, :])
        nisa.quantize_mx(dst=b, src=nl.load(y), dst_scale=s[4:8, :])
        p = nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul_mx(dst=p, stationary=a, moving=b, stationary_scale=s[0:4, :],
                          moving_scale=s[4:8, :])
        t = nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=t, src=p)
        return to_hbm(t), to_hbm(s)
        """,
        target="trn3",
        x=x,
        y=y,
    )
    left, right = (v.astype(np.float64).reshape(32, 4, 4) for v in (x, y))
    exact = np.einsum("kmi,kni->mn", left, right)
    bound = np.einsum("kmi,kni->mn", np.abs(left), np.abs(right))
    assert (np.abs(found[0] - exact) <= 0.3 * bound).all()
    codes = [np.floor(np.log2(np.abs(v[0:8]).max((0, 2)))) - 14 + 127 for v in (left, right)]
    assert found[1][[0, 4]].tolist() == [code.tolist() for code in codes]


def test_double_rows() -> None:
    """nc_matmul executed double_row as an ordinary product of twice the size."""
    a, b = wholes(-4, 5, 128, 2, 6), wholes(-4, 5, 128, 2, 10, seed=1)
    found = kernel(
        """
        p = nl.ndarray((6, 10), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=p, stationary=nl.load(a), moving=nl.load(b),
                       perf_mode=nisa.matmul_perf_mode.double_row)
        t = nl.ndarray((6, 10), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=t, src=p)
        return to_hbm(t)
        """,
        a=stored(a, "float8_e4m3"),
        b=stored(b, "float8_e5m2"),
    )
    np.testing.assert_array_equal(found, np.einsum("kpm,kpn->mn", a, b))


OVERLAPPING = """
    w, v = nl.load(a), nl.load(b)
    p = nl.ndarray((12, 8), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=p, stationary=w, moving=nl.zeros((16, 8), dtype=nl.float32))
    for i in range(3):
        nisa.nc_matmul(dst=p[:, i : i + 4], stationary=w, moving=v{more})
    t = nl.ndarray((12, 8), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=t, src=p)
    return to_hbm(t)
"""


@pytest.mark.parametrize("more", ["", ", accumulate=True"])
def test_overlapping_places_in_psum_accumulate(more: str) -> None:
    """The convolution pattern: every write was treated as a first write."""
    a, b = wholes(-4, 5, 16, 12), wholes(-4, 5, 16, 4, seed=1)
    expected = np.zeros((12, 8), np.float32)
    for i in range(3):
        expected[:, i : i + 4] += a.T @ b
    np.testing.assert_array_equal(kernel(OVERLAPPING.format(more=more), a=a, b=b), expected)


def test_a_product_that_is_partly_a_first_write() -> None:
    """The other half of the pattern: first writes overwrite, further writes accumulate."""
    body = """
        w, v = nl.load(a), nl.load(b)
        p = nl.ndarray((12, 8), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=p[:, 0:4], stationary=w, moving=v)
        nisa.nc_matmul(dst=p[:, 2:6], stationary=w, moving=v)
        t = nl.ndarray((12, 6), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=t, src=p[:, 0:6])
        return to_hbm(t)
    """
    a, b = wholes(-4, 5, 16, 12), wholes(-4, 5, 16, 4, seed=1)
    expected = np.zeros((12, 6), np.float32)
    expected[:, 0:4] += a.T @ b
    expected[:, 2:6] += a.T @ b
    np.testing.assert_array_equal(kernel(body, a=a, b=b), expected)


@pytest.mark.parametrize("name", ["tensor_copy_predicated", "select_reduce"])
def test_ranks_may_differ(name: str) -> None:
    """The source has two dimensions, the result and predicate have four."""
    x, before = floats(8, 24), floats(8, 24, seed=1)
    flags = np.random.default_rng(2).integers(0, 2, (8, 24)).astype(np.uint8)
    call = {
        "tensor_copy_predicated": "(dst=d, src=s, predicate=f)",
        "select_reduce": "(dst=d, predicate=f, on_true=s, on_false=-1.0)",
    }[name]
    found = kernel(
        f"""
        t, s = nl.load(before), nl.load(x)
        d, f = t.reshape((8, 2, 3, 4)), nl.load(flags).reshape((8, 2, 3, 4))
        nisa.{name}{call}
        return to_hbm(t)
        """,
        x=x,
        before=before,
        flags=flags,
    )
    other = before if name == "tensor_copy_predicated" else -1.0
    np.testing.assert_array_equal(found, np.where(flags != 0, x, other))


def test_the_lowest_float_as_a_python_number() -> None:
    """range_select and affine_select rejected float(np.finfo(np.float32).min)."""
    x, ends = floats(4, 8), np.array([[2, 4]] * 4, np.float32)
    one, two = kernel(
        """
        lowest = float(np.finfo(np.float32).min)
        t, b = nl.load(x), nl.load(ends)
        nisa.range_select(dst=t, on_true_tile=t, comp_op0=nl.greater_equal, comp_op1=nl.less,
                          bound0=b[:, 0:1], bound1=b[:, 1:2], on_false_value=lowest)
        u = nl.load(x)
        nisa.affine_select(dst=u, pattern=[[1, 8]], channel_multiplier=-1, on_true_tile=u,
                           on_false_value=lowest, cmp_op=nl.less_equal)
        return to_hbm(t), to_hbm(u)
        """,
        top="import numpy as np",
        x=x,
        ends=ends,
    )
    row, column = np.indices((4, 8))
    lowest = np.finfo(np.float32).min
    np.testing.assert_array_equal(one, np.where((column >= 2) & (column < 4), x, lowest))
    np.testing.assert_array_equal(two, np.where(column <= row, x, lowest))


def test_more_than_128_partitions_are_refused() -> None:
    """Compute instructions gave no clear error."""
    body = """
        t = nl.ndarray((256, 4), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=t, value=0.0)
        return to_hbm(t)
    """
    with pytest.raises(CompileFailed, match="128"):
        kernel(body)


def test_several_sums_with_one_result() -> None:
    """tensor_scalar_reduce without a reduce_res keeps its sum for the next instruction."""
    x = wholes(-9, 9, 8, 16)
    found = kernel(
        """
        t, u = nl.load(x), nl.ndarray((8, 16), dtype=nl.float32, buffer=nl.sbuf)
        s = nl.ndarray((8, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar_reduce(dst=u, data=t, op0=nl.add, operand0=1.0, reduce_op=nl.add)
        nisa.tensor_scalar_reduce(dst=u, data=t, op0=nl.add, operand0=2.0, reduce_op=nl.add,
                                  reduce_res=s, reduce_cmd=nisa.reduce_cmd.reduce)
        return to_hbm(s)
        """,
        x=x,
    )
    np.testing.assert_array_equal(found, (2 * x + 3).sum(1, keepdims=True))
