"""Kernels whose rows get the same bits however many there are, and kernels whose rows do not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkic
from nkic.cli.common import run
from nkic.cli.nki_run import command
from nkic.simulate.field.batch import Invariance
from tests.harness.commands import ROOT

HEAD = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n\n"
# Rows of up to 128 at a time; BODY computes `e` from `t`.
ROWS = (
    HEAD
    + """
def tile(*shape):
    return nl.ndarray(shape, dtype=nl.float32, buffer=nl.sbuf)


@nki.jit
def kernel(x):
    R, C = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for r in range(0, R, 128):
        n = min(128, R - r)
        t, e = tile(n, C), tile(n, C)
        nisa.dma_copy(dst=t, src=x[r : r + n])
BODY
        nisa.dma_copy(dst=out[r : r + n], src=e)
    return out
"""
)
SOFTMAX = """
        m, s = tile(n, 1), tile(n, 1)
        nisa.tensor_reduce(dst=m, data=t, op=nl.maximum, axis=1, negate=True)
        nisa.activation(dst=e, op=nl.exp, data=t, bias=m)
        SUM
        nisa.reciprocal(dst=s, data=s)
        nisa.tensor_scalar(dst=e, data=e, op0=nl.multiply, operand0=s)
"""
SUM = "nisa.tensor_reduce(dst=s, data=e, op=nl.add, axis=1)"
HALVES = """u = tile(n, 2)
        for h in range(2):
            half = e[:, h * (C // 2) : (h + 1) * (C // 2)]
            nisa.tensor_reduce(dst=u[:, h : h + 1], data=half, op=nl.add, axis=1)
        nisa.tensor_reduce(dst=s, data=u, op=nl.add, axis=1)"""
CHOSEN = f"if R > 128:\n            {SUM}\n        else:\n            " + HALVES.replace(
    "\n", "\n    "
)


def of_rows(body: str, width: int = 64) -> Callable[[int], dict[str, str]]:
    text = ROWS.replace("BODY", body.strip("\n"))
    return lambda rows: {"text": text, "x": f"float32[{rows},{width}]"}


PRODUCT = (
    HEAD
    + """
@nki.jit
def kernel(x, w):
    R, K = x.shape
    N = w.shape[1]
    out = nl.ndarray((R, N), dtype=x.dtype, buffer=nl.shared_hbm)
    for r in range(0, R, 128):
        n = min(128, R - r)
        sums = nl.ndarray((n, N), dtype=nl.float32, buffer=nl.psum)
        step = STEP
        for k in range(0, K, step):
            rows = nl.ndarray((n, step), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=rows, src=x[r : r + n, k : k + step])
            turned = nl.ndarray((step, n), dtype=x.dtype, buffer=nl.psum)
            nisa.nc_transpose(dst=turned, data=rows)
            a = nl.ndarray((step, n), dtype=x.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=a, src=turned)
            b = nl.ndarray((step, N), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=b, src=w[k : k + step])
            nisa.nc_matmul(dst=sums, stationary=a, moving=b, accumulate=k > 0)
        done = nl.ndarray((n, N), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(dst=done, src=sums)
        nisa.dma_copy(dst=out[r : r + n], src=done)
    return out
"""
)


def product(step: str, kind: str = "bfloat16") -> Callable[[int], dict[str, str]]:
    text = PRODUCT.replace("STEP", step)
    return lambda rows: {"text": text, "x": f"{kind}[{rows},256]", "w": f"{kind}[256,32]"}


COPY = "        nisa.tensor_copy(dst=e, src=t)\n"
# A product with an identity of as many rows as there are: a transpose, as kernels write it.
TURNED = """
        places = nl.ndarray((n, C), dtype=nl.int32, buffer=nl.sbuf)
        nisa.iota(dst=places, pattern=[[1, C]], offset=0, channel_multiplier=-1)
        one = tile(n, n)
        nisa.tensor_scalar(dst=one, data=places[:, 0:n], op0=nl.equal, operand0=0.0)
        turned = nl.ndarray((C, n), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=turned, stationary=t, moving=one)
        a = tile(C, n)
        nisa.tensor_copy(dst=a, src=turned)
        back = nl.ndarray((n, C), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_transpose(dst=back, data=a)
        nisa.tensor_copy(dst=e, src=back)
"""
# A product with a diagonal matrix, which mixes rows no more.
SCALED_BY_PRODUCT = TURNED.replace(
    "        turned =", "        nisa.tensor_scalar(one, one, nl.multiply, 0.5)\n        turned ="
)
# Adds the mean of all rows of a tile to each.
MIXED = """
        ones = tile(n, n)
        nisa.memset(dst=ones, value=1.0)
        sums = nl.ndarray((n, C), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=sums, stationary=ones, moving=t)
        nisa.tensor_tensor(dst=e, data1=t, data2=sums, op=nl.add)
"""
NARROW = """
        low = nl.ndarray((n, C), dtype=nl.bfloat16 if R > 200 else nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=low, src=t)
        nisa.tensor_copy(dst=e, src=low)
"""
SCALED = "        nisa.tensor_scalar(dst=e, data=t, op0=nl.multiply, operand0=2.0 ** (R // 200))\n"
# The same bits in another way, which terms do not know.
TWICE = """
        nisa.tensor_scalar(dst=e, data=t, op0=nl.multiply, operand0=2.0)
        if R > 200:
            nisa.tensor_tensor(dst=e, data1=t, data2=t, op=nl.add)
"""
SELECTED = """
        nisa.affine_select(dst=e, pattern=[[1, C]], channel_multiplier=0, on_true_tile=t,
                           on_false_value=0.0, cmp_op=nl.less, offset=-40)
"""

# The same elements in another order.
SWAPPED = """
        u, s = tile(n, C), tile(n, 1)
        first = C // 2 if R > 200 else 0
        nisa.tensor_copy(dst=u[:, 0 : C // 2], src=t[:, first : first + C // 2])
        nisa.tensor_copy(dst=u[:, C // 2 : C], src=t[:, C // 2 - first : C - first])
        nisa.tensor_reduce(dst=s, data=u, op=nl.add, axis=1)
        nisa.tensor_scalar(dst=e, data=t, op0=nl.multiply, operand0=s)
"""
TURNED_AROUND = """
        nisa.tensor_tensor(dst=e, data1=t, data2=t, op=nl.multiply)
        a, b = (t, e) if R > 200 else (e, t)
        nisa.tensor_tensor(dst=e, data1=a, data2=b, op=nl.add)
"""

INVARIANT = {
    "softmax": of_rows(SOFTMAX.replace("SUM", SUM)),
    "sums of halves": of_rows(SOFTMAX.replace("SUM", HALVES)),
    "products": product("128"),
    "products of float32": product("64", "float32"),
    "turned by the identity": of_rows(TURNED, 128),
    "scaled by a diagonal": of_rows(SCALED_BY_PRODUCT, 128),
    "masked": of_rows(SELECTED),
}
DEPENDENT = {
    "sums that are split for few rows": (of_rows(SOFTMAX.replace("SUM", CHOSEN)), "tensor_reduce"),
    "sums of products in other steps": (product("128 if R > 200 else 64", "float32"), "nc_matmul"),
    "means over rows": (of_rows(MIXED), "nc_matmul"),
    "another type": (of_rows(NARROW), "tensor_copy"),
    "the number of rows": (of_rows(SCALED), "tensor_scalar"),
}


def answer(
    tmp_path: Path, case: Callable[[int], dict[str, str]], few: int, many: int, inputs: Any = None
) -> Invariance:
    one, other = (compiled(tmp_path, case, rows) for rows in (few, many))
    return nkic.batch_invariant(one, other, inputs)


def compiled(tmp_path: Path, case: Callable[[int], dict[str, str]], rows: int) -> nkic.Artifact:
    given = case(rows)
    (tmp_path / "k.py").write_text(given.pop("text"))
    return nkic.compile(tmp_path / "k.py", inputs=given)


@pytest.mark.parametrize(
    ("name", "few", "many"),
    [*((name, 100, 300) for name in INVARIANT), ("softmax", 3, 128), ("products", 256, 300)],
)
def test_rows_have_the_same_bits(tmp_path: Path, name: str, few: int, many: int) -> None:
    found = answer(tmp_path, INVARIANT[name], few, many)
    assert found and found.verdict == "invariant" and found.lines == ()
    assert f"x: {few} of {many} rows" in found.rows
    assert found.text.startswith("invariant: a row gets the same bits in both")


def many_rows(name: str, kind: str, *sizes: int) -> dict[str, str]:
    return {name: f"{kind}[{','.join(map(str, sizes))}]"}


def heads(count: int) -> dict[str, str]:
    q, k = (many_rows(name, "bfloat16", count, 128, 512) for name in "qk")
    return {**q, **k, **many_rows("v", "bfloat16", count, 512, 128)}


SAMPLES = {
    "06_matmul": [many_rows("lhsT", "bfloat16", 512, n) for n in (512, 1024)],
    "07_softmax": [many_rows("x", "float32", n, 1000) for n in (100, 300)],
    "08_layer_norm": [many_rows("x", "float32", n, 1100) for n in (100, 300)],
    "09_rms_norm": [many_rows("x", "bfloat16", n, 2048) for n in (100, 300)],
    "10_attention": [heads(1), heads(2)],
}


@pytest.mark.slow  # five kernels with up to 3,000 instructions
@pytest.mark.parametrize("name", SAMPLES)
def test_samples_are_batch_invariant(name: str) -> None:
    path = ROOT / "samples" / name / "kernel.py"
    few, many = (nkic.compile(path, inputs=kinds) for kinds in SAMPLES[name])
    assert nkic.batch_invariant(few, many).verdict == "invariant"


@pytest.mark.parametrize("name", DEPENDENT)
def test_rows_have_other_bits(tmp_path: Path, name: str) -> None:
    case, instruction = DEPENDENT[name]
    found = answer(tmp_path, case, 100, 300)
    assert found.verdict == "dependent" and not found
    assert 0 < found.differing <= found.compared and found.compared in (100 * 64, 100 * 32)
    assert found.lines[0].startswith(f"the first that differs: {instruction} at k.py:")
    other = answer(tmp_path, case, 300, 100)
    assert other.text == found.text, "in either order"


def test_a_run_says_whether_another_way_gives_other_bits(tmp_path: Path) -> None:
    found = answer(tmp_path, of_rows(TURNED_AROUND), 100, 300)
    assert found.verdict == "unconfirmed" and "tensor_tensor at k.py:20" in found.lines[0]
    found = answer(tmp_path, of_rows(SWAPPED), 100, 300)
    assert found.verdict == "unconfirmed" and "tensor_reduce at k.py:22" in found.lines[0]
    found = answer(tmp_path, of_rows(TWICE), 100, 300)
    assert found.verdict == "unconfirmed" and found.differing == 0
    assert found.lines == ("the first that differs: tensor_tensor at k.py:20",)


def test_the_last_rows_count_too(tmp_path: Path) -> None:
    """A last tile of another size is computed in another way."""
    split = CHOSEN.replace("R > 128", "n == 128")
    case = of_rows(SOFTMAX.replace("SUM", split))
    assert answer(tmp_path, case, 128, 256).verdict == "invariant"
    assert answer(tmp_path, case, 128, 200).verdict == "dependent"


GATHER = (
    HEAD
    + """
@nki.jit
def kernel(x, at):
    R, C = x.shape
    out = nl.ndarray((R, C), dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((R, C), dtype=x.dtype, buffer=nl.sbuf)
    i = nl.ndarray((R, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=i, src=at)
    nisa.dma_copy(dst=t, src=x.ap([[C, R], [1, C]], vector_offset=i, indirect_dim=0))
    nisa.dma_copy(dst=out, src=t)
    return out
"""
)


def test_integers_are_taken_as_they_are(tmp_path: Path) -> None:
    def case(rows: int) -> dict[str, str]:
        return {"text": GATHER, "x": f"float32[{rows},8]", "at": f"int32[{rows},1]"}

    own = np.arange(64, dtype=np.int32)[:, None]
    assert answer(tmp_path, case, 32, 64, inputs={"at": own % 32}).verdict == "dependent"
    with pytest.raises(nkic.RunError, match="`x` is not an integer input"):
        answer(tmp_path, case, 32, 64, inputs={"x": own})
    with pytest.raises(nkic.RunError, match=r"not an integer input of the shape \(32, 1\)"):
        answer(tmp_path, case, 32, 64, inputs={"at": own[:32]})


def test_what_terms_do_not_know_is_said(tmp_path: Path) -> None:
    body = (
        "        nisa.max8(dst=e[:, 0:8], src=t)\n        nisa.tensor_copy(e[:, 8:C], t[:, 8:C])\n"
    )
    found = answer(tmp_path, of_rows(body), 100, 300)
    assert found.verdict == "undecided" and not found
    assert found.lines[0].startswith("undecided: max8 ") and "at k.py:18" in found.lines[0]


@pytest.mark.parametrize(
    ("call", "is_alone"),
    [
        ("all_reduce([mine], [theirs], ncc.ReplicaGroup([[0, 1]]), nl.add)", False),
        ("all_reduce([mine], [theirs], ncc.ReplicaGroup([[1, 2]]), nl.add)", False),
        ("all_reduce([mine], [theirs], ncc.ReplicaGroup([[0]]), nl.add)", True),
        ("collective_permute([mine], [theirs], [(0, 1), (1, 0)])", False),
    ],
)
def test_what_several_ranks_exchange_is_undecided(
    tmp_path: Path, call: str, is_alone: bool
) -> None:
    """One rank is run, so that there is no run at all."""
    body = f"""
        mine, theirs = (nl.ndarray((n, C), dtype=x.dtype, buffer=nl.hbm) for _ in range(2))
        nisa.dma_copy(dst=mine, src=t)
        ncc.{call}
        nisa.dma_copy(dst=e, src=theirs)
"""
    text = "import nki.collectives as ncc\n" + ROWS.replace("BODY", body)
    (tmp_path / "k.py").write_text(text)
    few, many = (
        nkic.compile(tmp_path / "k.py", inputs={"x": f"float32[{rows},64]"}) for rows in (100, 300)
    )
    line = next(n for n, line in enumerate(text.splitlines(), 1) if call in line)
    name = call.partition("(")[0]
    for answer in (nkic.batch_invariant(few, many), nkic.equal(few, few)):
        told = (f"undecided: {name} with other ranks at k.py:{line}",)
        assert (answer.verdict == "undecided" and answer.lines == told) is not is_alone
    with pytest.raises(nkic.RunError, match="different inputs"):
        nkic.equal(few, many)


@pytest.mark.parametrize(
    ("few", "many", "told"),
    [
        ("float32[8,64]", "float32[8,64]", "both kernels have the same shapes"),
        (
            "float32[8,64]",
            "float32[16,32]",
            "the inputs are not the same with more rows: x float32",
        ),
        ("float32[8,64]", "bfloat16[16,64]", "compile one kernel twice, for two numbers of rows"),
    ],
)
def test_other_kernels_are_refused(tmp_path: Path, few: str, many: str, told: str) -> None:
    (tmp_path / "k.py").write_text(ROWS.replace("BODY", COPY))
    one, other = (nkic.compile(tmp_path / "k.py", inputs={"x": kind}) for kind in (few, many))
    with pytest.raises(nkic.RunError) as caught:
        nkic.batch_invariant(one, other)
    assert told in str(caught.value)


def test_the_command_says_the_same(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    paths = {}
    for name, case in (("good", INVARIANT["softmax"]), ("bad", DEPENDENT["another type"][0])):
        for rows in (100, 300):
            artifact = compiled(tmp_path, case, rows)
            paths[name, rows] = str(artifact.save(tmp_path / f"{name}{rows}.neff"))
    assert (
        run(command, "nki-run", ("equal", "--batch", *(paths["good", n] for n in (100, 300)))) == 0
    )
    told = capfd.readouterr().out
    assert told.startswith("invariant: ") and told.endswith("output_0: 100 of 300 rows\n")
    words = ("equal", *(paths["bad", n] for n in (300, 100)), "--batch", "--json")
    assert run(command, "nki-run", words) == 1
    record = json.loads(capfd.readouterr().out)
    assert (record["schema"], record["verdict"], record["compared"]) == (1, "dependent", 6400)
    assert run(command, "nki-run", ("equal", *words[1:3])) == 2
    assert "--batch" in capfd.readouterr().err, "other shapes lead to it"
