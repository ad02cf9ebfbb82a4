"""Forms that values have outside of kernels, and that a traced kernel may hold.

`nki.language` as host code imports it gives names that mean something to frameworks as well; so
do NumPy's numbers. Where a value of the language is wanted, these forms stand for one.
"""

from __future__ import annotations

from typing import Any

_ELEMENTS = ("numpy", "ml_dtypes", "torch", "jax")


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


def element(value: Any) -> str:
    """The name of an element type of NumPy's, ml_dtypes', PyTorch's or JAX's; else nothing."""
    kind = value if isinstance(value, type) else type(value)
    if kind.__module__.partition(".")[0] not in _ELEMENTS:
        return ""
    if isinstance(value, type):
        return value.__name__.rstrip("_")
    inner = getattr(value, "dtype", value)  # JAX's scalar types hold NumPy's
    name = getattr(inner, "name", None)
    return name if isinstance(name, str) else str(value).removeprefix("torch.")
