"""Lazily loaded modules: bound at start-up, loaded on first use.

An import inside each function that uses one would do the same; here a single list names them. Only
imports of the module itself are lazy (`from nkic.cli.nki_run import fuzzing`, then `fuzzing.fuzz`):
importing a name from it loads it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.util import LazyLoader, find_spec, module_from_spec


def bind_lazily(names: Iterable[str]) -> None:
    """Bind modules, given by full name, lazily in their packages; loaded ones are left as they are.

    Their packages are loaded, so they should be small.
    """
    for name in names:
        parent, _, child = name.rpartition(".")
        spec = None if name in sys.modules else find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
            module = sys.modules[name] = module_from_spec(spec)
            spec.loader.exec_module(module)
            setattr(import_module(parent), child, module)
