"""`collections.deque`: a list with operations at both ends, under a class of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nkic.evaluate import attributes
from nkic.evaluate.compare import COMPARISONS, compare
from nkic.evaluate.library.support import Hidden, is_instance_of, library_class, methods, repr_of
from nkic.evaluate.objects import Builtin, Class, Getter, ListInstance

if TYPE_CHECKING:
    from nkic.evaluate.machine import Machine
    from nkic.evaluate.texts import Writer

DEQUE = library_class("deque", "collections", payload=list)
_MAXLEN = Hidden("_maxlen")
_ALL = slice(None)


def _content(m: Machine, cls: Class, payload: type, args: Any, named: Any) -> Any:
    return ListInstance()


DEQUE.extra |= {"content": _content, "copied": True}
DEQUE.members["__hash__"] = None


def _maxlen(owner: Any) -> Any:
    return owner.fields.get(_MAXLEN)


DEQUE.members["maxlen"] = Getter("maxlen", lambda m, owner: _maxlen(owner))


@methods(DEQUE, "__init__")
def _init(m: Machine, owner: Any, iterable: Any = (), maxlen: Any = None) -> None:
    limit = None if maxlen is None else m.index(maxlen)
    if limit is not None and limit < 0:
        raise ValueError("maxlen must be non-negative")
    list.clear(owner)
    attributes.write_field(m, owner, _MAXLEN, limit)
    _extend(m, owner, iterable)


def _put(m: Machine, owner: Any, value: Any, left: bool) -> None:
    """Append at one end; if the deque is full, drop an element at the other end."""
    m.charge(8)
    size, limit = list.__len__(owner), _maxlen(owner)
    if limit == 0:
        return
    if left:
        m.charge(size >> 5)
        list.insert(owner, 0, value)
    else:
        list.append(owner, value)
    if limit is not None and size >= limit:
        m.charge(size >> 5)
        list.pop(owner, -1 if left else 0)
    else:
        m.allow_length(size + 1, "the deque")


@methods(DEQUE, "append")
def _append(m: Machine, owner: Any, x: Any, /) -> None:
    _put(m, owner, x, left=False)


@methods(DEQUE, "appendleft")
def _appendleft(m: Machine, owner: Any, x: Any, /) -> None:
    _put(m, owner, x, left=True)


@methods(DEQUE, "extend")
def _extend_method(m: Machine, owner: Any, iterable: Any, /) -> None:
    _extend(m, owner, iterable)


def _iadd(m: Machine, owner: Any, iterable: Any, /) -> Any:
    if not is_instance_of(owner, DEQUE):
        return NotImplemented
    _extend(m, owner, iterable)
    return owner


DEQUE.members["__iadd__"] = Builtin("deque.__iadd__", _iadd)


def _extend(m: Machine, owner: Any, iterable: Any, left: bool = False) -> None:
    values = m.to_list(owner) if iterable is owner else m.iterate(iterable)
    for value in values:
        _put(m, owner, value, left)


@methods(DEQUE, "extendleft")
def _extendleft(m: Machine, owner: Any, iterable: Any, /) -> None:
    _extend(m, owner, iterable, left=True)


def _pop_at(m: Machine, owner: Any, index: int) -> Any:
    if not list.__len__(owner):
        raise IndexError("pop from an empty deque")
    m.charge(list.__len__(owner) >> 5)
    return list.pop(owner, index)


@methods(DEQUE, "pop")
def _pop(m: Machine, owner: Any) -> Any:
    return _pop_at(m, owner, -1)


@methods(DEQUE, "popleft")
def _popleft(m: Machine, owner: Any) -> Any:
    return _pop_at(m, owner, 0)


@methods(DEQUE, "clear")
def _clear(m: Machine, owner: Any) -> None:
    list.clear(owner)


@methods(DEQUE, "rotate")
def _rotate(m: Machine, owner: Any, n: Any = 1, /) -> None:
    size, by = list.__len__(owner), m.index(n)
    if size:
        m.elements(2 * size, "the deque")
        values = list(list.__iter__(owner))
        cut = -by % size
        list.__setitem__(owner, _ALL, [*values[cut:], *values[:cut]])


@methods(DEQUE, "reverse")
def _reverse(m: Machine, owner: Any) -> None:
    m.charge(list.__len__(owner) >> 3)
    list.reverse(owner)


@methods(DEQUE, "insert")
def _insert(m: Machine, owner: Any, i: Any, x: Any, /) -> None:
    limit, size = _maxlen(owner), list.__len__(owner)
    if limit is not None and size >= limit:
        raise IndexError("deque already at its maximum size")
    m.charge(3 + (size >> 5))
    m.allow_length(size + 1, "the deque")
    list.insert(owner, max(-(1 << 62), min(1 << 62, m.index(i))), x)


def _find(m: Machine, owner: Any, value: Any, bounds: tuple[Any, ...] = ()) -> int:
    size = list.__len__(owner)
    indices = [m.index(bound) for bound in bounds]
    first, last, _ = slice(*(indices + [0, size][len(indices) :])).indices(size)
    for index in range(first, last):
        m.charge(1)
        if index < list.__len__(owner) and m.equal(list.__getitem__(owner, index), value):
            if list.__len__(owner) != size:
                raise RuntimeError("deque mutated during iteration")
            return index
    return -1


@methods(DEQUE, "index")
def _index(m: Machine, owner: Any, x: Any, /, *bounds: Any) -> int:
    index = _find(m, owner, x, bounds)
    if index < 0:
        raise ValueError(f"{m.repr(x)} is not in deque")
    return index


@methods(DEQUE, "remove")
def _remove(m: Machine, owner: Any, value: Any, /) -> None:
    index = _find(m, owner, value)
    if index < 0:
        raise ValueError(f"{m.repr(value)} is not in deque")
    _pop_at(m, owner, index)


@methods(DEQUE, "count")
def _count(m: Machine, owner: Any, x: Any, /) -> int:
    return sum(m.equal(element, x) for element in _values(m, owner))


def _values(m: Machine, owner: Any) -> list[Any]:
    m.elements(list.__len__(owner), "the list")
    return list(list.__iter__(owner))


@methods(DEQUE, "__contains__")
def _contains(m: Machine, owner: Any, value: Any, /) -> bool:
    return any(m.equal(element, value) for element in _values(m, owner))


@methods(DEQUE, "__reversed__")
def _reversed(m: Machine, owner: Any) -> Any:
    return iter(_values(m, owner)[::-1])


def _checked_index(m: Machine, owner: Any, key: Any) -> int:
    if isinstance(key, slice):
        raise TypeError("sequence index must be integer, not 'slice'")
    index = m.index(key)
    if not -list.__len__(owner) <= index < list.__len__(owner):
        raise IndexError("deque index out of range")
    return index


@methods(DEQUE, "__getitem__")
def _getitem(m: Machine, owner: Any, key: Any, /) -> Any:
    return list.__getitem__(owner, _checked_index(m, owner, key))


@methods(DEQUE, "__setitem__")
def _setitem(m: Machine, owner: Any, key: Any, value: Any, /) -> None:
    list.__setitem__(owner, _checked_index(m, owner, key), value)


@methods(DEQUE, "__delitem__")
def _delitem(m: Machine, owner: Any, key: Any, /) -> None:
    _pop_at(m, owner, _checked_index(m, owner, key))


@methods(DEQUE, "copy", "__copy__")
def _copy(m: Machine, owner: Any) -> Any:
    return m.call(owner.cls, (_values(m, owner), _maxlen(owner)), None)


@methods(DEQUE, "__add__")
def _add(m: Machine, owner: Any, other: Any, /) -> Any:
    if not is_instance_of(other, DEQUE):
        kind = m.class_of(other).name
        raise TypeError(f'can only concatenate deque (not "{kind}") to deque')
    joined = _copy(m, owner)
    _extend(m, joined, _values(m, other))
    return joined


@methods(DEQUE, "__mul__", "__rmul__")
def _multiply(m: Machine, owner: Any, times: Any, /) -> Any:
    count = max(m.index(times), 0)
    values = _values(m, owner)
    m.elements(len(values) * count, "the deque")
    return m.call(owner.cls, (values * count, _maxlen(owner)), None)


def _compare_unlike(m: Machine, symbol: str, owner: Any, other: Any) -> bool:
    """Compare with a list, which a deque is never equal to."""
    if symbol in ("==", "!="):
        return symbol == "!="
    kinds = " and ".join(_kind(m, operand) for operand in (owner, other))
    raise TypeError(f"'{symbol}' not supported between instances of {kinds}")


def _kind(m: Machine, value: Any) -> str:
    return "'collections.deque'" if is_instance_of(value, DEQUE) else f"'{m.class_of(value).name}'"


def _comparing(symbol: str) -> Any:
    def call(m: Machine, owner: Any, other: Any, /) -> Any:
        if not is_instance_of(other, DEQUE) or not is_instance_of(owner, DEQUE):
            return _compare_unlike(m, symbol, owner, other)
        return compare(m, symbol, _values(m, owner), _values(m, other))

    return call


for _symbol, _name in COMPARISONS.items():
    DEQUE.members[_name] = Builtin(f"deque.{_name}", _comparing(_symbol))


@repr_of(DEQUE)
def _show(m: Machine, owner: Any, writer: Writer) -> None:
    writer.add("deque(")
    writer.container(_values(m, owner), "[", "]")
    limit = _maxlen(owner)
    writer.add(")" if limit is None else f", maxlen={limit})")
