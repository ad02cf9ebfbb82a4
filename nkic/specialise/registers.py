"""Registers as kernels see them: values that exist only on the device."""

from __future__ import annotations

from typing import NoReturn

from nkic.machine.facts import Register
from nkic.specialise import deprecated
from nkic.specialise.errors import KernelError
from nkic.specialise.hooks import DeviceCondition
from nkic.specialise.trace import active


class VirtualRegister(DeviceCondition):
    """A scalar register. `frozen`: the counter of a device loop, which nothing may write."""

    __slots__ = ("_frozen", "_register")

    def __init__(self, register: Register, frozen: bool = False) -> None:
        self._register = register
        self._frozen = frozen

    def __repr__(self) -> str:
        return f"VirtualRegister({self._register.number})"

    def enter_while(self) -> None:
        """`while register:` begins."""
        deprecated.warn("a `while` loop over a register", deprecated.DYNAMIC_WHILE)
        self.open()

    def open(self) -> None:
        """Opens a loop that runs as long as this register is not 0."""
        active().open_loop(condition=self._register)

    def leave_while(self) -> None:
        """Closes that loop."""
        active().close_loop()

    def _refused(self, *_: object) -> NoReturn:
        raise KernelError(
            "register-value",
            "the value of a register is known only on the device; nothing can be computed with "
            "it or decided by it while the kernel is compiled",
            help="compute in a (1, 1) tensor and load it with nisa.register_load",
        )

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int | float | VirtualRegister) and other is not self:
            self._refused()
        return self is other

    __hash__ = object.__hash__
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refused
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _refused
    __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __abs__ = _refused
    __bool__ = __int__ = __float__ = __index__ = _refused
