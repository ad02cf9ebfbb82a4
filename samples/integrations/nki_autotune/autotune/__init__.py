"""nkic's part of nki-autotune, before the rest of it, which is found on PYTHONPATH."""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)
