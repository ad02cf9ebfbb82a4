"""Ranges and device loops. The body of a device loop is evaluated and recorded once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from nkic.base.device import DeviceRange, KernelError
from nkic.base.profiles import Profile
from nkic.base.source import CallChain
from nkic.base.text import grouped
from nkic.language import versions
from nkic.language.hosted import brief, plain, surface
from nkic.language.isa import NkiScalar
from nkic.language.registers import DeviceInteger, VirtualRegister
from nkic.language.trace import NkiInstruction, OpenLoop, active, here
from nkic.machine.instructions.control import MOVE
from nkic.machine.operands import Register

MAX_ITERATIONS = 1 << 20  # of an unrolled loop


def static_range(start: Any, stop: Any = None, step: Any = 1) -> range:
    """`range` under any of its NKI names: unrolled at compile time."""
    first, last = (0, start) if stop is None else (start, stop)
    first, last, step = (plain(number) for number in (first, last, step))
    for number in (first, last, step):
        if isinstance(number, DeviceInteger):
            raise KernelError(
                "register-value",
                "this loop is unrolled while the kernel is compiled; its bounds must be ints",
                help="use nl.fori_loop for bounds in registers",
            )
        if not isinstance(number, int):
            raise KernelError(
                "loop-bounds",
                f"the bounds and the step of a range must be ints, not {brief(number)}",
                help="divide with `//`, which gives an int" if isinstance(number, float) else "",
            )
    if step == 0:
        raise KernelError("loop-bounds", "the step of a range must not be 0")
    return _check_length(range(first, last, step))


def _check_length(values: range) -> range:
    reach = abs(values.stop - values.start)  # `len` raises OverflowError for huge ranges
    length = reach // abs(values.step) if values else 0
    if length > MAX_ITERATIONS:
        raise KernelError(
            "too-large",
            f"the range would have {grouped(length)} elements; "
            f"a loop that is unrolled has at most {grouped(MAX_ITERATIONS)}",
            help="loop on the device: nl.fori_loop",
        )
    return values


_FOR_LOOP = "a loop over `nl.dynamic_range`"


@surface()
class DynamicRange(DeviceRange):
    """The iterable of a `for` that becomes a device loop."""

    def __init__(
        self,
        first: int | Register,
        last: int | Register,
        step: int,
        for_location: CallChain | None = None,
    ) -> None:
        self._first = first
        self._last = last
        self._step = step
        self._loop: OpenLoop | None = None
        self._for_location = (
            for_location  # the location of a `for` statement over it, which is deprecated
        )

    def enter(self) -> VirtualRegister:
        """Open the loop and return its read-only counter."""
        return VirtualRegister(self.open(), frozen=True)

    def open(self) -> Register:
        """Open the loop and return the counter's register."""
        trace = active()
        counter = trace.register()
        bounds = {"start": self._first, "stop": self._last, "step": self._step}
        self._loop = trace.open_loop(counter=counter, **bounds)
        return counter

    def leave(self) -> None:
        """Close the loop. The deprecation is reported last, after any error in the body."""
        active().close_loop(self._loop)
        if self._for_location is not None:
            versions.warn(_FOR_LOOP, versions.DYNAMIC_FOR, self._for_location)

    def __iter__(self) -> Iterator[VirtualRegister]:
        """Iterate once over the body, for the Python interpreter's `for`."""
        trace, at = active(), here()
        counter = self.enter()
        try:
            yield counter
        except GeneratorExit:  # `break`, `return` or an exception
            trace.abandoned_loops.append(at)
            raise
        self.leave()


def dynamic_range(start: Any, stop: Any = None, step: Any = 1) -> DynamicRange:
    """Return a device loop; bounds are ints or registers."""
    versions.refuse(_FOR_LOOP, versions.DYNAMIC_FOR)
    return _dynamic(start, stop, step, here())


def _dynamic(
    start: Any, stop: Any, step: Any, for_location: CallChain | None = None
) -> DynamicRange:
    first, last = (0, start) if stop is None else (start, stop)
    if type(step) is not int or step < 1:
        raise KernelError(
            "loop-bounds",
            f"the step of a device loop must be an int of at least 1, not {brief(step)}",
            help="count upwards, and compute descending values from the counter",
            argument="step",
            position=2,
        )
    _bound(step)
    return DynamicRange(_bound(first), _bound(last), step, for_location)


def fori_loop(lower: Any, upper: Any, body_fun: Callable[..., Any], step: Any = 1) -> None:
    """Call `body_fun(i)` with the counter of a device loop.

    Since 0.7 the counter is a scalar unless a bound is a register (nki.language.fori_loop of 0.7).
    """
    _check_body(body_fun, 2)
    loop = _dynamic(lower, upper, step)
    registers = any(isinstance(bound, VirtualRegister) for bound in (lower, upper))
    counts = registers or active().profile < Profile.NKI_0_7
    result = body_fun(loop.enter() if counts else NkiScalar(loop.open()))
    loop.leave()
    if result is not None and not isinstance(result, NkiInstruction):  # of a lambda
        raise KernelError(
            "loop-result",
            f"the body of a fori_loop must return nothing; this one returned {brief(result)}",
            help="keep the values that one iteration passes to the next in a tensor made before "
            "the loop",
        )


def while_loop(init: Any, body_fun: Callable[..., Any]) -> None:
    """Call `body_fun(r)` on the device until the register that it returns is 0.

    The loop uses a copy of `init`, so that `init` keeps its value.
    """
    if not isinstance(init, VirtualRegister):
        raise KernelError(
            "loop-result",
            f"the condition of a while_loop must be a register, not {brief(init)}",
            help="make one with nisa.register_alloc",
            argument="init",
            position=0,
        )
    _check_body(body_fun, 1)
    condition = VirtualRegister(active().register())
    _move(condition, init)
    loop = condition.open()
    result = body_fun(condition)
    if not isinstance(result, VirtualRegister):
        raise KernelError(
            "loop-result",
            f"the body of a while_loop must return a register, not {brief(result)}",
            help="load the next condition with nisa.register_load(r, tensor), then return r",
        )
    if result._register != condition._register:
        _move(condition, result)
    active().close_loop(loop)


def _move(dst: VirtualRegister, src: VirtualRegister) -> None:
    active().record(MOVE, (dst._register, src._register), ())


def _check_body(body: Any, position: int) -> None:
    if not callable(body):
        raise KernelError(
            "wrong-type",
            f"the body of a loop must be a function, not {brief(body)}",
            help="pass the function itself, uncalled",
            argument="body_fun",
            position=position,
        )


def _bound(value: Any) -> int | Register:
    value = plain(value)
    if isinstance(value, NkiScalar) and value.dtype.is_wide:
        raise KernelError(
            "loop-bounds",
            f"a bound of a loop on the device has 32 bits; this scalar is nl.{value.dtype}",
            help="load the bound from an nl.int32 tile",
        )
    if isinstance(value, DeviceInteger):
        return value._register
    if type(value) is int:
        if abs(value) < 1 << 31:
            return value
        raise KernelError(
            "loop-bounds",
            f"the bounds and the step of a loop on the device have 32 bits; {value} needs more",
            help="count in larger steps, or nest two loops",
        )
    raise KernelError(
        "loop-bounds", f"the bounds of a device loop must be ints or registers, not {brief(value)}"
    )
