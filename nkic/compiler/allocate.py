"""The allocation stage: live ranges, addresses and reuse edges, per core and memory."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import NamedTuple

from nkic.base.diagnostics import Label, Reporter
from nkic.machine.targets import MEMORIES, PARTITIONS, PSUM_BANK_BYTES, Address, Buffer, Target
from nkic.program.effects import accesses_of, tensors_of
from nkic.program.overlap import Bands
from nkic.program.program import Body, DependenceGraph, Edge, Loop, Program, Tensor, instructions

# ---- Live ranges of tensors: from the first to the last access in program order -----------------


class Lifetime(NamedTuple):
    """The live range of `tensor`: instructions `first` to `last`, both included."""

    tensor: Tensor
    first: int
    last: int

    def meets(self, other: Lifetime) -> bool:
        return self.first <= other.last and other.first <= self.last


def lifetimes(body: Body, target: Target, buffer: Buffer) -> list[Lifetime]:
    """Return the live ranges of the tensors of `buffer` that `body` accesses, by first access.

    A tensor that a device loop accesses but does not declare is live throughout the loop.
    """
    return lifetimes_in(body, target, (buffer,))[0]


def lifetimes_in(body: Body, target: Target, buffers: Sequence[Buffer]) -> list[list[Lifetime]]:
    accesses, spans = accesses_of(body, target), _spans(body)
    found: dict[Buffer, list[tuple[int, int, int, Tensor]]] = {buffer: [] for buffer in Buffer}
    for (tensor, pattern), first in zip(accesses.first.items(), accesses.begun, strict=True):
        last = accesses.last[id(pattern)]
        if tensor in accesses.parts:
            last = max([accesses.last[id(part)] for part in accesses.parts[tensor]])
        if spans:
            first, last = _outside(tensor, first, spans)[0], _outside(tensor, last, spans)[1]
        found[tensor.buffer].append((first, tensor.number, last, tensor))
    new = tuple.__new__
    return [
        [new(Lifetime, (tensor, first, last)) for first, _, last, tensor in sorted(found[buffer])]
        for buffer in buffers
    ]


def most_at_once(lives: Sequence[Lifetime], size: Callable[[Tensor], int] = lambda _: 1) -> int:
    """Return the peak of the live tensors' count, or of the sum of their `size`."""
    changes: dict[int, int] = defaultdict(int)
    for life in lives:
        changes[life.first] += size(life.tensor)
        changes[life.last + 1] -= size(life.tensor)
    level = peak = 0
    for number in sorted(changes):
        level += changes[number]
        peak = max(peak, level)
    return peak


Span = tuple[int, int, int]  # the number of a loop, its first and its last instruction


def _spans(body: Body, outer: tuple[Span, ...] = ()) -> dict[int, tuple[Span, ...]]:
    """Return the loops around each instruction that is in a loop, outermost first."""
    spans: dict[int, tuple[Span, ...]] = {}
    for item in body:
        if isinstance(item, Loop):
            numbers = [instruction.number for instruction in instructions(item.body)]
            around = (*outer, (item.number, min(numbers, default=0), max(numbers, default=0)))
            spans |= dict.fromkeys(numbers, around) | _spans(item.body, around)
    return spans


def _outside(tensor: Tensor, number: int, spans: Mapping[int, Sequence[Span]]) -> tuple[int, int]:
    """Return an access to `tensor` as a range: all of the outermost loop that does not declare it,
    if the access is in one.
    """
    for loop, first, last in spans.get(number, ()):
        if loop not in tensor.scope:
            return first, last
    return number, number


# ---- Choose addresses in one memory: bytes [0, capacity) of each partition ----------------------
# Live ranges are placed in order of first access. The first strategy keeps slots by size and
# element type; a freed slot stays unused while there are few free slots of its kind, so that
# neighbouring iterations of an unrolled loop get different bytes (which amounts to
# multi-buffering), and bytes keep their type, which speeds up the runner. If that does not fit, a
# ring around the whole memory is tried, then lowest fit; pack.py has the strategies after those.

REST = 8  # free slots of a kind before the oldest is reused
SBUF_ALIGN = 64  # bytes
TIGHT_ALIGN = 32  # if nothing else fits: the alignment of published kernels


@dataclass(frozen=True)
class Space:
    """A memory to fill: `capacity` bytes per partition, starts at multiples of `align`."""

    buffer: Buffer
    capacity: int
    align: int

    def size(self, tensor: Tensor) -> int:
        """Return the bytes per partition that `tensor` takes, rounded up to the alignment."""
        return -(-tensor.bytes // self.align) * self.align


def space_of(buffer: Buffer, target: Target) -> Space:
    """Return the space of SBUF or PSUM; in PSUM, starts are banks (migration guide, Beta 2)."""
    if buffer is Buffer.PSUM:
        return Space(buffer, target.psum_bytes, PSUM_BANK_BYTES)
    return Space(buffer, target.sbuf_usable, SBUF_ALIGN)


class DoesNotFit(Exception):
    """There is no room for `life` while the tensors of `live` are in use."""

    def __init__(self, life: Lifetime, live: list[Lifetime]) -> None:
        self.life = life
        self.live = live


Addresses = dict[int, Address]


def place(lives: Sequence[Lifetime], space: Space, rest: int = REST) -> Addresses:
    """Return an address for each tensor, with `rest` as in `REST`; raises DoesNotFit."""
    fixed, free, addresses = apart(lives)
    with suppress(DoesNotFit):
        return addresses | _slots(free, fixed, space, rest)
    with suppress(DoesNotFit):
        return addresses | _ring(free, fixed, space)
    return addresses | _sweep(free, fixed, space, around=False)


def apart(lives: Sequence[Lifetime]) -> tuple[list[Lifetime], list[Lifetime], Addresses]:
    """Split into tensors with and without fixed addresses, and return those addresses."""
    fixed = [life for life in lives if life.tensor.fixed is not None]
    free = [life for life in lives if life.tensor.fixed is None]
    return fixed, free, {life.tensor.number: requested(life.tensor) for life in fixed}


def requested(tensor: Tensor) -> Address:
    return tensor.fixed or Address(0, 0)  # who asks knows that it is fixed


def _slots(
    free: Sequence[Lifetime], fixed: Sequence[Lifetime], space: Space, rest: int
) -> Addresses:
    """Reuse the longest-free slot of a size and type, once `rest` are free or memory is full."""
    if fixed:
        return _ring(free, fixed, space)
    addresses: Addresses = {}
    resting: dict[tuple[int, str], deque[Address]] = defaultdict(deque)
    kinds: dict[tuple[int, str], tuple[int, deque[Address]]] = {}  # by bytes and type
    ends: list[tuple[int, int, Address, deque[Address]]] = []
    next_free = 0
    for order, (tensor, first, last) in enumerate(free):
        while ends and ends[0][0] < first:
            _, _, at, slots = heappop(ends)
            slots.append(at)
        kind = tensor.bytes, tensor.dtype.name
        if kind not in kinds:
            size = space.size(tensor)
            kinds[kind] = size, resting[size, kind[1]]
        size, slots = kinds[kind]
        fits = next_free + size <= space.capacity
        if slots and (len(slots) >= rest or not fits):
            at = slots.popleft()
        elif fits:
            at, next_free = Address(0, next_free), next_free + size
        else:
            raise DoesNotFit(free[order], [])
        addresses[tensor.number] = at
        heappush(ends, (last, order, at, slots))
    return addresses


def _ring(free: Sequence[Lifetime], fixed: Sequence[Lifetime], space: Space) -> Addresses:
    return _sweep(free, fixed, space, around=True)


Ranges = list[tuple[int, int]]  # first byte and end, in order


def fit(taken: Ranges, capacity: int, size: int, after: int) -> int | None:
    """Return the lowest start at or above `after` with `size` free bytes, or None.

    The ranges of `taken` may only overlap if `after` is 0.
    """
    index = bisect_right(taken, (after, capacity))
    at = max(after, taken[index - 1][1]) if index else after
    for low, high in taken[index:]:
        if low - at >= size:
            return at
        at = max(at, high)
    return at if capacity - at >= size else None


def _sweep(
    free: Sequence[Lifetime], fixed: Sequence[Lifetime], space: Space, around: bool
) -> Addresses:
    """Place in program order; with `around`, continue the search where the last tensor ended."""
    addresses: Addresses = {}
    live: dict[int, tuple[int, int, Lifetime]] = {}  # by tensor: first byte, end, lifetime
    taken: Ranges = []
    ends: list[tuple[int, int]] = []
    after = 0
    for life in free:
        while ends and ends[0][0] < life.first:
            low, high, _ = live.pop(heappop(ends)[1])
            taken.remove((low, high))
        overlapping = [f for f in fixed if f.meets(life)]
        ranges = (
            joined([*taken, *(range_of(f, space) for f in overlapping)]) if overlapping else taken
        )
        size = space.size(life.tensor)
        start = fit(ranges, space.capacity, size, after)
        if start is None and after:
            start = fit(ranges, space.capacity, size, 0)
        if start is None:
            raise DoesNotFit(
                life, [life_in_use for _, _, life_in_use in live.values()] + overlapping
            )
        number = life.tensor.number
        addresses[number] = Address(0, start)
        live[number] = (start, start + size, life)
        insort(taken, (start, start + size))
        heappush(ends, (life.last, number))
        after = start + size if around else 0
    return addresses


def joined(ranges: Ranges) -> Ranges:
    """Merge ranges that meet: `fit` needs them apart, and a fixed tensor's may overlap others."""
    merged: Ranges = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return merged


def range_of(fixed: Lifetime, space: Space) -> tuple[int, int]:
    """Return the bytes that a tensor at a fixed address takes, as first byte and end."""
    first = requested(fixed.tensor).byte
    end = first + fixed.tensor.bytes
    return first // space.align * space.align, -(-end // space.align) * space.align


# ------------------------------------------------------------------------------------------------
# Addresses that the kernel requested: inside the memory and not in use by another tensor.

BLOCK = 1024  # bytes per partition


def check_fixed(lives: Sequence[Lifetime], space: Space, target: Target, report: Reporter) -> bool:
    """Report every impossible `address=`, and return whether there is none."""
    fixed = [life for life in lives if life.tensor.fixed is not None]
    inside = [_inside(life.tensor, space, target, report) for life in fixed]
    apart = [_apart(first, second, report) for first, second in _neighbours(fixed)]
    return all(inside) and all(apart)


def _neighbours(fixed: Sequence[Lifetime]) -> Iterator[tuple[Lifetime, Lifetime]]:
    """Yield each pair of tensors with overlapping live ranges and bytes in one block once.

    `fixed` is in order of first access. Live tensors are indexed by block, so the work grows with
    the number of tensors rather than of pairs.
    """
    blocks: dict[int, list[Lifetime]] = defaultdict(list)
    for life in fixed:
        neighbours: dict[int, Lifetime] = {}
        for block in _blocks(life.tensor):
            live = [neighbour for neighbour in blocks[block] if neighbour.last >= life.first]
            neighbours.update((neighbour.tensor.number, neighbour) for neighbour in live)
            blocks[block] = [*live, life]
        for neighbour in neighbours.values():
            yield neighbour, life


def _blocks(tensor: Tensor) -> range:
    first = requested(tensor).byte
    return range(first // BLOCK, -(-(first + tensor.bytes) // BLOCK))


def _inside(tensor: Tensor, space: Space, target: Target, report: Reporter) -> bool:
    partition, byte = requested(tensor)
    end = byte + tensor.bytes
    name = space.buffer.value.upper()
    if byte < 0 or end > space.capacity:
        report.error(
            "fixed-address",
            f"`{tensor.name}` at address ({partition}, {byte}) ends at byte {end:,} of each "
            f"partition; {name} of {target.name} has {space.capacity:,} usable bytes",
            tensor.at.primary,
            help=f"choose a start of at most {space.capacity - tensor.bytes:,}, or leave out "
            "`address=` and let nkic choose",
        )
        return False
    if partition < 0 or partition + tensor.partitions > PARTITIONS:
        report.error(
            "fixed-address",
            f"`{tensor.name}` at address ({partition}, {byte}) ends at partition "
            f"{partition + tensor.partitions}; {name} has {PARTITIONS}",
            tensor.at.primary,
            help=f"choose a start partition of at most {PARTITIONS - tensor.partitions}",
        )
        return False
    if byte % space.align and space.buffer is Buffer.PSUM:
        report.error(
            "fixed-address",
            f"`{tensor.name}` at address ({partition}, {byte}) starts inside a bank of PSUM; "
            f"an allocation starts at a bank, which is at a multiple of {space.align:,} bytes",
            tensor.at.primary,
            help=f"write address=({partition}, {byte // space.align * space.align}), and take the "
            "part that you need with a slice",
        )
        return False
    return True


def _apart(first: Lifetime, second: Lifetime, report: Reporter) -> bool:
    a, b = first.tensor, second.tensor
    (pa, ba), (pb, bb) = requested(a), requested(b)
    bytes_meet = ba < bb + b.bytes and bb < ba + a.bytes
    partitions_meet = pa < pb + b.partitions and pb < pa + a.partitions
    if not (bytes_meet and partitions_meet):
        return True
    report.error(
        "address-overlap",
        f"`{b.name}` at bytes {bb:,} to {bb + b.bytes:,} overlaps `{a.name}` at bytes "
        f"{ba:,} to {ba + a.bytes:,} while both are in use",
        b.at.primary,
        labels=[Label(a.at.primary, f"`{a.name}` is placed here")],
        help=f"move `{b.name}` to byte {ba + a.bytes:,}, or leave out `address=`",
    )
    return False


# ------------------------------------------------------------------------------------------------
# Reuse edges: a tensor that takes over bytes waits for the last accesses of their former owner.
# In a device loop, the former owner may be a tensor of the previous iteration.


def reuse_edges(
    lives: Sequence[Lifetime], addresses: Mapping[int, Address], graph: DependenceGraph
) -> dict[int, tuple[Edge, ...]]:
    """Return the reuse edges for one memory; `lives` are in order of first access."""
    ownership = _Ownership(addresses, graph)
    tensor_counts = Counter(life.tensor.scope[-1] for life in lives if life.tensor.scope)
    by_loop: dict[int, list[Tensor]] = defaultdict(list)
    for tensor, _, _ in lives:
        ownership.take(tensor)
        if not tensor.scope:
            continue
        loop = tensor.scope[-1]
        by_loop[loop].append(tensor)
        if len(by_loop[loop]) == tensor_counts[loop]:
            for repeated in by_loop[loop]:
                ownership.take(repeated, 1)
    return ownership.edges


class _Ownership:
    """The current owner of all bytes, and the edges for each change of ownership."""

    def __init__(self, addresses: Mapping[int, Address], graph: DependenceGraph) -> None:
        self.addresses = addresses
        self.graph = graph
        self.bands = Bands(address.partition for address in addresses.values())
        self.owners = [_Owners() for _ in self.bands.starts]
        self.edges: dict[int, tuple[Edge, ...]] = {}

    def take(self, tensor: Tensor, distance: int = 0) -> None:
        """Assign `tensor` its bytes, in the loop's next iteration if `distance` is 1."""
        partition, low = self.addresses[tensor.number]
        number, high = tensor.number, low + tensor.bytes
        if len(self.owners) == 1:
            formers: Collection[int] = self.owners[0].take(low, high, number)
        else:
            bands = self.bands.of(partition, tensor.partitions)
            taken = [self.owners[band].take(low, high, number) for band in bands]
            formers = dict.fromkeys(former for owners in taken for former in owners)
        for former in formers:
            if former != number:
                self._wait(number, former, distance)

    def _wait(self, tensor: int, former: int, distance: int) -> None:
        all_edges, new = self.edges, tuple.__new__
        closers = self.graph.last_touches[former]
        if len(closers) == 1:  # most often, and without the call of a comprehension
            reuse: tuple[Edge, ...] = (new(Edge, (closers[0], "reuse", distance)),)
        else:
            reuse = tuple([new(Edge, (closer, "reuse", distance)) for closer in closers])
        for opener in self.graph.first_touches[tensor]:
            edges = all_edges.get(opener)
            all_edges[opener] = tuple(dict.fromkeys((*edges, *reuse))) if edges else reuse


class _Owners:
    """The bytes of a partition as ranges, each with its last owner."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ranges: list[tuple[int, int, int]] = []  # first byte, end, tensor

    def take(self, low: int, high: int, tensor: int) -> Collection[int]:
        """Assign [low, high) to `tensor`, and return the former owners of any of these bytes."""
        starts, ranges = self.starts, self.ranges
        first = bisect_left(starts, low)
        if first < len(starts) and starts[first] == low and ranges[first][1] == high:
            former = ranges[first][2]  # the usual case: the new owner takes over exactly one range
            ranges[first] = (low, high, tensor)
            return (former,)
        if first and ranges[first - 1][1] > low:
            first -= 1
        last = bisect_left(starts, high)
        taken = ranges[first:last]
        left = [(a, low, t) for a, _, t in taken[:1] if a < low]
        right = [(high, b, t) for _, b, t in taken[-1:] if b > high]
        ranges[first:last] = [*left, (low, high, tensor), *right]
        starts[first:last] = [r[0] for r in (*left, (low, high, tensor), *right)]
        return dict.fromkeys(t for _, _, t in taken)


# ---- PSUM banks by role: the tiles of one declaration cycle through banks of their own ----------
# Slots in program order (`place.py`) cycle through all banks, so that the next iteration of an
# unrolled loop starts in the bank that the current one reads last, and the tensor engine stalls
# until the iteration ends. With separate banks, the first tiles of an iteration wait for those of
# the previous iteration only, and the iterations overlap.


@dataclass
class _Role:
    """The live ranges of one declaration: at most `size` bytes each, at most `most` at once."""

    lives: list[Lifetime] = field(default_factory=list)
    size: int = 0
    most: int = 0
    count: int = 0  # slots

    @property
    def span(self) -> tuple[int, int]:
        """The first access and the last access over all tiles."""
        return self.lives[0].first, max(life.last for life in self.lives)

    @property
    def length(self) -> float:
        """The mean length of a tile's live range, in instructions."""
        return sum(life.last - life.first for life in self.lives) / len(self.lives)


def by_role(lives: Sequence[Lifetime], space: Space) -> Addresses:
    """Return an address for each tensor; `lives` are in order of first access.

    Raises DoesNotFit if the roles together exceed the memory.
    """
    addresses: Addresses = {}
    for phase in _phases(_roles(lives, space)):
        _share(phase, space)
        start = 0
        for role in phase:
            addresses |= _around(role, start)
            start += role.count * role.size
    return addresses


def _roles(lives: Sequence[Lifetime], space: Space) -> list[_Role]:
    roles: dict[Hashable, _Role] = {}
    for life in lives:
        role = roles.setdefault(life.tensor.at.primary, _Role())
        role.lives.append(life)
        role.size = max(role.size, space.size(life.tensor))
    for role in roles.values():
        role.most = most_at_once(role.lives)
    return list(roles.values())


def _phases(roles: Sequence[_Role]) -> list[list[_Role]]:
    phases: list[list[_Role]] = []
    end = -1
    for role in sorted(roles, key=lambda one: one.span):
        first, last = role.span
        if first > end:
            phases.append([])
        phases[-1].append(role)
        end = max(end, last)
    return phases


def _share(phase: Sequence[_Role], space: Space) -> None:
    """Set the slot count of each role: first its minimum, then multiples of it, as many as fit.

    Roles with the longest live ranges are served first.
    """
    for role in phase:
        role.count = role.most
    free_bytes = space.capacity - sum(role.count * role.size for role in phase)
    if free_bytes < 0:
        raise DoesNotFit(phase[0].lives[0], [])
    changed = True
    while changed:
        changed = False
        for role in sorted(phase, key=lambda one: -one.length):
            extra = role.most * role.size
            if extra <= free_bytes and role.count < len(role.lives):
                role.count += role.most
                free_bytes -= extra
                changed = True


def _around(role: _Role, start: int) -> Addresses:
    """Place the role's tiles, each in the slot that has been free longest."""
    free_slots = deque(start + n * role.size for n in range(role.count))
    ends: list[tuple[int, int]] = []
    addresses: Addresses = {}
    for life in role.lives:
        while ends and ends[0][0] < life.first:
            free_slots.append(heappop(ends)[1])
        at = free_slots.popleft()
        addresses[life.tensor.number] = Address(0, at)
        heappush(ends, (life.last, at))
    return addresses


# ---- The memory use of a program, for the resource line -----------------------------------------


def peak(program: Program, buffer: Buffer) -> int:
    """Return the bytes per partition of `buffer` that tensors ever occupy, on the fullest core.

    Tensors that follow one another at the same address count once.
    """
    return max((_occupied(body, program, buffer) for body in program.cores), default=0)


def _occupied(body: Body, program: Program, buffer: Buffer) -> int:
    space = space_of(buffer, program.target)
    tensors = [program.tensors[number] for number in tensors_of(body, program.target)]
    places = {(program.addresses[t.number].byte, t.bytes) for t in tensors if t.buffer is buffer}
    ranges = []
    for first, size in places:  # few ranges: neighbouring tensors share addresses
        end = first + size
        ranges.append((first // space.align * space.align, -(-end // space.align) * space.align))
    total = end = 0
    for low, high in sorted(ranges):
        total += max(0, high - max(low, end))
        end = max(end, high)
    return min(total, space.capacity)


# --------------------------------------------------------------------------------------------------

Graphs = tuple[DependenceGraph, ...]
Core = tuple[Addresses, Body, DependenceGraph]


def allocate(
    program: Program,
    graphs: Graphs,
    report: Reporter,
    rest: int = REST,
    pack: bool = True,
    roles: bool = False,
) -> tuple[Program, Graphs]:
    """Assign addresses to all on-chip tensors; report what does not fit, for all memories at once.

    `rest` is the number of free slots of a kind before the oldest is reused; `pack` enables
    packing, which may take a second; `roles` groups PSUM banks by role if that fits.
    """
    chosen: Addresses = {}
    bodies, new_graphs = [], []
    strategy = Strategy(rest, pack, roles)
    for body, graph in zip(program.cores, graphs, strict=True):
        addresses, body, graph = _core(body, graph, program.target, report, strategy)
        chosen |= addresses
        bodies.append(body)
        new_graphs.append(graph)
    report.stop_if_errors()
    return replace(program, cores=tuple(bodies), addresses=chosen), tuple(new_graphs)


class Strategy(NamedTuple):
    rest: int
    pack: bool
    roles: bool = False


def _core(
    body: Body, graph: DependenceGraph, target: Target, report: Reporter, strategy: Strategy
) -> Core:
    """Place in program order or, if a memory is too small, in an order that needs less of it.

    Errors are reported for the program as written.
    """
    spaces = [space_of(buffer, target) for buffer in MEMORIES]
    lives = lifetimes_in(body, target, MEMORIES)
    memories = list(zip(spaces, lives, strict=True))
    valid = [check_fixed(own, space, target, report) for space, own in memories]
    filled = [
        _fill(body, *memory, target, strategy)
        for memory, is_valid in zip(memories, valid, strict=True)
        if is_valid
    ]
    tight = [memory for memory in filled if memory.failure is not None]
    if tight and all(valid):
        for moved, moved_graph in _orders(
            body, graph, [memory.space.buffer for memory in tight], target
        ):
            lives = lifetimes_in(moved, target, MEMORIES)
            refilled = [
                _fill(moved, *memory, target, strategy)
                for memory in zip(spaces, lives, strict=True)
            ]
            if all(memory.failure is None for memory in refilled):
                return _joined_graphs(refilled, moved, moved_graph)
    for memory in tight:
        memory.report(target, report)
    return _joined_graphs(filled, body, graph)


def _orders(
    body: Body, graph: DependenceGraph, tight: Sequence[Buffer], target: Target
) -> Iterator[tuple[Body, DependenceGraph]]:
    """Yield other orders of the program, whose peak memory use may be lower."""
    # Imported here because few programs need them.
    from nkic.compiler.tight import frugal, sink

    yield sink(body, graph, tight, target)
    for backwards in (False, True):
        reordered = frugal(body, graph, target, backwards)
        if reordered is not None:
            yield reordered


def _joined_graphs(filled: Sequence[_Filled], body: Body, graph: DependenceGraph) -> Core:
    addresses: Addresses = {}
    for memory in filled:
        addresses |= memory.addresses
        graph = graph.plus(reuse_edges(memory.lives, memory.addresses, graph))
    return addresses, body, graph


class _Filled(NamedTuple):
    """One memory of a core: its live ranges and their addresses, or the failure."""

    space: Space
    lives: list[Lifetime]
    addresses: Addresses
    failure: DoesNotFit | None = None

    def report(self, target: Target, report: Reporter) -> None:
        if self.failure is not None:
            from nkic.compiler.tight import report_overflow  # rarely needed

            report_overflow(self.failure, self.space, target, report)


def _fill(
    body: Body, space: Space, lives: list[Lifetime], target: Target, strategy: Strategy
) -> _Filled:
    try:
        return _Filled(space, lives, addresses(body, lives, space, target, strategy))
    except DoesNotFit as failure:
        return _Filled(space, [], {}, failure)


def addresses(
    body: Body, lives: Sequence[Lifetime], space: Space, target: Target, strategy: Strategy
) -> Addresses:
    """Place in program order, else by size, else with smaller gaps, else side by side.

    Raises the DoesNotFit of the first strategy if all fail.
    """
    if (
        strategy.roles
        and space.buffer is Buffer.PSUM
        and not any(life.tensor.fixed for life in lives)
    ):
        with suppress(DoesNotFit):
            return by_role(lives, space)
    try:
        return place(lives, space, strategy.rest)
    except DoesNotFit:
        if not strategy.pack:
            raise
        from nkic.compiler.tight import pack  # lazy: nothing else in a compilation needs NumPy

        with suppress(DoesNotFit):
            return pack(lives, space)
        if space.buffer is Buffer.SBUF:
            from nkic.compiler.tight import movable  # rarely needed

            tight = replace(space, align=TIGHT_ALIGN)
            for moving in ((), movable(body, target)):
                with suppress(DoesNotFit):
                    return pack(lives, tight, moving)
        raise
