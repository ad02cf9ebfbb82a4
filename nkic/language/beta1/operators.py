"""Operators and functions in Beta 1's spellings: `nl.add`, `np.add`, `np.max`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nkic.base.kernel_errors import KernelError
from nkic.base.suggest import did_you_mean
from nkic.language.beta1.calls import check
from nkic.language.enums import OPERATORS, Operator
from nkic.language.hosted import plain
from nkic.language.texts import brief
from nkic.language.versions import rewritten
from nkic.machine.operators import ACTIVATIONS, ALU

# Functions composed of several instructions, which no instruction has as an operator.
_COMPOSED = frozenset({"divide", "mod", "fmod", "negative"})


class Function(Operator):
    """A function of `nki.language`, which is also accepted as `op=`."""

    __slots__ = ("_call",)

    def __init__(self, name: str, call: Callable[..., Any]) -> None:
        super().__init__(name)
        self._call = call

    def __call__(self, *args: Any, **more: Any) -> Any:
        try:
            return self._call(*args, **more)
        except TypeError:
            check(f"nl.{self.name}", self._call, args, more)
            raise


def operator_name(value: Any, parameter: str = "op") -> str:
    """Return the name of an operator in the instruction table, or of a composed function."""
    function = plain(value)
    name = getattr(function, "name", None) or getattr(function, "__name__", None)
    if not isinstance(name, str) or isinstance(value, int | float | bool):
        raise KernelError(
            "argument-kind",
            f"`{parameter}` is {brief(value)}, but must be an operator",
            help="pass the operator itself, uncalled, such as np.add or nl.add",
            argument=parameter,
        )
    name = rewritten.OPERATORS.get(name, name)
    if name in ALU or name in ACTIVATIONS or name in _COMPOSED:
        return name
    text = f"`{parameter}`: no engine supports the operator `{name}`"
    near = did_you_mean(name, [*ALU, *ACTIVATIONS])
    raise KernelError("operator-not-supported", text, help=near, argument=parameter)


def operator(value: Any, parameter: str = "op") -> Operator | None:
    """Return the operator of an instruction; None stays None."""
    if value is None:
        return None
    name = operator_name(value, parameter)
    if name in _COMPOSED:
        text = f"`{parameter}`: no engine supports `{name}` as an operator"
        help = f"call nl.{name}, which is made of several instructions"
        raise KernelError("operator-not-supported", text, help=help, argument=parameter)
    return OPERATORS[name]
