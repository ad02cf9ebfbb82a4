"""What `--verify` does: compiles and runs the old and the new text, and compares every bit.

Both run on the same random inputs, for the shapes that were given and for others that the old text
takes. Bits decide; where they differ, the usual tolerances of the element types say whether it is
rounding, and the first instruction that differs is named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import zip_longest
from typing import Any, NamedTuple

from numpy.typing import NDArray

from nkic.base.diagnostics import Diagnostic, Level, NkicError
from nkic.base.profiles import Profile
from nkic.base.source import SourceFile
from nkic.driver import pipeline
from nkic.driver.compiled import CompileOptions
from nkic.ir.program import Instruction, Program, instructions, tiles
from nkic.machine.dtypes import DType
from nkic.migrate.facts import OVERFLOW
from nkic.migrate.operators import with_operators
from nkic.migrate.shapes import variants
from nkic.neff.load import load
from nkic.neff.records import Executable
from nkic.resolve.library import Load
from nkic.simulate import RunOptions, simulate
from nkic.simulate.comparison.compare import compare
from nkic.simulate.comparison.tolerance import ToleranceSettings
from nkic.simulate.io.bind import Wanted, bind
from nkic.simulate.io.numbers import numbers
from nkic.simulate.io.signature import signature_of
from nkic.simulate.io.specs import parse_fill
from nkic.specialise.request import Request

SHAPES = 4  # that are compared at most
LARGE = 20_000  # instructions from which on the given shapes must do
FILLS = ("randn(0)", "uniform(0,1,0)", "zeros")  # the first on which the old text runs
MOST_CYCLES = 1 << 32


class Text(NamedTuple):
    """A source, how to find what it imports, and the version that it speaks."""

    source: SourceFile
    load: Load
    profile: Profile


class Finding(NamedTuple):
    """The comparison for one set of arguments. `verdict` is "bits", "rounding", "different", or
    "failed" where the new text does not compile or run, as `said` tells. `spills`: tiles wait in
    HBM in both, which the new text does with --spill alone.
    """

    arguments: str
    verdict: str
    cycles: tuple[int, int] = (0, 0)
    differs: str = ""
    said: tuple[Diagnostic, ...] = ()
    spills: bool = False


class Proof(NamedTuple):
    """All comparisons; `unproven` says why there are none: what is wrong with the old text."""

    findings: tuple[Finding, ...]
    unproven: tuple[Diagnostic, ...] = ()

    @property
    def holds(self) -> bool:
        """Something was compared, and nothing was found different."""
        right = ("bits", "rounding")
        return bool(self.findings) and all(one.verdict in right for one in self.findings)


class _Ran(NamedTuple):
    """A text that was compiled and run on inputs that `fill` made."""

    program: Program
    outputs: Mapping[str, NDArray[Any]]
    dtypes: Mapping[str, DType]
    cycles: int
    fill: str
    spills: bool


class _Compiled(NamedTuple):
    program: Program
    executable: Executable
    spills: bool


def prove(old: Text, new: Text, request: Request, shapes: int = SHAPES) -> Proof:
    """Compares the texts for so many variants of the request that the old one takes."""
    findings: list[Finding] = []
    for number, variant in enumerate(variants(request)):
        try:
            before = _ran_on_some(old, variant)
        except NkicError as failure:
            if number == 0:
                return Proof((), _errors(failure))
            continue
        findings.append(_compared(before, new, variant))
        size = sum(1 for body in before.program.cores for _ in instructions(body))
        if len(findings) == shapes or size > LARGE:
            break
    return Proof(tuple(findings))


# ---- compiling and running -----------------------------------------------------------------------


def _ran_on_some(text: Text, request: Request) -> _Ran:
    """Runs a text on the first inputs that it takes. Raises `NkicError`."""
    compiled = _compiled(text, request)
    for fill in FILLS[:-1]:
        try:
            return _ran(compiled, fill)
        except NkicError:
            continue
    return _ran(compiled, FILLS[-1])


def _compiled(text: Text, request: Request, may_spill: bool = False) -> _Compiled:
    """A text as a file; `spills` where SBUF has no room for all its tiles, some of which wait in
    HBM: Beta 1 does so by itself, later versions if they may.
    """
    spoken = replace(request, profile=text.profile)
    options = CompileOptions(spill=may_spill)
    compiled = pipeline.compile_source(text.source, spoken, text.load, options)
    program: Program = compiled.results["lower"]
    spills = any(one.code is OVERFLOW for one in compiled.warnings)
    return _Compiled(program, load(compiled.data), spills)


def _ran(compiled: _Compiled, fill: str) -> _Ran:
    program, executable, spills = compiled
    signature = signature_of(executable)
    bound = bind(signature, Wanted(fill=parse_fill(fill)))
    found = simulate(executable, bound.arrays, RunOptions(max_cycles=MOST_CYCLES))
    dtypes = {one.name: one.dtype for one in signature.outputs}
    return _Ran(program, found.outputs, dtypes, found.cycles, fill, spills)


def _errors(failure: NkicError) -> tuple[Diagnostic, ...]:
    return tuple(one for one in failure.diagnostics if one.level is Level.ERROR)


# ---- comparing -----------------------------------------------------------------------------------


def _compared(before: _Ran, new: Text, request: Request) -> Finding:
    arguments = _arguments(before.program)
    try:
        after = _ran(_compiled(new, _passed(new, request), before.spills), before.fill)
    except NkicError as failure:
        return Finding(arguments, "failed", said=_errors(failure))
    cycles = (before.cycles, after.cycles)
    if _same_bits(before, after):
        return Finding(arguments, "bits", cycles, spills=after.spills)
    verdict = "rounding" if _is_close(before, after) else "different"
    differs = _first_difference(before.program, after.program)
    return Finding(arguments, verdict, cycles, differs, spills=after.spills)


def _passed(text: Text, request: Request) -> Request:
    """The arguments as a caller passes them to a text of its version."""
    return request if text.profile is Profile.BETA1 else with_operators(request)


def _same_bits(before: _Ran, after: _Ran) -> bool:
    return before.outputs.keys() == after.outputs.keys() and all(
        array.shape == after.outputs[name].shape
        and array.tobytes() == after.outputs[name].tobytes()
        for name, array in before.outputs.items()
    )


def _is_close(before: _Ran, after: _Ran) -> bool:
    """Within the tolerances that `nki-run --expected` has for the element types."""
    if before.dtypes != after.dtypes:
        return False
    settings = ToleranceSettings(equal_nan=True)
    for name, dtype in before.dtypes.items():
        old, new = before.outputs[name], after.outputs[name]
        rule = settings.rule(name, dtype)
        if (
            old.shape != new.shape
            or not compare(name, new, dtype, numbers(old, dtype), rule).passed
        ):
            return False
    return True


def _arguments(program: Program) -> str:
    """`a=float32[128,512] b=…`"""
    words = (
        f"{one.name}={one.tensor.dtype.name}[{','.join(map(str, one.tensor.shape))}]"
        for one in program.inputs
    )
    return " ".join(words)


def _first_difference(old: Program, new: Program) -> str:
    """The first instruction that is another one, as one was and as the other is."""
    for pair in zip_longest(_all(old), _all(new)):
        was, now = map(_described, pair)
        if was != now:
            return f"{was} became {now}"
    return "the same instructions, at other addresses or in another order of time"


def _all(program: Program) -> Iterator[Instruction]:
    for body in program.cores:
        yield from instructions(body)


def _described(instruction: Instruction | None) -> str:
    """The instruction with its tiles, without its place; "nothing" where there is none."""
    if instruction is None:
        return "nothing"
    found = (
        f"{name}={tile.dtype.name}{[tile.partitions, *(count for _, count in tile.dims)]}"
        for name, tile in tiles(instruction)
    )
    return f"{instruction.row.called}({', '.join(found)})"
