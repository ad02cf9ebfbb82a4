"""How near placement comes to what is in use: samples and public kernels, as Markdown.

    python -m tests.timing.placement --samples ../nki-samples --library ../nki-library [REGEX]

For each memory of each kernel, in the order of its schedule: the most bytes of a partition in use
at once (in PSUM in whole banks), how far addresses reach, and the least memory in which allocate
places the same tensors. Tensors of few partitions may lie side by side, so that it can be less
than is in use. Memories in which the kernel chose addresses are left out, and nothing of the
checkouts is written.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

import nkic
from nkic.compiler.allocate import (
    TIGHT_ALIGN,
    DoesNotFit,
    Lifetime,
    Space,
    Strategy,
    addresses,
    lifetimes,
    space_of,
)
from nkic.compiler.compiled import DEFAULT, Compiled, CompileOptions
from nkic.machine.targets import Buffer
from nkic.program.program import Body, Program
from samples.run import Case, cases, folders
from tests.conformance.samples import chosen, options
from tests.timing.library import row
from tests.timing.schedules import compiled

HEAD = """\
| kernel | memory | tensors | in use | reached | least memory | over what is in use |
|---|---|---:|---:|---:|---:|---:|"""


def lines(name: str, compile_with: Callable[[int, bool], Compiled]) -> str | None:
    program: Program = compile_with(DEFAULT.level, False).results["allocate"]
    found = [
        _line(name, body, program, buffer)
        for body in program.cores
        for buffer in (Buffer.SBUF, Buffer.PSUM)
    ]
    return "\n".join(dict.fromkeys(filter(None, found))) or None


def _line(name: str, body: Body, program: Program, buffer: Buffer) -> str:
    space, lives = space_of(buffer, program.target), lifetimes(body, program.target, buffer)
    if not lives or any(life.tensor.fixed is not None for life in lives):
        return ""
    ends = (program.addresses[life.tensor.number].byte + _bytes(life, space) for life in lives)
    used, size = in_use(lives, space), least(body, lives, space, program)
    cells = f"{used:,} | {max(ends):,} | {size:,} | {size / used:.2f}"
    return f"| {name} | {buffer.value.upper()} | {len(lives)} | {cells} |"


def _bytes(life: Lifetime, space: Space) -> int:
    return space.size(life.tensor) if space.buffer is Buffer.PSUM else life.tensor.bytes


def in_use(lives: Sequence[Lifetime], space: Space) -> int:
    """Return the most bytes of a partition that tensors hold at one instruction."""
    changes = [(life.first, _bytes(life, space)) for life in lives]
    changes += [(life.last + 1, -_bytes(life, space)) for life in lives]
    level = most = 0
    for _, change in sorted(changes):
        level += change
        most = max(most, level)
    return most


def least(body: Body, lives: Sequence[Lifetime], space: Space, program: Program) -> int:
    """Return the least capacity, in steps of the alignment, in which all tensors have room."""
    step = min(space.align, TIGHT_ALIGN)
    low, high = 0, space.capacity // step
    while low < high:
        middle = (low + high) // 2
        fits = False
        with suppress(DoesNotFit):
            small = replace(space, capacity=middle * step)
            fits = bool(addresses(body, lives, small, program.target, Strategy(1, True)))
        low, high = (low, middle) if fits else (middle + 1, high)
    return low * step


def table() -> Iterator[str]:
    yield HEAD
    for folder in folders():
        for case in cases(folder):
            make = partial(_sample, case)
            yield from filter(None, [lines(case.name, make)])
    for public, package in chosen(options(__doc__ or "")):
        yield from filter(None, [row(public, package, lines)])


def _sample(case: Case, level: int, serial: bool) -> Compiled:
    return compiled(case, CompileOptions(serial, level=level))


if __name__ == "__main__":
    nkic.install()
    for one in table():
        print(one, flush=True)
