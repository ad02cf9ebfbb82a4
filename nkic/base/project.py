"""`[tool.nkic]` in pyproject.toml: settings for all kernels of a project.

The file is in the working directory, or in the nearest folder above that has one.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from nkic.base.diagnostics import bad_argument
from nkic.base.files import toml
from nkic.base.suggest import did_you_mean
from nkic.base.text import grouped

FILE = "pyproject.toml"
KEYS = ("evaluate", "nki")
MAX_BYTES = 1 << 20  # maximum size of the file


def setting(name: str) -> Any:
    """Return the value of one of `KEYS`, or None. Raises `UsageFailed`."""
    for path in candidates():
        if path.is_file():
            return _table(str(path), path.stat().st_mtime_ns).get(name)
    return None


def candidates() -> list[Path]:
    """Return the possible paths of the file; the first existing one is used."""
    folder = Path.cwd()
    return [parent / FILE for parent in (folder, *folder.parents)]


def origin(name: str) -> str:
    """Return a description of the setting for messages."""
    return f"{name} under [tool.nkic] in {FILE}"


@lru_cache(maxsize=64)
def _table(path: str, changed: int) -> dict[str, Any]:
    """Return the checked section; `changed` is the file's modification time, a cache key."""
    section: Any = _read(path)
    for name in ("tool", "nkic"):
        section = section.get(name, {})
        if not isinstance(section, dict):
            raise bad_argument(f"{path}: `{name}` is not a table", "write [tool.nkic]")
    for key in section:
        if key not in KEYS:
            help = did_you_mean(key, KEYS) or f"known are: {', '.join(KEYS)}"
            raise bad_argument(f"{path}: [tool.nkic] has an unknown key `{key}`", help)
    return dict(section)


def _read(path: str) -> dict[str, Any]:
    try:
        with Path(path).open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ValueError(f"it has more than {grouped(MAX_BYTES)} bytes")
        return toml(data.decode())
    except (OSError, ValueError) as error:
        raise bad_argument(f"{path} cannot be read for [tool.nkic]: {error}") from error
