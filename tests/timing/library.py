"""How near schedules of public kernels come to what is possible, as Markdown.

    python -m tests.timing.library --samples ../nki-samples --library ../nki-library [REGEX]

Kernels and shapes are those of `make accuracy`; nothing of the checkouts is written. What nkic
refuses is left out.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from typing import Any, Unpack

import nkic
from nkic.api.arrays import array_of, type_of
from nkic.api.compiling import TracedCompilation, compile_options, of_live, request_options_of
from nkic.api.options import Compiling
from nkic.compiler import pipeline
from nkic.compiler.compiled import Compiled
from tests.conformance.samples import chosen, options
from tests.conformance.worst_errors import Case, Draw
from tests.timing.schedules import HEAD, line

Line = Callable[[str, Callable[[int, bool], Compiled]], str | None]


def compiled(function: Any, inputs: dict[str, Any], **how: Unpack[Compiling]) -> Compiled:
    """Compile a kernel as a call with these arguments does."""
    kernel = getattr(function, "__wrapped__", function)
    bound = inspect.signature(kernel).bind(**inputs)
    arrays = {name: a for name, v in bound.arguments.items() if (a := array_of(v)) is not None}
    consts = {name: v for name, v in bound.arguments.items() if name not in arrays}
    given = replace(
        request_options_of(how), args={name: type_of(a, name) for name, a in arrays.items()}
    )
    options = replace(compile_options(how), keep=None)  # the bound is that of the graphs
    job, _ = of_live(function, given, consts, None, options)
    if isinstance(job, TracedCompilation):
        return pipeline.compile_traced(job.trace(), job.options)
    return pipeline.compile_source(job.source, job.request, job.loader, job.options)


def row(case: Case, package: str, line: Line = line) -> str | None:
    """Return a line of a table, or None for a kernel that is left out."""
    draw = Draw(package)
    try:
        with redirect_stdout(sys.stderr):  # kernels tell of their memory
            inputs, _ = case.build(draw)
            function = draw.name(case.kernel)
            return line(
                case.name,
                lambda n, serial: compiled(function, inputs, **case.how, optimise=n, serial=serial),
            )
    except Exception as refused:  # of the module as well, where it is imported
        print(f"{case.name} is left out: {refused!r}", file=sys.stderr)
        return None


def table() -> Iterator[str]:
    yield HEAD.replace("sample", "kernel", 1)
    for case, package in chosen(options(__doc__ or "")):
        found = row(case, package)
        if found is not None:
            yield found


if __name__ == "__main__":
    nkic.install()
    for one in table():
        print(one, flush=True)
