"""Variables of a kernel that Python evaluates, put back to what they were.

Beta 1 traces the body of a loop once: a number that the body changes is the same in every turn.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from nkic.specialise.native.call_sites import CallSites
from nkic.syntax import nodes, scopes

_PLAIN = frozenset({int, float, bool})


class Variables:
    """Those of the kernel's functions; `places` tells where the kernel stands."""

    def __init__(self, places: CallSites) -> None:
        self._places = places

    def remember(self) -> Callable[[], Sequence[str]]:
        """Notes the numbers in the variables that the body of the loop changes, whose head is
        where the kernel stands. What it gives puts them back, and names those that had changed.
        """
        frame, names = _kernels(), self._assigned()
        local = frame.f_locals
        before = {n: local[n] for n in names if n in local and type(local[n]) in _PLAIN}

        def restore() -> Sequence[str]:
            local: Any = frame.f_locals
            changed = {name: old for name, old in before.items() if local.get(name) != old}
            if changed:
                local.update(changed)
                _write_back(frame)
            return tuple(changed)

        return restore

    def _assigned(self) -> tuple[str, ...]:
        span = self._places.here().span
        module = self._places.sources.module(span.path)
        loop = module.statement_at(span) if module is not None else None
        return scopes.handed_on(loop.body) if isinstance(loop, nodes.For) else ()


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
