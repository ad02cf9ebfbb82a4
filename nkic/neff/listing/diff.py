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
        differing = f": sections {', '.join(self.sections)} differ" if self.sections else ""
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
    left, right = _streams(first), _streams(second)
    for name in dict.fromkeys((*left, *right)):
        found = [*_lines(left.get(name, []), right.get(name, []))]
        if found:
            yield f"  stream {name}"
            yield from found


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


def _lines(left: list[str], right: list[str]) -> Iterator[str]:
    """Yield the lines removed from and added to `left`, after dropping equal ends."""
    start = _common(left, right)
    end = _common(left[start:][::-1], right[start:][::-1])
    left, right = left[start : len(left) - end], right[start : len(right) - end]
    if len(left) + len(right) > MAX_ALIGNED:
        yield f"  {len(left):,} lines are replaced by {len(right):,}, first of all:"
        left, right = left[:1], right[:1]
    for kind, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if kind != "equal":
            yield from (f"- {line}" for line in left[a:b])
            yield from (f"+ {line}" for line in right[c:d])


def _common(left: list[str], right: list[str]) -> int:
    """Return the length of the common prefix."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(left), len(right)))
