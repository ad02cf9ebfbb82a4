"""The parts of `functools` that kernels call often, or that change attributes of functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nkic.base.device import KernelError
from nkic.interpret import attributes, exceptions
from nkic.interpret.compare import COMPARISONS, compare, hash_key
from nkic.interpret.library.abcs import MANAGER as ABSTRACT_MANAGER
from nkic.interpret.library.forms import make_class
from nkic.interpret.library.support import (
    Hidden,
    charge_arguments,
    final,
    is_instance_of,
    library_class,
    methods,
    new_instance,
    repr_of,
    unsupported,
)
from nkic.interpret.objects import INSTANCES, UNSET, Builtin, Function, Generator, Getter, Method
from nkic.interpret.operators import BINARY, OPERATIONS, in_place, unary
from nkic.interpret.tables import builtin, number_of
from nkic.interpret.types.functions import is_callable

if TYPE_CHECKING:
    from nkic.interpret.machine import Machine
    from nkic.interpret.texts import Writer

MODULE: dict[str, Any] = {
    "partialmethod": unsupported("partialmethod", "define a method that calls the other one"),
    "singledispatchmethod": unsupported("singledispatchmethod", "dispatch with `isinstance`"),
    "get_cache_token": unsupported("get_cache_token", "kernels have no abstract base class caches"),
    "WRAPPER_ASSIGNMENTS": ("__module__", "__name__", "__qualname__", "__doc__"),
    "WRAPPER_UPDATES": ("__dict__",),
}


# ---- partial ------------------------------------------------------------------------------------

PARTIAL = library_class("partial", "functools")
MODULE["partial"] = PARTIAL
_MAX_ARGUMENTS = 255  # the most arguments of a partial: each call copies them


@methods(PARTIAL, "__init__")
def _init(m: Machine, owner: Any, /, *args: Any, **named: Any) -> None:
    if not args:
        raise TypeError("type 'partial' takes at least one argument")
    func, *rest = args
    if not is_callable(m, func):
        raise TypeError("the first argument must be callable")
    if is_instance_of(func, PARTIAL) and "func" in func.fields:
        inner = func.fields
        func, rest, named = inner["func"], [*inner["args"], *rest], {**inner["keywords"], **named}
    count = len(rest) + len(named)
    if count > _MAX_ARGUMENTS:
        raise KernelError(
            "too-large",
            f"the partial would have {count} arguments; it has at most {_MAX_ARGUMENTS}",
            help="pass one list in place of so many arguments",
        )
    charge_arguments(m, rest, named)
    attributes.write_fields(m, owner, func=func, args=tuple(rest), keywords=named)


@methods(PARTIAL, "__call__")
def _call(m: Machine, owner: Any, /, *args: Any, **named: Any) -> Any:
    fields = owner.fields
    if "func" not in fields:
        raise TypeError("the partial object has no function")
    charge_arguments(m, fields["args"], fields["keywords"])
    arguments = (*fields["args"], *args), {**fields["keywords"], **named}
    return m.nested(m.call, fields["func"], *arguments)


@repr_of(PARTIAL)
def _show(m: Machine, owner: Any, writer: Writer) -> None:
    fields = owner.fields
    parts = [("", fields.get("func")), *(("", arg) for arg in fields.get("args", ()))]
    writer.named("functools.partial", [*parts, *fields.get("keywords", {}).items()])


# ---- lru_cache ---------------------------------------------------------------------------------

CACHED = final(library_class("_lru_cache_wrapper", "functools"))
_STATE = Hidden("_state")
_ENTRY_STEPS = 100  # steps for the bytes of an entry


class _State:
    """The results of a function by its arguments, the most recently used last."""

    def __init__(self, function: Any, maxsize: int | None, typed: bool) -> None:
        self.function = function
        self.maxsize = maxsize
        self.typed = typed
        self.results: dict[Any, Any] = {}
        self.hits = self.misses = 0


class _Separator:
    """A separator in keys that has the same hash in every process, unlike a plain object."""

    def __hash__(self) -> int:
        return 7


_SEPARATOR = _Separator()


def _wrapped(m: Machine, function: Any, maxsize: int | None, typed: bool) -> Any:
    wrapper = new_instance(m, CACHED, __wrapped__=function)
    attributes.write_field(m, wrapper, _STATE, _State(function, maxsize, typed))
    return wrapper


def _lru_cache(m: Machine, maxsize: Any = 128, typed: Any = False) -> Any:
    if maxsize is None or isinstance(maxsize, int):
        limit = None if maxsize is None else max(0, int(number_of(maxsize)))
        decides = m.truth(typed)
        return Builtin("lru_cache", lambda m, function, /: _wrapped(m, function, limit, decides))
    if maxsize.__class__ in m.callables or callable(maxsize):
        return _wrapped(m, maxsize, 128, m.truth(typed))
    raise TypeError("Expected first argument to be an integer, a callable, or None")


def _cache(m: Machine, user_function: Any, /) -> Any:
    return _wrapped(m, user_function, None, False)


MODULE |= {"lru_cache": Builtin("lru_cache", _lru_cache), "cache": Builtin("cache", _cache)}


def _key(m: Machine, state: _State, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    charge_arguments(m, args, named)
    key: Any = args
    if named:
        key = (*args, _SEPARATOR, *(part for pair in named.items() for part in pair))
    if state.typed:
        key = (*key, _SEPARATOR, *(m.class_of(value) for value in (*args, *named.values())))
    elif len(key) == 1 and key[0].__class__ in (int, str):
        key = key[0]
    m.check_key(key, len(state.results))
    return key


@methods(CACHED, "__call__")
def _cached_call(m: Machine, owner: Any, /, *args: Any, **named: Any) -> Any:
    state: _State = owner.fields[_STATE]
    results, key = state.results, _key(m, state, args, named)
    if key in results:
        state.hits += 1
        value = results[key]
        if state.maxsize is not None:
            results[key] = results.pop(key)
        return value
    hash_key(m, key)  # raises `TypeError` if an argument is unhashable
    state.misses += 1
    value = m.call(state.function, args, named)
    if state.maxsize == 0:
        return value
    m.charge(_ENTRY_STEPS)
    m.allow_length(len(results) + 1, "the cache")
    if state.maxsize is not None and key not in results and len(results) >= state.maxsize:
        del results[next(iter(results))]
    results[key] = value
    return value


def _of_function(name: str) -> Getter:
    return Getter(name, lambda m, owner: m.attribute(owner.fields[_STATE].function, name))


for _name in ("__name__", "__qualname__", "__doc__", "__module__"):
    CACHED.members[_name] = _of_function(_name)


@methods(CACHED, "cache_clear")
def _clear(m: Machine, owner: Any) -> None:
    state: _State = owner.fields[_STATE]
    state.results.clear()
    state.hits = state.misses = 0


@methods(CACHED, "cache_info")
def _info(m: Machine, owner: Any) -> Any:
    state: _State = owner.fields[_STATE]
    cls = make_class(m, "CacheInfo", ("hits", "misses", "maxsize", "currsize"), {}, {})
    return m.call(cls, (state.hits, state.misses, state.maxsize, len(state.results)), None)


@methods(CACHED, "cache_parameters")
def _parameters(m: Machine, owner: Any) -> dict[str, Any]:
    state: _State = owner.fields[_STATE]
    return {"maxsize": state.maxsize, "typed": state.typed}


@methods(CACHED, "__get__")
def _bound(m: Machine, owner: Any, holder: Any, cls: Any = None) -> Any:
    return owner if holder is None else Method(owner, holder)


@repr_of(CACHED)
def _show_cached(m: Machine, owner: Any, writer: Writer) -> None:
    writer.add("<functools._lru_cache_wrapper object>")


# ---- wraps -------------------------------------------------------------------------------------


@builtin("update_wrapper", MODULE)
def _update_wrapper(
    m: Machine, wrapper: Any, wrapped: Any, assigned: Any = None, updated: Any = None
) -> Any:
    names = _assigned(m, assigned)
    for name in names:
        try:
            value = m.attribute(wrapped, name)
        except AttributeError:
            continue
        if isinstance(wrapper, Function):
            attributes.put(m, wrapper, name, value)
        elif wrapper.__class__ in INSTANCES and "slots" not in wrapper.cls.extra:
            attributes.write_field(m, wrapper, name, value)
    if isinstance(wrapper, Function):
        copied = (wrapped.attributes or {}) if isinstance(wrapped, Function) else {}
        m.elements(3 * len(copied), "the attributes")
        wrapper.attributes = {**(wrapper.attributes or {}), **copied, "__wrapped__": wrapped}
    elif wrapper.__class__ in INSTANCES and "slots" not in wrapper.cls.extra:
        attributes.write_field(m, wrapper, "__wrapped__", wrapped)
    return wrapper


def _assigned(m: Machine, assigned: Any) -> list[str]:
    supported = ("__name__", "__qualname__", "__doc__")
    if assigned is None:
        return list(supported)
    names = [str.__str__(name) for name in m.iterate(assigned) if isinstance(name, str)]
    return [name for name in names if name in supported]


@builtin("wraps", MODULE)
def _wraps(m: Machine, wrapped: Any, assigned: Any = None, updated: Any = None) -> Any:
    return Builtin(
        "update_wrapper",
        lambda m, wrapper, /: _update_wrapper(m, wrapper, wrapped, assigned, updated),
    )


# ---- `operator`: the operators as functions -----------------------------------------------------

OPERATOR: dict[str, Any] = {}
_NAMES = {"and": "and_", "or": "or_"}


def _binary(symbol: str, word: str) -> None:
    apply = OPERATIONS[symbol]
    name = _NAMES.get(word, word)
    OPERATOR[name] = Builtin(name, lambda m, a, b, /: apply(m, a, b))
    OPERATOR[f"i{word}"] = Builtin(f"i{word}", lambda m, a, b, /: in_place(m, symbol, a, b))


def _comparison(name: str, symbol: str) -> None:
    OPERATOR[name] = Builtin(name, lambda m, a, b, /: compare(m, symbol, a, b))


def _unary(symbol: str, *names: str) -> None:
    for name in names:
        OPERATOR[name] = Builtin(name, lambda m, a, /: unary(m, symbol, a))


for _symbol, (_, _, _word, _) in BINARY.items():
    _binary(_symbol, _word)
for _symbol, _name_of in COMPARISONS.items():
    _comparison(_name_of.strip("_"), _symbol)
_unary("-", "neg")
_unary("+", "pos")
_unary("~", "inv", "invert")


# ---- functions ----------------------------------------------------------------------------------


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "abs": lambda m, a, /: m.call(m.builtins["abs"], (a,), None),
    "not_": lambda m, a, /: not m.truth(a),
    "truth": lambda m, a, /: m.truth(a),
    "is_": lambda m, a, b, /: a is b,
    "is_not": lambda m, a, b, /: a is not b,
    "is_none": lambda m, a, /: a is None,
    "is_not_none": lambda m, a, /: a is not None,
    "index": lambda m, a, /: m.index(a),
    "contains": lambda m, a, b, /: m.contains(a, b),
    "getitem": lambda m, a, b, /: m.item(a, b),
    "setitem": lambda m, a, b, c, /: m.put_item(a, b, c),
    "delitem": lambda m, a, b, /: m.remove_item(a, b),
    "call": lambda m, obj, /, *args, **named: m.call(obj, args, named),
}
OPERATOR |= {name: Builtin(name, call) for name, call in _OPERATIONS.items()}


@builtin("concat", OPERATOR)
def _concat(m: Machine, a: Any, b: Any, /) -> Any:
    _check_sequence(m, a)
    return OPERATIONS["+"](m, a, b)


@builtin("iconcat", OPERATOR)
def _iconcat(m: Machine, a: Any, b: Any, /) -> Any:
    _check_sequence(m, a)
    return in_place(m, "+", a, b)


def _check_sequence(m: Machine, value: Any) -> None:
    if m.class_of(value).find("__getitem__") is UNSET and not isinstance(
        value, str | bytes | list | tuple
    ):
        raise TypeError(f"'{m.class_of(value).name}' object can't be concatenated")


@builtin("countOf", OPERATOR)
def _count_of(m: Machine, a: Any, b: Any, /) -> int:
    count = 0
    for value in m.iterate(a):
        m.charge(16)
        count += m.equal(value, b)
    return count


@builtin("indexOf", OPERATOR)
def _index_of(m: Machine, a: Any, b: Any, /) -> int:
    for index, value in enumerate(m.iterate(a)):
        m.charge(16)
        if m.equal(value, b):
            return index
    raise ValueError("sequence.index(x): x not in sequence")


@builtin("length_hint", OPERATOR)
def _length_hint(m: Machine, obj: Any, default: Any = 0, /) -> int:
    try:
        return m.length(obj)
    except TypeError:
        return m.index(default)


# ------------------------------------------------------------------------------------------------
# `contextlib.contextmanager`, which kernels may enter once a tile; the rest is kernel source.

_NO_STREAMS = "`print` is the only output of kernels"
CONTEXTLIB: dict[str, Any] = {
    "AbstractContextManager": ABSTRACT_MANAGER,
    "redirect_stdout": unsupported("redirect_stdout", _NO_STREAMS),
    "redirect_stderr": unsupported("redirect_stderr", _NO_STREAMS),
    "chdir": unsupported("chdir", "kernels cannot use files"),
    "closing": unsupported("closing", "kernels hold no resources that must be closed"),
}

# ---- contextmanager -----------------------------------------------------------------------------

MANAGER = final(library_class("_GeneratorContextManager", "contextlib"))


@builtin("contextmanager", CONTEXTLIB)
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
