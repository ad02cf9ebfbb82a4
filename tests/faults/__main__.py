"""`python -m tests.faults [--limit N] [--write] [CASE ...]`: see the package."""

import argparse
import re
import time
from collections import Counter
from pathlib import Path

from tests.faults.cases import names, subject
from tests.faults.sweep import Table, markdown, sweep

PAGE = Path(__file__).resolve().parents[2] / "docs" / "faults.md"
MARKS = "<!-- table -->", "<!-- end of table -->"


def main() -> int:
    """Return exit code 1 if a fault changed values silently, or raced and was proven."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--limit", type=int, help="faults of each kind and case; default: all")
    parser.add_argument("--write", action="store_true", help="put the table into docs/faults.md")
    parser.add_argument("case", nargs="*")
    options = parser.parse_args()
    table: Table = Counter()
    silent: list[str] = []
    for name in options.case or names():
        before, start = table.total(), time.monotonic()
        found = list(sweep(subject(name), options.limit, table, min(options.limit or 10, 10)))
        silent += found
        taken = time.monotonic() - start
        count = f"{table.total() - before:>7,} outcomes, {len(found)} not proven"
        print(f"{name:32} {count} {taken:8.1f} s", flush=True)
    print(markdown(table))
    for one in silent:
        print(f"not proven: {one}")
    if options.write:
        page = PAGE.read_text("utf-8")
        body = f"{MARKS[0]}\n\n{markdown(table)}\n{MARKS[1]}"
        PAGE.write_text(re.sub(f"{MARKS[0]}.*{MARKS[1]}", lambda _: body, page, flags=re.S))
    return 1 if silent else 0


if __name__ == "__main__":
    raise SystemExit(main())
