"""Module level: the names that a file binds, and the statements that bind them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from nkic.base.diagnostics import CompileFailed, refusal
from nkic.base.source import SourceFile
from nkic.source import nodes, scopes
from nkic.source.bindings import (
    Binding,
    BindingKind,
    Found,
    HostModule,
    Import,
    ProvidedModule,
    SourceModule,
)
from nkic.source.nodes import walk

MAX_SHARED = 1_000_000  # changes of module-level values, once per name of the value
_DEFINITIONS = {nodes.FunctionDef: BindingKind.FUNCTION, nodes.ClassDef: BindingKind.CLASS}
_SETTLED = frozenset({BindingKind.FUNCTION, BindingKind.IMPORT})


def bind(
    name: str, source: SourceFile, tree: nodes.Module, *, trusted: bool = False
) -> SourceModule:
    scan = _ModuleScan(tree)
    return SourceModule(
        name, source, tree, _bindings(tree, scan), scan.stars, trusted, scan.imports
    )


class _ModuleScan:
    """The definitions and imports at module level, blocks included, found in one walk."""

    def __init__(self, tree: nodes.Module) -> None:
        self.definitions: dict[str, list[nodes.FunctionDef | nodes.ClassDef]] = {}
        self.imports: dict[str, list[Import]] = {}  # by the name that they bind
        stars: list[str] = []
        for node in scopes.nodes_in_scope([tree]):
            if isinstance(node, nodes.FunctionDef | nodes.ClassDef):
                self.definitions.setdefault(node.name, []).append(node)
            elif isinstance(node, nodes.Import | nodes.ImportFrom):
                first: dict[str, nodes.Alias] = {}
                for alias in node.names:
                    first.setdefault(scopes.alias_name(alias), alias)
                for name, alias in first.items():
                    self.imports.setdefault(name, []).append(_import_target(name, node, alias))
                stars += _star_imports(node)
        self.stars = tuple(dict.fromkeys(reversed(stars)))


class _Definition(NamedTuple):
    """One statement that binds a name."""

    position: int
    node: nodes.Statement
    simple: bool  # whether it is a definition or an import at module level


_HOOK = "__init_subclass__"
_SIMPLE = nodes.FunctionDef | nodes.ClassDef | nodes.Import | nodes.ImportFrom


def _bindings(tree: nodes.Module, scan: _ModuleScan) -> dict[str, Binding]:
    definitions: dict[str, list[_Definition]] = {}
    for index, statement in enumerate(tree.body):
        simple = isinstance(statement, _SIMPLE)
        for name in sorted(scopes.bound_by([statement])):
            definitions.setdefault(name, []).append(_Definition(index, statement, simple))
    bindings = {
        name: _binding(name, name_definitions, scan)
        for name, name_definitions in definitions.items()
    }
    return _with_changes(tree, bindings)


def _binding(name: str, definitions: list[_Definition], scan: _ModuleScan) -> Binding:
    indices = tuple(definition.position for definition in definitions)
    node, span = definitions[0].node, definitions[0].node.span
    if len(definitions) > 1 or not definitions[0].simple:
        # The only definition among several statements that bind a name, such as `f = nki.jit(f)`.
        candidates = scan.definitions.get(name, [])
        return Binding(
            name, BindingKind.VALUE, indices, span, candidates[0] if len(candidates) == 1 else None
        )
    if isinstance(node, nodes.FunctionDef | nodes.ClassDef):
        return Binding(name, _DEFINITIONS[type(node)], indices, node.name_span, node)
    return Binding(name, BindingKind.IMPORT, indices, span, target=scan.imports[name][0])


def _import_target(name: str, node: nodes.Import | nodes.ImportFrom, alias: nodes.Alias) -> Import:
    if isinstance(node, nodes.ImportFrom):
        return Import(request(node), alias.name)
    return Import(alias.name if alias.asname else name)


def import_targets(module: SourceModule, binding: Binding) -> tuple[Import, ...]:
    """Return the imports that may bind a name, several in `try: … except ImportError: …`."""
    if binding.target is not None:
        return (binding.target,)
    return tuple(module.imports.get(binding.name, ()))


def request(node: nodes.ImportFrom) -> str:
    """Return the module of a `from` import as written: `..utils.names`."""
    return "." * node.level + (node.module or "")


def _star_imports(node: nodes.Import | nodes.ImportFrom) -> Iterator[str]:
    if isinstance(node, nodes.ImportFrom) and any(alias.name == "*" for alias in node.names):
        yield request(node)


def _with_changes(tree: nodes.Module, bindings: dict[str, Binding]) -> dict[str, Binding]:
    """Add the statements that change a value without binding a name: `TABLE["a"] = 1`."""
    same = _aliases(tree)
    changes: dict[str, list[int]] = {}
    counted = 0
    registries = _Registries(bindings)
    for index, statement in enumerate(tree.body):
        for name in sorted({*_changed(statement), *registries.changed_by(statement)}):
            counted += len(same.get(name, [name]))
            if counted > MAX_SHARED:
                raise _shared_too_much(name, statement)
            for alias in same.get(name, [name]):
                changes.setdefault(alias, []).append(index)
    return {name: _changing(old, changes.get(name, [])) for name, old in bindings.items()}


def _shared_too_much(name: str, statement: nodes.Statement) -> CompileFailed:
    text = (
        f"this changes `{name}`, whose value has other names, too: more than {MAX_SHARED} changes,"
        " counted once per name"
    )
    help = "change the value before it is assigned to other names"
    return refusal("too-large", text, statement.span, help=help)


def _aliases(tree: nodes.Module) -> dict[str, list[str]]:
    """Return the names that may share one value, by each of them: `b = a` at module level."""
    same: dict[str, list[str]] = {}
    for node in tree.body:
        if isinstance(node, nodes.Assign) and isinstance(node.value, nodes.Name):
            targets = [target.id for target in node.targets if isinstance(target, nodes.Name)]
            for name in targets:
                _merge_groups(same, name, node.value.id)
    return same


def _merge_groups(same: dict[str, list[str]], first: str, second: str) -> None:
    """Merge two groups of names; the smaller joins the larger, so that names move rarely."""
    smaller, larger = sorted((same.get(n, [n]) for n in (first, second)), key=len)
    if smaller is larger or smaller == larger:
        return
    larger += smaller
    same.update(dict.fromkeys([*smaller, larger[0]], larger))


def _changing(binding: Binding, changes: list[int]) -> Binding:
    later = [index for index in changes if index > binding.statements[0]]
    if not later or _is_settled(binding):
        return binding
    statements = tuple(sorted({*binding.statements, *later}))
    return Binding(binding.name, BindingKind.VALUE, statements, binding.span, binding.node)


def _is_settled(binding: Binding) -> bool:
    """Whether no other statement changes the value of a name.

    A decorator may have replaced a function, and a class may record its subclasses.
    """
    node = binding.node
    return binding.kind in _SETTLED and not (node and (node.decorators or _subclass_hooks(node)))


def _subclass_hooks(node: nodes.Statement | None) -> tuple[nodes.FunctionDef, ...]:
    """Return the `__init_subclass__` of a class, if it defines one."""
    body = node.body if isinstance(node, nodes.ClassDef) else ()
    return tuple(
        method for method in body if isinstance(method, nodes.FunctionDef) and method.name == _HOOK
    )


class _Registries:
    """The values that decorators of module-level definitions change.

    `@kind.register(int)` changes `kind`; `@register("a")` changes whatever the function `register`
    of the same file changes.
    """

    def __init__(self, bindings: dict[str, Binding]) -> None:
        self._bindings = bindings
        self._by_function: dict[str, frozenset[str]] = {}

    def changed_by(self, statement: nodes.Statement) -> Iterator[str]:
        """Yield the names whose value a definition changes, besides its own name."""
        if not isinstance(statement, nodes.FunctionDef | nodes.ClassDef):
            return
        if isinstance(statement, nodes.ClassDef):
            yield from self._changed_by_bases(statement)
        for decorator in statement.decorators:
            function = decorator.func if isinstance(decorator, nodes.Call) else decorator
            if isinstance(function, nodes.Name):
                yield from self._of_function(function.id)
            else:
                yield from filter(self._has_value, _root(function))

    def _changed_by_bases(self, statement: nodes.ClassDef) -> Iterator[str]:
        """Yield the base classes here with an `__init_subclass__`, and the names it changes."""
        waiting, seen = [statement], set[str]()
        while waiting:
            for base in waiting.pop().bases:
                name = base.id if isinstance(base, nodes.Name) else ""
                node = self._bindings[name].node if name in self._bindings else None
                if name in seen or not isinstance(node, nodes.ClassDef):
                    continue
                seen.add(name)
                waiting.append(node)
                for hook in _subclass_hooks(node):
                    yield name
                    yield from self._changed_inside(hook)

    def _has_value(self, name: str) -> bool:
        """Whether the name is a value of this file; modules and functions do not change."""
        return name in self._bindings and not _is_settled(self._bindings[name])

    def _of_function(self, name: str) -> frozenset[str]:
        if name not in self._by_function:
            binding = self._bindings.get(name)
            node = binding.node if binding is not None else None
            changed = self._changed_inside(node) if isinstance(node, nodes.FunctionDef) else ()
            self._by_function[name] = frozenset(changed)
        return self._by_function[name]

    def _changed_inside(self, function: nodes.FunctionDef) -> Iterator[str]:
        """Yield the names of this file whose value the statements of a function change."""
        changed = (name for node in walk(function) for name in _changed_by(node))
        return (name for name in changed if name in self._bindings)


def _changed(statement: nodes.Statement) -> Iterator[str]:
    """Yield the names whose value a module-level statement changes in place.

    Statements in loops and branches count, but `if __name__ == "__main__":` holds host code.
    """
    waiting = [statement]  # a loop, because `elif` nests as deep as the file is long
    while waiting:
        node = waiting.pop()
        if isinstance(node, nodes.If):
            if not any(isinstance(n, nodes.Name) and n.id == "__name__" for n in walk(node.test)):
                waiting += [*node.body, *node.orelse]
        elif isinstance(node, nodes.For):
            waiting += node.body
        else:
            yield from _changed_by(node)


def _changed_by(statement: nodes.Node) -> Iterator[str]:
    if isinstance(statement, nodes.Expr) and isinstance(statement.value, nodes.Call):
        if isinstance(statement.value.func, nodes.Attribute):
            yield from _root(statement.value.func)
    elif isinstance(statement, nodes.Assign | nodes.Delete):
        yield from (name for target in statement.targets for name in _root(target))
    elif isinstance(statement, nodes.AugAssign):
        yield from _root(statement.target)


def _root(target: nodes.Expression) -> Iterator[str]:
    """Yield the leftmost name of `name[…].attribute…`; nothing for a bare name."""
    inner = target
    while isinstance(inner, nodes.Attribute | nodes.Subscript):
        inner = inner.value
    if inner is not target and isinstance(inner, nodes.Name):
        yield inner.id


# ------------------------------------------------------------------------------------------------
# The mapping from imports to files. `load` is passed in by the caller, who reads the files.

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
        modules = (self.find(request, module) for request in module.stars)
        return tuple(starred.name for starred in modules if isinstance(starred, ProvidedModule))


def joined(request: str, name: str) -> str:
    """Return the module `name` in `request`: `..a` and `b` make `..a.b`, `.` and `b` make `.b`."""
    return f"{request}{name}" if request.endswith(".") else f"{request}.{name}"


def _absolute(request: str, importer: str) -> str:
    name = request.lstrip(".")
    dots = len(request) - len(name)
    package = importer.split(".")[:-dots] if dots else []
    return ".".join([*package, name]).strip(".")
