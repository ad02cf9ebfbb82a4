"""What is said of names that do not exist, and of expressions whose cause is another one."""

import pytest

from nkic.base.diagnostics import Diagnostic, Level
from tests.harness.kernels import compile_text

KERNEL = """# /// nkic
# [args]
# x = "float32[128, 64]"
# ///
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    {}
    nisa.dma_copy(dst=out, src=t)
    return out
"""


def errors(statement: str, nki: str = "0.7") -> list[Diagnostic]:
    text = KERNEL.format(statement).replace("# [args]", f'# nki = "{nki}"\n# [args]')
    return [one for one in compile_text(text) if one.level is Level.ERROR]


ADVICE = {
    "nl.tile(t, 128)": "nl.broadcast_to(t, shape) repeats",
    "nl.mult": "did you mean `multiply`?",
    "nl.gelu_tanh": "did you mean `gelu_apprx_tanh`?",
    "nl.clip(t)": "nl.minimum(nl.maximum(t, low), high)",
    "nl.transpoze(t)": "did you mean `transpose`?",
    "nl.frobnicate": "`nkic --print language` lists the names",
    "t.repeat(2)": "nl.broadcast_to(t, shape) repeats",
    "nisa.engine.act": "did you mean `scalar`?",
    "nisa.engine.fast": "it has tensor, vector, scalar, gpsimd, dma, sync, unknown",
    "nisa.dge_mode.quick": "it has unknown, swdge, hwdge, none",
    "nisa.activation(dst=t, data=t, op='gelu')": "write nl.gelu",
    "nisa.activation(dst=t, data=t, op='swish')": "write nl.silu",
    "nisa.tensor_reduce(dst=t[:, 0:1], data=t, op=nl.max, axis=1)": "its operator is nl.maximum",
    "nisa.tensor_tensor(dst=t, data1=t, data2=2.0, op=nl.add)": "use `nisa.tensor_scalar`",
    "y = x + t": "nl.load(x[…])",
    "z = x[0, 0] > 0": "nl.load(x[…])",
    "y = nisa.tensor_copy(dst=t, src=t) + 1": "use the dst that it wrote",
}


@pytest.mark.parametrize("statement", ADVICE)
def test_the_advice(statement: str) -> None:
    (error,) = errors(statement)
    assert ADVICE[statement] in error.help


@pytest.mark.parametrize("statement", ["nl.tile(t, 128)", "nl.einsum('ij,jk', t, t)"])
def test_no_edit_where_the_arguments_differ(statement: str) -> None:
    assert [error.fixes for error in errors(statement)] == [()]


# Uses of what a refused call returns: none of them says anything more.
USES = (
    "top[:, 3:4]",
    "top + t",
    "t - top",
    "-top",
    "top < 1",
    "top.shape",
    "top.reshape((4, 4))",
    "nl.exp(top)",
    "nl.add(t, top)",
    "nl.ndarray(top.shape, dtype=top.dtype, buffer=nl.sbuf)",
    "[part for part in top]",
    "range(top)",
    "int(top)",
    "1 if top > 2 else 3",
    "nisa.tensor_copy(dst=t, src=top)",
    "nisa.activation(dst=t, data=t, op=top)",
    "nisa.activation(dst=top, data=t, op=nl.exp, scale=top[0])",
)


@pytest.mark.parametrize("use", USES)
def test_nothing_is_said_of_what_a_refused_call_returns(use: str) -> None:
    (error,) = errors(f"top = nisa.max8(src=t)\n    used = {use}")
    assert "`dst` is missing" in error.message


@pytest.mark.parametrize("condition", ["x[0, 0] > 0", "(x + t) > 0", "t[0:1, 0:1] > 0"])
def test_a_decision_is_the_cause_of_errors_in_its_condition(condition: str) -> None:
    (error,) = errors(f"if {condition}:\n        pass")
    assert error.code.slug == "tensor-value"


def test_a_missing_import_is_said_once() -> None:
    text = KERNEL.replace("import nki.isa as nisa\n", "").format("nisa.memset(t, value=0.0)")
    (error,) = compile_text(text)
    assert error.count == 3 and error.help.startswith("write `import nki.isa as nisa`")


def test_each_place_of_a_misspelt_name_has_its_edit() -> None:
    found = errors("tt = t; nl.exp(tq); nl.exp(tq)")
    assert [len(error.fixes) for error in found] == [1, 1]


@pytest.mark.parametrize(
    ("statement", "help"),
    [
        ("rows, columns = x.size", "a tensor's sizes are in its `shape`"),
        ("y = nl.zeros((128, 4), dtype=x.dtype())", "a dtype is passed as it is"),
    ],
)
def test_a_value_that_is_no_tuple_or_function(statement: str, help: str) -> None:
    (error,) = errors(statement)
    assert help in error.help
