"""`collections`, all but `namedtuple`. `_Row` is a native base class whose objects are lists."""

import operator
from collections.abc import MutableMapping


class Counter(dict):
    def __init__(self, iterable=None, /, **counts):
        self.update(iterable, **counts)

    def update(self, iterable=None, /, **counts):
        for key, count in _counted(iterable, counts):
            self[key] = self[key] + count if key in self else count

    def subtract(self, iterable=None, /, **counts):
        for key, count in _counted(iterable, counts):
            self[key] = self[key] - count

    def __missing__(self, key):
        return 0

    def __delitem__(self, key):
        dict.pop(self, key, None)

    def most_common(self, n=None):
        pairs = sorted(self.items(), key=lambda pair: pair[1], reverse=True)
        return pairs if n is None else pairs[: max(n, 0)]

    def elements(self):
        for key, count in list(self.items()):
            for _ in range(count):
                yield key

    def total(self):
        return sum(self.values())

    def copy(self):
        return self.__class__(self)

    __copy__ = copy

    @classmethod
    def fromkeys(cls, iterable, v=None, /):
        text = "Counter.fromkeys() is undefined.  Use Counter(iterable) instead."
        raise NotImplementedError(text)

    __add__ = _combining(operator.add)
    __sub__ = _combining(operator.sub)
    __or__ = _combining(max)
    __and__ = _combining(min)
    __iadd__ = _replacing(__add__)
    __isub__ = _replacing(__sub__)
    __ior__ = _replacing(__or__)
    __iand__ = _replacing(__and__)
    __eq__ = _comparing(operator.eq)
    __le__ = _comparing(operator.le)
    __ge__ = _comparing(operator.ge)

    def __pos__(self):
        return self + Counter()

    def __neg__(self):
        return Counter() - self

    def __ne__(self, other):
        return not self == other if isinstance(other, Counter) else NotImplemented

    def __lt__(self, other):
        return self <= other and self != other if isinstance(other, Counter) else NotImplemented

    def __gt__(self, other):
        return self >= other and self != other if isinstance(other, Counter) else NotImplemented

    def __repr__(self):
        name = self.__class__.__name__
        try:
            shown = dict(self.most_common())
        except TypeError:
            shown = dict(self)
        return f"{name}({shown!r})" if shown else f"{name}()"


def _counted(iterable, counts):
    if isinstance(iterable, dict):
        yield from list(iterable.items())
    elif iterable is not None:
        for key in iterable:
            yield key, 1
    yield from counts.items()


def _pairs(left, right):
    return [(key, left.get(key, 0), right.get(key, 0)) for key in {**left, **right}]


def _combining(combine):
    def combined(self, other):
        if not isinstance(other, Counter):
            return NotImplemented
        counts = {key: combine(a, b) for key, a, b in _pairs(self, other)}
        return Counter({key: count for key, count in counts.items() if count > 0})

    return combined


def _replacing(combined):
    def replaced(self, other):
        result = combined(self, other)
        if result is NotImplemented:
            return result
        self.clear()
        dict.update(self, result)
        return self

    return replaced


def _comparing(test):
    def compared(self, other):
        if not isinstance(other, Counter):
            return NotImplemented
        return all(test(a, b) for _, a, b in _pairs(self, other))

    return compared


class defaultdict(dict):
    __slots__ = ("default_factory",)

    def __init__(self, default_factory=None, /, *args, **named):
        if default_factory is not None and not callable(default_factory):
            raise TypeError("first argument must be callable or None")
        self.default_factory = default_factory
        super().__init__(*args, **named)

    def __missing__(self, key):
        if self.default_factory is None:
            raise KeyError(key)
        value = self[key] = self.default_factory()
        return value

    def copy(self):
        return self.__class__(self.default_factory, self)

    __copy__ = copy

    def __or__(self, other):
        return _merged(self, other)

    def __repr__(self):
        return f"defaultdict({self.default_factory!r}, {dict(self)!r})"


def _merged(left, right):
    if not isinstance(right, dict):
        return NotImplemented
    merged = left.copy()
    dict.update(merged, right)
    return merged


class OrderedDict(dict):
    def move_to_end(self, key, last=True):
        value = self.pop(key)
        rest = {} if last else dict(self)
        if rest:
            self.clear()
        self[key] = value
        dict.update(self, rest)

    def popitem(self, last=True):
        if not self:
            raise KeyError("dictionary is empty")
        if last:
            return dict.popitem(self)
        key = next(iter(self))
        return key, self.pop(key)

    def copy(self):
        return self.__class__(self)

    __copy__ = copy

    def __eq__(self, other):
        if not isinstance(other, dict):
            return NotImplemented
        same = dict(self) == dict(other)
        return same and list(self) == list(other) if isinstance(other, OrderedDict) else same

    def __or__(self, other):
        return _merged(self, other)

    def __repr__(self):
        shown = _entries_shown(self) if self else ""
        return f"{self.__class__.__name__}({shown})"


class ChainMap(MutableMapping):
    __slots__ = ("maps",)

    def __init__(self, *maps):
        self.maps = list(maps) or [{}]

    def __missing__(self, key):
        raise KeyError(key)

    def __getitem__(self, key):
        for mapping in self.maps:
            if key in mapping:
                return mapping[key]
        return self.__missing__(key)

    def get(self, key, default=None):
        return self[key] if key in self else default

    def __contains__(self, key):
        return any(key in mapping for mapping in self.maps)

    def __iter__(self):
        keys = {}
        for mapping in reversed(self.maps):
            keys |= dict.fromkeys(mapping)
        return iter(keys)

    def __len__(self):
        return len(list(iter(self)))

    def __bool__(self):
        return any(self.maps)

    def __setitem__(self, key, value):
        self.maps[0][key] = value

    def __delitem__(self, key):
        if key not in self.maps[0]:
            raise KeyError(f"Key not found in the first mapping: {key!r}")
        del self.maps[0][key]

    def new_child(self, m=None, /, **named):
        if m is None:
            return self.__class__(named, *self.maps)
        for key, value in named.items():
            m[key] = value
        return self.__class__(m, *self.maps)

    def copy(self):
        return self.__class__(self.maps[0].copy(), *self.maps[1:])

    __copy__ = copy

    @property
    def parents(self):
        return self.__class__(*self.maps[1:])

    def __repr__(self):
        return f"{self.__class__.__name__}({', '.join(map(repr, self.maps))})"


class deque(_Row):
    __slots__ = ("_maxlen",)

    def __init__(self, iterable=(), maxlen=None):
        if maxlen is not None and maxlen < 0:
            raise ValueError("maxlen must be non-negative")
        list.clear(self)
        self._maxlen = maxlen
        self.extend(iterable)

    @property
    def maxlen(self):
        return self._maxlen

    def append(self, x, /):
        list.append(self, x)
        if self._maxlen is not None and len(self) > self._maxlen:
            list.pop(self, 0)

    def appendleft(self, x, /):
        list.insert(self, 0, x)
        if self._maxlen is not None and len(self) > self._maxlen:
            list.pop(self)

    def extend(self, iterable, /):
        for value in list(self) if iterable is self else iterable:
            self.append(value)

    def extendleft(self, iterable, /):
        for value in list(self) if iterable is self else iterable:
            self.appendleft(value)

    def __iadd__(self, iterable):
        self.extend(iterable)
        return self

    def pop(self):
        if not self:
            raise IndexError("pop from an empty deque")
        return list.pop(self)

    def popleft(self):
        if not self:
            raise IndexError("pop from an empty deque")
        return list.pop(self, 0)

    def clear(self):
        list.clear(self)

    def rotate(self, n=1, /):
        values = list(self)
        cut = -n % len(values) if values else 0
        list.clear(self)
        list.extend(self, values[cut:] + values[:cut])

    def reverse(self):
        list.reverse(self)

    def insert(self, i, x, /):
        if self._maxlen is not None and len(self) >= self._maxlen:
            raise IndexError("deque already at its maximum size")
        list.insert(self, i, x)

    def index(self, x, /, *bounds):
        size = len(self)
        for index in range(size)[slice(*bounds, *(0, size)[len(bounds) :])]:
            if list.__getitem__(self, index) == x:
                return index
            if len(self) != size:
                raise RuntimeError("deque mutated during iteration")
        raise ValueError(f"{x!r} is not in deque")

    def remove(self, value, /):
        list.pop(self, self.index(value))

    def count(self, x, /):
        return list(self).count(x)

    def __contains__(self, value):
        return value in list(self)

    def __reversed__(self):
        return reversed(list(self))

    def __getitem__(self, key):
        return list.__getitem__(self, self.__checked(key))

    def __setitem__(self, key, value):
        list.__setitem__(self, self.__checked(key), value)

    def __delitem__(self, key):
        list.pop(self, self.__checked(key))

    def __checked(self, key):
        if isinstance(key, slice):
            raise TypeError("sequence index must be integer, not 'slice'")
        if not -len(self) <= key < len(self):
            raise IndexError("deque index out of range")
        return key

    def copy(self):
        return self.__class__(self, self._maxlen)

    __copy__ = copy

    def __add__(self, other):
        if not isinstance(other, deque):
            kind = other.__class__.__name__
            raise TypeError(f'can only concatenate deque (not "{kind}") to deque')
        joined = self.copy()
        joined.extend(other)
        return joined

    def __mul__(self, times):
        return self.__class__(list(self) * times, self._maxlen)

    __rmul__ = __mul__

    __eq__ = _by_elements("==", operator.eq)
    __lt__ = _by_elements("<", operator.lt)
    __le__ = _by_elements("<=", operator.le)
    __gt__ = _by_elements(">", operator.gt)
    __ge__ = _by_elements(">=", operator.ge)

    def __repr__(self):
        limit = "" if self._maxlen is None else f", maxlen={self._maxlen}"
        return f"deque({list(self)!r}{limit})"


def _by_elements(symbol, compare):
    def compared(self, other):
        if isinstance(other, deque):
            return compare(list(self), list(other))
        if symbol == "==":
            return False
        kinds = f"'collections.deque' and '{other.__class__.__name__}'"
        raise TypeError(f"'{symbol}' not supported between instances of {kinds}")

    return compared
