"""The faults: each makes one change in a schedule, in addresses, or in the records of a file."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from nkic.artifact.records import Executable, InstructionRecord, PatternRecord
from nkic.compiler.schedule import schedule as scheduled
from nkic.machine.targets import Address
from nkic.program.program import (
    AccessPattern,
    DependenceGraph,
    Program,
    Schedule,
    Slot,
    Stream,
    StreamItem,
    StreamLoop,
)


class Fault(NamedTuple):
    """A kind of fault, and the broken result, which is built on demand."""

    kind: str
    make: Callable[[], Any]


Items = tuple[Any, ...]
Edit = Callable[[Items], Items]


# Lists of items of any type: slots of a schedule, or records of a file.


def _replaced(items: Items, at: int, *new: Any) -> Items:
    return (*items[:at], *new, *items[at + 1 :])


def _edits(items: Items) -> Iterator[tuple[str, Edit]]:
    """Yield the possible faults in a row of items, each with waits, signals and a payload."""
    for at, item in enumerate(items):
        if not hasattr(item, "waits"):
            continue
        for number in range(len(item.waits)):
            yield "lost wait", _lost(at, "waits", number)
        for number in range(len(item.signals)):
            if at and hasattr(items[at - 1], "signals"):
                yield "early signal", _early(at, number)
        if at + 1 < len(items) and hasattr(items[at + 1], "waits"):
            if {w[0] for w in item.waits} - {w[0] for w in items[at + 1].waits}:
                yield "late wait", _late(at)
            if _payload(item) is not None and _payload(items[at + 1]) is not None:
                yield "swapped neighbours", _swapped(at)
        if _payload(item) is not None:
            yield "dropped instruction", _dropped(at)
            yield "doubled instruction", _doubled(at)


def _payload(item: Any) -> Any:
    if isinstance(item, Slot):
        return item.instruction
    return (item.row, item.operands, item.attributes) if getattr(item, "row", None) else None


def _with_payload(item: Any, payload: Any) -> Any:
    if isinstance(item, Slot):
        return item._replace(instruction=payload)
    row, operands, attributes = payload if payload is not None else (None, (), ())
    return item._replace(row=row, operands=operands, attributes=attributes)


def _lost(at: int, what: str, number: int) -> Edit:
    def edit(items: Items) -> Items:
        values = getattr(items[at], what)
        left = (*values[:number], *values[number + 1 :])
        return _replaced(items, at, items[at]._replace(**{what: left}))

    return edit


def _early(at: int, number: int) -> Edit:
    """Yield signals given by the preceding item: too early for the work of this one."""

    def edit(items: Items) -> Items:
        signal = items[at].signals[number]
        before = items[at - 1]._replace(signals=(*items[at - 1].signals, signal))
        return _replaced(_lost(at, "signals", number)(items), at - 1, before)

    return edit


def _late(at: int) -> Edit:
    """Yield waits of an item that move to the next one."""

    def edit(items: Items) -> Items:
        one, two = items[at], items[at + 1]
        known = {semaphore for semaphore, _ in two.waits}
        moved = tuple(w for w in one.waits if w[0] not in known)
        kept = tuple(w for w in one.waits if w[0] in known)
        new = (one._replace(waits=kept), two._replace(waits=(*moved, *two.waits)))
        return (*items[:at], *new, *items[at + 2 :])

    return edit


def _swapped(at: int) -> Edit:
    """Exchange the instructions of two neighbours; their waits and signals stay."""

    def edit(items: Items) -> Items:
        one, two = items[at], items[at + 1]
        new = (_with_payload(one, _payload(two)), _with_payload(two, _payload(one)))
        return (*items[:at], *new, *items[at + 2 :])

    return edit


def _dropped(at: int) -> Edit:
    return lambda items: _replaced(items, at, _with_payload(items[at], None))


def _doubled(at: int) -> Edit:
    """Repeat an item right after itself."""

    def edit(items: Items) -> Items:
        item = items[at]
        again = item._replace(waits=(), signals=item.signals)
        return _replaced(items, at, item._replace(signals=()), again)

    return edit


# Schedules


def of_schedule(found: Schedule) -> Iterator[Fault]:
    """Yield faults of streams and semaphores."""
    for core, streams in enumerate(found.cores):
        for number, stream in enumerate(streams):
            for kind, items in _everywhere(stream.items):
                yield Fault(kind, _in_stream(found, core, number, items))


def _in_stream(
    found: Schedule, core: int, number: int, items: Callable[[], Sequence[StreamItem]]
) -> Callable[[], Schedule]:
    def make() -> Schedule:
        streams = list(found.cores[core])
        streams[number] = Stream(streams[number].id, tuple(items()))
        cores = list(found.cores)
        cores[core] = tuple(streams)
        return replace(found, cores=tuple(cores))

    return make


def _everywhere(items: Items) -> Iterator[tuple[str, Callable[[], Items]]]:
    """Yield the edits of these items, and of the bodies of the loops among them."""
    for kind, edit in _edits(items):
        yield kind, partial(edit, items)
    for at, item in enumerate(items):
        if isinstance(item, StreamLoop):
            for kind, inside in _everywhere(item.items):

                def make(at: int = at, item: StreamLoop = item, inside: Any = inside) -> Items:
                    return _replaced(items, at, StreamLoop(item.loop, inside()))

                yield kind, make


def of_offsets(found: Schedule) -> Iterator[Fault]:
    """Yield an operand one element later, in the schedule alone."""
    for core, streams in enumerate(found.cores):
        for number, stream in enumerate(streams):
            for at, item in enumerate(stream.items):
                if not isinstance(item, Slot) or item.instruction is None:
                    continue
                for index, operand in enumerate(item.instruction.operands):
                    if isinstance(operand, AccessPattern) and _room(operand):
                        yield Fault("wrong offset", _shifted(found, core, number, at, index))


def _room(pattern: AccessPattern) -> bool:
    return pattern.extent()[1] + pattern.dtype.size <= pattern.tensor.bytes


def _shifted(found: Schedule, core: int, stream: int, at: int, index: int) -> Callable[[], Any]:
    def items() -> Items:
        own = found.cores[core][stream].items
        slot = own[at]
        if not isinstance(slot, Slot) or slot.instruction is None:
            return own
        operands = list(slot.instruction.operands)
        pattern = operands[index]
        if isinstance(pattern, AccessPattern):
            operands[index] = pattern._replace(offset=pattern.offset + 1)
        new = slot.instruction._replace(operands=tuple(operands))
        return _replaced(own, at, slot._replace(instruction=new))

    return _in_stream(found, core, stream, items)


def of_edges(placed: Program, graphs: Sequence[DependenceGraph]) -> Iterator[Fault]:
    """Yield a schedule that lacks one edge."""
    for core, graph in enumerate(graphs):
        for number, edges in graph.edges.items():
            for at in range(len(edges)):
                yield Fault("lost edge", _without_edge(placed, graphs, core, number, at))


def _without_edge(
    placed: Program, graphs: Sequence[DependenceGraph], core: int, number: int, at: int
) -> Callable[[], Schedule]:
    def make() -> Schedule:
        edges = graphs[core].edges[number]
        left = {**graphs[core].edges, number: (*edges[:at], *edges[at + 1 :])}
        new = [*graphs[:core], replace(graphs[core], edges=left), *graphs[core + 1 :]]
        return scheduled(placed, new)

    return make


def of_addresses(placed: Program) -> Iterator[Fault]:
    """Yield a tensor at another address: that of another tensor, or a little later."""
    others = sorted(set(placed.addresses.values()))
    for number, (partition, byte) in placed.addresses.items():
        for place in (
            Address(partition, byte + 4),
            Address(partition, max(0, byte - 64)),
            *[a for a in others if a != (partition, byte)][:4],
        ):
            if place != (partition, byte):
                new = {**placed.addresses, number: place}
                yield Fault("wrong address", partial(replace, placed, addresses=new))


# Files


def of_records(found: Executable) -> Iterator[Fault]:
    """Yield the same faults in the records of a file."""
    for number, stream in enumerate(found.streams):
        for kind, edit in _edits(tuple(stream.items)):
            yield Fault(kind, _in_records(found, number, edit))
        for at, item in enumerate(stream.items):
            for index, operand in enumerate(getattr(item, "operands", ())):
                if isinstance(operand, PatternRecord):
                    yield Fault("wrong offset", _in_records(found, number, _further(at, index)))
    for number, tensor in enumerate(found.tensors):
        if tensor.buffer.on_chip:
            for byte in {tensor.byte + 4, max(0, tensor.byte - 64)} - {tensor.byte}:
                yield Fault("wrong address", _moved(found, number, byte))


def _in_records(found: Executable, number: int, edit: Edit) -> Callable[[], Executable]:
    def make() -> Executable:
        streams = list(found.streams)
        before = tuple(streams[number].items)
        items = _lengths(before, edit(before))
        streams[number] = streams[number]._replace(items=items)
        return replace(found, streams=tuple(streams))

    return make


def _lengths(before: Items, after: Items) -> Items:
    """Correct the length of a loop: one more if one of its records appears twice."""
    if len(before) == len(after):
        return after
    pairs = enumerate(zip(before, after, strict=False))
    at = next((n for n, (one, other) in pairs if one != other), len(before) - 1)
    return tuple(
        item._replace(length=item.length + 1)
        if hasattr(item, "length") and n < at <= n + item.length
        else item
        for n, item in enumerate(after)
    )


def _further(at: int, index: int) -> Edit:
    def edit(items: Items) -> Items:
        item: InstructionRecord = items[at]
        pattern = item.operands[index]
        if not isinstance(pattern, PatternRecord):
            return items
        moved = pattern._replace(offset=pattern.offset + 1)
        operands = (*item.operands[:index], moved, *item.operands[index + 1 :])
        return _replaced(items, at, item._replace(operands=operands))

    return edit


def _moved(found: Executable, number: int, byte: int) -> Callable[[], Executable]:
    def make() -> Executable:
        tensors = list(found.tensors)
        tensors[number] = tensors[number]._replace(byte=byte)
        return replace(found, tensors=tuple(tensors))

    return make
