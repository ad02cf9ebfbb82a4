"""Listings of the instruction table, for people and programs.

Text for `nkic --print ops`, records for its `--json`, and docs/instructions.md, which this module
prints as a command and a test keeps up to date.
"""

from __future__ import annotations

from collections.abc import Iterable

from nkic.base.profiles import LABELS
from nkic.machine.instructions import ROWS
from nkic.machine.operands import Attribute, Operand, Row
from nkic.machine.rules import accepts, takes
from nkic.machine.targets import TARGETS, Buffer, Engine
from nkic.machine.tiles import first_target

WIDEST = 26  # characters of the longest cell that widens its column


def records() -> list[dict[str, object]]:
    """Return the table as JSON-serialisable records, sorted by name."""
    return [
        {
            "name": row.name,
            "opcode": row.opcode,
            "doc": row.doc,
            "parameters": list(row.parameters),
            "engines": [engine.value for engine in row.engines],
            "target": first_target(row.generation),
            "targets": _targets(row),
            "since": row.since.label,
            "until": row.until.label if row.until else None,
            "later": _later(row),
            "source": row.source,
        }
        for row in _sorted()
    ]


def text() -> str:
    """Return one line per instruction: its engines, targets, first profile and description.

    Parameters added later follow each line; totals by target and profile come last.
    """
    head = ("instruction", "engines", *TARGETS, "since", "")
    rows = [head, *(_cells(row) for row in _sorted())]
    widths = [_width(row[column] for row in rows) for column in range(len(head) - 1)]
    lines = []
    for cells, row in zip(rows, [None, *_sorted()], strict=True):
        padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=False)]
        lines.append("  ".join([*padded, cells[-1]]).rstrip())
        lines += [f"    `{name}` {when}" for name, when in (_later(row) if row else {}).items()]
    return "\n".join([*lines, "", *_coverage()])


def _width(cells: Iterable[str]) -> int:
    """Return the width of a column. Cells longer than WIDEST stick out."""
    return max(len(cell) for cell in cells if len(cell) <= WIDEST)


def _cells(row: Row) -> tuple[str, ...]:
    has = ["yes" if name in _targets(row) else "-" for name in TARGETS]
    return (row.name, _engines(row.engines), *has, row.since.label, row.doc)


def _targets(row: Row) -> list[str]:
    return [name for name, target in TARGETS.items() if row.generation <= target.generation]


def _later(row: Row) -> dict[str, str]:
    """Return when each parameter that is newer than `row` was added."""
    additions = {}
    rules: tuple[Operand | Attribute, ...] = (*row.operands, *row.attributes)
    for rule in rules:
        if rule.name in row.by_profile:
            continue
        conditions = [f"since NKI {rule.since.label}"] if rule.since > row.since else []
        if isinstance(rule, Attribute) and rule.generation > row.generation:
            conditions.append(f"on {first_target(rule.generation)} and newer")
        if conditions:
            additions[rule.name] = ", ".join(conditions)
    return additions


def _coverage() -> list[str]:
    targets = [f"{name} {sum(name in _targets(row) for row in ROWS.values())}" for name in TARGETS]
    profiles = [
        f"{label} {sum(row.since <= profile for row in ROWS.values())}"
        for profile, label in LABELS.items()
    ]
    return [
        f"{len(ROWS)} instructions; nki.isa and nki.collectives of NKI 0.7 are complete",
        f"by target: {', '.join(targets)}",
        f"by profile: {', '.join(profiles)}",
    ]


def markdown() -> str:
    return HEAD + "\n\n".join(map(_section, _sorted())) + "\n"


HEAD = """\
# Instructions

Generated from `nkic/machine/instructions`; do not edit. The following holds for all instructions:

- A tile operand is one stream per partition: its elements in the order of the dimensions, the last
  one fastest. Ranks may differ if the counts are equal, and merging dimensions changes nothing. If
  dimensions carry meaning (`axis` of tensor_reduce, the pairs of a double_row matmul, the
  permutation of dma_transpose), they are kept as the kernel wrote them.
- tensor_reduce: `axis` is an ascending tuple of the last dimensions, where 0 is the partition
  dimension. R consecutive elements in the stream of `data` become one, where R is the product of
  these dimensions.
- nc_matmul: free dimensions are flattened, so `stationary` is [K, M], `moving` [K, N] and `dst`
  [M, N]. `accumulate` None is resolved at compile time; a partly written `dst` is then split into
  several matmuls. True adds to the contents of `dst`.
- activation: the reduce registers are the engine state `scalar.accumulator`. `reset` and
  `reset_reduce` start from zero, `reduce` continues, and `reduce_res` receives the final values.
- iota, affine_select: `pattern` holds [step, num] pairs, the last one fastest; the product of the
  nums is the number of elements per partition of `dst`.
- DMA runs in queues, whichever engine triggers it: `engine` is the sequencer that commands the
  descriptor hardware, sync by default.
- Collectives: a row moves one tensor. `ncc` functions take lists of tensors (`srcs`, `dsts`), or
  lists per channel (`srcs_by_channel` …, `channel_ids`), and issue one instruction for each.
- A choice such as `reduce_cmd` is represented by the name of the member: "reset_reduce".

"""


def _section(row: Row) -> str:
    lines = [
        f"## {row.name}",
        "",
        row.doc,
        "",
        f"`{row.called}({', '.join(row.parameters)})` on {availability(row)}.",
        "",
        *(f"- `{name}`: {text}" for name, text in described(row).items()),
        "",
        f"Source: {row.source}.",
    ]
    return "\n".join(lines)


def availability(row: Row) -> str:
    engines, target = _engines(row.engines), first_target(row.generation)
    return f"{engines}, {target} and newer, since NKI {row.since.label}"


def described(row: Row) -> dict[str, str]:
    """Describe the values of each parameter of an instruction, in the order of the call."""
    shown = {operand.name: _operand(operand) for operand in row.operands}
    shown |= {attribute.name: _attribute(attribute) for attribute in row.attributes}
    if row.spread:
        first, *optional = row.spread_operands
        shown[row.spread] = f"a list of 1 to {1 + len(optional)} operands, {_operand(first)}"
    for name, when in _later(row).items():
        shown[name] += f" ({when})"
    if row.has_engine_parameter:
        shown["engine"] = f"one of {_engines(row.engines)}; chosen if left out"
    return {name: shown[name] for name in row.parameters if name in shown}


def _operand(operand: Operand) -> str:
    phrases = [operand.access.value, accepts(operand)]
    if operand.buffers:
        phrases.append("in " + " or ".join(_buffers(operand.buffers)))
    if operand.column:
        phrases.append("one element per partition")
    if operand.dtypes:
        phrases.append(" or ".join(sorted(operand.dtypes)))
    return ", ".join(phrases) + _default(operand.default)


def _attribute(attribute: Attribute) -> str:
    return takes(attribute) + _default(attribute.default)


def _default(value: object) -> str:
    return "" if value is ... else f"; {value!r} if left out"


def _buffers(buffers: Iterable[Buffer]) -> list[str]:
    allowed = frozenset(buffers)
    return sorted(
        b.value for b in allowed if b is not Buffer.SHARED_HBM or Buffer.HBM not in allowed
    )


def _engines(engines: Iterable[Engine]) -> str:
    return ", ".join(engine.value for engine in engines)


def _sorted() -> list[Row]:
    return sorted(ROWS.values(), key=lambda row: row.name)


if __name__ == "__main__":
    print(markdown(), end="")
