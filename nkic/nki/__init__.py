"""The modules that kernels and their host code import as `nki`, built from nkic's own tables.

They become importable as `nki` only by an explicit act: `nkic.install()`, `python -m nkic
script.py`, `%load_ext nkic`, or pytest's option `--nkic` (without options, NKIC_INSTALL=1).
"""

from nkic.nki.finder import install, installed, uninstall

__all__ = ["install", "installed", "uninstall"]
