"""Meanings of register instructions: each engine's sequencer has its own copy."""

from __future__ import annotations

from typing import Any

from nkic.machine.facts import Register
from nkic.simulate.decode import Decoded, Step, semantics


def _number(decoded: Decoded, name: str) -> int:
    value: Any = decoded.operands[name]
    if isinstance(value, Register):
        return decoded.state.registers[value.number]
    return int(value or 0)


def _moving(decoded: Decoded, source: str) -> Step:
    dst: Any = decoded.operands["dst"]

    def step() -> None:
        decoded.state.registers[dst.number] = _number(decoded, source)

    return step


@semantics("register_alloc")
def register_alloc(decoded: Decoded) -> Step:
    return _moving(decoded, "x")


@semantics("register_move")
def register_move(decoded: Decoded) -> Step:
    return _moving(decoded, "src")


@semantics("register_load")
def register_load(decoded: Decoded) -> Step:
    dst: Any = decoded.operands["dst"]
    src = decoded.tile("src")

    def step() -> None:
        decoded.state.registers[dst.number] = int(src.bits().reshape(-1)[0])

    return step


@semantics("register_store")
def register_store(decoded: Decoded) -> Step:
    dst = decoded.tile("dst")

    def step() -> None:
        dst.put_bits(dst.element(_number(decoded, "src")))

    return step
