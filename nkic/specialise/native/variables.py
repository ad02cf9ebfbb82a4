"""Restoring a kernel's variables in the Python interpreter.

Beta 1 traces the body of a loop once: a number that the body changes has the same value in every
iteration.
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
    """The variables of the kernel's functions; `places` has the current location."""

    def __init__(self, call_sites: CallSites) -> None:
        self._call_sites = call_sites

    def remember(self) -> Callable[[], Sequence[str]]:
        """Save the numbers in variables that the body of the current loop assigns.

        Returns a function that restores them and returns the names of those that had changed.
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
        span = self._call_sites.here().span
        module = self._call_sites.sources.module(span.path)
        loop = module.statement_at(span) if module is not None else None
        return scopes.loop_carried(loop.body) if isinstance(loop, nodes.For) else ()


def _kernels() -> FrameType:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("nkic."):
        frame = frame.f_back
    assert frame is not None
    return frame


def _write_back(frame: FrameType) -> None:
    """Write `f_locals` back to the frame; until Python 3.13 it is a copy."""
    if sys.version_info < (3, 13):
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
