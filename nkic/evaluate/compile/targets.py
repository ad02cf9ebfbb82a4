"""Compile assignment, `del` and augmented assignment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nkic.evaluate import attributes
from nkic.evaluate.code import AT, FUNCTION, MACHINE, Frame
from nkic.evaluate.compile.closures import unset
from nkic.evaluate.compile.displays import Displays
from nkic.evaluate.compile.expressions import NAMESPACE
from nkic.evaluate.compile.units import GLOBAL, check_name, hidden
from nkic.evaluate.errors import Refused
from nkic.evaluate.objects import UNSET
from nkic.evaluate.operators import SMALL, in_place
from nkic.syntax import names, nodes

Store = Callable[[Frame, Any], None]
Run = Callable[[Frame], Any]


class Targets(Displays):
    """The compiler for the assignments of one unit."""

    def store(self, node: nodes.Expression) -> Store:
        """Return the closure that assigns a value to a target."""
        self.unit.cost += 1
        if isinstance(node, nodes.Name):
            return self.store_name(self.unit.mangled(node.id), node)
        if isinstance(node, nodes.Attribute):
            return self._store_attribute(node)
        if isinstance(node, nodes.Subscript):
            return self._store_item(node)
        if isinstance(node, nodes.Tuple | nodes.List):
            return self._store_several(node)
        raise Refused("not-in-nki", "this cannot be assigned to here", node.span)

    def store_name(self, name: str, node: nodes.Node) -> Store:
        """Return the closure that assigns a variable. All statements that bind names use it."""
        check_name(name, node.span)
        unit = self.unit
        in_class = unit.kind == "class" and unit.scope is unit.outermost_scope
        scope = unit.outermost_scope
        if in_class and name not in scope.globals and name not in scope.nonlocals:
            return lambda f, value: f[NAMESPACE].__setitem__(name, value)
        at = unit.find(name) or GLOBAL
        slot = at.slot
        if slot < 0:
            return lambda f, value: f[FUNCTION].globals.__setitem__(name, value)
        if at.boxed:

            def cell(f: Frame, value: Any) -> None:
                f[slot][0] = value

            return cell

        def local(f: Frame, value: Any) -> None:
            f[slot] = value

        return local

    def _store_attribute(self, node: nodes.Attribute) -> Store:
        owner, name = self.expression(node.value), self.unit.mangled(node.attr)
        put = attributes.put

        def store(f: Frame, value: Any) -> None:
            target = owner(f)
            f[AT] = node
            put(f[MACHINE], target, name, value)

        return store

    def _store_item(self, node: nodes.Subscript) -> Store:
        owner, key = self.expression(node.value), self.expression(node.slice)

        def store(f: Frame, value: Any) -> None:
            target, index = owner(f), key(f)
            f[AT] = node
            f[MACHINE].put_item(target, index, value)

        return store

    def _store_several(self, node: nodes.Tuple | nodes.List) -> Store:
        parts = node.elts
        stars = [n for n, target in enumerate(parts) if isinstance(target, nodes.Starred)]
        if len(stars) > 1:
            raise Refused("bad-syntax", "multiple starred expressions in assignment", node.span)
        plain = [target.value if isinstance(target, nodes.Starred) else target for target in parts]
        stores, count = [self.store(target) for target in plain], len(parts)
        if not stars:

            def store(f: Frame, value: Any) -> None:
                if value.__class__ is not tuple or len(value) != count:
                    f[AT] = node
                    value = f[MACHINE].unpack(value, count)
                for store_part, part in zip(stores, value, strict=True):
                    store_part(f, part)

            return store
        before = stars[0]

        def store_starred(f: Frame, value: Any) -> None:
            f[AT] = node
            values = f[MACHINE].unpack_starred(value, before, count - before - 1)
            for store_part, part in zip(stores, values, strict=True):
                store_part(f, part)

        return store_starred

    def walrus(self, node: nodes.NamedExpr) -> Run:
        """Compile `target := value`."""
        value = self.expression(node.value)
        unit, scope = self.unit, self.unit.scope
        while unit.scope is not unit.outermost_scope:  # it binds outside of the comprehension
            unit.scope = unit.scope.parent or unit.outermost_scope
        store = self.store_name(unit.mangled(node.target.id), node)
        unit.scope = scope

        def run(f: Frame) -> Any:
            assigned = value(f)
            store(f, assigned)
            return assigned

        return run

    # ---- augmented assignment --------------------------------------------------------------

    def augmented(self, node: nodes.AugAssign) -> Run:
        """Compile `target op= value`."""
        target = node.target
        if isinstance(target, nodes.Name):
            return self._augmented_name(node, target)
        if isinstance(target, nodes.Attribute):
            return self._augmented_attribute(node, target)
        if isinstance(target, nodes.Subscript):
            return self._augmented_item(node, target)
        raise Refused("bad-syntax", "this cannot be assigned to in place", target.span)

    def _augmented_name(self, node: nodes.AugAssign, target: nodes.Name) -> Run:
        load, store = self.name(target), self.store(target)
        value, symbol = self.expression(node.value), node.op
        adds = symbol == "+"

        def run(f: Frame) -> None:
            old, new = load(f), value(f)
            if adds and old.__class__ is int and new.__class__ is int:
                result = old + new
                if -SMALL < result < SMALL:
                    store(f, result)
                    return
            f[AT] = node
            store(f, in_place(f[MACHINE], symbol, old, new))

        return run

    def _augmented_attribute(self, node: nodes.AugAssign, target: nodes.Attribute) -> Run:
        owner, name = self.expression(target.value), self.unit.mangled(target.attr)
        if names.is_hidden(name):
            raise hidden(name, target.span)
        value, symbol = self.expression(node.value), node.op
        get, put = attributes.get, attributes.put

        def run(f: Frame) -> None:
            m, at = f[MACHINE], owner(f)
            f[AT] = target
            old = get(m, at, name)
            new = value(f)
            f[AT] = node
            put(m, at, name, in_place(m, symbol, old, new))

        return run

    def _augmented_item(self, node: nodes.AugAssign, target: nodes.Subscript) -> Run:
        owner, key = self.expression(target.value), self.expression(target.slice)
        value, symbol = self.expression(node.value), node.op

        def run(f: Frame) -> None:
            m, at, index = f[MACHINE], owner(f), key(f)
            f[AT] = target
            old = m.item(at, index)
            new = value(f)
            f[AT] = node
            m.put_item(at, index, in_place(m, symbol, old, new))

        return run

    # ---- del -------------------------------------------------------------------------------

    def delete(self, node: nodes.Expression) -> Run:
        """Compile `del target`."""
        if isinstance(node, nodes.Tuple | nodes.List):
            parts = [self.delete(target) for target in node.elts]

            def several(f: Frame) -> None:
                for part in parts:
                    part(f)

            return several
        if isinstance(node, nodes.Attribute):
            return self._delete_attribute(node)
        if isinstance(node, nodes.Subscript):
            return self._delete_item(node)
        if isinstance(node, nodes.Name):
            check_name(node.id, node.span)
            return self.delete_name(self.unit.mangled(node.id), node)
        raise Refused("bad-syntax", "this cannot be deleted", node.span)

    def _delete_attribute(self, node: nodes.Attribute) -> Run:
        owner, name = self.expression(node.value), self.unit.mangled(node.attr)

        def run(f: Frame) -> None:
            at = owner(f)
            f[AT] = node
            attributes.remove(f[MACHINE], at, name)

        return run

    def _delete_item(self, node: nodes.Subscript) -> Run:
        owner, key = self.expression(node.value), self.expression(node.slice)

        def run(f: Frame) -> None:
            at, index = owner(f), key(f)
            f[AT] = node
            f[MACHINE].remove_item(at, index)

        return run

    def delete_name(self, name: str, node: nodes.Node) -> Run:
        """Compile `del name`."""
        unit = self.unit
        if unit.kind == "class" and unit.scope is unit.outermost_scope:

            def from_class(f: Frame) -> None:
                f[AT] = node
                if name not in f[NAMESPACE]:
                    raise NameError(f"name '{name}' is not defined", name=name)
                del f[NAMESPACE][name]

            return from_class
        at = unit.find(name) or GLOBAL
        if at.slot < 0:

            def from_module(f: Frame) -> None:
                f[AT] = node
                f[FUNCTION].runtime.lookup(name)
                del f[FUNCTION].globals[name]

            return from_module
        slot, boxed = at

        def run(f: Frame) -> None:
            holder, index = (f[slot], 0) if boxed else (f, slot)
            if holder[index] is UNSET:
                f[AT] = node
                raise unset(name)
            holder[index] = UNSET

        return run
