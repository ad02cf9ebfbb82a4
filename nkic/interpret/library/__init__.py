"""The modules of Python's standard library that kernels may import.

A module is a table of names: functions, classes, numbers, and names for annotations. All
evaluations share the tables, so they are immutable; functions keep their state in the objects that
they create. `numpy` belongs to the language, because its dtypes do.
"""

from __future__ import annotations

import re
import string
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nkic.base.source import SHIPPED, SourceFile
from nkic.interpret import attributes, builtins
from nkic.interpret.classes import TypingForm
from nkic.interpret.compare import plain_scalar
from nkic.interpret.containers import KernelFrozenSet, KernelSet, copy_dict, copy_set, unordered
from nkic.interpret.library import abcs, enums, forms, functions, itertools, maths
from nkic.interpret.library.dataclasses import FIELD, MISSING, dataclass, field
from nkic.interpret.library.functions import PARTIAL
from nkic.interpret.library.support import kernel_class, library_class, unsupported
from nkic.interpret.objects import (
    INSTANCES,
    UNSET,
    Builtin,
    Class,
    ErrorInstance,
    Frozen,
    ListInstance,
    Written,
    seal_all,
)

if TYPE_CHECKING:
    from nkic.interpret.machine import Machine

# ---- `copy`: copies of containers and kernel objects; other values are returned as they are -----


def shallow(m: Machine, value: Any, /) -> Any:
    """Return `copy.copy(value)`."""
    kind = value.__class__
    if kind in (list, dict, set, KernelSet):
        m.elements(len(value), f"the {m.class_of(value).name}")
        if isinstance(value, set):
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
    same = parts if isinstance(value, set) else KernelFrozenSet(unordered(parts))
    return _keep(memo, value, same)


_COPIERS: dict[type, Any] = {
    list: _deep_list,
    tuple: _deep_tuple,
    dict: _deep_dict,
    set: _deep_set,
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

# ------------------------------------------------------------------------------------------------
# The modules of the library that are kernel source, in nkic/interpret/library/source.
# nkic's own interpreter runs them, so they pay for what they do and reach only what kernels reach,
# and the values named in `_NATIVES`. They are never imported as Python modules.

_FOLDER = Path(__file__).parent / "source"  # importlib.resources is slow to import
_DEFINITION = re.compile(r"(?m)^(?:(?:def|class) (\w+)|from \S+ import (.+)|import (\w+)|(\w+) = )")


def _row() -> Class:
    """Return the base of a class whose objects are lists, but not of the class `list`."""
    cls = library_class("object", "builtins", payload=list)
    cls.extra["content"] = lambda m, cls, payload, args, named: ListInstance()
    return cls


def _entries_shown(m: Machine, entries: Any, /) -> str:
    """Return the argument in the text of an `OrderedDict`, which depends on Python's version."""
    newer = sys.version_info >= (3, 12)
    return str(m.repr(dict(dict.items(entries)) if newer else m.to_list(dict.items(entries))))


def _kernel_class(m: Machine, cls: Any, decorator: str, /) -> None:
    """Raise unless a decorator may change the class."""
    kernel_class(m, cls, decorator)


def _named(m: Machine, cls: Any, name: str, /) -> Any:
    """Return a class, which messages call so."""
    cls.name, cls.qualname = name, name.rpartition(".")[2]
    return cls


def _reraise(m: Machine, error: Any, /) -> None:
    """Raise an exception again; messages point to where it was raised first."""
    raise error


def _fields_of(m: Machine, value: Any, /) -> list[Any] | None:
    cls = value if isinstance(value, Class) else m.class_of(value)
    specs = cls.hook("dataclass")
    if specs is None:
        return None
    m.elements(8 * len(specs), "the fields")
    return [(spec.name, spec.kind, spec.init, spec.shown) for spec in specs.values()]


_NAMED = Builtin("_named", _named)

# What only the source of a module sees, by module.
_NATIVES: dict[str, dict[str, Any]] = {
    "contextlib": {"_reraise": Builtin("_reraise", _reraise)},
    "dataclasses": {"_MISSING": MISSING, "_fields_of": Builtin("_fields_of", _fields_of)},
    "functools": {
        "_kernel_class": Builtin("_kernel_class", _kernel_class),
        "_named": _NAMED,
        "partial": PARTIAL,
    },
    "os": {"_named": _NAMED},
    "collections": {"_Row": _row(), "_entries_shown": Builtin("_entries_shown", _entries_shown)},
}


def written(module: str) -> dict[str, Written]:
    """Return the public names of a module that are kernel source."""
    text = (_FOLDER / f"{module}.py").read_text(encoding="utf-8")
    matches = list(_DEFINITION.finditer(text))
    ends = [*(match.start() for match in matches[1:]), len(text)]
    files: dict[str, SourceFile] = {}
    for match, end in zip(matches, ends, strict=True):
        names = next(filter(None, match.groups())).split(", ")
        source = SourceFile(f"{SHIPPED}.library>/{module}/{names[0]}.py", text[match.start() : end])
        files |= dict.fromkeys(names, source)
    natives = _NATIVES.get(module, {})
    public = [name for m in matches if (name := m[1] or m[4]) and not name.startswith("_")]
    return {name: Written(module, name, files, natives) for name in public}


_CONSTANTS = (
    *("ascii_letters", "ascii_lowercase", "ascii_uppercase", "digits", "hexdigits", "octdigits"),
    *("printable", "punctuation", "whitespace"),
)
_STRING: dict[str, Any] = {
    **{name: getattr(string, name) for name in _CONSTANTS},
    "Formatter": unsupported("string.Formatter", "use an f-string, or `str.format`"),
}
_TEXTWRAP = {
    name: unsupported(f"textwrap.{name}", "write the lines as they should appear")
    for name in ("TextWrapper", "fill", "shorten", "wrap")
}
# The levels of `logging` alone, which decorators of NKI take.
_LOGGING = {"NOTSET": 0, "DEBUG": 10, "INFO": 20, "WARNING": 30, "ERROR": 40}
_DATACLASSES: dict[str, Any] = {
    "dataclass": Builtin("dataclass", dataclass),
    "field": Builtin("field", field),
    "Field": FIELD,
    "MISSING": MISSING,
    "KW_ONLY": TypingForm("KW_ONLY"),
    "InitVar": TypingForm("InitVar"),
    "make_dataclass": unsupported("make_dataclass", "write the class out, under `@dataclass`"),
}


@cache
def modules() -> dict[str, dict[str, Any]]:
    """Return every module by name, as a table of its names."""
    collections = written("collections")
    frozen = {"FrozenInstanceError": builtins.table()["FrozenInstanceError"]}
    typing = {**forms.MODULE, **forms.aliases(collections)}
    tables: dict[str, dict[str, Any]] = {
        "math": maths.MODULE,
        "operator": {**functions.OPERATOR, **written("operator")},
        "itertools": itertools.MODULE,
        "functools": {**functions.MODULE, **written("functools")},
        "collections": {**forms.FUNCTIONS, **collections},
        "collections.abc": dict(abcs.MODULE),
        "string": {**_STRING, **written("string")},
        "textwrap": {**_TEXTWRAP, **written("textwrap")},
        "enum": enums.MODULE,
        "dataclasses": {**_DATACLASSES, **frozen, **written("dataclasses")},
        "typing": typing,
        "typing_extensions": typing,
        "abc": abcs.ABC_MODULE,
        "copy": {**MODULE, **written("copy")},
        "contextlib": {**functions.CONTEXTLIB, **written("contextlib")},
        "os": written("os"),
        "sys": {"stdout": None, "stderr": None, "maxsize": (1 << 63) - 1},
        "logging": _LOGGING,
        "__future__": {},
    }
    return {name: Frozen(table) for name, table in tables.items()}


seal_all()
