"""Checks of PSUM once engines and addresses are decided.

A matmul's result must be within one bank, and must not be accumulated onto data that another
instruction wrote.
"""

from __future__ import annotations

from collections import defaultdict

from nkic.base.diagnostics import Label, Reporter
from nkic.check.stage import call_labels
from nkic.ir.effects import Accesses, accesses_of
from nkic.ir.program import Body, Instruction, Program, Work, instructions
from nkic.ir.tensors import AccessPattern
from nkic.machine.memory import PSUM_BANK_BYTES, Buffer
from nkic.machine.patterns import run
from nkic.machine.psum import (
    History,
    Rectangle,
    Write,
    bank_problem,
    is_matmul,
    restricts_accumulation,
)


def find_banks(placed: Program, report: Reporter) -> None:
    """Report results of the tensor engine that cross banks at their final addresses."""
    reported: set[tuple[int, int]] = set()  # by identity: loops repeat one expression
    for body in placed.cores:
        for instruction in instructions(body):
            if not is_matmul(instruction.engine):
                continue
            for rule, operand in zip(instruction.row.operands, instruction.operands, strict=True):
                key = id(operand), id(instruction.at)
                if rule.one_bank and type(operand) is AccessPattern and key not in reported:
                    reported.add(key)
                    _bank(instruction, rule.name, operand, placed, report)


def _bank(
    instruction: Instruction, name: str, dst: AccessPattern, placed: Program, report: Reporter
) -> None:
    tensor = dst.tensor
    if dst.dynamic is not None or tensor.buffer is not Buffer.PSUM:
        return
    low, high = dst.extent()
    at = placed.addresses[tensor.number].byte
    text = bank_problem(instruction.row, name, at + low, at + high, placed.target)
    if text:
        sizes = ", ".join(map(str, tensor.shape))
        what = f"`{tensor.name}` is {tensor.dtype.name}[{sizes}], from byte {at:,} on"
        report.error(
            "psum-bank",
            f"{instruction.row.name}: {text}",
            instruction.at.primary,
            labels=[Label(tensor.at.primary, what), *call_labels(instruction.at)],
            help=f"write a part that is within one bank: `{tensor.name}` has the columns of a "
            f"bank at multiples of {PSUM_BANK_BYTES // dst.dtype.size}",
        )


def find_foreign_accumulation(lowered: Program, report: Reporter) -> None:
    """Warn of matmuls that accumulate onto data that another instruction wrote."""
    if restricts_accumulation(lowered.target) and any(
        t.buffer is Buffer.PSUM for t in lowered.tensors
    ):
        for body in lowered.cores:
            _follow(body, lowered, report)


def _follow(body: Body, lowered: Program, report: Reporter) -> None:
    """Walk a body in program order, with one iteration of each device loop."""
    accesses = accesses_of(body, lowered.target)
    foreign = _written_by_others(body, accesses)
    if not foreign:
        return
    histories: dict[int, History[Instruction]] = defaultdict(History)
    for instruction in instructions(body):
        for pattern, reads, writes in accesses.touches(instruction):
            tensor = pattern.tensor
            if not writes or tensor.number not in foreign:
                continue
            area, history = _area(pattern), histories[tensor.number]
            if is_matmul(instruction.engine):
                writer = _foreign_writer(history, pattern, area) if reads else None
                if writer is not None:
                    _warn(instruction, writer, tensor.name, lowered, report)
                history.note(Write(area, None))
            elif pattern.dynamic is None and _is_dense(pattern, area):
                history.note(Write(area, instruction))


def _written_by_others(body: Body, accesses: Accesses) -> set[int]:
    """Return the numbers of the PSUM tensors that an instruction other than a matmul writes."""
    found: set[int] = set()
    others: set[Work] = set()  # kinds of work that write no PSUM, as most do
    for instruction in instructions(body):
        work = instruction.work
        if work in others or is_matmul(instruction.engine):
            continue
        written = accesses.written_by(instruction)
        numbers = [p.tensor.number for p in written if p.tensor.buffer is Buffer.PSUM]
        found.update(numbers)
        if not numbers and work is not None:
            others.add(work)
    return found


def _area(pattern: AccessPattern) -> Rectangle:
    """Return all that a pattern may access: whole partitions if its offset is dynamic."""
    low, high = (0, pattern.tensor.bytes) if pattern.dynamic else pattern.extent()
    return Rectangle(pattern.start, pattern.start + pattern.partitions, low, high)


def _is_dense(pattern: AccessPattern, area: Rectangle) -> bool:
    return run(pattern.dims) * pattern.dtype.size == area.right - area.left


def _foreign_writer(
    history: History[Instruction], pattern: AccessPattern, area: Rectangle
) -> Instruction | None:
    """Return an instruction other than a matmul that wrote the destination, or None.

    For a dynamic offset, only if such instructions wrote all of the tensor; `nki-run` knows the
    offset.
    """
    if pattern.dynamic is not None:
        return history.foreign_writer_everywhere(area)
    return next(iter(history.foreign_writers(area)), None)


def _warn(
    instruction: Instruction, writer: Instruction, name: str, lowered: Program, report: Reporter
) -> None:
    report.warning(
        "accumulates-onto-data",
        f"{instruction.row.name} accumulates onto what {writer.row.name} wrote into `{name}`, "
        "which is undefined "
        f"on {lowered.target.name}: an accumulation must begin with a matmul",
        instruction.at.primary,
        labels=[
            Label(writer.at.primary, f"{writer.row.name} writes it here"),
            *call_labels(instruction.at),
        ],
        help="let the first matmul overwrite with accumulate=False; add the former values "
        "with nisa.tensor_tensor afterwards",
    )
