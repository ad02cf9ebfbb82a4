"""The header, which describes a file without decoding its sections.

It is one canonical msgpack map with the keys of `_KEYS`, in this order; a newer minor version may
add keys before `digest`, which is the last and covers all bytes of the header before its own 32.
The digest and the sections' hashes detect damage; they do not authenticate the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from hashlib import sha256
from typing import Any, NamedTuple

import msgpack

from nkic.base.text import clean
from nkic.machine import targets
from nkic.machine.engines import ENGINE_CODES
from nkic.machine.targets import Target
from nkic.neff.failures import Malformed, refuse, shown
from nkic.neff.limits import INT32, Limits
from nkic.neff.typed import array, integer, text

VERSION = (2, 0)
FEATURES = 0  # the bits of `req` that this version supports
REQUIRED = 1  # bit 0 of a section's flags
DIGEST_BYTES = 32
_KEYS = (
    "fmt",
    "min_reader",
    "req",
    "opt",
    "producer",
    "target",
    "target_hash",
    "id",
    "entries",
    "sections",
    "digest",
)


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
