"""`functools`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nkic.evaluate import attributes
from nkic.evaluate.compare import COMPARISONS, compare
from nkic.evaluate.errors import KernelError
from nkic.evaluate.library.caches import CACHED_PROPERTY, cache, lru_cache
from nkic.evaluate.library.support import (
    charge_arguments,
    final,
    is_instance_of,
    kernel_class,
    library_class,
    methods,
    new_instance,
    repr_of,
    unsupported,
)
from nkic.evaluate.objects import (
    INSTANCES,
    UNSET,
    Builtin,
    Class,
    Function,
    Method,
)
from nkic.evaluate.tables import OBJECT, builtin
from nkic.evaluate.types.lazy import is_callable

if TYPE_CHECKING:
    from nkic.evaluate.machine import Machine
    from nkic.evaluate.texts import Writer

MODULE: dict[str, Any] = {
    "cache": cache,
    "lru_cache": lru_cache,
    "cached_property": CACHED_PROPERTY,
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


# ---- reduce and comparison ----------------------------------------------------------------------


@builtin("reduce", MODULE)
def _reduce(m: Machine, function: Any, iterable: Any, /, *initial: Any) -> Any:
    if len(initial) > 1:
        raise TypeError(f"reduce expected at most 3 arguments, got {2 + len(initial)}")
    try:
        remaining = iter(m.iterate(iterable))
    except TypeError as error:
        if "is not iterable" not in str(error):
            raise
        raise TypeError("reduce() arg 2 must support iteration") from None
    result = initial[0] if initial else next(remaining, UNSET)
    if result is UNSET:
        raise TypeError("reduce() of empty iterable with no initial value")
    for value in remaining:
        m.charge(2)
        result = m.call(function, (result, value), None)
    return result


KEY = final(library_class("KeyWrapper", "functools"))


@builtin("cmp_to_key", MODULE)
def _cmp_to_key(m: Machine, mycmp: Any) -> Any:
    return Builtin("KeyWrapper", lambda m, obj: new_instance(m, KEY, compare=mycmp, obj=obj))


def _key_order(symbol: str) -> Any:
    def call(m: Machine, owner: Any, other: Any, /) -> Any:
        if not is_instance_of(owner, KEY) or not is_instance_of(other, KEY):
            raise TypeError("other argument must be K instance")
        fields = owner.fields
        order = m.call(fields["compare"], (fields["obj"], other.fields["obj"]), None)
        return compare(m, symbol, order, 0)

    return call


for _symbol, _name in COMPARISONS.items():
    if _symbol != "!=":
        KEY.members[_name] = Builtin(_name, _key_order(_symbol))
KEY.members["__hash__"] = None


# ---- total_ordering -----------------------------------------------------------------------------

# The derived methods of each root method: whether the root's result is negated, and the test that
# the result is combined with.
_DERIVED = {
    "__lt__": {"__gt__": (True, "and !="), "__le__": (False, "or =="), "__ge__": (True, "")},
    "__le__": {"__ge__": (True, "or =="), "__lt__": (False, "and !="), "__gt__": (True, "")},
    "__gt__": {"__lt__": (True, "and !="), "__ge__": (False, "or =="), "__le__": (True, "")},
    "__ge__": {"__le__": (True, "or =="), "__gt__": (False, "and !="), "__lt__": (True, "")},
}


@builtin("total_ordering", MODULE)
def _total_ordering(m: Machine, cls: Any, /) -> Any:
    target_class = kernel_class(m, cls, "total_ordering")
    roots = [name for name in _DERIVED if _defined(target_class, name)]
    if not roots:
        raise ValueError("must define at least one ordering operation: < > <= >=")
    root = next(name for name in ("__lt__", "__le__", "__gt__", "__ge__") if name in roots)
    for name, (negated, combined) in _DERIVED[root].items():
        if name not in roots:
            m.allocate(300)
            target_class.members[name] = Builtin(name, _derived(root, negated, combined))
    return target_class


def _defined(cls: Class, name: str) -> bool:
    return any(name in ancestor.members for ancestor in cls.mro if ancestor is not OBJECT)


def _derived(root: str, negated: bool, combined: str) -> Any:
    def call(m: Machine, owner: Any, other: Any, /) -> Any:
        result = m.call(m.class_of(owner).find(root), (owner, other), None)
        if result is NotImplemented:
            return result
        answer = m.truth(result)
        answer = not answer if negated else answer
        if not combined or answer is combined.startswith("or"):
            return answer
        return m.truth(compare(m, combined.split()[1], owner, other))

    return call


# ---- wraps --------------------------------------------------------------------------------------


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


# ---- singledispatch -----------------------------------------------------------------------------

DISPATCH = final(library_class("singledispatch", "functools"))


@builtin("singledispatch", MODULE)
def _singledispatch(m: Machine, func: Any) -> Any:
    return new_instance(m, DISPATCH, function=func, registry={m.builtins["object"]: func})


@methods(DISPATCH, "register")
def _register(m: Machine, owner: Any, cls: Any, func: Any = None) -> Any:
    if not isinstance(cls, Class):
        raise TypeError(
            "Invalid first argument to `register()`: kernels never evaluate annotations; give "
            "the class, `@f.register(int)`"
        )
    if func is None:
        return Builtin("register", lambda m, func, /: _register(m, owner, cls, func))
    m.put_item(owner.fields["registry"], cls, func)
    return func


@methods(DISPATCH, "dispatch")
def _dispatch(m: Machine, owner: Any, cls: Any) -> Any:
    registry = owner.fields["registry"]
    if not isinstance(cls, Class) or not isinstance(registry, dict):
        raise TypeError("dispatch() takes a class")
    return next(registry[ancestor] for ancestor in cls.mro if ancestor in registry)


@methods(DISPATCH, "__call__")
def _dispatched(m: Machine, owner: Any, /, *args: Any, **named: Any) -> Any:
    if not args:
        raise TypeError("the function requires at least 1 positional argument")
    return m.call(_dispatch(m, owner, m.class_of(args[0])), args, named)


@methods(DISPATCH, "__get__")
def _bound(m: Machine, owner: Any, holder: Any, cls: Any = None) -> Any:
    return owner if holder is None else Method(owner, holder)
