"""Flame graphs of a compilation by stage, and of a run: where the time of each goes.

    python -m tests.bench.flames [KERNEL] [INSTRUCTIONS] [FOLDER]

Samples the stack once in a millisecond of processor time, or as often as the system's clock ticks
(many tick every 4 ms). Of every stage that was sampled the folder gets `<stage>.svg`, a picture
that any browser shows, and `<stage>.folded`, a line for each stack with its count, which other
tools for flame graphs read. Functions in C count as their callers. KERNEL is `add` or
`matmul_naive` of kernels.py.
"""

import signal
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from zlib import crc32

import numpy as np

from nkic.artifact.records import Executable
from nkic.base.source import SourceFile
from nkic.compiler.compiled import Compiled
from nkic.compiler.pipeline import STAGES
from nkic.machine.codecs import storage
from nkic.simulate import RunOptions, simulate
from tests.bench.stages import compiled

EVERY = 0.001  # seconds of processor time between samples
WIDTH, ROW, LETTER = 1200, 18, 6.6  # pixels
NARROWEST = 0.3  # pixels; narrower boxes are left out
NO_SOURCE = SourceFile("", "")
Stack = tuple[str, ...]  # outermost first
Stacks = dict[str, Counter[Stack]]  # by stage


class Sampler:
    """Count stacks under the stage that runs when they are sampled."""

    def __init__(self, done: Compiled) -> None:
        self.done = done
        self.seen: list[Counter[tuple[CodeType, ...]]] = [Counter() for _ in range(len(STAGES) + 1)]

    def sample(self, number: int, frame: FrameType | None) -> None:
        """Handle the timer's signal."""
        codes = []
        while frame is not None:
            codes.append(frame.f_code)
            frame = frame.f_back
        self.seen[len(self.done.timings)][tuple(reversed(codes))] += 1

    @contextmanager
    def sampling(self) -> Iterator[None]:
        """Sample while this context is open, in the main thread only."""
        before = signal.signal(signal.SIGPROF, self.sample)
        signal.setitimer(signal.ITIMER_PROF, EVERY, EVERY)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)

    def stacks(self) -> Stacks:
        """Return the stacks of each stage, and of everything after the last one as `simulate`."""
        names = [*(timing.stage for timing in self.done.timings), "simulate"]
        found: Stacks = {}
        for name, seen in zip(names, self.seen, strict=False):
            for codes, count in seen.items():
                found.setdefault(name, Counter())[tuple(map(called, codes))] += count
        return found


def called(code: CodeType) -> str:
    """Return a function's name in graphs: `compiler/schedule.py:ListScheduler.issues`."""
    path = code.co_filename.rpartition("/nkic/")[2] if "/nkic/" in code.co_filename else ""
    return f"{path or Path(code.co_filename).name}:{code.co_qualname}"


def folded(stacks: Mapping[Stack, int]) -> str:
    """Return a line for each stack: its functions, and its count."""
    return "".join(f"{';'.join(stack)} {count}\n" for stack, count in sorted(stacks.items()))


def below(stacks: Mapping[Stack, int]) -> Iterator[tuple[str, int, dict[Stack, int]]]:
    """Group by name: the functions at the start of stacks, their counts, and the functions that
    they call.
    """
    parts: dict[str, dict[Stack, int]] = {}
    for stack, count in stacks.items():
        if stack:
            inside = parts.setdefault(stack[0], {})
            inside[stack[1:]] = inside.get(stack[1:], 0) + count
    for name in sorted(parts):
        yield name, sum(parts[name].values()), parts[name]


def svg(title: str, stacks: Mapping[Stack, int]) -> str:
    """Draw the graph: callers above their callees, with widths in proportion to time."""
    total = sum(stacks.values())
    rows = 1 + max(map(len, stacks), default=0)
    height = (rows + 1) * ROW
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}"'
    words = f"{title}: {total} samples"
    lines = [f'{head} font-family="monospace" font-size="11">', *box(words, words, 0, 0, WIDTH)]
    lines += boxes(stacks, 0.0, 1, WIDTH / max(1, total), total)
    return "\n".join([*lines, "</svg>\n"])


def boxes(
    stacks: Mapping[Stack, int], left: float, row: int, scale: float, total: int
) -> Iterator[str]:
    """Return the boxes of all functions of `row` and below, from the pixel `left` on."""
    for name, count, inside in below(stacks):
        width = count * scale
        if width >= NARROWEST:
            share = f"{name}, {count} samples, {100 * count / total:.1f} %"
            yield from box(name, share, left, row, width)
            yield from boxes(inside, left, row + 1, scale, total)
        left += width


def box(name: str, tip: str, left: float, row: int, width: float) -> Iterator[str]:
    """Return one function's box, coloured by its folder."""
    hue = crc32(name.partition(":")[0].rpartition("/")[0].encode()) % 360
    at = f'x="{left:.2f}" y="{row * ROW}" width="{width:.2f}" height="{ROW - 1}"'
    yield f'<g><title>{escape(tip)}</title><rect {at} fill="hsl({hue},60%,75%)"/>'
    label = name.rpartition("/")[2][: int((width - 4) / LETTER)] if width > 4 * LETTER else ""
    yield f'<text x="{left + 2:.2f}" y="{row * ROW + 13}">{escape(label)}</text></g>'


def inputs_of(executable: Executable) -> dict[str, Any]:
    tensors = [(p.name, executable.tensors[p.tensor]) for p in executable.inputs]
    return {name: np.zeros(t.shape, storage(t.dtype)) for name, t in tensors}


def written(stacks: Stacks, folder: Path) -> None:
    """Write the two files of each stage."""
    folder.mkdir(parents=True, exist_ok=True)
    for stage, seen in stacks.items():
        (folder / f"{stage}.svg").write_text(svg(stage, seen), "utf-8")
        (folder / f"{stage}.folded").write_text(folded(seen), "utf-8")
        print(f"{stage:16} {sum(seen.values()):6} samples")


def main(words: Sequence[str]) -> None:
    kernel, count, folder = (*words, *("add", "10000", "flames")[len(words) :])
    done = Compiled(NO_SOURCE)
    sampler = Sampler(done)
    with sampler.sampling():
        compiled(kernel, int(count), done)
        simulate(done.executable, inputs_of(done.executable), RunOptions())
    written(sampler.stacks(), Path(folder))


if __name__ == "__main__":
    main(sys.argv[1:])
