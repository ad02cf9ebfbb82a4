"""The microkernels as a Python file for a device.

It holds NKI kernels written from the instruction table, and code that runs and profiles them with
the vendor's tools.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

from nkic.machine.operands import AttributeKind, Tile
from nkic.machine.targets import PARTITIONS, Engine
from nkic.report.calibrate import AFTER, PROBE
from nkic.report.probes import ARRIVAL, PROBES, REPEATS, ROW_LENGTH, SPAN, WARMING, Probe

HEAD = '''\
"""Microkernels for `nki-run calibrate`. On a machine with a Neuron device:

    python microkernels.py profiles       # runs and profiles each, and writes profiles/NAME.json
    nki-run calibrate profiles > machine.toml

Written by `nki-run calibrate --print microkernels`.
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
    kernels = {probe.name: probe for probe in PROBES}
    text = "\n\n".join(kernel_of(probe) for probe in kernels.values())
    return f"{HEAD}{text}\n\n{TAIL % ', '.join(kernels)}"


def kernel_of(probe: Probe) -> str:
    body = "".join(f"    {line}\n" for line in _lines(probe))
    return f"@nki.jit\ndef {probe.name}(x):\n{body}"


def _lines(probe: Probe) -> Iterator[str]:
    dst = probe.operands["dst"]
    yield f"out = {_tensor(dst, 'shared_hbm')}"
    for name, tile in probe.operands.items():
        if name != "dst":
            yield from _source(name, tile)
    if probe.engine is Engine.TENSOR and probe.warm:
        yield f"warm = {_tensor(dst, dst.buffer.value)}"
        for _ in range(WARMING):
            yield _call(probe, "warm")
    last = yield from _measured(probe, dst)
    yield f"after = {_tensor(dst, 'sbuf')}"
    engine = ", engine=nisa.engine.vector" if probe.engine is Engine.GPSIMD else ""
    yield f'nisa.tensor_copy(dst=after, src=dst{last}{engine}, name="{AFTER}")'
    yield "nisa.dma_copy(dst=out, src=after)"
    yield "return out"


def _measured(probe: Probe, dst: Tile) -> Generator[str, None, int]:
    """Yield the instructions that are measured, and return the number of the last result."""
    if probe.quantity == SPAN:  # on one sum, which keeps them in order
        yield f"dst0 = {_tensor(dst, dst.buffer.value)}"
        yield _call(probe, "dst0", f"{PROBE}_0")
        for _ in range(WARMING):
            yield _call(probe, "dst0", is_other=True)
        yield _call(probe, "dst0", f"{PROBE}_1", is_other=True)
        return 0
    repeats = 1 if probe.quantity == ARRIVAL else REPEATS
    for i in range(repeats):
        yield f"dst{i} = {_tensor(dst, dst.buffer.value)}"
        yield _call(probe, f"dst{i}", f"{PROBE}_{i}", is_other=i % 2 == 1)
    return repeats - 1


def _source(name: str, tile: Tile) -> Iterator[str]:
    """Yield the definition of an operand: a tile or HBM of ones, unless it is the argument."""
    if tile.on_chip:
        yield f"{name} = {_tensor(tile, tile.buffer.value)}"
        yield f"nisa.memset(dst={name}, value=1.0)"
    elif not _is_argument(tile):
        yield f"ones = {_tensor(tile, 'sbuf')}"
        yield "nisa.memset(dst=ones, value=1.0)"
        yield f"{name} = {_tensor(tile, 'private_hbm')}"
        yield f"nisa.dma_copy(dst={name}, src=ones)"
    if tile.dynamic:
        yield "at = nisa.register_alloc(0)"


def _is_argument(tile: Tile) -> bool:
    """Whether the tile consists of columns of the kernel's argument."""
    return not tile.on_chip and tile.dtype.name == "float32"


def _tensor(tile: Tile, buffer: str) -> str:
    shape = f"({PARTITIONS}, {tile.dims[-1][1]})"
    return f"nl.ndarray({shape}, dtype=nl.{tile.dtype.name}, buffer=nl.{buffer})"


def _call(probe: Probe, dst: str, label: str = "", is_other: bool = False) -> str:
    """Return the instruction, with the operands of the table."""
    arguments = [f"dst={dst}"]
    arguments += [f"{n}={_read(n, tile)}" for n, tile in probe.operands.items() if n != "dst"]
    arguments += [f"{name}={value!r}" for name, value in probe.numbers.items()]
    kinds = {a.name: a.kind for a in probe.row.attributes}
    attributes = {**probe.attributes, **(probe.alternate if is_other else {})}
    arguments += [f"{n}={_value(probe, n, kinds[n], v)}" for n, v in attributes.items()]
    if probe.row.has_engine_parameter:
        arguments.append(f"engine=nisa.engine.{probe.engine.value}")
    arguments += [f'name="{label}"'] if label else []
    return f"nisa.{probe.row_name}({', '.join(arguments)})"


def _read(name: str, tile: Tile) -> str:
    columns = tile.dims[-1][1]
    if _is_argument(tile):
        return f"x[:, 0:{columns}]"
    return f"{name}[:, nl.ds(at, {columns})]" if tile.dynamic else name


def _value(probe: Probe, name: str, kind: AttributeKind, value: Any) -> str:
    if kind in (AttributeKind.ALU, AttributeKind.ACTIVATION):
        return f"nl.{value}"
    if kind is AttributeKind.CHOICE:
        return f"nisa.{name}.{value}"
    return repr([list(pair) for pair in value]) if kind is AttributeKind.PATTERN else repr(value)
