"""A compiled kernel's use of the machine: one line, in the same form for both tools."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from nkic.artifact.records import Executable, InstructionRecord, LoopRecord, PatternRecord
from nkic.base.diagnostics import Kind, Remark
from nkic.base.source import NOWHERE
from nkic.base.text import clean, decimal, grouped, share, whole_number
from nkic.machine.targets import PARTITIONS, PSUM_BANK_BYTES, SHORT_NAMES, TARGETS, Engine, Target

# The order of the line: compute first, in the order of the architecture guides.
ENGINES = (Engine.TENSOR, Engine.SCALAR, Engine.GPSIMD, Engine.VECTOR, Engine.SYNC, Engine.DMA)


@dataclass(frozen=True)
class Resources:
    """The figures of a kernel.

    `sbuf_bytes` and `psum_banks` are reserved: the addresses up to the last one that a tensor has,
    over all 128 partitions, of the core that reserves most. `cycles` are of the target's base
    clock, as the scheduler predicts them. `instructions` counts the streams' instructions, a loop's
    body once; `dma_bytes` multiplies by the trip counts of loops, with 1 for a trip count known
    only at run time. `spilled_bytes` of them belong to tiles that wait in HBM because they do not
    fit into SBUF (`nkic --spill`).
    """

    kernel: str
    target: str
    sbuf_bytes: int
    sbuf_limit: int
    psum_banks: int
    psum_limit: int
    instructions: dict[str, int]
    dma_bytes: int
    cycles: int
    spilled_bytes: int = 0

    @property
    def line(self) -> str:
        """`matmul: SBUF 9.2/26.0 MiB (38%) reserved, PSUM 4/8 banks, 1,204 instr (PE 512 …), …`"""
        return f"{self.used}, estimated at {grouped(self.cycles)} cycles (nki-run simulates them)"

    @property
    def used(self) -> str:
        """The line without the scheduler's prediction, for use when a run has measured the time."""
        spilled = f" ({decimal(self.spilled_bytes)} spilled)" if self.spilled_bytes else ""
        engines = " ".join(f"{name} {grouped(n)}" for name, n in self.instructions.items())
        return ", ".join(
            (
                f"{clean(self.kernel)}: SBUF {share(self.sbuf_bytes, self.sbuf_limit)} reserved",
                f"PSUM {self.psum_banks}/{self.psum_limit} banks",
                f"{grouped(sum(self.instructions.values()))} instr ({engines})",
                f"DMA {decimal(self.dma_bytes)}{spilled}",
            )
        )

    def as_json(self) -> dict[str, object]:
        """Empty figures are left out."""
        record = asdict(self)
        if not self.spilled_bytes:
            del record["spilled_bytes"]
        return record


def resources(executable: Executable) -> Resources:
    """Return the figures of a kernel that nkic compiled; missing notes count as 0."""
    target = TARGETS[executable.target]
    code = list(_instructions(executable))
    counts = Counter(engine for engine, _, _ in code)
    return Resources(
        executable.name,
        target.name,
        _note(executable, "sbuf_peak") * PARTITIONS,
        target.sbuf_usable * PARTITIONS,
        -(-_note(executable, "psum_peak") // PSUM_BANK_BYTES),
        target.psum_banks,
        {SHORT_NAMES[engine]: counts[engine] for engine in ENGINES},
        sum(repeat * _moved(item) for engine, item, repeat in code if engine is Engine.DMA),
        _note(executable, "estimate_cycles") or cycles(_note(executable, "estimate_ns"), target),
        _note(executable, "spill_stored") + _note(executable, "spill_loaded"),
    )


def cycles(ns: float, target: Target) -> int:
    """Return a time in cycles of the target's base clock."""
    return round(ns * target.base_clock_mhz / 1000)


def executions(executable: Executable) -> int | None:
    """Return how many instructions a run executes; None if only the run knows a trip count."""
    loops = (i for s in executable.streams for i in s.items if isinstance(i, LoopRecord))
    if any(loop.trips is None for loop in loops):
        return None
    return sum(repeat for _, _, repeat in _instructions(executable))


def _note(executable: Executable, name: str) -> int:
    """Return a number from the build notes, which are for people: 0 if it is malformed."""
    text = executable.meta.get(name, "")
    return whole_number(text, 10**18) or 0


def _instructions(executable: Executable) -> Iterator[tuple[Engine, InstructionRecord, int]]:
    for stream in executable.streams:
        for item, repeat in stream.instructions():
            yield stream.engine, item, repeat


def _moved(item: InstructionRecord) -> int:
    dst = item.operands[0]
    return dst.elements * dst.dtype.size if isinstance(dst, PatternRecord) else 0


# ---- Remarks as text, by source line, and as JSON -----------------------------------------------

SCHEMA = 1
MARKS = {Kind.PASSED: "+", Kind.MISSED: "-", Kind.ANALYSIS: " "}
Shown = Callable[[str], str]  # maps a path to the user's spelling


def text(remarks: Sequence[Remark], shown: Shown) -> str:
    """Return a line per remark; `+` marks what was done for the kernel, `-` what was not."""
    lines = []
    for remark in remarks:
        span = remark.span
        location = "kernel"
        if span is not NOWHERE:
            location = clean(str(span._replace(path=shown(span.path))))
        message = clean(remark.message)
        lines.append(f"{location}: {MARKS[remark.kind]} {remark.stage}/{remark.name}: {message}\n")
    return "".join(lines)


def as_json(remarks: Sequence[Remark], shown: Shown) -> str:
    """Return every remark with its figures, for programs, in the order of the text."""
    record = {"schema": SCHEMA, "remarks": [_record(remark, shown) for remark in remarks]}
    return json.dumps(record, indent=1, allow_nan=False) + "\n"


def _record(remark: Remark, shown: Shown) -> dict[str, Any]:
    span = remark.span
    path = None if span is NOWHERE else shown(span.path)
    calls = [f"{shown(s.path)}:{s.line}" for s in remark.at.user_frames()[1:]] if remark.at else []
    return {
        "stage": remark.stage,
        "name": remark.name,
        "kind": remark.kind.value,
        "path": path,
        "line": span.line,
        "column": span.column,
        "called_from": calls,
        "message": remark.message,
        "numbers": dict(remark.numbers),
    }
