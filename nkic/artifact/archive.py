"""Untrusted zip archives: the directory, checked by hand, and the bytes of a member.

Only what NumPy and similar tools write is accepted: one disk, stored or deflated members, and no
bytes that the directory does not account for. Sizes in the directory are claims; a reader never
takes more bytes than it was told to expect. Layout: PKWARE's APPNOTE, sections 4.3 (records) and
4.5.3 (zip64).
"""

from __future__ import annotations

import io
import os
import stat
import struct
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple, NoReturn

from nkic.base import files
from nkic.base.diagnostics import InputFailed, UsageFailed, make
from nkic.base.files import STANDARD, cannot_read
from nkic.base.text import clean, grouped

# ---- Rejection of input data: always `InputFailed`, with the file and the array -----------------

CALL = "the call"  # in place of a path: the array is an argument of a Python call


class Damaged(Exception):
    """A part of a file violates its format; a caller that knows the file turns this into
    `InputFailed`.

    `slug` names the diagnostic's code.
    """

    def __init__(self, message: str, slug: str = "bad-array-file", help: str = "") -> None:
        super().__init__(message)
        self.slug = slug
        self.help = help


def refuse(path: str, error: Damaged, array: str = "") -> NoReturn:
    """Raise `InputFailed` for an error in the file `path`."""
    suffix = f", array `{clean(array)}`" if array else ""
    raise InputFailed([make(error.slug, f"{called(path)}{suffix}: {error}", help=error.help)])


def called(path: str) -> str:
    """Return the name of the file, or of another source of arrays, in messages."""
    if path == CALL:
        return CALL
    return "standard input" if path == STANDARD else f"`{clean(path)}`"


# ------------------------------------------------------------------------------------------------
# Files of arrays as seekable streams; a file that cannot seek is read whole, up to a limit.

SLACK = 1 << 20  # bytes allowed beyond the arrays: headers, directory


class Opened(NamedTuple):
    """A file, and its size in bytes."""

    stream: BinaryIO
    size: int


@contextmanager
def opened(path: str, expected: int) -> Iterator[Opened]:
    """Open the file `path`, or standard input for `-`.

    A pipe or a device is read into memory, up to the `expected` bytes of data and some slack,
    because its size is unknown. Raises `UsageFailed` if the system cannot read, also while the
    caller reads.
    """
    try:
        with _stream(path) as stream:
            yield _whole(stream, path, expected + SLACK)
    except OSError as error:
        raise UsageFailed([cannot_read(path, error)]) from error


@contextmanager
def opened_file(path: str) -> Iterator[Opened]:
    """Open a regular file of which only headers are read; `-` is a file name here.

    Raises `UsageFailed` as `opened` does.
    """
    try:
        with files.opened(path) as stream:
            yield Opened(stream, os.fstat(stream.fileno()).st_size)
    except (OSError, ValueError) as error:
        raise UsageFailed([cannot_read(path, error)]) from error


@contextmanager
def _stream(path: str) -> Iterator[BinaryIO]:
    if "\0" in path:
        raise OSError(None, "a path cannot contain a null character")
    if path != STANDARD:
        with Path(path).open("rb") as stream:
            yield stream
        return
    if sys.stdin is None:
        raise OSError("standard input is closed")
    yield sys.stdin.buffer


def _whole(stream: BinaryIO, path: str, limit: int) -> Opened:
    status = os.fstat(stream.fileno())
    if path != STANDARD and stat.S_ISREG(status.st_mode):
        return Opened(stream, status.st_size)
    data = stream.read(limit + 1)
    if len(data) > limit:
        text = (
            f"{called(path)} gives more than {grouped(limit)} bytes, all that the kernel's arrays"
        )
        help = "give only these arrays, uncompressed, or use a file instead of the pipe"
        raise InputFailed([make("input-too-large", f"{text} can take", help=help)])
    return Opened(io.BytesIO(data), len(data))


class Plain:
    """The bytes of a whole file, in order: for an npy file, or raw data."""

    def __init__(self, file: Opened) -> None:
        self.stream = file.stream
        self.left = file.size
        self.stream.seek(0)

    def read(self, count: int) -> bytes:
        data = self.stream.read(min(count, self.left))
        self._took(len(data), count)
        return data

    def fill(self, target: memoryview) -> None:
        count = min(len(target), self.left)
        taken = self.stream.readinto(target[:count])  # type: ignore[attr-defined]
        self._took(taken, len(target))

    def finish(self) -> None:
        if self.left:
            raise Damaged(f"{grouped(self.left)} bytes follow the array")

    def _took(self, count: int, wanted: int) -> None:
        self.left -= count
        if count != wanted:
            raise Damaged("it is truncated")


# --------------------------------------------------------------------------------------------------

MAX_MEMBERS = 4096
MAX_DIRECTORY = 4 << 20  # bytes; a member takes 46 plus its name
CHUNK = 1 << 20

_END = struct.Struct("<4s4H2LH")
_END64_PLACE = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_MAX_COMMENT = 0xFFFF
_ENCRYPTED, _STREAMED, _UTF8 = 0x1 | 0x40 | 0x2000, 0x8, 0x800
_STORED, _DEFLATED = 0, 8
_METHODS = {9: "deflate64", 12: "bzip2", 14: "lzma", 93: "zstd", 95: "xz"}
_IN_ZIP64 = 0xFFFFFFFF


class Member(NamedTuple):
    """A file in the archive, as the directory describes it; `offset` is of its local header."""

    name: str
    method: int
    flags: int
    crc: int
    packed: int  # bytes in the archive
    size: int  # bytes of content
    offset: int


class _Directory(NamedTuple):
    members: int
    size: int
    offset: int
    end: int  # where the records after it begin


def members(stream: BinaryIO, size: int) -> tuple[Member, ...]:
    """Return every member of the archive of `size` bytes. Raises `Damaged`."""
    directory = _directory(stream, size)
    if directory.members > MAX_MEMBERS or directory.size > MAX_DIRECTORY:
        text = f"it lists {directory.members:,} members, the limit is {MAX_MEMBERS:,}"
        raise Damaged(text if directory.members > MAX_MEMBERS else "its directory is too large")
    if directory.offset + directory.size != directory.end:
        raise Damaged("its directory is not where its end record says")
    listed = _entries(_at(stream, directory.offset, directory.size), directory.members)
    _check_names(listed)
    ordered = sorted(listed, key=lambda member: member.offset)
    starts = [member.offset for member in ordered[1:]] + [directory.offset]
    for member, following in zip(ordered, starts, strict=False):  # an empty archive has one start
        if member.offset + _LOCAL.size + member.packed > following:
            raise Damaged(f"member `{clean(member.name)}` overlaps what follows it")
    return listed


def _directory(stream: BinaryIO, size: int) -> _Directory:
    tail_at = max(0, size - _END.size - _MAX_COMMENT)
    tail = _at(stream, tail_at, size - tail_at)
    at = _find_end(tail)
    _, disk, first, here, count, length, offset, _ = _END.unpack_from(tail, at)
    at += tail_at
    wide = _at(stream, max(0, at - _END64_PLACE.size), 4) == b"PK\6\7"
    if wide or 0xFFFF in (here, count) or _IN_ZIP64 in (length, offset):
        return _directory64(stream, at)
    if (disk, first) != (0, 0) or here != count:
        raise Damaged("it is one part of an archive that was split")
    return _Directory(count, length, offset, at)


def _find_end(tail: bytes) -> int:
    """Return the offset of the end record: the last one whose comment ends with the file."""
    at = tail.rfind(b"PK\5\6")
    while at >= 0:
        fits = len(tail) >= at + _END.size
        if fits and at + _END.size + _END.unpack_from(tail, at)[-1] == len(tail):
            return at
        at = tail.rfind(b"PK\5\6", 0, at)
    raise Damaged("it is not a zip archive, or its end is missing", help=_WHAT_NPZ_IS)


_WHAT_NPZ_IS = "inputs are an npz file, as numpy.savez writes it"


def _directory64(stream: BinaryIO, end: int) -> _Directory:
    locator = _at(stream, end - _END64_PLACE.size, _END64_PLACE.size)
    sign, _, at, _ = _END64_PLACE.unpack(locator)
    if sign != b"PK\6\7" or at > end - _END64_PLACE.size - _END64.size:
        raise Damaged("its zip64 end record is missing")
    record = _at(stream, at, _END64.size)
    sign, _, _, _, disk, first, here, count, length, offset = _END64.unpack(record)
    if sign != b"PK\6\6" or (disk, first) != (0, 0) or here != count:
        raise Damaged("its zip64 end record is wrong")
    return _Directory(count, length, offset, at)


def _entries(data: bytes, count: int) -> tuple[Member, ...]:
    entries, at = [], 0
    for _ in range(count):
        if len(data) < at + _ENTRY.size or data[at : at + 4] != b"PK\1\2":
            raise Damaged("its directory is damaged")
        member, at = _entry(data, at)
        entries.append(member)
    if at != len(data):
        raise Damaged("its directory holds more than it declares")
    return tuple(entries)


def _entry(data: bytes, at: int) -> tuple[Member, int]:
    fields = _ENTRY.unpack_from(data, at)
    _, _, _, flags, method, _, _, crc, packed, size, names, extras, comments, disk, *_ = fields
    start = at + _ENTRY.size
    after = start + names + extras + comments
    if after > len(data) or disk not in (0, 0xFFFF):
        raise Damaged("its directory is damaged")
    raw, extra = data[start : start + names], data[start + names : start + names + extras]
    size, packed, offset = _widened((size, packed, fields[-1]), extra)
    return Member(_name(raw, flags), method, flags, crc, packed, size, offset), after


def _name(raw: bytes, flags: int) -> str:
    try:
        return raw.decode("utf-8" if flags & _UTF8 else "cp437")
    except UnicodeDecodeError as error:
        raise Damaged("a member's name is not UTF-8") from error


def _widened(numbers: tuple[int, ...], extra: bytes) -> tuple[int, ...]:
    """Return the numbers, replacing those that exceed 32 bits with the zip64 field of `extra`."""
    wide = _zip64_field(extra)
    widened = []
    for number in numbers:
        if number == _IN_ZIP64:
            if len(wide) < 8:
                raise Damaged("a zip64 size is missing")
            number, wide = int.from_bytes(wide[:8], "little"), wide[8:]
        widened.append(number)
    return tuple(widened)


def _zip64_field(extra: bytes) -> bytes:
    while len(extra) >= 4:
        kind, length = struct.unpack_from("<2H", extra)
        if kind == 1:
            return extra[4 : 4 + length]
        extra = extra[4 + length :]
    return b""


def _check_names(listed: tuple[Member, ...]) -> None:
    seen: set[str] = set()
    for member in listed:
        parts = member.name.replace("\\", "/").split("/")
        outside = ".." in parts or not parts[0] or ":" in parts[0] or "\0" in member.name
        if outside:
            raise Damaged(f"member `{clean(member.name)}` has a name that leads out of the archive")
        if member.name in seen:
            raise Damaged(f"member `{clean(member.name)}` appears twice")
        seen.add(member.name)


def _at(stream: BinaryIO, offset: int, count: int) -> bytes:
    if offset < 0:
        raise Damaged("it is truncated")
    stream.seek(offset)
    data = stream.read(count)
    if len(data) != count:
        raise Damaged("it is truncated")
    return data


class Content:
    """The bytes of one member, in order. Raises `Damaged`."""

    def __init__(self, stream: BinaryIO, member: Member) -> None:
        _check_method(member)
        self.stream = stream
        self.left = member.packed  # bytes not yet read from the archive
        self.at = _content_start(stream, member)
        self.crc = 0
        self.wanted_crc = member.crc
        self.inflate = zlib.decompressobj(-15) if member.method == _DEFLATED else None

    def read(self, count: int) -> bytes:
        data = bytearray(count)
        self.fill(memoryview(data))
        return bytes(data)

    def fill(self, target: memoryview) -> None:
        """Fill all of `target`, a view of bytes."""
        while target:
            chunk = self._some(min(len(target), CHUNK))
            if not chunk:
                raise Damaged("its data is truncated")
            self.crc = zlib.crc32(chunk, self.crc)
            target[: len(chunk)] = chunk
            target = target[len(chunk) :]

    def finish(self) -> None:
        """Check that nothing is left, and the checksum of all bytes read."""
        if self._some(1) or self.left or (self.inflate and self.inflate.unused_data):
            raise Damaged("it holds more data than it declares")
        if self.crc != self.wanted_crc:
            raise Damaged("its checksum is wrong: the file is damaged", help="write it again")

    def _some(self, count: int) -> bytes:
        """Return at most `count` bytes; none at the end."""
        if self.inflate is None:
            return self._packed(count)
        while not self.inflate.eof:
            tail = self.inflate.unconsumed_tail
            data = tail or self._packed(CHUNK)
            chunk = _inflated(self.inflate, data, count)
            if chunk or not data:
                return chunk
        return b""

    def _packed(self, count: int) -> bytes:
        data = _at(self.stream, self.at, min(count, self.left))
        self.at += len(data)
        self.left -= len(data)
        return data


def _inflated(inflate: zlib._Decompress, data: bytes, count: int) -> bytes:
    try:
        return inflate.decompress(data, count)
    except zlib.error as error:
        raise Damaged("its compressed data is damaged") from error


def _check_method(member: Member) -> None:
    if member.flags & _ENCRYPTED:
        raise Damaged("it is encrypted")
    if member.method not in (_STORED, _DEFLATED):
        name = _METHODS.get(member.method, f"method {member.method}")
        raise Damaged(f"it is compressed by {name}; only deflate is supported", help=_WHAT_NPZ_IS)
    if member.method == _STORED and member.packed != member.size:
        raise Damaged("its directory entry has two sizes for data that is not compressed")


def _content_start(stream: BinaryIO, member: Member) -> int:
    """Return the offset of the data, if the local header agrees with the directory."""
    fields = _LOCAL.unpack(_at(stream, member.offset, _LOCAL.size))
    sign, _, flags, method, _, _, crc, packed, size = fields[:9]
    names: int = fields[9]
    extras: int = fields[10]
    name_and_extra = _at(stream, member.offset + _LOCAL.size, names + extras)
    if (
        sign != b"PK\3\4"
        or method != member.method
        or _name(name_and_extra[:names], flags) != member.name
    ):
        raise Damaged("its header and its directory entry differ")
    if not flags & _STREAMED:
        size, packed = _widened((size, packed), name_and_extra[names:])
        if (size, packed, crc) != (member.size, member.packed, member.crc):
            raise Damaged("its header and its directory entry have different sizes")
    return member.offset + _LOCAL.size + names + extras
