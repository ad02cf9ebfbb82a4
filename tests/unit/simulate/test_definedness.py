"""Uninitialised bytes propagate through instructions. The rules are tested as a whole: a kernel is
compiled and run, and either its result is right or the fault names the origin of the bytes.
"""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from nkic import api
from nkic.api import RunError
from nkic.base.levels import DEFAULT, Wish
from nkic.base.source import SourceFile
from nkic.machine.instructions import ROWS
from nkic.simulate import plans
from nkic.simulate.plans import Decoded

HEAD = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n\n\n"

X = np.arange(128 * 64, dtype=np.float32).reshape(128, 64) - 4000


def result(body: str, rows: int = 64, columns: int = 64) -> NDArray[np.float32]:
    """Return the result of a kernel that loads half of `t`, the first 64 partitions or columns."""
    text = HEAD + "@nki.jit\ndef kernel(x):\n    " + body.strip().replace("\n", "\n    ")
    text += f"""
    out = nl.ndarray(({rows}, {columns}), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=u[0:{rows}, 0:{columns}])
    return out
"""
    levels = DEFAULT.adding(Wish.WARN, "NKI0536")
    artifact = api.compile(SourceFile("k.py", text), inputs={"x": X}, levels=levels)
    return np.asarray(api.run(artifact, {"x": X}).outputs["output_0"])


HALF = """
t = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
nisa.dma_copy(dst=t[0:64, :], src=x[0:64, :])
u = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
"""


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("nisa.tensor_copy(dst=u, src=t)", X),
        ("nisa.tensor_scalar(dst=u, data=t, op0=nl.multiply, operand0=2.0)", 2 * X),
        ("nisa.tensor_tensor(dst=u, data1=t, data2=t, op=nl.add)", 2 * X),
        ("nisa.activation(dst=u, op=nl.relu, data=t)", np.maximum(X, 0)),
        ("nisa.dma_copy(dst=u, src=t)", X),
    ],
)
def test_the_written_half_can_be_used(step: str, expected: NDArray[np.float32]) -> None:
    assert np.array_equal(result(HALF + step), expected[0:64])
    with pytest.raises(RunError) as caught:
        result(HALF + step, rows=65)
    said = str(caught.value)
    assert "dma_copy reads `u`, computed from uninitialised bytes of `t`" in said
    assert "the uninitialised bytes of `t` are read here" in said and "write `t` first" in said


def test_a_reduction_mixes_its_partition_only() -> None:
    step = """
nisa.memset(dst=u, value=0.0)
nisa.tensor_reduce(dst=u[:, 0:1], op=nl.maximum, data=t, axis=1)
"""
    assert np.array_equal(result(HALF + step, 64, 1), X[0:64].max(axis=1, keepdims=True))
    with pytest.raises(RunError, match="reads `u`, computed from uninitialised bytes of `t`"):
        result(HALF + step, 65, 1)


def test_what_depends_on_everything_is_a_fault_at_once() -> None:
    step = "nisa.tensor_partition_reduce(dst=u[0:1, :], op=nl.add, data=t)"
    with pytest.raises(RunError, match="tensor_partition_reduce reads `t` before it is written"):
        result(HALF + step, 1, 64)


def test_written_again_is_written() -> None:
    step = "nisa.tensor_copy(dst=u, src=t)\nnisa.memset(dst=u[64:128, :], value=3.0)"
    expected = np.concatenate([X[0:64], np.full((64, 64), 3, np.float32)])
    assert np.array_equal(result(HALF + step, 128, 64), expected)


def test_a_shuffle_moves_whole_partitions() -> None:
    """Every partition of a quadrant is a copy of its partition 3: two quadrants are written."""
    step = "nisa.nc_stream_shuffle(dst=u, src=t, shuffle_mask=[3] * 32)"
    expected = X[[3] * 32 + [35] * 32]
    assert np.array_equal(result(HALF + step), expected)
    with pytest.raises(RunError, match="reads `u`, computed from uninitialised bytes of `t`"):
        result(HALF + step, rows=65)


SELECTED = """
t = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
nisa.dma_copy(dst=t[:, 0:32], src=x[:, 0:32])
w = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
u = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
nisa.memset(dst=w, value=5.0)
i = nl.ndarray((128, 64), dtype=nl.int32, buffer=nl.sbuf)
nisa.iota(dst=i, pattern=[[1, 64]], offset=0)
p = nl.ndarray((128, 64), dtype=nl.uint8, buffer=nl.sbuf)
nisa.tensor_scalar(dst=p, data=i, op0=nl.less, operand0=float(N))
low, high = (nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf) for _ in range(2))
nisa.memset(dst=low, value=0.0)
nisa.memset(dst=high, value=float(N))
short = nl.ndarray((128, 4), dtype=nl.uint16, buffer=nl.sbuf)
nisa.memset(dst=short, value=N - 1)
long = nl.ndarray((128, 64), dtype=nl.uint32, buffer=nl.sbuf)
nisa.memset(dst=long, value=N - 1)
"""
LOWEST = np.finfo(np.float32).min


SELECTIONS = [
    ("tensor_copy(u, w)\nnisa.tensor_copy_predicated(u, t, p)", 5),
    ("tensor_copy_predicated(u, t, p)\nnisa.tensor_copy_predicated(u, w, p, True)", 5),
    ("affine_select(u, [[-1, 64]], 0, t, 5.0, nl.greater_equal, offset=N - 1)", 5),
    ("select_reduce(u, p, t, 5.0)", 5),
    ("range_select(u, t, nl.greater_equal, nl.less, low, high)", LOWEST),
    ("local_gather(u, t, short)", None),
    ("nc_n_gather(u, t, long)", None),
]


@pytest.mark.parametrize(("step", "otherwise"), SELECTIONS)
def test_what_is_not_selected_may_be_uninitialised(step: str, otherwise: float | None) -> None:
    def selected(count: int) -> NDArray[np.float32]:
        return result((SELECTED + "nisa." + step).replace("N", str(count)))

    if otherwise is None:
        expected = X[0:64, 31:32].repeat(64, axis=1)
    else:
        expected = np.where(np.arange(64) < 32, X[0:64], np.float32(otherwise))
    assert np.array_equal(selected(32), expected)
    with pytest.raises(RunError, match="computed from uninitialised bytes of `t`"):
        selected(33)


def test_rows_and_steps_name_the_same_operands(monkeypatch: pytest.MonkeyPatch) -> None:
    def decoded(*given: Any) -> Decoded:
        made.append(Decoded(*given))
        return made[-1]

    made = list[Decoded]()
    monkeypatch.setattr(plans, "Decoded", decoded)
    result((SELECTED + "".join(f"nisa.{step}\n" for step, _ in SELECTIONS)).replace("N", "32"))
    assert all(one.selected.keys() == {*one.row.selects} for one in made)
    assert {one.row for one in made if one.selected} == {r for r in ROWS.values() if r.selects}


NEVER = """
n = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
nisa.memset(dst=p, value=SET)
"""


@pytest.mark.parametrize(
    "step",
    [
        "tensor_copy(u, w)\nnisa.tensor_copy_predicated(u, n, p)",
        "affine_select(u, [[0, 64]], 0, n, 5.0, nl.greater, offset=SET)",
        "select_reduce(u, p, n, 5.0, reduce_cmd=nisa.reduce_cmd.reset_reduce)",
    ],
)
def test_nothing_is_selected_of_a_tile_that_was_never_written(step: str) -> None:
    def selected(flag: int) -> NDArray[np.float32]:
        text = (SELECTED + NEVER + "nisa." + step).replace("SET", str(flag))
        return result(text.replace("N", "64"))

    assert (selected(0) == 5).all()
    with pytest.raises(RunError, match="reads `n` before it is written"):
        selected(1)


def test_indices_of_a_core_decide_for_its_16_partitions() -> None:
    step = """
nisa.memset(dst=t, value=2.0)
short = nl.ndarray((128, 4), dtype=nl.uint16, buffer=nl.sbuf)
nisa.memset(dst=short[0:32], value=1)
nisa.memset(dst=short[32:64, 1:4], value=1)
nisa.memset(dst=short[64:128], value=1)
nisa.local_gather(u, t, short)
"""
    assert (result(SELECTED.replace("N", "64") + step, rows=32) == 2).all()
    with pytest.raises(RunError, match="computed from uninitialised bytes of `short`"):
        result(SELECTED.replace("N", "64") + step, rows=33)


def test_the_operand_that_spoils_the_result_is_named() -> None:
    step = "nisa.tensor_copy_predicated(u, t, p)"
    with pytest.raises(RunError, match="dma_copy reads `u` before it is written"):
        result(SELECTED.replace("N", "32") + step)
    with pytest.raises(RunError, match="computed from uninitialised bytes of `t`"):
        result(SELECTED.replace("N", "33") + step)


QUANTIZE = """@nki.jit
def kernel(x):
    t = nl.ndarray((64, 8), dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.dma_copy(dst=t[0:64, 0:4], src=x[0:64, 0:4])
    nisa.dma_copy(dst=t[0:40, 4:8], src=x[0:40, 4:8])
    data = nl.ndarray((64, 2), dtype=nl.float8_e5m2_x4, buffer=nl.sbuf)
    scales = nl.ndarray((64, 2), dtype=nl.uint8, buffer=nl.sbuf)
    nisa.quantize_mx(dst=data, src=t, dst_scale=scales)
    used = TAKEN[PART]
    out = nl.ndarray(used.shape, dtype=used.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=used)
    return out
"""


@pytest.mark.parametrize("taken", ["data.view(nl.uint32)", "scales"])
def test_quantization_mixes_a_group_of_one_column(taken: str) -> None:
    x = np.ones((64, 8), ml_dtypes.bfloat16)
    one = 0x74747474 if "data" in taken else 127 - 14  # 2^14 times 2^-14

    def used(part: str) -> NDArray[np.generic]:
        text = HEAD + QUANTIZE.replace("TAKEN", taken).replace("PART", part)
        artifact = api.compile(SourceFile("k.py", text), inputs={"x": x}, target="trn3")
        return np.asarray(api.run(artifact, {"x": x}).outputs["output_0"])

    assert (used("32:36, 0:1") == one).all() and (used("0:4, 0:2") == one).all()
    group = 8 if "data" in taken else 1  # in partitions
    assert (used(f"32:{32 + group}, 1:2") == one).all()
    with pytest.raises(RunError, match="the uninitialised bytes of `t` are read here"):
        used(f"{32 + group}:{33 + group}, 1:2")


@pytest.mark.parametrize("operands", ["t, v", "v, t"])
def test_nothing_of_one_operand_was_written_and_a_part_of_the_other(operands: str) -> None:
    step = "v = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)\n"
    step += "w = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)\n"
    step += f"nisa.tensor_tensor(w, {operands}, nl.add)\nnisa.dma_copy(dst=u, src=x)"
    with pytest.raises(RunError, match="tensor_tensor reads `v` before it is written"):
        result(HALF + step)


STORED = """@nki.jit
def kernel(x):
    t = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t[0:64, :], src=x[0:64, :])
    z = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=z, value=5.0)
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=t)
    AFTER
    return out
"""


def stored(after: str) -> NDArray[np.float32]:
    text = HEAD + STORED.replace("AFTER", after.strip().replace("\n", "\n    "))
    artifact = api.compile(SourceFile("k.py", text), inputs={"x": X})
    return np.asarray(api.run(artifact, {"x": X}).outputs["output_0"])


FIVES = np.concatenate([X[0:64], np.full((64, 64), 5, np.float32)])


@pytest.mark.parametrize(
    "after",
    [
        "nisa.dma_copy(dst=out[64:128, :], src=z)",
        "nisa.dma_copy(dst=out[64:128, 0:10], src=z[:, 0:10])\n"
        "nisa.dma_copy(dst=out[64:128, 10:64], src=z[:, 10:64])",
        "r = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)\n"
        "nisa.dma_copy(dst=r, src=out)\n"
        "nisa.memset(dst=r[64:128, :], value=5.0)\n"
        "nisa.dma_copy(dst=out, src=r)",
        "i = nl.ndarray((64, 1), dtype=nl.int32, buffer=nl.sbuf)\n"
        "nisa.iota(dst=i, pattern=[[1, 1]], offset=64, channel_multiplier=1)\n"
        "nisa.dma_copy(dst=out.ap([[64, 64], [1, 64]], vector_offset=i, indirect_dim=0), src=z)",
    ],
)
def test_unwritten_bytes_of_a_result_may_be_written_again(after: str) -> None:
    assert np.array_equal(stored(after), FIVES)


def test_unwritten_bytes_that_stay_in_a_result() -> None:
    with pytest.raises(api.CompileError, match="uninitialised"):
        stored("pass")
    with pytest.raises(RunError, match="dma_copy reads `t` before it is written"):
        stored("nisa.dma_copy(dst=out[64:127, :], src=z[0:63, :])")


PRODUCT = """@nki.jit
def kernel(x):
    a = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=a[0:64, :], src=x[0:64, :])
    b = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=b, value=VALUE)
    nisa.dma_copy(dst=b[0:64, :], src=x[64:128, :])
    p = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=p, stationary=FIRST, moving=SECOND)
    u = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=u, src=p)
    out = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=u)
    return out
"""


def product(first: str, second: str, value: str) -> NDArray[np.float32]:
    text = HEAD + PRODUCT.replace("FIRST", first).replace("SECOND", second)
    x = np.arange(128 * 64, dtype=np.float32).reshape(128, 64) % 7
    artifact = api.compile(SourceFile("k.py", text.replace("VALUE", value)), inputs={"x": x})
    return np.asarray(api.run(artifact, {"x": x}).outputs["output_0"])


@pytest.mark.parametrize(("first", "second"), [("a", "b"), ("b", "a")])
def test_what_was_not_written_may_be_multiplied_by_zero(first: str, second: str) -> None:
    x = np.arange(128 * 64, dtype=np.float32).reshape(128, 64) % 7
    expected = x[0:64].T @ x[64:128]
    found = product(first, second, "0.0")
    assert np.array_equal(found if first == "a" else found.T, expected)
    with pytest.raises(RunError, match="the uninitialised bytes of `a` are read here"):
        product(first, second, "1.0")
    with pytest.raises(RunError, match="the uninitialised bytes of `a` are read here"):
        product("a", "a", "0.0")


LEFT_OVER = """
t = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf, address=(0, 0))
nisa.memset(dst=t, value=float("nan"))
nisa.dma_copy(dst=nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.hbm), src=t)
v = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf, address=(0, 0))
nisa.dma_copy(dst=v[0:40, :], src=x[0:40, :])
w = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
nisa.memset(dst=w, value=0.0)
nisa.dma_copy(dst=w[0:40, :], src=x[0:40, :])
p = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.psum)
nisa.nc_matmul(dst=p, stationary=ONE, moving=TWO)
u = nl.ndarray((64, 64), dtype=nl.float32, buffer=nl.sbuf)
nisa.tensor_copy(dst=u, src=p)
"""


@pytest.mark.parametrize(("one", "two"), ["vw", "wv"])
def test_a_zero_times_a_nan_that_a_former_owner_left(one: str, two: str) -> None:
    part = X[0:40].astype(np.float64)
    found = result(LEFT_OVER.replace("ONE", one).replace("TWO", two))
    assert np.array_equal(found, (part.T @ part).astype(np.float32))
