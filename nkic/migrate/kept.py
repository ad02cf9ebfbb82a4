"""Tiles that a kernel of Beta 1 returns from the chip.

Beta 1's simulator gives them to the caller, so `nkic.specialise.outputs` copies them to HBM after
the kernel has ended. These copies have the place where the tile was made, and belong to no call of
the source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from nkic.ir.program import Instruction, Program, instructions
from nkic.ir.tensors import Tensor, View


class Kept(NamedTuple):
    """The results of a program that are such tiles, from 0, and the copies that move them to
    HBM.
    """

    numbers: frozenset[int] = frozenset()
    copies: frozenset[int] = frozenset()  # instructions, by `id`


def kept_tiles(program: Program) -> Kept:
    """Return the results that are copied to HBM at the end of a program."""
    named = {f"output_{n}": n for n in range(len(program.outputs))}
    call_chains = {t.at for t in program.tensors if t.buffer.on_chip}
    outputs = {
        output.tensor.number: named[output.name]
        for output in program.outputs
        if output.name in named and output.tensor.at in call_chains
    }
    copies = [*_copies(program, outputs)] if outputs else []
    numbers = {outputs[t.number] for t in _written(copies) if t.number in outputs}
    return Kept(frozenset(numbers), frozenset(map(id, copies)))


def _copies(program: Program, outputs: Mapping[int, int]) -> Iterator[Instruction]:
    """Yield the copies to these tensors that have the place of a tile, and copies from PSUM to SBUF
    before them.
    """
    for body in program.cores:
        sources: set[int] = set()
        for instruction in reversed([*instructions(body)]):
            dst, source = _tensor(instruction, "dst"), _tensor(instruction, "src")
            if dst is None or source is None:
                continue
            if dst.number in sources:
                yield instruction
            elif dst.number in outputs and instruction.at == dst.at and source.number < dst.number:
                yield instruction  # a fill by `nl.zeros` of a tensor in HBM comes after that tensor
                sources |= {source.number} if source.at != dst.at else set()


def _written(copies: Sequence[Instruction]) -> Iterator[Tensor]:
    for instruction in copies:
        dst = _tensor(instruction, "dst")
        if dst is not None:
            yield dst


def _tensor(instruction: Instruction, operand: str) -> Tensor | None:
    if operand not in instruction.row.operand_index:
        return None
    value = instruction.operand(operand)
    return value.tensor if isinstance(value, View) else None
