"""Facts that evaluating the kernel gives about places of its file: shapes, types and registers.

They are read from the program that specialise records: every instruction and tensor has the call
that made it. A place that the evaluation did not reach has no facts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from typing import Any, NamedTuple, TypeVar

from nkic.base.diagnostics import Level, NkicError, code
from nkic.base.source import CallChain, SourceFile, Span
from nkic.compiler import pipeline
from nkic.compiler.compiled import Compiled, CompileOptions
from nkic.language.versions import BY_SHAPE
from nkic.program.program import Body, Instruction, Item, Loop, Program, Tensor, View, instructions
from nkic.source.bind import Load
from nkic.specialise.request import Request

# ------------------------------------------------------------------------------------------------
# The shapes for which a migration is verified: the given ones, and sizes around them.

MAX_SIZES = 3  # the largest ones, which are varied
_CHANGES: tuple[Callable[[int], int], ...] = (
    lambda size: size // 2,
    lambda size: size - 1,  # a partial last tile
    lambda size: size + size // 2,
    lambda size: 2 * size,
)


def variants(request: Request) -> Iterator[Request]:
    """Yield the request, then variants with one size changed wherever it occurs.

    A kernel that does not accept such shapes rejects them.
    """
    yield request
    types = {**request.like, **request.args}
    sizes = {size for kind in types.values() for size in kind.shape or () if size > 1}
    for change in _CHANGES:
        for old in sorted(sizes, reverse=True)[:MAX_SIZES]:
            args = {}
            for name, kind in types.items():
                shape = tuple(change(old) if size == old else size for size in kind.shape or ())
                args[name] = kind if kind.shape is None else replace(kind, shape=shape)
            yield replace(request, args=args)


# ---- Tiles that a kernel of Beta 1 returns from the chip ----------------------------------------
# Beta 1's simulator gives them to the caller, so `nkic.specialise.outputs` copies them to HBM
# after the kernel has ended. These copies have the place where the tile was made, and belong to no
# call of the source.


class Kept(NamedTuple):
    """The results of a program that are such tiles, from 0, and the copies of them to HBM."""

    numbers: frozenset[int] = frozenset()
    copies: frozenset[int] = frozenset()  # instructions, by `id`


def kept_tiles(program: Program) -> Kept:
    """Return the results that are copied to HBM at the end of a program."""
    named = {f"output_{n}": n for n in range(len(program.outputs))}
    call_chains = {t.at for t in program.tensors if t.buffer.on_chip}
    outputs = {
        output.tensor.number: named[output.name]
        for output in program.outputs
        if output.name in named and output.tensor.at in call_chains
    }
    copies = [*_copies(program, outputs)] if outputs else []
    written = (t.number for copy in copies if (t := _tensor(copy, "dst")) is not None)
    numbers = {outputs[number] for number in written if number in outputs}
    return Kept(frozenset(numbers), frozenset(map(id, copies)))


def _copies(program: Program, outputs: Mapping[int, int]) -> Iterator[Instruction]:
    """Yield the copies to these tensors at the place of a tile, and those from PSUM before them."""
    for body in program.cores:
        sources: set[int] = set()
        for instruction in reversed([*instructions(body)]):
            dst, source = _tensor(instruction, "dst"), _tensor(instruction, "src")
            if dst is None or source is None:
                continue
            if dst.number in sources:
                yield instruction
            elif dst.number in outputs and instruction.at == dst.at and source.number < dst.number:
                yield instruction  # a fill by `nl.zeros` of a tensor in HBM comes after that tensor
                sources |= {source.number} if source.at != dst.at else set()


def _tensor(instruction: Instruction, operand: str) -> Tensor | None:
    has_one = operand in instruction.row.operand_index
    value = instruction.operand(operand) if has_one else None
    return value.tensor if isinstance(value, View) else None


# --------------------------------------------------------------------------------------------------

T = TypeVar("T")
OVERFLOW = code("sbuf-overflow")
Spot = tuple[int, int, int, int]
"""Lines and columns of an expression, as in `Span`."""


@dataclass(frozen=True)
class Facts:
    """By place: the instructions recorded and the tensors made there, in evaluation order.

    `conditions` are the tests of `while` loops over a register, `outputs` the calls that make what
    the kernel returns, `kept` the results that are tiles on chip, as kernel name and number from 0,
    without the copies that bring them to HBM. `is_evaluated` tells that the kernel was evaluated at
    all, `errors` how many errors that found. `of_other_shapes` are the facts for other shapes,
    which distinguish sizes of the kernel's own from those of its arguments. `runs` is the number of
    evaluations that these facts combine. `spills` are the kernels whose tiles Beta 1 keeps in HBM
    in part.
    """

    is_evaluated: bool = False
    errors: int = 0
    instructions: Mapping[Spot, tuple[Instruction, ...]] = field(default_factory=dict)
    tensors: Mapping[Spot, tuple[Tensor, ...]] = field(default_factory=dict)
    conditions: frozenset[Spot] = frozenset()
    outputs: frozenset[Spot] = frozenset()
    kept: frozenset[tuple[str, int]] = frozenset()
    of_other_shapes: tuple[Facts, ...] = ()
    runs: int = 1
    spills: frozenset[Spot] = frozenset()

    @property
    def of_all_shapes(self) -> tuple[Facts, ...]:
        return (self, *self.of_other_shapes)

    @cached_property
    def filled(self) -> set[int]:
        """The tensors, by identity, that a memset fills."""
        recorded = chain.from_iterable(self.instructions.values())
        filling = (instruction for instruction in recorded if instruction.row.name in BY_SHAPE)
        return {id(dst.tensor) for dst in map(dst_of, filling) if dst is not None}


def dst_of(instruction: Instruction) -> View | None:
    """Return what an instruction writes as `dst`; None if it has no such view, like a print."""
    has_one = "dst" in instruction.row.operand_index
    dst = instruction.operand("dst") if has_one else None
    return dst if isinstance(dst, View) else None


def spot(span: Span) -> Spot:
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
    overflows = (w.primary for w in compiled.warnings if w.code is OVERFLOW and w.primary)
    spills = frozenset(spot(at.span) for at in overflows if at.span.path == source.path)
    return replace(_facts(program, source.path, errors), spills=spills)


def with_others(facts: Facts, source: SourceFile, request: Request, load: Load) -> Facts:
    """Add the facts for other shapes that the kernel accepts, if it is not too large."""
    size = sum(map(len, facts.instructions.values()))
    if not facts.is_evaluated or facts.errors or size > MAX_INSTRUCTIONS:
        return facts
    of_variants: list[Facts] = []
    for variant in islice(variants(request), 1, 1 + MAX_TRIED):
        variant_facts = facts_of(source, variant, load)
        if variant_facts.is_evaluated and not variant_facts.errors:
            of_variants.append(variant_facts)
        if len(of_variants) == MAX_VARIANTS:
            break
    return replace(facts, of_other_shapes=tuple(of_variants))


def merged(first: Facts, second: Facts) -> Facts:
    """Merge the facts of two evaluations of a file: of two kernels or for other arguments."""

    def joined(a: Mapping[Spot, tuple[T, ...]], b: Mapping[Spot, tuple[T, ...]]) -> Any:
        return {at: (*a.get(at, ()), *b.get(at, ())) for at in {**a, **b}}

    return Facts(
        first.is_evaluated or second.is_evaluated,
        first.errors,
        joined(first.instructions, second.instructions),
        joined(first.tensors, second.tensors),
        first.conditions | second.conditions,
        first.outputs | second.outputs,
        first.kept | second.kept,
        (*first.of_other_shapes, *second.of_other_shapes),
        first.runs + second.runs,
        first.spills | second.spills,
    )


MAX_VARIANTS, MAX_TRIED = 2, 12  # accepted shapes to collect, and shapes to try
MAX_INSTRUCTIONS = 5_000  # instructions above which only the given shapes are evaluated


def _facts(program: Program, path: str, errors: int) -> Facts:
    def place(at: CallChain) -> Spot | None:
        return spot(at.primary) if at.primary.path == path else None

    instructions: defaultdict[Spot, list[Instruction]] = defaultdict(list)
    conditions: set[Spot] = set()
    copied = kept_tiles(program)
    for item in (item for body in program.cores for item in _items(body)):
        if (at := place(item.at)) is None:
            continue
        if isinstance(item, Instruction):
            if id(item) not in copied.copies:
                instructions[at].append(item)
        elif item.condition is not None:
            conditions.add(at)
    tensors: defaultdict[Spot, list[Tensor]] = defaultdict(list)
    for tensor in program.tensors:
        if (at := place(tensor.at)) is not None:
            tensors[at].append(tensor)
    returned = (place(output.tensor.at) for output in program.outputs)
    return Facts(
        True,
        errors,
        {at: tuple(recorded) for at, recorded in instructions.items()},
        {at: tuple(declared) for at, declared in tensors.items()},
        frozenset(conditions),
        frozenset(at for at in returned if at is not None),
        frozenset((program.name, number) for number in copied.numbers),
    )


def _items(body: Body) -> Iterator[Item]:
    for item in body:
        yield item
        if isinstance(item, Loop):
            yield from _items(item.body)
