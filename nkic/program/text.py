"""The text form of programs, dependence graphs and schedules, which `read_text` parses.

    program add on trn2
    %0 a: float16[128, 512] shared_hbm @k.py:3:5-3:9
    %1 t: float16[128, 512] sbuf at (0, 2048) @k.py:4:5-4:30
    input a = %0
    core
      #0 vector reciprocal(dst=%1[0+128, 0; 1x512], data=%1[0+128, 0; 1x512]; ) @k.py:5:5-5:20
      loop 1 $0 = 0 to 4 by 1 @k.py:6:5-6:30
        ...
      end

An access pattern is start+partitions, offset; then step x num, outermost first. A view, used before
lower, is written %1{offset; shape; strides}. `:dtype` follows if a pattern has another element type
than its tensor. `<` separates a source location from that of its caller.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from nkic.base.source import CallChain
from nkic.machine.operands import Register
from nkic.program.program import (
    AccessPattern,
    Body,
    DependenceGraph,
    Instruction,
    Loop,
    Operand,
    Program,
    Schedule,
    Slot,
    StreamItem,
    Tensor,
    View,
)

_SPECIAL = re.compile(r"[^\w .=-]", re.ASCII)


def program_text(program: Program) -> str:
    lines = [f"program {program.name} on {program.target.name}"]
    lines += [f"note {key} = {value!r}" for key, value in program.notes.items()]
    lines += [f"argument {key} = {value!r}" for key, value in program.arguments.items()]
    lines += [_tensor(t, program) for t in program.tensors]
    lines += [f"input {p.name} = %{p.tensor.number}" for p in program.inputs]
    lines += [f"output {p.name} = %{p.tensor.number}" for p in program.outputs]
    lines += [f"const %{n} = {data.hex()}" for n, data in sorted(program.constants.items())]
    for body in program.cores:
        lines += ["core", *_body(body, 1)]
    return "\n".join(lines) + "\n"


def graph_text(graph: DependenceGraph) -> str:
    """Return one line per waiting instruction: `#5 < raw #3, war #2, raw #5 previous`."""
    lines = []
    for number, edges in sorted(graph.edges.items()):
        texts = [f"{e.kind} #{e.source}{' previous' if e.distance else ''}" for e in edges]
        lines.append(f"#{number} < {', '.join(texts)}")
    for ordinal, table in (("first", graph.first_touches), ("last", graph.last_touches)):
        for tensor, numbers in sorted(table.items()):
            lines.append(f"%{tensor} {ordinal} touched by {', '.join(f'#{n}' for n in numbers)}")
    return "\n".join(lines) + "\n"


def schedule_text(schedule: Schedule) -> str:
    """Return the program, then every stream with its waits (semaphore x count) and signals."""
    lines = [program_text(schedule.program).rstrip("\n")]
    lines.append(f"{'serial ' * schedule.serial}schedule of {schedule.estimate_ns!r} ns")
    for number, core in enumerate(schedule.cores):
        for stream in core:
            lines += [f"stream {number} {stream.id}", *_items(stream.items, 1)]
    return "\n".join(lines) + "\n"


def _items(items: tuple[StreamItem, ...], depth: int) -> Iterator[str]:
    pad = "  " * depth
    for item in items:
        if isinstance(item, Slot):
            yield pad + _slot(item)
        else:
            yield f"{pad}loop {item.loop.number}"
            yield from _items(item.items, depth + 1)
            yield f"{pad}end"


def _slot(slot: Slot) -> str:
    pieces = [f"#{slot.instruction.number}" if slot.instruction is not None else "-"]
    if slot.waits:
        pieces.append("wait " + ", ".join(f"{w.semaphore}x{w.amount}" for w in slot.waits))
    if slot.signals:
        pieces.append("signal " + ", ".join(map(str, slot.signals)))
    return " ".join(pieces)


def _tensor(tensor: Tensor, program: Program) -> str:
    sizes = ", ".join(map(str, tensor.shape))
    text = f"%{tensor.number} {tensor.name}: {tensor.dtype.name}[{sizes}] {tensor.buffer.value}"
    if tensor.fixed is not None:
        text += f" fixed {tuple(tensor.fixed)}"
    if tensor.scope:
        text += f" scope {tensor.scope}"
    if tensor.number in program.addresses:
        text += f" at {tuple(program.addresses[tensor.number])}"
    return text + _place(tensor.at)


def _place(at: CallChain) -> str:
    spans = at.frames()
    return " @" + " < ".join(
        f"{s.path}:{s.line}:{s.column}-{s.end_line}:{s.end_column}" for s in spans
    )


def _body(body: Body, depth: int) -> Iterator[str]:
    pad = "  " * depth
    for item in body:
        if isinstance(item, Instruction):
            yield pad + instruction_text(item) + _place(item.at)
        else:
            yield pad + _loop(item) + _place(item.at)
            yield from _body(item.body, depth + 1)
            yield pad + "end"


def _loop(loop: Loop) -> str:
    if loop.condition is not None:
        return f"loop {loop.number} while ${loop.condition.number}"
    counter = loop.counter.number if loop.counter is not None else 0
    start, stop = _operand(loop.start), _operand(loop.stop)
    return f"loop {loop.number} ${counter} = {start} to {stop} by {loop.step}"


def instruction_text(instruction: Instruction) -> str:
    """Return the text form of an instruction, without its source location."""
    row = instruction.row
    operands = ", ".join(
        f"{rule.name}={_operand(value)}"
        for rule, value in zip(row.operands, instruction.operands, strict=True)
    )
    attributes = ", ".join(
        f"{rule.name}={quoted(value) if isinstance(value, str) else repr(value)}"
        for rule, value in zip(row.attributes, instruction.attributes, strict=True)
    )
    engine = instruction.engine.value if instruction.engine is not None else "any"
    text = f"#{instruction.number} {engine} {row.name}({operands}; {attributes})"
    if instruction.name:
        text += f" name {quoted(instruction.name)}"
    if instruction.after:
        text += f" after {instruction.after}"
    if instruction.pinned:
        text += f" pinned {instruction.pinned}"
    return text + (f" iteration {quoted(instruction.iterations)}" if instruction.iterations else "")


def quoted(text: str) -> str:
    """Quote `text`, with everything escaped that the parser would interpret."""
    return "'" + _SPECIAL.sub(lambda match: f"\\U{ord(match[0]):08x}", text) + "'"


def _operand(operand: Operand) -> str:
    if isinstance(operand, AccessPattern):
        return operand.notation(operand.tensor.number) + _suffix(operand)
    if isinstance(operand, View):
        text = f"%{operand.tensor.number}{{{operand.offset}; {operand.shape}; {operand.strides}}}"
        return text + _suffix(operand)
    if isinstance(operand, Register):
        return f"${operand.number}"
    return repr(operand)


def _suffix(operand: AccessPattern | View) -> str:
    text = f":{operand.dtype.name}" if operand.dtype is not operand.tensor.dtype else ""
    dynamic = operand.dynamic
    return f"{text} {dynamic.notation(_operand(dynamic.source))}" if dynamic is not None else text
