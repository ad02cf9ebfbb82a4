"""With accumulate=None, the first matmul overwrites every byte of PSUM, for all windows."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nkic.base.source import NOWHERE, CallChain, SourceFile
from nkic.compiler.compiled import CompileOptions
from nkic.compiler.lower import Written, _bits
from nkic.compiler.pipeline import compile_source
from nkic.machine.dtypes import DTYPES
from nkic.machine.targets import Buffer
from nkic.program.program import AccessPattern, Program, Tensor, instructions
from nkic.simulate import simulate
from nkic.specialise.inline import parse_arg
from nkic.specialise.request import Request

Array = NDArray[Any]
KERNEL = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a, b):
    x = nl.ndarray((16, 128), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    y = nl.ndarray((16, 48), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=y, src=b)
    p = nl.ndarray((128, 6, 8), dtype=nl.float32, buffer=nl.psum)
    out = nl.ndarray((128, 6, 8), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.ndarray((128, 6, 8), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=t, value=0.0)
{body}
    nisa.dma_copy(dst=out, src=t)
    return out
"""


def numbers(*shape: int, seed: int) -> Array:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)


def window(rng: np.random.Generator) -> tuple[str, tuple[slice, ...]]:
    """Return a part of PSUM, as kernels and as NumPy write it; one in three skips columns."""
    first = int(rng.choice([0, 32, 64, 96]))
    rows = {0: int(rng.choice([32, 64, 128])), 64: int(rng.choice([32, 64]))}.get(first, 32)
    i, j = int(rng.integers(0, 4)), int(rng.integers(0, 5))
    bottom, right = int(rng.integers(i + 1, 7)), int(rng.integers(j + 1, 9))
    step = int(rng.choice([1, 1, 2]))
    where = (slice(first, first + rows), slice(i, bottom), slice(j, right, step))
    return f"{first}:{first + rows}, {i}:{bottom}, {j}:{right}:{step}", where


@pytest.mark.parametrize("seed", range(12))
def test_windows_that_overlap_in_any_way(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = numbers(16, 128, seed=seed), numbers(16, 48, seed=seed + 100)
    found, written = np.zeros((128, 6, 8), np.float32), np.zeros((128, 6, 8), bool)
    matmuls, copies = [], []
    for _ in range(6):
        text, where = window(rng)
        rows, *inner = found[where].shape
        size = int(np.prod(inner))
        matmuls.append(f"nisa.nc_matmul(p[{text}], x[:, 0:{rows}], y[:, 0:{size}])")
        copies.append(f"nisa.tensor_copy(dst=t[{text}], src=p[{text}])")
        product = (a[:, :rows].T @ b[:, :size]).reshape(rows, *inner)
        found[where] = np.where(written[where], found[where] + product, product)
        written[where] = True
    np.testing.assert_array_equal(run([*matmuls, *copies], a, b), found)


def run(lines: list[str], a: Array, b: Array) -> Array:
    done = compiled(lines)
    return np.asarray(simulate(done.executable, {"a": a, "b": b}).outputs["output_0"])


def compiled(lines: list[str]) -> Any:
    text = KERNEL.format(body="\n".join(f"    {line}" for line in lines))
    args = dict(parse_arg(word) for word in ("a=float32[16,128]", "b=float32[16,48]"))
    return compile_source(
        SourceFile("k.py", text), Request(args=args), lambda *_: None, CompileOptions()
    )


def test_as_many_matmuls_as_it_takes() -> None:
    """One matmul if all bytes are new or none is; otherwise one for each part."""
    whole = "nisa.nc_matmul(p, x, y)"
    left, right = (f"nisa.nc_matmul(p[:, :, {at}], x, y[:, 0:24])" for at in ("0:4", "4:8"))
    copy = "nisa.tensor_copy(dst=t, src=p)"
    counts = [
        sum(i.row.name == "nc_matmul" for i in instructions(lowered(lines).cores[0]))
        for lines in ([whole, whole, copy], [left, right, whole, copy], [left, whole, copy])
    ]
    assert counts == [2, 3, 13]  # the last: six rows of two halves


def lowered(lines: list[str]) -> Program:
    found = compiled(lines).results["lower"]
    assert isinstance(found, Program)
    return found


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize(
    "dims",
    [
        *(((1, 4),), ((-1, 4),), ((8, 2), (1, 3)), ((-8, 2), (2, 3))),
        *(((3, 2), (-1, 3)), ((0, 3), (1, 2)), ((4, 2), (1, 4))),
    ],
)
def test_bits_are_the_bytes_that_are_covered(dims: tuple[tuple[int, int], ...], size: int) -> None:
    offset = 12
    steps = [[step * i for i in range(num)] for step, num in dims]
    first = [(offset + sum(at)) * size for at in product(*steps)]
    assert _bits(offset, dims, size) == sum({1 << (n + i) for n in first for i in range(size)})


@pytest.mark.parametrize("seed", range(8))
def test_what_is_written_is_known_exactly(seed: int) -> None:
    """By partition and byte, with a set of bytes."""
    rng, known, written = Random(seed), Written(), set[tuple[int, int]]()
    owner = Tensor(0, "p", DTYPES["float32"], (128, 6), Buffer.PSUM, CallChain(NOWHERE))
    for _ in range(12):
        first, at = rng.choice([0, 32, 64, 96]), rng.choice([0, 0, 3])
        rows = rng.choice([n for n in (32, 32, 64) if first + n <= 128])
        dims = ((1, rng.choice([3, 6 - at])),)
        cells = set(product(range(first, first + rows), range(at, at + dims[0][1])))
        found = len(cells & written)
        wanted = {0: False, len(cells): True}.get(found)
        pattern = AccessPattern(owner, owner.dtype, first, rows, at, dims)
        assert known.decide(pattern) is wanted
        written |= cells
