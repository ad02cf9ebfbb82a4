"""Classes and their objects: creation, and the operations on values that depend on their class."""

from __future__ import annotations

import inspect
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from nkic.base.device import SECOND_WAY, KernelError
from nkic.interpret.objects import (
    INSTANCES,
    UNSET,
    Builtin,
    Class,
    ClassMethod,
    Code,
    Frame,
    Function,
    HostFunction,
    Instance,
    Method,
    StaticMethod,
    no_objects,
    seal,
)
from nkic.interpret.operators import Union

if TYPE_CHECKING:
    from nkic.interpret.machine import Machine


# ---- Calls: bind arguments to the slots of a frame, by Python's rules ---------------------------


def bind(
    m: Machine, function: Function, args: Sequence[Any], named: Mapping[str, Any] | None
) -> Frame:
    """Bind arguments to the slots of a new frame. Raises `TypeError` as Python does."""
    code = function.code
    if not named and len(args) == code.simple_arity:
        return [m, code.node, function, *args, *code.unset_locals]
    values = _values(m, code, function, args, named or {})
    return [m, code.node, function, *values, *code.unset_locals]


def _values(
    m: Machine, code: Code, function: Function, args: Sequence[Any], named: Mapping[str, Any]
) -> list[Any]:
    """Return the values in slot order: positional, `*args`, keyword-only, `**kwargs`."""
    names, count = code.positional, len(code.positional)
    values = list(args[:count])
    extra = tuple(args[count:])
    if extra and not code.vararg:
        raise _too_many(function, len(args), named)
    values += [UNSET] * (count - len(values))
    keywords: dict[str, Any] = {}
    extra_keywords: dict[str, Any] = {}
    for name, value in named.items():
        index = names.index(name) if name in names else -1
        if index >= code.positional_only:
            if values[index] is not UNSET:
                raise TypeError(f"{function.name}() got multiple values for argument '{name}'")
            values[index] = value
        elif name in code.keyword_only:
            keywords[name] = value
        elif code.kwarg:
            extra_keywords[name] = value
        else:
            raise _unknown(function, name, index)
    _fill(function, values)
    if code.vararg:
        m.elements(len(extra), "the arguments")
        values.append(extra)
    for name in code.keyword_only:
        value = keywords.get(name, function.keyword_defaults.get(name, UNSET))
        if value is UNSET:
            raise _missing_named(function, keywords)
        values.append(value)
    if code.kwarg:
        m.elements(2 * len(extra_keywords), "the arguments")
        values.append(extra_keywords)
    return values


def _fill(function: Function, values: list[Any]) -> None:
    """Fill in the defaults of the parameters that the call leaves out."""
    defaults = function.defaults
    first_default = len(values) - len(defaults)
    missing = []
    for index, value in enumerate(values):
        if value is UNSET:
            if index >= first_default:
                values[index] = defaults[index - first_default]
            else:
                missing.append(function.code.positional[index])
    if missing:
        raise _missing(function, missing, "positional ")


def _listed(names: Sequence[str]) -> str:
    quoted = [f"'{name}'" for name in names]
    if len(quoted) == 1:
        return quoted[0]
    if len(quoted) == 2:
        return " and ".join(quoted)
    return f"{', '.join(quoted[:-1])}, and {quoted[-1]}"


def _missing(function: Function, names: Sequence[str], kind: str) -> TypeError:
    plural = "s" if len(names) > 1 else ""
    return TypeError(
        f"{function.qualname}() missing {len(names)} required {kind}argument{plural}: "
        f"{_listed(names)}"
    )


def _missing_named(function: Function, passed: Mapping[str, Any]) -> TypeError:
    bound_names = {**function.keyword_defaults, **passed}
    names = [name for name in function.code.keyword_only if name not in bound_names]
    return _missing(function, names, "keyword-only ")


def _too_many(function: Function, count: int, named: Mapping[str, Any]) -> TypeError:
    maximum, minimum = len(function.code.positional), len(function.code.positional)
    minimum -= len(function.defaults)
    takes = f"from {minimum} to {maximum}" if minimum != maximum else str(maximum)
    plural = "" if maximum == 1 and minimum == maximum else "s"
    were = "was" if count == 1 else "were"
    return TypeError(
        f"{function.qualname}() takes {takes} positional argument{plural} but {count} {were} given"
    )


def _unknown(function: Function, name: str, index: int) -> TypeError:
    if index >= 0:
        return TypeError(
            f"{function.qualname}() got some positional-only arguments passed as keyword "
            f"arguments: '{name}'"
        )
    return TypeError(f"{function.qualname}() got an unexpected keyword argument '{name}'")


def enter_cells(code: Code, frame: Frame, cells: Sequence[list[Any]]) -> None:
    """Store the variables that inner functions use in cells."""
    for slot in code.cell_parameters:
        frame[slot] = [frame[slot]]
    for slot in code.cell_locals:
        frame[slot] = [UNSET]
    for slot, cell in zip(code.free, cells, strict=True):
        frame[slot] = cell


_COUNTS = re.compile(r"takes (?:from (\d+) to )?(\d+) positional arguments? but (\d+) were given")


def without_machine(error: TypeError) -> TypeError:
    """Correct Python's argument counts for the machine, the first argument of every builtin."""
    inside = error.__traceback__.tb_next if error.__traceback__ is not None else None
    counts = _COUNTS.search(str(error))
    if counts is None or (inside is not None and inside.tb_next is not None):
        return error
    minimum, maximum, passed = (int(count or 0) - 1 for count in counts.groups())
    takes = f"from {minimum} to {maximum}" if counts[1] else str(maximum)
    plural, were = "" if maximum == 1 and not counts[1] else "s", "was" if passed == 1 else "were"
    text = f"takes {takes} positional argument{plural} but {passed} {were} given"
    return TypeError(str(error).replace(counts[0], text))


# ---- parameter names ----------------------------------------------------------------------------


def is_languages(function: Any) -> bool:
    """Whether `function` belongs to the language, or is a class without its own `__init__`."""
    if isinstance(function, Class):
        return function.machine is not None or function.payload.__module__.startswith("nkic.")
    return isinstance(function, HostFunction | Builtin)


def parameters(function: Any) -> list[str] | None:
    """Return the parameter names of a callable, or None if they are unknown."""
    if isinstance(function, Class):
        names = function.find("__init__")
        if isinstance(names, Function):
            return parameters(Method(names, None))
        named = list(getattr(names, "parameters", ()))
        return named or (_of_host(function.payload) if is_languages(function) else None)
    if isinstance(function, HostFunction):
        return _of_host(function.call)
    bound = isinstance(function, Method)
    function = function.function if isinstance(function, Method) else function
    function = getattr(function, "function", function)
    if not isinstance(function, Function):
        return None
    code = function.code
    names = [*code.positional[1 if bound else 0 :], *code.keyword_only]
    return [*names, *filter(None, (code.vararg, code.kwarg))]


def passed_on(text: str, values: Sequence[Any], lambdas: bool) -> str | None:
    """Return the name of the function that Python's message is about, if it was passed as an
    argument.

    `values` are the arguments of the call; `lambdas` tells whether one of them is a lambda.
    """
    named = re.match(r"(?:\w+\.)*(\w+|<lambda>)\(\)", text)
    functions = [getattr(value, "function", value) for value in values]
    passed = {function.name for function in functions if isinstance(function, Function)}
    passed |= {"<lambda>"} if lambdas else set()
    return named[1] if named and named[1] in passed else None


def _of_host(function: Callable[..., Any]) -> list[str] | None:
    with suppress(ValueError):  # some builtins have no signature
        return list(inspect.signature(function).parameters)
    return None


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


# ---- making classes -----------------------------------------------------------------------------


def make(
    m: Machine,
    code: Code,
    runtime: Any,
    base_values: list[Any],
    options: dict[str, Any],
    cells: list[list[Any]],
) -> Class:
    """Run a class body and create the class."""
    _check_metaclass(m, options)
    bases = tuple(_bases(m, base_values))
    body = ClassBody(code.name, runtime)
    space: dict[str, Any] = {}
    frame: Frame = [m, code.node, body, space, *code.unset_locals[1:]]
    enter_cells(code, frame, cells)
    if code.doc is not None:
        space["__doc__"] = code.doc
    m.run(code, frame)
    m.allocate(800 + 100 * len(space))
    cls = of_members(m, code.qualname, bases, space, body.fields, options)
    cls.module = runtime.module.name
    if runtime.is_library:
        seal(cls)
    elif runtime.world.is_defining:
        runtime.world.note(cls)
    frame[code.names["__class__"][0]][0] = cls
    return cls


def of_members(
    m: Machine,
    name: str,
    bases: tuple[Class, ...],
    space: dict[str, Any],
    fields: dict[str, str],
    options: Mapping[str, Any],
) -> Class:
    m.charge(sum(len(base.mro) for base in bases) ** 2)
    qualname, name = name, name.rpartition(".")[2]
    hooks = (base.hook("subclass") for base in bases)
    maker = next((hook for hook in hooks if hook is not None), plain)
    cls: Class = maker(m, name, bases, space, fields)
    cls.qualname = qualname
    _announce(m, cls, options)
    return cls


def plain(
    m: Machine, name: str, bases: tuple[Class, ...], space: dict[str, Any], fields: dict[str, str]
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
    cls = Class(name, bases, space, payload=payload, make=construct, machine=m)
    cls.fields = dict(fields)
    note_slots(m, cls, space)
    cls.extra["abstract"] = _abstract(cls)
    return cls


def note_slots(m: Machine, new_class: Class, space: dict[str, Any]) -> None:
    """Restrict the fields of objects to the names in `__slots__`."""
    if "__slots__" not in space:
        return
    declared = space["__slots__"]
    slots = [declared] if isinstance(declared, str) else list(declared)
    for slot in slots:
        if not isinstance(slot, str):
            raise TypeError(f"__slots__ items must be strings, not '{m.class_of(slot).name}'")
    ancestors = [cls for cls in new_class.mro[1:] if cls.machine is not None]
    if all("slots" in cls.extra for cls in ancestors):
        inherited = [name for cls in ancestors for name in cls.extra["slots"]]
        new_class.extra["slots"] = frozenset([*slots, *inherited])


def _abstract(cls: Class) -> tuple[str, ...]:
    """Return the names of the methods that are still abstract."""
    candidates = dict.fromkeys(
        name for base in cls.bases for name in base.extra.get("abstract", ())
    )
    candidates |= dict.fromkeys(cls.members)
    return tuple(sorted(name for name in candidates if _is_abstract(cls.find(name))))


def _is_abstract(member: Any) -> bool:
    function = getattr(member, "fget", None) or getattr(member, "function", member)
    if not isinstance(function, Function) or function.attributes is None:
        return False
    return bool(function.attributes.get("__isabstractmethod__"))


def _announce(m: Machine, cls: Class, options: Mapping[str, Any]) -> None:
    """Call `__set_name__` of the members and `__init_subclass__` of the bases."""
    for name, value in list(cls.members.items()):
        if value.__class__ in INSTANCES:
            hook = value.cls.find("__set_name__")
            if hook is not UNSET:
                m.call(hook, (value, cls, name), None)
    parent = next((c for c in cls.mro[1:] if "__init_subclass__" in c.members), None)
    if parent is not None:
        hook = parent.members["__init_subclass__"]
        m.call(getattr(hook, "function", hook), (cls,), options)
    elif options:
        raise TypeError(f"{cls.name}.__init_subclass__() takes no keyword arguments")


def _check_metaclass(m: Machine, options: dict[str, Any]) -> None:
    metaclass = options.pop("metaclass", None)
    if metaclass is None or isinstance(metaclass, TypingForm) or metaclass is m.builtins["type"]:
        return
    raise KernelError(
        "not-in-nki",
        "a class of a kernel cannot have a metaclass",
        help="use a decorator or `__init_subclass__`",
    )


def _bases(m: Machine, values: list[Any]) -> list[Class]:
    bases = []
    for value in values:
        if isinstance(value, TypingForm):
            continue
        hook = getattr(value, "as_base", None) if not isinstance(value, Class) else None
        base = hook(m) if hook is not None else value
        if not isinstance(base, Class):
            raise _wrong_base(m, value)
        if base.machine is None and not base.extra.get("inheritable"):
            raise _wrong_base(m, value)
        bases.append(base)
    return bases


def _wrong_base(m: Machine, value: Any) -> KernelError:
    name = value.name if isinstance(value, Class) else m.class_of(value).name
    return KernelError(
        "wrong-base",
        f"a class of a kernel cannot inherit from `{name}`",
        help="inherit from `nl.NKIObject`, `Enum`, `NamedTuple` or a class of your own",
        notes=[SECOND_WAY],
    )


# ---- making objects -----------------------------------------------------------------------------


def construct(m: Machine, cls: Class, *args: Any, **named: Any) -> Any:
    if cls.extra.get("abstract"):
        raise _cannot_make(cls)
    new = cls.find("__new__")
    if new is UNSET:
        instance = blank(m, cls, args, named)
    else:
        instance = m.call(getattr(new, "function", new), (cls, *args), named)
        if not is_instance(m, instance, cls):
            return instance
    init = cls.find("__init__")
    if init is not UNSET:
        if m.call(init, (instance, *args), named) is not None:
            raise TypeError("__init__() should return None")
    elif cls.payload is Instance and new is UNSET and (args or named):
        raise TypeError(f"{cls.name}() takes no arguments")
    return instance


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
        instance = Instance()
    else:
        content = cls.hook("content")
        instance = content(m, cls, payload, args, named or {}) if content else payload()
    instance.cls, instance.fields, instance.serial = cls, {}, m.serial()
    return instance


# ---- operations on values -----------------------------------------------------------------------


def unknown(m: Machine, kind: type) -> Class:
    """Return a class for values of a type without a table: a name and no members."""
    cls = Class(kind.__name__, (m.builtins["object"],), {}, make=no_objects)
    cls.payload = kind
    m.classes[kind] = seal(cls)
    return cls


def special(m: Machine, value: Any, name: str) -> Any:
    """Return the result of calling the special method `name` of an object."""
    method = value.cls.find(name) if value.__class__ in INSTANCES else UNSET
    if method is UNSET:
        text = {
            "__int__": "int() argument must be a string, a bytes-like object or a real number",
            "__float__": "float() argument must be a string or a real number",
        }
        kind = m.class_of(value).name
        raise TypeError(f"{text.get(name, f'{name} is missing')}, not '{kind}'")
    return m.call(method, (value,), None)


def truth(m: Machine, value: Any) -> bool:
    method = value.cls.find("__bool__")
    if method is not UNSET:
        result = m.call(method, (value,), None)
        if result is not True and result is not False:
            raise TypeError(f"__bool__ should return bool, returned {m.class_of(result).name}")
        return bool(result)
    if value.cls.find("__len__") is not UNSET:
        return length(m, value) != 0
    if isinstance(value, int | float):
        return value != 0
    if isinstance(value, str | bytes | list | tuple | dict):
        return len(value) > 0 if not isinstance(value, str) else str.__len__(value) > 0
    return True


def length(m: Machine, value: Any) -> int:
    if value.__class__ in INSTANCES:
        method = value.cls.find("__len__")
        if method is not UNSET:
            result = m.call(method, (value,), None)
            if not isinstance(result, int):
                kind = m.class_of(result).name
                raise TypeError(f"'{kind}' object cannot be interpreted as an integer")
            if result < 0:
                raise ValueError("__len__() should return >= 0")
            return int(result)
        for kind in _SIZED:
            if isinstance(value, kind):
                return int(kind.__len__(value))
        raise TypeError(f"object of type '{value.cls.name}' has no len()")
    if value.__class__ is Class:
        hook = value.hook("length")
        if hook is not None:
            return int(hook(m, value))
    try:
        return len(value)
    except TypeError:
        raise TypeError(f"object of type '{m.class_of(value).name}' has no len()") from None


def index(m: Machine, value: Any) -> int:
    """Return `operator.index(value)`."""
    if value.__class__ is int or value.__class__ is bool:
        return int(value)
    if value.__class__ in INSTANCES and not isinstance(value, int):
        method = value.cls.find("__index__")
        if method is UNSET:
            kind = value.cls.name
            raise TypeError(f"'{kind}' object cannot be interpreted as an integer")
        result = m.call(method, (value,), None)
        if not isinstance(result, int):
            raise TypeError(f"__index__ returned non-int (type {m.class_of(result).name})")
        return int(result)
    served = m.class_of(value).find("__index__")
    if served.__class__ is Builtin and value.__class__ is not int:
        return int(served.call(m, value))
    return operator.index(value)


def is_class(value: Any) -> bool:
    """Whether the value may be used in `isinstance`."""
    return isinstance(value, Class | Union) or hasattr(value, "accepts")


def is_instance(m: Machine, value: Any, kinds: Any) -> bool:
    if isinstance(kinds, Class):
        cls = m.class_of(value)
        if cls.is_a(kinds):
            return True
        hook = kinds.extra.get("accepts")
        return bool(hook(m, value)) if hook is not None else False
    if isinstance(kinds, tuple | Union):
        members = kinds.parts if isinstance(kinds, Union) else kinds
        m.charge(16 + len(members))
        return any(m.nested(is_instance, m, value, member) for member in members)
    if kinds is None:
        return value is None
    hook = getattr(kinds, "accepts", None)
    if hook is not None:
        return bool(hook(m, value))
    raise TypeError("isinstance() arg 2 must be a type, a tuple of types, or a union")
