"""The `code` section → streams. Every record is checked before the next one is read.

The checks here cover types, ranges of the format, and references to earlier records. `verify`
checks the program against its target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import add
from typing import Any

from nkic.machine.engines import ENGINE_OF_CODE
from nkic.machine.facts import Register
from nkic.machine.operands import Row
from nkic.neff import attributes
from nkic.neff.container import Section
from nkic.neff.failures import Malformed, shown
from nkic.neff.layout import DYNAMIC_KINDS, CodeRecord
from nkic.neff.limits import INT32, INT64, Limits
from nkic.neff.records import (
    InstructionRecord,
    LoopRecord,
    OffsetRecord,
    OperandRecord,
    PatternRecord,
    StreamRecord,
)
from nkic.neff.sections.streaming import Records
from nkic.neff.typed import array, dtype_of, fields, integer, integers, kind_of

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
        kinds = self._kinds()
        with records.located():
            for record in records:
                kinds[kind_of(record, len(kinds))](record)
            self._end_stream()
        return tuple(self._streams)

    def _kinds(self) -> tuple[Callable[[tuple[Any, ...]], None], ...]:
        """Return the handlers of records, by kind."""
        return (
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
        if not attributes.is_operand_number(value):
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
            if not attributes.is_allowed(attribute, value):
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
