"""Program text → executable: parses the output of `disassemble.dump`.

A line is one record, and `;` starts a comment. Tensors, places and files are numbered in order. The
result is well-typed but not verified.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Mapping
from typing import Any

from nkic.artifact import disassemble, records
from nkic.artifact.disassemble import HEAD
from nkic.artifact.format import ROLES, refuse
from nkic.artifact.records import (
    Executable,
    FileRecord,
    InstructionRecord,
    LoopRecord,
    OperandRecord,
    ParameterRecord,
    PatternRecord,
    PlaceRecord,
    StreamRecord,
    TensorRecord,
)
from nkic.base.diagnostics import did_you_mean
from nkic.machine import instructions
from nkic.machine.notation import JSON, Misread, Scanner
from nkic.machine.operands import Register, Row
from nkic.machine.targets import Buffer, Engine

# ---- Parsers of the parts of a line of program text: all refuse a line that they cannot parse ----


def pair(scanner: Scanner) -> tuple[int, int]:
    """Parse two integers separated by a colon."""
    return scanner.integer(), scanner.setting(":")


def parse_place(scanner: Scanner) -> int:
    """Parse a source place, @3; -1 if absent."""
    return scanner.integer() if scanner.accept("@") else -1


def sizes(scanner: Scanner) -> tuple[int, ...]:
    """Parse a shape in brackets."""
    shape = scanner.value() if scanner.peek() == "[" else None
    if shape is None or not all(type(n) is int for n in shape):
        scanner.fail("no shape", "sizes in brackets")
    return tuple(shape)


def parse_assignments(scanner: Scanner) -> dict[str, Any]:
    """Parse name=value assignments; hidden operands are named +3, +4, …"""
    values: dict[str, Any] = {}
    while scanner.peek(1) == "=" or scanner.peek() == "+":
        name = f"+{scanner.integer()}" if scanner.accept("+") else scanner.name()
        scanner.expect("=")
        if name in values:
            scanner.fail(f"`{name}` twice")
        values[name] = operand(scanner)
    return values


def operand(scanner: Scanner) -> Any:
    """Parse a pattern, a register, or any value, including values of attributes."""
    if scanner.peek() == "%":
        return pattern(scanner)
    return scanner.register() if scanner.peek() == "$" else scanner.value()


def pattern(scanner: Scanner) -> PatternRecord:
    """Parse an access pattern, as printed by `disassemble.pattern`."""
    tensor, window = scanner.reference(), scanner.window()
    scanner.expect(":")
    dtype = scanner.dtype()
    dynamic = scanner.dynamic(lambda scanner: scanner.setting("+"))
    return PatternRecord(tensor, dtype, *window, dynamic)


def semaphores(scanner: Scanner) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
    """Parse waits as (semaphore, count) and signals; both may be absent."""
    waits, signals = [], []
    if scanner.accept("wait"):
        while scanner.peek()[:1] == "s" and scanner.peek(1) == ">=":
            semaphore = scanner.numbered("s")
            scanner.expect(">=")
            waits.append((semaphore, scanner.integer()))
    if scanner.accept("signal"):
        while not scanner.done and scanner.peek() != "@":
            signals.append(scanner.numbered("s"))
    return tuple(waits), tuple(signals)


# --------------------------------------------------------------------------------------------------

_STREAM = re.compile(r"core(\d{1,9})\.(?:dma(\d{1,9})|(\w+))", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)


def assemble(source: str, *, rows: Mapping[str, Row] | None = None) -> Executable:
    """Parse `source`; raises `ArtifactFailed` (NKI0810).

    `rows` is the instruction table by name, by default the machine's.
    """
    lines = source.split("\n")
    if lines[0].strip() != HEAD:
        refuse("assembly-syntax", f"line 1: a program text begins with `{HEAD}`")
    assembler = _Assembler(instructions.ROWS if rows is None else rows)
    try:
        for number, line in enumerate(lines[1:], 2):
            assembler.line(Scanner(line, number, JSON))
    except Misread as error:
        refuse("assembly-syntax", f"{error}")
    return assembler.executable()


class _Assembler:
    def __init__(self, rows: Mapping[str, Row]) -> None:
        self._rows = rows
        self._kernel: tuple[str, str, int, int, int] | None = None
        self._arguments: dict[str, str] = {}
        self._flags: dict[str, str] = {}
        self._files: list[FileRecord] = []
        self._places: list[PlaceRecord] = []
        self._iterations: list[str] = []
        self._tensors: list[TensorRecord] = []
        self._inputs: list[ParameterRecord] = []
        self._outputs: list[ParameterRecord] = []
        self._constants: dict[int, bytes] = {}
        self._streams: list[StreamRecord] = []
        self._items: list[InstructionRecord | LoopRecord] = []
        self._open: list[tuple[int, LoopRecord]] = []  # loops with open braces, and their positions
        self._shared: dict[str, Any] = {}
        self._statements: dict[str, Callable[[Scanner], None]] = {
            "kernel": self._read_kernel,
            "argument": lambda scanner: self._note(scanner, self._arguments),
            "flag": lambda scanner: self._note(scanner, self._flags),
            "file": self._file,
            "place": self._place,
            "iteration": lambda scanner: self._iterations.append(scanner.string()),
            "tensor": self._tensor,
            "input": lambda scanner: self._parameter(scanner, self._inputs),
            "output": lambda scanner: self._parameter(scanner, self._outputs),
            "constant": self._constant,
            "stream": self._stream,
        }

    def line(self, scanner: Scanner) -> None:
        if scanner.done:
            return
        if scanner.accept("}"):
            if not self._open:
                scanner.fail("`}` without a loop")
            start, loop = self._open.pop()
            self._items[start] = loop._replace(length=len(self._items) - start - 1)
        else:
            name = scanner.name()
            statement = None if self._streams and name != "stream" else self._statements.get(name)
            if statement:
                statement(scanner)
            else:
                self._item(name, scanner)
        if not scanner.done:
            scanner.fail(f"`{scanner.peek()}`", "the end of the line")

    def executable(self) -> Executable:
        self._end_stream()
        if self._kernel is None:
            refuse("assembly-syntax", "the text has no `kernel` line")
        return Executable(
            *self._kernel,
            tensors=tuple(self._tensors),
            inputs=tuple(self._inputs),
            outputs=tuple(self._outputs),
            streams=tuple(self._streams),
            constants=self._constants,
            places=tuple(self._places),
            files=tuple(self._files),
            arguments=self._arguments,
            meta=self._flags,
            iterations=tuple(self._iterations),
        )

    def _read_kernel(self, scanner: Scanner) -> None:
        name, target = scanner.string(), scanner.name()
        counts = [scanner.setting(key, "=") for key in ("cores", "semaphores", "registers")]
        self._kernel = (name, target, counts[0], counts[1], counts[2])

    def _note(self, scanner: Scanner, into: dict[str, str]) -> None:
        key = scanner.string()
        into[key] = scanner.string()

    def _file(self, scanner: Scanner) -> None:
        path, digest = scanner.string(), scanner.string()
        if not _SHA256.fullmatch(digest):
            scanner.fail("the second string", "a sha256 of 64 hexadecimal digits")
        self._files.append(FileRecord(path, digest, None if scanner.done else scanner.string()))

    def _place(self, scanner: Scanner) -> None:
        file = scanner.integer()
        line, column = pair(scanner)
        end_line, end_column = pair(scanner)
        caller = scanner.integer() if scanner.accept("from") else -1
        if not (0 <= file < len(self._files) and -1 <= caller < len(self._places)):
            scanner.fail("a file or a caller", "one that is declared before")
        self._places.append(PlaceRecord(file, line, column, end_line, end_column, caller))

    def _tensor(self, scanner: Scanner) -> None:
        number = scanner.reference()
        if number != len(self._tensors):
            scanner.fail(f"tensor %{number}", f"%{len(self._tensors)}")
        name, dtype, shape = scanner.string(), scanner.dtype(), sizes(scanner)
        buffer = scanner.choice({b.value: b for b in Buffer})
        role = scanner.choice({role: role for role in ROLES})
        core = scanner.integer() if scanner.accept("core") else -1
        partition, byte = pair(scanner) if scanner.accept("at") else (0, 0)
        place = parse_place(scanner)
        self._tensors.append(
            TensorRecord(name, dtype, shape, buffer, core, role, partition, byte, place)
        )

    def _parameter(self, scanner: Scanner, into: list[ParameterRecord]) -> None:
        name = scanner.string()
        tensor = scanner.reference()
        if tensor >= len(self._tensors):
            scanner.fail(f"%{tensor}", "a tensor that is declared before")
        into.append(ParameterRecord(name, tensor))

    def _constant(self, scanner: Scanner) -> None:
        tensor = scanner.reference()
        try:
            self._constants[tensor] = b64decode(scanner.string(), validate=True)
        except (Base64Error, ValueError):
            scanner.fail("the string", "base64")

    def _stream(self, scanner: Scanner) -> None:
        self._end_stream()
        written = scanner.name()
        match = _STREAM.fullmatch(written)
        engines = {engine.value: engine for engine in Engine if engine is not Engine.DMA}
        engine = Engine.DMA if match and match[2] else engines.get(match[3]) if match else None
        if match is None or engine is None:
            scanner.fail(f"`{written}`", "a stream such as core0.vector or core0.dma3")
        self._streams.append(StreamRecord(int(match[1]), engine, int(match[2] or 0), ()))

    def _end_stream(self) -> None:
        if self._open:
            refuse("assembly-syntax", f"{self._streams[-1].name}: a loop without its `}}`")
        if self._streams:
            self._streams[-1] = self._streams[-1]._replace(items=tuple(self._items))
            self._items = []

    def _item(self, name: str, scanner: Scanner) -> None:
        if not self._streams:
            hint = did_you_mean(name, self._statements)
            scanner.fail(f"`{name}` before the first stream", hint or "a declaration")
        if name == "loop":
            self._loop(scanner)
            return
        if name not in self._rows and name != "slot":
            scanner.fail(f"`{name}`", did_you_mean(name, self._rows) or "an instruction")
        row = self._rows.get(name)
        assignments = parse_assignments(scanner) if row else {}
        operands = _operands(row, assignments, scanner) if row else ()
        values = _attribute_values(row, assignments, scanner) if row else ()
        if assignments:
            scanner.fail(f"`{next(iter(assignments))}`, which {name} does not have")
        waits, signals = semaphores(scanner)
        # Intern operands and forms, as emit and the reader do.
        shared = tuple([self._share(operand) for operand in operands])
        place = parse_place(scanner)
        iterations = scanner.integer() if scanner.accept("iteration") else -1
        if not -1 <= iterations < len(self._iterations):
            scanner.fail(f"iteration {iterations}", "an iteration that is declared before")
        fields = (row, shared, self._share(values), waits, signals)
        self._items.append(InstructionRecord(*fields, place, iterations))

    def _share(self, value: Any) -> Any:
        return self._shared.setdefault(disassemble.operand(value), value)

    def _loop(self, scanner: Scanner) -> None:
        counter = None if scanner.peek() == "from" else scanner.register()
        scanner.expect("from")
        start = scanner.bound()
        scanner.expect("to")
        stop, step = scanner.bound(), scanner.setting("step")
        condition = scanner.register() if scanner.accept("while") else None
        place = parse_place(scanner)
        scanner.expect("{")
        loop = LoopRecord(0, counter, start, stop, step, condition, place)
        self._open.append((len(self._items), loop))
        self._items.append(loop)


def _operands(row: Row, assignments: dict[str, Any], scanner: Scanner) -> tuple[OperandRecord, ...]:
    """Remove the operands from `assignments`: the row's own, then the hidden ones in order."""
    values = [assignments.pop(operand.name, None) for operand in row.operands]
    while (hidden := f"+{len(values)}") in assignments:
        values.append(assignments.pop(hidden))
    for value in values:
        kind = PatternRecord, Register
        if value is not None and type(value) not in kind and not records.is_operand_number(value):
            scanner.fail(f"{row.name}: an operand of a kind that operands cannot have")
    return tuple(values)


def _attribute_values(row: Row, assignments: dict[str, Any], scanner: Scanner) -> tuple[Any, ...]:
    """Remove the attributes from `assignments`, with defaults for absent ones."""
    values = []
    for attribute in row.attributes:
        if attribute.name not in assignments and attribute.required:
            scanner.fail(f"{row.name} without `{attribute.name}`")
        value = assignments.pop(attribute.name, attribute.default)
        if not records.is_allowed(attribute, value):
            scanner.fail(f"{row.name}: `{attribute.name}` cannot have this value")
        values.append(value)
    return tuple(values)
