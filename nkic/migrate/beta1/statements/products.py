"""Sums of products in PSUM, `t += nl.matmul(x, y)`, as instructions that add to t."""

from __future__ import annotations

from collections import Counter

import libcst as cst

from nkic.language.versions.rewritten import PRODUCTS, Product
from nkic.migrate.arguments import keyword_of, keyword_value
from nkic.migrate.beta1.hoisting import Pending, PendingCalls
from nkic.migrate.beta1.results import NoResult, result_of
from nkic.migrate.sheet import Sheet
from nkic.migrate.tree import code

_POSITIONAL = cst.MaybeSentinel.DEFAULT


def added_product(
    sheet: Sheet, pending: PendingCalls, old: cst.Call, new: cst.Call
) -> cst.Call | cst.Name:
    """Rewrite `t += nl.matmul(x, y, transpose_x=True)` in PSUM to an instruction that adds to t.

    Without the flag, x is transposed and copied first. Returns `new` for other calls.
    """
    product = PRODUCTS.get(sheet.function(old))
    if product is None:
        return new
    value = keyword_value(old, product.flag)
    flag = code(value) if value is not None else "False"
    factors = [arg for arg in new.args if keyword_of(arg) != product.flag]
    if not _is_single_product(sheet, old, product, flag) or len(factors) != len(product.names):
        return new
    args = [arg.with_changes(keyword=None, equal=_POSITIONAL) for arg in factors]
    args[-1] = args[-1].with_changes(comma=_POSITIONAL)
    if flag == "False":
        args[0] = args[0].with_changes(value=_transposed(sheet, args[0].value))
    func = sheet.nisa(product.by)
    try:
        result = result_of(sheet, old, None, only=product.by)
    except NoResult:
        return new
    if result.is_new:
        return new
    return pending.add(Pending(old, new.with_changes(func=func, args=args), result, ""))


def _is_single_product(sheet: Sheet, old: cst.Call, product: Product, flag: str) -> bool:
    """Whether every evaluation was one product, with what transposes its first factor."""
    rows = Counter(instruction.row.name for instruction in sheet.instructions(old))
    before = {"True": (), "False": product.turn}.get(flag)
    count = rows[product.by]
    if before is None or not count:
        return False
    return rows == dict.fromkeys((*before, product.by), count)


def _transposed(sheet: Sheet, factor: cst.BaseExpression) -> cst.Call:
    """Return `nl.copy(nl.transpose(x))`."""
    turn, copy = (sheet.nl(name) for name in ("transpose", "copy"))
    return cst.Call(copy, [cst.Arg(cst.Call(turn, [cst.Arg(factor)]))])
