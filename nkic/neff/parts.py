"""The parts that lines of the program text are made of. All refuse the line they cannot read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nkic.machine import dtypes
from nkic.machine.dtypes import DType
from nkic.machine.facts import Register
from nkic.neff.layout import DYNAMIC_KINDS
from nkic.neff.records import OffsetRecord, PatternRecord
from nkic.neff.scan import Scanner


def named(words: Scanner, name: str) -> int:
    """An integer after `name` and `=`."""
    words.expect(name)
    words.expect("=")
    return words.integer()


def pair(words: Scanner) -> tuple[int, int]:
    """Two integers with a colon between."""
    first = words.integer()
    words.expect(":")
    return first, words.integer()


def reference(words: Scanner) -> int:
    """A tensor's number: %3."""
    words.expect("%")
    return words.integer()


def place(words: Scanner) -> int:
    """A source place, @3; -1 where there is none."""
    return words.integer() if words.accept("@") else -1


def choice(words: Scanner, known: Mapping[str, Any]) -> Any:
    """What `known` has under the next name."""
    written = words.name()
    if written not in known:
        words.fail(f"`{written}`", f"one of {', '.join(known)}")
    return known[written]


def dtype(words: Scanner) -> DType:
    """A dtype by its full name."""
    found: DType = choice(words, dtypes.DTYPES)
    return found


def sizes(words: Scanner) -> tuple[int, ...]:
    """A shape in brackets."""
    found = words.value() if words.peek() == "[" else None
    if found is None or not all(type(n) is int for n in found):
        words.fail("no shape", "sizes in brackets")
    return tuple(found)


def bound(words: Scanner) -> int | Register:
    """A loop's bound: an integer or a register."""
    return Register(words.numbered("r")) if words.peek()[:1] == "r" else words.integer()


def assignments(words: Scanner) -> dict[str, Any]:
    """What stands as name=value; hidden operands are named $3 and on."""
    given: dict[str, Any] = {}
    while words.peek(1) == "=" or words.peek() == "$":
        name = f"${words.integer()}" if words.accept("$") else words.name()
        words.expect("=")
        if name in given:
            words.fail(f"`{name}` twice")
        given[name] = operand(words)
    return given


def operand(words: Scanner) -> Any:
    """A pattern, a register, or any value; attributes are read by this, too."""
    if words.peek() == "%":
        return pattern(words)
    if words.peek()[:1] == "r" and words.peek()[1:].isdigit():
        return Register(words.numbered("r"))
    return words.value()


def pattern(words: Scanner) -> PatternRecord:
    """An access pattern, as `text.pattern` prints it."""
    tensor = reference(words)
    words.expect("[")
    start = partitions = 0
    if words.peek()[:1] == "p":
        start = words.numbered("p")
        words.expect(":")
        partitions = words.integer()
        words.expect(",")
    offset = words.integer()
    dims = []
    while words.accept(":") or words.accept(","):
        num, step = pair(words)
        dims.append((step, num))
    words.expect("]")
    kind = dtype(words)
    dynamic = _dynamic(words) if words.accept("+") else None
    return PatternRecord(tensor, kind, start, partitions, offset, tuple(dims), dynamic)


def _dynamic(words: Scanner) -> OffsetRecord:
    kind = choice(words, {kind: kind for kind in DYNAMIC_KINDS})
    words.expect("(")
    words.expect("$")
    source = words.integer()
    stride, limit, axis = [named(words, name) for name in ("stride", "limit", "axis")]
    words.expect(")")
    return OffsetRecord(kind, source, stride, limit, axis)


def semaphores(words: Scanner) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
    """Waits as (semaphore, count) and signals; both may be absent."""
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
