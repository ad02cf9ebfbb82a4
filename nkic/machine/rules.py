"""Legality of instructions: `violations` runs every check that applies to a row.

The checks that all rows share come first and are derived from operands and attributes: each value
has an accepted kind, and each tile is in a memory the instruction reaches, has an accepted type, is
within 128 partitions and can be encoded as an access pattern. Only if these hold do the row's own
rules run, which may therefore rely on them. `check` and the verifier of files both use this module,
so nothing here raises, whatever the values are.

Rules see tiles, attributes, engine and target, never addresses.

Sources: `nki.isa` (operands and their limits); Trainium/Inferentia2 architecture guide, data
movement (128 partitions, start partitions, four free dimensions, sizes uint16, steps int16);
`nki.isa.nc_matmul` and `nki.language` (types that need NeuronCore-v4).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from nkic.base.text import singular
from nkic.machine.arguments import wrong_arguments
from nkic.machine.engines import Engine
from nkic.machine.facts import Facts
from nkic.machine.indirection import wrong_indices
from nkic.machine.memory import Buffer
from nkic.machine.operands import Row, Violation
from nkic.machine.tiles import compile_for, first_target, wrong_tiles


def violations(row: Row, facts: Facts) -> list[Violation]:
    """Return every rule that an instruction breaks; empty if it is legal on `facts.target`.

    If the kernel chose no engine, the rules see the engine that `row.choose` picks.
    """
    broken = [*wrong_arguments(row, facts)] or [*_too_new(row, facts)]
    if not broken:
        broken = [*wrong_tiles(row, facts)] or [*wrong_indices(row, facts)]
    if not broken:
        if facts.engine is None:
            facts = Facts(facts.target, facts.operands, facts.attributes, row.choose(facts))
        broken = [*_wrong_engine(row, facts)]
    if not broken:
        broken = [v for rule in row.rules if (v := rule(facts)) is not None]
    return [v._replace(message=f"{row.name}: {singular(v.message)}") for v in broken]


def signature(row: Row, facts: Facts) -> Hashable:
    """Return a key such that instructions with equal keys have equal violations and costs.

    Attributes must be hashable: tuples, not lists.
    """
    values = (*facts.operands.values(), *facts.attributes.values())
    # Types are part of the key: 1, 1.0 and True are equal in Python, but not to a rule.
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
