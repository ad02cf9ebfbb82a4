"""`collections.Counter`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nkic.evaluate.compare import COMPARISONS, compare
from nkic.evaluate.containers import copy_dict
from nkic.evaluate.library.collections.mappings import dict_class, plain
from nkic.evaluate.library.support import is_instance_of, methods, repr_of
from nkic.evaluate.objects import Builtin, ClassMethod, LazyIterator
from nkic.evaluate.operators import OPERATIONS

if TYPE_CHECKING:
    from nkic.evaluate.machine import Machine
    from nkic.evaluate.texts import Writer

COUNTER = dict_class("Counter")
_ENTRY_STEPS = 25
_COMBINE_STEPS = 10  # steps for a key whose counts are combined or compared


@methods(COUNTER, "__init__")
def _init(m: Machine, owner: Any, iterable: Any = None, /, **named: Any) -> None:
    _count_all(m, owner, iterable, named, "+")


@methods(COUNTER, "update")
def _update(m: Machine, owner: Any, iterable: Any = None, /, **named: Any) -> None:
    _count_all(m, owner, iterable, named, "+")


@methods(COUNTER, "subtract")
def _subtract(m: Machine, owner: Any, iterable: Any = None, /, **named: Any) -> None:
    _count_all(m, owner, iterable, named, "-")


def _count_all(m: Machine, owner: Any, source: Any, named: dict[str, Any], symbol: str) -> None:
    if isinstance(source, dict):
        for key, count in plain(m, source).items():
            _add(m, owner, key, count, symbol)
    elif source is not None:
        for key in m.iterate(source):
            _add(m, owner, key, 1, symbol)
    for key, count in named.items():
        _add(m, owner, key, count, symbol)


def _add(m: Machine, owner: Any, key: Any, count: Any, symbol: str) -> None:
    m.charge(4)
    m.check_key(key, dict.__len__(owner))
    if dict.__contains__(owner, key) or symbol == "-":
        count = OPERATIONS[symbol](m, dict.get(owner, key, 0), count)
    _put(m, owner, key, count)


def _put(m: Machine, owner: Any, key: Any, count: Any) -> None:
    if not dict.__contains__(owner, key):
        m.charge(_ENTRY_STEPS)
        m.allow_length(dict.__len__(owner) + 1, "the dict")
    dict.__setitem__(owner, key, count)


@methods(COUNTER, "__missing__")
def _missing(m: Machine, owner: Any, key: Any, /) -> int:
    return 0


@methods(COUNTER, "__delitem__")
def _delitem(m: Machine, owner: Any, key: Any, /) -> None:
    m.check_key(key, dict.__len__(owner))
    dict.pop(owner, key, None)


@methods(COUNTER, "most_common")
def _most_common(m: Machine, owner: Any, n: Any = None) -> list[Any]:
    pairs = _sorted(m, owner)
    return pairs if n is None else pairs[: max(m.index(n), 0)]


def _sorted(m: Machine, owner: Any) -> list[Any]:
    m.elements(10 * dict.__len__(owner), "the list")
    pairs = list(dict.items(owner))
    by_count = Builtin("key", lambda m, pair, /: pair[1])
    ordered: list[Any] = m.call(m.builtins["sorted"], (pairs,), {"key": by_count, "reverse": True})
    return ordered


@methods(COUNTER, "elements")
def _elements(m: Machine, owner: Any) -> LazyIterator:
    return LazyIterator(m, "itertools.chain", _each(m, plain(m, owner)))


def _each(m: Machine, counts: dict[Any, Any]) -> Any:
    for key, count in counts.items():
        m.charge(1)
        for _ in range(m.index(count)):
            m.charge(1)
            yield key


@methods(COUNTER, "total")
def _total(m: Machine, owner: Any) -> Any:
    return m.call(m.builtins["sum"], (list(dict.values(owner)),), None)


@methods(COUNTER, "copy", "__copy__")
def _copy(m: Machine, owner: Any) -> Any:
    return m.call(owner.cls, (plain(m, owner),), None)


def _fromkeys(m: Machine, cls: Any, iterable: Any, v: Any = None, /) -> Any:
    raise NotImplementedError("Counter.fromkeys() is undefined.  Use Counter(iterable) instead.")


COUNTER.members["fromkeys"] = ClassMethod(Builtin("Counter.fromkeys", _fromkeys))


# ---- arithmetic ---------------------------------------------------------------------------------


def _make_instance(m: Machine, pairs: Any) -> Any:
    counter = m.call(COUNTER, (), None)
    for key, count in pairs:
        m.check_key(key, dict.__len__(counter))
        if m.less(0, count):
            _put(m, counter, key, count)
    return counter


def _combine(m: Machine, symbol: str, left: Any, right: Any) -> Any:
    """Combine the counts of one key in both counters by the operator."""
    if symbol in ("+", "-"):
        return OPERATIONS[symbol](m, left, right)
    if symbol == "|":
        return right if m.less(left, right) else left
    return left if m.less(left, right) else right


def _both(m: Machine, left: dict[Any, Any], right: dict[Any, Any]) -> dict[Any, Any]:
    """Return the keys of both, each to be looked up in both."""
    keys = copy_dict(m, left)
    m.merge(keys, right)
    m.charge(_COMBINE_STEPS * len(keys))
    m.check_keys(keys, 2 * len(keys))
    return keys


def _combining(symbol: str) -> Any:
    def call(m: Machine, owner: Any, other: Any, /) -> Any:
        if not is_instance_of(other, COUNTER) or not is_instance_of(owner, COUNTER):
            return NotImplemented
        left, right = plain(m, owner), plain(m, other)
        keys = left if symbol == "&" else _both(m, left, right)
        return _make_instance(
            m, ((k, _combine(m, symbol, left.get(k, 0), right.get(k, 0))) for k in keys)
        )

    return call


def _in_place(symbol: str) -> Any:
    combine = _combining(symbol)

    def call(m: Machine, owner: Any, other: Any, /) -> Any:
        result = combine(m, owner, other)
        if result is NotImplemented:
            return result
        dict.clear(owner)
        m.merge(owner, result)
        return owner

    return call


def _unary(symbol: str) -> Any:
    def call(m: Machine, owner: Any, /) -> Any:
        return _make_instance(
            m, ((k, OPERATIONS[symbol](m, 0, v)) for k, v in plain(m, owner).items())
        )

    return call


def _comparing(symbol: str) -> Any:
    def call(m: Machine, owner: Any, other: Any, /) -> Any:
        if not is_instance_of(other, COUNTER) or not is_instance_of(owner, COUNTER):
            return NotImplemented
        left, right = plain(m, owner), plain(m, other)
        each = "==" if symbol == "!=" else symbol
        pairs = ((left.get(k, 0), right.get(k, 0)) for k in _both(m, left, right))
        holds = all(m.truth(compare(m, each, *pair)) for pair in pairs)
        return holds is not (symbol == "!=")

    return call


def _strictly(symbol: str) -> Any:
    weak, equal = _comparing(f"{symbol}="), _comparing("==")

    def call(m: Machine, owner: Any, other: Any, /) -> Any:
        result = weak(m, owner, other)
        return result if result is NotImplemented else result and not equal(m, owner, other)

    return call


for _symbol, _name in {"+": "add", "-": "sub", "|": "or", "&": "and"}.items():
    COUNTER.members[f"__{_name}__"] = Builtin(f"Counter.__{_name}__", _combining(_symbol))
    COUNTER.members[f"__i{_name}__"] = Builtin(f"Counter.__i{_name}__", _in_place(_symbol))
for _symbol, _name in {"+": "pos", "-": "neg"}.items():
    COUNTER.members[f"__{_name}__"] = Builtin(f"Counter.__{_name}__", _unary(_symbol))
for _symbol, _name in COMPARISONS.items():
    _compared = _strictly(_symbol) if _symbol in ("<", ">") else _comparing(_symbol)
    COUNTER.members[_name] = Builtin(f"Counter.{_name}", _compared)
COUNTER.members["__hash__"] = None


@repr_of(COUNTER)
def _show(m: Machine, owner: Any, writer: Writer) -> None:
    name = owner.cls.name
    if not dict.__len__(owner):
        writer.add(f"{name}()")
        return
    writer.add(f"{name}(")
    try:
        pairs = _sorted(m, owner)
    except TypeError:
        pairs = list(dict.items(owner))
    writer.container(dict(pairs), "{", "}")
    writer.add(")")
