"""The mapping from imports to files. `load` is passed in by the caller, who reads the files."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from nkic.base.source import SourceFile
from nkic.resolve.bind import bind
from nkic.syntax import nodes
from nkic.syntax.bindings import (
    Binding,
    Found,
    HostModule,
    Import,
    ProvidedModule,
    SourceModule,
)

# Returns the file of a module, or None if no kernel source has that name. The arguments are the
# module as written in the import, including leading dots, and the importing file.
Load = Callable[[str, SourceFile], SourceFile | None]
Parse = Callable[[SourceFile], nodes.Module]


@dataclass
class Library:
    """Every module that the kernel's imports lead to, read once each.

    `provided` holds the names of the modules that nkic itself implements. They take precedence, as
    Python's builtin modules do.
    """

    load: Load
    parse: Parse
    provided: Collection[str]
    modules: dict[str, SourceModule] = field(default_factory=dict)
    _found: dict[tuple[str, str], Found] = field(default_factory=dict)
    _stars: dict[str, tuple[SourceModule, ...]] = field(default_factory=dict)

    def add(self, name: str, source: SourceFile, *, trusted: bool = False) -> SourceModule:
        """Read a file, unless it was read before."""
        module = self.modules.get(source.path)
        if module is None:
            module = bind(name, source, self.parse(source), trusted=trusted)
            self.modules[source.path] = module
        return module

    def find(self, request: str, importer: SourceModule) -> Found:
        """Return the module that `request`, as written, refers to in `importer`."""
        key = (request, importer.source.path)
        if key not in self._found:
            self._found[key] = self._find(request, importer)
        return self._found[key]

    def _find(self, request: str, importer: SourceModule) -> Found:
        if request in self.provided:
            return ProvidedModule(request)
        source = self.load(request, importer.source)
        if source is None:
            return HostModule(request)
        return self.add(_absolute(request, importer.name), source)

    def member(self, target: Import, importer: SourceModule) -> tuple[Found, Binding | None]:
        """Return the module that holds an imported member, and the member's binding in it.

        If the module does not bind the member, the member may be a submodule of the package: then
        return the submodule without a binding. The same holds for members that a package imports
        from itself.
        """
        module = self.find(target.request, importer)
        if target.member is None:
            return module, None
        if isinstance(module, SourceModule) and module is not importer:
            holder, binding = self.binding(module, target.member)
            if binding is not None:
                return holder, binding
        inner = self.find(joined(target.request, target.member), importer)
        if isinstance(inner, HostModule):
            return module, None
        return inner, None

    def binding(self, module: SourceModule, name: str) -> tuple[SourceModule, Binding | None]:
        """Return where a name of a module is bound: in itself, or in a module it star-imports."""
        waiting, seen = [module], {module.source.path}
        while waiting:
            holder = waiting.pop()
            if name in holder.bindings:
                return holder, holder.bindings[name]
            for starred in () if name.startswith("_") else self._star_sources(holder):
                if starred.source.path not in seen:
                    seen.add(starred.source.path)
                    waiting.append(starred)
        return module, None

    def _star_sources(self, module: SourceModule) -> tuple[SourceModule, ...]:
        """Return the files that a module star-imports, the first import first."""
        if module.source.path not in self._stars:
            modules = [self.find(request, module) for request in reversed(module.stars)]
            sources = tuple([starred for starred in modules if isinstance(starred, SourceModule)])
            self._stars[module.source.path] = sources
        return self._stars[module.source.path]

    def provided_stars(self, module: SourceModule) -> tuple[str, ...]:
        """Return the provided modules that a module star-imports."""
        modules = (self.find(request, module) for request in module.stars)
        return tuple(starred.name for starred in modules if isinstance(starred, ProvidedModule))


def joined(request: str, name: str) -> str:
    """Return the module `name` in `request`: `..a` and `b` make `..a.b`, `.` and `b` make `.b`."""
    return f"{request}{name}" if request.endswith(".") else f"{request}.{name}"


def _absolute(request: str, importer: str) -> str:
    """Return a module's full name, for `__name__`."""
    name = request.lstrip(".")
    dots = len(request) - len(name)
    package = importer.split(".")[:-dots] if dots else []
    return ".".join([*package, name]).strip(".")
