"""The instruction table for readers: text for `nkic --print ops`, records for its `--json`, and
docs/instructions.md, which this module prints as a command and a test keeps fresh.
"""

from __future__ import annotations

from collections.abc import Iterable

from nkic.base.profiles import LABELS
from nkic.machine.arguments import accepts, takes
from nkic.machine.engines import Engine
from nkic.machine.instructions import ROWS
from nkic.machine.memory import Buffer
from nkic.machine.operands import Attribute, Operand, Row
from nkic.machine.targets import TARGETS
from nkic.machine.tiles import first_target

WIDEST = 26  # characters of a cell that decide how wide its column is


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
            "targets": _targets(row),
            "since": row.since.label,
            "until": row.until.label if row.until else None,
            "later": _later(row),
            "source": row.source,
        }
        for row in _sorted()
    ]


def text() -> str:
    """A line for each instruction: engines, targets and profiles that have it, what it does.
    Below each, parameters that came later; last, how many each target and profile has.
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
    """Of a column; the few cells that would make it too wide stick out."""
    return max(len(cell) for cell in cells if len(cell) <= WIDEST)


def _cells(row: Row) -> tuple[str, ...]:
    has = ["yes" if name in _targets(row) else "-" for name in TARGETS]
    return (row.name, _engines(row.engines), *has, row.since.label, row.doc)


def _targets(row: Row) -> list[str]:
    """The targets that have `row`."""
    return [name for name, target in TARGETS.items() if row.generation <= target.generation]


def _later(row: Row) -> dict[str, str]:
    """Parameters that some profile or target that has `row` does not have."""
    found = {}
    rules: tuple[Operand | Attribute, ...] = (*row.operands, *row.attributes)
    for rule in rules:
        if rule.name in row.by_profile:
            continue
        words = [f"since NKI {rule.since.label}"] if rule.since > row.since else []
        if isinstance(rule, Attribute) and rule.generation > row.generation:
            words.append(f"on {first_target(rule.generation)} and newer")
        if words:
            found[rule.name] = ", ".join(words)
    return found


def _coverage() -> list[str]:
    """How many instructions each target, and each profile, has."""
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
  [M, N]. `accumulate` None is decided before a program is emitted, where a `dst` that is partly
  written makes several matmuls; True adds to what `dst` holds.
- activation: the reduce registers are the engine's state `scalar.accumulator`. `reset` and
  `reset_reduce` start from zero, `reduce` goes on, `reduce_res` takes them afterwards.
- iota, affine_select: `pattern` holds [step, num] pairs, the last one fastest; the nums multiply
  to the elements per partition of `dst`.
- DMA runs in queues, whatever triggers it: `engine` is the sequencer that commands the descriptor
  hardware, sync unless given.
- Collectives: a row moves one tensor. `ncc` functions take lists of tensors (`srcs`, `dsts`), or
  lists for each channel (`srcs_by_channel` …, `channel_ids`), and make an instruction of each.
- A choice such as `reduce_cmd` is held as the name of the member: "reset_reduce".

"""


def _section(row: Row) -> str:
    lines = [
        f"## {row.name}",
        "",
        row.doc,
        "",
        f"`{row.called}({', '.join(row.parameters)})` on {where(row)}.",
        "",
        *(f"- `{name}`: {text}" for name, text in described(row).items()),
        "",
        f"Source: {row.source}.",
    ]
    return "\n".join(lines)


def where(row: Row) -> str:
    """Engines, targets and versions that have an instruction."""
    engines, target = _engines(row.engines), first_target(row.generation)
    return f"{engines}, {target} and newer, since NKI {row.since.label}"


def described(row: Row) -> dict[str, str]:
    """What each parameter of an instruction may be, in the order of the call."""
    shown = {operand.name: _operand(operand) for operand in row.operands}
    shown |= {attribute.name: _attribute(attribute) for attribute in row.attributes}
    if row.spread:
        first, *more = row.spread_operands
        shown[row.spread] = f"a list of 1 to {1 + len(more)} operands, {_operand(first)}"
    for name, when in _later(row).items():
        shown[name] += f" ({when})"
    if row.has_engine_parameter:
        shown["engine"] = f"one of {_engines(row.engines)}; chosen if left out"
    return {name: shown[name] for name in row.parameters if name in shown}


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
    found = frozenset(buffers)
    return sorted(b.value for b in found if b is not Buffer.SHARED_HBM or Buffer.HBM not in found)


def _engines(engines: Iterable[Engine]) -> str:
    return ", ".join(engine.value for engine in engines)


def _sorted() -> list[Row]:
    return sorted(ROWS.values(), key=lambda row: row.name)


if __name__ == "__main__":
    print(markdown(), end="")
