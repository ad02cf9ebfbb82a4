"""The instruction table for readers: text for `nkic --print ops`, records for its `--json`, and
docs/instructions.md, which `python -m nkic.machine.listing` prints and a test keeps fresh.
"""

from __future__ import annotations

from collections.abc import Iterable

from nkic.machine.arguments import accepts, takes
from nkic.machine.engines import Engine
from nkic.machine.instructions import ROWS
from nkic.machine.memory import Buffer
from nkic.machine.operands import Attribute, Operand, Row
from nkic.machine.tiles import first_target

# Every instruction of `nki.isa` in NKI 0.6, in the order of its reference.
_PUBLISHED = """
    dma_copy tensor_copy memset tensor_copy_predicated nc_matmul nc_matmul_mx nc_transpose
    dma_transpose tensor_tensor tensor_scalar tensor_reduce tensor_partition_reduce
    tensor_scalar_cumulative activation activation_reduce activate2 iota affine_select
    local_gather nc_n_gather bn_stats bn_aggr tensor_tensor_scan nc_stream_shuffle rng dropout
    set_rng_seed rand_set_state rand_get_state rand2 exponential reciprocal max8
    sequence_bounds scalar_tensor_tensor tensor_scalar_reduce core_barrier dma_compute
    quantize_mx range_select select_reduce sendrecv register_alloc register_move register_load
    register_store nc_find_index8 nc_match_replace8 nonzero_with_count topk
"""
PUBLISHED = tuple(_PUBLISHED.split())
SHORT = {"nki.isa": "nisa", "nki.language": "nl"}  # what kernels import the modules as


def missing() -> tuple[str, ...]:
    """Published instructions without a row."""
    return tuple(name for name in PUBLISHED if name not in ROWS)


def records() -> list[dict[str, object]]:
    """The table, ready for JSON, by name."""
    return [
        {
            "name": row.name,
            "opcode": row.opcode,
            "doc": row.doc,
            "parameters": list(row.parameters),
            "engines": [engine.value for engine in row.engines],
            "target": first_target(row.generation),
            "since": row.since.label,
            "until": row.until.label if row.until else None,
            "source": row.source,
        }
        for row in _sorted()
    ]


def text() -> str:
    """One line per instruction: name, engines, first target, what it does."""
    lines = [
        (row.name, _engines(row.engines), f"{first_target(row.generation)}+", row.doc)
        for row in _sorted()
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    shown = [
        "  ".join((*(cell.ljust(w) for cell, w in zip(line, widths, strict=False)), line[3]))
        for line in lines
    ]
    if missing():
        shown += ["", f"not supported yet: {', '.join(missing())}"]
    return "\n".join(shown)


def markdown() -> str:
    """docs/instructions.md."""
    return HEAD + "\n\n".join(map(_section, _sorted())) + "\n"


HEAD = """\
# Instructions

Generated from `nkic/machine/instructions`; do not edit. What holds for all of them:

- A tile operand is seen per partition as one stream: its elements in the order of the
  dimensions, the last one fastest. Ranks may differ where the counts are equal, and merging
  dimensions changes nothing. Where dimensions mean something (`axis` of tensor_reduce, the pairs
  of a double_row matmul, the permutation of dma_transpose) they are kept as the kernel wrote them.
- tensor_reduce: `axis` is an ascending tuple of the last dimensions, partitions being 0. Of R
  neighbours in the stream of `data`, R the product of these dimensions, one is left.
- nc_matmul: free dimensions are flattened, so `stationary` is [K, M], `moving` [K, N] and `dst`
  [M, N]. `accumulate` None is decided before a program is emitted; True adds to what `dst` holds.
- activation: the reduce registers are the engine's state `scalar.accumulator`. `reset` and
  `reset_reduce` start from zero, `reduce` goes on, `reduce_res` takes them afterwards.
- iota, affine_select: `pattern` holds [step, num] pairs, the last one fastest; the nums multiply
  to the elements per partition of `dst`.
- DMA runs in queues, whatever triggers it: `engine` is the sequencer that commands the descriptor
  hardware, sync unless given.
- A choice such as `reduce_cmd` is held as the name of the member: "reset_reduce".

"""


def _section(row: Row) -> str:
    shown = {operand.name: _operand(operand) for operand in row.operands}
    shown |= {attribute.name: _attribute(attribute) for attribute in row.attributes}
    if row.spread:
        first, *more = row.spread_operands
        shown[row.spread] = f"a list of 1 to {1 + len(more)} operands, {_operand(first)}"
    if row.has_engine_parameter:
        shown["engine"] = f"one of {_engines(row.engines)}; chosen if left out"
    lines = [
        f"## {row.name}",
        "",
        row.doc,
        "",
        f"`{SHORT[row.module]}.{row.name}({', '.join(row.parameters)})` on "
        f"{_engines(row.engines)}, {first_target(row.generation)} and newer.",
        "",
        *(f"- `{name}`: {shown[name]}" for name in row.parameters if name in shown),
        "",
        f"Source: {row.source}.",
    ]
    return "\n".join(lines)


def _operand(operand: Operand) -> str:
    words = [operand.access.value, accepts(operand)]
    if operand.buffers:
        words.append("in " + " or ".join(_buffers(operand.buffers)))
    if operand.column:
        words.append("one element per partition")
    if operand.dtypes:
        words.append(" or ".join(sorted(operand.dtypes)))
    return ", ".join(words) + _default(operand.default)


def _attribute(attribute: Attribute) -> str:
    return takes(attribute) + _default(attribute.default)


def _default(value: object) -> str:
    return "" if value is ... else f"; {value!r} if left out"


def _buffers(buffers: Iterable[Buffer]) -> list[str]:
    return sorted(b.value for b in buffers if b is not Buffer.SHARED_HBM)


def _engines(engines: Iterable[Engine]) -> str:
    return ", ".join(engine.value for engine in engines)


def _sorted() -> list[Row]:
    return sorted(ROWS.values(), key=lambda row: row.name)


if __name__ == "__main__":
    print(markdown(), end="")
