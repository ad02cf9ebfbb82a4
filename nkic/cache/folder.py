"""Which folder keeps what was compiled, and whose it must be.

The user's own folder for caches is where the platform has it: XDG_CACHE_HOME or ~/.cache (XDG Base
Directory Specification 0.8), on macOS ~/Library/Caches (Apple, File System Programming Guide).
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from nkic.base.diagnostics import bad_argument, bad_value

DIRECTORY_VARIABLE = "NKIC_CACHE_DIR"
SWITCH_VARIABLE = "NKIC_CACHE"
OTHERS = stat.S_IWGRP | stat.S_IWOTH  # who may not write there


def folder(environ: Mapping[str, str], named: str | os.PathLike[str] | None = None) -> Path | None:
    """The folder to keep artifacts in: the one `named`, or that of the environment, or the
    user's own. None where nothing is to be kept. Raises `UsageFailed`, for a folder that somebody
    names and others may write in too.
    """
    given = named or (environ.get(DIRECTORY_VARIABLE) if wanted(environ) else None)
    if given:
        found = Path(given)
        _refuse(found, problem(found))
        return found
    own = _of_platform(environ) if wanted(environ) else None
    return own if own is not None and problem(own) is None else None


def wanted(environ: Mapping[str, str]) -> bool:
    """Whether the environment lets artifacts be kept. Raises `UsageFailed`."""
    word = environ.get(SWITCH_VARIABLE, "")
    if word not in ("", "0", "1"):
        text = f"{SWITCH_VARIABLE}={word} in the environment: expected 0 or 1"
        raise bad_value(text, f"unset {SWITCH_VARIABLE}")
    return word != "0"


def _of_platform(environ: Mapping[str, str]) -> Path | None:
    home = environ.get("HOME", "")
    if sys.platform == "darwin":
        return Path(home, "Library/Caches/nkic") if home.startswith("/") else None
    base = environ.get("XDG_CACHE_HOME", "")
    if base.startswith("/"):  # the specification: a relative one is to be ignored
        return Path(base, "nkic")
    return Path(home, ".cache/nkic") if home.startswith("/") else None


def problem(place: Path) -> tuple[str, str] | None:
    """Why a folder must not be used, and advice; it is made for this user alone if it is not
    there yet. One that cannot be made is no problem: nothing is kept then.
    """
    with suppress(OSError):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = place.stat()
        if found.st_uid != os.geteuid():
            return "belongs to another user", "name a folder of your own"
        if found.st_mode & OTHERS:
            return "can be written by others", f"chmod go-w {place}"
    return None


def _refuse(place: Path, found: tuple[str, str] | None) -> None:
    if found is not None:
        why, help = found
        text = f"the folder of compiled kernels, `{place}`, {why}: someone else could replace them"
        raise bad_argument(text, help)
