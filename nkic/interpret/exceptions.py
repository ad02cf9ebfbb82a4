"""Exceptions of kernels: raising, catching, `with`.

An exception raised by the interpreter's own functions (`TypeError`, `KeyError` …) becomes a kernel
object when a handler of the kernel catches it. Errors about NKI and exceeded limits cannot be
caught.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nkic.base.device import KernelError
from nkic.interpret import attributes
from nkic.interpret.objects import AT, UNSET, Builtin, Class, ErrorInstance, Frame, Getter

if TYPE_CHECKING:
    from nkic.interpret.machine import Machine

# Every exception class of kernels, with its bases. Python's other exception classes do not exist.
_TREE = """
BaseException
Exception BaseException
ArithmeticError Exception
FloatingPointError ArithmeticError
OverflowError ArithmeticError
ZeroDivisionError ArithmeticError
AssertionError Exception
AttributeError Exception
BufferError Exception
EOFError Exception
ImportError Exception
ModuleNotFoundError ImportError
LookupError Exception
IndexError LookupError
KeyError LookupError
MemoryError Exception
NameError Exception
UnboundLocalError NameError
OSError Exception
FileNotFoundError OSError
TimeoutError OSError
RuntimeError Exception
NotImplementedError RuntimeError
RecursionError RuntimeError
StopIteration Exception
StopAsyncIteration Exception
SyntaxError Exception
SystemError Exception
TypeError Exception
ValueError Exception
UnicodeError ValueError
UnicodeDecodeError UnicodeError
UnicodeEncodeError UnicodeError
Warning Exception
DeprecationWarning Warning
FutureWarning Warning
RuntimeWarning Warning
UserWarning Warning
FrozenInstanceError AttributeError
"""


def table(root: Class) -> dict[str, Class]:
    """Return the exception classes by name."""
    classes: dict[str, Class] = {}
    for line in _TREE.strip().split("\n"):
        name, *bases = line.split()
        parents = tuple(classes[base] for base in bases) or (root,)
        members = dict(_MEMBERS) if name == "BaseException" else {}
        if name == "StopIteration":
            members["value"] = Getter("value", lambda m, error: (error.args or (None,))[0])
        cls = Class(name, parents, members, payload=ErrorInstance, make=_construct)
        cls.extra["inheritable"] = name != "BaseException"
        cls.extra["content"] = _content
        if name == "FrozenInstanceError":
            cls.module = "dataclasses"
        classes[name] = cls
    return classes


def _content(m: Machine, cls: Class, payload: type, args: Any, named: Any) -> ErrorInstance:
    return ErrorInstance(cls, tuple(args))


def _construct(m: Machine, cls: Class, *args: Any, **named: Any) -> ErrorInstance:
    if named.keys() - {"name", "obj", "path"}:
        raise TypeError(f"{cls.name}() takes no keyword arguments")
    m.allocate(232)
    error = ErrorInstance(cls, args)
    error.serial = m.serial()
    attributes.write_fields(m, error, **named)
    return error


def _with_traceback(m: Machine, error: Any, traceback: Any) -> Any:
    _check_error(m, error, "with_traceback")
    return error


def _add_note(m: Machine, error: Any, note: Any) -> None:
    _check_error(m, error, "add_note")
    if not isinstance(note, str):
        raise TypeError(f"note must be a str, not '{m.class_of(note).name}'")
    if error.fields.get("__notes__").__class__ is not list:
        attributes.write_field(m, error, "__notes__", [])
    m.allocate(100)
    error.fields["__notes__"].append(note)


def _init(m: Machine, error: Any, *args: Any) -> None:
    _check_error(m, error, "__init__")
    error.args = args


def _check_error(m: Machine, error: Any, name: str) -> None:
    if not isinstance(error, ErrorInstance):
        kind = m.class_of(error).name
        text = f"descriptor '{name}' for 'BaseException' objects doesn't apply to a '{kind}' object"
        raise TypeError(text)


_MEMBERS: dict[str, Any] = {
    "args": Getter("args", lambda m, error: error.args),
    "__cause__": Getter("__cause__", lambda m, error: error.cause),
    "__context__": Getter("__context__", lambda m, error: error.context),
    "__traceback__": Getter("__traceback__", lambda m, error: None),
    "add_note": Builtin("add_note", _add_note),
    "with_traceback": Builtin("with_traceback", _with_traceback),
    "__init__": Builtin("BaseException.__init__", _init),
}


def make(m: Machine, name: str, args: tuple[Any, ...]) -> ErrorInstance:
    """Return an instance of one of the builtin exception classes."""
    error = ErrorInstance(m.builtins[name], args)
    error.serial = m.serial()
    return error


def is_fatal(error: BaseException) -> bool:
    """Whether kernels cannot catch the exception: a limit, an error about NKI, a defect in nkic."""
    if isinstance(error, ErrorInstance):
        return False
    if isinstance(error, KernelError):
        return not isinstance(error, AttributeError | ImportError | TypeError)
    return isinstance(error, RecursionError | MemoryError) or not isinstance(error, Exception)


def kernel_exception(m: Machine, error: BaseException) -> ErrorInstance:
    if isinstance(error, ErrorInstance):
        return error
    converted = getattr(error, "nkic_value", None)
    if converted is not None:
        return converted  # type: ignore[no-any-return]
    name = next((c.__name__ for c in type(error).__mro__ if c.__name__ in m.builtins), "Exception")
    args = tuple(error.args)
    if isinstance(error, KernelError):
        args = (str(error),)
    exception = make(m, name, args)
    if isinstance(error, AttributeError | NameError):
        attributes.write_field(m, exception, "name", error.name)
    error.nkic_value = exception  # type: ignore[attr-defined]
    if hasattr(error, "nkic_frames"):
        exception.nkic_frames = error.nkic_frames  # type: ignore[attr-defined]
    return exception


def is_a(m: Machine, error: BaseException, name: str) -> bool:
    """Whether the exception is an instance of the class called `name`."""
    return not is_fatal(error) and kernel_exception(m, error).cls.is_a(m.builtins[name])


def exception_of(m: Machine, value: Any, cause: Any) -> BaseException:
    """Return the exception of `raise value from cause`."""
    if value is UNSET:
        if not m.handling:
            return make(m, "RuntimeError", ("No active exception to reraise",))
        return m.handling[-1]  # type: ignore[no-any-return]
    error = _instance(m, value)
    if cause is not UNSET:
        error.cause = None if cause is None else _instance(m, cause)
    if m.handling and m.handling[-1] is not error:
        error.context = m.handling[-1]
    if hasattr(error, "nkic_frames"):
        del error.nkic_frames
    return error


def _instance(m: Machine, value: Any) -> ErrorInstance:
    if isinstance(value, Class) and value.is_a(m.builtins["BaseException"]):
        value = m.call(value, (), None)
    if not isinstance(value, ErrorInstance):
        raise TypeError("exceptions must derive from BaseException")
    return value


CAUGHT = 80  # steps for an exception that is caught, which costs as much as so many nodes


def handler_for(m: Machine, f: Frame, error: Exception, handlers: Any, before: Any) -> Any:
    """Return the handler that catches an exception, and the exception as a kernel object."""
    if is_fatal(error):
        return None, None
    m.charge(CAUGHT)
    m.note(error)
    value = kernel_exception(m, error)
    for handler in handlers:
        kind, _, _, _, node = handler
        f[AT] = node
        if kind is None or _catches(m, kind(f), value):
            if before is not None and m.device_loops > before[0]:
                raise KernelError(
                    "device-loop-misuse",
                    "an exception cannot leave a loop that runs on the device",
                    help="catch it inside the loop's body",
                )
            error.__traceback__ = None
            return handler, value
    return None, None


def _catches(m: Machine, kinds: Any, value: ErrorInstance) -> bool:
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    m.charge(len(kinds))
    error = m.builtins["BaseException"]
    for kind in kinds:  # all, as Python does; a tuple in the tuple is no class
        if not isinstance(kind, Class) or not kind.is_a(error):
            text = "catching classes that do not inherit from BaseException is not allowed"
            raise TypeError(text)
    return any(map(value.cls.is_a, kinds))


# ---- with ---------------------------------------------------------------------------------------

Leave = Callable[[Any], bool]


def enter_context(m: Machine, manager: Any) -> tuple[Any, Leave]:
    """Enter a context manager. Return the value for `as`, and a function that leaves it.

    The function takes the exception that left the block, or None.
    """
    cls = m.class_of(manager)
    enter, leave = cls.find("__enter__"), cls.find("__exit__")
    if enter is UNSET or leave is UNSET:
        raise KernelError(
            "not-in-nki",
            f"`with` cannot be used with {_described(m, manager)}",
            help="use it with `nl.no_reorder()`, or with an object that has `__enter__` and "
            "`__exit__`",
        )

    def left(value: Any) -> bool:
        args = (None, None, None) if value is None else (value.cls, value, None)
        return bool(m.truth(m.call(leave, (manager, *args), None)))

    return m.call(enter, (manager,), None), left


def _described(m: Machine, value: Any) -> str:
    name = m.class_of(value).name
    return f"the class `{value.name}`" if isinstance(value, Class) else f"a value of type `{name}`"


def suppresses(m: Machine, leave: Leave, error: Exception, f: Frame, node: Any) -> bool:
    """Leave a `with` block by an exception; return whether the manager suppresses it."""
    if is_fatal(error):
        return False
    m.note(error)
    value = kernel_exception(m, error)
    f[AT] = node
    return leave(value)
