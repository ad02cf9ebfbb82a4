"""Host-side values that a traced kernel may hold, and their conversion.

Host code that imports `nki.language` gets objects that are meaningful to frameworks as well, and
NumPy has its own scalars. Where the API expects one of its own values, these stand for one.
"""

from __future__ import annotations

from typing import Any


def plain(value: Any) -> Any:
    """Return the API value that `value` stands for, or `value` itself.

    Classes of such host-side values have a method `__nki__`. A NumPy scalar becomes a Python
    number.
    """
    kind = type(value)
    convert = getattr(kind, "__nki__", None)
    if convert is not None:
        return convert(value)
    if kind.__module__ == "numpy" and hasattr(kind, "item") and value.ndim == 0:
        return value.item()
    return value
