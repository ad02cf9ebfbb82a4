"""Conversion of dtype and buffer arguments."""

from __future__ import annotations

from typing import Any

from nkic.base.device import KernelError
from nkic.base.diagnostics import did_you_mean, nearest
from nkic.base.profiles import Profile
from nkic.language import versions
from nkic.language.foreign import MEANT
from nkic.language.hosted import brief, plain, surface
from nkic.language.namespace import Absent
from nkic.language.trace import active
from nkic.machine import dtypes
from nkic.machine.dtypes import DType, element
from nkic.machine.targets import Buffer

BUFFERS = {
    "sbuf": Buffer.SBUF,
    "psum": Buffer.PSUM,
    "hbm": Buffer.HBM,
    "private_hbm": Buffer.HBM,
    "shared_hbm": Buffer.SHARED_HBM,
}


class _RegionMeta(type):
    """Metaclass of `nl.MemoryRegion`: supports isinstance, and calls with a buffer's name."""

    def __call__(cls, value: Any) -> Buffer:
        named = BUFFERS.get(value) if isinstance(value, str) else None
        return as_buffer(value if named is None else named)

    def __instancecheck__(cls, value: Any) -> bool:
        return type(value) is Buffer


surface("name size itemsize bits kind is_float is_integer lowest highest smallest")(DType)
surface("name value on_chip")(Buffer)


@surface(called=True)
class MemoryRegion(metaclass=_RegionMeta):
    """`nl.MemoryRegion`: the buffers as class attributes."""

    sbuf = Buffer.SBUF
    psum = Buffer.PSUM
    private_hbm = Buffer.HBM
    shared_hbm = Buffer.SHARED_HBM


# NumPy types that are not NKI dtypes, with the nearest replacement.
_UNSUPPORTED = {
    "float64": "nl.float32",
    "uint64": "nl.uint32, if the values fit",
    "complex64": "two tensors of nl.float32",
    "complex128": "two tensors of nl.float32",
}

# Python types, with the NKI dtype to use.
_PYTHON_TYPES = {float: "nl.float32", int: "nl.int32", bool: "nl.bool_"}


def as_dtype(value: Any, position: int | None = None) -> DType:
    """Convert `nl.float32` or its name to a dtype.

    `position` is the index of the argument called dtype, for error messages. Raises `KernelError`.
    """
    dtype = (
        value
        if type(value) is DType
        else dtypes.find(value if isinstance(value, str) else element(value))
    )
    if dtype is None:
        text, help = _no_dtype(value)
        raise KernelError("unknown-dtype", text, help=help, argument="dtype", position=position)
    if dtype.is_wide:
        versions.require(f"`nl.{dtype}`", versions.LANGUAGE[dtype.name])
    return dtype


def named(profile: Profile) -> dict[str, DType]:
    return {n: d for n, d in dtypes.DTYPES.items() if not d.is_wide or profile >= Profile.NKI_0_7}


def _no_dtype(value: Any) -> tuple[str, str]:
    """Return a message and a help text for a value that is not a dtype."""
    if str(value) in _UNSUPPORTED:
        return f"no Trainium engine supports {value!s}", f"use {_UNSUPPORTED[str(value)]}"
    if isinstance(value, type) and value in _PYTHON_TYPES:
        return f"`{value.__name__}` is a Python type, not a dtype", f"write {_PYTHON_TYPES[value]}"
    help = did_you_mean(value, dtypes.DTYPES) if isinstance(value, str) else ""
    if isinstance(value, str) and MEANT.get(value) in dtypes.DTYPES:
        help = f"write nl.{MEANT[value]}"
    if isinstance(value, int) and not isinstance(value, bool):
        help = "pass the sizes as one tuple, such as (128, 512), and then the dtype"
    named = [] if isinstance(value, int | float) else dtypes.suggest(str(value))
    near = "".join(f"did you mean `nl.{name}`?" for name in named)
    return f"{brief(value)} is not a dtype", help or near or _ADVICE


_ADVICE = "use a dtype of nki.language, such as nl.bfloat16"


def unsupported() -> dict[str, Absent]:
    return {name: Absent("unknown-dtype", *_no_dtype(name)) for name in _UNSUPPORTED}


def as_buffer(value: Any, position: int | None = None) -> Buffer:
    """Convert `nl.sbuf` and similar; until profile 0.3, names of buffers as well."""
    if type(value) is Buffer:
        return value
    value = plain(value)
    if type(value) is Buffer:
        return value
    if isinstance(value, str) and value in BUFFERS:
        profile = active().profile
        if profile < Profile.NKI_0_3:
            return BUFFERS[value]
        raise KernelError(
            "bad-buffer",
            f"NKI {profile.label} does not take buffers by name; {brief(value)} is a string",
            help=f"write nl.{value}",
            argument="buffer",
            position=position,
        )
    near = nearest(value, BUFFERS) if isinstance(value, str) else None
    help = f"did you mean `nl.{near}`?" if near else ""
    raise KernelError(
        "bad-buffer",
        f"{brief(value)} is not a buffer",
        help=help or "use nl.sbuf, nl.psum, nl.private_hbm or nl.shared_hbm",
        argument="buffer",
        position=position,
    )
