"""How records look as text. The assembler reads every form back; docs/neff.md describes them.

    tensor_scalar dst=%4[p0:128, 0:512:1] bfloat16 data=%3[p0:128, 0:512:1] float32 …

A pattern is its tensor's number, then in brackets: partitions as start:count (on chip only),
offset:num:step of the outermost dimension, num:step of each further one; then the dtype.
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
    """A string in double quotes, in ASCII, on one line."""
    return json.dumps(value)


def value(value: Any) -> str:
    """An attribute's or a number operand's value."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)


_value = value  # where the parameter hides the function


def operand(operand: OperandRecord) -> str:
    """An operand."""
    if isinstance(operand, PatternRecord):
        return pattern(operand)
    return register(operand) if isinstance(operand, Register) else value(operand)


def register(register: Register) -> str:
    """A register: r0."""
    return f"r{register.number}"


def pattern(p: PatternRecord) -> str:
    """An access pattern."""
    partitions = [f"p{p.start}:{p.partitions}"] if p.partitions else []
    dims = [f"{num}:{step}" for step, num in p.dims]
    free = [f"{p.offset}:{dims[0]}", *dims[1:]] if dims else [f"{p.offset}"]
    static = f"%{p.tensor}[{', '.join(partitions + free)}] {p.dtype.name}"
    if p.dynamic is None:
        return static
    kind, source, stride, limit, axis = p.dynamic
    return f"{static} +{kind}(${source} stride={stride} limit={limit} axis={axis})"


def instruction(item: InstructionRecord, *, full: bool = False) -> str:
    """An instruction or an empty slot; unless `full`, without what is absent or default."""
    words = [item.row.name, *_named(item, item.row, full)] if item.row else ["slot"]
    if item.waits:
        words += ["wait", *(f"s{semaphore}>={count}" for semaphore, count in item.waits)]
    if item.signals:
        words += ["signal", *(f"s{semaphore}" for semaphore in item.signals)]
    return " ".join(words)


def _named(item: InstructionRecord, row: Row, full: bool) -> list[str]:
    names = [o.name for o in row.operands]
    names += [f"${index}" for index in range(len(names), len(item.operands))]
    operands = zip(names, item.operands, strict=False)
    shown = [f"{name}={operand(v)}" for name, v in operands if full or v is not None]
    for attribute, v in zip(row.attributes, item.attributes, strict=False):
        if full or value(v) != value(_default(attribute.default)):
            shown.append(f"{attribute.name}={value(v)}")
    return shown


def _default(default: Any) -> Any:
    return None if default is ... else default


def loop(item: LoopRecord, *, full: bool = False) -> str:
    """The head of a loop."""
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
    """A tensor, without its place."""
    sizes = ", ".join(map(str, t.shape))
    words = [f"%{index} {quoted(t.name)} {t.dtype.name}[{sizes}] {t.buffer.value} {t.role}"]
    if t.core >= 0:
        words.append(f"core {t.core}")
    if t.buffer.on_chip:
        words.append(f"at {t.partition}:{t.byte}")
    return " ".join(words)


def source(executable: Executable, place: int) -> str:
    """A source place as people write it, their own where there is one; nothing if the file does
    not tell.
    """
    if not 0 <= place < len(executable.places):
        return ""
    found: PlaceRecord = executable.places[users(executable, place)]
    return f"{executable.files[found.file].path}:{found.line}"
