"""The getters of `operator`."""


class itemgetter:
    __slots__ = ("_items",)

    def __init__(self, item, /, *items):
        self._items = (item, *items)

    def __call__(self, obj, /):
        values = [obj[item] for item in self._items]
        return values[0] if len(values) == 1 else tuple(values)

    def __repr__(self):
        return f"operator.itemgetter({', '.join(map(repr, self._items))})"


class attrgetter:
    __slots__ = ("_attrs",)

    def __init__(self, attr, /, *attrs):
        if not all([isinstance(name, str) for name in (attr, *attrs)]):
            raise TypeError("attribute name must be a string")
        self._attrs = (attr, *attrs)

    def __call__(self, obj, /):
        values = [_by_path(obj, path) for path in self._attrs]
        return values[0] if len(values) == 1 else tuple(values)

    def __repr__(self):
        return f"operator.attrgetter({', '.join(map(repr, self._attrs))})"


def _by_path(obj, path):
    for name in path.split("."):
        obj = getattr(obj, name)
    return obj


class methodcaller:
    __slots__ = ("_args", "_name", "_named")

    def __init__(self, name, /, *args, **named):
        if not isinstance(name, str):
            raise TypeError("method name must be a string")
        self._name, self._args, self._named = name, args, named

    def __call__(self, obj, /):
        return getattr(obj, self._name)(*self._args, **self._named)

    def __repr__(self):
        named = (f"{name}={value!r}" for name, value in self._named.items())
        shown = [*map(repr, (self._name, *self._args)), *named]
        return f"operator.methodcaller({', '.join(shown)})"
