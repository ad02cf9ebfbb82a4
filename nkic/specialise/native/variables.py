"""Variables of a kernel that Python evaluates, put back to what they were.

Beta 1 traces the body of a loop once: a number that the body changes is the same in every turn.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

_PLAIN = frozenset({int, float, bool})


def remember() -> Callable[[], None]:
    """Notes the numbers in the variables of the kernel's function that is running; what it gives
    puts them back.
    """
    frame = _kernels()
    local = frame.f_locals
    before = {name: value for name, value in local.items() if type(value) in _PLAIN}

    def restore() -> None:
        local: Any = frame.f_locals
        changed = {name: old for name, old in before.items() if local.get(name) != old}
        if changed:
            local.update(changed)
            _write_back(frame)

    return restore


def _kernels() -> FrameType:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("nkic."):
        frame = frame.f_back
    assert frame is not None
    return frame


def _write_back(frame: FrameType) -> None:
    """Until 3.13, `f_locals` of a function is a copy, which Python takes back when told to."""
    if sys.version_info < (3, 13):
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
