"""A record of a compilation's file system accesses, with which a cached result is validated."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from nkic.base import confine


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
    try:
        exists = Path(path).is_dir() if path.endswith("/") else Path(path).is_file()
        return os.path.realpath(path) if exists else ""
    except (OSError, ValueError):  # a NUL
        return ""


def unchanged(places: Mapping[str, str], contents: Mapping[str, str]) -> dict[str, bytes] | None:
    """Return the files' contents by path if all probes still hold, otherwise None."""
    if any(led_to(path) != answer for path, answer in places.items()):
        return None
    contents_read: dict[str, bytes] = {}
    for path, digest in contents.items():
        try:
            with confine.opened(path) as stream:
                contents_read[path] = stream.read()
        except (OSError, ValueError):
            return None
        if sha256(contents_read[path]).hexdigest() != digest:
            return None
    return contents_read
