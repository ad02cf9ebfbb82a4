"""Migrate kernels of Beta 1 from checkouts to the latest NKI, and print tables of the proofs.

    python -m tests.conformance.migrations --sdk ../aws-neuron-sdk/nki \\
        --samples ../nki-samples --bench ../AccelOpt/NKIBench --results found.jsonl [REGEX]

The checkouts are of versions with Beta 1: the SDK's at v2.26.1, nki-samples' before Beta 2.
Kernels and shapes are those of `beta1_cases`, of the SDK's own tests, and of NKIBench, the last
for smaller problems (`bench_sizes`). Each is migrated from its file; old and new run on the same
random inputs, for the case's shapes and for others that the old kernel takes; a second migration
must change nothing. Nothing of a checkout is written.

With `--results`, rows are appended to a file as they are computed, and kernels in the file are
skipped, so that a stopped run can be resumed. The final tables, those of docs/migration.md, show
all rows in the file; `--table` only prints them. The exit status is 1 if a kernel computes
something else than before, or a second migration changed something.
"""

import argparse
import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from nkic.base.diagnostics import Diagnostic, Level, NkicError
from nkic.base.profiles import Profile
from nkic.compiler.loader import Loader
from nkic.compiler.request import parse_options, request_for
from nkic.migrate.facts import Facts, facts_of, merged, with_others
from nkic.migrate.proof import Finding, Proof, Text, prove
from nkic.migrate.stage import migrate
from nkic.specialise.request import Request
from tests.conformance import beta1_samples, beta1_team
from tests.conformance.bench_sizes import cut, smaller
from tests.conformance.beta1_cases import CASES, SAMPLES, SDK, Case
from tests.conformance.beta1_files import function, with_outputs
from tests.conformance.migration_table import (
    BITS,
    DIFFERENT,
    FAILED,
    NOT_RUN,
    ROUNDING,
    Row,
    added,
    read,
    tables,
)
from tests.conformance.recorded_calls import BENCH, TESTS, of_bench, of_tests
from tests.conformance.worst_errors import Draw

GOAL = Profile.NKI_0_7
for _samples in (beta1_samples, beta1_team):
    assert _samples.SAMPLES == SAMPLES  # importing it registers its cases

VERDICTS = (FAILED, DIFFERENT, ROUNDING, BITS)  # from worst to best


def main() -> int:
    """Return the exit status."""
    options = _options()
    folders = {SDK: options.sdk, SAMPLES: options.samples, BENCH: options.bench}
    folders[TESTS] = options.sdk / "test" if options.sdk else None
    rows = read(options.results)
    files: dict[tuple[str, str], list[Case]] = {}
    for case in () if options.table else _cases(folders):
        files.setdefault((case.checkout, case.file), []).append(case)
    for (checkout, _), cases in files.items():
        wanted = [c for c in cases if _is_open(c, rows, options.only)]
        for row in _rows(wanted, cases, folders[checkout], options) if wanted else ():
            rows[row.label] = row
            added(options.results, row)
            _print(row)
    for line in tables([*rows.values()]):
        print(line)
    return any(row.worst == DIFFERENT or not row.stable for row in rows.values())


def _is_open(case: Case, rows: Mapping[str, Row], only: str) -> bool:
    label = f"{case.checkout}: {case.name}"
    return label not in rows and re.search(only, label) is not None


def _print(row: Row) -> None:
    cycles = f"{row.before:,} → {row.after:,}"
    print(f"{row.label}: {row.worst}, {row.shapes} shapes, {cycles} {row.why}", file=sys.stderr)


def _cases(folders: Mapping[str, Path | None]) -> list[Case]:
    """Return the cases of the given checkouts, with a kernel in the checkout's own file."""
    found = [case for case in CASES if _has(folders[case.checkout], case)]
    tests, bench = folders[TESTS], folders[BENCH]
    found += of_tests(tests) if tests else []
    return [*found, *(of_bench(bench) if bench else ())]


def _has(folder: Path | None, case: Case) -> bool:
    return folder is not None and not case.source and (folder / case.file).is_file()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sdk", type=Path, help="the folder nki of a checkout of the SDK")
    parser.add_argument("--samples", type=Path, help="a checkout of nki-samples")
    parser.add_argument("--bench", type=Path, help="the folder NKIBench of AccelOpt")
    parser.add_argument("--shapes", type=int, default=4, help="how many are compared at most")
    parser.add_argument("--results", type=Path, help="a file of rows, which are not made again")
    parser.add_argument("--table", action="store_true", help="print the tables of that file alone")
    parser.add_argument("--write", type=Path, help="a folder for what the files became")
    parser.add_argument("only", nargs="?", default="", help="cases whose name has this pattern")
    return parser.parse_args()


# ---- one file ------------------------------------------------------------------------------------


class File:
    """A file with kernels: facts from its cases, and its outcome."""

    def __init__(self, path: Path, cases: Sequence[Case]) -> None:
        self.path = str(path)
        self.bench = next((c.name for c in cases if c.checkout == BENCH), "")
        self.loader = Loader.beside(self.path)
        text = smaller(self.bench, path.read_text("utf-8"))
        self.source = self.loader.main(self.path, text.encode())
        self.facts: dict[str, Facts] = {}
        for case in cases:
            with suppress(NkicError):
                request = self.request(case)
                self.facts[case.name] = self._facts(request)
        found = reduce(merged, self.facts.values(), Facts())
        self.made = migrate(self.source, found, Profile.BETA1, GOAL)
        self.new = Loader.beside(self.path)
        self.after = self.new.main(self.path, self.made.text.encode())
        again = migrate(self.after, Facts(), None, GOAL)
        self.is_stable = bool(self.made.left) or again.text == self.made.text

    def _facts(self, request: Request) -> Facts:
        request = replace(request, profile=Profile.BETA1)
        found = facts_of(self.source, request, self.loader)
        return with_others(found, self.source, request, self.loader)

    def request(self, case: Case) -> Request:
        """Return what a case compiles. Raises `NkicError` if the file has no such kernel."""
        inputs, wanted = case.build(Draw(""))
        kernel = function(Path(self.path), case.kernel)
        if kernel is not None and not self.bench and wanted is not None:
            inputs, _ = with_outputs(kernel, inputs, wanted)
        inputs = cut(self.bench, inputs)
        arrays = {n: v for n, v in inputs.items() if isinstance(v, np.ndarray)}
        args = [f"{n}={a.dtype.name}[{','.join(map(str, a.shape))}]" for n, a in arrays.items()]
        how: dict[str, Any] = case.how
        grid = "x".join(map(str, np.atleast_1d(how["grid"]))) if "grid" in how else None
        name = kernel.name if kernel is not None else case.kernel
        raw = parse_options(kernel=name, args=args, grid=grid, target=how.get("target"))
        consts = {n: v for n, v in inputs.items() if n not in arrays}
        request = request_for(self.source, raw, {})
        return replace(request, consts=consts, lnc=how.get("lnc", 1))

    def proof(self, case: Case, shapes: int) -> Proof:
        """Compare old and new source for a case, for this number of shapes."""
        old = Text(self.source, self.loader, Profile.BETA1)
        after = Text(self.after, self.new, GOAL)
        return prove(old, after, self.request(case), shapes=1 if self.bench else shapes)

    def left(self, case: Case) -> tuple[Diagnostic, ...]:
        """Return the errors in functions that the case's kernel is, or calls."""
        lines = {at[0] for at in self.facts[case.name].instructions}
        errors = (one for one in self.made.left if one.level is Level.ERROR and one.primary)
        return tuple(one for one in errors if self._around(one, lines))

    def _around(self, one: Diagnostic, lines: set[int]) -> bool:
        """Return whether some of the lines are in the same function as the diagnostic."""
        assert one.primary is not None
        tree = ast.parse(self.source.text)
        line = one.primary.span.line
        spans = [
            (node.lineno, node.end_lineno or node.lineno)
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef)
        ]
        own = [span for span in spans if span[0] <= line <= span[1]]
        return any(first <= at <= last for first, last in own for at in lines)


def _rows(
    wanted: Sequence[Case], cases: Sequence[Case], folder: Path, options: argparse.Namespace
) -> Iterator[Row]:
    file = File(folder / cases[0].file, cases)
    if options.write:
        name = re.sub(r"\W+", "_", f"{cases[0].checkout}_{cases[0].file}")
        (options.write / f"{name}.py").write_text(file.made.text, "utf-8")
    for case in wanted:
        yield _row(case, file, options.shapes)


def _row(case: Case, file: File, shapes: int) -> Row:
    whole = not any(one.level is Level.ERROR for one in file.made.left)
    row = Row(case.checkout, case.name, case.file, NOT_RUN, NOT_RUN, whole=whole)
    row = replace(row, stable=file.is_stable)
    try:
        proof = file.proof(case, shapes)
    except NkicError as refused:
        return replace(row, why=refused.diagnostics[0].message)
    if not proof.findings:
        return replace(row, why=_said(proof.unproven))
    left = file.left(case)
    return _with_findings(replace(row, left=len(left)), proof.findings, left)


def _with_findings(row: Row, found: tuple[Finding, ...], left: tuple[Diagnostic, ...]) -> Row:
    """Return the row with the proof's findings; `why` is that of the worst verdict."""
    first = found[0]
    worst = min(found, key=lambda one: VERDICTS.index(one.verdict))
    why = _said((*left, *worst.errors)) if worst.verdict == FAILED else worst.differs
    if worst.verdict == BITS and any(one.spills for one in found):
        why = "tiles wait in HBM in both, in the new source with --spill"
    if worst is not first:
        why = f"{worst.arguments}: {why}"
    before, after = first.cycles
    return replace(
        row,
        first=first.verdict,
        worst=worst.verdict,
        shapes=len(found),
        before=before,
        after=after,
        why=why,
    )


def _said(found: tuple[Diagnostic, ...]) -> str:
    return found[0].message if found else ""


if __name__ == "__main__":
    sys.exit(main())
