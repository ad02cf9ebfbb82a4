"""Fuzz one target: `python -m tests.fuzz parse --seconds 600`.

The corpus is kept in `build/fuzz/<target>/`, so that the next run continues from it. A file that
breaks the target is written there as `crash-…`, `timeout-…` or `oom-…`: fix nkic, and keep the
file, minimised, as `seeds/<target>/found_…`.
"""

import argparse
import importlib
import sys
from pathlib import Path

import atheris

LARGEST = 4096  # bytes of an input
SLOWEST = 25  # seconds for one input
MEMORY = 2048  # MiB


def main() -> None:
    """Never returns: the fuzzer ends the process, with 0 if nothing was found."""
    with atheris.instrument_imports(include=["nkic"]):
        targets = importlib.import_module("tests.fuzz.targets")
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", choices=[*targets.TARGETS])
    parser.add_argument("--seconds", type=int, default=1800)
    given, more = parser.parse_known_args()  # the rest is for the fuzzer: -runs=1 FILE
    learnt = Path("build/fuzz") / given.target
    learnt.mkdir(parents=True, exist_ok=True)
    options = [
        f"-max_total_time={given.seconds}",
        f"-max_len={LARGEST}",
        f"-timeout={SLOWEST}",
        f"-rss_limit_mb={MEMORY}",
        f"-artifact_prefix={learnt}/",
    ]
    places = [] if any(not word.startswith("-") for word in more) else _places(given.target, learnt)
    atheris.Setup([sys.argv[0], *options, *more, *places], targets.TARGETS[given.target])
    atheris.Fuzz()


def _places(target: str, learnt: Path) -> list[str]:
    """Return the folders of inputs, the one for new inputs first."""
    corpus = learnt / "corpus"
    corpus.mkdir(exist_ok=True)
    return [str(corpus), str(Path(__file__).parent / "seeds" / target)]


if __name__ == "__main__":
    main()
