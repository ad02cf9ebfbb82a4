"""Each kind of advice: a kernel that gets it, one that must not, and what following it brings."""

from functools import cache
from typing import NamedTuple

import pytest

from nkic.machine.targets import Engine
from nkic.report.verdict import MIN_GAIN, MIN_PART, Answer, Verdict, _limits, insight
from nkic.simulate import Result
from tests.advice.ladders import GATING_STEPS, NORM_STEPS, changed
from tests.harness.traced import executable, recorded, run
from tests.unit.report.test_insight import ONE_BUFFER, TWO_BUFFERS

KEPT = 0.7  # of a promised gain
A, B = "src=lhsT[k : k + 128, m : m + 128])", "src=rhs[k : k + 128, n : n + 512])"
TILED = f"""\
def matmul(lhsT, rhs):
    (K, M), (_, N) = lhsT.shape, rhs.shape
    out = nl.ndarray((M, N), dtype=nl.float32, buffer=nl.shared_hbm)
    for m in range(0, M, 128):
        for n in range(0, N, 512):
            psum = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
            for k in range(0, K, 128):
                a = nl.ndarray((128, 128), dtype=lhsT.dtype, buffer=nl.sbuf)
                b = nl.ndarray((128, 512), dtype=rhs.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=a, {A}
                nisa.dma_copy(dst=b, {B}
                nisa.nc_matmul(dst=psum, stationary=a, moving=b, accumulate=(k > 0))
            c = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_copy(dst=c, src=psum)
            nisa.dma_copy(dst=out[m : m + 128, n : n + 512], src=c)
    return out
"""
SCALAR = TILED.replace(B, f"{B[:-1]}, engine=nisa.engine.scalar, dge_mode=nisa.dge_mode.hwdge)")
SOFTWARE = TILED.replace(A, f"{A[:-1]}, dge_mode=nisa.dge_mode.swdge)")
MATRICES = {"lhsT": "bfloat16[512,1024]", "rhs": "bfloat16[512,1024]"}
WIDE = {name: kind.replace("bfloat16", "float32") for name, kind in MATRICES.items()}
PANELS = """\
def matmul(lhsT, rhs):
    (K, M), (_, N) = lhsT.shape, rhs.shape
    out = nl.ndarray((M, N), dtype=nl.float32, buffer=nl.shared_hbm)
    for m in range(0, M, 128):
        for k in range(0, K, 128):
            panel = nl.ndarray((128, N), dtype=rhs.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=panel, src=rhs[k : k + 128, :])
    return out
"""
PIECES = """\
def total(x):
    out = nl.ndarray((512, 128), dtype=x.dtype, buffer=nl.shared_hbm)
    for r in range(0, 512, 128):
        sums = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)
        nisa.memset(dst=sums, value=0.0)
        for c in range(0, 8192, 128):
            t = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=t, src=x[r : r + 128, c : c + 128])
            nisa.tensor_tensor(dst=sums, data1=sums, data2=t, op=nl.add)
        nisa.dma_copy(dst=out[r : r + 128, :], src=sums)
    return out
"""
IN_TURN = PIECES.replace(
    "c + 128])",
    "c + 128], engine=nisa.engine.scalar if c // 128 % 2 else nisa.engine.sync, "
    "dge_mode=nisa.dge_mode.hwdge)",
)
X = {"x": "float32[1024,2048]"}
SUMS = """\
def exponents(x):
    out = nl.ndarray((1024, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    for i in range(0, 1024, 128):
        t = nl.ndarray((128, 2048), dtype=x.dtype, buffer=nl.sbuf)
        y = nl.ndarray((128, 2048), dtype=nl.float32, buffer=nl.sbuf)
        total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=x[i : i + 128, :])
        nisa.activation(dst=y, op=nl.exp, data=t)
        nisa.tensor_reduce(dst=total, op=nl.add, data=y, axis=1)
        nisa.dma_copy(dst=out[i : i + 128, :], src=total)
    return out
"""
FUSED = SUMS.replace(
    "        nisa.tensor_reduce(dst=total, op=nl.add, data=y, axis=1)\n", ""
).replace(
    "data=t)",
    "data=t, reduce_op=nl.add, reduce_res=total, reduce_cmd=nisa.reduce_cmd.reset_reduce)",
)
ADDED = """\
def matmul(lhsT, rhs):
    (K, M), (_, N) = lhsT.shape, rhs.shape
    out = nl.ndarray((M, N), dtype=nl.float32, buffer=nl.shared_hbm)
    left = nl.ndarray((128, K // 128, M), dtype=lhsT.dtype, buffer=nl.sbuf)
    right = nl.ndarray((128, K // 128, N), dtype=rhs.dtype, buffer=nl.sbuf)
    for k in range(K // 128):
        nisa.dma_copy(dst=left[:, k, :], src=lhsT[128 * k : 128 * k + 128, :])
        nisa.dma_copy(dst=right[:, k, :], src=rhs[128 * k : 128 * k + 128, :])
    for m in range(0, M, 128):
        for n in range(0, N, 512):
            c = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
            nisa.memset(dst=c, value=0.0)
            for k in range(K // 128):
                psum = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
                a, b = left[:, k, m : m + 128], right[:, k, n : n + 512]
                nisa.nc_matmul(dst=psum, stationary=a, moving=b)
                nisa.tensor_tensor(dst=c, data1=c, data2=psum, op=nl.add)
            nisa.dma_copy(dst=out[m : m + 128, n : n + 512], src=c)
    return out
"""
TILE = "                psum = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)\n"
SUM = "                nisa.tensor_tensor(dst=c, data1=c, data2=psum, op=nl.add)\n"
ACCUMULATED = (
    ADDED.replace(TILE, "")
    .replace(SUM, "")
    .replace("            nisa.memset(dst=c, value=0.0)\n", TILE[4:])
    .replace("moving=b)\n", "moving=b, accumulate=(k > 0))\n")
    .replace(
        "            nisa.dma_copy(dst=out[m",
        "            nisa.tensor_copy(dst=c, src=psum)\n            nisa.dma_copy(dst=out[m",
    )
)

NARROW = """\
def double(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for r in range(0, 512, 128):
        for c in range(0, 4096, 128):
            t = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=t, src=x[r : r + 128, c : c + 128])
            nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=2.0)
            nisa.dma_copy(dst=out[r : r + 128, c : c + 128], src=t)
    return out
"""
BROAD = NARROW.replace("4096, 128)", "4096, 2048)").replace("(128, 128)", "(128, 2048)")
BROAD = BROAD.replace("c : c + 128", "c : c + 2048")
THIN = """\
def few(lhsT, rhs):
    (K, M), (_, N) = lhsT.shape, rhs.shape
    out = nl.ndarray((M, N), dtype=nl.float32, buffer=nl.shared_hbm)
    left = nl.ndarray((128, K // 128, M), dtype=lhsT.dtype, buffer=nl.sbuf)
    right = nl.ndarray((128, K // 128, N), dtype=rhs.dtype, buffer=nl.sbuf)
    nisa.memset(dst=left, value=1.0)
    nisa.memset(dst=right, value=1.0)
    for n in range(0, N, 512):
        psum = nl.ndarray((M, 512), dtype=nl.float32, buffer=nl.psum)
        for k in range(K // 128):
            b = right[:, k, n : n + 512]
            nisa.nc_matmul(dst=psum, stationary=left[:, k, :], moving=b, accumulate=(k > 0))
        c = nl.ndarray((M, 512), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=c, src=psum)
        nisa.dma_copy(dst=out[:, n : n + 512], src=c)
    return out
"""
SWAPPED = """\
def few(lhsT, rhs):
    (K, M), (_, N) = lhsT.shape, rhs.shape
    out = nl.ndarray((N, M), dtype=nl.float32, buffer=nl.shared_hbm)
    left = nl.ndarray((128, K // 128, M), dtype=lhsT.dtype, buffer=nl.sbuf)
    right = nl.ndarray((128, K // 128, N), dtype=rhs.dtype, buffer=nl.sbuf)
    nisa.memset(dst=left, value=1.0)
    nisa.memset(dst=right, value=1.0)
    for n in range(0, N, 128):
        psum = nl.ndarray((128, M), dtype=nl.float32, buffer=nl.psum)
        for k in range(K // 128):
            b = right[:, k, n : n + 128]
            nisa.nc_matmul(dst=psum, stationary=b, moving=left[:, k, :], accumulate=(k > 0))
        c = nl.ndarray((128, M), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=c, src=psum)
        nisa.dma_copy(dst=out[n : n + 128, :], src=c)
    return out
"""
FEW = {"lhsT": "bfloat16[2048,16]", "rhs": "bfloat16[2048,1024]"}


# Vector does all of the work, with the copies out of PSUM; or scalar makes them.
ON_VECTOR = """\
def squares(lhsT, rhs):
    (k, m), (_, n) = lhsT.shape, rhs.shape
    out = nl.ndarray((m, n), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    a = nl.ndarray((k, m), dtype=lhsT.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=a, src=lhsT)
    b = nl.ndarray((k, n), dtype=rhs.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=b, src=rhs)
    for i in range(0, m, 128):
        row = nl.ndarray((128, n), dtype=lhsT.dtype, buffer=nl.sbuf)
        for j in range(0, n, 512):
            p = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
            nisa.nc_matmul(dst=p, stationary=a[:, i : i + 128], moving=b[:, j : j + 512])
            c = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_copy(dst=c, src=p, engine=nisa.engine.vector)
            nisa.tensor_tensor(dst=row[:, j : j + 512], data1=c, data2=c, op=nl.multiply)
        nisa.dma_copy(dst=out[i : i + 128, :], src=row)
    return out
"""
ON_BOTH = ON_VECTOR.replace("src=p, engine=nisa.engine.vector", "src=p, engine=nisa.engine.scalar")

# The maximum is subtracted by an instruction of its own, or by the activation's bias.
TWICE = """\
def powers(x):
    rows, d = x.shape
    out = nl.ndarray((rows, d), dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(0, rows, 128):
        t = nl.ndarray((128, d), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=x[i : i + 128, :])
        most = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=most, op=nl.maximum, data=t, axis=1)
        less = nl.ndarray((128, d), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=less, data=t, op0=nl.subtract, operand0=most)
        e = nl.ndarray((128, d), dtype=x.dtype, buffer=nl.sbuf)
        nisa.activation(dst=e, op=nl.exp, data=less)
        nisa.dma_copy(dst=out[i : i + 128, :], src=e)
    return out
"""
ONCE = changed(
    TWICE,
    (
        "nisa.tensor_reduce(dst=most, op=nl.maximum, data=t, axis=1)",
        "nisa.tensor_reduce(dst=most, op=nl.maximum, data=t, axis=1, negate=True)",
    ),
    ("less = nl.ndarray((128, d), dtype=nl.float32, buffer=nl.sbuf)", ""),
    ("nisa.tensor_scalar(dst=less, data=t, op0=nl.subtract, operand0=most)", ""),
    (
        "nisa.activation(dst=e, op=nl.exp, data=less)",
        "nisa.activation(dst=e, op=nl.exp, data=t, bias=most)",
    ),
)


class Case(NamedTuple):
    """A kind of advice: the beginning of its name, a kernel that gets it, and the kernel that
    follows it, which must not get it again.
    """

    name: str
    slow: str
    fast: str
    args: dict[str, str]
    fast_args: dict[str, str] | None = None
    words: str = ""


GATING = {"x": "bfloat16[512,1024]", "w": "bfloat16[1024,64]"}
CASES = (
    Case("trigger-scalar:k.py:16", TILED, SCALAR, MATRICES, words="engine=nisa.engine.scalar, "),
    Case("trigger-gpsimd:k.py:15", TILED, SOFTWARE, MATRICES, words="dge_mode=nisa.dge_mode.swdge"),
    Case("trigger-in-turn:k.py:13", PIECES, IN_TURN, {"x": "bfloat16[512,8192]"}, words="c // 128"),
    Case("bf16", ADDED, ADDED, WIDE, MATRICES, "8 bits of each operand's mantissa"),
    Case("buffers:k.py:8", ONE_BUFFER, TWO_BUFFERS, X, words="declare t (k.py:8) inside the loop"),
    Case("fuse:k.py:13:14", SUMS, FUSED, X, words="op=…, data=…, reduce_op=nl.add, "),
    Case("accumulate:k.py:22", ADDED, ACCUMULATED, MATRICES, words="`accumulate=(k > 0)`"),
    Case(
        "fuse:k.py:18:19",
        NORM_STEPS[1].text,
        NORM_STEPS[2].text,
        {"x": "float32[1024,2048]", "w": "float32[2048]"},
        words="op=nl.square",
    ),
    Case("larger-tiles:k.py:11:", NARROW, BROAD, {"x": "bfloat16[512,4096]"}, words="on 2,048 col"),
    Case("join:k.py:15:17", TWICE, ONCE, {"x": "bfloat16[2048,2048]"}, words="op=…, data=…, bias="),
    Case(
        "engine-scalar:k.py:19",
        ON_VECTOR,
        ON_BOTH,
        {"lhsT": "bfloat16[128,1024]", "rhs": "bfloat16[128,2048]"},
        words="pass `engine=nisa.engine.scalar`",
    ),
    Case("swap:k.py:17", THIN, SWAPPED, FEW, words="few of the 128 columns"),
    Case("whole-rows:", GATING_STEPS[1].text, GATING_STEPS[2].text, GATING, words="8 pieces"),
)


@cache
def ran(text: str, args: tuple[tuple[str, str], ...]) -> tuple[Result, Verdict]:
    result = run(executable(text, **dict(args)))
    kept = recorded(result)
    return result, insight(kept.trace, kept.again, 1_000_000).verdict


def slow_of(case: Case) -> tuple[Result, Verdict]:
    return ran(case.slow, tuple(case.args.items()))


def fast_of(case: Case) -> tuple[Result, Verdict]:
    return ran(case.fast, tuple((case.fast_args or case.args).items()))


def told(verdict: Verdict, name: str) -> list[Answer]:
    return [answer for answer in verdict.advice if answer.name.startswith(name)]


def named(case: Case) -> str:
    return case.name


@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_kernel_that_needs_it_gets_it(case: Case) -> None:
    _, verdict = slow_of(case)
    (answer,) = told(verdict, case.name)
    assert answer.gain >= MIN_GAIN and case.words in answer.text


@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_kernel_that_follows_it_does_not_get_it(case: Case) -> None:
    _, verdict = fast_of(case)
    assert not told(verdict, f"{case.name.partition(':')[0]}:")


@pytest.mark.parametrize("case", CASES, ids=named)
def test_following_it_brings_what_it_promises(case: Case) -> None:
    (before, verdict), (after, _) = slow_of(case), fast_of(case)
    (answer,) = told(verdict, case.name)
    assert 1 - after.time_ns / before.time_ns > KEPT * answer.gain


PIECEWISE = """\
def pieces(x):
    (rows, d), width = x.shape, WIDTH
    out = nl.ndarray((rows, d), dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(0, rows, 128):
        for j in range(0, d, width):
            t = nl.ndarray((128, width), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=t, src=x[i : i + 128, j : j + width])
            y = nl.ndarray((128, width), dtype=x.dtype, buffer=nl.sbuf)
            nisa.activation(dst=y, op=nl.gelu, data=t)
            nisa.dma_copy(dst=out[i : i + 128, j : j + width], src=y)
    return out
"""


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("width", [64, 128, 256])
def test_the_estimate_of_larger_tiles_is_near(width: int, dtype: str) -> None:
    """As many tiles are loaded ahead as before, and they are larger."""
    args = (("x", f"{dtype}[1024,2048]"),)
    before, verdict = ran(PIECEWISE.replace("WIDTH", str(width)), args)
    after, _ = ran(PIECEWISE.replace("WIDTH", "2048"), args)
    (promised,) = [
        a for a in verdict.advice if a.name == f"larger-tiles:k.py:12:{width}:{2048 // width}"
    ]
    assert 1 - after.time_ns / before.time_ns == pytest.approx(promised.gain, abs=0.12)


def test_advice_is_within_what_rules_allow() -> None:
    """Hardware descriptors do not convert: only software may trigger a load that does."""
    converting = TILED.replace(
        "dtype=rhs.dtype, buffer=nl.sbuf", "dtype=nl.float16, buffer=nl.sbuf"
    )
    converting = converting.replace(
        "dtype=lhsT.dtype, buffer=nl.sbuf", "dtype=nl.float16, buffer=nl.sbuf"
    )
    _, verdict = ran(converting, tuple(MATRICES.items()))
    assert not told(verdict, "trigger-scalar:k.py:16") and not told(
        verdict, "trigger-scalar:k.py:15"
    )


COLUMNS = """\
def columns(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x[:, 0:64])
    nisa.dma_copy(dst=out, src=t)
    return out
"""


@pytest.mark.parametrize(("width", "lines"), [(64, []), (8192, ["k.py:9"])])
def test_rows_of_a_whole_tensor_cannot_be_longer(width: int, lines: list[str]) -> None:
    _, verdict = ran(COLUMNS, (("x", f"float32[128,{width}]"),))
    rows = [answer.name for answer in verdict.answers if answer.name.startswith("long-rows")]
    assert rows == [f"long-rows:{line}" for line in lines]


def test_rows_between_tensors_in_hbm_have_no_partitions() -> None:
    text = (
        "def copy(x):\n"
        "    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n"
        "    nisa.dma_copy(dst=out, src=x)\n"
        "    return out\n"
    )
    _, verdict = ran(text, (("x", "float32[4,4]"),))
    assert verdict.bound.startswith("DMA")


def test_a_maximum_is_not_added_up() -> None:
    _, verdict = ran(SUMS.replace("op=nl.add", "op=nl.maximum"), tuple(X.items()))
    assert not [a for a in verdict.answers if a.name.startswith("fuse:")]


def test_too_many_sums_do_not_fit_psum() -> None:
    """Sixteen sums that are open together need more than eight banks."""
    many = ADDED.replace("    for m in range(0, M, 128):\n        for n in range(0, N, 512):\n", "")
    head, _, _ = many.partition("            c = nl")
    body = (
        "    sums = [[nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf) for _ in range(2)]\n"
        "            for _ in range(8)]\n"
        "    for k in range(K // 128):\n"
        "        for m in range(8):\n"
        "            for n in range(2):\n"
        "                if k == 0:\n"
        "                    nisa.memset(dst=sums[m][n], value=0.0)\n"
        "                psum = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)\n"
        "                a = left[:, k, 128 * m : 128 * m + 128]\n"
        "                nisa.nc_matmul(dst=psum, stationary=a,\n"
        "                               moving=right[:, k, 512 * n : 512 * n + 512])\n"
        "                c = sums[m][n]\n"
        "                nisa.tensor_tensor(dst=c, data1=c, data2=psum, op=nl.add)\n"
        "    for m in range(8):\n"
        "        for n in range(2):\n"
        "            nisa.dma_copy(dst=out[128 * m : 128 * m + 128, 512 * n : 512 * n + 512],\n"
        "                          src=sums[m][n])\n"
        "    return out\n"
    )
    _, verdict = ran(head + body, tuple(MATRICES.items()))
    assert not [a for a in verdict.answers if a.name.startswith("accumulate:")]


# ---- what bounds the run ---------------------------------------------------------------------


def test_a_bound_that_frees_little_is_one_of_several() -> None:
    """No part alone bounds this kernel: DVE and DMA take turns."""
    case = next(case for case in CASES if case.name == "fuse:k.py:18:19")
    _, verdict = slow_of(case)
    free = {a.name: a.gain for a in verdict.answers if a.name.startswith("free-")}
    assert max(free.values()) < 0.13 < MIN_PART * verdict.path[verdict.bound]
    assert verdict.limits[:2] == ["DVE", "DMA"] and free["free-DVE"] > free["free-DMA"]
    assert verdict.lines[0].startswith("limited by several: DVE, DMA")
    assert verdict.as_json()["limits"] == verdict.limits


def test_a_bound_that_frees_much_is_one() -> None:
    _, verdict = ran(TILED, tuple(MATRICES.items()))
    assert verdict.limits == [] and "limits" not in verdict.as_json()
    assert verdict.lines[0].startswith("bound by DMA triggers: ")


@pytest.mark.parametrize(
    ("dma", "triggers", "limits"),
    [(0.31, 0.06, ["DMA", "DMA triggers"]), (0.7, 0.34, []), (0.7, 0.05, ["DMA", "DMA triggers"])],
)
def test_what_dma_frees_is_not_what_its_triggers_free(
    dma: float, triggers: float, limits: list[str]
) -> None:
    gains = {"free-DMA": dma, "free-triggers": triggers}
    answers = [Answer(name, "", 0, gain, is_advice=False) for name, gain in gains.items()]
    assert _limits("DMA triggers", 0.51, answers, {}) == limits


@pytest.mark.parametrize("case", CASES, ids=named)
def test_the_bound_and_the_what_ifs_agree(case: Case) -> None:
    for _, verdict in (slow_of(case), fast_of(case)):
        free = {a.name[5:]: a.gain for a in verdict.answers if a.name.startswith("free-")}
        own = [gain for part, gain in free.items() if verdict.bound.startswith(part)]
        own = [free["triggers"]] if verdict.bound == "DMA triggers" else own
        if own and not verdict.limits:
            assert max(own) == max(free.values()) or max(own) >= 0.1
        freed = free.get("triggers", 1.0)
        assert all(freed >= answer.gain for answer in told(verdict, "trigger-"))


LIMITS = {
    "free-triggers": ("trigger-",),
    "free-memory": ("buffers:",),
    "free-PE": ("bf16", "swap:"),
    "free-DVE": ("accumulate:", "fuse:"),
    "free-DMA": ("load-once:", "block:", "whole-rows:", "long-rows:", "fewer-transfers:"),
}


@pytest.mark.parametrize("case", CASES, ids=named)
def test_no_advice_beats_what_would_be_free(case: Case) -> None:
    """What a change of one part of the machine gains is less than that part without cost."""
    for _, verdict in (slow_of(case), fast_of(case)):
        free = {answer.name: answer.gain for answer in verdict.answers if not answer.is_advice}
        for limit, kinds in LIMITS.items():
            gains = [a.gain for a in verdict.advice if a.name.startswith(kinds)]
            assert max(gains, default=0.0) <= free.get(limit, 1.0)


def test_engines_are_those_that_can_trigger() -> None:
    result, _ = ran(SCALAR, tuple(MATRICES.items()))
    by = {event.triggered_by for event in recorded(result).trace.events if event.trigger}
    assert by == {Engine.SYNC, Engine.SCALAR}


INTEGERS = """\
def sums(x):
    rows, d = x.shape
    out = nl.ndarray((rows, d), dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(0, rows, 128):
        t = nl.ndarray((128, d), dtype=nl.int32, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=x[i : i + 128, :])
        e = nl.ndarray((128, d), dtype=nl.int32, buffer=nl.sbuf)
        nisa.tensor_tensor(dst=e, data1=t, data2=t, op=nl.add)
        nisa.tensor_tensor(dst=e, data1=e, data2=t, op=nl.subtract)
        nisa.dma_copy(dst=out[i : i + 128, :], src=e)
    return out
"""


def test_only_gpsimd_adds_large_integers() -> None:
    """On vector, sums from 2**24 on are rounded."""
    _, verdict = ran(INTEGERS, (("x", "int32[512,2048]"),))
    assert verdict.busy["POOL"] > 0.6 and not told(verdict, "engine-vector")


JOIN = "nisa.activation(dst=e, op=nl.exp, data=less)"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "less = nl.ndarray((128, d), dtype=nl.float32",
            "less = nl.ndarray((128, d), dtype=nl.int32",
        ),
        (JOIN, "nisa.tensor_tensor(dst=e, data1=less, data2=t, op=nl.power)"),
    ],
    ids=["cut off between the two", "not an operator of it"],
)
def test_two_that_no_instruction_joins(old: str, new: str) -> None:
    _, verdict = ran(TWICE.replace(old, new), (("x", "bfloat16[1024,2048]"),))
    assert old in TWICE and not told(verdict, "join:")


def test_a_constant_is_not_multiplied_first() -> None:
    text = TWICE.replace("operand0=most", "operand0=1.5")
    _, verdict = ran(text, (("x", "bfloat16[1024,2048]"),))
    (answer,) = told(verdict, "join:")
    assert answer.text.endswith("; the constant has the other sign there")
