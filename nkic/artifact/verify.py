"""Verification that an executable cannot make the runner misbehave.

A verified program may compute wrong numbers, deadlock (the runner detects that), or fault on an
index it computes. It cannot access bytes outside its tensors, run an instruction in a way that its
row forbids, or refer outside the tables of its file. The checks, in order:

- the target is known, and the counts are within its limits;
- tensors are within their memories; inputs, outputs and constants are in HBM and complete;
- each stream belongs to one queue of one core, and its engine may run its instructions;
- every access pattern stays in its tensor, and the tensor belongs to the stream's core;
- every instruction obeys its row's rules (`machine.rules`), checked once per distinct shape;
- a semaphore has one signalling and one waiting stream; loops nest, and counted loops end;
- the cores reach the same rendezvous in the same order.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Sized
from contextlib import suppress
from functools import partial
from math import lcm, prod
from typing import NamedTuple, NoReturn

from nkic.artifact import records
from nkic.artifact.format import LIMITS, Limits, Malformed, refuse
from nkic.artifact.records import (
    Columns,
    Executable,
    Head,
    InstructionRecord,
    Items,
    LoopRecord,
    OffsetRecord,
    Operands,
    ParameterRecord,
    PatternRecord,
    Record,
    StreamRecord,
    TensorRecord,
    columns_of,
    source_of,
)
from nkic.base.collector import without_collector
from nkic.machine import rules, targets
from nkic.machine.dtypes import DTYPES
from nkic.machine.operands import Register, Row, Violation
from nkic.machine.patterns import elements
from nkic.machine.rules import Outline, Round, Step, Stop, bank_problem, banks, compare
from nkic.machine.targets import PARTITIONS, Buffer, Engine, Target

# ---- The error that verification raises: a program that must not run, and the position ----------


class Unsound(Malformed):
    """A program breaks a rule.

    `record` is the number of the tensor in the section `layout`, or of the record in `code`,
    counted from the first stream; -1 if unknown.
    """

    def __init__(
        self,
        message: str,
        slug: str = "artifact-program",
        *,
        section: str = "layout",
        record: int = -1,
        place: int = -1,
        help: str = "",
    ) -> None:
        super().__init__(message, slug)
        self.section = section
        self.record = record
        self.place = place
        self.help = help


# ---- Verification that access patterns stay within their tensors --------------------------------
# Python's integers do not wrap. Run-time offsets are not covered here: the runner checks each of
# them against its pattern's tensor.


def max_elements(executable: Executable, partition_bytes: int) -> int:
    """Return the maximum elements per pattern: those of the SBUF or of the largest HBM tensor.

    A step of 0 repeats elements, so that bounds alone would allow a pattern of 2^60 elements.
    """
    hbm = (prod(t.shape) for t in executable.tensors if not t.buffer.on_chip)
    return max(PARTITIONS * partition_bytes, max(hbm, default=0))


def pattern_problem(pattern: PatternRecord, tensor: TensorRecord, max_elements: int) -> str:
    """Return the error of `pattern` over `tensor`, or an empty string."""
    visited = elements(pattern.dims)
    if visited < 1:
        return "a dimension without elements"
    if visited * max(1, pattern.partitions) > max_elements:
        return f"{pattern.elements:,} elements; no memory holds more than {max_elements:,}"
    end = pattern.start + pattern.partitions
    if not tensor.buffer.on_chip and (pattern.start or pattern.partitions):
        return "partitions in HBM"
    if tensor.buffer.on_chip and not 0 <= pattern.start < end <= tensor.shape[0]:
        return f"partitions {pattern.start} to {end}; the tensor has {tensor.shape[0]}"
    size, available = pattern.dtype.size, tensor.bytes
    if available % size or tensor.byte % size:
        return f"{size}-byte elements do not divide a tensor of {available} bytes at {tensor.byte}"
    low, high = pattern.extent()
    if low < 0 or high > available:
        return f"bytes {low:,} to {high:,}; the tensor has {available:,}"
    return ""


def dynamic_problem(item: InstructionRecord, row: Row, limits: Limits) -> str:
    """Return the error of the instruction's run-time offsets, or an empty string.

    The operands after the row's own hold these offsets; each must be used, and static.
    """
    hidden = range(len(row.operands), len(item.operands))
    sources = set()
    for operand in item.operands:
        if isinstance(operand, PatternRecord) and operand.dynamic:
            sources.add(operand.dynamic.source)
            if text := _source_problem(operand, operand.dynamic, item, hidden, limits):
                return text
    return "" if sources == set(hidden) else "operands that belong to no dynamic offset"


def _source_problem(
    pattern: PatternRecord,
    dynamic: OffsetRecord,
    item: InstructionRecord,
    hidden: range,
    limits: Limits,
) -> str:
    kind, index, _, limit, axis = dynamic
    if index not in hidden:
        return f"a dynamic offset in operand {index}, which holds none"
    if limit < 1 or not 0 <= axis <= limits.rank:  # the axis is that of the view, before merging
        return f"a dynamic offset on axis {axis} with limit {limit}"
    source = item.operands[index]
    if isinstance(source, Register):
        return "" if kind == "scalar" else "a register cannot hold many offsets"
    if kind == "vector" and (pattern.partitions or not pattern.dims):
        return "a vector of offsets over no dimension in HBM"
    if kind == "columns" and not pattern.partitions:
        return "an offset for each column of a tensor in HBM"
    if not isinstance(source, PatternRecord) or source.dynamic:
        return f"a dynamic offset in operand {index}, which is neither tile nor register"
    if not source.dtype.is_integer:
        return f"dynamic offsets of type {source.dtype.name}"
    required = {"scalar": 1, "vector": pattern.dims[0][1] if pattern.dims else 1}.get(kind, 0)
    if source.elements < required:
        return f"{source.elements} dynamic offsets where {required} are needed"
    return ""


# ---- Verification of tensors and their addresses, parameters and constants ----------------------

# Names become keys of npz files, and so names of archive members: they must not contain paths.
_NAME = re.compile(r"[A-Za-z_][\w\[\].-]*", re.ASCII)

_ALIGNMENT = lcm(*(dtype.size for dtype in DTYPES.values()))


def kinds_of(executable: Executable) -> list[int]:
    """Return the kind of each tensor: those that differ only in name, byte and place share it.

    The bytes of one kind are equally aligned for every element type.
    """
    numbers: dict[tuple[object, ...], int] = {}
    keys = [(t[1].code, *t[2:7], t[7] % _ALIGNMENT) for t in executable.tensors]
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def verify_tensors(
    executable: Executable, kinds: Sequence[int], target: Target, limits: Limits
) -> None:
    """Raise `Unsound` for the first invalid tensor, parameter or constant.

    Tensors of one kind, at one byte, are checked once.
    """
    sound: set[tuple[int, int]] = set()
    places = len(executable.places)
    for index, (kind, tensor) in enumerate(zip(kinds, executable.tensors, strict=True)):
        if (kind, tensor.byte) in sound and tensor.place < places:
            continue
        sound.add((kind, tensor.byte))
        if problem := _problem(tensor, executable, target, limits):
            text = f"tensor %{index} `{tensor.name}`: {problem}"
            raise Unsound(text, "artifact-bounds", record=index, place=tensor.place)
    total = sum(t.bytes for t in executable.tensors if not t.buffer.on_chip)
    if total > limits.hbm_bytes:
        text = f"tensors in HBM take {total:,} bytes; the limit is {limits.hbm_bytes:,}"
        raise Unsound(text, "artifact-limit")
    _check_parameters(executable)
    _check_constants(executable)


def _problem(t: TensorRecord, executable: Executable, target: Target, limits: Limits) -> str:
    """Return the error of one tensor, or an empty string."""
    if len(t.shape) > limits.rank or any(not 1 <= n <= limits.dimension for n in t.shape):
        return f"shape {t.shape} is beyond {limits.rank} dimensions of 1 to {limits.dimension:,}"
    if t.place >= len(executable.places):
        return f"there is no place {t.place}"
    shared = t.buffer is Buffer.SHARED_HBM
    if not (t.core == -1 if shared else 0 <= t.core < executable.cores):
        return f"{t.buffer.value} of core {t.core} in a program for {executable.cores} cores"
    if not t.buffer.on_chip:
        return "an address in HBM" if t.partition or t.byte else ""
    return _address_problem(t, target)


def _address_problem(t: TensorRecord, target: Target) -> str:
    """Return an error unless the tensor is within SBUF or PSUM from its first to its last byte."""
    if not t.shape:
        return f"a tensor in {t.buffer.value} needs a partition dimension"
    if t.partition < 0 or t.partition + t.shape[0] > PARTITIONS:
        last = t.partition + t.shape[0]
        return f"partitions {t.partition} to {last}; {t.buffer.value} has {PARTITIONS}"
    size = target.sbuf_usable if t.buffer is Buffer.SBUF else target.psum_bytes
    if t.byte < 0 or t.byte + t.bytes > size:
        last = t.byte + t.bytes
        return (
            f"bytes {t.byte:,} to {last:,} of each partition;"
            f" {t.buffer.value} of {target.name} has {size:,}"
        )
    if t.byte % t.dtype.size:
        return f"byte {t.byte} is not a multiple of the {t.dtype.size} bytes of {t.dtype.name}"
    return ""


def _check_parameters(executable: Executable) -> None:
    for kind, parameters in (("input", executable.inputs), ("output", executable.outputs)):
        if len({p.name for p in parameters}) != len(parameters):
            raise Unsound(f"two {kind}s have the same name")
        for parameter in parameters:
            _check_parameter(executable, kind, parameter)
    bound = [p.tensor for p in executable.inputs]
    declared = {i for i, t in enumerate(executable.tensors) if t.role == "input"}
    if len(set(bound)) != len(bound) or set(bound) != declared:
        raise Unsound("the inputs and the tensors of role input are not the same")


def _check_parameter(executable: Executable, kind: str, parameter: ParameterRecord) -> None:
    label = f"{kind} `{parameter.name}`"
    if not _NAME.fullmatch(parameter.name):
        raise Unsound(f"{label}: the name has characters that a parameter's name cannot have")
    if not 0 <= parameter.tensor < len(executable.tensors):
        raise Unsound(f"{label}: there is no tensor %{parameter.tensor}")
    tensor = executable.tensors[parameter.tensor]
    if tensor.buffer.on_chip:
        text = f"{label} is in {tensor.buffer.value}; the host sees only HBM"
        raise Unsound(text, record=parameter.tensor)
    if tensor.role != kind and not (kind == "output" and tensor.role == "input"):
        text = f"{label} is a tensor of role {tensor.role}"
        raise Unsound(text, record=parameter.tensor)


def _check_constants(executable: Executable) -> None:
    """Check that every constant has contents; an output may have initial contents."""
    for index, tensor in enumerate(executable.tensors):
        if tensor.role == "constant" and index not in executable.constants:
            raise Unsound(f"constant %{index} has no content", record=index)
    for index, content in executable.constants.items():
        if not 0 <= index < len(executable.tensors):
            raise Unsound(f"content for %{index}, which is not a tensor")
        tensor = executable.tensors[index]
        if tensor.role not in ("constant", "output") or tensor.buffer.on_chip:
            text = f"content for %{index}: {tensor.role} in {tensor.buffer.value}"
            raise Unsound(f"{text}, not a constant in HBM", record=index)
        if len(content) != tensor.bytes:
            text = f"constant %{index} has {len(content):,} bytes, not {tensor.bytes:,}"
            raise Unsound(text, "artifact-bounds", record=index)


# ---- Verification of rendezvous between the cores of a program ----------------------------------
# On every core, the streams of one name must reach the same rendezvous in the same order, inside
# loops with equal trip counts.


def has_rendezvous(columns: Columns) -> bool:
    """Return whether some item is run by all cores together."""
    heads = {head for items in columns.streams for head in items.heads if type(head) is Head}
    return any(head.row is not None and head.row.is_rendezvous for head in heads)


def verify_rendezvous(executable: Executable, target: Target) -> None:
    """Raise `Unsound` for the first rendezvous that not all cores reach."""
    outlines: dict[tuple[Engine, int], dict[int, Outline[Record]]] = {}
    for stream in executable.streams:
        if outline := _outline(stream, 0, len(stream.items)):
            outlines.setdefault((stream.engine, stream.queue), {})[stream.core] = outline
    for (engine, queue), by_core in outlines.items():
        cores = [by_core.get(core, ()) for core in range(executable.cores)]
        if mismatch := compare(cores, partial(_judge, executable, target, engine)):
            name = StreamRecord(0, engine, queue, ()).name.removeprefix("core0.")
            place = _place(mismatch.first[1])
            raise Unsound(f"{name}: {mismatch.text}", section="code", place=place)


def _outline(stream: StreamRecord, low: int, high: int) -> Outline[Record]:
    steps: list[Step[Record]] = []
    while low < high:
        item = stream.items[low]
        low += 1
        if isinstance(item, LoopRecord):
            body = _outline(stream, low, low + item.length)
            steps += [Round[Record](item, item.trips, body)] if body else []
            low += item.length
        elif item.row is not None and item.row.is_rendezvous:
            steps.append(Stop[Record](item, item.row))
    return tuple(steps)


def _judge(
    executable: Executable, target: Target, engine: Engine, stops: Sequence[Stop[Record]]
) -> Violation | None:
    items = [stop.item for stop in stops if isinstance(stop.item, InstructionRecord)]
    rule = stops[0].row.rendezvous_rule
    return rule([executable.facts(item, target, engine) for item in items]) if rule else None


def _place(step: Step[Record]) -> int:
    return step.item.place if isinstance(step, Stop) else _place(step.body[0])


# ---- Verification of streams: engines, instructions, operands, semaphores and loops -------------
# Instructions repeat, so that checks of an operand or a form run once per object, and the table's
# rules run once per distinct instruction, ignoring offsets.


def verify_streams(
    executable: Executable, columns: Columns, kinds: list[int], target: Target, limits: Limits
) -> None:
    """Raise `Unsound` for the first invalid item. `kinds` are those of the tensors."""
    cores = [
        _CoreVerifier(executable, columns.operands, target, core, limits, kinds)
        for core in range(executable.cores)
    ]
    seen: set[tuple[int, Engine, int]] = set()
    record = 0
    for stream, items in zip(executable.streams, columns.streams, strict=True):
        _check_identity(stream, executable, target, seen, record)
        _StreamVerifier(stream, cores[stream.core], record + 1, limits).verify(items)
        record += 1 + len(stream.items)


def _check_identity(
    stream: StreamRecord,
    executable: Executable,
    target: Target,
    seen: set[tuple[int, Engine, int]],
    record: int,
) -> None:
    identity = (stream.core, stream.engine, stream.queue)
    queues = target.dma_queues if stream.engine is Engine.DMA else 1
    if not 0 <= stream.core < executable.cores:
        text = f"{stream.name}: the program is for {executable.cores} cores"
    elif not 0 <= stream.queue < queues:
        text = f"{stream.name}: queue {stream.queue}; {target.name} has {queues}"
    elif identity in seen:
        text = f"{stream.name} appears twice"
    else:
        seen.add(identity)
        return
    raise Unsound(text, section="code", record=record)


class _SimilarPatterns(NamedTuple):
    """Valid patterns of one shape, in tensors of one kind.

    `low` to `high` are the valid offsets, and `number` is that of their signature.
    """

    low: int
    high: int
    number: int


class _CoreVerifier:
    """Memoised checks of one core's operands, instructions and semaphores.

    `kinds` are the kinds of the executable's tensors.
    """

    def __init__(
        self,
        executable: Executable,
        operands: Operands,
        target: Target,
        number: int,
        limits: Limits,
        kinds: list[int],
    ) -> None:
        self.executable = executable
        self.target = target
        self.number = number
        self.signallers: dict[int, StreamRecord] = {}
        self.waiters: dict[int, StreamRecord] = {}
        self._operands = operands
        self._limits = limits
        self._max_elements = max_elements(executable, target.sbuf_bytes)
        self._kinds = kinds
        self._numbers = [0] * len(operands.shapes)  # of the operands' signatures; 0: not known
        self._signatures: dict[object, int] = {}
        self._similar: dict[tuple[int, int], _SimilarPatterns] = {}
        self._legal: set[tuple[object, ...]] = set()

    def check(
        self, item: InstructionRecord, row: Row, numbers: Sequence[int], engine: Engine
    ) -> None:
        """Raise `Unsound` if `engine` must not run `item`, which is an instance of `row`.

        `numbers` are those of its operands' signatures.
        """
        form = (row, engine, self._signature(repr(item.attributes)), *numbers)
        if form in self._legal:
            return
        self._check_form(item, row, engine)
        if engine is Engine.TENSOR:
            for rule, operand in zip(row.operands, item.operands, strict=False):
                if rule.one_bank and type(operand) is PatternRecord and not operand.dynamic:
                    covered = self._bytes(operand, self.executable.tensors[operand.tensor])
                    if error := bank_problem(row, rule.name, *covered, self.target):
                        raise Unsound(error, "artifact-instruction")
        self._legal.add(form)

    def _bytes(self, pattern: PatternRecord, tensor: TensorRecord) -> tuple[int, int]:
        """Return the first byte that the pattern covers in a partition, and the end."""
        low, high = pattern.extent()
        return tensor.byte + low, tensor.byte + high

    def numbers_of(self, references: Sequence[int]) -> list[int]:
        """Return the numbers of the signatures of operands; 0 from an invalid one on.

        Operands are checked by themselves. Rules do not distinguish operands with equal numbers.
        """
        numbers, operands, similar = self._numbers, self._operands, self._similar.get
        shapes, tensors, offsets, kinds = (
            operands.shapes,
            operands.tensors,
            operands.offsets,
            self._kinds,
        )
        with suppress(Unsound):
            for reference in references:
                if numbers[reference]:
                    continue
                tensor = tensors[reference]
                kind = kinds[tensor] if 0 <= tensor < len(kinds) else -1
                alike = similar((kind, shapes[reference]))
                if alike is not None and alike[0] <= offsets[reference] <= alike[1]:
                    numbers[reference] = alike[2]
                else:
                    self.number_of(reference)
        return list(map(numbers.__getitem__, references))

    def number_of(self, reference: int) -> int:
        """Check an operand by itself, and return the number of its signature, from 1 on."""
        operand = self._operands.record(reference)
        if isinstance(operand, PatternRecord):
            number = self._number_of_pattern(operand, self._operands.shapes[reference])
        elif isinstance(operand, Register):
            check_register(operand, self.executable)
            number = self._signature(operand)
        else:
            number = self._signature(repr(operand))  # 1, 1.0 and True are different
        self._numbers[reference] = number
        return number

    def item(self, head: Head, references: Sequence[int]) -> InstructionRecord:
        return head.record(tuple(map(self._operands.record, references)))

    def _signature(self, key: object) -> int:
        return self._signatures.setdefault(key, len(self._signatures) + 1)

    def _number_of_pattern(self, pattern: PatternRecord, shape: int) -> int:
        """Check a pattern and return its number.

        Patterns of its shape, over tensors of its kind, then need their offsets checked only.
        """
        tensor = self._check_pattern(pattern)
        _, dtype, start, partitions, _, dims, dynamic = pattern
        first = tensor.partition + start
        signature = (tensor.buffer, dtype.code, first, partitions, dims, dynamic)
        if tensor.buffer is Buffer.PSUM:  # whether it lies in one bank depends on its address
            return self._signature((*signature, len(banks(*self._bytes(pattern, tensor))) > 1))
        number = self._signature(signature)
        size = pattern.dtype.size
        low, high = pattern.extent()
        room = pattern.offset - low // size, pattern.offset + (tensor.bytes - high) // size
        self._similar[self._kinds[pattern.tensor], shape] = _SimilarPatterns(*room, number)
        return number

    def _check_pattern(self, pattern: PatternRecord) -> TensorRecord:
        tensors = self.executable.tensors
        if not 0 <= pattern.tensor < len(tensors):
            raise Unsound(f"there is no tensor %{pattern.tensor}")
        tensor = tensors[pattern.tensor]
        if tensor.core not in (-1, self.number):
            raise Unsound(f"{_access(pattern, tensor)}: it belongs to core {tensor.core}")
        if problem := pattern_problem(pattern, tensor, self._max_elements):
            raise Unsound(f"{_access(pattern, tensor)}: {problem}", "artifact-bounds")
        return tensor

    def _check_form(self, item: InstructionRecord, row: Row, engine: Engine) -> None:
        """Check properties of the whole instruction that do not depend on offsets."""
        target = self.target
        if row.generation > target.generation:
            text = f"needs NeuronCore-v{row.generation}; {target.name} is v{target.generation}"
        elif engine not in row.engines:
            allowed = ", ".join(e.value for e in row.engines)
            text = f"runs on {allowed}, not on {engine.value}"
        elif len(item.operands) < len(row.operands) or len(item.attributes) != len(row.attributes):
            text = "has too few operands or a wrong number of attributes"
        elif wrong := _wrong_attribute(item, row):
            text = f"attribute {wrong} has a value that it cannot have"
        else:
            text = dynamic_problem(item, row, self._limits)
        if text:
            raise Unsound(text, "artifact-instruction")
        facts = self.executable.facts(item, target, engine)
        for violation in rules.violations(row, facts):
            text = violation.message.removeprefix(f"{row.name}: ")  # _locate adds the name
            raise Unsound(text, "artifact-instruction", help=violation.help)


def _access(pattern: PatternRecord, tensor: TensorRecord) -> str:
    return f"access to %{pattern.tensor} `{tensor.name}`"


def _wrong_attribute(item: InstructionRecord, row: Row) -> str:
    pairs = zip(row.attributes, item.attributes, strict=True)
    return next((a.name for a, value in pairs if not records.is_allowed(a, value)), "")


def check_register(register: Register, executable: Executable) -> None:
    """Raise `Unsound` if the register is not within the file's count."""
    if not 0 <= register.number < executable.registers:
        raise Unsound(f"register r{register.number}; the program has {executable.registers}")


class _StreamVerifier:
    """Checks one stream. `first` is the record number of its first item."""

    def __init__(
        self, stream: StreamRecord, core: _CoreVerifier, first: int, limits: Limits
    ) -> None:
        self._stream = stream
        self._core = core
        self._first = first
        self._limits = limits
        self._ends = [len(stream.items)]  # of the stream and of each open loop
        self._places = len(core.executable.places)

    def verify(self, items: Items) -> None:
        """Raise `Unsound` for the first invalid item, with its position."""
        numbers = self._core.numbers_of(items.references)
        valid: set[tuple[object, ...]] = set()
        at = 0
        for index, head in enumerate(items.heads):
            try:
                if isinstance(head, LoopRecord):
                    self._loop(index, head)
                    continue
                start, at = at, at + head.count
                key = (head, *numbers[start:at])
                if key not in valid:
                    self._instruction(head, items.references[start:at])
                    valid.add(key)
            except Unsound as error:
                self._locate(error, index, head)

    def _locate(self, error: Unsound, index: int, item: Head | LoopRecord) -> NoReturn:
        row = item.row if isinstance(item, Head) else None
        kind = "loop" if isinstance(item, LoopRecord) else row.name if row else "empty slot"
        raise Unsound(
            f"{self._stream.name} item {index:,}, {kind}: {error}",
            error.slug,
            section="code",
            record=self._first + index,
            place=item.place,
            help=error.help,
        ) from error

    def _instruction(self, head: Head, references: Sequence[int]) -> None:
        numbers = [self._core.number_of(reference) for reference in references]
        self._check_place(head.place)
        if head.row is not None:
            item = self._core.item(head, references)
            self._core.check(item, head.row, numbers, self._stream.engine)
        elif head.count or head.attributes:
            raise Unsound("operands without an instruction")
        self._check_waits(head.waits)
        signals = head.signals
        self._check_count(signals)
        for semaphore in signals:
            self._claim(semaphore, self._core.signallers, "signalled")

    def _check_place(self, place: int) -> None:
        if place >= self._places:
            raise Unsound(f"there is no place {place}")

    def _check_waits(self, waits: tuple[tuple[int, int], ...]) -> None:
        self._check_count(waits)
        for semaphore, count in waits:
            self._claim(semaphore, self._core.waiters, "waited for")
            if count < 1:
                raise Unsound(f"a wait for {count} of semaphore s{semaphore}")
        awaited = [semaphore for semaphore, _ in waits]
        if len(set(awaited)) < len(awaited):
            names = ", ".join(f"s{semaphore}" for semaphore in awaited)
            raise Unsound(f"two waits for one semaphore among {names}")

    def _check_count(self, semaphores: Sized) -> None:
        if len(semaphores) > self._limits.waits:
            raise Unsound(f"more than {self._limits.waits} waits or signals", "artifact-limit")

    def _claim(self, semaphore: int, users: dict[int, StreamRecord], usage: str) -> None:
        limit = self._core.executable.semaphores
        if not 0 <= semaphore < limit:
            raise Unsound(f"semaphore s{semaphore}; the program has {limit} per core")
        owner = users.setdefault(semaphore, self._stream)
        if owner is not self._stream:
            raise Unsound(f"semaphore s{semaphore} is also {usage} by {owner.name}")

    def _loop(self, index: int, loop: LoopRecord) -> None:
        self._check_place(loop.place)
        ends = self._ends
        while len(ends) > 1 and index >= ends[-1]:
            ends.pop()
        end = index + 1 + loop.length
        if loop.length < 1 or end > ends[-1]:
            raise Unsound(f"a loop over {loop.length:,} items; {ends[-1] - index - 1:,} follow")
        ends.append(end)
        if len(ends) - 1 > self._limits.loop_depth:
            text = f"loops nest deeper than {self._limits.loop_depth}"
            raise Unsound(text, "artifact-limit")
        self._check_bounds(loop)

    def _check_bounds(self, loop: LoopRecord) -> None:
        for register in (loop.counter, loop.start, loop.stop, loop.condition):
            if isinstance(register, Register):
                check_register(register, self._core.executable)
        if loop.condition is not None and loop.counter is not None:
            raise Unsound("a loop has a counter or a condition, not both")
        if loop.step < 1:
            raise Unsound(f"a loop with step {loop.step}: it would not end")
        if (trips := loop.trips or 0) > self._limits.trips:
            text = f"{trips:,} trips; the limit is {self._limits.trips:,}"
            raise Unsound(text, "artifact-limit")


# --------------------------------------------------------------------------------------------------


def verify(executable: Executable, limits: Limits = LIMITS) -> None:
    """Raise `ArtifactFailed` for the first error in the program."""
    try:
        check(executable, limits)
    except Unsound as error:
        refuse_unsound(error, executable)


def verify_ordered(executable: Executable) -> None:
    """Raise `ArtifactFailed` for two conflicting accesses of one core that are not ordered.

    This is not part of `verify`: a valid file may compute wrong numbers.
    """
    from nkic.artifact.verify_orders import verify_orders  # deferred: compiling does without

    try:
        with without_collector():
            verify_orders(executable)
    except Unsound as error:
        refuse_unsound(error, executable)


def check(executable: Executable, limits: Limits) -> None:
    """The same as `verify`, but raises `Unsound`, which has the position of the record."""
    target = _target(executable, limits)
    kinds = kinds_of(executable)
    verify_tensors(executable, kinds, target, limits)
    columns = columns_of(executable)
    verify_streams(executable, columns, kinds, target, limits)
    if has_rendezvous(columns):
        verify_rendezvous(executable, target)


def refuse_unsound(error: Unsound, executable: Executable, offset: int | None = None) -> NoReturn:
    """Raise `ArtifactFailed` for `error`, with the source place if the file has it."""
    span = source_of(executable, error.place)
    notes = (f"compiled from {span.path}:{span.line}:{span.column}",) if span is not None else ()
    refuse(error.slug, f"{error}", error.section, offset, help=error.help, notes=notes)


def _target(executable: Executable, limits: Limits) -> Target:
    target = targets.TARGETS.get(executable.target)
    if target is None:
        names = ", ".join(targets.TARGETS)
        raise Unsound(f"unknown target `{executable.target}`", help=f"known are: {names}")
    counts = (
        ("cores", executable.cores, target.max_cores),
        ("semaphores per core", executable.semaphores, target.semaphores),
        ("registers", executable.registers, limits.registers),
    )
    for resource, count, limit in counts:
        if not 0 <= count <= limit:
            raise Unsound(f"{count} {resource}; {target.name} has {limit}")
    return target
