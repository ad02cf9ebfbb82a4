"""`functools`: what its native part leaves."""

import operator


class _Nothing:
    """Stands for no value."""


def reduce(function, iterable, /, *initial):
    if len(initial) > 1:
        raise TypeError(f"reduce expected at most 3 arguments, got {2 + len(initial)}")
    try:
        values = iter(iterable)
    except TypeError as error:
        if "is not iterable" not in str(error):
            raise
        raise TypeError("reduce() arg 2 must support iteration") from None
    result = initial[0] if initial else next(values, _Nothing)
    if result is _Nothing:
        raise TypeError("reduce() of empty iterable with no initial value")
    for value in values:
        result = function(result, value)
    return result


def cmp_to_key(mycmp):
    return lambda obj: _NAMED_KEY(mycmp, obj)


class _Key:
    __slots__ = ("compare", "obj")

    def __init__(self, compare, obj):
        self.compare, self.obj = compare, obj

    __eq__ = _ordering(operator.eq)
    __lt__ = _ordering(operator.lt)
    __le__ = _ordering(operator.le)
    __gt__ = _ordering(operator.gt)
    __ge__ = _ordering(operator.ge)


_NAMED_KEY = _named(_Key, "functools.KeyWrapper")


def _ordering(test):
    def ordered(self, other):
        if not isinstance(other, _Key):
            raise TypeError("other argument must be K instance")
        return test(self.compare(self.obj, other.obj), 0)

    return ordered


# The derived methods of each root method: whether the root's result is negated, and the test that
# the result is combined with.
_DERIVED = {
    "__lt__": {"__gt__": (True, "and !="), "__le__": (False, "or =="), "__ge__": (True, "")},
    "__le__": {"__ge__": (True, "or =="), "__lt__": (False, "and !="), "__gt__": (True, "")},
    "__gt__": {"__lt__": (True, "and !="), "__ge__": (False, "or =="), "__le__": (True, "")},
    "__ge__": {"__le__": (True, "or =="), "__gt__": (False, "and !="), "__lt__": (True, "")},
}


def total_ordering(cls, /):
    _kernel_class(cls, "total_ordering")
    roots = [name for name in _DERIVED if getattr(cls, name) is not getattr(object, name)]
    if not roots:
        raise ValueError("must define at least one ordering operation: < > <= >=")
    for name, (negated, combined) in _DERIVED[roots[0]].items():
        if name not in roots:
            setattr(cls, name, _derived(roots[0], negated, combined))
    return cls


def _derived(root, negated, combined):
    def compared(self, other):
        result = getattr(type(self), root)(self, other)
        if result is NotImplemented:
            return result
        answer = bool(result) is not negated
        if not combined or answer is combined.startswith("or"):
            return answer
        return bool(self == other if combined == "or ==" else self != other)

    return compared


class singledispatch:
    __slots__ = ("function", "registry")

    def __init__(self, func):
        self.function, self.registry = func, {object: func}

    def register(self, cls, func=None):
        if not isinstance(cls, type):
            raise TypeError(
                "Invalid first argument to `register()`: kernels never evaluate annotations; give "
                "the class, `@f.register(int)`"
            )
        if func is None:
            return lambda func: self.register(cls, func)
        self.registry[cls] = func
        return func

    def dispatch(self, cls):
        if not isinstance(cls, type):
            raise TypeError("dispatch() takes a class")
        return next(self.registry[base] for base in cls.__mro__ if base in self.registry)

    def __call__(self, /, *args, **named):
        if not args:
            raise TypeError("the function requires at least 1 positional argument")
        return self.dispatch(type(args[0]))(*args, **named)

    def __get__(self, holder, cls=None):
        return self if holder is None else partial(self, holder)


class cached_property:
    __slots__ = ("attrname", "func")

    def __init__(self, func):
        self.func, self.attrname = func, None

    def __set_name__(self, owner, name):
        if self.attrname is not None and self.attrname != name:
            raise TypeError(
                "Cannot assign the same cached_property to two different names "
                f"({self.attrname!r} and {name!r})."
            )
        self.attrname = name

    def __get__(self, holder, cls=None):
        if holder is None:
            return self
        if not isinstance(self.attrname, str):
            raise TypeError(
                "Cannot use cached_property instance without calling __set_name__ on it."
            )
        value = self.func(holder)
        object.__setattr__(holder, self.attrname, value)
        return value
