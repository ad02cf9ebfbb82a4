"""Bytes → Executable. The file is not trusted; every refusal is `ArtifactFailed`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from nkic.artifact import container, decode, signature, verify
from nkic.artifact.container import SEMANTIC, Container, Section
from nkic.artifact.decode import Records
from nkic.artifact.encode import entry
from nkic.artifact.format import (
    LIMITS,
    SECTION_VERSION,
    SECTIONS,
    CodeRecord,
    Layout,
    Limits,
    refuse,
)
from nkic.artifact.records import Executable
from nkic.artifact.verify import Unsound
from nkic.base import files
from nkic.machine import instructions
from nkic.machine.operands import Row


def open_file(
    path: str, max_bytes: int = LIMITS.file_bytes, *, signed_by: str | None = None
) -> bytes:
    """Return the file's bytes; `-` is standard input.

    Raises `ArtifactFailed` for a file that is too large, before reading it, or that does not have
    the signature of the public key in the file `signed_by`; and `UsageFailed` if the system cannot
    read it.
    """
    size = Path(path).stat().st_size if files.is_file(path) else 0
    if size > max_bytes:
        text = f"the file has {size:,} bytes; the limit is {max_bytes:,}"
        refuse("artifact-limit", text, offset=max_bytes)
    data = files.read_bytes(path, max_bytes)
    if signed_by is not None:
        signature.require(data, signed_by)
    return data


def read(
    data: bytes, *, limits: Limits = LIMITS, rows: Mapping[int, Row] | None = None
) -> Executable:
    """Decode a file. The result is well-formed and well-typed, but not verified as a program.

    `rows` is the instruction table by opcode, by default the machine's.
    """
    return read_container(container.unpack(data, limits), limits, rows)


def read_container(
    file: Container, limits: Limits, rows: Mapping[int, Row] | None = None
) -> Executable:
    """Decode a file that `container.unpack` has split."""
    container.check_version(file.header)
    sections = _supported(file)
    program_id = container.program_id({name: sections[name].data for name in SEMANTIC})
    if program_id != file.header.id:
        refuse("artifact-damaged", "the id in the header is not the program's id", "header")
    table = instructions.BY_OPCODE if rows is None else rows
    executable = decode.executable(sections, table, limits)
    header = file.header
    if header.target != executable.target or header.entries != (entry(executable),):
        text = "the header's target or signature differs from what the layout section holds"
        refuse("artifact-malformed", text, "header")
    return executable


def _supported(file: Container) -> dict[str, Section]:
    """Return the sections that this version reads. Others are skipped unless they are required."""
    supported = {}
    for name, section in file.sections.items():
        if name in SECTIONS and section.entry.version == SECTION_VERSION:
            supported[name] = section
        elif section.entry.required:
            text = f"this version of the tool cannot read version {section.entry.version} of it"
            refuse("artifact-version", text, name, section.offset)
    for name in SEMANTIC:
        if name not in supported:
            refuse("artifact-malformed", f"the file has no section `{name}`")
    return supported


# ---- Reading and verification of a file, which the runner does with every file ------------------

# Records are counted from the first one of this kind.
_FIRST_KINDS = {"layout": Layout.TENSOR, "code": CodeRecord.STREAM}


def load(
    data: bytes,
    *,
    limits: Limits = LIMITS,
    rows: Mapping[int, Row] | None = None,
    passed: Callable[[str], None] = lambda layer: None,
) -> Executable:
    """`read`, then `verify`. Raises `ArtifactFailed` with the byte offset of the error.

    `rows` is the instruction table by opcode, by default the machine's. `passed` is called after
    each layer of checks.
    """
    file = container.unpack(data, limits)
    passed("container and hashes")
    executable = read_container(file, limits, rows)
    passed("schema")
    try:
        verify.check(executable, limits)
    except Unsound as error:
        verify.refuse_unsound(error, executable, _offset(file, error, limits))
    passed("program")
    return executable


def _offset(file: Container, error: Unsound, limits: Limits) -> int | None:
    """Return the offset in the file of the record with the error, if known."""
    section = file.sections[error.section]
    if error.record < 0:
        return section.offset
    records = Records(section, count=1 << 32, width=1 << 10, largest=limits.record_bytes)
    first, seen = _FIRST_KINDS[error.section], -1
    for record in records:
        seen += seen >= 0 or record[0] == first
        if seen == error.record:
            return section.offset + records.start
    return None
