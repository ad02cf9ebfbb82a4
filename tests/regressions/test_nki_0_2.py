"""Bugs fixed in NKI 0.2.0, by its release notes. Docstrings in the past tense describe the bug."""

import ml_dtypes
import numpy as np
import pytest

from nkic.base.diagnostics import CompileFailed
from nkic.base.profiles import Profile
from tests.harness.language import run
from tests.regressions.kernel import floats, kernel, wholes

LOWEST = np.finfo(np.float32).min
SELECT = """
        t = nl.full((128, 16), 7.0, dtype=nl.float32)
        nisa.range_select(
            dst=t, on_true_tile=nl.load(x), comp_op0=nl.greater_equal, comp_op1=nl.less,
            bound0=nl.load(low), bound1=nl.load(high))
        return to_hbm(t)
"""


def test_what_is_outside_of_a_range_is_the_lowest_number() -> None:
    """range_select wrote 0 if no fill value was given, which gave wrong maxima."""
    x = -np.abs(floats(128, 16)) - 1
    low, high = (np.full((128, 1), n, np.float32) for n in (3, 9))
    found = kernel(SELECT, x=x, low=low, high=high)
    inside = (np.arange(16) >= 3) & (np.arange(16) < 9)
    np.testing.assert_array_equal(found, np.where(inside, x, LOWEST))
    assert (found.max(1) == x[:, 3:9].max(1)).all()


WHOLE = """
import nki
import nki.isa as nisa
import nki.language as nl


def noted(function):
    def call(*args, **named):
        return function(*args, **named)
    return call


class Noted:
    def __init__(self, function):
        self.function = function

    def __call__(self, *args):
        return self.function(*args)


{decorators}
def kernel(x, {parameters}):
    t = nl.load(x)
    nisa.tensor_scalar(t, t, op, scale, op1=nl.add, operand1=plus)
    out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
    nl.store(out, t)
    return out
"""


@pytest.mark.parametrize(
    "decorators", ["@nki.jit", "@noted\n@nki.jit", "@nki.jit\n@noted", "@Noted\n@nki.jit"]
)
@pytest.mark.parametrize("star", ["*, ", ""])
def test_defaults_of_keywords_and_decorators_around_kernels(decorators: str, star: str) -> None:
    """Defaults of keyword-only parameters were lost; kernels below a decorator were not found."""
    x = wholes(0, 9, 4, 8)
    parameters = f"{star}scale=3.0, plus=1.0, op=nl.multiply"
    text = WHOLE.format(decorators=decorators, parameters=parameters)
    np.testing.assert_array_equal(run(text, {"x": x})[0][0].array, x * 3 + 1)


def test_an_activation_leaves_the_sum_of_another_one() -> None:
    """Every activation reset the running sum, even one that reduces nothing."""
    x, y = wholes(0, 9, 8, 16), wholes(0, 9, 8, 16, seed=1)
    found = kernel(
        """
        a, b, t = nl.load(x), nl.load(y), nl.ndarray((8, 16), nl.float32, nl.sbuf)
        total = nl.ndarray((8, 1), nl.float32, nl.sbuf)
        nisa.activation(t, op=nl.copy, data=a, reduce_op=nl.add,
                        reduce_cmd=nisa.reduce_cmd.reset_reduce)
        nisa.activation(t, op=nl.exp, data=b)
        nisa.activation(t, op=nl.copy, data=b, reduce_op=nl.add, reduce_res=total,
                        reduce_cmd=nisa.reduce_cmd.reduce)
        return to_hbm(total)
        """,
        x=x,
        y=y,
    )
    np.testing.assert_array_equal(found, (x + y).sum(1, keepdims=True))


def test_operators_that_were_missing() -> None:
    """tensor_scalar and tensor_tensor rejected rsqrt and abs (the next test covers power)."""
    x = np.abs(floats(8, 16)) + 1
    root, size = kernel(
        """
        t = nl.load(x)
        a, c = (nl.ndarray((8, 16), nl.float32, nl.sbuf) for _ in range(2))
        nisa.tensor_scalar(a, t, nl.rsqrt, 0.0, engine=nisa.engine.gpsimd)
        nisa.tensor_scalar(c, t, nl.multiply, -1.0, op1=nl.abs, operand1=0.0)
        return to_hbm(a), to_hbm(c)
        """,
        x=x,
    )
    np.testing.assert_allclose(root, 1 / np.sqrt(x), rtol=1e-5)
    np.testing.assert_array_equal(size, x)


@pytest.mark.parametrize("target", ["trn2", "trn3"])
def test_powers(target: str) -> None:
    x = np.abs(floats(8, 16)) + 1
    found = kernel(
        """
        t = nl.load(x)
        d = nl.ndarray((8, 16), nl.float32, nl.sbuf)
        nisa.tensor_tensor(d, t, t, op=nl.power)
        return to_hbm(d)
        """,
        target=target,
        x=x,
    )
    np.testing.assert_allclose(found, x**x, rtol=1e-5)


def test_inputs_of_float8_e4m3fn() -> None:
    """Inputs of type float8_e4m3fn failed to convert."""
    x = floats(8, 16).astype(ml_dtypes.float8_e4m3fn)
    found = kernel(
        """
        t = nl.ndarray((8, 16), nl.float32, nl.sbuf)
        nisa.tensor_copy(t, nl.load(x))
        return to_hbm(t)
        """,
        target="trn3",
        x=x,
    )
    np.testing.assert_array_equal(found, x.astype(np.float32))


def test_a_loop_up_to_a_register_counts() -> None:
    """The counter of a loop with a run-time end never advanced."""
    x, last = floats(6, 8), np.full((1, 1), 5, np.int32)
    found = kernel(
        """
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=nl.zeros(x.shape, x.dtype, nl.sbuf))
        stop, row = nisa.register_alloc(), nl.ndarray((1, 8), x.dtype, nl.sbuf)
        nisa.register_load(stop, nl.load(last))
        for i in nl.dynamic_range(1, stop, 2):
            at = [[8, 1], [1, 8]]
            nisa.dma_copy(dst=row, src=x.ap(at, scalar_offset=i, indirect_dim=0))
            nisa.dma_copy(dst=out.ap(at, scalar_offset=i, indirect_dim=0), src=row)
        return out
        """,
        profile=Profile.NKI_0_6,
        x=x,
        last=last,
    )
    reached = np.isin(np.arange(6), [1, 3])[:, None]
    np.testing.assert_array_equal(found, np.where(reached, x, 0))


@pytest.mark.parametrize("buffer", ["shared_hbm", "private_hbm"])
def test_reshapes_in_every_kind_of_hbm(buffer: str) -> None:
    """Reshapes of tensors with more than 128 rows were rejected in some kinds of HBM."""
    x = floats(256, 6)
    found = kernel(
        f"""
        t = nl.ndarray((256, 6), dtype=nl.float32, buffer=nl.{buffer})
        nisa.dma_copy(dst=t.reshape((512, 3)), src=x.reshape((512, 3)))
        out = nl.ndarray((768, 2), dtype=nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=t.reshape((768, 2)))
        return out
        """,
        x=x,
    )
    np.testing.assert_array_equal(found, x.reshape(768, 2))


def test_a_bias_has_one_number_a_row() -> None:
    """activation accepted a bias with several elements per row and computed something."""
    body = "nisa.activation(t := nl.load(x), op=nl.exp, data=t, bias=nl.load(x))\nreturn to_hbm(t)"
    with pytest.raises(CompileFailed, match="bias"):
        kernel(body, x=floats(128, 64))


@pytest.mark.parametrize(
    "call",
    [
        "nisa.tensor_copy(dst=t, src=t, maks=None)",
        "nl.exp(t, dtyp=nl.float32)",
        "nl.ndarray((4, 8), nl.float32, bufer=nl.sbuf)",
        "t.reshape((8, 4), shap=3)",
    ],
)
def test_misspelt_keywords_are_refused(call: str) -> None:
    """Misspelt keyword arguments were ignored."""
    with pytest.raises(CompileFailed, match=r"maks|dtyp|bufer|shap"):
        kernel(f"t = nl.load(x)\n{call}\nreturn to_hbm(t)", x=floats(4, 8))


def test_places_in_messages_are_the_lines_of_their_files() -> None:
    """Line numbers were off by one, and lost if a message involved several files."""
    with pytest.raises(CompileFailed) as raised:
        kernel("x\nx\nnisa.nope(x)\nreturn x", x=floats(4, 8))
    primary = raised.value.diagnostics[0].primary
    assert primary is not None
    assert primary.span.line == 18  # 15 lines of the file precede the kernel


def test_one_kernel_traced_for_two_shapes() -> None:
    """Names from the first trace persisted into the second."""
    body = """
        t = nl.ndarray(x.shape, nl.float32, nl.sbuf, name="tile")
        nisa.dma_copy(dst=t, src=x, name="load")
        nisa.tensor_scalar(t, t, nl.add, 1.0, name="add")
        return to_hbm(t)
    """
    for rows in (4, 9, 4):
        np.testing.assert_array_equal(
            kernel(body, x=wholes(0, 9, rows, 8)), wholes(0, 9, rows, 8) + 1
        )
