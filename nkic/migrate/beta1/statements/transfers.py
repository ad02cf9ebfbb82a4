"""Assignments at a partition where no engine can start: `t[5, 0:8] = 0.0`.

Beta 1 moves the value by DMA. Later versions treat the assignment as an engine's instruction, which
is rejected there.
"""

from __future__ import annotations

import libcst as cst

from nkic.ir.program import Instruction
from nkic.ir.tensors import View
from nkic.language.versions.rewritten import BY_DMA
from nkic.migrate.beta1.indices import added, code
from nkic.migrate.sheet import Sheet

MOVED = "an assignment by DMA"


def moved(
    sheet: Sheet, old: cst.CSTNode, line: cst.SimpleStatementLine
) -> cst.SimpleStatementLine | None:
    """Rewrite an assignment to `nisa.dma_copy(t[5:6, 0:8], value)`; None if an engine wrote it."""
    now = line.body[0]
    if not isinstance(old, cst.Assign) or not isinstance(now, cst.Assign) or len(old.targets) > 1:
        return None
    was, target = old.targets[0].target, now.targets[0].target
    if not isinstance(was, cst.Subscript) or not isinstance(target, cst.Subscript):
        return None
    if not any(map(_is_transfer, sheet.instructions(was))) or not isinstance(was.value, cst.Name):
        return None
    if len(was.slice) == 1 and code(was.slice[0].slice) == "...":
        return None  # the whole tile: boxes of a mask were moved
    dst = _as_slices(was, target)
    value = code(now.value)
    if sheet.tensors(was):  # a tile was made for the value, a number
        shape = f"({'1, ' * (len(was.slice) - 1)}1)" if _is_element(was) else f"{dst}.shape"
        full = code(sheet.nl("full"))
        value = f"{full}({shape}, {value}, dtype={was.value.value}.dtype)"
    sheet.done[MOVED] += 1
    function = code(sheet.nisa(BY_DMA))
    call = cst.parse_expression(f"{function}({dst}, {value})")
    return line.with_changes(body=[cst.Expr(call)])


def _is_transfer(instruction: Instruction) -> bool:
    """Whether it is a copy by DMA from one tile on chip to another."""
    if instruction.row.name != BY_DMA:
        return False
    views = [instruction.operand(name) for name in ("dst", "src")]
    return all(isinstance(view, View) and view.tensor.on_chip for view in views)


def _is_element(target: cst.Subscript) -> bool:
    return not any(isinstance(element.slice, cst.Slice) for element in target.slice)


def _as_slices(was: cst.Subscript, target: cst.Subscript) -> str:
    """Return the target with one-element slices for numbers."""
    if len(was.slice) != len(target.slice):
        return code(target)
    texts = [code(element.slice) for element in target.slice]
    for place, element in enumerate(target.slice):
        value = element.slice.value if isinstance(element.slice, cst.Index) else None
        if value is not None and not isinstance(value, cst.Ellipsis | cst.Call):
            texts[place] = f"{texts[place]}:{added(texts[place], '1')}"
    return f"{code(target.value)}[{', '.join(texts)}]"
