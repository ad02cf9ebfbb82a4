"""Parameters that NKI removed or renamed.

Sources: nkic/language/versions; migration guide, 0.2.0 to 0.3.0, API breaking changes.
"""

from __future__ import annotations

import libcst as cst

from nkic.language.versions import deprecated, removed, rewritten
from nkic.language.versions.removed import Removal
from nkic.language.versions.rewritten import Chosen, Merged, Wrapped
from nkic.machine.operands import Row
from nkic.migrate.arguments import (
    find,
    is_plain,
    keyword,
    keyword_of,
    named,
    replaced,
    row_of,
    with_args,
    without,
)
from nkic.migrate.sheet import Sheet

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
