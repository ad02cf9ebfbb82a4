"""Paths as services know them: from the root of the repository, wherever the tool was started."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path


def from_root(path: str) -> str:
    """`path` as seen from the root of the repository around the present folder, with slashes.

    Without a repository the present folder is the root. What lies outside stays absolute, and
    what is not a file (`<stdin>`) as it is.
    """
    if path.startswith("<"):
        return path
    here = Path.cwd()
    root, place = _root(here), Path(os.path.normpath(here / path))  # links stay as they are
    inside = place.is_relative_to(root)
    return (place.relative_to(root) if inside else place).as_posix()


@lru_cache(maxsize=64)
def _root(folder: Path) -> Path:
    """The nearest folder at or above that holds `.git`, a folder or (in a worktree) a file."""
    folders = (folder, *folder.parents)
    return next((one for one in folders if (one / ".git").exists()), folder)
