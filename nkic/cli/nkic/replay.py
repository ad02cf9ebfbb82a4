"""The command's artifact cache: the file and messages of an earlier compilation are replayed.

An entry is looked up by everything that a compilation can depend on before it reads a file: the
words of the command line, the working directory, the environment variables, and nkic itself. It is
used if every file-system lookup gives the same answer as before (`nkic.base.cache`), so that the
output is what a compilation would write. Only plain calls are cached: one file in, one artifact
out. This module runs before the stages are imported, which is what saves time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from nkic.base import files
from nkic.base.cache import (
    MAX_ENTRY,
    Probes,
    Store,
    folder,
    here,
    led_to,
    remember,
    stamp,
    unchanged,
)
from nkic.base.diagnostics import from_json, to_json
from nkic.base.files import STANDARD, VARIABLES
from nkic.base.source import SourceFile
from nkic.base.text import size
from nkic.cli.common import Session
from nkic.cli.common.options import rows
from nkic.cli.nkic.options import CommandLine

_FORMAT = 3  # version of the stored facts


class CachedRun:
    def __init__(self, line: CommandLine, session: Session, store: Store) -> None:
        self.line = line
        self.session = session
        self.store = store
        self.key = _key(line, session)

    def replay(self) -> bool:
        """Write the cached file and its messages; False without an entry. Raises `NkicError`."""
        entry = self.store.read(self.key)
        if entry is None:
            return False
        try:
            facts = entry.facts
            read = unchanged(facts["places"], facts["contents"])
            if read is None or led_to(facts["path"]) in {*map(led_to, read)} - {""}:
                return False  # also if the output would replace a file that was read
            warnings = from_json(facts["warnings"])
            path, compiled = str(facts["path"]), (str(facts["kernel"]), facts["types"])
        except (ValueError, LookupError, TypeError, AttributeError):
            return False
        self.session.warn_of_settings()
        self.session.set_limits()
        self.session.sources = lambda name: _source(name, read.get(name))
        self.session.inputs = lambda: [*read]
        self.session.hidden = int(facts["hidden"])
        self.session.report(warnings)
        tell_prints(self.session, facts["messages"])
        files.write(path, entry.data, force=self.line.force)
        tell_written(
            self.session, "neff", path, entry.data, (str(facts["summary"]), facts["resources"])
        )
        remember_types(self.line, *compiled)
        return True

    def note(self, probes: Probes) -> None:
        """Record the contents of the files other than source before they are read."""
        for path in files.candidates():
            if probes.is_file(path):
                probes.note(path, files.read_bytes(str(path)))
                break
        for named in filter(None, (self.line.like, self.line.machine)):
            probes.note(Path(named), files.read_bytes(named))

    def keep(self, probes: Probes, data: bytes, **facts: Any) -> None:
        """Cache the written file and its messages. `probes` are the loader's."""
        if probes.is_searched:
            return
        facts["warnings"] = to_json(facts["warnings"])
        lookups = {"places": probes.places, "contents": probes.contents}
        self.store.write(self.key, {**lookups, **facts}, data)


def remember_types(line: CommandLine, kernel: str, types: Sequence[str] | None) -> None:
    """Keep the types that a command gave the kernel that it compiled: an editor may know none.

    They are None if the command gave only parts of them.
    """
    path = str(line.source)
    if (types or line.const) and types is not None and path.endswith(".py") and not line.no_cache:
        words = {name: getattr(line, name) for name in ("target", "nki", "grid", "lnc")}
        remember(path, {**words, "kernel": kernel, "arg": [*types], "const": [*line.const]})


def tell_prints(session: Session, messages: Sequence[str]) -> None:
    """Report what the kernel printed when it was compiled."""
    for text in "".join(messages).splitlines():
        session.tell("print", text, message=text)


def tell_written(
    session: Session, kind: str, path: str, data: bytes, used: tuple[str, Any] | None
) -> None:
    """Report a written file; `used` is an artifact's use of the machine, in words and as JSON."""
    facts: dict[str, object] = {"sha256": sha256(data).hexdigest(), "bytes": len(data)}
    if used is not None:
        summary, facts["resources"] = used
        session.status(summary)
    session.artifact(kind, path, **facts)
    session.status(f"wrote {path} ({size(len(data))})", 1)


def cached_run(line: CommandLine, session: Session) -> CachedRun | None:
    """Return the cache entry of this command line; None if it is not cached.

    Raises `UsageFailed` for a folder set by the environment that other users may write to.
    """
    is_cacheable = line.source not in (None, STANDARD) and str(line.source).endswith(".py")
    is_cacheable = is_cacheable and (line.like is None or _is_small(line.like))
    if (
        not is_cacheable
        or line.output == STANDARD
        or any(getattr(line, n) for n, row in rows(CommandLine).items() if row.more or row.does)
    ):
        return None
    path = folder(os.environ)
    return CachedRun(line, session, Store(path)) if path is not None else None


def _key(line: CommandLine, session: Session) -> str:
    requested = sorted((name, wish.value) for name, wish in session.levels.wishes.items())
    environ = sorted((name, os.environ.get(name)) for name in VARIABLES)
    levels = (requested, session.levels.all_errors)
    identity = (_FORMAT, stamp(), here(), vars(line), levels, dict(session.limits), environ)
    return sha256(json.dumps(identity, default=repr, sort_keys=True).encode()).hexdigest()


def _is_small(path: str) -> bool:
    """Whether reading the file twice is cheap."""
    try:
        return Path(path).stat().st_size <= MAX_ENTRY
    except OSError:
        return False


def _source(name: str, content: bytes | None) -> SourceFile | None:
    if content is None:
        return None
    from nkic.source.parser import decode  # slow to import, and only warnings need it

    return decode(content, name)
