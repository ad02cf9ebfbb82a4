"""The modules of the library that are kernel source, in nkic/evaluate/library/source.

nkic's own interpreter runs them, so they pay for what they do and reach only what kernels reach,
and the values named in `_NATIVES`. They are never imported as Python modules.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nkic.base.source import SHIPPED, SourceFile
from nkic.evaluate.library.dataclasses import MISSING
from nkic.evaluate.library.functions import PARTIAL
from nkic.evaluate.library.support import kernel_class, library_class
from nkic.evaluate.objects import Builtin, Class, ListInstance, Written

if TYPE_CHECKING:
    from nkic.evaluate.machine import Machine

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


# What only the source of a module sees, by module.
_NATIVES: dict[str, dict[str, Any]] = {
    "contextlib": {"_reraise": Builtin("_reraise", _reraise)},
    "dataclasses": {"_MISSING": MISSING, "_fields_of": Builtin("_fields_of", _fields_of)},
    "functools": {
        "_kernel_class": Builtin("_kernel_class", _kernel_class),
        "partial": PARTIAL,
    },
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
