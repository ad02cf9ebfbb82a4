"""Advice on operands of the wrong shape or memory, with the kernel's own names and sizes.

A rule knows one instruction. The program shows where a tile came from: a row such as a bias or the
weight of a norm, which lies in one partition, is repeated in all of them while it is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from math import prod
from typing import NamedTuple

from nkic.base.profiles import Profile, find
from nkic.ir.program import Instruction, Program, instructions
from nkic.ir.tensors import Tensor, View
from nkic.machine.memory import MEMORIES, PARTITIONS
from nkic.machine.operands import Operand, Violation


class _Tile(NamedTuple):
    """An operand of the instruction, and the tile that it is."""

    operand: Operand
    view: View

    @property
    def partitions(self) -> int:
        return self.view.shape[0]

    @property
    def free(self) -> int:
        return self.view.tile().free

    @property
    def name(self) -> str:
        return _named(self.view)


def advice(program: Program, instruction: Instruction, violation: Violation) -> str:
    """Return better advice than the violation's own, or "" if there is none."""
    advisor = _ADVISORS.get(violation.slug)
    index = instruction.row.operand_index.get(violation.operand, -1)
    view = instruction.operands[index] if index >= 0 else None
    if advisor is None or not isinstance(view, View):
        return ""
    return advisor(program, instruction, _Tile(instruction.row.operands[index], view))


def _partitions(program: Program, instruction: Instruction, tile: _Tile) -> str:
    """Advise on tiles whose numbers of partitions differ: a row, or two sizes."""
    others = [
        t for t in _tiles(instruction) if t.view.tensor.on_chip and t.partitions != tile.partitions
    ]
    if not others:
        return ""
    low, high = sorted((tile, others[0]), key=lambda t: t.partitions)
    if low.partitions > 1:
        part = f"`{high.name}[0:{low.partitions}]`"
        return f"use {low.partitions} partitions of `{high.name}`: {part}"
    if low.operand.access.writes:
        return (
            f"make `{low.name}` a tile of {high.partitions} partitions, or pass one partition of "
            f"`{high.name}`, `{high.name}[0:1]`"
        )
    return f"repeat it in all {high.partitions} partitions{_repeated(program, low, high)}"


def _elements(program: Program, instruction: Instruction, tile: _Tile) -> str:
    """Advise on a column among rows, or on a transfer of a row to all partitions."""
    dst = next((t for t in _tiles(instruction) if t.operand.access.writes), None)
    if dst is None or dst.view is tile.view:
        return ""
    if not tile.view.tensor.on_chip:
        if not dst.view.tensor.on_chip or dst.free != prod(tile.view.shape):
            return ""
        row = _row_of(tile.view, dst.partitions, dst.free, _profile(program))
        return f"to repeat it in all {dst.partitions} partitions of `{dst.name}`, write src={row}"
    if tile.free == 1 and _profile(program) >= Profile.NKI_0_5 and len(tile.view.shape) == 2:
        column = f"{tile.name}.broadcast(1, {dst.free})"
        instead = "`nisa.tensor_scalar` takes it as `operand0`"
        also = f", or {instead}" if "data2" in instruction.row.operand_index else ""
        return f"repeat the column with `{column}`{also}"
    return ""


def _column(program: Program, instruction: Instruction, tile: _Tile) -> str:
    """Advise on a row in place of one number per partition, such as a bias of many columns."""
    data = next((t for t in _tiles(instruction) if t.operand.name == "data"), None)
    if not tile.operand.column or not tile.operand.number or data is None:
        return ""
    if tile.free != data.free:
        return ""
    name, attributes = tile.operand.name, instruction.row.attribute_index
    if op := {"bias": "nl.add", "scale": "nl.multiply"}.get(name, ""):
        first, dst = f"leave out `{name}`, and before the call write", data.name
    elif name == "operand0" and attributes.keys() >= {"op0", "op1"}:
        if instruction.attribute("op1") is not None:
            return ""
        first, dst, op = "write", _tiles(instruction)[0].name, f"nl.{instruction.attribute('op0')}"
    else:
        return ""
    text = (
        f"for a number per element, {first} nisa.tensor_tensor(dst={dst}, data1={data.name}, "
        f"data2={tile.name}, op={op})"
    )
    if tile.partitions == data.partitions:
        return text
    return f"{text}; repeat `{tile.name}` in all {data.partitions} partitions" + _repeated(
        program, tile, data
    )


def _memory(program: Program, instruction: Instruction, tile: _Tile) -> str:
    """Advise on a tensor in HBM that an engine should read, or a result in the wrong memory."""
    view = tile.view
    if tile.operand.access.writes and view.tensor.on_chip:
        uses = [t.operand.buffers for t in _all_tiles(program) if t.view.tensor is view.tensor]
        memory = next((m.value for m in MEMORIES if all(m in allowed for allowed in uses)), "")
        if not memory:
            return ""
        last = "; copy the sum elsewhere after the last one" if instruction.row.accumulates else ""
        return f"make `{view.tensor.name}` with buffer=nl.{memory}{last}"
    if view.tensor.on_chip or tile.operand.access.writes or not instruction.row.streams:
        return ""
    shape = ", ".join(map(str, view.shape))
    if len(view.shape) < 2 or view.shape[0] > PARTITIONS:
        return f"load it first, at most {PARTITIONS} rows at a time: nisa.dma_copy(dst=tile, src=…)"
    made = f"tile = nl.ndarray(({shape}), dtype={view.tensor.name}.dtype, buffer=nl.sbuf)"
    return f"load it first: {made}; nisa.dma_copy(dst=tile, src={tile.name})"


_ADVISORS: dict[str, Callable[[Program, Instruction, _Tile], str]] = {
    "partition-mismatch": _partitions,
    "element-count-mismatch": _elements,
    "operand-shape": _column,
    "buffer-not-allowed": _memory,
}


def _repeated(program: Program, row: _Tile, like: _Tile) -> str:
    """Return how to repeat a row in all partitions of `like`, to follow "repeat it"."""
    profile, tensor = _profile(program), row.view.tensor
    count, shape = (
        like.partitions,
        f"({like.partitions}, {', '.join(map(str, row.view.shape[1:]))})",
    )
    source = _loaded_from(program, tensor)
    if profile is Profile.BETA1:
        return f": `{row.name}.broadcast_to({shape})`"
    if source is not None:
        copied = _row_of(source, count, row.free, profile)
        return (
            f" while loading it: make `{tensor.name}` a tile of shape {shape}, and write "
            f"nisa.dma_copy(dst={tensor.name}, src={copied})"
        )
    return f": `nl.broadcast_to({row.name}, {shape})`"


def _row_of(source: View, count: int, elements: int, profile: Profile) -> str:
    """Return the expression for `source`, a row in HBM, repeated `count` times."""
    name = _named(source)
    if profile < Profile.NKI_0_5:
        return f"{name}.ap([[0, {count}], [1, {elements}]])"
    part = source.tensor.shape if name == source.tensor.name else source.shape
    if len(part) == 2 and part[0] == 1:
        return f"{name}.broadcast(0, {count})"
    return f"{name}.reshape((1, {elements})).broadcast(0, {count})"


def _loaded_from(program: Program, tensor: Tensor) -> View | None:
    """Return what one transfer loads the whole of `tensor` from, if nothing else writes it."""
    written = [
        instruction
        for instruction in chain(*map(instructions, program.cores))
        for tile in _tiles(instruction)
        if tile.operand.access.writes and tile.view.tensor is tensor
    ]
    places = {instruction.at for instruction in written}
    if len(places) != 1 or not written[0].row.copies:
        return None
    source = written[0].operand("src")
    is_row = isinstance(source, View) and not source.tensor.on_chip and source.dynamic is None
    return source if is_row and isinstance(source, View) else None


def _all_tiles(program: Program) -> Iterator[_Tile]:
    return chain.from_iterable(map(_tiles, chain(*map(instructions, program.cores))))


def _tiles(instruction: Instruction) -> list[_Tile]:
    pairs = zip(instruction.row.operands, instruction.operands, strict=True)
    return [_Tile(operand, view) for operand, view in pairs if isinstance(view, View)]


def _named(view: View) -> str:
    """Return the tensor's name, with […] for a part of it."""
    tensor = view.tensor
    return tensor.name if prod(view.shape) == prod(tensor.shape) else f"{tensor.name}[…]"


def _profile(program: Program) -> Profile:
    return find(program.notes.get("nki", "")) or Profile.NKI_0_7
