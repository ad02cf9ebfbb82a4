"""`nkic --advise`: the advice that a program can follow is followed, and every step is measured."""

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
from nkic.migrate.advise import Step, advise
from nkic.migrate.edits import edited
from nkic.report.critical import Line
from nkic.report.verdict import Answer
from tests.advice.ladders import GATING_STEPS, GOOD_NORM, NORM_STEPS
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


SOFTMAX = """\
def softmax(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(0, x.shape[0], 128):
        t = nl.ndarray((128, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=x[i : i + 128, :])
        most = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=most, op=nl.maximum, data=t, axis=1)
        less = nl.ndarray((128, x.shape[1]), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=less, data=t, op0=nl.subtract, operand0=most)
        e = nl.ndarray((128, x.shape[1]), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=e, op=nl.exp, data=less)
        total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=total, op=nl.add, data=e, axis=1)
        nisa.reciprocal(dst=total, data=total)
        y = nl.ndarray((128, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=y, data=e, op0=nl.multiply, operand0=total)
        nisa.dma_copy(dst=out[i : i + 128, :], src=y)
    return out
"""


def test_a_softmax_follows_all_advice() -> None:
    """One activation subtracts the maximum, and adds up."""
    advised = advise(HEAD + SOFTMAX, lambda text: compiled(text, "bfloat16[1024,2048]"))
    kinds = [step.answer.name.partition(":")[0] for step in advised.steps if step.taken]
    assert kinds == ["fuse", "join"]
    assert all(step.verdict == "bits" for step in advised.steps if step.taken)
    assert "reset_reduce, bias=negated)" in advised.text and "less" not in advised.text
    assert advised.steps[-1].after_ns < 0.6 * advised.steps[0].before_ns


def test_a_good_kernel_stays_as_it_is() -> None:
    advised = advise(HEAD + GOOD_NORM, compiled)
    assert advised.text == HEAD + GOOD_NORM
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
    assert first.fills == ("randn(0)", "uniform(0,1,0)", advising.WIDE)
    assert advising._compared(first, other) == "different"
    normal = {name: np.isnan(array).all() for name, array in first.outputs.items()}
    assert list(normal.values()) == [True, False, True]


LIMITED = HEAD + (
    "def limited(x):\n"
    "    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n"
    "    for r in range(0, 512, 128):\n"
    "        for c in range(0, 2048, 64):\n"
    "            t = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)\n"
    "            nisa.dma_copy(dst=t, src=x[r : r + 128, c : c + 64])\n"
    "            nisa.tensor_scalar(dst=t[PART], data=t[PART], op0=nl.minimum, operand0=LIMIT)\n"
    "            nisa.dma_copy(dst=out[r : r + 128, c : c + 64], src=t)\n"
    "    return out\n"
)


def test_inputs_beyond_limits_are_compared() -> None:
    text = LIMITED.replace("PART", ":, :")
    first, other = (advising._ran(text.replace("LIMIT", f), compiled) for f in ("100.0", "200.0"))
    assert advising._compared(first, other) == "different"
    assert advising._compared(first, first) == "bits"


@pytest.mark.parametrize("part", [":, 0:64", ":, 0:1"])
def test_wider_tiles_do_all_the_work(part: str) -> None:
    """The limit, of which no input shows anything, holds for the first columns of a tile alone."""
    text = LIMITED.replace("PART", part).replace("LIMIT", "1e9")
    steps = {step.answer.name[:6]: step.verdict for step in advise(text, compiled).steps}
    assert steps["larger"] == "different"
    whole = LIMITED.replace("PART", ":, :").replace("LIMIT", "1e9")
    assert [step.verdict for step in advise(whole, compiled).steps][:1] == ["bits"]


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


def test_gains_are_shares() -> None:
    assert Step(answer("bf16"), 200.0, 150.0, "bits").gain == 0.25


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


FOLLOWED = [
    case
    for case in CASES
    if case.name.startswith(("accumulate:", "engine-", "join:", "larger-tiles:"))
]


@pytest.mark.parametrize("case", FOLLOWED, ids=lambda case: case.name)
def test_a_program_follows_advice_as_far_as_a_person(case: Case) -> None:
    def compile(text: str, args: dict[str, str] = case.args) -> nkic.Artifact:
        return nkic.compile(SourceFile("k.py", text), inputs=args)

    advised = advise(HEAD + case.slow, lambda t: (SourceFile("k.py", t), compile(t).executable))
    kinds = [step.answer.name.partition(":")[0] for step in advised.steps if step.taken]
    assert case.name.partition(":")[0] in kinds
    by_hand = nkic.run(compile(HEAD + case.fast, case.fast_args or case.args), fill="randn(0)")
    assert advised.steps[-1].after_ns <= 1.02 * by_hand.time_ns


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
