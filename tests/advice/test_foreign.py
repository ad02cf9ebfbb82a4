"""What is said of names of PyTorch, NumPy and Triton: the advice compiles, and is right."""

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
from nkic.specialise.numpy import FUNCTIONS as NUMPY
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


COMPUTING = [
    "max(axis=1)",
    "exp()",
    "float()",
    "clip(0, 1)",
    "triu()",
    "std()",
    "isnan()",
    "argmax()",
]


@pytest.mark.parametrize("call", COMPUTING)
def test_what_is_in_hbm_is_loaded_first(call: str) -> None:
    (error,) = errors(f"y = x.{call}")
    assert "nl.load(x[…]); then " in error.help
    (error,) = errors(f"y = t.{call}")
    assert "nl.load" not in error.help


@pytest.mark.parametrize("call", ["numel()", "cpu()", "squeeze()", "detach()", "T", "len()"])
def test_what_needs_no_tile_is_not_loaded(call: str) -> None:
    (error,) = errors(f"y = x.{call}")
    assert error.help and "nl.load" not in error.help


@pytest.mark.parametrize(
    "call", ["zero_()", "gather()", "sync()", "new_empty(3)", "moveaxis(0, 1)"]
)
def test_what_transfers_or_fills_is_not_loaded(call: str) -> None:
    (error,) = errors(f"y = x.{call}")
    assert error.help and "load" not in error.help


def test_versions_without_functions_get_instructions() -> None:
    (error,) = errors("y = nl.isnan(t)", "0.2")
    assert error.help == "write it with the instructions of nki.isa"
    for call in ("clip(0, 1)", "exp()", "bool()", "clone()"):
        (error,) = errors(f"y = t.{call}", "0.2")
        assert "nl." not in error.help.replace("nl.greater_equal", "")
    (error,) = errors("y = x.topk(8)", "0.2")
    assert error.help.startswith(
        "load a tile of at most 128 rows first: nisa.dma_copy(dst=t, src=x"
    )


@pytest.mark.parametrize("name", sorted(set(NUMPY) - {"shape", "ndim", "size"}))
def test_functions_of_numpy_refuse_tensors_before_they_count(name: str) -> None:
    (error,) = errors(f"import numpy as np; y = np.{name}(t, t)")
    assert error.code.slug in ("tensor-value", "wrong-type")


ISNAN = "write `nl.not_equal(t, t)`"


@pytest.mark.parametrize("call", ["np.isnan(t)", "np.isnan(t[0:64])", "t.isnan()", "nl.isnan(t)"])
def test_one_advice_wherever_the_name_is_from(call: str) -> None:
    (error,) = errors(f"import numpy as np; y = {call}")
    assert error.help == ISNAN


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
    "fma": lambda x: x * (x + 1) + x,
    "std": lambda x: np.std(x, axis=1, keepdims=True),
    "norm": lambda x: np.linalg.norm(x, axis=1, keepdims=True),
    "logsumexp": lambda x: np.log(np.sum(np.exp(x), axis=1, keepdims=True)),
    "full_like": np.ones_like,
    "ones_like": np.ones_like,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "isclose": lambda x: np.isclose(x, x + 1),
    "nan_to_num": np.nan_to_num,
    "signbit": np.signbit,
    "copysign": lambda x: np.copysign(x, x + 1),
    "heaviside": lambda x: np.heaviside(x, 0),
    "count_nonzero": lambda x: np.count_nonzero(x, axis=1, keepdims=True),
    "logical_nand": lambda x: ~np.logical_and(x, x + 1),
    "round": np.round,
    "floor_divide": lambda x: x // (x + 1),
    "hypot": lambda x: np.hypot(x, x + 1),
    "deg2rad": np.deg2rad,
    "rad2deg": np.rad2deg,
    "cbrt": np.cbrt,
    "arcsin": np.arcsin,
    "arccos": np.arccos,
    "arctan2": lambda x: np.arctan2(x, x + 1),
    "arcsinh": np.arcsinh,
    "arctanh": np.arctanh,
    "sinc": np.sinc,
    "logaddexp": lambda x: np.logaddexp(x, x + 1),
    "lerp": lambda x: x + 0.5,
    "addcmul": lambda x: x + x * (x + 1),
    "addcdiv": lambda x: x + x / (x + 1),
    "ptp": lambda x: np.ptp(x, axis=1, keepdims=True),
    "nansum": lambda x: np.nansum(x, axis=1, keepdims=True),
    "diff": lambda x: np.diff(x, axis=1),
    "inner": lambda x: np.sum(x * (x + 1), axis=1, keepdims=True),
    "outer": lambda x: np.outer(x[0], x[0] + 1),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "hardtanh": lambda x: np.clip(x, -1, 1),
    "hardsigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "hardswish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "logsigmoid": lambda x: -np.log1p(np.exp(-x)),
    "softmin": lambda x: np.exp(-x) / np.sum(np.exp(-x), axis=1, keepdims=True),
    "threshold": lambda x: np.where(x > 1, x, 0),
    "glu": lambda x: x / (1 + np.exp(-x - 1)),
    "swiglu": lambda x: x / (1 + np.exp(-x)) * (x + 1),
    "geglu": lambda x: 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) * (x + 1),
    "mse_loss": lambda x: np.ones((128, 1)),
    "tril": np.tril,
    "triu": np.triu,
    "roll": lambda x: np.concatenate([x[:, :1] + 1, x[:, :-1]], axis=1),
    "flip": lambda x: np.concatenate([x[:, :-1] + 1, x[:, :1]], axis=1),
    "interleave": lambda x: np.stack([x[:, :8], x[:, 1::2] + 1], axis=2).reshape(128, 16),
    "dynamic_slice": lambda x: x,
    "reduce": lambda x: np.concatenate([np.sum(x, 1, keepdims=True), x[:, 1:] + 1], axis=1),
}
MOST = {"erfc": 2, "arcsin": 0.9, "arccos": 0.9, "arctanh": 0.9}  # of the numbers, where not 8
LEAST = {"elu": -3, "selu": -3, "hardtanh": -3, "hardsigmoid": -5, "hardswish": -5, "softsign": -3}
KERNEL = """import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def kernel(x):
    t = nl.load(x)
    u, n = nl.add(t, 1.0), 16
    {}
    out = nl.ndarray(y.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    nl.store(out, y)
    return out
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", RIGHT)
def test_what_the_advice_computes(name: str) -> None:
    code = CODE.findall(OTHERWISE[name][1])[0]
    line = f"{code}; y = u" if code.startswith("nisa.") else f"y = {code}"
    source = SourceFile("k.py", KERNEL.format(line).replace("import nki\n", "import math, nki\n"))
    low, high = LEAST.get(name, 0.1), MOST.get(name, 8)
    x = np.random.default_rng(0).uniform(low, high, (128, 16)).astype(np.float32)
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
        (
            "nisa.tensor_tensor(t, lhs=t, data2=t, op=nl.add)",
            "nisa.tensor_tensor(t, data1=t, data2=t, op=nl.add)",
        ),
        (
            "nisa.tensor_tensor(t, t, rhs=t, op=nl.add)",
            "nisa.tensor_tensor(t, t, data2=t, op=nl.add)",
        ),
        ("nl.matmul(t, t, transpose=True)", "nl.matmul(t, t, transpose_x=True)"),
        ("nl.matmul(t, rhs=t, transpose_x=True)", "nl.matmul(t, y=t, transpose_x=True)"),
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
    ("call", "help"),
    [
        ("nisa.nc_matmul(t, stationary=t, moving=t, transpose=True)", "stationary.T @ moving"),
        ("nisa.nc_matmul(t, lhs=t, moving=t)", "stationary.T @ moving"),
        (
            "nisa.nc_transpose(t, t, transpose=True)",
            "the call is nisa.nc_transpose(dst, data, eng",
        ),
        ("nl.load(x, transpose=True)", "the call is nl.load(src, dtype=…)"),
    ],
)
def test_only_a_product_is_told_how_products_transpose(call: str, help: str) -> None:
    (error,) = errors(call)
    assert help in str(error.help)


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
