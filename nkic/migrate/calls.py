"""Arguments whose position, type or value changed.

Source: migration guide, 0.2.0 to 0.3.0, API breaking changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from nkic.base.profiles import Profile
from nkic.language import versions
from nkic.language.enums import OF_ATTRIBUTE, OPERATORS
from nkic.language.versions import ORDER_SINCE, Moved
from nkic.machine.instructions import ROWS
from nkic.machine.operands import AttributeKind, Row
from nkic.machine.targets import Buffer
from nkic.migrate.sheet import Sheet, bound, children, code, names_in, read_in, scope_of, walk
from nkic.program.program import View

# ---- Find, add, rename and remove arguments of calls --------------------------------------------

_BY_NAME = cst.AssignEqual(
    whitespace_before=cst.SimpleWhitespace(""), whitespace_after=cst.SimpleWhitespace("")
)
COMMA = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
_MODULES = ("nki.isa", "nki.collectives")


def row_of(name: str) -> Row | None:
    """Return the instruction that a qualified name calls; None for other names."""
    module, _, short = name.rpartition(".")
    row = ROWS.get(short)
    return row if row is not None and module in _MODULES else None


def keyword_of(argument: cst.Arg) -> str:
    return argument.keyword.value if argument.keyword is not None else ""


def is_plain(call: cst.Call) -> bool:
    """Whether no argument is unpacked with `*` or `**`, so that number and names are known."""
    return not any(argument.star for argument in call.args)


def keyword(call: cst.Call, name: str) -> cst.Arg | None:
    return next((argument for argument in call.args if keyword_of(argument) == name), None)


def keyword_value(call: cst.Call, name: str) -> cst.BaseExpression | None:
    argument = keyword(call, name)
    return argument.value if argument is not None else None


def parameter_of(argument: cst.Arg, position: int, names: Sequence[str]) -> str:
    """Return the parameter of an argument, given those of the function; "" if there is none."""
    return keyword_of(argument) or (names[position] if position < len(names) else "")


def find(call: cst.Call, names: Sequence[str], name: str) -> cst.Arg | None:
    """Return the argument for the parameter `name` of a function whose parameters are `names`."""
    arguments = enumerate(call.args)
    return next(
        (arg for position, arg in arguments if parameter_of(arg, position, names) == name), None
    )


def mask_argument(call: cst.Call) -> cst.BaseExpression | None:
    """Return the mask of a Beta 1 call; None if it is absent or `None`."""
    mask = keyword_value(call, "mask")
    return None if isinstance(mask, cst.Name) and mask.value == "None" else mask


def named(name: str, value: cst.BaseExpression) -> cst.Arg:
    return cst.Arg(value, keyword=cst.Name(name), equal=_BY_NAME)


def with_args(call: cst.Call, args: Sequence[cst.Arg]) -> cst.Call:
    """Return the call with other arguments; the last has a comma only if the old one had, and the
    whitespace of the old one before the parenthesis.
    """
    commas = [argument.comma for argument in call.args]
    between = next((c for c in commas[:-1] if isinstance(c, cst.Comma)), COMMA)
    separated = [
        a if isinstance(a.comma, cst.Comma) else a.with_changes(comma=between) for a in args[:-1]
    ]
    if args:
        last = args[-1].with_changes(comma=commas[-1] if commas else cst.MaybeSentinel.DEFAULT)
        after = call.args[-1].whitespace_after_arg if call.args else last.whitespace_after_arg
        separated.append(last.with_changes(whitespace_after_arg=after))
    return call.with_changes(args=separated)


def without(call: cst.Call, removed: cst.Arg) -> cst.Call:
    return with_args(call, [argument for argument in call.args if argument is not removed])


def replaced(call: cst.Call, old: cst.Arg, new: cst.Arg) -> cst.Call:
    return call.with_changes(args=[new if arg is old else arg for arg in call.args])


def with_value(call: cst.Call, argument: cst.Arg, value: cst.BaseExpression) -> cst.Call:
    return replaced(call, argument, argument.with_changes(value=value))


def whole_numbers(value: cst.BaseExpression) -> list[int]:
    """Return the integers of a literal list; none for anything else."""
    if not isinstance(value, cst.List | cst.Tuple):
        return []
    values = [element.value for element in value.elements]
    return [int(number.value) for number in values if isinstance(number, cst.Integer)]


# --------------------------------------------------------------------------------------------------

_MADE = ("nki.language.ndarray", "nki.language.zeros", "nki.language.ones", "nki.language.full")


def enumerations(sheet: Sheet, row: Row, old: cst.Call, new: cst.Call) -> cst.Call | None:
    """Rewrite `dge_mode=2` to `dge_mode=nisa.dge_mode.hwdge`."""
    if not is_plain(new):
        return None
    call = new
    for position, argument in enumerate(new.args):
        name = parameter_of(argument, position, row.parameters)
        member = _member(row, name, argument.value)
        if member:
            call = with_value(call, call.args[position], sheet.parsed(f"nisa.{member}"))
    return call if call is not new else None


def _member(row: Row, name: str, value: cst.BaseExpression) -> str:
    kind = OF_ATTRIBUTE.get(name)
    is_choice = name == "engine" or any(
        attribute.name == name and attribute.kind is AttributeKind.CHOICE
        for attribute in row.attributes
    )
    if kind is None or not is_choice or not isinstance(value, cst.Integer | cst.SimpleString):
        return ""
    member = next((member for member in kind if member.value == value.evaluated_value), None)
    return f"{kind.__name__}.{member.name}" if member is not None else ""


def buffer_names(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call | None:
    """Rewrite `buffer="sbuf"` to `buffer=nl.sbuf`."""
    if sheet.name_of(old.func) not in _MADE:
        return None
    argument = keyword(new, "buffer")
    if argument is None or not isinstance(argument.value, cst.SimpleString):
        return None
    name = argument.value.evaluated_value
    if name not in {buffer.value for buffer in Buffer}:
        return None
    return with_value(new, argument, sheet.nl(str(name)))


def shared_outputs(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call | None:
    """Rewrite `buffer=nl.hbm` to `buffer=nl.shared_hbm` for what the kernel returns."""
    if sheet.spot(old) not in sheet.facts.outputs:
        return None
    argument = keyword(new, "buffer")
    if argument is None or not isinstance(argument.value, cst.Attribute | cst.SimpleString):
        return None
    if code(argument.value).strip("'\"").rpartition(".")[2] != "hbm":
        return None
    return with_value(new, argument, sheet.nl("shared_hbm"))


def whole_fill(sheet: Sheet, row: Row, old: cst.Call, new: cst.Call) -> cst.Call | None:
    """Rewrite `memset(dst, 2.0)` to `memset(dst, 2)` if dst holds integers."""
    if row.name not in versions.WHOLE:
        return None
    argument = find(new, row.parameters, versions.WHOLE[row.name])
    views = _views(sheet, old, "dst")
    if argument is None or not views or not all(view.dtype.is_integer for view in views):
        return None
    number = _literal(argument.value)
    is_whole = any(isinstance(node, cst.Integer) for node in walk(argument.value))
    if number is None or not number.is_integer() or is_whole:
        return None
    return with_value(new, argument, cst.parse_expression(f"{number:.0f}"))


def reduced_axis(sheet: Sheet, row: Row, old: cst.Call, new: cst.Call) -> None:
    """Warn that `axis=1` of `tensor_reduce` in 0.2 may mean the last of several dimensions."""
    data = versions.LAST_AXIS.get(row.name)
    if data is None or not sheet.is_before(ORDER_SINCE):
        return
    if any(len(view.shape) > 2 for view in _views(sheet, old, data)):
        text = "NKI 0.2 took axis=1 of a tile with more than two dimensions for its last dimension"
        sheet.leave(old, text, "write the intended axis; NKI 0.3 takes it literally", sure=False)


def _views(sheet: Sheet, call: cst.Call, operand: str) -> list[View]:
    values = (instruction.operand(operand) for instruction in sheet.instructions(call))
    return [value for value in values if isinstance(value, View)]


def former_order(sheet: Sheet, row: Row, old: cst.Call, new: cst.Call) -> cst.Call | None:
    """Rewrite calls with the former order of parameters.

    `affine_select(dst, pattern, offset, step, a, b)` → `affine_select(dst, pattern, step, a, b,
    offset=offset)`; `dma_compute(dst, srcs, scales, op)` → `dma_compute(dst, srcs, op, scales)`.
    """
    moved = versions.ORDER.get(row.name)
    if moved is None or not is_plain(new):
        return None
    placed = sum(1 for arg in new.args if not keyword_of(arg))
    keywords = {keyword_of(arg) for arg in new.args}
    if placed <= moved.place or moved.name in keywords or not _is_former(sheet, old, moved, placed):
        return None
    args = [arg for position, arg in enumerate(new.args) if position != moved.place]
    if moved.swap is None or moved.swap >= placed:
        args.append(named(moved.name, new.args[moved.place].value))
    else:
        args.insert(moved.swap, new.args[moved.place])
    # Commas and layout keep their positions.
    shapes = [(arg.comma, arg.whitespace_after_arg) for arg in new.args]
    reordered = [
        argument.with_changes(comma=comma, whitespace_after_arg=after)
        for argument, (comma, after) in zip(args, shapes, strict=True)
    ]
    return new.with_changes(args=reordered)


def _is_former(sheet: Sheet, old: cst.Call, moved: Moved, placed: int) -> bool:
    if placed <= moved.shown or moved.shown == moved.place:
        by_name = keyword(old, moved.named) is not None
        if by_name or placed <= moved.shown:
            return by_name
    shown = old.args[moved.shown].value
    if sheet.name_of(shown).startswith("nki.language."):
        return False
    certain = isinstance(shown, cst.List | cst.Tuple) or _literal(shown) is not None
    return certain or sheet.is_before(ORDER_SINCE)


def _literal(value: cst.BaseExpression) -> float | None:
    match value:
        case cst.UnaryOperation(cst.Minus(), inner):
            number = _literal(inner)
            return None if number is None else -number
    return float(value.evaluated_value) if isinstance(value, cst.Float | cst.Integer) else None


def operators(sheet: Sheet, row: Row, old: cst.Call, new: cst.Call) -> cst.Call | None:
    """Rewrite `op=nl.max`, `op=np.add` to `op=nl.maximum`, `op=nl.add`."""
    call = new
    for position, argument in enumerate(old.args):
        module, _, name = sheet.name_of(argument.value).rpartition(".")
        today = versions.OPERATORS.get(name, name)
        foreign = module == "numpy" or (module == "nki.language" and today != name)
        if foreign and today in OPERATORS and position < len(call.args):
            call = with_value(call, call.args[position], sheet.nl(today))
    return call if call is not new else None


def converted(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call | None:
    """Rewrite `nl.shared_constant(array, dtype=d)` to `nl.shared_constant(array.astype(d))`."""
    parameter = versions.CONVERTED.get(sheet.function(old))
    dtype = keyword(new, parameter) if parameter is not None else None
    if dtype is None or keyword_of(new.args[0]):
        return None
    first = new.args[0]
    simple = isinstance(first.value, cst.Name | cst.Call | cst.Attribute) or first.value.lpar
    array = code(first.value) if simple else f"({code(first.value)})"
    value = cst.parse_expression(f"{array}.astype({code(dtype.value)})")
    return without(with_value(new, first, value), dtype)


def words(sheet: Sheet, row: Row, old: cst.Call, new: cst.Call) -> cst.Call | None:
    """Rewrite `perf_mode="double_row_gen3"` to `perf_mode="double_row"`."""
    for argument in new.args:
        literal = argument.value
        if not isinstance(literal, cst.SimpleString):
            continue
        replacements = versions.WORDS.get((row.name, keyword_of(argument)), {})
        today = replacements.get(str(literal.evaluated_value))
        if today is not None:
            value = literal.with_changes(value=f"{literal.quote}{today}{literal.quote}")
            return with_value(new, argument, value)
    return None


def defaults(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call | None:
    """Rewrite `nl.rand(shape)` to `nl.rand(shape, dtype=nl.float32)`, the former default."""
    default = versions.DEFAULTS.get(sheet.function(old))
    if default is None or not sheet.is_before(Profile.BETA2) or len(new.args) != 1:
        return None
    return new.with_changes(args=[*new.args, named(default[0], sheet.nl(default[1]))])


# ---- Device loops: from statements to calls with the body as a function -------------------------
# Source: migration guide, 0.5.0 to 0.6.0, dynamic loops; 0.6.0 to 0.7.0.

Made = cst.FlattenSentinel[cst.BaseStatement]
_RANGE = ("nki.language.dynamic_range", ("start", "stop", "step"))
_LEAVING = cst.Return | cst.Yield | cst.Await | cst.Global | cst.Nonlocal


def counted(sheet: Sheet, old: cst.For, new: cst.For) -> Made | None:
    """Rewrite `for i in nl.dynamic_range(a, b):` to `def body(i):` and `nl.fori_loop(a, b, …)`."""
    call = old.iter
    if not isinstance(call, cst.Call) or sheet.name_of(call.func) != _RANGE[0]:
        return None
    obstacle = _refusal(sheet, old) or _of_counter(sheet, old)
    if obstacle or not is_plain(call):
        text = f"this loop cannot become a function: {obstacle}"
        sheet.leave(call, text, versions.DYNAMIC_FOR.instead)
        return None
    assert isinstance(new.iter, cst.Call)
    start, stop, step = (find(new.iter, _RANGE[1], name) for name in _RANGE[1])
    assert start is not None
    bounds = ("0", code(start.value)) if stop is None else (code(start.value), code(stop.value))
    name = sheet.fresh("body")
    texts = [*bounds, name, *([code(step.value)] if step is not None else [])]
    loop = sheet.parsed("nl.fori_loop({})", ", ".join(texts))
    return _pair(sheet, old, new, name, code(old.target), loop)


def conditional(sheet: Sheet, old: cst.While, new: cst.While) -> Made | None:
    """Rewrite `while register:` to a function that returns the register, and `nl.while_loop(…)`."""
    if not _is_register(sheet, old):
        return None
    obstacle = _refusal(sheet, old) or _of_register(sheet, old)
    if obstacle or not isinstance(old.test, cst.Name):
        obstacle = obstacle or "its register has no name of its own"
        text = f"this loop cannot become a function: {obstacle}"
        sheet.leave(old.test, text, versions.DYNAMIC_WHILE.instead)
        return None
    register = old.test.value
    name = sheet.fresh("body")
    loop = sheet.parsed("nl.while_loop({}, {})", register, name)
    return _pair(sheet, old, new, name, register, loop, f"return {register}")


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
    around = [outer for outer in sheet.parents(loop) if isinstance(outer, cst.For | cst.While)]
    repeated = {id(node) for outer in around for node in walk(outer)}
    inside, end = set(map(id, walk(loop))), sheet.span(loop)[3:]
    uses = (node for node in names_in(scope) if node.value == name and id(node) not in inside)
    reads = any(id(use) in repeated or sheet.span(use)[1:3] >= end for use in uses)
    return f"its register `{name}` is read after it, when it has become 0" if reads else ""


def _set_anew(sheet: Sheet, loop: cst.For | cst.While, name: str) -> bool:
    """Whether every other use of the name belongs to an assignment or a loop that sets it first."""
    scope = scope_of(sheet, loop)
    assert scope is not None
    inside = set(map(id, walk(loop)))
    uses = [n for n in names_in(scope) if n.value == name and id(n) not in inside]
    heads = [head for head in walk(scope) if isinstance(head, cst.For) and head is not loop]
    again = [head for head in heads if code(head.target) == name]
    redefined = {id(node) for head in again for node in walk(head)}
    return all(id(use) in redefined for use in uses)


def _is_register(sheet: Sheet, loop: cst.While) -> bool:
    """Whether the condition is a register: by the evaluation, or by all its assignments."""
    if sheet.spot(loop.test) in sheet.facts.conditions:
        return True
    scope = scope_of(sheet, loop)
    if sheet.facts.is_evaluated or scope is None or not isinstance(loop.test, cst.Name):
        return False
    assignments = (node for node in walk(scope) if isinstance(node, cst.Assign))
    name = loop.test.value
    values = [n.value for n in assignments if name in (code(t.target) for t in n.targets)]
    return bool(values) and all(
        isinstance(v, cst.Call) and sheet.name_of(v.func) == "nki.isa.register_alloc"
        for v in values
    )


def _nodes_of_body(body: cst.CSTNode, *, loops: bool = False) -> Iterator[cst.CSTNode]:
    """Yield the nodes of this body, without nested functions and, with `loops`, nested loops."""
    yield body
    for child in children(body):
        is_other = isinstance(child, cst.FunctionDef | cst.Lambda | cst.ClassDef)
        if not is_other and not (loops and isinstance(child, cst.For | cst.While)):
            yield from _nodes_of_body(child, loops=loops)


# ---- new code ------------------------------------------------------------------------------------


def _pair(
    sheet: Sheet,
    old: cst.For | cst.While,
    new: cst.For | cst.While,
    name: str,
    parameter: str,
    loop: cst.BaseExpression,
    last: str = "",
) -> Made:
    """Return the body as a function and the loop as a call, with a blank line between.

    A blank line comes before the function, unless it begins a block or has one. The names of the
    enclosing function that the body sets become nonlocal.
    """
    scope = scope_of(sheet, old)
    assert scope is not None
    assigned = bound(old.body) & bound(scope, outside=(id(old),)) & read_in(scope)
    carried = sorted(assigned - {parameter})
    texts = ([f"nonlocal {', '.join(carried)}"] if carried else [], [last] if last else [])
    first, ending = ([cst.parse_statement(text) for text in part] for part in texts)
    body = new.body
    if isinstance(body, cst.SimpleStatementSuite) and (first or ending):  # on lines of its own
        line = cst.SimpleStatementLine(body.body, trailing_whitespace=body.trailing_whitespace)
        body = cst.IndentedBlock([line])
    body = body.with_changes(body=[*first, *body.body, *ending])
    lines = new.leading_lines
    block = next(sheet.parents(old))
    begins = isinstance(block, cst.IndentedBlock) and block.body[0] is old
    if not begins and all(line.comment is not None for line in lines):
        lines = [cst.EmptyLine(indent=False), *lines]
    parameters = cst.Parameters([cst.Param(cst.Name(parameter))])
    function = cst.FunctionDef(cst.Name(name), parameters, body, leading_lines=lines)
    blank = [cst.EmptyLine(indent=False)]
    return cst.FlattenSentinel(
        [function, cst.SimpleStatementLine([cst.Expr(loop)], leading_lines=blank)]
    )
