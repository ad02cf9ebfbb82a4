"""`functools.lru_cache`, `cache` and `cached_property`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nkic.evaluate import attributes
from nkic.evaluate.compare import hash_key
from nkic.evaluate.library.collections.namedtuples import make_class
from nkic.evaluate.library.support import (
    Hidden,
    charge_arguments,
    final,
    library_class,
    methods,
    new_instance,
    repr_of,
)
from nkic.evaluate.objects import INSTANCES, Builtin, Getter, Method
from nkic.evaluate.types.shared import number_of

if TYPE_CHECKING:
    from nkic.evaluate.machine import Machine
    from nkic.evaluate.texts import Writer

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


lru_cache = Builtin("lru_cache", _lru_cache)
cache = Builtin("cache", _cache)


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
def _call(m: Machine, owner: Any, /, *args: Any, **named: Any) -> Any:
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
def _show(m: Machine, owner: Any, writer: Writer) -> None:
    writer.add("<functools._lru_cache_wrapper object>")


# ---- cached_property ----------------------------------------------------------------------------

CACHED_PROPERTY = final(library_class("cached_property", "functools"))


@methods(CACHED_PROPERTY, "__init__")
def _init(m: Machine, owner: Any, func: Any) -> None:
    attributes.write_fields(m, owner, func=func, attrname=None)


@methods(CACHED_PROPERTY, "__set_name__")
def _set_name(m: Machine, owner: Any, cls: Any, name: Any) -> None:
    attribute = owner.fields.get("attrname")
    if attribute is not None and not m.equal(attribute, name):
        raise TypeError(
            "Cannot assign the same cached_property to two different names "
            f"({m.repr(attribute)} and {m.repr(name)})."
        )
    attributes.write_field(m, owner, "attrname", name)


@methods(CACHED_PROPERTY, "__get__")
def _get(m: Machine, owner: Any, holder: Any, cls: Any = None) -> Any:
    if holder is None:
        return owner
    name = owner.fields.get("attrname")
    if not isinstance(name, str):
        raise TypeError("Cannot use cached_property instance without calling __set_name__ on it.")
    value = m.call(owner.fields["func"], (holder,), None)
    if holder.__class__ in INSTANCES:
        attributes.put_directly(m, holder, name, value)
    return value
