"""Kernels with mistakes are rejected at a place, or compile to a proven artifact.

There is never a traceback and never a failing proof: the stages' results are audited and verified.
`make test-all` runs the thousand; the message of a failure shows the change.
"""

from functools import cache
from pathlib import Path

import pytest

from nkic.base.diagnostics import CompileFailed, Diagnostic, NkicError, UsageFailed
from nkic.compiler.loader import Loader
from nkic.compiler.pipeline import compile_source
from nkic.compiler.request import parse_options, request_for
from tests.harness.mutants import mutants

PROJECT = Path(__file__).resolve().parents[2]
PAGES = PROJECT / "nkic" / "base" / "explain"
COUNT, BATCH = 1200, 60
# Errors about the file as a whole, or about its call.
OF_THE_FILE = {"no-kernel", "which-kernel", "bad-grid"}


@cache
def sources() -> list[str]:
    """Return the samples, and the right examples of the pages on errors."""
    samples = sorted((PROJECT / "samples").glob("*/kernel.py"))
    pages = [page.read_text("utf-8") for page in sorted(PAGES.glob("*.md"))]
    right = [text.rpartition("## Right\n```python\n")[2].partition("```")[0] for text in pages]
    found = [text for text in right if text.startswith("# /// nkic")]
    kernels = [path.read_text("utf-8") for path in samples]
    assert len(kernels) > 10
    assert len(found) > 90
    return [text for pair in zip(kernels * 20, found, strict=False) for text in pair]


def verdict(text: str) -> tuple[Diagnostic, ...]:
    """Return the errors of a kernel's file that cannot be compiled, or nothing."""
    loader = Loader.beside("kernel.py")
    try:
        source = loader.main("kernel.py", text.encode())
        compile_source(source, request_for(source, parse_options(), {}), loader)
    except NkicError as failure:
        assert isinstance(failure, CompileFailed | UsageFailed)
        return failure.diagnostics
    return ()


def check(seed: int, count: int) -> int:
    """Compile this number of mutants; return how many of them compiled."""
    compiled = 0
    for text in mutants(sources(), seed, count):
        try:
            said = verdict(text)
        except Exception as error:
            pytest.fail(f"{type(error).__name__}: {error}\n{text}")
        compiled += not said
        for one in said:
            placed = one.primary is not None and one.primary.span.path == "kernel.py"
            assert placed or one.code.slug in OF_THE_FILE, f"{one}\n{text}"
    return compiled


def test_some_mutants() -> None:
    assert 0 < check(seed=1, count=BATCH) < BATCH


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 2 + COUNT // BATCH))
def test_a_thousand_mutants(seed: int) -> None:
    assert check(seed, BATCH) < BATCH
