"""The modules that kernels and their host code import as `nki`, made of nkic's own tables.

They are importable as `nki` only after an explicit act: `nkic.install()`, `python -m nkic
script.py`, the option `--nkic` of pytest, or NKIC_INSTALL=1 for pytest without options.
"""

from nkic.nki.finder import install, installed, uninstall

__all__ = ["install", "installed", "uninstall"]
