"""Paths for services, relative to the root of the repository."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path


def from_root(path: str) -> str:
    """Return `path` relative to the root of the repository of the current folder, with slashes.

    Without a repository, the current folder is the root. Paths outside of it stay absolute, and
    names that are not files (`<stdin>`) are unchanged.
    """
    if path.startswith("<"):
        return path
    here = Path.cwd()
    root, place = _root(here), Path(os.path.normpath(here / path))  # links are not resolved
    inside = place.is_relative_to(root)
    return (place.relative_to(root) if inside else place).as_posix()


@lru_cache(maxsize=64)
def _root(folder: Path) -> Path:
    """Return the nearest folder at or above with `.git`, a folder or (in a worktree) a file."""
    folders = (folder, *folder.parents)
    return next((one for one in folders if (one / ".git").exists()), folder)
