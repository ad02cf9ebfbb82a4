"""Valid targets of `=`, `for`, `as` and `del`."""

from __future__ import annotations

from nkic.base.diagnostics import CompileFailed, refusal
from nkic.syntax import nodes as n

_PLAIN = (n.Name, n.Attribute, n.Subscript)
_SINGULAR = {
    n.Constant: "a constant",
    n.Call: "the result of a call",
    n.BinOp: "the result of an operator",
    n.UnaryOp: "the result of an operator",
    n.BoolOp: "the result of an operator",
    n.Compare: "a comparison",
    n.IfExp: "a conditional expression",
    n.Lambda: "a lambda",
    n.Await: "the result of `await`",
    n.Yield: "the result of `yield`",
    n.YieldFrom: "the result of `yield`",
    n.NamedExpr: "the result of `:=`",
    n.Dict: "a dict",
    n.Set: "a set",
    n.ListComp: "a comprehension",
    n.SetComp: "a comprehension",
    n.DictComp: "a comprehension",
    n.GeneratorExp: "a generator expression",
    n.JoinedStr: "an f-string",
    n.Tuple: "a tuple",
    n.List: "a list",
    n.Starred: "a starred expression",
}
_TARGETS = "a name, `a.b`, `a[i]`, or a list of these"
OR_COMPARE = "; or `==` to compare"


def as_target(node: n.Expression, advice: str = "") -> n.Expression:
    """Return `node` if it can be assigned to; otherwise raise at the part that cannot."""
    waiting = [node]
    if isinstance(node, n.Starred):
        raise _lone_star(node)
    while waiting:
        target = waiting.pop()
        if isinstance(target, (n.Tuple, n.List)):
            _check_stars(target)
            waiting += reversed(target.elts)
        elif isinstance(target, n.Starred):
            waiting.append(target.value)
        elif not isinstance(target, _PLAIN):
            raise not_assignable(target, "cannot be assigned to", _TARGETS + advice)
    return node


def as_deleted(node: n.Expression) -> n.Expression:
    """Return `node` if it can be deleted."""
    waiting = [node]
    while waiting:
        target = waiting.pop()
        if isinstance(target, (n.Tuple, n.List)):
            waiting += reversed(target.elts)
        elif not isinstance(target, _PLAIN):
            raise not_assignable(target, "cannot be deleted", _TARGETS)
    return node


def as_single_target(node: n.Expression, action: str) -> n.Expression:
    """Return `node` if it is one name, attribute or subscript; `action` words the error."""
    if isinstance(node, _PLAIN):
        return node
    raise not_assignable(node, f"cannot {action}", "a name, `a.b` or `a[i]`")


def not_assignable(node: n.Expression, verdict: str, expected: str) -> CompileFailed:
    """Return the error that `node` is not a target."""
    thing = _SINGULAR.get(type(node), "this")
    if isinstance(node, n.Constant) and isinstance(node.value, bool | None):
        thing = f"`{node.value}`"
    return refusal("not-assignable", f"{thing} {verdict}", node.span, help=f"write {expected}")


def _check_stars(display: n.Tuple | n.List) -> None:
    stars = [item for item in display.elts if isinstance(item, n.Starred)]
    if len(stars) > 1:
        raise refusal(
            "bad-star",
            "only one starred name can take the remaining elements",
            stars[1].span,
            help="keep only one star",
        )


def _lone_star(node: n.Starred) -> CompileFailed:
    return refusal(
        "bad-star",
        "a starred name must be in a list or tuple of targets",
        node.span,
        help="add a comma: `*rest, = values`",
    )
