"""Registers: values that exist only on the device."""

from __future__ import annotations

from typing import NoReturn

from nkic.base.device import DeviceCondition, Identical, KernelError
from nkic.language import versions
from nkic.language.hosted import surface
from nkic.language.trace import OpenLoop, active
from nkic.machine.operands import Register
from nkic.machine.targets import Buffer


class DeviceInteger(Identical, DeviceCondition):
    """An integer known only on the device: the base class of registers and scalars.

    `frozen` values are read-only, such as the counter of a device loop. The result of a comparison
    has no register.
    """

    __slots__ = ("_frozen", "_held")
    _noun = "register"

    def __init__(self, register: Register | None, frozen: bool = False) -> None:
        self._held = register
        self._frozen = frozen

    @property
    def _register(self) -> Register:
        """The register that instructions, loops and views read; raises for comparisons."""
        if self._held is not None:
            return self._held
        text = "the result of a comparison of scalars cannot be used"
        raise KernelError("register-value", text, help=_COMPARISON_HELP)

    def _offset(self, buffer: Buffer) -> Register:
        return self._register

    def __repr__(self) -> str:
        content = "comparison" if self._held is None else self._held.number
        return f"{type(self).__name__}({content})"

    def enter_while(self) -> None:
        versions.warn("a `while` loop over a register", versions.DYNAMIC_WHILE)
        self.open()

    def open(self) -> OpenLoop:
        """Open a loop that runs until this register is 0."""
        return active().open_loop(condition=self._register)

    def leave_while(self) -> None:
        active().close_loop()

    def _refuse_arithmetic(self, *_: object) -> NoReturn:
        raise self._refused("computed with it", _ARITHMETIC_HELP)

    def _refuse_decision(self, *_: object) -> NoReturn:
        raise self._refused("decided by it", _DECISION_HELP)

    def _refuse_conversion(self, *_: object) -> NoReturn:
        raise self._refused("counted or looked up with it", _CONVERSION_HELP)

    def _refused(self, use: str, help: str) -> KernelError:
        text = f"the value of a {self._noun} is known only on the device; nothing can be "
        return KernelError("register-value", f"{text}{use} while the kernel is compiled", help=help)

    def __bool__(self) -> bool:
        """Raise, unless the Python interpreter evaluates `while register:`."""
        decide = active().decide
        return decide(self) if decide is not None else self._refuse_decision()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int | float | DeviceInteger) and other is not self:
            self._refuse_decision()
        return self is other

    __hash__ = object.__hash__
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse_arithmetic
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = (
        _refuse_arithmetic
    )
    __lt__ = __le__ = __gt__ = __ge__ = _refuse_decision
    __int__ = __float__ = __index__ = _refuse_conversion


@surface("__abs__ __int__ __float__ __index__")
class VirtualRegister(DeviceInteger):
    """A register that instructions write and read."""

    __slots__ = ()
    __neg__ = __abs__ = DeviceInteger._refuse_arithmetic


_ARITHMETIC_HELP = (
    "let the loop count in the steps you need, `nl.fori_loop(start, stop, body, step)` and "
    "`nl.ds(i, size)`; else compute in a (1, 1) tensor and load it with nisa.register_load"
)
_DECISION_HELP = (
    "decide by values known at compile time: `for i in range(n)` is unrolled; or loop on the "
    "device with nl.while_loop, on a register computed with nisa.register_load"
)
_COMPARISON_HELP = (
    "compare in a (1, 1) tensor of nl.int32, `nisa.tensor_scalar(t, t, nl.less, 3)`, which gives 0 "
    "or 1, and load it with nisa.scalar_load"
)
_CONVERSION_HELP = (
    "unroll the loop with `for i in range(n)`; a device loop takes a register, or a scalar, as its "
    "end"
)
