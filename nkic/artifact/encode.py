"""Encoding of all sections except `code`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import chain
from operator import sub
from typing import Any, NamedTuple

import msgpack

from nkic.artifact import container, records
from nkic.artifact.container import (
    REQUIRED,
    VERSION,
    Entry,
    Header,
    Port,
    SectionEntry,
    target_hash,
)
from nkic.artifact.format import (
    LIMITS,
    PLACES_PER_RECORD,
    ROLES,
    SECTION_VERSION,
    CodeRecord,
    Iterations,
    Layout,
    Limits,
    Lines,
    Meta,
    at_most,
    refuse,
)
from nkic.artifact.records import (
    Columns,
    Executable,
    FileRecord,
    Head,
    LoopRecord,
    Operands,
    ParameterRecord,
    PatternRecord,
    PlaceRecord,
    StreamRecord,
    TensorRecord,
    columns_of,
)
from nkic.base.text import printable
from nkic.machine import targets
from nkic.machine.operands import Register, Row
from nkic.machine.patterns import DYNAMIC_KINDS
from nkic.machine.rules import allowed
from nkic.machine.targets import BUFFER_CODES, ENGINE_CODES

_PLACED = int(Layout.PLACED)  # the kind of most records of tensors


def relative(path: str) -> str:
    """Return `path` as a path for files: relative, and never outside the current folder."""
    names = [name for name in path.replace("\\", "/").split("/") if name not in ("", ".")]
    components = ["_" if name == ".." else name for name in names] or ["_"]
    return printable("/".join([components[0].removesuffix(":") or "_", *components[1:]]))


def layout(executable: Executable) -> bytes:
    """Encode the kernel's properties, its tensors and its parameters."""
    e = executable
    kernel = (Layout.KERNEL, printable(e.name), e.target, e.cores, e.semaphores, e.registers)
    inputs = [(Layout.INPUT, printable(p.name), p.tensor) for p in e.inputs]
    outputs = [(Layout.OUTPUT, printable(p.name), p.tensor) for p in e.outputs]
    return _array([kernel, *_tensors(e.tensors), *inputs, *outputs])


def _tensors(tensors: Iterable[TensorRecord]) -> Iterator[tuple[Any, ...]]:
    """Yield the tensors; one that differs from an earlier one only in its byte refers to that."""
    last: dict[tuple[Any, ...], tuple[int, int]] = {}  # index and byte, keyed by all other fields
    for index, t in enumerate(tensors):
        _, dtype, shape, buffer, core, role, partition, byte, _ = t
        kind = (dtype.code, shape, buffer, core, role, partition)
        earlier = last.get(kind)
        if earlier is not None:
            yield (_PLACED, index - earlier[0], byte - earlier[1])
        else:
            codes = (BUFFER_CODES[buffer], core, ROLES.index(role))
            yield (Layout.TENSOR, dtype.code, shape, *codes, partition, byte)
        last[kind] = index, byte


def const(executable: Executable) -> bytes:
    """Encode the contents of constants, in the order of their tensors."""
    ordered = sorted(executable.constants.items())
    return _array([value for constant in ordered for value in constant])


def meta(executable: Executable) -> bytes:
    """Encode information for people: how the kernel was specialised and built."""
    rows = [(Meta.ARGUMENT, *row) for row in executable.arguments.items()]
    rows += [(Meta.FLAG, *row) for row in executable.meta.items()]
    return _array([(kind, printable(key), printable(value)) for kind, key, value in rows])


def src(files: Iterable[FileRecord], embed_source: bool) -> bytes:
    """Encode the source files' names and hashes, and their text if `embed_source`."""
    return _array([item for file in files for item in _file(file, embed_source)])


def _file(file: FileRecord, embed_source: bool) -> tuple[str, bytes, str | None]:
    return relative(file.path), bytes.fromhex(file.sha256), file.text if embed_source else None


def lines(places: tuple[PlaceRecord, ...], columns: Columns) -> bytes:
    """Encode the source places, and the place of each item of the streams."""
    if any(place.caller >= index for index, place in enumerate(places)):
        raise ValueError("a place must come after the place of its caller")
    records = [(Lines.PLACE, *place) for place in places]
    used = [head.place for items in columns.streams for head in items.heads]
    return _array([*records, *((Lines.ITEMS, *chunk) for chunk in _chunks(used))])


def _chunks(values: list[int]) -> Iterator[list[int]]:
    for start in range(0, len(values), PLACES_PER_RECORD):
        yield values[start : start + PLACES_PER_RECORD]


def debug(executable: Executable) -> bytes:
    """Encode the tensors' names and places."""
    names = {name: printable(name) for name in {t.name for t in executable.tensors}}
    return _array([(names[t.name], t.place) for t in executable.tensors])


def iterations(names: tuple[str, ...], columns: Columns) -> bytes:
    """Encode the iterations of Python loops, and the iteration that made each item."""
    texts = [(Iterations.TEXT, printable(text)) for text in names]
    used = list(chain.from_iterable([items.iterations for items in columns.streams]))
    steps = list(map(sub, used, [-1, *used[:-1]]))
    return _array([*texts, *((Iterations.ITEMS, *chunk) for chunk in _chunks(steps))])


def _array(records: Iterable[Any]) -> bytes:
    try:
        encoded: bytes = msgpack.packb(list(records))
    except ValueError as error:  # the limit of msgpack itself: 4 GiB
        refuse("artifact-limit", f"a section is too large: {error}")
    return encoded


# ------------------------------------------------------------------------------------------------
# Encoding of the `code` section. Each distinct operand and attribute is written once.
# Unrolled kernels repeat them: a hundred thousand instructions have a few dozen distinct forms,
# and patterns that differ only in tensor and offset. A pattern is therefore written as a
# difference to the last one of its shape, and the references of an instruction as differences to
# those of the last instruction of its form in the same stream: small numbers, which take one byte
# each.

# The kinds of most records.
_INSTRUCTION, _SLOT, _MOVED = map(int, (CodeRecord.INSTRUCTION, CodeRecord.SLOT, CodeRecord.MOVED))


class _Packed:
    """Packed records in one buffer, which saves 50 bytes per record over separate objects."""

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
        """Raises `ArtifactFailed` above a limit."""
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
        """Write the operands' values; return their references: 0 for None, else 1 + the index."""
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
        return self.forms.add((CodeRecord.FORM, row.opcode, _attributes(row, values)))


def _value(operand: Register | float | int) -> tuple[Any, ...]:
    if isinstance(operand, Register):
        return (CodeRecord.REGISTER, operand.number)
    return (CodeRecord.NUMBER, records.canonical(operand))


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
    return [records.canonical(v) if isinstance(v, float) else v for v in values]


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


# ---- Executable → bytes. Equal executables give equal bytes -------------------------------------


def write(executable: Executable, *, embed_source: bool = False, limits: Limits = LIMITS) -> bytes:
    """Return the bytes of the file. Raises `ArtifactFailed` if a limit of the format is exceeded.

    All other checks are made by `verify`, which emit calls on its result.
    """
    items = sum(len(stream.items) for stream in executable.streams)
    at_most(items, limits.items, "instructions", "loop on the device with dynamic_range")
    at_most(len(executable.tensors), limits.tensors, "tensors")
    at_most(len(executable.inputs), limits.parameters, "inputs")
    at_most(len(executable.outputs), limits.parameters, "outputs")
    at_most(len(executable.streams), limits.streams, "streams")
    at_most(len(executable.files), limits.files, "source files")
    at_most(len(executable.places), limits.places, "source places")
    at_most(len(executable.iterations), limits.places, "iterations of loops")
    at_most(len(executable.arguments) + len(executable.meta), limits.notes, "arguments and flags")
    columns = columns_of(executable)
    code = CodeWriter().section(executable.streams, columns, limits)
    sections = _sections(executable, columns, code, embed_source)
    return container.pack(_header(executable, sections), sections, limits)


def _sections(
    executable: Executable, columns: Columns, code: bytes, embed_source: bool
) -> dict[str, bytes]:
    sections = {
        "layout": layout(executable),
        "const": const(executable),
        "code": code,
        "meta": meta(executable),
        "src": src(executable.files, embed_source),
        "lines": lines(executable.places, columns),
        "debug": debug(executable),
    }
    return sections | (
        {"iterations": iterations(executable.iterations, columns)} if executable.iterations else {}
    )


def _header(executable: Executable, sections: dict[str, bytes]) -> Header:
    target = targets.find(executable.target)
    if target is None:
        raise ValueError(f"unknown target {executable.target!r}")
    return Header(
        fmt=VERSION,
        min_reader=VERSION,
        req=0,
        opt=0,
        producer=printable(executable.meta.get("producer", "")),
        target=executable.target,
        target_hash=target_hash(target),
        id=container.program_id(sections),
        entries=(entry(executable),),
        sections=tuple(section_entry(name, data) for name, data in sections.items()),
    )


def section_entry(name: str, data: bytes) -> SectionEntry:
    """Return the header's entry for a section of this version."""
    flags = REQUIRED if name in container.SEMANTIC else 0
    return SectionEntry(name, SECTION_VERSION, flags, len(data), sha256(data).digest())


def entry(executable: Executable) -> Entry:
    """Return the header's entry for the kernel. The reader compares it with the layout section."""
    ports = [
        tuple(_port(executable, parameter) for parameter in parameters)
        for parameters in (executable.inputs, executable.outputs)
    ]
    return Entry(printable(executable.name), executable.cores, ports[0], ports[1])


def _port(executable: Executable, parameter: ParameterRecord) -> Port:
    tensor = executable.tensors[parameter.tensor]
    return Port(printable(parameter.name), tensor.dtype.name, tensor.shape, tensor.buffer.value)
