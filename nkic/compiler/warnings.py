"""Warnings about legal but probably unintended code, in a program that passed check.

Unused memory, results never written, slow transfers, lost precision, and constants out of range.

Non-goals: anything that depends on values (the runner's sanitizers).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from math import prod
from typing import Any

from nkic.base.diagnostics import Diagnostic, Level, Reporter, make
from nkic.base.source import SHIPPED, CallChain
from nkic.base.text import grouped, plural
from nkic.compiler.check import seen
from nkic.compiler.check_memory import first_hole
from nkic.machine.dtypes import FLOAT32, DType
from nkic.machine.operands import Facts, Row, Violation
from nkic.machine.patterns import Dims, run
from nkic.machine.rules import shown
from nkic.machine.targets import Engine
from nkic.program.overlap import Box, Group, Groups, axes_of, hbm_box, tiling
from nkic.program.program import AccessPattern, Instruction, Program, Tensor, View, instructions

# ---- Constants that overflow the dtype to which an instruction converts them --------------------


def beyond_type(row: Row, facts: Facts) -> Violation | None:
    """Return a violation for the first number that becomes infinity, NaN, or another integer."""
    for name, into in row.constants:
        value = facts.operands[name] if name in facts.operands else facts.attributes[name]
        if type(value) is not float and type(value) is not int:
            continue
        dtype = facts.tile(into).dtype if into else FLOAT32
        if dtype.overflows(value):
            return _violation(name, value, dtype)
    return None


def _violation(name: str, value: float, dtype: DType) -> Violation:
    if dtype.is_integer:
        becomes = str(int(dtype.lowest if value < 0 else dtype.highest))
        limits = f"{int(dtype.lowest)} to {int(dtype.highest)}"
        limit, help = f"which holds {limits}", f"use a number from {limits}"
    else:
        sign, largest = "-" if value < 0 else "", f"{dtype.highest:.8g}"
        becomes = f"{sign}infinity" if dtype.has_inf else "NaN"
        meant = f", or float('{sign}inf') if infinity is meant" if dtype.has_inf else ""
        limit, help = f"whose largest finite number is {largest}", f"use {sign}{largest}{meant}"
    text = f"`{name}` is {shown(value)}, which becomes {becomes} in {dtype.name}, {limit}"
    return Violation("constant-overflow", text, name, help)


# --------------------------------------------------------------------------------------------------

EFFICIENT_ROW = 512  # bytes; NKI DMA overview and performance guide: shorter rows waste bandwidth
TINY_ROW = 64  # so short that the cost per row leaves less than a seventh of the bandwidth
SMALL_TRANSFER = 4096  # bytes; a transfer of this size is fast whatever its rows
_Form = tuple[Dims, int]  # of stores that differ in their offsets: dimensions, bytes per element
TILES = (View, AccessPattern)  # a program parsed from its text may already be lowered


def warn(program: Program, groups: Groups, report: Reporter) -> None:
    """Report all warnings, once per source line. `groups` are those that check formed."""
    finder = _Finder(program, report)
    for group in dict.fromkeys(chain(*groups)):
        finder.group(group)
    for body, own in zip(program.cores, groups, strict=True):
        finder.note_accesses(instructions(body), own)
    finder.unused_tensors()
    finder.partly_written_outputs()
    if not report.errors:  # an instruction that was refused may have read the rest
        finder.partly_read_inputs()


@dataclass
class _Finder:
    program: Program
    report: Reporter
    # The offsets of the stores to outputs, and of the loads of inputs, of each form.
    accessed: dict[int, dict[_Form | None, list[int]]] = field(default_factory=dict)
    reported: dict[tuple[str, int], Diagnostic] = field(default_factory=dict)  # by location's id
    warnings: dict[tuple[object, ...], Violation | None] = field(default_factory=dict)
    clean: set[tuple[object, ...]] = field(default_factory=set)  # signatures without warnings

    def __post_init__(self) -> None:
        inputs, outputs = (
            {p.tensor.number for p in parameters}
            for parameters in (self.program.inputs, self.program.outputs)
        )
        # An input that is updated in place, or returned, is neither.
        self.sides = (inputs - outputs, outputs - inputs)

    def group(self, group: Group) -> None:
        """Report the warnings of the first instruction, and count them again for the others."""
        row = group.first.row
        moves = Engine.DMA in row.engines and not row.in_blocks
        if row.warn is None and not moves and not row.constants:
            return
        for diagnostic in self.diagnose(group.first, moves):
            if group.repeats:
                self.report.repeat(diagnostic, group.repeats)

    def diagnose(self, instruction: Instruction, moves: bool) -> tuple[Diagnostic, ...]:
        """Return the warnings of an instruction; most signatures have none."""
        row = instruction.row
        key = (row, instruction.attributes, instruction.engine, *map(seen, instruction.operands))
        if key in self.clean:
            return ()
        warning = self.warn(instruction, key)
        rows = self.dma_rows(instruction) if moves else None
        diagnostics = tuple(
            [diagnostic for diagnostic in (warning, rows) if diagnostic is not None]
        )
        if not diagnostics:
            self.clean.add(key)
        return diagnostics

    def warn(self, instruction: Instruction, key: tuple[object, ...]) -> Diagnostic | None:
        """Report the row's own warning about a legal instruction, once per signature."""
        row = instruction.row
        if row.warn is None and not row.constants:
            return None
        if key not in self.warnings:
            facts = instruction.facts(self.program.target)
            warning = row.warn(facts, len(self.program.cores)) if row.warn else None
            self.warnings[key] = warning or beyond_type(row, facts)
        violation = self.warnings[key]
        if violation is None:
            return None
        return self.complain(
            violation.slug, f"{row.name}: {violation.message}", instruction.at, violation.help
        )

    def complain(self, slug: str, message: str, at: CallChain, help: str) -> Diagnostic:
        diagnostic = self.again(slug, at)
        if diagnostic is None:
            diagnostic = make(slug, message, at, help=help, level=Level.WARNING)
            self.reported[slug, id(at)] = diagnostic
            self.report.add(diagnostic)
        return diagnostic

    def again(self, slug: str, at: CallChain) -> Diagnostic | None:
        """Count a warning already reported at this location, which unrolled loops visit often."""
        diagnostic = self.reported.get((slug, id(at)))
        if diagnostic is not None:
            self.report.add(diagnostic)
        return diagnostic

    # ---- memory ----------------------------------------------------------------------------

    def note_accesses(self, code: Iterable[Instruction], groups: Sequence[Group]) -> None:
        """Record the parts of outputs that `code` writes, and those of inputs that it reads."""
        forms = {group: _accessed(group.first) for group in dict.fromkeys(groups)}
        for instruction, group in zip(code, groups, strict=True):
            for index, writes, form in forms[group]:
                operand: Any = instruction.operands[index]
                number = operand.tensor.number
                if number in self.sides[writes]:
                    offsets = self.accessed.setdefault(number, {}).setdefault(form, [])
                    offsets.append(operand.offset)

    def unused_tensors(self) -> None:
        """Report declarations none of whose tensors is used.

        A loop or an allocator may make several tensors at one location; some may be left over.
        """
        unused = {id(tensor.at): tensor.at for tensor in self.program.tensors}
        for tensor in _used(self.program):
            unused.pop(id(tensor.at), None)
            if not unused:
                return
        tensors = self.program.tensors
        used_spans = {tensor.at.primary for tensor in tensors if id(tensor.at) not in unused}
        for tensor in tensors:
            if id(tensor.at) not in unused or tensor.at.primary in used_spans:
                continue
            # Tensors that nkic's own library leaves unused are not the kernel's fault.
            if not tensor.at.span.path.startswith(SHIPPED):
                text = f"`{tensor.name}` is declared and never used: {_size(tensor)}"
                self.complain("unused-tensor", text, tensor.at, "remove the declaration")

    def partly_written_outputs(self) -> None:
        for number, parameter in enumerate(self.program.outputs):
            tensor = parameter.tensor
            written = self.accessed.get(tensor.number) if tensor.number in self.sides[1] else None
            hole = _hole(tensor, written) if written else None
            if hole is not None:
                text = f"output {number}, `{tensor.name}`, is written only in part: nothing writes "
                help = "write all of it, or return a smaller tensor"
                if self.program.lacks_grid:
                    help = "without a launch grid, nl.program_id(0) is always 0: give the kernel "
                    help += "one with `--grid N`, in Python `kernel[N](…)`"
                self.complain("output-partly-written", text + hole, tensor.at, help)

    def partly_read_inputs(self) -> None:
        """Report inputs of which only a part is read."""
        indirect = {tensor.number for tensor in _sources_of_offsets(self.program)}
        for parameter in self.program.inputs:
            tensor = parameter.tensor
            if tensor.number not in self.sides[0] or tensor.number in indirect:
                continue
            read = self.accessed.get(tensor.number)
            hole = _hole(tensor, read) if read else None
            if hole is not None:
                text = f"input `{parameter.name}` is read only in part: nothing reads {hole}"
                help = "read the rest too, for example in a last, shorter iteration, or pass a "
                self.complain("input-partly-read", text, tensor.at, help + "smaller tensor")

    # ---- speed -----------------------------------------------------------------------------

    def dma_rows(self, instruction: Instruction) -> Diagnostic | None:
        """Warn of short rows. The result depends on the instruction's signature only."""
        for operand in instruction.operands:
            if not isinstance(operand, TILES) or operand.tensor.on_chip:
                continue
            dynamic = operand.dynamic
            if dynamic is not None and dynamic.kind == "vector":
                continue  # one row per index: the tensor decides its length
            rows, length = _rows(_dims(operand), operand.dtype.size)
            if length < EFFICIENT_ROW and rows * length > SMALL_TRANSFER:
                return self.small_rows(instruction, operand.tensor, rows, length)
        return None

    def small_rows(
        self, instruction: Instruction, tensor: Tensor, rows: int, length: int
    ) -> Diagnostic:
        slug = "tiny-dma-rows" if length < TINY_ROW else "small-dma-rows"
        diagnostic = self.again(slug, instruction.at)
        if diagnostic is not None:
            return diagnostic
        text = (
            f"{instruction.row.name}: {grouped(rows)} rows of {plural(length, 'byte')} of "
            f"`{tensor.name}`; rows under {EFFICIENT_ROW} bytes waste DMA bandwidth, since each "
            "costs "
            f"{self.program.target.figures['dma.descriptor_ns']:g} ns besides the time for its "
            "bytes"
        )
        help = "move longer rows and slice them in SBUF, or store the tensor in another layout"
        return self.complain(slug, text, instruction.at, help)


def _accessed(instruction: Instruction) -> list[tuple[int, bool, _Form | None]]:
    """Return the operands in HBM: the index, whether it is written or read, and the form."""
    rules = enumerate(zip(instruction.row.operands, instruction.operands, strict=True))
    return [
        (index, writes, _form(operand))
        for index, (rule, operand) in rules
        if isinstance(operand, TILES) and not operand.tensor.on_chip
        for writes in (False, True)
        if (rule.access.writes if writes else rule.access.reads)
    ]


def _sources_of_offsets(program: Program) -> Iterator[Tensor]:
    for instruction in chain(*map(instructions, program.cores)):
        for operand in instruction.operands:
            if isinstance(operand, TILES) and operand.dynamic is not None:
                source = operand.dynamic.source
                if isinstance(source, TILES):
                    yield source.tensor


def _used(program: Program) -> Iterator[Tensor]:
    """Yield the tensors that parameters and instructions use, some of them several times."""
    for parameter in (*program.inputs, *program.outputs):
        yield parameter.tensor
    for instruction in chain(*map(instructions, program.cores)):
        for operand in instruction.operands:
            if isinstance(operand, TILES):
                yield operand.tensor
    yield from _sources_of_offsets(program)


def _size(tensor: Tensor) -> str:
    memory, sizes = tensor.buffer.value, ", ".join(map(str, tensor.shape))
    per = " per partition" if tensor.on_chip else ""
    return f"{tensor.dtype.name}[{sizes}], {plural(tensor.bytes, 'byte')}{per} of {memory}"


def _form(tile: View | AccessPattern) -> _Form | None:
    return None if tile.dynamic is not None else (_dims(tile), tile.dtype.size)


def _hole(tensor: Tensor, accessed: Mapping[_Form | None, list[int]]) -> str | None:
    """Return the first part of a tensor in HBM that no access covers, or None.

    An access at a run-time offset may cover any part. Most tensors are accessed in tiles of one
    form.
    """
    boxes: set[Box] = set()
    for form, offsets in accessed.items():
        if form is None:
            return None
        tiles = tiling(axes_of(tensor), *form, len(offsets))
        if tiles is not None and tiles.issubset(offsets):
            return None
        boxes |= {hbm_box(tensor, offset, *form) for offset in offsets}
    return first_hole(tuple((0, length) for length in axes_of(tensor)), boxes, tensor.dtype.size)


def _dims(operand: View | AccessPattern) -> Dims:
    """Return the (step, count) pairs of an operand in HBM."""
    if isinstance(operand, AccessPattern):
        return operand.dims
    return tuple(zip(operand.strides, operand.shape, strict=True))


@lru_cache(maxsize=4096)
def _rows(pattern: Dims, size: int) -> tuple[int, int]:
    """Return the contiguous rows of a pattern in HBM, repeated ones once, and the bytes of each."""
    dims = tuple((step, num) for step, num in pattern if step)
    length = run(dims)
    return prod(num for _, num in dims) // length, length * size
