"""Executable → text: a listing, or a complete form that the assembler reads."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from hashlib import sha256
from typing import Any, Literal, NamedTuple

from nkic.artifact import container
from nkic.artifact.container import MAGIC, SEMANTIC, VERSION, Container
from nkic.artifact.format import SECTIONS
from nkic.artifact.read import read
from nkic.artifact.records import (
    Executable,
    FileRecord,
    InstructionRecord,
    LoopRecord,
    OperandRecord,
    PatternRecord,
    StreamRecord,
    TensorRecord,
    iterations,
    source_of,
)
from nkic.base.text import clean, plural
from nkic.machine.operands import Register, Row
from nkic.machine.targets import Engine

# ---- The text form of records, which the assembler parses; described in docs/neff.md ------------
#     tensor_scalar dst=%4[0+128, 0; 1x512]:bfloat16 data=%3[0+128, 0; 1x512]:float32 …
#
# A pattern is its tensor's number, followed in brackets by partitions as start+count (on chip
# only), the offset, and step x num of each dimension, outermost first; then the dtype. Programs of
# the compiler use the same form (`ir.text`).


def quoted(value: str) -> str:
    """Return a string in double quotes, in ASCII, on one line."""
    return json.dumps(value)


def value(value: Any) -> str:
    """Return the text of an attribute's or a number operand's value."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)


_value = value  # for functions whose parameter shadows it


def operand(operand: OperandRecord) -> str:
    if isinstance(operand, PatternRecord):
        return pattern(operand)
    return register(operand) if isinstance(operand, Register) else value(operand)


def register(register: Register) -> str:
    """Return the text of a register: $0."""
    return f"${register.number}"


def pattern(p: PatternRecord) -> str:
    """Return the text of a pattern, with the source of a run-time offset by its index: +3."""
    text = f"{p.notation(p.tensor)}:{p.dtype.name}"
    return f"{text} {p.dynamic.notation(f'+{p.dynamic.source}')}" if p.dynamic is not None else text


def instruction(item: InstructionRecord, *, full: bool = False) -> str:
    """Return the text of an instruction or slot; unless `full`, defaults are omitted."""
    parts = [item.row.name, *_named(item, item.row, full)] if item.row else ["slot"]
    if item.waits:
        parts += ["wait", *(f"s{semaphore}>={count}" for semaphore, count in item.waits)]
    if item.signals:
        parts += ["signal", *(f"s{semaphore}" for semaphore in item.signals)]
    return " ".join(parts)


def _named(item: InstructionRecord, row: Row, full: bool) -> list[str]:
    names = [o.name for o in row.operands]
    names += [f"+{index}" for index in range(len(names), len(item.operands))]
    operands = zip(names, item.operands, strict=False)
    shown = [f"{name}={operand(v)}" for name, v in operands if full or v is not None]
    for attribute, v in zip(row.attributes, item.attributes, strict=False):
        if full or _differ(v, None if attribute.default is ... else attribute.default):
            shown.append(f"{attribute.name}={value(v)}")
    return shown


def _differ(first: Any, second: Any) -> bool:
    if first is second:
        return False
    plain = type(first) is type(second) and isinstance(first, str | int)  # 0.0 differs from -0.0
    return first != second if plain else value(first) != value(second)


def loop(item: LoopRecord, *, full: bool = False) -> str:
    parts = ["loop"]
    if item.counter is not None:
        parts.append(register(item.counter))
    if full or item.condition is None:
        start, stop = operand(item.start), operand(item.stop)
        parts.append(f"from {start} to {stop} step {item.step}")
    if item.condition is not None:
        parts.append(f"while {register(item.condition)}")
    return " ".join(parts)


def tensor(index: int, t: TensorRecord) -> str:
    """Return the text of a tensor, without its place."""
    sizes = ", ".join(map(str, t.shape))
    parts = [f"%{index} {quoted(t.name)} {t.dtype.name}[{sizes}] {t.buffer.value} {t.role}"]
    if t.core >= 0:
        parts.append(f"core {t.core}")
    if t.buffer.on_chip:
        parts.append(f"at {t.partition}:{t.byte}")
    return " ".join(parts)


def source_place(executable: Executable, place: int) -> str:
    """Return a source place as path and line, preferring user code; empty if it is unknown."""
    span = source_of(executable, place)
    return f"{span.path}:{span.line}" if span is not None else ""


# --------------------------------------------------------------------------------------------------

INDENT = "    "
HEAD = f"{MAGIC[:4].decode().lower()} {VERSION[0]}.{VERSION[1]}"  # first line of the full form


class TextLine(NamedTuple):
    """A record of a stream, with its loop depth."""

    stream: StreamRecord
    pc: int
    depth: int
    item: InstructionRecord | LoopRecord

    @property
    def text(self) -> str:
        item = self.item
        return loop(item) if isinstance(item, LoopRecord) else instruction(item)

    @property
    def opcode(self) -> str:
        """The instruction's name, "loop", or "slot" for an empty slot."""
        if isinstance(self.item, LoopRecord):
            return "loop"
        return self.item.row.name if self.item.row else "slot"


def disassemble(
    executable: Executable,
    *,
    engine: Engine | None = None,
    lines: tuple[int, int] | None = None,
    sources: Mapping[str, str] | None = None,
) -> str:
    """Return a listing with one line per record: stream, number, instruction, source place.

    `engine` and `lines` (an inclusive range of source lines) select records. Source text is printed
    between the instructions if `sources` or the file has it.
    """
    texts = {f.path: f.text for f in executable.files if f.text is not None}
    listing = _Listing(executable, {**texts, **(sources or {})})
    for line in selected(executable, engine, lines):
        listing.add(line)
    return listing.text()


def selected(
    executable: Executable, engine: Engine | None, lines: tuple[int, int] | None
) -> Iterator[TextLine]:
    """Yield the records of `engine` whose source line is within `lines`; None selects all."""
    for line in walk(executable):
        if engine not in (None, line.stream.engine):
            continue
        span = source_of(executable, line.item.place)
        if lines is None or lines[0] <= (span.line if span is not None else 0) <= lines[1]:
            yield line


def walk(executable: Executable) -> Iterator[TextLine]:
    for stream in executable.streams:
        yield from _lines_of(stream)


def _lines_of(stream: StreamRecord) -> Iterator[TextLine]:
    ends: list[int] = []  # of the loops around an item
    for index, item in enumerate(stream.items):
        while ends and index >= ends[-1]:
            ends.pop()
        yield TextLine(stream, index, len(ends), item)
        if isinstance(item, LoopRecord):
            ends.append(index + 1 + item.length)


def rows(
    executable: Executable, *, engine: Engine | None = None, lines: tuple[int, int] | None = None
) -> list[dict[str, Any]]:
    """Return the listing as JSON-serialisable rows, one per record."""
    return [_row(executable, line) for line in selected(executable, engine, lines)]


def _row(executable: Executable, line: TextLine) -> dict[str, Any]:
    return {
        "stream": line.stream.name,
        "engine": line.stream.engine.value,
        "pc": line.pc,
        "depth": line.depth,
        "opcode": line.opcode,
        "text": line.text,
        "nki_source_location": source_place(executable, line.item.place),
        "nki_loop_iteration": iterations(executable, line.item),
    }


class _Listing:
    def __init__(self, executable: Executable, sources: Mapping[str, str]) -> None:
        self._executable = executable
        self._sources = {path: source.splitlines() for path, source in sources.items()}
        self._lines: list[str] = []
        self._stream: StreamRecord | None = None
        self._source = ""

    def add(self, line: TextLine) -> None:
        """Add a record, preceded by a head line at the start of a stream."""
        if line.stream is not self._stream:
            self._stream = line.stream
            self._source = ""
            self._lines.append(f"; {line.stream.name}: {plural(len(line.stream.items), 'item')}")
        source = source_place(self._executable, line.item.place)
        if source != self._source:
            span = source_of(self._executable, line.item.place)
            lines = self._sources.get(span.path, ()) if span is not None else ()
            if span is not None and 0 < span.line <= len(lines):
                code = lines[span.line - 1].strip()
                self._lines.append(clean(f"; {span.path}:{span.line}: {code}"))
            self._source = source
        label = f"{line.stream.name}.{line.pc:<6}"
        comment = f"  ; {source}{_within(self._executable, line.item)}" if source else ""
        self._lines.append(clean(f"{label} {INDENT * line.depth}{line.text}{comment}"))

    def text(self) -> str:
        """Return the lines, each with a line ending."""
        return "".join(f"{line}\n" for line in self._lines)


def dump(executable: Executable) -> str:
    """Return the complete text form, from which `assemble` restores the executable."""
    return "".join(f"{line}\n" for line in _dump(executable))


def _dump(e: Executable) -> Iterator[str]:
    yield HEAD
    yield (
        f"kernel {quoted(e.name)} {e.target} cores={e.cores}"
        f" semaphores={e.semaphores} registers={e.registers}"
    )
    yield from (f"argument {_pair(row)}" for row in e.arguments.items())
    yield from (f"flag {_pair(row)}" for row in e.meta.items())
    yield from map(_file, e.files)
    for place in e.places:
        caller = f" from {place.caller}" if place.caller >= 0 else ""
        span = f"{place.line}:{place.column} {place.end_line}:{place.end_column}"
        yield f"place {place.file} {span}{caller}"
    yield from (f"iteration {quoted(iteration)}" for iteration in e.iterations)
    yield from (f"tensor {tensor(i, t)}{_at(t.place)}" for i, t in enumerate(e.tensors))
    yield from (f"input {quoted(p.name)} %{p.tensor}" for p in e.inputs)
    yield from (f"output {quoted(p.name)} %{p.tensor}" for p in e.outputs)
    for index, content in sorted(e.constants.items()):
        yield f'constant %{index} "{b64encode(content).decode()}"'
    for stream in e.streams:
        yield f"stream {stream.name}"
        yield from _items(stream, e)


def _items(stream: StreamRecord, executable: Executable) -> Iterator[str]:
    """Yield the items of a stream; a loop's body is in braces."""
    open_loops = 0
    for line in _lines_of(stream):
        yield from _closing_braces(line.depth, open_loops)
        item, open_loops = line.item, line.depth
        indent, origin = INDENT * (line.depth + 1), _at(item.place)
        source = source_place(executable, item.place)
        comment = f"  ; {clean(source + _within(executable, item))}" if source else ""
        if isinstance(item, LoopRecord):
            yield f"{indent}{loop(item, full=True)}{origin} {{{comment}"
            open_loops += 1
        else:
            origin += f" iteration {item.iterations}" if item.iterations >= 0 else ""
            yield f"{indent}{instruction(item, full=True)}{origin}{comment}"
    yield from _closing_braces(0, open_loops)


def _closing_braces(depth: int, open_loops: int) -> Iterator[str]:
    """Yield the braces that close the loops deeper than `depth`, innermost first."""
    return (f"{INDENT * (loop + 1)}}}" for loop in reversed(range(depth, open_loops)))


def _pair(row: tuple[str, str]) -> str:
    return " ".join(map(quoted, row))


def _file(file: FileRecord) -> str:
    content = f" {quoted(file.text)}" if file.text is not None else ""
    return f"file {quoted(file.path)} {quoted(file.sha256)}{content}"


def _at(place: int) -> str:
    return f" @{place}" if place >= 0 else ""


def _within(executable: Executable, item: InstructionRecord | LoopRecord) -> str:
    """Return the iteration of Python loops: ` [i=3 j=0]`."""
    values = iterations(executable, item)
    return f" [{values}]" if values else ""


# ---- Differences of two files: first of their sections, then of their instructions --------------

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
    lines += [f"tensor {tensor(i, t)}" for i, t in enumerate(e.tensors)]
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
    pairs = enumerate(zip(first, second, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(first), len(second)))
