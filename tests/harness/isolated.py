"""Compile a kernel in a process of its own, which may crash, with limits of the system."""

import json
import os
import resource
from functools import cache
from pathlib import Path
from typing import NamedTuple

import nkic
from nkic.base.source import SourceFile
from nkic.specialise import closed

HEAD = """import nki
import nki.language as nl
import nki.isa as nisa
import nki.collectives as ncc
import collections, contextlib, copy, dataclasses, enum, functools, itertools, math, operator
import string, typing
import numpy as np
"""
HEAD_BETA1 = """import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
"""
KERNEL = """
@nki.jit
def k(a):
{body}
    out = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.shared_hbm)
{moves}
    return out
"""
MOVES = """    t = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=a)
    nisa.dma_copy(dst=out, src=t)"""
MOVES_BETA1 = "    nl.store(out, nl.load(a))"
SECONDS = 30  # processor time of one kernel, far more than any needs
MEMORY = 600 << 20  # bytes by which the address space may grow


class Verdict(NamedTuple):
    """What became of a kernel: the slug of its first error, its line in the body, the steps."""

    slug: str
    line: int
    steps: int


def kernel(body: str, beta1: bool = False) -> str:
    """Return the text of a kernel that runs `body` first."""
    lines = "\n".join(f"    {line}" for line in body.strip("\n").split("\n"))
    head, moves = (HEAD_BETA1, MOVES_BETA1) if beta1 else (HEAD, MOVES)
    return head + KERNEL.format(body=lines, moves=moves)


def verdict(body: str, beta1: bool = False, steps: int | None = None) -> Verdict:
    """Compile a kernel in the closed world; raise if its process crashes or exceeds its limits."""
    _warm(beta1)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        try:
            os.write(writing, json.dumps(_compiled(body, beta1, steps)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    assert not os.WIFSIGNALED(status), f"signal {os.WTERMSIG(status)}"
    assert said, "the process ended without a verdict"
    return Verdict(*json.loads(said))


@cache
def _warm(beta1: bool) -> None:
    """Load here, once, what every process would load for itself."""
    source = SourceFile("k.py", kernel("pass", beta1))
    nkic.compile(source, inputs={"a": "f32[128,4]"}, evaluate="closed")


def _compiled(body: str, beta1: bool, steps: int | None) -> tuple[str, int, int]:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    size = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    machines = []
    begin = closed.World.__init__

    def watched(world: closed.World, *args: object, **named: object) -> None:
        begin(world, *args, **named)  # type: ignore[arg-type]
        machine = world.interpreter.machine
        machines.append((machine, machine.left))

    closed.World.__init__ = watched  # type: ignore[method-assign,assignment]
    source, slug, line = SourceFile("k.py", kernel(body, beta1)), "", 0
    try:
        limits = None if steps is None else {"steps": steps}
        nkic.compile(source, inputs={"a": "f32[128,4]"}, evaluate="closed", limits=limits)
    except nkic.CompileError as error:
        first = error.diagnostics[0]
        slug = first.code.slug
        before = kernel("HERE", beta1).partition("HERE")[0].count("\n")
        line = first.primary.span.line - before if first.primary is not None else 0
    return slug, line, sum(left - machine.left for machine, left in machines)
