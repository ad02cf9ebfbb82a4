"""Run kernels of checkouts of nki-samples and nki-library, and print a table of worst errors.

    python -m tests.conformance.samples --samples ../nki-samples --library ../nki-library [REGEX]

The exit status is 1 if a kernel that should run does not, or is further from its reference
than its case allows. The checkouts' modules are imported; nothing of a checkout is written.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import nkic
from tests.conformance import library_cases, sample_cases
from tests.conformance.worst_errors import Case, Outcome, run

HEAD = """\
| kernel | inputs | cycles | worst error | of the greatest | in eps |
|---|---|---|---|---|---|"""


def main() -> int:
    """Return the exit status."""
    wanted = options(__doc__)
    nkic.install()
    good = True
    print(HEAD)
    for case, package in chosen(wanted):
        outcome = run(case, package)
        print(row(outcome), flush=True)
        good &= outcome.good or outcome.expected
    return not good


def options(description: str | None) -> argparse.Namespace:
    """Parse the command line: checkouts, and a choice of cases."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--samples", type=Path, help="a checkout of nki-samples")
    parser.add_argument("--library", type=Path, help="a checkout of nki-library")
    parser.add_argument("only", nargs="?", default="", help="cases whose name has this pattern")
    return parser.parse_args()


def chosen(options: argparse.Namespace) -> Iterator[tuple[Case, str]]:
    found: list[tuple[Case, str]] = []
    if options.samples:
        tutorials = options.samples / "src" / "nki_samples" / "tutorials"
        folders = [*(tutorials / name for name in sample_cases.TUTORIALS)]
        sys.path += map(str, [*folders, options.samples / "contributed"])
        found += [(case, "") for case in sample_cases.CASES]
    if options.library:
        sys.path.append(str(options.library / "src"))
        found += [(case, library_cases.PACKAGE) for case in library_cases.CASES]
    return (one for one in found if re.search(options.only, one[0].name))


def row(outcome: Outcome) -> str:
    if outcome.said:
        return f"| {outcome.case.name} | | | {outcome.said} | | |"
    worst = outcome.worst
    counted = "exact" if worst.absolute == 0 else f"{worst.absolute:.2g}"
    measured = f"{counted} | {worst.relative:.1g} | {worst.eps:.2g}"
    mark = "" if outcome.good else " **too much**"
    return f"| {outcome.case.name} | {outcome.inputs} | {outcome.cycles:,} | {measured}{mark} |"


if __name__ == "__main__":
    sys.exit(main())
