"""Small kernels of Beta 1 record what the pages in tests/data/beta1 say, and give the results of
the model in NumPy. NKIC_BLESS=1 writes the pages again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import nkic
from nkic.base.diagnostics import CompileFailed, Diagnostic, Level
from nkic.base.source import SourceFile
from nkic.compiler.compiled import CompileOptions
from nkic.compiler.loader import Loader
from nkic.compiler.pipeline import compile_source
from nkic.compiler.request import parse_options, request_for
from nkic.program.text import program_text
from tests.beta1.bodies import MODELLED, RECORDED
from tests.beta1.calls import CALLS
from tests.beta1.details import DETAILS, MORE_DETAILS
from tests.beta1.model import Model
from tests.beta1.whole import MORE_WHOLE, WHOLE
from tests.harness.bless import blessing, compare_file, short_sum

PAGES = Path(__file__).parents[1] / "data/beta1"
IMPORTS = """import neuronxcc.nki as nki
import neuronxcc.nki.compiler as ncc
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
"""
HEAD = """def kernel(a, b):
    i, j = nl.arange(64)[:, None], nl.arange(32)[None, :]
    h, k = nl.arange(32)[:, None], nl.arange(16)[None, :]
    x, y = nl.load(a), nl.load(b)
"""
TAIL = "    out = nl.ndarray(r.shape, dtype=r.dtype, buffer=nl.shared_hbm)\n    nl.store(out, r)\n"
RNG = np.random.default_rng(7)
INPUTS = {name: RNG.integers(1, 9, (64, 32)).astype(np.float32) for name in "ab"}
CHECKED = {**MODELLED, **DETAILS, **WHOLE}  # against the model
SEEN = {**RECORDED, **MORE_DETAILS, **MORE_WHOLE}
SUBJECTS = {
    name: [*CHECKED.get(name, ()), *SEEN.get(name, ()), *CALLS.get(name, ())]
    for name in {**CHECKED, **SEEN, **CALLS}
}
EVERY = [(name, at) for name, bodies in SUBJECTS.items() for at in range(len(bodies))]
DEFAULTS = re.compile(
    r"[,;] (?:\w+=None|priority=None|oob_mode='error'|dge_mode='none'|engine='unknown'"
    r"|scale=1.0|reduce_cmd='idle'|\w+=False)(?=[,;)])| @k\.py\S*"
)
LOADS = (
    *("%0 a: ", "%1 b: ", "%2 t2: float32[64, 32] sbuf", "%3 t3: float32[64, 32] sbuf"),
    "  #0 any dma_copy(dst=%2{0; (64, 32); (32, 1)}, src=%0{0; (64, 32); (32, 1)})",
    "  #1 any dma_copy(dst=%3{0; (64, 32); (32, 1)}, src=%1{0; (64, 32); (32, 1)})",
)


def written(body: str) -> str:
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    return f"{HEAD}{lines}{TAIL}    return out\n"


def entry(body: str) -> str:
    """Return what the page says of a body: the program that is recorded, or the errors."""
    loader = Loader.beside("k.py")
    source = loader.main("k.py", f"{IMPORTS}{written(body)}".encode())
    request = request_for(source, parse_options(args=["a=float32[64,32]", "b=float32[64,32]"]), {})
    try:
        compiled = compile_source(source, request, loader, CompileOptions(last="specialise"))
    except CompileFailed as error:
        return "\n".join(_said(error.diagnostics))
    said = [*_said(compiled.warnings)]
    if any(one.level is Level.ERROR for one in compiled.warnings):
        return "\n".join(said)
    return "\n".join([*said, *_short(program_text(compiled.results["specialise"]))])


def _said(diagnostics: Iterable[Diagnostic]) -> Iterator[str]:
    for one in diagnostics:
        yield f"{one.level.value} {one.code.slug}: {one.message}"
        yield from [f"  help: {one.help}"] * bool(one.help)


def _short(text: str) -> Iterator[str]:
    """Yield the lines of a program, without what all have and what is a default."""
    for line in text.splitlines():
        while (less := DEFAULTS.sub("", line)) != line:
            line = less
        if line.startswith(("program", "note", "argument", "input", "output", "core", *LOADS)):
            continue
        yield line if len(line) < 400 else f"{line[:40]}… {short_sum(line)}"


def page(subject: str) -> str:
    return "".join(
        "\n".join([*(f"> {line}" for line in body.split("\n")), entry(body), "", ""])
        for body in SUBJECTS[subject]
    )


@cache
def kept(subject: str) -> list[str]:
    text = (PAGES / f"{subject}.txt").read_text("utf-8")
    return [one for one in text.split("\n\n") if one.strip()]


@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_page_is_of_all_kernels(subject: str) -> None:
    if blessing():
        compare_file(PAGES / f"{subject}.txt", page(subject))
    assert len(kept(subject)) == len(SUBJECTS[subject])


@pytest.mark.parametrize(("subject", "at"), EVERY)
def test_what_is_recorded_is_on_the_page(subject: str, at: int) -> None:
    body = SUBJECTS[subject][at]
    found = "\n".join([*(f"> {line}" for line in body.split("\n")), entry(body)])
    assert found.rstrip() == kept(subject)[at].rstrip()


@pytest.mark.parametrize(
    ("subject", "at"), [(name, at) for name, all_ in CHECKED.items() for at in range(len(all_))]
)
@pytest.mark.filterwarnings("ignore::nkic.NkicWarning")
def test_the_results_are_those_of_the_model(subject: str, at: int) -> None:
    text = written(CHECKED[subject][at])
    wanted = Model().run(text, INPUTS)
    artifact = nkic.compile(SourceFile("k.py", f"{IMPORTS}{text}"), inputs=INPUTS)
    found = nkic.run(artifact, INPUTS).outputs["output_0"]
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
