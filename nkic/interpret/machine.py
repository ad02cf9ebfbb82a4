"""The machine: the state of one evaluation, and the operations that compiled code calls.

A machine is its own budget. `stack` holds the frames of the active calls; the node in each frame is
the current source position.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from nkic.base.device import KernelError
from nkic.base.limits import Limits
from nkic.base.source import NOWHERE, CallChain
from nkic.interpret import attributes, classes, compare, containers, exceptions, texts
from nkic.interpret.budget import CALL_COST, CLASS_COST, Budget, BudgetExhausted
from nkic.interpret.classes import bind, enter_cells, without_machine
from nkic.interpret.containers import KernelFrozenSet, KernelSet, unordered
from nkic.interpret.objects import (
    AT,
    FUNCTION,
    INSTANCES,
    UNSET,
    Builtin,
    Class,
    ClassMethod,
    Code,
    DictInstance,
    ErrorInstance,
    Frame,
    Function,
    Generator,
    HostFunction,
    Instance,
    ListInstance,
    Method,
    StaticMethod,
    Super,
    TupleInstance,
)
from nkic.source import nodes

# ---- The border between kernels' values and the language's own functions ------------------------
# Those functions print, hash and compare what they are given with Python's own operations. So
# nothing crosses the border that nests too deep for them, and what crosses is paid for by its
# size, shared parts each time.

NESTED: frozenset[Any] = frozenset(
    {list, tuple, dict, set, frozenset, slice, KernelSet, KernelFrozenSet}
    | {ListInstance, TupleInstance, DictInstance}
)
_LONG = frozenset({str, bytes})
_NEST_STEPS = 24  # steps to look into a container, beside its items
_CHARACTERS = 4  # binary logarithm of the characters of a text that cost a step


def admit(m: Machine, values: Iterable[Any]) -> None:
    """Charge for the size of arguments of the language's functions; refuse nests too deep."""
    for value in values:
        kind = value.__class__
        if kind in NESTED:
            m.nested(_admit_nest, m, value)
        elif kind in _LONG:
            m.charge(len(value) >> _CHARACTERS)


def _admit_nest(m: Machine, value: Any) -> None:
    if isinstance(value, dict):
        m.charge(_NEST_STEPS + 2 * dict.__len__(value))
        admit(m, dict.__iter__(value))
        admit(m, dict.values(value))
    elif isinstance(value, slice):
        admit(m, (value.start, value.stop, value.step))
    else:
        m.charge(_NEST_STEPS + len(value))
        kind: Any = next((kind for kind in (list, tuple) if isinstance(value, kind)), None)
        admit(m, unordered(value) if kind is None else kind.__iter__(value))


def admitting(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function `(m, callee, args, named)` for `Machine.callables` with a border."""

    def caller(m: Machine, function: Any, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        admit(m, args)
        admit(m, named.values())
        return call(m, function, args, named)

    return caller


Str = str  # `Machine.str` is a method
Hint = Callable[[Any, str], Exception | None]
# The form of a call: the number of positional arguments and the names of the keyword arguments.
Form = tuple[int, tuple[Str, ...]]
_RANK_STEPS = 25  # steps for remembering the rank of an object
_NUMBERED: frozenset[type] = INSTANCES | {Class, Function}  # objects with a serial number
# Returns the function that calls a value with all arguments of the form in one sequence.
Vectorcall = Callable[[Any, Form], Callable[[Sequence[Any]], Any]]


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
    replace the error about a missing attribute. `refused` are the types of the results of calls
    that were refused, about which no second error is reported.
    """

    __slots__ = (
        *("stack", "level", "device_loops", "handling", "closing", "classes", "builtins"),
        *("opaque", "formatting", "callables", "vectorcalls", "hints", "items"),
        *("_serials", "_ranks", "_chains", "_nodes", "_top", "_user", "_places", "_below"),
        *("show", "quiet", "refused", "writing", "runs_library"),
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
        self.refused: tuple[type, ...] = ()
        self.builtins: dict[Str, Any] = {}
        self.show: Callable[[Str], None] = lambda text: None
        self.runs_library = False  # whether a frame may be one of the library's source
        # The values that a text is being made of, while the library's own `__repr__` runs.
        self.writing: set[int] | None = None
        self._serials = 0
        # By the id of an object without a serial number, which is kept alive.
        self._ranks: dict[int, tuple[int, Any]] = {}
        # By the id of the caller's chain and that of the node, which `_nodes` keeps alive.
        self._chains: dict[int, dict[int, CallChain]] = {}
        self._nodes: list[nodes.Node] = []
        # A frame that was on top; the innermost that is not the library's, and the chains above
        # those below it, which do not change.
        self._top: Frame | None = None
        self._user: Frame = []
        self._places: dict[int, CallChain] = {}
        self._below: CallChain | None = None

    # ---- source position -------------------------------------------------------------------

    def serial(self) -> int:
        """Return the number of a new object: its hash, and its rank in the order of creation."""
        self._serials += 1
        return self._serials

    def note_rank(self, value: Any) -> None:
        """Give an object without a serial number a rank in the order of a set's elements."""
        if id(value) not in self._ranks and value.__class__ not in _NUMBERED:
            self.charge(_RANK_STEPS)
            self._ranks[id(value)] = self.serial(), value

    def rank(self, value: Any) -> int:
        """Return the serial number of an object, or its rank; 0 for values without either."""
        if value.__class__ is Method:
            return self.rank(value.function) + self.rank(value.owner)
        if value.__class__ in _NUMBERED:
            return int(value.serial)  # type: ignore[attr-defined]
        return self._ranks.get(id(value), (0, None))[0]

    def here(self) -> CallChain:
        """Return the expression being evaluated, with the calls that led to it."""
        if not self.stack:
            return CallChain(NOWHERE)
        top = self.stack[-1]
        if top is not self._top:
            self._enter(top)
        node = self._user[AT]
        chain = self._places.get(id(node))
        return self._chain(node, self._below) if chain is None else chain

    def _enter(self, top: Frame) -> None:
        """Find the call chain of the user's frames below a new top."""
        below = None
        frames = self.users_frames()
        for frame in frames[:-1]:
            below = self._chain(frame[AT], below)
        self._top, self._user, self._below = top, frames[-1], below
        self._places = self._chains.setdefault(id(below), {})

    def users_frames(self) -> list[Frame]:
        """Return the frames of the active calls but those inside the library."""
        if not self.runs_library:
            return self.stack
        return [f for f in self.stack if not f[FUNCTION].runtime.is_library] or self.stack

    def _chain(self, node: nodes.Node, below: CallChain | None) -> CallChain:
        places = self._chains.setdefault(id(below), {})
        chain = places.get(id(node))
        if chain is None:
            chain = places[id(node)] = CallChain(node.span, below)
            self._nodes.append(node)
        return chain

    def push_resumed(self, frame: Frame) -> None:
        """Push the frame of a generator that resumes, possibly under another caller than before."""
        self._top = None
        self.stack.append(frame)

    def deepen(self) -> None:
        """Add one level of depth, which the caller takes off again; raise if there are too many."""
        self.level += 1
        if self.level > self.limits.depth:
            self.level -= 1
            raise TooDeep(self.limits.depth)

    def nested(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return `function(*args)`, called one level deeper."""
        self.deepen()
        try:
            return function(*args)
        finally:
            self.level -= 1

    def note(self, error: BaseException) -> None:
        """Attach the active frames to an exception, the first time that it is seen."""
        if not hasattr(error, "nkic_frames"):
            frames = [(frame, frame[AT]) for frame in reversed(self.users_frames())]
            error.nkic_frames = frames  # type: ignore[attr-defined]

    # ---- calls -----------------------------------------------------------------------------

    def call(self, function: Any, args: Sequence[Any], named: Mapping[Str, Any] | None) -> Any:
        kind = function.__class__
        if kind is Function:
            return self.invoke(function, args, named)
        caller = self.callables.get(kind)
        if caller is None and kind in INSTANCES:
            method = function.cls.find("__call__")
            if method is not UNSET:
                return self.nested(self.call, method, (function, *args), named)
        if caller is not None:
            if self.level >= self.limits.depth:
                raise TooDeep(self.limits.depth)
            self.level += 1  # functions of the interpreter call each other on the C stack
            try:
                return caller(self, function, args, named or {})
            finally:
                self.level -= 1
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

    def super_of(self, cls: Class, owner: Any) -> Super:
        start = owner if owner.__class__ is Class and owner.is_a(cls) else self.class_of(owner)
        if not start.is_a(cls):
            raise TypeError("super(type, obj): obj must be an instance or subtype of type")
        return Super(cls, start, owner)

    # ---- values ----------------------------------------------------------------------------

    def class_of(self, value: Any) -> Class:
        kind = value.__class__
        if kind in INSTANCES:
            cls: Class = value.cls
            return cls
        registered = self.classes.get(kind)
        return registered if registered is not None else classes.unknown(self, kind)

    def truth(self, value: Any) -> bool:
        if value.__class__ in INSTANCES:
            return classes.truth(self, value)
        return bool(value)

    def less(self, left: Any, right: Any) -> bool:
        return bool(self.truth(compare.compare(self, "<", left, right)))

    def hint(self, owner: Any, name: Str) -> Exception | None:
        """Return the language's own error about a missing attribute, or None."""
        return next((error for word_hint in self.hints if (error := word_hint(owner, name))), None)

    def is_quiet(self, value: Any) -> bool:
        """Whether messages omit such values: types and buffers of tensors."""
        return isinstance(value, self.quiet)

    @contextmanager
    def handling_of(self, error: Exception) -> Iterator[None]:
        """Set the exception that a bare `raise` re-raises while a `finally` block runs."""
        self.handling.append(exceptions.kernel_exception(self, error))
        try:
            yield
        finally:
            self.handling.pop()

    # ---- operations defined in other modules -----------------------------------------------
    # Functions of the machine and its operands; as attributes of the class they are methods.

    attribute = attributes.get

    make_class = classes.make
    isinstance = classes.is_instance
    index = classes.index
    length = classes.length
    special = classes.special

    check_key = compare.check_key
    check_keys = compare.check_keys
    compare_by_method = compare.compare_by_method
    contains = compare.contains
    equal = compare.equal
    hash = compare.hash_instance

    item = containers.item
    put_item = containers.put
    remove_item = containers.remove
    extend_list = containers.extend_list
    to_list = containers.to_list
    make_set = containers.make_set
    merge = containers.merge
    set_operation = containers.set_operation
    keyword_mapping = containers.keyword_mapping

    iterate = containers.iterate
    iterate_each = containers.iterate_each
    delegate = containers.delegate
    unpack = containers.unpack
    unpack_starred = containers.unpack_starred

    repr = texts.representation
    str = texts.text
    format = texts.formatted

    exception_of = exceptions.exception_of
    handler_for = exceptions.handler_for
    enter_context = exceptions.enter_context
    suppresses = exceptions.suppresses


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
    return m.call(wrapper.function, args, named)


CALLABLES: dict[type, Callable[..., Any]] = {
    Builtin: _builtin,
    HostFunction: admitting(_host),
    Method: _method,
    Class: _class,
    StaticMethod: _wrapped,
    ClassMethod: _wrapped,
}
