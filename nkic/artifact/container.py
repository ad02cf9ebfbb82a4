"""The container: a fixed prefix, the header, and the sections, as a single msgpack value.

    fixarray(3) [ bin(8) magic, bin header, array of bin sections ]

Only the header is decoded here; sections are returned as bytes with verified hashes.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import fields
from hashlib import sha256
from typing import Any, NamedTuple

import msgpack

from nkic.artifact.format import (
    INT32,
    LIMITS,
    Limits,
    Malformed,
    array,
    integer,
    refuse,
    shown,
    text,
)
from nkic.base.text import clean
from nkic.machine import targets
from nkic.machine.targets import ENGINE_CODES, Target

# ---- Recognition of the vendor's executable files, which share only our extension ---------------
# Layout of their 1024-byte header: Neuron documentation, "Work with NEFF files". It does not state
# the byte order; little-endian is assumed, as on every host that Neuron supports.

HEADER_BYTES = 1024
_VERSIONS = struct.Struct("<5Q")  # package version, header size, data size, major, minor
_NAME = slice(220, 220 + 256)
_MAX_PACKAGE_VERSION = 1000  # 2 is current; this only excludes chance matches
ADVICE = "compile the kernel's source with nkic; the vendor's files run on Trainium only"


def is_neff(data: bytes) -> bool:
    """Return whether the file begins with the header of an AWS NEFF."""
    if len(data) < HEADER_BYTES:
        return False
    package, header, *_ = _VERSIONS.unpack_from(data)
    return bool(header == HEADER_BYTES and package <= _MAX_PACKAGE_VERSION)


def explanation(data: bytes) -> str:
    """Return a description of such a file for the user."""
    _, _, _, major, minor = _VERSIONS.unpack_from(data)
    name = data[_NAME].split(b"\0")[0].decode("utf-8", "replace")
    called = f' of network "{clean(name)}"' if name else ""
    return (
        f"this is an AWS NEFF, version {major}.{minor}{called}: machine code for Trainium in the"
        " vendor's format. It has the same extension as nkic's files, but another format"
    )


# ---- The header, which describes a file without decoding its sections ---------------------------
# It is one canonical msgpack map with the keys of `_KEYS`, in this order; a newer minor version
# may add keys before `digest`, which is the last and covers all bytes of the header before its own
# 32. The digest and the sections' hashes detect damage; they do not authenticate the file.

VERSION = (2, 0)
FEATURES = 0  # the bits of `req` that this version supports
REQUIRED = 1  # bit 0 of a section's flags
DIGEST_BYTES = 32


class SectionEntry(NamedTuple):
    """The header's entry for a section."""

    name: str
    version: int
    flags: int
    length: int
    sha256: bytes

    @property
    def required(self) -> bool:
        """Whether a reader that does not know the section must refuse the file."""
        return bool(self.flags & REQUIRED)


class Port(NamedTuple):
    """A parameter or result of the kernel for `nki-run inspect`: dtype and buffer are names."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    buffer: str


class Entry(NamedTuple):
    """A kernel that can be run. `cores` is the number of physical cores it occupies."""

    name: str
    cores: int
    parameters: tuple[Port, ...]
    results: tuple[Port, ...]


class Header(NamedTuple):
    """The header. `req` and `opt` are feature bits: those of `req` must be supported by a reader.

    `target_hash` is the hash of the target's figures when the file was made; `id` identifies the
    program.
    """

    fmt: tuple[int, int]
    min_reader: tuple[int, int]
    req: int
    opt: int
    producer: str
    target: str
    target_hash: bytes
    id: bytes
    entries: tuple[Entry, ...]
    sections: tuple[SectionEntry, ...]


_KEYS = (*Header._fields, "digest")


def target_hash(target: Target) -> bytes:
    """Return a hash of all figures of `target`: sizes, clocks, rates."""
    rows = [(f.name, _figure(getattr(target, f.name))) for f in fields(target)]
    return sha256(msgpack.packb(rows)).digest()


def _figure(value: Any) -> Any:
    if isinstance(value, Mapping):
        return sorted(value.items())
    if isinstance(value, tuple):
        return [ENGINE_CODES[engine] for engine in value]
    return value


def known_target_hash(name: str) -> bytes | None:
    """Return the hash of this tool's own figures of target `name`; None if it is unknown."""
    target = targets.TARGETS.get(name)
    return target_hash(target) if target else None


def encode(header: Header) -> bytes:
    """Encode a header, including its digest."""
    values: dict[str, Any] = dict(header._asdict())
    values["digest"] = bytes(DIGEST_BYTES)
    head: bytes = msgpack.packb(values)[:-DIGEST_BYTES]
    return head + sha256(head).digest()


def decode(data: bytes, offset: int, limits: Limits) -> Header:
    """Decode a header, which starts at `offset` in the file; raises `ArtifactFailed`."""
    if sha256(data[:-DIGEST_BYTES]).digest() != data[-DIGEST_BYTES:]:
        refuse("artifact-damaged", "the header does not match its own digest", "header", offset)
    try:
        return _header(_fields(data), limits)
    except Malformed as error:
        refuse(error.slug, f"{error}", "header", offset)


def _fields(data: bytes) -> dict[str, Any]:
    """Decode the map, which must be canonical."""
    try:
        record = msgpack.unpackb(
            data, use_list=False, max_ext_len=0, object_pairs_hook=_distinct, strict_map_key=True
        )
        canonical = msgpack.packb(record) == data
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise Malformed(f"the header is not valid msgpack: {clean(str(error))[:80]}") from error
    if type(record) is not dict:
        raise Malformed(f"the header is {shown(record)}, not a map")
    if not canonical:
        raise Malformed("the header's msgpack is not canonical")
    return record


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise Malformed("the header has a key twice")
    return record


def _header(record: dict[str, Any], limits: Limits) -> Header:
    keys = tuple(record)
    fmt = _version(record.get("fmt"), "fmt")
    newer = fmt > VERSION
    recognised = tuple(key for key in keys if key in _KEYS) if newer else keys
    if recognised != _KEYS or keys[-1] != _KEYS[-1]:
        raise Malformed(f"the header's keys are not {', '.join(_KEYS)}, in this order")
    return Header(
        fmt,
        _version(record["min_reader"], "min_reader"),
        integer(record["req"], 0, 2**64 - 1, "req"),
        integer(record["opt"], 0, 2**64 - 1, "opt"),
        text(record["producer"], limits.string_bytes, "producer"),
        text(record["target"], limits.string_bytes, "target"),
        _hash(record["target_hash"], "target_hash"),
        _hash(record["id"], "id"),
        tuple(_entry(e, limits) for e in array(record["entries"], 1, 64, "entries")),
        _sections(record["sections"], limits),
    )


def _version(value: Any, subject: str) -> tuple[int, int]:
    major, minor = array(value, 2, 2, subject)
    return integer(major, 0, INT32, subject), integer(minor, 0, INT32, subject)


def _hash(value: Any, subject: str) -> bytes:
    if type(value) is not bytes or len(value) != DIGEST_BYTES:
        raise Malformed(f"{subject} is not {DIGEST_BYTES} bytes of binary data")
    return value


def _entry(value: Any, limits: Limits) -> Entry:
    name, cores, parameters, results = array(value, 4, 4, "an entry")
    return Entry(
        text(name, limits.string_bytes, "an entry's name"),
        integer(cores, 1, INT32, "an entry's cores"),
        _ports(parameters, "an entry's parameters", limits),
        _ports(results, "an entry's results", limits),
    )


def _ports(value: Any, subject: str, limits: Limits) -> tuple[Port, ...]:
    return tuple(_port(port, limits) for port in array(value, 0, limits.parameters, subject))


def _port(value: Any, limits: Limits) -> Port:
    name, dtype, shape, buffer = array(value, 4, 4, "a parameter")
    return Port(
        text(name, limits.string_bytes, "a parameter's name"),
        text(dtype, limits.string_bytes, "a parameter's dtype"),
        tuple(integer(n, 1, INT32, "a dimension") for n in array(shape, 0, limits.rank, "a shape")),
        text(buffer, limits.string_bytes, "a parameter's buffer"),
    )


def _sections(value: Any, limits: Limits) -> tuple[SectionEntry, ...]:
    rows = array(value, 0, limits.sections, "sections", slug="artifact-limit")
    entries = tuple(_section(row, limits) for row in rows)
    if len({entry.name for entry in entries}) != len(entries):
        raise Malformed("two sections have the same name")
    return entries


def _section(value: Any, limits: Limits) -> SectionEntry:
    name, version, flags, length, digest = array(value, 5, 5, "a section's entry")
    return SectionEntry(
        text(name, limits.string_bytes, "a section's name"),
        integer(version, 0, INT32, "a section's version"),
        integer(flags, 0, 2**64 - 1, "a section's flags"),
        integer(length, 0, 2**32 - 1, "a section's length"),
        _hash(digest, "a section's hash"),
    )


# --------------------------------------------------------------------------------------------------

MAGIC = b"NKIX\r\n\x1a\n"  # as in PNG: a transfer in text mode corrupts it
PREFIX = b"\x93\xc4\x08" + MAGIC
SEMANTIC = ("layout", "const", "code")  # the sections that define the program and its id
_ID_DOMAIN = b"nkix-2\0"
_BIN_HEADS = {0xC4: 1, 0xC5: 2, 0xC6: 4}  # size of a bin's length field, by the bin's first byte


class Section(NamedTuple):
    """A section: its header entry, its content, and its offset in the file."""

    entry: SectionEntry
    data: memoryview
    offset: int


class Container(NamedTuple):
    """A file split into its header and sections."""

    header: Header
    sections: Mapping[str, Section]


def program_id(sections: Mapping[str, bytes | memoryview]) -> bytes:
    """Return the program's id: a hash of the names, lengths and contents of semantic sections."""
    digest = sha256(_ID_DOMAIN)
    for name in SEMANTIC:
        data = sections[name]
        digest.update(len(name).to_bytes(8, "little") + name.encode())
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.digest()


def pack(head: Header, sections: Mapping[str, bytes | memoryview], limits: Limits) -> bytes:
    """Return the bytes of a file. `head.sections` declares `sections`, in this order."""
    encoded = encode(head)
    if len(encoded) > limits.header_bytes:
        refuse("artifact-limit", f"the header has {len(encoded):,} bytes", help=_FEWER)
    parts = [PREFIX, _bin_head(len(encoded)), encoded, _array_head(len(sections))]
    for data in sections.values():
        parts += [_bin_head(len(data)), bytes(data)]
    size = sum(map(len, parts))
    if size > limits.file_bytes:
        text = f"the file has {size:,} bytes; the limit is {limits.file_bytes:,}"
        refuse("artifact-limit", text, help="keep loops on the device with dynamic_range")
    return b"".join(parts)


_FEWER = "the header holds the signature: use fewer or shorter parameter names"


def _bin_head(size: int) -> bytes:
    if size < 1 << 8:
        return b"\xc4" + size.to_bytes(1, "big")
    if size < 1 << 16:
        return b"\xc5" + size.to_bytes(2, "big")
    return b"\xc6" + size.to_bytes(4, "big")


def _array_head(count: int) -> bytes:
    return bytes([0x90 + count]) if count < 16 else b"\xdc" + count.to_bytes(2, "big")


def unpack(data: bytes, limits: Limits = LIMITS) -> Container:
    """Split a file of any minor version into its parts; raises `ArtifactFailed`.

    Verifies every section's hash, and that the file has no other bytes.
    """
    _recognise(data, limits)
    start, end = _bin(data, len(PREFIX), limits.header_bytes, "header")
    head = decode(data[start:end], start, limits)
    if head.fmt[0] != VERSION[0]:
        _refuse_version(head, f"only major version {VERSION[0]} can be read")
    return Container(head, _section_table(data, end, head, limits))


def check_version(head: Header) -> None:
    """Refuse a file that this version of the tool cannot run."""
    if head.min_reader > VERSION:
        _refuse_version(head, f"it needs a reader of version {_dotted(head.min_reader)}")
    if unknown := head.req & ~FEATURES:
        _refuse_version(head, f"it needs features {unknown:#x}, which this version does not have")


def _refuse_version(head: Header, reason: str) -> None:
    text = (
        f"the file has format version {_dotted(head.fmt)}, made by"
        f" {clean(head.producer) or 'an unnamed tool'}; {reason}; this tool reads"
        f" {_dotted(VERSION)}"
    )
    older = "compile the kernel again, or use the version of the tool that made the file"
    newer = "use the version of the tool that made it, or a newer one"
    refuse("artifact-version", text, "header", help=older if head.fmt < VERSION else newer)


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def _recognise(data: bytes, limits: Limits) -> None:
    if len(data) > limits.file_bytes:
        text = f"the file has {len(data):,} bytes; the limit is {limits.file_bytes:,}"
        refuse("artifact-limit", text, offset=limits.file_bytes)
    if data.startswith(PREFIX):
        return
    if is_neff(data):
        refuse("aws-neff", explanation(data), offset=0, help=ADVICE)
    offset = next((i for i, (a, b) in enumerate(zip(data, PREFIX, strict=False)) if a != b), None)
    if offset is None:
        text = f"the file ends after {len(data)} of its first {len(PREFIX)} bytes"
        refuse("artifact-damaged", text, offset=len(data))
    if offset >= PREFIX.index(b"\r"):
        text = "the line endings in the first bytes of the file were changed by a transfer as text"
        refuse("artifact-damaged", text, offset=offset, help="transfer the file as binary")
    advice = "compile the kernel first: nkic kernel.py -o kernel.neff"
    refuse("not-an-artifact", "this is not a file that nkic made", offset=offset, help=advice)


def _section_table(data: bytes, at: int, head: Header, limits: Limits) -> dict[str, Section]:
    count, at = _count(data, at)
    if count != len(head.sections):
        text = f"{count} sections follow; the header declares {len(head.sections)}"
        refuse("artifact-damaged", text, offset=at)
    view, sections = memoryview(data), {}
    for entry in head.sections:
        start, at = _bin(data, at, limits.file_bytes, entry.name)
        section = sections[entry.name] = Section(entry, view[start:at], start)
        _check_hash(section)
    if at != len(data):
        text = f"{len(data) - at:,} bytes follow the last section"
        refuse("artifact-damaged", text, offset=at)
    return sections


def _check_hash(section: Section) -> None:
    entry, size = section.entry, len(section.data)
    if size != entry.length:
        text = f"it has {size:,} bytes; the header declares {entry.length:,}"
    elif sha256(section.data).digest() != entry.sha256:
        text = "its content does not match its hash"
    else:
        return
    refuse("artifact-damaged", text, entry.name, section.offset, help="transfer the file again")


def _count(data: bytes, at: int) -> tuple[int, int]:
    """Return the number of sections, and the offset of the first."""
    first = data[at] if at < len(data) else 0
    if 0x90 <= first <= 0x9F:
        return first - 0x90, at + 1
    count = int.from_bytes(data[at + 1 : at + 3], "big")
    if data[at : at + 3] != _array_head(count):
        refuse("artifact-damaged", "no array of sections follows the header", offset=at)
    return count, at + 3


def _bin(data: bytes, at: int, limit: int, subject: str) -> tuple[int, int]:
    """Return the start and end of the content of the bin at `at`."""
    width = _BIN_HEADS.get(data[at] if at < len(data) else 0)
    if width is None:
        refuse("artifact-damaged", "no binary data here", subject, at)
    start = at + 1 + width
    size = int.from_bytes(data[at + 1 : start], "big")
    if size > limit:
        refuse("artifact-limit", f"it has {size:,} bytes; the limit is {limit:,}", subject, at)
    if start + size > len(data):
        text = f"it should have {size:,} bytes; the file ends after {max(0, len(data) - start):,}"
        refuse("artifact-damaged", text, subject, at)
    if data[at:start] != _bin_head(size):
        refuse("artifact-malformed", "its length does not have the shortest encoding", subject, at)
    return start, start + size
