"""Instructions that another one could do in passing: sums of products in PSUM, and reductions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from nkic.machine.instructions.combined import (
    adding_up,
    is_addition,
    is_multiplication,
    is_sum_of_columns,
    may_add_up,
)
from nkic.machine.memory import PSUM_BANK_BYTES, Buffer
from nkic.machine.timing import Timing
from nkic.neff.records import PatternRecord
from nkic.report.insight.sources import Line
from nkic.report.insight.subject import FREE, Question, Subject
from nkic.trace import Event


def named(subject: Subject, event: Event) -> tuple[dict[str, PatternRecord], Mapping[str, object]]:
    """Return the patterns and the attributes of an instruction by name."""
    row = event.record.row
    assert row is not None
    operands = zip(row.operand_index, event.record.operands, strict=False)
    patterns = {name: value for name, value in operands if isinstance(value, PatternRecord)}
    return patterns, dict(zip(row.attribute_index, event.record.attributes, strict=True))


def accumulated(subject: Subject) -> Iterator[Question]:
    """Ask about sums of products that a vector instruction adds, one product after the other.

    PSUM adds without cost. One copy is left for each sum.
    """
    tensors = subject.trace.executable.tensors
    products: set[int] = set()
    sums: dict[PatternRecord, list[int]] = defaultdict(list)
    for number, event in enumerate(subject.trace.events):
        row = event.record.row
        if row is None:
            continue
        if row.operations is not None:
            products |= {use.tensor for use in subject.accounts.uses_of(event) if use.writes}
        elif is_addition(row, (found := named(subject, event))[1]):
            patterns, _ = found
            first, second, dst = (patterns.get(name) for name in ("data1", "data2", "dst"))
            added = second if first == dst else first if second == dst else None
            if dst is None or added is None:
                continue
            if tensors[added.tensor].buffer is Buffer.PSUM and added.tensor in products:
                sums[dst].append(number)
    sums = {dst: numbers for dst, numbers in sums.items() if len(numbers) > 1}
    banks = max((-(-_row_bytes(dst) // PSUM_BANK_BYTES) for dst in sums), default=1)
    if not sums or _open(list(sums.values())) * banks > subject.trace.target.psum_banks:
        return
    events = {number: FREE for numbers in sums.values() for number in numbers[:-1]}
    line = subject.line(subject.trace.events[min(events)])
    text = (
        f"add the products of {line.short} in PSUM, not with tensor_tensor: declare one PSUM tile "
        "before the loop, pass `accumulate=(k > 0)` to nc_matmul with the loop's own counter, and "
        "copy the tile once after the loop"
    )
    yield subject.timed(f"accumulate:{line}", text, events, line)


def _row_bytes(pattern: PatternRecord) -> int:
    return 4 * pattern.elements // max(1, pattern.partitions)


def _open(sums: list[list[int]]) -> int:
    """Return how many sums are open at one time."""
    ends = sorted(
        [(numbers[0], 1) for numbers in sums] + [(numbers[-1] + 1, -1) for numbers in sums]
    )
    level = most = 0
    for _, change in ends:
        level += change
        most = max(most, level)
    return most


def fused(subject: Subject) -> Iterator[Question]:
    """Ask about sums over the columns of a tile that an activation, or a square, has just made."""
    writers: dict[int, int] = {}
    events: dict[tuple[Line, Line, bool], dict[int, Timing]] = defaultdict(dict)
    for number, event in enumerate(subject.trace.events):
        if event.record.row is None:
            continue
        made = _reduced(subject, event, writers)
        if made is not None:
            before = subject.trace.events[made[0]]
            events[subject.line(before), subject.line(event), made[1]][number] = FREE
        for use in subject.accounts.uses_of(event):
            if use.writes:
                writers[use.tensor] = number
    for (first, second, is_square), timings in events.items():
        results = "the squares" if is_square else "the results"
        given = {"dst": "…", "data1": "…"} if is_square else {"dst": "…", "op": "…", "data": "…"}
        call = adding_up(given, "…", "nisa", "nl")
        text = f"make {results} of {first.short} and the sum of {second.short} at once: `{call}`"
        yield subject.timed(f"fuse:{first}:{second.number}", text, timings, first)


def _reduced(subject: Subject, event: Event, writers: Mapping[int, int]) -> tuple[int, bool] | None:
    """Return the event that made what this one adds up, and whether it multiplied a tile by itself;
    None if it is something else.
    """
    assert event.record.row is not None
    patterns, attributes = named(subject, event)
    if not is_sum_of_columns(event.record.row, attributes):
        return None
    data, dst = patterns["data"], patterns["dst"]
    before = writers.get(data.tensor)
    if before is None or dst.elements != dst.partitions:
        return None
    maker = subject.trace.events[before]
    row = maker.record.row
    assert row is not None
    made, given = named(subject, maker)
    if made.get("dst") != data:
        return None
    if may_add_up(row, given):
        return before, False
    is_square = is_multiplication(row, given) and made["data1"] == made["data2"]
    return (before, True) if is_square else None
