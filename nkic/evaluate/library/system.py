"""The parts of `os`, `sys` and `logging` that logging helpers use.

A kernel's environment is empty. `logging` has the levels only, which decorators of NKI take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nkic.evaluate.library.support import final, library_class, methods, repr_of
from nkic.evaluate.objects import shared_instance
from nkic.evaluate.tables import builtin

if TYPE_CHECKING:
    from nkic.evaluate.machine import Machine
    from nkic.evaluate.texts import Writer

# An immutable object, because a dict would be shared by all evaluations.
ENVIRONMENT = final(library_class("environ", "os"))


@methods(ENVIRONMENT, "get")
def _get(m: Machine, owner: Any, key: Any, default: Any = None) -> Any:
    return default


@methods(ENVIRONMENT, "__getitem__")
def _item(m: Machine, owner: Any, key: Any) -> Any:
    raise KeyError(key)


@methods(ENVIRONMENT, "__contains__")
def _contains(m: Machine, owner: Any, key: Any) -> bool:
    return False


@methods(ENVIRONMENT, "__len__")
def _length(m: Machine, owner: Any) -> int:
    return 0


@methods(ENVIRONMENT, "__iter__", "keys", "values", "items")
def _nothing(m: Machine, owner: Any) -> Any:
    return iter([])


@methods(ENVIRONMENT, "copy")
def _copy(m: Machine, owner: Any) -> dict[str, Any]:
    return {}


@repr_of(ENVIRONMENT)
def _show(m: Machine, owner: Any, writer: Writer) -> None:
    writer.add("environ({})")


OS: dict[str, Any] = {"environ": shared_instance(ENVIRONMENT)}
LOGGING: dict[str, Any] = {"NOTSET": 0, "DEBUG": 10, "INFO": 20, "WARNING": 30, "ERROR": 40}
SYS: dict[str, Any] = {"stdout": None, "stderr": None, "maxsize": (1 << 63) - 1}


@builtin("getenv", OS)
def _getenv(m: Machine, key: Any, default: Any = None) -> Any:
    return default
