"""Proof that the lowered program is the one that the kernel recorded.

Both are walked side by side, in program order. Every recorded instruction must be there once, in
its place, with its row, attributes and order; its numbers and registers must be the recorded ones;
and each pattern must visit exactly the elements of its view, in their order. An engine that the
kernel names stays; any other must be one that the row allows. A location of PSUM for which a matmul
leaves it open is overwritten by the first matmul in program order, and added to by all others.

Those locations are followed apart. Nothing here knows how lower finds its results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import Any

from nkic.base.source import CallChain
from nkic.machine.operands import Row
from nkic.machine.patterns import Dims
from nkic.machine.targets import Target
from nkic.program.program import (
    AccessPattern,
    Body,
    Dynamic,
    Instruction,
    Item,
    Loop,
    Operand,
    Program,
    Tensor,
    View,
)
from nkic.prove.model import Finding

# ---- The locations of PSUM that matmuls have written, and the parts of a matmul -----------------
# A tensor's bytes are the bits of one integer, those of its first partition first. A pattern with
# a run-time offset counts as all of its tensor.

ROWS = ("stationary", "stationary_scale")  # whose columns are the partitions of dst
COLUMNS = ("moving", "moving_scale")  # whose columns are the elements of a partition of dst


class Accumulated:
    """What matmuls have written so far, in program order.

    `whole` has the ids of patterns that lie in it as a whole.
    """

    def __init__(self) -> None:
        self.bytes: dict[int, int] = {}  # by tensor number
        self.whole: set[int] = set()

    def before(self, tensor: Tensor, area: int) -> int:
        """Return the bytes of `area` that were written before."""
        written = self.bytes.get(tensor.number)
        return 0 if written is None else written & area

    def add(self, tensor: Tensor, area: int) -> None:
        """Note a write of the bytes `area`."""
        written = self.bytes.get(tensor.number)
        if written is None:
            self.bytes[tensor.number] = area
        elif written | area != written:
            whole = _all(tensor.partitions * tensor.bytes)  # one integer for all full tensors
            self.bytes[tensor.number] = whole if written | area == whole else written | area


def bytes_of(operand: View | AccessPattern) -> int:
    """Return the bytes that `operand` covers."""
    tensor, size = operand.tensor, operand.dtype.size
    if operand.dynamic is not None:
        return _all(tensor.partitions * tensor.bytes)
    offset, dims = _flat(operand)
    low = offset + sum([step * (num - 1) for step, num in dims if step < 0])
    bits = _bits(dims, size)
    return bits << low * size if low else bits


@lru_cache(maxsize=64)
def _all(count: int) -> int:
    return (1 << count) - 1


@lru_cache(maxsize=64)
def _bits(dims: Dims, size: int) -> int:
    """Return the bytes that (step, num) pairs cover, from the lowest on."""
    bits = (1 << size) - 1
    for step, num in reversed(dims):
        done = 1
        while done < num:
            more = min(done, num - done)
            bits |= bits << abs(step) * size * more
            done += more
    return bits


def _flat(operand: View | AccessPattern) -> tuple[int, Dims]:
    """Return the offset and all dimensions, partitions first, in elements."""
    if isinstance(operand, View):
        return operand.offset, tuple(zip(operand.strides, operand.shape, strict=True))
    pitch = operand.tensor.bytes // operand.dtype.size
    dims = ((pitch, operand.partitions), *operand.dims)
    return operand.start * pitch + operand.offset, dims


def part_of(whole: Instruction, part: Instruction) -> int:
    """Return the bytes of dst that `part` computes just as `whole` does; 0 if it does not.

    It has some of the partitions of dst, and some consecutive elements of each.
    """
    row = whole.row
    dst, own = _tile(whole.operands[row.accumulator]), _tile(part.operands[row.accumulator])
    if dst is None or own is None or own.tensor is not dst.tensor or own.dtype is not dst.dtype:
        return 0
    (first, count, elements), (start, partitions, own_elements) = _listed(dst), _listed(own)
    if own_elements[0] not in elements:
        return 0
    rows = range(count)[start - first : start - first + partitions]
    at = elements.index(own_elements[0])
    columns = range(len(elements))[at : at + len(own_elements)]
    if start < first or len(rows) != partitions or elements[at : columns.stop] != own_elements:
        return 0
    pairs = row.has_setting(row.pairs, whole.attributes)
    taken = dict.fromkeys(ROWS, rows) | dict.fromkeys(COLUMNS, columns)
    for name, index in row.operand_index.items():
        value, made = whole.operands[index], part.operands[index]
        if index == row.accumulator:
            continue
        if name not in taken or _tile(value) is None:
            if made is not value:
                return 0
        elif not _takes(value, made, taken[name], pairs):
            return 0
    return bytes_of(own)


def _takes(value: Operand, made: Operand, columns: range, pairs: bool) -> bool:
    """Return whether `made` has these columns of `value`; of both of each pair, with `pairs`."""
    one, other = _tile(value), _tile(made)
    if one is None or other is None:
        return False
    if other.tensor is not one.tensor or other.dtype is not one.dtype:
        return False
    first, count, elements = _listed(one)
    groups = _flat(one)[1][1][1] if pairs else 1
    if pairs and _flat(other)[1][1] != _flat(one)[1][1]:
        return False
    size = len(elements) // groups
    own = [elements[group * size + column] for group in range(groups) for column in columns]
    return _listed(other) == (first, count, own)


def _tile(operand: Operand) -> View | AccessPattern | None:
    """Return an operand in memory without a run-time offset."""
    if isinstance(operand, View | AccessPattern) and operand.dynamic is None:
        return operand
    return None


def _listed(operand: View | AccessPattern) -> tuple[int, int, list[int]]:
    """Return the first partition, their number, and the offsets of the elements in each."""
    offset, ((_, partitions), *dims) = _flat(operand)
    start, first = divmod(offset, operand.tensor.bytes // operand.dtype.size)
    elements = [first]
    for step, num in dims:
        elements = [element + step * index for element in elements for index in range(num)]
    return start, partitions, elements


# --------------------------------------------------------------------------------------------------

Path = tuple[int, ...]  # numbers of loops, outermost first
Form = tuple[tuple[int, ...], tuple[int, ...], int, int]  # shape, strides, partitions, pitch
_Find = tuple[Callable[[int], View | None], Callable[[View, object], bool]]
# What the choice of an engine may depend on.
_cost = attrgetter("tensor.buffer", "dtype", "partitions", "dims", "dynamic")


def prove_lowered(recorded: Program, lowered: Program) -> list[Finding]:
    """Return how `lowered` differs from `recorded`, one finding for each core at most."""
    if lowered != replace(recorded, cores=lowered.cores):
        return [Finding("lowered", "it differs in more than its instructions")]
    if len(recorded.cores) != len(lowered.cores):
        return [Finding("lowered", "it has another number of cores")]
    findings = []
    for old, new in zip(recorded.cores, lowered.cores, strict=True):
        try:
            _Walk(recorded.target).body(old, new, ())
        except _DiffersError as error:
            findings.append(error.finding)
    return findings


class _DiffersError(Exception):
    def __init__(self, item: Item, what: str) -> None:
        name = "a loop" if isinstance(item, Loop) else f"{item.row.name} #{item.number}"
        at: CallChain = item.at
        self.finding = Finding("lowered", f"{name} {what}", at)


class _Walk:
    """The walk over one core. Memoises by identity; the programs keep the objects alive."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.last = -1  # number of the lowered instruction before
        self.numbers: dict[int, tuple[int, ...]] = {}  # where they differ from the recorded ones
        self.written = Accumulated()
        self.alike: set[tuple[int, int]] = set()  # pairs of attributes
        self.exact, self.merged = Proven(exact=True), Proven(exact=False)
        self.tables: dict[Row, Sequence[_Find]] = {}  # for each operand, of one of these two
        self.allowed: set[tuple[object, ...]] = set()  # engines by row, attributes and tiles

    def body(self, recorded: Body, lowered: Body, path: Path) -> None:
        """Compare two bodies. `path` has the numbers of the loops around them."""
        rest = iter(lowered)
        for old in recorded:
            new = next(rest, None)
            if isinstance(old, Loop):
                self.loop(old, new, path)
            elif type(new) is not Instruction:
                raise _DiffersError(old, "is not in the lowered program")
            elif old.row.accumulates:
                self.accumulation(old, new, rest, path)
            else:
                self.instruction(old, new)
        for new in rest:
            raise _DiffersError(new, "is not in the recorded program")

    def loop(self, old: Loop, new: Item | None, path: Path) -> None:
        if not isinstance(new, Loop):
            raise _DiffersError(old, "is not in the lowered program")
        if new != replace(old, body=new.body):
            raise _DiffersError(old, "has other iterations")
        self.body(old.body, new.body, (*path, old.number))

    def instruction(self, old: Instruction, new: Instruction) -> None:
        """Compare an instruction with its lowered form, except for its accumulation."""
        row, operands, given, engine, at, number, name, after, pinned, _, turn = old
        kind, own, shared, runs_on, place, new_number, called, order, region, _, iteration = new
        if (
            kind is not row
            or place is not at
            or new_number != number
            or called != name
            or order != after
            or region != pinned
            or iteration != turn
            or self.numbers
        ):
            self.place(old, new)
            self.numbered(old, [new])
        if new_number <= self.last:
            raise _DiffersError(old, "has a number that does not increase")
        self.last = new_number
        if shared is not given and (id(given), id(shared)) not in self.alike:
            self.attributes(old, new)
        if runs_on is not engine or engine is None:
            self.engine(old, new)
        tables = self.tables.get(row) or self.of_row(row)
        if len(own) != len(tables):
            raise _DiffersError(old, "has another number of operands")
        for value, made, (find, visits) in zip(operands, own, tables, strict=True):
            if type(value) is not View:
                if made is not value and not _same(value, made):
                    raise _DiffersError(old, f"has {_shown(made)} for {_shown(value)}")
                continue
            known = find(id(made))
            if known is not value and known != value and not visits(value, made):
                raise _DiffersError(old, f"has {_shown(made)} for {_shown(value)}")
        if engine is None and len(row.engines) > 1:
            self.chosen(new)

    def place(self, old: Instruction, new: Instruction) -> None:
        """Compare what says where an instruction is, except for numbers."""
        if new.row is not old.row or new.at is not old.at:
            raise _DiffersError(old, "is not in its place in the lowered program")
        one, other = ((i.name, i.pinned, i.iterations) for i in (old, new))
        if one != other:
            raise _DiffersError(old, "has another name, region or iteration")

    def engine(self, old: Instruction, new: Instruction) -> None:
        if new.engine not in ((old.engine,) if old.engine is not None else old.row.engines):
            raise _DiffersError(old, "is on another engine")

    def attributes(self, old: Instruction, new: Instruction) -> None:
        """Compare the attributes; lower decides only an accumulation that is open."""
        given, made = old.attributes, new.attributes
        index = old.row.attribute_index.get(old.row.accumulates, -1)
        if index >= 0 and given[index] is None:
            given = (*given[:index], made[index], *given[index + 1 :])
        if len(given) != len(made) or not all(map(_same, given, made)):
            raise _DiffersError(old, "has other attributes")
        self.alike.add((id(old.attributes), id(made)))

    def chosen(self, new: Instruction) -> None:
        """Check an engine that the kernel left open: it is the row's choice, or one of several."""
        tiles = [_cost(o) if type(o) is AccessPattern else o for o in new.operands]
        key = (new.row, id(new.attributes), new.engine, *tiles)
        if key in self.allowed:
            return
        facts = new._replace(engine=None).facts(self.target)
        several = new.row.by_workload(facts) if new.row.by_workload else ()
        if new.engine is not new.row.choose(facts) and new.engine not in several:
            raise _DiffersError(new, "is on an engine that its row does not choose")
        self.allowed.add(key)

    def numbered(self, old: Instruction, parts: Sequence[Instruction]) -> None:
        """Compare what comes before, by its new numbers, and note those of `old`."""
        after = tuple(n for number in old.after for n in self.numbers.get(number, (number,)))
        if any(part.after != after for part in parts):
            raise _DiffersError(old, "comes after other instructions")
        self.numbers[old.number] = tuple([part.number for part in parts])

    def of_row(self, row: Row) -> Sequence[_Find]:
        """Return what compares each operand: by id whose view it is, or in full."""
        tables = [self.exact if rule.keep_rank else self.merged for rule in row.operands]
        found = self.tables[row] = [(table.views.get, table.visits) for table in tables]
        return found

    # ---- accumulation

    def accumulation(
        self, old: Instruction, new: Instruction, rest: Iterator[Item], path: Path
    ) -> None:
        """Compare a matmul with its lowered form, which is several where dst is partly written."""
        row, written = old.row, self.written
        flag = old.attribute(row.accumulates)
        made = new.operands[row.accumulator]
        if id(made) in written.whole:  # every byte of it
            self.instruction(old, new)
            self.accumulates(old, new, True if flag is None else flag)
            return
        dst = old.operands[row.accumulator]
        if not isinstance(dst, View | AccessPattern):
            raise _DiffersError(old, "has no dst")
        area = bytes_of(dst)
        before = written.before(dst.tensor, area)
        if flag is None and before not in (0, area):
            self.divided(old, chain((new,), rest), area, before, path)
        else:
            self.instruction(old, new)
            self.accumulates(old, new, before == area if flag is None else flag)
            if flag is None:
                self.once(old, new, path)
        written.add(dst.tensor, area)
        written.whole.add(id(made))

    def accumulates(self, old: Instruction, new: Instruction, expected: bool) -> None:
        if new.attribute(new.row.accumulates) is not expected:
            raise _DiffersError(
                old, "adds where it must overwrite, or overwrites where it must add"
            )

    def once(self, old: Instruction, new: Instruction, path: Path) -> None:
        """Check that only the first iteration of a loop can meet what nothing has written."""
        dst: Any = old.operands[old.row.accumulator]
        if not new.attribute(new.row.accumulates) and dst.tensor.scope != path:
            raise _DiffersError(old, "overwrites in every iteration what was made outside its loop")

    def divided(
        self, old: Instruction, rest: Iterator[Item], area: int, before: int, path: Path
    ) -> None:
        """Find the parts of a matmul whose dst is partly written: together they are the whole."""
        parts: list[Instruction] = []
        done = 0
        while done != area:
            new = next(rest, None)
            if type(new) is not Instruction:
                raise _DiffersError(old, "is not complete in the lowered program")
            self.place(old, new)
            if new.number <= self.last:
                raise _DiffersError(old, "has a number that does not increase")
            self.last = new.number
            self.attributes(old, new)
            self.engine(old, new)
            own = part_of(old, new)
            if not own or own & done or own & ~area:
                raise _DiffersError(old, "is divided into parts that are not its own")
            if own & before not in (0, own):
                raise _DiffersError(old, "has a part that is partly written")
            self.accumulates(old, new, own & before != 0)
            self.once(old, new, path)
            done |= own
            parts.append(new)
        self.numbered(old, parts)


class Proven:
    """Patterns that were found to visit the elements of views; `exact`: dimension by dimension."""

    def __init__(self, exact: bool) -> None:
        self.exact = exact
        self.views: dict[int, View] = {}  # by id of a pattern
        self.forms: dict[int, Form] = {}  # by id of a pattern's dimensions

    def visits(self, view: View, made: object) -> bool:
        """Return whether `made` visits the elements of `view`, and no others, in their order."""
        tensor, shape, strides, offset, dtype, dynamic = view
        if type(made) is not AccessPattern:
            return False
        own, kind, start, partitions, first, dims, moved = made
        if own is not tensor or kind is not dtype:
            return False
        pitch = tensor.bytes // dtype.size if tensor.on_chip else 0
        if (dynamic is not None or moved is not None) and not self.moves(dynamic, moved):
            return False
        if start * pitch + first != offset or (not 0 <= first < pitch if pitch else start):
            return False
        form = shape, strides, partitions, pitch
        if self.forms.get(id(dims)) != form or dynamic is not None:
            # With a run-time offset, the outermost dimension in HBM is the indexed one.
            if not _alike(form, dims, self.exact or (dynamic is not None and not pitch)):
                return False
            self.forms[id(dims)] = form
        self.views[id(made)] = view
        return True

    def moves(self, dynamic: Dynamic | None, made: Dynamic | None) -> bool:
        """Return whether two run-time offsets are the same."""
        if dynamic is None or made is None or made._replace(source=dynamic.source) != dynamic:
            return False
        source, found = dynamic.source, made.source
        if isinstance(source, View):
            return Proven(exact=False).visits(source, found)
        return source == found


@lru_cache(maxsize=4096)
def _alike(form: Form, dims: Dims, exact: bool) -> bool:
    """Return whether `dims` step through the same offsets as a view of this form, in its order."""
    shape, strides, partitions, pitch = form
    own = tuple(zip(strides, shape, strict=True))
    if pitch:  # on chip
        if partitions != shape[0] or (strides[0] != pitch and partitions != 1):
            return False
        own = own[1:]
    elif partitions:
        return False
    return dims == (own or ((1, 1),)) if exact else _steps(dims) == _steps(own)


def _steps(dims: Dims) -> list[tuple[int, int]]:
    """Return the (step, num) pairs, innermost first, in the only form without a needless pair."""
    steps: list[tuple[int, int]] = []
    for step, num in reversed(dims):
        if steps and step == steps[-1][0] * steps[-1][1]:
            steps[-1] = (steps[-1][0], steps[-1][1] * num)
        elif num != 1:
            steps.append((step, num))
    return steps


def _same(one: object, other: object) -> bool:
    """Compare values, their types, and the signs of zeros."""
    if one is other:
        return True
    return type(one) is type(other) and one == other and repr(one) == repr(other)


def _shown(operand: Operand) -> str:
    if isinstance(operand, AccessPattern):
        return operand.notation(operand.tensor.number)
    if isinstance(operand, View):
        return f"`{operand.tensor.name}`{list(operand.shape)}"
    return repr(operand)
