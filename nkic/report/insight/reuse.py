"""Inputs that are loaded again: whole ones that could stay in SBUF, or else blocks of a loop."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod

from nkic.base.text import size
from nkic.machine.memory import PARTITIONS, Buffer
from nkic.machine.timing import Timing
from nkic.neff.records import PatternRecord
from nkic.report.insight.memory import peak
from nkic.report.insight.subject import FREE, Question, Subject, bytes_of
from nkic.trace import Change, Event

BLOCKS = (1, 2, 4, 8)
ROOM = 0.75  # of SBUF, for the tiles of a block: others are loaded meanwhile
Group = tuple[str, int | None]  # a loop, and the iteration that a tile would be kept for


@dataclass
class _Loads:
    """The loads of one input, by the part that they load."""

    tensor: int
    name: str
    events: dict[PatternRecord, list[int]] = field(default_factory=lambda: defaultdict(list))

    @property
    def all(self) -> list[int]:
        """The numbers of all loads."""
        return [number for numbers in self.events.values() for number in numbers]

    @property
    def bytes(self) -> int:
        """The bytes that are loaded at least once."""
        return sum(map(bytes_of, self.events))

    @property
    def repeats(self) -> dict[int, Timing]:
        """All but the first load of each part, without time."""
        return {number: FREE for numbers in self.events.values() for number in numbers[1:]}


def reuse(subject: Subject) -> Iterator[Question]:
    """Ask about repeated loads of the same bytes: kept if there is memory, else used for more
    iterations of a loop.
    """
    found: dict[int, _Loads] = {}
    for number, event in subject.transfers():
        pattern = subject.loaded(event)
        if pattern is not None:
            name = subject.trace.executable.tensors[pattern.tensor].name
            loads = found.setdefault(pattern.tensor, _Loads(pattern.tensor, name))
            loads.events[pattern].append(number)
    repeated = [found[tensor] for tensor in sorted(found) if found[tensor].repeats]
    live = peak(subject.live_ranges, Buffer.SBUF).bytes
    free = subject.accounts.target.sbuf_usable * PARTITIONS - live
    fitting = [loads for loads in repeated if loads.bytes <= free]
    sets = [[loads] for loads in fitting]
    if len(fitting) > 1 and sum(loads.bytes for loads in fitting) <= free:
        sets.append(fitting)
    for each in sets:
        yield _once(subject, each)
    for loads in repeated:
        if loads not in fitting:
            yield from _once_for_each(subject, loads, free)
    if len(fitting) < len(repeated) or sum(loads.bytes for loads in fitting) > free:
        yield from _blocked(subject, list(found.values()))


def _once(subject: Subject, sets: Sequence[_Loads]) -> Question:
    events = {number: FREE for loads in sets for number in loads.repeats}
    names = [loads.name for loads in sets]
    text = (
        f"load {' and '.join(names)} once and keep {'it' if len(names) == 1 else 'them'} in "
        f"SBUF ({size(sum(loads.bytes for loads in sets))}): {_again(subject, events)}"
    )
    line = subject.line(subject.trace.events[min(events)])
    return subject.timed(f"load-once:{','.join(names)}", text, events, line)


def _once_for_each(subject: Subject, loads: _Loads, free: int) -> Iterator[Question]:
    """Ask about loading a part once for each iteration of the outermost loop, in which several
    lines load it.
    """
    parts: dict[tuple[Group, PatternRecord], list[int]] = defaultdict(list)
    for pattern, numbers in loads.events.items():
        for number in numbers:
            parts[_outermost(subject, number), pattern].append(number)
    kept: dict[Group, int] = defaultdict(int)
    events: dict[int, Timing] = {}
    for (group, pattern), numbers in parts.items():
        if len(numbers) > 1:
            kept[group] += bytes_of(pattern)
            events |= dict.fromkeys(numbers[1:], FREE)
    loop = next(iter(kept), ("", None))[0]
    if not events or not loop or max(kept.values()) > free:
        return
    text = (
        f"load {loads.name} once for each {loop} and keep it in SBUF "
        f"({size(max(kept.values()))}): {_again(subject, events)}"
    )
    line = subject.line(subject.trace.events[min(events)])
    yield subject.timed(f"load-once:{loads.name}", text, events, line)


def _outermost(subject: Subject, number: int) -> Group:
    loops = subject.iterations(subject.trace.events[number])
    return next(iter(loops.items()), ("", None))


def _again(subject: Subject, events: dict[int, Timing]) -> str:
    return f"{size(sum(subject.trace.events[number].bytes for number in events))} are loaded again"


# ---- blocks of a loop -----------------------------------------------------------------------


@dataclass(frozen=True)
class _Loop:
    """A loop whose iterations load the same parts of an input again. Each needs `beside` bytes of
    other inputs.
    """

    loads: _Loads
    name: str
    values: tuple[int, ...]
    depth: int
    beside: int

    @property
    def step(self) -> int:
        return self.values[1] - self.values[0]

    def outer(self, block: int) -> str:
        """Return the head of the loop over blocks."""
        stop = self.values[-1] + self.step
        return f"for {self.name} in range({self.values[0]}, {stop}, {self.step * block})"

    def inner(self, block: int) -> str:
        """Return the head of the loop over the iterations of a block."""
        name = self.name
        return f"for {name}{name} in range({name}, {name} + {self.step * block}, {self.step})"


def _blocked(subject: Subject, found: Sequence[_Loads]) -> Iterator[Question]:
    """Ask about using each load for several iterations of a loop, since not all operands fit.

    That many results are open at a time: no more than PSUM has banks. A load that serves several
    iterations is shared equally between them, which is an estimate: in the kernel it comes before
    them.
    """
    loops = [loop for loads in found if (loop := _loop(subject, loads, found)) is not None]
    loops.sort(key=lambda loop: loop.depth)
    if not loops or len({loop.name for loop in loops}) < len(loops):
        return
    target = subject.accounts.target
    ways = [
        way
        for way in itertools.product(BLOCKS, repeat=len(loops))
        if prod(way) <= target.psum_banks
        and all(len(loop.values) % block == 0 for loop, block in zip(loops, way, strict=True))
        and sum(loop.beside * block for loop, block in zip(loops, way, strict=True) if block > 1)
        <= ROOM * target.sbuf_usable * PARTITIONS
    ]
    best = min(ways, key=lambda way: (_moved(subject, loops, way), sum(way)), default=())
    if prod(best) <= 1:
        return
    chosen = [(loop, block) for loop, block in zip(loops, best, strict=True) if block > 1]
    shares = {number: block for loop, block in chosen for number in loop.loads.all}
    again = sum(subject.trace.events[n].bytes for loop, _ in chosen for n in loop.loads.repeats)
    uses = " and ".join(f"{loop.loads.name} for {block} {loop.name}" for loop, block in chosen)
    outer = ": ".join(loop.outer(block) for loop, block in chosen)
    inner = ": ".join(loop.inner(block) for loop, block in chosen)
    text = (
        f"block the loops, to use each load of {uses}: {size(again)} are loaded again "
        f"(`{outer}`, load a block in one transfer, `{inner}`, multiply)"
    )
    line = subject.line(subject.trace.events[min(shares)])
    blocks = ",".join(f"{loop.name}*{block}" for loop, block in chosen)
    change, weight = _shared(shares, prod(best)), subject.weight(shares)
    yield Question(f"block:{blocks}", text, change, True, weight, line, estimated=True)


def _moved(subject: Subject, loops: Sequence[_Loop], way: Sequence[int]) -> float:
    """Return the bytes that are loaded if each loop has a block of that size."""
    events = subject.trace.events
    return sum(
        sum(events[number].bytes for number in loop.loads.all) / block
        for loop, block in zip(loops, way, strict=True)
    )


def _loop(subject: Subject, loads: _Loads, found: Sequence[_Loads]) -> _Loop | None:
    """Return the outermost loop that the loads do not depend on, if its steps are equal."""
    seen = [
        [subject.iterations(subject.trace.events[number]) for number in numbers]
        for numbers in loads.events.values()
        if len(numbers) > 1
    ]
    for depth, name in enumerate(seen[0][0] if seen else ()):
        if len({each.get(name) for each in seen[0]}) > 1:
            values = tuple(sorted({each[name] for loops in seen for each in loops if name in each}))
            steps = {after - before for before, after in itertools.pairwise(values)}
            beside = sum(_each(subject, other, name) for other in found if other is not loads)
            return _Loop(loads, name, values, depth, beside) if len(steps) == 1 else None
    return None


def _each(subject: Subject, loads: _Loads, name: str) -> int:
    """Return the most bytes of an input that one iteration of a loop loads."""
    sizes: dict[int, int] = defaultdict(int)
    for pattern, numbers in loads.events.items():
        events = (subject.trace.events[number] for number in numbers)
        for value in {subject.iterations(event).get(name, 0) for event in events}:
            sizes[value] += bytes_of(pattern)
    return max(sizes.values(), default=0)


def _shared(shares: dict[int, int], block: int) -> Change:
    """Return a change under which each of these loads takes its part of the time: that of the
    bytes by how often they are used, that of the trigger by the tiles of a block.
    """

    def retimed(number: int, event: Event, original: Timing) -> Timing:
        share = shares.get(number)
        if share is None:
            return original
        hold, latency, start, pool, trigger, *_ = original
        return original._replace(
            hold=hold // share,
            pool=pool // share,
            latency=latency // block,
            start=start // block,
            trigger=trigger // block,
        )

    return Change(retimed=retimed)
