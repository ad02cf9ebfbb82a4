"""Rows of the GpSimd engine: eight programmable cores, SBUF only, 32-bit integers."""

from __future__ import annotations

from math import prod

from nkic.machine import costs
from nkic.machine.arguments import INT32, shown
from nkic.machine.constraints import elementwise
from nkic.machine.engines import Engine
from nkic.machine.facts import Facts, Register
from nkic.machine.instructions.parts import COMPARISONS, NOTHING, alu, result, source
from nkic.machine.operands import (
    SBUF,
    Access,
    Attribute,
    AttributeKind,
    Depends,
    Operand,
    Row,
    Violation,
)

MAX_PATTERN = 4  # pairs of an index pattern
OFFSET = Operand("offset", Access.READ, buffers=NOTHING, number=True, register=True, default=0)


def index_pattern(facts: Facts) -> Violation | None:
    """`pattern` has 1 to 4 [step, num] pairs, with as many elements as dst per partition."""
    pattern, dst = facts.attributes["pattern"], facts.tile("dst")
    nums = [num for _, num in pattern]
    if not 1 <= len(nums) <= MAX_PATTERN:
        text = f"has {len(nums)} dimensions; the limit is {MAX_PATTERN}"
    elif min(nums) < 1:
        text = f"counts {min(nums)} in a dimension; every num must be at least 1"
    elif prod(nums) != dst.free:
        text = f"counts {prod(nums)} elements and `dst` has {dst.free} per partition"
    else:
        return None
    return Violation(
        "index-pattern",
        f"`pattern` {text}",
        "pattern",
        f"give [step, num] pairs whose nums multiply to {dst.free}, such as [[1, {dst.free}]]",
    )


def integer_offset(facts: Facts) -> Violation | None:
    """A number in place of `offset` is an int32: indices are computed in 32 bits."""
    offset = facts.operands["offset"]
    if isinstance(offset, Register):
        return None
    if isinstance(offset, int) and INT32[0] <= offset <= INT32[1]:
        return None
    return Violation(
        "argument-kind",
        f"`offset` is {shown(offset)}, but must be a 32-bit int or a register",
        "offset",
        "pass an int from -2147483648 to 2147483647",
    )


def comparison(facts: Facts) -> Violation | None:
    """`cmp_op` is a comparison."""
    op = facts.attributes["cmp_op"]
    if op in COMPARISONS:
        return None
    return Violation(
        "operator-not-supported",
        f"`cmp_op` is {op}, but must be one of {', '.join(COMPARISONS)}",
        "cmp_op",
        "use a comparison, such as `nl.greater_equal`",
    )


def changed_indices(facts: Facts, cores: int) -> Violation | None:
    """Warn if an index of iota overflows 32 bits, so that it wraps around, or the type of dst."""
    dst = facts.tile("dst")
    for index in _extremes(facts):
        if not INT32[0] <= index <= INT32[1]:
            problem, limits = "wraps around: indices are computed in int32", INT32
        elif dst.dtype.overflows(index):
            problem = f"does not fit in the {dst.dtype.name} of `dst`"
            limits = int(dst.dtype.lowest), int(dst.dtype.highest)
        else:
            continue
        return Violation(
            "constant-overflow",
            f"an index is {index}, which {problem}, {limits[0]} to {limits[1]}",
            "pattern",
            f"keep all indices from {limits[0]} to {limits[1]}, or use a wider type for `dst`",
        )
    return None


def _extremes(facts: Facts) -> tuple[int, ...]:
    """Return the least and the greatest index before wrapping; empty if a register decides."""
    offset, pattern = facts.operands["offset"], facts.attributes["pattern"]
    if not isinstance(offset, int):
        return ()
    channels = facts.attributes["channel_multiplier"], facts.tile("dst").partitions
    extents = [step * (num - 1) for step, num in (*pattern, channels)]
    return offset + sum(min(0, extent) for extent in extents), offset + sum(
        max(0, extent) for extent in extents
    )


ROWS = (
    Row(
        name="iota",
        opcode=100,
        doc="Fills dst with offset + partition x channel_multiplier + the pattern's index.",
        parameters=("dst", "pattern", "offset", "channel_multiplier", "name"),
        operands=(result(buffers=SBUF), OFFSET),
        attributes=(
            Attribute("pattern", AttributeKind.PATTERN),
            Attribute("channel_multiplier", AttributeKind.INT32, default=0),
        ),
        engines=(Engine.GPSIMD,),
        cost=costs.per_element("dst", starts=1),
        rules=(index_pattern, integer_offset),
        warn=changed_indices,
        source="nki.isa.iota",
    ),
    Row(
        name="affine_select",
        opcode=101,
        moves=True,
        depends=Depends.ELEMENTWISE,
        doc="dst = on_true_tile where an index computed as in iota compares true with 0, else "
        "on_false_value.",
        parameters=(
            *("dst", "pattern", "channel_multiplier", "on_true_tile", "on_false_value"),
            *("cmp_op", "offset", "name"),
        ),
        operands=(result(buffers=SBUF), source("on_true_tile", buffers=SBUF), OFFSET),
        attributes=(
            Attribute("pattern", AttributeKind.PATTERN),
            Attribute("channel_multiplier", AttributeKind.INT32),
            Attribute("on_false_value", AttributeKind.NUMBER, into="dst"),
            alu("cmp_op", default="equal"),
        ),
        engines=(Engine.GPSIMD,),
        cost=costs.per_element("dst", starts=1),
        rules=(elementwise("dst", "on_true_tile"), index_pattern, integer_offset, comparison),
        source="nki.isa.affine_select",
    ),
)
