"""Classes and their objects: creation, and the operations on values that depend on their class."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nkic.base.kernel_errors import SECOND_WAY
from nkic.evaluate import attributes
from nkic.evaluate.calls import enter_cells
from nkic.evaluate.code import Code, Frame
from nkic.evaluate.errors import KernelError
from nkic.evaluate.objects import (
    INSTANCES,
    UNSET,
    Builtin,
    Class,
    ClassMethod,
    Function,
    Instance,
    Method,
    StaticMethod,
    no_objects,
)
from nkic.evaluate.operators import Union
from nkic.syntax import names, nodes

if TYPE_CHECKING:
    from nkic.evaluate.machine import Machine


_SIZED: tuple[Any, ...] = (list, tuple, dict, str)


class TypingForm:
    """A name in annotations, or a base class without effect. Nothing is checked against it."""

    __slots__ = ("name",)
    is_form = True

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


class ClassBody:
    """The owner of the frame of a class body. `fields` holds the annotated names."""

    __slots__ = ("fields", "globals", "name", "runtime")

    def __init__(self, name: str, runtime: Any) -> None:
        self.name = name
        self.runtime = runtime
        self.globals = runtime.globals
        self.fields: dict[str, str] = {}


def form(name: str) -> TypingForm:
    """Return a placeholder for a name that only annotations use."""
    return TypingForm(name)


# ---- making classes -----------------------------------------------------------------------------


def make(
    m: Machine,
    code: Code,
    runtime: Any,
    given: list[Any],
    options: dict[str, Any],
    cells: list[list[Any]],
) -> Class:
    """Run a class body and create the class."""
    _check_metaclass(m, options)
    bases = tuple(_bases(m, given))
    body = ClassBody(code.name, runtime)
    space: dict[str, Any] = {}
    frame: Frame = [m, code.node, body, space, *code.unset_locals[1:]]
    enter_cells(code, frame, cells)
    if code.doc is not None:
        space["__doc__"] = code.doc
    m.run(code, frame)
    m.allocate(800 + 100 * len(space))
    made = of_members(m, code.qualname, bases, space, body.fields, options)
    made.module = runtime.module.name
    frame[code.names["__class__"][0]][0] = made
    return made


def of_members(
    m: Machine,
    name: str,
    bases: tuple[Class, ...],
    space: dict[str, Any],
    fields: dict[str, str],
    options: Mapping[str, Any],
) -> Class:
    """Create a class of the kernel from its members."""
    m.charge(sum(len(base.mro) for base in bases) ** 2)
    qualname, name = name, name.rpartition(".")[2]
    maker = next(
        (one.extra["subclass"] for base in bases for one in base.mro if "subclass" in one.extra),
        None,
    )
    if maker is not None:
        found: Class = maker(m, name, bases, space, fields)
    else:
        found = plain(m, name, bases, space, fields)
    found.qualname = qualname
    _announce(m, found, options)
    return found


def plain(
    m: Machine,
    name: str,
    bases: tuple[Class, ...],
    space: dict[str, Any],
    fields: dict[str, str],
) -> Class:
    """Create a class by the default rules."""
    bases = bases or (m.builtins["object"],)
    payloads = [base.payload for base in bases if base.payload is not Instance]
    if len(set(payloads)) > 1:
        raise TypeError("multiple bases have instance lay-out conflict")
    payload = payloads[0] if payloads else Instance
    for method in ("__init_subclass__", "__class_getitem__"):
        if isinstance(space.get(method), Function):
            space[method] = ClassMethod(space[method])
    if isinstance(space.get("__new__"), Function):
        space["__new__"] = StaticMethod(space["__new__"])
    if "__eq__" in space and "__hash__" not in space:
        space["__hash__"] = None
    made = Class(name, bases, space, payload=payload, make=construct, machine=m)
    made.fields = dict(fields)
    _note_slots(made, space)
    made.extra["abstract"] = _abstract(made)
    return made


def _note_slots(made: Class, space: dict[str, Any]) -> None:
    """Restrict the fields of objects to the names in `__slots__`."""
    if "__slots__" not in space:
        return
    given = space["__slots__"]
    own = [given] if isinstance(given, str) else list(given)
    above = [cls for cls in made.mro[1:] if cls.machine is not None]
    if all("slots" in cls.extra for cls in above):
        inherited = [name for cls in above for name in cls.extra["slots"]]
        made.extra["slots"] = frozenset([*own, *inherited])


def _abstract(made: Class) -> tuple[str, ...]:
    """Return the names of the methods that are still abstract."""
    wanted = dict.fromkeys(name for base in made.bases for name in base.extra.get("abstract", ()))
    wanted |= dict.fromkeys(made.members)
    return tuple(sorted(name for name in wanted if _is_abstract(made.find(name))))


def _is_abstract(found: Any) -> bool:
    function = getattr(found, "fget", None) or getattr(found, "function", found)
    if not isinstance(function, Function) or function.attributes is None:
        return False
    return bool(function.attributes.get("__isabstractmethod__"))


def _announce(m: Machine, made: Class, options: Mapping[str, Any]) -> None:
    """Call `__set_name__` of the members and `__init_subclass__` of the bases."""
    for name, value in list(made.members.items()):
        if value.__class__ in INSTANCES:
            hook = value.cls.find("__set_name__")
            if hook is not UNSET:
                m.call(hook, (value, made, name), None)
    parent = next((c for c in made.mro[1:] if "__init_subclass__" in c.members), None)
    if parent is not None:
        hook = parent.members["__init_subclass__"]
        m.call(getattr(hook, "function", hook), (made,), options)
    elif options:
        raise TypeError(f"{made.name}.__init_subclass__() takes no keyword arguments")


def _check_metaclass(m: Machine, options: dict[str, Any]) -> None:
    found = options.pop("metaclass", None)
    if found is None or isinstance(found, TypingForm) or found is m.builtins["type"]:
        return
    raise KernelError(
        "not-in-nki",
        "a class of a kernel cannot have a metaclass",
        help="use a decorator or `__init_subclass__`",
    )


def _bases(m: Machine, given: list[Any]) -> list[Class]:
    found = []
    for value in given:
        if isinstance(value, TypingForm):
            continue
        hook = getattr(value, "as_base", None) if not isinstance(value, Class) else None
        base = hook(m) if hook is not None else value
        if not isinstance(base, Class):
            raise _wrong_base(m, value)
        if base.machine is None and not base.extra.get("inheritable"):
            raise _wrong_base(m, value)
        found.append(base)
    return found


def _wrong_base(m: Machine, value: Any) -> KernelError:
    name = value.name if isinstance(value, Class) else m.class_of(value).name
    return KernelError(
        "wrong-base",
        f"a class of a kernel cannot inherit from `{name}`",
        help="inherit from `nl.NKIObject`, `Enum`, `NamedTuple` or a class of your own",
        notes=[SECOND_WAY],
    )


def finished(m: Machine, made: Any) -> Any:
    """Return the class after its decorators ran."""
    return made


# ---- making objects -----------------------------------------------------------------------------


def construct(m: Machine, cls: Class, *args: Any, **named: Any) -> Any:
    """Return `cls(*args, **named)` for a class of the kernel."""
    if cls.extra.get("abstract"):
        raise _cannot_make(cls)
    new = cls.find("__new__")
    if new is UNSET:
        made = blank(m, cls, args, named)
    else:
        made = m.call(getattr(new, "function", new), (cls, *args), named)
        if not is_instance(m, made, cls):
            return made
    init = cls.find("__init__")
    if init is not UNSET:
        if m.call(init, (made, *args), named) is not None:
            raise TypeError("__init__() should return None")
    elif cls.payload is Instance and new is UNSET and (args or named):
        raise TypeError(f"{cls.name}() takes no arguments")
    return made


def _cannot_make(cls: Class) -> TypeError:
    missing = cls.extra["abstract"]
    plural = "s" if len(missing) > 1 else ""
    return TypeError(
        f"Can't instantiate abstract class {cls.name} with abstract method{plural} "
        f"{', '.join(missing)}"
    )


def blank(m: Machine, cls: Class, args: Any = (), named: Any = None) -> Any:
    """Return an object without fields; of a class that inherits from `int` etc., with its value."""
    payload = cls.payload
    m.allocate(232)
    if payload is Instance:
        made = Instance()
    else:
        content = cls.extra.get("content") or next(
            (one.extra["content"] for one in cls.mro if "content" in one.extra), None
        )
        made = content(m, cls, payload, args, named or {}) if content else payload()
    made.cls, made.fields, made.serial = cls, {}, m.serial()
    return made


# ---- operations on values -----------------------------------------------------------------------


def unknown(m: Machine, kind: type) -> Class:
    """Return a class for values of a type without a table: a name and no members."""
    made = Class(kind.__name__, (m.builtins["object"],), {}, make=no_objects)
    made.payload = kind
    m.classes[kind] = made
    return made


def special(m: Machine, value: Any, name: str) -> Any:
    """Return the result of calling the special method `name` of an object."""
    found = value.cls.find(name) if value.__class__ in INSTANCES else UNSET
    if found is UNSET:
        text = {
            "__int__": "int() argument must be a string, a bytes-like object or a real number",
            "__float__": "float() argument must be a string or a real number",
        }
        kind = m.class_of(value).name
        raise TypeError(f"{text.get(name, f'{name} is missing')}, not '{kind}'")
    return m.call(found, (value,), None)


def truth(m: Machine, value: Any) -> bool:
    """Return `bool(value)` for a kernel object."""
    method = value.cls.find("__bool__")
    if method is not UNSET:
        found = m.call(method, (value,), None)
        if found is not True and found is not False:
            raise TypeError(f"__bool__ should return bool, returned {m.class_of(found).name}")
        return bool(found)
    if value.cls.find("__len__") is not UNSET:
        return length(m, value) != 0
    if isinstance(value, int | float):
        return value != 0
    if isinstance(value, str | bytes | list | tuple | dict):
        return len(value) > 0 if not isinstance(value, str) else str.__len__(value) > 0
    return True


def length(m: Machine, value: Any) -> int:
    """Return `len(value)`."""
    if value.__class__ in INSTANCES:
        method = value.cls.find("__len__")
        if method is not UNSET:
            found = m.call(method, (value,), None)
            if not isinstance(found, int):
                kind = m.class_of(found).name
                raise TypeError(f"'{kind}' object cannot be interpreted as an integer")
            if found < 0:
                raise ValueError("__len__() should return >= 0")
            return int(found)
        for kind in _SIZED:
            if isinstance(value, kind):
                return int(kind.__len__(value))
        raise TypeError(f"object of type '{value.cls.name}' has no len()")
    if value.__class__ is Class:
        hook = class_hook(value, "length")
        if hook is not None:
            return int(hook(m, value))
    try:
        return len(value)
    except TypeError:
        raise TypeError(f"object of type '{m.class_of(value).name}' has no len()") from None


def class_hook(cls: Class, name: str) -> Any:
    """Return a library's hook on the class itself, such as `length` of an enumeration, or None."""
    return next((one.extra[name] for one in cls.mro if name in one.extra), None)


def index(m: Machine, value: Any) -> int:
    """Return `operator.index(value)`."""
    if value.__class__ is int or value.__class__ is bool:
        return int(value)
    if value.__class__ in INSTANCES and not isinstance(value, int):
        method = value.cls.find("__index__")
        if method is UNSET:
            kind = value.cls.name
            raise TypeError(f"'{kind}' object cannot be interpreted as an integer")
        found = m.call(method, (value,), None)
        if not isinstance(found, int):
            raise TypeError(f"__index__ returned non-int (type {m.class_of(found).name})")
        return int(found)
    served = m.class_of(value).find("__index__")
    if served.__class__ is Builtin and value.__class__ is not int:
        return int(served.call(m, value))
    return operator.index(value)


def is_sequence(value: Any) -> bool:
    """Whether the value matches a sequence pattern."""
    return isinstance(value, list | tuple | range)


def is_class(value: Any) -> bool:
    """Whether the value may be used in `isinstance`."""
    return isinstance(value, Class | Union) or hasattr(value, "accepts")


def is_instance(m: Machine, value: Any, kinds: Any) -> bool:
    """Return `isinstance(value, kinds)`."""
    if isinstance(kinds, Class):
        found = m.class_of(value)
        if found.is_a(kinds):
            return True
        hook = kinds.extra.get("accepts")
        return bool(hook(m, value)) if hook is not None else False
    if isinstance(kinds, tuple):
        m.charge(16 + len(kinds))
        m.deepen()
        try:
            return any(is_instance(m, value, one) for one in kinds)
        finally:
            m.level -= 1
    if isinstance(kinds, Union):
        return any(is_instance(m, value, one) for one in kinds.parts)
    if kinds is None:
        return value is None
    hook = getattr(kinds, "accepts", None)
    if hook is not None:
        return bool(hook(m, value))
    raise TypeError("isinstance() arg 2 must be a type, a tuple of types, or a union")


def shown(m: Machine, value: Any) -> str | None:
    """Return the text of a class, union or bound method; None for other values."""
    if isinstance(value, Class):
        hook = class_hook(value, "shown")
        return str(hook(m, value)) if hook is not None else f"<class '{_full_name(value)}'>"
    if isinstance(value, Union):
        return " | ".join("None" if p is None else getattr(p, "name", "?") for p in value.parts)
    if isinstance(value, Method) and value.owner.__class__ in INSTANCES:
        name = getattr(value.function, "qualname", getattr(value.function, "name", "?"))
        return f"<bound method {name} of {m.repr(value.owner)}>"
    return None


def _full_name(value: Class) -> str:
    if value.module in ("builtins", ""):
        return value.qualname
    return f"{value.module}.{value.qualname}"


def module_name(value: Any) -> str:
    """Return the name of a module, or "" for other values."""
    return str(getattr(value, "module_name", "")) if hasattr(value, "is_module") else ""


_ = (attributes, names, nodes)
