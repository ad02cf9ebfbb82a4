"""Proof that the lowered program is the one that the kernel recorded.

Both are walked side by side, in program order. Every recorded instruction must be there once, in
its place, with its row, attributes and order; its numbers and registers must be the recorded ones;
and each pattern must visit exactly the elements of its view, in their order. An engine that the
kernel names stays; any other must be one that the row allows. A location of PSUM for which a matmul
leaves it open is overwritten by the first matmul in program order, and added to by all others.

`accumulated` follows those locations. Nothing here knows how lower finds its results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import Any

from nkic.base.source import CallChain
from nkic.ir.program import Body, Instruction, Item, Loop, Operand, Program
from nkic.ir.tensors import AccessPattern, Dynamic, View
from nkic.machine.operands import Row
from nkic.machine.patterns import Dims
from nkic.machine.targets import Target
from nkic.prove.accumulated import Accumulated, bytes_of, part_of
from nkic.prove.model import Finding

Path = tuple[int, ...]  # numbers of loops, outermost first
Proven = dict[int, View]  # by id of a pattern: the view that it was last found to visit


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
        self.exact, self.merged = Proven(), Proven()
        self.tables: dict[Row, Sequence[Proven]] = {}  # for each operand, one of these two
        self.costs: dict[int, object] = {}  # by id of a pattern
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
        self.frame(old, new)
        number, after = old.number, old.after
        if new.number != number or after or new.after:
            self.numbered(old, [new])
        row = old.row
        tables = self.tables.get(row) or self.of_row(row)
        if len(new.operands) != len(tables):
            raise _DiffersError(old, "has another number of operands")
        for value, made, known in zip(old.operands, new.operands, tables, strict=True):
            if type(value) is View:
                view = known.get(id(made))
                if view is not value and view != value:
                    self.operand(old, value, made, known)
            elif made is not value and not _same(value, made):
                raise _DiffersError(old, f"has {_shown(made)} for {_shown(value)}")
        if old.engine is None and len(row.engines) > 1:
            self.chosen(new)

    def frame(self, old: Instruction, new: Instruction) -> None:
        """Compare everything but operands, accumulation, and references to other instructions."""
        row, _, attributes, engine, at, _, name, _, pinned, _, iterations = old
        own, _, made, given, where, number, called, _, region, _, turn = new
        if own is not row or where is not at:
            raise _DiffersError(old, "is not in its place in the lowered program")
        if called != name or region != pinned or turn != iterations:
            raise _DiffersError(old, "has another name or region")
        if number <= self.last:
            raise _DiffersError(old, "has a number that does not increase")
        self.last = number
        if made is not attributes and (id(attributes), id(made)) not in self.alike:
            self.attributes(old, new)
        if given is not engine if engine is not None else given not in row.engines:
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
        key = (new.row, id(new.attributes), new.engine, *map(self.cost, new.operands))
        if key in self.allowed:
            return
        facts = new._replace(engine=None).facts(self.target)
        several = new.row.by_workload(facts) if new.row.by_workload else ()
        if new.engine is not new.row.choose(facts) and new.engine not in several:
            raise _DiffersError(new, "is on an engine that its row does not choose")
        self.allowed.add(key)

    def cost(self, operand: Operand) -> object:
        """Return what the row's choice of an engine may depend on."""
        if type(operand) is not AccessPattern:
            return operand
        cost = self.costs.get(id(operand))
        if cost is None:
            cost = self.costs[id(operand)] = operand.cost_key(operand.tensor.buffer)
        return cost

    def numbered(self, old: Instruction, parts: Sequence[Instruction]) -> None:
        """Compare what comes before, by its new numbers, and note those of `old`."""
        after = tuple(n for number in old.after for n in self.numbers.get(number, (number,)))
        if any(part.after != after for part in parts):
            raise _DiffersError(old, "comes after other instructions")
        self.numbers[old.number] = tuple([part.number for part in parts])

    def of_row(self, row: Row) -> Sequence[Proven]:
        tables = [self.exact if rule.keep_rank else self.merged for rule in row.operands]
        self.tables[row] = tables
        return tables

    def operand(self, old: Instruction, view: View, made: Operand, known: Proven) -> None:
        if type(made) is not AccessPattern or not _visits(view, made, known is self.exact):
            raise _DiffersError(old, f"has {_shown(made)} for {_shown(view)}")
        known[id(made)] = view

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
            self.frame(old, new)
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


def _visits(view: View, made: AccessPattern, exact: bool) -> bool:
    """Return whether `made` visits the elements of `view`, and no others, in their order.

    With `exact`, its dimensions are those of the view one by one.
    """
    tensor, shape, strides, offset, dtype, dynamic = view
    own, kind, start, partitions, first, dims, moved = made
    if own is not tensor or kind is not dtype:
        return False
    if (dynamic is None) != (moved is None):
        return False
    if dynamic is not None and moved is not None:
        exact = exact or not tensor.on_chip  # the outermost dimension is the indexed one
        if not _moves(dynamic, moved):
            return False
    if not tensor.on_chip:
        is_there = start == partitions == 0 and first == offset
        return is_there and _alike(shape, strides, dims, exact)
    pitch = tensor.bytes // dtype.size
    is_there = start * pitch + first == offset and 0 <= first < pitch and partitions == shape[0]
    by_rows = strides[0] == pitch or partitions == 1
    return is_there and by_rows and _alike(shape[1:], strides[1:], dims, exact)


def _moves(dynamic: Dynamic, made: Dynamic) -> bool:
    """Return whether two run-time offsets are the same."""
    if made._replace(source=dynamic.source) != dynamic:
        return False
    source, found = dynamic.source, made.source
    if isinstance(source, View):
        return type(found) is AccessPattern and _visits(source, found, exact=False)
    return source is found or source == found


@lru_cache(maxsize=4096)
def _alike(shape: tuple[int, ...], strides: tuple[int, ...], dims: Dims, exact: bool) -> bool:
    """Return whether `dims` step through the same offsets as `strides`, in the same order."""
    own = tuple(zip(strides, shape, strict=True))
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
