"""The microkernels as a Python file for a device: NKI kernels, written from the table, and what
runs and profiles them with the vendor's tools.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nkic.calibrate.profiles import AFTER, PROBE
from nkic.machine.clock.probes import ARRIVAL, PROBES, REPEATS, ROW_LENGTH, Probe
from nkic.machine.engines import Engine
from nkic.machine.facts import Tile
from nkic.machine.memory import PARTITIONS
from nkic.machine.operands import AttributeKind

HEAD = '''\
"""Microkernels for `nki-run --calibrate`. On a machine with a Neuron device:

    python microkernels.py profiles       # runs and profiles each, and writes profiles/NAME.json
    nki-run --calibrate profiles > machine.toml

Written by `nki-run --print microkernels`.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import nki
import nki.isa as nisa
import nki.language as nl


'''
WARMING = 40  # products before those that count: more than the engine needs to be warm
TAIL = f'''\
KERNELS = [%s]


def profiled(kernel, folder):
    """Runs one kernel with its artifacts kept, and has the profiler write what it saw."""
    name = kernel.__name__
    kept = folder / name
    kept.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, __file__, "--one", name]
    subprocess.run(command, check=True, env=dict(os.environ, NKI_ARTIFACTS_DIR=str(kept)))
    neff, trace = kept / "kernel.neff", kept / "profile.ntff"
    explorer = "neuron-explorer"
    subprocess.run([explorer, "capture", "-n", neff, "-s", trace], check=True)
    written = ["--output-format", "json", "--output-file", folder / f"{{name}}.json"]
    subprocess.run([explorer, "view", "-n", neff, "-s", trace, *written], check=True)


def main(words):
    if words[:1] == ["--one"]:
        (kernel,) = [k for k in KERNELS if k.__name__ == words[1]]
        kernel(np.ones(({PARTITIONS}, {ROW_LENGTH}), np.float32))
        return
    for kernel in KERNELS:
        profiled(kernel, Path(words[0] if words else "profiles"))


if __name__ == "__main__":
    main(sys.argv[1:])
'''


def source() -> str:
    """The file."""
    kernels = {probe.name: probe for probe in PROBES}
    text = "\n\n".join(kernel_of(probe) for probe in kernels.values())
    return f"{HEAD}{text}\n\n{TAIL % ', '.join(kernels)}"


def kernel_of(probe: Probe) -> str:
    """One kernel."""
    body = "".join(f"    {line}\n" for line in _lines(probe))
    return f"@nki.jit\ndef {probe.name}(x):\n{body}"


def _lines(probe: Probe) -> Iterator[str]:
    dst = probe.operands["dst"]
    yield f"out = {_tensor(dst, 'shared_hbm')}"
    for name, tile in probe.operands.items():
        if name != "dst" and tile.on_chip:
            yield f"{name} = {_tensor(tile, tile.buffer.value)}"
            yield f"nisa.memset(dst={name}, value=1.0)"
    if probe.engine is Engine.TENSOR:
        yield f"warm = {_tensor(dst, dst.buffer.value)}"
        for _ in range(WARMING):
            yield _call(probe, "warm")
    repeats = 1 if probe.quantity == ARRIVAL else REPEATS
    for i in range(repeats):
        yield f"dst{i} = {_tensor(dst, dst.buffer.value)}"
        yield _call(probe, f"dst{i}", f"{PROBE}_{i}")
    yield f"after = {_tensor(dst, 'sbuf')}"
    yield f'nisa.tensor_copy(dst=after, src=dst{repeats - 1}, name="{AFTER}")'
    yield "nisa.dma_copy(dst=out, src=after)"
    yield "return out"


def _tensor(tile: Tile, buffer: str) -> str:
    shape = f"({PARTITIONS}, {tile.dims[-1][1]})"
    return f"nl.ndarray({shape}, dtype=nl.{tile.dtype.name}, buffer=nl.{buffer})"


def _call(probe: Probe, dst: str, label: str = "") -> str:
    """The instruction, with the operands of the table."""
    words = [f"dst={dst}"]
    for name, tile in probe.operands.items():
        if name != "dst":
            words.append(f"{name}={name}" if tile.on_chip else f"{name}=x[:, 0:{tile.dims[-1][1]}]")
    words += [f"{name}={value!r}" for name, value in probe.numbers.items()]
    kinds = {a.name: a.kind for a in probe.row.attributes}
    words += [f"{n}={_value(probe, n, kinds[n], v)}" for n, v in probe.attributes.items()]
    if probe.row.has_engine_parameter:
        words.append(f"engine=nisa.engine.{probe.engine.value}")
    words += [f'name="{label}"'] if label else []
    return f"nisa.{probe.row_name}({', '.join(words)})"


def _value(probe: Probe, name: str, kind: AttributeKind, value: Any) -> str:
    if kind in (AttributeKind.ALU, AttributeKind.ACTIVATION):
        return f"nl.{value}"
    if kind is AttributeKind.CHOICE:
        return f"nisa.{name}.{value}"
    return repr([list(pair) for pair in value]) if kind is AttributeKind.PATTERN else repr(value)
