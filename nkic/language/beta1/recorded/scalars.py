"""Run-time numbers: `nki.typing.scalar`, and loops with a run-time trip count.

No page of Beta 1 documents them; kernels of nki-samples loop over `range(scalar(tile))`. The loop
is equivalent to nl.dynamic_range of later versions, and its body is recorded once (assumed).
"""

from __future__ import annotations

from typing import Any, NoReturn

from nkic.base.device import DeviceBound
from nkic.base.kernel_errors import KernelError
from nkic.language.beta1.emit import binders, operand, state
from nkic.language.beta1.moving import tile
from nkic.language.beta1.recorded import splices
from nkic.language.loops import DynamicRange
from nkic.language.registers import VirtualRegister
from nkic.language.texts import brief
from nkic.language.trace import active
from nkic.machine.facts import Register


class Scalar(DeviceBound):
    """A number that is read from a tile at run time."""

    def __init__(self, register: Register) -> None:
        self._register = register

    def counted(self, bounds: tuple[object, ...]) -> DynamicRange:
        first, last = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
        step = bounds[2] if len(bounds) == 3 else 1
        if not isinstance(step, int) or isinstance(step, bool) or step < 1:
            text = f"the step of a device loop must be an int of at least 1, not {brief(step)}"
            raise KernelError("loop-bounds", text)
        return Counted(_bound(first), _bound(last), step)

    def __index__(self) -> NoReturn:
        raise KernelError(
            "register-value",
            "a scalar is known only on the device; Python's own range cannot use it",
            help="compile the file from the command line, or with evaluate='closed'",
        )


def scalar(value: Any) -> Scalar:
    """`nki.typing.scalar`: the single element of a tile, as a loop bound."""
    source = tile(value, "value")
    if source.size != 1:
        text = f"a scalar is loaded from a tile of one element; shape is {source.shape}"
        raise KernelError("operand-shape", text, help="index one element")
    register = active().register()
    binders()["register_load"](dst=VirtualRegister(register), src=operand(source))
    return Scalar(register)


def _bound(value: object) -> int | Register:
    if isinstance(value, Scalar):
        return value._register
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    raise KernelError(
        "loop-bounds", f"the bounds of a range must be ints or scalars, not {brief(value)}"
    )


class Counted(DynamicRange):
    """A device loop.

    Pending instructions are recorded before it and before its end, because an instruction in its
    body would run in every iteration, or in none.
    """

    def open(self) -> Register:
        _flush()
        self._predicates = dict(state().predicates)
        return super().open()

    def leave(self) -> None:
        _flush()
        splices.insert(active().body)
        state().predicates = self._predicates
        super().leave()


def _flush() -> None:
    """Fill pending zeros."""
    pending = state()
    fills = list(pending.zeros.values())
    pending.zeros.clear()
    for fill in fills:
        fill()
    pending.accumulated.clear()
