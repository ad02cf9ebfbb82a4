"""Legality of instructions: `violations` runs every check that applies to a row.

The checks that all rows share come first and are derived from operands and attributes: each value
has an accepted kind, and each tile is in a memory the instruction reaches, has an accepted type, is
within 128 partitions and can be encoded as an access pattern. Only if these hold do the row's own
rules run, which may therefore rely on them. `check` and the verifier of files both use this module,
so nothing here raises, whatever the values are.

Rules see tiles, attributes, engine and target, never addresses.

Sources: `nki.isa` (operands and their limits); Trainium/Inferentia2 architecture guide, data
movement (128 partitions, start partitions, four free dimensions, sizes uint16, steps int16);
`nki.isa.nc_matmul` and `nki.language` (types that need NeuronCore-v4).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import cache
from itertools import zip_longest
from typing import Any, Generic, NamedTuple, TypeVar

from nkic.base.text import kind_of, singular
from nkic.machine.operands import (
    MAX_TEXT,
    Attribute,
    AttributeKind,
    Facts,
    Operand,
    Register,
    Row,
    Tile,
    Value,
    Violation,
)
from nkic.machine.operators import ACTIVATIONS, ALU, NO_ENGINE
from nkic.machine.targets import PSUM_BANK_BYTES, Buffer, Engine, Target
from nkic.machine.tiles import compile_for, first_target, wrong_tiles

# ---- Kinds: what every operand and attribute may be, without looking into tiles -----------------

INT32 = (-(1 << 31), (1 << 31) - 1)
INT64 = (-(1 << 63), (1 << 63) - 1)  # limits of the file format


def wrong_arguments(row: Row, facts: Facts) -> Iterator[Violation]:
    """Yield an error per operand or attribute of a wrong kind; without errors, rules may run."""
    operands, attributes = facts.operands, facts.attributes
    for operand in row.operands:
        value = operands.get(operand.name)
        if not (operand.buffers if type(value) is Tile else _accepted(operand, value)):
            yield _wrong(operand.name, value, accepts(operand), _number_advice(operand, value))
    for name, attribute, accepted in _checks(row):
        setting = attributes.get(name)
        if accepted(setting) or (setting is None and attribute.optional):
            continue
        if attribute.kind in (AttributeKind.ALU, AttributeKind.ACTIVATION) and setting in NO_ENGINE:
            text = f"`{name}` is nl.{setting}, which is not an operator of any engine"
            yield Violation("argument-kind", text, name, NO_ENGINE[setting])
        else:
            yield _wrong(name, setting, takes(attribute), _operator_advice(attribute, setting))


def _wrong(name: str, value: Any, expected: str, advice: str = "") -> Violation:
    text = f"`{name}` is {shown(value)}, but must be {expected}"
    return Violation("argument-kind", text, name, advice or f"pass {expected} as `{name}`")


def _number_advice(operand: Operand, value: Any) -> str:
    """Return advice on a number in place of one of two tiles."""
    if not is_number(value) or operand.name not in ("data1", "data2"):
        return ""
    return f"use `nisa.tensor_scalar`, with the tile as `data` and {value!r} as `operand0`"


def _operator_advice(attribute: Attribute, value: Any) -> str:
    """Return advice on a function of tensors, or an operator of the other kind of instruction."""
    if attribute.kind is AttributeKind.ALU and value in FOLDS:
        then = "; multiply the sum by 1 / the number of elements" * (value == "mean")
        return f"nl.{value} is a function of a tensor; its operator is nl.{FOLDS[value]}{then}"
    if attribute.kind is AttributeKind.ACTIVATION and value in FOLDS:
        call = f"nisa.tensor_reduce(dst=…, op=nl.{FOLDS[value]}, data=…, axis=1)"
        then = ", and a multiplication by 1 / the number of elements" * (value == "mean")
        return f"nl.{value} is a function of a tensor; the instruction for it is {call}{then}"
    if attribute.kind is AttributeKind.ALU and value in ACTIVATIONS:
        return f"nl.{value} takes one value and goes with nisa.activation; operators take two"
    if attribute.kind is AttributeKind.ACTIVATION and value in ALU:
        usage = "takes two values and goes with nisa.tensor_tensor or nisa.tensor_scalar"
        return f"nl.{value} {usage}; functions take one"
    return ""


# The operators with which functions of tensors reduce them.
FOLDS = {"sum": "add", "mean": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}


def _accepted(operand: Operand, value: Value) -> bool:
    if value is None:
        return operand.optional
    if type(value) is Register:
        return operand.register
    return operand.number and is_number(value)


def accepts(operand: Operand) -> str:
    """Describe in words the values that `operand` accepts."""
    kinds = (
        "a tile" if operand.buffers else "",
        "a number" if operand.number else "",
        "a register" if operand.register else "",
        "None" if operand.optional else "",
    )
    return " or ".join(filter(None, kinds))


def takes(attribute: Attribute) -> str:
    """Describe in words the values that `attribute` accepts."""
    kind = attribute.kind.value
    description = f"{'an' if kind[0] in 'aio' else 'a'} {kind}"
    if attribute.kind is AttributeKind.CHOICE:
        description = f"one of {', '.join(attribute.choices)}"
    return f"{description} or None" if attribute.optional else description


@cache
def _checks(row: Row) -> tuple[tuple[str, Attribute, Callable[[Any], bool]], ...]:
    return tuple((a.name, a, _acceptor(a)) for a in row.attributes)


def allowed(attribute: Attribute, value: Any) -> bool:
    """Return whether `value` has a kind that `attribute` accepts; its rules may still reject it."""
    return (value is None and attribute.optional) or _acceptor(attribute)(value)


def _acceptor(attribute: Attribute) -> Callable[[Any], bool]:
    if attribute.kind is AttributeKind.CHOICE:
        return lambda value: type(value) is str and value in attribute.choices
    return _ACCEPTORS[attribute.kind]


def is_number(value: Any) -> bool:
    """Return whether `value` is a float (also NaN or infinite) or an int that a file can hold."""
    return type(value) is float or _is_int(value)


def _is_text(value: Any) -> bool:
    if type(value) is not str:
        return False
    try:
        return len(value.encode()) <= MAX_TEXT
    except UnicodeEncodeError:  # a lone surrogate
        return False


def _is_int(value: Any) -> bool:
    return type(value) is int and INT64[0] <= value <= INT64[1]


def _is_int32(value: Any) -> bool:
    return type(value) is int and INT32[0] <= value <= INT32[1]


def _is_ints(value: Any) -> bool:
    return type(value) is tuple and all(map(_is_int, value))


def _is_numbers(value: Any) -> bool:
    return type(value) is tuple and all(is_number(item) and item == item for item in value)


def _is_pattern(value: Any) -> bool:
    return type(value) is tuple and all(
        type(pair) is tuple and len(pair) == 2 and all(map(_is_int32, pair)) for pair in value
    )


def _is_groups(value: Any) -> bool:
    return type(value) is tuple and all(
        type(group) is tuple and all(map(_is_int32, group)) for group in value
    )


_ACCEPTORS: dict[AttributeKind, Callable[[Any], bool]] = {
    AttributeKind.ALU: lambda value: type(value) is str and value in ALU,
    AttributeKind.ACTIVATION: lambda value: type(value) is str and value in ACTIVATIONS,
    AttributeKind.BOOL: lambda value: type(value) is bool,
    AttributeKind.INT: _is_int,
    AttributeKind.INT32: _is_int32,
    AttributeKind.NUMBER: is_number,
    AttributeKind.PATTERN: _is_pattern,
    AttributeKind.INTS: _is_ints,
    AttributeKind.GROUPS: _is_groups,
    AttributeKind.NUMBERS: _is_numbers,
    AttributeKind.TEXT: _is_text,
}


def shown(value: Any) -> str:
    """Return a short form of any value, for messages."""
    if type(value) is Tile:
        return f"a tile {value}"
    if type(value) is Register:
        return "a register"
    if type(value) is int and not _is_int(value):
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, int | float | str | None):
        text = repr(value)
        return text if len(text) <= 40 else f"{text[:40]}…"
    return kind_of(value)


# ---- Rules for run-time offsets: their memory, type and number ----------------------------------
# `.ap(scalar_offset=…)` takes one integer, `.ap(vector_offset=…)` one per gathered or scattered
# row. Both are in SBUF, from which descriptors are generated. `.indirect()` takes a column of
# free-dimension offsets, shared by all partitions of a tile.
#
# Offset i of a tile is in partition i mod G of its index, column i div G, where G is 16, or 32 for
# the tensor engine. Only the first G partitions of the index are read: the formula names no
# others, although the index has as many partitions as the tile (assumed; docs/fidelity.md).
#
# Sources: `nki.isa.dma_copy` (indirect addressing: an SBUF tensor of shape (P, 1); a 1x1 SBUF
# tensor or a register); `nki.language.NkiTensor.indirect`; "tensor indirection" of each
# instruction in `nki.isa` (start partitions).

WORD = 4  # bytes of the largest offset
QUADRANT = 32  # partitions; an index starts at a multiple of it
_GROUP, _TENSOR_GROUP = 16, 32


def group(row: Row) -> int:
    """Return the number of index partitions over which consecutive offsets are spread."""
    return _TENSOR_GROUP if Engine.TENSOR in row.engines else _GROUP


def offset_capacity(index: Tile, row: Row) -> int:
    """Return the number of offsets that an index holds for an instruction of `row`."""
    lanes = group(row)
    if index.partitions >= lanes:
        return lanes * index.free
    return index.partitions  # further offsets would be in partitions that the index lacks


def wrong_indices(row: Row, facts: Facts) -> Iterator[Violation]:
    """Yield at most one error per operand with a run-time offset."""
    for name, tile in facts.tiles.items():
        if tile.offsets is None:
            continue
        if tile.indexed and tile.on_chip:
            wrong = _wrong_index(name, tile, tile.offsets, row) or _wrong_start(
                name, tile, tile.offsets, row, facts
            )
        else:
            wrong = _wrong_offsets(name, tile, tile.offsets)
        if wrong is not None:
            yield wrong


def _wrong_offsets(name: str, tile: Tile, offsets: Tile) -> Violation | None:
    """Check buffer and type of the offsets of `.ap()`; the rows check the length of a vector."""
    kind = "vector_offset" if tile.indexed else "scalar_offset"
    subject, slug = f"the `{kind}` of `{name}` is", "operand-shape"
    if offsets.buffer is not Buffer.SBUF:
        slug, text = "buffer-not-allowed", f"in {offsets.buffer.value}, but must be in sbuf"
        hint = f"copy it to SBUF with `nisa.{_copy_from(offsets)}` first"
    elif not offsets.dtype.is_integer or offsets.dtype.size > WORD:
        slug, text = "dtype-not-supported", f"{offsets.dtype.name}, but must be an integer"
        hint = "make it a tile of nl.int32 or nl.uint32"
    elif not tile.indexed and offsets.elements != 1:
        text = f"{list(offsets.shape)}, but must be [1, 1]: one offset for the whole pattern"
        hint = "pass one element, such as `index[0:1, 0:1]`"
    else:
        return None
    return Violation(slug, f"{subject} {text}", name, hint, True)


def _copy_from(offsets: Tile) -> str:
    return "tensor_copy" if offsets.buffer is Buffer.PSUM else "dma_copy"


def _wrong_index(name: str, tile: Tile, index: Tile, row: Row) -> Violation | None:
    capacity = offset_capacity(index, row)
    if index.buffer is not Buffer.SBUF:
        text, hint = f"an index in {index.buffer.value}, but it must be in sbuf", "copy it to SBUF"
    elif not index.dtype.is_integer or index.dtype.size > WORD:
        text, hint = f"an index of {index.dtype.name}", "make the index a tile of nl.uint32"
    elif index.partitions != tile.partitions:
        text = f"{tile.partitions} partitions and its index {index.partitions}"
        hint = "give the index tile the same number of partitions"
    elif tile.free > capacity:
        text = f"{tile.free} offsets, and its index {list(index.shape)} holds {capacity} for this "
        text += f"engine: offset i in partition i mod {group(row)}, column i div {group(row)}"
        hint = f"pass `num_elem`, at most {capacity}, or make the index wider"
    else:
        return None
    return Violation("indexed-operand", f"`{name}` has {text}", name, hint, True)


def _wrong_start(name: str, tile: Tile, index: Tile, row: Row, facts: Facts) -> Violation | None:
    """Check start partitions: of a source and its index, or of a scattered dst and the source."""
    expected = _start_wanted(name, tile, row, facts)
    if index.start % QUADRANT:
        text = f"the index of `{name}` starts at partition {index.start}, which must be a "
        text += f"multiple of {QUADRANT}"
    elif expected is not None and index.start != expected[0]:
        text = f"the index of `{name}` starts at partition {index.start}, but must start where "
        text += f"{expected[1]} does, at {expected[0]}"
    else:
        return None
    hint = "keep the tiles and their indices in the same partitions"
    return Violation("start-partition", text, name, hint, True)


def _start_wanted(name: str, tile: Tile, row: Row, facts: Facts) -> tuple[int, str] | None:
    if not row.operands[row.operand_index[name]].access.writes:
        return tile.start, f"`{name}`"
    leader = next((o.name for o in row.operands if o.indexed and not o.access.writes), "")
    source = facts.maybe(leader)
    if source is None:
        return None
    if source.buffer is Buffer.SBUF:
        return source.start, f"`{leader}`"
    if source.offsets is not None and source.indexed:
        return source.offsets.start, f"the index of `{leader}`"
    return None


# --------------------------------------------------------------------------------------------------


def violations(row: Row, facts: Facts) -> list[Violation]:
    """Return every rule that an instruction breaks; empty if it is legal on `facts.target`.

    If the kernel chose no engine, the rules see the engine that `row.choose` picks.
    """
    broken = [*wrong_arguments(row, facts)] or [*_too_new(row, facts)]
    if not broken:
        broken = [*wrong_tiles(row, facts)] or [*wrong_indices(row, facts)]
    if not broken:
        if facts.engine is None:
            facts = Facts(facts.target, facts.operands, facts.attributes, row.choose(facts))
        broken = [*_wrong_engine(row, facts)]
    if not broken:
        broken = [v for rule in row.rules if (v := rule(facts)) is not None]
    return [v._replace(message=f"{row.name}: {singular(v.message)}") for v in broken]


def signature(row: Row, facts: Facts) -> Hashable:
    """Return a key such that instructions with equal keys have equal violations and costs.

    Attributes must be hashable: tuples, not lists.
    """
    values = (*facts.operands.values(), *facts.attributes.values())
    # Types are part of the key: 1, 1.0 and True are equal in Python, but not to a rule.
    return row.opcode, facts.target.name, facts.engine, values, (*map(type, values),)


def _too_new(row: Row, facts: Facts) -> Iterator[Violation]:
    if row.generation > facts.target.generation:
        target = first_target(row.generation)
        yield Violation(
            "needs-newer-target",
            f"needs {target} or newer; the target is {facts.target.name}",
            help=compile_for(target),
        )
    for attribute in row.attributes:
        value = facts.attributes[attribute.name]
        if attribute.generation > facts.target.generation and value != attribute.default:
            yield Violation(
                "needs-newer-target",
                f"`{attribute.name}` is {value}, which needs {first_target(attribute.generation)}; "
                f"the target is {facts.target.name}",
                attribute.name,
                f"leave `{attribute.name}` out",
            )


def _wrong_engine(row: Row, facts: Facts) -> Iterator[Violation]:
    engine = facts.engine
    if engine not in row.engines:
        names = " or ".join(e.value for e in row.engines)
        yield Violation(
            "engine-not-allowed",
            f"cannot run on {engine.value if engine else 'no engine'}, only on {names}",
            "engine",
            "leave out `engine`, and nkic chooses one",
        )
    elif engine is Engine.GPSIMD:
        yield from _in_psum(facts)


def _in_psum(facts: Facts) -> Iterator[Violation]:
    for name, tile in facts.tiles.items():
        if tile.buffer is Buffer.PSUM:
            yield Violation(
                "gpsimd-psum",
                f"`{name}` is in psum, which the gpsimd engine cannot access",
                name,
                f"use a tile in SBUF as `{name}`, or another engine",
            )


# ---- Checks that all cores of a program reach the same rendezvous in the same order -------------
# The compiler checks programs, and the runner checks files that it does not trust. Both outline
# what each core does and compare the outlines in lockstep, so that there is one rule. The trip
# count of a loop bounded by a register is known only at run time; there, the runner reports a core
# that waits forever.

T = TypeVar("T")


class Stop(NamedTuple, Generic[T]):
    """An instruction that all cores run together."""

    item: T
    row: Row

    @property
    def name(self) -> str:
        return self.row.name


class Round(NamedTuple, Generic[T]):
    """A device loop that contains stops; `trips` is None if a register determines it."""

    item: T
    trips: int | None
    body: Outline[T]

    @property
    def name(self) -> str:
        return "a device loop"


Step = Stop[T] | Round[T]
Outline = tuple[Step[T], ...]


class Mismatch(NamedTuple, Generic[T]):
    """The first point where the cores diverge.

    `steps` is the next step of each core (None at its end), and `last` is the step before it in the
    same body. `violation` is set if a row's rule rejects the operands of the rendezvous.
    """

    steps: tuple[Step[T] | None, ...]
    last: tuple[Step[T] | None, ...] = ()
    violation: Violation | None = None

    @property
    def first(self) -> tuple[int, Step[T]]:
        """The first core with a step, and the step."""
        return next((core, step) for core, step in enumerate(self.steps) if step is not None)

    @property
    def without(self) -> int | None:
        """A core that has reached its end while another waits, if any."""
        return self.steps.index(None) if None in self.steps else None

    @property
    def text(self) -> str:
        """The error text, for a message at `first`."""
        if self.violation is not None:
            return self.violation.message
        core, step = self.first
        if self.without is not None:
            return (
                f"core {core} waits at {step.name} for core {self.without}, which has no more "
                "rendezvous"
            )
        steps = [step for step in self.steps if step is not None]
        if all(isinstance(step, Round) for step in steps):
            times = " and ".join(str(s.trips or "?") for s in steps if isinstance(s, Round))
            return f"this loop around a rendezvous runs {times} times on core 0 and 1"
        return f"core 0 reaches {step.name} here, but core 1 reaches {steps[-1].name}"


Judge = Callable[[Sequence[Stop[T]]], Violation | None]


def compare(cores: Sequence[Outline[T]], judge: Judge[T]) -> Mismatch[T] | None:
    """Return the first rendezvous that not all cores reach or that `judge` rejects, or None.

    `judge` receives the instructions of one rendezvous, one per core, all of the same row.
    """
    last: tuple[Step[T] | None, ...] = (None,) * len(cores)
    for steps in zip_longest(*cores):
        if mismatch := _mismatch(steps, last, judge):
            return mismatch
        last = steps
    return None


def _mismatch(
    steps: tuple[Step[T] | None, ...], last: tuple[Step[T] | None, ...], judge: Judge[T]
) -> Mismatch[T] | None:
    stops = [step for step in steps if isinstance(step, Stop)]
    rounds = [step for step in steps if isinstance(step, Round)]
    if len(rounds) == len(steps) and len({loop.trips for loop in rounds}) == 1:
        return compare([loop.body for loop in rounds], judge)
    if len(stops) < len(steps) or any(stop.row is not stops[0].row for stop in stops):
        return Mismatch(steps, last)
    violation = judge(stops)
    return Mismatch(steps, last, violation) if violation else None


# ---- PSUM: banks, and which instruction last wrote what a matmul accumulates onto ---------------
# Sources: Trainium architecture guides (8 banks of 2 KiB per partition; the result of a matmul is
# within one bank, before NeuronCore-v4); `nki.isa.nc_matmul`, accumulation mode (accumulating onto
# data written by another instruction is undefined before NeuronCore-v4).

MAX_WRITES = 64  # writes remembered per tensor
Writer = TypeVar("Writer")


def banks(first: int, end: int) -> range:
    """Return the banks of bytes `first` to `end` (exclusive) of a partition."""
    return range(first // PSUM_BANK_BYTES, -(-end // PSUM_BANK_BYTES))


def bank_problem(row: Row, name: str, first: int, end: int, target: Target) -> str:
    """Return the error for the PSUM bytes that operand `name` covers, or an empty string."""
    used = banks(first, end)
    one_bank = row.operands[row.operand_index[name]].one_bank
    if not one_bank or target.generation >= 4 or len(used) < 2:
        return ""
    return (
        f"`{name}` covers bytes {first:,} to {end:,} of each partition of PSUM, in banks "
        f"{used[0]} to {used[-1]}; on {target.name} the tensor engine writes within one bank "
        f"of {PSUM_BANK_BYTES:,}"
    )


class Rectangle(NamedTuple):
    """Partitions `top` to `bottom` and, in each, bytes `left` to `right` (ends exclusive)."""

    top: int
    bottom: int
    left: int
    right: int

    def shared(self, other: Rectangle) -> Rectangle | None:
        """Return the intersection, or None if it is empty."""
        top, bottom = max(self.top, other.top), min(self.bottom, other.bottom)
        left, right = max(self.left, other.left), min(self.right, other.right)
        return Rectangle(top, bottom, left, right) if top < bottom and left < right else None

    def without(self, other: Rectangle) -> list[Rectangle]:
        """Return the parts outside of `other`: at most four rectangles."""
        hole = self.shared(other)
        if hole is None:
            return [self]
        top, bottom, left, right = self
        rectangles = (
            Rectangle(top, hole.top, left, right),
            Rectangle(hole.bottom, bottom, left, right),
            Rectangle(hole.top, hole.bottom, left, hole.left),
            Rectangle(hole.top, hole.bottom, hole.right, right),
        )
        return [r for r in rectangles if r.top < r.bottom and r.left < r.right]

    def moved(self, by: int) -> Rectangle:
        """Return this rectangle, moved by `by` bytes."""
        return self._replace(left=self.left + by, right=self.right + by) if by else self


class Write(NamedTuple, Generic[Writer]):
    """A write to a PSUM tensor; `writer` is None for a matmul."""

    area: Rectangle
    writer: Writer | None

    def moved(self, by: int) -> Write[Writer]:
        """Return this write, moved by `by` bytes."""
        return self._replace(area=self.area.moved(by)) if by else self


class History(Generic[Writer]):
    """The latest writer of each part of one PSUM tensor.

    A write with gaps counts as covering its whole area if the tensor engine made it; other writes
    with gaps are not recorded.
    """

    def __init__(self) -> None:
        self.writes: list[Write[Writer]] = []  # latest last

    def note(self, write: Write[Writer]) -> None:
        writes = self.writes
        if len(writes) == 1 and writes[0] == write:
            return
        remaining = [earlier for earlier in writes if earlier.area.without(write.area)]
        self.writes = [*remaining[1 - MAX_WRITES :], write]

    def foreign_writers(self, area: Rectangle) -> Iterable[Writer]:
        """Yield the last writers in `area` other than matmuls, latest first."""
        pieces = [area]
        for write in reversed(self.writes):
            if write.writer is not None and any(write.area.shared(piece) for piece in pieces):
                yield write.writer
            pieces = [remainder for piece in pieces for remainder in piece.without(write.area)]
            if not pieces:
                return

    def foreign_writer_everywhere(self, area: Rectangle) -> Writer | None:
        """Return the latest writer in `area` if none of the area was last written by a matmul.

        None if some part was, or has an unknown writer.
        """
        latest, pieces = None, [area]
        for write in reversed(self.writes):
            if any(write.area.shared(piece) for piece in pieces):
                if write.writer is None:
                    return None
                latest = write.writer if latest is None else latest
                pieces = [remainder for piece in pieces for remainder in piece.without(write.area)]
        return None if pieces else latest


def restricts_accumulation(target: Target) -> bool:
    """Return whether the target restricts which data a matmul may accumulate onto."""
    return target.generation < 4


def is_matmul(engine: Engine | None) -> bool:
    """Return whether writes of `engine` count as matmuls: its transposes do, too."""
    return engine is Engine.TENSOR
