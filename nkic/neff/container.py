"""The container: a fixed prefix, the header, and the sections, as a single msgpack value.

    fixarray(3) [ bin(8) magic, bin header, array of bin sections ]

Only the header is decoded here; sections are returned as bytes with verified hashes.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import NamedTuple

from nkic.base.text import clean
from nkic.neff import aws, header
from nkic.neff.failures import refuse
from nkic.neff.header import FEATURES, VERSION, Header, SectionEntry
from nkic.neff.limits import LIMITS, Limits

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
    encoded = header.encode(head)
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
    head = header.decode(data[start:end], start, limits)
    if head.fmt[0] != VERSION[0]:
        _refuse_version(head, f"only major version {VERSION[0]} can be read")
    return Container(head, _sections(data, end, head, limits))


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
    if aws.is_neff(data):
        refuse("aws-neff", aws.explanation(data), offset=0, help=aws.ADVICE)
    offset = next((i for i, (a, b) in enumerate(zip(data, PREFIX, strict=False)) if a != b), None)
    if offset is None:
        text = f"the file ends after {len(data)} of its first {len(PREFIX)} bytes"
        refuse("artifact-damaged", text, offset=len(data))
    if offset >= PREFIX.index(b"\r"):
        text = "the line endings in the first bytes of the file were changed by a transfer as text"
        refuse("artifact-damaged", text, offset=offset, help="transfer the file as binary")
    advice = "compile the kernel first: nkic kernel.py -o kernel.neff"
    refuse("not-an-artifact", "this is not a file that nkic made", offset=offset, help=advice)


def _sections(data: bytes, at: int, head: Header, limits: Limits) -> dict[str, Section]:
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
