"""The stage: the table's rules and the bounds of views, evaluated once per signature."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from math import prod
from typing import NamedTuple, Protocol

from nkic.base.diagnostics import Label, Reporter, call_labels, within
from nkic.base.profiles import Profile
from nkic.base.profiles import find as profile_named
from nkic.base.source import Span
from nkic.base.text import plural
from nkic.machine.dtypes import FLOAT32
from nkic.machine.operands import Depends, Operand, Violation
from nkic.machine.operators import ALU
from nkic.machine.patterns import Dims, bounds, elements, merged, repeats, run
from nkic.machine.rules import violations
from nkic.machine.targets import MEMORIES, PARTITIONS
from nkic.program.effects import Operands, Uses, accesses_of
from nkic.program.overlap import Group, Groups, grouped
from nkic.program.program import (
    AccessPattern,
    Body,
    Instruction,
    Item,
    Program,
    Tensor,
    View,
    instructions,
)
from nkic.program.program import Operand as OperandValue

# ------------------------------------------------------------------------------------------------
# Check that views stay inside their tensors. Slices do by construction; `.ap()` may not.
# A view is checked when an instruction uses it: published kernels make patterns beyond the end of
# a tensor in the last iteration of a loop, and skip the instruction that would take them.
#
# Sources: access pattern guide (NKI 0.6), partition dimension: the first pair walks partitions,
# its step is the elements per partition; the free pairs stay inside a partition.


def out_of_bounds(view: View, instruction: str, operand: str) -> Violation | None:
    """Return the violation of `operand`, or None. The runner checks offsets known at run time."""
    tensor, dynamic = view.tensor, view.dynamic
    if dynamic is not None and isinstance(dynamic.source, View):
        violation = out_of_bounds(dynamic.source, instruction, operand)
        if violation is not None:
            return violation
    if dynamic is not None and dynamic.kind == "columns":
        return None
    dims = tuple(zip(view.strides, view.shape, strict=True))
    if not tensor.on_chip:
        skip = int(dynamic is not None and dynamic.kind == "vector")
        size = tensor.bytes // view.dtype.size
        text = _linear(dims[skip:], view.offset, size)
    else:
        text = _on_chip(dims, view.offset, view.pitch, tensor.partitions)
    if not text:
        return None
    pattern = [list(pair) for pair in dims]
    return Violation(
        "pattern-out-of-bounds",
        f"{instruction}: `{operand}` {text} of `{tensor.name}`; its pattern is {pattern} "
        f"from {view.offset}",
        operand,
        "shorten the slice or pattern, or declare a larger tensor",
    )


def _linear(dims: Dims, offset: int, size: int) -> str:
    low, high = bounds(dims)
    low, high = offset + low, offset + high
    if low < 0:
        return f"begins at element {low}, before the first"
    return f"reaches element {high}; there are {size}, up to {size - 1}," if high >= size else ""


@lru_cache(maxsize=65536)
def _on_chip(dims: Dims, offset: int, pitch: int, partitions: int) -> str:
    (step, count), *free = dims
    if count > 1 and step != pitch:
        return (
            f"walks partitions with step {step}; the step must be the {pitch} elements "
            "per partition"
        )
    start, first = divmod(offset, pitch)
    if start < 0:
        return f"begins at element {offset}, before the first"
    if start + count > min(partitions, PARTITIONS):
        return f"reaches partition {start + count - 1}; there are {partitions}, from 0,"
    low, high = bounds(tuple(free))
    low, high = first + low, first + high
    if low < 0:
        return f"begins at element {low} of a partition, before the first"
    if high >= pitch:
        return f"reaches element {high} of a partition; there are {pitch}, up to {pitch - 1},"
    return ""


# ------------------------------------------------------------------------------------------------
# Advice on operands of the wrong shape or memory, with the kernel's own names and sizes.
# A rule knows one instruction. The program shows where a tile came from: a row such as a bias or
# the weight of a norm, which lies in one partition, is repeated in all of them while it is loaded.


class _Tile(NamedTuple):
    operand: Operand
    view: View

    @property
    def partitions(self) -> int:
        return self.view.shape[0]

    @property
    def free(self) -> int:
        return self.view.tile().free

    @property
    def name(self) -> str:
        return _named(self.view)


def advice(program: Program, instruction: Instruction, violation: Violation) -> str:
    """Return better advice than the violation's own, or "" if there is none."""
    advisor, tile = _ADVISORS.get(violation.slug), _tile(instruction, violation.operand)
    if advisor is None or tile is None:
        return ""
    return advisor(program, instruction, tile, _tile(instruction, violation.other))


def _tile(instruction: Instruction, name: str) -> _Tile | None:
    return next((tile for tile in _tiles(instruction) if tile.operand.name == name), None)


def _partitions(
    program: Program, instruction: Instruction, tile: _Tile, other: _Tile | None
) -> str:
    """Advise on tiles whose numbers of partitions differ: a row, or two sizes."""
    if other is None:
        return ""
    low, high = sorted((tile, other), key=lambda t: t.partitions)
    if low.partitions > 1:
        part = f"`{high.name}[0:{low.partitions}]`"
        return f"use {low.partitions} partitions of `{high.name}`: {part}"
    if low.operand.access.writes:
        return (
            f"make `{low.name}` a tile of {high.partitions} partitions, or pass one partition of "
            f"`{high.name}`, `{high.name}[0:1]`"
        )
    view, whole = low.view, _whole(low)
    is_first = (view.offset, view.dtype) == (0, view.tensor.dtype) and view.dynamic is None
    is_part = is_first and view.tensor.partitions == 1 and low.free < whole.free
    # Other passes of an unrolled loop take other columns: each is meant as one number.
    passes = {
        each.operand(low.operand.name)
        for each in _all_instructions(program)
        if each.at == instruction.at and each.row is instruction.row
    }
    is_part = is_part and passes == {view}
    if is_part and (text := _column(program, instruction, whole, None)):
        return text  # perhaps a column was cut to please the rule: it is one number for all
    return f"repeat it in all {high.partitions} partitions{_repeated(program, low, high)}"


def _elements(program: Program, instruction: Instruction, tile: _Tile, other: _Tile | None) -> str:
    """Advise on a column among rows, or on a transfer of a row to all partitions."""
    if other is None or not other.view.tensor.on_chip:
        return ""
    if not tile.view.tensor.on_chip:
        if other.free != prod(tile.view.shape):
            return ""
        row = _row_of(tile.view, other.partitions, other.free, _profile(program))
        return (
            f"to repeat it in all {other.partitions} partitions of `{other.name}`, write src={row}"
        )
    is_column = tile.free == 1 and tile.partitions == other.partitions
    if is_column and _profile(program) >= Profile.NKI_0_5:
        column = f"{tile.name}.broadcast(1, {other.free})"
        return f"repeat the column with `{column}`{_as_operand0(instruction, tile)}"
    return ""


def _as_operand0(instruction: Instruction, tile: _Tile) -> str:
    """Return what follows "repeat it" for a column that tensor_scalar takes, too, or ""."""
    name, dtype = tile.operand.name, tile.view.dtype
    if instruction.row.name != "tensor_tensor" or name not in ("data1", "data2"):
        return ""
    is_bitvec = ALU[instruction.attribute("op")].group == "bitvec"
    if not (dtype.is_integer if is_bitvec else dtype is FLOAT32):
        return ""
    swapped = " with reverse0=True" if name == "data1" else ""
    return f", or `nisa.tensor_scalar` takes it as `operand0`{swapped}"


def _column(program: Program, instruction: Instruction, tile: _Tile, _: _Tile | None) -> str:
    """Advise on a row in place of one number per partition, such as a bias of many columns."""
    name = tile.operand.name
    if name == "on_false":
        return (
            "to choose between two tiles, copy one, and write the other over it with "
            "nisa.tensor_copy_predicated(dst, src, predicate)"
        )
    data, dst = _tile(instruction, "data"), _tile(instruction, "dst")
    if data is None or dst is None or tile.free != data.free:
        return ""
    given = dict(zip(instruction.row.attribute_index, instruction.attributes, strict=True))
    first, result, last = "write ", dst.name, ""
    if name == "scale" or (name == "bias" and instruction.operand("scale") == 1):
        result, op = ("scaled", "multiply") if name == "scale" else ("total", "add")
        shape = ", ".join(map(str, data.view.shape))
        first = (
            f"leave out `{name}`, and before the call write "
            f"{result} = nl.ndarray(({shape}), dtype=nl.float32, buffer=nl.sbuf); "
        )
        last = f", and pass data={result}"
    elif name == "operand0" and given.get("op1", "") is None and ALU[given["op0"]].arity == 2:
        op = given["op0"]
    else:
        return ""
    data1, data2 = (tile, data) if given.get("reverse0") else (data, tile)
    text = (
        f"for a number per element, {first}nisa.tensor_tensor(dst={result}, "
        f"data1={data1.name}, data2={data2.name}, op=nl.{op}){last}"
    )
    if tile.partitions == data.partitions:
        return text
    return f"{text}; repeat `{tile.name}` in all {data.partitions} partitions" + _repeated(
        program, tile, data
    )


def _memory(program: Program, instruction: Instruction, tile: _Tile, _: _Tile | None) -> str:
    """Advise on a tensor in HBM that an engine should read, or a result in the wrong memory."""
    view = tile.view
    if view.tensor.buffer in tile.operand.buffers:
        return ""  # what is wrong is not this alone: the engine, say, or its offsets
    if tile.operand.access.writes and view.tensor.on_chip:
        uses = [t.operand.buffers for t in _all_tiles(program) if t.view.tensor is view.tensor]
        memory = next((m.value for m in MEMORIES if all(m in allowed for allowed in uses)), "")
        if not memory:
            return ""
        last = "; copy the sum elsewhere after the last one" if instruction.row.accumulates else ""
        return f"make `{view.tensor.name}` with buffer=nl.{memory}{last}"
    if view.tensor.on_chip or tile.operand.access.writes or not instruction.row.streams:
        return ""
    source, sizes = tile.name, view.shape
    if len(sizes) == 1:
        sizes = (1, *sizes)
        source = _row_of(view, 1, sizes[1], _profile(program))
    shape = ", ".join(map(str, sizes))
    if sizes[0] > PARTITIONS:
        return f"load it first, at most {PARTITIONS} rows at a time: nisa.dma_copy(dst=tile, src=…)"
    made = f"tile = nl.ndarray(({shape}), dtype={view.tensor.name}.dtype, buffer=nl.sbuf)"
    return f"load it first: {made}; nisa.dma_copy(dst=tile, src={source})"


def _promoted(program: Program, instruction: Instruction, _: _Tile, __: _Tile | None) -> str:
    """Advise on a result of Beta 1 that has not the type of its operand, but a promoted one.

    Its values were converted, so that `.view()` would read bits that the kernel does not mean.
    """
    if _profile(program) is not Profile.BETA1:
        return ""
    made = {tile.view.tensor for tile in _tiles(instruction)}
    for maker in _all_instructions(program):
        result, source = _tile(maker, "dst"), _tile(maker, maker.row.first)
        if result is None or source is None or result.view.tensor not in made:
            continue
        is_new = result.view.tensor.at.primary == maker.at.primary
        if not is_new or source.view.dtype is result.view.dtype:
            continue
        op, second, swap = maker.row.stages[0]
        other, of = str(maker.operand(second)), f"the number {maker.operand(second)}"
        if (tile := _tile(maker, second)) is not None:
            other, of = tile.name, tile.view.dtype.name
        parts = [source.name, other]
        if swap and maker.attribute(swap):
            parts.reverse()
        call, dtype = f"nl.{maker.attribute(op)}", source.view.dtype.name
        return (
            f"`{result.name}`, {call} of {dtype} and {of}, is {result.view.dtype.name}: write "
            f"{call}({', '.join(parts)}, dtype=nl.{dtype})"
        )
    return ""


_ADVISORS: dict[str, Callable[[Program, Instruction, _Tile, _Tile | None], str]] = {
    "partition-mismatch": _partitions,
    "element-count-mismatch": _elements,
    "operand-shape": _column,
    "buffer-not-allowed": _memory,
    "bitvec-dtype": _promoted,
    "dtype-mismatch": _promoted,
}


def _repeated(program: Program, row: _Tile, like: _Tile) -> str:
    """Return how to repeat a row in all partitions of `like`, to follow "repeat it"."""
    profile, tensor, count = _profile(program), row.view.tensor, like.partitions

    def shape_of(tile: _Tile) -> str:
        return f"({', '.join(map(str, (count, *tile.view.shape[1:])))})"

    if profile is Profile.BETA1:
        return f": `{row.name}.broadcast_to({shape_of(row)})`"
    source = _loaded_from(program, tensor) if tensor.partitions == 1 else None
    if source is not None:
        copied = _row_of(source, count, tensor.free, profile)
        return (
            f" while loading it: make `{tensor.name}` a tile of shape {shape_of(_whole(row))}, and "
            f"write nisa.dma_copy(dst={tensor.name}, src={copied})"
        )
    return f": `nl.broadcast_to({row.name}, {shape_of(row)})`"


def _whole(tile: _Tile) -> _Tile:
    """Return the tensor of which `tile` is a part."""
    tensor = tile.view.tensor
    shape = tensor.shape
    strides = tuple(prod(shape[n + 1 :]) for n in range(len(shape)))
    return tile._replace(view=View(tensor, shape, strides, 0, tensor.dtype))


def _row_of(source: View, count: int, elements: int, profile: Profile) -> str:
    """Return the expression for `source`, a row in HBM, repeated `count` times."""
    name = _named(source)
    if profile < Profile.NKI_0_5:
        return f"{name}.ap([[0, {count}], [1, {elements}]])"
    part = source.tensor.shape if name == source.tensor.name else source.shape
    row = name if len(part) == 2 and part[0] == 1 else f"{name}.reshape((1, {elements}))"
    return f"{row}.broadcast(0, {count})" if count > 1 else row


def _loaded_from(program: Program, tensor: Tensor) -> View | None:
    """Return what one transfer loads the whole of `tensor` from, if nothing else writes it."""
    written = [
        instruction
        for instruction in _all_instructions(program)
        for tile in _tiles(instruction)
        if tile.operand.access.writes and tile.view.tensor is tensor
    ]
    places = {instruction.at for instruction in written}
    if len(places) != 1 or not written[0].row.copies:
        return None
    source = written[0].operand("src")
    if not isinstance(source, View) or source.tensor.on_chip or source.dynamic is not None:
        return None
    return source if prod(source.shape) == prod(tensor.shape) else None


def _all_instructions(program: Program) -> Iterator[Instruction]:
    return chain.from_iterable(map(instructions, program.cores))


def _all_tiles(program: Program) -> Iterator[_Tile]:
    return chain.from_iterable(map(_tiles, _all_instructions(program)))


def _tiles(instruction: Instruction) -> list[_Tile]:
    pairs = zip(instruction.row.operands, instruction.operands, strict=True)
    return [_Tile(operand, view) for operand, view in pairs if isinstance(view, View)]


def _named(view: View) -> str:
    """Return the tensor's name, with […] for a part of it."""
    tensor = view.tensor
    return tensor.name if prod(view.shape) == prod(tensor.shape) else f"{tensor.name}[…]"


def _profile(program: Program) -> Profile:
    return profile_named(program.notes.get("nki", "")) or Profile.NKI_0_7


# --------------------------------------------------------------------------------------------------

OFFSETS = ("scalar_offset", "vector_offset")  # the arguments of `.ap()` for dynamic offsets


class Locate(Protocol):
    """Returns the span of an instruction's argument, given the parameter's name.

    If the argument is itself a call, returns the span of that call's argument in `within`.
    """

    def __call__(
        self, instruction: Instruction, parameter: str, within: Collection[str] = ()
    ) -> Span: ...


def _whole_call(instruction: Instruction, parameter: str, within: Collection[str] = ()) -> Span:
    return instruction.at.primary


class Checked(NamedTuple):
    """The program without its illegal instructions, and the group of each legal one, by core."""

    program: Program
    groups: Groups


def check(program: Program, report: Reporter, locate: Locate | None = None) -> None:
    """Report every violation and stop. `locate` returns the span of an argument by name."""
    find(program, report, locate)
    report.stop_if_errors()


def find(program: Program, report: Reporter, locate: Locate | None = None) -> Checked:
    """Report every violation and return the program without the offending instructions."""
    groups = grouped(program)
    checker = _Checker(program, report, locate or _whole_call)
    if all(checker.accepts(group) for group in dict.fromkeys(chain(*groups))):
        return Checked(program, groups)
    return checker.legal(program, groups)


class _Checker:
    def __init__(self, program: Program, report: Reporter, locate: Locate) -> None:
        self.program = program
        self.target = program.target
        self.cores = program.cores
        self.report = report
        self.locate = locate
        self.cached: dict[tuple[object, ...], list[Violation]] = {}
        self.accepted: dict[Group, bool] = {}

    def accepts(self, group: Group) -> bool:
        """Return whether the first instruction of `group` is legal: then all of them are."""
        if group not in self.accepted:
            self.accepted[group] = not self.problems(group.first)
        return self.accepted[group]

    def problems(self, instruction: Instruction) -> list[Violation]:
        return self.bounds(instruction) or self.rules(instruction)

    def legal(self, program: Program, groups: Groups) -> Checked:
        kept: list[list[Group]] = [[] for _ in groups]
        cores = [
            self.body(body, iter(own), legal)
            for body, own, legal in zip(program.cores, groups, kept, strict=True)
        ]
        return Checked(replace(program, cores=tuple(cores)), kept)

    def body(self, body: Body, groups: Iterator[Group], legal: list[Group]) -> Body:
        """Return the legal part of `body`, without loops that become empty."""
        items: list[Item] = []
        for item in body:
            if isinstance(item, Instruction):
                items += self.instruction(item, next(groups), legal)
            elif inner := self.body(item.body, groups, legal):
                items.append(replace(item, body=inner))
        return tuple(items)

    def instruction(
        self, instruction: Instruction, group: Group, legal: list[Group]
    ) -> tuple[Instruction, ...]:
        """Report violations, and return the instruction if there are none."""
        if self.accepts(group):
            legal.append(group)
            return (instruction,)
        problems = self.problems(instruction)
        for violation in problems:
            self.complain(instruction, violation)
        if problems:
            return ()
        legal.append(Group(instruction))
        return (instruction,)

    def rules(self, instruction: Instruction) -> list[Violation]:
        row = instruction.row
        key = (
            row,
            instruction.attributes,
            *map(type, instruction.attributes),  # 1, 1.0 and True are equal, but not to a rule
            instruction.engine,
            *(seen(o) for o in instruction.operands),
        )
        result = self.cached.get(key)
        if result is None:
            result = self.cached[key] = violations(row, instruction.facts(self.target))
        return list(result)

    def bounds(self, instruction: Instruction) -> list[Violation]:
        result = []
        for name, index in instruction.row.operand_index.items():
            view = instruction.operands[index]
            if type(view) is View and (wrong := out_of_bounds(view, instruction.row.name, name)):
                result.append(wrong)
        return result

    def complain(self, instruction: Instruction, violation: Violation) -> None:
        at, names = instruction.at, OFFSETS if violation.offsets else ()
        span = at.primary
        if violation.operand:
            span = self.locate(instruction, violation.operand, names)
        is_known = self.report.knows(violation.slug, span)
        self.report.error(
            violation.slug,
            violation.message,
            span,
            labels=[*_declared(instruction, violation), *call_labels(at)],
            notes=[*within(at), *([] if is_known else self.iteration(instruction))],
            help=advice(self.program, instruction, violation) or violation.help,
        )

    def iteration(self, instruction: Instruction) -> tuple[str, ...]:
        """Return a note that numbers the instruction if unrolled loops made several here."""
        siblings = [
            other for other in instructions(self.of(instruction)) if other.at is instruction.at
        ]
        if all(map(self.problems, siblings)):  # the count of the error says so already
            return ()
        place = next(n for n, other in enumerate(siblings, 1) if other is instruction)
        return (
            f"this is instruction {place} of the {len(siblings)} that unrolled loops make of this "
            "line",
        )

    def of(self, instruction: Instruction) -> Body:
        return next(b for b in self.cores if any(item is instruction for item in instructions(b)))


def seen(operand: OperandValue) -> object:
    """Return the key of an operand for rules: without offsets, with the types of numbers."""
    if type(operand) is not View:
        return (type(operand), operand)
    tensor, shape, strides, offset, dtype, dynamic = operand
    if dynamic is not None:
        return operand.tile()
    if not tensor.on_chip:
        return (tensor.buffer, dtype.name, shape, strides)
    pitch = tensor.bytes // dtype.size
    start = tensor.first + offset // pitch
    return (tensor.buffer, dtype.name, shape, strides[1:], start)


def _declared(instruction: Instruction, violation: Violation) -> list[Label]:
    index = instruction.row.operand_index.get(violation.operand)
    view: object = instruction.operands[index] if index is not None else None
    if violation.offsets and isinstance(view, View) and view.dynamic is not None:
        view = view.dynamic.source
    return [declaration(view.tensor)] if isinstance(view, View) else []


def declaration(tensor: Tensor) -> Label:
    sizes = ", ".join(map(str, tensor.shape))
    what = f"`{tensor.name}` is {tensor.dtype.name}[{sizes}] in {tensor.buffer.value}"
    return Label(tensor.at.primary, what)


# ---- Checks the ordering edges that the kernel asked for ----------------------------------------
# An edge is a wait that the device executes every time, so the earlier instruction must be in the
# same device loops as the later one, or in an enclosing one. Source: `nki.isa`, `depends_on`.

Loops = tuple[int, ...]  # loop numbers, outermost first


def find_edges(program: Program, report: Reporter) -> None:
    """Report every edge that leaves a device loop."""
    for body in program.cores:
        if not any(instruction.after for instruction in instructions(body)):
            continue
        numbered: dict[int, tuple[Instruction, Loops]] = {}
        for instruction, loops in _nested(body):
            numbered[instruction.number] = instruction, loops
            for number in instruction.after:
                if number in numbered and loops[: len(numbered[number][1])] != numbered[number][1]:
                    _complain(instruction, numbered[number][0], report)


def _nested(body: Body, loops: Loops = ()) -> Iterator[tuple[Instruction, Loops]]:
    for item in body:
        if isinstance(item, Instruction):
            yield item, loops
        else:
            yield from _nested(item.body, (*loops, item.number))


def _complain(consumer: Instruction, producer: Instruction, report: Reporter) -> None:
    report.error(
        "bad-schedule",
        f"{consumer.row.name} is ordered after {producer.row.name}, which is inside a device loop, "
        "but is itself outside it: nothing outside the loop can wait for one iteration",
        consumer.at,
        labels=[Label(producer.at.primary, f"{producer.row.name} is in the loop")],
        help="remove the edge: instructions after the loop wait for its end; or order two "
        "instructions of the same loop",
    )


# ------------------------------------------------------------------------------------------------
# Operands of one instruction that share bytes in a way that no documentation defines.
# A destination whose pattern visits an element twice keeps one of two values; a source that
# overlaps the destination, but is not the same elements in the same order, is read before or after
# they are overwritten. nkic's runner writes elements in order, after it has read all of them
# (assumed; docs/fidelity.md); engines work on several elements at a time, and DMA on several
# descriptors.

MAX_ELEMENTS = 1 << 16  # elements, or contiguous pieces, of a pattern that is looked at
# Rows that write elements while they read others. A reduction writes when it has read a partition.
_STREAMING = (Depends.ELEMENTWISE, Depends.TRANSPOSED)


def find_shared_elements(lowered: Program, report: Reporter) -> None:
    """Warn of destinations that are hit twice, and of sources that overlap them."""
    for body in lowered.cores:
        accesses = accesses_of(body, lowered.target)
        known: dict[tuple[int, ...], tuple[str, str, AccessPattern] | None] = {}
        for instruction in instructions(body):
            if not _is_candidate(instruction):
                continue
            operands, uses = accesses.of(instruction)
            key = (id(instruction.row), *map(id, operands))
            if key not in known:
                known[key] = _problem(instruction, operands, uses)
            problem = known[key]
            if problem is not None:
                slug, text, dst = problem
                report.warning(
                    slug,
                    f"{instruction.row.name}: {text}",
                    instruction.at,
                    labels=[declaration(dst.tensor)],
                    help=_HELP[slug],
                )


_HELP = {
    "element-written-twice": "let every element of the destination occur once in its pattern",
    "overlapping-operands": "copy the source into a tile of its own first",
}


def _is_candidate(instruction: Instruction) -> bool:
    """Return whether two operands are of one tensor, or one visits an element twice."""
    tensors: list[int] = []
    for operand in instruction.operands:
        if type(operand) is AccessPattern:
            number = operand.tensor.number
            if number in tensors or _repeats(operand.dims):
                return True
            tensors.append(number)
    return False


_repeats = lru_cache(maxsize=4096)(repeats)


def _problem(
    instruction: Instruction, operands: Operands, uses: Uses
) -> tuple[str, str, AccessPattern] | None:
    """Return the code and the text of a warning, and the destination that it is about."""
    row = instruction.row
    if row.is_rendezvous:
        return None
    sources, written = [], []
    for index, reads, writes in uses:
        pattern = operands[index]
        if type(pattern) is AccessPattern and index < len(row.operands):
            if writes:
                written.append((row.operands[index].name, pattern))
            elif reads:
                sources.append((row.operands[index].name, pattern))
    for name, dst in written:
        if dst.dynamic is not None:
            continue
        # With a second result, kernels let the first one hit a single element, and drop it.
        if len(written) == 1 and sources and repeats(dst.dims) and _differ(dst, sources):
            return "element-written-twice", _twice(name, dst), dst
        if row.depends not in _STREAMING:
            continue
        for source, tile in sources:
            if tile.tensor is dst.tensor and tile.dynamic is None and _overlap(dst, tile):
                text = (
                    f"`{source}` and `{name}` overlap in `{dst.tensor.name}`, but are not the "
                    "same elements in the same order: whether an element is read before it is "
                    "overwritten is not defined"
                )
                return "overlapping-operands", text, dst
    return None


# ---- elements that are written twice ----


def _differ(dst: AccessPattern, sources: Sequence[tuple[str, AccessPattern]]) -> bool:
    """Return whether an element may be given different values, and is written twice at all."""
    if all(_repeat_alike(dst.dims, source.dims) for _, source in sources):
        return False
    return elements(dst.dims) <= MAX_ELEMENTS and _distinct(dst.dims) < elements(dst.dims)


def _repeat_alike(dims: Dims, source: Dims) -> bool:
    """Return whether a source repeats its elements wherever the destination does."""
    return (
        len(dims) == len(source)
        and all(
            num == other_num and (step != 0 or other == 0)
            for (step, num), (other, other_num) in zip(dims, source, strict=True)
        )
        and not repeats(tuple(pair for pair in dims if pair[0]))
    )


def _twice(name: str, dst: AccessPattern) -> str:
    count, distinct = elements(dst.dims), _distinct(dst.dims)
    each = " of each partition" if dst.tensor.on_chip else ""
    return (
        f"`{name}` writes {count:,} elements to {plural(distinct, 'place')}{each} of "
        f"`{dst.tensor.name}`; "
        f"its pattern is {[list(pair) for pair in dst.dims]}, and which of several values a place "
        "keeps is not defined"
    )


@lru_cache(maxsize=1024)
def _distinct(dims: Dims) -> int:
    """Return the number of different elements that a pattern visits."""
    return len(set(_visited(dims)))


def _visited(dims: Dims) -> Iterator[int]:
    """Yield the offsets of the elements in order."""
    if not dims:
        yield 0
        return
    (step, num), *inner = dims
    for i in range(num):
        for offset in _visited(tuple(inner)):
            yield i * step + offset


# ---- sources that overlap the destination ----


def _overlap(dst: AccessPattern, source: AccessPattern) -> bool:
    """Return whether the two share bytes, unless they are the same elements in the same order.

    An operand of one element per partition is read before the first result is written.
    """
    on_chip = dst.tensor.on_chip
    if on_chip and elements(source.dims) == 1 < elements(dst.dims):
        return False
    ends = dst.start + dst.partitions, source.start + source.partitions
    if on_chip and min(ends) <= max(dst.start, source.start):
        return False
    (low, high), (other_low, other_high) = dst.extent(), source.extent()
    if low >= other_high or other_low >= high:
        return False
    mine, other = (merged(dst.dims), dst.dtype.size), (merged(source.dims), source.dtype.size)
    distance = source.offset * source.dtype.size - dst.offset * dst.dtype.size
    is_same = mine == other and dst.start == source.start and distance == 0
    return not is_same and _share_bytes(mine, other, distance)


@lru_cache(maxsize=1024)
def _share_bytes(one: tuple[Dims, int], other: tuple[Dims, int], distance: int) -> bool:
    """Return whether two patterns of elements of a size share bytes; `other` is `distance` later.

    False if there are too many pieces to tell.
    """
    pieces = [(*_pieces(*one), 0), (*_pieces(*other), distance)]
    if any(elements(dims) > MAX_ELEMENTS for dims, _, _ in pieces):
        return False
    ranges = sorted(
        (start * size + shift, (start * size + shift) + length, owner)
        for owner, ((dims, length, shift), size) in enumerate(
            zip(pieces, (one[1], other[1]), strict=True)
        )
        for start in set(_visited(dims))
    )
    ends = [-(1 << 63)] * 2  # of the pieces of each pattern so far
    for start, end, owner in ranges:
        if start < ends[1 - owner]:
            return True
        ends[owner] = max(ends[owner], end)
    return False


def _pieces(dims: Dims, size: int) -> tuple[Dims, int]:
    """Return the pattern of the contiguous pieces of a pattern, and their length in bytes."""
    length = run(dims)
    return (dims if length == 1 else dims[:-1]), length * size
