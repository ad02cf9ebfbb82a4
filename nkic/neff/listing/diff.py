"""Differences of two files: first of their sections, then of their instructions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from hashlib import sha256
from typing import Literal

from nkic.machine.operands import Row
from nkic.neff import container
from nkic.neff.container import SEMANTIC, Container
from nkic.neff.layout import SECTIONS
from nkic.neff.listing import text
from nkic.neff.listing.disassemble import walk
from nkic.neff.read import read
from nkic.neff.records import Executable

Verdict = Literal["identical", "metadata", "program"]
MAX_ALIGNED = 2000  # lines per stream that are aligned; difflib takes quadratic time
_MEANS = {
    "identical": "the files are identical",
    "metadata": "identical program, different metadata",
    "program": "the programs differ",
}


@dataclass(frozen=True)
class Diff:
    """`sections` are those that differ. `lines` start with "-" (first file) or "+" (second)."""

    verdict: Verdict
    sections: tuple[str, ...]
    lines: tuple[str, ...]

    @property
    def summary(self) -> str:
        """Return the verdict in words."""
        differing = f", in the sections {', '.join(self.sections)}" if self.sections else ""
        return _MEANS[self.verdict] + differing


def diff(first: bytes, second: bytes, *, rows: Mapping[int, Row] | None = None) -> Diff:
    """Compare two files; raises `ArtifactFailed` if either cannot be read.

    `rows` is the instruction table by opcode, by default the machine's.
    """
    files = container.unpack(first), container.unpack(second)
    changed = tuple(_changed(*files))
    if not set(changed) & set(SEMANTIC):
        return Diff("metadata" if first != second else "identical", changed, ())
    programs = [read(data, rows=rows) for data in (first, second)]
    lines = _compare(*programs)
    return Diff("program", changed, tuple(lines))


def _changed(first: Container, second: Container) -> Iterator[str]:
    names = dict.fromkeys((*SECTIONS, *first.sections, *second.sections))
    for name in names:
        pair = first.sections.get(name), second.sections.get(name)
        hashes = {section.entry.sha256 if section else b"" for section in pair}
        if len(hashes) > 1:
            yield name


def _compare(first: Executable, second: Executable) -> Iterator[str]:
    """Compare the kernels' properties, tensors and constants, then stream by stream."""
    yield from _lines(_declarations(first), _declarations(second))
    first_streams, second_streams = _streams(first), _streams(second)
    for name in dict.fromkeys((*first_streams, *second_streams)):
        differences = [*_lines(first_streams.get(name, []), second_streams.get(name, []))]
        if differences:
            yield f"  stream {name}"
            yield from differences


def _declarations(e: Executable) -> list[str]:
    figures = f"cores={e.cores} semaphores={e.semaphores} registers={e.registers}"
    lines = [f'kernel "{e.name}" {e.target} {figures}']
    lines += [f"tensor {text.tensor(i, t)}" for i, t in enumerate(e.tensors)]
    lines += [f'input "{p.name}" %{p.tensor}' for p in e.inputs]
    lines += [f'output "{p.name}" %{p.tensor}' for p in e.outputs]
    return lines + [f"constant %{i} {sha256(c).hexdigest()}" for i, c in e.constants.items()]


def _streams(executable: Executable) -> dict[str, list[str]]:
    streams: dict[str, list[str]] = {stream.name: [] for stream in executable.streams}
    for line in walk(executable):
        streams[line.stream.name].append("    " * line.depth + line.text)
    return streams


def _lines(first: list[str], second: list[str]) -> Iterator[str]:
    """Yield the lines removed from and added to `first`, after dropping equal ends."""
    start = _common(first, second)
    end = _common(first[start:][::-1], second[start:][::-1])
    first, second = first[start : len(first) - end], second[start : len(second) - end]
    if len(first) + len(second) > MAX_ALIGNED:
        yield f"  {len(first):,} lines are replaced by {len(second):,}, first of all:"
        first, second = first[:1], second[:1]
    for kind, a, b, c, d in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        if kind != "equal":
            yield from (f"- {line}" for line in first[a:b])
            yield from (f"+ {line}" for line in second[c:d])


def _common(first: list[str], second: list[str]) -> int:
    """Return the length of the common prefix."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(first), len(second)))
