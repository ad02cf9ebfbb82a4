"""Parameters that NKI removed or renamed.

Sources: nkic/language/versions; migration guide, 0.2.0 to 0.3.0, API breaking changes.
"""

from __future__ import annotations

import libcst as cst

from nkic.language.versions import deprecated, removed, rewritten
from nkic.language.versions.removed import Gone
from nkic.language.versions.rewritten import Chosen, Merged, Wrapped
from nkic.machine.operands import Row
from nkic.migrate.arguments import find, is_plain, named, replaced, row_of, with_args, without, word
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
    names = filter(None, map(word, new.args))
    # An argument that depends on another one is handled while that still exists.
    for name in sorted(names, key=lambda name: (row.name, name) in rewritten.MERGED):
        gone = removed.parameter(row.name, name)
        if gone is not None and name not in row.parameters and sheet.due(gone.since):
            call = _Former(sheet, row, old, name, gone).rewritten(call)
    return call if call is not new else None


class _Former:
    """One argument of a call whose parameter was removed."""

    def __init__(self, sheet: Sheet, row: Row, old: cst.Call, name: str, gone: Gone) -> None:
        self.sheet = sheet
        self.row = row
        self.old = old
        self.name = name
        self.gone = gone

    def rewritten(self, call: cst.Call) -> cst.Call:
        """Return the call without it; unchanged if that is not certain."""
        argument = next((arg for arg in call.args if word(arg) == self.name), None)
        if argument is None:
            return call  # removed together with another one
        key = (self.row.name, self.name)
        if key in rewritten.WRAPPED:
            return self.wrapped(call, argument, rewritten.WRAPPED[key])
        if key in rewritten.CHOSEN:
            return self.chosen(call, argument, rewritten.CHOSEN[key])
        if key in rewritten.MERGED:
            return self.merged(call, argument, rewritten.MERGED[key])
        if key in rewritten.WITH and any(word(one) == rewritten.WITH[key] for one in call.args):
            return call
        return self.plain(call, argument)

    def plain(self, call: cst.Call, argument: cst.Arg) -> cst.Call:
        """Rename the argument, or leave it out."""
        if self.gone.name:
            return replaced(call, argument, argument.with_changes(keyword=cst.Name(self.gone.name)))
        if self.gone.idle and _has_dst(call, self.row.parameters):
            return without(call, argument)
        since = self.gone.since.label
        text = f"{self.row.called} has no parameter `{self.name}` since NKI {since}"
        self.sheet.leave(self.old, text, self.gone.instead)
        return call

    def wrapped(self, call: cst.Call, argument: cst.Arg, made: Wrapped) -> cst.Call:
        """Rewrite `imm=42` to `src=nisa.register_alloc(42)`."""
        function = self.sheet.of_module(self.row.module, made.by)
        value = cst.Call(function, [cst.Arg(argument.value)])
        new = argument.with_changes(keyword=cst.Name(made.name), value=value)
        return replaced(call, argument, new)

    def chosen(self, call: cst.Call, argument: cst.Arg, made: Chosen) -> cst.Call:
        """Rewrite `use_gpsimd_dma=True` to `dma_engine=nisa.dma_engine.gpsimd_dma`."""
        yes, no = (
            self.sheet.of_module(self.row.module, f"{made.name}.{one}")
            for one in (made.yes, made.no)
        )
        literal = argument.value.value if isinstance(argument.value, cst.Name) else ""
        either = cst.IfExp(argument.value, yes, no, [cst.LeftParen()], [cst.RightParen()])
        value = {"True": yes, "False": no}.get(literal, either)
        new = argument.with_changes(keyword=cst.Name(made.name), value=value)
        return replaced(call, argument, new)

    def merged(self, call: cst.Call, argument: cst.Arg, made: Merged) -> cst.Call:
        """Rewrite `dma_copy(dst, src, dst_rmw_op=op)` to `dma_compute(dst, [src, dst],
        reduce_op=op)`.
        """
        if isinstance(argument.value, cst.Name) and argument.value.value == "None":
            idle = {name for (_, name), main in rewritten.WITH.items() if main == self.name}
            kept = [arg for arg in call.args if word(arg) not in {self.name, *idle}]
            return with_args(call, kept)
        dst, src = (find(call, self.row.parameters, name) for name in ("dst", "src"))
        allowed = {"dst", "src", self.name, *made.kept, ""}
        known = is_plain(call) and not {word(one) for one in call.args} - allowed
        operator = next(one.value for one in self.old.args if word(one) == self.name)
        if dst is None or src is None or not known or not self.sheet.name_of(operator):
            why = f"`{self.name}` of {self.row.called} was removed in NKI {self.gone.since.label}"
            self.sheet.leave(self.old, why, self.gone.instead)
            return call
        both = cst.List([cst.Element(src.value), cst.Element(dst.value)])
        args = [cst.Arg(dst.value), cst.Arg(both), named(made.operator, argument.value)]
        args += [one for one in call.args if word(one) in made.kept]
        return call.with_changes(func=self.sheet.of_module(self.row.module, made.by), args=args)


def _has_dst(call: cst.Call, parameters: tuple[str, ...]) -> bool:
    """Whether the call names its destination, which determines the result."""
    return parameters[0] != "dst" or find(call, parameters, "dst") is not None


def hints(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call | None:
    """Rewrite `nl.affine_range(n, directives=...)` to `nl.affine_range(n)`."""
    module, _, function = sheet.name_of(old.func).rpartition(".")
    if module != "nki.language" or function not in _HINTED:
        return None
    args = [arg for arg in new.args if not _is_hint(sheet, function, word(arg))]
    return with_args(new, args) if len(args) < len(new.args) else None


def _is_hint(sheet: Sheet, function: str, name: str) -> bool:
    gone = removed.own_parameter(function, name)
    return gone is not None and gone.idle and sheet.due(gone.since)


def jit_options(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.BaseExpression | None:
    """Rewrite `@nki.jit(mode="jax", platform_target="trn2")` to `@nki.jit`."""
    if sheet.name_of(old.func) != JIT:
        return None
    args = [arg for arg in new.args if not _is_idle_option(sheet, word(arg))]
    if len(args) == len(new.args):
        return None
    return with_args(new, args) if args else new.func


def _is_idle_option(sheet: Sheet, name: str) -> bool:
    gone = removed.parameter("jit", TARGET) if name == TARGET else None
    if gone is not None:
        return gone.idle and sheet.due(gone.since)
    return name == MODE and sheet.due(deprecated.JIT_MODE.since)
