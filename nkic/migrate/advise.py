"""Follow the advice on a kernel, step by step: each is compiled, run, compared and timed before it
is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from numpy.typing import NDArray

from nkic.artifact.records import Executable
from nkic.base.diagnostics import NkicError
from nkic.base.source import SourceFile
from nkic.machine.dtypes import DType
from nkic.migrate.edits import edited
from nkic.report.verdict import MIN_GAIN, Answer, Insight, insight
from nkic.simulate import Result, RunOptions, simulate
from nkic.simulate.compare import agreement
from nkic.simulate.inputs import Wanted, bind, parse_fill, signature_of

MAX_STEPS = 8
MAX_EVENTS = 100_000  # of a run; longer ones have no advice
MAX_CYCLES = 1 << 32
WIDE = "uniform(-1e4,1e4,0)"  # shows what a limit changes
FILLS = ("randn(0)", "uniform(0,1,0)", WIDE, "zeros")  # of inputs; the first that runs is timed

Compile = Callable[[str], tuple[SourceFile, Executable]]


@dataclass(frozen=True)
class Step:
    """An advice that was followed: the kernel's times before and after, in nanoseconds.

    `verdict` is "bits" or "rounding" for outputs that are the same so far; else the step is not
    taken: "different", "failed" if the new text does not compile or run, or "slower".
    """

    answer: Answer
    before_ns: float
    after_ns: float
    verdict: str

    @property
    def taken(self) -> bool:
        return self.verdict in ("bits", "rounding")

    @property
    def gain(self) -> float:
        """The share of the time that is saved."""
        return 1 - self.after_ns / self.before_ns


@dataclass(frozen=True)
class Advised:
    """The text after all steps that were taken, and the advice left, which a person can follow."""

    text: str
    steps: tuple[Step, ...]
    left: tuple[Answer, ...]


@dataclass(frozen=True)
class _Ran:
    source: SourceFile
    fills: tuple[str, ...]
    outputs: Mapping[str, NDArray[Any]]
    dtypes: Mapping[str, DType]
    time_ns: float
    analysis: Insight | None

    @property
    def advice(self) -> list[Answer]:
        return self.analysis.verdict.advice if self.analysis is not None else []


def advise(text: str, compile: Compile) -> Advised:
    """Follow the advice on a kernel. Raises `NkicError` if it does not compile or run."""
    first = now = _ran(text, compile)
    steps: list[Step] = []
    while sum(step.taken for step in steps) < MAX_STEPS:
        refused = {step.answer.name for step in steps if not step.taken}
        found = None
        for tried, after in _tries(now, first, compile, refused):
            steps.append(tried)
            found = after if tried.taken else None
        if found is None:
            break
        now = found
    return Advised(now.source.text, tuple(steps), tuple(now.advice))


def _tries(
    now: _Ran, first: _Ran, compile: Compile, refused: set[str]
) -> Iterator[tuple[Step, _Ran]]:
    for answer in now.advice:
        if answer.name in refused:
            continue
        step = None
        for text in edited(now.source, answer):
            try:
                after = _ran(text, compile, first.fills)
            except NkicError:
                step = step or (Step(answer, now.time_ns, now.time_ns, "failed"), now)
                continue
            verdict = _compared(first, after)
            ways = [ran.analysis for ran in (now, after) if answer.name.startswith("larger-tiles:")]
            if len({frozenset(_work(each).items()) for each in ways if each is not None}) > 1:
                verdict = "different"
            if after.time_ns > (1 - MIN_GAIN) * now.time_ns:
                verdict = "slower"
            step = Step(answer, now.time_ns, after.time_ns, verdict), after
            if step[0].taken:
                break
        if step is not None:
            yield step
            if step[0].taken:
                return


def _ran(text: str, compile: Compile, fills: Sequence[str] = ()) -> _Ran:
    """Run a kernel on these inputs, or on all on which it runs; with zeros only if with no others:
    they show few differences, and NaN, as of a logarithm, hides them.
    """
    source, executable = compile(text)
    signature = signature_of(executable)
    ran: dict[str, Result] = {}
    for fill in fills or FILLS:
        if fill == FILLS[-1] and ran:
            break
        try:
            bound = bind(signature, Wanted(fill=parse_fill(fill)))
            options = RunOptions(max_cycles=MAX_CYCLES, trace=0 if ran else MAX_EVENTS)
            ran[fill] = simulate(executable, bound.arrays, options)
        except NkicError:
            if fills or fill == FILLS[-1]:
                raise
    result = next(iter(ran.values()))
    recorded = result.recorded
    complete = recorded is not None and recorded.trace.complete and recorded.can_repeat
    analysis = insight(recorded.trace, recorded.again) if recorded and complete else None
    types = {parameter.name: parameter.dtype for parameter in signature.outputs}
    outputs = {
        f"{name} {f}": array for f, one in ran.items() for name, array in one.outputs.items()
    }
    dtypes = {f"{name} {fill}": dtype for fill in ran for name, dtype in types.items()}
    return _Ran(source, tuple(ran), outputs, dtypes, result.time_ns, analysis)


def _work(found: Insight) -> Counter[str]:
    """Return the elements that each kind of instruction writes, but for tiles of one column."""
    work, tensors = Counter[str](), found.trace.executable.tensors
    for event in found.trace.events:
        for use in found.accounts.uses_of(event):
            if (row := event.record.row) and use.writes and prod(tensors[use.tensor].shape[1:]) > 1:
                work[row.name] += use.pattern.elements
    return work


def _compared(first: _Ran, after: _Ran) -> str:
    """Compare the outputs with the original's, bit by bit or within their types' tolerances.

    Sums of wide inputs cancel: these are compared if the others agree in all bits.
    """
    every = first.outputs.keys() | after.outputs.keys()
    verdict = "bits" if first.dtypes == after.dtypes else "different"
    for names in ({n for n in every if WIDE not in n}, every):
        if verdict == "bits":
            old, new = ({n: a for n, a in r.outputs.items() if n in names} for r in (first, after))
            verdict = agreement(old, new, first.dtypes, after.dtypes)
    return verdict
