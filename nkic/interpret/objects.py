"""The representation of the interpreter's values.

Numbers, strings and containers are Python's own. Every other value of a kernel is an object of one
of these classes. A kernel cannot reach their Python attributes: the attributes that a kernel sees
are in the table of the value's class, `Class.members`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from nkic.base.device import KernelError
from nkic.base.source import NOWHERE, SourceFile, Span
from nkic.source import nodes

if TYPE_CHECKING:
    from nkic.interpret.machine import Machine
    from nkic.interpret.modules import Runtime


# ---- Errors that end the evaluation of a kernel -------------------------------------------------


class Refused(KernelError):
    """A construct that kernels do not support, found while source is compiled to closures."""

    def __init__(self, slug: str, message: str, span: Span, help: str = "") -> None:
        super().__init__(slug, message, help=help, span=span)


class ImportFailed(KernelError, ImportError):
    """A failing import of kernel source; `except ImportError` catches it."""

    def __init__(self, message: str, help: str) -> None:
        KernelError.__init__(self, "import-failed", message, help=help)


# ---- Compiled source: closures over a frame, and the data that calls need about them ------------
# A frame is a list: the machine, the node being evaluated, the function, then one slot per
# variable of the unit. A variable that an inner function uses is stored in a cell, a list of one
# element, in its slot. The frame's node is set before every operation that may fail or that may
# ask for the current source position.

Frame = list[Any]
Evaluate = Callable[[Frame], Any]
MACHINE, AT, FUNCTION, FIRST = 0, 1, 2, 3


class Unset:
    """The class of the one value that marks a variable without a value."""

    def __repr__(self) -> str:
        return "<unset>"


UNSET = Unset()

BREAK, CONTINUE = "break", "continue"  # the results of statements that leave their block


_NO_PARAMETERS = nodes.Arguments(NOWHERE)


@dataclass
class Code:
    """One function, lambda, generator expression, class body or module-level statement.

    `run(frame)` returns None if execution falls through, else BREAK, CONTINUE, or a tuple that
    holds the returned value. `simple_arity` is the number of parameters if all are positional, else
    -1. `unset_locals` are the initial values of the slots after the parameters. `cell_parameters`
    lists the slots of parameters stored in cells, `cell_locals` those of other variables with
    cells; the cells of the enclosing functions go to the slots in `free`.
    """

    name: str
    qualname: str
    node: nodes.Node
    source: SourceFile
    args: nodes.Arguments = _NO_PARAMETERS
    run: Any = None
    simple_arity: int = -1
    size: int = 0
    cost: int = 1
    positional: tuple[str, ...] = ()
    positional_only: int = 0
    keyword_only: tuple[str, ...] = ()
    vararg: str = ""
    kwarg: str = ""
    unset_locals: tuple[Any, ...] = ()
    cell_parameters: tuple[int, ...] = ()
    cell_locals: tuple[int, ...] = ()
    free: tuple[int, ...] = ()
    # The slots of the enclosing function that hold the cells of `free`.
    outer_slots: tuple[int, ...] = ()
    is_generator: bool = False
    is_plain_entry: bool = True  # whether a call has no cells to set up
    doc: str | None = None
    # (slot, whether it holds a cell)
    names: dict[str, tuple[int, bool]] = field(default_factory=dict)

    def locals(self, frame: Frame) -> dict[str, Any]:
        """Return the variables that have a value, for messages."""
        values = {}
        for name, (slot, boxed) in self.names.items():
            value = frame[slot]
            if boxed:
                value = value[0] if isinstance(value, list) and value else UNSET
            if value is not UNSET:
                values[name] = value
        return values


# ---- what evaluations share ---------------------------------------------------------------------


class Frozen(dict[str, Any]):
    """A table of something that all evaluations share: it refuses every change."""

    __slots__ = ()

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise KernelError(
            "hidden-attribute",
            "what all kernels share cannot be changed",
            help="define a class that inherits from it, or keep the value in a variable",
        )

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse


# The shared classes and objects whose tables the modules of this package still fill; None when all
# of them are imported.
_unsealed: list[Any] | None = []
_Shared = TypeVar("_Shared", bound="Class | Instance")


def seal(shared: _Shared) -> _Shared:
    """Make the tables of a shared class or object immutable; return it."""
    for name in _TABLES if isinstance(shared, Class) else ("fields",):
        table = getattr(shared, name)
        if table.__class__ is dict:
            inner = {k: Frozen(v) if v.__class__ is dict else v for k, v in table.items()}
            setattr(shared, name, Frozen(inner))
    return shared


def seal_all() -> None:
    """Make immutable what the modules of this package share. From then on `seal` is called."""
    global _unsealed
    for shared in _unsealed or ():
        seal(shared)
    _unsealed = None


def shared_instance(cls: Class, **fields: Any) -> Instance:
    """Return an immutable object that all evaluations share."""
    instance = Instance()
    instance.cls, instance.fields, instance.serial = cls, fields, 0
    return seal(instance)


class Written:
    """A name of a library module that is kernel source, which each evaluation reads for itself.

    `files` holds the module's definitions by name, each a file of its own, so that only those that
    a kernel uses are parsed; `natives` are the values of the interpreter that only they see.
    """

    __slots__ = ("files", "module", "name", "natives")

    def __init__(
        self, module: str, name: str, files: Mapping[str, SourceFile], natives: Mapping[str, Any]
    ) -> None:
        self.module = module
        self.name = name
        self.files = files
        self.natives = natives


# ---- classes ------------------------------------------------------------------------------------

_TABLES = ("members", "fields", "extra")


class Class:
    """A class, either builtin or defined by the kernel.

    `members` is the table of its objects' attributes: functions, `Builtin` methods, `Getter`
    attributes, descriptors, plain values. `payload` is the Python class that represents its
    objects; `make(m, cls, *args, **named)` creates one, as does `vectorcall`, if set, from a list.
    `machine` is the evaluation that owns a class defined by the kernel; others are shared, and
    `seal` makes their tables immutable. `fields` maps annotated names of the class body to a
    marker, see `library.fields`.
    """

    __slots__ = (
        *("name", "bases", "mro", "members", "payload", "make", "machine", "fields", "module"),
        *("extra", "kinds", "serial", "qualname", "vectorcall"),
    )
    _kind_ = "class"

    def __init__(
        self,
        name: str,
        bases: tuple[Class, ...] = (),
        members: dict[str, Any] | None = None,
        *,
        payload: type | None = None,
        make: Callable[..., Any] | None = None,
        machine: Machine | None = None,
        module: str = "builtins",
    ) -> None:
        self.name = name
        self.qualname = name
        self.bases = bases
        self.members: dict[str, Any] = {} if members is None else members
        self.payload: type = payload or (bases[0].payload if bases else Instance)
        self.make: Callable[..., Any] = make or (bases[0].make if bases else no_objects)
        self.machine = machine
        self.module = module
        self.fields: dict[str, str] = {}
        self.extra: dict[str, Any] = {}  # data of libraries, such as the fields of a dataclass
        self.serial = machine.serial() if machine is not None else 0
        self.vectorcall: Callable[..., Any] | None = None
        self.mro: tuple[Class, ...] = (self, *_linearised(bases, name))
        self.kinds = frozenset(self.mro)  # asked in one step, however many there are
        if machine is None and _unsealed is not None:
            _unsealed.append(self)

    def find(self, name: str) -> Any:
        """Return the member that objects of the class have under `name`, or UNSET."""
        for cls in self.mro:
            member = cls.members.get(name, UNSET)
            if member is not UNSET:
                return member
        return UNSET

    def hook(self, name: str) -> Any:
        """Return what a library stores in `extra` of the class or of an ancestor, or None."""
        return next((cls.extra[name] for cls in self.mro if name in cls.extra), None)

    def is_a(self, other: Class) -> bool:
        return other in self.kinds

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the class from Python code that received it from a kernel."""
        machine = self.machine or active()
        return machine.call(self, args, named)

    def __repr__(self) -> str:
        return f"<class '{self.name}'>"


def no_objects(m: Machine, cls: Class, *_: Any, **__: Any) -> Any:
    """Reject instantiation: the `make` of classes whose objects are created elsewhere."""
    raise TypeError(f"cannot create '{cls.name}' instances")


def _linearised(bases: tuple[Class, ...], name: str) -> list[Class]:
    """Return the C3 linearisation of the bases' MROs."""
    sequences = [*(list(base.mro) for base in bases), list(bases)]
    mro: list[Class] = []
    while sequences := [sequence for sequence in sequences if sequence]:
        for sequence in sequences:
            if not any(sequence[0] in other[1:] for other in sequences):
                break
        else:
            raise TypeError(
                f"Cannot create a consistent method resolution order (MRO) for bases of {name}"
            )
        head = sequence[0]
        mro.append(head)
        for other in sequences:
            if other[0] is head:
                del other[0]
    return mro


# ---- functions ----------------------------------------------------------------------------------


class Function:
    """A function of the kernel's source: code, defaults, captured variables."""

    __slots__ = (
        *("code", "runtime", "machine", "globals", "defaults", "keyword_defaults", "cells"),
        *("name", "qualname", "attributes", "serial", "doc"),
    )
    _kind_ = "function"

    def __init__(
        self,
        code: Code,
        runtime: Runtime,
        defaults: tuple[Any, ...],
        keyword_defaults: dict[str, Any],
        cells: tuple[list[Any], ...],
    ) -> None:
        self.code = code
        self.runtime = runtime
        self.machine: Machine = runtime.machine
        self.globals: dict[str, Any] = runtime.globals
        self.defaults = defaults
        self.keyword_defaults = keyword_defaults
        self.cells = cells
        self.name = code.name
        self.qualname = code.qualname
        self.doc = code.doc
        self.attributes: dict[str, Any] | None = None
        self.serial = self.machine.serial()

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the function from Python code that received it from a kernel."""
        return self.machine.call(self, args, named)

    @property
    def __signature__(self) -> Signature:
        """The signature for `inspect.signature`, used by messages that name the parameters."""
        return Signature(list(_parameters(self)))

    def __repr__(self) -> str:
        return f"<function {self.qualname}>"


def _parameters(function: Function) -> Iterator[Parameter]:
    code = function.code
    first = len(code.positional) - len(function.defaults)
    for index, name in enumerate(code.positional):
        named = index >= code.positional_only
        kind = Parameter.POSITIONAL_OR_KEYWORD if named else Parameter.POSITIONAL_ONLY
        default = function.defaults[index - first] if index >= first else Parameter.empty
        yield Parameter(name, kind, default=default)
    if code.vararg:
        yield Parameter(code.vararg, Parameter.VAR_POSITIONAL)
    for name in code.keyword_only:
        default = function.keyword_defaults.get(name, Parameter.empty)
        yield Parameter(name, Parameter.KEYWORD_ONLY, default=default)
    if code.kwarg:
        yield Parameter(code.kwarg, Parameter.VAR_KEYWORD)


class Method:
    """A function bound to an object: the value of `obj.method`."""

    __slots__ = ("function", "owner")
    _kind_ = "method"

    def __init__(self, function: Any, owner: Any) -> None:
        self.function = function
        self.owner = owner

    def __call__(self, *args: Any, **named: Any) -> Any:
        return active().call(self, args, named)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Method):
            return NotImplemented
        return self.function is other.function and self.owner is other.owner

    def __hash__(self) -> int:
        return hash((id(self.function), id(self.owner)))

    def __repr__(self) -> str:
        return f"<bound method {method_name(self)}>"


def method_name(method: Method) -> str:
    """Return the name that the text of a bound method shows."""
    name = getattr(method.function, "qualname", getattr(method.function, "name", "?"))
    return str(name)


class Builtin:
    """A function of the interpreter's tables, called with the machine as first argument."""

    __slots__ = ("call", "name", "parameters", "static")
    _kind_ = "function"

    def __init__(
        self,
        name: str,
        call: Callable[..., Any],
        static: bool = False,
        parameters: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.call = call
        self.static = static  # a static method, which is not bound to objects
        self.parameters = parameters  # if they depend on the kernel: the fields of a dataclass
        rename(call, name)

    def __call__(self, *args: Any, **named: Any) -> Any:
        return active().call(self, args, named)

    def __repr__(self) -> str:
        return f"<built-in function {self.name}>"


class HostFunction:
    """A function of the language (`nl.ndarray`), called without the machine."""

    __slots__ = ("call", "name")
    _kind_ = "function"

    def __init__(self, name: str, call: Callable[..., Any]) -> None:
        self.name = name
        self.call = call

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.call(*args, **named)

    def __repr__(self) -> str:
        return f"<function {self.name}>"


def rename(function: Callable[..., Any], name: str) -> None:
    """Set the name that Python's messages about wrong arguments use."""
    if hasattr(function, "__code__"):
        function.__qualname__ = name


class Getter:
    """A computed attribute such as `range.start`; `get(m, owner)` returns its value."""

    __slots__ = ("get", "name")

    def __init__(self, name: str, get: Callable[[Machine, Any], Any]) -> None:
        self.name = name
        self.get = get

    def __repr__(self) -> str:
        return f"<attribute {self.name}>"


class Property:
    """The `property` class: getter, setter and deleter are kernel functions, or None."""

    __slots__ = ("doc", "fdel", "fget", "fset")
    _kind_ = "property"

    def __init__(
        self, fget: Any = None, fset: Any = None, fdel: Any = None, doc: Any = None
    ) -> None:
        self.fget = fget
        self.fset = fset
        self.fdel = fdel
        self.doc = doc

    def __repr__(self) -> str:
        return "<property object>"


class _Wrapper:
    """A function in a class body that is not bound to objects."""

    __slots__ = ("function",)

    def __init__(self, function: Any) -> None:
        self.function = function

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lower()}>"


class StaticMethod(_Wrapper):
    """The `staticmethod` class."""

    __slots__ = ()
    _kind_ = "staticmethod"


class ClassMethod(_Wrapper):
    """The `classmethod` class."""

    __slots__ = ()
    _kind_ = "classmethod"


class Super:
    """A `super()` object: the attributes of `owner` after class `after` in the MRO of `cls`."""

    __slots__ = ("after", "cls", "owner")

    def __init__(self, after: Class, cls: Class, owner: Any) -> None:
        self.after = after
        self.cls = cls
        self.owner = owner

    def __repr__(self) -> str:
        return f"<super: {self.after!r}>"


# ---- objects of the kernel's classes ------------------------------------------------------------


def _comparing(name: str) -> Any:
    return lambda self, other: _by(self, "compare_by_method", name, self, other)


class Instance:
    """An object of a class defined by the kernel. `fields` holds its attributes by name.

    Python's special methods forward to the methods of the kernel's class, so that Python's own
    containers can hold, compare and hash such objects.
    """

    __slots__ = ("cls", "fields", "serial")

    cls: Class
    fields: dict[str, Any]
    serial: int

    @property
    def _kind_(self) -> str:
        return f"object of `{self.cls.name}`"

    def __repr__(self) -> str:
        return str(_by(self, "repr", self))

    def __str__(self) -> str:
        return str(_by(self, "str", self))

    def __format__(self, spec: str) -> str:
        return str(_by(self, "format", self, spec))

    def __bool__(self) -> bool:
        return bool(_by(self, "truth", self))

    def __hash__(self) -> int:
        return int(_by(self, "hash", self))

    __eq__, __lt__, __le__, __gt__, __ge__ = (
        _comparing(f"__{name}__") for name in ("eq", "lt", "le", "gt", "ge")
    )

    def __iter__(self) -> Iterator[Any]:
        return iter(_by(self, "iterate", self))

    def __len__(self) -> int:
        return int(_by(self, "length", self))

    def __contains__(self, item: Any) -> bool:
        return bool(_by(self, "contains", self, item))

    def __index__(self) -> int:
        return int(_by(self, "index", self))

    def __int__(self) -> int:
        return int(_by(self, "special", self, "__int__"))

    def __float__(self) -> float:
        return float(_by(self, "special", self, "__float__"))

    def __call__(self, *args: Any, **named: Any) -> Any:
        return _by(self, "call", self, args, named)


def _by(value: Any, operation: str, *args: Any) -> Any:
    """Return the result of the machine's operation, one level deeper: Python may call itself."""
    machine = value.cls.machine or active()
    return machine.nested(getattr(machine, operation), *args)


def _payload(name: str, base: type) -> type:
    """Return the Python class of objects whose class inherits from `base`: `class Row(list)`."""
    methods = ("_kind_", "__repr__", "__str__", "__format__", "__bool__", "__hash__", "__eq__")
    body = {method: Instance.__dict__[method] for method in methods}
    body["__doc__"] = f"An object of a kernel's class that inherits from {base.__name__}."
    if base not in (int, tuple, str):  # subclasses of these types cannot have slots
        body["__slots__"] = ("cls", "fields", "serial")
    return type(name, (base,), body)


IntInstance = _payload("IntInstance", int)
FloatInstance = _payload("FloatInstance", float)
StrInstance = _payload("StrInstance", str)
TupleInstance = _payload("TupleInstance", tuple)
ListInstance = _payload("ListInstance", list)
DictInstance = _payload("DictInstance", dict)


class ErrorInstance(Exception):
    """An exception as a kernel object, raised by the kernel or about to be caught by it."""

    _kind_ = Instance._kind_

    def __init__(self, cls: Class, args: tuple[Any, ...] = ()) -> None:
        super().__init__(*args)
        self.cls = cls
        self.fields: dict[str, Any] = {}
        self.serial = 0
        self.cause: Any = None
        self.context: Any = None

    __hash__ = Exception.__hash__


INSTANCES: frozenset[Any] = frozenset(
    {
        *(Instance, IntInstance, FloatInstance, StrInstance, TupleInstance, ListInstance),
        *(DictInstance, ErrorInstance),
    }
)


# ---- iterators ----------------------------------------------------------------------------------


class LazyIterator:
    """An iterator of the interpreter itself: `map`, `zip`, `enumerate` and others.

    Producing an element takes one level of depth: iterators nest, and Python's own would recurse on
    the C stack.
    """

    __slots__ = ("machine", "name", "values")

    def __init__(self, machine: Machine, name: str, values: Iterator[Any]) -> None:
        self.machine = machine
        self.name = name
        self.values = values

    def __iter__(self) -> LazyIterator:
        return self

    def __next__(self) -> Any:
        m = self.machine
        m.deepen()
        m.left -= 8
        try:
            return next(self.values)
        finally:
            m.level -= 1

    def __repr__(self) -> str:
        return f"<{self.name} object>"


class Generator:
    """The result of calling a generator function, or of a generator expression."""

    __slots__ = ("frame", "function", "running", "values")
    _kind_ = "generator"

    def __init__(self, function: Function, frame: list[Any], values: Any) -> None:
        self.function = function
        self.frame = frame
        self.values = values
        self.running = False

    def __iter__(self) -> Generator:
        return self

    def __next__(self) -> Any:
        return self.function.machine.resume(self, None)

    def __repr__(self) -> str:
        return f"<generator object {self.function.qualname}>"


# ---- the active evaluation ----------------------------------------------------------------------


class _Active(threading.local):
    """The machines whose kernels are running in this thread, the innermost last."""

    def __init__(self) -> None:
        self.machines: list[Machine] = []


_active = _Active()


def active() -> Machine:
    return _active.machines[-1]


def enter(machine: Machine) -> None:
    _active.machines.append(machine)


def leave() -> None:
    """Make the previous machine the active one again."""
    _active.machines.pop()
