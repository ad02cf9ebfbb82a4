"""Forms that values have outside of kernels, and that a traced kernel may hold.

`nki.language` as host code imports it gives names that mean something to frameworks as well; so
do NumPy's numbers. Where a value of the language is wanted, these forms stand for one.
"""

from __future__ import annotations

from typing import Any


def plain(value: Any) -> Any:
    """The value of the language that `value` stands for; else `value` itself.

    Classes of such forms have a method `__nki__`. A number of NumPy's is the same of Python's.
    """
    kind = type(value)
    made = getattr(kind, "__nki__", None)
    if made is not None:
        return made(value)
    if kind.__module__ == "numpy" and hasattr(kind, "item") and value.ndim == 0:
        return value.item()
    return value
