"""Bytes → Executable, or a description of the file.

The file is not trusted; every refusal is `ArtifactFailed`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nkic.artifact import container, decode, signature, verify
from nkic.artifact.container import (
    FEATURES,
    SEMANTIC,
    VERSION,
    Container,
    Entry,
    Header,
    Port,
    Section,
    SectionEntry,
    known_target_hash,
)
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
from nkic.artifact.records import Executable, FileRecord
from nkic.artifact.signature import signer
from nkic.artifact.verify import Unsound
from nkic.base import files
from nkic.base.diagnostics import ArtifactFailed
from nkic.base.text import clean, grouped, size
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


# ---- Descriptions of a file without decoding its program, for `nki-run inspect` -----------------

SCHEMA = 1


@dataclass(frozen=True)
class Info:
    """What `nki-run inspect` shows. `bytes` is the size of the file; notes and files are
    optional. `signer` is the public key, in hex, by which the file claims to be signed.
    """

    header: Header
    bytes: int
    arguments: Mapping[str, str]
    flags: Mapping[str, str]
    files: tuple[FileRecord, ...]
    signer: str | None

    @property
    def artifact_id(self) -> str:
        """The program's id in hex: equal programs have equal ids, wherever they are built."""
        return self.header.id.hex()

    @property
    def runnable(self) -> bool:
        """Whether this version of the tool can run the file."""
        return self.header.min_reader <= VERSION and not self.header.req & ~FEATURES

    @property
    def target_table(self) -> str:
        """Whether the target's figures are the same as when the file was made."""
        current_hash = known_target_hash(self.header.target)
        if current_hash is None:
            return "unknown target"
        return (
            "same" if current_hash == self.header.target_hash else "changed since: times may differ"
        )

    def rows(self) -> list[tuple[str, str]]:
        h, entry = self.header, self.header.entries[0]
        rows = [
            ("Kernel", entry.name),
            ("Artifact ID", self.artifact_id),
            ("Format Version", f"{h.fmt[0]}.{h.fmt[1]}"),
            ("Made By", h.producer),
            ("Runs Here", "yes" if self.runnable else "no, a newer version of the tool is needed"),
            ("Features", _bits(h.req | h.opt)),
            ("Target", h.target),
            ("Timing Figures", self.target_table),
            ("Cores", str(entry.cores)),
            ("Signed By", f"{self.signer} (not checked)" if self.signer else "nobody"),
            ("File Size", f"{grouped(self.bytes)} bytes ({size(self.bytes)})"),
        ]
        rows += [(f"Input {port.name}", _shown(port)) for port in entry.parameters]
        rows += [(f"Output {port.name}", _shown(port)) for port in entry.results]
        rows += [(f"Argument {key}", value) for key, value in self.arguments.items()]
        rows += [(f"Flag {key}", value) for key, value in self.flags.items() if key != "producer"]
        rows += [(f"Source {f.path}", f"sha256 {f.sha256}") for f in self.files]
        return [(clean(label), clean(value)) for label, value in rows]

    def sections(self) -> list[tuple[str, str, str, str]]:
        """Return rows of name, bytes, share of the file, and hash status."""
        return [
            (clean(s.name), grouped(s.length), f"{100 * s.length / self.bytes:.1f}%", "ok")
            for s in self.header.sections
        ]

    def as_json(self) -> dict[str, Any]:
        h = self.header
        return {
            "schema": SCHEMA,
            "artifact_id": self.artifact_id,
            "format_version": list(h.fmt),
            "min_reader": list(h.min_reader),
            "required_features": h.req,
            "optional_features": h.opt,
            "runnable": self.runnable,
            "producer": h.producer,
            "target": h.target,
            "target_hash": h.target_hash.hex(),
            "target_table": self.target_table,
            "signer": self.signer,
            "bytes": self.bytes,
            "entries": [_entry(entry) for entry in h.entries],
            "sections": [_section(section) for section in h.sections],
            "arguments": dict(self.arguments),
            "flags": dict(self.flags),
            "sources": [
                {"path": f.path, "sha256": f.sha256, "embedded": f.text is not None}
                for f in self.files
            ],
        }


def info(data: bytes, limits: Limits = LIMITS) -> Info:
    """Describe a file of any minor version. Raises `ArtifactFailed` if it is damaged."""
    file = container.unpack(data, limits)
    arguments, flags, files = _optional(file, limits)
    return Info(file.header, len(data), arguments, flags, files, signer(file))


def _optional(
    file: Container, limits: Limits
) -> tuple[Mapping[str, str], Mapping[str, str], tuple[FileRecord, ...]]:
    """Return the notes and source files that this version can read."""
    supported = {n: s for n, s in file.sections.items() if s.entry.version == SECTION_VERSION}
    try:
        return *decode.notes(supported, limits), decode.source_files(supported, limits)
    except ArtifactFailed:
        if file.header.fmt <= VERSION:
            raise
        return {}, {}, ()


def _bits(bits: int) -> str:
    return ", ".join(f"bit {i}" for i in range(bits.bit_length()) if bits >> i & 1) or "none"


def _shown(port: Port) -> str:
    return f"{port.dtype}[{', '.join(map(str, port.shape))}] in {port.buffer}"


def _section(section: SectionEntry) -> dict[str, Any]:
    return {
        "name": section.name,
        "version": section.version,
        "required": section.required,
        "bytes": section.length,
        "sha256": section.sha256.hex(),
        "hash_ok": True,
    }


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "cores": entry.cores,
        "inputs": [_port(port) for port in entry.parameters],
        "outputs": [_port(port) for port in entry.results],
    }


def _port(port: Port) -> dict[str, Any]:
    return {**port._asdict(), "shape": list(port.shape)}
