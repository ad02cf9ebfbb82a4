"""What a compiled program is made of: facts that no text can hide."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple

from nkic.machine.dtypes import DType
from nkic.machine.engines import Engine
from nkic.machine.facts import Facts, Register
from nkic.machine.targets import TARGETS
from nkic.neff.records import Executable, InstructionRecord, PatternRecord, StreamRecord

_ALWAYS = "registers"  # a node that every output depends on: registers decide what runs, and where


class Program(NamedTuple):
    """The instructions by name, the narrowest float type on a path to each output ("" if there is
    none), and whether any instruction computes.
    """

    instructions: Mapping[str, int]
    narrowest: Mapping[str, str]
    computes: bool


def facts_of(executable: Executable) -> Program:
    """Return the facts of a program, from its records."""
    names: Counter[str] = Counter()
    flow, computes = _Flow(executable), False
    for stream in executable.streams:
        for item in stream.items:
            if isinstance(item, InstructionRecord) and item.row is not None:
                names[item.row.name] += 1
                patterns = sum(isinstance(operand, PatternRecord) for operand in item.operands)
                computes = computes or (stream.engine is not Engine.DMA and patterns > 1)
                flow.add(item, stream)
    narrowest = {output.name: flow.narrowest(output.tensor) for output in executable.outputs}
    return Program(dict(sorted(names.items())), narrowest, computes)


class _Flow:
    """Which tensors and engine state flow into which, and the float types with which they do.

    A tensor is one node, whatever part of it is accessed: a path may be named that no element
    takes, and none is missed.
    """

    def __init__(self, executable: Executable) -> None:
        self.executable, self.target = executable, TARGETS[executable.target]
        self.sources: defaultdict[Hashable, set[Hashable]] = defaultdict(set)
        self.types: defaultdict[Hashable, set[DType]] = defaultdict(set)
        self.seen: set[Hashable] = set()

    def add(self, item: InstructionRecord, stream: StreamRecord) -> None:
        row = item.row
        assert row is not None
        tensors = tuple(
            (o.tensor, o.dtype, o.cost_key(self.executable.tensors[o.tensor].buffer))
            if isinstance(o, PatternRecord)
            else o
            for o in item.operands
        )
        key = (row, stream.core, stream.engine, item.attributes, tensors)
        if key in self.seen:
            return
        self.seen.add(key)
        facts: Facts = self.executable.facts(item, self.target, stream.engine)
        effects = row.effects(facts)
        reads: set[Hashable] = {(stream.core, name) for name in effects.reads}
        writes: set[Hashable] = {(stream.core, name) for name in effects.writes}
        hidden = item.operands[len(row.operands) :]  # they hold run-time offsets
        reads |= {operand.tensor for operand in hidden if isinstance(operand, PatternRecord)}
        types = set()
        for rule, operand in zip(row.operands, item.operands, strict=False):
            access = row.access_of(rule, facts)
            if isinstance(operand, PatternRecord):
                types.add(operand.dtype.element or operand.dtype)
                reads |= {operand.tensor} if access.reads else set()
                writes |= {operand.tensor} if access.writes else set()
            elif isinstance(operand, Register) and access.writes:
                writes.add(_ALWAYS)
        if row.is_rendezvous:  # what one core reads, another may write
            self.sources[row.name] |= reads
            reads = {row.name}
        for node in writes or {_ALWAYS}:
            self.sources[node] |= reads
            self.types[node] |= {dtype for dtype in types if dtype.is_float}

    def narrowest(self, tensor: int) -> str:
        """Return the name of the narrowest float type on a path to a tensor."""
        found = _reached({tensor, _ALWAYS}, self.sources)
        types = {dtype for node in found for dtype in self.types.get(node, ())}
        least = min(types, key=lambda dtype: (dtype.size, dtype.name), default=None)
        return least.name if least else ""


def _reached(start: Iterable[Hashable], edges: Mapping[Hashable, set[Hashable]]) -> set[Hashable]:
    found, left = set(start), list(start)
    while left:
        new = edges.get(left.pop(), set()) - found
        found |= new
        left += new
    return found
