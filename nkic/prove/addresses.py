"""Proofs of memory: of an allocation, and of a program with spilled tiles."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from nkic.machine.operands import Access, Register
from nkic.machine.patterns import elements
from nkic.machine.targets import PARTITIONS, Buffer, Target
from nkic.program.program import (
    AccessPattern,
    Body,
    Instruction,
    Item,
    Loop,
    Program,
    Tensor,
    instructions,
)
from nkic.prove.effects import Reading, Touches, bands, reading_of
from nkic.prove.model import Finding, Storage

# ---- Tensors are inside their memories, and live tensors share no bytes -------------------------


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


# ---- A program with spilled tiles computes the same as before -----------------------------------


class Holds(NamedTuple):
    """The contents of a tensor: a version of a tensor of the original program."""

    tensor: int
    version: int


def prove_spilled(lowered: Program, spilled: Program) -> list[Finding]:
    """Return how `spilled` differs from `lowered`; empty means proven."""
    if spilled is lowered:
        return []
    expected = replace(lowered, tensors=spilled.tensors, cores=spilled.cores, notes=spilled.notes)
    if spilled.tensors[: len(lowered.tensors)] != lowered.tensors or expected != spilled:
        return [Finding("spilled", "it differs in more than spilling")]
    findings = []
    constants = _constant(lowered)
    for old, new in zip(lowered.cores, spilled.cores, strict=True):
        if old is not new:
            findings += list(_Walk(lowered, constants).walk(old, new))
    return findings


def _constant(program: Program) -> set[int]:
    """Return the tensors in HBM that no instruction writes."""
    constants = {tensor.number for tensor in program.tensors if not tensor.on_chip}
    for body in program.cores:
        for instruction in instructions(body):
            constants -= {
                p.tensor.number for p, mode in _accesses(instruction, program.target) if mode.writes
            }
    return constants


def _accesses(instruction: Instruction, target: Target) -> Iterator[tuple[AccessPattern, Access]]:
    """Yield the patterns among the operands with their access modes.

    Sources of run-time offsets are read; an operand that only keeps an order counts as written.
    """
    facts = instruction.facts(target)
    for rule, operand in zip(instruction.row.operands, instruction.operands, strict=True):
        if isinstance(operand, AccessPattern):
            mode = instruction.row.access_of(rule, facts)
            yield operand, Access.UPDATE if mode is Access.ORDER else mode
            if operand.dynamic is not None and isinstance(operand.dynamic.source, AccessPattern):
                yield operand.dynamic.source, Access.READ


class _Walk:
    """The walk over one core."""

    def __init__(self, lowered: Program, constants: set[int]) -> None:
        self.target = lowered.target
        self.former = len(lowered.tensors)
        self.same = constants
        self.version: dict[int, int] = {}
        self.holds: dict[int, Holds] = {}
        # by tensor: the instruction that made its first version
        self.makers: dict[int, Instruction] = {}
        # by new tensor: the inserted instruction that wrote it
        self.remade: dict[int, Instruction] = {}
        self.numbers: dict[int, int] = {}
        self.last = -1

    def walk(self, old: Body, new: Body) -> Iterator[Finding]:
        """Walk both bodies item by item, up to the first error."""
        index = 0
        for item in new:
            is_alike = index < len(old) and _alike(old[index], item)
            names = self.names(old[index], item) if is_alike else "is not in the program"
            if not isinstance(names, str):
                self.take(old[index], names)
                index += 1
            elif isinstance(item, Loop) or not self.between(item):
                name = "a loop" if isinstance(item, Loop) else f"{item.row.name} #{item.number}"
                yield Finding("spilled", f"{name} {names}", item.at)
                return
            if not self.grows(item):
                yield Finding("spilled", "instruction numbers do not increase", item.at)
                return
        if index < len(old):
            yield Finding("spilled", "an instruction of the program is missing", old[index].at)

    def grows(self, item: Item) -> bool:
        """Check that instruction numbers increase, as they define program order."""
        numbers = [self.last, *(one.number for one in instructions((item,)))]
        self.last = numbers[-1]
        return all(one < other for one, other in pairwise(numbers))

    def names(self, old: Item, new: Item) -> dict[int, Tensor] | str:
        """Map the tensors of `old` to those of `new` that stand for them; or return the error.

        `new` is the same item as `old`, and must see the newest version of each tensor.
        """
        names: dict[int, Tensor] = {}
        for one, other in zip(instructions((old,)), instructions((new,)), strict=True):
            self.numbers[one.number] = other.number
            if tuple(self.numbers.get(n) for n in one.after) != other.after:
                return "has other explicit dependences than in the program"
            for pattern, seen in zip(self.patterns(one), self.patterns(other), strict=True):
                wanted, tensor = pattern.tensor, seen.tensor
                is_one = names.setdefault(wanted.number, tensor) is tensor
                if not is_one or not self.finds(wanted, tensor):
                    return f"reads `{tensor.name}`, which does not hold the program's value"
        return names

    def patterns(self, instruction: Instruction) -> list[AccessPattern]:
        return [pattern for pattern, _ in _accesses(instruction, self.target)]

    def finds(self, expected: Tensor, tensor: Tensor) -> bool:
        """Return whether `tensor` holds the current version of `expected`."""
        if tensor is expected:
            pass
        elif tensor.number < self.former or not _like(expected, tensor):
            return False
        version = self.version.get(expected.number, 0)
        if self.held(tensor) == Holds(expected.number, version):
            return True
        inserted, maker = self.remade.get(tensor.number), self.makers.get(expected.number)
        if version != 1 or inserted is None or maker is None:
            return False
        return self.is_again(maker, inserted, expected, tensor)

    def held(self, tensor: Tensor) -> Holds | None:
        """Return the contents of `tensor`; the program's own start with their first versions."""
        initial = Holds(tensor.number, 0) if tensor.number < self.former else None
        return self.holds.get(tensor.number, initial)

    def take(self, item: Item, names: Mapping[int, Tensor]) -> None:
        """Record the new versions that the program's own item writes."""
        written = {
            pattern.tensor.number
            for instruction in instructions((item,))
            for pattern, mode in _accesses(instruction, self.target)
            if mode.writes
        }
        for number in written:
            version = self.version[number] = self.version.get(number, 0) + 1
            self.holds[names[number].number] = Holds(number, version)
            self.remade.pop(names[number].number, None)
            if version == 1 and isinstance(item, Instruction):
                self.makers[number] = item

    def between(self, instruction: Instruction) -> bool:
        """Return whether an inserted instruction leaves the program's tensors alone.

        Record what it copied or recomputed.
        """
        if (
            instruction.after
            or instruction.row.is_rendezvous
            or any(instruction.row.effects(instruction.facts(self.target)))
        ):
            return False
        accesses = list(_accesses(instruction, self.target))
        dsts = [pattern for pattern, mode in accesses if mode.writes]
        if len(dsts) != 1 or any(isinstance(operand, Register) for operand in instruction.operands):
            return False
        dst = dsts[0]
        if dst.tensor.number < self.former:
            return False
        srcs = [pattern for pattern, _ in accesses if pattern is not dst]
        self.holds.pop(dst.tensor.number, None)
        holds = self.copied(instruction, dst, srcs)
        if holds is not None:
            self.holds[dst.tensor.number] = holds
        self.remade[dst.tensor.number] = instruction
        return True

    def copied(
        self, instruction: Instruction, dst: AccessPattern, srcs: Sequence[AccessPattern]
    ) -> Holds | None:
        """Return the contents that a copy of a whole tensor transfers, if it is one."""
        is_plain = [a.default for a in instruction.row.attributes] == list(instruction.attributes)
        if not instruction.row.copies or not is_plain or len(srcs) != 1:
            return None
        src = srcs[0]
        is_alike = src.tensor.dtype is dst.tensor.dtype and src.tensor.shape == dst.tensor.shape
        return self.held(src.tensor) if is_alike and _is_whole(src) and _is_whole(dst) else None

    def is_again(
        self, maker: Instruction, instruction: Instruction, expected: Tensor, dst: Tensor
    ) -> bool:
        """Return whether `instruction` recomputes in `dst` what `maker` computed in `expected`."""
        if not _same_but_for_tensors(maker, instruction):
            return False
        accesses = zip(
            _accesses(maker, self.target), _accesses(instruction, self.target), strict=True
        )
        for (pattern, mode), (seen, _) in accesses:
            if pattern.dynamic is not None or mode is Access.UPDATE:
                return False
            if mode.writes:
                if pattern.tensor is not expected or seen.tensor is not dst:
                    return False
            elif seen.tensor is not pattern.tensor or pattern.tensor.number not in self.same:
                return False
        return True


def _like(first: Tensor, second: Tensor) -> bool:
    return first is second or (
        (first.buffer, first.dtype, first.shape) == (second.buffer, second.dtype, second.shape)
        and first.scope == second.scope == ()
        and second.fixed is None
    )


def _is_whole(pattern: AccessPattern) -> bool:
    """Return whether the pattern covers the whole tensor, in order and without conversion."""
    tensor = pattern.tensor
    count = tensor.bytes // tensor.dtype.size
    start = (pattern.start, pattern.partitions, pattern.offset)
    return (
        pattern.dtype is tensor.dtype
        and pattern.dynamic is None
        and start == (0, tensor.partitions, 0)
        and pattern.dims == ((1, count),)
        and elements(pattern.dims) == count
    )


def _alike(old: Item, new: Item) -> bool:
    """Return whether two items are equal except for tensors and numbers."""
    if isinstance(old, Loop) or isinstance(new, Loop):
        if not (isinstance(old, Loop) and isinstance(new, Loop)) or old.number != new.number:
            return False
        pairs = list(zip(instructions((old,)), instructions((new,)), strict=False))
        same = len(list(instructions((old,)))) == len(list(instructions((new,))))
        return same and all(_alike(one, other) for one, other in pairs)
    is_equal = old.at is new.at and old.name == new.name and len(old.after) == len(new.after)
    return is_equal and old.pinned == new.pinned and _same_but_for_tensors(old, new)


def _same_but_for_tensors(first: Instruction, second: Instruction) -> bool:
    if first.row is not second.row or first.attributes is not second.attributes:
        return False
    pairs = zip(first.operands, second.operands, strict=True)
    return first.engine is second.engine and all(_same(a, b) for a, b in pairs)


def _same(first: object, second: object) -> bool:
    if not isinstance(first, AccessPattern) or not isinstance(second, AccessPattern):
        return first is second or repr(first) == repr(second)
    if (first.dynamic is None) != (second.dynamic is None):
        return False
    if first.dynamic is not None and second.dynamic is not None:
        sources = first.dynamic._replace(source=second.dynamic.source)
        if sources != second.dynamic or not _same(first.dynamic.source, second.dynamic.source):
            return False
    return first._replace(tensor=second.tensor, dynamic=None) == second._replace(dynamic=None)
