"""What an instruction may not do: `violations` asks a row everything there is to ask.

First come the checks that every row shares, read off its operands and attributes: is each
value of the right kind, each tile in a memory the instruction reaches, of a type it takes,
within 128 partitions, encodable as an access pattern. Only when these hold are the row's own
rules asked, which may therefore rely on them. `check` and the verifier of files both use
this, so nothing here raises, whatever the values are.

Rules see tiles, attributes, engine and target, never addresses.

Sources: `nki.isa` (operands and their limits); Trainium/Inferentia2 architecture guide, data
movement (128 partitions, start partitions, four free dimensions, sizes uint16, steps int16);
`nki.isa.nc_matmul` and `nki.language` (types that need NeuronCore-v4).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from nkic.machine.arguments import wrong_arguments
from nkic.machine.engines import Engine
from nkic.machine.facts import Facts
from nkic.machine.indirection import wrong_indices
from nkic.machine.memory import Buffer
from nkic.machine.operands import Row, Violation
from nkic.machine.tiles import compile_for, first_target, wrong_tiles


def violations(row: Row, facts: Facts) -> list[Violation]:
    """Every broken rule of one instruction; empty when it is legal on `facts.target`.

    Where the kernel chose no engine, the rules see the one that `row.choose` picks.
    """
    found = [*wrong_arguments(row, facts)] or [*_too_new(row, facts)]
    if not found:
        found = [*wrong_tiles(row, facts)] or [*wrong_indices(row, facts)]
    if not found:
        if facts.engine is None:
            facts = Facts(facts.target, facts.operands, facts.attributes, row.choose(facts))
        found = [*_wrong_engine(row, facts)]
    if not found:
        found = [v for rule in row.rules if (v := rule(facts)) is not None]
    return [v._replace(message=f"{row.name}: {v.message}") for v in found] if found else found


def signature(row: Row, facts: Facts) -> Hashable:
    """Instructions with equal signatures have equal violations and equal costs.

    Attributes must be hashable: tuples, not lists.
    """
    values = (*facts.operands.values(), *facts.attributes.values())
    # The types too: 1, 1.0 and True are equal to Python, but not to a rule.
    return row.opcode, facts.target.name, facts.engine, values, (*map(type, values),)


def _too_new(row: Row, facts: Facts) -> Iterator[Violation]:
    if row.generation > facts.target.generation:
        target = first_target(row.generation)
        yield Violation(
            "needs-newer-target",
            f"needs {target} or newer; the target is {facts.target.name}",
            help=compile_for(target),
        )
    for attribute in row.attributes:
        value = facts.attributes[attribute.name]
        if attribute.generation > facts.target.generation and value != attribute.default:
            yield Violation(
                "needs-newer-target",
                f"`{attribute.name}` is {value}, which needs {first_target(attribute.generation)}; "
                f"the target is {facts.target.name}",
                attribute.name,
                f"leave `{attribute.name}` out",
            )


def _wrong_engine(row: Row, facts: Facts) -> Iterator[Violation]:
    engine = facts.engine
    if engine not in row.engines:
        names = " or ".join(e.value for e in row.engines)
        yield Violation(
            "engine-not-allowed",
            f"cannot run on {engine.value if engine else 'no engine'}, only on {names}",
            "engine",
            "leave out `engine`, and nkic chooses one",
        )
    elif engine is Engine.GPSIMD:
        yield from _in_psum(facts)


def _in_psum(facts: Facts) -> Iterator[Violation]:
    for name, tile in facts.tiles.items():
        if tile.buffer is Buffer.PSUM:
            yield Violation(
                "gpsimd-psum",
                f"`{name}` is in psum, which the gpsimd engine cannot access",
                name,
                f"use a tile in SBUF as `{name}`, or another engine",
            )
