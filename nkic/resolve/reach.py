"""The code that a kernel can reach, checked against the subset: all violations are reported.

The walk starts at the kernel and follows the names that functions and classes use, across modules.
A method is reached if its class is reached and any reached code uses its name. Module-level values
are evaluated before kernel code, as by Python's import, so functions that only their initialisers
call are host code and are not checked. The types of values are unknown here: errors that depend on
them are found when the kernel is evaluated.
"""

from __future__ import annotations

import builtins
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from nkic.base.diagnostics import Reporter, make
from nkic.base.kernel_errors import SECOND_WAY
from nkic.base.profiles import Profile
from nkic.base.source import Span
from nkic.base.suggest import did_you_mean, respelt
from nkic.resolve import mentions, subset
from nkic.resolve.bind import import_targets
from nkic.resolve.former import check_import
from nkic.resolve.kernels import wrapper
from nkic.resolve.library import Library, joined
from nkic.resolve.mentions import Definition, Mentions, Path
from nkic.syntax import names, nodes
from nkic.syntax.bindings import Binding, BindingKind, HostModule, Import, SourceModule

MAX_GUESSES = 20  # the most unknown names for which a message suggests a similar name
Supplied = Callable[[str], frozenset[str]]
"""Returns the variables of a module, by its dotted name, that a running program supplies."""


@dataclass
class Reach:
    """The walk over reachable code. `reached` is its result, in order of discovery."""

    library: Library
    profile: Profile
    report: Reporter
    supplied: Supplied
    reached: dict[Definition, SourceModule] = field(default_factory=dict)
    _waiting: deque[Definition] = field(default_factory=deque)
    _methods: dict[str, list[tuple[SourceModule, nodes.FunctionDef]]] = field(default_factory=dict)
    _inner: set[Definition] = field(default_factory=set)  # methods: their class has the signature
    _attributes: set[str] = field(default_factory=set)
    _values: set[nodes.Statement] = field(default_factory=set)
    _pending: deque[tuple[SourceModule, nodes.Statement]] = field(default_factory=deque)
    _followed: set[tuple[str, str, bool]] = field(default_factory=set)
    _advice: dict[tuple[str, str], str] = field(default_factory=dict)

    def run(self, module: SourceModule, kernel: nodes.FunctionDef) -> tuple[Definition, ...]:
        """Return every definition that `kernel` reaches, itself first."""
        self._add(module, kernel)
        while self._waiting:
            definition = self._waiting.popleft()
            self._visit(self.reached[definition], definition)
            while self._pending:  # a queue, because a value may depend on thousands of others
                module, statement = self._pending.popleft()
                self._use(module, mentions.of_values((statement,)), called=False)
        return tuple(self.reached)

    def _add(self, module: SourceModule, definition: Definition) -> None:
        if definition not in self.reached:
            self.reached[definition] = module
            self._waiting.append(definition)

    def _visit(self, module: SourceModule, definition: Definition) -> None:
        mentioned = mentions.of_definition(definition, definition in self._inner)
        if not module.trusted:
            self._check(definition, mentioned.hidden)
        self._use(module, mentioned)
        for method in mentions.methods(definition):
            self._inner.add(method)
            self._offer(module, method)

    # ---- the subset ------------------------------------------------------------------------

    def _check(self, definition: Definition, hidden: Iterable[tuple[str, Span]]) -> None:
        methods = frozenset(mentions.methods(definition))
        for rule, span in subset.violations(definition, self.profile, methods):
            self._refuse(rule, span)
        for name, span in hidden:
            text = f"`{name}` is not accessible to kernel code"
            help = names.instead_of(name)
            self.report.error("hidden-attribute", text, span, help=help, notes=[SECOND_WAY])

    def _refuse(self, rule: subset.SubsetRule, span: Span) -> None:
        never = rule.refused == subset.NEVER
        where = "in kernel code" if never else f"in NKI {self.profile.label}"
        text = f"{rule.words} cannot be used {where}"
        self.report.error("not-in-nki", text, span, help=rule.advice)

    # ---- names -----------------------------------------------------------------------------

    def _use(self, module: SourceModule, mentioned: Mentions, *, called: bool = True) -> None:
        """Follow names and attributes; follow functions that are called only if `called`."""
        self._use_attributes(mentioned.attributes)
        for name in mentioned.uses:
            self._use_name(
                module, name, mentioned.near, follow=called or name not in mentioned.called
            )
        for path in mentioned.paths:
            self._follow_path(module, path)

    def _use_attributes(self, attributes: frozenset[str]) -> None:
        new = attributes - self._attributes
        self._attributes |= new
        for name in sorted(new & self._methods.keys()):
            for module, method in self._methods.pop(name):
                self._add(module, method)

    def _offer(self, module: SourceModule, method: nodes.FunctionDef) -> None:
        """Register a method of a reached class: it is reached once its name is used."""
        if names.is_special(method.name) or method.name in self._attributes:
            self._add(module, method)
        else:
            self._methods.setdefault(method.name, []).append((module, method))

    def _use_name(
        self, module: SourceModule, name: nodes.Name, local_names: frozenset[str], *, follow: bool
    ) -> None:
        holder, binding = self.library.binding(module, name.id)
        if binding is not None:
            self._check_sub_kernel(holder, name, binding)
            self._follow(holder, binding, functions=follow)
        elif self._is_known(module, name.id) or name.id in module.declared_global:
            return
        elif not self.library.provided_stars(module):
            self._unknown(module, name, local_names)

    def _is_known(self, module: SourceModule, name: str) -> bool:
        """Whether the name has a value without an import."""
        memory = self.profile is Profile.BETA2 and name in names.MEMORIES
        return memory or name in names.BUILTINS or name in self.supplied(module.name)

    def _unknown(self, module: SourceModule, name: nodes.Name, local_names: frozenset[str]) -> None:
        if names.is_special(name.id):
            return
        if name.id in names.REFUSED_BUILTINS:
            advice = names.REFUSED_BUILTINS[name.id]
            text = f"`{name.id}` is not available"
            notes = [SECOND_WAY]
            self.report.error("unknown-name", text, name.span, help=advice, notes=notes)
            return
        # As in Python, an undefined name is an error only when it is evaluated.
        advice = self._guess(module, name.id, local_names)
        text = f"`{name.id}` is not defined"
        fixes = respelt(advice, module.source, name.span)
        notes = [SECOND_WAY] if hasattr(builtins, name.id) else []
        diagnostic = make("unknown-name", text, name.span, help=advice, fixes=fixes, notes=notes)
        self.report.suspect(diagnostic)

    def _guess(self, module: SourceModule, name: str, local_names: frozenset[str]) -> str:
        """Return a suggestion for an unknown name, or "" for all but the first few."""
        key = (module.source.path, name)
        if key not in self._advice and len(self._advice) < MAX_GUESSES:
            candidates = [*module.bindings, *sorted(names.BUILTINS), *sorted(local_names)]
            self._advice[key] = names.customary(name) or did_you_mean(name, candidates)
        return self._advice.get(key, "")

    def _check_sub_kernel(self, module: SourceModule, name: nodes.Name, binding: Binding) -> None:
        if self.profile not in subset.SUB_KERNEL.refused or binding.node is None:
            return
        if any(wrapper(decorator, module) for decorator in binding.node.decorators):
            self._refuse(subset.SUB_KERNEL, name.span)

    def _follow(self, module: SourceModule, binding: Binding, *, functions: bool = True) -> None:
        """Follow a name to its definition, through imports across files."""
        waiting = [(module, binding)]
        while waiting:
            module, binding = waiting.pop()
            if self._mark_followed(module, binding, functions):
                continue
            self._visit_binding(module, binding, functions)
            for target in reversed(import_targets(module, binding)):
                holder, target_binding = self.library.member(target, module)
                if target_binding is not None and isinstance(holder, SourceModule):
                    waiting.append((holder, target_binding))

    def _visit_binding(self, module: SourceModule, binding: Binding, functions: bool) -> None:
        if binding.node is not None and (functions or binding.kind is not BindingKind.FUNCTION):
            self._add(module, binding.node)
        if binding.kind is BindingKind.IMPORT:
            check_import(module, binding, self.profile, self.library.provided, self.report)
        if binding.kind is BindingKind.VALUE:
            self._queue_value(module, binding)

    def _mark_followed(self, module: SourceModule, binding: Binding, functions: bool) -> bool:
        """Return whether the name was followed before, because imports may be cyclic; mark it."""
        key = (module.source.path, binding.name, functions)
        followed = key in self._followed
        self._followed.add(key)
        return followed

    def _queue_value(self, module: SourceModule, binding: Binding) -> None:
        """Queue the statements of a module-level value, which may hold functions and classes."""
        for index in binding.statements:
            statement = module.tree.body[index]
            if statement not in self._values:
                self._values.add(statement)
                self._pending.append((module, statement))

    def _follow_path(self, module: SourceModule, path: Path) -> None:
        """Follow `package.module.function`, where an import binds the package."""
        _, binding = self.library.binding(module, path.root)
        for target in import_targets(module, binding) if binding else ():
            self._follow_members(module, target, path.attributes)

    def _follow_members(
        self, module: SourceModule, target: Import, attributes: tuple[str, ...]
    ) -> None:
        request = joined(target.request, target.member) if target.member else target.request
        for attribute in attributes:
            holder, member_binding = self.library.member(Import(request, attribute), module)
            if member_binding is not None and isinstance(holder, SourceModule):
                self._follow(holder, member_binding)
            if member_binding is not None or isinstance(holder, HostModule):
                return
            request = joined(request, attribute)
