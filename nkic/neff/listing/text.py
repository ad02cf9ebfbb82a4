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
from nkic.neff.places import users
from nkic.neff.records import (
    Executable,
    InstructionRecord,
    LoopRecord,
    OperandRecord,
    PatternRecord,
    PlaceRecord,
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
    words = [item.row.name, *_named(item, item.row, full)] if item.row else ["slot"]
    if item.waits:
        words += ["wait", *(f"s{semaphore}>={count}" for semaphore, count in item.waits)]
    if item.signals:
        words += ["signal", *(f"s{semaphore}" for semaphore in item.signals)]
    return " ".join(words)


def _named(item: InstructionRecord, row: Row, full: bool) -> list[str]:
    names = [o.name for o in row.operands]
    names += [f"+{index}" for index in range(len(names), len(item.operands))]
    operands = zip(names, item.operands, strict=False)
    shown = [f"{name}={operand(v)}" for name, v in operands if full or v is not None]
    for attribute, v in zip(row.attributes, item.attributes, strict=False):
        if full or _differ(v, _default(attribute.default)):
            shown.append(f"{attribute.name}={value(v)}")
    return shown


def _differ(one: Any, other: Any) -> bool:
    """Return whether the values differ as text."""
    if one is other:
        return False
    plain = type(one) is type(other) and isinstance(one, str | int)  # 0.0 differs from -0.0
    return one != other if plain else value(one) != value(other)


def _default(default: Any) -> Any:
    return None if default is ... else default


def loop(item: LoopRecord, *, full: bool = False) -> str:
    """Return the head of a loop."""
    words = ["loop"]
    if item.counter is not None:
        words.append(register(item.counter))
    if full or item.condition is None:
        start, stop = operand(item.start), operand(item.stop)
        words.append(f"from {start} to {stop} step {item.step}")
    if item.condition is not None:
        words.append(f"while {register(item.condition)}")
    return " ".join(words)


def tensor(index: int, t: TensorRecord) -> str:
    """Return the text of a tensor, without its place."""
    sizes = ", ".join(map(str, t.shape))
    words = [f"%{index} {quoted(t.name)} {t.dtype.name}[{sizes}] {t.buffer.value} {t.role}"]
    if t.core >= 0:
        words.append(f"core {t.core}")
    if t.buffer.on_chip:
        words.append(f"at {t.partition}:{t.byte}")
    return " ".join(words)


def source(executable: Executable, place: int) -> str:
    """Return a source place as path and line, preferring user code; empty if it is unknown."""
    if not 0 <= place < len(executable.places):
        return ""
    found: PlaceRecord = executable.places[users(executable, place)]
    return f"{executable.files[found.file].path}:{found.line}"
