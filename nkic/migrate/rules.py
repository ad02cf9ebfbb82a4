"""Names that NKI renamed, moved or removed, according to the tables of versions.

Sources: nkic/language/versions, which names the pages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import libcst as cst

from nkic.base.profiles import Profile
from nkic.language.enums import OPERATORS
from nkic.language.provide import MODULES
from nkic.language.versions import deprecated, removed, rewritten
from nkic.language.versions.removed import Removal
from nkic.language.versions.rewritten import DECORATORS, FRAMEWORKS, Chosen, Merged, Wrapped
from nkic.machine.operands import AttributeKind, Row
from nkic.migrate.calls import (
    find,
    is_plain,
    keyword,
    keyword_of,
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
    consts = {name: _today(value) for name, value in request.consts.items()}
    return replace(request, consts=consts)


def _today(value: Any) -> Any:
    modules = {getattr(typed, "__module__", "") for typed in (value, type(value))}
    if "numpy" not in modules or isinstance(value, type):
        return value
    name = getattr(value, "__name__", "")
    return OPERATORS.get(rewritten.OPERATORS.get(name, name), value)


def passed(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call | None:
    """Rewrite `kernel(a, np.less)` to `kernel(a, nl.less)` if the kernel uses it as an operator."""
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
            current = call.args[position]
            call = with_value(call, current, value)
    return call if call is not new else None


def _function(sheet: Sheet, call: cst.Call) -> cst.FunctionDef | None:
    """Return the function of the file that is called, by its name or as `kernel[grid]`."""
    called = call.func.value if isinstance(call.func, cst.Subscript) else call.func
    if not isinstance(called, cst.Name) or any(arg.star for arg in call.args):
        return None
    for statement in sheet.tree.body:
        if isinstance(statement, cst.FunctionDef) and statement.name.value == called.value:
            return statement
    return None


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
    today = rewritten.OPERATORS.get(name, name)
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
    if names == [*new.names]:
        return None
    return new.with_changes(names=names)


def move_import_from(
    sheet: Sheet, old: cst.ImportFrom, new: cst.ImportFrom
) -> Import | cst.RemovalSentinel | None:
    """Rewrite `from neuronxcc import nki` to `import nki`, and `from neuronxcc.nki …` to `from nki
    …`.
    """
    module = code(new.module) if new.module is not None and not new.relative else ""
    if f"{module}.".startswith(f"{PREFIX}."):
        today = module.removeprefix(f"{ROOT}.")
        if today not in MODULES:
            sheet.leave(old, f"`nki` has no module `{today}`", "leave the import out")
            return None
        return _without_decorators(sheet, new.with_changes(module=_parsed(today)), today)
    if module != ROOT or isinstance(new.names, cst.ImportStar):
        return None
    if len(new.names) != 1 or code(new.names[0].name) != "nki":
        sheet.leave(
            old, f"`{ROOT}` has more than NKI in it", "import nki in a statement of its own"
        )
        return None
    alias = new.names[0].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return cst.Import([_short(alias)])


def _without_decorators(
    sheet: Sheet, new: cst.ImportFrom, module: str
) -> cst.ImportFrom | cst.RemovalSentinel:
    """Remove imports of removed decorators, whose uses another rule removes."""
    if module != "nki" or isinstance(new.names, cst.ImportStar):
        return new
    aliases = [alias for alias in new.names if not _is_removed_decorator(sheet, alias)]
    if len(aliases) == len(new.names):
        return new
    if not aliases:
        return cst.RemoveFromParent()
    aliases[-1] = aliases[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return new.with_changes(names=aliases)


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
    return _short(alias.with_changes(name=_parsed(name.removeprefix(f"{ROOT}."))))


def _short(alias: cst.ImportAlias) -> cst.ImportAlias:
    """Return `import nki` for `import nki as nki`."""
    same = alias.asname is not None and code(alias.asname.name) == code(alias.name)
    return alias.with_changes(asname=None) if same else alias


def _parsed(name: str) -> cst.Name | cst.Attribute:
    expression = cst.parse_expression(name)
    assert isinstance(expression, cst.Name | cst.Attribute)
    return expression


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
    "nki.language": deprecated.LANGUAGE,
    "nki.isa": deprecated.ISA,
    "nki.language.tile_size": deprecated.TILE_SIZE,
}
_REMOVED = {"nki.language": removed.LANGUAGE, "nki.isa": removed.ISA, "nki": removed.NKI}


class Change(NamedTuple):
    """What became of a name: since when, the advice, and the new name if that is all."""

    since: Profile
    instead: str
    name: str
    python: str
    must: bool  # the name is gone in the target version


def change(sheet: Sheet, qualified: str) -> Change | None:
    """Return the change of a name of `nki` that applies to this migration; None if there is
    none.
    """
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
    aliases = [alias for alias in new.names if not _is_replaced(sheet, f"{module}.{_plain(alias)}")]
    if len(aliases) == len(new.names):
        return None
    if not aliases:
        return cst.RemoveFromParent()
    aliases[-1] = aliases[-1].with_changes(comma=new.names[-1].comma)
    return new.with_changes(names=aliases)


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


def _is_replaced(sheet: Sheet, qualified: str) -> bool:
    renaming = change(sheet, qualified)
    return renaming is not None and bool(renaming.python or renaming.name)


def _is_part(sheet: Sheet, node: cst.CSTNode) -> bool:
    """Whether the name is in an import, an assignment target, or an attribute's own name."""
    parent = next(sheet.parents(node))
    if isinstance(parent, cst.Attribute):
        return parent.attr is node
    if _is_decorator(sheet, node):
        return True  # handled by another rule
    return isinstance(parent, cst.ImportAlias | cst.AsName | cst.AssignTarget | cst.Param)


def _plain(alias: cst.ImportAlias) -> str:
    return alias.name.value if isinstance(alias.name, cst.Name) else ""


def _is_decorator(sheet: Sheet, node: cst.CSTNode) -> bool:
    """Whether the name is part of a decorator that another rule handles."""
    around = next((p for p in sheet.parents(node) if isinstance(p, cst.Decorator)), None)
    if around is None:
        return False
    call = around.decorator
    function = call.func if isinstance(call, cst.Call) else call
    inside = any(inner is node for inner in walk(function))
    return inside and sheet.name_of(function).removeprefix("nki.") in DECORATORS


def _is_called_plainly(sheet: Sheet, node: cst.CSTNode) -> bool:
    """Whether the call has only positional arguments, as Python's functions take them, or hints."""
    parent = next(sheet.parents(node))
    if not isinstance(parent, cst.Call) or parent.func is not node:
        return True
    function = sheet.name_of(node).rpartition(".")[2]
    keywords = filter(None, map(keyword_of, parent.args))
    removals = (removed.parameter(function, keyword) for keyword in keywords)
    return all(removal is not None and removal.idle for removal in removals)


# ---- Parameters that NKI removed or renamed -----------------------------------------------------
# Sources: nkic/language/versions; migration guide, 0.2.0 to 0.3.0, API breaking changes.

JIT, MODE, TARGET = "nki.jit", "mode", "platform_target"
_HINTED = (*deprecated.LANGUAGE, "zeros", "full")


def former_parameters(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call | None:
    """Rewrite every argument of a removed parameter: renamed, rewritten, left out, or left
    unchanged.
    """
    row = row_of(sheet.name_of(old.func))
    if row is None:
        return None
    call = new
    names = filter(None, map(keyword_of, new.args))
    # An argument that depends on another one is handled while that still exists.
    for name in sorted(names, key=lambda name: (row.name, name) in rewritten.MERGED):
        removal = removed.parameter(row.name, name)
        if removal is not None and name not in row.parameters and sheet.due(removal.since):
            call = _Former(sheet, row, old, name, removal).rewritten(call)
    return call if call is not new else None


class _Former:
    """One argument of a call whose parameter was removed."""

    def __init__(self, sheet: Sheet, row: Row, old: cst.Call, name: str, removal: Removal) -> None:
        self.sheet = sheet
        self.row = row
        self.old = old
        self.name = name
        self.removal = removal

    def rewritten(self, call: cst.Call) -> cst.Call:
        """Return the call without it; unchanged if that is not certain."""
        argument = keyword(call, self.name)
        if argument is None:
            return call  # removed together with another one
        key = (self.row.name, self.name)
        if key in rewritten.WRAPPED:
            return self.wrapped(call, argument, rewritten.WRAPPED[key])
        if key in rewritten.CHOSEN:
            return self.chosen(call, argument, rewritten.CHOSEN[key])
        if key in rewritten.MERGED:
            return self.merged(call, argument, rewritten.MERGED[key])
        if key in rewritten.WITH and keyword(call, rewritten.WITH[key]) is not None:
            return call
        return self.plain(call, argument)

    def plain(self, call: cst.Call, argument: cst.Arg) -> cst.Call:
        """Rename the argument, or leave it out."""
        if self.removal.name:
            renamed = argument.with_changes(keyword=cst.Name(self.removal.name))
            return replaced(call, argument, renamed)
        if self.removal.idle and _has_dst(call, self.row.parameters):
            return without(call, argument)
        since = self.removal.since.label
        text = f"{self.row.called} has no parameter `{self.name}` since NKI {since}"
        self.sheet.leave(self.old, text, self.removal.instead)
        return call

    def wrapped(self, call: cst.Call, argument: cst.Arg, form: Wrapped) -> cst.Call:
        """Rewrite `imm=42` to `src=nisa.register_alloc(42)`."""
        function = self.sheet.of_module(self.row.module, form.by)
        value = cst.Call(function, [cst.Arg(argument.value)])
        new = argument.with_changes(keyword=cst.Name(form.name), value=value)
        return replaced(call, argument, new)

    def chosen(self, call: cst.Call, argument: cst.Arg, form: Chosen) -> cst.Call:
        """Rewrite `use_gpsimd_dma=True` to `dma_engine=nisa.dma_engine.gpsimd_dma`."""
        yes, no = (
            self.sheet.of_module(self.row.module, f"{form.name}.{member}")
            for member in (form.yes, form.no)
        )
        literal = argument.value.value if isinstance(argument.value, cst.Name) else ""
        either = cst.IfExp(argument.value, yes, no, [cst.LeftParen()], [cst.RightParen()])
        value = {"True": yes, "False": no}.get(literal, either)
        new = argument.with_changes(keyword=cst.Name(form.name), value=value)
        return replaced(call, argument, new)

    def merged(self, call: cst.Call, argument: cst.Arg, form: Merged) -> cst.Call:
        """Rewrite `dma_copy(dst, src, dst_rmw_op=op)` to `dma_compute(dst, [src, dst],
        reduce_op=op)`.
        """
        if isinstance(argument.value, cst.Name) and argument.value.value == "None":
            idle = {name for (_, name), main in rewritten.WITH.items() if main == self.name}
            others = [arg for arg in call.args if keyword_of(arg) not in {self.name, *idle}]
            return with_args(call, others)
        dst, src = (find(call, self.row.parameters, name) for name in ("dst", "src"))
        allowed = {"dst", "src", self.name, *form.kept, ""}
        is_certain = is_plain(call) and not {keyword_of(arg) for arg in call.args} - allowed
        operator = next(arg.value for arg in self.old.args if keyword_of(arg) == self.name)
        if dst is None or src is None or not is_certain or not self.sheet.name_of(operator):
            since = self.removal.since.label
            text = f"`{self.name}` of {self.row.called} was removed in NKI {since}"
            self.sheet.leave(self.old, text, self.removal.instead)
            return call
        sources = cst.List([cst.Element(src.value), cst.Element(dst.value)])
        args = [cst.Arg(dst.value), cst.Arg(sources), named(form.operator, argument.value)]
        args += [arg for arg in call.args if keyword_of(arg) in form.kept]
        return call.with_changes(func=self.sheet.of_module(self.row.module, form.by), args=args)


def _has_dst(call: cst.Call, parameters: tuple[str, ...]) -> bool:
    """Whether the call names its destination, which determines the result."""
    return parameters[0] != "dst" or find(call, parameters, "dst") is not None


def hints(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call | None:
    """Rewrite `nl.affine_range(n, directives=...)` to `nl.affine_range(n)`."""
    function = sheet.function(old)
    if function not in _HINTED:
        return None
    args = [arg for arg in new.args if not _is_hint(sheet, function, keyword_of(arg))]
    return with_args(new, args) if len(args) < len(new.args) else None


def _is_hint(sheet: Sheet, function: str, name: str) -> bool:
    removal = removed.own_parameter(function, name)
    return removal is not None and removal.idle and sheet.due(removal.since)


def jit_options(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.BaseExpression | None:
    """Rewrite `@nki.jit(mode="jax", platform_target="trn2")` to `@nki.jit`."""
    if sheet.name_of(old.func) != JIT:
        return None
    args = [arg for arg in new.args if not _is_idle_option(sheet, keyword_of(arg))]
    if len(args) == len(new.args):
        return None
    return with_args(new, args) if args else new.func


def _is_idle_option(sheet: Sheet, name: str) -> bool:
    removal = removed.parameter("jit", TARGET) if name == TARGET else None
    if removal is not None:
        return removal.idle and sheet.due(removal.since)
    return name == MODE and sheet.due(deprecated.JIT_MODE.since)
