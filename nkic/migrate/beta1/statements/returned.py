"""Kernels that return tiles on chip: `return tile` stores it in HBM first.

Beta 1's simulator gives such tiles to the caller; later versions return only tensors in shared HBM.
The evaluation determines which results these are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import libcst as cst

from nkic.migrate.beta1.hoisting import Hoisting, PendingCalls
from nkic.migrate.beta1.indices import code
from nkic.migrate.scopes import scope_of
from nkic.migrate.sheet import Sheet
from nkic.migrate.tree import walk

STORED = "a tile that is returned"


def stored(
    sheet: Sheet, pending: PendingCalls, old: cst.CSTNode, line: cst.SimpleStatementLine
) -> cst.FlattenSentinel[cst.BaseStatement] | None:
    """Return the lines that replace a `return`; None if it returns no such tile."""
    now = line.body[0]
    if not isinstance(now, cst.Return) or now.value is None:
        return None
    scope = scope_of(sheet, old)
    name = scope.name.value if scope is not None else ""
    places = sorted(place for kernel, place in sheet.facts.kept if kernel == name)
    if not places or _is_called_by_kernels(sheet, name):
        return None
    values = _values(now.value)
    if max(places) >= len(values) or any(
        isinstance(element, cst.StarredElement) for element in values
    ):
        text = "this returns tiles on the chip, and does not name them one by one"
        sheet.leave(old, text, "store them in tensors of nl.shared_hbm, and return those")
        return None
    stores = {place: _stored(sheet, pending, values[place].value) for place in places}
    sheet.done[STORED] += len(places)
    lines = [store_line for store_lines, _ in stores.values() for store_line in store_lines]
    outputs = {place: output for place, (_, output) in stores.items()}
    lines.append(line.with_changes(body=[_returning(now, outputs)], leading_lines=()))
    lines[0] = lines[0].with_changes(leading_lines=line.leading_lines)
    return cst.FlattenSentinel(_hoisted(sheet, pending, lines))


def _is_called_by_kernels(sheet: Sheet, name: str) -> bool:
    """Whether evaluated functions call this one and use its tile."""
    calls = (node for node in walk(sheet.tree) if isinstance(node, cst.Call))
    around = [scope_of(sheet, call) for call in calls if code(call.func) == name]
    lines = {at[0] for at in sheet.facts.instructions}
    spans = [sheet.span(scope) for scope in around if scope is not None]
    return any(span.line <= line <= span.end_line for span in spans for line in lines)


def _hoisted(
    sheet: Sheet, pending: PendingCalls, lines: Sequence[cst.SimpleStatementLine]
) -> Iterator[cst.BaseStatement]:
    """Yield the lines, each preceded by the instructions inside it."""
    for line in lines:
        lines_of = Hoisting(sheet, pending).hoisted(line)
        yield from lines_of if isinstance(lines_of, cst.FlattenSentinel) else [lines_of]


def _values(value: cst.BaseExpression) -> Sequence[cst.BaseElement]:
    """Return the values of a `return`, one by one."""
    if isinstance(value, cst.Tuple | cst.List):
        return value.elements
    return [cst.Element(value)]


def _stored(
    sheet: Sheet, pending: PendingCalls, tile: cst.BaseExpression
) -> tuple[list[cst.SimpleStatementLine], cst.Name]:
    """Return the lines that store a tile, and the tensor in which it is stored."""
    lines = []
    if not isinstance(tile, cst.Name) or pending.get(tile) is not None:
        name = sheet.fresh("result")
        target = [cst.AssignTarget(cst.Name(name))]
        lines.append(cst.SimpleStatementLine([cst.Assign(target, tile)]))
    else:
        name = tile.value
    output = sheet.fresh(f"{name}_hbm")
    make, store, shared = (code(sheet.nl(n)) for n in ("ndarray", "store", "shared_hbm"))
    allocation = f"{output} = {make}({name}.shape, dtype={name}.dtype, buffer={shared})"
    return [*lines, _line(allocation), _line(f"{store}({output}, {name})")], cst.Name(output)


def _line(text: str) -> cst.SimpleStatementLine:
    line = cst.parse_statement(text)
    assert isinstance(line, cst.SimpleStatementLine)
    return line


def _returning(now: cst.Return, new: Mapping[int, cst.BaseExpression]) -> cst.Return:
    """Return the `return` with other values at some places."""
    if not isinstance(now.value, cst.Tuple | cst.List):
        return now.with_changes(value=new[0])
    elements = [
        element.with_changes(value=new[place]) if place in new else element
        for place, element in enumerate(now.value.elements)
    ]
    return now.with_changes(value=now.value.with_changes(elements=elements))
