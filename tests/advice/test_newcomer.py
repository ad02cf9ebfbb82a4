"""The first three kernels of a newcomer, with a newcomer's mistakes.

Each mistake is made in a kernel that is right. Following the advice, and nothing else, leads back
to a kernel that compiles and computes what NumPy computes.
"""

from collections.abc import Callable
from math import erf
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import nkic
from nkic.base.diagnostics import Diagnostic, Level
from nkic.base.source import SourceFile
from tests.advice.follow import Source, follow
from tests.harness.kernels import compile_text

Array = NDArray[Any]

HEAD = """# /// nkic
# kernel = "kernel"
# [args]
{args}# ///
import nki
import nki.isa as nisa
import nki.language as nl


"""

RMS_NORM = """@nki.jit
def kernel(x, w):
    n, d = x.shape
    out = nl.ndarray((n, d), dtype=x.dtype, buffer=nl.shared_hbm)
    row = nl.ndarray((128, d), dtype=w.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=row, src=w.reshape((1, d)).broadcast(0, 128))
    for i in range(n // 128):
        t = nl.ndarray((128, d), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=x[i * 128 : (i + 1) * 128, :])
        square = nl.ndarray((128, d), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=square, op=nl.square, data=t)
        total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=total, op=nl.add, data=square, axis=1)
        scale = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=scale, op=nl.rsqrt, data=total, scale=1.0 / d)
        y = nl.ndarray((128, d), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=y, data=t, op0=nl.multiply, operand0=scale)
        nisa.tensor_tensor(dst=y, data1=y, data2=row, op=nl.multiply)
        nisa.dma_copy(dst=out[i * 128 : (i + 1) * 128, :], src=y)
    return out
"""
LINEAR = """@nki.jit
def kernel(x, w, bias):
    k, m = x.shape
    n = w.shape[1]
    out = nl.ndarray((m, n), dtype=x.dtype, buffer=nl.shared_hbm)
    row = nl.ndarray((128, n), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=row, src=bias.reshape((1, n)).broadcast(0, 128))
    for i in range(m // 128):
        acc = nl.ndarray((128, n), dtype=nl.float32, buffer=nl.psum)
        for j in range(k // 128):
            a = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)
            b = nl.ndarray((128, n), dtype=x.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=a, src=x[j * 128 : (j + 1) * 128, i * 128 : (i + 1) * 128])
            nisa.dma_copy(dst=b, src=w[j * 128 : (j + 1) * 128, :])
            nisa.nc_matmul(dst=acc, stationary=a, moving=b)
        nisa.tensor_tensor(dst=acc, data1=acc, data2=row, op=nl.add)
        y = nl.ndarray((128, n), dtype=x.dtype, buffer=nl.sbuf)
        nisa.activation(dst=y, data=acc, op=nl.gelu)
        nisa.dma_copy(dst=out[i * 128 : (i + 1) * 128, :], src=y)
    return out
"""
GATE = """@nki.jit
def kernel(x):
    n, e = x.shape
    out = nl.ndarray((n, e), dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(n // 128):
        t = nl.ndarray((128, e), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=x[i * 128 : (i + 1) * 128, :])
        top = nl.ndarray((128, 8), dtype=x.dtype, buffer=nl.sbuf)
        nisa.max8(dst=top, src=t)
        keep = nl.ndarray((128, e), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=keep, data=t, op0=nl.greater_equal, operand0=top[:, 3:4])
        weight = nl.ndarray((128, e), dtype=x.dtype, buffer=nl.sbuf)
        nisa.activation(dst=weight, data=t, op=nl.exp)
        nisa.tensor_tensor(dst=weight, data1=weight, data2=keep, op=nl.multiply)
        total = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=total, op=nl.add, data=weight, axis=1)
        nisa.reciprocal(dst=total, data=total)
        nisa.tensor_scalar(dst=weight, data=weight, op0=nl.multiply, operand0=total)
        nisa.dma_copy(dst=out[i * 128 : (i + 1) * 128, :], src=weight)
    return out
"""


def rms_norm(x: Array, w: Array) -> Array:
    return np.asarray(x / np.sqrt((x * x).mean(1, keepdims=True)) * w)


def linear(x: Array, w: Array, bias: Array) -> Array:
    y = x.astype(np.float32).T @ w.astype(np.float32) + bias
    return np.asarray(0.5 * y * (1 + np.vectorize(erf)(y / np.sqrt(2))))


def gate(x: Array) -> Array:
    weight = np.exp(x) * (x >= np.sort(x, 1)[:, -4:-3])
    return np.asarray(weight / weight.sum(1, keepdims=True))


class Task(NamedTuple):
    """A kernel that is right, its arguments, what it computes, and how far off it may be."""

    text: str
    arguments: dict[str, Array]
    reference: Callable[..., Array]
    tolerance: float


def numbers(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).standard_normal(shape, dtype=np.float32)


BF16 = ml_dtypes.bfloat16
TASKS = {
    "rms_norm": Task(RMS_NORM, {"x": numbers(256, 512), "w": numbers(512)}, rms_norm, 1e-3),
    "linear": Task(
        LINEAR,
        {
            "x": (numbers(256, 256) / 16).astype(BF16),
            "w": numbers(256, 512).astype(BF16),
            "bias": numbers(512),
        },
        linear,
        2e-2,
    ),
    "gate": Task(GATE, {"x": numbers(256, 64)}, gate, 1e-2),
}
ROW = "nl.ndarray((128, d), dtype=w.dtype"
REPEATED = "src=w.reshape((1, d)).broadcast(0, 128)"
# A mistake is a task, and the texts that take the place of right ones.
MISTAKES: dict[str, tuple[str, dict[str, str]]] = {
    "a row in one partition": ("rms_norm", {ROW: ROW.replace("128", "1"), REPEATED: "src=w"}),
    "a reshaped row in one partition": (
        "rms_norm",
        {ROW: ROW.replace("128", "1"), REPEATED: "src=w.reshape((1, d))"},
    ),
    "a row repeated before it is reshaped": ("rms_norm", {REPEATED: "src=w.broadcast(0, 128)"}),
    "a row to all partitions": ("rms_norm", {REPEATED: "src=w"}),
    "numbers as operators": ("rms_norm", {"op=nl.add": "op='add'", "op=nl.rsqrt": "op='rsqrt'"}),
    "a column among tiles": (
        "rms_norm",
        {
            "tensor_scalar(dst=y, data=t, op0=nl.multiply, operand0=scale)": "tensor_tensor("
            "dst=y, data1=t, data2=scale, op=nl.multiply)"
        },
    ),
    "a row as operand0": (
        "rms_norm",
        {
            "tensor_tensor(dst=y, data1=y, data2=row, op=nl.multiply)": "tensor_scalar("
            "dst=y, data=y, op0=nl.multiply, operand0=row)"
        },
    ),
    "a bias of many columns": (
        "linear",
        {
            "        nisa.tensor_tensor(dst=acc, data1=acc, data2=row, op=nl.add)\n": "",
            "op=nl.gelu)": "op=nl.gelu, bias=row)",
        },
    ),
    "a bias in one partition": (
        "linear",
        {
            "        nisa.tensor_tensor(dst=acc, data1=acc, data2=row, op=nl.add)\n": "",
            "op=nl.gelu)": "op=nl.gelu, bias=row)",
            "row = nl.ndarray((128, n)": "row = nl.ndarray((1, n)",
            "src=bias.reshape((1, n)).broadcast(0, 128)": "src=bias",
        },
    ),
    "a reshaped bias in one partition": (
        "linear",
        {
            "        nisa.tensor_tensor(dst=acc, data1=acc, data2=row, op=nl.add)\n": "",
            "op=nl.gelu)": "op=nl.gelu, bias=row)",
            "row = nl.ndarray((128, n)": "row = nl.ndarray((1, n)",
            ".broadcast(0, 128)": "",
        },
    ),
    "a bias cut to a column": (
        "linear",
        {
            "        nisa.tensor_tensor(dst=acc, data1=acc, data2=row, op=nl.add)\n": "",
            "op=nl.gelu)": "op=nl.gelu, bias=row[:, 0:1])",
            "row = nl.ndarray((128, n)": "row = nl.ndarray((1, n)",
            "src=bias.reshape((1, n)).broadcast(0, 128)": "src=bias",
        },
    ),
    "a weight cut to a column": (
        "rms_norm",
        {
            ROW: ROW.replace("128", "1"),
            REPEATED: "src=w",
            "tensor_tensor(dst=y, data1=y, data2=row, op=nl.multiply)": "tensor_scalar("
            "dst=y, data=y, op0=nl.multiply, operand0=row[:, 0:1])",
        },
    ),
    "a row in two halves": (
        "rms_norm",
        {
            ROW: ROW.replace("128", "1"),
            REPEATED: "src=w",
            "        nisa.tensor_tensor(dst=y, data1=y, data2=row, op=nl.multiply)\n": "".join(
                f"        nisa.tensor_tensor(dst=y[:, {half}], data1=y[:, {half}], "
                f"data2=row[:, {half}], op=nl.multiply)\n"
                for half in ("0:256", "256:512")
            ),
        },
    ),
    "a matmul into SBUF": ("linear", {"buffer=nl.psum": "buffer=nl.sbuf"}),
    "an operator by name": ("linear", {"op=nl.gelu": 'op="gelu"'}),
    "a misspelt function": ("linear", {"op=nl.gelu": "op=nl.gelv"}),
    "an operator of PyTorch": ("gate", {"op=nl.multiply)": "op=nl.mul)"}),
    "half an operator": ("gate", {"op=nl.multiply)": "op=nl.mult)"}),
    "a function as operator": ("gate", {"op=nl.add": "op=nl.sum"}),
    "a bfloat16 column": (
        "gate",
        {
            "total = nl.ndarray((128, 1), dtype=x.dtype": "total = nl.ndarray((128, 1), "
            "dtype=nl.bfloat16"
        },
    ),
    "an engine by the tool's word": (
        "gate",
        {
            "op0=nl.greater_equal, operand0=top[:, 3:4])": "op0=nl.greater_equal, "
            "operand0=top[:, 3:4], engine=nisa.engine.dve)"
        },
    ),
}
HABITS = {
    "        top = nl.ndarray((128, 8), dtype=x.dtype, buffer=nl.sbuf)\n": "",
    "nisa.max8(dst=top, src=t)": "top = nisa.max8(src=t)",
}
STEPS = 8


def source_of(task: Task, changes: dict[str, str]) -> Source:
    """Return the task's file with texts exchanged."""
    rows = (
        f'# {n} = "{a.dtype}[{", ".join(map(str, a.shape))}]"\n' for n, a in task.arguments.items()
    )
    text = task.text
    for right, wrong in changes.items():
        assert right in text
        text = text.replace(right, wrong)
    return Source(HEAD.format(args="".join(rows)) + text)


def errors(source: Source) -> list[Diagnostic]:
    return [one for one in compile_text(source.text) if one.level is Level.ERROR]


def check(task: Task, source: Source) -> None:
    """Check that the kernel computes what the reference does."""
    ran = nkic.run(nkic.compile(SourceFile("kernel.py", source.text)), task.arguments)
    expected = task.reference(*task.arguments.values())
    actual = np.asarray(ran.outputs["output_0"]).astype(np.float32)
    np.testing.assert_allclose(actual, expected, rtol=task.tolerance, atol=task.tolerance)


@pytest.mark.parametrize("name", TASKS)
def test_the_kernels_are_right(name: str) -> None:
    source = source_of(TASKS[name], {})
    assert errors(source) == []
    check(TASKS[name], source)


@pytest.mark.parametrize("name", MISTAKES)
def test_the_advice_leads_to_a_kernel_that_is_right(name: str) -> None:
    task, changes = TASKS[MISTAKES[name][0]], MISTAKES[name][1]
    source = source_of(task, changes)
    assert errors(source), "the mistake is an error"
    for _ in range(STEPS):
        if not (found := errors(source)):
            break
        changed = follow(source, found[0])
        assert changed is not None, found[0]
        source = changed
    assert errors(source) == []
    check(task, source)


def test_a_refused_call_is_the_only_error() -> None:
    """Its result is sliced and used: nothing more is said about that."""
    (error,) = errors(source_of(TASKS["gate"], HABITS))
    assert (error.code.slug, "`dst` is missing" in error.message) == ("wrong-call", True)


@pytest.mark.parametrize(
    ("operator", "then"), [("sum", ""), ("mean", "1 / the number of elements")]
)
@pytest.mark.parametrize("right", ["op=nl.add", "op=nl.exp"])
def test_a_function_of_tensors_names_its_operator(operator: str, then: str, right: str) -> None:
    """An average is a sum that is divided: nl.add alone would give other values."""
    (error,) = errors(source_of(TASKS["gate"], {right: f"op=nl.{operator}"}))
    assert "nl.add" in error.help
    assert error.help.endswith(then)


ROW_OF_W = "nl.load(w.reshape((1, 512)))"
REPEATED_ROW = f"nl.broadcast_to({ROW_OF_W}, (128, 512))"
GATHERED = "nisa.dma_copy(dst=t, src={})"
SCALED = "nisa.tensor_scalar(dst=t, data=t, op0={}, operand0=2.0)"


@pytest.mark.parametrize(
    ("wrong", "help", "right"),
    [
        ("t = nl.load(w)", "`.reshape((1, n))` makes it a row", f"t = {REPEATED_ROW}"),
        ("t = nl.load(w[None, :])", ".reshape((1, 512))", f"t = {ROW_OF_W}"),
        (f"t = {ROW_OF_W}.broadcast(0, 128)", "nl.broadcast_to(t, shape)", f"t = {REPEATED_ROW}"),
        (f"t = {ROW_OF_W}.broadcast_to((128, 512))", "nl.broadcast_to", f"t = {REPEATED_ROW}"),
        ("t = nl.load(w.broadcast_to((128, 512)))", "broadcast(dim, size)", ""),
        ("t = nl.load(x.T)", "permute((1, 0))", "t = nl.load(x[:, 0:128].permute((1, 0)))"),
        (
            GATHERED.format("x[i, :]"),
            "ap([[n, 128], [1, n]], vector_offset=indices, indirect_dim=0)",
            GATHERED.format("x.ap([[512, 128], [1, 512]], vector_offset=i, indirect_dim=0)"),
        ),
        (GATHERED.format("x.select(0, i)"), "vector_offset=indices", ""),
        ("t[t < 0] = 0", "masks are not indices; use nl.where", "t = nl.where(t < 0, 0, t)"),
        ("nisa.tensor_scalar(t, t, nl.add, 2.0, nl.add, 1.0)", "pass nl.add by its", ""),
        (SCALED.format("'mult'"), "write nl.multiply", SCALED.format("nl.multiply")),
        ("for _ in range(512 / 128): pass", "`//`", "for _ in range(512 // 128): pass"),
    ],
)
def test_one_error_whose_advice_is_right(wrong: str, help: str, right: str) -> None:
    def said(line: str) -> list[Diagnostic]:
        args = 'x = "f32[128,512]"\nw = "f32[512]"\nindex = "int32[128,1]"\n'
        comments = "".join(f"# {one}\n" for one in args.splitlines())
        text = f"""{HEAD.format(args=comments)}@nki.jit
def kernel(x, w, index):
    out = nl.ndarray((128, 1), dtype=nl.int32, buffer=nl.shared_hbm)
    i = nl.load(index)
    t = nl.load(x)
    {line}
    nl.store(out, i)
    return out
"""
        return [one for one in compile_text(text) if one.level is Level.ERROR]

    (error,) = said(wrong)
    assert help in error.help
    assert said(right) == []


OUTPUT = "out = nl.ndarray((256, 512), dtype=x.dtype, buffer=nl.shared_hbm)"
TILE = "t = nl.load(x[0:128])"


@pytest.mark.parametrize(
    ("wrong", "help", "right"),
    [
        ("t = x.reshape((-1, 64))", ".reshape((2048, 64))", "t = x.reshape((2048, 64))"),
        ("t = x.reshape(-1)", ".reshape((131072,))", "t = x.reshape((131072,))"),
        (f"{TILE}.reshape(-1, 64)", ".reshape((128, 8, 64))", f"{TILE}.reshape((128, 8, 64))"),
        (f"{TILE}.reshape((-1, 64))", ".reshape((128, 8, 64))", f"{TILE}.reshape((128, 8, 64))"),
        (f"{TILE}.view(2, -1)", ".reshape((128, 2, 256))", f"{TILE}.reshape((128, 2, 256))"),
        (f"{TILE}.reshape((3, -1))", "only reshape_dim infers one size", ""),
        ("u = nl.load(x[256:384])", "dimension 0 ends at 256; let the loop end there", ""),
        ("u = nl.load(x[200:300])", "write `min(300, 256)`", "u = nl.load(x[200:256])"),
        ("t = np.ones((2, 512)) * x", "pass the array to the kernel", ""),
        (f"{TILE} * np.ones((128, 512))", "pass the array to the kernel", ""),
        (f"{TILE}; nisa.activation(t, np.exp, t)", "write nl.exp", f"{TILE}; t = nl.exp(t)"),
        (OUTPUT.replace(", buffer=nl.shared_hbm", ""), "buffer=nl.shared_hbm", OUTPUT),
        (f"{OUTPUT}; t = nl.load(x)", "or make the rows a free dimension", ""),
        ("i = nl.block_idx(0)", "did you mean `program_id`?", "i = nl.program_id(0)"),
        ("i = nl.thread_id(0)", "an instruction computes a whole tile", ""),
    ],
)
def test_habits_of_numpy_and_cuda(wrong: str, help: str, right: str) -> None:
    def said(lines: str) -> list[Diagnostic]:
        args = '# x = "f32[256,512]"\n'
        text = (
            f"import numpy as np\n{HEAD.format(args=args)}@nki.jit\ndef kernel(x):\n    {lines}\n"
        )
        return [one for one in compile_text(text) if one.level is Level.ERROR]

    (error,) = said(wrong)
    assert help in error.help
    assert ("shared_hbm" in error.help) == ("shared_hbm" in help)
    assert said(right or "pass") == []


TRANSPOSED = "nisa.nc_transpose(dst=p, data=t)"
CHOSEN = "nisa.select_reduce(t, predicate=m, on_true=t, on_false=u)"
PREDICATED = "nisa.tensor_copy(u, t); nisa.tensor_copy_predicated(dst=u, src=t, predicate=m)"
REDUCED = "nisa.tensor_reduce(p[:, 0:1], {}, t, axis=1)"


@pytest.mark.parametrize(
    ("wrong", "help", "right"),
    [
        (
            TRANSPOSED,
            "transpose 128 columns of `data` at a time",
            TRANSPOSED.replace("t)", "t[:, 0:128])"),
        ),
        (CHOSEN, "nisa.tensor_copy_predicated(dst, src, predicate)", PREDICATED),
        (REDUCED.format("np.max"), "write nl.maximum", REDUCED.format("nl.maximum")),
        (REDUCED.format("np.sum"), "write nl.add", REDUCED.format("nl.add")),
        (
            "t = (t > 0) & (u > 0)",
            "nl.logical_and combines truth values",
            "t = nl.logical_and(t > 0, u > 0)",
        ),
        (REDUCED.format("np.mean"), "pass the operator itself", ""),
        (
            "nisa.iota(nl.arange(512), dtype=nl.int32)",
            "nisa.iota writes such numbers",
            "nisa.iota(i, [[1, 512]], 0)",
        ),
    ],
)
def test_one_error_for_one_mistake(wrong: str, help: str, right: str) -> None:
    """A shape that no tile can have is not advised; an operator of NumPy is one of NKI."""
    made = "".join(
        f"    {name} = nl.ndarray((128, {n}), dtype=nl.{dtype}, buffer=nl.{memory})\n"
        for name, n, dtype, memory in [
            ("p", 128, "float32", "psum"),
            ("u", 512, "float32", "sbuf"),
            ("m", 512, "uint8", "sbuf"),
            ("i", 512, "int32", "sbuf"),
        ]
    )
    ready = f"{made}    t = nl.load(x)\n    nisa.memset(u, 0.0)\n    nisa.memset(m, 1)\n"
    head = "import numpy as np\n" + HEAD.format(args='# x = "f32[128,512]"\n')

    def said(line: str) -> list[Diagnostic]:
        return errors(Source(f"{head}@nki.jit\ndef kernel(x):\n{ready}    {line}\n"))

    (error,) = said(wrong)
    assert help in error.help
    assert said(right or "pass") == []


def test_a_sum_in_psum_is_returned_by_way_of_sbuf() -> None:
    """No transfer reads PSUM."""
    text = source_of(TASKS["linear"], {}).text
    text = text[: text.index("        nisa.tensor_tensor")] + "        return acc\n"
    (error,) = errors(Source(text))
    assert error.help.startswith("copy it to SBUF with nisa.tensor_copy, and that to a tensor in")
    copied = """        t = nl.ndarray(acc.shape, dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=t, src=acc)
        out = nl.ndarray(acc.shape, dtype=nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=t)
        return out
"""
    assert errors(Source(text.replace("        return acc\n", copied))) == []


BLOCKS = """@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    first = nl.program_id(0) * 128
    nl.store(out[first : first + 128, :], nl.load(x[first : first + 128, :]))
    return out
"""


def test_a_kernel_for_a_grid_that_gets_none_is_told_of_the_grid() -> None:
    source = SourceFile("k.py", HEAD.format(args="") + BLOCKS)
    types = {"x": "f32[256,512]"}
    with pytest.raises(nkic.CompileError) as caught:
        nkic.compile(source, name="kernel", inputs=types)
    (error,) = (one for one in caught.value.diagnostics if one.level is Level.ERROR)
    assert (
        error.code.slug == "output-partly-written"
        and "give the kernel one with `--grid N`" in error.help
    )
    x = np.arange(256 * 512, dtype=np.float32).reshape(256, 512)
    compiled = nkic.compile(source, name="kernel", inputs=types, grid=2)
    (out,) = nkic.run(compiled, {"x": x}).outputs.values()
    assert np.array_equal(out, x)


def test_an_error_of_several_iterations_names_the_first() -> None:
    args = '# x = "f32[128,512]"\n'
    text = f"""{HEAD.format(args=args)}@nki.jit
def kernel(x):
    for i in range(4):
        nl.load(x[:, i * 512 : (i + 2) * 512])
    return x
"""
    found = next(one for one in compile_text(text) if one.count > 1)
    assert found.labels[-1].text == "first where `i` is 0"


@pytest.mark.parametrize("first", [0, 1])
def test_columns_of_an_unrolled_loop_are_one_number_each(first: int) -> None:
    """Also where the first pass takes the first column, as one would cut it to please the rule."""
    text = f"""@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.load(x)
    sums = nl.ndarray((1, 4), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_partition_reduce(dst=sums, op=nl.add, data=t)
    for i in range({first}, 4):
        nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=sums[:, i : i + 1])
    nl.store(out, t)
    return out
"""
    source = Source(HEAD.format(args='# x = "f32[128,4]"\n') + text)
    (error,) = errors(source)
    assert error.help == "repeat it in all 128 partitions: `nl.broadcast_to(sums[…], (128, 1))`"
    column = "sums[:, i : i + 1]"
    right = source.text.replace(column, f"nl.broadcast_to({column}, (128, 1))")
    x = numbers(128, 4) / 8
    (out,) = nkic.run(nkic.compile(SourceFile("k.py", right)), {"x": x}).outputs.values()
    factor = np.prod(x.sum(0)[first:], dtype=np.float32)
    np.testing.assert_allclose(out, x * factor, rtol=1e-5)


def test_advice_where_one_line_makes_several_instructions() -> None:
    text = """@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t, row = nl.load(x), nl.load(x[0:1])
    for f, how in (
        (nisa.tensor_tensor, {"data1": t, "data2": t, "op": nl.add}),
        (nisa.tensor_scalar, {"data": t, "op0": nl.multiply, "operand0": row[:, 0:1]}),
    ):
        f(dst=t, **how)
    nl.store(out, t)
    return out
"""
    (error,) = errors(Source(HEAD.format(args='# x = "f32[128,4]"\n') + text))
    assert "1 partition and `data` has 128" in error.message and error.help
