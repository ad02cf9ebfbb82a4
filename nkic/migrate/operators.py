"""Operators as arguments of a kernel: Beta 1 takes NumPy's, later versions those of nl.

Source: migration guide, 0.1.0 to 0.2.0; the pages of the instructions, which list `nl.add` and the
like.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import libcst as cst

from nkic.base.profiles import Profile
from nkic.language.enums import OPERATORS
from nkic.language.versions import rewritten
from nkic.machine.operands import AttributeKind
from nkic.migrate.arguments import find, parameter_of, row_of, with_value
from nkic.migrate.sheet import Sheet
from nkic.migrate.tree import walk
from nkic.specialise.request import Request

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
