"""What a migration needs beside nkic itself."""

from __future__ import annotations

from importlib.util import find_spec

from nkic.base.diagnostics import UsageFailed, make

LIBRARY = "libcst"
INSTALL = "python -m pip install 'nkic[migrate]'"


def need_library() -> None:
    """Raises `UsageFailed`, with the line that installs it, where libcst is not there."""
    if find_spec(LIBRARY) is None:
        text = f"--migrate needs {LIBRARY}, which is not installed"
        raise UsageFailed([make("bad-usage", text, help=INSTALL)])
