"""The functions of `dataclasses` on objects.

A field is its name, its kind, whether `__init__` takes it, and the result of `field(…)`.
"""

from copy import deepcopy


def fields(class_or_instance, /):
    found = _fields_of(class_or_instance)
    if found is None:
        raise TypeError("must be called with a dataclass type or instance")
    return tuple([shown for _, kind, _, shown in found if kind == "field"])


def is_dataclass(obj, /):
    return _fields_of(obj) is not None


def replace(obj, /, **changes):
    for name, kind, init, shown in _of_object(obj, "replace"):
        if not init:
            if name in changes:
                raise ValueError(
                    f"field {name} is declared with init=False, it cannot be specified with "
                    "replace()"
                )
        elif name not in changes:
            if kind == "initvar" and shown.default is _MISSING:
                raise ValueError(f"InitVar '{name}' must be specified with replace()")
            changes[name] = getattr(obj, name)
    return obj.__class__(**changes)


def _of_object(obj, function):
    found = None if isinstance(obj, type) else _fields_of(obj)
    if found is None:
        raise TypeError(f"{function}() should be called on dataclass instances")
    return found


def asdict(obj, /, *, dict_factory=None):
    _of_object(obj, "asdict")
    return _plain(obj, dict_factory or dict)


def astuple(obj, /, *, tuple_factory=None):
    _of_object(obj, "astuple")
    factory = tuple_factory or tuple
    return _plain(obj, lambda pairs: factory([value for _, value in pairs]))


def _plain(value, make):
    """Convert a value and all dataclass objects in it. Containers are copied."""
    cls = value.__class__
    found = None if isinstance(value, type) else _fields_of(value)
    if found is not None:
        names = [name for name, kind, _, _ in found if kind == "field"]
        return make([(name, _plain(getattr(value, name), make)) for name in names])
    if isinstance(value, (list, tuple)):
        parts = [_plain(part, make) for part in value]
        return cls(*parts) if hasattr(value, "_fields") else cls(parts)
    if isinstance(value, dict):
        copied = cls(value.default_factory) if cls.__name__ == "defaultdict" else cls()
        copied.update([(_plain(key, make), _plain(part, make)) for key, part in value.items()])
        return copied
    return deepcopy(value)
