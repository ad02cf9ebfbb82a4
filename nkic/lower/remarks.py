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
ROWS_WORTH = 1.15  # of the time at full rate: above it, short rows are reported
_Key = tuple[tuple[str, int], str]


def remarks(program: Program, lowered: Program) -> Iterator[Remark]:
    """Yield the remarks on the stage's input `program` and its output `lowered`."""
    before, after = _by_line(program), _by_line(lowered)
    for key, code in after.items():
        given = before.get(key, [])
        yield from _engines(code, given, lowered.target)
        yield from _accumulation(code, given)
        yield from _transfers(code, lowered.target)


def _by_line(program: Program) -> dict[_Key, list[Instruction]]:
    """Return the instructions of each line and row."""
    found: dict[_Key, list[Instruction]] = defaultdict(list)
    for body in program.cores:
        for one in instructions(body):
            found[line_of(one.at), one.row.name].append(one)
    return found


# ---- engines ---------------------------------------------------------------------------------


def _engines(
    code: Sequence[Instruction], given: Iterable[Instruction], target: Target
) -> Iterator[Remark]:
    """Yield the engine of instructions that several can run, and the time on each."""
    first = code[0]
    if len(first.row.engines) == 1:
        return
    times: Counter[Engine] = Counter()
    for one in code:
        times += Counter(_times(one, target))
    ran = Counter(one.engine for one in code if one.engine is not None)
    engine = ran.most_common(1)[0][0]
    is_named = any(one.engine is not None for one in given)
    best = min(times, key=lambda one: (times[one], one.value), default=engine)
    why = "the kernel names it" if is_named else "nkic chose it"
    ranked = sorted(times.items(), key=_quickest)
    ranking = ", ".join(f"{SHORT_NAMES[e]} {_ns(t)}" for e, t in ranked)
    more = f"alone it takes {ranking}" if len(ranked) > 1 else "no other engine can run these tiles"
    text = f"{first.row.name} runs on {SHORT_NAMES[engine]}: {why}; {more}"
    numbers: dict[str, Number] = {"instructions": len(code), "engine": SHORT_NAMES[engine]}
    numbers |= {f"{SHORT_NAMES[e].lower()}_ns": t / 1000 for e, t in ranked}
    numbers["named"] = int(is_named)
    is_slow = times[best] < times[engine]
    kind = Kind.MISSED if is_slow else Kind.PASSED
    yield Remark(STAGE, "engine", kind, first.at, text, numbers)


def _times(one: Instruction, target: Target) -> dict[Engine, int]:
    """Return the time that each possible engine would be occupied, in picoseconds."""
    found = {}
    for engine in one.row.engines:
        facts = one._replace(engine=engine).facts(target)
        if engine is one.engine or not violations(one.row, facts):
            found[engine] = timing(one.row, facts, engine).hold
    return found


def _quickest(pair: tuple[Engine, int]) -> tuple[int, str]:
    return pair[1], pair[0].value


def _ns(ps: float) -> str:
    return f"{ps / 1000:,.0f} ns"


# ---- accumulation ----------------------------------------------------------------------------


def _accumulation(code: Sequence[Instruction], given: Sequence[Instruction]) -> Iterator[Remark]:
    """Yield the resolution of instructions that leave accumulation open."""
    flag = code[0].row.accumulates
    if not flag or all(one.attribute(flag) is not None for one in given):
        return
    adding = sum(bool(one.attribute(flag)) for one in code)
    parts = len(code) - len(given)
    text = (
        f"{code[0].row.name} does not say whether it accumulates: it overwrites dst "
        f"{plural(len(code) - adding, 'time')} and adds to it {plural(adding, 'time')}"
    )
    if parts:
        text += f"; dst was partly written, so {len(given)} became {len(code)}"
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
    transfers = [one for one in code if one.engine is Engine.DMA and _patterns(one)]
    if not transfers or transfers[0].row.is_rendezvous:
        return
    first = transfers[0]
    descriptor = int(target.figures["dma.descriptor_bytes"])
    rows = min(_row(one) for one in transfers)
    total = sum(_bytes(one) for one in transfers)
    pool = sum(timing(one.row, one.facts(target), Engine.DMA).pool for one in transfers) / 1000
    engines = min(_engines_of(one, target) for one in transfers)
    pieces = sum(-(-_bytes(one) // min(_row(one), descriptor)) for one in transfers)
    best = total / target.peak_rate
    text = (
        f"{plural(len(transfers), 'transfer')} of {size(total)}: each is split into rows of at "
        f"least {rows} bytes ({pieces:,} descriptors) over {engines} of {target.dma_engines} DMA "
        "engines"
    )
    is_slow = pool > ROWS_WORTH * best
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


def _patterns(one: Instruction) -> list[AccessPattern]:
    return [operand for operand in one.operands if isinstance(operand, AccessPattern)]


def _row(one: Instruction) -> int:
    """Return the number of bytes that are contiguous on all sides of a transfer."""
    return min(run(pattern.dims) * pattern.dtype.size for pattern in _patterns(one))


def _bytes(one: Instruction) -> int:
    tile = _patterns(one)[0].tile()
    return tile.elements * tile.dtype.size


def _engines_of(one: Instruction, target: Target) -> int:
    return one.row.cost(one.facts(target)).dma_engines or target.dma_engines
