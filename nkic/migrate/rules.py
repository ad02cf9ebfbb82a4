"""Names that NKI renamed, moved or removed, according to the tables of versions.

Sources: nkic/language/versions.py, which names the pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, cast

import libcst as cst

from nkic.base.profiles import Profile
from nkic.language import versions
from nkic.language.enums import OPERATORS
from nkic.language.provide import MODULES
from nkic.language.versions import DECORATORS, FRAMEWORKS, Merged, Removed
from nkic.machine.operands import AttributeKind, Row
from nkic.migrate.calls import (
    find,
    is_plain,
    keyword,
    keyword_of,
    keyword_value,
    named,
    parameter_of,
    replaced,
    row_of,
    with_args,
    with_value,
    without,
)
from nkic.migrate.sheet import Sheet, code, names_in, walk
from nkic.source.subset import PREFIX, ROOT
from nkic.specialise.request import Request

# ------------------------------------------------------------------------------------------------
# Operators as arguments of a kernel: Beta 1 takes NumPy's, later versions those of nl.
# Source: migration guide, 0.1.0 to 0.2.0; the pages of the instructions, which list `nl.add` and
# the like.

PASSED = "an operator that is passed"
_KINDS = (AttributeKind.ALU, AttributeKind.ACTIVATION)


def with_operators(request: Request) -> Request:
    """Return the request with operators of nl for NumPy's, as a caller passes them today."""
    return replace(request, consts={name: _today(value) for name, value in request.consts.items()})


def _today(value: Any) -> Any:
    modules = {getattr(typed, "__module__", "") for typed in (value, type(value))}
    if "numpy" not in modules or isinstance(value, type):
        return value
    name = getattr(value, "__name__", "")
    return OPERATORS.get(versions.OPERATORS.get(name, name), value)


def passed(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call | None:
    function = _function(sheet, old)
    wanted = set(operator_parameters(sheet, function)) if function is not None else set()
    if function is None or not wanted:
        return None
    names = [param.name.value for param in function.params.params]
    call = new
    for position, argument in enumerate(old.args):
        parameter = parameter_of(argument, position, names)
        value = _written(sheet, argument.value) if parameter in wanted else None
        if value is not None:
            call = with_value(call, call.args[position], value)
    return call if call is not new else None


def _function(sheet: Sheet, call: cst.Call) -> cst.FunctionDef | None:
    called = call.func.value if isinstance(call.func, cst.Subscript) else call.func
    if not isinstance(called, cst.Name) or not is_plain(call):
        return None
    functions = (node for node in sheet.tree.body if isinstance(node, cst.FunctionDef))
    return next((f for f in functions if f.name.value == called.value), None)


def operator_parameters(sheet: Sheet, function: cst.FunctionDef) -> Iterator[str]:
    """Yield the parameters of a function that it passes to instructions as operators."""
    names = {node.name.value for node in walk(function.params) if isinstance(node, cst.Param)}
    for call in walk(function.body):
        row = row_of(sheet.name_of(call.func)) if isinstance(call, cst.Call) else None
        if row is None or not isinstance(call, cst.Call):
            continue
        for attribute in row.attributes:
            argument = find(call, row.parameters, attribute.name)
            value = argument.value if argument is not None and attribute.kind in _KINDS else None
            if isinstance(value, cst.Name) and value.value in names:
                yield value.value


def declared(sheet: Sheet, old: cst.FunctionDef, new: cst.FunctionDef) -> cst.FunctionDef | None:
    """Rewrite `def f(t, op=np.add)` to `def f(t, op=nl.add)` for parameters that are operators.

    Such parameters of a kernel are reported, because its callers may pass NumPy's.
    """
    if not sheet.is_before(Profile.BETA2):
        return None
    wanted = set(operator_parameters(sheet, old))
    params = list(new.params.params)
    for position, param in enumerate(old.params.params):
        name = param.name.value
        if name not in wanted:
            continue
        if old.decorators:
            text = f"`{name}` is an operator: callers that pass NumPy's are now rejected"
            sheet.leave(param.name, text, "pass one of nl, such as nl.less", sure=False)
        value = _written(sheet, param.default) if param.default is not None else None
        if value is not None:
            params[position] = params[position].with_changes(default=value)
    if all(param is old_param for param, old_param in zip(params, new.params.params, strict=True)):
        return None
    return new.with_changes(params=new.params.with_changes(params=params))


def _written(sheet: Sheet, value: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return `nl.less` for `np.less`; None for everything else."""
    module, _, name = sheet.name_of(value).rpartition(".")
    today = versions.OPERATORS.get(name, name)
    if module != "numpy" or today not in OPERATORS:
        return None
    return sheet.nl(today)


# ---- Imports of `neuronxcc.nki`, the namespace of NKI 0.1 ---------------------------------------
# Source: migration guide, 0.1.0 to 0.2.0, new namespace.

Import = cst.Import | cst.ImportFrom


def move_import(sheet: Sheet, old: cst.Import, new: cst.Import) -> cst.Import | None:
    """Rewrite `import neuronxcc.nki.isa as nisa` to `import nki.isa as nisa`."""
    for alias in old.names:
        name = code(alias.name).removeprefix(f"{ROOT}.")
        if name != code(alias.name) and name not in MODULES:
            sheet.leave(old, f"`nki` has no module `{name}`", "leave the import out")
            return None
    names = [_moved(imported) for imported in new.names]
    return new.with_changes(names=names) if names != [*new.names] else None


def move_import_from(
    sheet: Sheet, old: cst.ImportFrom, new: cst.ImportFrom
) -> Import | cst.RemovalSentinel | None:
    """Rewrite `from neuronxcc import nki` to `import nki`, `from neuronxcc.nki …` likewise."""
    module = code(new.module) if new.module is not None and not new.relative else ""
    if f"{module}.".startswith(f"{PREFIX}."):
        today = module.removeprefix(f"{ROOT}.")
        if today not in MODULES:
            sheet.leave(old, f"`nki` has no module `{today}`", "leave the import out")
            return None
        new = new.with_changes(module=cst.parse_expression(today))
        if today != "nki" or isinstance(new.names, cst.ImportStar):
            return new
        kept = [alias for alias in new.names if not _is_removed_decorator(sheet, alias)]
        return _kept(new, kept, cst.MaybeSentinel.DEFAULT)
    if module != ROOT or isinstance(new.names, cst.ImportStar):
        return None
    if len(new.names) != 1 or code(new.names[0].name) != "nki":
        sheet.leave(
            old, f"`{ROOT}` has more than NKI in it", "import nki in a statement of its own"
        )
        return None
    alias = new.names[0].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return cst.Import([_short(alias)])


def _kept(
    new: cst.ImportFrom, aliases: Sequence[cst.ImportAlias], comma: cst.Comma | cst.MaybeSentinel
) -> cst.ImportFrom | cst.RemovalSentinel:
    if len(aliases) == len(cast(Sequence[cst.ImportAlias], new.names)):
        return new
    if not aliases:
        return cst.RemoveFromParent()
    return new.with_changes(names=[*aliases[:-1], aliases[-1].with_changes(comma=comma)])


def _is_removed_decorator(sheet: Sheet, alias: cst.ImportAlias) -> bool:
    """Whether the import is of a removed decorator such as `trace` that is used only as one."""
    name = code(alias.name)
    bound = code(alias.asname.name) if alias.asname is not None else name
    uses = (name for name in names_in(sheet.tree) if name.value == bound)
    around = [next(sheet.parents(use)) for use in uses]
    plain = all(isinstance(node, cst.Decorator | cst.ImportAlias | cst.AsName) for node in around)
    return plain and not DECORATORS.get(name, "?")


def move_name(sheet: Sheet, old: cst.Attribute, new: cst.Attribute) -> cst.Name | None:
    """Rewrite `neuronxcc.nki.isa.iota`, written in full, to `nki.isa.iota`."""
    if code(old) != PREFIX or any(isinstance(p, Import) for p in sheet.parents(old)):
        return None
    return cst.Name(PREFIX.removeprefix(f"{ROOT}."))


def _moved(alias: cst.ImportAlias) -> cst.ImportAlias:
    name = code(alias.name)
    if not f"{name}.".startswith(f"{PREFIX}."):
        return alias
    return _short(alias.with_changes(name=cst.parse_expression(name.removeprefix(f"{ROOT}."))))


def _short(alias: cst.ImportAlias) -> cst.ImportAlias:
    same = alias.asname is not None and code(alias.asname.name) == code(alias.name)
    return alias.with_changes(asname=None) if same else alias


def decorator(
    sheet: Sheet, old: cst.Decorator, new: cst.Decorator
) -> cst.Decorator | cst.RemovalSentinel | None:
    """Rewrite `@nki.benchmark(warmup=5)` to `@nki.jit`, and remove `@nki.trace`."""
    function = old.decorator.func if isinstance(old.decorator, cst.Call) else old.decorator
    if sheet.name_of(function) in FRAMEWORKS:
        return new.with_changes(decorator=sheet.of_module("nki", "jit"))
    name = sheet.name_of(function).removeprefix("nki.")
    if name not in DECORATORS:
        return None
    if not DECORATORS[name]:
        return cst.RemoveFromParent()
    owner = function.value if isinstance(function, cst.Attribute) else cst.Name("nki")
    return new.with_changes(decorator=cst.Attribute(owner, cst.Name(DECORATORS[name])))


def decorator_by_name(sheet: Sheet, old: cst.Attribute, new: cst.Attribute) -> cst.Attribute | None:
    """Rewrite `kernel = nki.trace`, an alias of a decorator, to `kernel = nki.jit`."""
    parent = next(sheet.parents(old))
    name = sheet.name_of(old).removeprefix("nki.")
    if name not in DECORATORS or "." in name or not isinstance(parent, cst.Assign):
        return None
    return new.with_changes(attr=cst.Name("jit"))


# --------------------------------------------------------------------------------------------------

_DEPRECATED = {
    name: versions.of(name, versions.Deprecated)
    for name in ("nki.language", "nki.isa", "nki.language.tile_size")
}
_REMOVED = {n: versions.of(n, Removed) for n in ("nki.language", "nki.isa", "nki")}


class Change(NamedTuple):
    """What became of a name: since when, the advice, and the new name if that is all."""

    since: Profile
    instead: str
    name: str
    python: str
    must: bool  # the name is gone in the target version


def change(sheet: Sheet, qualified: str) -> Change | None:
    """Return the change of a name of `nki` that applies to this migration."""
    module, _, name = qualified.rpartition(".")
    old, removal = _DEPRECATED.get(module, {}).get(name), _REMOVED.get(module, {}).get(name)
    if removal is not None and sheet.due(removal.since):
        return Change(removal.since, removal.instead, removal.name, "", must=True)
    if old is None or not sheet.due(old.since):
        return None
    must = old.removed_in is not None and sheet.target >= old.removed_in
    return Change(old.since, old.instead, old.name, old.python, must)


def rename_attribute(
    sheet: Sheet, old: cst.Attribute, new: cst.Attribute
) -> cst.BaseExpression | None:
    """Rewrite `nl.affine_range` to `range`, `nisa.vector_engine` to `nisa.engine.vector`."""
    return _renamed(sheet, old, new.value)


def rename_name(sheet: Sheet, old: cst.Name, new: cst.Name) -> cst.BaseExpression | None:
    """Rewrite a name that was imported by itself."""
    return _renamed(sheet, old, None)


def drop_import(sheet: Sheet, old: cst.ImportFrom, new: cst.ImportFrom) -> object | None:
    """Remove `from nki.language import affine_range`, which is no longer used."""
    if isinstance(new.names, cst.ImportStar) or old.module is None or old.relative:
        return None
    module = code(old.module)
    aliases = []
    for alias in new.names:
        name = alias.name.value if isinstance(alias.name, cst.Name) else ""
        renaming = change(sheet, f"{module}.{name}")
        if renaming is None or not (renaming.python or renaming.name):
            aliases.append(alias)
    kept = _kept(new, aliases, new.names[-1].comma)
    return kept if kept is not new else None


def _renamed(
    sheet: Sheet, old: cst.Attribute | cst.Name, base: cst.BaseExpression | None
) -> cst.BaseExpression | None:
    qualified = sheet.name_of(old)
    renaming = change(sheet, qualified) if qualified else None
    if renaming is None or _is_part(sheet, old):
        return None
    if renaming.python:
        return cst.Name(renaming.python) if _is_called_plainly(sheet, old) else None
    if not renaming.name:
        if renaming.must:
            sheet.leave(
                old, f"there is no `{qualified}` since NKI {renaming.since.label}", renaming.instead
            )
        return None
    if base is None:
        return sheet.of_module(qualified.rpartition(".")[0], renaming.name)
    return cst.parse_expression(f"{code(base)}.{renaming.name}")


def _is_part(sheet: Sheet, node: cst.CSTNode) -> bool:
    """Whether the name is in an import, an assignment target, an attribute's own name, or a
    decorator that another rule handles.
    """
    parent = next(sheet.parents(node))
    if isinstance(parent, cst.Attribute):
        return parent.attr is node
    around = sheet.around(node, cst.Decorator)
    if around is not None:
        call = around.decorator
        function = call.func if isinstance(call, cst.Call) else call
        inside = any(inner is node for inner in walk(function))
        if inside and sheet.name_of(function).removeprefix("nki.") in DECORATORS:
            return True
    return isinstance(parent, cst.ImportAlias | cst.AsName | cst.AssignTarget | cst.Param)


def _is_called_plainly(sheet: Sheet, node: cst.CSTNode) -> bool:
    """Whether the call has only positional arguments, as Python's functions take them, or hints."""
    parent = next(sheet.parents(node))
    if not isinstance(parent, cst.Call) or parent.func is not node:
        return True
    function = sheet.name_of(node).rpartition(".")[2]
    keywords = filter(None, map(keyword_of, parent.args))
    removals = (versions.parameter(function, keyword) for keyword in keywords)
    return all(removal is not None and removal.idle for removal in removals)


# ---- Parameters that NKI removed or renamed -----------------------------------------------------
# Sources: nkic/language/versions.py; migration guide, 0.2.0 to 0.3.0, API breaking changes.

JIT, MODE, TARGET = "nki.jit", "mode", "platform_target"
_HINTED = (*versions.of("nki.language", versions.Deprecated), "zeros", "full")


def former_parameters(sheet: Sheet, row: Row, old: cst.Call, new: cst.Call) -> cst.Call | None:
    """Rewrite every argument of a removed parameter: renamed, rewritten, left out, or left."""
    call = new
    names = filter(None, map(keyword_of, new.args))
    # An argument that depends on another one is handled while that still exists.
    for name in sorted(names, key=lambda name: (row.name, name) in versions.MERGED):
        removal = versions.parameter(row.name, name)
        if removal is not None and name not in row.parameters and sheet.due(removal.since):
            call = _without_former(sheet, row, old, call, name, removal)
    return call if call is not new else None


def _without_former(
    sheet: Sheet, row: Row, old: cst.Call, call: cst.Call, name: str, removal: Removed
) -> cst.Call:
    """Return the call without an argument whose parameter was removed; unchanged if that is not
    certain, or if the argument was removed together with another one.
    """
    argument, key = keyword(call, name), (row.name, name)
    own = partial(sheet.of_module, row.module)
    if argument is None:
        return call

    def renamed(name: str, value: cst.BaseExpression) -> cst.Call:
        return replaced(call, argument, argument.with_changes(keyword=cst.Name(name), value=value))

    if wrapped := versions.WRAPPED.get(key):  # `imm=42` to `src=nisa.register_alloc(42)`
        return renamed(wrapped.name, cst.Call(own(wrapped.by), [cst.Arg(argument.value)]))
    if chosen := versions.CHOSEN.get(key):  # `use_gpsimd_dma=True` to `dma_engine=…`
        yes, no = (own(f"{chosen.name}.{member}") for member in (chosen.yes, chosen.no))
        either = cst.IfExp(argument.value, yes, no, [cst.LeftParen()], [cst.RightParen()])
        value = {"True": yes, "False": no}.get(code(argument.value), either)
        return renamed(chosen.name, value)
    if merged := versions.MERGED.get(key):
        return _merged(sheet, row, old, call, argument, merged, removal)
    if key in versions.WITH and keyword(call, versions.WITH[key]) is not None:
        return call
    if removal.name:
        return renamed(removal.name, argument.value)
    # The destination determines the result, if the call names it.
    if removal.idle and (row.parameters[0] != "dst" or find(call, row.parameters, "dst")):
        return without(call, argument)
    text = f"{row.called} has no parameter `{name}` since NKI {removal.since.label}"
    sheet.leave(old, text, removal.instead)
    return call


def _merged(
    sheet: Sheet,
    row: Row,
    old: cst.Call,
    call: cst.Call,
    argument: cst.Arg,
    form: Merged,
    removal: Removed,
) -> cst.Call:
    """Rewrite `dma_copy(dst, src, dst_rmw_op=op)` to `dma_compute(dst, [src, dst], …)`."""
    name = keyword_of(argument)
    if code(argument.value) == "None":
        idle = {other for (_, other), main in versions.WITH.items() if main == name}
        return with_args(call, [a for a in call.args if keyword_of(a) not in {name, *idle}])
    dst, src = (find(call, row.parameters, operand) for operand in ("dst", "src"))
    allowed = {"dst", "src", name, *form.kept, ""}
    is_certain = is_plain(call) and not {keyword_of(arg) for arg in call.args} - allowed
    operator = keyword_value(old, name)
    if not (dst and src and is_certain and operator and sheet.name_of(operator)):
        text = f"`{name}` of {row.called} was removed in NKI {removal.since.label}"
        sheet.leave(old, text, removal.instead)
        return call
    sources = cst.List([cst.Element(src.value), cst.Element(dst.value)])
    args = [cst.Arg(dst.value), cst.Arg(sources), named(form.operator, argument.value)]
    args += [arg for arg in call.args if keyword_of(arg) in form.kept]
    return call.with_changes(func=sheet.of_module(row.module, form.by), args=args)


def hints(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call | None:
    """Rewrite `nl.affine_range(n, directives=...)` to `nl.affine_range(n)`."""
    function = sheet.function(old)
    if function not in _HINTED:
        return None
    args = [
        arg
        for arg in new.args
        if (removal := versions.own_parameter(function, keyword_of(arg))) is None
        or not (removal.idle and sheet.due(removal.since))
    ]
    return with_args(new, args) if len(args) < len(new.args) else None


def jit_options(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.BaseExpression | None:
    """Rewrite `@nki.jit(mode="jax", platform_target="trn2")` to `@nki.jit`."""
    if sheet.name_of(old.func) != JIT:
        return None
    args = [arg for arg in new.args if not _is_idle_option(sheet, keyword_of(arg))]
    if len(args) == len(new.args):
        return None
    return with_args(new, args) if args else new.func


def _is_idle_option(sheet: Sheet, name: str) -> bool:
    removal = versions.parameter("jit", TARGET) if name == TARGET else None
    if removal is not None:
        return removal.idle and sheet.due(removal.since)
    return name == MODE and sheet.due(versions.JIT_MODE.since)
