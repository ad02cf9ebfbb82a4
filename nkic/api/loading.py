"""Find the source of modules as the running Python program found it.

Nothing is imported: a loaded module is read from its `__file__`, any other is looked up on
`sys.path`. Inside nkic, a file is identified by its module's name, so that the same source compiles
to the same bytes wherever it is installed. Modules for the host (Python's own, frameworks) are not
read.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.machinery import PathFinder, SourceFileLoader
from pathlib import Path
from typing import Any, NoReturn

from nkic.api import functions
from nkic.base import files
from nkic.base.diagnostics import Diagnostic
from nkic.base.source import SourceFile
from nkic.compiler.loader import MAX_BYTES, PACKAGE
from nkic.source.parser import decode


@dataclass
class LiveLoader:
    """The files of one compilation of a live function. `include` are folders of data."""

    include: Sequence[Path] = ()
    sources: dict[str, SourceFile] = field(default_factory=dict)  # by path inside nkic
    paths: dict[str, str] = field(default_factory=dict)  # on this machine, by path inside nkic
    _modules: dict[str, str] = field(default_factory=dict)  # names, by path inside nkic
    _files: dict[str, SourceFile | None] = field(default_factory=dict)

    def __call__(self, request: str, importer: SourceFile) -> SourceFile | None:
        """Return the file of the module that `importer` calls `request`, or None."""
        name = self._absolute(request, importer)
        return self.module(name) if name else None

    def module(self, name: str) -> SourceFile | None:
        """Return the file of a module, or the text of a notebook cell by its file name."""
        if name not in self._files:
            self._files[name] = self._read(name)
        return self._files[name]

    def name_of(self, path: str) -> str:
        """Return the name by which `module` finds a file that was read."""
        return self._modules[path]

    def shown(self, path: str) -> str:
        file = self.paths.get(path)
        if file is None:
            return path
        if (cell := _cell_of(file)) or file.startswith("<"):
            return cell or file
        cwd = Path.cwd()
        return str(Path(file).relative_to(cwd)) if Path(file).is_relative_to(cwd) else file

    def source(self, shown: str) -> SourceFile | None:
        return next((s for path, s in self.sources.items() if self.shown(path) == shown), None)

    def relocated(self, diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
        return [d.relocated(self.shown) for d in diagnostics]

    def _absolute(self, request: str, importer: SourceFile) -> str:
        name = request.lstrip(".")
        dots = len(request) - len(name)
        module = self._modules.get(importer.path, "")
        if not dots:
            return name
        package = module.split(".")
        drop = dots - 1 if importer.path.endswith(PACKAGE) else dots
        parents = package[: len(package) - drop]
        return ".".join([*parents, name]).strip(".") if parents else ""

    def _read(self, name: str) -> SourceFile | None:
        if name.startswith("<") or "/" in name or "\\" in name:
            return self._cell(name)
        if functions.is_host(name) or functions.module_of_nki(name):
            return None
        path = file_of(name)
        if path is None:
            return None
        if path == "":  # a namespace package
            return self._add(f"{name.replace('.', '/')}/{PACKAGE}", name, "", b"")
        package = Path(path).name == PACKAGE
        stem = name.replace(".", "/") if name != "__main__" else Path(path).stem
        label = f"{stem}/{PACKAGE}" if package else f"{stem}.py"
        return self._add(label, name, path, _content(name, path))

    def _cell(self, name: str) -> SourceFile | None:
        lines = functions.source_lines(name)
        if not lines:
            return None
        data = "".join(lines).encode()
        label = f"cell-{hashlib.sha256(data).hexdigest()[:8]}.py"
        _CELLS[label] = name
        return self._add(label, name, name, data)

    def _add(self, label: str, module: str, path: str, data: bytes) -> SourceFile:
        source_file = self.sources.get(label)
        if source_file is not None:
            return source_file
        self.paths[label] = path
        self._modules[label] = module
        self.sources[label] = decode(data, label)
        return self.sources[label]


_CELLS: dict[str, str] = {}  # names of notebook cells in Python, by path inside nkic
_CELL = re.compile(r"\bcell-[0-9a-f]{8}\.py\b")


def with_cells(text: str) -> str:
    """Name notebook cells as the notebook shows them, `In[2]`, instead of by their content."""
    return _CELL.sub(lambda match: _cell_of(_CELLS.get(match[0], "")) or match[0], text)


def _cell_of(name: str) -> str:
    """Return `In[2]` for a cell of the running notebook; empty for all other files."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    shown = getattr(getattr(shell, "compile", None), "format_code_name", lambda name: None)(name)
    return shown[1] if shown else ""


def _content(name: str, path: str) -> bytes:
    """Return the text that Python runs: the file's, or the output of a loader that rewrites
    source.
    """
    data = files.read_bytes(path, MAX_BYTES)
    loader = getattr(sys.modules.get(name), "__loader__", None)
    kind = type(loader)
    if not isinstance(loader, SourceFileLoader) or "source_to_code" not in vars(kind):
        return data
    try:
        probe: Any = type(kind.__name__, (kind, _Catch), {})(loader.name, loader.path)
        probe.source_to_code(data, path)
    except _Caught as caught:
        return caught.text
    except (TypeError, SyntaxError):  # a loader with another interface
        pass
    return data


class _Caught(Exception):
    def __init__(self, text: bytes) -> None:
        super().__init__()
        self.text = text


class _Catch(SourceFileLoader):
    """The base loader to which a rewriting loader hands its text; it compiles nothing."""

    def source_to_code(  # type: ignore[override]
        self, data: Any, path: Any, *, _optimize: int = -1
    ) -> NoReturn:
        raise _Caught(data.encode() if isinstance(data, str) else bytes(data))


def file_of(name: str) -> str | None:
    """Return the source file of a module; empty for a namespace package, None if there is no
    source.
    """
    module = sys.modules.get(name)
    path = getattr(module, "__file__", None)
    if module is not None and (path is not None or name == "__main__"):
        return path if path is not None and path.endswith(".py") else None
    parent, _, last = name.rpartition(".")
    spec = PathFinder.find_spec(name if parent else last, _folders(parent) if parent else None)
    if spec is None:
        return None
    if spec.origin is None:
        return "" if spec.submodule_search_locations is not None else None
    return spec.origin if spec.origin.endswith(".py") else None


def _folders(package: str) -> list[str]:
    loaded = getattr(sys.modules.get(package), "__path__", None)
    if loaded is not None:
        return list(loaded)
    parent = package.rpartition(".")[0]
    spec = PathFinder.find_spec(package, _folders(parent) if parent else None)
    return list(spec.submodule_search_locations or ()) if spec is not None else []
