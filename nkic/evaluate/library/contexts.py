"""`contextlib`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nkic.evaluate import attributes, exceptions
from nkic.evaluate.library.abcs import MANAGER as ABSTRACT_MANAGER
from nkic.evaluate.library.support import final, library_class, methods, new_instance, unsupported
from nkic.evaluate.objects import UNSET, Builtin, ErrorInstance, Generator, Method
from nkic.evaluate.tables import builtin

if TYPE_CHECKING:
    from nkic.evaluate.machine import Machine

_NO_STREAMS = "`print` is the only output of kernels"
MODULE: dict[str, Any] = {
    "AbstractContextManager": ABSTRACT_MANAGER,
    "redirect_stdout": unsupported("redirect_stdout", _NO_STREAMS),
    "redirect_stderr": unsupported("redirect_stderr", _NO_STREAMS),
    "chdir": unsupported("chdir", "kernels cannot use files"),
    "closing": unsupported("closing", "kernels hold no resources that must be closed"),
}

# ---- contextmanager -----------------------------------------------------------------------------

MANAGER = final(library_class("_GeneratorContextManager", "contextlib"))


@builtin("contextmanager", MODULE)
def _contextmanager(m: Machine, func: Any) -> Any:
    m.allocate(400)

    def helper(m: Machine, /, *args: Any, **named: Any) -> Any:
        return _manager(m, func, args, named)

    return Builtin(getattr(func, "name", "helper"), helper)


def _manager(m: Machine, func: Any, args: Any, named: Any) -> Any:
    """Return a manager over a new generator; `recreate` holds what makes another one."""
    return new_instance(m, MANAGER, gen=m.call(func, args, named), recreate=(func, args, named))


def _generator(owner: Any) -> Generator:
    generator = owner.fields.get("gen")
    if not isinstance(generator, Generator):
        raise TypeError("the function under @contextmanager does not yield")
    return generator


@methods(MANAGER, "__enter__")
def _enter(m: Machine, owner: Any) -> Any:
    try:
        return m.resume(_generator(owner), None)
    except StopIteration:
        raise RuntimeError("generator didn't yield") from None


@methods(MANAGER, "__exit__")
def _exit(m: Machine, owner: Any, kind: Any, value: Any, traceback: Any) -> bool:
    generator = _generator(owner)
    if kind is None:
        try:
            m.resume(generator, None)
        except StopIteration:
            return False
        raise RuntimeError("generator didn't stop")
    if value is None:
        value = m.call(kind, (), None)
    return _throw_into(m, generator, value)


def _throw_into(m: Machine, generator: Generator, value: Any) -> bool:
    """Raise the exception in the generator; return whether the generator suppresses it."""
    try:
        m.resume(generator, value, "throw")
    except StopIteration:
        return True
    except Exception as error:
        if not exceptions.is_fatal(error) and exceptions.kernel_exception(m, error) is value:
            return False
        raise
    raise RuntimeError("generator didn't stop after throw()")


@methods(MANAGER, "__call__")
def _decorate(m: Machine, owner: Any, func: Any) -> Any:
    """Use a manager as a decorator: every call of the function runs under a new manager."""
    recreate = owner.fields["recreate"]

    def inner(m: Machine, /, *positional: Any, **keywords: Any) -> Any:
        manager = _manager(m, *recreate)
        return _run_within(m, manager, lambda: m.call(func, positional, keywords))

    return Builtin(getattr(func, "name", "inner"), inner)


def _run_within(m: Machine, manager: Any, action: Any) -> Any:
    _, leave = exceptions.enter_context(m, manager)
    try:
        result = action()
    except Exception as error:
        if exceptions.is_fatal(error) or not leave(exceptions.kernel_exception(m, error)):
            raise
        return None
    leave(None)
    return result


# ---- simple managers ----------------------------------------------------------------------------

NULL = library_class("nullcontext", "contextlib")
SUPPRESS = library_class("suppress", "contextlib")
MODULE |= {"nullcontext": NULL, "suppress": SUPPRESS}


@methods(NULL, "__init__")
def _null_init(m: Machine, owner: Any, enter_result: Any = None) -> None:
    attributes.write_field(m, owner, "enter_result", enter_result)


@methods(NULL, "__enter__")
def _null_enter(m: Machine, owner: Any) -> Any:
    return owner.fields.get("enter_result")


@methods(NULL, "__exit__")
def _null_exit(m: Machine, owner: Any, *_: Any) -> None:
    return None


@methods(SUPPRESS, "__init__")
def _suppress_init(m: Machine, owner: Any, *kinds: Any) -> None:
    attributes.write_field(m, owner, "_exceptions", kinds)


@methods(SUPPRESS, "__enter__")
def _suppress_enter(m: Machine, owner: Any) -> None:
    return None


@methods(SUPPRESS, "__exit__")
def _suppress_exit(m: Machine, owner: Any, kind: Any, value: Any, traceback: Any) -> bool:
    if kind is None:
        return False
    return m.isinstance(value, owner.fields.get("_exceptions", ()))


# ---- ExitStack ----------------------------------------------------------------------------------

STACK = library_class("ExitStack", "contextlib")
MODULE["ExitStack"] = STACK


def _callbacks(m: Machine, owner: Any) -> list[Any]:
    callbacks = owner.fields.get("_exit_callbacks")
    if callbacks.__class__ is list:
        return callbacks
    attributes.write_field(m, owner, "_exit_callbacks", [])
    return _callbacks(m, owner)


def _push(m: Machine, owner: Any, leave: Any) -> None:
    """Register a function that takes the three arguments of `__exit__`."""
    callbacks = _callbacks(m, owner)
    m.allocate(100)
    m.allow_length(len(callbacks) + 1, "the list")
    callbacks.append(leave)


@methods(STACK, "__enter__")
def _stack_enter(m: Machine, owner: Any) -> Any:
    return owner


@methods(STACK, "enter_context")
def _enter_context(m: Machine, owner: Any, cm: Any) -> Any:
    cls = m.class_of(cm)
    leave = cls.find("__exit__")
    if leave is UNSET or cls.find("__enter__") is UNSET:
        raise TypeError(
            f"'{cls.module}.{cls.qualname}' object does not support the context manager protocol"
        )
    result = m.call(cls.find("__enter__"), (cm,), None)
    _push(m, owner, Method(leave, cm))
    return result


@methods(STACK, "push")
def _push_manager(m: Machine, owner: Any, exit: Any) -> Any:
    leave = m.class_of(exit).find("__exit__")
    _push(m, owner, exit if leave is UNSET else Method(leave, exit))
    return exit


@methods(STACK, "callback")
def _callback(m: Machine, owner: Any, callback: Any, /, *args: Any, **named: Any) -> Any:
    def leave(m: Machine, /, *_: Any) -> None:
        m.call(callback, args, named)

    _push(m, owner, Builtin("callback", leave))
    return callback


@methods(STACK, "pop_all")
def _pop_all(m: Machine, owner: Any) -> Any:
    new_stack = m.call(owner.cls, (), None)
    callbacks = _callbacks(m, owner)
    attributes.write_field(m, new_stack, "_exit_callbacks", callbacks[:])
    callbacks.clear()
    return new_stack


@methods(STACK, "close")
def _close(m: Machine, owner: Any) -> None:
    _stack_exit(m, owner, None, None, None)


@methods(STACK, "__exit__")
def _stack_exit(m: Machine, owner: Any, kind: Any, value: Any, traceback: Any) -> bool:
    """Leave the entered contexts in reverse order; each receives the pending exception."""
    pending: ErrorInstance | None = value
    callbacks = _callbacks(m, owner)
    raised: BaseException | None = None
    while callbacks:
        leave = callbacks.pop()
        args = (None, None, None) if pending is None else (pending.cls, pending, None)
        try:
            if m.truth(m.call(leave, args, None)) and pending is not None:
                pending = raised = None
        except Exception as error:
            if exceptions.is_fatal(error):
                raise
            pending, raised = exceptions.kernel_exception(m, error), error
    if raised is not None:
        raise raised
    return kind is not None and pending is None
