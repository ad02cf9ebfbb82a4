"""The proof's findings for programs with spilled tiles and a single change."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

from nkic.base.diagnostics import Reporter
from nkic.compiler.lower import lower
from nkic.compiler.spill import spill
from nkic.machine.targets import Engine
from nkic.program.program import AccessPattern, Body, Item, Loop, Operand, Program, Tensor
from nkic.prove import prove_spilled
from tests.harness.bless import short_sum

SOME = 16  # maximum number of changes of a kind
OTHERS = 2  # number of other tensors from either end that replace an operand's tensor
Changed = tuple[str, Sequence[Item]]  # the kind of change, and the replacement of an item


def page(found: Program, size: int) -> Iterator[str]:
    """Describe the spills for a memory of this size, and the share of changes noticed, by kind."""
    lowered = lower(found, Reporter())
    tight = replace(lowered, target=replace(lowered.target, sbuf_usable=size))
    made = spill(tight)
    proven = prove_spilled(tight, made.program)
    away = [(one.tensor.name, one.stored, one.loaded, one.remade) for one in made.away[0]]
    yield f"in {size:,}: {away}, {proven}"
    bodies: dict[str, list[Body]] = defaultdict(list)
    for kind, body in _bodies(made.program):
        bodies[kind].append(body)
    for kind, all_ in bodies.items():
        chosen = Random(kind).sample(all_, min(SOME, len(all_)))
        cores = [(body, *made.program.cores[1:]) for body in chosen]
        said = [prove_spilled(tight, replace(made.program, cores=one)) for one in cores]
        text = "\n".join("".join(map(str, findings)) for findings in said)
        noticed = sum(map(bool, said))
        yield f"{kind}: {noticed} of {len(said)} noticed, {short_sum(text)}"


def _bodies(found: Program) -> Iterator[tuple[str, Body]]:
    """Return the first core's bodies with one change each."""
    body = found.cores[0]
    for at, item in enumerate(body):
        for kind, items in _changes(item, found.tensors):
            yield kind, (*body[:at], *items, *body[at + 1 :])
        if at + 1 < len(body):
            yield "swapped", (*body[:at], body[at + 1], item, *body[at + 2 :])


def _changes(item: Item, tensors: Sequence[Tensor]) -> Iterator[Changed]:
    yield "left out", ()
    yield "twice", (item, item)
    if isinstance(item, Loop):
        yield "loop of another number", (replace(item, number=item.number + 1),)
        yield "loop without its last item", (replace(item, body=item.body[:-1]),)
        for at, one in enumerate(item.body):
            for kind, items in _changes(one, tensors):
                body = (*item.body[:at], *items, *item.body[at + 1 :])
                yield f"in a loop, {kind}", (replace(item, body=body),)
        return
    yield "another number", (item._replace(number=item.number + 1),)
    yield "later number", (item._replace(number=item.number + 1000),)
    yield "after another", (item._replace(after=(*item.after, 0)),)
    yield "pinned otherwise", (item._replace(pinned=item.pinned + 1),)
    yield "other name", (item._replace(name=f"{item.name}x"),)
    other = Engine.GPSIMD if item.engine is not Engine.GPSIMD else Engine.VECTOR
    yield "other engine", (item._replace(engine=other),)
    yield "other attributes", (item._replace(attributes=(*item.attributes[:-1], None)),)
    for index, operand in enumerate(item.operands):
        for kind, value in _operands(operand, tensors):
            operands = (*item.operands[:index], value, *item.operands[index + 1 :])
            yield kind, (item._replace(operands=operands),)


def _operands(operand: object, tensors: Sequence[Tensor]) -> Iterator[tuple[str, Operand]]:
    if not isinstance(operand, AccessPattern):
        yield "another value", 7 if operand is None else None
        return
    yield "one further", operand._replace(offset=operand.offset + 1)
    yield "a partition less", operand._replace(partitions=operand.partitions - 1)
    yield "an element less", operand._replace(dims=((1, operand.dims[-1][1] - 1),))
    own = operand.tensor
    like = [t for t in tensors if (t.shape, t.dtype) == (own.shape, own.dtype) and t is not own]
    for tensor in like[:OTHERS] + like[-OTHERS:]:
        yield "another tensor", operand._replace(tensor=tensor)
