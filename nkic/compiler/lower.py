"""The stage: lowers every instruction's operands, engine and accumulation flag."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from nkic.base.diagnostics import Label, Reporter
from nkic.machine.operands import Row
from nkic.machine.patterns import MAX_NUM, UNLIMITED, Dims, merged
from nkic.machine.rules import violations
from nkic.machine.targets import Engine, Target
from nkic.machine.timing import Timing, timing
from nkic.program.overlap import Group, Groups, grouped
from nkic.program.program import (
    AccessPattern,
    Body,
    Instruction,
    Item,
    Loop,
    Operand,
    Program,
    Tensor,
    View,
    Work,
    cost_key,
    in_order,
)

# ---- Conversion of views to access patterns: pure, and memoised by the view's geometry ----------


@lru_cache(maxsize=65536)
def _dims(shape: tuple[int, ...], strides: tuple[int, ...], keep_rank: bool, limit: int) -> Dims:
    dims = tuple(zip(strides, shape, strict=True))
    return dims if keep_rank and dims else merged(dims, limit) or ((1, 1),)


def access_pattern(view: View, keep_rank: bool = False, streams: bool = False) -> AccessPattern:
    """Return the pattern of `view`; `streams` applies the size limits of compute engines.

    On chip, the first dimension steps over whole partitions, as verified by check.
    """
    limit = MAX_NUM if streams else UNLIMITED
    tensor, shape, strides, offset, dtype, dynamic = view
    if dynamic is not None and isinstance(dynamic.source, View):
        dynamic = dynamic._replace(source=access_pattern(dynamic.source))
    if not tensor.on_chip:
        keep = keep_rank or dynamic is not None
        dims = _dims(shape, strides, keep, limit)
        return AccessPattern(tensor, dtype, 0, 0, offset, dims, dynamic)
    pitch = tensor.bytes // dtype.size
    start, offset = divmod(offset, pitch) if pitch else (0, 0)
    dims = _dims(shape[1:], strides[1:], keep_rank, limit)
    fields = (tensor, dtype, start, shape[0], offset, dims, dynamic)
    return tuple.__new__(AccessPattern, fields)


# ------------------------------------------------------------------------------------------------
# Interned access patterns: equal views share one, which later stages look up by identity.

_Geometry = tuple[int, int, int, Dims]  # pitch, partitions, type code, dims
# The patterns of one geometry, keyed by offset << 32 | tensor number: a tuple as the key would take
# three times the memory.
_Placed = dict[int, AccessPattern]


class Form(NamedTuple):
    """What the patterns of like views share, and the patterns made so far.

    On chip, the first of the `partitions` is `start`, where the element with offset `base` is.
    """

    placed: _Placed
    start: int
    base: int
    partitions: int
    dims: Dims


class Patterns:
    """The patterns of views that are lowered with the same options."""

    def __init__(self, keep_rank: bool, streams: bool, interned: Interned) -> None:
        self.keep_rank = keep_rank
        self.streams = streams
        # Not `interned` itself: a reference cycle would keep both alive, as no collector runs.
        self.shapes, self.dynamic = interned.geometries, interned.dynamic
        self.geometries: dict[tuple[object, ...], tuple[_Geometry, _Placed]] = {}

    def with_offset(self, view: View) -> AccessPattern:
        pattern = access_pattern(view, self.keep_rank, self.streams)
        tensor, dtype, *rest = pattern
        return self.dynamic.setdefault((tensor.number, dtype.code, *rest), pattern)

    def form(self, view: View) -> Form:
        """Return the form of a view without a run-time offset."""
        tensor, shape, strides, offset, dtype, _ = view
        pitch = tensor.bytes // dtype.size if tensor.on_chip else 0
        key = (shape, strides, dtype.code, pitch, tensor.on_chip)
        shared = self.geometries.get(key)
        if shared is None:
            pattern = access_pattern(view, self.keep_rank, self.streams)
            geometry = (pitch, pattern.partitions, dtype.code, pattern.dims)
            shared = self.geometries[key] = self.shapes.setdefault(geometry, (geometry, {}))
        (_, partitions, _, dims), placed = shared
        if pitch:
            start = offset // pitch
            return Form(placed, start, start * pitch, partitions, dims)
        return Form(placed, 0, offset if tensor.on_chip else 0, partitions, dims)


class Interned:
    """The patterns of one core."""

    def __init__(self) -> None:
        self.geometries: dict[_Geometry, tuple[_Geometry, _Placed]] = {}
        self.dynamic: dict[tuple[object, ...], AccessPattern] = {}
        self._of: dict[tuple[bool, bool], Patterns] = {}

    def of(self, keep_rank: bool, streams: bool) -> Patterns:
        """Return the patterns for operands with these options of `access_pattern`."""
        key = (keep_rank, streams)
        patterns = self._of.get(key)
        if patterns is None:
            patterns = self._of[key] = Patterns(keep_rank, streams, self)
        return patterns


# ------------------------------------------------------------------------------------------------
# Resolution of `accumulate=None` in matmuls: the first write to a PSUM location overwrites it.
# Source: `nki.isa.nc_matmul`, accumulation mode. The written part of a tensor is tracked exactly:
# bands of partitions, each with one bit per byte of a partition.


class Band(NamedTuple):
    """Partitions `first` to `end` (exclusive), in which the same bytes were written."""

    first: int
    end: int
    written: int


class Written:
    """The parts of each PSUM tensor that matmuls have written so far, in program order."""

    def __init__(self) -> None:
        self.bands: dict[int, list[Band]] = {}

    def decide(self, dst: AccessPattern) -> bool | None:
        """Record the write, and return True to accumulate, False to overwrite, None if mixed."""
        mask = touched(dst)
        before = [band.written & mask for band in self.within(dst)]
        self._add(dst, mask)
        if any(before):
            return True if all(written == mask for written in before) else None
        return False

    def note(self, dst: AccessPattern) -> None:
        """Record the write of a matmul."""
        if not self.covers(dst):
            self._add(dst, touched(dst))

    def _add(self, dst: AccessPattern, mask: int) -> None:
        first, end = _partitions(dst)
        bands = self.bands.get(dst.tensor.number, [])
        outside = [
            band._replace(first=max(band.first, low), end=min(band.end, high))
            for band in bands
            for low, high in ((0, first), (end, dst.tensor.partitions))
            if max(band.first, low) < min(band.end, high)
        ]
        inside = [band._replace(written=band.written | mask) for band in self.within(dst)]
        self.bands[dst.tensor.number] = _joined([*outside, *inside])

    def covers(self, dst: AccessPattern) -> bool:
        """Return whether a single band covers the partitions and the bytes of `dst`."""
        bands = self.bands.get(dst.tensor.number)
        if bands is None or len(bands) > 1:
            return False
        mask = touched(dst)
        first, end = _partitions(dst)
        ((low, high, written),) = bands
        return low <= first and end <= high and written & mask == mask

    def within(self, dst: AccessPattern) -> list[Band]:
        """Return the partitions of `dst` as bands with the bytes written before, in order."""
        at, end = _partitions(dst)
        bands = []
        for band in self.bands.get(dst.tensor.number, ()):
            low, high = max(band.first, at), min(band.end, end)
            if low >= high:
                continue
            if low > at:
                bands.append(Band(at, low, 0))
            bands.append(Band(low, high, band.written))
            at = high
        return [*bands, Band(at, end, 0)] if at < end else bands


def touched(dst: AccessPattern) -> int:
    """Return the bytes of a partition that `dst` covers, as bits; all if it is dynamic."""
    if dst.dynamic is not None:
        return (1 << dst.tensor.bytes) - 1
    return _bits(dst.offset, dst.dims, dst.dtype.size)


@lru_cache(maxsize=4096)
def _bits(offset: int, dims: Dims, size: int) -> int:
    bits = (1 << size) - 1
    for step, num in reversed(dims):
        offset, step = offset + min(step, 0) * (num - 1), abs(step)
        if step * size == bits.bit_length():  # runs on without a gap, as the innermost does
            width = bits.bit_length()  # then copies side by side: a geometric series
            bits = bits * ((1 << width * num) - 1) // ((1 << width) - 1)
            continue
        shifted = bits
        for index in range(1, num):
            bits |= shifted << step * size * index
    return bits << offset * size


def _partitions(dst: AccessPattern) -> tuple[int, int]:
    if dst.dynamic is not None:
        return 0, dst.tensor.partitions
    return dst.start, dst.start + dst.partitions


def _joined(bands: list[Band]) -> list[Band]:
    """Return the bands in order, with adjacent equal ones merged."""
    merged: list[Band] = []
    for band in sorted(bands):
        if merged and merged[-1].end == band.first and merged[-1].written == band.written:
            merged[-1] = merged[-1]._replace(end=band.end)
        else:
            merged.append(band)
    return merged


# ---- Engine choice by workload, for instructions whose row allows several engines ---------------
# `nki.isa.tensor_copy`, `engine`: the compiler "selects best engine based on engine workload". How
# it weighs the work is not published. Here, an instruction stays on the first of its engines, as
# in the public figures of kernels bound by the tensor engine, unless that engine would have nearly
# as much work as any other, and enough for it to matter. Then the engines share the instructions
# in program order: each goes to the engine that would finish it first.

# An engine is busy if its work is at least this fraction of the maximum of the fixed engines.
BUSY_FRACTION = 0.75
# Minimum work of a busy engine in picoseconds, outside of loops: with less, the latencies of a few
# transfers dominate a kernel.
MIN_WORK_PS = 10_000_000
# Picoseconds that an engine may be behind the others: work of long ago does not affect the choice.
WINDOW_PS = 10_000_000

Choices = Mapping[int, Sequence[Engine]]  # by instruction number; the first is the default


class _Sharer:
    """Gives each instruction of `choices` an engine. All instructions know their work.

    Each device loop is a workload of its own, because its iterations repeat it.
    """

    def __init__(self, choices: Choices, target: Target) -> None:
        self.choices = choices
        self.target = target
        self.engines = {engine for engines in choices.values() for engine in engines}
        self.timings: dict[tuple[Work | None, Engine], Timing] = {}

    def body(self, body: Body, min_work_ps: int = MIN_WORK_PS) -> Body:
        inner = [
            replace(item, body=self.body(item.body, min_work_ps=0))
            if isinstance(item, Loop)
            else item
            for item in body
        ]
        if not self.is_busy([item for item in inner if isinstance(item, Instruction)], min_work_ps):
            return tuple(inner)
        until = dict.fromkeys(self.engines, 0)
        return tuple([self.item(item, until) for item in inner])

    def is_busy(self, items: Sequence[Instruction], min_work_ps: int) -> bool:
        """Return whether the engines with a choice bound the body under the default choices.

        They must have at least `min_work_ps` picoseconds of work.
        """
        if not any(instruction.number in self.choices for instruction in items):
            return False
        work = Counter[Engine]()
        counts = Counter([instruction.work for instruction in items])
        for instruction in {instruction.work: instruction for instruction in items}.values():
            engine, count = instruction.engine, counts[instruction.work]
            assert engine is not None  # the row chose one if the kernel did not
            cost = self.timing(instruction, engine)
            work[engine] += (cost.pool or cost.hold) * count
            work[cost.by] += cost.trigger * count
        shared_work = max(work[engine] for engine in self.engines)
        fixed_work = max((work[engine] for engine in work if engine not in self.engines), default=0)
        return shared_work >= max(min_work_ps, BUSY_FRACTION * fixed_work)

    def item(self, item: Item, until: dict[Engine, int]) -> Item:
        if isinstance(item, Loop):
            return item
        made, engine = item, item.engine
        if choices := self.choices.get(item.number):  # the first of those that finish first
            engine = min(choices, key=lambda each: until[each] + self.timing(item, each).hold)
            made = item._replace(engine=engine)
        if engine in until:
            until[engine] += self.timing(made, engine).hold
            earliest = until[engine] - WINDOW_PS
            for other, time in until.items():
                until[other] = max(time, earliest)
        return made

    def timing(self, instruction: Instruction, engine: Engine) -> Timing:
        """Return the timing of `instruction` on `engine`, memoised by work."""
        key = (instruction.work, engine)
        cached = self.timings.get(key)
        if cached is None:
            facts = replace(instruction.facts(self.target), engine=engine)
            cached = self.timings[key] = timing(instruction.row, facts, engine)
        return cached


# ---- Splitting of matmuls whose dst is partly written -------------------------------------------
# The accumulation flag applies to everything that an instruction writes. Each part therefore
# covers partitions of dst (columns of stationary) and elements of it (columns of moving) of which
# all or none were written before.

COLUMNS = ("stationary", "stationary_scale")  # dst's partitions
ELEMENTS = ("moving", "moving_scale")  # dst's free dimensions
Range = tuple[int, int]


def parts(matmul: Instruction, bands: list[Band]) -> Iterator[tuple[Instruction, bool]]:
    """Yield the matmuls equivalent to `matmul`, and whether each accumulates.

    `bands` are the parts of its dst written before. No operand may have a run-time offset.
    """
    dst = matmul.operand("dst")
    if not isinstance(dst, AccessPattern):
        raise TypeError("a matmul without dst")
    pairs = matmul.row.has_setting(matmul.row.pairs, matmul.attributes)
    column_streams = [_columns(matmul, name, pairs) for name in COLUMNS]
    element_streams = [dst.dims, *(_columns(matmul, name, pairs) for name in ELEMENTS)]
    for band in bands:
        rows = (band.first - dst.start, band.end - dst.start)
        for low, high in _common(column_streams, rows):
            for first, end, accumulates in _runs(dst, band.written):
                for start, stop in _common(element_streams, (first, end)):
                    piece = _piece(matmul, (low, high), (start, stop), pairs)
                    yield piece, accumulates


def _columns(matmul: Instruction, name: str, pairs: bool) -> Dims:
    """Return the dimensions of an operand that make up its columns."""
    if name not in matmul.row.operand_index:
        return ()
    operand = matmul.operand(name)
    dims = operand.dims if isinstance(operand, AccessPattern) else ()
    return dims[1:] if pairs else dims


def _runs(dst: AccessPattern, written: int) -> Iterator[tuple[int, int, bool]]:
    """Yield runs in dst's stream of elements: start, end, and whether they were written before."""
    offsets = [dst.offset]
    for step, num in dst.dims:
        offsets = [offset + step * index for offset in offsets for index in range(num)]
    before = [bool(written >> offset * dst.dtype.size & 1) for offset in offsets]
    first = 0
    for end in range(1, len(before) + 1):
        if end == len(before) or before[end] != before[first]:
            yield first, end, before[first]
            first = end


def _common(streams: list[Dims], elements: Range) -> Iterator[Range]:
    """Yield `elements` in the fewest pieces that are patterns in each of the streams."""
    for dims in streams:
        pieces = _pieces(dims, *elements) if dims else [elements]
        if len(pieces) > 1:
            for piece in pieces:
                yield from _common(streams, piece)
            return
    yield elements


def _pieces(dims: Dims, low: int, high: int) -> list[Range]:
    """Return elements `low` to `high` of a stream in pieces that are single patterns."""
    if len(dims) <= 1:
        return [(low, high)]
    inner = prod(num for _, num in dims[1:])
    first, last = low // inner, (high - 1) // inner
    if first == last:
        base = first * inner
        return [(a + base, b + base) for a, b in _pieces(dims[1:], low - base, high - base)]
    middle = (-(-low // inner) * inner, high // inner * inner)
    ends = [(low, middle[0]), middle, (middle[1], high)]
    return [(a, b) for a, b in ends if a < b]


def _cut(dims: Dims, low: int, high: int) -> tuple[int, Dims]:
    """Return the offset of elements `low` to `high`, and their dimensions."""
    if not dims:
        return 0, dims
    inner = 1
    for _, num in dims[1:]:
        inner *= num
    step, _ = dims[0]
    if low % inner == 0 and high % inner == 0:
        return low // inner * step, ((step, (high - low) // inner), *dims[1:])
    base = low // inner
    offset, inner_dims = _cut(dims[1:], low - base * inner, high - base * inner)
    return base * step + offset, ((step, 1), *inner_dims)


def _piece(matmul: Instruction, rows: Range, columns: Range, pairs: bool) -> Instruction:
    operands = list(matmul.operands)
    for name, index in matmul.row.operand_index.items():
        operand = operands[index]
        if not isinstance(operand, AccessPattern):
            continue
        if name == "dst":
            low, high = rows
            operand = operand._replace(start=operand.start + low, partitions=high - low)
            operands[index] = _sliced(operand, columns, False)
        else:
            operands[index] = _sliced(operand, rows if name in COLUMNS else columns, pairs)
    return matmul._replace(operands=tuple(operands), work=Work())


def _sliced(pattern: AccessPattern, elements: Range, pairs: bool) -> AccessPattern:
    head, dims = (pattern.dims[:1], pattern.dims[1:]) if pairs else ((), pattern.dims)
    offset, sliced_dims = _cut(dims, *elements)
    return pattern._replace(offset=pattern.offset + offset, dims=(*head, *sliced_dims))


# --------------------------------------------------------------------------------------------------

Slot = Form | AccessPattern | None  # None: the operand is not a view


class _Recipe(NamedTuple):
    """How to lower the instructions of a group."""

    given: tuple[Any, ...]  # the first instruction's attributes
    attributes: tuple[Any, ...]  # the same, interned
    slots: Sequence[Slot]
    work: Work
    engine: Engine | None = None
    candidates: tuple[Engine, ...] = ()  # engines that the workload decides between


def lower(program: Program, report: Reporter, groups: Groups | None = None) -> Program:
    """Return `program` with access patterns, engines and resolved accumulation.

    `groups` are those of the program's instructions, if they are known.
    """
    cores = tuple(
        _CoreLowerer(program.target, report).core(body, own)
        for body, own in zip(program.cores, groups or grouped(program), strict=True)
    )
    report.stop_if_errors()
    return replace(program, cores=cores)


class _CoreLowerer:
    def __init__(self, target: Target, report: Reporter) -> None:
        self.target = target
        self.report = report
        self.written = Written()
        self.loops: tuple[int, ...] = ()  # the numbers of open loops, outermost first
        self.recipes: dict[Group, _Recipe] = {}
        self.engines: dict[tuple[object, ...], tuple[Engine, tuple[Engine, ...]]] = {}
        # Interned: later stages look these up by identity.
        self.patterns: dict[Row, list[Patterns]] = {}  # one per operand
        self.interned = Interned()
        self.attributes: dict[tuple[object, ...], tuple[Any, ...]] = {}
        # Keyed by identity of the program's attributes.
        self.interned_attributes: dict[int, tuple[Any, ...]] = {}
        # With the accumulation flag; keyed by work, identity of the attributes without it, flag.
        self.flagged: dict[tuple[Work | None, int, bool], tuple[tuple[Any, ...], Work]] = {}
        self.choices: dict[int, tuple[Engine, ...]] = {}  # by instruction number
        self.split: set[int] = set()  # numbers of instructions that were split

    def core(self, body: Body, groups: Sequence[Group]) -> Body:
        lowered = self.body(body, iter(groups))
        if self.choices:
            lowered = _Sharer(self.choices, self.target).body(lowered)
        return in_order(lowered) if self.split else lowered

    def body(self, body: Body, groups: Iterator[Group]) -> Body:
        lowered: list[Item] = []
        for item in body:
            if isinstance(item, Loop):
                self.loops = (*self.loops, item.number)
                lowered.append(replace(item, body=self.body(item.body, groups)))
                self.loops = self.loops[:-1]
            elif item.row.accumulates:
                lowered += self.accumulation(self.instruction(item, next(groups)))
            else:
                lowered.append(self.instruction(item, next(groups)))
        return tuple(lowered)

    def instruction(self, instruction: Instruction, group: Group) -> Instruction:
        recipe = self.recipes.get(group) or self.recipe(group.first, group)
        if recipe.candidates:
            self.choices[instruction.number] = recipe.candidates
        return self.made(instruction, recipe)

    def recipe(self, first: Instruction, group: Group) -> _Recipe:
        """Find what a group shares, with the row's choice of an engine if the kernel left it."""
        row, given, engine = first.row, first.attributes, first.engine
        tables = self.patterns.get(row)
        if tables is None:
            of = self.interned.of
            tables = [of(rule.keep_rank, row.streams) for rule in row.operands]
            self.patterns[row] = tables
        slots = [_slot(value, table) for value, table in zip(first.operands, tables, strict=True)]
        if engine is None and len(row.engines) == 1:
            engine = row.engines[0]
        recipe = _Recipe(given, self.shared(row, given), slots, Work(), engine)
        if engine is None:
            engine, candidates = self.engine(self.made(first, recipe))
            recipe = recipe._replace(engine=engine, candidates=candidates)
        self.recipes[group] = recipe
        return recipe

    def made(self, instruction: Instruction, recipe: _Recipe) -> Instruction:
        row, values, attributes, _, at, number, name, after, pinned, _, iterations = instruction
        given, interned, slots, work, engine, _ = recipe
        if attributes is not given:
            interned = self.interned_attributes.get(id(attributes)) or self.shared(row, attributes)
        views: Any = values  # those with a form are views
        operands: list[Any] = []
        new = tuple.__new__
        for value, slot in zip(views, slots, strict=True):
            if type(slot) is not Form:
                operands.append(slot or value)
                continue
            placed, start, base, partitions, dims = slot
            tensor, _, _, offset, dtype, _ = value
            key = offset << 32 | tensor.number
            pattern = placed.get(key)
            if pattern is None:
                fields = (tensor, dtype, start, partitions, offset - base, dims, None)
                pattern = placed[key] = new(AccessPattern, fields)
            operands.append(pattern)
        own = tuple(operands)
        made = (row, own, interned, engine, at, number, name, after, pinned, work, iterations)
        return new(Instruction, made)

    def shared(self, row: Row, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the interned attributes; 1, 1.0 and True are different, and so is -0.0."""
        signs = [repr(values[i]) for i in row.number_attributes]
        key = (values, *map(type, values), *signs)
        interned = self.interned_attributes[id(values)] = self.attributes.setdefault(key, values)
        return interned

    def engine(self, instruction: Instruction) -> tuple[Engine, tuple[Engine, ...]]:
        """Return the row's choice, and the engines to choose from by workload, if any."""
        row = instruction.row
        key = (row, instruction.attributes, *map(cost_key, instruction.operands))
        choice = self.engines.get(key)
        if choice is None:
            facts = instruction.facts(self.target)
            candidates = row.by_workload(facts) if row.by_workload else ()
            choice = self.engines[key] = row.choose(facts), candidates
        return choice

    def accumulation(self, instruction: Instruction) -> list[Instruction]:
        """Return the instruction, or several if its dst is partly written."""
        flag = instruction.row.accumulates
        dst = instruction.operand("dst")
        if not isinstance(dst, AccessPattern):
            return [instruction]
        if instruction.attribute(flag) is not None:
            self.written.note(dst)
            return [instruction]
        if self.written.covers(dst):  # true for all but the first of a sum
            return [self.decided(instruction, True)]
        bands = self.written.within(dst)
        decided = self.written.decide(dst)
        if not decided and dst.tensor.scope != self.loops:
            self.first_in_loop(instruction, dst.tensor, "all of it" if decided is None else "it")
            return [self.decided(instruction, False)]
        if decided is not None:
            return [self.decided(instruction, decided)]
        return self.divided(instruction, bands)

    def first_in_loop(self, instruction: Instruction, tensor: Tensor, what: str) -> None:
        """Report a first write of `what` in a loop: the flag is the same in all iterations."""
        self.report.error(
            "accumulate-in-loop",
            f"{instruction.row.name}: `{tensor.name}` is allocated outside this device loop and "
            f"no earlier matmul wrote {what}; accumulate=None would add in all iterations but the "
            "first",
            instruction.at.primary,
            labels=[Label(tensor.at.primary, f"`{tensor.name}` is allocated here")],
            help="pass accumulate=False to overwrite in every iteration, or do the first matmul "
            "before the loop and pass accumulate=True in it",
        )

    def divided(self, instruction: Instruction, bands: list[Band]) -> list[Instruction]:
        pieces = []
        if not any(isinstance(o, AccessPattern) and o.dynamic for o in instruction.operands):
            pieces = [self.decided(piece, flag) for piece, flag in parts(instruction, bands)]
        if pieces and all(not violations(i.row, i.facts(self.target)) for i in pieces):
            self.split.add(instruction.number)
            return pieces
        self.report.error(
            "partly-accumulated",
            f"{instruction.row.name}: part of dst was written by an earlier matmul and part "
            "was not, so accumulate=None could mean either",
            instruction.at.primary,
            help="pass accumulate=True or accumulate=False, or split the matmul",
        )
        return [self.decided(instruction, False)]

    def decided(self, instruction: Instruction, accumulates: bool) -> Instruction:
        row, old = instruction.row, instruction.attributes
        key = (instruction.work, id(old), accumulates)
        flagged = self.flagged.get(key)
        if flagged is None:
            index = row.attribute_index[row.accumulates]
            changed = (*old[:index], accumulates, *old[index + 1 :])
            flagged = self.flagged[key] = self.shared(row, changed), Work()
            del self.interned_attributes[id(changed)]  # which nothing keeps alive
        attributes, work = flagged
        _, operands, _, engine, at, number, name, after, pinned, _, iterations = instruction
        own = (row, operands, attributes, engine, at, number, name, after, pinned, work, iterations)
        return tuple.__new__(Instruction, own)  # a faster `_replace`


def _slot(value: Operand, table: Patterns) -> Slot:
    if type(value) is not View:
        return None
    return table.form(value) if value.dynamic is None else table.with_offset(value)
