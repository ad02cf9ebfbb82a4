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
from nkic.interpret import builtins
from nkic.interpret.classes import TypingForm
from nkic.interpret.library import (
    abcs,
    copying,
    enums,
    forms,
    functions,
    itertools,
    maths,
    namedtuples,
)
from nkic.interpret.library.dataclasses import FIELD, MISSING, dataclass, field
from nkic.interpret.library.functions import PARTIAL
from nkic.interpret.library.support import kernel_class, library_class, unsupported
from nkic.interpret.objects import Builtin, Class, Frozen, ListInstance, Written, seal_all

if TYPE_CHECKING:
    from nkic.interpret.machine import Machine


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
    """Return the fields of a dataclass or of an object of one, or None."""
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
        "collections": {**namedtuples.FUNCTIONS, **collections},
        "collections.abc": dict(abcs.MODULE),
        "string": {**_STRING, **written("string")},
        "textwrap": {**_TEXTWRAP, **written("textwrap")},
        "enum": enums.MODULE,
        "dataclasses": {**_DATACLASSES, **frozen, **written("dataclasses")},
        "typing": typing,
        "typing_extensions": typing,
        "abc": abcs.ABC_MODULE,
        "copy": {**copying.MODULE, **written("copy")},
        "contextlib": {**functions.CONTEXTLIB, **written("contextlib")},
        "os": written("os"),
        "sys": {"stdout": None, "stderr": None, "maxsize": (1 << 63) - 1},
        "logging": _LOGGING,
        "__future__": {},
    }
    return {name: Frozen(table) for name, table in tables.items()}


seal_all()
