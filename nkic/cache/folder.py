"""The folder of the cache, and checks of its ownership.

The default is the platform's folder for caches: XDG_CACHE_HOME or ~/.cache (XDG Base Directory
Specification 0.8), on macOS ~/Library/Caches (Apple, File System Programming Guide).
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from nkic.base.diagnostics import bad_argument
from nkic.base.environment import is_on

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
