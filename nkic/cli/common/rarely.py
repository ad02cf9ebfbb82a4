"""Modules that most runs of a command do without: bound now, loaded when something of them is used.

An import inside of a function would do the same in every place where one of them is used; here one
list says which they are. Only what imports them as modules waits (`from nkic.cli.nki_run import
fuzzing`, and `fuzzing.fuzz` where it is needed): to import a name out of one loads it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.util import LazyLoader, find_spec, module_from_spec


def put_off(names: Iterable[str]) -> None:
    """Binds modules, by their whole names, in their packages; those that are loaded stay it.

    The packages are loaded, so they should be small ones.
    """
    for name in names:
        parent, _, child = name.rpartition(".")
        spec = None if name in sys.modules else find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
            module = sys.modules[name] = module_from_spec(spec)
            spec.loader.exec_module(module)
            setattr(import_module(parent), child, module)
