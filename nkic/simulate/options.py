"""What a run may be asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nkic.machine.clock.machine_file import MachineFile
from nkic.machine.operators import SummationOrder
from nkic.machine.targets import TARGETS, Target
from nkic.neff.records import Executable

MAX_ITERATIONS = 1_000_000


@dataclass(frozen=True)
class RunOptions:
    """`check_init`: reading uninitialised bytes is a fault. `precise`: round to each
    destination's type; off, values between instructions stay float32, which splits logic from
    rounding. `max_cycles` (of the base clock), `timeout_s` (host seconds): LimitHit beyond.
    `max_iterations`: as often may one loop run whose end is decided at run time.
    `timeline`: of how many instructions the times are kept. `trace`: how many events of each
    rank are kept, with what each waited for. `watch` is told now and then how many instructions
    have been executed.
    `check_races`: accesses of two cores to shared HBM that nothing orders are a fault, and a
    program in which nothing orders two accesses of one core is refused (ArtifactFailed).
    `accumulate`: in which order and type instructions add up; None is as a device was measured
    to do it, and "exact" where none was. `blas_threads`: how many NumPy's BLAS may use.
    `report_bounds`: how far each element of the results may be from exact arithmetic. `machine`:
    figures of time other than the target's own. `values`: off, only time passes, and outputs mean
    nothing: for programs in which no value decides what is run.
    """

    check_init: bool = True
    precise: bool = True
    max_cycles: int | None = None
    timeout_s: float | None = None
    max_iterations: int = MAX_ITERATIONS
    timeline: int = 0
    check_races: bool = False
    accumulate: SummationOrder | None = None
    blas_threads: int = 1
    report_bounds: bool = False
    machine: MachineFile | None = None
    values: bool = True
    trace: int = 0
    watch: Callable[[int], object] | None = None

    @property
    def copies_less(self) -> bool:
        """Tiles may be pieces of HBM tensors: no option looks at bytes that were not written, and
        rounding is where it belongs.
        """
        return self.check_init and self.precise and not (self.report_bounds or self.check_races)

    def target_of(self, executable: Executable) -> Target:
        """The target of `executable`, with the figures that hold for this run."""
        target = TARGETS[executable.target]
        if self.machine is not None:
            target = self.machine.applied(target)
        return target.used_by(executable.cores)
