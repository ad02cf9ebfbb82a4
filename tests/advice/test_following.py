"""`nkic --advise`: the advice that a program can follow is followed, and every step is measured."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkic
from nkic.api import CompileError
from nkic.artifact.records import Executable
from nkic.base.diagnostics import CompileFailed
from nkic.base.source import SourceFile
from nkic.cli.common import run
from nkic.cli.nkic import command
from nkic.migrate import advise as advising
from nkic.migrate.advise import Step, advise, edited
from nkic.report.critical import Line
from nkic.report.verdict import Answer
from tests.advice.ladders import GATING_STEPS, NORM_STEPS, own_tiles
from tests.harness.traced import HEAD, SAMPLES
from tests.unit.report.test_candidates import CASES, TILED, Case

NORM = HEAD + NORM_STEPS[0].text
ARGS = ("--arg", "x=float32[1024,2048]", "--arg", "w=float32[2048]")


def written(folder: Path, text: str) -> str:
    (folder / "k.py").write_text(text, "utf-8")
    return str(folder / "k.py")


def reported(err: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in err.splitlines() if line.startswith("{")]
    return [line for line in lines if line.get("type") in ("advised", "advice")]


def answer(name: str, adds: str = "") -> Answer:
    return Answer(name, "", 0, 0.5, is_advice=True, adds=adds)


def compiled(text: str, x: str = "float32[512,2048]") -> tuple[SourceFile, Executable]:
    source = SourceFile("k.py", text)
    args = {"x": x, "w": "float32[2048]"}
    names = text.partition("def ")[2].partition("):")[0]
    given = {name: kind for name, kind in args.items() if name in names.partition("(")[2]}
    try:
        return source, nkic.compile(source, inputs=given).executable
    except CompileError as error:
        raise CompileFailed(error.diagnostics) from error


def test_the_newcomers_norm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Tiles move into the loop, the activation adds up its squares, and the weights stay."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path, NORM)
    assert run(command, "nkic", ["k.py", *ARGS, "--advise"]) == 0
    out, err = capfd.readouterr()
    assert out.startswith("--- k.py\n+++ k.py\n")
    assert "-    t = nl.ndarray((128, d), dtype=x.dtype, buffer=nl.sbuf)\n" in out
    assert "+        t = nl.ndarray((128, d), dtype=x.dtype, buffer=nl.sbuf)\n" in out
    assert "+        nisa.activation(dst=square, op=nl.square, data=t, reduce_op=nl.add, " in out
    assert "-        nisa.tensor_reduce(dst=total, op=nl.add, data=square, axis=1)\n" in out
    assert "+    nisa.dma_copy(dst=weight, src=w.reshape((1, d)).broadcast(0, 128))\n" in out
    assert err.count("us after (-") == 3 and err.count("same bits") == 3
    assert "left to you" not in err


def test_the_new_file_is_as_fast_as_it_says(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path, new = written(tmp_path, NORM), str(tmp_path / "new.py")
    words = [path, *ARGS, "--advise", "-o", new]
    assert run(command, "nkic", [*words, "--message-format", "json"]) == 0
    steps = [each for each in reported(capfd.readouterr().err) if each["type"] == "advised"]
    assert [step["name"].partition(":")[0] for step in steps] == ["buffers", "fuse", "load-once"]
    inputs = {"x": "float32[1024,2048]", "w": "float32[2048]"}
    times = [nkic.run(nkic.compile(p, inputs=inputs), fill="randn(0)").time_ns for p in (path, new)]
    assert times == pytest.approx([steps[0]["before_ns"], steps[-1]["after_ns"]])
    for step in steps:
        assert step["gain"] > 0.7 * step["promised"] and step["verdict"] == "bits"


def test_an_artifact_is_not_overwritten(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "k.neff"
    words = [written(tmp_path, NORM), *ARGS, "--advise", "-o", str(output)]
    assert run(command, "nkic", words) == 2 and not output.exists()
    assert "would be source text" in capfd.readouterr().err


def test_in_place(tmp_path: Path) -> None:
    path = written(tmp_path, NORM)
    assert run(command, "nkic", [path, *ARGS, "--advise", "--in-place", "-q"]) == 0
    assert "op=nl.square" in Path(path).read_text("utf-8")


def test_a_good_kernel_stays_as_it_is() -> None:
    advised = advise(HEAD + NORM_STEPS[-1].text, compiled)
    assert advised.text == HEAD + NORM_STEPS[-1].text
    assert not any(step.taken for step in advised.steps)


def test_a_tile_that_carries_a_value_stays_outside() -> None:
    """Declared inside the loop, it would be new in each iteration: this fails, and is not kept."""
    text = HEAD + (
        "def running(x):\n"
        "    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n"
        "    total = nl.ndarray((128, 2048), dtype=x.dtype, buffer=nl.sbuf)\n"
        "    t = nl.ndarray((128, 2048), dtype=x.dtype, buffer=nl.sbuf)\n"
        "    for r in range(0, 512, 128):\n"
        "        if r == 0:\n"
        "            nisa.memset(dst=total, value=0.0)\n"
        "        nisa.dma_copy(dst=t, src=x[r : r + 128, :])\n"
        "        nisa.tensor_tensor(dst=total, data1=total, data2=t, op=nl.add)\n"
        "        nisa.dma_copy(dst=out[r : r + 128, :], src=total)\n"
        "    return out\n"
    )
    carried = [*edited(SourceFile("k.py", text), answer("buffers:k.py:8"))]
    assert "for r in range(0, 512, 128):\n        total = nl.ndarray" in carried[0]
    advised = advise(text, compiled)
    refused = [step for step in advised.steps if not step.taken]
    assert {step.verdict for step in refused} <= {"failed", "different", "slower"} and refused
    assert "range(0, 512, 128):\n        total" not in advised.text


def test_declarations_move_as_a_person_moves_them() -> None:
    lines = [i for i, line in enumerate(NORM.splitlines(), 1) if line.startswith("    t = nl.")]
    numbers = ",".join(str(lines[0] + i) for i in range(6))
    (text, *_) = edited(SourceFile("k.py", NORM), answer(f"buffers:k.py:{numbers}"))
    assert text == HEAD + own_tiles


def test_a_tile_of_an_inner_loop_moves_there() -> None:
    text = HEAD + GATING_STEPS[0].text
    line = next(i for i, each in enumerate(text.splitlines(), 1) if each.startswith("    left ="))
    (inner, outer) = edited(SourceFile("k.py", text), answer(f"buffers:k.py:{line}"))
    assert "range(0, d, 128):\n            left = nl.ndarray" in inner
    assert "range(0, tokens, 128):\n        left = nl.ndarray" in outer


def kept(text: str, *lines: int) -> list[str]:
    """Return the texts in which these lines of k.py load once."""
    given = replace(answer("load-once:x"), loads=tuple(Line("k.py", line) for line in lines))
    return [*edited(SourceFile("k.py", text), given)]


LOOPS = """\
for i in r:
    for j in r:
        t = nl.ndarray(s)
        nisa.dma_copy(dst=t, src=x[PART])
        f(t)
"""


def test_a_load_is_kept_by_what_tells_it_apart() -> None:
    whole, rows = kept(LOOPS.replace("PART", "j"), 4)
    assert whole == (
        "t_kept = {}\n"
        "for i in r:\n"
        "    for j in r:\n"
        "        if j not in t_kept:\n"
        "            t = nl.ndarray(s)\n"
        "            nisa.dma_copy(dst=t, src=x[j])\n"
        "            t_kept[j] = t\n"
        "        t = t_kept[j]\n"
        "        f(t)\n"
    )
    assert rows.startswith("for i in r:\n    t_kept = {}\n    for j in r:\n        if j not in")
    both, _ = kept(LOOPS.replace("PART", "i, j"), 4)
    assert "if (i, j) not in t_kept:" in both and "t = t_kept[i, j]" in both


@pytest.mark.parametrize("part", ["y[i]", "y[nl.ds(i, 2)]", "nl.ds(i, 2)", "slice(i, 2)"])
def test_a_load_is_told_apart_by_what_its_slices_depend_on(part: str) -> None:
    """Slices and tensors are no keys of a dictionary."""
    text = LOOPS.replace("PART", "q").replace("    for j", f"    q = {part}\n    for j")
    assert all("if i not in t_kept:" in new for new in kept(text, 5)[:1])
    carried = LOOPS.replace("PART", "q").replace("f(t)", f"q = {part}")
    assert "if q not in t_kept:" in kept(carried, 4)[0]
    twice = text.replace("f(t)", "q = None")
    assert "if q not in t_kept:" in kept(twice, 5)[0]


def test_what_a_function_loads_is_kept_by_its_caller() -> None:
    text = "for i in r:\n    for j in r:\n        t = load(x[j])\n        f(t)\n"
    whole, _ = kept(text, 3)
    assert (
        "        if j not in t_kept:\n            t = load(x[j])\n            t_kept[j] = t\n"
        in whole
    )
    assert kept(text.replace("f(t)", "t = g()"), 3) == []  # another tile of that name


def test_a_load_that_is_always_the_same_moves_out_of_the_loops() -> None:
    before, inside = kept(LOOPS.replace("PART", "0"), 4)
    moved = "t = nl.ndarray(s)\nnisa.dma_copy(dst=t, src=x[0])\n"
    assert before == f"{moved}for i in r:\n    for j in r:\n        f(t)\n"
    assert inside.startswith("for i in r:\n    t = nl.ndarray(s)\n    nisa.dma_copy(")


@pytest.mark.parametrize(
    "text",
    [
        "t = nl.ndarray(s)\nfor i in r:\n    nisa.dma_copy(dst=t, src=x[i])\n",  # one tile for all
        "for i in r:\n    t = g()\n    nisa.dma_copy(dst=t[0], src=x)\n",  # a part of a tile
        "t = nl.ndarray(s)\n\nnisa.dma_copy(dst=t, src=x)\n",  # no loop
        "for i in r:\n    t = a(); t = b()\n    nisa.dma_copy(dst=t, src=x)\n",  # two tiles
        "for i in r:\n    t = a()\n    assert i; nisa.dma_copy(dst=t, src=x)\n",  # not its own line
        "for i in r:\n    t = a()\n    nisa.dma_copy(dst=t, src=x); f(t)\n",
        "for i in r:\n    t = a(); assert i\n    nisa.dma_copy(dst=t, src=x)\n",
    ],
)
def test_what_is_not_kept(text: str) -> None:
    assert kept(text, 3) == []


def test_a_comment_moves_with_its_load() -> None:
    (text,) = kept("for i in r:\n    t = a()  # 1\n    nisa.dma_copy(dst=t, src=x)  # 2\n", 3)
    assert text == "t = a()  # 1\nnisa.dma_copy(dst=t, src=x)  # 2\nfor i in r:\n"


@pytest.mark.parametrize("name", ["q: int = i", "f(q := i)", "q = i"])
def test_every_assignment_tells_loads_apart(name: str) -> None:
    text = f"for i in r:\n    {name}\n    t = a()\n    nisa.dma_copy(dst=t, src=x[q])\n"
    assert all("if q not in t_kept:" in new for new in kept(text, 4))


ROWS = HEAD + (
    "def rows(x, w):\n"
    "    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n"
    "    for r in range(0, 512, 128):\n"
    "        t = nl.ndarray((128, 2048), dtype=x.dtype, buffer=nl.sbuf)\n"
    "        weight = nl.ndarray((128, 2048), dtype=w.dtype, buffer=nl.sbuf)\n"
    "        nisa.dma_copy(dst=t, src=x[r : r + 128, :])\n"
    "        nisa.dma_copy(dst=weight, src=w.reshape((1, 2048)).broadcast(0, 128))\n"
    "        CHANGE\n"
    "        nisa.tensor_tensor(dst=t, data1=t, data2=weight, op=nl.multiply)\n"
    "        nisa.dma_copy(dst=out[r : r + 128, :], src=t)\n"
    "    return out\n"
    "\n"
    "def change(tile):\n"
    "    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)\n"
)


@pytest.mark.parametrize(
    "change",
    [
        "nisa.tensor_scalar(dst=weight, data=weight, op0=nl.multiply, operand0=2.0)",
        "nisa.tensor_scalar(dst=weight, data=weight, op0=nl.maximum, operand0=-99.0)",  # no bit
        "nisa.activation(dst=weight[:, 0:8], op=nl.log, data=weight[:, 0:8])",
        "change(weight)",
    ],
)
def test_a_tile_that_changes_is_loaded_again(change: str) -> None:
    """Kept, it would be changed again, which inputs need not show."""
    advised = advise(ROWS.replace("CHANGE", change), compiled)
    assert not advised.steps and "load-once:w" in [answer.name for answer in advised.left]


def test_a_tile_that_stays_is_loaded_once() -> None:
    advised = advise(ROWS.replace("        CHANGE\n", ""), compiled)
    assert [(step.answer.name, step.verdict) for step in advised.steps] == [("load-once:w", "bits")]


def test_nan_hides_no_difference() -> None:
    """Logarithms of normal numbers added up are NaN: outputs are compared on other inputs, too."""
    text = HEAD + (
        "def logarithms(x):\n"
        "    out = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.shared_hbm)\n"
        "    t = nl.ndarray((128, 2048), dtype=x.dtype, buffer=nl.sbuf)\n"
        "    total = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.sbuf)\n"
        "    nisa.dma_copy(dst=t, src=x[0:128, :])\n"
        "    nisa.activation(dst=t, op=nl.log, data=t)\n"
        "    nisa.tensor_reduce(dst=total, op=nl.add, data=t, axis=1)\n"
        "    nisa.dma_copy(dst=out, src=total)\n"
        "    return out\n"
    )
    first, other = (
        advising._ran(t, compiled) for t in (text, text.replace("data=t)", "data=t, scale=2.0)"))
    )
    assert first.fills == ("randn(0)", "uniform(0,1,0)")
    assert advising._compared(first, other) == "different"
    normal = {name: np.isnan(array).all() for name, array in first.outputs.items()}
    assert list(normal.values()) == [True, False]


BLOCKS = """\
def f():
    for m in range(0, M, T):
        for n in range(N):
            # one sum
            psum = nl.ndarray(s)
            for k in range(8):
                a = nl.ndarray(s)
                b = nl.ndarray(s)
                nisa.dma_copy(dst=a, src=x[k, m])
                nisa.dma_copy(dst=b, src=y[k, n])
                nisa.nc_matmul(dst=psum, stationary=a, moving=b)
            store(m, n, psum)
    return out
"""


def blocks(text: str, ways: str = "m*4,n*2") -> list[str]:
    loads = tuple(Line("k.py", line) for line in (9, 10))
    given = replace(answer(f"block:{ways}"), loads=loads)
    return [*edited(SourceFile("k.py", text), given)]


def test_loops_are_blocked() -> None:
    wide, short = blocks(BLOCKS)
    head = """\
def f():
    for m_block in range(0, M, 4 * T):
        a_kept = {}
        for n_block in range(0, N, 2):
            opened = {}
            for m in range(m_block, m_block + 4 * T, T):
                for n in range(n_block, n_block + 2, 1):
                    # one sum
                    psum = nl.ndarray(s)
                    opened[m, n] = psum
            for k in range(8):
                b_kept = {}
                for m in range(m_block, m_block + 4 * T, T):
                    for n in range(n_block, n_block + 2, 1):
                        psum = opened[m, n]
                        if (k, m) not in a_kept:
"""
    tail = """\
                        nisa.nc_matmul(dst=psum, stationary=a, moving=b)
            for m in range(m_block, m_block + 4 * T, T):
                for n in range(n_block, n_block + 2, 1):
                    psum = opened[m, n]
                    store(m, n, psum)
    return out
"""
    assert wide.startswith(head) and wide.endswith(tail) and short.endswith(tail)
    assert "if n not in b_kept:" in wide
    assert "            for k in range(8):\n                a_kept = {}\n" in short


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("for n in range(N):", "for n in tiles:"),  # no range
        ("    for n in range(N):", "    g(m)\n        for n in range(N):"),  # no nest
        ("            store(m", "            for i in r:\n                store(m"),  # two loops
        ("dst=b, src", "dst=b[0], src"),  # no tile of its own
        ("for m in range(0, M, T):", "for i in range(0, M, T):"),  # another loop
        ("for k in range(8):", "for k in nl.affine_range(8):"),  # traced once by Beta 1
    ],
)
def test_what_is_not_blocked(old: str, new: str) -> None:
    text = BLOCKS.replace(old, new)
    assert text != BLOCKS and blocks(text) == []


def test_a_blocked_product_computes_the_same_in_less_time() -> None:
    side = dict.fromkeys(("lhsT", "rhs"), "bfloat16[512,2048]")
    lines = [i for i, line in enumerate((HEAD + TILED).splitlines(), 1) if "src=" in line][:2]
    given = answer("block:m*4,n*2")
    given = replace(given, loads=tuple(Line("k.py", line) for line in lines))
    texts = [HEAD + TILED, *edited(SourceFile("k.py", HEAD + TILED), given)]
    runs = [
        nkic.run(nkic.compile(SourceFile("k.py", t), inputs=side), fill="randn(0)") for t in texts
    ]
    for after in runs[1:]:
        assert after.time_ns < 0.6 * runs[0].time_ns
        np.testing.assert_array_equal(after.outputs["output_0"], runs[0].outputs["output_0"])


PRODUCTS = SourceFile("kernel.py", (SAMPLES / "06_matmul" / "kernel.py").read_text("utf-8"))


def product(source: SourceFile, name: str, side: int) -> nkic.Artifact:
    args = dict.fromkeys(("lhsT", "rhs"), f"bfloat16[{side},{side}]")
    return nkic.compile(source, name=name, inputs=args)


def product_steps(name: str, side: int) -> list[Step]:
    """Return the steps of the advice on one of the samples' products of square matrices."""

    def made(text: str) -> tuple[SourceFile, Executable]:
        source = SourceFile(PRODUCTS.path, text)
        return source, product(source, name, side).executable

    return [*advise(PRODUCTS.text, made).steps]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "advice"), [("matmul_tiled", "m*4,n*2"), ("matmul_hoisted", "m*8")]
)
def test_a_large_naive_product_is_nearly_as_fast_as_the_best(name: str, advice: str) -> None:
    """4096 x 4096 x 4096, whose operands do not fit into SBUF, by advice alone."""
    steps = product_steps(name, 4096)
    assert next(s.answer.name for s in steps if s.taken) == f"block:{advice}"
    best = min(
        float(product(PRODUCTS, each, 4096).executable.meta["estimate_ns"])
        for each in ("matmul_blocked_free", "matmul_fully_blocked")
    )
    assert steps[-1].after_ns < 1.1 * best


@pytest.mark.parametrize(
    ("name", "advice"), [("matmul_tiled", "lhsT,rhs"), ("matmul_hoisted", "rhs")]
)
def test_a_naive_product_is_nearly_as_fast_as_the_best(name: str, advice: str) -> None:
    """Operands of the samples' products are kept, and several engines trigger their loads."""
    steps = product_steps(name, 1024)
    first, last = steps[0], [step for step in steps if step.taken][-1]
    assert first.answer.name == f"load-once:{advice}" and first.verdict == "bits"
    assert first.gain > first.answer.gain > 0.5
    best = product(PRODUCTS, "matmul_fully_blocked", 1024)
    assert last.after_ns < 1.1 * nkic.run(best, fill="zeros").time_ns


BETA_1 = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(lhsT, rhs):
    (K, M), (_, N) = lhsT.shape, rhs.shape
    out = nl.ndarray((M, N), dtype=lhsT.dtype, buffer=nl.shared_hbm)
    for m in nl.affine_range(M // 128):
        for n in nl.affine_range(N // 512):
            sums = nl.zeros((128, 512), nl.float32, buffer=nl.psum)
            for k in nl.affine_range(K // 128):
                a = nl.load(lhsT[k * 128 : k * 128 + 128, m * 128 : m * 128 + 128])
                b = nl.load(rhs[k * 128 : k * 128 + 128, n * 512 : n * 512 + 512])
                sums += nl.matmul(a, b, transpose_x=True)
            c = nl.copy(sums, dtype=out.dtype)
            nl.store(out[m * 128 : m * 128 + 128, n * 512 : n * 512 + 512], value=c)
    return out
"""


def test_a_product_of_beta_1() -> None:
    """Loops that Beta 1 traces once run no `if` for each iteration; unrolled ones do."""
    side = dict.fromkeys(("lhsT", "rhs"), "bfloat16[1024,1024]")

    def product(text: str) -> tuple[SourceFile, Executable]:
        source = SourceFile("k.py", text)
        return source, nkic.compile(source, inputs=side).executable

    assert not [step for step in advise(BETA_1, product).steps if step.taken]
    unrolled = BETA_1.replace("affine_range", "static_range")
    (step,) = advise(unrolled, product).steps
    assert step.answer.name == "load-once:lhsT,rhs" and step.verdict == "bits"
    assert step.gain > step.answer.gain > 0.4


CALLS = {
    "isa.dma_copy(dst=a, src=b)": "isa.dma_copy(dst=a, src=b, engine=isa.engine.scalar)",
    "isa.dma_copy(\n    dst=a,\n    src=b,\n)": "isa.dma_copy(\n    dst=a,\n    src=b,\n"
    "    engine=isa.engine.scalar,\n)",
    "isa.dma_copy(dst=a, src=f(b))": "isa.dma_copy(dst=a, src=f(b), engine=isa.engine.scalar)",
}


@pytest.mark.parametrize("before", ["", "\f# a form feed\u2028ends no line\r\n"])
@pytest.mark.parametrize("call", CALLS)
def test_keywords_are_added_to_a_call(call: str, before: str) -> None:
    source = SourceFile("k.py", f"{before}{call}\n")
    given = answer(f"trigger-scalar:k.py:{2 if before else 1}", "engine=nisa.engine.scalar")
    assert [*edited(source, given)] == [f"{before}{CALLS[call]}\n"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("trigger-scalar:k.py:1", "nisa.dma_copy(dst=a, src=b, engine=nisa.engine.sync)"),
        ("trigger-scalar:k.py:1", "nisa.dma_copy(a, b); nisa.dma_copy(c, d)"),
        ("trigger-scalar:other.py:1", "nisa.dma_copy(dst=a, src=b)"),
        ("load-once:x", "nisa.dma_copy(dst=a, src=b)"),
        ("fuse:k.py:1:3", "nisa.activation(dst=y, op=nl.exp, data=t)\nx = 1\nnisa.f(dst=r)"),
        ("fuse:k.py:1:2", "nisa.activation(y, nl.exp, t)\nnisa.tensor_reduce(dst=r)"),
        ("buffers:k.py:1", "t = nl.ndarray(s)\nf(t)"),
    ],
)
def test_what_only_a_person_can_follow(name: str, text: str) -> None:
    given = answer(name, "engine=nisa.engine.scalar")
    assert [*edited(SourceFile("k.py", f"{text}\n"), given)] == []


def test_gains_are_shares() -> None:
    assert Step(answer("bf16"), 200.0, 150.0, "bits").gain == 0.25


SUMS = """\
for m in r:
    total = nl.ndarray(s)
    nisa.memset(dst=total, value=0.0)
    for k in r:
        for j in range(2):
            t = load(k, j, m)
            p = nl.ndarray(s, buffer=nl.psum)  # one bank
            nisa.nc_matmul(dst=p, stationary=t, moving=t)
            ADD
    store(m, total)
"""
ADD = "nisa.tensor_tensor(dst=total, data1=total, data2=p, op=nl.add)"
ALL_IN_PSUM = """\
    p = nl.ndarray(s, buffer=nl.psum)  # one bank
    for k in r:
        for j in range(2):
            t = load(k, j, m)
            nisa.nc_matmul(dst=p, stationary=t, moving=t)
"""


def in_psum(text: str) -> list[str]:
    line = next(n for n, each in enumerate(text.splitlines(), 1) if "tensor_tensor" in each)
    return [*edited(SourceFile("k.py", text), answer(f"accumulate:k.py:{line}"))]


def test_products_are_added_in_psum() -> None:
    """The tile is declared where the sum's loops begin, and the sum is made where they end."""
    (text,) = in_psum(SUMS.replace("ADD", ADD))
    start = SUMS[: SUMS.index("    for k")]
    assert text == f"{start}{ALL_IN_PSUM}    {ADD}\n    store(m, total)\n"


@pytest.mark.parametrize("is_else", [False, True])
def test_the_copy_of_the_first_product_becomes_that_of_the_sum(is_else: bool) -> None:
    copy = "nisa.tensor_copy(dst=total, src=p)"
    first, second = (copy, ADD) if is_else else (ADD, copy)
    choice = f"if k + j > 0:\n                {first}\n            else:\n                {second}"
    (text,) = in_psum(SUMS.replace("ADD", choice))
    assert text.endswith(f"{ALL_IN_PSUM}    {copy}\n    store(m, total)\n")


def test_new_lines_end_and_begin_as_those_of_the_file() -> None:
    text = SUMS.replace("ADD", ADD.replace(", ", ",\n                "))
    (plain,) = in_psum(text)
    (other,) = in_psum(text.replace("\n", "\r\n"))
    assert other == plain.replace("\n", "\r\n")
    tabbed = LOOPS.replace("PART", "j").replace("    ", "\t")
    assert kept(tabbed, 4) == [
        each.replace("    ", "\t") for each in kept(LOOPS.replace("PART", "j"), 4)
    ]


def test_a_sum_that_a_copy_begins_stays_in_the_loop_of_its_products() -> None:
    """The copy begins it anew in each iteration of the loop around."""
    copy = "nisa.tensor_copy(dst=total, src=p)"
    choice = f"if j:\n                {ADD}\n            else:\n                {copy}"
    (text,) = in_psum(SUMS.replace("ADD", choice))
    assert "    for k in r:\n        p = nl.ndarray" in text
    assert f"moving=t)\n        {copy}\n    store" in text


def test_a_last_line_without_an_end() -> None:
    text = SUMS.replace("ADD", ADD).replace("    store(m, total)\n", "").rstrip()
    (plain,) = in_psum(text)
    assert in_psum(text.replace("\n", "\r\n")) == [plain.replace("\n", "\r\n")]


def test_a_sum_that_each_iteration_begins_stays_in_its_loop() -> None:
    text = SUMS.replace("ADD", ADD).replace(
        "    for k in r:\n", "    for k in r:\n        f(total)\n"
    )
    (text,) = in_psum(text)
    assert "f(total)\n        p = nl.ndarray(s, buffer=nl.psum)  # one bank\n        for j" in text
    assert f"moving=t)\n        {ADD}\n    store(m" in text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (ADD, ADD.replace("total", "total[j]")),  # another sum for each product
        (ADD, ADD.replace("=total", "=other").replace("dst=other", "dst=total")),  # no sum
        (ADD, ADD.replace("data2=p", "data2=total")),
        (ADD, f"if j:\n                {ADD}"),  # not every product
        (ADD, f"{ADD}; f()"),
        (ADD, f"{ADD}\n            f(p)"),
        (ADD, f"{ADD}\n            f(total)"),
        ("p = nl.ndarray(s, buffer=nl.psum)", "p = ones[j]"),
        ("            p = nl.ndarray(s, buffer=nl.psum)  # one bank\n", ""),
        ("t = load(k, j, m)", "s = t = load(k, j, m)"),
        (ADD, f"{ADD}\n        else:\n            f(total)"),
    ],
)
def test_what_psum_does_not_add(old: str, new: str) -> None:
    assert in_psum(SUMS.replace("ADD", ADD).replace(old, new)) == []


def test_a_matmul_with_sums_in_sbuf_follows_all_advice() -> None:
    """Loads through a slice with a name, the sums, and their choice of copy or addition."""
    text = HEAD + (
        "def product(x):\n"
        "    out = nl.ndarray((512, 2048), dtype=nl.float32, buffer=nl.shared_hbm)\n"
        "    for m in range(0, 512, 128):\n"
        "        for n in range(0, 2048, 512):\n"
        "            total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)\n"
        "            for k in range(4):\n"
        "                left = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)\n"
        "                right = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)\n"
        "                p = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)\n"
        "                rows = x[k * 128 : k * 128 + 128, :]\n"
        "                nisa.dma_copy(dst=left, src=rows[:, m : m + 128])\n"
        "                nisa.dma_copy(dst=right, src=rows[:, n : n + 512])\n"
        "                nisa.nc_matmul(dst=p, stationary=left, moving=right)\n"
        "                if k == 0:\n"
        "                    nisa.tensor_copy(dst=total, src=p)\n"
        "                else:\n"
        "                    nisa.tensor_tensor(dst=total, data1=total, data2=p, op=nl.add)\n"
        "            nisa.dma_copy(dst=out[m : m + 128, n : n + 512], src=total)\n"
        "    return out\n"
    )
    advised = advise(text, partial(compiled, x="bfloat16[512,2048]"))
    kinds = {step.answer.name.partition(":")[0] for step in advised.steps if step.taken}
    assert {"accumulate", "load-once"} <= kinds and "tensor_tensor" not in advised.text


FOLLOWED = [case for case in CASES if case.name.startswith(("accumulate:", "larger-tiles:"))]


@pytest.mark.parametrize("case", FOLLOWED, ids=lambda case: case.name)
def test_a_program_follows_advice_as_far_as_a_person(case: Case) -> None:
    def compile(text: str, args: dict[str, str] = case.args) -> nkic.Artifact:
        return nkic.compile(SourceFile("k.py", text), inputs=args)

    advised = advise(HEAD + case.slow, lambda t: (SourceFile("k.py", t), compile(t).executable))
    kinds = [step.answer.name.partition(":")[0] for step in advised.steps if step.taken]
    assert case.name.partition(":")[0] in kinds
    by_hand = nkic.run(compile(HEAD + case.fast, case.fast_args or case.args), fill="randn(0)")
    assert advised.steps[-1].after_ns <= 1.02 * by_hand.time_ns


COLUMNS = """\
for i in range(0, R, 128):
    for j in range(4, C // 64, 2):
        t = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        s = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=x[i : i + 128, START])
        f(t[:, 0:1], s)
"""


@pytest.mark.parametrize(
    ("start", "wide"),
    [
        ("j * 64 : (j + 1) * 64", "j * 64 : j * 64 + 512"),
        ("nl.ds(j * 64, 64)", "nl.ds(j * 64, 512)"),
        ("slice(j * 64, j * 64 + 64)", "slice(j * 64, j * 64 + 512)"),
        ("j << 6 : j + 1 << 6", "j << 6 : (j << 6) + 512"),
    ],
)
def test_tiles_get_wider(start: str, wide: str) -> None:
    """Rows, single columns and the loop around it stay as they are."""
    given = answer("larger-tiles:k.py:5:64:8")
    (text,) = edited(SourceFile("k.py", COLUMNS.replace("START", start)), given)
    changed = (
        COLUMNS.replace("START", wide).replace("2):", "16):").replace("(128, 64)", "(128, 512)")
    )
    assert text == changed
    named = (
        COLUMNS.replace("nisa.dma", f"c = {start}\n        nisa.dma") if "(" in start[:6] else ""
    )
    for text in edited(SourceFile("k.py", named.replace("START", "c")), given):
        assert f"c = {wide}" in text and "x[i : i + 128, c]" in text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("range(4, C // 64, 2)", "tiles"),
        ("f(t[", "if j == 8:\n            g(t)\n        f(t["),  # for these columns alone
        ("f(t[", "f(j, t["),
    ],
)
def test_a_loop_whose_iterations_differ_stays(old: str, new: str) -> None:
    text = COLUMNS.replace(old, new).replace("START", "j * 64 : (j + 1) * 64")
    assert [*edited(SourceFile("k.py", text), answer("larger-tiles:k.py:5:64:8"))] == []


def test_a_declaration_between_stays_in_front() -> None:
    """The sum's tile is often declared where it is needed."""
    first, tile = "    nisa.activation(dst=y, op=nl.exp, data=t)\n", "    r = nl.ndarray(s)\n"
    text = f"if 1:\n{first}{tile}    nisa.tensor_reduce(dst=r, op=nl.add, data=y, axis=1)\n"
    (new,) = edited(SourceFile("k.py", text), answer("fuse:k.py:2:4"))
    assert new.startswith(f"if 1:\n{tile}{first[:-2]}, reduce_op=nl.add, reduce_res=r, ")


PIECES = """\
for i in r:
    for k in range(0, d, 128):
        t = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)  # a piece
        nisa.dma_copy(dst=t, src=x[i, PART])  # of a row
        f(t)
"""


def in_one(text: str) -> list[str]:
    return [*edited(SourceFile("k.py", text), answer("whole-rows:k.py:4"))]


@pytest.mark.parametrize(
    ("loop", "part", "end"),
    [
        ("range(0, d, 128)", "k : k + 128", "d"),
        ("range(n)", "k * W : (k + 1) * W", "n * W"),
        ("range(d // 128)", "k * 128:k * 128 + 128", "(d // 128) * 128"),
    ],
)
def test_pieces_of_a_row_are_loaded_at_once(loop: str, part: str, end: str) -> None:
    (text,) = in_one(PIECES.replace("range(0, d, 128)", loop).replace("PART", part))
    assert text == (
        "for i in r:\n"
        f"    t_row = nl.ndarray((128, {end}), dtype=x.dtype, buffer=nl.sbuf)  # a piece\n"
        f"    nisa.dma_copy(dst=t_row, src=x[i, 0 : {end}])\n"
        f"    for k in {loop}:\n"
        f"        t = t_row[:, {part}]  # of a row\n"
        "        f(t)\n"
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("range(0, d", "range(128, d"),
        ("range(0, d, 128)", "tiles"),
        ("x[i, k : k + 128]", "x[k, k : k + 128]"),
        ("x[i, k : k + 128]", "x[i, k : k + 128, 0]"),
        ("x[i, k : k + 128]", "x[i, 2 + k : k + 130]"),
        ("x[i, k : k + 128]", "x[i, : k]"),
        ("f(t)", "i = f(t)"),
        ("(128, 128)", "(128, 1, 128)"),
        ("(128, 128)", "()"),
        ("(128, 128)", "shape"),
    ],
)
def test_what_is_not_one_row(old: str, new: str) -> None:
    assert in_one(PIECES.replace("PART", "k : k + 128").replace(old, new)) == []


def test_the_newcomers_gating_kernel_follows_all_advice() -> None:
    """As far as a person who follows the advice by hand (tests/advice/ladders.py)."""

    def compile(text: str) -> tuple[SourceFile, Executable]:
        source = SourceFile("k.py", text)
        inputs = {"x": "bfloat16[512,1024]", "w": "bfloat16[1024,64]"}
        return source, nkic.compile(source, inputs=inputs).executable

    advised = advise(HEAD + GATING_STEPS[0].text, compile)
    kinds = [step.answer.name.partition(":")[0] for step in advised.steps if step.taken]
    assert kinds[:4] == ["buffers", "whole-rows", "load-once", "accumulate"]
    by_hand = advising._ran(HEAD + GATING_STEPS[-1].text, compile)
    assert advised.steps[-1].after_ns <= 1.02 * by_hand.time_ns
