"""Assignments: to names and items as they are, to attributes and slices through guards."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from nkic.specialise.expressions import BINARY, Expressions, as_value, literal
from nkic.specialise.scope import DEL, LOAD, STORE, Place, call, check_name, name
from nkic.syntax import nodes
from nkic.syntax.walk import walk

_GUARDED_IN_PLACE = {
    **{"+": "@iadd", "*": "@imul", "%": "@imod", "**": "@ipow", "<<": "@ishl"},
    **{"|": "@ior", "&": "@iand", "^": "@ixor", "-": "@isub"},
}
_MARKERS = {"ClassVar": "@classvar", "InitVar": "@initvar", "KW_ONLY": "@kwonly"}


class Target(NamedTuple):
    """What Python assigns to, and the statements that finish the assignment."""

    node: ast.expr
    stores: list[ast.stmt]


class Assignments(Expressions):
    """Translates statements that assign or delete."""

    def target(self, node: nodes.Expression) -> Target:
        """Where a value goes. Attributes and slices get it by way of a variable of ours."""
        place = self._at(node.span)
        if _is_guarded(node):
            held = self.scope.temporary()
            return Target(name(held, place, STORE), [self._store(node, name(held, place))])
        if isinstance(node, nodes.Starred):
            inner = self.target(node.value)
            return Target(ast.Starred(inner.node, STORE, **place), inner.stores)
        if isinstance(node, nodes.Tuple | nodes.List):
            parts = [self.target(part) for part in node.elts]
            made = ast.Tuple([part.node for part in parts], STORE, **place)
            return Target(made, [store for part in parts for store in part.stores])
        return Target(self.simple_target(node), [])

    def _store(self, node: nodes.Expression, value: ast.expr) -> ast.stmt:
        """Assigns to an attribute or a slice."""
        place = self._at(node.span)
        if isinstance(node, nodes.Attribute):
            attribute = ast.Constant(self.scope.mangled(node.attr), **place)
            made = call("@.set", place, self.load(node.value), attribute, value)
        else:
            assert isinstance(node, nodes.Subscript)
            owner, index = self.load(node.value), self.load(node.slice)
            made = call("@store", place, owner, as_value(index, place), value)
        return ast.Expr(made, **place)

    def _assign(self, node: nodes.Assign) -> list[ast.stmt]:
        place = self._at(node.span)
        only = node.targets[0]
        if len(node.targets) == 1 and _is_guarded(only) and _is_settled(only):
            return [self._store(only, self.load(node.value))]
        value = self.load(node.value)
        if any(isinstance(part, nodes.Starred) for one in node.targets for part in walk(one)):
            value = call("@spread", place, value)
        parts = [self.target(target) for target in node.targets]
        if len(parts) == 1 or not any(part.stores for part in parts):
            made = ast.Assign([part.node for part in parts], value, **place)
            return [made, *(store for part in parts for store in part.stores)]
        held = self.scope.temporary()
        made = ast.Assign([name(held, place, STORE)], value, **place)
        return [made, *(more for part in parts for more in self._from(held, part, place))]

    def _from(self, held: str, target: Target, place: Place) -> Iterable[ast.stmt]:
        yield ast.Assign([target.node], name(held, place), **place)
        yield from target.stores

    def _augmented(self, node: nodes.AugAssign) -> list[ast.stmt]:
        place = self._at(node.span)
        target = node.target
        if isinstance(target, nodes.Name):
            check_name(target.id, target.span)
            return [self._update(name(target.id, place), node)]
        if isinstance(target, nodes.Attribute):
            return self._update_attribute(target, node)
        assert isinstance(target, nodes.Subscript)
        return self._update_item(target, node)

    def _update(self, variable: ast.Name, node: nodes.AugAssign) -> ast.stmt:
        """`variable op= value` for a plain variable."""
        place = self._at(node.span)
        value, written = self.load(node.value), name(variable.id, place, STORE)
        guard = _GUARDED_IN_PLACE.get(node.op)
        if guard is None or (node.op in "+-" and literal(node.value) is not None):
            return ast.AugAssign(written, BINARY[node.op], value, **place)
        return ast.Assign([written], call(guard, place, variable, value), **place)

    def _update_attribute(self, target: nodes.Attribute, node: nodes.AugAssign) -> list[ast.stmt]:
        place = self._at(node.span)
        owner, held = self.scope.temporary(), self.scope.temporary()
        old = self.attribute(name(owner, place), target.attr, place)
        attribute = ast.Constant(self.scope.mangled(target.attr), **place)
        new = call("@.set", place, name(owner, place), attribute, name(held, place))
        return [
            ast.Assign([name(owner, place, STORE)], self.load(target.value), **place),
            ast.Assign([name(held, place, STORE)], old, **place),
            self._update(name(held, place), node),
            ast.Expr(new, **place),
        ]

    def _update_item(self, target: nodes.Subscript, node: nodes.AugAssign) -> list[ast.stmt]:
        place = self._at(node.span)
        owner, index, held = (self.scope.temporary() for _ in range(3))
        key = as_value(self.index(target.slice), place)
        old = ast.Subscript(name(owner, place), name(index, place), LOAD, **place)
        new = call("@store", place, name(owner, place), name(index, place), name(held, place))
        return [
            ast.Assign([name(owner, place, STORE)], self.load(target.value), **place),
            ast.Assign([name(index, place, STORE)], key, **place),
            ast.Assign([name(held, place, STORE)], old, **place),
            self._update(name(held, place), node),
            ast.Expr(new, **place),
        ]

    def _annotated(self, node: nodes.AnnAssign) -> list[ast.stmt]:
        place = self._at(node.span)
        if self.scope.frame.is_class and isinstance(node.target, nodes.Name):
            return [self._field(node, node.target)]
        if node.value is not None:
            return self._assign(nodes.Assign(node.span, (node.target,), node.value))
        if not isinstance(node.target, nodes.Name):
            return []
        # Without a value, the name is still local to its function.
        unused = ast.Constant(None, **place)
        target = name(node.target.id, place, STORE)
        return [ast.AnnAssign(target, unused, None, 1, **place)]

    def _field(self, node: nodes.AnnAssign, target: nodes.Name) -> ast.stmt:
        """A field of a class: that it is one matters, not its type."""
        place = self._at(node.span)
        check_name(target.id, target.span)
        value = None if node.value is None else self.load(node.value)
        marker = name(_MARKERS.get(_head(node.annotation), "@any"), place)
        return ast.AnnAssign(name(target.id, place, STORE), marker, value, 1, **place)

    def _delete(self, node: nodes.Delete) -> list[ast.stmt]:
        return [made for target in node.targets for made in self._delete_one(target)]

    def _delete_one(self, node: nodes.Expression) -> Iterator[ast.stmt]:
        place = self._at(node.span)
        if isinstance(node, nodes.Attribute):
            attribute = ast.Constant(self.scope.mangled(node.attr), **place)
            yield ast.Expr(call("@.del", place, self.load(node.value), attribute), **place)
        elif isinstance(node, nodes.Tuple | nodes.List):
            yield from (made for part in node.elts for made in self._delete_one(part))
        elif isinstance(node, nodes.Subscript):
            owner, key = self.load(node.value), as_value(self.index(node.slice), place)
            yield ast.Expr(call("@remove", place, owner, key), **place)
        else:
            assert isinstance(node, nodes.Name)
            yield ast.Delete([name(node.id, place, DEL)], **place)


def _is_guarded(node: nodes.Expression) -> bool:
    """The assignment needs a guard: to an attribute, or to a slice, which can grow a list."""
    if isinstance(node, nodes.Subscript):
        return isinstance(node.slice, nodes.Slice)
    return isinstance(node, nodes.Attribute)


def _is_settled(node: nodes.Expression) -> bool:
    """Finding the place has no effects, so that it does not matter when it is done."""
    if isinstance(node, nodes.Attribute | nodes.Subscript):
        slices = isinstance(node, nodes.Subscript)
        return isinstance(node.value, nodes.Name) and not slices
    return False


def _head(annotation: nodes.Expression) -> str:
    """`ClassVar` for `typing.ClassVar[int]`."""
    if isinstance(annotation, nodes.Subscript):
        return _head(annotation.value)
    if isinstance(annotation, nodes.Attribute):
        return annotation.attr
    if isinstance(annotation, nodes.Constant) and isinstance(annotation.value, str):
        return annotation.value.partition("[")[0].rpartition(".")[2]
    return annotation.id if isinstance(annotation, nodes.Name) else ""
