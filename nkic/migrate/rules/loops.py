"""Device loops: from statements to calls with the body as a function.

Source: migration guide, 0.5.0 to 0.6.0, dynamic loops; 0.6.0 to 0.7.0.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from nkic.language.versions import deprecated
from nkic.migrate.arguments import find, is_plain
from nkic.migrate.scopes import read_in, scope_of
from nkic.migrate.sheet import Sheet
from nkic.migrate.tree import bound, children, names_in, walk

Made = cst.FlattenSentinel[cst.BaseStatement]
_RANGE = ("nki.language.dynamic_range", ("start", "stop", "step"))
_LEAVING = cst.Return | cst.Yield | cst.Await | cst.Global | cst.Nonlocal


def counted(sheet: Sheet, old: cst.For, new: cst.For) -> Made | None:
    """Rewrite `for i in nl.dynamic_range(a, b):` to `def body(i):` and `nl.fori_loop(a, b,
    body)`.
    """
    call = old.iter
    if not isinstance(call, cst.Call) or sheet.name_of(call.func) != _RANGE[0]:
        return None
    obstacle = _refusal(sheet, old) or _of_counter(sheet, old)
    if obstacle or not is_plain(call):
        sheet.leave(
            call, f"this loop cannot become a function: {obstacle}", deprecated.DYNAMIC_FOR.instead
        )
        return None
    assert isinstance(new.iter, cst.Call)
    assert isinstance(old.target, cst.Name)
    name = sheet.fresh("body")
    args = [*_bounds(new.iter), cst.Arg(cst.Name(name)), *_step(new.iter)]
    counter = old.target.value
    start = _function(name, cst.Name(counter), new, _carried(sheet, old, counter))
    start = _spaced(sheet, old, start)
    return _pair(start, cst.Call(sheet.nl("fori_loop"), args))


def conditional(sheet: Sheet, old: cst.While, new: cst.While) -> Made | None:
    """Rewrite `while register:` to `def body(register): … return register` and
    `nl.while_loop(…)`.
    """
    if not _is_register(sheet, old):
        return None
    obstacle = _refusal(sheet, old) or _of_register(sheet, old)
    if obstacle or not isinstance(old.test, cst.Name):
        obstacle = obstacle or "its register has no name of its own"
        text = f"this loop cannot become a function: {obstacle}"
        sheet.leave(old.test, text, deprecated.DYNAMIC_WHILE.instead)
        return None
    register = old.test.value
    name = sheet.fresh("body")
    start = _function(name, cst.Name(register), new, _carried(sheet, old, register))
    last = cst.SimpleStatementLine([cst.Return(cst.Name(register))])
    start = _spaced(sheet, old, start.with_changes(body=_with_last(start.body, last)))
    args = [cst.Arg(cst.Name(register)), cst.Arg(cst.Name(name))]
    return _pair(start, cst.Call(sheet.nl("while_loop"), args))


# ---- obstacles -----------------------------------------------------------------------------------


def _refusal(sheet: Sheet, loop: cst.For | cst.While) -> str:
    """Return why the body of a loop cannot be a function; "" if it can."""
    if loop.orelse is not None:
        return "it has an `else`"
    if any(isinstance(node, _LEAVING) for node in _nodes_of_body(loop.body)):
        return "its body returns, yields, or declares names of other scopes"
    if any(
        isinstance(node, cst.Break | cst.Continue) for node in _nodes_of_body(loop.body, loops=True)
    ):
        return "its body has `break` or `continue`"
    scope = scope_of(sheet, loop)
    if scope is None:
        return "it is not in a function"
    outside = (id(loop),)
    leaking = (bound(loop.body) & read_in(scope, outside)) - bound(scope, outside)
    return f"`{min(leaking)}` is set in it and read after it" if leaking else ""


def _of_counter(sheet: Sheet, loop: cst.For) -> str:
    if not isinstance(loop.target, cst.Name):
        return "it has no single name for its counter"
    scope = scope_of(sheet, loop)
    after = scope is not None and loop.target.value in read_in(scope, outside=(id(loop),))
    if after and not _set_anew(sheet, loop, loop.target.value):
        return f"its counter `{loop.target.value}` is read outside of it"
    return ""


def _of_register(sheet: Sheet, loop: cst.While) -> str:
    """Return why a loop's register cannot be a parameter; "" if it can.

    The loop on the device has a register of its own, and the old one keeps its value.
    """
    scope = scope_of(sheet, loop)
    name = loop.test.value if isinstance(loop.test, cst.Name) else ""
    if scope is None or not name or _set_anew(sheet, loop, name):
        return ""
    reads = _reads_after(sheet, scope, loop, name)
    return f"its register `{name}` is read after it, when it has become 0" if reads else ""


def _reads_after(sheet: Sheet, scope: cst.CSTNode, loop: cst.While, name: str) -> bool:
    """Whether the name is read after the loop, or anywhere in a loop around it."""
    around = [outer for outer in sheet.parents(loop) if isinstance(outer, cst.For | cst.While)]
    inside = set(map(id, walk(loop)))
    end = sheet.span(loop)[3:]
    for node in names_in(scope):
        if node.value != name or id(node) in inside:
            continue
        is_repeated = any(id(node) in set(map(id, walk(outer))) for outer in around)
        if is_repeated or sheet.span(node)[1:3] >= end:
            return True
    return False


def _set_anew(sheet: Sheet, loop: cst.For | cst.While, name: str) -> bool:
    """Whether every other use of the name belongs to an assignment or a loop that sets it first."""
    scope = scope_of(sheet, loop)
    assert scope is not None
    inside = set(map(id, walk(loop)))
    uses = [n for n in names_in(scope) if n.value == name and id(n) not in inside]
    heads = [head for head in walk(scope) if isinstance(head, cst.For) and head is not loop]
    redefined = {id(node) for head in heads if _counts(head, name) for node in walk(head)}
    return all(id(use) in redefined for use in uses)


def _counts(head: cst.For, name: str) -> bool:
    return isinstance(head.target, cst.Name) and head.target.value == name


def _is_register(sheet: Sheet, loop: cst.While) -> bool:
    """Whether the condition is a register: by the evaluation, or by all its assignments."""
    if sheet.spot(loop.test) in sheet.facts.conditions:
        return True
    scope = scope_of(sheet, loop)
    if sheet.facts.is_evaluated or scope is None or not isinstance(loop.test, cst.Name):
        return False
    assignments = (node for node in walk(scope) if isinstance(node, cst.Assign))
    values = [node.value for node in assignments if _assigns(node, loop.test.value)]
    return bool(values) and all(
        isinstance(v, cst.Call) and sheet.name_of(v.func) == "nki.isa.register_alloc"
        for v in values
    )


def _assigns(node: cst.Assign, name: str) -> bool:
    targets = (assign_target.target for assign_target in node.targets)
    return any(isinstance(target, cst.Name) and target.value == name for target in targets)


def _nodes_of_body(body: cst.CSTNode, *, loops: bool = False) -> Iterator[cst.CSTNode]:
    """Yield the nodes of this body, without nested functions and, with `loops`, nested loops."""
    yield body
    for child in children(body):
        is_other = isinstance(child, cst.FunctionDef | cst.Lambda | cst.ClassDef)
        if not is_other and not (loops and isinstance(child, cst.For | cst.While)):
            yield from _nodes_of_body(child, loops=loops)


# ---- new code ------------------------------------------------------------------------------------


def _carried(sheet: Sheet, loop: cst.For | cst.While, parameter: str) -> list[str]:
    """Return the names of the enclosing function that the body sets; they become nonlocal."""
    scope = scope_of(sheet, loop)
    assert scope is not None
    assigned = bound(loop.body) & bound(scope, outside=(id(loop),)) & read_in(scope)
    return sorted(assigned - {parameter})


def _function(
    name: str, parameter: cst.Name, loop: cst.For | cst.While, carried: list[str]
) -> cst.FunctionDef:
    body = loop.body
    if carried:
        names = [cst.NameItem(cst.Name(outer_name)) for outer_name in carried]
        body = _with_first(body, cst.SimpleStatementLine([cst.Nonlocal(names)]))
    parameters = cst.Parameters([cst.Param(parameter)])
    return cst.FunctionDef(cst.Name(name), parameters, body, leading_lines=loop.leading_lines)


def _spaced(sheet: Sheet, loop: cst.For | cst.While, function: cst.FunctionDef) -> cst.FunctionDef:
    """Add a blank line before the function, unless it begins a block or has one."""
    block = next(sheet.parents(loop))
    first = isinstance(block, cst.IndentedBlock) and block.body[0] is loop
    lines = function.leading_lines
    if first or any(line.comment is None for line in lines):
        return function
    return function.with_changes(leading_lines=[cst.EmptyLine(indent=False), *lines])


def _with_first(body: cst.BaseSuite, line: cst.SimpleStatementLine) -> cst.BaseSuite:
    block = _block(body)
    return block.with_changes(body=[line, *block.body])


def _with_last(body: cst.BaseSuite, line: cst.SimpleStatementLine) -> cst.BaseSuite:
    block = _block(body)
    return block.with_changes(body=[*block.body, line])


def _block(body: cst.BaseSuite) -> cst.IndentedBlock:
    """Return the body on lines of its own."""
    if isinstance(body, cst.SimpleStatementSuite):
        line = cst.SimpleStatementLine(body.body, trailing_whitespace=body.trailing_whitespace)
        return cst.IndentedBlock([line])
    assert isinstance(body, cst.IndentedBlock)
    return body


def _bounds(call: cst.Call) -> list[cst.Arg]:
    first, second = find(call, _RANGE[1], "start"), find(call, _RANGE[1], "stop")
    assert first is not None
    zero = cst.Arg(cst.Integer("0"))
    bounds = [zero, first] if second is None else [first, second]
    return [cst.Arg(bound.value) for bound in bounds]


def _step(call: cst.Call) -> list[cst.Arg]:
    arg = find(call, _RANGE[1], "step")
    return [] if arg is None else [cst.Arg(arg.value)]


def _pair(function: cst.FunctionDef, call: cst.Call) -> Made:
    """Return the body as a function and the loop as a call, with a blank line between."""
    line = cst.SimpleStatementLine([cst.Expr(call)], leading_lines=[cst.EmptyLine(indent=False)])
    return cst.FlattenSentinel([function, line])
