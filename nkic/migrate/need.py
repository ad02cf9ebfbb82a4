"""The dependency of a migration."""

from __future__ import annotations

from importlib.util import find_spec

from nkic.base.diagnostics import UsageFailed, make

LIBRARY = "libcst"
INSTALL = f"python -m pip install {LIBRARY}"


def need_library() -> None:
    """Raise `UsageFailed`, with the command that installs it, if libcst is missing."""
    if find_spec(LIBRARY) is None:
        text = f"--migrate needs {LIBRARY}, which is not installed"
        raise UsageFailed([make("bad-usage", text, help=INSTALL)])
