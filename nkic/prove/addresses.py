"""Proof of an allocation: tensors are inside their memories, and live tensors share no bytes.

One walk finds the live range of each tensor. Tensors in one place must be live one after the other.
For places that share bytes, one sweep over the ends of live ranges keeps the live byte ranges in
order. All are linear in the program, including device loops.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from nkic.machine.targets import PARTITIONS, Buffer
from nkic.program.program import Body, Instruction, Loop, Program, Tensor, instructions
from nkic.prove.effects import Reading, Touches, bands, reading_of
from nkic.prove.model import Finding, Storage


def prove_addresses(placed: Program, readings: tuple[Reading, ...]) -> list[Finding]:
    """Return what is wrong with the addresses of `placed`; empty means proven."""
    findings = []
    for body, reading in zip(placed.cores, readings, strict=True):
        missing = list(_misplaced(placed, reading))
        findings += missing
        if not missing:
            findings += [*_out_of_lane(placed, reading), *_overlaps(placed, body, reading)]
    return findings


def _misplaced(placed: Program, reading: Reading) -> Iterator[Finding]:
    target, tensors = placed.target, reading.tensors
    sizes = {Buffer.SBUF.value: target.sbuf_usable, Buffer.PSUM.value: target.psum_bytes}
    places = reading.places(placed)
    for number in places.unplaced:
        tensor = tensors[number]
        yield Finding("address", f"`{tensor.name}` has no address", tensor.at)
    for (memory, partition, byte, partitions, size), tenants in places.tenants.items():
        rows = 0 <= partition <= PARTITIONS - partitions
        if not (rows and 0 <= byte <= sizes[memory] - size):
            for tensor in map(tensors.__getitem__, tenants):
                text = f"`{tensor.name}` at partition {partition}, byte {byte:,} leaves its memory"
                yield Finding("address", text, tensor.at)


def _out_of_lane(placed: Program, reading: Reading) -> Iterator[Finding]:
    """Yield tensors that moved away from the lanes whose accumulator or generator they use."""
    state = {cell[0] for name, cell in reading.state.items() if not name.startswith("register ")}
    if not state:
        return
    users = [t for t in reading.touches.values() if any(s < 0 and c[0] in state for c, _, s in t)]
    for number in dict.fromkeys(storage for touches in users for _, _, storage in touches):
        tensor = reading.tensors.get(number)
        if tensor is not None and tensor.on_chip:
            partition = placed.addresses[number].partition
            if partition != tensor.first:
                text = f"`{tensor.name}` is at partition {partition}, and is used with the state of"
                yield Finding("lane", f"{text} lanes from {tensor.first} on", tensor.at)


class Uses(NamedTuple):
    """The first and the last instruction of each tensor's live range."""

    first: dict[int, int]
    last: dict[int, int]


def _overlaps(placed: Program, body: Body, reading: Reading) -> Iterator[Finding]:
    touches = reading_of(body, placed.target, reading).touches
    uses = uses_of(body, touches, reading.tensors)
    places = reading.places(placed)
    for tenants in places.exclusive():
        yield from _at_once(tenants, uses, reading)
    shared = places.storages(places.shared)
    for memory in ("sbuf", "psum"):
        yield from _sweep([s for s in shared if s.memory == memory], uses, reading)


def _at_once(tenants: list[int], uses: Uses, reading: Reading) -> Iterator[Finding]:
    """Yield the tensors of a place that are in use while the one before is."""
    tenants = sorted(tenants, key=uses.first.__getitem__)
    for former, tensor in pairwise(tenants):
        if uses.last[former] >= uses.first[tensor]:
            tensors = reading.tensors
            yield _overlap(tensors[tensor], tensors[former], uses.first[tensor])


def uses_of(body: Body, touches: Mapping[int, Touches], tensors: Mapping[int, Tensor]) -> Uses:
    """Return all live ranges; a tensor that a loop accesses but does not declare spans the loop."""
    firsts, lasts = uses = Uses({}, {})
    for item in body:
        if isinstance(item, Instruction):
            number = item.number
            for _, _, storage in touches[number]:
                if storage not in firsts:
                    firsts[storage] = number
                lasts[storage] = number
            continue
        inside, (first, last) = uses_of(item.body, touches, tensors), _ends(item)
        for storage in inside.first:
            is_local = storage >= 0 and item.number in tensors[storage].scope
            firsts.setdefault(storage, inside.first[storage] if is_local else first)
            lasts[storage] = inside.last[storage] if is_local else last
    return uses


def _ends(loop: Loop) -> tuple[int, int]:
    """Return the numbers of a loop's first and last instruction, or -1 for an empty loop."""
    numbers = [instruction.number for instruction in instructions(loop.body)]
    return (numbers[0], numbers[-1]) if numbers else (-1, -1)


Ranges = list[tuple[int, int, int]]  # low, high, tensor; in order


def _sweep(storages: list[Storage], uses: Uses, reading: Reading) -> Iterator[Finding]:
    """Sweep over the ends of live ranges; at one instruction, ranges end before others begin."""
    starts = sorted({storage.partition for storage in storages})
    in_use: list[Ranges] = [[] for _ in starts]
    entries = [(low, low + size, key) for key, _, _, low, _, size in storages]
    rows: Sequence[int] = (0,)
    for when, begins, index in _events(entries, uses):
        entry = entries[index]
        if len(starts) > 1:
            rows = bands(starts, storages[index].partition, storages[index].partitions)
        for band in rows:
            ranges = in_use[band]
            at = bisect_left(ranges, entry)
            if not begins:
                del ranges[at]
                continue
            # Live ranges of bytes are disjoint unless there is an error, so two neighbours are
            # compared.
            for first, last, other in ranges[max(0, at - 1) : at + 1]:
                if first < entry[1] and entry[0] < last:
                    yield _overlap(reading.tensors[entry[2]], reading.tensors[other], when)
            ranges.insert(at, entry)


def _events(entries: Ranges, uses: Uses) -> Iterator[tuple[int, int, int]]:
    """Yield the ends of live ranges in order: an instruction, 0 or 1 (begins), and an index.

    They are sorted as single integers, which takes a third of the time of tuples.
    """
    count, (first, last) = len(entries), uses
    events = [(first[key] * 2 + 1) * count + i for i, (_, _, key) in enumerate(entries)]
    events += [(last[key] * 2 + 2) * count + i for i, (_, _, key) in enumerate(entries)]
    events.sort()
    for event in events:
        end, index = divmod(event, count)
        yield end >> 1, end & 1, index


def _overlap(tensor: Tensor, other: Tensor, when: int) -> Finding:
    text = f"`{tensor.name}` and `{other.name}` share bytes at instruction {when}"
    return Finding("overlap", text, tensor.at)
