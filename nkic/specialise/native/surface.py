"""The modules of NKI for traced kernels, with the standard library executed by Python."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

from nkic.base.profiles import Profile
from nkic.base.source import SourceFile
from nkic.language import library, provide
from nkic.language.namespace import Namespace
from nkic.language.objects import NKIObject

Spaces = Mapping[str, Namespace]


@cache
def spaces(profile: Profile) -> Spaces:
    """Return every module by name. They hold no state of a kernel, so all traces share them."""
    functions = _Library(lambda: modules)
    modules = provide.namespaces(profile, functions.load, NKIObject)
    return modules


class _Placeholder:
    """A placeholder for a library name until all of its files are executed."""

    def __init__(self, name: str) -> None:
        self.name = name


class _Library:
    """Executes the files of the standard library, which is nkic's own code."""

    def __init__(self, spaces: Callable[[], Spaces]) -> None:
        self._spaces = spaces
        self._functions: dict[str, Any] = {}

    def load(self, file: SourceFile, name: str) -> Callable[..., Any]:
        """Return the function `name`."""
        if not self._functions:
            self._execute()
        function: Callable[..., Any] = self._functions[name]
        return function

    def _execute(self) -> None:
        namespace = {**vars(builtins), "__import__": self._import}
        files = dict.fromkeys(library.sources().values())
        globals_of = {
            file: {"__name__": library.MODULE, "__builtins__": namespace} for file in files
        }
        for file, space in globals_of.items():
            exec(compile(file.text, file.path, "exec", dont_inherit=True), space)
        functions = {name: globals_of[file][name] for name, file in library.sources().items()}
        members = {**vars(self._spaces()[library.MODULE]), **functions}
        for space in globals_of.values():
            later = {n: members[v.name] for n, v in space.items() if isinstance(v, _Placeholder)}
            space.update(later)
        self._functions.update(functions)

    def _import(
        self,
        name: str,
        space: Any = None,
        local: Any = None,
        fromlist: Sequence[str] | None = None,
        level: int = 0,
    ) -> Any:
        """`import` in the library: NKI, the library itself, or Python's own modules."""
        if name == library.MODULE:
            return SimpleNamespace(**{member: _Placeholder(member) for member in fromlist or ()})
        modules = self._spaces()
        if name not in modules:
            return builtins.__import__(name, space, local, fromlist or (), level)
        if fromlist:
            return modules[name]
        inner = {n.partition(".")[2]: s for n, s in modules.items() if n.startswith("nki.")}
        return SimpleNamespace(**{n: s for n, s in inner.items() if "." not in n})
