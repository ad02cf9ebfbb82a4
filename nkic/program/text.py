"""The text form of programs, dependence graphs and schedules: its printer, and its parser."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from nkic.base.source import CallChain, Span
from nkic.base.text import clean
from nkic.machine.dtypes import DTYPES, DType
from nkic.machine.instructions import ROWS
from nkic.machine.notation import PYTHON, Misread, Scanner
from nkic.machine.operands import Register
from nkic.machine.targets import MAX_RANK, MAX_SIZE, TARGETS, Address, Buffer, Engine
from nkic.program.program import (
    AccessPattern,
    Body,
    DependenceGraph,
    Dynamic,
    Instruction,
    Item,
    Loop,
    Operand,
    Program,
    Schedule,
    Slot,
    Stream,
    StreamId,
    StreamItem,
    StreamLoop,
    Tensor,
    TensorParameter,
    View,
    Wait,
    instructions,
)

_SPECIAL = re.compile(r"[^\w .=-]", re.ASCII)
_SPECIAL_IN_WORD = re.compile(r"[^\w./-]", re.ASCII)
_QUOTED_WORD = re.compile(r"'([\w./-]|\\U00(0[\da-f]|10)[\da-f]{4})*'", re.ASCII)


def program_text(program: Program) -> str:
    lines = [f"program {_word(program.name)} on {program.target.name}"]
    lines += [f"note {_word(key)} = {value!r}" for key, value in program.notes.items()]
    lines += [f"argument {_word(key)} = {value!r}" for key, value in program.arguments.items()]
    lines += [_tensor(t, program) for t in program.tensors]
    lines += [f"input {_word(p.name)} = %{p.tensor.number}" for p in program.inputs]
    lines += [f"output {_word(p.name)} = %{p.tensor.number}" for p in program.outputs]
    lines += [f"const %{n} = {data.hex()}" for n, data in sorted(program.constants.items())]
    for body in program.cores:
        lines += ["core", *_body(body, 1)]
    return "\n".join(lines) + "\n"


def graph_text(graph: DependenceGraph) -> str:
    """Return one line per waiting instruction: `#5 < raw #3, war #2, raw #5 previous`."""
    lines = []
    for number, edges in sorted(graph.edges.items()):
        texts = [f"{e.kind} #{e.source}{' previous' if e.distance else ''}" for e in edges]
        lines.append(f"#{number} < {', '.join(texts)}")
    for ordinal, table in (("first", graph.first_touches), ("last", graph.last_touches)):
        for tensor, numbers in sorted(table.items()):
            lines.append(f"%{tensor} {ordinal} touched by {', '.join(f'#{n}' for n in numbers)}")
    return "\n".join(lines) + "\n"


def schedule_text(schedule: Schedule) -> str:
    """Return the program, then every stream with its waits (semaphore x count) and signals."""
    lines = [program_text(schedule.program).rstrip("\n")]
    lines.append(f"{'serial ' * schedule.serial}schedule of {schedule.estimate_ns!r} ns")
    for number, core in enumerate(schedule.cores):
        for stream in core:
            lines += [f"stream {number} {stream.id}", *_items(stream.items, 1)]
    return "\n".join(lines) + "\n"


def _items(items: tuple[StreamItem, ...], depth: int) -> Iterator[str]:
    pad = "  " * depth
    for item in items:
        if isinstance(item, Slot):
            yield pad + _slot(item)
        else:
            yield f"{pad}loop {item.loop.number}"
            yield from _items(item.items, depth + 1)
            yield f"{pad}end"


def _slot(slot: Slot) -> str:
    pieces = [f"#{slot.instruction.number}" if slot.instruction is not None else "-"]
    if slot.waits:
        pieces.append("wait " + ", ".join(f"{w.semaphore}x{w.amount}" for w in slot.waits))
    if slot.signals:
        pieces.append("signal " + ", ".join(map(str, slot.signals)))
    return " ".join(pieces)


def _tensor(tensor: Tensor, program: Program) -> str:
    sizes = ", ".join(map(str, tensor.shape))
    name, dtype = _word(tensor.name), tensor.dtype.name
    text = f"%{tensor.number} {name}: {dtype}[{sizes}] {tensor.buffer.value}"
    if tensor.fixed is not None:
        text += f" fixed {tuple(tensor.fixed)}"
    if tensor.scope:
        text += f" scope {tensor.scope}"
    if tensor.number in program.addresses:
        text += f" at {tuple(program.addresses[tensor.number])}"
    return text + _place(tensor.at)


def _place(at: CallChain) -> str:
    spans = at.frames()
    return " @" + " < ".join(
        f"{_word(s.path)}:{s.line}:{s.column}-{s.end_line}:{s.end_column}" for s in spans
    )


def _body(body: Body, depth: int) -> Iterator[str]:
    pad = "  " * depth
    for item in body:
        if isinstance(item, Instruction):
            yield pad + instruction_text(item) + _place(item.at)
        else:
            yield pad + _loop(item) + _place(item.at)
            yield from _body(item.body, depth + 1)
            yield pad + "end"


def _loop(loop: Loop) -> str:
    if loop.condition is not None:
        return f"loop {loop.number} while ${loop.condition.number}"
    counter = loop.counter.number if loop.counter is not None else 0
    start, stop = _operand(loop.start), _operand(loop.stop)
    return f"loop {loop.number} ${counter} = {start} to {stop} by {loop.step}"


def instruction_text(instruction: Instruction) -> str:
    """Return the text form of an instruction, without its source location."""
    row = instruction.row
    operands = ", ".join(
        f"{rule.name}={_operand(value)}"
        for rule, value in zip(row.operands, instruction.operands, strict=True)
    )
    attributes = ", ".join(
        f"{rule.name}={quoted(value) if isinstance(value, str) else repr(value)}"
        for rule, value in zip(row.attributes, instruction.attributes, strict=True)
    )
    engine = instruction.engine.value if instruction.engine is not None else "any"
    text = f"#{instruction.number} {engine} {row.name}({operands}; {attributes})"
    if instruction.name:
        text += f" name {quoted(instruction.name)}"
    if instruction.after:
        text += f" after {instruction.after}"
    if instruction.pinned:
        text += f" pinned {instruction.pinned}"
    return text + (f" iteration {quoted(instruction.iterations)}" if instruction.iterations else "")


def quoted(text: str) -> str:
    """Quote `text`, with everything escaped that the parser would interpret."""
    return "'" + _SPECIAL.sub(lambda match: f"\\U{ord(match[0]):08x}", text) + "'"


def _word(text: str) -> str:
    """Return a name or a path without spaces: as it is, or else quoted, so that nothing in it is
    taken for what follows it.
    """
    if text.isprintable() and " " not in text and text[:1] not in ("", "'", "@"):
        return text
    return "'" + _SPECIAL_IN_WORD.sub(lambda match: f"\\U{ord(match[0]):08x}", text) + "'"


def _of_word(word: str) -> str:
    """Return what `_word` made the word of. Raises `Misread`."""
    if word[:1] != "'":
        return word
    if not _QUOTED_WORD.fullmatch(word):
        raise Misread(f"`{clean(word)}` is no quoted name")
    return re.sub(r"\\U(\w{8})", lambda match: chr(int(match[1], 16)), word[1:-1])


def _operand(operand: Operand) -> str:
    if isinstance(operand, AccessPattern):
        return operand.notation(operand.tensor.number) + _suffix(operand)
    if isinstance(operand, View):
        text = f"%{operand.tensor.number}{{{operand.offset}; {operand.shape}; {operand.strides}}}"
        return text + _suffix(operand)
    if isinstance(operand, Register):
        return f"${operand.number}"
    return repr(operand)


def _suffix(operand: AccessPattern | View) -> str:
    text = f":{operand.dtype.name}" if operand.dtype is not operand.tensor.dtype else ""
    dynamic = operand.dynamic
    return f"{text} {dynamic.notation(_operand(dynamic.source))}" if dynamic is not None else text


# ---- The parser, for tools that start at a later stage ------------------------------------------

_PLACE = re.compile(r"(.*):(\d+):(\d+)-(\d+):(\d+)")
_HEAD = re.compile(r"program (\S+) on (\w+)")
_TENSOR = re.compile(r"%(\d+) (.*): (\w+)\[([\d, ]*)\] (\w+)(.*)")
_INSTRUCTION = re.compile(r"#(\d+) (\w+) (\w+)\(")
_EXTRAS = {n: n for n in ("fixed", "scope", "at", "name", "after", "pinned", "iteration")}
_LOOP = re.compile(r"loop (\d+) (?:\$(\d+) = (\S+) to (\S+) by (\d+)|while \$(\d+))$")
_SCHEDULE = re.compile(r"(serial )?schedule of ([\d.e+]+) ns")
_STREAM = re.compile(r"stream (\d+) (?:dma(\d+)|(\w+))")
_SLOT = re.compile(r"(?:#(\d+)|-)(?: wait ([\dx, ]+?))?(?: signal ([\d, ]+))?")
MAX_NUMBER, _DIGITS = 1 << 63, 20  # numbers are smaller, and have no more characters
MAX_CORES = 2


def read_program(text: str) -> Program:
    """Return a printed program. Raises `Misread` for any other text."""
    reader = _Reader(text)
    with reader.reading():
        program = reader.program()
        if reader.peek():
            line = reader.take()
            raise Misread(f"it does not belong there: {clean(line[:40])}")
    _check(program)
    return program


def read_schedule(text: str) -> Schedule:
    """Return a printed schedule. Raises `Misread` for any other text."""
    reader = _Reader(text)
    with reader.reading():
        schedule = reader.schedule()
    _check(schedule.program)
    return schedule


def _chain(text: str) -> CallChain:
    chain: CallChain | None = None
    for frame in reversed(text.split(" < ")):
        match = _PLACE.fullmatch(frame)
        if match is None:
            raise Misread(f"not a place: {clean(frame[:40])}")
        path, *numbers = match.groups()
        chain = CallChain(Span(_of_word(path), *map(_integer, numbers)), chain)
    if chain is None:
        raise Misread("no place")
    return chain


class _Reader:
    def __init__(self, text: str) -> None:
        self.lines = [line for line in text.splitlines() if line.strip()]
        self.at = 0
        self.tensors: dict[int, Tensor] = {}
        self.addresses: dict[int, Address] = {}

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Say at which line a text is not what it should be."""
        try:
            yield
        except Misread as error:
            at = "" if str(error).startswith("line ") else f"line {max(1, self.at)}: "
            raise Misread(f"{at}{error}") from error
        except (ValueError, LookupError, TypeError, SyntaxError) as error:
            line = self.lines[self.at - 1] if 0 < self.at <= len(self.lines) else ""
            told = "not understood"
            if isinstance(error, KeyError):
                told = f"there is no `{clean(str(error.args[0])[:40])}`"
            told = f"{told}: {clean(line.strip()[:40])}" if line else "the text ends there"
            raise Misread(f"line {max(1, self.at)}: {told}") from error

    def peek(self) -> str:
        return self.lines[self.at].strip() if self.at < len(self.lines) else ""

    def take(self) -> str:
        line = self.peek()
        self.at += 1
        return line

    def program(self) -> Program:
        name, target = self.matched(_HEAD, "`program NAME on TARGET`").groups()
        if target not in TARGETS:
            raise Misread(f"there is no target `{target}`; known are {', '.join(TARGETS)}")
        notes, arguments = self.entries("note"), self.entries("argument")
        while self.peek().startswith("%"):
            self.tensor(self.take())
        inputs = self.parameters("input")
        outputs = self.parameters("output")
        constants = {}
        while self.peek().startswith("const "):
            _, tensor, _, data = self.take().split(" ")
            constants[_integer(tensor[1:])] = bytes.fromhex(data)
        cores = []
        while self.peek() == "core":
            self.take()
            cores.append(self.body())
        return Program(
            _of_word(name),
            TARGETS[target],
            tuple(self.tensors.values()),
            inputs,
            outputs,
            tuple(cores),
            constants,
            self.addresses,
            arguments=arguments,
            notes=notes,
        )

    def end(self) -> None:
        if self.take() != "end":
            raise Misread(f"line {self.at}: a loop without `end`")

    def schedule(self) -> Schedule:
        program = self.program()
        match = self.matched(_SCHEDULE, "a schedule")
        cores: list[list[Stream]] = [[] for _ in program.cores]
        instructions_by_number = [
            {item.number: item for item in instructions(body)} for body in program.cores
        ]
        loops = [{item.number: item for item in _loops(body)} for body in program.cores]
        while self.peek():
            core, queue, engine = self.matched(_STREAM, "a stream").groups()
            stream_id = (
                StreamId(Engine(engine)) if engine else StreamId(Engine.DMA, _integer(queue))
            )
            items = self.stream(instructions_by_number[_integer(core)], loops[_integer(core)])
            cores[_integer(core)].append(Stream(stream_id, items))
        return Schedule(program, tuple(map(tuple, cores)), float(match[2]), bool(match[1]))

    def matched(self, form: re.Pattern[str], noun: str) -> re.Match[str]:
        """Consume the next line, which must match `form`."""
        line = self.take()
        match = form.fullmatch(line)
        if match is None:
            raise Misread(f"line {self.at}: not {noun}: {clean(line[:40])}")
        return match

    def stream(
        self, by_number: Mapping[int, Instruction], loops: Mapping[int, Loop]
    ) -> tuple[StreamItem, ...]:
        """Parse the items of a stream, or of a loop in it, up to the first other line."""
        items: list[StreamItem] = []
        while self.peek().startswith(("#", "-", "loop ")):
            if self.peek().startswith("loop "):
                loop = loops[_integer(self.take()[5:])]
                items.append(StreamLoop(loop, self.stream(by_number, loops)))
                self.end()
                continue
            number, waits, signals = self.matched(_SLOT, "a place in a stream").groups()
            pairs = (pair.split("x") for pair in (waits or "").split(", ") if pair)
            awaited = tuple(Wait(_integer(one), _integer(amount)) for one, amount in pairs)
            if len({wait.semaphore for wait in awaited}) < len(awaited):
                raise Misread(f"line {self.at}: two waits for one semaphore")
            items.append(
                Slot(
                    by_number[_integer(number)] if number else None,
                    awaited,
                    tuple(_integer(s) for s in (signals or "").split(", ") if s),
                )
            )
        return tuple(items)

    def entries(self, keyword: str) -> dict[str, str]:
        values: dict[str, str] = {}
        while self.peek().startswith(keyword + " "):
            key, _, value = self.take()[len(keyword) + 1 :].partition(" = ")
            values[_of_word(key)] = literal_eval(value)
        return values

    def tensor(self, line: str) -> None:
        head, location = line.rsplit(" @", 1)
        match = _TENSOR.fullmatch(head)
        if match is None:
            raise Misread(f"line {self.at}: not a tensor: {line}")
        number, name, dtype, sizes, buffer, suffix = match.groups()
        extras = _extras(Scanner(suffix, self.at, PYTHON))
        if _integer(number) in self.tensors:
            raise Misread(f"line {self.at}: tensor %{number} is declared twice")
        shape = tuple(_integer(s) for s in sizes.split(",") if s.strip())
        addresses = {key: _address(extras[key]) for key in ("fixed", "at") if key in extras}
        self.tensors[_integer(number)] = Tensor(
            _integer(number),
            _of_word(name),
            DTYPES[dtype],
            shape,
            Buffer(buffer),
            _chain(location),
            addresses.get("fixed"),
            extras.get("scope", ()),
        )
        if "at" in addresses:
            self.addresses[_integer(number)] = addresses["at"]

    def parameters(self, keyword: str) -> tuple[TensorParameter, ...]:
        parameters = []
        while self.peek().startswith(keyword + " "):
            _, name, _, tensor = self.take().split(" ")
            parameters.append(TensorParameter(_of_word(name), self.tensors[_integer(tensor[1:])]))
        return tuple(parameters)

    def body(self) -> Body:
        items: list[Item] = []
        while self.peek().startswith(("#", "loop ")):
            line = self.take()
            head, location = line.rsplit(" @", 1)
            if line.startswith("#"):
                items.append(self.instruction(head, _chain(location)))
            else:
                body = self.body()
                self.end()
                items.append(replace(self.loop(head, _chain(location)), body=body))
        return tuple(items)

    def loop(self, head: str, at: CallChain) -> Loop:
        match = _LOOP.fullmatch(head)
        if match is None:
            raise Misread(f"line {self.at}: not a loop: {head}")
        number, counter, start, stop, step, condition = match.groups()
        if condition is not None:
            return Loop(_integer(number), (), at, condition=Register(_integer(condition)))
        low, high = self.bound(start), self.bound(stop)
        return Loop(
            _integer(number), (), at, Register(_integer(counter)), low, high, _integer(step)
        )

    def bound(self, text: str) -> int | Register:
        return Register(_integer(text[1:])) if text.startswith("$") else _integer(text)

    def instruction(self, head: str, at: CallChain) -> Instruction:
        match = _INSTRUCTION.match(head)
        if match is None:
            raise Misread(f"line {self.at}: not an instruction: {head}")
        number, engine, name = match.groups()
        row, given = ROWS[name], dict[str, Any]()
        scanner = Scanner(head[match.end() :], self.at, PYTHON)
        for end in ";)":  # of the operands, and of the attributes
            while not scanner.accept(end):
                name = scanner.name()
                scanner.expect("=")
                given[name] = self.operand(scanner)
                if scanner.peek() != end:
                    scanner.expect(",")
        extras = _extras(scanner)
        return Instruction(
            row,
            tuple([given[operand.name] for operand in row.operands]),
            tuple([given[attribute.name] for attribute in row.attributes]),
            None if engine == "any" else Engine(engine),
            at,
            _integer(number),
            extras.get("name", ""),
            extras.get("after", ()),
            extras.get("pinned", 0),
            iterations=extras.get("iteration", ""),
        )

    def operand(self, scanner: Scanner) -> Any:
        if scanner.peek() == "$":
            return scanner.register()
        return self.place(scanner) if scanner.peek() == "%" else scanner.value()

    def place(self, scanner: Scanner) -> View | AccessPattern:
        storage = self.tensors[scanner.reference()]
        if scanner.peek() == "[":
            window = scanner.window()
            dtype, dynamic = self.kind(scanner, storage)
            pattern = AccessPattern(storage, dtype, *window, dynamic)
            if dynamic is None and pattern.extent()[0] < 0:
                raise Misread(f"an access begins before the first byte of {storage}")
            return pattern
        offset = scanner.setting("{")
        scanner.expect(";")
        shape = _integers(scanner)
        scanner.expect(";")
        strides = _integers(scanner)
        if len(strides) != len(shape):
            scanner.fail(f"{len(strides)} strides", f"{len(shape)}, one for each size")
        scanner.expect("}")
        return View(storage, shape, strides, offset, *self.kind(scanner, storage))

    def kind(self, scanner: Scanner, storage: Tensor) -> tuple[DType, Dynamic | None]:
        """Parse what may follow a pattern: another type than its tensor's, a run-time offset."""
        dtype = scanner.dtype() if scanner.accept(":") else storage.dtype
        if dtype.size > storage.bytes:
            raise Misread(f"no {dtype.name} fits into a partition of {storage}")
        return dtype, scanner.dynamic(self.operand)


def _integers(scanner: Scanner) -> tuple[int, ...]:
    value = scanner.value()
    if not isinstance(value, tuple) or not all(type(part) is int for part in value):
        scanner.fail(f"`{clean(repr(value)[:30])}`", "a tuple of integers")
    return value


def _check(program: Program) -> None:
    """Raise `Misread` unless the program has the form that `specialise` gives its programs."""
    for tensor in program.tensors:
        if not 1 <= len(tensor.shape) <= MAX_RANK:
            raise Misread(f"tensor {tensor!r} has more than {MAX_RANK} dimensions, or none")
        if not all(1 <= size <= MAX_SIZE for size in tensor.shape):
            raise Misread(f"the sizes of {tensor!r} are not from 1 to {MAX_SIZE:,}")
    tensors = {tensor.number: tensor for tensor in program.tensors}
    for number, data in program.constants.items():
        if number not in tensors or len(data) != _total(tensors[number]):
            raise Misread(f"the {len(data):,} bytes of constant %{number} fill no tensor")
    if not 1 <= len(program.cores) <= MAX_CORES:
        raise Misread(f"a program has 1 or {MAX_CORES} cores, not {len(program.cores)}")
    for body in program.cores:
        _check_numbers(body)


def _total(tensor: Tensor) -> int:
    return tensor.bytes * (tensor.partitions if tensor.on_chip else 1)


def _check_numbers(body: Body) -> None:
    """Check that numbers differ, and that edges lead backward."""
    seen = set()
    for instruction in instructions(body):
        if instruction.number in seen:
            raise Misread(f"two instructions have the number #{instruction.number}")
        for number in instruction.after:
            if number not in seen:
                text = (
                    f"#{instruction.number} is ordered after #{number}, which does not precede it"
                )
                raise Misread(text)
        seen.add(instruction.number)
    loops = [loop.number for loop in _loops(body)]
    if len(loops) != len(set(loops)):
        raise Misread("two loops have the same number")


def _integer(text: str) -> int:
    number = int(text) if len(text) <= _DIGITS else MAX_NUMBER
    if not -MAX_NUMBER <= number < MAX_NUMBER:
        raise Misread(f"the number {text[:_DIGITS]}… needs more than 64 bits")
    return number


def _loops(body: Body) -> Iterator[Loop]:
    for item in body:
        if isinstance(item, Loop):
            yield item
            yield from _loops(item.body)


def _extras(scanner: Scanner) -> dict[str, Any]:
    extras = {}
    while not scanner.done:
        name = scanner.choice(_EXTRAS)
        extras[name] = scanner.value()
    return extras


def _address(value: object) -> Address:
    match value:
        case (int(partition), int(byte)):
            return Address(partition, byte)
    raise Misread(f"not the partition and byte of an address: {value}")
