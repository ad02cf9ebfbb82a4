"""Compile and run whole kernels, given by their bodies, for the regression tests."""

from textwrap import dedent, indent
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.base.profiles import DEFAULT, Profile
from tests.harness.language import run

Array = NDArray[Any]
_HEAD = """\
import nki
import nki.isa as nisa
import nki.language as nl


def to_hbm(tile, dtype=None):
    out = nl.ndarray(tile.shape, dtype=dtype or tile.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


"""


def kernel(
    body: str,
    *,
    top: str = "",
    target: str = "trn2",
    profile: Profile = DEFAULT,
    **arrays: Array,
) -> Any:
    """Return the kernel's result: an array, or a list of several. Arguments are tensors in HBM.

    `top` is source text placed before the kernel.
    """
    text = f"{_HEAD}{dedent(top)}\n\n@nki.jit\ndef kernel({', '.join(arrays)}):\n"
    text += indent(dedent(body).strip("\n"), "    ") + "\n"
    found = [output.array for output in run(text, arrays, target, profile)[0]]
    return found[0] if len(found) == 1 else found


def floats(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def wholes(low: int, high: int, *shape: int, seed: int = 0) -> Array:
    """Return small integers as float32: their sums are exact in any order."""
    return np.random.default_rng(seed).integers(low, high, shape).astype(np.float32)
