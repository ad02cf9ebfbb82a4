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


def named(words: Scanner, name: str) -> int:
    """Parse an integer after `name` and `=`."""
    words.expect(name)
    words.expect("=")
    return words.integer()


def pair(words: Scanner) -> tuple[int, int]:
    """Parse two integers separated by a colon."""
    first = words.integer()
    words.expect(":")
    return first, words.integer()


def reference(words: Scanner) -> int:
    """Parse a tensor's number: %3."""
    words.expect("%")
    return words.integer()


def place(words: Scanner) -> int:
    """Parse a source place, @3; -1 if absent."""
    return words.integer() if words.accept("@") else -1


def choice(words: Scanner, known: Mapping[str, Any]) -> Any:
    """Return the value in `known` for the next name."""
    written = words.name()
    if written not in known:
        words.fail(f"`{written}`", f"one of {', '.join(known)}")
    return known[written]


def dtype(words: Scanner) -> DType:
    """Parse the full name of a dtype."""
    found: DType = choice(words, dtypes.DTYPES)
    return found


def sizes(words: Scanner) -> tuple[int, ...]:
    """Parse a shape in brackets."""
    found = words.value() if words.peek() == "[" else None
    if found is None or not all(type(n) is int for n in found):
        words.fail("no shape", "sizes in brackets")
    return tuple(found)


def bound(words: Scanner) -> int | Register:
    """Parse a loop's bound: an integer or a register."""
    return register(words) if words.peek() == "$" else words.integer()


def register(words: Scanner) -> Register:
    """Parse a register: $0."""
    words.expect("$")
    return Register(words.integer())


def assignments(words: Scanner) -> dict[str, Any]:
    """Parse name=value assignments; hidden operands are named +3, +4, …"""
    given: dict[str, Any] = {}
    while words.peek(1) == "=" or words.peek() == "+":
        name = f"+{words.integer()}" if words.accept("+") else words.name()
        words.expect("=")
        if name in given:
            words.fail(f"`{name}` twice")
        given[name] = operand(words)
    return given


def operand(words: Scanner) -> Any:
    """Parse a pattern, a register, or any value, including values of attributes."""
    if words.peek() == "%":
        return pattern(words)
    if words.peek() == "$":
        return register(words)
    return words.value()


def pattern(words: Scanner) -> PatternRecord:
    """Parse an access pattern, as printed by `text.pattern`."""
    tensor = reference(words)
    words.expect("[")
    start = partitions = 0
    offset = words.integer()
    if words.accept("+"):
        start, partitions = offset, words.integer()
        words.expect(",")
        offset = words.integer()
    words.expect(";")
    dims = _dims(words)
    words.expect(":")
    kind = dtype(words)
    dynamic = _dynamic(words) if words.accept("by") else None
    return PatternRecord(tensor, kind, start, partitions, offset, dims, dynamic)


def _dims(words: Scanner) -> tuple[tuple[int, int], ...]:
    """Parse pairs of step and number, up to the closing bracket."""
    dims: list[tuple[int, int]] = []
    while not words.accept("]"):
        if dims:
            words.expect(",")
        dims.append((words.integer(), words.numbered("x")))
    return tuple(dims)


def _dynamic(words: Scanner) -> OffsetRecord:
    kind = choice(words, {kind: kind for kind in DYNAMIC_KINDS})
    words.expect("+")
    source = words.integer()
    stride, limit, axis = [_after(words, name) for name in ("stride", "limit", "axis")]
    return OffsetRecord(kind, source, stride, limit, axis)


def _after(words: Scanner, name: str) -> int:
    """Parse an integer after `name`."""
    words.expect(name)
    return words.integer()


def semaphores(words: Scanner) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
    """Parse waits as (semaphore, count) and signals; both may be absent."""
    waits, signals = [], []
    if words.accept("wait"):
        while words.peek()[:1] == "s" and words.peek(1) == ">=":
            semaphore = words.numbered("s")
            words.expect(">=")
            waits.append((semaphore, words.integer()))
    if words.accept("signal"):
        while not words.done and words.peek() != "@":
            signals.append(words.numbered("s"))
    return tuple(waits), tuple(signals)
