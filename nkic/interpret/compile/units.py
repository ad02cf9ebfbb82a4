"""Units and their variables: the mapping from names to frame slots.

A unit has a frame of its own: a function, a lambda, a generator expression, a class body or a
module-level statement. A comprehension keeps its own variables in the enclosing frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from nkic.base.source import SHIPPED, SourceFile, Span
from nkic.interpret.classes import without_machine
from nkic.interpret.objects import (
    AT,
    FIRST,
    FUNCTION,
    MACHINE,
    UNSET,
    Builtin,
    Evaluate,
    Frame,
    Function,
    Refused,
)
from nkic.source import bindings, nodes, scopes


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
        self.size += 1
        return self.size - 1

    @property
    def in_class_body(self) -> bool:
        """Whether names are those of the class's namespace, not variables."""
        return self.kind == "class" and self.scope is self.outermost_scope

    @property
    def qualname(self) -> str:
        """The name, qualified by the names of the enclosing units."""
        if self.parent is None or self.parent.kind == "module" or not self.parent.name:
            return self.name
        between = "." if self.parent.kind == "class" else ".<locals>."
        return f"{self.parent.qualname}{between}{self.name}"

    def find(self, name: str) -> Variable | None:
        scope: Names | None = self.scope
        while scope is not None and scope.unit is self:
            if name in scope.globals:
                return GLOBAL
            if name in scope.variables:
                return scope.variables[name]
            if self.kind == "class" and scope is self.outermost_scope:
                break
            scope = scope.parent
        slot = self._from_outside(name)
        return GLOBAL if slot is None else Variable(slot, True)

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
        return self._from_outside(name)

    def _from_outside(self, name: str) -> int | None:
        """Return the slot for the cell of an outer unit that holds a name, if one does."""
        if name not in self.free and self.parent is not None:
            outer_slot = self.parent.captured(name)
            if outer_slot is not None:
                self.free[name] = self.slot()
                self.outer_slots.append(outer_slot)
        return self.free.get(name)

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
    may = name in bindings.ASSIGNABLE or bindings.may_define(name) or span.path.startswith(SHIPPED)
    if bindings.is_special(name) and not may:
        raise hidden(name, span)


def hidden(name: str, span: Span) -> Refused:
    """Return the error about a name that kernels cannot reach."""
    text = f"`{name}` is not accessible to kernel code"
    return Refused("hidden-attribute", text, span, bindings.instead_of(name))


# ---- Closures that do not depend on the unit: calls, module names, tuples -----------------------

BUILTIN_COST = 8  # steps of calling a builtin function
Run = Callable[[Frame], Any]


def unset(name: str) -> UnboundLocalError:
    """Return the error about a variable without a value."""
    error = UnboundLocalError(
        f"cannot access local variable '{name}' where it is not associated with a value"
    )
    error.name = name
    return error


def refusing_complex(node: nodes.Constant) -> Evaluate:
    def refuse(f: Frame) -> Any:
        text = "complex numbers cannot be used in kernel code"
        help = "keep the real and imaginary parts in two tensors"
        raise Refused("not-in-nki", text, node.span, help)

    return refuse


def nothing(f: Frame) -> None:
    return None


def load_global(name: str, node: nodes.Node) -> Evaluate:
    def load(f: Frame) -> Any:
        value = f[FUNCTION].globals.get(name, UNSET)
        if value is UNSET:
            f[AT] = node
            return f[FUNCTION].runtime.lookup(name)
        return value

    return load


def assign_local(slot: int, value: Evaluate) -> Run:
    """Return the closure that assigns a variable without a cell."""

    def run(f: Frame) -> None:
        f[slot] = value(f)

    return run


def in_order(parts: tuple[Run, ...]) -> Run:
    """Return the closure of statements that do not leave their block."""

    def run(f: Frame) -> None:
        for part in parts:
            part(f)

    return run


def tuple_of(parts: tuple[Evaluate, ...]) -> Evaluate:
    """Return a closure that builds a tuple; the most common lengths need no loop."""
    if not parts:
        return lambda f: ()
    if len(parts) == 1:
        (only,) = parts
        return lambda f: (only(f),)
    if len(parts) == 2:
        first_part, second_part = parts
        return lambda f: (first_part(f), second_part(f))
    if len(parts) == 3:
        first, second, third = parts
        return lambda f: (first(f), second(f), third(f))
    if len(parts) == 4:
        a, b, c, d = parts
        return lambda f: (a(f), b(f), c(f), d(f))
    return lambda f: tuple([part(f) for part in parts])


def dict_of(names: tuple[str, ...], parts: tuple[Evaluate, ...]) -> Evaluate:
    """Return a closure that builds a dict, where the last value of a repeated name counts."""
    pairs = tuple(zip(names, parts, strict=True))
    return lambda f: {name: value(f) for name, value in pairs}


class CallArguments(NamedTuple):
    """The arguments of a call: the positional ones as a tuple, the keyword arguments as a dict.

    If none is starred, `values` returns all of them in one tuple, and `form` holds the number of
    positional arguments and the names of the keyword arguments.
    """

    positional: Evaluate
    keywords: Evaluate | None
    values: Evaluate | None = None
    form: tuple[int, tuple[str, ...]] = (0, ())


def plain_call(
    node: nodes.Call, func: Evaluate, positional: Evaluate, keywords: Evaluate | None
) -> Evaluate:
    if keywords is None:

        def run(f: Frame) -> Any:
            function, args = func(f), positional(f)
            f[AT] = node
            m = f[MACHINE]
            if function.__class__ is Function:
                return m.invoke(function, args, None)
            if function.__class__ is Builtin:
                m.left -= BUILTIN_COST
                try:
                    return function.call(m, *args)
                except TypeError as error:
                    raise without_machine(error) from None
            return m.call(function, args, None)

        return run

    def run_named(f: Frame) -> Any:
        function, args, named = func(f), positional(f), keywords(f)
        f[AT] = node
        return f[MACHINE].call(function, args, named)

    return run_named
