"""The text form of records, which the assembler parses; described in docs/neff.md.

    tensor_scalar dst=%4[0+128, 0; 1x512]:bfloat16 data=%3[0+128, 0; 1x512]:float32 …

A pattern is its tensor's number, followed in brackets by partitions as start+count (on chip only),
the offset, and step x num of each dimension, outermost first; then the dtype. Programs of the
compiler use the same form (`ir.text`).
"""

from __future__ import annotations

import json
from typing import Any

from nkic.machine.facts import Register
from nkic.machine.operands import Row
from nkic.neff.places import source_of
from nkic.neff.records import (
    Executable,
    InstructionRecord,
    LoopRecord,
    OperandRecord,
    PatternRecord,
    TensorRecord,
)


def quoted(value: str) -> str:
    """Return a string in double quotes, in ASCII, on one line."""
    return json.dumps(value)


def value(value: Any) -> str:
    """Return the text of an attribute's or a number operand's value."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)


_value = value  # for functions whose parameter shadows it


def operand(operand: OperandRecord) -> str:
    """Return the text of an operand."""
    if isinstance(operand, PatternRecord):
        return pattern(operand)
    return register(operand) if isinstance(operand, Register) else value(operand)


def register(register: Register) -> str:
    """Return the text of a register: $0."""
    return f"${register.number}"


def pattern(p: PatternRecord) -> str:
    """Return the text of a pattern, with the source of a run-time offset by its index: +3."""
    text = f"{p.notation(p.tensor)}:{p.dtype.name}"
    return f"{text} {p.dynamic.notation(f'+{p.dynamic.source}')}" if p.dynamic is not None else text


def instruction(item: InstructionRecord, *, full: bool = False) -> str:
    """Return the text of an instruction or slot; unless `full`, defaults are omitted."""
    parts = [item.row.name, *_named(item, item.row, full)] if item.row else ["slot"]
    if item.waits:
        parts += ["wait", *(f"s{semaphore}>={count}" for semaphore, count in item.waits)]
    if item.signals:
        parts += ["signal", *(f"s{semaphore}" for semaphore in item.signals)]
    return " ".join(parts)


def _named(item: InstructionRecord, row: Row, full: bool) -> list[str]:
    names = [o.name for o in row.operands]
    names += [f"+{index}" for index in range(len(names), len(item.operands))]
    operands = zip(names, item.operands, strict=False)
    shown = [f"{name}={operand(v)}" for name, v in operands if full or v is not None]
    for attribute, v in zip(row.attributes, item.attributes, strict=False):
        if full or _differ(v, _default(attribute.default)):
            shown.append(f"{attribute.name}={value(v)}")
    return shown


def _differ(first: Any, second: Any) -> bool:
    """Return whether the values differ as text."""
    if first is second:
        return False
    plain = type(first) is type(second) and isinstance(first, str | int)  # 0.0 differs from -0.0
    return first != second if plain else value(first) != value(second)


def _default(default: Any) -> Any:
    return None if default is ... else default


def loop(item: LoopRecord, *, full: bool = False) -> str:
    """Return the head of a loop."""
    parts = ["loop"]
    if item.counter is not None:
        parts.append(register(item.counter))
    if full or item.condition is None:
        start, stop = operand(item.start), operand(item.stop)
        parts.append(f"from {start} to {stop} step {item.step}")
    if item.condition is not None:
        parts.append(f"while {register(item.condition)}")
    return " ".join(parts)


def tensor(index: int, t: TensorRecord) -> str:
    """Return the text of a tensor, without its place."""
    sizes = ", ".join(map(str, t.shape))
    parts = [f"%{index} {quoted(t.name)} {t.dtype.name}[{sizes}] {t.buffer.value} {t.role}"]
    if t.core >= 0:
        parts.append(f"core {t.core}")
    if t.buffer.on_chip:
        parts.append(f"at {t.partition}:{t.byte}")
    return " ".join(parts)


def source(executable: Executable, place: int) -> str:
    """Return a source place as path and line, preferring user code; empty if it is unknown."""
    span = source_of(executable, place)
    return f"{span.path}:{span.line}" if span is not None else ""
