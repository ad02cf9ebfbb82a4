"""Fixes, changes and new errors in NKI 0.3.0, by its release notes; the past tense means a bug."""

import numpy as np
import pytest

from nkic.base.diagnostics import CompileFailed, Level
from nkic.base.profiles import Profile
from tests.regressions.kernel import floats, kernel, wholes


@pytest.mark.parametrize("axis", [1, 2, 3, (2, 3), (1, 2, 3)])
def test_axes_of_a_reduction_are_those_of_the_tensor(axis: int | tuple[int, ...]) -> None:
    """Axis 1 meant the last axis for any number of dimensions."""
    x = wholes(0, 9, 8, 3, 4, 5)
    shape = x.sum(axis, keepdims=True).shape
    body = f"""
        t = nl.ndarray({shape}, nl.float32, nl.sbuf)
        nisa.tensor_reduce(t, nl.add, nl.load(x), axis={axis}, keepdims=True)
        return to_hbm(t)
    """
    if axis not in (3, (2, 3), (1, 2, 3)):  # the engine reduces the last dimensions
        with pytest.raises(CompileFailed, match=r"axis|dimensions"):
            kernel(body, x=x)
        return
    np.testing.assert_array_equal(kernel(body, x=x), x.sum(axis, keepdims=True))


def test_the_command_of_a_range_select_counts() -> None:
    """reduce_cmd was always reset_reduce, regardless of the argument."""
    x, y = wholes(0, 9, 128, 16), wholes(0, 99, 128, 16, seed=1)
    low, high = (np.full((128, 1), n, np.float32) for n in (3, 9))
    found = kernel(
        """
        a, b = nl.load(low), nl.load(high)
        t, m = nl.ndarray((128, 16), nl.float32, nl.sbuf), nl.ndarray((128, 1), nl.float32, nl.sbuf)
        ops = {"comp_op0": nl.greater_equal, "comp_op1": nl.less, "bound0": a, "bound1": b}
        nisa.range_select(dst=t, on_true_tile=nl.load(x), reduce_op=nl.maximum, reduce_res=m,
                          reduce_cmd=nisa.reduce_cmd.reset_reduce, **ops)
        nisa.range_select(dst=t, on_true_tile=nl.load(y), reduce_op=nl.maximum, reduce_res=m,
                          reduce_cmd=nisa.reduce_cmd.reduce, **ops)
        return to_hbm(m)
        """,
        x=x,
        y=y,
        low=low,
        high=high,
    )
    expected = np.maximum(x[:, 3:9].max(1), y[:, 3:9].max(1))
    np.testing.assert_array_equal(found[:, 0], expected)


def test_defaults() -> None:
    """program_id and num_programs default to axis 0, tensors to SBUF, iota's offset to 0."""
    found = kernel(
        """
        assert nl.program_id() == 0 and nl.num_programs() == 1
        t = nl.ndarray((4, 8), nl.int32)
        assert t.buffer == nl.sbuf and nl.zeros((4, 8), nl.float32).buffer == nl.sbuf
        assert list(nl.sequential_range(3)) == [0, 1, 2]
        nisa.iota(t, [[1, 8]], channel_multiplier=10)
        return to_hbm(t)
        """,
        x=floats(4, 8),
    )
    np.testing.assert_array_equal(found, np.arange(4)[:, None] * 10 + np.arange(8))


REFUSED = {
    "nisa.dma_copy(dst=h, src=p)": "psum",
    "nisa.dma_copy(dst=b, src=t, dge_mode=nisa.dge_mode.hwdge)": "hwdge|types",
    "nisa.memset(i, value=2.0)": "float|int",
    "nisa.affine_select(t, [[1, 8]], 3, 1, t, 0.0)": "affine_select|channel_multiplier|offset",
    "nisa.register_move(nisa.register_alloc(), imm=3)": "imm",
    "nisa.tensor_copy(t, t, engine=5)": "engine",
    "nl.ndarray((4, 8), nl.float32, 'sbuf')": "sbuf",
    "nisa.dma_compute(t, [t, t], [1.0, 1.0], nl.add)": "scales|reduce_op",
    "nisa.dma_copy(dst=h, src=t, dst_rmw_op=nl.add)": "dst_rmw_op",
}


@pytest.mark.parametrize("line", REFUSED)
def test_breaking_changes_are_refused_where_they_stand(line: str) -> None:
    body = f"""
        t, i = nl.load(x), nl.ndarray((4, 8), nl.int32)
        b, p = nl.ndarray((4, 8), nl.bfloat16), nl.zeros((4, 8), nl.float32, nl.psum)
        h = nl.ndarray((4, 8), nl.float32, nl.shared_hbm)
        {line}
        return to_hbm(t)
    """
    with pytest.raises(CompileFailed, match=REFUSED[line]) as raised:
        kernel(body, x=floats(4, 8))
    errors = [one for one in raised.value.diagnostics if one.level is Level.ERROR]
    assert [one.primary.span.line for one in errors if one.primary] == [19]


@pytest.mark.parametrize("line", ["t is None", "t is not None"])
def test_identity_cannot_be_asked_in_0_3(line: str) -> None:
    body = f"t = nl.load(x)\nassert ({line}) in (True, False)\nreturn to_hbm(t)"
    with pytest.raises(CompileFailed, match=r"cannot be used in NKI 0.3"):
        kernel(body, profile=Profile.NKI_0_3, x=floats(4, 8))
    np.testing.assert_array_equal(
        kernel(body, profile=Profile.NKI_0_4, x=floats(4, 8)), floats(4, 8)
    )


def test_results_are_in_shared_hbm() -> None:
    """nl.hbm has been private to a core since then."""
    with pytest.raises(CompileFailed, match="must return tensors in shared HBM"):
        kernel("return nl.ndarray((4, 8), nl.float32, nl.hbm)", x=floats(4, 8))
