"""Executable → text: a listing, or a complete form that the assembler reads."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from nkic.base.text import clean, plural
from nkic.machine.engines import Engine
from nkic.neff.container import MAGIC
from nkic.neff.header import VERSION
from nkic.neff.listing import text
from nkic.neff.places import iterations, source_of
from nkic.neff.records import Executable, FileRecord, InstructionRecord, LoopRecord, StreamRecord

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
        """Return the text of the record in listings."""
        item = self.item
        return text.loop(item) if isinstance(item, LoopRecord) else text.instruction(item)

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
    """Yield every record of every stream in order."""
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
    executable: Executable,
    *,
    engine: Engine | None = None,
    lines: tuple[int, int] | None = None,
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
        "nki_source_location": text.source(executable, line.item.place),
        "nki_loop_iteration": iterations(executable, line.item),
    }


class _Listing:
    """Collects the lines of a listing."""

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
        source = text.source(self._executable, line.item.place)
        if source != self._source:
            self._interleave(line.item.place)
            self._source = source
        label = f"{line.stream.name}.{line.pc:<6}"
        comment = f"  ; {source}{_within(self._executable, line.item)}" if source else ""
        self._lines.append(clean(f"{label} {INDENT * line.depth}{line.text}{comment}"))

    def _interleave(self, place: int) -> None:
        """Add the line of source text at `place`, if available."""
        span = source_of(self._executable, place)
        lines = self._sources.get(span.path, ()) if span is not None else ()
        if span is not None and 0 < span.line <= len(lines):
            code = lines[span.line - 1].strip()
            self._lines.append(clean(f"; {span.path}:{span.line}: {code}"))

    def text(self) -> str:
        """Return the lines, each with a line ending."""
        return "".join(f"{line}\n" for line in self._lines)


def dump(executable: Executable) -> str:
    """Return the complete text form, from which `assemble` restores the executable."""
    return "".join(f"{line}\n" for line in _dump(executable))


def _dump(e: Executable) -> Iterator[str]:
    yield HEAD
    yield (
        f"kernel {text.quoted(e.name)} {e.target} cores={e.cores}"
        f" semaphores={e.semaphores} registers={e.registers}"
    )
    yield from (f"argument {_pair(row)}" for row in e.arguments.items())
    yield from (f"flag {_pair(row)}" for row in e.meta.items())
    yield from map(_file, e.files)
    for place in e.places:
        caller = f" from {place.caller}" if place.caller >= 0 else ""
        span = f"{place.line}:{place.column} {place.end_line}:{place.end_column}"
        yield f"place {place.file} {span}{caller}"
    yield from (f"iteration {text.quoted(iteration)}" for iteration in e.iterations)
    yield from (f"tensor {text.tensor(i, t)}{_at(t.place)}" for i, t in enumerate(e.tensors))
    yield from (f"input {text.quoted(p.name)} %{p.tensor}" for p in e.inputs)
    yield from (f"output {text.quoted(p.name)} %{p.tensor}" for p in e.outputs)
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
        source = text.source(executable, item.place)
        comment = f"  ; {clean(source + _within(executable, item))}" if source else ""
        if isinstance(item, LoopRecord):
            yield f"{indent}{text.loop(item, full=True)}{origin} {{{comment}"
            open_loops += 1
        else:
            origin += f" iteration {item.iterations}" if item.iterations >= 0 else ""
            yield f"{indent}{text.instruction(item, full=True)}{origin}{comment}"
    yield from _closing_braces(0, open_loops)


def _closing_braces(depth: int, open_loops: int) -> Iterator[str]:
    """Yield the braces that close the loops deeper than `depth`, innermost first."""
    return (f"{INDENT * (loop + 1)}}}" for loop in reversed(range(depth, open_loops)))


def _pair(row: tuple[str, str]) -> str:
    return " ".join(map(text.quoted, row))


def _file(file: FileRecord) -> str:
    content = f" {text.quoted(file.text)}" if file.text is not None else ""
    return f"file {text.quoted(file.path)} {text.quoted(file.sha256)}{content}"


def _at(place: int) -> str:
    return f" @{place}" if place >= 0 else ""


def _within(executable: Executable, item: InstructionRecord | LoopRecord) -> str:
    """Return the iteration of Python loops: ` [i=3 j=0]`."""
    values = iterations(executable, item)
    return f" [{values}]" if values else ""
