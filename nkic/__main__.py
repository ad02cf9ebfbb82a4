"""`python -m nkic script.py args`: run a script that imports nki, with nkic's modules.

`python -m nkic -m package.module args` runs a module. `--force` hides another installed package
called nki; `--nki VERSION` names the NKI version that the program's kernels are written for.
"""

from __future__ import annotations

import os
import runpy
import sys
import traceback
from collections.abc import Sequence

from nkic.api.errors import ApiError
from nkic.nki import install

USAGE = """usage: python -m nkic [--force] [--nki VERSION] script.py [arguments]
       python -m nkic [--force] [--nki VERSION] -m module [arguments]

Runs a Python program that imports nki: its kernels are compiled by nkic and simulated.
  --force        even if another package called nki is installed
  --nki VERSION  NKI version of the program's kernels, such as 0.6
To compile a file to an artifact, use the command nkic.
"""
WRONG_USE, REJECTED = 2, 1


def main(argv: Sequence[str]) -> int:
    """Run the program; its own exceptions and exits pass through."""
    force, nki, rest = _options(list(argv))
    if rest[:1] in (["-h"], ["--help"]):
        sys.stdout.write(USAGE)
        return 0
    module = rest[:1] == ["-m"]
    program = rest[1:] if module else rest
    if not program or (not module and program[0].startswith("-")):
        sys.stderr.write(USAGE)
        return WRONG_USE
    if not module and not os.path.exists(program[0]):  # noqa: PTH110  (as Python says it)
        sys.stderr.write(f"error: there is no file `{program[0]}`\n")
        return WRONG_USE
    try:
        install(force, nki)
        _run(program, module)
    except ApiError as error:
        sys.stdout.flush()
        sys.stderr.write("\n".join([str(error), *_circumstances(error), ""]))
        return REJECTED
    return 0


def _circumstances(error: ApiError) -> list[str]:
    """Return the error's notes, and where the program made the call."""
    package = os.path.dirname(__file__)  # noqa: PTH120
    frames = traceback.extract_tb(error.__traceback__)
    kernel = {(f.filename, f.lineno) for f in traceback.extract_tb(error.frames)}
    own = [
        f
        for f in frames
        if not f.filename.startswith((package, "<frozen")) and (f.filename, f.lineno) not in kernel
    ]
    called = [f"called at {f.filename}:{f.lineno}: {f.line}" for f in own[-1:]]
    return [*getattr(error, "__notes__", []), *called]


def _options(words: list[str]) -> tuple[bool, str | None, list[str]]:
    """Return whether to force, the NKI version, and the remaining words (the program and its
    arguments).
    """
    force, nki = False, None
    while words:
        option, equals, value = words[0].partition("=")
        if words[0] == "--force":
            force, words = True, words[1:]
        elif option == "--nki" and equals:
            nki, words = value, words[1:]
        elif option == "--nki" and len(words) > 1:
            nki, words = words[1], words[2:]
        else:
            break
    return force, nki, words


def _run(program: list[str], module: bool) -> None:
    sys.argv[:] = program
    if module:
        sys.path.insert(0, "")
        runpy.run_module(program[0], run_name="__main__", alter_sys=True)
    else:
        # Where Python would look first for what the script imports.
        sys.path.insert(0, os.path.dirname(os.path.realpath(program[0])))  # noqa: PTH120
        runpy.run_path(program[0], run_name="__main__")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
