"""How much a kernel may compute and hold while it is evaluated.

Python itself has no such limits: one line can ask for a terabyte, or for the age of the
universe. Every node that is evaluated is a step, and so are every four bytes that a value
takes: nothing is credited when a value is dropped, so that what is alive is never more than
what was paid for. A step takes about 60 ns. The limits give the same answer on every machine.
"""

from __future__ import annotations

from nkic.base.evaluation import DEFAULT_LIMITS, Limits
from nkic.base.text import grouped
from nkic.evaluate.errors import KernelError

BYTES_PER_STEP = 4
POINTER = 8  # bytes that an element takes in its container
CALL_COST = 16  # steps of a call, besides those of the nodes in the function
CLASS_COST = 8  # steps of a call of a class, besides those of what makes the object
FREE_ITERATIONS = 10_000  # turns of one `while` loop that cost what their nodes cost
LATER_ITERATIONS = 100  # times as much for every further one: endless loops are `while` loops


class Spent(KernelError):
    """No step is left."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(
            "runaway",
            f"the kernel has not been evaluated after {grouped(limits.steps)} steps "
            "(nodes of its source, instructions, four bytes of a value)",
            help="check that the loop ends; move loops over data to the device: `nl.fori_loop`; "
            "`--limit steps=N` allows more",
        )


class Budget:
    """What is left. `left` counts down; compiled code takes from it directly."""

    __slots__ = ("left", "limits")

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self.left = limits.steps

    def charge(self, steps: int) -> None:
        """Spends steps for work that is done in one go."""
        self.left -= steps
        if self.left < 0:
            raise Spent(self.limits)

    def allocate(self, size: int) -> None:
        """Spends steps for a value of `size` bytes which is about to be made."""
        self.charge(size // BYTES_PER_STEP)

    def elements(self, count: int, what: str) -> None:
        """A container of `count` elements, called `what`, is about to be made."""
        self.allow_length(count, what)
        self.allocate(count * POINTER)

    def text(self, count: int, what: str = "the text") -> None:
        """A text of `count` characters is about to be made."""
        self.allow_length(count, what)
        self.allocate(count)

    def allow_length(self, length: int, what: str) -> None:
        """Raises where `what` would have more elements than compile-time values may have."""
        if length > self.limits.length:
            raise KernelError(
                "too-large",
                f"{what} would have {grouped(length)} elements; "
                f"a compile-time value has at most {grouped(self.limits.length)}",
                help="tensors hold data on the device; keep lists and strings small",
            )

    def allow_bits(self, bits: int) -> None:
        """Raises where an integer would have more bits than integers may have."""
        if bits > self.limits.bits:
            raise KernelError(
                "too-large",
                f"the result would be an integer of {grouped(bits)} bits; "
                f"a compile-time integer has at most {grouped(self.limits.bits)}",
            )
        self.allocate(bits >> 3)
