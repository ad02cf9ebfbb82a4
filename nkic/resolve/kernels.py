"""The kernels of a file, and the selection of one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NoReturn

from nkic.base.diagnostics import Label, Reporter
from nkic.base.suggest import did_you_mean, respelt
from nkic.resolve.bind import import_targets
from nkic.resolve.library import Library
from nkic.resolve.mentions import path_of
from nkic.syntax import nodes, scopes
from nkic.syntax.bindings import Kernel, SourceModule
from nkic.syntax.walk import walk

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
        _ambiguous(module, candidates, report)
    for function in _functions(module):
        for decorator in function.decorators:
            _check_spelling(decorator, module, report)
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


def _is_kernel(node: nodes.FunctionDef, module: SourceModule) -> bool:
    return any(wrapper(decorator, module) in _KERNEL_MAKERS for decorator in node.decorators)


def _without_call(decorator: nodes.Expression) -> nodes.Expression:
    """Return the function of a decorator that may be a call: `nki.jit` of `@nki.jit(…)`."""
    return decorator.func if isinstance(decorator, nodes.Call) else decorator


def _check_spelling(decorator: nodes.Expression, module: SourceModule, report: Reporter) -> None:
    """Report a decorator that is probably a misspelt `nki.jit`."""
    func = _without_call(decorator)
    root, _, last = dotted(func, module).rpartition(".")
    suggestion = did_you_mean(last, ["jit"]) if root in _ROOTS else ""
    if suggestion:
        fixes = respelt(suggestion, module.source, func.span)
        text = f"`{root}` has no `{last}`, which would make a kernel of this function"
        report.fatal("unknown-attribute", text, func.span, help=suggestion, fixes=fixes)


def _ambiguous(module: SourceModule, candidates: tuple[Kernel, ...], report: Reporter) -> NoReturn:
    report.fatal(
        "which-kernel",
        f"`{module.source.path}` has {len(candidates)} kernels; choose one",
        labels=[Label(k.node.name_span, k.signature) for k in candidates],
        notes=[f"-k {k.name}" for k in candidates],
        help=f"for example `-k {candidates[0].name}`",
    )


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
