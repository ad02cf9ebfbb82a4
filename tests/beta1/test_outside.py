"""Out-of-bounds indices whose address is inside the tensor are rejected, unless masked out."""

from __future__ import annotations

import pytest

import nkic
from nkic.base.source import SourceFile

HEAD = """import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    p, f = nl.mgrid[0:128, 0:64]
    x = nl.load(a)
    t = nl.zeros((nl.par_dim(128), 4, 64), nl.float32)
"""


def compiled(line: str) -> object:
    text = f"{HEAD}    {line}\n    nl.store(out, x)\n    return out\n"
    return nkic.compile(SourceFile("k.py", text), inputs={"a": "float32[128,64]"})


@pytest.mark.parametrize(
    "line",
    [
        *("nl.exp(t[p, 1, f + 8])", "nl.sum(t[p, 1, f + 8], axis=1)", "nl.exp(t[p, 1, f - 8])"),
        *("nl.mean(t[p, 1, f + 8], axis=1)", "nl.softmax(t[p, 1, f + 8], axis=1)"),
        "nisa.tensor_reduce(np.add, t[p, 1, f + 8], axis=(1,))",
        "nisa.tensor_partition_reduce(np.add, t[p, 1, f + 8])",
        "nisa.nc_transpose(t[p, 1, f + 8])",
        *("nisa.nc_matmul(t[p, 1, f + 8], x)", "nisa.nc_matmul(x, t[p, 1, f + 8])"),
        "nisa.nc_matmul(t[p, 1, f + 8], x, mask=f < 60)",
        "nl.matmul(t[p, 1, f + 8], x, transpose_x=True)",
        "nisa.activation(np.exp, x, bias=t[0:128, 1, 64:65])",
        "nisa.tensor_scalar(x, np.add, t[0:128, 1, 64:65])",
        "nisa.tensor_tensor(x, t[p, 1, f + 8], np.add)",
        "nl.add(x, t[0:128, 1, 64:65])",
        "nl.add(x, t[p, 1, 64].broadcast_to((128, 64)))",
        "nisa.affine_select(pred=p > f, on_true_tile=t[p, 1, f + 8], on_false_value=0)",
        *("nisa.bn_stats(t[p, 1, f + 8])", "nisa.max8(src=t[p, 1, f + 8])"),
        *("t[p, 1, f + 8] = x", "t[p, 1, f + 8] = nl.exp(x)", "t[p, 1, f + 8] = 0"),
        *("t[p, 1, f + 8] += x", "t[p, 1, f + 8] *= 2"),
        *("nl.load(a[5, 64])", "nl.load(a[3, 8:72])", "nl.load(a[0:127, 64])"),
        *("nl.store(out[3, 64], x[0, 0])", "nl.store(out[0:2, 60:70], x[0:2, 0:10])"),
        "nl.sum(t[p, 1, f + 8], axis=1, mask=f < 57)",
        "t[p, 1, f + 8] = nl.exp(x, mask=f < 57)",
    ],
)
def test_what_would_reach_another_row_is_refused(line: str) -> None:
    with pytest.raises(nkic.CompileError) as raised:
        compiled(line)
    said = raised.value.diagnostics[0]
    assert said.code.slug == "index-out-of-bounds"
    assert said.primary is not None and said.primary.span.line == 13


@pytest.mark.parametrize(
    "line",
    [
        "nl.sum(t[p, 1, f + 8], axis=1, mask=f < 56)",
        "nl.mean(t[p, 1, f + 8], axis=1, mask=f < 56)",
        "nisa.nc_matmul(t[p, 1, f + 8], x, mask=f < 56)",
        "t[p, 1, f + 8] = nl.exp(x, mask=f < 56)",
        "t[p, 1, f - 8] = nl.exp(x, mask=f >= 8)",
        "nl.add(x, t[p, 1, f + 8], mask=f < 56)",
        "nl.load(a[p, f + p], mask=f + p < 64)",
    ],
)
def test_what_a_mask_hides_is_not_asked(line: str) -> None:
    compiled(line)
