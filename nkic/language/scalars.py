"""`NkiScalar`: an integer of the device that kernels compute with.

Sources: nki.isa.NkiScalar, scalar_load and scalar_store of NKI 0.7; "NKI Scalar Values". Those
of nl.int64 are left out: nkic has no type of 64 bits, so that nothing could be loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from nkic.base.kernel_errors import KernelError
from nkic.language.binder import Binder
from nkic.language.hosted import plain
from nkic.language.registers import DeviceInteger, VirtualRegister
from nkic.language.texts import brief
from nkic.language.trace import active
from nkic.language.values import CallRefused, shown
from nkic.machine.dtypes import DTYPES, DType
from nkic.machine.facts import Register
from nkic.machine.instructions import ROWS

SMALLEST, LARGEST = -(1 << 31), (1 << 31) - 1


class NkiScalar(DeviceInteger):
    """What `nisa.scalar_load` gives and `nl.fori_loop` counts with: 32 bits, never written.

    `+`, `-` and `*` record the operation and give a new scalar, which wraps around.
    Comparisons give scalars that nothing can use (nki.isa.NkiScalar).
    """

    __slots__ = ()

    def __init__(self, register: Register | None) -> None:
        super().__init__(register, frozen=True)

    @property
    def dtype(self) -> DType:
        """nl.int32."""
        return DTYPES["int32"]

    def __pos__(self) -> NkiScalar:
        return NkiScalar(self._register)

    def __neg__(self) -> NkiScalar:
        return _computed("subtract", 0, self)

    def _unsupported(self, *_: object) -> NoReturn:
        raise KernelError(
            "register-value",
            "a scalar of the device has `+`, `-`, `*` and comparisons, and no other operator",
            help="compute in a (1, 1) tensor of nl.int32, and load it with nisa.scalar_load",
        )

    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _unsupported
    __pow__ = __rpow__ = __abs__ = __invert__ = _unsupported
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _unsupported
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _unsupported


def _operator(op: str, swapped: bool = False) -> Callable[[NkiScalar, Any], Any]:
    def apply(self: NkiScalar, other: Any) -> Any:
        number = _operand(other)
        if number is None:
            return NotImplemented
        return _computed(op, number, self) if swapped else _computed(op, self, number)

    return apply


for _python, _name in {"add": "add", "sub": "subtract", "mul": "multiply"}.items():
    setattr(NkiScalar, f"__{_python}__", _operator(_name))
    setattr(NkiScalar, f"__r{_python}__", _operator(_name, swapped=True))


def _comparison(self: NkiScalar, other: Any) -> Any:
    """A scalar without register: nothing reads it, so that there is nothing to record."""
    number = _operand(other)
    if number is None and isinstance(plain(other), bool | float):  # `==` would be False
        raise KernelError(
            "register-value",
            f"a scalar is compared with ints and scalars, not with {brief(other)}",
            help="compare with an int",
        )
    if number is None:
        return NotImplemented
    _known(self, number)
    return NkiScalar(None)


for _python in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(NkiScalar, f"__{_python}__", _comparison)


def _operand(value: Any) -> NkiScalar | int | None:
    """What a scalar can be computed with; None for what it cannot."""
    value = plain(value)
    if isinstance(value, VirtualRegister):
        raise KernelError(
            "register-value",
            "a register cannot be computed with, not even together with a scalar",
            help="load the number with nisa.scalar_load, in place of nisa.register_load",
        )
    if isinstance(value, NkiScalar):
        return value
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    if SMALLEST <= value <= LARGEST:
        return int(value)
    raise KernelError(
        "register-value",
        f"{brief(value)} does not fit the 32 bits of a scalar",
        help=f"compute with numbers from {SMALLEST} to {LARGEST}",
    )


def _computed(op: str, *operands: NkiScalar | int) -> NkiScalar:
    trace, known = active(), _known(*operands)
    trace.recording()
    result = trace.register()
    trace.record(ROWS["scalar_compute"], (result, *known), (op,))
    return NkiScalar(result)


def _known(*operands: NkiScalar | int) -> tuple[Register | int, ...]:
    return tuple(o._register if isinstance(o, NkiScalar) else o for o in operands)


class Loading(Binder):
    """`nisa.scalar_load`, which gives a scalar."""

    def __call__(self, *args: Any, **more: Any) -> Any:
        found = super().__call__(*args, **more)
        return NkiScalar(found._register) if isinstance(found, VirtualRegister) else found


class Storing(Binder):
    """`nisa.scalar_store`, which takes a scalar and nothing else."""

    def _bind(self, args: tuple[Any, ...], more: Any) -> list[Any]:
        given = super()._bind(args, more)
        value = given[1]
        if isinstance(value, NkiScalar):
            return given
        advice = "use nisa.memset for a number, nisa.register_store for a register"
        text = f"`value` is {shown(value)}, but must be a scalar of nisa.scalar_load"
        raise CallRefused("argument-kind", text, advice, "value")
