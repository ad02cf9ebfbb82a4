"""Faults in the result of lower: each is one error that the stage could make."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

from nkic.machine.dtypes import DTYPES
from nkic.machine.operands import AttributeKind, Register
from nkic.machine.operators import ACTIVATIONS, ALU
from nkic.program.program import (
    AccessPattern,
    Body,
    Instruction,
    Item,
    Loop,
    Program,
    Tensor,
    instructions,
)
from tests.faults.inject import Fault

Change = Callable[[Body], Body]


def of_lowered(lowered: Program) -> Iterator[Fault]:
    """Yield the faults in instructions, in loops, and in what the program returns."""
    for core, body in enumerate(lowered.cores):
        for kind, change in _of_body(body, lowered):
            yield Fault(kind, partial(_in_core, lowered, core, change))
    if len(lowered.outputs) > 1:
        first, second, *others = lowered.outputs
        tensors = (second.tensor, first.tensor)
        new = [p._replace(tensor=t) for p, t in zip((first, second), tensors, strict=True)]
        yield Fault("other results", partial(replace, lowered, outputs=(*new, *others)))


def _in_core(lowered: Program, core: int, change: Change) -> Program:
    cores = [change(body) if at == core else body for at, body in enumerate(lowered.cores)]
    return replace(lowered, cores=tuple(cores))


def _of_body(body: Body, lowered: Program) -> Iterator[tuple[str, Change]]:
    for at, item in enumerate(body):
        if at + 1 < len(body):
            yield "exchanged instructions", partial(_edited, at, 2, (body[at + 1], item))
        if isinstance(item, Loop):
            yield "dropped loop", partial(_edited, at, 1, ())
            for kind, loop in _of_loop(item):
                yield kind, partial(_edited, at, 1, (loop,))
            for kind, change in _of_body(item.body, lowered):
                yield kind, partial(_inside, at, change)
            continue
        yield "dropped instruction", partial(_edited, at, 1, ())
        yield "doubled instruction", partial(_edited, at, 1, (item, item))
        for kind, new in _of_instruction(item, lowered):
            yield kind, partial(_edited, at, 1, (new,))


def _edited(at: int, length: int, new: Body, body: Body) -> Body:
    return _numbered((*body[:at], *new, *body[at + length :]))


def _inside(at: int, change: Change, body: Body) -> Body:
    loop: Any = body[at]
    return _edited(at, 1, (replace(loop, body=change(loop.body)),), body)


def _numbered(body: Body) -> Body:
    """Return the body with new numbers, if its own do not increase, as lower would number it."""
    old = [instruction.number for instruction in instructions(body)]
    if old == sorted(set(old)):
        return body
    new = dict(zip(old, count(), strict=False))
    numbers = count()

    def numbered(item: Item) -> Item:
        if isinstance(item, Loop):
            return replace(item, body=tuple(map(numbered, item.body)))
        after = tuple(new[number] for number in item.after if number in new)
        return item._replace(number=next(numbers), after=after)

    return tuple(map(numbered, body))


def _of_loop(loop: Loop) -> Iterator[tuple[str, Loop]]:
    for field in ("start", "stop"):
        value = getattr(loop, field)
        if isinstance(value, int) and loop.condition is None:
            shift = loop.step if field == "start" else -loop.step
            changed: dict[str, Any] = {field: value + shift}
            yield "other iterations", replace(loop, **changed)
    if loop.counter is not None:
        other = loop.counter._replace(number=loop.counter.number + 1)
        yield "another register", replace(loop, counter=other)


def _of_instruction(one: Instruction, lowered: Program) -> Iterator[tuple[str, Instruction]]:
    for index, rule in enumerate(one.row.attributes):
        old = one.attributes[index]
        for value in _other_values(rule, old):
            if value == old:  # of an infinity, one more is the same
                continue
            is_flag = rule.name == one.row.accumulates
            kind = "accumulation" if is_flag else "attribute"
            attributes = (*one.attributes[:index], value, *one.attributes[index + 1 :])
            yield kind, one._replace(attributes=attributes, work=None)
    for engine in one.row.engines:
        if engine is not one.engine:
            yield "another engine", one._replace(engine=engine, work=None)
    if one.after:
        yield "lost order", one._replace(after=())
    if one.pinned:
        yield "lost order", one._replace(pinned=0)
    for index, operand in enumerate(one.operands):
        for kind, new in _of_operand(operand, lowered):
            operands = (*one.operands[:index], new, *one.operands[index + 1 :])
            yield kind, one._replace(operands=operands, work=None)


def _other_values(rule: Any, old: Any) -> Iterator[Any]:
    kind = rule.kind
    if old is None or kind is AttributeKind.TEXT:
        return
    if isinstance(old, bool):
        yield not old
    elif isinstance(old, int | float):
        yield old + 1
    elif kind in (AttributeKind.ALU, AttributeKind.ACTIVATION):
        names = [n for n in (ALU if kind is AttributeKind.ALU else ACTIVATIONS) if n != old]
        yield from names[:2]
    elif kind is AttributeKind.CHOICE:
        yield from [choice for choice in rule.choices if choice != old][:1]
    elif isinstance(old, tuple) and len(old) > 1 and old[::-1] != old:
        yield old[::-1]


def _of_operand(operand: Any, lowered: Program) -> Iterator[tuple[str, Any]]:
    if isinstance(operand, Register):
        if operand.number:
            yield "another register", operand._replace(number=operand.number - 1)
        yield "another register", operand._replace(number=operand.number + 1)
    elif isinstance(operand, int | float):
        yield "number", operand + 1
        if repr(-operand) != repr(operand):
            yield "number", -operand
    elif isinstance(operand, AccessPattern):
        changes = [*_of_address(operand), *_of_dims(operand), *_of_dynamic(operand, lowered)]
        for kind, new in changes:
            if new != operand and _is_inside(new):
                yield kind, new
        for tensor in _others(operand.tensor, lowered):
            yield "another tensor", operand._replace(tensor=tensor)


def _is_inside(pattern: AccessPattern) -> bool:
    low, high = pattern.extent()
    tensor = pattern.tensor
    fits = 0 <= pattern.start <= pattern.start + pattern.partitions <= tensor.partitions
    return fits and 0 <= low <= high <= tensor.bytes


def _others(tensor: Tensor, lowered: Program) -> list[Tensor]:
    """Return two other tensors that look like this one."""
    form = tensor.shape, tensor.dtype, tensor.buffer
    return [
        other
        for other in lowered.tensors
        if (other.shape, other.dtype, other.buffer) == form and other is not tensor
    ][:2]


def _of_address(pattern: AccessPattern) -> Iterator[tuple[str, AccessPattern]]:
    for step in (1, -1, pattern.elements):
        yield "offset", pattern._replace(offset=pattern.offset + step)
    for step in (1, -1, 32):
        yield "partition", pattern._replace(start=pattern.start + step)
    if pattern.partitions > 1:
        yield "partition", pattern._replace(partitions=pattern.partitions - 1)
    for dtype in [t for t in DTYPES.values() if t.size == pattern.dtype.size][:4]:
        if dtype is not pattern.dtype:
            yield "element type", pattern._replace(dtype=dtype)


def _of_dims(pattern: AccessPattern) -> Iterator[tuple[str, AccessPattern]]:
    dims = pattern.dims
    for at, (step, num) in enumerate(dims):

        def changed(*pair: int, at: int = at) -> AccessPattern:
            step, num, offset = pair
            new = (*dims[:at], (step, num), *dims[at + 1 :])
            return pattern._replace(dims=new, offset=pattern.offset + offset)

        if num == 1:
            continue
        yield "reversed dimension", changed(-step, num, step * (num - 1))
        yield "stride", changed(step - 1, num, 0)
        yield "stride", changed(step * 2, num, 0)
        yield "size", changed(step, num - 1, 0)
        yield "size", changed(step, num // 2, 0)
        if at + 1 < len(dims):
            new = (*dims[:at], dims[at + 1], dims[at], *dims[at + 2 :])
            yield "swapped dimensions", pattern._replace(dims=new)
        if num % 2 == 0:
            split = (*dims[:at], (step, 2), (step * 2, num // 2), *dims[at + 1 :])
            yield "swapped dimensions", pattern._replace(dims=split)


def _of_dynamic(pattern: AccessPattern, lowered: Program) -> Iterator[tuple[str, AccessPattern]]:
    dynamic = pattern.dynamic
    if dynamic is None:
        return
    yield "run-time offset", pattern._replace(dynamic=None)
    changes: list[dict[str, Any]] = [
        {"stride": dynamic.stride + 1},
        {"stride": dynamic.stride * 2},
        {"limit": dynamic.limit - 1},
        {"limit": dynamic.limit + 1},
        {"axis": 1 - dynamic.axis},
    ]
    source = dynamic.source
    for _, new in _of_operand(source, lowered):
        changes.append({"source": new})
    for change in changes:
        yield "run-time offset", pattern._replace(dynamic=dynamic._replace(**change))
