"""What the interpreter's values are made of.

Numbers, text and containers are Python's own. Everything else that a kernel can hold is an
object of one of these classes. None of their Python attributes can be reached from a kernel:
what a kernel sees of a value is in the table of its class, `Class.members`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any

from nkic.evaluate.code import UNSET as UNSET
from nkic.evaluate.code import Code

if TYPE_CHECKING:
    from nkic.evaluate.machine import Machine
    from nkic.evaluate.modules import Runtime


# ---- classes ------------------------------------------------------------------------------------


class Class:
    """A class, of Python's or of the kernel's.

    `members` is the table of what its objects offer: functions, `Builtin` methods, `Getter`
    attributes, descriptors, plain values. `payload` is the Python class that objects of the class
    are made of; `make(m, cls, *args, **named)` makes one. `machine` is the evaluation that a
    kernel's class belongs to; classes without one are shared, and nothing can change them.
    `fields` are the annotated names of the class body with a marker, see `library.fields`.
    """

    __slots__ = (
        *("name", "bases", "mro", "members", "payload", "make", "machine", "fields", "module"),
        *("extra", "serial", "qualname"),
    )

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
        self.extra: dict[str, Any] = {}  # what libraries keep of a class: fields of a dataclass
        self.serial = machine.serial() if machine is not None else 0
        self.mro: tuple[Class, ...] = (self, *_merged(bases, name))

    def find(self, name: str) -> Any:
        """What objects of the class have under `name`, or UNSET."""
        for cls in self.mro:
            found = cls.members.get(name, UNSET)
            if found is not UNSET:
                return found
        return UNSET

    def holder(self, name: str) -> Class | None:
        """The class of the MRO that defines `name`."""
        return next((cls for cls in self.mro if name in cls.members), None)

    def is_a(self, other: Class) -> bool:
        """This class is `other` or inherits from it."""
        return other in self.mro

    def __call__(self, *args: Any, **named: Any) -> Any:
        """For functions of ours that call what a kernel gave them."""
        machine = self.machine or active()
        return machine.call(self, args, named)

    def __repr__(self) -> str:
        return f"<class '{self.name}'>"


def no_objects(m: Machine, cls: Class, *_: Any, **__: Any) -> Any:
    """The `make` of classes whose objects come from elsewhere."""
    raise TypeError(f"cannot create '{cls.name}' instances")


def _merged(bases: tuple[Class, ...], name: str) -> list[Class]:
    """The C3 linearisation of the bases' MROs, as Python's."""
    waiting = [*(list(base.mro) for base in bases), list(bases)]
    found: list[Class] = []
    while waiting := [one for one in waiting if one]:
        for one in waiting:
            if not any(one[0] in other[1:] for other in waiting):
                break
        else:
            raise TypeError(
                f"Cannot create a consistent method resolution order (MRO) for bases of {name}"
            )
        chosen = one[0]
        found.append(chosen)
        for other in waiting:
            if other[0] is chosen:
                del other[0]
    return found


# ---- functions ----------------------------------------------------------------------------------


class Function:
    """A function of the kernel's source: code, defaults, captured variables."""

    __slots__ = (
        *("code", "runtime", "machine", "globals", "defaults", "named_defaults", "cells"),
        *("name", "qualname", "attributes", "serial", "doc"),
    )

    def __init__(
        self,
        code: Code,
        runtime: Runtime,
        defaults: tuple[Any, ...],
        named_defaults: dict[str, Any],
        cells: tuple[list[Any], ...],
    ) -> None:
        self.code = code
        self.runtime = runtime
        self.machine: Machine = runtime.machine
        self.globals: dict[str, Any] = runtime.globals
        self.defaults = defaults
        self.named_defaults = named_defaults
        self.cells = cells
        self.name = code.name
        self.qualname = code.qualname
        self.doc = code.doc
        self.attributes: dict[str, Any] | None = None
        self.serial = self.machine.serial()

    def __call__(self, *args: Any, **named: Any) -> Any:
        """For functions of ours that call what a kernel gave them."""
        return self.machine.call(self, args, named)

    @property
    def __signature__(self) -> Signature:
        """For `inspect.signature`, where a message names the parameters."""
        return Signature(list(_parameters(self)))

    def __repr__(self) -> str:
        return f"<function {self.qualname}>"


def _parameters(function: Function) -> Iterator[Parameter]:
    code = function.code
    first = len(code.positional) - len(function.defaults)
    for place, name in enumerate(code.positional):
        named = place >= code.positional_only
        kind = Parameter.POSITIONAL_OR_KEYWORD if named else Parameter.POSITIONAL_ONLY
        default = function.defaults[place - first] if place >= first else Parameter.empty
        yield Parameter(name, kind, default=default)
    if code.rest:
        yield Parameter(code.rest, Parameter.VAR_POSITIONAL)
    for name in code.named_only:
        default = function.named_defaults.get(name, Parameter.empty)
        yield Parameter(name, Parameter.KEYWORD_ONLY, default=default)
    if code.more:
        yield Parameter(code.more, Parameter.VAR_KEYWORD)


class Method:
    """A function bound to an object: what `obj.method` gives."""

    __slots__ = ("function", "owner")

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
        return hash(("method", getattr(self.function, "serial", 0)))

    def __repr__(self) -> str:
        name = getattr(self.function, "qualname", getattr(self.function, "name", "?"))
        return f"<bound method {name}>"


class Builtin:
    """A function of the interpreter's tables. It is called with the machine first."""

    __slots__ = ("call", "name", "parameters", "static")

    def __init__(
        self,
        name: str,
        call: Callable[..., Any],
        static: bool = False,
        parameters: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.call = call
        self.static = static  # of a class: it is not bound to objects
        self.parameters = parameters  # where the kernel itself gave it some: fields of a dataclass
        rename(call, name)

    def __call__(self, *args: Any, **named: Any) -> Any:
        return active().call(self, args, named)

    def __repr__(self) -> str:
        return f"<built-in function {self.name}>"


class HostFunction:
    """A function of the language that the interpreter serves (`nl.ndarray`), called as it is."""

    __slots__ = ("call", "name")

    def __init__(self, name: str, call: Callable[..., Any]) -> None:
        self.name = name
        self.call = call

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.call(*args, **named)

    def __repr__(self) -> str:
        return f"<function {self.name}>"


def rename(function: Callable[..., Any], name: str) -> None:
    """Makes Python's message about a wrong call speak of `name`."""
    if hasattr(function, "__code__"):
        function.__qualname__ = name


class Getter:
    """An attribute that is computed: `range.start`. `get(m, owner)` gives it."""

    __slots__ = ("get", "name")

    def __init__(self, name: str, get: Callable[[Machine, Any], Any]) -> None:
        self.name = name
        self.get = get

    def __repr__(self) -> str:
        return f"<attribute {self.name}>"


class Property:
    """`property`: getter, setter and deleter are kernel functions, or None."""

    __slots__ = ("doc", "fdel", "fget", "fset")

    def __init__(self, fget: Any = None, fset: Any = None, fdel: Any = None) -> None:
        self.fget = fget
        self.fset = fset
        self.fdel = fdel

    def __repr__(self) -> str:
        return "<property object>"


class StaticMethod:
    """`staticmethod`."""

    __slots__ = ("function",)

    def __init__(self, function: Any) -> None:
        self.function = function

    def __repr__(self) -> str:
        return f"<staticmethod({self.function!r})>"


class ClassMethod:
    """`classmethod`."""

    __slots__ = ("function",)

    def __init__(self, function: Any) -> None:
        self.function = function

    def __repr__(self) -> str:
        return f"<classmethod({self.function!r})>"


class Super:
    """`super()`: the attributes of an object from `after` on in the MRO of `cls`."""

    __slots__ = ("after", "cls", "owner")

    def __init__(self, after: Class, cls: Class, owner: Any) -> None:
        self.after = after
        self.cls = cls
        self.owner = owner

    def __repr__(self) -> str:
        return f"<super: {self.after!r}>"


# ---- objects of the kernel's classes ------------------------------------------------------------


class Instance:
    """An object of a kernel's class. `fields` are its attributes, by name.

    Python's protocols lead back to the methods of the kernel's class, so that Python's own
    containers can hold, compare and hash such objects.
    """

    __slots__ = ("cls", "fields", "serial")

    cls: Class
    fields: dict[str, Any]
    serial: int

    def __repr__(self) -> str:
        return str(_machine(self).repr(self))

    def __str__(self) -> str:
        return str(_machine(self).str(self))

    def __format__(self, spec: str) -> str:
        return str(_machine(self).format(self, spec))

    def __bool__(self) -> bool:
        return bool(_machine(self).truth(self))

    def __hash__(self) -> int:
        return int(_machine(self).hash(self))

    def __eq__(self, other: object) -> Any:
        return _machine(self).compared_by("__eq__", self, other)

    def __lt__(self, other: object) -> Any:
        return _machine(self).compared_by("__lt__", self, other)

    def __le__(self, other: object) -> Any:
        return _machine(self).compared_by("__le__", self, other)

    def __gt__(self, other: object) -> Any:
        return _machine(self).compared_by("__gt__", self, other)

    def __ge__(self, other: object) -> Any:
        return _machine(self).compared_by("__ge__", self, other)

    def __iter__(self) -> Iterator[Any]:
        return iter(_machine(self).iterate(self))

    def __len__(self) -> int:
        return int(_machine(self).length(self))

    def __contains__(self, item: Any) -> bool:
        return bool(_machine(self).contains(self, item))

    def __index__(self) -> int:
        return int(_machine(self).index(self))

    def __int__(self) -> int:
        return int(_machine(self).special(self, "__int__"))

    def __float__(self) -> float:
        return float(_machine(self).special(self, "__float__"))

    def __call__(self, *args: Any, **named: Any) -> Any:
        return _machine(self).call(self, args, named)


def _machine(value: Any) -> Machine:
    return value.cls.machine or active()


def _payload(name: str, base: type) -> type:
    """The Python class of objects whose class inherits from `base`: `class Row(list)`."""
    body: dict[str, Any] = {
        "__slots__": () if base in (int, tuple, str, bytes) else ("cls", "fields", "serial"),
        "__doc__": f"An object of a kernel's class that inherits from {base.__name__}.",
    }
    for method in ("__repr__", "__str__", "__format__", "__bool__", "__hash__", "__eq__"):
        body[method] = Instance.__dict__[method]
    if base in (int, tuple, str, bytes):  # such objects cannot have slots of their own
        del body["__slots__"]
    return type(name, (base,), body)


IntInstance = _payload("IntInstance", int)
FloatInstance = _payload("FloatInstance", float)
StrInstance = _payload("StrInstance", str)
TupleInstance = _payload("TupleInstance", tuple)
ListInstance = _payload("ListInstance", list)
DictInstance = _payload("DictInstance", dict)


class ErrorInstance(Exception):
    """An exception of the kernel's, raised by it or on its way to its `except`."""

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


class Steps:
    """An iterator of the interpreter's own: `map`, `zip`, `enumerate` and the like.

    Each element is a level of depth while it is made: iterators stand within each other, and
    Python's own would go from one to the next on the C stack.
    """

    __slots__ = ("machine", "name", "values")

    def __init__(self, machine: Machine, name: str, values: Iterator[Any]) -> None:
        self.machine = machine
        self.name = name
        self.values = values

    def __iter__(self) -> Steps:
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
    """What a generator function of the kernel, or a generator expression, gives."""

    __slots__ = ("frame", "function", "running", "values")

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


# ---- the evaluation that is going on ------------------------------------------------------------

_active: list[Machine] = []


def active() -> Machine:
    """The machine whose kernel is running."""
    return _active[-1]


def enter(machine: Machine) -> None:
    """From now on `machine` is the active one."""
    _active.append(machine)


def leave() -> None:
    """The one before is active again."""
    _active.pop()
