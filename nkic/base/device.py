"""What the evaluator asks of values that live on the device.

The value classes (registers, ranges with run-time bounds) inherit from these; the evaluator
knows nothing else about them. A body that runs on the device is evaluated once: `enter` opens
the loop and `leave` closes it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from nkic.base.kernel_errors import KernelError
from nkic.base.source import Span


class DeviceRange(ABC):
    """What `for i in dynamic_range(…)` goes through."""

    @abstractmethod
    def enter(self) -> object:
        """Opens the loop; the value is what the loop's target gets, the counter register."""

    @abstractmethod
    def leave(self) -> None:
        """Closes the loop after its body was evaluated."""


class DeviceBound(ABC):
    """A number on the device that bounds a loop there: `for i in range(bound)`."""

    @abstractmethod
    def counted(self, bounds: tuple[object, ...]) -> DeviceRange:
        """What `range(*bounds)` gives, this one among them."""


class DeviceCondition(ABC):
    """What `while register:` tests."""

    @abstractmethod
    def enter_while(self) -> None:
        """Opens a loop that runs as long as this register is not zero."""

    @abstractmethod
    def leave_while(self) -> None:
        """Closes that loop after its body was evaluated."""


def left_by(word: str, span: Span | None = None) -> KernelError:
    """The error about `break` or `return` out of a loop on the device; `span` is where it stands,
    if not where the kernel is.
    """
    text = f"`{word}` cannot leave a loop that runs on the device"
    return KernelError("device-loop-misuse", text, help=_INSTEAD[word], span=span)


_INSTEAD = {
    "break": "the body is compiled once, and a register ends the loop early: "
    "`nl.while_loop(go, body)` runs `body` until the register that it returns is 0",
    "return": "the body is compiled once: keep the result in a tensor made before the loop, and "
    "return it after the loop",
}


class TracedOnce(ABC):
    """What a `for` goes through whose body counts as evaluated once: numbers that the body
    changes have their old values again at the start of every turn.
    """

    @abstractmethod
    def reset(self, name: str) -> None:
        """Told of each variable that has been put back."""
