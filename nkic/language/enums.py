"""Enumerations and operators of `nki.isa` and `nki.language`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from enum import Enum, EnumType, IntEnum
from typing import Any, NoReturn

from nkic.base.device import Identical, KernelError, Missing
from nkic.base.diagnostics import Guess, did_you_mean
from nkic.base.profiles import Profile
from nkic.language import versions
from nkic.language.foreign import parameter
from nkic.language.hosted import surface
from nkic.language.trace import active
from nkic.machine.operators import ACTIVATIONS, ALU
from nkic.machine.targets import Engine

# Words of the hardware's guides for the engines.
_WORDS = {"pe": "tensor", "act": "scalar", "dve": "vector", "pool": "gpsimd", "sp": "sync"}


class _Members(EnumType):
    """The type of enumerations, which lists the members for a name that is none of them."""

    def __getattr__(cls, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        names = [member.name for member in cls]  # type: ignore[var-annotated]
        meant = _WORDS.get(name.lower(), "")
        help = Guess(name, meant, False) if meant in names else did_you_mean(name, names)
        text = f"`nisa.{cls.__name__}` has no member `{name}`"
        raise Missing("unknown-attribute", text, name, help or f"it has {', '.join(names)}")


class engine(Enum, metaclass=_Members):  # noqa: N801  (these names are NKI's)
    """`nisa.engine`."""

    tensor = 1
    vector = 5
    scalar = 2
    gpsimd = 3
    dma = 4
    sync = 6
    unknown = 0


class reduce_cmd(Enum, metaclass=_Members):  # noqa: N801
    """`nisa.reduce_cmd`."""

    idle = 0
    reset = 1
    reduce = 2
    reset_reduce = 3
    load_reduce = 4


class dge_mode(Enum, metaclass=_Members):  # noqa: N801
    """`nisa.dge_mode`."""

    unknown = 0
    swdge = 1
    hwdge = 2
    none = 3


class oob_mode(Enum, metaclass=_Members):  # noqa: N801
    """`nisa.oob_mode`."""

    error = 0
    skip = 1


class matmul_perf_mode(Enum, metaclass=_Members):  # noqa: N801
    """`nisa.matmul_perf_mode`."""

    none = "none"
    double_row = "double_row"


class nc_version(IntEnum, metaclass=_Members):  # noqa: N801
    """`nisa.nc_version`. Ordered, because kernels write `>= nc_version.gen3`."""

    gen2 = 2
    gen3 = 3
    gen4 = 4


class dma_engine(Enum, metaclass=_Members):  # noqa: N801
    """`nisa.dma_engine`."""

    dma = 1
    gpsimd_dma = 2


ENUMS: dict[str, type[Enum]] = {
    kind.__name__: kind
    for kind in (engine, reduce_cmd, dge_mode, oob_mode, matmul_perf_mode, nc_version, dma_engine)
}
for _enumeration in ENUMS.values():
    surface("name value")(_enumeration)
# The enumeration of each attribute; `perf_mode` is named differently from its enumeration.
OF_ATTRIBUTE: dict[str, type[Enum]] = {**ENUMS, "perf_mode": matmul_perf_mode}
ENGINES: dict[engine, Engine | None] = {
    member: None if member is engine.unknown else Engine(member.name) for member in engine
}


@surface("name __name__")
class Operator(Identical):
    """`nl.add` and similar: an operator for `op=`, and since 0.3 a function of tensors."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        if active().profile < Profile.NKI_0_3:
            raise _functions_too_new(self.name)
        try:
            function = active().library(self.name)
        except Missing:
            raise _no_such_function(self.name) from None
        try:
            return function(*args, **keywords)
        except KernelError as error:
            if error.slug == "library-argument" and not error.message.startswith("nl."):
                error.message = f"nl.{self.name}: {error.message}"
            raise
        except TypeError as error:
            if binds(function, args, keywords):
                raise
            raise self._wrong_call(function, error, args, keywords) from None

    def _wrong_call(
        self, function: Any, error: TypeError, args: Sequence[Any], keywords: Mapping[str, Any]
    ) -> KernelError:
        """Return the error for arguments that do not fit: an unknown name, or a wrong number."""
        parameters = inspect.signature(function).parameters
        for name in keywords:
            if name in parameters:
                continue
            removal = versions.parameter(self.name, name)
            text = f"nl.{self.name}: there is no parameter `{name}`"
            if removal is not None:
                text = f"nl.{self.name}: {versions.no_parameter(name, removal, active().profile)}"
                return KernelError("removed-name", text, help=removal.instead, argument=name)
            near = parameter(name, [*parameters][len(args) :])
            help = near or _signature(self.name, parameters)
            return KernelError("wrong-call", text, help=help, argument=name)
        return KernelError("wrong-call", f"nl.{error}", help=_signature(self.name, parameters))

    def __hash__(self) -> int:
        return hash(self.name)  # equal to the hash of its host-side counterpart (nkic.nki.names)

    def __repr__(self) -> str:
        return f"nl.{self.name}"

    @property
    def __name__(self) -> str:
        return self.name


def binds(function: Any, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> bool:
    try:
        inspect.signature(function).bind(*args, **keywords)
    except TypeError:
        return False
    return True


def _signature(name: str, parameters: Mapping[str, inspect.Parameter]) -> str:
    shown = (key if p.default is p.empty else f"{key}=…" for key, p in parameters.items())
    return f"the call is nl.{name}({', '.join(shown)})"


def _no_such_function(name: str) -> KernelError:
    text = f"nl.{name} is an operator of instructions; there is no function of tensors of this name"
    return KernelError("wrong-call", text, help=f"use an instruction that takes `op=nl.{name}`")


def _functions_too_new(name: str) -> KernelError:
    label = active().profile.label
    text = f"NKI {label} has no function `nl.{name}`: functions of tensors were added in NKI 0.3"
    help = f"write it as an instruction, with `op=nl.{name}` where it takes one"
    return KernelError("needs-profile", text, help=help)


OPERATORS: dict[str, Operator] = {name: Operator(name) for name in sorted({*ALU, *ACTIVATIONS})}
