# /// nkic
# kernel = "axpy"
# target = "trn2"
# [args]
# x = "float32[256, 2048]"
# y = "float32[256, 2048]"
# [consts]
# alpha = 0.5
# ///
"""A kernel in the file that uses it: framework code around a kernel, as is common in practice.

nkic reads this file and does not run it. Only what the kernel can reach has to be NKI: the
imports, the class, the generator and the main section below are for the machine that has a
framework, and compile without it.
"""

from __future__ import annotations

import argparse
import os
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import nn

import nki
import nki.isa as nisa
import nki.language as nl

# Run at import time by Python, never by nkic.
torch.manual_seed(int(os.environ.get("SEED", "0")))

TILE_ROWS = nl.tile_size.pmax


@nki.jit
def axpy(x, y, alpha):
    """alpha * x + y for x, y[M, N] with M a multiple of 128."""
    assert x.shape == y.shape, f"x{x.shape} and y{y.shape} must have the same shape"
    M, N = x.shape
    assert M % TILE_ROWS == 0, f"M = {M} must be a multiple of {TILE_ROWS}"
    out = nl.ndarray((M, N), dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(M // TILE_ROWS):
        rows = slice_rows(i)
        x_tile = nl.ndarray((TILE_ROWS, N), dtype=x.dtype, buffer=nl.sbuf)
        y_tile = nl.ndarray((TILE_ROWS, N), dtype=y.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=x_tile, src=x[rows[0] : rows[1], :])
        nisa.dma_copy(dst=y_tile, src=y[rows[0] : rows[1], :])
        nisa.scalar_tensor_tensor(
            dst=y_tile,
            data=x_tile,
            op0=nl.multiply,
            operand0=alpha,
            op1=nl.add,
            operand1=y_tile,
        )
        nisa.dma_copy(dst=out[rows[0] : rows[1], :], src=y_tile)
    return out


def slice_rows(i):
    """Return the first row of row tile i, and the row after its last."""
    return i * TILE_ROWS, (i + 1) * TILE_ROWS


class ScaledResidual(nn.Module):
    """x -> weight * x + f(x), by the kernel if it can run."""

    def __init__(self, features: int, *, alpha: float = 0.5) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.alpha = alpha

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            hidden = F.gelu(self.linear(x))
        if on_device():
            return axpy(x, hidden, self.alpha)
        return torch.add(hidden, x, alpha=self.alpha)


@lru_cache(maxsize=1)
def on_device() -> bool:
    """Return whether a NeuronDevice is present."""
    return any(name.startswith("neuron") for name in os.listdir("/dev"))


def batches(count: int):
    """Yield `count` random inputs."""
    yield from (torch.randn(256, 2048) for _ in range(count))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=4)
    options = parser.parse_args()
    model = ScaledResidual(2048)
    for number, batch in enumerate(batches(options.batches)):
        match tuple(batch.shape):
            case (rows, _) if rows % TILE_ROWS:
                raise SystemExit(f"batch {number}: {rows} rows")
            case _:
                print(number, model(batch).abs().mean().item())


if __name__ == "__main__":
    main()
