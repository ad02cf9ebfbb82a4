"""Rows that draw pseudo-random numbers.

Each engine has its own generators, one per lane: the states "vector.random" and "gpsimd.random".
"""

from __future__ import annotations

from nkic.machine import costs
from nkic.machine.constraints import (
    elementwise,
    engine_since,
    float32_vectors,
    same_dtype,
    same_partitions,
)
from nkic.machine.instructions.parts import result, scalar, source
from nkic.machine.operands import SBUF, Cost, Effects, Facts, Row, Rule, Violation
from nkic.machine.targets import Engine

VECTOR = (Engine.VECTOR,)
BOTH = (Engine.VECTOR, Engine.GPSIMD)
WORDS = {Engine.GPSIMD: 6, Engine.VECTOR: 24}  # of 32 bits: the state of one lane
DRAWN_PER_CYCLE = 4  # by a lane of the vector engine of NeuronCore-v4
INTEGERS = frozenset({"int8", "int16", "int32", "uint8", "uint16", "uint32"})
FLOATS = frozenset({"float8_e4m3", "float8_e5m2", "float16", "bfloat16", "float32", "tfloat32"})
UINT32 = frozenset({"uint32"})
OLDER = "use `engine=nisa.engine.gpsimd`"


def _state(facts: Facts) -> tuple[str, ...]:
    return (f"{(facts.engine or Engine.VECTOR).value}.random",)


def drawing(facts: Facts) -> Effects:
    """Return the effects of a draw, on which the next draw depends."""
    return Effects(_state(facts), _state(facts))


def seeding(facts: Facts) -> Effects:
    return Effects(writes=_state(facts))


def looking(facts: Facts) -> Effects:
    return Effects(reads=_state(facts))


@costs.formula(costs.UNKNOWN)
def drawing_cost(facts: Facts) -> Cost:
    """A cycle per element; from v4 on, per four elements (Trainium3 architecture guide)."""
    fast = facts.target.generation >= 4 and facts.engine is not Engine.GPSIMD
    return costs.per_element("dst", 1 / DRAWN_PER_CYCLE if fast else 1)(facts)


def whole_state(name: str) -> Rule:
    """The tile has all words of a lane's state, whose number depends on the engine."""

    def rule(facts: Facts) -> Violation | None:
        tile, engine = facts.tile(name), facts.engine or Engine.GPSIMD
        expected = WORDS[engine]
        if tile.free == expected:
            return None
        return Violation(
            "operand-shape",
            f"`{name}` has {tile.free} elements per partition, but must have {expected}: the "
            f"state of a lane of the {engine.value} engine",
            name,
            f"make `{name}` a tile of shape [{tile.partitions}, {expected}]",
        )

    return rule


def one_seed(facts: Facts) -> Violation | None:
    """set_rng_seed takes one number for all lanes."""
    seeds = facts.tile("src_seeds")
    if seeds.partitions == 1:
        return None
    text = f"`src_seeds` has {seeds.partitions} partitions, but must have exactly 1"
    return Violation("operand-shape", text, "src_seeds", "pass one element, such as `[0:1, 0:1]`")


def in_order(facts: Facts) -> Violation | None:
    """If both are numbers, `min` is less than `max`."""
    low, high = facts.operands["min"], facts.operands["max"]
    if not isinstance(low, int | float) or not isinstance(high, int | float) or low < high:
        return None
    text = f"`min` is {low} and `max` is {high}; `min` must be less"
    return Violation("random-range", text, "min", "swap them, or use `nisa.memset` for a constant")


def probability(facts: Facts) -> Violation | None:
    """`prob` is from 0 to 1."""
    prob = facts.operands["prob"]
    if not isinstance(prob, int | float) or 0 <= prob <= 1:
        return None
    text = f"`prob` is {prob}, but a probability is from 0 to 1"
    hint = "pass the fraction of the elements to set to 0, such as 0.1"
    return Violation("random-range", text, "prob", hint)


def probability_type(facts: Facts) -> Violation | None:
    """A vector of probabilities is float32 for integer data, any float type for float data."""
    prob, data = facts.maybe("prob"), facts.tile("data")
    if prob is None or prob.dtype.name == "float32":
        return None
    if data.dtype.is_float:
        return None
    return Violation(
        "operand-not-float32",
        f"`prob` is {prob.dtype.name} and `data` is {data.dtype.name}, but `prob` must then be "
        "float32",
        "prob",
        "copy `prob` into a float32 tile with `nisa.tensor_copy` first",
    )


ROWS = (
    Row(
        name="dropout",
        opcode=60,
        doc="dst = data, with each element replaced by 0 with probability prob.",
        operands=(result(), source("data"), scalar("prob", dtypes=FLOATS)),
        engines=VECTOR,
        cost=costs.per_element("data"),
        rules=(
            elementwise("dst", "data"),
            same_partitions("data", "prob"),
            same_dtype("dst", "data"),
            probability,
            probability_type,
        ),
        effects=drawing,
    ),
    Row(
        name="rng",
        opcode=61,
        doc="Fills dst with random bits: of 32 per element, the lowest that fit.",
        parameters=("dst", "engine", "name"),
        operands=(result(dtypes=INTEGERS),),
        engines=BOTH,
        cost=drawing_cost,
        rules=(engine_since(Engine.GPSIMD, 3, "use `engine=nisa.engine.vector`"),),
        effects=drawing,
    ),
    Row(
        name="set_rng_seed",
        opcode=62,
        doc="Sets the vector engine's generators in all lanes from one seed of 32 bits.",
        operands=(
            source("src_seeds", column=True, dtypes=frozenset({"uint32", "int32", "float32"})),
        ),
        engines=VECTOR,
        cost=costs.per_element("src_seeds", basis=costs.UNKNOWN),
        rules=(one_seed,),
        effects=seeding,
    ),
    Row(
        name="rand2",
        opcode=63,
        doc="Fills dst with random numbers, uniform from min to max.",
        operands=(result(dtypes=FLOATS | INTEGERS), scalar("min"), scalar("max")),
        engines=VECTOR,
        cost=drawing_cost,
        rules=(same_partitions("dst", "min", "max"), float32_vectors("min", "max"), in_order),
        effects=drawing,
        generation=4,
    ),
    Row(
        name="rand_set_state",
        opcode=64,
        doc="Sets the state of an engine's generators, each lane from its partition.",
        parameters=("src_seeds", "engine", "name"),
        operands=(source("src_seeds", buffers=SBUF, dtypes=UINT32),),
        engines=BOTH,
        default_engine=lambda facts: Engine.GPSIMD,
        cost=costs.per_element("src_seeds", basis=costs.UNKNOWN),
        rules=(engine_since(Engine.VECTOR, 4, OLDER), whole_state("src_seeds")),
        effects=seeding,
        generation=3,
    ),
    Row(
        name="rand_get_state",
        opcode=65,
        doc="Stores the state of an engine's generators, each lane to its partition.",
        parameters=("dst", "engine", "name"),
        operands=(result(dtypes=UINT32),),
        engines=BOTH,
        default_engine=lambda facts: Engine.GPSIMD,
        cost=costs.per_element("dst", basis=costs.UNKNOWN),
        rules=(engine_since(Engine.VECTOR, 4, OLDER), whole_state("dst")),
        effects=looking,
        generation=3,
    ),
)
