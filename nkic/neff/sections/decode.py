"""Sections → executable. Optional sections may be absent; so are names and places then."""

from __future__ import annotations

from array import array as compact_array
from collections.abc import Mapping
from hashlib import sha256
from itertools import accumulate, chain, repeat
from typing import Any

from nkic.machine.operands import Row
from nkic.neff.container import Section
from nkic.neff.failures import Malformed, refuse, shown
from nkic.neff.layout import PLACES_PER_RECORD, Iterations, Lines, Meta
from nkic.neff.limits import INT32, Limits
from nkic.neff.records import Executable, FileRecord, PlaceRecord, TensorRecord
from nkic.neff.sections.decode_code import CodeReader
from nkic.neff.sections.decode_layout import LayoutReader
from nkic.neff.sections.streaming import Records
from nkic.neff.typed import array, binary, fields, integer, integers, kind_of, text

Sections = Mapping[str, Section]


def executable(sections: Sections, rows: Mapping[int, Row], limits: Limits) -> Executable:
    """Decode all of `sections`, checking types and references within the file."""
    sources = source_files(sections, limits)
    places, item_places = _lines(sections, len(sources), limits)
    names = _names(sections, len(places), limits)
    layout = LayoutReader(names, limits)
    layout.read(sections["layout"])
    _check_count(sections, "debug", len(names), len(layout.tensors), "tensors")
    arguments, flags = notes(sections, limits)
    constants = _constants(sections["const"], layout.tensors, limits)
    iterations, item_iterations = _iterations(sections, limits)
    reader = CodeReader(
        chain(item_places, repeat(-1)), chain(item_iterations, repeat(-1)), rows, limits
    )
    streams = reader.read(sections["code"])
    items = sum(len(stream.items) for stream in streams)
    _check_count(sections, "lines", len(item_places), items, "instructions")
    _check_count(sections, "iterations", len(item_iterations), items, "instructions")
    return Executable(
        name=layout.kernel[0],
        target=layout.kernel[1],
        cores=layout.kernel[2],
        semaphores=layout.kernel[3],
        registers=layout.kernel[4],
        tensors=tuple(layout.tensors),
        inputs=tuple(layout.inputs),
        outputs=tuple(layout.outputs),
        streams=streams,
        constants=constants,
        places=places,
        files=sources,
        arguments=arguments,
        meta=flags,
        iterations=iterations,
    )


def _check_count(sections: Sections, name: str, count: int, expected: int, subject: str) -> None:
    if name in sections and count != expected:
        text = f"it describes {count:,} {subject}; there are {expected:,}"
        refuse("artifact-malformed", text, name, sections[name].offset)


def source_files(sections: Sections, limits: Limits) -> tuple[FileRecord, ...]:
    if "src" not in sections:
        return ()
    count, largest = 3 * limits.files, limits.source_bytes + limits.record_bytes
    records = Records(sections["src"], count=count, width=0, largest=largest)
    with records.located():
        parts = _groups(records, 3, "source file")
        return tuple(_file(parts[i : i + 3], limits) for i in range(0, len(parts), 3))


def _groups(records: Records, size: int, group: str) -> list[Any]:
    if records.count % size:
        raise Malformed(f"{records.count} records do not make {group}s of {size} each")
    return list(records)


def _file(parts: list[Any], limits: Limits) -> FileRecord:
    path, digest, content = parts
    path = text(path, limits.string_bytes, "a source file's path")
    pieces = path.replace("\\", "/").split("/")
    if any(piece in ("", ".", "..") for piece in pieces) or pieces[0].endswith(":"):
        raise Malformed(f"a source file's path is {shown(path)}: it must not leave its folder")
    if len(binary(digest, "a source file's hash")) != sha256().digest_size:
        raise Malformed("a source file's hash is not 32 bytes")
    if content is not None:
        _check_source(content, digest, limits)
    return FileRecord(path, digest.hex(), content)


def _check_source(content: Any, digest: bytes, limits: Limits) -> None:
    if type(content) is not str:
        raise Malformed(f"a source file's text is {shown(content)}, not a string")
    encoded = content.encode()
    if len(encoded) > limits.source_bytes:
        text = f"a source file of {len(encoded):,} bytes; the limit is {limits.source_bytes:,}"
        raise Malformed(text, "artifact-limit")
    if sha256(encoded).digest() != digest:
        raise Malformed("a source file's text does not match its hash")


def _lines(
    sections: Sections, files: int, limits: Limits
) -> tuple[tuple[PlaceRecord, ...], compact_array[int]]:
    """Return the places, and the place of every item in order."""
    places: list[PlaceRecord] = []
    item_places = compact_array("i")
    if "lines" not in sections:
        return (), item_places
    count = limits.places + limits.items
    width = PLACES_PER_RECORD + 1
    records = Records(sections["lines"], count=count, width=width, largest=limits.record_bytes)
    with records.located():
        for record in records:
            kind = kind_of(record, len(Lines))
            if kind == Lines.PLACE and not item_places:
                _add_place(places, record, files, limits)
            elif kind == Lines.ITEMS:
                item_places.extend(integers(record[1:], -1, len(places) - 1, "an item's place"))
            else:
                raise Malformed(f"a record of kind {kind} is not allowed here")
    return tuple(places), item_places


def _iterations(sections: Sections, limits: Limits) -> tuple[tuple[str, ...], compact_array[int]]:
    """Return the texts of iterations, and the text of every item in order."""
    texts: list[str] = []
    item_iterations = compact_array("i")
    if "iterations" not in sections:
        return (), item_iterations
    count, width = limits.places + limits.items, PLACES_PER_RECORD + 1
    records = Records(sections["iterations"], count=count, width=width, largest=limits.record_bytes)
    with records.located():
        for record in records:
            kind = kind_of(record, len(Iterations))
            if kind == Iterations.TEXT and not item_iterations:
                if len(texts) >= limits.places:
                    raise Malformed(f"more than {limits.places:,} iterations", "artifact-limit")
                (iteration,) = fields(record, 1, "an iteration")
                texts.append(text(iteration, limits.string_bytes, "an iteration"))
            elif kind == Iterations.ITEMS:
                steps = integers(record[1:], -INT32, INT32, "a step to an item's iteration")
                indices = tuple(
                    accumulate(steps, initial=item_iterations[-1] if item_iterations else -1)
                )
                item_iterations.extend(
                    integers(indices, -1, len(texts) - 1, "an item's iteration")[1:]
                )
            else:
                raise Malformed(f"a record of kind {kind} is not allowed here")
    return tuple(texts), item_iterations


def _add_place(
    places: list[PlaceRecord], record: tuple[Any, ...], files: int, limits: Limits
) -> None:
    if len(places) >= limits.places:
        raise Malformed(f"more than {limits.places:,} places", "artifact-limit")
    file, line, column, end_line, end_column, caller = fields(record, 6, "a place")
    integer(file, 0, files - 1, "a place's file")
    integers((line, column, end_line, end_column), 0, INT32, "a place's position")
    integer(caller, -1, len(places) - 1, "a place's caller")  # so that call chains are finite
    places.append(PlaceRecord(file, line, column, end_line, end_column, caller))


def _names(sections: Sections, places: int, limits: Limits) -> list[tuple[str, int]]:
    """Return the tensors' names and places."""
    names: list[tuple[str, int]] = []
    if "debug" not in sections:
        return names
    count, largest = limits.tensors, limits.record_bytes
    records = Records(sections["debug"], count=count, width=2, largest=largest)
    with records.located():
        for record in records:
            name, place = array(record, 2, 2, "a tensor's name")
            name = text(name, limits.string_bytes, "a tensor's name")
            names.append((name, integer(place, -1, places - 1, "a tensor's place")))
    return names


def _constants(section: Section, tensors: list[TensorRecord], limits: Limits) -> dict[int, bytes]:
    """Return contents by tensor. Tensors must ascend, so that none has two."""
    largest = limits.file_bytes
    records = Records(section, count=2 * limits.tensors, width=0, largest=largest)
    constants: dict[int, bytes] = {}
    with records.located():
        parts = _groups(records, 2, "constant")
        last = -1
        for index, content in zip(parts[::2], parts[1::2], strict=True):
            last = integer(index, last + 1, len(tensors) - 1, "a constant's tensor")
            constants[last] = binary(content, "a constant's content")
    return constants


def notes(sections: Sections, limits: Limits) -> tuple[dict[str, str], dict[str, str]]:
    """Return the arguments and the flags."""
    tables: tuple[dict[str, str], dict[str, str]] = ({}, {})
    if "meta" not in sections:
        return tables
    count, largest = limits.notes, limits.record_bytes
    records = Records(sections["meta"], count=count, width=3, largest=largest)
    with records.located():
        for record in records:
            notes = tables[kind_of(record, len(Meta))]
            key, value = fields(record, 2, "a note")
            key = text(key, limits.string_bytes, "a note's key")
            if key in notes:
                raise Malformed(f"the key {shown(key)} appears twice")
            notes[key] = text(value, limits.string_bytes, "a note's value")
    return tables
