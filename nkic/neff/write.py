"""Executable → bytes. Equal executables give equal bytes."""

from __future__ import annotations

from hashlib import sha256

from nkic.machine import targets
from nkic.neff import container
from nkic.neff.columns import Columns, columns_of
from nkic.neff.failures import at_most
from nkic.neff.header import REQUIRED, VERSION, Entry, Header, Port, SectionEntry, target_hash
from nkic.neff.layout import SECTION_VERSION
from nkic.neff.limits import LIMITS, Limits
from nkic.neff.records import Executable, ParameterRecord
from nkic.neff.sections import encode
from nkic.neff.sections.encode_code import CodeWriter


def write(
    executable: Executable,
    *,
    embed_source: bool = False,
    limits: Limits = LIMITS,
) -> bytes:
    """Return the bytes of the file. Raises `ArtifactFailed` if a limit of the format is exceeded.

    All other checks are made by `verify`, which emit calls on its result.
    """
    _check_limits(executable, limits)
    columns = columns_of(executable)
    code = CodeWriter().section(executable.streams, columns, limits)
    sections = _sections(executable, columns, code, embed_source)
    return container.pack(_header(executable, sections), sections, limits)


def _sections(
    executable: Executable, columns: Columns, code: bytes, embed_source: bool
) -> dict[str, bytes]:
    sections = {
        "layout": encode.layout(executable),
        "const": encode.const(executable),
        "code": code,
        "meta": encode.meta(executable),
        "src": encode.src(executable.files, embed_source),
        "lines": encode.lines(executable.places, columns),
        "debug": encode.debug(executable),
    }
    return sections | (
        {"iterations": encode.iterations(executable.iterations, columns)}
        if executable.iterations
        else {}
    )


def _header(executable: Executable, sections: dict[str, bytes]) -> Header:
    target = targets.find(executable.target)
    if target is None:
        raise ValueError(f"unknown target {executable.target!r}")
    return Header(
        fmt=VERSION,
        min_reader=VERSION,
        req=0,
        opt=0,
        producer=encode.printable(executable.meta.get("producer", "")),
        target=executable.target,
        target_hash=target_hash(target),
        id=container.program_id(sections),
        entries=(entry(executable),),
        sections=tuple(section_entry(name, data) for name, data in sections.items()),
    )


def section_entry(name: str, data: bytes) -> SectionEntry:
    """Return the header's entry for a section of this version."""
    flags = REQUIRED if name in container.SEMANTIC else 0
    return SectionEntry(name, SECTION_VERSION, flags, len(data), sha256(data).digest())


def entry(executable: Executable) -> Entry:
    """Return the header's entry for the kernel. The reader compares it with the layout section."""
    ports = [
        tuple(_port(executable, parameter) for parameter in parameters)
        for parameters in (executable.inputs, executable.outputs)
    ]
    return Entry(encode.printable(executable.name), executable.cores, ports[0], ports[1])


def _port(executable: Executable, parameter: ParameterRecord) -> Port:
    tensor = executable.tensors[parameter.tensor]
    return Port(
        encode.printable(parameter.name), tensor.dtype.name, tensor.shape, tensor.buffer.value
    )


def _check_limits(executable: Executable, limits: Limits) -> None:
    items = sum(len(stream.items) for stream in executable.streams)
    at_most(items, limits.items, "instructions", "loop on the device with dynamic_range")
    at_most(len(executable.tensors), limits.tensors, "tensors")
    at_most(len(executable.inputs), limits.parameters, "inputs")
    at_most(len(executable.outputs), limits.parameters, "outputs")
    at_most(len(executable.streams), limits.streams, "streams")
    at_most(len(executable.files), limits.files, "source files")
    at_most(len(executable.places), limits.places, "source places")
    at_most(len(executable.iterations), limits.places, "iterations of loops")
    at_most(len(executable.arguments) + len(executable.meta), limits.notes, "arguments and flags")
