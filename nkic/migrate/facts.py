"""Facts that evaluating the kernel gives about places of its file: shapes, types and registers.

They are read from the program that specialise records: every instruction and tensor has the call
that made it. A place that the evaluation did not reach has no facts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TypeVar

from nkic.base.diagnostics import Level, NkicError, code
from nkic.base.source import CallChain, SourceFile, Span
from nkic.driver import pipeline
from nkic.driver.compiled import Compiled, CompileOptions
from nkic.ir.program import Body, Instruction, Item, Loop, Program
from nkic.ir.tensors import Tensor, View
from nkic.migrate.kept import kept_tiles
from nkic.migrate.shapes import variants
from nkic.resolve.library import Load
from nkic.specialise.request import Request

T = TypeVar("T")
OVERFLOW = code("sbuf-overflow")
Spot = tuple[int, int, int, int]
"""Lines and columns of an expression, as in `Span`."""


@dataclass(frozen=True)
class Facts:
    """By place: the instructions recorded and the tensors made there, in evaluation order.

    `conditions` are the tests of `while` loops over a register, `outputs` the calls that make what
    the kernel returns, `kept` the results that are tiles on chip, as kernel name and number from 0,
    without the copies that bring them to HBM. `known` tells that the kernel was evaluated at all,
    `errors` how many errors that found. `others` are the facts for other shapes, which distinguish
    sizes of the kernel's own from those of its arguments. `runs` is the number of evaluations that
    these facts combine. `spills` are the kernels whose tiles Beta 1 keeps in HBM in part.
    """

    known: bool = False
    errors: int = 0
    instructions: Mapping[Spot, tuple[Instruction, ...]] = field(default_factory=dict)
    tensors: Mapping[Spot, tuple[Tensor, ...]] = field(default_factory=dict)
    conditions: frozenset[Spot] = frozenset()
    outputs: frozenset[Spot] = frozenset()
    kept: frozenset[tuple[str, int]] = frozenset()
    others: tuple[Facts, ...] = ()
    runs: int = 1
    spills: frozenset[Spot] = frozenset()


def dst_of(instruction: Instruction) -> View | None:
    """Return what an instruction writes as `dst`; None if it has no such view, like a print."""
    has_one = "dst" in instruction.row.operand_index
    found = instruction.operand("dst") if has_one else None
    return found if isinstance(found, View) else None


def spot(span: Span) -> Spot:
    """Return the place without its file."""
    return span[1:]


def facts_of(source: SourceFile, request: Request, load: Load) -> Facts:
    """Evaluate the kernel for `request`; what cannot be evaluated has no facts."""
    compiled = Compiled(source)
    errors = 0
    try:
        pipeline.compile_source(source, request, load, CompileOptions(last="check"), compiled)
    except NkicError as failure:
        errors = sum(diagnostic.level is Level.ERROR for diagnostic in failure.diagnostics)
    program = compiled.results.get("specialise")
    if not isinstance(program, Program):
        return Facts(False, errors)
    spans = [one.primary.span for one in compiled.warnings if one.code is OVERFLOW and one.primary]
    own = frozenset(spot(span) for span in spans if span.path == source.path)
    return replace(_facts(program, source.path, errors), spills=own)


def with_others(facts: Facts, source: SourceFile, request: Request, load: Load) -> Facts:
    """Add the facts for other shapes that the kernel accepts, if it is not too large."""
    size = sum(map(len, facts.instructions.values()))
    if not facts.known or facts.errors or size > LARGE:
        return facts
    found: list[Facts] = []
    for variant in islice(variants(request), 1, 1 + TRIED):
        one = facts_of(source, variant, load)
        if one.known and not one.errors:
            found.append(one)
        if len(found) == OTHERS:
            break
    return replace(facts, others=tuple(found))


def merged(one: Facts, other: Facts) -> Facts:
    """Merge the facts of two evaluations of a file: of two kernels or for other arguments."""
    return Facts(
        one.known or other.known,
        one.errors,
        _joined(one.instructions, other.instructions),
        _joined(one.tensors, other.tensors),
        one.conditions | other.conditions,
        one.outputs | other.outputs,
        one.kept | other.kept,
        (*one.others, *other.others),
        one.runs + other.runs,
        one.spills | other.spills,
    )


def _joined(
    one: Mapping[Spot, tuple[T, ...]], other: Mapping[Spot, tuple[T, ...]]
) -> dict[Spot, tuple[T, ...]]:
    return {at: (*one.get(at, ()), *other.get(at, ())) for at in {**one, **other}}


OTHERS, TRIED = 2, 12  # how many are wanted, and how many are tried
LARGE = 5_000  # instructions above which only the given shapes are evaluated


def _facts(program: Program, path: str, errors: int) -> Facts:
    instructions: defaultdict[Spot, list[Instruction]] = defaultdict(list)
    conditions: set[Spot] = set()
    kept = kept_tiles(program)
    for at, item in _placed(program, path):
        if isinstance(item, Instruction):
            if id(item) not in kept.copies:
                instructions[at].append(item)
        elif item.condition is not None:
            conditions.add(at)
    tensors: defaultdict[Spot, list[Tensor]] = defaultdict(list)
    for tensor in program.tensors:
        if at_tensor := _own(tensor.at, path):
            tensors[at_tensor].append(tensor)
    returned = (_own(tensor_parameter.tensor.at, path) for tensor_parameter in program.outputs)
    return Facts(
        True,
        errors,
        {at: tuple(found) for at, found in instructions.items()},
        {at: tuple(found) for at, found in tensors.items()},
        frozenset(conditions),
        frozenset(at for at in returned if at is not None),
        frozenset((program.name, place) for place in kept.places),
    )


def _placed(program: Program, path: str) -> Iterator[tuple[Spot, Item]]:
    """Yield every instruction and loop that was recorded in the file at `path`."""
    for body in program.cores:
        for item in _items(body):
            if (at := _own(item.at, path)) is not None:
                yield at, item


def _items(body: Body) -> Iterator[Item]:
    for item in body:
        yield item
        if isinstance(item, Loop):
            yield from _items(item.body)


def _own(at: CallChain, path: str) -> Spot | None:
    """Return the place, if it is in the file."""
    span = at.primary
    return spot(span) if span.path == path else None
