"""The parts of `functools` that kernels call often, or that change attributes of functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nkic.evaluate import attributes
from nkic.evaluate.compare import hash_key
from nkic.evaluate.errors import KernelError
from nkic.evaluate.library.namedtuples import make_class
from nkic.evaluate.library.support import (
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
from nkic.evaluate.objects import INSTANCES, Builtin, Function, Getter, Method
from nkic.evaluate.tables import builtin
from nkic.evaluate.types.lazy import is_callable
from nkic.evaluate.types.shared import number_of

if TYPE_CHECKING:
    from nkic.evaluate.machine import Machine
    from nkic.evaluate.texts import Writer

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
    _check_count(len(rest) + len(named))
    charge_arguments(m, rest, named)
    attributes.write_fields(m, owner, func=func, args=tuple(rest), keywords=named)


def _check_count(count: int) -> None:
    if count > _MAX_ARGUMENTS:
        raise KernelError(
            "too-large",
            f"the partial would have {count} arguments; it has at most {_MAX_ARGUMENTS}",
            help="pass one list in place of so many arguments",
        )


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
        _set(m, wrapper, name, value)
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
    return [str(name) for name in m.iterate(assigned) if name in supported]


def _set(m: Machine, wrapper: Any, name: str, value: Any) -> None:
    if isinstance(wrapper, Function):
        attributes.put(m, wrapper, name, value)
    elif wrapper.__class__ in INSTANCES and "slots" not in wrapper.cls.extra:
        attributes.write_field(m, wrapper, name, value)


@builtin("wraps", MODULE)
def _wraps(m: Machine, wrapped: Any, assigned: Any = None, updated: Any = None) -> Any:
    return Builtin(
        "update_wrapper",
        lambda m, wrapper, /: _update_wrapper(m, wrapper, wrapped, assigned, updated),
    )
