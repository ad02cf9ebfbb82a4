"""The meaning of each row of the instruction table: one function of the row's name."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules


def load_all() -> None:
    """Imports every module here, which registers its functions."""
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
