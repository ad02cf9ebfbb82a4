"""How much a kernel may do and hold while it is evaluated.

Python itself has no such limits: one line can ask for a terabyte or for the age of the
universe. Steps are counted at every call of a kernel function, every turn of a loop, and for
every element that a builtin goes through; what takes longer costs several. A step is half a
microsecond or so of a plain loop (5.7 s for all of them on the two-core machine that
docs/benchmarks.md speaks of). There an instruction takes 9 to 14 µs, a tensor 12, an index of
one 5, other views 11 to 28. They cost less than that in steps, because a program of half a
million instructions, each with two indices, must still compile. (The largest that nki-library's
tests were seen to make has 77,508 instructions per core and takes 1.73 million steps.) A loop
that is endless by mistake is a `while` loop, so the turns of one that goes on for long cost much
more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice, repeat

from nkic.base.text import grouped
from nkic.specialise.errors import KernelError


@dataclass(frozen=True)
class Limits:
    """The limits, and the options that users would raise them with."""

    steps: int = 10_000_000
    length: int = 1 << 20  # elements of a list, tuple or range, characters of a text
    bits: int = 1 << 13  # of an integer
    width: int = 4096  # of one formatted field
    depth: int = 900  # calls within calls


DEFAULT_LIMITS = Limits()

RECORDING = 10  # steps for an instruction, a tensor, other views, a text that is printed
VIEWING = 2  # steps for an index of a tensor
FREE_TURNS = 10_000  # of one `while` loop, for a step each
LATER_TURN = 100  # steps for every further one


def check_length(length: int, what: str, limits: Limits = DEFAULT_LIMITS) -> None:
    """Raises where `what` would have more elements than compile-time values may have."""
    if length > limits.length:
        raise KernelError(
            "too-large",
            f"{what} would have {grouped(length)} elements; "
            f"compile-time values have at most {grouped(limits.length)}",
            help="tensors hold data on the device; keep lists and texts small",
        )


def check_range(made: range, limits: Limits = DEFAULT_LIMITS) -> range:
    """The range, if it could be gone through within the limits."""
    reach = abs(made.stop - made.start)  # `len` itself fails for the largest
    check_length(reach // abs(made.step) if made else 0, "the range", limits)
    return made


class Budget:
    """What is left. `tick` spends one step and is made to be called very often.

    When nothing is left it raises `StopIteration`, as the iterator does that it is: whoever
    started the kernel asks `spent` to tell that from other errors.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._steps = repeat(True, limits.steps)
        self.tick: Callable[[], bool] = self._steps.__next__

    def at_cost(self, steps: int) -> Callable[[], object]:
        """A `tick` that spends several steps, in hardly more time than for one."""
        return self._dear(steps).__next__

    def turns(self) -> Callable[[], object]:
        """The `tick` for the turns of one run through a `while` loop."""
        cheap = islice(self._steps, FREE_TURNS)
        return chain(cheap, self._dear(LATER_TURN)).__next__

    def _dear(self, steps: int) -> Iterator[object]:
        return zip(*[self._steps] * steps, strict=False)

    @property
    def spent(self) -> bool:
        """No step is left."""
        return self._steps.__length_hint__() == 0

    def charge(self, steps: int) -> None:
        """Spends steps for work that is done in one go."""
        if steps > 0:
            next(islice(self._steps, steps - 1, None))

    def copied(self, size: int) -> None:
        """Spends steps for a value of so many elements that is made in one go."""
        self.charge(size >> 3)

    def allow_length(self, length: int, what: str) -> None:
        """Raises where `what` would have more elements than values may have."""
        check_length(length, what, self.limits)

    def allow_bits(self, bits: int) -> None:
        """Raises where an integer would have more bits than integers may have."""
        if bits > self.limits.bits:
            raise KernelError(
                "too-large",
                f"the result would be an integer of {grouped(bits)} bits; "
                f"compile-time integers have at most {grouped(self.limits.bits)}",
            )
