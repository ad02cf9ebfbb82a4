"""Names that a kernel uses from NKI's modules but that do not exist.

The first one ends the evaluation. To report all of them in one run, the names in the rest of the
kernel are then looked up statically. Code in branches is ignored, because it may be unreachable for
a reason.
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
    """Report one error for each missing name in code that is certainly evaluated."""
    for definition in resolved.reached:
        module = resolved.library.modules[definition.span.path]
        for diagnostic in () if module.trusted else _missing(definition, module, spaces):
            if diagnostic.primary is not None and not report.knows(
                diagnostic.code.slug, diagnostic.primary.span
            ):
                report.add(diagnostic)


def _missing(definition: Definition, module: SourceModule, spaces: Spaces) -> Iterator[Diagnostic]:
    evaluated = list(_always_evaluated(definition))
    inner = (item for item in (definition, *evaluated) if isinstance(item, scopes.Scope))
    local = frozenset(name for scope in inner for name in scopes.bound(scope))
    used = {item.id for item in evaluated if isinstance(item, nodes.Name)} - local
    for name in sorted(used & module.bindings.keys()):
        yield from _missing_module(module.bindings[name], module, spaces)
    for node in evaluated:
        name = _module_name(node.value, module, local) if isinstance(node, nodes.Attribute) else ""
        if not isinstance(node, nodes.Attribute) or name not in spaces:
            continue
        error = missing(spaces[name], node.attr)
        if error is not None and f"{name}.{node.attr}" not in spaces:
            fixes = respelt(error.help, module.source, node.span)
            yield make(error.slug, error.message, node.span, help=error.help, fixes=fixes)


def _missing_module(binding: Binding, module: SourceModule, spaces: Spaces) -> Iterator[Diagnostic]:
    """Yield the error for `import nki.isaa as nisa`."""
    request = binding.target.request if binding.target is not None else ""
    parent, _, last = request.rpartition(".")
    if parent in spaces and request not in spaces:
        absent = submodule(spaces[parent], last)
        fixes = respelt(absent.help, module.source, binding.span)
        yield make(absent.slug, absent.text, binding.span, help=absent.help, fixes=fixes)


_MAX_PARTS = 8  # at most, in a module's full name


def _module_name(node: nodes.Expression, module: SourceModule, local: frozenset[str]) -> str:
    """Return the full name of the module that an expression denotes by the imports, or ""."""
    path: list[str] = []
    while isinstance(node, nodes.Attribute) and len(path) < _MAX_PARTS:
        path.append(node.attr)
        node = node.value
    if not isinstance(node, nodes.Name) or node.id in local or node.id not in module.bindings:
        return ""
    target = module.bindings[node.id].target
    if target is None:
        return ""
    member = [target.member] if target.member else []
    return ".".join([target.request, *member, *reversed(path)])


def _always_evaluated(definition: Definition) -> Iterator[nodes.Node]:
    """Yield the nodes of a definition that are always evaluated: no branches, but conditions."""
    waiting = list(scopes.inside(definition))
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, nodes.If | nodes.IfExp | nodes.While):
            waiting.append(node.test)
        elif isinstance(node, scopes.Scope):
            waiting += [*scopes.outside(node), *scopes.inside(node)]
        elif isinstance(node, nodes.Assign | nodes.AnnAssign):
            waiting += [node.value] if node.value is not None else []  # not annotations
        elif not isinstance(node, nodes.Try | nodes.Match | nodes.BoolOp):
            waiting += children(node)
