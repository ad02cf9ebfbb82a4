"""The addresses and live ranges of a compiled kernel's tensors on chip.

Time is counted in steps: the streams take turns, each advancing as far as its semaphores allow, one
instruction per step, with a loop's body executed once. Simulated time comes from a run.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from itertools import accumulate, pairwise
from typing import Any

from nkic.artifact.disassemble import source_place
from nkic.artifact.records import Executable, InstructionRecord, PatternRecord, StreamRecord
from nkic.base.text import aligned, clean, grouped, plural, size
from nkic.machine.targets import PARTITIONS, PSUM_BANK_BYTES, TARGETS, Buffer, Target
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
        return self.bytes * self.partitions

    @property
    def banks(self) -> list[int]:
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
        source_place(executable, tensor.place),
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


# ------------------------------------------------------------------------------------------------
# A picture of a compiled kernel's tensors: the address and the live range of each, and the bytes
# in use over time above them.
#
# It is one SVG that follows the viewer's light or dark mode. Time is counted in steps, as in
# `allocations`.

WIDTH, LEFT, RIGHT = 960, 84, 16
CURVE, MAP, GAP, HEAD = 60, 240, 14, 46
COLOURS = 8
LETTERS = 6.6  # approximate width of a letter in pixels
STYLE = """
svg { background: #fff; } text { font: 12px system-ui, sans-serif; fill: #1c2024; }
.soft { fill: #60646c; } .grid { stroke: #d9dce1; } .frame { fill: #f4f5f7; }
.level { fill: #9dc3f0; } .box { stroke: #fff; stroke-width: 0.5; } .name { fill: #fff; }
.c0 { fill: #3b5bdb; } .c1 { fill: #2b8a3e; } .c2 { fill: #b35309; } .c3 { fill: #8f4fd1; }
.c4 { fill: #0b7285; } .c5 { fill: #c2255c; } .c6 { fill: #5f6b1d; } .c7 { fill: #6b7280; }
@media (prefers-color-scheme: dark) {
  svg { background: #16181c; } text { fill: #eceef2; } .soft { fill: #a5abb5; }
  .grid { stroke: #363a42; } .frame { fill: #1f2228; } .level { fill: #2f5687; }
  .box { stroke: #16181c; } .name { fill: #fff; }
}
"""


def svg(executable: Executable) -> str:
    """Return the picture: a part for each memory of each core that holds tensors."""
    tensors, steps = allocations(executable)
    target = TARGETS[executable.target]
    groups: dict[tuple[int, str], list[Allocation]] = {}
    for allocation in sorted(tensors, key=lambda a: (a.core, a.memory != Buffer.SBUF.value)):
        groups.setdefault((allocation.core, allocation.memory), []).append(allocation)
    height = HEAD + len(groups) * (HEAD + CURVE + MAP + 2 * GAP) + GAP
    title = clean(f"{executable.name}: tensors on chip over {plural(steps, 'step')}")
    colours = _colours(tensors)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(title)}">',
        f"<style>{STYLE}</style>",
        picture(LEFT, 24, title),
        picture(LEFT, 40, "Each box is a tensor: its bytes in a partition, and its steps.", "soft"),
    ]
    top = HEAD + GAP
    for (core, memory), group in groups.items():
        core_label = f"core {core}, " * (executable.cores > 1)
        parts += _memory_picture(
            group, steps, target, top, f"{core_label}{memory.upper()}", colours
        )
        top += HEAD + CURVE + MAP + 2 * GAP
    return "\n".join([*parts, "</svg>\n"])


def _colours(tensors: Sequence[Allocation]) -> Mapping[str, int]:
    """Return a colour number per place: the largest by bytes and steps get one of their own."""
    areas: Counter[str] = Counter()
    for allocation in tensors:
        areas[allocation.place] += allocation.total * (allocation.last - allocation.first + 1)
    ranked = sorted(areas, key=lambda declaration: (-areas[declaration], declaration))
    return {declaration: min(number, COLOURS - 1) for number, declaration in enumerate(ranked)}


def _memory_picture(
    tensors: Sequence[Allocation],
    steps: int,
    target: Target,
    top: int,
    name: str,
    colours: Mapping[str, int],
) -> Iterator[str]:
    """Draw one memory: a curve of the bytes in use per partition, and the map of addresses."""
    is_psum = tensors[0].memory == Buffer.PSUM.value
    limit = target.psum_bytes if is_psum else target.sbuf_usable
    levels = in_use(tensors, steps, lambda allocation: allocation.bytes)
    peak, end = max(levels), max(a.address + a.bytes for a in tensors)
    label = f"{name}: at most {size(peak)} of {size(limit)} of each partition hold data in one step"
    yield picture(LEFT, top + 18, label)
    yield from _legend(tensors, top + 36, colours)
    yield from _curve(levels, peak, top + HEAD, steps)
    scale = limit if is_psum else end
    yield from _map(tensors, steps, top + HEAD + CURVE + GAP, scale, is_psum, colours)


def _legend(tensors: Sequence[Allocation], top: int, colours: Mapping[str, int]) -> Iterator[str]:
    """Draw a legend of the places that have their own colour, as many as fit in a line."""
    left = float(LEFT)
    names = {allocation.place: allocation.name for allocation in tensors}
    for declaration in sorted(names, key=lambda declaration: (colours[declaration], declaration)):
        label = f"{names[declaration]} {declaration}"
        width = 22 + LETTERS * len(label)
        if colours[declaration] == COLOURS - 1 or left + width > WIDTH - RIGHT:
            break
        yield rect(left, top - 9, 10, 10, f"box c{colours[declaration]}")
        yield picture(left + 14, top, label, "soft")
        left += width


def _x(step: float, steps: int) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * step / max(1, steps)


def _curve(levels: Sequence[int], peak: int, top: int, steps: int) -> Iterator[str]:
    yield rect(LEFT, top, WIDTH - LEFT - RIGHT, CURVE, "frame")
    points = [f"{LEFT},{top + CURVE}"]
    for step, level in enumerate(levels):
        y = top + CURVE * (1 - level / max(1, peak))
        points += [f"{_x(step, steps):.1f},{y:.1f}", f"{_x(step + 1, steps):.1f},{y:.1f}"]
    points.append(f"{WIDTH - RIGHT},{top + CURVE}")
    yield f'<polygon class="level" points="{" ".join(points)}"/>'
    yield picture(LEFT - 8, top + 12, size(peak), "soft", "end")
    yield picture(LEFT - 8, top + CURVE, "in use", "soft", "end")


def _map(
    tensors: Sequence[Allocation],
    steps: int,
    top: int,
    scale: int,
    is_psum: bool,
    colours: Mapping[str, int],
) -> Iterator[str]:
    yield rect(LEFT, top, WIDTH - LEFT - RIGHT, MAP, "frame")
    pixel = MAP / max(1, scale)
    if is_psum:
        for bank in range(-(-scale // PSUM_BANK_BYTES)):
            y = top + bank * PSUM_BANK_BYTES * pixel
            yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            yield picture(
                LEFT - 8, y + PSUM_BANK_BYTES * pixel / 2 + 4, f"bank {bank}", "soft", "end"
            )
    else:
        yield picture(LEFT - 8, top + 12, "byte 0", "soft", "end")
        yield picture(LEFT - 8, top + MAP, f"{scale:,}", "soft", "end")
    for allocation in tensors:
        yield from _box(allocation, steps, top, pixel, colours[allocation.place])


def _box(allocation: Allocation, steps: int, top: int, pixel: float, colour: int) -> Iterator[str]:
    left, right = _x(allocation.first, steps), _x(allocation.last + 1, steps)
    y, height = top + allocation.address * pixel, max(0.7, allocation.bytes * pixel)
    tooltip = (
        f"{allocation.name} ({allocation.place}): {size(allocation.bytes)} in each of "
        f"{plural(allocation.partitions, 'partition')} from byte {allocation.address}, "
        f"steps {allocation.first} to {allocation.last}"
    )
    box = rect(left, y, max(0.7, right - left), height, f"box c{colour}")
    yield box.replace("/>", f"><title>{escape(clean(tooltip))}</title></rect>")
    if height >= 13 and right - left > LETTERS * len(allocation.name) + 8:
        yield picture(left + 4, y + height / 2 + 4, allocation.name, "name")


def rect(x: float, y: float, width: float, height: float, css_class: str) -> str:
    geometry = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect class="{css_class}" {geometry}/>'


def picture(x: float, y: float, words: str, css_class: str = "", anchor: str = "start") -> str:
    attribute = f' class="{css_class}"' if css_class else ""
    content = escape(clean(words))
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{attribute}>{content}</text>'
