"""--dump-tensor: tensors of a kernel as they are after a line of it."""

from __future__ import annotations

import re
from typing import NoReturn

import numpy as np

from nkic.arrays.npz import write_npz
from nkic.base import files
from nkic.base.diagnostics import UsageFailed, make
from nkic.base.files import STANDARD
from nkic.base.text import clean
from nkic.cli.common import Session
from nkic.cli.nki_run.options import CommandLine
from nkic.cli.nki_run.writing import presented
from nkic.simulate import Result
from nkic.simulate.tracing.dumps import Tap

_WORDS = re.compile(r"([^@=]+)@(\d{1,9})=(.+)")


def taps(line: CommandLine) -> list[Tap]:
    """What is to be caught. Raises `UsageFailed`."""
    return [tap for tap, _ in _wanted(line)]


def write(line: CommandLine, session: Session, result: Result) -> None:
    """Every file: under the tensor's name an array of the times that it was written, each of its
    shape.
    """
    for tap, path in _wanted(line):
        dump = result.dumped[tap]
        arrays = np.stack(dump.arrays) if dump.arrays else np.empty(0, np.uint8)
        content = {tap.name: presented(arrays, dump.dtype, False) if dump.arrays else arrays}
        with files.replacing(path) as stream:
            write_npz(stream, content, {tap.name: dump.dtype.name})
        session.artifact("npz", path)
        session.status(f"wrote {path}", 1)


def _wanted(line: CommandLine) -> list[tuple[Tap, str]]:
    found = []
    for text in line.dump_tensor:
        words = _WORDS.fullmatch(text)
        if words is None or words[3] == STANDARD:
            _bad(f"--dump-tensor {clean(text)}: NAME@LINE=FILE.npz is wanted")
        found.append((Tap(words[1], int(words[2])), words[3]))
    return found


def _bad(text: str) -> NoReturn:
    raise UsageFailed([make("bad-value", text, help="for example --dump-tensor acc@12=acc.npz")])
