"""Parametrised rules that several instructions share: each function here returns one rule.

A row lists the rules it needs: `rules=(elementwise("dst", "src"), not_both_psum("a", "b"))`. The
docstring states the condition that must hold. A rule receives tiles that are already known to suit
their operands (`tiles.py`), and ignores operands that are not tiles.
"""

from __future__ import annotations

from collections.abc import Mapping

from nkic.base.text import listed, plural
from nkic.machine.operands import Facts, Rule, Tile, Violation
from nkic.machine.operators import ALU, Operator
from nkic.machine.targets import Buffer, Engine
from nkic.machine.tiles import AS_INT32, compile_for, first_target

# Shapes.


def elementwise(first: str, *others: str) -> Rule:
    """Each of `others` has as many partitions, and elements per partition, as `first`; ranks may
    differ.
    """

    def rule(facts: Facts) -> Violation | None:
        operands = facts.operands
        first_tile = operands[first]
        for name in others:
            tile = operands[name]
            if type(first_tile) is not Tile or type(tile) is not Tile:
                continue
            if first_tile.partitions != tile.partitions:
                return _partitions(first, first_tile, name, tile)
            if first_tile.dims != tile.dims and first_tile.free != tile.free:
                return uneven(first, first_tile, name, tile)
        return None

    return rule


def same_partitions(first: str, *others: str) -> Rule:
    def rule(facts: Facts) -> Violation | None:
        tiles = facts.tiles
        first_tile = tiles.get(first)
        for name in others:
            tile = tiles.get(name)
            if first_tile and tile and first_tile.partitions != tile.partitions:
                return _partitions(first, first_tile, name, tile)
        return None

    return rule


def _partitions(first: str, first_tile: Tile, name: str, tile: Tile) -> Violation:
    return Violation(
        "partition-mismatch",
        f"`{name}` has {tile.partitions} partitions and `{first}` has {first_tile.partitions}; "
        "they must be equal",
        name,
        f"slice `{name}` or `{first}` to the same number of partitions",
        other=first,
    )


def uneven(first: str, first_tile: Tile, name: str, tile: Tile) -> Violation:
    many = f"{plural(first_tile.free, 'element')} per partition"
    hint = f"slice `{name}` to {many}"
    if tile.free < first_tile.free:
        hint = f"broadcast `{name}` to {many}, or slice `{first}` to {tile.free}"
    return Violation(
        "element-count-mismatch",
        f"`{name}` has {plural(tile.free, 'element')} per partition and `{first}` has "
        f"{first_tile.free}; they must be equal",
        name,
        hint,
        other=first,
    )


def elements(name: str, low: int, high: int) -> Rule:
    def rule(facts: Facts) -> Violation | None:
        tile = facts.maybe(name)
        if tile is None:
            return None
        if tile.free > high:
            return too_many(name, tile.free, high, facts)
        return too_few(name, tile, low) if tile.free < low else None

    return rule


def too_many(name: str, count: int, limit: int, facts: Facts) -> Violation:
    text = f"`{name}` has {count} elements per partition; {facts.target.name} takes at most {limit}"
    hint = f"split `{name}` into tiles of at most {limit} elements per partition"
    return Violation("tile-size", text, name, hint)


def too_few(name: str, tile: Tile, limit: int) -> Violation:
    text = f"`{name}` has {tile.free} elements per partition; at least {limit} are needed"
    return Violation("tile-size", text, name, f"pad `{name}` to {limit} elements per partition")


def exactly(name: str, count: int, meaning: str) -> Rule:
    """The operand has exactly `count` elements per partition; `meaning` tells why."""

    def rule(facts: Facts) -> Violation | None:
        tile = facts.maybe(name)
        if tile is None or tile.free == count:
            return None
        text = f"`{name}` has {tile.free} elements per partition, but must have {count}: {meaning}"
        hint = f"make `{name}` a tile of shape [{tile.partitions}, {count}]"
        return Violation("operand-shape", text, name, hint)

    return rule


# Memories.


def not_both_psum(first: str, second: str) -> Rule:
    """At most one of two inputs is in PSUM, which has a single read port."""

    def rule(facts: Facts) -> Violation | None:
        for name in (first, second):
            tile = facts.operands[name]
            if type(tile) is not Tile or tile.buffer is not Buffer.PSUM:
                return None
        text = f"`{first}` and `{second}` are both in psum; at most one of them may be there"
        hint = f"copy `{second}` to SBUF with `nisa.tensor_copy` first"
        return Violation("both-in-psum", text, second, hint)

    return rule


# Types.


def same_dtype(first: str, second: str) -> Rule:
    """Element types are equal: nothing is converted."""

    def rule(facts: Facts) -> Violation | None:
        first_tile, second_tile = facts.maybe(first), facts.maybe(second)
        if first_tile is None or second_tile is None or first_tile.dtype is second_tile.dtype:
            return None
        return Violation(
            "dtype-mismatch",
            f"`{second}` is {second_tile.dtype.name} and `{first}` is {first_tile.dtype.name}; "
            "they must be equal",
            second,
            f"allocate `{first}` as {second_tile.dtype.name}, or reinterpret one with `.view()`",
        )

    return rule


def packed_as_is(facts: Facts) -> Violation | None:
    """Packed types are copied unchanged: conversion goes through float32, which they lack."""
    dst, src = facts.tile("dst").dtype, facts.tile("src").dtype
    if dst is src or "packed" not in (dst.kind, src.kind):
        return None
    text = f"`src` is {src.name} and `dst` is {dst.name}; packed types are not converted"
    return Violation("dtype-mismatch", text, "dst", "reinterpret one of them with `.view()`")


def wide_as_is(facts: Facts) -> Violation | None:
    """64-bit values are copied unchanged: float32 loses bits, and no page names a conversion."""
    dst, src = facts.tile("dst").dtype, facts.tile("src").dtype
    if dst is src or not (dst.is_wide or src.is_wide):
        return None
    wide, name = (src, "src") if src.is_wide else (dst, "dst")
    text = f"`src` is {src.name} and `dst` is {dst.name}; {wide.name} is not converted"
    return Violation("dtype-mismatch", text, name, AS_INT32)


def float32_vectors(*names: str) -> Rule:
    """Tiles in place of numbers are float32."""

    def rule(facts: Facts) -> Violation | None:
        for name in names:
            tile = facts.operands[name]
            if type(tile) is Tile and tile.dtype.name != "float32":
                return not_float32(name, tile)
        return None

    return rule


def not_float32(name: str, tile: Tile) -> Violation:
    """Return the error for a vector operand of arithmetic that is not float32."""
    text = f"`{name}` is {tile.dtype.name}, but must be float32"
    hint = f"copy `{name}` into a float32 tile with `nisa.tensor_copy` first"
    return Violation("operand-not-float32", text, name, hint)


def integers_for_bitvec(attribute: str, *names: str) -> Rule:
    """With a bitvec operator, which works on the bits of integers, every tile holds integers."""

    def rule(facts: Facts) -> Violation | None:
        op = facts.attributes[attribute]
        if op is None or ALU[op].group != "bitvec":
            return None
        wrong = {name: facts.operands[name] for name in names}
        floats = {name: t for name, t in wrong.items() if type(t) is Tile and not _has_bits(t)}
        return _not_integers(attribute, op, floats) if floats else None

    return rule


def _has_bits(tile: Tile) -> bool:
    return tile.dtype.is_integer or tile.dtype.kind == "bool"


def _not_integers(attribute: str, op: str, floats: Mapping[str, Tile]) -> Violation:
    """Return the error for `floats`: it names all and points at the last one, which is data."""
    last, tile = list(floats.items())[-1]
    types = [f"`{name}` is {operand.dtype.name}" for name, operand in floats.items()]
    names = listed(f"`{name}`" for name in floats)
    text = f"`{attribute}` is {op}, which works on the bits of integers, and {listed(types)}"
    hint = (
        f"reinterpret {names} with `.view(nl.uint{8 * min(tile.dtype.size, 4)})`; if whole numbers "
        "are meant and not the bits of floats, `nisa.tensor_copy` into nl.int32 first"
    )
    if (logical := op.replace("bitwise", "logical")) in ALU and logical != op:
        hint += f"; nl.{logical} combines truth values"
    return Violation("bitvec-dtype", text, last, hint)


# Operators.


def binary(*attributes: str) -> Rule:
    """The engine has the operators, and they take two inputs."""
    return operators(attributes, arity=2)


def arithmetic(*attributes: str) -> Rule:
    """The engine has the operators, and they are binary arithmetic ones."""
    return operators(attributes, arity=2, group="arithmetic")


def reducing(attribute: str) -> Rule:
    """The engine has the operator, and it can reduce."""
    return operators((attribute,), arity=2, fold=True)


def operators(
    attributes: tuple[str, ...], arity: int = 0, group: str = "", fold: bool = False
) -> Rule:
    """The engine has the operators, and they have this arity (0: any) and group ("": any)."""

    def rule(facts: Facts) -> Violation | None:
        for attribute in attributes:
            name = facts.attributes[attribute]
            if name is None:
                continue
            op = ALU[name]
            if (arity and op.arity != arity) or (group and op.group != group):
                return wrong_operator(attribute, op, _described(arity, group))
            if fold and not op.reducible:
                return wrong_operator(attribute, op, "one that can reduce")
            if not has_operator(facts, op):
                return no_operator(attribute, op, facts)
        return None

    return rule


def _described(arity: int, group: str) -> str:
    inputs = f" with {arity} inputs" if arity else ""
    return f"{'an arithmetic' if group else 'an'} operator{inputs}"


def has_operator(facts: Facts, op: Operator) -> bool:
    """Return whether the engine has `op`; gpsimd has more operators on tiles of 32-bit integers."""
    generation = facts.target.generation
    if facts.engine is None or op.runs_on(facts.engine, generation):
        return True
    return facts.engine is Engine.GPSIMD and op.integers and all_int32(facts)


def all_int32(facts: Facts) -> bool:
    """Return whether every tile is int32 or uint32, on which gpsimd computes exactly."""
    return all(tile.dtype.name in ("int32", "uint32") for tile in facts.tiles.values())


def wrong_operator(attribute: str, op: Operator, expected: str) -> Violation:
    text = f"`{attribute}` is {op.name}, but must be {expected}"
    hint = "see `nkic --print ops` for the operators of each instruction"
    return Violation("operator-not-supported", text, attribute, hint)


def no_operator(attribute: str, op: Operator, facts: Facts) -> Violation:
    """Return the error for an operator that this engine of this target lacks."""
    engine = facts.engine.value if facts.engine else "chosen"
    engines = [e.value for e in op.engines_of(facts.target.generation)]
    if engines:
        hint = f"use `engine=nisa.engine.{engines[0]}` if the instruction allows it"
    elif op.engines:
        hint = compile_for(first_target(min(op.engines.values())))
    else:  # only an instruction of its own has it, as for average
        hint = "use another operator"
    return Violation(
        "operator-not-supported",
        f"`{attribute}` is {op.name}, which the {engine} engine of {facts.target.name} "
        "does not have",
        attribute,
        hint,
    )


# Engines.


def engine_since(engine: Engine, generation: int, instead: str) -> Rule:
    """`engine` runs this instruction only from NeuronCore version `generation` on."""

    def rule(facts: Facts) -> Violation | None:
        if facts.engine is not engine or facts.target.generation >= generation:
            return None
        return Violation(
            "engine-not-allowed",
            f"runs on the {engine.value} engine from {first_target(generation)} on; "
            f"the target is {facts.target.name}",
            help=instead,
        )

    return rule
