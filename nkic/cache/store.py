"""Cache entries in a folder: written atomically, verified when read, never executed.

An entry determines the program that runs. A file is therefore used only if it is a regular file of
this user, not writable by others, and starts with the hash of the rest; any other file is ignored.
Entries are written under a temporary name and renamed: a process sees a complete entry or none, and
of two concurrent writers the last one wins. The least recently used entries are evicted.
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
from nkic.cache.folder import WRITABLE_BY_OTHERS

SUFFIX = ".nkic"
MAX_ENTRY = 64 << 20  # bytes: larger artifacts are compiled each time
MAX_FOLDER = 512 << 20  # bytes, of all entries together
MAX_ENTRIES = 4096
_HASH = 32  # bytes
_ABANDONED = 3600.0  # seconds after which a temporary file is removed


@dataclass(frozen=True)
class Entry:
    """An artifact's facts, stored as JSON, and its bytes."""

    facts: dict[str, Any]
    data: bytes


class Store:
    """The entries of a folder that `folder` has checked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, key: str) -> Path:
        """Return the path of an entry; `key` is a hash."""
        return self.folder / f"{key}{SUFFIX}"

    def read(self, key: str) -> Entry | None:
        """Return the entry of a key; None if it is missing, damaged or not trusted."""
        path = self.path(key)
        try:
            entry = _entry(_content(path), key)
            os.utime(path)  # mark as recently used
            return entry
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            return None

    def write(self, key: str, facts: dict[str, Any], data: bytes) -> None:
        """Write an entry; failures are ignored."""
        body = json.dumps({"key": key, **facts}).encode() + b"\n" + data
        if len(body) + _HASH > MAX_ENTRY:
            return
        with suppress(OSError):
            self._replace(self.path(key), sha256(body).digest() + body)
            self._evict()

    def _replace(self, path: Path, content: bytes) -> None:
        temporary = self.folder / f".{os.urandom(8).hex()}.tmp"
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

    def _evict(self) -> None:
        """Evict the least recently used entries until a quarter of the capacity is free."""
        entries: list[tuple[float, int, str]] = []
        with os.scandir(self.folder) as scan:
            for entry in scan:
                with suppress(OSError):  # another process removed it
                    status = entry.stat(follow_symlinks=False)
                    if entry.name.endswith(SUFFIX):
                        entries.append((status.st_mtime, status.st_size, entry.path))
                    elif entry.name.endswith(".tmp") and time.time() - status.st_mtime > _ABANDONED:
                        Path(entry.path).unlink()
        size = sum(size for _, size, _ in entries)
        if size <= MAX_FOLDER and len(entries) <= MAX_ENTRIES:
            return
        count = len(entries)
        for _, entry_size, path in sorted(entries):
            if size <= MAX_FOLDER * 3 // 4 and count <= MAX_ENTRIES * 3 // 4:
                return
            size, count = size - entry_size, count - 1
            with suppress(OSError):
                Path(path).unlink()


def _content(path: Path) -> bytes:
    """Return the contents of a file of this user. Raises `OSError` for other files and links."""
    with confine.opened(str(path), follow=False) as stream:
        status = os.fstat(stream.fileno())
        if status.st_uid != os.geteuid() or status.st_mode & WRITABLE_BY_OTHERS:
            raise OSError(None, "others may have written it")
        if status.st_size > MAX_ENTRY:
            raise OSError(None, "it is too large")
        return stream.read(MAX_ENTRY)


def _entry(content: bytes, key: str) -> Entry:
    """Parse an entry of `key`. Raises `ValueError`, `LookupError` or `TypeError`."""
    digest, body = content[:_HASH], content[_HASH:]
    if sha256(body).digest() != digest:
        raise ValueError("its hash does not match")
    head, _, data = body.partition(b"\n")
    facts = json.loads(head)
    if not isinstance(facts, dict) or facts["key"] != key:
        raise ValueError("it belongs to something else")
    return Entry(facts, data)
