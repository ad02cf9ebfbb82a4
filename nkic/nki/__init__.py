"""The modules that kernels and their host code import as `nki`, built from nkic's own tables.

They become importable as `nki` only by an explicit act: `nkic.install()`, `python -m nkic
script.py`, pytest's option `--nkic`, or NKIC_INSTALL=1 for pytest without options.
"""

from nkic.nki.finder import install, installed, uninstall

__all__ = ["install", "installed", "uninstall"]
