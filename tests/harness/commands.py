"""The command nkic as users run it, and the result of a run."""

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from nkic.artifact.read import load
from nkic.artifact.records import Executable
from nkic.base import diagnostics
from tests.harness import warm

ROOT = Path(__file__).resolve().parents[2]
KERNEL = """\
# /// nkic
# [args]
# a = "float32[128, 64]"
# ///
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def double(a, factor=2.0):
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=a)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=factor)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out
"""


def hear_signals() -> None:
    """Restore, in a new process, the signals that shells let background commands ignore.

    For `preexec_fn`: the processes of a test suite in the background would ignore them as well.
    """
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


class Ran(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Ran]


def process(*words: str, cwd: Path, stdin: bytes = b"", **environ: str) -> Any:
    """Run the command as users do."""
    return warm.run(warm.NKIC, *words, cwd=cwd, env={**os.environ, **environ}, stdin=stdin)


def failure(ran: Ran, code: int, slug: str) -> str:
    """Return the output of a run that must end with this exit code and this one diagnostic."""
    number = diagnostics.code(slug).number
    assert ran.code == code, ran.err
    assert ran.out == ""
    assert re.findall(r"error\[(NKI\d{4})\]", ran.err) == [number], ran.err
    assert "Traceback" not in ran.err
    return ran.err


def written(path: Path) -> Executable:
    return load(path.read_bytes())
