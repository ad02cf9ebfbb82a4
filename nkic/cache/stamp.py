"""A hash of the tool itself: nkic, Python and NumPy, on which artifacts also depend."""

from __future__ import annotations

import os
import sys
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from nkic import __version__

_CODE = (".py", ".json", ".lark")


@cache
def stamp() -> str:
    """Return a hash that differs between versions and after any change to the tool's files.

    It covers the name, size and modification time of each file: reading all files would take as
    long as a compilation.
    """
    folders = [Path(__file__).parents[1], *_folders_of("nkic.grammar"), *_folders_of("numpy")[:1]]
    lines = [__version__, sys.version, *(line for folder in folders for line in _files(folder))]
    return sha256("\n".join(lines).encode()).hexdigest()


def here() -> str:
    """Return the current folder, to which paths in messages are relative."""
    try:
        return str(Path.cwd())
    except OSError:  # it was removed
        return ""


def _folders_of(package: str) -> list[Path]:
    spec = find_spec(package)
    return [Path(location) for location in (spec.submodule_search_locations or ())] if spec else []


def _files(folder: Path) -> list[str]:
    """Return a line for each file below; for NumPy, only files of the folder itself."""
    is_recursive = folder.name != "numpy"
    lines: list[str] = []
    pending = [str(folder)]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.name.endswith(_CODE):
                    status = entry.stat()
                    lines.append(f"{entry.path} {status.st_size} {status.st_mtime_ns}")
                elif is_recursive and "." not in entry.name and entry.name != "__pycache__":
                    pending.append(entry.path)
    return sorted(lines)
