"""The build notes that a file carries."""

from __future__ import annotations

from dataclasses import replace

from nkic import __version__, allocate, pace
from nkic.ir.schedule import Schedule
from nkic.machine.memory import Buffer
from nkic.neff.records import Executable


def build_notes(ordered: Schedule, level: int) -> dict[str, str]:
    """Return the producer, options and resource use of a build; the program does not depend on
    them. Of the levels only 0 is noted, which keeps the author's order.
    """
    program = ordered.program
    return {
        "producer": f"nkic {__version__}",
        **program.notes,
        "serial": "yes" if ordered.serial else "no",
        "sbuf_peak": str(allocate.peak(program, Buffer.SBUF)),
        "psum_peak": str(allocate.peak(program, Buffer.PSUM)),
        "machine": program.target.machine or "default",
        "estimate_ns": f"{ordered.estimate_ns:.0f}",
        **({"level": "0"} if not level else {}),
    }


def timed(executable: Executable, ordered: Schedule) -> Executable:
    """Replace the scheduler's estimate with the simulated time of a run, if it can be determined.

    It is the scheduler's own simulated time, or else that of the records.
    """
    target = ordered.program.target
    picoseconds: int | None = round(ordered.estimate_ns * 1000)
    if not ordered.is_timed:
        picoseconds = pace.duration(executable, target.used_by(executable.cores))
    if picoseconds is None:
        return executable
    cycles = -(-picoseconds * target.base_clock_mhz // 1_000_000)
    timing = {"estimate_ns": f"{picoseconds / 1000:.0f}", "estimate_cycles": str(cycles)}
    return replace(executable, meta={**executable.meta, **timing})
