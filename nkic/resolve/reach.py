"""What a kernel can reach, checked against the subset: every violation is reported at once.

From the kernel on, through the names that functions and classes use, across modules. A method
is reached when its class is and any reached code uses its name. Module-level values are
evaluated before kernel code, as Python's import would, so that functions which only their
initialisers call are host code and not checked. Types of values are not known here: what
depends on them is found when the kernel is evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from nkic.base.diagnostics import Reporter, make
from nkic.base.profiles import Profile
from nkic.base.source import Span
from nkic.base.suggest import did_you_mean, respelt
from nkic.resolve import subset
from nkic.resolve.bind import import_targets
from nkic.resolve.former import check_import
from nkic.resolve.kernels import wrapper
from nkic.resolve.library import Library, joined
from nkic.syntax import names, nodes, scopes
from nkic.syntax.bindings import Binding, HostModule, Import, Kind, SourceModule
from nkic.syntax.walk import walk

Definition = nodes.FunctionDef | nodes.ClassDef
Given = Callable[[str], frozenset[str]]
"""The variables of a module, by its dotted name, that come from a running program."""


@dataclass
class Reach:
    """The walk. `reached` is its result, in the order of finding."""

    library: Library
    profile: Profile
    report: Reporter
    given: Given
    reached: dict[Definition, SourceModule] = field(default_factory=dict)
    _waiting: list[Definition] = field(default_factory=list)
    _methods: dict[str, list[tuple[SourceModule, nodes.FunctionDef]]] = field(default_factory=dict)
    _inner: set[Definition] = field(default_factory=set)  # methods: their class has the signature
    _attributes: set[str] = field(default_factory=set)
    _values: set[tuple[str, str]] = field(default_factory=set)
    _followed: set[tuple[str, str, bool]] = field(default_factory=set)

    def run(self, module: SourceModule, kernel: nodes.FunctionDef) -> tuple[Definition, ...]:
        """Everything that `kernel` reaches, itself first."""
        self._add(module, kernel)
        while self._waiting:
            definition = self._waiting.pop(0)
            self._visit(self.reached[definition], definition)
        return tuple(self.reached)

    def _add(self, module: SourceModule, definition: Definition) -> None:
        if definition not in self.reached:
            self.reached[definition] = module
            self._waiting.append(definition)

    def _visit(self, module: SourceModule, definition: Definition) -> None:
        methods = _methods(definition)
        pieces = _pieces(definition, definition in self._inner)
        everything = [node for piece in pieces for node in walk(piece)]
        self._check(module, definition, frozenset(methods), everything)
        self._scan(module, everything, self._uses(definition, pieces))
        for method in methods:
            self._inner.add(method)
            self._offer(module, method)

    def _uses(self, definition: Definition, pieces: list[nodes.Node]) -> Iterator[nodes.Name]:
        if definition in self._inner:
            return scopes.taken_by(definition)
        is_class = isinstance(definition, nodes.ClassDef)
        local = scopes.bound(definition) if is_class else frozenset[str]()
        return scopes.taken_from_outside(pieces, local)

    # ---- the subset ------------------------------------------------------------------------

    def _check(
        self,
        module: SourceModule,
        definition: Definition,
        apart: frozenset[nodes.FunctionDef],
        everything: list[nodes.Node],
    ) -> None:
        if module.trusted:
            return
        found = subset.violations(definition, self.profile, lambda scope: scope not in apart)
        for rule, span in found:
            self._refuse(rule, span)
        for part in [definition, *everything]:
            self._check_hidden(part)

    def _refuse(self, rule: subset.Rule, span: Span) -> None:
        never = rule.refused == subset.NEVER
        where = "in kernel code" if never else f"in NKI {self.profile.label}"
        text = f"{rule.words} cannot be used {where}"
        self.report.error("not-in-nki", text, span, help=rule.advice)

    def _check_hidden(self, node: nodes.Node) -> None:
        if isinstance(node, nodes.Attribute) and names.is_hidden(node.attr):
            if not _is_frozen_assignment(node):
                self._hidden(node.attr, node.span)
        elif isinstance(node, nodes.ClassDef):
            for method in _methods(node):
                if not names.may_define(method.name):
                    self._hidden(method.name, method.name_span)

    def _hidden(self, name: str, span: Span) -> None:
        text = f"`{name}` is out of reach of kernel code"
        self.report.error("hidden-attribute", text, span, help=names.instead_of(name))

    # ---- names -----------------------------------------------------------------------------

    def _scan(
        self,
        module: SourceModule,
        everything: list[nodes.Node],
        uses: Iterable[nodes.Name],
        *,
        called: bool = True,
    ) -> None:
        """Follows `uses`, and attributes in `everything`; called functions only if `called`."""
        self._use_attributes(everything)
        near = {n.id for n in everything if isinstance(n, nodes.Name)}
        near |= {n.name for n in everything if isinstance(n, nodes.Arg)}
        left_out = {id(n.func) for n in everything if isinstance(n, nodes.Call) and not called}
        for name in sorted(uses, key=lambda node: node.span):
            self._name(module, name, near, follow=id(name) not in left_out)
        for node in everything:
            if isinstance(node, nodes.Attribute):
                self._chain(module, node)

    def _use_attributes(self, everything: Iterable[nodes.Node]) -> None:
        new = {n.attr for n in everything if isinstance(n, nodes.Attribute)} - self._attributes
        self._attributes |= new
        for name in sorted(new & self._methods.keys()):
            for module, method in self._methods.pop(name):
                self._add(module, method)

    def _offer(self, module: SourceModule, method: nodes.FunctionDef) -> None:
        """A method of a reached class: reached itself once its name is used."""
        if names.is_special(method.name) or method.name in self._attributes:
            self._add(module, method)
        else:
            self._methods.setdefault(method.name, []).append((module, method))

    def _name(
        self, module: SourceModule, name: nodes.Name, near: set[str], *, follow: bool
    ) -> None:
        holder, binding = self.library.binding(module, name.id)
        if binding is not None:
            self._check_sub_kernel(holder, name, binding)
            self._follow(holder, binding, functions=follow)
        elif name.id in names.BUILTINS or name.id in self.given(module.name):
            return
        elif not self.library.provided_stars(module):
            self._unknown(module, name, near)

    def _unknown(self, module: SourceModule, name: nodes.Name, near: set[str]) -> None:
        if names.is_special(name.id):
            return
        known = [*module.bindings, *sorted(names.BUILTINS), *sorted(near)]
        if name.id in names.REFUSED_BUILTINS:
            advice = names.REFUSED_BUILTINS[name.id]
            text = f"`{name.id}` is not available"
            self.report.error("unknown-name", text, name.span, help=advice)
            return
        # As in Python, nothing is wrong until the name is evaluated.
        advice = names.customary(name.id) or did_you_mean(name.id, known)
        text = f"`{name.id}` is not defined"
        fixes = respelt(advice, module.source, name.span)
        self.report.doubt(make("unknown-name", text, name.span, help=advice, fixes=fixes))

    def _check_sub_kernel(self, module: SourceModule, name: nodes.Name, binding: Binding) -> None:
        if self.profile not in subset.SUB_KERNEL.refused or binding.node is None:
            return
        if any(wrapper(decorator, module) for decorator in binding.node.decorators):
            self._refuse(subset.SUB_KERNEL, name.span)

    def _follow(self, module: SourceModule, binding: Binding, *, functions: bool = True) -> None:
        if binding.node is not None and (functions or binding.kind is not Kind.FUNCTION):
            self._add(module, binding.node)
        if binding.kind is Kind.IMPORT:
            if self._seen(module, binding, functions):
                return
            check_import(module, binding, self.profile, self.library.provided, self.report)
        for target in import_targets(module, binding):
            holder, found = self.library.member(target, module)
            if found is not None and isinstance(holder, SourceModule):
                self._follow(holder, found, functions=functions)
        if binding.kind is Kind.VALUE:
            self._value(module, binding)

    def _seen(self, module: SourceModule, binding: Binding, functions: bool) -> bool:
        """The import was followed before: imports can lead in circles."""
        key = (module.source.path, binding.name, functions)
        known = key in self._followed
        self._followed.add(key)
        return known

    def _value(self, module: SourceModule, binding: Binding) -> None:
        """The functions and classes that a module-level value may hold."""
        key = (module.source.path, binding.name)
        if key in self._values:
            return
        self._values.add(key)
        body = module.tree.body
        parts = [p for index in binding.statements for p in _value_parts(body[index])]
        everything = [node for part in parts for node in walk(part)]
        self._scan(module, everything, scopes.taken_from_outside(parts), called=False)

    def _chain(self, module: SourceModule, node: nodes.Attribute) -> None:
        """`package.module.function`, where an import binds the package."""
        path = _path(node)
        if path is None:
            return
        root, attributes = path
        _, binding = self.library.binding(module, root)
        for target in import_targets(module, binding) if binding else ():
            self._in_module(module, target, attributes)

    def _in_module(self, module: SourceModule, target: Import, attributes: list[str]) -> None:
        request = joined(target.request, target.member) if target.member else target.request
        for attribute in attributes:
            holder, found = self.library.member(Import(request, attribute), module)
            if found is not None and isinstance(holder, SourceModule):
                self._follow(holder, found)
            if found is not None or isinstance(holder, HostModule):
                return
            request = joined(request, attribute)


def _methods(definition: Definition) -> list[nodes.FunctionDef]:
    if isinstance(definition, nodes.FunctionDef):
        return []
    return [node for node in definition.body if isinstance(node, nodes.FunctionDef)]


def _pieces(definition: Definition, is_method: bool) -> list[nodes.Node]:
    """What of a definition is evaluated when it is: of a class, not the insides of methods.

    The signature of a method belongs to its class.
    """
    if isinstance(definition, nodes.FunctionDef):
        return list(definition.body) if is_method else [definition]
    plain = [node for node in definition.body if not isinstance(node, nodes.FunctionDef)]
    signatures = [part for method in _methods(definition) for part in scopes.outside(method)]
    return [*scopes.outside(definition), *plain, *signatures]


def _value_parts(statement: nodes.Statement) -> Iterator[nodes.Node]:
    """What of a statement makes a value; of an assignment, not the targets."""
    if isinstance(statement, nodes.Assign):
        yield statement.value
    elif not isinstance(statement, nodes.AnnAssign):
        yield statement
    elif statement.value is not None:
        yield statement.value


def _path(node: nodes.Attribute) -> tuple[str, list[str]] | None:
    attributes: list[str] = []
    at: nodes.Expression = node
    while isinstance(at, nodes.Attribute):
        attributes.insert(0, at.attr)
        at = at.value
    return (at.id, attributes) if isinstance(at, nodes.Name) else None


def _is_frozen_assignment(node: nodes.Attribute) -> bool:
    """`object.__setattr__`, as frozen dataclasses use it in `__post_init__`."""
    owner = node.value
    return node.attr == "__setattr__" and isinstance(owner, nodes.Name) and owner.id == "object"
