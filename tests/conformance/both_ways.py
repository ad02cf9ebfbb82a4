"""Compile kernels of checkouts of nki-samples and nki-library natively and in the closed world.

    python -m tests.conformance.both_ways --samples ../nki-samples --library ../nki-library [REGEX]

Both must give the same artifact, byte for byte, or the same error messages. The exit status is
1 if they do not. The checkouts' modules are imported; nothing of a checkout is written.
"""

import hashlib
import io
import sys
import warnings
from collections import Counter
from contextlib import redirect_stdout

import nkic
from nkic import api
from tests.conformance.samples import chosen, options
from tests.conformance.worst_errors import Case, Draw

WAYS = ("native", "closed")


def main() -> int:
    """Return the exit status."""
    wanted = options(__doc__)
    nkic.install()
    warnings.simplefilter("ignore")
    found: Counter[str] = Counter()
    for case, package in chosen(wanted):
        native, closed = (made(case, package, way) for way in WAYS)
        word = verdict(native, closed)
        found[word] += 1
        print(f"{word:<9} {case.name}", flush=True)
        if word == "different":
            print(f"  native  {native}\n  closed  {closed}")
    print(", ".join(f"{count} {word}" for word, count in sorted(found.items())))
    return found["different"] > 0


def made(case: Case, package: str, way: str) -> str:
    """Return a hash of the artifact, or the diagnostics of the kernel."""
    draw = Draw(package)
    how = {key: value for key, value in case.how.items() if key != "init_check"}
    try:
        with redirect_stdout(io.StringIO()):
            inputs, _ = case.build(draw)
            prepared = api.prepare(draw.name(case.kernel), (), inputs, evaluate=way, **how)
    except Exception as refused:  # also errors of importing the module
        return f"{type(refused).__name__}: {refused}"
    return "sha256:" + hashlib.sha256(prepared.artifact.data).hexdigest()


def verdict(native: str, closed: str) -> str:
    """Return the result of comparing the two."""
    if native != closed:
        return "different"
    return "same" if native.startswith("sha256:") else "refused"


if __name__ == "__main__":
    sys.exit(main())
