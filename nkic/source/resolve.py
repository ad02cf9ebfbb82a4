"""The stage: resolve a kernel, or list the kernels of a file."""

from __future__ import annotations

import builtins
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

from nkic.base.device import SECOND_WAY
from nkic.base.diagnostics import Label, Reporter, did_you_mean, make, respelt
from nkic.base.profiles import DEFAULT, Profile
from nkic.base.source import SourceFile, Span
from nkic.source import bindings, nodes, scopes, subset
from nkic.source.bind import Library, Load, Parse, bind, import_targets, joined
from nkic.source.bindings import (
    Binding,
    BindingKind,
    HostModule,
    Import,
    Kernel,
    Resolved,
    SourceModule,
)
from nkic.source.nodes import walk
from nkic.source.subset import check_import

# ------------------------------------------------------------------------------------------------
# The names and attributes that a definition or a value mentions, whoever reaches it.
# The result depends on the source alone, so it is memoised across compilations.

Definition = nodes.FunctionDef | nodes.ClassDef


class Path(NamedTuple):
    """A chain of attributes that starts with a name: `root.first.second`."""

    root: str
    attributes: tuple[str, ...]


class Mentions(NamedTuple):
    """The names and attributes in a piece of source.

    `uses` holds the free names in source order, `called` the functions of the calls. `near` holds
    all names, for suggestions; `hidden` the attributes and methods with special names.
    """

    uses: tuple[nodes.Name, ...]
    called: frozenset[nodes.Expression]
    attributes: frozenset[str]
    paths: tuple[Path, ...]
    near: frozenset[str]
    hidden: tuple[tuple[str, Span], ...]


@lru_cache(maxsize=2048)
def of_definition(definition: Definition, is_method: bool) -> Mentions:
    """Return the mentions of a function, or of a class without the bodies of its methods."""
    pieces = _evaluated_parts(definition, is_method)
    all_nodes = [node for piece in pieces for node in walk(piece)]
    hidden = tuple(mention for node in (definition, *all_nodes) for mention in _hidden(node))
    if is_method:
        uses = scopes.free_names_of(definition)
    else:
        is_class = isinstance(definition, nodes.ClassDef)
        local = scopes.bound(definition) if is_class else frozenset[str]()
        uses = scopes.free_names(pieces, local)
    return _mentions(all_nodes, uses, hidden)


@lru_cache(maxsize=2048)
def of_values(statements: tuple[nodes.Statement, ...]) -> Mentions:
    values = [value for statement in statements for value in _value_parts(statement)]
    all_nodes = [node for value in values for node in walk(value)]
    return _mentions(all_nodes, scopes.free_names(values), ())


def methods_of(definition: Definition) -> tuple[nodes.FunctionDef, ...]:
    """Return the methods of a class; a function has none."""
    if isinstance(definition, nodes.FunctionDef):
        return ()
    return tuple([node for node in definition.body if isinstance(node, nodes.FunctionDef)])


def _mentions(
    all_nodes: list[nodes.Node], uses: Iterable[nodes.Name], hidden: tuple[tuple[str, Span], ...]
) -> Mentions:
    attributes = [node for node in all_nodes if isinstance(node, nodes.Attribute)]
    owners = {node.value for node in attributes}  # the path of `a.b.c` covers `a.b`
    all_names = {node.id for node in all_nodes if isinstance(node, nodes.Name)}
    all_names |= {node.name for node in all_nodes if isinstance(node, nodes.Arg)}
    return Mentions(
        tuple(sorted(uses, key=lambda node: node.span)),
        frozenset(node.func for node in all_nodes if isinstance(node, nodes.Call)),
        frozenset(node.attr for node in attributes),
        tuple([path for node in attributes if node not in owners and (path := path_of(node))]),
        frozenset(all_names),
        hidden,
    )


def _evaluated_parts(definition: Definition, is_method: bool) -> list[nodes.Node]:
    """Return the parts that are evaluated with a definition: of a class, not its methods' bodies.

    The signature of a method belongs to its class.
    """
    if isinstance(definition, nodes.FunctionDef):
        return list(definition.body) if is_method else [definition]
    plain = [node for node in definition.body if not isinstance(node, nodes.FunctionDef)]
    signatures = [part for method in methods_of(definition) for part in scopes.outside(method)]
    return [*scopes.outside(definition), *plain, *signatures]


def _value_parts(statement: nodes.Statement) -> Iterator[nodes.Node]:
    """Yield the value of a statement; of an assignment, without the targets."""
    if isinstance(statement, nodes.Assign):
        yield statement.value
    elif not isinstance(statement, nodes.AnnAssign):
        yield statement
    elif statement.value is not None:
        yield statement.value


def path_of(expression: nodes.Expression) -> Path | None:
    """Return the path of `a.b.c`, or of a bare name; None for other expressions."""
    attributes: list[str] = []
    while isinstance(expression, nodes.Attribute):
        attributes.append(expression.attr)
        expression = expression.value
    if not isinstance(expression, nodes.Name):
        return None
    return Path(expression.id, tuple(reversed(attributes)))


def _hidden(node: nodes.Node) -> Iterator[tuple[str, Span]]:
    if isinstance(node, nodes.Attribute) and bindings.is_hidden(node.attr):
        if not _is_frozen_assignment(node):
            yield node.attr, node.span
    elif isinstance(node, nodes.ClassDef):
        for method in methods_of(node):
            if not bindings.may_define(method.name):
                yield method.name, method.name_span


def _is_frozen_assignment(node: nodes.Attribute) -> bool:
    """Whether this is `object.__setattr__`, which frozen dataclasses use in `__post_init__`."""
    owner = node.value
    return node.attr == "__setattr__" and isinstance(owner, nodes.Name) and owner.id == "object"


# ---- The kernels of a file, and the selection of one --------------------------------------------

_WRAPPERS = frozenset({"jit", "trace", "baremetal", "benchmark", "profile"})
_KERNEL_MAKERS = frozenset({"nki.jit", "nki.trace"})  # applied to a function, they return a kernel
_ROOTS = frozenset({"nki", "neuronxcc.nki"})
_MAKER_CALL = re.compile(r"(?P<maker>\w+)\((?P<args>.*)\)(?:\.(?P<name>\w+))?")


def kernels(module: SourceModule) -> tuple[Kernel, ...]:
    """Return the kernels of a module in source order.

    A kernel is a decorated function, the result of `f = nki.jit(g)`, or a kernel derived from
    another by `f = g.with_schedule([...])`.
    """
    result = [*_decorated(module), *_wrapped(module)]
    result += _scheduled(module, {kernel.name: kernel for kernel in result})
    return tuple(sorted(result, key=lambda kernel: kernel.node.span))


def choose(module: SourceModule, name: str | None, library: Library, report: Reporter) -> Kernel:
    """Return the kernel called `name`, or the only kernel; otherwise a fatal error lists them.

    A function without a decorator, or an imported function, counts if it is requested by name.
    """
    module_kernels = kernels(module)
    if name is None:
        return _single_kernel(module, module_kernels, report)
    if call := _MAKER_CALL.fullmatch(name):
        return _kernel_of_maker(module, call, report)
    if "." in name:
        return _kernel_of_class(module, name, report)
    named = next((kernel for kernel in reversed(module_kernels) if kernel.name == name), None)
    return named or _imported_kernel(module, name, library) or _undecorated(module, name, report)


def _kernel_of_maker(module: SourceModule, call: re.Match[str], report: Reporter) -> Kernel:
    """Return the kernel inside the function that `maker(args)` or `maker(args).kernel` names."""
    maker = next((node for node in _functions(module) if node.name == call["maker"]), None)
    if maker is None:
        names = [node.name for node in _functions(module)]
        suggestion = did_you_mean(call["maker"], names)
        text = f"`{module.source.path}` has no function `{call['maker']}`"
        report.fatal("no-kernel", text, help=suggestion)
    inner = [n for n in walk(maker) if isinstance(n, nodes.FunctionDef) and n is not maker]
    if call["name"]:
        inner = [node for node in inner if node.name == call["name"]]
    elif len(inner) > 1:
        inner = [node for node in inner if _is_kernel(node, module)]
    if len(inner) != 1:
        count = f"{len(inner)} kernels" if inner else "no kernel"
        report.fatal(
            "no-kernel",
            f"the function `{maker.name}` makes {count} of that name",
            maker.name_span,
            help=f"write `-k '{maker.name}(…).NAME'`, NAME that of a function inside it",
        )
    making = f"{maker.name}({call['args']})"
    return Kernel(inner[0].name, module, inner[0], "nki.jit", maker=maker, making=making)


def _kernel_of_class(module: SourceModule, name: str, report: Reporter) -> Kernel:
    """Return the static method that `Class.method` names."""
    scope: Iterable[nodes.Node] = scopes.nodes_in_scope(module.tree.body)
    *outer, last = name.split(".")
    for part in outer:
        found = (n for n in scope if isinstance(n, nodes.ClassDef) and n.name == part)
        scope = next((scopes.nodes_in_scope(node.body) for node in found), ())
    inside = [node for node in scope if isinstance(node, nodes.FunctionDef)]
    node = next((node for node in inside if node.name == last), None)
    if node is None:
        suggestion = did_you_mean(last, [node.name for node in inside])
        text = f"`{module.source.path}` has no function `{name}`"
        report.fatal("no-kernel", text, help=suggestion)
    return Kernel(name, module, node)


def _imported_kernel(module: SourceModule, name: str, library: Library) -> Kernel | None:
    """Return the kernel or function that the file imports under this name."""
    seen: set[tuple[str, str]] = set()
    while (module.source.path, name) not in seen:
        seen.add((module.source.path, name))
        module, binding = library.binding(module, name)
        for target in import_targets(module, binding) if binding else ():
            holder, binding_found = library.member(target, module)
            if binding_found is not None and isinstance(holder, SourceModule):
                module, name = holder, binding_found.name
                break
    named = {n.name: Kernel(n.name, module, n) for n in _functions(module)}
    return {**named, **{kernel.name: kernel for kernel in kernels(module)}}.get(name)


def at(module: SourceModule, name: str, line: int) -> Kernel:
    """Return the function called `name` that starts at a line, or whose first decorator does."""
    node = module.function_at(name, line)
    if not isinstance(node, nodes.FunctionDef):
        raise LookupError(f"{name} in line {line} is not a function")
    return Kernel(name, module, node)


def _single_kernel(
    module: SourceModule, candidates: tuple[Kernel, ...], report: Reporter
) -> Kernel:
    if len({kernel.node.span for kernel in candidates}) == 1:
        return candidates[-1]  # the scheduled kernel: the other one was written to be scheduled
    if candidates:
        report.fatal(
            "which-kernel",
            f"`{module.source.path}` has {len(candidates)} kernels; choose one",
            labels=[Label(k.node.name_span, k.signature) for k in candidates],
            notes=[f"-k {k.name}" for k in candidates],
            help=f"for example `-k {candidates[0].name}`",
        )
    for function in _functions(module):
        for decorator in function.decorators:
            func = _without_call(decorator)
            root, _, last = dotted(func, module).rpartition(".")
            suggestion = did_you_mean(last, ["jit"]) if root in _ROOTS else ""
            if suggestion:
                fixes = respelt(suggestion, module.source, func.span)
                text = f"`{root}` has no `{last}`, which would make a kernel of this function"
                report.fatal("unknown-attribute", text, func.span, help=suggestion, fixes=fixes)
    _check_nested(module, report)
    functions = [n.name for n in _functions(module)]
    advice = "put `@nki.jit` on the function to compile, or name it with `-k`"
    listing = f"; functions in the file: {_listed(functions)}" if functions else ""
    return report.fatal("no-kernel", f"`{module.source.path}` has no kernel{listing}", help=advice)


def _check_nested(module: SourceModule, report: Reporter) -> None:
    """Report kernels inside a function: they exist only after the function was called."""
    for function in _functions(module):
        inner = (node for node in walk(function) if isinstance(node, nodes.FunctionDef))
        nested = next((n for n in inner if n is not function and _is_kernel(n, module)), None)
        if nested is not None:
            report.fatal(
                "no-kernel",
                f"the kernel `{nested.name}` is inside the function `{function.name}`, so it "
                "exists only after that function was called",
                nested.name_span,
                help=f"call it: `-k '{function.name}(…).{nested.name}'`; or run a program that "
                f"calls `{function.name}` with `python -m nkic`",
            )
    for owner in scopes.nodes_in_scope(module.tree.body):
        if isinstance(owner, nodes.ClassDef):
            inside = (
                n for n in scopes.nodes_in_scope(owner.body) if isinstance(n, nodes.FunctionDef)
            )
            if method := next((node for node in inside if _is_kernel(node, module)), None):
                report.fatal(
                    "no-kernel",
                    f"the kernel `{method.name}` is a method of the class `{owner.name}`",
                    method.name_span,
                    help=f"move it out of the class, without `self`; if it is a static method, "
                    f"name it: `-k {owner.name}.{method.name}`",
                )


def _is_kernel(node: nodes.FunctionDef, module: SourceModule) -> bool:
    return any(wrapper(decorator, module) in _KERNEL_MAKERS for decorator in node.decorators)


def _without_call(decorator: nodes.Expression) -> nodes.Expression:
    """Return the function of a decorator that may be a call: `nki.jit` of `@nki.jit(…)`."""
    return decorator.func if isinstance(decorator, nodes.Call) else decorator


def _undecorated(module: SourceModule, name: str, report: Reporter) -> Kernel:
    functions = {node.name: node for node in _functions(module)}
    if name in functions:
        return Kernel(name, module, functions[name])
    names = [k.name for k in kernels(module)] or sorted(functions)
    suggestion = did_you_mean(name, names)
    return report.fatal(
        "no-kernel",
        f"`{module.source.path}` has no kernel `{name}`",
        help=suggestion or f"it has {_listed(names) or 'no functions'}",
    )


def _listed(names: list[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:10])
    return shown + (f" and {len(names) - 10} more" if len(names) > 10 else "")


def _functions(module: SourceModule) -> Iterator[nodes.FunctionDef]:
    """Yield the functions at module level, including those in `if` and `try` blocks."""
    parts = scopes.nodes_in_scope(module.tree.body)
    return (node for node in parts if isinstance(node, nodes.FunctionDef))


def _decorated(module: SourceModule) -> Iterator[Kernel]:
    for node in _functions(module):
        wrappers = [name for d in node.decorators if (name := wrapper(d, module))]
        if wrappers:
            yield Kernel(node.name, module, node, wrappers[0])


def _wrapped(module: SourceModule) -> Iterator[Kernel]:
    """Yield the kernels of assignments such as `fast = nki.jit(plain)` at module level."""
    functions = {node.name: node for node in _functions(module)}
    for names, call in _assigned_calls(module):
        inner = call.args[0] if call.args else None
        if not isinstance(inner, nodes.Name) or inner.id not in functions:
            continue
        name = wrapper(call.func, module)
        if name in _KERNEL_MAKERS and names:
            yield Kernel(names[0], module, functions[inner.id], name)


def _scheduled(module: SourceModule, by_name: dict[str, Kernel]) -> Iterator[Kernel]:
    """Yield the kernels of `ordered = kernel.with_schedule([...])` at module level."""
    for names, call in _assigned_calls(module):
        base = by_name.get(_scheduled_base(call))
        if base is None:
            continue
        for name in names:
            by_name[name] = replace(base, name=name, scheduled=call.span)
            yield by_name[name]


def _assigned_calls(module: SourceModule) -> Iterator[tuple[list[str], nodes.Call]]:
    """Yield the module-level assignments of calls: the names that are bound, and the call."""
    for statement in module.tree.body:
        if isinstance(statement, nodes.Assign) and isinstance(statement.value, nodes.Call):
            names = [target.id for target in statement.targets if isinstance(target, nodes.Name)]
            yield names, statement.value


def _scheduled_base(expression: nodes.Expression) -> str:
    """Return `k` of `k.with_schedule(...)`, also of chained calls, or ""."""
    called = False
    while isinstance(expression, nodes.Call) and isinstance(expression.func, nodes.Attribute):
        if expression.func.attr != "with_schedule":
            return ""
        expression, called = expression.func.value, True
    return expression.id if called and isinstance(expression, nodes.Name) else ""


def wrapper(decorator: nodes.Expression, module: SourceModule) -> str:
    """Return `nki.jit` for a decorator that makes a kernel, however it is written, or ""."""
    root, _, last = dotted(_without_call(decorator), module).rpartition(".")
    return f"nki.{last}" if root in _ROOTS and last in _WRAPPERS else ""


def dotted(expression: nodes.Expression, module: SourceModule) -> str:
    """Return the full name of `a.b.c`, with `a` resolved by the module's imports, or ""."""
    path = path_of(expression)
    return ".".join([_imported(path.root, module), *path.attributes]) if path is not None else ""


def _imported(name: str, module: SourceModule) -> str:
    targets = import_targets(module, module.bindings[name]) if name in module.bindings else ()
    if not targets:
        return name
    first = targets[0]
    return f"{first.request}.{first.member}" if first.member else first.request


# ------------------------------------------------------------------------------------------------
# The code that a kernel can reach, checked against the subset: all violations are reported.
# The walk starts at the kernel and follows the names that functions and classes use, across
# modules. A method is reached if its class is reached and any reached code uses its name.
# Module-level values are evaluated before kernel code, as by Python's import, so functions that
# only their initialisers call are host code and are not checked. The types of values are unknown
# here: errors that depend on them are found when the kernel is evaluated.

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
                self._use(module, of_values((statement,)), called=False)
        return tuple(self.reached)

    def _add(self, module: SourceModule, definition: Definition) -> None:
        if definition not in self.reached:
            self.reached[definition] = module
            self._waiting.append(definition)

    def _visit(self, module: SourceModule, definition: Definition) -> None:
        mentioned = of_definition(definition, definition in self._inner)
        if not module.trusted:
            self._check(definition, mentioned.hidden)
        self._use(module, mentioned)
        for method in methods_of(definition):
            self._inner.add(method)
            # A method is reached once its name is used.
            if bindings.is_special(method.name) or method.name in self._attributes:
                self._add(module, method)
            else:
                self._methods.setdefault(method.name, []).append((module, method))

    # ---- the subset ------------------------------------------------------------------------

    def _check(self, definition: Definition, hidden: Iterable[tuple[str, Span]]) -> None:
        methods = frozenset(methods_of(definition))
        for rule, span in subset.violations(definition, self.profile, methods):
            self._refuse(rule, span)
        for name, span in hidden:
            text = f"`{name}` is not accessible to kernel code"
            help = bindings.instead_of(name)
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
            _, binding = self.library.binding(module, path.root)
            for target in import_targets(module, binding) if binding else ():
                self._follow_members(module, target, path.attributes)

    def _use_attributes(self, attributes: frozenset[str]) -> None:
        new = attributes - self._attributes
        self._attributes |= new
        for name in sorted(new & self._methods.keys()):
            for module, method in self._methods.pop(name):
                self._add(module, method)

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
        memory = self.profile is Profile.BETA2 and name in bindings.MEMORIES
        return memory or name in bindings.BUILTINS or name in self.supplied(module.name)

    def _unknown(self, module: SourceModule, name: nodes.Name, local_names: frozenset[str]) -> None:
        if bindings.is_special(name.id):
            return
        if name.id in bindings.REFUSED_BUILTINS:
            advice = bindings.REFUSED_BUILTINS[name.id]
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
            candidates = [*module.bindings, *sorted(bindings.BUILTINS), *sorted(local_names)]
            self._advice[key] = bindings.customary(name) or did_you_mean(name, candidates)
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
            if binding.node is not None and (functions or binding.kind is not BindingKind.FUNCTION):
                self._add(module, binding.node)
            if binding.kind is BindingKind.IMPORT:
                check_import(module, binding, self.profile, self.library.provided, self.report)
            if binding.kind is BindingKind.VALUE:
                for index in binding.statements:
                    statement = module.tree.body[index]
                    if statement not in self._values:
                        self._values.add(statement)
                        self._pending.append((module, statement))
            for target in reversed(import_targets(module, binding)):
                holder, target_binding = self.library.member(target, module)
                if target_binding is not None and isinstance(holder, SourceModule):
                    waiting.append((holder, target_binding))

    def _mark_followed(self, module: SourceModule, binding: Binding, functions: bool) -> bool:
        """Return whether the name was followed before, because imports may be cyclic; mark it."""
        key = (module.source.path, binding.name, functions)
        followed = key in self._followed
        self._followed.add(key)
        return followed

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


def _nothing(module: str) -> frozenset[str]:
    return frozenset()


def resolve(
    entry: SourceFile,
    kernel: str | None,
    *,
    load: Load,
    parse: Parse,
    provided: Collection[str],
    report: Reporter,
    profile: Profile = DEFAULT,
    name: str = "__kernel__",
    line: int | None = None,
    supplied: Supplied = _nothing,
) -> Resolved:
    """Return the kernel called `kernel` in the file `entry`, or its only one, with all it reaches.

    `name` is the module's dotted name if the file is part of a package. If `line` is given, the
    kernel is the function of that name at that line, wherever it is defined; `supplied` then
    returns the variables, by module, that a running program adds to those of the source. Violations
    of the subset are reported and do not stop the stage; raises `CompileFailed` if there is no
    kernel.
    """
    library = Library(load, parse, provided)
    module = library.add(name, entry)
    chosen = (
        choose(module, kernel, library, report) if line is None else at(module, kernel or "", line)
    )
    for rule, span in subset.of_kernel(chosen.node, profile):
        text = f"{rule.words} cannot be used in NKI {profile.label}"
        report.error("not-in-nki", text, span, help=rule.advice)
    reach = Reach(library, profile, report, supplied)
    reached = reach.run(chosen.module, chosen.maker or chosen.node)
    return Resolved(chosen, library, reached, profile)


def list_kernels(entry: SourceFile, parse: Parse) -> tuple[Kernel, ...]:
    """Return the kernels of a file in source order, for `--print kernels`."""
    return kernels(bind("__kernel__", entry, parse(entry)))
