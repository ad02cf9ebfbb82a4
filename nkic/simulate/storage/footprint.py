"""An estimate of the host memory that a run will take, made before any is taken."""

from __future__ import annotations

import os

from nkic.base.diagnostics import LimitHit, make
from nkic.base.text import size
from nkic.machine.memory import PARTITIONS
from nkic.machine.targets import TARGETS
from nkic.neff.records import Executable, TensorRecord

MIN_ELEMENT_BYTES = 4  # narrow floats are kept as float32
FLAGS_SHARE = 0.25  # typical maximum for the flags of initialised bytes, per byte
BASE = 64 << 20  # the interpreter and its libraries


def footprint(executable: Executable) -> int:
    """Return an estimate in bytes from sizes alone: memories, inputs and outputs."""
    target = TARGETS[executable.target]
    memory = PARTITIONS * (target.sbuf_bytes + target.psum_bytes) * executable.cores
    on_chip = sum(_bytes(t) for t in executable.tensors if t.buffer.on_chip)
    hbm = sum(_bytes(t) for t in executable.tensors if not t.buffer.on_chip)
    ports = (*executable.inputs, *executable.outputs)
    arrays = sum(_bytes(executable.tensors[port.tensor]) for port in ports)
    return BASE + arrays + int((min(memory * MIN_ELEMENT_BYTES, on_chip) + hbm) * (1 + FLAGS_SHARE))


def _bytes(tensor: TensorRecord) -> int:
    elements = max(1, tensor.bytes // tensor.dtype.size)
    rows = tensor.shape[0] if tensor.buffer.on_chip else 1
    return rows * elements * max(MIN_ELEMENT_BYTES, tensor.dtype.size)


def check_memory(executable: Executable, limit: int | None, ranks: int = 1) -> None:
    """Raise `LimitHit` if the run would take more than `limit` bytes, or than the host has."""
    needed, available = footprint(executable) * ranks, physical_memory()
    if limit is not None and needed > limit:
        message = f"the simulation needs about {size(needed)}, `--limit memory` is {size(limit)}"
        raise LimitHit([make("memory-limit", message, help="raise the limit, or drop it")])
    if limit is None and available is not None and needed > available:
        message = f"the simulation needs about {size(needed)}, this machine has {size(available)}"
        help = "simulate smaller shapes; --limit memory=SIZE sets another limit"
        raise LimitHit([make("memory-limit", message, help=help)])


def physical_memory() -> int | None:
    """Return the host's memory in bytes, or None if the system does not report it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
