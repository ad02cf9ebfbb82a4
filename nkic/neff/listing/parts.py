"""Parsers of the parts of a line of program text. All refuse a line that they cannot parse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nkic.machine import dtypes
from nkic.machine.dtypes import DType
from nkic.machine.facts import Register
from nkic.neff.layout import DYNAMIC_KINDS
from nkic.neff.listing.scan import Scanner
from nkic.neff.records import OffsetRecord, PatternRecord


def named(scanner: Scanner, name: str) -> int:
    """Parse an integer after `name` and `=`."""
    scanner.expect(name)
    scanner.expect("=")
    return scanner.integer()


def pair(scanner: Scanner) -> tuple[int, int]:
    """Parse two integers separated by a colon."""
    first = scanner.integer()
    scanner.expect(":")
    return first, scanner.integer()


def reference(scanner: Scanner) -> int:
    """Parse a tensor's number: %3."""
    scanner.expect("%")
    return scanner.integer()


def place(scanner: Scanner) -> int:
    """Parse a source place, @3; -1 if absent."""
    return scanner.integer() if scanner.accept("@") else -1


def choice(scanner: Scanner, choices: Mapping[str, Any]) -> Any:
    """Return the value in `choices` for the next name."""
    written = scanner.name()
    if written not in choices:
        scanner.fail(f"`{written}`", f"one of {', '.join(choices)}")
    return choices[written]


def dtype(scanner: Scanner) -> DType:
    """Parse the full name of a dtype."""
    chosen: DType = choice(scanner, dtypes.DTYPES)
    return chosen


def sizes(scanner: Scanner) -> tuple[int, ...]:
    """Parse a shape in brackets."""
    shape = scanner.value() if scanner.peek() == "[" else None
    if shape is None or not all(type(n) is int for n in shape):
        scanner.fail("no shape", "sizes in brackets")
    return tuple(shape)


def bound(scanner: Scanner) -> int | Register:
    """Parse a loop's bound: an integer or a register."""
    return register(scanner) if scanner.peek() == "$" else scanner.integer()


def register(scanner: Scanner) -> Register:
    """Parse a register: $0."""
    scanner.expect("$")
    return Register(scanner.integer())


def assignments(scanner: Scanner) -> dict[str, Any]:
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
    if scanner.peek() == "$":
        return register(scanner)
    return scanner.value()


def pattern(scanner: Scanner) -> PatternRecord:
    """Parse an access pattern, as printed by `text.pattern`."""
    tensor = reference(scanner)
    scanner.expect("[")
    start = partitions = 0
    offset = scanner.integer()
    if scanner.accept("+"):
        start, partitions = offset, scanner.integer()
        scanner.expect(",")
        offset = scanner.integer()
    scanner.expect(";")
    dims = _dims(scanner)
    scanner.expect(":")
    kind = dtype(scanner)
    dynamic = _dynamic(scanner) if scanner.accept("by") else None
    return PatternRecord(tensor, kind, start, partitions, offset, dims, dynamic)


def _dims(scanner: Scanner) -> tuple[tuple[int, int], ...]:
    """Parse pairs of step and number, up to the closing bracket."""
    dims: list[tuple[int, int]] = []
    while not scanner.accept("]"):
        if dims:
            scanner.expect(",")
        dims.append((scanner.integer(), scanner.numbered("x")))
    return tuple(dims)


def _dynamic(scanner: Scanner) -> OffsetRecord:
    kind = choice(scanner, {kind: kind for kind in DYNAMIC_KINDS})
    scanner.expect("+")
    source = scanner.integer()
    stride, limit, axis = [_after(scanner, name) for name in ("stride", "limit", "axis")]
    return OffsetRecord(kind, source, stride, limit, axis)


def _after(scanner: Scanner, name: str) -> int:
    """Parse an integer after `name`."""
    scanner.expect(name)
    return scanner.integer()


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
