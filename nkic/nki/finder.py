"""Make the modules importable, by an explicit act only.

A finder at the end of `sys.meta_path` provides `nki` and the modules that host code imports with
it, unless a package of that name is installed: `neuronxcc.nki`, `torch_neuronx`, `jax_neuronx`,
`torch_xla`. With `force` it is placed first.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from nkic.api.errors import CompileError, raising, refuse
from nkic.api.options import CALLS, public
from nkic.compiler.request import find_profile

VARIABLE = "NKIC_INSTALL"
NKI = "nki"
BESIDE = ("neuronxcc", "torch_neuronx", "jax_neuronx", "torch_xla")


class _Loader(Loader):
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        from nkic.nki.modules import module

        return module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module is already filled."""


class Finder(MetaPathFinder):
    """Finds the modules. `roots` are the packages that it provides."""

    def __init__(self, roots: Sequence[str], force: bool) -> None:
        self.roots = roots
        self.force = force

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] not in self.roots:
            return None
        from nkic.nki.modules import all_names, is_package

        if fullname not in all_names():
            return None
        return ModuleSpec(fullname, _Loader(), origin="nkic", is_package=is_package(fullname))


def installed() -> bool:
    """Whether `import nki` gives nkic's modules."""
    return _present() is not None


@public(CompileError)
def install(force: bool = False, nki: str | None = None) -> None:
    """Make `import nki`, and the modules that host code imports with it, give nkic's modules.

    `nki` is the NKI version of this process's kernels for calls that name none; without it, each
    kernel's file, the environment or the project decides. If another package called nki is
    installed, this fails unless `force` replaces it for this process; other installed packages
    (`neuronxcc`, `torch_neuronx`, `jax_neuronx`, `torch_xla`) are left as they are. Raises
    `CompileError`.
    """
    with raising(CompileError):
        version = find_profile(nki, "nki").label if nki is not None else None
    present = _present()
    if present is not None and (present.force or not force):
        CALLS.nki = version or CALLS.nki
        return
    with raising(CompileError):
        if not force and (location := _other()) is not None:
            refuse(
                f"another package called nki is installed: {location}",
                "nkic.install(force=True), or `python -m nkic --force`, replaces it",
            )
    uninstall()
    CALLS.nki = version
    missing = [r for r in BESIDE if r not in sys.modules and PathFinder.find_spec(r) is None]
    finder = Finder((NKI, *missing), force)
    if force:
        _forget((NKI,))
        sys.meta_path.insert(0, finder)
    else:
        sys.meta_path.append(finder)


def uninstall() -> None:
    """Remove the modules again; code that has imported them keeps them."""
    CALLS.nki = None
    finder = _present()
    if finder is not None:
        sys.meta_path.remove(finder)
        _forget(finder.roots)


def _present() -> Finder | None:
    return next((finder for finder in sys.meta_path if isinstance(finder, Finder)), None)


def _other() -> str | None:
    """Return the location of another package called nki; None if there is none."""
    loaded = sys.modules.get(NKI)
    if loaded is not None:
        return str(getattr(loaded, "__file__", None) or "it is already imported")
    spec = PathFinder.find_spec(NKI)
    return (spec.origin or "a folder on sys.path") if spec is not None else None


def _forget(roots: Sequence[str]) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in roots]:
        del sys.modules[name]
