"""Units and their variables: the mapping from names to frame slots.

A unit has a frame of its own: a function, a lambda, a generator expression, a class body or a
module-level statement. A comprehension keeps its own variables in the enclosing frame.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from nkic.base.source import SHIPPED, SourceFile, Span
from nkic.evaluate.code import FIRST
from nkic.evaluate.errors import Refused
from nkic.syntax import names, nodes, scopes


class Variable(NamedTuple):
    """The location of a variable: its slot, or -1 for module names, and whether it uses a cell."""

    slot: int
    boxed: bool


GLOBAL = Variable(-1, False)


class Names:
    """The names of one scope: a unit's own, or those of a comprehension in it."""

    def __init__(self, unit: Unit, parent: Names | None, node: nodes.Node | None) -> None:
        self.unit = unit
        self.parent = parent
        self.variables: dict[str, Variable] = {}
        self.globals: frozenset[str] = frozenset()
        self.nonlocals: frozenset[str] = frozenset()
        self.unbound: frozenset[str] = frozenset()
        if isinstance(node, scopes.Scope):
            declared = scopes.declared(node)
            self.globals, self.nonlocals = declared.globals, declared.nonlocals
            self.unbound = declared.unbound

    def declare(self, bound: Iterable[str], captured: frozenset[str]) -> None:
        """Assign a slot to every name."""
        for name in bound:
            self.variables[name] = Variable(self.unit.slot(), name in captured)


class Unit:
    """One frame under compilation."""

    def __init__(
        self, source: SourceFile, parent: Unit | None, node: nodes.Node | None, kind: str, name: str
    ) -> None:
        self.source = source
        self.parent = parent
        self.kind = kind  # "function", "class", "generator" or "module"
        self.name = name
        self.node = node
        self.size = FIRST
        self.cost = 0
        self.depth = 0
        self.soft_imports = 0
        self.is_generator = False
        self.class_name: str = parent.class_name if parent is not None else ""
        self.assigned: set[int] = set()  # the slots that have a value wherever code is compiled now
        self.free: dict[str, int] = {}  # the slots of cells from the enclosing units
        self.outer_slots: list[int] = []  # the parent's slots of the same cells
        self.outermost_scope = Names(self, parent.scope if parent is not None else None, node)
        self.scope: Names = self.outermost_scope

    def slot(self) -> int:
        """Allocate a slot of the frame."""
        self.size += 1
        return self.size - 1

    @property
    def qualname(self) -> str:
        """The name, qualified by the names of the enclosing units."""
        if self.parent is None or self.parent.kind == "module" or not self.parent.name:
            return self.name
        between = "." if self.parent.kind == "class" else ".<locals>."
        return f"{self.parent.qualname}{between}{self.name}"

    def find(self, name: str) -> Variable | None:
        """Return the location of a name."""
        scope: Names | None = self.scope
        while scope is not None and scope.unit is self:
            if name in scope.globals:
                return GLOBAL
            if name in scope.variables:
                return scope.variables[name]
            if self.kind == "class" and scope is self.outermost_scope:
                break
            scope = scope.parent
        if name in self.free:
            return Variable(self.free[name], True)
        if self.parent is None:
            return GLOBAL
        outer_slot = self.parent.captured(name)
        if outer_slot is None:
            return GLOBAL
        self.free[name] = self.slot()
        self.outer_slots.append(outer_slot)
        return Variable(self.free[name], True)

    def captured(self, name: str) -> int | None:
        """Return the slot of the cell that holds a name, for an inner unit."""
        scope: Names | None = self.scope
        while scope is not None and scope.unit is self:
            in_class = self.kind == "class" and scope is self.outermost_scope
            if name in scope.globals and not in_class:
                return None
            if name in scope.variables and (not in_class or name == "__class__"):
                return scope.variables[name].slot
            scope = scope.parent
        if name in self.free:
            return self.free[name]
        if self.parent is None:
            return None
        outer_slot = self.parent.captured(name)
        if outer_slot is None:
            return None
        self.free[name] = self.slot()
        self.outer_slots.append(outer_slot)
        return self.free[name]

    def assign(self, target: nodes.Expression) -> None:
        """Note that the code that is compiled from now on runs after an assignment.

        Names in cells, and names that some `del` unbinds, are not noted.
        """
        for name in scopes.target_names(target):
            at = self.find(self.mangled(name)) or GLOBAL
            if at.slot >= 0 and not at.boxed and name not in self.outermost_scope.unbound:
                self.assigned.add(at.slot)

    def mangled(self, name: str) -> str:
        """Return the name that Python mangles `__name` to inside a class."""
        if not name.startswith("__") or name.endswith("__") or not self.class_name:
            return name
        return f"_{self.class_name.lstrip('_')}{name}"


def captured_names(scope: nodes.Node, bound: Iterable[str]) -> frozenset[str]:
    """Return the names in `bound` that an inner function uses, and that therefore need cells."""
    candidates = frozenset(bound)
    captured: set[str] = set()
    waiting: list[nodes.Node] = [*scopes.inside(scope)]  # type: ignore[arg-type]
    for node in scopes.nodes_in_scope(waiting):
        if isinstance(node, nodes.ListComp | nodes.SetComp | nodes.DictComp):
            hidden = scopes.bound(node)
            captured |= captured_names(node, candidates - hidden)
        elif scopes.is_scope(node):
            captured.update(use.id for use in scopes.free_names_of(node) if use.id in candidates)
            captured |= {n for n in scopes.nonlocals_inside(node) if n in candidates}
    return frozenset(captured)


def check_name(name: str, span: Span) -> None:
    """Raise `Refused` for special names, which belong to Python itself, outside nkic's source."""
    may = name in names.ASSIGNABLE or names.may_define(name) or span.path.startswith(SHIPPED)
    if names.is_special(name) and not may:
        raise hidden(name, span)


def hidden(name: str, span: Span) -> Refused:
    """Return the error about a name that kernels cannot reach."""
    text = f"`{name}` is not accessible to kernel code"
    return Refused("hidden-attribute", text, span, names.instead_of(name))
