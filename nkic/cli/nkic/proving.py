"""--prove-source: Python itself evaluates the kernel, too, and the same program must come out.

The closed world and Python share the recording of instructions, but not the evaluation of source.
This executes the file, which nothing else in `nkic` does.
"""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

from nkic.api import functions
from nkic.api.compiling import of_live
from nkic.api.errors import ApiError
from nkic.artifact.disassemble import diff
from nkic.base.diagnostics import CompileFailed, make
from nkic.base.text import clean
from nkic.compiler.compiled import Compiled, CompileOptions
from nkic.nki import install, installed, uninstall
from nkic.specialise.request import Request, RequestOptions

SHOWN_LINES = 6


@contextmanager
def live_module(path: Path, name: str = "") -> Iterator[ModuleType]:
    """Load a kernel's file as a module that imports nkic's `nki`."""
    name = name or f"live_{path.parent.name}_{path.stem}".replace("-", "_").replace(".", "_")
    was = installed()
    install()
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(path.parent))
        del sys.modules[name]
        if not was:
            uninstall()


def as_call(request: Request, kernel: Any = None) -> RequestOptions:
    """Return the same request as the options of a call of `kernel`, with its own schedule."""
    return RequestOptions(
        target=request.target,
        profile=request.profile,
        grid=request.grid,
        lnc=request.lnc,
        spread=request.spread,
        args=request.args,
        like=request.like,
        schedule=functions.jit_options(kernel).get("schedule", ()),
        dge=request.dge,
    )


def prove_source(path: str, request: Request, options: CompileOptions, compiled: Compiled) -> None:
    """Raise `CompileFailed` unless Python's evaluation of the file gives the compiled program."""
    assert compiled.program is not None
    name, settings = compiled.program.name, replace(options, limits=None, keep=None)
    try:
        with redirect_stdout(StringIO()), live_module(Path(path).resolve()) as module:
            kernel = getattr(module, name)
            given = as_call(request, kernel)
            job, _ = of_live(kernel, given, request.consts, functions.NATIVE, settings)
            data = job.compile().data
    except ApiError as error:
        text = f"Python's evaluation of `{name}` is refused, unlike nkic's own"
        raise CompileFailed([make("other-program", text), *error.diagnostics]) from error
    except Exception as error:
        shown = "".join(traceback.format_exception_only(error)).strip()
        text = f"Python cannot evaluate `{name}`: {clean(shown)}"
        raise CompileFailed([make("other-program", text)]) from error
    found = diff(compiled.data, data)
    if found.verdict == "program":
        text = f"Python evaluates `{name}` to another program than nkic does"
        lines = map(clean, found.lines[:SHOWN_LINES])
        raise CompileFailed([make("other-program", text, notes=tuple(lines))])
