"""The options of a compilation, and its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from nkic.artifact.records import Executable
from nkic.base import levels
from nkic.base.diagnostics import CompileFailed, Diagnostic
from nkic.base.levels import Settings
from nkic.base.limits import Limits
from nkic.base.source import SourceFile, Span
from nkic.machine.targets import MachineFile
from nkic.program.program import Program, Schedule, lines

MANY_INSTRUCTIONS = 200_000  # instructions; above it memory matters more than time


@dataclass(frozen=True)
class CompileOptions:
    """How to compile; `last` is the stage after which to stop, `level` how much to optimise."""

    serial: bool = False
    embed_source: bool = False
    last: str = "file-audit"
    max_errors: int = 20
    seconds: float = 900.0  # time limit
    see: Callable[[Span], None] = lambda place: None  # called now and then with the current place
    machine: MachineFile | None = None  # figures of time other than the target's own
    limits: Limits | None = None  # of the kernel's evaluation; None for the defaults
    levels: Settings = field(default_factory=Settings)  # of warnings
    level: int = 1  # 0: engines keep program order; 1: reorder where it pays; 2: try more orders
    spill: bool = False  # tiles may wait in HBM if SBUF has no room for all that are live
    # Stages whose results the caller reads; None for all. Others are freed when no stage needs
    # them.
    keep: frozenset[str] | None = None

    def frees_early(self, program: Program) -> bool:
        """Whether effects and graphs are freed before schedule and recomputed on demand.

        They take about 700 bytes per instruction, and later stages seldom need them.
        """
        is_read = self.keep is None or "search" in self.keep
        return not is_read and len(program.cores) == 1 and len(program.cores[0]) > MANY_INSTRUCTIONS

    @property
    def key(self) -> tuple[object, ...]:
        """Everything that an artifact and its messages depend on; equal in every process."""
        machine = self.machine.hash if self.machine is not None else ""
        flags = (self.serial, self.spill, self.level, self.embed_source, self.max_errors)
        return (*flags, repr(self.levels), machine, repr(self.limits))


DEFAULT = CompileOptions()
# Results that no later stage reads, by the stage after which they can be freed: a program with
# views takes twice the memory of its access patterns, and the graphs as much as both.
DONE_WITH = {"lower-audit": ("specialise",), "allocate": ("depend",), "search": ("lower", "search")}
LEVELS = (0, 1, 2)


class StageTiming(NamedTuple):
    """A stage's time, and the process's peak memory when it ended."""

    stage: str
    ns: int
    peak_bytes: int


@dataclass
class Compiled:
    """The results of the stages so far, by stage name in `STAGES`."""

    source: SourceFile
    results: dict[str, Any] = field(default_factory=dict)
    first_plan: Schedule | None = None  # the schedule from which search started
    timings: list[StageTiming] = field(default_factory=list)
    warnings: tuple[Diagnostic, ...] = ()

    def free_results(self, stage: str, keep: frozenset[str] | None) -> None:
        """Free what nothing reads after `stage`, except the results of `keep` (None for all)."""
        if keep is None:
            return
        for freed in DONE_WITH.get(stage, ()):
            if freed not in keep:
                self.results.pop(freed, None)
        if stage == "search" and "search" not in keep:
            self.first_plan = None

    def remarks(
        self, settings: Settings, sources: Mapping[str, SourceFile]
    ) -> tuple[Diagnostic, ...]:
        """Return the warnings at the requested levels. Raises `CompileFailed` for denied ones."""
        return levels.judged(self.warnings, settings, sources, CompileFailed, self.lines)

    @property
    def executable(self) -> Executable:
        executable: Executable = self.results["emit"]
        return executable

    @property
    def program(self) -> Program | None:
        """The earliest form of the program that is still kept; None before specialise.

        The notes of the kernel's evaluation, the tensors and the places are the same in all forms.
        """
        forms = (self.results.get(stage) for stage in ("specialise", "lower", "allocate"))
        return next((program for program in forms if program is not None), None)

    @property
    def messages(self) -> tuple[str, ...]:
        """The lines that the kernel printed during its evaluation."""
        program = self.program
        return program.messages if program is not None else ()

    def lines(self) -> set[tuple[str, int]]:
        """Return the program's source lines (path, number); none before specialise."""
        program = self.program
        return lines(program) if program is not None else set()

    @property
    def data(self) -> bytes:
        data: bytes = self.results["write"]
        return data
