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
    folder = Path.cwd()
    root, absolute = _root(folder), Path(os.path.normpath(folder / path))  # links are not resolved
    inside = absolute.is_relative_to(root)
    return (absolute.relative_to(root) if inside else absolute).as_posix()


@lru_cache(maxsize=64)
def _root(folder: Path) -> Path:
    """Return the nearest folder at or above with `.git`, a folder or (in a worktree) a file."""
    folders = (folder, *folder.parents)
    return next((ancestor for ancestor in folders if (ancestor / ".git").exists()), folder)
