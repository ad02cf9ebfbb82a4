"""Signals that a computation of this thread has lost numbers, set where it happens.

Arithmetic sets `computed` when an operation on numbers gives infinity or NaN; NumPy tells, from the
flags of the processor. Conversion to an element type sets `stored` when a number is beyond the
type's range. Both are cheap: whoever asks then looks for the elements.
"""

from __future__ import annotations

import threading


class _Lost(threading.local):
    computed = False
    stored = False


LOST = _Lost()


def note_computed(kind: str, flags: int) -> None:
    """Set `LOST.computed`; the form is that of `numpy.errstate(call=…)`."""
    LOST.computed = True
