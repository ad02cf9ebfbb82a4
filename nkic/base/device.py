"""Interfaces between the evaluator and device values.

The value classes (registers, ranges with run-time bounds) inherit from these; the evaluator uses
nothing else of them. The body of a device loop is evaluated once: `enter` opens the loop and
`leave` closes it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from nkic.base.kernel_errors import KernelError
from nkic.base.source import Span


class DeviceRange(ABC):
    """The iterable of `for i in dynamic_range(…)`."""

    @abstractmethod
    def enter(self) -> object:
        """Open the loop and return the value of its target, the counter register."""

    @abstractmethod
    def leave(self) -> None:
        """Close the loop after its body was evaluated."""


class DeviceBound(ABC):
    """A device value that bounds a device loop: `for i in range(bound)`."""

    @abstractmethod
    def counted(self, bounds: tuple[object, ...]) -> DeviceRange:
        """Return `range(*bounds)`, where this value is one of the bounds."""


class DeviceCondition(ABC):
    """The condition of `while register:`."""

    @abstractmethod
    def enter_while(self) -> None:
        """Open a loop that runs while this register is not zero."""

    @abstractmethod
    def leave_while(self) -> None:
        """Close the loop after its body was evaluated."""


def left_by(keyword: str, span: Span | None = None) -> KernelError:
    """Return the error for `break` or `return` out of a device loop.

    `span` is the position of the statement, if it differs from the current one.
    """
    text = f"`{keyword}` cannot leave a loop that runs on the device"
    return KernelError("device-loop-misuse", text, help=_INSTEAD[keyword], span=span)


_INSTEAD = {
    "break": "the body is compiled once, and a register ends the loop early: "
    "`nl.while_loop(go, body)` runs `body` until the register that it returns is 0; a loop over "
    "`nl.static_range` is unrolled, and may be left",
    "return": "the body is compiled once: keep the result in a tensor made before the loop, and "
    "return it after the loop",
}


class TracedOnce(ABC):
    """The iterable of a `for` loop whose body counts as evaluated once.

    Numbers that the body changes are reset at the start of every iteration.
    """

    @abstractmethod
    def reset(self, name: str) -> None:
        """Called for each variable that has been reset."""
