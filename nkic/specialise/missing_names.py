"""Names that a kernel asks of the modules of NKI and that they do not have.

The first one ends the evaluation. So that one run reports them all, those that the rest of the
kernel uses are then looked up in its source. What stands in a branch is ignored: there may be
a reason for not going there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nkic.base.diagnostics import Diagnostic, Reporter, make
from nkic.base.suggest import respelt
from nkic.language.namespace import Namespace, missing, submodule
from nkic.syntax import nodes, scopes
from nkic.syntax.bindings import Binding, Resolved, SourceModule
from nkic.syntax.walk import children

Definition = nodes.FunctionDef | nodes.ClassDef
Spaces = Mapping[str, Namespace]


def report_missing(resolved: Resolved, spaces: Spaces, report: Reporter) -> None:
    """One error for every place that the kernel comes to, unless something else ends it first."""
    for definition in resolved.reached:
        module = resolved.library.modules[definition.span.path]
        for one in () if module.trusted else _missing(definition, module, spaces):
            if one.primary is not None and not report.knows(one.code.slug, one.primary.span):
                report.add(one)


def _missing(definition: Definition, module: SourceModule, spaces: Spaces) -> Iterator[Diagnostic]:
    parts = list(_certain(definition))
    inner = (part for part in (definition, *parts) if isinstance(part, scopes.Scope))
    local = frozenset(name for scope in inner for name in scopes.bound(scope))
    used = {part.id for part in parts if isinstance(part, nodes.Name)} - local
    for name in sorted(used & module.bindings.keys()):
        yield from _missing_module(module.bindings[name], module, spaces)
    for node in parts:
        name = _space(node.value, module, local) if isinstance(node, nodes.Attribute) else ""
        if not isinstance(node, nodes.Attribute) or name not in spaces:
            continue
        error = missing(spaces[name], node.attr)
        if error is not None and f"{name}.{node.attr}" not in spaces:
            fixes = respelt(error.help, module.source, node.span)
            yield make(error.slug, error.message, node.span, help=error.help, fixes=fixes)


def _missing_module(binding: Binding, module: SourceModule, spaces: Spaces) -> Iterator[Diagnostic]:
    """The error for `import nki.isaa as nisa`."""
    request = binding.target.request if binding.target is not None else ""
    parent, _, last = request.rpartition(".")
    if parent in spaces and request not in spaces:
        said = submodule(spaces[parent], last)
        fixes = respelt(said.help, module.source, binding.span)
        yield make(said.slug, said.text, binding.span, help=said.help, fixes=fixes)


_PARTS = 8  # of a module's full name, at most


def _space(node: nodes.Expression, module: SourceModule, local: frozenset[str]) -> str:
    """The full name of the module that an expression is, if imports of the file say so."""
    path: list[str] = []
    while isinstance(node, nodes.Attribute) and len(path) < _PARTS:
        path.append(node.attr)
        node = node.value
    if not isinstance(node, nodes.Name) or node.id in local or node.id not in module.bindings:
        return ""
    target = module.bindings[node.id].target
    if target is None:
        return ""
    member = [target.member] if target.member else []
    return ".".join([target.request, *member, *reversed(path)])


def _certain(definition: Definition) -> Iterator[nodes.Node]:
    """What is evaluated if all of a definition is, branches left out but for what decides."""
    waiting = list(scopes.inside(definition))
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, nodes.If | nodes.IfExp | nodes.While):
            waiting.append(node.test)
        elif isinstance(node, scopes.Scope):
            waiting += [*scopes.outside(node), *scopes.inside(node)]
        elif isinstance(node, nodes.Assign | nodes.AnnAssign):
            waiting += [node.value] if node.value is not None else []  # annotations mean nothing
        elif not isinstance(node, nodes.Try | nodes.Match | nodes.BoolOp):
            waiting += children(node)
