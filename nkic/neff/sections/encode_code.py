"""The `code` section's bytes. Operands and attributes are written once each and referred to.

Unrolled kernels repeat them: a hundred thousand instructions have a few dozen different forms, and
patterns that differ in their tensor and offset alone. So a pattern is written as the last one of
its shape, moved, and what an instruction refers to as its distance from what the last one of its
form in the same stream referred to: small numbers, which take a byte.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import sub
from typing import Any

import msgpack

from nkic.machine.arguments import allowed
from nkic.machine.engines import ENGINE_CODES
from nkic.machine.facts import Register
from nkic.machine.operands import Row
from nkic.neff import attributes
from nkic.neff.failures import at_most
from nkic.neff.layout import DYNAMIC_KINDS, CodeRecord
from nkic.neff.limits import Limits
from nkic.neff.records import (
    Executable,
    InstructionRecord,
    LoopRecord,
    OperandRecord,
    PatternRecord,
    StreamRecord,
)

_INSTRUCTION, _MOVED = int(CodeRecord.INSTRUCTION), int(CodeRecord.MOVED)  # of most records


class _Pool:
    """Encoded values in order of first use. Equal means equal bytes: 1 and 1.0 are two."""

    def __init__(self) -> None:
        self.all: list[bytes] = []
        self._index: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self.all)

    def add(self, encoded: bytes) -> int:
        """The number of `encoded`, counted from 0."""
        number = self._index.get(encoded)
        if number is None:
            number = self._index[encoded] = self.append(encoded)
        return number

    def append(self, encoded: bytes) -> int:
        """The number of `encoded`, which is another value than all before it."""
        self.all.append(encoded)
        return len(self.all) - 1


class _Shape:
    """Patterns that differ in tensor and offset alone: their references, and the last of them."""

    __slots__ = ("last", "numbers", "offset", "tensor")

    def __init__(self, number: int, p: PatternRecord) -> None:
        self.numbers: dict[tuple[int, int], int] = {}
        self.add(number, p)

    def add(self, number: int, p: PatternRecord) -> None:
        self.last, self.tensor, self.offset = number, p.tensor, p.offset
        self.numbers[p.tensor, p.offset] = number


class CodeWriter:
    """Collects the records of one executable's streams."""

    def __init__(self) -> None:
        self._pack: Callable[[Any], bytes] = msgpack.Packer().pack
        self.values = _Pool()
        self.forms = _Pool()
        # Emit shares objects, so most are found by identity; they live as long as the writer.
        self._value_ids: dict[int, int] = {}
        self._form_ids: dict[tuple[int, int], int] = {}
        self._shapes: dict[tuple[Any, ...], _Shape] = {}
        self._before: dict[int, list[int]] = {}  # operands of the last of a form in the stream
        self.items: list[bytes] = []

    def section(self, executable: Executable, limits: Limits) -> bytes:
        """The section's content. Raises `ArtifactFailed` above a limit."""
        for stream in executable.streams:
            self._stream(stream)
        at_most(len(self.values), limits.values, "different operands")
        at_most(len(self.forms), limits.forms, "different pairs of opcode and attributes")
        records = [*self.values.all, *self.forms.all, *self.items]
        head: bytes = msgpack.Packer().pack_array_header(len(records))
        return head + b"".join(records)

    def _stream(self, stream: StreamRecord) -> None:
        code = ENGINE_CODES[stream.engine]
        record = (CodeRecord.STREAM, stream.core, code, stream.queue, len(stream.items))
        self.items.append(self._pack(record))
        self._before = {}
        for item in stream.items:
            if isinstance(item, LoopRecord):
                self.items.append(self._pack(_loop(item)))
            else:
                self.items.append(self._instruction(item))

    def _instruction(self, item: InstructionRecord) -> bytes:
        waits = [n for wait in item.waits for n in wait]
        if item.row is None:
            return self._pack((CodeRecord.SLOT, waits, item.signals))
        known = self._value_ids
        operands = [known.get(id(o)) or self._value(o) for o in item.operands]
        form = self._form(item.row, item.attributes)
        before = self._before.get(form, ())
        self._before[form] = operands
        moved = list(map(sub, operands, before)) if len(before) == len(operands) else operands
        return self._pack((_INSTRUCTION, form, moved, waits, item.signals))

    def _value(self, operand: OperandRecord) -> int:
        """0 for none, else 1 + the number of the value, of an operand not met before."""
        if operand is None:
            return 0
        if isinstance(operand, PatternRecord):
            number = self._pattern(operand)
        else:
            number = 1 + self.values.add(self._pack(_value(operand)))
        self._value_ids[id(operand)] = number
        return number

    def _pattern(self, p: PatternRecord) -> int:
        tensor, dtype, start, partitions, offset, dims, dynamic = p
        key = (dtype.code, start, partitions, dims, dynamic)
        shape = self._shapes.get(key)
        if shape is None:
            number = 1 + self.values.append(self._pack(_pattern(p)))
            self._shapes[key] = _Shape(number, p)
            return number
        known = shape.numbers.get((tensor, offset))
        if known is not None:
            return known
        number = len(self.values) + 1
        steps = (_MOVED, number - shape.last, tensor - shape.tensor, offset - shape.offset)
        self.values.append(self._pack(steps))
        shape.add(number, p)
        return number

    def _form(self, row: Row, values: tuple[Any, ...]) -> int:
        key = (id(row), id(values))
        number = self._form_ids.get(key)
        if number is None:
            record = (CodeRecord.FORM, row.opcode, _attributes(row, values))
            number = self._form_ids[key] = self.forms.add(self._pack(record))
        return number


def _value(operand: PatternRecord | Register | float | int) -> tuple[Any, ...]:
    if isinstance(operand, PatternRecord):
        return _pattern(operand)
    if isinstance(operand, Register):
        return (CodeRecord.REGISTER, operand.number)
    return (CodeRecord.NUMBER, attributes.canonical(operand))


def _pattern(p: PatternRecord) -> tuple[Any, ...]:
    dims = [n for dim in p.dims for n in dim]
    static = (CodeRecord.PATTERN, p.tensor, p.dtype.code, p.start, p.partitions, p.offset, dims)
    if p.dynamic is None:
        return static
    kind, *rest = p.dynamic
    return (*static, DYNAMIC_KINDS.index(kind), *rest)


def _attributes(row: Row, values: tuple[Any, ...]) -> list[Any]:
    """The values, checked: a wrong one here is a bug of the compiler."""
    for attribute, value in zip(row.attributes, values, strict=True):
        if not allowed(attribute, value):
            raise ValueError(f"{row.name}: attribute {attribute.name} cannot be {value!r}")
    return [attributes.canonical(v) if isinstance(v, float) else v for v in values]


def _loop(loop: LoopRecord) -> tuple[Any, ...]:
    return (
        CodeRecord.LOOP,
        loop.length,
        _number(loop.counter),
        _bound(loop.start),
        _bound(loop.stop),
        loop.step,
        _number(loop.condition),
    )


def _number(register: Register | None) -> int | None:
    return None if register is None else register.number


def _bound(bound: int | Register) -> int | tuple[int]:
    return bound if isinstance(bound, int) else (bound.number,)
