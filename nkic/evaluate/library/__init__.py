"""The modules of Python's standard library that kernels may import.

A module is a table of names: functions, classes, numbers, and names for annotations. All
evaluations share the tables, so they are immutable; functions keep their state in the objects that
they create. `numpy` belongs to the language, because its dtypes do.
"""

from __future__ import annotations

import string
from functools import cache
from typing import Any

from nkic.evaluate import builtins
from nkic.evaluate.classes import TypingForm
from nkic.evaluate.library import (
    abcs,
    contexts,
    copying,
    enums,
    forms,
    functions,
    itertools,
    maths,
    namedtuples,
    operator,
)
from nkic.evaluate.library.dataclasses import FIELD, MISSING, dataclass, field
from nkic.evaluate.library.records import field_class
from nkic.evaluate.library.sources import written
from nkic.evaluate.library.support import unsupported
from nkic.evaluate.objects import Builtin, Frozen, seal_all

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
        "operator": {**operator.MODULE, **written("operator")},
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
        "contextlib": {**contexts.MODULE, **written("contextlib")},
        "os": written("os"),
        "sys": {"stdout": None, "stderr": None, "maxsize": (1 << 63) - 1},
        "logging": _LOGGING,
        "__future__": {},
    }
    return {name: Frozen(table) for name, table in tables.items()}


seal_all()


__all__ = ["field_class", "modules"]
