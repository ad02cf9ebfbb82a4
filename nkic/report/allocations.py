"""The addresses and live ranges of a compiled kernel's tensors on chip.

Time is counted in steps: the streams take turns, each advancing as far as its semaphores allow, one
instruction per step, with a loop's body executed once. Simulated time comes from a run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate, pairwise
from typing import Any

from nkic.base.text import aligned, clean, grouped, size
from nkic.machine.memory import PARTITIONS, PSUM_BANK_BYTES, Buffer
from nkic.machine.targets import TARGETS
from nkic.neff.listing.text import source
from nkic.neff.records import Executable, InstructionRecord, PatternRecord, StreamRecord
from nkic.report.resources import resources

CELLS = 48  # width of a chart
BLOCKS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Allocation:
    """A tensor on chip: `bytes` in each of `partitions`, starting at `address`; live from step
    `first` to step `last`.

    `place` is its declaration, as "kernel.py:12".
    """

    name: str
    place: str
    core: int
    memory: str
    dtype: str
    shape: tuple[int, ...]
    partition: int
    partitions: int
    address: int
    bytes: int
    first: int
    last: int

    @property
    def total(self) -> int:
        """The bytes of all its partitions."""
        return self.bytes * self.partitions

    @property
    def banks(self) -> list[int]:
        """The PSUM banks that it occupies."""
        first, last = self.address, self.address + max(1, self.bytes) - 1
        if self.memory != Buffer.PSUM.value:
            return []
        return [*range(first // PSUM_BANK_BYTES, last // PSUM_BANK_BYTES + 1)]


def order(executable: Executable) -> Iterator[InstructionRecord]:
    """Yield the instructions in an order that the semaphores allow; blocked ones are left out."""
    streams = [[i for i in s.items if isinstance(i, InstructionRecord)] for s in executable.streams]
    at = [0] * len(streams)
    tokens: dict[tuple[int, int], int] = defaultdict(int)
    moved = True
    while moved:
        moved = False
        for number, stream in enumerate(executable.streams):
            if at[number] < len(streams[number]):
                item = streams[number][at[number]]
                if _take(item, stream, tokens):
                    at[number], moved = at[number] + 1, True
                    yield item


def _take(
    item: InstructionRecord, stream: StreamRecord, tokens: dict[tuple[int, int], int]
) -> bool:
    """Acquire and release the item's semaphores, and return True, unless it has to wait."""
    if any(tokens[stream.core, semaphore] < count for semaphore, count in item.waits):
        return False
    for semaphore, count in item.waits:
        tokens[stream.core, semaphore] -= count
    for semaphore in item.signals:
        tokens[stream.core, semaphore] += 1
    return True


def allocations(executable: Executable) -> tuple[list[Allocation], int]:
    """Return every tensor on chip that is used, by first use, and the number of steps."""
    spans: dict[int, tuple[int, int]] = {}
    step = 0
    for item in order(executable):
        if item.row is None:
            continue
        for operand in item.operands:
            if isinstance(operand, PatternRecord):
                first, _ = spans.get(operand.tensor, (step, step))
                spans[operand.tensor] = first, step
        step += 1
    maybe = [_allocation(executable, number, *span) for number, span in spans.items()]
    on_chip = [allocation for allocation in maybe if allocation is not None]
    return sorted(on_chip, key=lambda a: (a.first, a.memory, a.address)), step


def _allocation(executable: Executable, number: int, first: int, last: int) -> Allocation | None:
    tensor = executable.tensors[number]
    if not tensor.buffer.on_chip:
        return None
    return Allocation(
        tensor.name,
        source(executable, tensor.place),
        tensor.core,
        tensor.buffer.value,
        tensor.dtype.name,
        tensor.shape,
        tensor.partition,
        tensor.shape[0] if tensor.shape else 1,
        tensor.byte,
        tensor.bytes,
        first,
        last,
    )


def as_json(executable: Executable) -> dict[str, Any]:
    """Return the figures and every tensor, for programs."""
    on_chip, steps = allocations(executable)
    tensors = [{**asdict(allocation), "banks": allocation.banks} for allocation in on_chip]
    figures = resources(executable).as_json()
    return {"schema": 1, "resources": figures, "steps": steps, "tensors": tensors}


def text(executable: Executable) -> str:
    """Return a line for each place that declares tensors, with a chart of its bytes in use."""
    on_chip, steps = allocations(executable)
    parts = [resources(executable).line + "\n"]
    for memory, limit in _limits(executable).items():
        group = [allocation for allocation in on_chip if allocation.memory == memory]
        if group:
            parts.append(_memory(memory, group, steps, limit))
    return "\n".join(parts)


def _limits(executable: Executable) -> dict[str, int]:
    target = TARGETS[executable.target]
    return {
        "sbuf": target.sbuf_usable * PARTITIONS * max(1, executable.cores),
        "psum": target.psum_bytes * PARTITIONS * max(1, executable.cores),
    }


def _memory(memory: str, tensors: Sequence[Allocation], steps: int, limit: int) -> str:
    levels = in_use(tensors, steps)
    peak = max(levels)
    title = f"{memory.upper()}: at most {size(peak)} of {size(limit)} hold data in one step"
    groups: dict[tuple[str, str], list[Allocation]] = defaultdict(list)
    for allocation in tensors:
        groups[allocation.name, allocation.place].append(allocation)
    ranked = sorted(groups.items(), key=lambda pair: (-max(in_use(pair[1], steps)), pair[0]))
    rows = [("tensor", "declared in", "number", "bytes", "addresses", _chart(levels, peak))]
    for (name, place), group in ranked:
        rows.append(
            (clean(name), clean(place), *_figures(group), _chart(in_use(group, steps), peak))
        )
    return f"{title}\n{aligned(rows)}"


def _figures(group: Sequence[Allocation]) -> tuple[str, str, str]:
    low, high = min(a.address for a in group), max(a.address + a.bytes for a in group)
    banks = sorted({bank for a in group for bank in a.banks})
    location = f"bank {', '.join(map(str, banks))}" if banks else f"{low}:{high}"
    return grouped(len(group)), size(max(a.total for a in group)), location


def in_use(
    tensors: Sequence[Allocation],
    steps: int,
    size_of: Callable[[Allocation], int] = lambda allocation: allocation.total,
) -> list[int]:
    """Return the bytes in use at each step: by default, those of all partitions."""
    changes = [0] * (steps + 1)
    for allocation in tensors:
        changes[allocation.first] += size_of(allocation)
        changes[allocation.last + 1] -= size_of(allocation)
    return [*accumulate(changes[:-1] or [0])]


def _chart(levels: Sequence[int], peak: int) -> str:
    """Return a bar chart with the maximum level in each interval of steps."""
    cells = min(CELLS, len(levels))
    cuts = [len(levels) * i // cells for i in range(cells + 1)]
    tops = [max(levels[a:b]) for a, b in pairwise(cuts)]
    return "".join(BLOCKS[-(-(len(BLOCKS) - 1) * top // max(1, peak))] for top in tops)
