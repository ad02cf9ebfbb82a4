"""The options of a run."""

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
    """The options of a run.

    `check_init`: reading uninitialised bytes is a fault. `precise`: round to each destination's
    type; if off, values between instructions stay float32, which separates logic errors from
    rounding. `max_cycles` (of the base clock), `timeout_s` (host seconds): LimitHit beyond.
    `max_iterations`: the limit on the iterations of a loop with a run-time bound. `timeline`: the
    number of instructions whose times are kept. `trace`: the number of events per rank that are
    kept, with the cause of each wait. `watch` is called now and then with the number of
    instructions executed so far. `check_races`: unordered accesses of two cores to shared HBM are a
    fault, and a program with unordered accesses of one core is rejected (ArtifactFailed).
    `accumulate`: the order and type in which instructions add; None is as measured on a device, or
    "exact" if not measured. `blas_threads`: the limit on NumPy's BLAS threads (`threads`).
    `report_bounds`: report the maximum distance of each result element from exact arithmetic.
    `machine`: timing figures that replace the target's own. `values`: if off, only time passes and
    outputs are meaningless; for programs in which no value decides what is run.
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
        """Whether tiles may be views of HBM tensors.

        No option may depend on uninitialised bytes, and rounding must be at its proper place.
        """
        return self.check_init and self.precise and not (self.report_bounds or self.check_races)

    @property
    def threads(self) -> int:
        """The number of BLAS threads: one with float32, as more of them add in another order."""
        return 1 if self.accumulate == "float32" else self.blas_threads

    def target_of(self, executable: Executable) -> Target:
        """Return the target of `executable`, with the timing figures of this run."""
        target = TARGETS[executable.target]
        if self.machine is not None:
            target = self.machine.applied(target)
        return target.used_by(executable.cores)
