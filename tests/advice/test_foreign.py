"""What is said of names of PyTorch, NumPy and Triton: the advice compiles, and is right."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import nkic
from nkic.base.diagnostics import Guess
from nkic.base.source import SourceFile
from nkic.language.foreign import MEANT, METHODS, OTHERWISE, PARAMETERS, WITHOUT
from tests.advice.test_names import errors

CODE = re.compile(r"`([^`]+)`")


def quoted() -> Iterator[tuple[str, str]]:
    """Yield every name with each piece of code that its advice quotes."""
    for name, (_, text) in OTHERWISE.items():
        yield from ((f"nl.{name}", code) for code in CODE.findall(text))
    for name, text in METHODS.items():
        yield from ((f"t.{name}", code) for code in CODE.findall(text.format("axis=1")))


def compiled(code: str) -> list[str]:
    code = code if code.startswith(("assert", "import")) else f"y = {code}"
    ready = "u = nl.copy(t); n = 64; import math"
    return [error.message for error in errors(f"{ready}; {code}".replace("dim)", "1)"))]


# What the code of an advice lacks by itself.
GIVEN = {"t.squeeze_dim(dim)": "nl.ndarray((128, 1, 64), nl.int8, nl.sbuf)"}


@pytest.mark.parametrize(("name", "code"), sorted(set(quoted())))
def test_code_that_an_advice_quotes_compiles(name: str, code: str) -> None:
    assert compiled(code.replace("t.", f"{GIVEN[code]}.") if GIVEN.get(code) else code) == []


@pytest.mark.parametrize("name", sorted(OTHERWISE))
def test_a_name_gets_its_advice_and_no_near_name(name: str) -> None:
    (error,) = errors(f"nl.{name}")
    assert OTHERWISE[name][1] in error.help
    assert "did you mean" not in error.help


@pytest.mark.parametrize("name", sorted(MEANT))
def test_a_name_with_another_spelling(name: str) -> None:
    (error,) = errors(f"nl.{name}")
    assert isinstance(error.help, Guess) and error.help.name == MEANT[name]


@pytest.mark.parametrize("name", sorted(METHODS))
def test_a_method_of_other_tensors(name: str) -> None:
    (error,) = errors(f"t.{name}")
    assert METHODS[name].format("axis=1") in error.help


RIGHT: dict[str, Callable[[Any], Any]] = {
    "relu6": lambda x: np.clip(x, 0, 6),
    "exp2": np.exp2,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "expm1": np.expm1,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "erfc": np.vectorize(math.erfc),
    "fma": lambda x: x * x + x,
    "std": lambda x: np.std(x, axis=1, keepdims=True),
    "norm": lambda x: np.linalg.norm(x, axis=1, keepdims=True),
    "logsumexp": lambda x: np.log(np.sum(np.exp(x), axis=1, keepdims=True)),
    "full_like": np.ones_like,
    "ones_like": np.ones_like,
}
KERNEL = """import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def kernel(x):
    t = nl.load(x)
    u = t
    y = {}
    out = nl.ndarray(y.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    nl.store(out, y)
    return out
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", RIGHT)
def test_what_the_advice_computes(name: str) -> None:
    (code,) = CODE.findall(OTHERWISE[name][1])
    source = SourceFile("k.py", KERNEL.format(code))
    most = 2 if name == "erfc" else 8
    x = np.random.default_rng(0).uniform(0.1, most, (128, 16)).astype(np.float32)
    artifact = nkic.compile(source, inputs={"x": "f32[128,16]"})
    (found,) = nkic.run(artifact, {"x": x}).outputs.values()
    np.testing.assert_allclose(np.asarray(found), RIGHT[name](x), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize(
    ("call", "now"),
    [
        ("nl.sum(t, dim=1)", "nl.sum(t, axis=1)"),
        ("nl.max(t, axis=1, keepdim=True)", "nl.max(t, axis=1, keepdims=True)"),
        ("nl.softmax(t, dim=-1)", "nl.softmax(t, axis=-1)"),
        ("nl.exp(input=t)", "nl.exp(x=t)"),
        ("nl.add(t, other=t)", "nl.add(t, y=t)"),
        ("nl.dropout(t, p=0.1)", "nl.dropout(t, rate=0.1)"),
        ("nl.zeros(size=(128, 4), dtype=t.dtype)", "nl.zeros(shape=(128, 4), dtype=t.dtype)"),
        ("nisa.dma_copy(out=t, src=x)", "nisa.dma_copy(dst=t, src=x)"),
        ("nisa.dma_copy(dst=t, input=x)", "nisa.dma_copy(dst=t, src=x)"),
        (
            "nisa.tensor_reduce(dst=t[:, 0:1], data=t, op=nl.add, dim=1)",
            "nisa.tensor_reduce(dst=t[:, 0:1], data=t, op=nl.add, axis=1)",
        ),
    ],
)
def test_parameters_by_other_names(call: str, now: str) -> None:
    (error,) = errors(call)
    assert isinstance(error.help, Guess)
    assert re.sub(rf"\b{error.help.word}=", f"{error.help.name}=", call) == now
    assert errors(now) == []


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("nl.var(t, axis=1, unbiased=False)", "unbiased"),
        ("nl.gelu(t, approximate='tanh')", "approximate"),
        ("nl.sum(t, axis=1, out=t)", "out"),
        ("nl.matmul(t, t, transpose_b=True)", "transpose_b"),
        ("nisa.activation(dst=t, op=nl.relu, data=t, inplace=True)", "inplace"),
    ],
)
def test_parameters_that_nki_does_not_have(call: str, name: str) -> None:
    (error,) = errors(call)
    assert error.help == WITHOUT[name]


@pytest.mark.parametrize(
    ("code", "help"),
    [
        ("t.permute(1, 0)", ".permute((1, 0))"),
        ("t.reshape(128, 2, 32)", ".reshape((128, 2, 32))"),
        ("t.view(128, 2, 32)", ".reshape((128, 2, 32))"),
        ("t.view((128, 2, 32))", ".reshape((128, 2, 32))"),
        ("t.reshape(8192)", ".reshape((8192,))"),
        ("t.reshape(128, t)", ".reshape((128, …))"),
        ("t.reshape(*range(100))", ".reshape((0, 1, 2, 3, 4, 5, 6, 7, …))"),
        ("t.size(0)", "`shape`"),
        ("t.add_(1.0)", "write nl.add"),
        ("nl.zeros(128, 64)", "sizes as one tuple"),
        ("nl.zeros((128, 64), dtype='float')", "write nl.float32"),
        ("nl.inverse(t)", "nothing inverts a matrix"),
        ("nl.max(t, t)", "nl.maximum(x, y)"),
    ],
)
def test_other_arguments(code: str, help: str) -> None:
    (error,) = errors(code)
    assert help in error.help


@pytest.mark.parametrize(
    "code",
    ['f"{t[0, 0]:.3f}"', '"{:.3f}".format(t)', '"%.3f" % t[0, 0]', '"%d" % t', "round(t, 2)"],
)
def test_a_number_of_a_tensor_is_not_known(code: str) -> None:
    (error,) = errors(f"s = {code}")
    assert "cannot be converted to a number" in error.message and error.help


def test_no_class_of_the_interpreter_is_named() -> None:
    (error,) = errors('s = "%i" % None')
    assert error.message == "%i format: a real number is required, not NoneType"


def test_parameters_are_of_some_function() -> None:
    """Every meaning is the name of a parameter somewhere: `parameter` can suggest it."""
    assert not {name for names in PARAMETERS.values() for name in names} & PARAMETERS.keys()
