"""Time whole commands: milliseconds of processor time, of the process and its children."""

import os
import resource
import sys
import tempfile
from pathlib import Path
from subprocess import run
from typing import Any

import numpy as np

KERNEL = """\
# /// nkic
# kernel = "scaled_sum"
# [args]
# a = "float32[512, 512]"
# b = "float32[512, 512]"
# ///
import nki
import nki.isa as nisa
import nki.language as nl

P = 128


def load(source, rows):
    tile = nl.ndarray((P, source.shape[1]), dtype=source.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=source[rows, :])
    return tile


def sum_of(x, y):
    z = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=z, data1=x, data2=y, op=nl.add)
    return z


def scaled(x, number):
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=y, data=x, op0=nl.multiply, operand0=number)
    return y


def store(target, rows, tile):
    nisa.dma_copy(dst=target[rows, :], src=tile)


@nki.jit
def scaled_sum(a, b, number=0.5):
    M, N = a.shape
    assert a.shape == b.shape
    out = nl.ndarray((M, N), dtype=a.dtype, buffer=nl.shared_hbm)
    for m in range(M // P):
        rows = nl.ds(m * P, P)
        x = load(a, rows)
        y = load(b, rows)
        store(out, rows, scaled(sum_of(x, y), number))
    return out
"""
TIMES = 9


def seconds(command: list[str], folder: str, environ: dict[str, str]) -> float:
    """Return the least processor time of a command and its children."""
    taken = []
    for _ in range(TIMES):
        before = _used()
        run(command, cwd=folder, env=environ, capture_output=True, check=True)
        taken.append(_used() - before)
    return min(taken)


def _used() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def bench_commands() -> None:
    print("\n## Commands, ms of processor time from start to end\n\n| command | ms |\n|---|---:|")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "kernel.py").write_text(KERNEL, "utf-8")
        draw = np.random.default_rng(0)
        arrays: dict[str, Any] = {
            name: draw.standard_normal((512, 512)).astype(np.float32) for name in "ab"
        }
        np.savez(Path(folder, "in.npz"), **arrays)
        environ = os.environ | {"XDG_CACHE_HOME": folder, "PYTHONPYCACHEPREFIX": folder}
        environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed nkic has its bytecode
        for title, command in _commands():
            run(command, cwd=folder, env=environ, capture_output=True, check=True)  # warm
            print(f"| {title} | {seconds(command, folder, environ) * 1e3:.0f} |", flush=True)


def _commands() -> list[tuple[str, list[str]]]:
    bin = Path(sys.executable).parent
    nkic, nki_run = str(bin / "nkic"), str(bin / "nki-run")
    return [
        ("bare python", [sys.executable, "-c", ""]),
        ("`nkic --version`", [nkic, "--version"]),
        ("`nkic --help`", [nkic, "--help"]),
        ("`nkic kernel.py`, 46 lines, warm", [nkic, "kernel.py"]),
        ("`nkic --no-cache kernel.py`", [nkic, "--no-cache", "kernel.py"]),
        ("`nki-run kernel.neff --inputs in.npz`", [nki_run, "kernel.neff", "--inputs", "in.npz"]),
    ]
