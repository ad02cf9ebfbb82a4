"""Cache entries in a folder: written atomically, verified when read, never executed.

An entry determines the program that runs. A file is therefore used only if it is a regular file of
this user, not writable by others, and starts with the hash of the rest; any other file is ignored.
Entries are written under a temporary name and renamed: a process sees a complete entry or none, and
of two concurrent writers the last one wins. The least recently used entries are evicted.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from nkic import __version__
from nkic.base import files
from nkic.base.diagnostics import UsageFailed, bad_argument
from nkic.base.files import is_file, is_folder, is_on

# ------------------------------------------------------------------------------------------------
# A record of a compilation's file system accesses, with which a cached result is validated.


@dataclass
class Probes:
    """Probed paths and their results.

    `places` maps a path to its real path: of a file, or of a folder if the path ends in a slash;
    empty if there was none. `contents` maps paths to hashes of the contents read. `is_searched`: a
    folder was searched, which cannot be validated.
    """

    places: dict[str, str] = field(default_factory=dict)
    contents: dict[str, str] = field(default_factory=dict)
    is_searched: bool = False

    def is_file(self, path: Path) -> bool:
        """Return whether there is a file, and record the answer."""
        return self._is_there(str(path))

    def is_folder(self, path: Path) -> bool:
        """Return whether there is a folder, and record the answer."""
        return self._is_there(f"{path}/")

    def _is_there(self, path: str) -> bool:
        if path not in self.places:
            self.places[path] = led_to(path)
        return self.places[path] != ""

    def note(self, path: Path, content: bytes) -> None:
        """Record that a file with this content was read."""
        self._is_there(str(path))
        self.contents[str(path)] = sha256(content).hexdigest()


def led_to(path: str) -> str:
    """Return the real path of a file, or of a folder if `path` ends in a slash; empty if none."""
    exists = is_folder(path) if path.endswith("/") else is_file(path)
    return os.path.realpath(path) if exists else ""


def unchanged(places: Mapping[str, str], contents: Mapping[str, str]) -> dict[str, bytes] | None:
    """Return the files' contents by path if all probes still hold, otherwise None."""
    if any(led_to(path) != answer for path, answer in places.items()):
        return None
    contents_read: dict[str, bytes] = {}
    for path, digest in contents.items():
        try:
            with files.opened(path) as stream:
                contents_read[path] = stream.read()
        except (OSError, ValueError):
            return None
        if sha256(contents_read[path]).hexdigest() != digest:
            return None
    return contents_read


# ---- The folder of the cache, and checks of its ownership ---------------------------------------
# The default is the platform's folder for caches: XDG_CACHE_HOME or ~/.cache (XDG Base Directory
# Specification 0.8), on macOS ~/Library/Caches (Apple, File System Programming Guide).

DIRECTORY_VARIABLE = "NKIC_CACHE_DIR"
SWITCH_VARIABLE = "NKIC_CACHE"
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH  # must not have write permission


def folder(environ: Mapping[str, str], named: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the cache folder: `named`, or from the environment, or the user's default.

    None if nothing is to be cached. Raises `UsageFailed` for an explicit folder that others may
    write to.
    """
    if not named and not is_on(SWITCH_VARIABLE, environ):
        return None
    if name := named or environ.get(DIRECTORY_VARIABLE):
        explicit = Path(name)
        _refuse(explicit, problem(explicit))
        return explicit
    default = _of_platform(environ)
    return default if default is not None and problem(default) is None else None


def _of_platform(environ: Mapping[str, str]) -> Path | None:
    home = environ.get("HOME", "")
    if sys.platform == "darwin":
        return Path(home, "Library/Caches/nkic") if home.startswith("/") else None
    cache_home = environ.get("XDG_CACHE_HOME", "")
    if cache_home.startswith("/"):  # the specification: relative paths are ignored
        return Path(cache_home, "nkic")
    return Path(home, ".cache/nkic") if home.startswith("/") else None


def problem(path: Path) -> tuple[str, str] | None:
    """Return why a folder must not be used, with advice; None if it may be used.

    A missing folder is created with access only for this user. A folder that cannot be created is
    no problem: nothing is cached then.
    """
    with suppress(OSError):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.stat()
        if status.st_uid != os.geteuid():
            return "belongs to another user", "name a folder of your own"
        if status.st_mode & WRITABLE_BY_OTHERS:
            return "can be written by others", f"chmod go-w {path}"
    return None


def _refuse(path: Path, reason: tuple[str, str] | None) -> None:
    if reason is not None:
        why, help = reason
        text = f"the folder of compiled kernels, `{path}`, {why}: other users could replace them"
        raise bad_argument(text, help)


# ---- A hash of the tool itself: nkic, Python and NumPy, on which artifacts also depend ----------

_CODE = (".py", ".json", ".lark")


@cache
def stamp() -> str:
    """Return a hash that differs between versions and after any change to the tool's files.

    It covers the name, size and modification time of each file: reading all files would take as
    long as a compilation.
    """
    folders = [Path(__file__).parents[1], *_folders_of("nkic.grammar"), *_folders_of("numpy")[:1]]
    lines = [__version__, sys.version, *(line for folder in folders for line in _files(folder))]
    return sha256("\n".join(lines).encode()).hexdigest()


def here() -> str:
    """Return the current folder, to which paths in messages are relative."""
    try:
        return str(Path.cwd())
    except OSError:  # it was removed
        return ""


def _folders_of(package: str) -> list[Path]:
    spec = find_spec(package)
    return [Path(location) for location in (spec.submodule_search_locations or ())] if spec else []


def _files(folder: Path) -> list[str]:
    """Return a line for each file below; for NumPy, only files of the folder itself."""
    is_recursive = folder.name != "numpy"
    lines: list[str] = []
    pending = [str(folder)]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.name.endswith(_CODE):
                    status = entry.stat()
                    lines.append(f"{entry.path} {status.st_size} {status.st_mtime_ns}")
                elif is_recursive and "." not in entry.name and entry.name != "__pycache__":
                    pending.append(entry.path)
    return sorted(lines)


# --------------------------------------------------------------------------------------------------

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
    with files.opened(str(path), follow=False) as stream:
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


# ---- The words of the last command that compiled a file, for editors ----------------------------


def remember(path: str, words: Mapping[str, Any]) -> None:
    """Keep the words that gave a kernel its types; failures are ignored."""
    store = _own()
    if store is not None and _words(store, path) != words:
        store.write(_of_file(path), {"words": words}, b"")


def remembered(path: str) -> Mapping[str, Any]:
    """Return the words of the last command that compiled the file at `path`; {} if there is none.

    They are options by name, as texts; `arg` and `const` are lists of texts.
    """
    store = _own()
    return _words(store, path) if store is not None else {}


def _words(store: Store, path: str) -> Mapping[str, Any]:
    entry = store.read(_of_file(path))
    words = entry.facts.get("words") if entry is not None else None
    return words if isinstance(words, dict) else {}


def _own() -> Store | None:
    with suppress(UsageFailed):  # the folder may be another user's
        path = folder(os.environ)
        return Store(path) if path is not None else None
    return None


def _of_file(path: str) -> str:
    return sha256(f"last command {os.path.realpath(path)}".encode("utf-8", "replace")).hexdigest()
