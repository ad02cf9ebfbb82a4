"""Compile assignment, `del` and augmented assignment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from nkic.base.device import DeviceCondition, DeviceRange, KernelError, TracedOnce, left_by
from nkic.interpret import attributes
from nkic.interpret.budget import BudgetExhausted
from nkic.interpret.compile import expressions
from nkic.interpret.compile.expressions import NAMESPACE, Expressions
from nkic.interpret.compile.units import GLOBAL, Names, captured_names, check_name, hidden, unset
from nkic.interpret.exceptions import is_fatal
from nkic.interpret.objects import (
    AT,
    BREAK,
    CONTINUE,
    FUNCTION,
    MACHINE,
    UNSET,
    Evaluate,
    Frame,
    Refused,
)
from nkic.interpret.operators import SMALL, in_place
from nkic.interpret.texts import converted, formatted
from nkic.source import bindings, nodes, scopes

# ---- Compile displays and f-strings to closures -------------------------------------------------

_BYTES_PER_ELEMENT = 2  # steps for the eight bytes of an element
_DISPLAY = 14  # steps for the bytes of an empty list or tuple


class Displays(Expressions):
    def tuple(self, node: nodes.Tuple) -> Evaluate:
        self.unit.cost += _DISPLAY + _BYTES_PER_ELEMENT * len(node.elts)
        if any(isinstance(element, nodes.Starred) for element in node.elts):
            parts = self.sequence(node.elts)
            return lambda f: tuple(parts(f))
        return self.together(node.elts, self.expressions(node.elts))

    def list(self, node: nodes.List) -> Evaluate:
        self.unit.cost += _DISPLAY + _BYTES_PER_ELEMENT * len(node.elts)
        if any(isinstance(element, nodes.Starred) for element in node.elts):
            return self.sequence(node.elts)
        parts = self.expressions(node.elts)
        return lambda f: [part(f) for part in parts]

    def set(self, node: nodes.Set) -> Evaluate:
        parts = self.sequence(node.elts)

        def make(f: Frame) -> Any:
            values = parts(f)
            f[AT] = node
            return f[MACHINE].make_set(values)

        return make

    def dict(self, node: nodes.Dict) -> Evaluate:
        self.unit.cost += 25 * len(node.values)
        parts = [
            (None if key is None else self.expression(key), self.expression(value))
            for key, value in zip(node.keys, node.values, strict=True)
        ]

        def make(f: Frame) -> dict[Any, Any]:
            entries: dict[Any, Any] = {}
            for key, value in parts:
                if key is None:
                    mapping = value(f)
                    f[AT] = node
                    f[MACHINE].merge(entries, mapping)
                    continue
                name = key(f)
                content = value(f)
                if name.__class__ is not str:
                    f[AT] = node
                    f[MACHINE].check_key(name, len(entries))
                entries[name] = content
            return entries

        return make

    def fstring(self, node: nodes.JoinedStr) -> Evaluate:
        parts = [self._part(part) for part in node.values]

        def make(f: Frame) -> str:
            texts = [part(f) for part in parts]
            f[AT] = node
            size = sum(map(len, texts))
            f[MACHINE].text(size)
            return "".join(texts)

        return make

    def _part(self, node: nodes.Constant | nodes.FormattedValue) -> Evaluate:
        return self.constant(node) if isinstance(node, nodes.Constant) else self.fstring_field(node)

    def fstring_field(self, node: nodes.FormattedValue) -> Evaluate:
        value, conversion = self.expression(node.value), node.conversion
        spec = None if node.format_spec is None else self.fstring(node.format_spec)

        def make(f: Frame) -> str:
            shown = value(f)
            if spec is None and not conversion:
                if shown.__class__ is str:
                    return shown
                f[AT] = node.value
                return formatted(f[MACHINE], shown, "")
            form = "" if spec is None else spec(f)
            f[AT] = node.value
            return converted(f[MACHINE], shown, conversion, form)

        return make


expressions._COMPILERS |= {
    nodes.Tuple: Displays.tuple,
    nodes.List: Displays.list,
    nodes.Set: Displays.set,
    nodes.Dict: Displays.dict,
    nodes.JoinedStr: Displays.fstring,
    nodes.FormattedValue: Displays.fstring_field,
}


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
        unit, scope = self.unit, self.unit.outermost_scope
        if unit.in_class_body and name not in scope.globals and name not in scope.nonlocals:
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
        if bindings.is_hidden(name):
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
        unit = self.unit
        if unit.in_class_body:

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


# ------------------------------------------------------------------------------------------------
# Compile comprehensions, which run in the enclosing frame, and the clauses of generators.

Emit = Callable[[Frame, Any], None]  # adds one element to the result


class Comprehensions(Targets):
    @contextmanager
    def _scope(self, node: scopes.Comprehension) -> Iterator[tuple[int, ...]]:
        """Open the comprehension's scope; yield the slots that need a new cell at every run."""
        unit = self.unit
        bound = scopes.bound(node)
        names = Names(unit, unit.scope, node)
        names.declare(sorted(bound), captured_names(node, bound))
        unit.scope, before = names, unit.scope
        yield tuple(at.slot for at in names.variables.values() if at.boxed)
        unit.scope = before

    def _clauses(
        self, node: scopes.Comprehension, first: Evaluate, parts: tuple[nodes.Expression, ...]
    ) -> tuple[list[Any], tuple[Evaluate, ...], int]:
        """Return a comprehension's loops, the closures of `parts`, and the cost per iteration."""
        unit = self.unit
        outer, unit.cost = unit.cost, 2
        loops = []
        for number, clause in enumerate(node.generators):
            if clause.is_async:
                raise Refused("not-in-nki", "`async` cannot be used in kernel code", clause.span)
            values = first if number == 0 else self.expression(clause.iter)
            store = self.store(clause.target)
            unit.assign(clause.target)
            tests = tuple(self.test(self.expression(test), test) for test in clause.ifs)
            loops.append((values, store, tests, clause.iter))
        parts_of_element = self.expressions(parts)
        cost, unit.cost = unit.cost, outer + 1
        return loops, parts_of_element, cost

    def list_comprehension(self, node: nodes.ListComp) -> Evaluate:
        first = self.expression(node.generators[0].iter)
        with self._scope(node) as cells:
            loops, (elt,), cost = self._clauses(node, first, (node.elt,))

        def emit(f: Frame, elements: list[Any]) -> None:
            elements.append(elt(f))
            if len(elements) > f[MACHINE].limits.length:
                f[AT] = node
                f[MACHINE].allow_length(len(elements), "the list")

        return _filling(list, _nested(loops, emit, cost + 4), cells)

    def set_comprehension(self, node: nodes.SetComp) -> Evaluate:
        values = self.list_comprehension(nodes.ListComp(node.span, node.elt, node.generators))

        def make(f: Frame) -> Any:
            elements = values(f)
            f[AT] = node
            return f[MACHINE].make_set(elements)

        return make

    def dict_comprehension(self, node: nodes.DictComp) -> Evaluate:
        first = self.expression(node.generators[0].iter)
        with self._scope(node) as cells:
            loops, (key, value), cost = self._clauses(node, first, (node.key, node.value))

        def emit(f: Frame, entries: dict[Any, Any]) -> None:
            name, content = key(f), value(f)
            f[AT] = node
            f[MACHINE].put_item(entries, name, content)

        return _filling(dict, _nested(loops, emit, cost + 4), cells)


def _filling(kind: type, run: Emit, cells: tuple[int, ...]) -> Evaluate:
    """Return a closure that creates a container of the type and lets `run` fill it."""

    def make(f: Frame) -> Any:
        for slot in cells:
            f[slot] = [UNSET]
        elements = kind()
        run(f, elements)
        return elements

    return make


def _nested(loops: list[Any], emit: Emit, cost: int) -> Emit:
    run = emit
    for values, store, tests, node in reversed(loops):
        run = _loop(values, store, tests, run, cost, node)
    return run


def _loop(
    values: Evaluate, store: Emit, tests: Any, inner: Emit, cost: int, node: nodes.Node
) -> Emit:
    def run(f: Frame, result: Any) -> None:
        m = f[MACHINE]
        each = values(f)
        f[AT] = node
        for value in m.iterate_each(each):
            m.left -= cost
            if m.left < 0:
                raise BudgetExhausted(m.limits)
            store(f, value)
            for test in tests:
                if not test(f):
                    break
            else:
                inner(f, result)
            f[AT] = node

    return run


# ---- Run-time behaviour of blocks: loops on the device, `try` -----------------------------------

# ---- loops that are traced once -----------------------------------------------------------------

_PLAIN = frozenset({int, float, bool})
Slots = Sequence[tuple[str, int, bool]]


def each_iteration(
    f: Frame, loop: TracedOnce, values: Iterable[Any], slots: Slots
) -> Iterator[Any]:
    """Yield the values of a loop that is traced once.

    Before every iteration but the first, variables that held a number before the loop are reset to
    that number; `slots` lists the variables that the body binds.
    """
    before = [(*slot, _held(f, *slot[1:])) for slot in slots]
    before = [entry for entry in before if entry[3].__class__ in _PLAIN]
    for iteration, value in enumerate(values):
        for name, slot, boxed, old in before if iteration else ():
            if _held(f, slot, boxed) is not old and _held(f, slot, boxed) != old:
                loop.reset(name)
                if boxed:
                    f[slot][0] = old
                else:
                    f[slot] = old
        yield value


def _held(f: Frame, slot: int, boxed: bool) -> Any:
    return f[slot][0] if boxed else f[slot]


# ---- loops on the device ------------------------------------------------------------------------


def device_for(f: Frame, each: DeviceRange, store: Any, body: Run) -> None:
    """Run a loop of the device: its body is evaluated once."""
    m = f[MACHINE]
    m.device_loops += 1
    store(f, each.enter())
    _stay(f, body(f))
    m.device_loops -= 1
    each.leave()


def device_while(f: Frame, condition: DeviceCondition, test: Run, body: Run) -> None:
    """Run `while register:`; the condition must still be a register after the body."""
    m, header = f[MACHINE], f[AT]
    m.device_loops += 1
    condition.enter_while()
    _stay(f, body(f))
    last = test(f)
    f[AT] = header
    if not isinstance(last, DeviceCondition):
        raise KernelError(
            "device-loop-misuse",
            "the condition was a register before the loop, but is not a register after its body",
        )
    m.device_loops -= 1
    last.leave_while()


def _stay(f: Frame, outcome: Any) -> None:
    """Raise for a `break` or `return` out of a loop on the device."""
    if outcome is None or outcome is CONTINUE:
        return
    raise left_by("break" if outcome is BREAK else "return")


# ---- try ----------------------------------------------------------------------------------------


def with_else(body: Run, orelse: Run | None) -> Run:
    if orelse is None:
        return body

    def run(f: Frame) -> Any:
        outcome = body(f)
        return outcome if outcome is not None else orelse(f)

    return run


def try_except(body: Run, handlers: list[Any], orelse: Run | None) -> Run:
    def run(f: Frame) -> Any:
        m = f[MACHINE]
        before = m.device_loops, m.level, len(m.stack)
        try:
            outcome = body(f)
        except Exception as error:
            handler, value = m.handler_for(f, error, handlers, before)
            if handler is None:
                raise
        else:
            return outcome if outcome is not None or orelse is None else orelse(f)
        return handle(f, handler, value)

    return run


def handle(f: Frame, handler: Any, value: Any) -> Any:
    """Run the block of an `except` clause for the exception that it catches."""
    _, store, forget, block, _ = handler
    m = f[MACHINE]
    if store is not None:
        store(f, value)
    m.handling.append(value)
    try:
        return block(f)
    finally:
        m.handling.pop()
        if forget is not None:
            forget(f)


def finally_(body: Run, last: Run) -> Run:
    def run(f: Frame) -> Any:
        m = f[MACHINE]
        try:
            outcome = body(f)
        except Exception as error:
            if is_fatal(error):
                raise
            m.note(error)
            with m.handling_of(error):
                override = last(f)
            if override is not None:
                return override
            raise
        override = last(f)
        return outcome if override is None else override

    return run
