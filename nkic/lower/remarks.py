"""Remarks of lower for each line: engines, accumulation, and the structure of transfers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from nkic.base.remark import Kind, Number, Remark, line_of
from nkic.base.text import plural, size
from nkic.ir.program import Instruction, Program, instructions
from nkic.ir.tensors import AccessPattern
from nkic.machine.engines import SHORT_NAMES, Engine
from nkic.machine.patterns import run
from nkic.machine.rules import violations
from nkic.machine.targets import Target
from nkic.machine.timing import timing

STAGE = "lower"
SLOW_ROWS_RATIO = 1.15  # of the time at full rate: above it, short rows are reported
_Key = tuple[tuple[str, int], str]


def remarks(program: Program, lowered: Program) -> Iterator[Remark]:
    """Yield the remarks on the stage's input `program` and its output `lowered`."""
    before, after = _by_line(program), _by_line(lowered)
    for key, code in after.items():
        original = before.get(key, [])
        yield from _engines(code, original, lowered.target)
        yield from _accumulation(code, original)
        yield from _transfers(code, lowered.target)


def _by_line(program: Program) -> dict[_Key, list[Instruction]]:
    """Return the instructions of each line and row."""
    groups: dict[_Key, list[Instruction]] = defaultdict(list)
    for body in program.cores:
        for instruction in instructions(body):
            groups[line_of(instruction.at), instruction.row.name].append(instruction)
    return groups


# ---- engines ---------------------------------------------------------------------------------


def _engines(
    code: Sequence[Instruction], original: Iterable[Instruction], target: Target
) -> Iterator[Remark]:
    """Yield the engine of instructions that several can run, and the time on each."""
    first = code[0]
    if len(first.row.engines) == 1:
        return
    times: Counter[Engine] = Counter()
    for instruction in code:
        times += Counter(_times(instruction, target))
    ran = Counter(instruction.engine for instruction in code if instruction.engine is not None)
    engine = ran.most_common(1)[0][0]
    is_named = any(instruction.engine is not None for instruction in original)
    best = min(times, key=lambda candidate: (times[candidate], candidate.value), default=engine)
    reason = "the kernel names it" if is_named else "nkic chose it"
    ranked = sorted(times.items(), key=_quickest)
    ranking = ", ".join(f"{SHORT_NAMES[e]} {_ns(t)}" for e, t in ranked)
    alternatives = (
        f"alone it takes {ranking}" if len(ranked) > 1 else "no other engine can run these tiles"
    )
    text = f"{first.row.name} runs on {SHORT_NAMES[engine]}: {reason}; {alternatives}"
    numbers: dict[str, Number] = {"instructions": len(code), "engine": SHORT_NAMES[engine]}
    numbers |= {f"{SHORT_NAMES[e].lower()}_ns": t / 1000 for e, t in ranked}
    numbers["named"] = int(is_named)
    is_slow = times[best] < times[engine]
    kind = Kind.MISSED if is_slow else Kind.PASSED
    yield Remark(STAGE, "engine", kind, first.at, text, numbers)


def _times(instruction: Instruction, target: Target) -> dict[Engine, int]:
    """Return the time that each possible engine would be occupied, in picoseconds."""
    times = {}
    for engine in instruction.row.engines:
        facts = instruction._replace(engine=engine).facts(target)
        if engine is instruction.engine or not violations(instruction.row, facts):
            times[engine] = timing(instruction.row, facts, engine).hold
    return times


def _quickest(pair: tuple[Engine, int]) -> tuple[int, str]:
    return pair[1], pair[0].value


def _ns(ps: float) -> str:
    return f"{ps / 1000:,.0f} ns"


# ---- accumulation ----------------------------------------------------------------------------


def _accumulation(code: Sequence[Instruction], original: Sequence[Instruction]) -> Iterator[Remark]:
    """Yield the resolution of instructions that leave accumulation open."""
    flag = code[0].row.accumulates
    if not flag or all(instruction.attribute(flag) is not None for instruction in original):
        return
    adding = sum(bool(instruction.attribute(flag)) for instruction in code)
    parts = len(code) - len(original)
    text = (
        f"{code[0].row.name} does not say whether it accumulates: it overwrites dst "
        f"{plural(len(code) - adding, 'time')} and adds to it {plural(adding, 'time')}"
    )
    if parts:
        text += f"; dst was partly written, so {len(original)} became {len(code)}"
    numbers: Mapping[str, Number] = {
        "instructions": len(code),
        "overwriting": len(code) - adding,
        "accumulating": adding,
        "split": parts,
    }
    yield Remark(STAGE, "accumulation", Kind.PASSED, code[0].at, text, numbers)


# ---- transfers -------------------------------------------------------------------------------


def _transfers(code: Sequence[Instruction], target: Target) -> Iterator[Remark]:
    """Yield descriptors, rows and engines of a line's transfers, and the gain of longer rows."""
    transfers = [
        transfer for transfer in code if transfer.engine is Engine.DMA and _patterns(transfer)
    ]
    if not transfers or transfers[0].row.is_rendezvous:
        return
    first = transfers[0]
    descriptor = int(target.figures["dma.descriptor_bytes"])
    rows = min(_row(transfer) for transfer in transfers)
    total = sum(_bytes(transfer) for transfer in transfers)
    pool = sum(timing(t.row, t.facts(target), Engine.DMA).pool for t in transfers) / 1000
    engines = min(_engines_of(transfer, target) for transfer in transfers)
    pieces = sum(-(-_bytes(transfer) // min(_row(transfer), descriptor)) for transfer in transfers)
    best = total / target.peak_rate
    moved = f"{size(total)} in total: each is" if len(transfers) > 1 else f"{size(total)}: it is"
    text = (
        f"{plural(len(transfers), 'transfer')} of {moved} split into rows of at least {rows} "
        f"bytes ({pieces:,} descriptors) over {engines} of {target.dma_engines} DMA engines"
    )
    is_slow = pool > SLOW_ROWS_RATIO * best
    if is_slow:
        text += (
            f"; they take {pool:,.0f} ns of all DMA engines; rows of {descriptor} bytes would take "
            f"{best:,.0f} ns"
        )
    numbers: Mapping[str, Number] = {
        "transfers": len(transfers),
        "moved_bytes": total,
        "row_bytes": rows,
        "descriptors": pieces,
        "dma_engines": engines,
        "dma_ns": pool,
        "full_rate_ns": best,
    }
    kind = Kind.MISSED if is_slow else Kind.PASSED
    yield Remark(STAGE, "dma-split", kind, first.at, text, numbers)


def _patterns(instruction: Instruction) -> list[AccessPattern]:
    return [operand for operand in instruction.operands if isinstance(operand, AccessPattern)]


def _row(transfer: Instruction) -> int:
    """Return the number of bytes that are contiguous on all sides of a transfer."""
    return min(run(pattern.dims) * pattern.dtype.size for pattern in _patterns(transfer))


def _bytes(transfer: Instruction) -> int:
    tile = _patterns(transfer)[0].tile()
    return tile.elements * tile.dtype.size


def _engines_of(transfer: Instruction, target: Target) -> int:
    return transfer.row.cost(transfer.facts(target)).dma_engines or target.dma_engines
