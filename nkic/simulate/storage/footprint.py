"""An estimate of the host memory that a run will take, made before any is taken."""

from __future__ import annotations

import os

from nkic.base.diagnostics import LimitHit, make
from nkic.base.text import size
from nkic.machine.memory import PARTITIONS
from nkic.machine.targets import TARGETS
from nkic.neff.records import Executable, TensorRecord

WIDENED = 4  # minimum bytes per element: narrow floats are kept as float32
FLAGS = 0.25  # typical upper limit of the flags of initialised bytes, relative to a tensor's bytes
BASE = 64 << 20  # the interpreter and its libraries


def footprint(executable: Executable) -> int:
    """Return an estimate in bytes from sizes alone: memories, inputs and outputs."""
    target = TARGETS[executable.target]
    chip = PARTITIONS * (target.sbuf_bytes + target.psum_bytes) * WIDENED * executable.cores
    on_chip = sum(_bytes(t) for t in executable.tensors if t.buffer.on_chip)
    hbm = sum(_bytes(t) for t in executable.tensors if not t.buffer.on_chip)
    ports = (*executable.inputs, *executable.outputs)
    arrays = sum(_bytes(executable.tensors[port.tensor]) for port in ports)
    return BASE + arrays + int((min(chip, on_chip) + hbm) * (1 + FLAGS))


def _bytes(tensor: TensorRecord) -> int:
    elements = max(1, tensor.bytes // tensor.dtype.size)
    rows = tensor.shape[0] if tensor.buffer.on_chip else 1
    return rows * elements * max(WIDENED, tensor.dtype.size)


def check_memory(executable: Executable, limit: int | None, ranks: int = 1) -> None:
    """Raise `LimitHit` if the run would take more than `limit` bytes, or than the host has."""
    needed, there = footprint(executable) * ranks, physical()
    if limit is not None and needed > limit:
        message = f"the simulation needs about {size(needed)}, --max-memory is {size(limit)}"
        raise LimitHit([make("memory-limit", message, help="raise the limit, or drop it")])
    if limit is None and there is not None and needed > there:
        message = f"the simulation needs about {size(needed)}, this machine has {size(there)}"
        help = "simulate smaller shapes; --max-memory SIZE sets another limit"
        raise LimitHit([make("memory-limit", message, help=help)])


def physical() -> int | None:
    """Return the host's memory in bytes, or None if the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
