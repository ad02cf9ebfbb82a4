"""The dependency of a migration."""

from __future__ import annotations

from importlib.util import find_spec

from nkic.base.diagnostics import not_installed

LIBRARY = "libcst"


def need_library() -> None:
    """Raise `UsageFailed`, with the command that installs it, if libcst is missing."""
    if find_spec(LIBRARY) is None:
        raise not_installed("--migrate needs", LIBRARY)
