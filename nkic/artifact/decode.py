"""Sections → executable. Optional sections may be absent; so are names and places then."""

from __future__ import annotations

from array import array as compact_array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from itertools import accumulate, chain, repeat
from operator import add
from typing import Any

import msgpack

from nkic.artifact import records
from nkic.artifact.container import Section
from nkic.artifact.format import (
    INT32,
    INT64,
    PLACES_PER_RECORD,
    ROLES,
    CodeRecord,
    Iterations,
    Layout,
    Limits,
    Lines,
    Malformed,
    Meta,
    array,
    binary,
    dtype_of,
    fields,
    integer,
    integers,
    kind_of,
    refuse,
    shown,
    text,
)
from nkic.artifact.records import (
    Executable,
    FileRecord,
    InstructionRecord,
    LoopRecord,
    OffsetRecord,
    OperandRecord,
    ParameterRecord,
    PatternRecord,
    PlaceRecord,
    StreamRecord,
    TensorRecord,
)
from nkic.base.text import clean
from nkic.machine.operands import Register, Row
from nkic.machine.patterns import DYNAMIC_KINDS
from nkic.machine.targets import BUFFER_OF_CODE, ENGINE_OF_CODE

# ---- Streaming decoder of a section's records, which bounds memory for hostile files ------------
# A section is one msgpack array. Its head is decoded here; each record is decoded under small
# limits, and must be the canonical encoding of its value, which excludes long forms of integers,
# float32, and every other redundant encoding. Without limits, two megabytes of empty arrays would
# become more than a hundred megabytes of Python objects.

_ARRAY_HEADS = {0xDC: (2, 16), 0xDD: (4, 1 << 16)}  # width of an array's count, and its minimum


class _Window:
    """A section as a readable file, without a copy."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = 0

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes, or fewer at the end."""
        start, self._at = self._at, self._at + size
        return bytes(self._data[start : self._at])


class Records:
    """An iterable of a section's records.

    `width` limits arrays within a record, `largest` the bytes of one record; both bound the memory
    that a hostile file can use.
    """

    def __init__(self, section: Section, *, count: int, width: int, largest: int) -> None:
        self.name = section.entry.name
        self._data = section.data
        self._base = section.offset
        self.start = 0  # of the current record, in the section
        with self.located():
            self.count = self._head()
            if self.count > count:
                text = f"{self.count:,} records; the limit is {count:,}"
                raise Malformed(text, "artifact-limit")
            if self.count > len(self._data) - self.start:
                raise Malformed(f"{self.count:,} records declared in {len(self._data):,} bytes")
        self._width = width
        self._largest = largest

    def _head(self) -> int:
        data = self._data
        first = data[0] if len(data) else 0xC0
        if 0x90 <= first <= 0x9F:
            self.start = 1
            return first - 0x90
        width, minimum = _ARRAY_HEADS.get(first, (0, 0))
        count = int.from_bytes(data[1 : 1 + width], "big")
        if not width or len(data) < 1 + width or count < minimum:
            raise Malformed("the section does not begin with the canonical head of an array")
        self.start = 1 + width
        return count

    def __iter__(self) -> Iterator[Any]:
        # Two passes in lockstep: the first finds the end of a record without building objects.
        scout, reader = self._unpacker(), self._unpacker()
        skip, tell, unpack = scout.skip, scout.tell, reader.unpack
        pack = msgpack.Packer().pack
        data, first, largest = self._data, self.start, self._largest
        end = first
        for _ in range(self.count):
            self.start = end
            skip()
            end = first + tell()
            if end - self.start > largest:
                raise Malformed(f"the record has more than {largest:,} bytes", "artifact-limit")
            record = unpack()
            if pack(record) != data[self.start : end]:
                raise Malformed("the record's msgpack is not canonical")
            yield record
        self.start = end
        if end != len(data):
            raise Malformed(f"{len(data) - end:,} bytes follow the last record")

    def _unpacker(self) -> msgpack.Unpacker:
        return msgpack.Unpacker(
            _Window(self._data[self.start :]),
            max_buffer_size=max(1 << 14, self._largest),
            use_list=False,
            max_array_len=self._width,
            max_map_len=0,
            max_ext_len=0,
        )

    @contextmanager
    def located(self) -> Iterator[None]:
        """Convert errors in the current record to refusals that tell its position."""
        try:
            yield
        except Malformed as error:
            refuse(error.slug, f"{error}", self.name, self._base + self.start)
        except msgpack.OutOfData:
            refuse("artifact-malformed", "the last record is cut off", self.name, self._end())
        except (ValueError, TypeError, msgpack.UnpackException) as error:
            reason = clean(f"{error}")[:80] or type(error).__name__
            text = f"the record is not valid msgpack: {reason}"
            refuse("artifact-malformed", text, self.name, self._base + self.start)

    def _end(self) -> int:
        return self._base + len(self._data)


# ---- The `layout` section → the kernel's properties, tensors and parameters ---------------------


class LayoutReader:
    """Fills the tables of one file. `names` holds each tensor's name and place, if known."""

    def __init__(self, names: Sequence[tuple[str, int]], limits: Limits) -> None:
        self._names = names
        self._limits = limits
        self.kernel: tuple[str, str, int, int, int] = ("", "", 0, 0, 0)
        self.tensors: list[TensorRecord] = []
        self.inputs: list[ParameterRecord] = []
        self.outputs: list[ParameterRecord] = []

    def read(self, section: Section) -> None:
        """Decode `section`: one kernel, then records in the order of their kinds."""
        limits = self._limits
        count = 1 + limits.tensors + 2 * limits.parameters
        records = Records(section, count=count, width=16, largest=limits.record_bytes)
        kinds: Sequence[Callable[[Any], None]] = (
            self._kernel,
            self._tensor,
            lambda record: self._parameter(record, self.inputs),
            lambda record: self._parameter(record, self.outputs),
            self._placed,
        )
        previous = -1
        with records.located():
            for record in records:
                kind = kind_of(record, len(kinds))
                order = Layout.TENSOR if kind == Layout.PLACED else kind
                if order < previous or (kind == Layout.KERNEL) != (previous < 0):
                    raise Malformed(f"a record of kind {kind} is not allowed here")
                previous = order
                kinds[kind](record)
            if previous < 0:
                raise Malformed("there is no kernel")

    def _kernel(self, record: Any) -> None:
        name, target, cores, semaphores, registers = fields(record, 5, "the kernel")
        limits = self._limits
        self.kernel = (
            text(name, limits.string_bytes, "the kernel's name"),
            text(target, limits.string_bytes, "the target"),
            integer(cores, 1, INT32, "the number of cores"),
            integer(semaphores, 0, limits.semaphores, "the number of semaphores"),
            integer(registers, 0, limits.registers, "the number of registers"),
        )

    def _tensor(self, record: Any) -> None:
        dtype, shape, buffer, core, role, partition, byte = fields(record, 7, "a tensor")
        name, place = self._name()
        self.tensors.append(
            TensorRecord(
                name,
                dtype_of(dtype),
                self._shape(shape),
                BUFFER_OF_CODE[integer(buffer, 0, len(BUFFER_OF_CODE) - 1, "a buffer")],
                integer(core, -1, INT32, "a tensor's core"),
                ROLES[integer(role, 0, len(ROLES) - 1, "a tensor's role")],
                integer(partition, 0, INT32, "a tensor's partition"),
                integer(byte, 0, INT64, "a tensor's byte"),
                place,
            )
        )

    def _placed(self, record: Any) -> None:
        back, step = fields(record, 2, "a tensor like another")
        earlier = self.tensors[
            -integer(back, 1, len(self.tensors), "a distance to an earlier tensor")
        ]
        byte = earlier.byte + integer(step, -INT64, INT64, "a step of bytes")
        integer(byte, 0, INT64, "a tensor's byte")
        name, place = self._name()
        self.tensors.append(earlier._replace(name=name, byte=byte, place=place))

    def _name(self) -> tuple[str, int]:
        """Return the name and place of the next tensor."""
        limits, index = self._limits, len(self.tensors)
        if index >= limits.tensors:
            raise Malformed(f"more than {limits.tensors:,} tensors", "artifact-limit")
        return self._names[index] if index < len(self._names) else (f"t{index}", -1)

    def _shape(self, value: Any) -> tuple[int, ...]:
        limits = self._limits
        shape = array(value, 0, limits.rank, "a tensor's shape", slug="artifact-limit")
        integers(shape, 1, INT64, "a tensor's dimension")
        if shape and max(shape) > limits.dimension:
            text = f"a dimension of {max(shape):,}; the limit is {limits.dimension:,}"
            raise Malformed(text, "artifact-limit")
        return shape

    def _parameter(self, record: Any, into: list[ParameterRecord]) -> None:
        limits = self._limits
        if len(into) >= limits.parameters:
            raise Malformed(f"more than {limits.parameters} parameters", "artifact-limit")
        name, tensor = fields(record, 2, "a parameter")
        name = text(name, limits.string_bytes, "a parameter's name")
        into.append(
            ParameterRecord(name, integer(tensor, 0, len(self.tensors) - 1, "a parameter's tensor"))
        )


# ---- The `code` section → streams. Every record is checked before the next one is read ----------
# The checks here cover types, ranges of the format, and references to earlier records. `verify`
# checks the program against its target.

_NO_WAITS: tuple[tuple[int, int], ...] = ()
_Item = InstructionRecord | LoopRecord


class CodeReader:
    """Builds the streams from a section's records.

    `places` yields each item's source place, `iterations` its iteration.
    """

    def __init__(
        self,
        places: Iterator[int],
        iterations: Iterator[int],
        rows: Mapping[int, Row],
        limits: Limits,
    ) -> None:
        self._places = places
        self._iterations = iterations
        self._rows = rows
        self._limits = limits
        self._values: list[OperandRecord] = [None]  # reference 0 is None
        self._forms: list[tuple[Row, tuple[Any, ...]]] = []
        self._streams: list[StreamRecord] = []
        self._items: list[_Item] = []
        # References of the last instruction of each form.
        self._before: dict[int, tuple[int, ...]] = {}
        self._missing = 0  # items of the current stream not read yet
        self._total = 0
        self._phase = CodeRecord.PATTERN

    def read(self, section: Section) -> tuple[StreamRecord, ...]:
        """Decode the streams of `section`."""
        limits = self._limits
        count = limits.values + limits.forms + limits.streams + limits.items
        width = 4 * limits.waits  # twice the longest array, so that our own error is reported
        records = Records(section, count=count, width=width, largest=limits.record_bytes)
        kinds = (
            self._pattern,
            self._register,
            self._number,
            self._form,
            self._stream,
            self._instruction,
            self._loop,
            self._slot,
            self._moved,
        )
        with records.located():
            for record in records:
                kinds[kind_of(record, len(kinds))](record)
            self._end_stream()
        return tuple(self._streams)

    def _enter(self, phase: CodeRecord) -> None:
        """Check the order of records: values, then forms, then streams."""
        if phase < self._phase:
            raise Malformed("operands come before forms, and forms before streams")
        self._phase = phase

    def _add_value(self, value: OperandRecord) -> None:
        self._enter(CodeRecord.PATTERN)
        if len(self._values) > self._limits.values:
            raise _too_many("different operands", self._limits.values)
        self._values.append(value)

    def _pattern(self, record: tuple[Any, ...]) -> None:
        if len(record) != 7 and len(record) != 12:
            raise Malformed(f"an access pattern has 6 or 11 fields, not {len(record) - 1}")
        _, tensor, dtype, start, partitions, offset, dims, *dynamic = record
        self._add_value(
            PatternRecord(
                integer(tensor, 0, INT32, "a pattern's tensor"),
                dtype_of(dtype),
                integer(start, 0, INT32, "a pattern's start partition"),
                integer(partitions, 0, INT32, "a pattern's partitions"),
                integer(offset, 0, INT64, "a pattern's offset"),
                self._dims(dims),
                _dynamic(dynamic) if dynamic else None,
            )
        )

    def _moved(self, record: tuple[Any, ...]) -> None:
        back, tensor, offset = fields(record, 3, "a moved pattern")
        earlier = self._values[
            -integer(back, 1, len(self._values), "a distance to an earlier pattern")
        ]
        if not isinstance(earlier, PatternRecord):
            raise Malformed("the earlier value is not an access pattern")
        first, dtype, start, partitions, begin, dims, dynamic = earlier
        first += integer(tensor, -INT32, INT32, "a step to another tensor")
        begin += integer(offset, -INT64, INT64, "a step of an offset")
        integer(first, 0, INT32, "a pattern's tensor")
        integer(begin, 0, INT64, "a pattern's offset")
        self._add_value(PatternRecord(first, dtype, start, partitions, begin, dims, dynamic))

    def _dims(self, value: Any) -> tuple[tuple[int, int], ...]:
        flat = integers(value, -INT64, INT64, "a pattern's dimensions")
        if len(flat) % 2:
            raise Malformed("a pattern's dimensions are not pairs of step and number")
        if len(flat) > 2 * self._limits.rank:
            raise _too_many("dimensions", self._limits.rank)
        return tuple(zip(flat[::2], flat[1::2], strict=True))

    def _register(self, record: tuple[Any, ...]) -> None:
        (number,) = fields(record, 1, "a register")
        self._add_value(Register(integer(number, 0, INT32, "a register's number")))

    def _number(self, record: tuple[Any, ...]) -> None:
        (value,) = fields(record, 1, "a number")
        if not records.is_operand_number(value):
            raise Malformed(f"{shown(value)} is not a number that an operand can be")
        self._add_value(value)

    def _form(self, record: tuple[Any, ...]) -> None:
        self._enter(CodeRecord.FORM)
        if len(self._forms) >= self._limits.forms:
            raise _too_many("forms", self._limits.forms)
        opcode, values = fields(record, 2, "a form")
        row = self._rows.get(integer(opcode, 0, INT32, "an opcode"))
        if row is None:
            raise Malformed(f"no instruction has opcode {opcode}", "artifact-instruction")
        count = len(row.attributes)
        values = array(values, count, count, f"the attributes of {row.name}")
        for attribute, value in zip(row.attributes, values, strict=True):
            if not records.is_allowed(attribute, value):
                text = f"{row.name}: attribute {attribute.name} cannot be {shown(value)}"
                raise Malformed(text)
        self._forms.append((row, values))

    def _stream(self, record: tuple[Any, ...]) -> None:
        self._end_stream()
        self._enter(CodeRecord.STREAM)
        self._before = {}
        if len(self._streams) >= self._limits.streams:
            raise _too_many("streams", self._limits.streams)
        core, engine_code, queue, count = fields(record, 4, "a stream")
        engine = ENGINE_OF_CODE.get(integer(engine_code, 0, INT32, "an engine"))
        if engine is None:
            raise Malformed(f"there is no engine {engine_code}")
        self._missing = integer(count, 0, INT32, "a stream's length")
        self._total += self._missing
        if self._total > self._limits.items:
            raise _too_many("instructions", self._limits.items)
        core = integer(core, 0, INT32, "a core")
        queue = integer(queue, 0, INT32, "a queue")
        self._streams.append(StreamRecord(core, engine, queue, ()))

    def _end_stream(self) -> None:
        if self._missing:
            raise Malformed(f"{self._missing:,} items of the stream are missing")
        if self._streams:
            self._streams[-1] = self._streams[-1]._replace(items=tuple(self._items))
            self._items = []

    def _add(self, item: _Item) -> None:
        if not self._missing:
            raise Malformed("the record belongs to no stream")
        self._missing -= 1
        self._items.append(item)

    def _instruction(self, record: tuple[Any, ...]) -> None:
        form, operands, waits, signals = fields(record, 4, "an instruction")
        forms, values = self._forms, self._values
        if type(form) is not int or not 0 <= form < len(forms):
            raise Malformed(f"there is no form {shown(form)}")
        references = self._references(form, operands)
        row, attribute_values = forms[form]
        self._add(
            InstructionRecord(
                row,
                tuple([values[reference] for reference in references]),
                attribute_values,
                self._waits(waits) if waits != () else _NO_WAITS,
                self._signals(signals) if signals != () else (),
                next(self._places),
                next(self._iterations),
            )
        )

    def _references(self, form: int, differences: Any) -> tuple[int, ...]:
        """Return the references of an instruction.

        They are encoded as differences to the last instruction of the same form in the stream, if
        that has as many operands.
        """
        references = integers(differences, -INT32, INT32, "an operand's reference")
        previous = self._before.get(form, ())
        if len(previous) == len(references):
            references = tuple(map(add, references, previous))
        self._before[form] = references
        return integers(references, 0, len(self._values) - 1, "an operand's reference")

    def _slot(self, record: tuple[Any, ...]) -> None:
        waits, signals = fields(record, 2, "an empty slot")
        origin = (next(self._places), next(self._iterations))
        semaphores = (self._waits(waits), self._signals(signals))
        self._add(InstructionRecord(None, (), (), *semaphores, *origin))

    def _waits(self, value: Any) -> tuple[tuple[int, int], ...]:
        flat = integers(value, 0, INT32, "a wait")
        if len(flat) % 2:
            raise Malformed("waits are not pairs of semaphore and count")
        if len(flat) > 2 * self._limits.waits:
            raise _too_many("waits", self._limits.waits)
        return tuple(zip(flat[::2], flat[1::2], strict=True))

    def _signals(self, value: Any) -> tuple[int, ...]:
        signals = integers(value, 0, INT32, "a signal")
        if len(signals) > self._limits.waits:
            raise _too_many("signals", self._limits.waits)
        return signals

    def _loop(self, record: tuple[Any, ...]) -> None:
        length, counter, start, stop, step, condition = fields(record, 6, "a loop")
        next(self._iterations)
        self._add(
            LoopRecord(
                integer(length, 0, INT32, "a loop's length"),
                _maybe_register(counter),
                _bound(start),
                _bound(stop),
                integer(step, -INT32, INT32, "a loop's step"),
                _maybe_register(condition),
                next(self._places),
            )
        )


def _too_many(subject: str, limit: int) -> Malformed:
    return Malformed(f"more than {limit:,} {subject}", "artifact-limit")


def _dynamic(values: list[Any]) -> OffsetRecord:
    kind, source, stride, limit, axis = values
    kind = integer(kind, 0, len(DYNAMIC_KINDS) - 1, "a dynamic offset's kind")
    return OffsetRecord(
        DYNAMIC_KINDS[kind],
        integer(source, 0, INT32, "a dynamic offset's operand"),
        integer(stride, -INT64, INT64, "a dynamic offset's stride"),
        integer(limit, 0, INT64, "a dynamic offset's limit"),
        integer(axis, 0, INT32, "a dynamic offset's axis"),
    )


def _maybe_register(value: Any) -> Register | None:
    return None if value is None else Register(integer(value, 0, INT32, "a register"))


def _bound(value: Any) -> int | Register:
    if type(value) is tuple and len(value) == 1:
        return Register(integer(value[0], 0, INT32, "a register"))
    return integer(value, -INT32, INT32, "a loop's bound")


# --------------------------------------------------------------------------------------------------

Sections = Mapping[str, Section]


def executable(sections: Sections, rows: Mapping[int, Row], limits: Limits) -> Executable:
    """Decode all of `sections`, checking types and references within the file."""
    sources = source_files(sections, limits)
    places, item_places = _lines(sections, len(sources), limits)
    names = _names(sections, len(places), limits)
    layout = LayoutReader(names, limits)
    layout.read(sections["layout"])
    _check_count(sections, "debug", len(names), len(layout.tensors), "tensors")
    arguments, flags = notes(sections, limits)
    constants = _constants(sections["const"], layout.tensors, limits)
    iterations, item_iterations = _iterations(sections, limits)
    reader = CodeReader(
        chain(item_places, repeat(-1)), chain(item_iterations, repeat(-1)), rows, limits
    )
    streams = reader.read(sections["code"])
    items = sum(len(stream.items) for stream in streams)
    _check_count(sections, "lines", len(item_places), items, "instructions")
    _check_count(sections, "iterations", len(item_iterations), items, "instructions")
    return Executable(
        *layout.kernel,
        tensors=tuple(layout.tensors),
        inputs=tuple(layout.inputs),
        outputs=tuple(layout.outputs),
        streams=streams,
        constants=constants,
        places=places,
        files=sources,
        arguments=arguments,
        meta=flags,
        iterations=iterations,
    )


def _check_count(sections: Sections, name: str, count: int, expected: int, subject: str) -> None:
    if name in sections and count != expected:
        text = f"it describes {count:,} {subject}; there are {expected:,}"
        refuse("artifact-malformed", text, name, sections[name].offset)


def source_files(sections: Sections, limits: Limits) -> tuple[FileRecord, ...]:
    if "src" not in sections:
        return ()
    count, largest = 3 * limits.files, limits.source_bytes + limits.record_bytes
    records = Records(sections["src"], count=count, width=0, largest=largest)
    with records.located():
        parts = _groups(records, 3, "source file")
        return tuple(_file(parts[i : i + 3], limits) for i in range(0, len(parts), 3))


def _groups(records: Records, size: int, group: str) -> list[Any]:
    if records.count % size:
        raise Malformed(f"{records.count} records do not make {group}s of {size} each")
    return list(records)


def _file(parts: list[Any], limits: Limits) -> FileRecord:
    path, digest, content = parts
    path = text(path, limits.string_bytes, "a source file's path")
    pieces = path.replace("\\", "/").split("/")
    if any(piece in ("", ".", "..") for piece in pieces) or pieces[0].endswith(":"):
        raise Malformed(f"a source file's path is {shown(path)}: it must not leave its folder")
    if len(binary(digest, "a source file's hash")) != sha256().digest_size:
        raise Malformed("a source file's hash is not 32 bytes")
    if content is not None:
        _check_source(content, digest, limits)
    return FileRecord(path, digest.hex(), content)


def _check_source(content: Any, digest: bytes, limits: Limits) -> None:
    if type(content) is not str:
        raise Malformed(f"a source file's text is {shown(content)}, not a string")
    encoded = content.encode()
    if len(encoded) > limits.source_bytes:
        text = f"a source file of {len(encoded):,} bytes; the limit is {limits.source_bytes:,}"
        raise Malformed(text, "artifact-limit")
    if sha256(encoded).digest() != digest:
        raise Malformed("a source file's text does not match its hash")


def _lines(
    sections: Sections, files: int, limits: Limits
) -> tuple[tuple[PlaceRecord, ...], compact_array[int]]:
    """Return the places, and the place of every item in order."""
    places: list[PlaceRecord] = []
    item_places = compact_array("i")
    if "lines" not in sections:
        return (), item_places
    count = limits.places + limits.items
    width = PLACES_PER_RECORD + 1
    records = Records(sections["lines"], count=count, width=width, largest=limits.record_bytes)
    with records.located():
        for record in records:
            kind = kind_of(record, len(Lines))
            if kind == Lines.PLACE and not item_places:
                _add_place(places, record, files, limits)
            elif kind == Lines.ITEMS:
                item_places.extend(integers(record[1:], -1, len(places) - 1, "an item's place"))
            else:
                raise Malformed(f"a record of kind {kind} is not allowed here")
    return tuple(places), item_places


def _iterations(sections: Sections, limits: Limits) -> tuple[tuple[str, ...], compact_array[int]]:
    """Return the texts of iterations, and the text of every item in order."""
    texts: list[str] = []
    item_iterations = compact_array("i")
    if "iterations" not in sections:
        return (), item_iterations
    count, width = limits.places + limits.items, PLACES_PER_RECORD + 1
    records = Records(sections["iterations"], count=count, width=width, largest=limits.record_bytes)
    with records.located():
        for record in records:
            kind = kind_of(record, len(Iterations))
            if kind == Iterations.TEXT and not item_iterations:
                if len(texts) >= limits.places:
                    raise Malformed(f"more than {limits.places:,} iterations", "artifact-limit")
                (iteration,) = fields(record, 1, "an iteration")
                texts.append(text(iteration, limits.string_bytes, "an iteration"))
            elif kind == Iterations.ITEMS:
                steps = integers(record[1:], -INT32, INT32, "a step to an item's iteration")
                indices = tuple(
                    accumulate(steps, initial=item_iterations[-1] if item_iterations else -1)
                )
                item_iterations.extend(
                    integers(indices, -1, len(texts) - 1, "an item's iteration")[1:]
                )
            else:
                raise Malformed(f"a record of kind {kind} is not allowed here")
    return tuple(texts), item_iterations


def _add_place(
    places: list[PlaceRecord], record: tuple[Any, ...], files: int, limits: Limits
) -> None:
    if len(places) >= limits.places:
        raise Malformed(f"more than {limits.places:,} places", "artifact-limit")
    file, line, column, end_line, end_column, caller = fields(record, 6, "a place")
    integer(file, 0, files - 1, "a place's file")
    integers((line, column, end_line, end_column), 0, INT32, "a place's position")
    integer(caller, -1, len(places) - 1, "a place's caller")  # so that call chains are finite
    places.append(PlaceRecord(file, line, column, end_line, end_column, caller))


def _names(sections: Sections, places: int, limits: Limits) -> list[tuple[str, int]]:
    names: list[tuple[str, int]] = []
    if "debug" not in sections:
        return names
    count, largest = limits.tensors, limits.record_bytes
    records = Records(sections["debug"], count=count, width=2, largest=largest)
    with records.located():
        for record in records:
            name, place = array(record, 2, 2, "a tensor's name")
            name = text(name, limits.string_bytes, "a tensor's name")
            names.append((name, integer(place, -1, places - 1, "a tensor's place")))
    return names


def _constants(section: Section, tensors: list[TensorRecord], limits: Limits) -> dict[int, bytes]:
    """Return contents by tensor. Tensors must ascend, so that none has two."""
    largest = limits.file_bytes
    records = Records(section, count=2 * limits.tensors, width=0, largest=largest)
    constants: dict[int, bytes] = {}
    with records.located():
        parts = _groups(records, 2, "constant")
        last = -1
        for index, content in zip(parts[::2], parts[1::2], strict=True):
            last = integer(index, last + 1, len(tensors) - 1, "a constant's tensor")
            constants[last] = binary(content, "a constant's content")
    return constants


def notes(sections: Sections, limits: Limits) -> tuple[dict[str, str], dict[str, str]]:
    tables: tuple[dict[str, str], dict[str, str]] = ({}, {})
    if "meta" not in sections:
        return tables
    count, largest = limits.notes, limits.record_bytes
    records = Records(sections["meta"], count=count, width=3, largest=largest)
    with records.located():
        for record in records:
            notes = tables[kind_of(record, len(Meta))]
            key, value = fields(record, 2, "a note")
            key = text(key, limits.string_bytes, "a note's key")
            if key in notes:
                raise Malformed(f"the key {shown(key)} appears twice")
            notes[key] = text(value, limits.string_bytes, "a note's value")
    return tables
