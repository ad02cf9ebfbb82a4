"""Migrates kernels of Beta 1 from checkouts to today's NKI, and prints a table of what it proves.

    python -m tests.conformance.migrations --sdk ../aws-neuron-sdk/nki \\
        --samples ../nki-samples --bench ../AccelOpt/NKIBench [REGEX]

The checkouts are of versions with Beta 1: the SDK's at v2.26.1, nki-samples' before Beta 2.
Kernels and shapes are those of `beta1_cases`, of the SDK's own tests, and of NKIBench. Each is
migrated from its file; old and new run on the same random inputs, for the case's shapes and for
others that the old kernel takes. Nothing of a checkout is written. The exit status is 1 where a
kernel computes something else than before.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nkic.base.diagnostics import Diagnostic, Level, NkicError
from nkic.base.profiles import Profile
from nkic.driver import pipeline
from nkic.driver.compiled import CompileOptions
from nkic.driver.loader import Loader
from nkic.driver.request import parse_options, request_for
from nkic.migrate.proof import Proof, Text, prove
from nkic.migrate.stage import Migrated, migrate
from nkic.migrate.version import spoken
from tests.conformance import beta1_samples
from tests.conformance.beta1_cases import CASES, SAMPLES, SDK, Case
from tests.conformance.recorded_calls import BENCH, TESTS, of_bench, of_tests
from tests.conformance.worst_errors import Draw

GOAL = Profile.NKI_0_7
assert beta1_samples.SAMPLES == SAMPLES  # its cases are among CASES


VERDICTS = ("failed", "different", "rounding", "bits")  # the worst first


class Outcome(NamedTuple):
    """What became of one kernel: a verdict of the proof, for how many shapes, cycles for the
    first of them, and why it is not proven.
    """

    verdict: str
    shapes: int = 0
    cycles: tuple[int, int] = (0, 0)
    why: str = ""


def main() -> int:
    """Exit status."""
    options = _options()
    folders = {SDK: options.sdk, SAMPLES: options.samples, BENCH: options.bench}
    folders[TESTS] = options.sdk / "test" if options.sdk else None
    chosen = [c for c in _cases(folders) if re.search(options.only, _label(c))]
    counts: Counter[str] = Counter()
    for case in chosen:
        found = _outcome(case, folders[case.checkout], options)
        counts[found.verdict] += 1
        before, after = found.cycles
        cycles = f"{before:,} | {after:,}" if before else "|"
        row = (_label(case), found.verdict, found.shapes or "", cycles, found.why)
        print(f"| {' | '.join(map(str, row))} |", flush=True)
    print(f"{len(chosen)} kernels: " + ", ".join(f"{n} {v}" for v, n in counts.most_common()))
    return bool(counts["different"])


def _cases(folders: Mapping[str, Path | None]) -> list[Case]:
    """Those of the checkouts that were given."""
    found = [case for case in CASES if folders[case.checkout]]
    tests, bench = folders[TESTS], folders[BENCH]
    found += of_tests(tests) if tests else []
    return [*found, *(of_bench(bench) if bench else ())]


def _label(case: Case) -> str:
    return f"{case.checkout}: {case.name}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sdk", type=Path, help="the folder nki of a checkout of the SDK")
    parser.add_argument("--samples", type=Path, help="a checkout of nki-samples")
    parser.add_argument("--bench", type=Path, help="the folder NKIBench of AccelOpt")
    parser.add_argument("--shapes", type=int, default=4, help="how many are compared at most")
    parser.add_argument("--write", type=Path, help="a folder for what the kernels became")
    parser.add_argument("only", nargs="?", default="", help="cases whose name has this pattern")
    return parser.parse_args()


def _outcome(case: Case, folder: Path, options: argparse.Namespace) -> Outcome:
    try:
        made, proof = _migrated(case, str(folder / case.file), options.shapes)
        if proof is None:
            return Outcome("compiles")
    except NkicError as refused:
        return Outcome("not migrated", why=refused.diagnostics[0].message)
    if options.write:
        name = re.sub(r"\W+", "_", _label(case))
        (options.write / f"{name}.py").write_text(made.text, "utf-8")
    if not proof.findings:
        return Outcome("not proven", why=_said(proof.unproven))
    worst = min(proof.findings, key=lambda one: VERDICTS.index(one.verdict))
    left = tuple(one for one in made.left if one.level is Level.ERROR)
    why = _said((*worst.said, *left)) if worst.verdict == "failed" else worst.differs
    if worst is not proof.findings[0]:
        why = f"{worst.arguments}: {why}"
    return Outcome(worst.verdict, len(proof.findings), proof.findings[0].cycles, why)


def _migrated(case: Case, path: str, shapes: int) -> tuple[Migrated, Proof | None]:
    """Migrates the case's file, and compares for so many shapes; what is large is compiled only."""
    inputs, _ = case.build(Draw(""))
    arrays = {n: v for n, v in inputs.items() if isinstance(v, np.ndarray)}
    args = [f"{n}={a.dtype.name}[{','.join(map(str, a.shape))}]" for n, a in arrays.items()]
    how: dict[str, Any] = case.how
    grid = "x".join(map(str, np.atleast_1d(how["grid"]))) if "grid" in how else None
    old, new = Loader.beside(path), Loader.beside(path)
    source = old.main(path)
    raw = parse_options(kernel=case.kernel, args=args, grid=grid, target=how.get("target"))
    consts = {n: v for n, v in inputs.items() if n not in arrays}
    request = replace(request_for(source, raw, {}), consts=consts, lnc=how.get("lnc", 1))
    speech = spoken(source, request, old, Profile.BETA1, GOAL)
    made = migrate(source, speech.facts, speech.start, GOAL)
    text = Text(new.main(path, made.text.encode()), new, GOAL)
    if case.checkout == BENCH:
        options = CompileOptions(last="check")
        pipeline.compile_source(text.source, replace(request, profile=GOAL), new, options)
        return made, None
    return made, prove(Text(source, old, Profile.BETA1), text, request, shapes=shapes)


def _said(found: tuple[Diagnostic, ...]) -> str:
    return found[0].message.replace("|", "\\|") if found else ""


if __name__ == "__main__":
    sys.exit(main())
