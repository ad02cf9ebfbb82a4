"""Run kernels with a trace."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import nkic
from nkic.artifact.records import Executable
from nkic.base.source import SourceFile
from nkic.simulate import Result, RunOptions, simulate
from nkic.simulate.inputs import Wanted, bind, parse_fill, signature_of
from nkic.simulate.result import Recorded

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
HEAD = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n\n@nki.jit\n"
MANY = 1_000_000


def executable(text: str, **args: str) -> Executable:
    """Compile the kernel of `text`, whose head is HEAD, for arguments of these types."""
    source = SourceFile("k.py", HEAD + text)
    return nkic.compile(source, inputs=args, embed_source=True).executable


def run(program: Executable, **how: Any) -> Result:
    """Run the executable on random numbers, with a trace."""
    bound = bind(signature_of(program), Wanted(None, {}, parse_fill("randn(0)"), False))
    return simulate(program, bound.arrays, RunOptions(**{"trace": MANY, **how}))


def recorded(result: Result) -> Recorded:
    assert result.recorded is not None
    return result.recorded


@cache
def sample(name: str) -> Result:
    """Return the run of a sample, shared by all tests."""
    return run(nkic.compile(str(SAMPLES / name / "kernel.py")).executable)
