"""Limits on the computation and the memory of one evaluation.

Python itself has no such limits: one line can ask for a terabyte, or for years of computation.
Every node evaluated costs one step, and so do every four bytes of a new value. Freed values are not
credited, so the live bytes never exceed the bytes paid for. A step takes about 60 ns. The limits
give the same answer on every machine.
"""

from __future__ import annotations

from math import inf

from nkic.base.device import KernelError
from nkic.base.limits import DEFAULT_LIMITS, Limits
from nkic.base.text import grouped, size

BYTES_PER_STEP = 4
POINTER = 8  # bytes of an element in its container
CALL_COST = 16  # steps of a call, in addition to the nodes of the function's body
CLASS_COST = 8  # steps of calling a class, in addition to the code that builds the object
FREE_ITERATIONS = 10_000  # iterations of one `while` loop that cost only their nodes
LATER_ITERATIONS = 100  # cost factor of each further iteration: endless loops are `while` loops


class BudgetExhausted(KernelError):
    """The steps are exhausted, or the bytes that values (four per step) and instructions take."""

    def __init__(self, limits: Limits, bytes_too: bool = False) -> None:
        if bytes_too or _steps(limits) < limits.steps:
            super().__init__(
                "out-of-memory",
                f"the kernel's values and instructions take more than {size(limits.memory or 0)}",
                help="make fewer or smaller ones; `limits={'memory': BYTES}` sets another limit",
            )
            return
        super().__init__(
            "runaway",
            f"the evaluation of the kernel did not finish within {grouped(limits.steps)} steps "
            "(nodes of its source, instructions, four bytes of a value)",
            help="check that the loop ends; move loops over data to the device: `nl.fori_loop`; "
            "`--limit steps=N`, in Python `limits={'steps': N}`, allows more",
        )


def _steps(limits: Limits) -> int:
    """Return the steps that an evaluation may take, each of which may make four bytes."""
    if limits.memory is None:
        return limits.steps
    return min(limits.steps, limits.memory // BYTES_PER_STEP)


class Budget:
    """The remaining steps `left`, which compiled code decrements directly, and bytes `memory`."""

    __slots__ = ("left", "limits", "memory")

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self.left = _steps(limits)
        self.memory: float = inf if limits.memory is None else limits.memory

    def check(self) -> None:
        """Raise if the steps or the bytes are exhausted, after a direct decrement."""
        if self.memory < 0:
            raise BudgetExhausted(self.limits, bytes_too=True)
        self.charge(0)

    def charge(self, steps: int) -> None:
        """Spend steps on work that is done at once."""
        self.left -= steps
        if self.left < 0:
            raise BudgetExhausted(self.limits)

    def allocate(self, count: int) -> None:
        """Spend steps and bytes on a value of `count` bytes before it is created."""
        self.memory -= count
        if self.memory < 0:
            raise BudgetExhausted(self.limits, bytes_too=True)
        self.charge(count // BYTES_PER_STEP)

    def elements(self, count: int, noun: str) -> None:
        """Spend steps on a container of `count` elements before it is created; `noun` names it."""
        self.allow_length(count, noun)
        self.allocate(count * POINTER)

    def text(self, count: int, noun: str = "the text") -> None:
        """Spend steps on a text of `count` characters before it is created."""
        self.allow_length(count, noun)
        self.allocate(count)

    def allow_length(self, length: int, noun: str) -> None:
        """Raise if `noun` would have more elements than a compile-time value may have."""
        if length > self.limits.length:
            raise KernelError(
                "too-large",
                f"{noun} would have {grouped(length)} elements; "
                f"a compile-time value has at most {grouped(self.limits.length)}",
                help="tensors hold data on the device; keep lists and strings small",
            )

    def allow_bits(self, bits: int) -> None:
        """Raise if an integer would have more bits than a compile-time integer may have."""
        if bits > self.limits.bits:
            raise KernelError(
                "too-large",
                f"the result would be an integer of {grouped(bits)} bits; "
                f"a compile-time integer has at most {grouped(self.limits.bits)}",
            )
        self.allocate(bits >> 3)
