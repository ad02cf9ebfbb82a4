"""Encoding of the `code` section. Each distinct operand and attribute is written once.

Unrolled kernels repeat them: a hundred thousand instructions have a few dozen distinct forms, and
patterns that differ only in tensor and offset. A pattern is therefore written as a difference to
the last one of its shape, and the references of an instruction as differences to those of the last
instruction of its form in the same stream: small numbers, which take one byte each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import sub
from typing import Any, NamedTuple

import msgpack

from nkic.machine.arguments import allowed
from nkic.machine.engines import ENGINE_CODES
from nkic.machine.facts import Register
from nkic.machine.operands import Row
from nkic.neff import attributes
from nkic.neff.columns import Columns, Head, Operands
from nkic.neff.failures import at_most
from nkic.neff.layout import DYNAMIC_KINDS, CodeRecord
from nkic.neff.limits import Limits
from nkic.neff.records import LoopRecord, PatternRecord, StreamRecord

# The kinds of most records.
_INSTRUCTION, _SLOT, _MOVED = map(int, (CodeRecord.INSTRUCTION, CodeRecord.SLOT, CodeRecord.MOVED))


class _Packed:
    """Packed records in one buffer, which saves 50 bytes per record over separate objects.

    `pack` appends a record.
    """

    def __init__(self) -> None:
        self._packer = msgpack.Packer(autoreset=False)
        self.pack: Callable[[Any], None] = self._packer.pack

    def __bytes__(self) -> bytes:
        content: bytes = self._packer.bytes()
        return content


class _Pool(_Packed):
    """Interned values in order of first use, compared by their bytes: 1 and 1.0 differ."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self._index: dict[bytes, int] = {}
        self._alone: Callable[[Any], bytes] = msgpack.Packer().pack

    def add(self, value: tuple[Any, ...]) -> int:
        """Return the index of `value`, appending it if it is new."""
        encoded = self._alone(value)
        number = self._index.get(encoded)
        if number is None:
            number = self._index[encoded] = self.count
            self.pack(value)
            self.count += 1
        return number


class _Shape:
    """Patterns that differ only in tensor and offset: their references, and the last pattern."""

    __slots__ = ("last", "numbers", "offset", "tensor")

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}  # keyed by tensor and offset, combined in one number
        self.last = self.tensor = self.offset = 0


class _Frame(NamedTuple):
    """What items of one head have in common in the section."""

    form: int  # -1 for an empty slot
    operands: int  # their number
    waits: Sequence[int]
    signals: tuple[int, ...]


class CodeWriter:
    """Collects the records of one executable's streams."""

    def __init__(self) -> None:
        self.values = _Pool()
        self.forms = _Pool()
        self.frames: dict[Head, _Frame] = {}
        self.items = _Packed()
        self.count = 0  # of streams and items

    def section(self, streams: Sequence[StreamRecord], columns: Columns, limits: Limits) -> bytes:
        """Return the section's bytes. Raises `ArtifactFailed` above a limit."""
        number_of = self._numbers(columns.operands).__getitem__
        for stream, items in zip(streams, columns.streams, strict=True):
            self._stream(stream, items.heads, list(map(number_of, items.references)))
        at_most(self.values.count, limits.values, "different operands")
        at_most(self.forms.count, limits.forms, "different pairs of opcode and attributes")
        count = self.values.count + self.forms.count + self.count
        head: bytes = msgpack.Packer().pack_array_header(count)
        return b"".join((head, bytes(self.values), bytes(self.forms), bytes(self.items)))

    def _stream(
        self, stream: StreamRecord, heads: Sequence[Head | LoopRecord], operands: list[int]
    ) -> None:
        """Write a stream, given the references of the operands of all its items."""
        pack, frames = self.items.pack, self.frames
        code = ENGINE_CODES[stream.engine]
        pack((CodeRecord.STREAM, stream.core, code, stream.queue, len(heads)))
        self.count += 1 + len(heads)
        before: dict[int, list[int]] = {}  # references of the last instruction of each form
        at = 0
        for head in heads:
            if isinstance(head, LoopRecord):
                pack(_loop(head))
                continue
            form, count, waits, signals = frames.get(head) or self._frame(head)
            if form < 0:
                pack((_SLOT, waits, signals))
                continue
            references, at = operands[at : at + count], at + count
            previous, before[form] = before.get(form, ()), references
            is_alike = len(previous) == count
            differences = list(map(sub, references, previous)) if is_alike else references
            pack((_INSTRUCTION, form, differences, waits, signals))

    def _frame(self, head: Head) -> _Frame:
        """Return the frame of a head that was not seen before."""
        form = -1 if head.row is None else self._form(head.row, head.attributes)
        waits = head.waits
        flat = waits[0] if len(waits) == 1 else [n for wait in waits for n in wait]
        frame = self.frames[head] = _Frame(form, head.count, flat, head.signals)
        return frame

    def _numbers(self, operands: Operands) -> list[int]:
        """Write the values of operands, and return the reference of each: 0 for None, else 1 + the
        index of its value.
        """
        shapes: list[_Shape | None] = [None] * len(operands.patterns)
        values, pack = self.values, self.values.pack
        numbers: list[int] = []
        columns = zip(operands.shapes, operands.tensors, operands.offsets, strict=True)
        for index, (its_shape, tensor, offset) in enumerate(columns):
            if its_shape < 0:
                operand = operands.others[index]
                numbers.append(0 if operand is None else 1 + values.add(_value(operand)))
                continue
            shape, position = shapes[its_shape], offset << 32 | tensor
            number = values.count + 1
            if shape is None:
                shape = shapes[its_shape] = _Shape()
                pack(_pattern(operands.patterns[its_shape]))
            elif position in shape.numbers:
                numbers.append(shape.numbers[position])
                continue
            else:
                moved = (tensor - shape.tensor, offset - shape.offset)
                pack((_MOVED, number - shape.last, *moved))
            shape.last, shape.tensor, shape.offset = number, tensor, offset
            values.count = shape.numbers[position] = number
            numbers.append(number)
        return numbers

    def _form(self, row: Row, values: tuple[Any, ...]) -> int:
        """Return the index of a form."""
        return self.forms.add((CodeRecord.FORM, row.opcode, _attributes(row, values)))


def _value(operand: Register | float | int) -> tuple[Any, ...]:
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
    """Return the values. Raises ValueError for an invalid one, which is a compiler bug."""
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
