"""Artifacts that were made before, in this process and, where a folder is given, in others.

An artifact is found by what was asked for (kernel, types, constants, target, options) and used
if every file that was read for it still has the content it had. A file of the folder is written
whole under another name and then renamed, and its hash is verified when it is read, so that no
process sees a part of it.

The folder must be the user's own, and nobody else may write in it: an entry says which program
runs. What is asked for stands in the entry and is compared; an entry that is damaged, of another
user, or a link is none.
"""

from __future__ import annotations

import json
import os
import stat
import threading
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from nkic import __version__
from nkic.api.artifact import Artifact
from nkic.api.compiling import SourceCompilation, TracedCompilation
from nkic.api.errors import CompileError, raising, refuse
from nkic.api.loading import LiveLoader
from nkic.base import confine, files
from nkic.base.diagnostics import NkicError

VARIABLE = "NKIC_CACHE_DIR"
MAX_ENTRIES = 256  # artifacts kept in the process, the least recently used is dropped first
_HASH = 32  # bytes
_LOCK = threading.Lock()


@dataclass(frozen=True)
class _Entry:
    """`files` are hashes of texts by the name that the loader finds them by."""

    files: dict[str, str]
    artifact: Artifact

    def is_current(self, loader: LiveLoader) -> bool:
        """Every file has the content that it had."""
        data = self.artifact.reads.items()
        return _is_current(self.files, loader) and all(_data(p) == digest for p, digest in data)


_kept: OrderedDict[str, _Entry] = OrderedDict()


def compiled(job: SourceCompilation, folder: str | os.PathLike[str] | None) -> Artifact:
    """The artifact of a job. Raises `CompileError`, for a folder that others may write in too."""
    key = _key(job)
    loader = job.loader
    assert isinstance(loader, LiveLoader)
    found = _in_process(key, loader)
    path = _own(Path(folder)) / f"{key}.nkic" if folder is not None else None
    if found is None and path is not None:
        found = _from_disk(path, key, loader)
    if found is None:
        artifact = job.compile()
        found = _Entry(_hashes(loader), artifact)
        if path is not None:
            _to_disk(path, key, found)
    elif path is not None and not path.exists():
        _to_disk(path, key, found)
    _keep(key, found)
    return found.artifact


def traced(job: TracedCompilation, folder: str | os.PathLike[str] | None) -> Artifact:
    """The artifact of a kernel that Python evaluates. It is called each time, since nobody knows
    what it depends on; an artifact is found by the program that it gives.
    """
    tracing = job.trace()
    key = job.key(tracing)
    with _LOCK:
        found = _kept.get(key)
    path = _own(Path(folder)) / f"{key}.nkic" if folder is not None else None
    if found is None and path is not None:
        found = _read(path, key)
    if found is None:
        found = _Entry({}, job.finish(tracing))
    if path is not None and not path.exists():
        _to_disk(path, key, found)
    _keep(key, found)
    return found.artifact


def _key(job: SourceCompilation) -> str:
    """What was asked for, as a hash: equal in every process."""
    request, how = job.request, job.options
    consts = {name: repr(getattr(v, "value", v)) for name, v in sorted(request.consts.items())}
    args = {name: str(kind) for name, kind in sorted(request.args.items())}
    parts = {name: str(kind) for name, kind in sorted(request.parts.items())}
    asked = (
        *(__version__, request.kernel, request.target.name, request.profile.label),
        *(request.grid, request.lnc, request.spread, args, consts, parts, repr(request.entry)),
        request.schedule,
        *(how.serial, how.level, how.embed_source, how.max_errors, repr(how.levels)),
        how.machine_hash,
    )
    return sha256(repr(asked).encode()).hexdigest()


def _hashes(loader: LiveLoader) -> dict[str, str]:
    """Of every file that was read, by its module's name."""
    texts = ((loader.name_of(path), file.text) for path, file in loader.sources.items())
    return {name: _hash(text) for name, text in texts}


def _data(path: str) -> str:
    """The hash of a file of data, as `Artifact.reads` has it; nothing if there is none."""
    try:
        with confine.opened(path) as stream:
            return sha256(stream.read()).hexdigest()
    except (OSError, ValueError):
        return ""


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _is_current(wanted: dict[str, str], loader: LiveLoader) -> bool:
    for name, digest in wanted.items():
        try:
            file = loader.module(name)
        except NkicError:
            return False
        if file is None or _hash(file.text) != digest:
            return False
    return True


def _in_process(key: str, loader: LiveLoader) -> _Entry | None:
    with _LOCK:
        found = _kept.get(key)
    return found if found is not None and found.is_current(loader) else None


def _keep(key: str, entry: _Entry) -> None:
    with _LOCK:
        _kept[key] = entry
        _kept.move_to_end(key)
        while len(_kept) > MAX_ENTRIES:
            _kept.popitem(last=False)


def clear() -> None:
    """Forgets what this process has compiled."""
    with _LOCK:
        _kept.clear()


# A file: the hash of the rest, one line of JSON, the bytes of the artifact.


def _own(folder: Path) -> Path:
    """The folder, made for this user alone if it is not there yet."""
    with suppress(OSError):  # a cache that cannot be made is no cache
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
        if found.st_uid != os.geteuid():
            _refuse_folder(folder, "belongs to another user", "name a folder of your own")
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            _refuse_folder(folder, "can be written by others", f"chmod go-w {folder}")
    return folder


def _refuse_folder(folder: Path, why: str, help: str) -> None:
    with raising(CompileError):
        refuse(f"the folder of compiled kernels, `{folder}`, {why}: they could be exchanged", help)


def _to_disk(path: Path, key: str, entry: _Entry) -> None:
    artifact = entry.artifact
    if artifact.warnings:  # the file would not hold them
        return
    facts = {
        "key": key,
        "files": entry.files,
        "messages": artifact.messages,
        "returned": artifact.returned,
        "reads": artifact.reads,
    }
    rest = json.dumps(facts).encode() + b"\n" + artifact.data
    with suppress(OSError), files.in_place_of(path) as stream:
        stream.write(sha256(rest).digest() + rest)  # a cache that cannot be written is no cache


def _from_disk(path: Path, key: str, loader: LiveLoader) -> _Entry | None:
    """The entry, if it is whole, is about `key`, and is current."""
    found = _read(path, key)
    return found if found is not None and found.is_current(loader) else None


def _read(path: Path, key: str) -> _Entry | None:
    """What a file holds about `key`; None for one that is damaged or about something else."""
    try:
        return _entry(_content(path), key)
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def _content(path: Path) -> bytes:
    """The bytes of a file of this user's. Raises `OSError` for any other, and for links."""
    with confine.opened(str(path), follow=False) as stream:
        if os.fstat(stream.fileno()).st_uid != os.geteuid():
            raise OSError(None, "it belongs to another user")
        return stream.read()


def _entry(content: bytes, key: str) -> _Entry:
    """Raises `ValueError`, `LookupError` or `TypeError` for what is no entry about `key`."""
    digest, rest = content[:_HASH], content[_HASH:]
    head, _, data = rest.partition(b"\n")
    if sha256(rest).digest() != digest:
        raise ValueError("its hash is wrong")
    facts: dict[str, Any] = json.loads(head)
    if facts["key"] != key:
        raise ValueError("it is about something else")
    messages, form = tuple(map(str, facts["messages"])), _form(facts["returned"])
    made = Artifact(data, (), messages, form, _texts(facts["reads"]))
    return _Entry(_texts(facts["files"]), made)


def _texts(value: Any) -> dict[str, str]:
    """A mapping of texts to texts. Raises `ValueError`."""
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise ValueError("no mapping of texts")
    return value


def _form(value: Any) -> Any:
    """The form of what a kernel returns. Raises `ValueError`."""
    if isinstance(value, list):
        return tuple(map(_form, value))
    if value is not None and type(value) is not int:
        raise ValueError("no form of a result")
    return value
