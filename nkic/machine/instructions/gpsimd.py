"""Rows of the GpSimd engine: eight programmable cores, SBUF only, 32-bit integers."""

from __future__ import annotations

from math import prod

from nkic.base.profiles import Profile
from nkic.machine import costs
from nkic.machine.clock import Standing
from nkic.machine.constraints import (
    elementwise,
    integers_for_bitvec,
    same_dtype,
    same_partitions,
    wrong_operator,
)
from nkic.machine.instructions.parts import COMPARISONS, NOTHING, alu, optional, result, source
from nkic.machine.operands import (
    SBUF,
    Access,
    Attribute,
    AttributeKind,
    Cost,
    Depends,
    Facts,
    Operand,
    Register,
    Row,
    Tile,
    Violation,
)
from nkic.machine.operators import ALU
from nkic.machine.rules import INT32 as INT32_RANGE
from nkic.machine.rules import shown
from nkic.machine.targets import Engine

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
    if isinstance(offset, int) and INT32_RANGE[0] <= offset <= INT32_RANGE[1]:
        return None
    text = f"`offset` is {shown(offset)}, but must be a 32-bit int or a register"
    return Violation("argument-kind", text, "offset", "pass an int from -2147483648 to 2147483647")


def comparison(facts: Facts) -> Violation | None:
    """`cmp_op` is a comparison."""
    op = facts.attributes["cmp_op"]
    if op in COMPARISONS:
        return None
    text = f"`cmp_op` is {op}, but must be one of {', '.join(COMPARISONS)}"
    hint = "use a comparison, such as `nl.greater_equal`"
    return Violation("operator-not-supported", text, "cmp_op", hint)


def changed_indices(facts: Facts, cores: int) -> Violation | None:
    """Warn if an index of iota overflows 32 bits, so that it wraps around, or the type of dst."""
    dst = facts.tile("dst")
    for index in _extremes(facts):
        if not INT32_RANGE[0] <= index <= INT32_RANGE[1]:
            problem, limits = "wraps around: indices are computed in int32", INT32_RANGE
        elif dst.dtype.overflows(index):
            problem = f"does not fit in the {dst.dtype.name} of `dst`"
            limits = int(dst.dtype.lowest), int(dst.dtype.highest)
        else:
            continue
        text = f"an index is {index}, which {problem}, {limits[0]} to {limits[1]}"
        hint = f"keep all indices from {limits[0]} to {limits[1]}, or use a wider type for `dst`"
        return Violation("constant-overflow", text, "pattern", hint)
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
    ),
    Row(
        name="affine_select",
        opcode=101,
        moves=True,
        depends=Depends.ELEMENTWISE,
        selects=("on_true_tile",),
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
    ),
)


# ---- Rows of the GpSimd engine that gather, search and reduce in SBUF ---------------------------
# Each of its eight cores reads and writes 16 partitions.

GPSIMD = (Engine.GPSIMD,)
CORE = 16  # partitions of one GpSimd core
GROUP = 512  # elements that nc_n_gather gathers per program start
LANES = 4  # of the gather's inner loop: t in the published formula
RUNS = (1, 2, 4, 8, 16, 32)  # elements per index of local_gather
MAX_INDICES = 4096
ACROSS = ("add", "average", "maximum", "bitwise_or", "bitwise_and")
NUMBERS = frozenset({"float32", "int32"})
INT32 = frozenset({"int32"})


# Costs


@costs.formula(costs.UNKNOWN)
def gathering(facts: Facts) -> Cost:
    """nc_n_gather: a start for each group of 512, and a cycle per element."""
    dst = facts.tile("dst")
    starts = -(-dst.free // GROUP) * facts.target.figures["gpsimd.start"]
    return costs.engine_cost(facts, dst.free, (facts.tile("indices"), dst), starts)


@costs.formula(costs.PUBLISHED)
def gathering_locally(facts: Facts) -> Cost:
    """local_gather: a start + indices x run / C (F).

    C = (28 + t run) / (t run) / min(4 / size, run), used as a divisor, as it is printed.
    """
    run, size = facts.attributes["num_elem_per_idx"], facts.tile("dst").dtype.size
    requested = facts.attributes["num_valid_indices"]
    moved = facts.tile("dst").free if requested is None else requested * run
    span = LANES * run
    divisor = (28 + span) / span / min(4 / size, run)
    start = facts.target.figures["gpsimd.start"]
    return costs.engine_cost(facts, moved / divisor, (), start)


@costs.formula((Standing.DOCUMENTED, "nki.isa.topk"))
def finding_largest(facts: Facts) -> Cost:
    """topk: 4 n + k cycles, by its documentation."""
    return costs.engine_cost(facts, 4 * facts.attributes["n"] + facts.tile("val_dst").free, ())


# Rules


def whole_snakes(facts: Facts) -> Violation | None:
    """topk reads groups of 16 partitions, each as one row of elements."""
    count = facts.tile("src").partitions
    if count % CORE == 0:
        return None
    text = f"`src` has {count} partitions, which must be a multiple of {CORE}"
    hint = f"pad `src` to {-(-count // CORE) * CORE} partitions"
    return Violation("operand-shape", text, "src", hint)


def snake_length(facts: Facts) -> Violation | None:
    """8 <= n < 65536, and src has at least n elements."""
    n, columns = facts.attributes["n"], facts.tile("src").free
    if not 8 <= n < 1 << 16:
        text = f"`n` is {n}, but must be 8 to 65535"
        hint = "pass the number of elements in 16 partitions of `src`"
        return Violation("index-count", text, "n", hint)
    if columns * CORE >= n:
        return None
    return Violation(
        "operand-shape",
        f"`src` has {columns} elements per partition; {n} elements in {CORE} partitions need "
        f"{-(-n // CORE)}",
        "src",
        f"make `src` {-(-n // CORE)} elements wide, or `n` at most {columns * CORE}",
    )


def largest_count(facts: Facts) -> Violation | None:
    """1 <= k < 32768, and k is at most n."""
    n, k = facts.attributes["n"], facts.tile("val_dst").free
    limit = min(n, (1 << 15) - 1)
    if k <= limit or n < 8:  # too few elements are another rule's
        return None
    text = f"`val_dst` has {k} elements per partition; at most {limit} of {n} elements can be found"
    hint = f"make `val_dst` and `idx_dst` at most {limit} elements wide"
    return Violation("operand-shape", text, "val_dst", hint)


def whole_cores(facts: Facts) -> Violation | None:
    """The tile covers all 16 partitions of each core."""
    src = facts.tile("src_buffer")
    if src.partitions % CORE == 0:
        return None
    text = f"`src_buffer` has {src.partitions} partitions, but must have a multiple of {CORE}"
    hint = f"use tiles of {-(-src.partitions // CORE) * CORE} partitions"
    return Violation("operand-shape", text, "src_buffer", hint)


def run_length(facts: Facts) -> Violation | None:
    """`num_elem_per_idx` is supported, and at most the length of src_buffer."""
    run, src = facts.attributes["num_elem_per_idx"], facts.tile("src_buffer")
    if run not in RUNS:
        text = f"is {run}, but must be one of {', '.join(map(str, RUNS))}"
    elif run > src.free:
        text = f"is {run} and `src_buffer` has {src.free} elements per partition"
    else:
        return None
    return Violation(
        "index-count",
        f"`num_elem_per_idx` {text}",
        "num_elem_per_idx",
        "gather shorter runs with more indices",
    )


def valid_indices(facts: Facts) -> Violation | None:
    """`num_valid_indices` is within what a core holds, and dst has the length gathered."""
    capacity = CORE * facts.tile("index").free
    requested, run = facts.attributes["num_valid_indices"], facts.attributes["num_elem_per_idx"]
    count = capacity if requested is None else requested
    limit, dst = min(capacity, MAX_INDICES), facts.tile("dst")
    if not 1 <= count <= limit:
        return Violation(
            "index-count",
            f"`num_valid_indices` is {count}; a core has {capacity} indices and takes 1 to {limit}",
            "num_valid_indices",
            f"pass `num_valid_indices={limit}`, or gather in several instructions",
        )
    if dst.free == count * run:
        return None
    return Violation(
        "element-count-mismatch",
        f"`dst` has {dst.free} elements per partition; {count} indices of {run} elements each "
        f"gather {count * run}",
        "dst",
        f"make `dst` a tile of shape [{dst.partitions}, {count * run}]",
    )


def across(facts: Facts) -> Violation | None:
    """`op` is one that reduces over partitions."""
    op = facts.attributes["op"]
    return None if op in ACROSS else wrong_operator("op", ALU[op], f"one of {', '.join(ACROSS)}")


def bits_of_one_type(facts: Facts) -> Violation | None:
    """Bitvec operators do not convert types."""
    if ALU[facts.attributes["op"]].group == "arithmetic":
        return None
    return same_dtype("dst", "data")(facts)


def one_row(facts: Facts) -> Violation | None:
    """dst of tensor_partition_reduce has one partition, of the same length as data."""
    dst, data = facts.tile("dst"), facts.tile("data")
    return _one_partition("dst", dst) or _wrong_length(dst, data.free, "`data` has")


def bounds_shape(facts: Facts) -> Violation | None:
    """sequence_bounds uses one partition, and dst has two numbers per element."""
    dst, ids = facts.tile("dst"), facts.tile("segment_ids")
    return (
        _one_partition("dst", dst)
        or _one_partition("segment_ids", ids)
        or _wrong_length(dst, 2 * ids.free, "with two for each id it needs")
    )


def room_for_count(facts: Facts) -> Violation | None:
    """dst of nonzero_with_count has room for the count at the end."""
    dst, src = facts.tile("dst"), facts.tile("src")
    return _wrong_length(dst, src.free + 1, "with the count after them it needs")


def _one_partition(name: str, tile: Tile) -> Violation | None:
    if tile.partitions == 1:
        return None
    text = f"`{name}` has {tile.partitions} partitions, but must have exactly 1"
    hint = f"pass one partition of `{name}`, such as `[0:1, :]`"
    return Violation("operand-shape", text, name, hint)


def _wrong_length(dst: Tile, expected: int, requirement: str) -> Violation | None:
    if dst.free == expected:
        return None
    text = f"`dst` has {dst.free} elements per partition; {requirement} {expected}"
    hint = f"make `dst` a tile of shape [{dst.partitions}, {expected}]"
    return Violation("element-count-mismatch", text, "dst", hint)


GATHER_ROWS = (
    Row(
        name="nc_n_gather",
        opcode=102,
        depends=Depends.BY_PARTITION,
        selects=("data",),
        doc="dst[i] = data[indices[i]], in each partition.",
        operands=(
            result(buffers=SBUF, packed=True),
            source("data", buffers=SBUF, packed=True),
            source("indices", buffers=SBUF, dtypes=frozenset({"uint32"})),
        ),
        engines=GPSIMD,
        cost=gathering,
        rules=(
            elementwise("dst", "indices"),
            same_partitions("dst", "data"),
            same_dtype("dst", "data"),
        ),
    ),
    Row(
        name="local_gather",
        opcode=103,
        depends=Depends.BY_CORE,
        selects=("src_buffer",),
        doc="For each 16 partitions, num_elem_per_idx elements of src_buffer from each index on; "
        "index is read down its columns.",
        operands=(
            result(buffers=SBUF, packed=True),
            source("src_buffer", buffers=SBUF, packed=True),
            source("index", buffers=SBUF, dtypes=frozenset({"uint16"})),
        ),
        attributes=(
            Attribute("num_elem_per_idx", AttributeKind.INT, default=1),
            optional("num_valid_indices", AttributeKind.INT),
        ),
        engines=GPSIMD,
        cost=gathering_locally,
        rules=(
            same_partitions("src_buffer", "index", "dst"),
            same_dtype("dst", "src_buffer"),
            whole_cores,
            run_length,
            valid_indices,
        ),
        source="nki.isa.local_gather; its example in the SDK's tests (units of an index)",
    ),
    Row(
        name="tensor_partition_reduce",
        opcode=104,
        doc="dst[i] = op folded over element i of all partitions of data.",
        parameters=("dst", "op", "data", "name"),
        operands=(result(buffers=SBUF), source("data", buffers=SBUF)),
        attributes=(Attribute("op", AttributeKind.ALU),),
        engines=GPSIMD,
        # Documented only as slow; assumed: one cycle per partition of a core.
        cost=costs.per_element("data", CORE, starts=1, basis=costs.UNKNOWN),
        rules=(one_row, across, integers_for_bitvec("op", "dst", "data"), bits_of_one_type),
    ),
    Row(
        name="sequence_bounds",
        opcode=105,
        doc="The start of the run of equal segment_ids around each element, then the end of each: "
        "n and -1 for elements that are 0.",
        operands=(
            result(buffers=SBUF, dtypes=NUMBERS),
            source("segment_ids", buffers=SBUF, dtypes=NUMBERS),
        ),
        engines=GPSIMD,
        # No public figure; assumed: one pass in each direction.
        cost=costs.per_element("segment_ids", 2, starts=1, basis=costs.UNKNOWN),
        rules=(bounds_shape,),
        source="nki.isa.sequence_bounds; its example in the SDK's tests",
    ),
    Row(
        name="nonzero_with_count",
        opcode=106,
        depends=Depends.FIRST_OF_CORE,
        doc="The indices, counted from index_offset, of the nonzero elements of src, then "
        "padding_val, and last their count; in partitions 0, 16 … 112 only.",
        operands=(result(buffers=SBUF, dtypes=INT32), source("src", buffers=SBUF, dtypes=NUMBERS)),
        attributes=(
            Attribute("index_offset", AttributeKind.INT32, default=0),
            Attribute("padding_val", AttributeKind.INT32, default=-1),
        ),
        engines=GPSIMD,
        # No public figure; assumed: one pass.
        cost=costs.per_element("src", starts=1, basis=costs.UNKNOWN),
        rules=(same_partitions("dst", "src"), room_for_count),
        generation=3,
    ),
    Row(
        name="topk",
        opcode=107,
        doc="The k largest of the n elements in each 16 partitions of src, read down its "
        "columns, in ascending order, and their indices; in every partition of the 16.",
        operands=(
            result("val_dst", buffers=SBUF, dtypes=frozenset({"bfloat16"})),
            result("idx_dst", buffers=SBUF, dtypes=frozenset({"uint32"})),
            source("src", buffers=SBUF, dtypes=frozenset({"bfloat16"})),
        ),
        attributes=(Attribute("n", AttributeKind.INT),),
        engines=GPSIMD,
        cost=finding_largest,
        rules=(
            whole_snakes,
            same_partitions("src", "val_dst", "idx_dst"),
            elementwise("val_dst", "idx_dst"),
            snake_length,
            largest_count,
        ),
        since=Profile.NKI_0_6,
    ),
)
