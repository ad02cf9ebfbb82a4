"""A kernel that needs a tensor's values: the same error in both ways of evaluating."""

from pathlib import Path

import pytest

from nkic.base.diagnostics import Diagnostic, Level
from nkic.base.profiles import DEFAULT
from nkic.compiler.request import parse_options
from nkic.language.foreign import MEANT
from nkic.language.namespace import names_of
from nkic.specialise.native import spaces
from tests.harness import two_ways
from tests.harness.kernels import compile_text

pytestmark = pytest.mark.filterwarnings("ignore")
HEAD = """\
import math

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a, bias=None):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    x = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    t = nl.ndarray((128, 1), dtype=a.dtype, buffer=nl.sbuf)
    u = nl.ndarray((128, 1), dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    nisa.memset(dst=t, value=1.0)
    nisa.memset(dst=u, value=2.0)
"""
TAIL = """
    nisa.dma_copy(dst=out, src=x)
    return out
"""
BLOCK = '# /// nkic\n# [args]\n# a = "float32[128,64]"\n# ///\n'
IS_T = "the values of `t` are not known while the kernel is compiled, so no decision can"
IS_X = IS_T.replace("`t`", "`x`")
BOTH = IS_T.replace("`t`", "`t` and `u`")
CASES = [
    ("if x[0, 0] > 0:\n        pass", IS_X, "`nl.where(x[0, 0] > 0, a, b)`"),
    ("if x[0, 0]:\n        pass", IS_X, "`nl.where(x[0, 0], a, b)`"),
    ("if t > u:\n        pass", BOTH, "`nl.where(t > u, a, b)`"),
    (
        "if nl.equal(t, 0):\n        pass",
        "of `nl.equal(t, 0)` are not",
        "`nl.where(nl.equal(t, 0), a, b)`",
    ),
    ("if -t:\n        pass", IS_T, "`nl.where(-t, a, b)`"),
    ("low = t > 0\n    if low:\n        pass", IS_T, "`nl.where(low, a, b)`"),
    ("y = t if t > 0 else u", IS_T, "`nl.where(t > 0, t, u)`"),
    ("y = t > 0 and u", IS_T, "`nl.logical_and(t > 0, u)`"),
    ("y = t > 0 or u", IS_T, "`nl.logical_or(t > 0, u)`"),
    ("y = not (t > 0)", IS_T, "`nl.logical_not(t > 0)`"),
    ("y = 0 < t < 1", IS_T, "`nl.logical_and(0 < t, t < 1)`"),
    ("while t > 0:\n        pass", IS_T, "`nl.while_loop(register, body)`"),
    ("assert t > 0", IS_T, "nl.device_print shows values"),
    ("y = max(x, 0.0)", IS_X, "nl.maximum(x, y)"),
    ("y = min(x, 0.0)", IS_X, "nl.minimum(x, y)"),
    ("y = sorted([t, u])", "the values of `u` and `t` are", "nisa.max8"),
    ("y = t in [u]", "the values of", "use `is`"),
    ("y = any([t > 0])", IS_T, "nl.max(x, axis=1) of a comparison"),
    ("y = sum(x)", "`x` cannot be iterated", "nl.sum(x, axis=1)"),
    ("for row in x:\n        pass", "`x` cannot be iterated", "range(t.shape[i])"),
    ("y = math.sqrt(t)", "`t` cannot be converted to a number", "nl.sqrt computes it"),
    ("y = x.sum()", "a tensor has no attribute `sum`", "nl.sum(t, axis=1), or nisa.tensor_reduce"),
    ("y = x.swish()", "a tensor has no attribute `swish`", "nl.silu, which is a function"),
]


def _text(body: str) -> str:
    return f"{HEAD}    {body}{TAIL}"


def _errors(said: tuple[Diagnostic, ...]) -> list[Diagnostic]:
    return [one for one in said if one.level is Level.ERROR]


@pytest.mark.parametrize(("body", "message", "advice"), CASES, ids=[case[0] for case in CASES])
def test_both_ways_say_the_same(body: str, message: str, advice: str, tmp_path: Path) -> None:
    path = tmp_path / "decides.py"
    path.write_text(_text(body))
    request = two_ways.request_in(path, parse_options(args=["a=float32[128,64]"]))
    with two_ways.live_module(path) as module:
        native, closed = two_ways.both(module.kernel, two_ways.as_call(request))
    assert native.places == closed.places
    for way in (native, closed):
        (error,) = _errors(way.said)
        assert message in error.message
        assert advice in error.help


def test_the_label_is_where_the_tensor_was_declared() -> None:
    (error,) = _errors(compile_text(BLOCK + _text("if t > 0:\n        pass")))
    (label,) = [one for one in error.labels if one.text.startswith("`t` is")]
    assert label.text == "`t` is float32[128, 1] in sbuf"
    assert label.span.line == 5 + HEAD[: HEAD.index("    t = ")].count("\n")


@pytest.mark.parametrize(
    ("asked", "more"),
    [
        ("if x:\n        pass", ""),
        ("if not a:\n        pass", "; nl.logical_not negates its elements"),
    ],
)
def test_whether_there_is_a_tensor_is_a_warning(asked: str, more: str) -> None:
    (said,) = compile_text(BLOCK + _text(asked))
    assert said.level is Level.WARNING
    assert said.help == f"write `is not None`{more}"


def test_an_absent_tensor_is_false() -> None:
    assert compile_text(BLOCK + _text("if bias:\n        nl.undefined")) == ()


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("np.max(x)", "write nl.max(t, axis=1)"),
        ("np.tanh(x)", "nl.tanh computes it"),
        ("np.maximum(x, 0)", "nl.maximum(x, y)"),
        ("nl.gelu_tanh(x)", "did you mean `gelu_apprx_tanh`?"),
        ("nl.swish(x)", "did you mean `silu`?"),
        ("nl.frobnicate(x)", "`nkic --print language` lists"),
        ("nisa.frobnicate(x)", "`nkic --print ops` lists the instructions"),
    ],
)
def test_names_of_other_libraries(name: str, advice: str) -> None:
    text = "import numpy as np\n" + _text(f"y = {name}")
    (error,) = _errors(compile_text(BLOCK + text))
    assert advice in error.help


def test_reductions_are_over_all_free_dimensions() -> None:
    z = "z = nl.ndarray((128, 4, 8), dtype=a.dtype, buffer=nl.sbuf)\n    "
    for body, advice in (("z.sum()", "nl.sum(t, axis=(1, 2))"), ("max(z, 0)", "axis=(1, 2)")):
        (error,) = _errors(compile_text(BLOCK + _text(f"{z}y = {body}")))
        assert advice in error.help


def test_a_kernel_inside_of_a_function_is_named() -> None:
    inner = HEAD.replace(
        "import nki.language as nl\n", "import nki.language as nl\n\n\ndef make():\n"
    )
    start = inner.index("@nki.jit")
    lines = (inner[start:] + TAIL).splitlines()
    text = inner[:start] + "".join(f"    {line}\n" for line in lines) + "    return kernel\n"
    (error,) = compile_text(BLOCK + text)
    assert error.code.slug == "no-kernel"
    assert "the kernel `kernel` is inside the function `make`" in error.message
    assert error.primary is not None
    assert error.primary.span.line == 5 + text[: text.index("def kernel")].count("\n")


def test_an_error_in_a_loop_comes_before_its_deprecation() -> None:
    body = "for i in nl.dynamic_range(4):\n        nisa.memset(dst=t, value=0.0)\n        "
    block = BLOCK.replace("# [args]", '# nki = "0.6"\n# [args]')
    (error,) = compile_text(block + _text(f"{body}break"))
    assert "`nl.while_loop(go, body)`" in error.help
    (error,) = compile_text(block + _text(f"{body}return out"))
    assert "return it after the loop" in error.help
    (warned,) = compile_text(block + _text(f"{body}pass"))
    assert warned.code.slug == "deprecated"
    assert warned.primary is not None
    assert warned.primary.span.column == len("    for i in ") + 1


def test_a_float_in_a_shape() -> None:
    shape = "y = nl.ndarray((128, {}), nl.float32)"
    (error,) = _errors(compile_text(BLOCK + _text(shape.format("64 / 2"))))
    assert error.message == "dimension 1 of the shape is a float, 32.0"
    assert error.help == "write 32, or use `//` instead of `/`, which gives an int"
    (error,) = _errors(compile_text(BLOCK + _text(shape.format("63 / 2"))))
    assert error.help == "use `//` instead of `/`, which gives an int"
    (error,) = _errors(compile_text(BLOCK + _text("x.reshape((64 / 2, -1))")))
    assert error.help == "use `//` instead of `/`, which gives an int"


def test_meant_names_exist() -> None:
    known = spaces(DEFAULT)["nki.language"]
    assert set(MEANT.values()) - set(names_of(known)) == set()
    assert set(MEANT) & set(names_of(known)) == set()
