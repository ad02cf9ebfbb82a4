"""The modules of Python's standard library that kernels may import.

A module is a table of names: functions, classes, numbers, and names for annotations. All
evaluations share the tables, so they are immutable; functions keep their state in the objects that
they create. `numpy` belongs to the language, because its dtypes do.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from nkic.evaluate import builtins
from nkic.evaluate.library import (
    abcs,
    collections,
    contexts,
    copying,
    dataclasses,
    enums,
    forms,
    functions,
    itertools,
    maths,
    operator,
    system,
    words,
)
from nkic.evaluate.library.records import field_class
from nkic.evaluate.objects import Builtin, Frozen, seal_all

for _name, _cls in collections.TYPING.items():
    forms.alias(_name, _cls)


@cache
def modules() -> dict[str, dict[str, Any]]:
    """Return every module by name, as a table of its names."""
    frozen = {"FrozenInstanceError": builtins.table()["FrozenInstanceError"]}
    tables: dict[str, dict[str, Any]] = {
        "math": maths.MODULE,
        "operator": operator.MODULE,
        "itertools": itertools.MODULE,
        "functools": functions.MODULE,
        "collections": collections.MODULE,
        "collections.abc": dict(abcs.MODULE),
        "string": words.MODULE,
        "textwrap": words.TEXTWRAP,
        "enum": enums.MODULE,
        "dataclasses": {**dataclasses.MODULE, **frozen},
        "typing": forms.MODULE,
        "typing_extensions": forms.MODULE,
        "abc": abcs.ABC_MODULE,
        "copy": {**copying.MODULE, "replace": Builtin("replace", dataclasses.replaced)},
        "contextlib": contexts.MODULE,
        "os": system.OS,
        "sys": system.SYS,
        "logging": system.LOGGING,
        "__future__": {},
    }
    return {name: Frozen(table) for name, table in tables.items()}


seal_all()


__all__ = ["field_class", "modules"]
