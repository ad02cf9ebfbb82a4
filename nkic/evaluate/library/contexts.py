"""`contextlib.contextmanager`, which kernels may enter once a tile; the rest is kernel source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nkic.evaluate import exceptions
from nkic.evaluate.library.abcs import MANAGER as ABSTRACT_MANAGER
from nkic.evaluate.library.support import final, library_class, methods, new_instance, unsupported
from nkic.evaluate.objects import Builtin, Generator
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
