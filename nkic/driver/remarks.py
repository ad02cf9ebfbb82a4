"""The remarks of all stages of a finished compilation."""

from __future__ import annotations

from collections.abc import Iterator

from nkic.allocate import remarks as allocated
from nkic.base.remark import Remark, in_order
from nkic.driver.compiled import Compiled
from nkic.ir.program import Program
from nkic.ir.schedule import Schedule
from nkic.lower import remarks as lowered
from nkic.schedule import remarks as scheduled
from nkic.search import ScheduledProgram
from nkic.search import remarks as searched

STAGES = (searched.STAGE, lowered.STAGE, allocated.STAGE, scheduled.STAGE)


def remarks(compiled: Compiled, level: int) -> list[Remark]:
    """Return the remarks by line of the kernel, then by stage.

    `level` is that of `CompileOptions`. Stages that did not run, because the compilation started
    from a printed program, have no remarks.
    """
    return in_order(_all(compiled, level), STAGES)


def _all(compiled: Compiled, level: int) -> Iterator[Remark]:
    program: Program = compiled.results["specialise"]
    scheduled_program: ScheduledProgram = compiled.results["search"]
    ordered: Schedule = compiled.results["schedule"]
    lowered_program: Program | None = compiled.results.get("lower")
    if lowered_program is None:
        return
    trial = scheduled_program.searched.kept if scheduled_program.searched is not None else None
    extra = {} if trial is None else {"rest": trial.rest}
    is_kept = trial.in_order if trial is not None else level == 0
    yield from lowered.remarks(program, lowered_program)
    yield from allocated.remarks(scheduled_program.placed, scheduled_program.graphs, **extra)
    yield from scheduled.remarks(
        scheduled_program.placed, scheduled_program.graphs, ordered.serial, is_kept
    )
    yield from searched.remarks(lowered_program, scheduled_program)
