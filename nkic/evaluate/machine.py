"""The machine: the state of one evaluation, and the operations that compiled code calls.

A machine is its own budget. `stack` holds the frames of the active calls; the node in each frame is
the current source position.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from nkic.base.evaluation import Limits
from nkic.base.source import NOWHERE, CallChain
from nkic.evaluate import attributes, classes, compare, containers, exceptions, iteration, texts
from nkic.evaluate.budget import CALL_COST, CLASS_COST, Budget, BudgetExhausted
from nkic.evaluate.calls import bind, enter_cells, without_machine
from nkic.evaluate.code import AT, Code, Frame
from nkic.evaluate.errors import KernelError
from nkic.evaluate.objects import (
    INSTANCES,
    UNSET,
    Builtin,
    Class,
    ClassMethod,
    ErrorInstance,
    Function,
    Generator,
    HostFunction,
    Instance,
    Method,
    StaticMethod,
    Super,
)
from nkic.syntax import nodes

Str = str  # `Machine.str` is a method
Hint = Callable[[Any, str], Exception | None]
# Calls a value with all arguments in one list. The middle parameter is the form of the call: the
# number of positional arguments and the names of the keyword arguments.
Vectorcall = Callable[[Any, tuple[int, tuple[Str, ...]], list[Any]], Any]


class TooDeep(KernelError):
    """Calls, or containers, nested beyond the limit."""

    def __init__(self, depth: int) -> None:
        super().__init__(
            "too-deep",
            f"functions call each other, or values nest, to a depth of more than {depth}",
            help="check that the recursion ends, or use a loop",
        )


class Machine(Budget):
    """The state of one evaluation.

    `classes` maps Python types to the classes of kernel values. `vectorcalls` maps the types of
    values that are called without a dictionary of keyword arguments, `items` the types whose items
    are read by a function of owner and key alone. `hints` are functions of the language that may
    replace the error about a missing attribute.
    """

    __slots__ = (
        *("stack", "level", "device_loops", "handling", "closing", "classes", "builtins"),
        *("opaque", "formatting", "callables", "vectorcalls", "hints", "_serials", "_chains"),
        *("items", "_below"),
        *("show", "quiet"),
    )

    def __init__(self, limits: Limits, table: Mapping[type, Class]) -> None:
        super().__init__(limits)
        self.stack: list[Frame] = []
        self.level = 0
        self.device_loops = 0
        self.handling: list[Any] = []
        self.closing = False
        self.classes: dict[type, Class] = dict(table)
        self.opaque = frozenset({Instance, ErrorInstance})
        self.formatting: frozenset[type] = frozenset()
        self.callables: dict[type, Callable[..., Any]] = dict(CALLABLES)
        self.vectorcalls: dict[type, Vectorcall] = {}
        self.items: dict[type, Callable[[Any, Any], Any]] = {}
        self.hints: list[Hint] = []
        self.quiet: tuple[type, ...] = ()
        self.builtins: dict[Str, Any] = {}
        self.show: Callable[[Str], None] = lambda text: None
        self._serials = 0
        self._chains: dict[tuple[int, int], tuple[CallChain, Any]] = {}
        # A frame that was on top, and the call chain of the frames below it, which does not change.
        self._below: tuple[Frame | None, CallChain | None] = (None, None)

    # ---- source position -------------------------------------------------------------------

    def serial(self) -> int:
        """Return the number of a new object: its hash, and its rank in the order of creation."""
        self._serials += 1
        return self._serials

    def here(self) -> CallChain:
        """Return the expression being evaluated, with the calls that led to it."""
        if not self.stack:
            return CallChain(NOWHERE)
        top = self.stack[-1]
        frame, below = self._below
        if frame is not top:
            below = None
            for frame in self.stack[:-1]:
                below = self._chain(frame[AT], below)
            self._below = (top, below)
        return self._chain(top[AT], below)

    def _chain(self, node: nodes.Node, below: CallChain | None) -> CallChain:
        key = (id(node), id(below))
        entry = self._chains.get(key)
        if entry is None:
            entry = self._chains[key] = (CallChain(node.span, below), node)
        return entry[0]

    def push_resumed(self, frame: Frame) -> None:
        """Push the frame of a generator that resumes, possibly under another caller than before."""
        self._below = (None, None)
        self.stack.append(frame)

    def deepen(self) -> None:
        """Add one level of depth, which the caller takes off again; raise if there are too many."""
        self.level += 1
        if self.level > self.limits.depth:
            self.level -= 1
            raise TooDeep(self.limits.depth)

    def note(self, error: BaseException) -> None:
        """Attach the active frames to an exception, the first time that it is seen."""
        if not hasattr(error, "nkic_frames"):
            frames = [(frame, frame[AT]) for frame in reversed(self.stack)]
            error.nkic_frames = frames  # type: ignore[attr-defined]

    # ---- calls -----------------------------------------------------------------------------

    def call(self, function: Any, args: Sequence[Any], named: Mapping[Str, Any] | None) -> Any:
        """Return `function(*args, **named)` for any callable value."""
        kind = function.__class__
        if kind is Function:
            return self.invoke(function, args, named)
        caller = self.callables.get(kind)
        if caller is not None:
            return caller(self, function, args, named or {})
        if kind in INSTANCES:
            method = function.cls.find("__call__")
            if method is not UNSET:
                return self.call(method, (function, *args), named)
        raise TypeError(f"'{self.class_of(function).name}' object is not callable")

    def invoke(
        self, function: Function, args: Sequence[Any], named: Mapping[Str, Any] | None
    ) -> Any:
        """Call a function of the kernel's source."""
        code = function.code
        if not named and len(args) == code.simple_arity:
            frame: Frame = [self, code.node, function, *args, *code.unset_locals]
        else:
            frame = bind(self, function, args, named)
        if not code.is_plain_entry:
            enter_cells(code, frame, function.cells)
        if code.is_generator:
            self.allocate(400)
            return Generator(function, frame, code.run(frame))
        left = self.run(code, frame)
        return None if left is None else left[0]

    def run(self, code: Code, frame: Frame) -> Any:
        """Run code on a frame of its own."""
        level = self.level + 1
        if level > self.limits.depth:
            raise TooDeep(self.limits.depth)
        self.level = level
        self.left -= code.cost
        stack = self.stack
        stack.append(frame)
        try:
            if self.left < 0:
                raise BudgetExhausted(self.limits)
            return code.run(frame)
        except BaseException as error:
            if not hasattr(error, "nkic_frames"):
                self.note(error)
            raise
        finally:
            stack.pop()
            self.level = level - 1

    def resume(self, generator: Generator, value: Any, method: Str = "send") -> Any:
        """Resume a generator until its next value; raise `StopIteration` when it ends."""
        if generator.running:
            raise ValueError("generator already executing")
        self.deepen()
        self.charge(CALL_COST)
        generator.running = True
        self.push_resumed(generator.frame)
        try:
            return getattr(generator.values, method)(value)
        except StopIteration as stop:
            left = stop.value
            value = left[0] if left.__class__ is tuple else None
            raise (StopIteration() if value is None else StopIteration(value)) from None
        except BaseException as error:
            self.note(error)
            raise
        finally:
            self.stack.pop()
            self.level -= 1
            generator.running = False

    def delegate(self, value: Any) -> Any:
        """`yield from value`: yield its values, and return its return value."""
        return iteration.delegate(self, value)

    def super_of(self, cls: Class, owner: Any) -> Super:
        """Return `super()` in a method of `cls`."""
        start = owner if owner.__class__ is Class and owner.is_a(cls) else self.class_of(owner)
        if not start.is_a(cls):
            raise TypeError("super(type, obj): obj must be an instance or subtype of type")
        return Super(cls, start, owner)

    def callee_name(self, node: nodes.Call) -> Str:
        """Return the name of the called function, for messages."""
        func = node.func
        if isinstance(func, nodes.Attribute):
            return func.attr
        return func.id if isinstance(func, nodes.Name) else "function"

    # ---- values ----------------------------------------------------------------------------

    def class_of(self, value: Any) -> Class:
        """Return `type(value)`."""
        kind = value.__class__
        if kind in INSTANCES:
            cls: Class = value.cls
            return cls
        registered = self.classes.get(kind)
        return registered if registered is not None else classes.unknown(self, kind)

    def truth(self, value: Any) -> bool:
        """Return `bool(value)`."""
        if value.__class__ in INSTANCES:
            return classes.truth(self, value)
        return bool(value)

    def identical(self, left: Any, right: Any) -> bool:
        """Return `left is right`."""
        return left is right

    def repr(self, value: Any) -> Str:
        """Return `repr(value)`."""
        return texts.representation(self, value)

    def str(self, value: Any) -> Str:
        """Return `str(value)`."""
        return texts.text(self, value)

    def format(self, value: Any, spec: Any = "") -> Str:
        """Return `format(value, spec)`."""
        return texts.formatted(self, value, spec)

    def shown(self, value: Any) -> Str | None:
        """Return the text of a class, union or bound method; None for other values."""
        return classes.shown(self, value)

    def hash(self, value: Any) -> int:
        """Return the hash of a kernel object for Python's containers."""
        return compare.hash_instance(self, value)

    def compare_by_method(self, name: Str, left: Any, right: Any) -> Any:
        """Return the result of the comparison method `name` of `left`'s class."""
        return compare.compare_by_method(self, name, left, right)

    def equal(self, left: Any, right: Any) -> bool:
        """Return `left is right or left == right`."""
        return compare.equal(self, left, right)

    def less(self, left: Any, right: Any) -> bool:
        """Return `left < right` as a truth value."""
        return bool(self.truth(compare.compare(self, "<", left, right)))

    def contains(self, container: Any, item: Any) -> bool:
        """Return `item in container`."""
        return compare.contains(self, container, item)

    def check_key(self, key: Any, size: int) -> None:
        """Spend steps on looking up a key among `size` others."""
        compare.check_key(self, key, size)

    def index(self, value: Any) -> int:
        """Return `operator.index(value)`."""
        return classes.index(self, value)

    def special(self, value: Any, name: Str) -> Any:
        """Return the result of calling the special method `name` of an object."""
        return classes.special(self, value, name)

    def length(self, value: Any) -> int:
        """Return `len(value)`."""
        return classes.length(self, value)

    def isinstance(self, value: Any, kinds: Any) -> bool:
        """Return `isinstance(value, kinds)`."""
        return classes.is_instance(self, value, kinds)

    def is_class(self, value: Any) -> bool:
        """Whether the value may be used in `isinstance` and in a class pattern."""
        return classes.is_class(value)

    def form(self, name: Str) -> Any:
        """Return a placeholder for a name that only annotations use."""
        return classes.form(name)

    def attribute(self, owner: Any, name: Str) -> Any:
        """Return `owner.name`."""
        return attributes.get(self, owner, name)

    def hint(self, owner: Any, name: Str) -> Exception | None:
        """Return the language's own error about a missing attribute, or None."""
        return next((error for word_hint in self.hints if (error := word_hint(owner, name))), None)

    def is_quiet(self, value: Any) -> bool:
        """Whether messages omit such values: types and buffers of tensors."""
        return isinstance(value, self.quiet)

    def module_name(self, value: Any) -> Str:
        """Return the name of a module, or "" for other values."""
        return classes.module_name(value)

    # ---- classes ---------------------------------------------------------------------------

    def make_class(
        self,
        code: Code,
        runtime: Any,
        bases: list[Any],
        options: dict[Str, Any],
        cells: list[list[Any]],
    ) -> Class:
        """Run a class body and create the class."""
        return classes.make(self, code, runtime, bases, options, cells)

    def finished_class(self, cls: Any) -> Any:
        """Return the class after its decorators ran. Called for every class."""
        return classes.finished(self, cls)

    # ---- containers ------------------------------------------------------------------------

    def item(self, owner: Any, key: Any) -> Any:
        """Return `owner[key]`."""
        return containers.item(self, owner, key)

    def put_item(self, owner: Any, key: Any, value: Any) -> None:
        """Execute `owner[key] = value`."""
        containers.put(self, owner, key, value)

    def remove_item(self, owner: Any, key: Any) -> None:
        """Execute `del owner[key]`."""
        containers.remove(self, owner, key)

    def extend_list(self, owner: list[Any], values: Any) -> list[Any]:
        """Execute `owner += values` for a list, and return it."""
        return containers.extend_list(self, owner, values)

    def make_set(self, values: Iterable[Any]) -> Any:
        """Return a set of the values."""
        return containers.make_set(self, values)

    def merge(self, target: dict[Any, Any], source: Any) -> None:
        """Merge `source` into `target`, as `{**target, **source}` does."""
        containers.merge(self, target, source)

    def set_operation(self, function: Any, left: Any, right: Any) -> Any:
        """Apply an operator of sets and dicts."""
        return containers.set_operation(self, function, left, right)

    def keyword_mapping(self, value: Any) -> dict[Str, Any]:
        """Return the operand of `**` in a call as a dict."""
        return containers.keyword_mapping(self, value)

    def iterate(self, value: Any, where: Str = "") -> Iterable[Any]:
        """Return an iterable over the value that Python's `for` accepts."""
        return iteration.iterate(self, value, where)

    def iterate_each(self, value: Any) -> Iterable[Any]:
        """Like `iterate`, for a comprehension, which cannot run on the device."""
        return iteration.iterate_each(self, value)

    def unpack(self, value: Any, count: int) -> Sequence[Any]:
        """Return the `count` values of `a, b = value`."""
        return iteration.unpack(self, value, count)

    def unpack_starred(self, value: Any, before: int, after: int) -> list[Any]:
        """Return the values of `a, *b, c = value`."""
        return iteration.unpack_starred(self, value, before, after)

    def is_sequence(self, value: Any) -> bool:
        """Whether the value matches a sequence pattern."""
        return classes.is_sequence(value)

    def to_list(self, value: Any) -> list[Any]:
        """Return the elements of a value as a list."""
        return containers.to_list(self, value)

    # ---- exceptions ------------------------------------------------------------------------

    def exception_of(self, value: Any, cause: Any) -> BaseException:
        """Return the exception of `raise value from cause`."""
        return exceptions.exception_of(self, value, cause)

    def assertion(self, args: tuple[Any, ...]) -> ErrorInstance:
        """Return the exception of a failing `assert`."""
        return exceptions.make(self, "AssertionError", args)

    def is_fatal(self, error: BaseException) -> bool:
        """Whether no kernel code can catch the exception."""
        return exceptions.is_fatal(error)

    def is_attribute_error(self, error: BaseException) -> bool:
        """Whether the exception reports a missing attribute."""
        return exceptions.is_a(self, error, "AttributeError")

    def handler_for(self, f: Frame, error: Exception, handlers: Any, before: Any) -> Any:
        """Return the handler that catches an exception, and the exception as a kernel object."""
        return exceptions.handler_for(self, f, error, handlers, before)

    @contextmanager
    def handling_of(self, error: Exception) -> Iterator[None]:
        """Set the exception that a bare `raise` re-raises while a `finally` block runs."""
        self.handling.append(exceptions.kernel_exception(self, error))
        try:
            yield
        finally:
            self.handling.pop()

    def enter_context(self, manager: Any) -> tuple[Any, Any]:
        """Enter a context manager. Return the value for `as`, and the function that leaves it."""
        return exceptions.enter_context(self, manager)

    def suppresses(self, leave: Any, error: Exception, f: Frame, node: nodes.Node) -> bool:
        """Leave a `with` block by an exception; return whether the manager suppresses it."""
        return exceptions.suppresses(self, leave, error, f, node)


# ---- callable values ----------------------------------------------------------------------------


def _builtin(m: Machine, function: Builtin, args: Sequence[Any], named: Mapping[Str, Any]) -> Any:
    m.left -= 8
    if m.left < 0:
        raise BudgetExhausted(m.limits)
    try:
        return function.call(m, *args, **named)
    except TypeError as error:
        raise without_machine(error) from None


def _host(m: Machine, function: HostFunction, args: Sequence[Any], named: Mapping[Str, Any]) -> Any:
    return function.call(*args, **named)


def _method(m: Machine, method: Method, args: Sequence[Any], named: Mapping[Str, Any]) -> Any:
    function = method.function
    if function.__class__ is Function:
        return m.invoke(function, (method.owner, *args), named)
    return m.call(function, (method.owner, *args), named)


def _class(m: Machine, cls: Class, args: Sequence[Any], named: Mapping[Str, Any]) -> Any:
    m.left -= CLASS_COST
    return cls.make(m, cls, *args, **named)


def _wrapped(m: Machine, wrapper: Any, args: Sequence[Any], named: Mapping[Str, Any]) -> Any:
    m.deepen()
    try:
        return m.call(wrapper.function, args, named)
    finally:
        m.level -= 1


CALLABLES: dict[type, Callable[..., Any]] = {
    Builtin: _builtin,
    HostFunction: _host,
    Method: _method,
    Class: _class,
    StaticMethod: _wrapped,
    ClassMethod: _wrapped,
}
