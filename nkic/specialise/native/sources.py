"""The source files of traced code, read on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from types import CodeType
from typing import Any

from nkic.base.diagnostics import CompileFailed
from nkic.base.source import SHIPPED, SourceFile
from nkic.language import library
from nkic.syntax import nodes
from nkic.syntax.bindings import STDLIB, SourceModule

Parse = Callable[[SourceFile], nodes.Module]
FindSource = Callable[[CodeType, Mapping[str, Any]], SourceFile | None]


@lru_cache(maxsize=256)
def _module(source: SourceFile, parse: Parse) -> SourceModule | None:
    """Return the file as a module without bindings, or None if it cannot be parsed."""
    try:
        tree = parse(source)
    except CompileFailed:  # its Python is newer than nkic's grammar
        return None
    return _as_module(source, tree)


def _as_module(source: SourceFile, tree: nodes.Module) -> SourceModule:
    trusted = source.path.startswith(SHIPPED)
    return SourceModule(source.path, source, tree, {}, trusted=trusted)


class Sources(Mapping[str, SourceModule]):
    """The source files of one trace, by their path in spans."""

    def __init__(self, find: FindSource, parse: Parse) -> None:
        self.files: dict[str, SourceFile] = {}
        self._find = find
        self._parse = parse
        self._allowed: dict[str, SourceFile] = {}
        self._modules: dict[str, SourceModule] = {}

    @property
    def modules(self) -> Mapping[str, SourceModule]:
        """The files themselves: this class stands in for a kernel's library of modules."""
        return self

    def allow(self, code: CodeType, file: SourceFile) -> None:
        """Declare the file of a code object to be a kernel's although its text is unavailable."""
        self._allowed[code.co_filename] = file

    def add_module(self, source: SourceFile, tree: nodes.Module) -> SourceModule:
        """Return a module for synthesised source."""
        module = self._modules[source.path] = _as_module(source, tree)
        return module

    def of(self, code: CodeType, space: Mapping[str, Any]) -> SourceFile | None:
        """Return the file of a code object, or None if it is not kernel code."""
        if code.co_filename.startswith(STDLIB):
            source = next(f for f in library.sources().values() if f.path == code.co_filename)
        else:
            file = self._allowed.get(code.co_filename) or self._find(code, space)
            if file is None:
                return None
            source = file
        self.files[source.path] = source
        return source

    def module(self, path: str) -> SourceModule | None:
        """Return the module of a file returned by `of`."""
        file = self.files.get(path)
        synthesised = self._modules.get(path)
        return (
            synthesised if synthesised is not None or file is None else _module(file, self._parse)
        )

    def get(self, key: str, default: Any = None) -> Any:
        module = self.module(key)
        return default if module is None else module

    def __getitem__(self, path: str) -> SourceModule:
        module = self.module(path)
        if module is None:
            raise KeyError(path)
        return module

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)

    __hash__ = object.__hash__
