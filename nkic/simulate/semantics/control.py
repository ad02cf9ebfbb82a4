"""Semantics of register instructions: each engine's sequencer has its own copy.

A register holds 32 bits, a scalar of nl.int64 the bits of two registers. Memory is loaded and
stored bit by bit: narrower integers are sign-extended and truncated, and numbers of other types are
bit patterns (assumed). Loops and offsets read a register as the integer that was written to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import add, mul, sub
from typing import Any

import numpy as np

from nkic.machine.codecs import storage
from nkic.machine.dtypes import DTYPES
from nkic.simulate.plans import Decoded, Rendezvous, Step, rendezvous, semantics

# ---- Semantics of the rendezvous of a kernel's cores --------------------------------------------
# Sources: `nki.isa.core_barrier`, `nki.isa.sendrecv`.


@rendezvous("core_barrier")
def core_barrier(decoded: Decoded) -> Rendezvous:
    return Rendezvous(_nothing, _ignore)


def _nothing() -> None:
    """A barrier contributes no data."""


def _ignore(brought: Mapping[int, Any]) -> None:
    """A barrier accepts no data."""


@rendezvous("sendrecv")
def sendrecv(decoded: Decoded) -> Rendezvous:
    dst, src = decoded.tile("dst"), decoded.tile("src")
    sender = decoded.attributes["recv_from_rank"]
    return Rendezvous(
        lambda: src.bits().copy(), lambda brought: dst.put_bits(brought[sender]), source=sender
    )


# ---- Semantics of device prints -----------------------------------------------------------------


@semantics("device_print")
def device_print(decoded: Decoded) -> Step:
    tile, prefix = decoded.tile("tensor"), decoded.attributes["print_prefix"]
    state, sizes = decoded.state, tile.sizes
    shape = (tile.shape[0], *sizes) if tile.on_chip else sizes

    def step() -> None:
        state.prints.add(state.core, prefix, tile.dtype, tile.bits().reshape(shape))

    return step


# --------------------------------------------------------------------------------------------------


def _moving(decoded: Decoded, source: str) -> Step:
    dst: Any = decoded.operands["dst"]

    def step() -> None:
        decoded.state.registers[dst.number] = decoded.read(source)

    return step


@semantics("register_alloc")
def register_alloc(decoded: Decoded) -> Step:
    """A register without an initial value holds 0 if it may be read at all (assumed)."""
    dst: Any = decoded.operands["dst"]
    if decoded.operands["x"] is None:
        return lambda: decoded.state.registers.create(dst.number)
    return _moving(decoded, "x")


@semantics("register_move")
def register_move(decoded: Decoded) -> Step:
    return _moving(decoded, "src")


@semantics("scalar_load")
@semantics("register_load")
def register_load(decoded: Decoded) -> Step:
    dst: Any = decoded.operands["dst"]
    src = decoded.tile("src")
    kind = np.dtype(f"{'i' if src.dtype.kind == 'int' else 'u'}{src.dtype.size}")

    def step() -> None:
        decoded.state.registers[dst.number] = int(src.bits().view(kind).reshape(-1)[0])

    return step


@semantics("register_store")
def register_store(decoded: Decoded) -> Step:
    return _storing(decoded, "src")


@semantics("scalar_store")
def scalar_store(decoded: Decoded) -> Step:
    return _storing(decoded, "value")


@semantics("scalar_compute")
def scalar_compute(decoded: Decoded) -> Step:
    dst: Any = decoded.operands["dst"]
    compute = _OPERATORS[decoded.attributes["op"]]
    half = 1 << DTYPES[decoded.attributes["integer"]].bits - 1

    def step() -> None:
        value = compute(decoded.read("a"), decoded.read("b"))
        decoded.state.registers[dst.number] = (value + half) % (2 * half) - half

    return step


_OPERATORS: dict[str, Callable[[int, int], int]] = {"add": add, "subtract": sub, "multiply": mul}


def _storing(decoded: Decoded, source: str) -> Step:
    dst = decoded.tile("dst")
    bits = 8 * dst.dtype.size
    kind = np.dtype(f"u{dst.dtype.size}")

    def step() -> None:
        word = np.array(decoded.read(source) & (1 << bits) - 1, kind)
        dst.put_bits(word.view(storage(dst.dtype)))

    return step
