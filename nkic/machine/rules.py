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

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import zip_longest
from typing import Generic, NamedTuple, TypeVar

from nkic.base.text import singular
from nkic.machine.arguments import wrong_arguments
from nkic.machine.operands import Facts, Row, Tile, Violation
from nkic.machine.targets import Buffer, Engine
from nkic.machine.tiles import compile_for, first_target, wrong_tiles

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
