"""Values that kernels refer to by name: element types, and the definitions of packages called
nki.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from nkic.evaluate import builtins, library
from nkic.machine import dtypes
from nkic.specialise.runtime_values import Named

DTYPES = "dtypes"  # stands for a module: NKI's own element types
_NKI = "nki"
_FRAMEWORKS = ("torch", "jax", "jaxlib", "numpy", "ml_dtypes", "scipy", "pandas", "pytest")
_HOSTS = frozenset({*_FRAMEWORKS, "_pytest", "tensorflow", "IPython", "ipykernel", "nkic"})


def dtype(value: Any) -> Named | None:
    """Return the name of an element type of NumPy, ml_dtypes, PyTorch, JAX or nkic."""
    if isinstance(value, dtypes.DType):
        return Named(DTYPES, value.name)
    kind = type(value)
    if isinstance(value, np.dtype):
        return _element(value.name)
    if isinstance(value, type) and issubclass(value, np.generic):
        return _element(np.dtype(value).name)
    if kind.__name__ == "dtype" and kind.__module__ == "torch":
        return _element(str(value).removeprefix("torch.").replace("float8_e4m3fnuz", ""))
    if kind.__module__.startswith("jax") and isinstance(getattr(value, "dtype", None), np.dtype):
        return _element(value.dtype.name) if not hasattr(value, "shape") else None
    return None


def _element(name: str) -> Named | None:
    element = dtypes.find(name)
    return Named(DTYPES, element.name) if element is not None else Named("numpy", name)


def nki(value: Any) -> Named | None:
    """Return the name of a value from a module called nki, of any package: `nl.add`, a class of
    `nki.isa`.
    """
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or hasattr(value, "__wrapped__"):
        return None
    return Named(module_of_nki(module), name) if module_of_nki(module) else None


def module_of_nki(module: str) -> str:
    """Return NKI's name of a module; empty if the module is not NKI's.

    For example `nki.language` for `vendor.nki.language` if `import nki` gives `vendor.nki`.
    """
    posing = getattr(sys.modules.get(_NKI), "__name__", _NKI)
    for root in (_NKI, f"neuronxcc.{_NKI}", posing):
        if module == root or module.startswith(f"{root}."):
            return _NKI + module[len(root) :]
    return ""


def is_host(module: str) -> bool:
    """Whether a module's code is for the host: Python's own, frameworks, tools."""
    root = module.partition(".")[0]
    return root in _HOSTS or (root in sys.stdlib_module_names and root != "__main__")


def is_known_module(module: str) -> bool:
    """Whether kernels may use this module of Python or NumPy."""
    return module in library.modules() or module == "numpy"


def known(value: Any) -> Named | None:
    """Return the name of a function or class of Python that kernels may use."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    if module == "builtins":
        return Named(module, name) if name in builtins.table() else None
    module = str(module).removeprefix("_")  # `operator.add` says that it is of `_operator`
    return Named(module, name) if name in library.modules().get(module, ()) else None
