"""Entries in a folder: written whole, verified when they are read, never executed.

An entry says which program runs. So a file counts only if it is a regular one of this user's, in
which nobody else may write, and if the hash that it begins with is that of the rest; any other is
as if it were not there. It is written under another name and renamed: a process sees all of it or
nothing, and of two that write at once the last one stays. What was used least lately makes room.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from nkic.base import confine
from nkic.cache.folder import OTHERS

SUFFIX = ".nkic"
MAX_ENTRY = 64 << 20  # bytes: larger artifacts are compiled each time
MAX_FOLDER = 512 << 20  # bytes, of all entries together
MAX_ENTRIES = 4096
_HASH = 32  # bytes
_ABANDONED = 3600.0  # seconds after which a file that was not renamed is removed


@dataclass(frozen=True)
class Entry:
    """What JSON holds about an artifact, and its bytes."""

    facts: dict[str, Any]
    data: bytes


class Store:
    """The entries of a folder, which `folder` has looked at."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def path(self, key: str) -> Path:
        """The file of an entry; `key` is a hash."""
        return self.place / f"{key}{SUFFIX}"

    def read(self, key: str) -> Entry | None:
        """What is kept under a key; None for nothing, and for what is damaged or not trusted."""
        path = self.path(key)
        try:
            found = _entry(_content(path), key)
            os.utime(path)  # was used now
            return found
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            return None

    def write(self, key: str, facts: dict[str, Any], data: bytes) -> None:
        """Keeps an entry; where that is not possible, nothing happens."""
        rest = json.dumps({"key": key, **facts}).encode() + b"\n" + data
        if len(rest) + _HASH > MAX_ENTRY:
            return
        with suppress(OSError):
            self._replace(self.path(key), sha256(rest).digest() + rest)
            self._make_room()

    def _replace(self, path: Path, content: bytes) -> None:
        temporary = self.place / f".{os.urandom(8).hex()}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        number = os.open(temporary, flags, 0o600)
        try:
            with os.fdopen(number, "wb") as stream:
                stream.write(content)
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise

    def _make_room(self) -> None:
        """Removes what was used least lately, until a quarter of the room is free."""
        entries: list[tuple[float, int, str]] = []
        with os.scandir(self.place) as found:
            for one in found:
                with suppress(OSError):  # another process removed it
                    facts = one.stat(follow_symlinks=False)
                    if one.name.endswith(SUFFIX):
                        entries.append((facts.st_mtime, facts.st_size, one.path))
                    elif one.name.endswith(".tmp") and time.time() - facts.st_mtime > _ABANDONED:
                        Path(one.path).unlink()
        size = sum(size for _, size, _ in entries)
        if size <= MAX_FOLDER and len(entries) <= MAX_ENTRIES:
            return
        count = len(entries)
        for _, own, path in sorted(entries):
            if size <= MAX_FOLDER * 3 // 4 and count <= MAX_ENTRIES * 3 // 4:
                return
            size, count = size - own, count - 1
            with suppress(OSError):
                Path(path).unlink()


def _content(path: Path) -> bytes:
    """The bytes of a file of this user's. Raises `OSError` for any other, and for links."""
    with confine.opened(str(path), follow=False) as stream:
        facts = os.fstat(stream.fileno())
        if facts.st_uid != os.geteuid() or facts.st_mode & OTHERS:
            raise OSError(None, "others may have written it")
        if facts.st_size > MAX_ENTRY:
            raise OSError(None, "it is too large")
        return stream.read(MAX_ENTRY)


def _entry(content: bytes, key: str) -> Entry:
    """Raises `ValueError`, `LookupError` or `TypeError` for what is not an entry about `key`."""
    digest, rest = content[:_HASH], content[_HASH:]
    if sha256(rest).digest() != digest:
        raise ValueError("its hash does not match")
    head, _, data = rest.partition(b"\n")
    facts = json.loads(head)
    if not isinstance(facts, dict) or facts["key"] != key:
        raise ValueError("it belongs to something else")
    return Entry(facts, data)
