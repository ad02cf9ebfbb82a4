"""The stage: lowers every instruction's operands, engine and accumulation flag."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from nkic.base.diagnostics import Label, Reporter
from nkic.ir.groups import Group, Groups, grouped
from nkic.ir.program import Body, Instruction, Item, Loop, Operand, Program, Work, cost_key
from nkic.ir.renumber import in_order
from nkic.ir.tensors import AccessPattern, Tensor, View
from nkic.lower.accumulate import Band, Written
from nkic.lower.interned import Form, Interned, Patterns
from nkic.lower.workload import share_out
from nkic.machine.engines import Engine
from nkic.machine.operands import Row
from nkic.machine.rules import violations
from nkic.machine.targets import Target

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
        """Lower the body of a core."""
        lowered = self.body(body, iter(groups))
        lowered = share_out(lowered, self.choices, self.target) if self.choices else lowered
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
        tables = self.patterns.get(row) or self.of_row(row)
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
        """Return the instruction with the patterns of its views."""
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

    def of_row(self, row: Row) -> list[Patterns]:
        """Return the pattern tables of the row's operands."""
        tables = self.patterns[row] = [
            self.interned.of(rule.keep_rank, row.streams) for rule in row.operands
        ]
        return tables

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
        if not any(_is_dynamic(operand) for operand in instruction.operands):
            from nkic.lower.split import parts  # rarely needed

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
        return _with_attributes(instruction, *flagged)


def _is_dynamic(operand: Operand) -> bool:
    return isinstance(operand, AccessPattern) and operand.dynamic is not None


def _slot(value: Operand, table: Patterns) -> Slot:
    if type(value) is not View:
        return None
    return table.form(value) if value.dynamic is None else table.with_offset(value)


def _with_attributes(
    instruction: Instruction, attributes: tuple[Any, ...], work: Work
) -> Instruction:
    """A faster `_replace`."""
    row, operands, _, engine, at, number, name, after, pinned, _, iterations = instruction
    own = (row, operands, attributes, engine, at, number, name, after, pinned, work, iterations)
    return tuple.__new__(Instruction, own)
