"""What a compilation was told by the file system, so that it can be asked again: it found files
here, none there, and read this.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from nkic.base import confine


@dataclass
class Probes:
    """The questions and their answers.

    `places` has what a path led to, links followed: a file, or a folder where the path ends in a
    slash, and nothing where there was none. `contents` are hashes of what was read.
    `is_searched`: a folder was searched, which cannot be asked again.
    """

    places: dict[str, str] = field(default_factory=dict)
    contents: dict[str, str] = field(default_factory=dict)
    is_searched: bool = False

    def is_file(self, path: Path) -> bool:
        """Whether there is a file."""
        return self._is_there(str(path))

    def is_folder(self, path: Path) -> bool:
        """Whether there is a folder."""
        return self._is_there(f"{path}/")

    def _is_there(self, path: str) -> bool:
        if path not in self.places:
            self.places[path] = led_to(path)
        return self.places[path] != ""

    def note(self, path: Path, content: bytes) -> None:
        """This was read."""
        self._is_there(str(path))
        self.contents[str(path)] = sha256(content).hexdigest()


def led_to(path: str) -> str:
    """The file that a path leads to, or the folder if it ends in a slash; nothing if there is
    none.
    """
    try:
        there = Path(path).is_dir() if path.endswith("/") else Path(path).is_file()
        return os.path.realpath(path) if there else ""
    except (OSError, ValueError):  # a NUL
        return ""


def unchanged(places: Mapping[str, str], contents: Mapping[str, str]) -> dict[str, bytes] | None:
    """What the files hold, by path, if the file system gives the answers that it gave."""
    if any(led_to(path) != answer for path, answer in places.items()):
        return None
    found: dict[str, bytes] = {}
    for path, digest in contents.items():
        try:
            with confine.opened(path) as stream:
                found[path] = stream.read()
        except (OSError, ValueError):
            return None
        if sha256(found[path]).hexdigest() != digest:
            return None
    return found
