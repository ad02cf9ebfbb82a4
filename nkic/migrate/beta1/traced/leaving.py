"""`return` in a loop whose body Beta 1 traced once: it ended the function after all iterations.

Python ends it in the first iteration, so the statement moves after the loop. Source: NKI's
documentation up to SDK 2.26, nki.language.affine_range, and its tutorial on layouts.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from nkic.migrate.sheet import Sheet
from nkic.migrate.tree import children

LEAVING = "a return in a loop"
_HELP = "write the `return` after the loop"


def without_return(
    sheet: Sheet, old: cst.For, new: cst.For
) -> tuple[cst.For, cst.SimpleStatementLine | None]:
    """Return the loop, and the `return` at its end, which belongs after it; other returns are
    left.
    """
    line = _last(new)
    if line is not None:
        assert isinstance(new.body, cst.IndentedBlock)
        statements = new.body.body[:-1] or [cst.SimpleStatementLine([cst.Pass()])]
        new = new.with_changes(body=new.body.with_changes(body=statements))
        sheet.done[LEAVING] += 1
    if any(True for _ in _returns(new)):
        first = next(_returns(old))
        text = "a `return` that is not the last statement of a loop, whose body was traced once"
        sheet.leave(first, text, _HELP)
    return new, line


def _last(loop: cst.For) -> cst.SimpleStatementLine | None:
    """Return the statement at the end of the body, if it is only a `return`."""
    line = loop.body.body[-1]
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        return None
    return line if isinstance(line.body[0], cst.Return) else None


def _returns(node: cst.CSTNode) -> Iterator[cst.Return]:
    """Yield the returns of the same function."""
    for child in children(node):
        if isinstance(child, cst.Return):
            yield child
        elif not isinstance(child, cst.FunctionDef | cst.Lambda):
            yield from _returns(child)
