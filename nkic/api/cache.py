"""Cached artifacts: in this process and, in a folder (`nkic.cache`), across processes.

An artifact is looked up by the request (kernel, types, constants, target, options) and used if
every file that was read for it still has the same content.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from nkic.api.artifact import Artifact
from nkic.api.compiling import SourceCompilation, TracedCompilation
from nkic.api.errors import CompileError, raising
from nkic.api.loading import LiveLoader
from nkic.base import confine
from nkic.base.diagnostics import NkicError
from nkic.cache.folder import folder
from nkic.cache.messages import from_json, to_json
from nkic.cache.stamp import here, stamp
from nkic.cache.store import Store

MAX_ENTRIES = 256  # artifacts kept in the process; the least recently used is dropped first
_LOCK = threading.Lock()


@dataclass(frozen=True)
class _Entry:
    """An artifact, and the hashes of the source files it was made from, by module name."""

    files: dict[str, str]
    artifact: Artifact

    def is_current(self, loader: LiveLoader) -> bool:
        """Whether every file still has the same content."""
        data = self.artifact.reads.items()
        return _is_current(self.files, loader) and all(_data(p) == digest for p, digest in data)


_entries: OrderedDict[str, _Entry] = OrderedDict()


Folder = str | os.PathLike[str] | None  # as the call names it


def compiled(job: SourceCompilation, named: Folder) -> Artifact:
    """Return the artifact of a job, cached or new.

    Raises `CompileError`; also for a cache folder that other users may write to.
    """
    loader = job.loader
    assert isinstance(loader, LiveLoader)

    def compile() -> _Entry:
        artifact = job.compile()
        return _Entry(_hashes(loader), artifact)

    return _cached(_key(job), named, lambda entry: entry.is_current(loader), compile)


def traced(job: TracedCompilation, named: Folder) -> Artifact:
    """Return the artifact of a kernel that Python evaluates.

    Its dependencies are unknown, so the kernel is called each time; the artifact is looked up by
    the resulting program.
    """
    tracing = job.trace()
    key = job.key(tracing)
    return _cached(key, named, lambda entry: True, lambda: _Entry({}, job.finish(tracing)))


def _cached(
    key: str, named: Folder, is_current: Callable[[_Entry], bool], compile: Callable[[], _Entry]
) -> Artifact:
    """Return the artifact of a current entry, from this process or the folder, or of a new one."""
    with raising(CompileError):
        path = folder(os.environ, named)
    store = Store(path) if path is not None else None
    with _LOCK:
        entry = _entries.get(key)
    if entry is not None and not is_current(entry):
        entry = None
    if entry is None and store is not None:
        stored = _from_disk(store, key)
        entry = stored if stored is not None and is_current(stored) else None
    is_new = entry is None
    if entry is None:
        entry = compile()
    if store is not None and (is_new or not store.path(key).exists()):
        _to_disk(store, key, entry)
    _keep(key, entry)
    return entry.artifact


def _key(job: SourceCompilation) -> str:
    """Return a hash of the request that is equal in every process."""
    request = job.request
    consts = {name: repr(getattr(v, "value", v)) for name, v in sorted(request.consts.items())}
    args = {name: str(kind) for name, kind in sorted(request.args.items())}
    parts = {name: str(kind) for name, kind in sorted(request.parts.items())}
    identity = (
        *(stamp(), here(), request.kernel, request.target.name, request.profile.label),
        *(request.grid, request.lnc, request.spread, args, consts, parts, repr(request.entry)),
        *(request.schedule, job.options.key),
    )
    return sha256(repr(identity).encode()).hexdigest()


def _hashes(loader: LiveLoader) -> dict[str, str]:
    """Return the hash of every source file that was read, by module name."""
    texts = ((loader.name_of(path), file.text) for path, file in loader.sources.items())
    return {name: _hash(text) for name, text in texts}


def _data(path: str) -> str:
    """Return the hash of a data file, as in `Artifact.reads`; empty if it cannot be read."""
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


def _keep(key: str, entry: _Entry) -> None:
    with _LOCK:
        _entries[key] = entry
        _entries.move_to_end(key)
        while len(_entries) > MAX_ENTRIES:
            _entries.popitem(last=False)


def clear() -> None:
    """Drop all artifacts cached in this process."""
    with _LOCK:
        _entries.clear()


def _to_disk(store: Store, key: str, entry: _Entry) -> None:
    artifact = entry.artifact
    facts = {
        "files": entry.files,
        "warnings": to_json(artifact.warnings),
        "messages": artifact.messages,
        "returned": artifact.returned,
        "reads": artifact.reads,
    }
    store.write(key, facts, artifact.data)


def _from_disk(store: Store, key: str) -> _Entry | None:
    """Return the stored entry for `key`; None if it is missing or malformed."""
    entry = store.read(key)
    try:
        return _entry(entry.facts, entry.data) if entry is not None else None
    except (ValueError, LookupError, TypeError):
        return None


def _entry(facts: dict[str, Any], data: bytes) -> _Entry:
    """Return the entry that `facts` describe.

    Raises `ValueError`, `LookupError` or `TypeError` if they are malformed.
    """
    messages, form = tuple(map(str, facts["messages"])), _form(facts["returned"])
    warnings = from_json(facts["warnings"])
    artifact = Artifact(data, warnings, messages, form, _texts(facts["reads"]))
    return _Entry(_texts(facts["files"]), artifact)


def _texts(value: Any) -> dict[str, str]:
    """Check that `value` maps strings to strings, and return it. Raises `ValueError`."""
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise ValueError("not a mapping of strings")
    return value


def _form(value: Any) -> Any:
    """Return the form of a kernel's result from JSON. Raises `ValueError`."""
    if isinstance(value, list):
        return tuple(map(_form, value))
    if value is not None and type(value) is not int:
        raise ValueError("not the form of a result")
    return value
