"""The semantics of each row of the instruction table: one function per row name."""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages


def load_all() -> None:
    """Import every module of this package, which registers its functions."""
    for module in walk_packages(__path__, f"{__name__}."):
        import_module(module.name)
