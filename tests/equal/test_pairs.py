"""Pairs of kernels: equal, different with an input that shows it, or undecided by a line."""

from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from nkic.artifact.records import PatternRecord
from nkic.base.diagnostics import UsageFailed
from nkic.machine.dtypes import DTYPES
from nkic.simulate.field import decide
from nkic.simulate.field.decide import equal
from nkic.simulate.field.following import _bits
from tests.equal.kernels import answer, compiled

SOFTMAX = """
    m = nl.max(x, axis=1, keepdims=True)
    e = nl.exp(x - m)
    out = e / nl.sum(e, axis=1, keepdims=True)
"""
ONLINE = """
    a, b = x[:, 0:16], x[:, 16:32]
    m0 = nl.max(a, axis=1, keepdims=True)
    m1 = nl.maximum(m0, nl.max(b, axis=1, keepdims=True))
    total = nl.sum(nl.exp(a - m0), axis=1, keepdims=True) * nl.exp(m0 - m1)
    total = total + nl.sum(nl.exp(b - m1), axis=1, keepdims=True)
    out = nl.exp(x - m1) / total
"""
PLAIN = """
    e = nl.exp(x)
    out = e * nl.reciprocal(nl.sum(e, axis=1, keepdims=True))
"""
RMS = """
    r = nl.rsqrt(nl.mean(x * x, axis=1, keepdims=True) + 1e-6)
    out = x * r * w
"""
VARIANCE = """
    m = nl.mean(x, axis=1, keepdims=True)
    out = nl.mean((x - m) * (x - m), axis=1, keepdims=True)
"""
PRODUCT = """
    whole = nl.ndarray((32, 32), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=whole, stationary=x, moving=w, accumulate=False)
    out = nl.copy(whole)
"""
TILED = """
    whole = nl.ndarray((32, 32), dtype=nl.float32, buffer=nl.psum)
    upper = nl.load(x_hbm[8:24, :])
    below = nl.load(w_hbm[8:24, :])
    for n in (16, 0):
        part = nl.ndarray((32, 16), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=part, stationary=upper, moving=below[:, n : n + 16], accumulate=False)
        nisa.nc_matmul(
            dst=part, stationary=x[0:8, :], moving=w[0:8, n : n + 16], accumulate=True
        )
        nisa.tensor_copy(dst=whole[:, n : n + 16], src=part)
    out = nl.copy(whole)
"""
BY_PE = """
    psum = nl.ndarray((32, 24), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_transpose(dst=psum, data=x)
    out = nl.copy(psum)
"""
BY_IDENTITY = """
    eye = nl.shared_identity_matrix(24, dtype=nl.float32)
    psum = nl.ndarray((32, 24), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=psum, stationary=x, moving=eye, accumulate=False)
    out = nl.copy(psum)
"""
BY_DMA = """
    out = nl.ndarray((32, 24), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=out, src=x_hbm.ap(pattern=[[1, 32], [32, 24]], offset=0))
"""
MASKED = """
    out = nl.ndarray((24, 32), dtype=nl.float32, buffer=nl.sbuf)
    nisa.affine_select(
        dst=out, pattern=[[-1, 32]], channel_multiplier=1, offset=0, on_true_tile=x,
        on_false_value=0.0, cmp_op=nl.greater_equal,
    )
"""
BY_MASK = """
    number = nl.ndarray((24, 32), dtype=nl.float32, buffer=nl.sbuf)
    nisa.iota(dst=number, pattern=[[-1, 32]], channel_multiplier=1, offset=0)
    out = x * nl.greater_equal(number, 0)
"""
STATISTICS = """
    s = nl.ndarray((24, 6), dtype=nl.float32, buffer=nl.sbuf)
    nisa.bn_stats(dst=s, data=x)
    both = nl.ndarray((24, 2), dtype=nl.float32, buffer=nl.sbuf)
    nisa.bn_aggr(dst=both, data=s)
    out = nl.copy(both[:, 1:2])
"""
MADE = "out = nl.ndarray(({}), dtype=nl.float32, buffer=nl.sbuf)\n"
EXPONENTIAL = """
    s = nl.ndarray((24, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.exponential(
        dst=out, src=x, max_value=w[:, 0:1], reduce_cmd=nisa.reduce_cmd.reset_reduce, reduce_res=s
    )
    out = out / s
"""
GATHERED = """
    i = nl.ndarray((16, 1), dtype=nl.uint16, buffer=nl.sbuf)
    nisa.iota(dst=i, pattern=[[0, 1]], channel_multiplier=2, offset=4)
    nisa.local_gather(
        dst=out, src_buffer=x[0:16], index=i, num_elem_per_idx=2, num_valid_indices=15
    )
"""
SLICED = """
    nisa.tensor_copy(dst=out[:, 0:28], src=x[0:16, 4:32])
    nisa.tensor_copy(dst=out[:, 28:29], src=x[0:16, 31:32])
    nisa.tensor_copy(dst=out[:, 29:30], src=x[0:16, 31:32])
"""
EQUAL = {
    "exponential": (
        MADE.format("24, 32") + dedent(EXPONENTIAL),
        "p = nl.exp(x - w[:, 0:1])\nout = p / nl.sum(p, axis=1, keepdims=True)",
    ),
    "activate2": (
        MADE.format("24, 32") + "nisa.activate2(dst=out, op=nl.exp, data=x, op0=nl.multiply, "
        "imm0=w[:, 0:1], op1=nl.subtract, imm1=2.0, reverse1=True)",
        "out = nl.exp(2.0 - x * w[:, 0:1])",
    ),
    "prelu": (
        MADE.format("24, 32") + "nisa.activate2(dst=out, op=nl.prelu, data=x, op0=nl.subtract, "
        "imm0=1.0, op1=nl.bypass, imm1=0.0, reverse0=True, relu_param=0.25)",
        "out = nl.where(nl.greater(1.0 - x, 0.0), 1.0 - x, (1.0 - x) * 0.25)",
    ),
    "gathers": (MADE.format("16, 30") + dedent(GATHERED), MADE.format("16, 30") + dedent(SLICED)),
    "products of rows": (
        MADE.format("24, 1")
        + "nisa.tensor_reduce(dst=out, data=x[:, 0:3], op=nl.multiply, axis=1)",
        "out = x[:, 1:2] * x[:, 2:3] * x[:, 0:1]",
    ),
    "matmul in tiles": (PRODUCT, TILED),
    "softmax without its maximum": (SOFTMAX, PLAIN),
    "softmax in two halves": (SOFTMAX, ONLINE),
    "rms_norm by a square root": (
        RMS,
        "s = nl.sum(nl.square(x), axis=1, keepdims=True) * (1 / 32)\n"
        "out = (w * x) / nl.sqrt(s + 1e-6)",
    ),
    "transposes by PE and by DMA": (BY_PE, BY_DMA),
    "a product with the identity": (BY_IDENTITY, BY_DMA),
    "causal masks": (MASKED, BY_MASK),
    "variances": (
        VARIANCE,
        "m = nl.mean(x, axis=1, keepdims=True)\n"
        "out = nl.mean(x * x, axis=1, keepdims=True) - m * m",
    ),
    "bn_stats": (VARIANCE, STATISTICS),
    "bn_stats of three columns": tuple(
        f"    x = x[:, 0:3]{body}" for body in (VARIANCE, STATISTICS)
    ),
    "sums in other orders": ("out = (x + w) + x * w", "out = x * w + (w + x)"),
    "silu": ("out = nl.silu(x)", "out = x / (1 + nl.exp(-x))"),
    "tanh": ("out = nl.tanh(x)", "out = 2 * nl.sigmoid(x * 2) - 1"),
    "gelu": ("out = nl.gelu(x)", "out = 0.5 * x * (1 + nl.erf(x * 0.70710678))"),
    "gelu by tanh": (
        "out = nl.gelu_apprx_tanh(x)",
        "out = 0.5 * x * (1 + nl.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))",
    ),
    "relu": ("out = nl.relu(x)", "out = nl.maximum(0 * x, x)"),
    "absolute values": ("out = nl.abs(x) * nl.abs(w)", "out = nl.maximum(-x * w, w * x)"),
    "thirds": ("out = x / 3", "out = x * (1 / 3)"),
}
DIFFERENT = {
    "dropped term": ("out = x + w * x", "out = x"),
    "dropped clamp": ("out = nl.minimum(x, 6.0)", "out = nl.copy(x)"),
    "wrong scale": (RMS, RMS.replace("mean", "sum")),
    "constant": ("out = x * 0.1", "out = x * 0.1001"),
    "dropped eps": (RMS, RMS.replace(" + 1e-6", "")),
    "swapped operands": ("out = x - w", "out = w - x"),
    "swapped factors": (PRODUCT, PRODUCT.replace("=x, moving=w", "=w, moving=x")),
    "one column off": ("out = nl.copy(x[:, 0:31])", "out = nl.copy(x[:, 1:32])"),
    "wrong axis": (
        "out = x / nl.sum(x, axis=1, keepdims=True)",
        "out = x / nl.broadcast_to(x[:, 0:1], (24, 32))",
    ),
    "dropped tile": (TILED, TILED.replace("accumulate=True", "accumulate=False")),
    "negative root": ("out = nl.rsqrt(x * x + 1)", "out = nl.rsqrt(-x * x - 1)"),
    "other comparison": ("out = nl.greater(x, 0)", "out = nl.greater(x, 0.5)"),
    "other mask": (MASKED, MASKED.replace("greater_equal", "greater")),
    "sign of the maximum": (SOFTMAX, SOFTMAX.replace("exp(x - m)", "exp(m - x)")),
}
TOP = """
    out = nl.ndarray((24, 8), dtype=nl.float32, buffer=nl.sbuf)
    nisa.max8(dst=out, src=x)
"""


ORDERED = {"absolute values", "prelu"}  # choices, which are equal by the order alone


@pytest.mark.parametrize("name", EQUAL)
def test_equal(name: str) -> None:
    first, second = EQUAL[name]
    found = answer(first, second)
    assert (found.verdict, found.lines, found.counterexample) == ("equal", (), None), found.text
    assert "rounding is not compared" in found.text and not found.casts
    assert (found.orders == 0 and found.bits >= 40) or name in ORDERED
    assert answer(second, first, seed=7).verdict == "equal"


@pytest.mark.parametrize("name", DIFFERENT)
def test_different(name: str) -> None:
    found = answer(*DIFFERENT[name])
    assert found.verdict == "different", found.text
    assert found.counterexample is not None
    assert found.counterexample.comparison.failures > 0
    assert found.counterexample.fill in found.text and not found


def test_a_selection_by_value_is_undecided_by_its_line() -> None:
    found = answer(
        TOP, TOP.replace("out", "o", 1).replace("dst=out", "dst=o") + "    out = nl.copy(o)"
    )
    assert found.verdict == "undecided"
    assert [line.split(" at ")[0] for line in found.lines] == ["undecided: max8 selects by value"]
    assert {line.split(" at ")[1] for line in found.lines} == {"k.py:10"}


def test_random_numbers_are_no_constants() -> None:
    body = "out = nl.ndarray((24, 32), dtype=nl.uint32, buffer=nl.sbuf)\nnisa.rng(dst=out)"
    assert answer(body, body).lines == ("undecided: rng draws random numbers at k.py:10",)


def test_what_no_output_depends_on_need_not_be_decided() -> None:
    unused = TOP.replace("out", "top") + "    out = nl.copy(x)\n    out = out + 0.0 * w\n"
    assert answer(unused, "out = nl.copy(x)")


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (
            "nisa.tensor_scalar(dst=out, data=x.view(nl.int32), op0=nl.add, operand0=1)",
            "bits as another type",
        ),
        ("nisa.memset(dst=out, value=float('nan'))", "NaN"),
        ("nisa.tensor_copy(dst=out, src=x)", "conversion to integers"),
    ],
)
def test_bits_integers_and_nan_are_undecided(body: str, line: str) -> None:
    kind = "float32" if "memset" in body else "int32"
    made = f"out = nl.ndarray((24, 32), dtype=nl.{kind}, buffer=nl.sbuf)\n{body}"
    found = answer(made, made)
    assert (found.verdict, found.counterexample) == ("undecided", None)
    assert line in found.text


MOVED = """
    h = nl.ndarray((24, 32), dtype=nl.{kind}, buffer=nl.hbm)
    nisa.dma_copy(dst=h, src={data})
    i, out = nl.ndarray((24, 1), dtype=nl.int32, buffer=nl.sbuf), nl.copy(w)
    nisa.iota(dst=i, pattern=[[0, 1]], channel_multiplier={step}, offset={first})
    {index}
    nisa.dma_copy(dst={dst}, src={src}{more})
"""
ROWS = "h.ap([[32, 24], [1, 32]], vector_offset=i, indirect_dim=0)"
BACK = """
    out = nl.ndarray((24, 32), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=out, src=x_hbm.ap(pattern=[[-32, 24], [1, 32]], offset=23 * 32))
"""
SOME = """
    out = nl.copy(w)
    nisa.dma_copy(dst=out[0:16, :], src=x[8:24, :])
"""
SKIPPED = {"more": ", oob_mode=nisa.oob_mode.skip", "step": "1", "first": "8"}
MASK = "nl.copy(nl.greater(x, 0.5), dtype=nl.int32)"
BY_INPUTS = {
    "step": "0",
    "first": "0",
    "index": "i = nl.greater(x[:, 0:1], 1e6, dtype=nl.int32)",
}


def moved(**given: str) -> str:
    """Return a kernel that moves rows one by one, from the last to the first if nothing is said."""
    usual = {"kind": "float32", "data": "x", "step": "-1", "first": "23", "dst": "out", "src": ROWS}
    return MOVED.format(**{"more": "", "index": "", **usual, **given})


def test_rows_that_are_moved_one_by_one() -> None:
    scattered = moved(dst=ROWS, src="x") + "    nisa.dma_copy(dst=out, src=h)\n"
    for body in (moved(), moved(kind="bfloat16"), scattered):
        assert answer(body, BACK).verdict == "equal"
        assert answer(body, "out = nl.copy(x)").verdict == "different"
    assert answer(moved(**SKIPPED), SOME).verdict == "equal"
    assert answer(moved(data="x * x * x * x"), moved(data="x * x * (x * x)")).bits < 58


@pytest.mark.parametrize(
    "given",
    [
        {"kind": "int32", "data": MASK},
        {"kind": "int32", "data": "x.view(nl.int32)"},
        {"src": ROWS.replace("h.ap", "h.view(nl.int32).ap")},
        {"src": "x", "dst": ROWS.replace("h.ap", "h.view(nl.int32).ap")},
    ],
)
def test_rows_of_another_type_are_undecided(given: dict[str, str]) -> None:
    found = answer(moved(**given), moved(**given))
    assert found.lines == ("undecided: a transfer into another type at k.py:14",)


def test_addresses_that_depend_on_inputs_are_undecided() -> None:
    """Though all inputs that are tried lead to the same rows."""
    found = answer(moved(**BY_INPUTS), moved(step="0", first="0"))
    assert (found.verdict, found.counterexample) == ("undecided", None)
    assert found.lines == ("undecided: dma_copy is not covered with these operands at k.py:14",)


def test_registers_that_depend_on_inputs_are_undecided() -> None:
    """Though with all inputs that are tried the loop has no iterations."""
    set_by = "tensor_copy(dst=n, src=nl.greater(x[0:1, 0:1], 1e6, dtype=nl.int32))"
    body = f"""
        out, n = nl.copy(w), nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
        nisa.{set_by}
        count = nisa.register_alloc()
        nisa.register_load(count, n)
        nl.fori_loop(0, count, lambda i: nisa.tensor_tensor(dst=out, data1=out, data2=x, op=nl.add))
    """
    found = answer(body, "out = nl.copy(w)")
    assert found.lines == ("undecided: register_load sets a register at k.py:12",)
    assert answer(body.replace(set_by, "memset(dst=n, value=0)"), "out = nl.copy(w)")


def test_constants_are_those_of_the_run() -> None:
    numbers = """
        number = nl.ndarray((24, 32), dtype=nl.float32, buffer=nl.sbuf)
        nisa.iota(dst=number, pattern=[[1, 32]], channel_multiplier=0, offset=1)
        out = x * number
    """
    assert answer(numbers, "out = x * 0.0").verdict == "different"
    assert answer(numbers, numbers.replace("x * number", "(x + x) * (number * 0.5)"))


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_tables_of_a_program_are_constants(
    dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("t.npy", np.full((24, 32), 3, dtype))
    table = "table = nl.shared_constant('t.npy')\n"
    made = table + "out = x * nl.load(table)"
    if dtype == "float32":  # no copy of it is an instruction's result
        out = "out = nl.ndarray((24, 32), dtype=nl.float32, buffer=nl.sbuf)\n"
        made = table + out + "nisa.dma_compute(dst=out, srcs=[x_hbm, table], reduce_op=nl.add)"
    assert answer(made, "out = x + 3.0" if dtype == "float32" else "out = x * 3.0")
    assert answer(made, "out = nl.copy(x)").verdict == "different"


@pytest.mark.parametrize(
    ("dtype", "bits"), [("float32", 24), ("bfloat16", 8), ("tfloat32", 11), ("int32", 24)]
)
def test_numbers_have_the_digits_of_their_type(dtype: str, bits: int) -> None:
    assert _bits(PatternRecord(0, DTYPES[dtype], 0, 0, 0, ())) == bits


def test_masks_are_integers() -> None:
    assert answer("out = nl.greater(x, 0.5, dtype=nl.int32)", f"out = {MASK}")


def test_lacking_axioms_leave_it_undecided() -> None:
    found = answer("out = nl.maximum(x + w, w)", "out = nl.relu(x) + w")
    assert found.verdict == "undecided" and found.counterexample is None
    assert "tensor_tensor compares values" in found.text


def test_types_do_not_matter_and_their_roundings_are_named() -> None:
    narrow = "bfloat16[24,32]"
    found = answer("out = nl.copy(x * w, dtype=nl.float32) + w", "out = w + w * x", narrow, narrow)
    assert found.verdict == "equal"
    assert any("rounding to bfloat16 at k.py:9" in line for line in found.casts)
    found = answer("out = nl.copy(x, dtype=nl.tfloat32)", "out = nl.copy(x)")
    assert found.casts == ("taken as exact in k: rounding to tfloat32 at k.py:9",)


@pytest.mark.parametrize(
    ("body", "plain"),
    [
        ("nl.maximum(x * 1.0, -1e6)", "nl.copy(x)"),
        ("nl.minimum(x * 1.0, 1e28)", "nl.copy(x)"),
        ("nl.where(nl.less(x * 1.0, 1e6), x, w)", "nl.copy(x)"),
        ("nl.maximum(x * 1.0, 1e-12)", "nl.relu(x)"),
        ("nl.maximum(x * 1.0, -1e-30)", "nl.relu(x)"),
    ],
)
def test_a_bound_of_any_size_is_one(body: str, plain: str) -> None:
    """Though most inputs that are tried lie on one side of it."""
    assert answer(f"out = {body}", f"out = {plain}").verdict in ("unconfirmed", "undecided")


ONE = "float32[1,1]"
BETWEEN = """
    inside = nl.where(nl.less(x * 1.0, 2.0), w, x)
    out = nl.where(nl.greater(x * 1.0, 1.0), inside, x)
"""


@pytest.mark.parametrize(
    "body",
    [
        "out = nl.minimum(nl.maximum(x * 1.0, -1e6), 1e6)",
        "out = nl.where(nl.less(x * 1.0, 1e6), x, w)",
        "out = nl.maximum(x * 1.0, -1e-12)",
        "out = nl.relu(x)",
        "out = nl.abs(x)",
        "out = nl.sqrt(x * x)",
        "out = nl.maximum(x, w)",
        BETWEEN,
    ],
)
def test_a_single_element_is_tried_on_both_sides(body: str) -> None:
    """With any numbers: one element alone reveals what orders it otherwise."""
    for seed in range(12):
        assert answer(body, "out = nl.copy(x)", ONE, ONE, seed).verdict != "equal", seed


TIES = {
    "greater": ("nl.greater(nl.relu(x), 0.0{})", "nl.greater_equal(nl.relu(x), 0.0{})"),
    "less": ("nl.less(nl.minimum(x, 1e6), 1e6{})", "nl.less_equal(nl.minimum(x, 1e6), 1e6{})"),
    "equal": ("nl.equal(nl.maximum(x, w), x{})", "nl.equal(x, w{})"),
    "not_equal": ("nl.not_equal(nl.maximum(x, w), x{})", "nl.not_equal(x, w{})"),
}


@pytest.mark.parametrize("name", TIES)
def test_a_choice_may_equal_what_it_was_chosen_from(name: str) -> None:
    one, other = (f"out = {body.format(', dtype=nl.float32')}" for body in TIES[name])
    for seed in range(10):
        assert answer(one, other, ONE, ONE, seed).verdict != "equal", seed
    for seed in range(3):  # what is equal is searched for its limits too, which takes longer
        assert answer(one, one, ONE, ONE, seed).bits > 0


def test_one_element_of_many_that_is_bounded_alone() -> None:
    """All others are tried on both sides of the bound; it is found, or named."""
    last = """
        out, most = nl.copy(x), nl.ndarray((24, 32), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=most, value=2.0)
        nisa.memset(dst=most[0:1, 31:32], value={})
        nisa.tensor_tensor(dst=out, data1=x, data2=most, op=nl.minimum)
    """
    for seed in range(5):
        found = answer(last.format("1e6"), last.format("3e6"), seed=seed)
        assert found.verdict != "equal" or "had one outcome alone, tensor_tensor" in found.text


def test_the_last_of_a_row_is_once_the_greatest_or_is_named() -> None:
    row = "float32[1,48]"
    for seed in range(5):
        found = answer(
            "out = nl.max(x, axis=1)", "out = nl.max(x[:, 0:47], axis=1)", row, row, seed
        )
        assert found.verdict != "equal" or (found.orders == 64 and found.one_way)


def test_what_was_seen_of_the_order_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    made, trial = list[int](), decide._Comparing._trial

    def counted(self: decide._Comparing, seed: int) -> list[decide.Trial]:
        made.append(seed)
        return trial(self, seed)

    monkeypatch.setattr(decide._Comparing, "_trial", counted)
    clipped = answer(
        "out = nl.minimum(nl.maximum(x * 1.0, -1e6), 1e6)",
        "out = nl.maximum(nl.minimum(x * 1.0, 1e6), -1e6)",
    )
    first, second, *_ = clipped.text.splitlines()
    trials = clipped.orders
    assert first == (
        f"equal in the orders of elements that were tried ({trials} trials over a finite field)"
    )
    assert second == "each comparison of each element had both outcomes"
    assert (clipped.verdict, clipped.bits, clipped.one_way) == ("equal", 0.0, ())
    assert clipped.as_json()["orders"] == trials == len(made) > 2
    positive = answer("out = nl.relu(nl.exp(x))", "out = nl.exp(x)")
    (line,) = positive.one_way
    assert line == "768 of 768 elements had one outcome alone, activation at k.py:9"
    assert positive.orders == 64 and line in positive.text.splitlines()[1]


def test_what_rounding_hides_is_unconfirmed() -> None:
    found = answer("out = x + w * 1e-9", "out = nl.copy(x)")
    assert found.verdict == "unconfirmed" and found.counterexample is None
    assert "differ over the field, no difference beyond rounding found" in found.text


@pytest.mark.parametrize(("value", "same"), [("0.5703125", "4 / 7"), ("0.3359375",) * 2])
def test_a_constant_has_the_digits_of_its_type(value: str, same: str) -> None:
    """To eight digits, those of bfloat16, the first is 4/7; the second is 1/3 to seven alone."""
    body = f"""
    b = nl.ndarray(x.shape, dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.memset(dst=b, value={value})
    out = x * b
    """
    assert answer(body, f"out = x * ({same})").verdict == "equal"


def test_a_choice_by_place_counts_from_its_offset() -> None:
    body = """
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.affine_select(
        dst=out, pattern=[[1, 32]], channel_multiplier=0, offset=-3, on_true_tile=x,
        on_false_value=0.0, cmp_op=nl.greater_equal
    )
    """
    other = "out = nl.copy(x)\nnisa.memset(dst=out[:, 0:3], value=0.0)"
    assert answer(body, other).verdict == "equal"


def test_other_shapes_are_refused() -> None:
    one, two = compiled("out = x + w"), compiled("out = x + w", "float32[8,8]", "float32[8,8]")
    with pytest.raises(UsageFailed, match="different inputs"):
        equal(one.executable, two.executable)
