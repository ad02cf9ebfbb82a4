"""`copy`: copies of containers and of kernel objects. All other values are returned as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nkic.interpret import attributes
from nkic.interpret.compare import plain_scalar
from nkic.interpret.containers import copy_dict, copy_set
from nkic.interpret.iteration import KernelFrozenSet, KernelSet, unordered
from nkic.interpret.objects import INSTANCES, UNSET, Builtin, ErrorInstance

if TYPE_CHECKING:
    from nkic.interpret.machine import Machine


def shallow(m: Machine, value: Any, /) -> Any:
    """Return `copy.copy(value)`."""
    kind = value.__class__
    if kind in (list, dict, KernelSet):
        m.elements(len(value), f"the {m.class_of(value).name}")
        if kind is KernelSet:
            return copy_set(m, value)
        return copy_dict(m, value) if kind is dict else kind(value)
    if kind not in INSTANCES:
        return value
    hook = value.cls.find("__copy__")
    if hook is not UNSET:
        return m.call(hook, (value,), None)
    return value if _stays(value) else _copied(m, value, dict(value.fields))


def deep(m: Machine, value: Any, memo: dict[int, Any]) -> Any:
    """Return `copy.deepcopy(value)`. `memo` maps addresses of copied values to (value, copy)."""
    kind = value.__class__
    if kind not in INSTANCES and kind not in _COPIERS:
        return value
    copied = memo.get(id(value))
    if copied is not None:
        return copied[1]
    m.charge(20)
    return m.nested(_COPIERS.get(kind, _deep_object), m, value, memo)


def _keep(memo: dict[int, Any], value: Any, copied: Any) -> Any:
    memo[id(value)] = (value, copied)
    return copied


def _deep_list(m: Machine, value: list[Any], memo: dict[int, Any]) -> list[Any]:
    m.elements(len(value), "the list")
    copied: list[Any] = _keep(memo, value, [])
    for part in value:
        copied.append(deep(m, part, memo))
    return copied


def _deep_tuple(m: Machine, value: tuple[Any, ...], memo: dict[int, Any]) -> Any:
    m.elements(len(value), "the tuple")
    copied = tuple([deep(m, part, memo) for part in value])
    if id(value) in memo:  # it contains itself
        return memo[id(value)][1]
    same = all(a is b for a, b in zip(copied, value, strict=True))
    return _keep(memo, value, value if same else copied)


def _deep_dict(m: Machine, value: dict[Any, Any], memo: dict[int, Any]) -> dict[Any, Any]:
    m.elements(3 * len(value), "the dict")
    copied: dict[Any, Any] = _keep(memo, value, {})
    for key, part in list(value.items()):
        key = deep(m, key, memo)
        m.check_key(key, len(copied))
        copied[key] = deep(m, part, memo)
    return copied


def _deep_set(m: Machine, value: Any, memo: dict[int, Any]) -> Any:
    m.elements(len(value), "the set")
    parts = m.make_set([deep(m, part, memo) for part in value])
    same = parts if value.__class__ is KernelSet else KernelFrozenSet(unordered(parts))
    return _keep(memo, value, same)


_COPIERS: dict[type, Any] = {
    list: _deep_list,
    tuple: _deep_tuple,
    dict: _deep_dict,
    KernelSet: _deep_set,
    KernelFrozenSet: _deep_set,
}


def _deep_object(m: Machine, value: Any, memo: dict[int, Any]) -> Any:
    hook = value.cls.find("__deepcopy__")
    if hook is not UNSET:
        return _keep(memo, value, m.call(hook, (value, {}), None))
    if _stays(value):
        return value
    copied = _keep(memo, value, _copied(m, value, {}))
    for name, part in list(value.fields.items()):
        attributes.write_field(m, copied, name, deep(m, part, memo))
    if isinstance(copied, list):
        list.__setitem__(copied, slice(None), [deep(m, p, memo) for p in list.__iter__(value)])
    elif isinstance(copied, dict):
        dict.clear(copied)
        for key, part in list(dict.items(value)):
            key = deep(m, key, memo)
            m.check_key(key, dict.__len__(copied))
            dict.__setitem__(copied, key, deep(m, part, memo))
    return copied


def _stays(value: Any) -> bool:
    """Whether copies share the value: enumeration members, exceptions, library objects."""
    shared = value.cls.machine is None and value.cls.extra.get("copied") is None
    return "enum" in value.cls.extra or value.__class__ is ErrorInstance or shared


def _copied(m: Machine, value: Any, fields: dict[str, Any]) -> Any:
    """Return an object of the same class with these fields and the elements of `value`."""
    m.elements(3 * len(fields), "the fields")
    base: Any = next(
        (kind for kind in (list, dict, tuple, str, int, float) if isinstance(value, kind)), None
    )
    if base is None:
        copied = value.__class__()
    else:
        m.elements(1 if base in (int, float) else base.__len__(value), "the copy")
        copied = value.__class__(_content(m, base, value))
    copied.cls, copied.fields, copied.serial = value.cls, fields, m.serial()
    m.allocate(232)
    return copied


def _content(m: Machine, base: Any, value: Any) -> Any:
    if base is dict:
        return copy_dict(m, value)
    if base in (list, tuple):
        return list(base.__iter__(value))
    return plain_scalar(value)


def _deepcopy(m: Machine, x: Any, memo: Any = None, /) -> Any:
    return deep(m, x, {})


MODULE: dict[str, Any] = {
    "copy": Builtin("copy", shallow),
    "deepcopy": Builtin("deepcopy", _deepcopy),
}
