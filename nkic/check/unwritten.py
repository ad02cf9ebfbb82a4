"""Reads of uninitialised bytes in SBUF or PSUM, found in the lowered program.

The runner finds every such read (NKI0901); this finds those that are certain before there is data.
One that the runner is certain to refuse is an error by default: the instruction runs, and either
nothing that it reads was written, or all of its result depends on each byte.

It is conservative about inexact patterns: a write initialises everything it may touch, and a read
is checked only if it touches every byte of its box.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod

from nkic.base.diagnostics import Reporter
from nkic.check.holes import first_hole
from nkic.check.stage import call_labels, declaration
from nkic.ir.effects import Accesses, accesses_of
from nkic.ir.overlap import Box, box
from nkic.ir.program import Body, Instruction, Loop, Program, instructions
from nkic.ir.tensors import AccessPattern, Tensor
from nkic.machine.operands import Depends

# Kernels apply these to partly initialised tiles and ignore the affected rows of the result.
_PARTIAL_INPUTS = (Depends.PRODUCT, Depends.TRANSPOSED, Depends.FIRST_OF_CORE)
MAX_BOXES = 256  # boxes; tensors written in more pieces are not checked


def find_unwritten(lowered: Program, report: Reporter) -> None:
    """Warn of the first uninitialised read of each tensor."""
    for body in lowered.cores:
        accesses = accesses_of(body, lowered.target)
        finder = _Finder(report, _doubtful(accesses), may_not_run(body))
        if finder.doubtful:
            finder.body(body, accesses)


def may_not_run(body: Body) -> set[int]:
    """Return the numbers of the instructions in device loops that may have no iterations."""
    return {
        instruction.number
        for item in body
        if isinstance(item, Loop)
        for instruction in (instructions(item.body) if not item.trips else ())
    } | {number for item in body if isinstance(item, Loop) for number in may_not_run(item.body)}


def _doubtful(accesses: Accesses) -> set[int]:
    """Return the tensors on chip that may be read before they are written.

    A tensor with one pattern may not, if its first access is a write.
    """
    return {
        tensor.number
        for tensor in accesses.first
        if tensor.on_chip and (tensor in accesses.parts or tensor in accesses.read_first)
    }


@dataclass
class _Finder:
    report: Reporter
    doubtful: set[int]  # tensors neither fully written nor reported
    unsure: set[int]  # instructions that may not run
    written: dict[int, dict[Box, None]] = field(default_factory=dict)

    def body(self, body: Body, accesses: Accesses) -> None:
        doubtful = self.doubtful
        for instruction in instructions(body):
            operands, uses = accesses.of(instruction)
            for index, reads, writes in uses:  # reads come first
                pattern = operands[index]
                if type(pattern) is not AccessPattern or pattern.tensor.number not in doubtful:
                    continue
                if reads:
                    self.read(instruction, pattern)
                if writes:
                    self.write(pattern.tensor, box(pattern))

    def write(self, tensor: Tensor, area: Box) -> None:
        if area == _whole(tensor.shape, tensor.dtype.size):
            self.doubtful.discard(tensor.number)
            return
        boxes = self.written.setdefault(tensor.number, {})
        boxes[area] = None
        if len(boxes) > MAX_BOXES:
            self.doubtful.discard(tensor.number)

    def read(self, instruction: Instruction, pattern: AccessPattern) -> None:
        tensor, area = pattern.tensor, box(pattern)
        boxes = self.written.get(tensor.number, {})
        if area in boxes or not is_exact(pattern, area):
            return
        if boxes and instruction.row.depends in _PARTIAL_INPUTS:
            return
        hole = first_hole(area, boxes, tensor.dtype.size)
        if hole:
            self.doubtful.discard(tensor.number)
            wholly = instruction.row.depends is Depends.WHOLLY or not _meets(area, boxes)
            is_fault = wholly and instruction.number not in self.unsure
            self.complain(instruction, tensor, hole, bool(boxes), is_fault)

    def complain(
        self,
        instruction: Instruction,
        tensor: Tensor,
        hole: str,
        is_partial: bool,
        is_fault: bool,
    ) -> None:
        part = f"{hole} of `{tensor.name}`" if is_partial else f"`{tensor.name}`"
        self.report.warning(
            "read-never-written" if is_fault else "read-unwritten",
            f"{instruction.row.name} reads {part}, which is uninitialised",
            instruction.at.primary,
            labels=[declaration(tensor), *call_labels(instruction.at)],
            help="initialise it first, for example with nisa.memset, or read a smaller part",
        )


def _meets(area: Box, boxes: Iterable[Box]) -> bool:
    """Return whether any of the boxes shares a byte with `area`."""
    return any(
        all(low < high2 and low2 < high for (low, high), (low2, high2) in zip(area, b, strict=True))
        for b in boxes
    )


@lru_cache(maxsize=1024)
def _whole(shape: tuple[int, ...], size: int) -> Box:
    """Return the box of a whole tensor on chip."""
    return tuple((0, length) for length in (*shape[:-1], shape[-1] * size))


def is_exact(pattern: AccessPattern, area: Box) -> bool:
    """Return whether every byte of the box is read."""
    if pattern.dynamic is not None:
        return False
    elements = prod(num for step, num in pattern.dims if step) * pattern.partitions
    return elements * pattern.dtype.size == prod(high - low for low, high in area)
