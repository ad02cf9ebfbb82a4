"""Find kernel source on disk: the file to compile, and the modules that it imports.

Inside nkic, a file is identified by its path from the folder of the kernel's file, so that the same
source compiles to the same bytes wherever the folder is. `shown` gives the path to print.

Nothing is imported or executed: files are read as text. Python's search depends on its environment;
this one depends only on the source and the command line. An absolute import is searched, in this
order, among the modules given by name, at the root of the importing file's package, beside the
kernel's file, and in the include folders.

A file counts only if it is a regular file that, with links resolved, is inside a folder that the
command line names: that of the kernel's file (or of the package around it), an include folder, or
that of a module given by name. An import cannot reach any other place: files there are treated as
missing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from nkic.base import files
from nkic.base.cache import Probes
from nkic.base.diagnostics import Diagnostic, UsageFailed, make
from nkic.base.source import SourceFile
from nkic.source.parser import decode

MAX_BYTES = 16 << 20  # of a kernel source file; the largest published ones have 200 KiB
PACKAGE = "__init__.py"


class Root(NamedTuple):
    """A folder in which to search for modules; `label` is the prefix of paths inside nkic."""

    folder: str  # as the user wrote it
    label: str = ""


class SourcePath(NamedTuple):
    """A file or folder by its path from a root; the path may leave the root with `..`."""

    root: Root
    path: str

    def __truediv__(self, name: str) -> SourcePath:
        return SourcePath(self.root, os.path.normpath(f"{self.path}/{name}").replace(os.sep, "/"))

    @property
    def parent(self) -> SourcePath:
        return self / ".."

    @property
    def disk(self) -> Path:
        """The path on disk, as the user would write it."""
        return Path(os.path.normpath(Path(self.root.folder, self.path)))

    @property
    def label(self) -> str:
        """The name inside nkic: the shortest path from the root."""
        path = os.path.relpath(self.disk, self.root.folder or ".").replace(os.sep, "/")
        return f"{self.root.label}/{path}" if self.root.label else path


@dataclass
class Loader:
    """The files of one compilation. `modules` maps module names to paths of files or packages."""

    kernel: Root
    includes: Sequence[Root] = ()
    modules: Mapping[str, str] = field(default_factory=dict)
    _paths: dict[str, SourcePath] = field(default_factory=dict)
    _labels: dict[Path, str] = field(default_factory=dict)
    # The files of modules searched so far, and the outermost packages around folders.
    _files: dict[SourcePath, SourcePath | None] = field(default_factory=dict)
    _packages: dict[SourcePath, SourcePath | None] = field(default_factory=dict)
    sources: dict[str, SourceFile] = field(default_factory=dict)  # read, by path inside nkic
    probes: Probes = field(default_factory=Probes)
    unsaved: Mapping[Path, bytes] = field(default_factory=dict)  # read in place of these files

    @classmethod
    def beside(
        cls, path: str, includes: Sequence[str] = (), modules: Mapping[str, str] | None = None
    ) -> Loader:
        """Return a loader for the kernel file `path`. Raises `UsageFailed` for missing paths."""
        probes = Probes()
        for name, file in (modules or {}).items():
            if not probes.is_file(Path(file)) and not probes.is_folder(Path(file)):
                raise _missing(f"--module {name}", f"`{file}`")
        roots = [Root(folder, label) for folder, label in _labelled(includes, probes)]
        return cls(Root(str(Path(path).parent)), roots, dict(modules or {}), probes=probes)

    # ---- files -----------------------------------------------------------------------------

    def main(self, path: str, data: bytes | None = None) -> SourceFile:
        """Return the kernel's file; `data` is its content if it does not come from the disk."""
        return self._add(SourcePath(self.kernel, PurePosixPath(Path(path)).name), path, data)

    def __call__(self, request: str, importer: SourceFile) -> SourceFile | None:
        """Return the file of the module that `importer` calls `request`, or None."""
        importer_path = self._paths.get(importer.path)
        if importer_path is None:  # nkic's own standard library has no neighbours
            return None
        candidates = self._candidates(request, importer_path)
        path = next((file for candidate in candidates if (file := self._file(candidate))), None)
        if path is not None:
            return self._add(path)
        packages = candidates if request.strip(".") else []
        folder = next(
            (candidate for candidate in packages if self._holds_source(candidate.disk)), None
        )
        return self._add(folder / PACKAGE, data=b"") if folder is not None else None

    def shown(self, path: str) -> str:
        """Return the printed form of a path inside nkic: the path from the working directory."""
        source_path = self._paths.get(path)
        return str(source_path.disk) if source_path is not None else path

    def source(self, shown: str) -> SourceFile | None:
        return next((s for path, s in self.sources.items() if self.shown(path) == shown), None)

    def relocated(self, diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
        return [d.relocated(self.shown) for d in diagnostics]

    @cached_property
    def folders(self) -> list[Path]:
        """The folders that may hold source: those of what the command line names, and the include
        folders.
        """
        module_paths = map(Path, self.modules.values())
        beside = [path if self.probes.is_folder(path) else path.parent for path in module_paths]
        homes = [home_of(folder, self.probes) for folder in (Path(self.kernel.folder), *beside)]
        return [*homes, *(Path(root.folder) for root in self.includes)]

    def _is_file(self, path: SourcePath) -> bool:
        return self.probes.is_file(path.disk) and files.is_inside(path.disk, self.folders)

    @property
    def files(self) -> list[str]:
        """The printed path of every file read so far."""
        return [str(path.disk) for path in self._paths.values() if files.is_file(path.disk)]

    def neighbour(self, path: str) -> SourceFile | None:
        """Return the file with this path inside nkic if it is beside the kernel's file."""
        source_path = SourcePath(self.kernel, path)
        beside = path.endswith(".py") and not path.startswith("/")
        return self._add(source_path) if beside and self._is_file(source_path) else None

    def _add(
        self, source_path: SourcePath, path: str = "", data: bytes | None = None
    ) -> SourceFile:
        shown = path or str(source_path.disk)
        label = self._labels.get(files.real(source_path.disk)) or self._new_label(source_path)
        if label not in self.sources:
            read = files.read_bytes if path else files.read_regular  # named by the user, or found
            data = self.unsaved.get(source_path.disk) if data is None else data
            content = read(shown, MAX_BYTES) if data is None else data
            self.probes.note(source_path.disk, content)
            self.sources[label] = decode(content, label)
        return self.sources[label]

    def _new_label(self, path: SourcePath) -> str:
        """Return a label for a new file; a prefix distinguishes it from an equal one."""
        label = path.label
        while label in self._paths:
            label = "+" + label
        self._paths[label] = path
        self._labels[files.real(path.disk)] = label
        return label

    # ---- imports ---------------------------------------------------------------------------

    def _candidates(self, request: str, importer: SourcePath) -> list[SourcePath]:
        """Return the paths without suffix at which the module may be, in order of preference."""
        name = request.lstrip(".")
        dots = len(request) - len(name)
        path = name.replace(".", "/")
        if dots:  # the first one denotes the importer's own package
            return [importer / f"{'../' * dots}{path}"]
        root = self._package_root(importer.parent)
        bases = [root] if root is not None else []
        bases += [SourcePath(root, ".") for root in (self.kernel, *self.includes)]
        return [*self._by_name(name), *(base / path for base in bases)]

    def _file(self, module: SourcePath) -> SourcePath | None:
        """Return the file of `module`: a package's `__init__.py`, or the `.py` file."""
        if module not in self._files:
            candidates = (module / PACKAGE, SourcePath(module.root, module.path + ".py"))
            self._files[module] = next((path for path in candidates if self._is_file(path)), None)
        return self._files[module]

    def _holds_source(self, folder: Path) -> bool:
        """Whether a folder without `__init__.py` is a namespace package, as in Python."""
        if not self.probes.is_folder(folder) or not files.is_inside(folder, self.folders):
            return False
        self.probes.is_searched = True
        return any(any(folder.glob(pattern)) for pattern in ("*.py", "*/*.py"))

    def _package_root(self, folder: SourcePath) -> SourcePath | None:
        """Return the folder around the outermost package of `folder`; None outside packages."""
        if folder not in self._packages:
            self._packages[folder] = _package_root(folder, self.probes)
        return self._packages[folder]

    def _by_name(self, name: str) -> Iterator[SourcePath]:
        """Yield the path of a module that was given by name, or is inside a package that was."""
        for module, path in self.modules.items():
            if name == module or name.startswith(module + "."):
                root = Root(str(Path(path).parent), f"{module}:")
                base = SourcePath(root, Path(path).name.removesuffix(".py"))
                yield base / name[len(module) :].replace(".", "/")


def _labelled(folders: Sequence[str], probes: Probes) -> Iterator[tuple[str, str]]:
    """Yield each folder with a unique label that does not depend on its location."""
    taken: set[str] = set()
    for folder in folders:
        if not probes.is_folder(Path(folder)):
            raise _missing("--include", f"folder `{folder}`")
        label = files.real(folder).name + ":"
        while label in taken:
            label = "+" + label
        taken.add(label)
        yield folder, label


def _missing(option: str, what: str) -> UsageFailed:
    return UsageFailed([make("cannot-read", f"{option}: there is no {what}")])


def _package_root(folder: SourcePath, probes: Probes) -> SourcePath | None:
    if not probes.is_file((folder / PACKAGE).disk):
        return None
    while probes.is_file((folder / PACKAGE).disk) and files.real(folder.disk).parent != folder.disk:
        folder = folder.parent
    return folder


def home_of(folder: Path, probes: Probes) -> Path:
    """Return the outermost package around `folder`; `folder` itself outside packages."""
    probes.is_folder(folder)
    home = files.real(folder)
    while probes.is_file(home / PACKAGE) and probes.is_file(home.parent / PACKAGE):
        home = home.parent
    return home
