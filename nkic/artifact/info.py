"""Description of a file without decoding its program, for `nki-run inspect`.

It supports every minor version of the format, including newer ones. Rows that the vendor's
NeffHeader table also has use its names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nkic.artifact import container, decode
from nkic.artifact.container import (
    FEATURES,
    VERSION,
    Container,
    Entry,
    Header,
    Port,
    SectionEntry,
    known_target_hash,
)
from nkic.artifact.format import LIMITS, SECTION_VERSION, Limits
from nkic.artifact.records import FileRecord
from nkic.artifact.signature import signer
from nkic.base.diagnostics import ArtifactFailed
from nkic.base.text import clean, grouped, size

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
