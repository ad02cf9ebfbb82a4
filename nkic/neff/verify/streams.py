"""Verification of streams: engines, instructions, operands, semaphores and loops.

Instructions repeat, so that checks of an operand or a form run once per object, and the table's
rules run once per distinct instruction, ignoring offsets.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from contextlib import suppress
from typing import NamedTuple, NoReturn

from nkic.machine import rules
from nkic.machine.engines import Engine
from nkic.machine.facts import Register
from nkic.machine.memory import Buffer
from nkic.machine.operands import Row
from nkic.machine.psum import bank_problem, banks
from nkic.machine.targets import Target
from nkic.neff import attributes
from nkic.neff.columns import Columns, Head, Items, Operands
from nkic.neff.limits import Limits
from nkic.neff.records import (
    Executable,
    InstructionRecord,
    LoopRecord,
    PatternRecord,
    StreamRecord,
    TensorRecord,
)
from nkic.neff.verify import patterns as verify_patterns
from nkic.neff.verify.unsound import Unsound


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
        self._max_elements = verify_patterns.max_elements(executable, target.sbuf_bytes)
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
            self._check_banks(item, row)
        self._legal.add(form)

    def _check_banks(self, item: InstructionRecord, row: Row) -> None:
        """Raise `Unsound` if a result crosses banks of PSUM."""
        for rule, operand in zip(row.operands, item.operands, strict=False):
            if rule.one_bank and type(operand) is PatternRecord and not operand.dynamic:
                covered = self._bytes(operand, self.executable.tensors[operand.tensor])
                if error := bank_problem(row, rule.name, *covered, self.target):
                    raise Unsound(error, "artifact-instruction")

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
        """Return the record of an item."""
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
        room = verify_patterns.room(pattern, tensor)
        self._similar[self._kinds[pattern.tensor], shape] = _SimilarPatterns(*room, number)
        return number

    def _check_pattern(self, pattern: PatternRecord) -> TensorRecord:
        tensors = self.executable.tensors
        if not 0 <= pattern.tensor < len(tensors):
            raise Unsound(f"there is no tensor %{pattern.tensor}")
        tensor = tensors[pattern.tensor]
        if tensor.core not in (-1, self.number):
            raise Unsound(f"{_access(pattern, tensor)}: it belongs to core {tensor.core}")
        if problem := verify_patterns.problem(pattern, tensor, self._max_elements):
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
            text = verify_patterns.dynamic_problem(item, row, self._limits)
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
    return next((a.name for a, value in pairs if not attributes.is_allowed(a, value)), "")


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
        self._check_signals(head.signals)

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

    def _check_signals(self, signals: tuple[int, ...]) -> None:
        self._check_count(signals)
        for semaphore in signals:
            self._claim(semaphore, self._core.signallers, "signalled")

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
