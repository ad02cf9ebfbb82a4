"""The host forms of NKI's names: values to pass on, to compare and to annotate with.

They are described to the compiler by module and name. Functions of tensors and instructions have
signatures and documentation, and raise an error if they are called outside a kernel.
"""

from __future__ import annotations

import inspect
import os
from enum import Enum
from typing import Any, NoReturn

from nkic.compiler.request import COMPILER_FLAGS, TARGET_VARIABLE, compiler_flag, find_target
from nkic.language import objects
from nkic.language.dtypes_api import BUFFERS
from nkic.language.names import TileSize
from nkic.language.trace import current
from nkic.machine.targets import DEFAULT, Buffer, Target


def target() -> Target:
    """Return the target of calls that name none; inside a kernel, the kernel's own. Raises
    `UsageFailed`.
    """
    trace = current()
    if trace is not None:
        return trace.target
    wanted = os.environ.get(TARGET_VARIABLE)
    if wanted:
        return find_target(wanted, TARGET_VARIABLE)
    flag = framework_target()
    return find_target(flag, COMPILER_FLAGS) if flag is not None else DEFAULT


def framework_target() -> str | None:
    """Return `--target` of NEURON_CC_FLAGS, unless NEURON_PLATFORM_TARGET_OVERRIDE overrides it."""
    return None if os.environ.get(TARGET_VARIABLE) else compiler_flag("--target", os.environ)


class OutsideKernel(RuntimeError):
    """A name of NKI was used in a way that is possible only in kernels."""


def inside(module: str, name: str) -> Any:
    """Return a name's value in the kernel that Python evaluates; None outside kernels."""
    trace = current()
    space = trace.spaces.get(module) if trace is not None else None
    return getattr(space, name) if space is not None else None


def refuse(name: str) -> NoReturn:
    """Raise `OutsideKernel`."""
    raise OutsideKernel(
        f"{name} works on tensors of a kernel, but was called outside a kernel\n"
        "  = help: call it in a function under @nki.jit, and call that function with arrays"
    )


class _Annotation:
    """Support for use in annotations: `x: nl.load | None`."""

    def __or__(self, other: Any) -> Any:
        return Any

    __ror__ = __or__


class Function(_Annotation):
    """A function of tensors, an instruction or an operator, by name."""

    def __init__(
        self, module: str, name: str, signature: inspect.Signature | None, doc: str
    ) -> None:
        self.__module__ = module
        self.__name__ = self.__qualname__ = name
        self.__doc__ = doc
        if signature is not None:
            self.__signature__ = signature

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        in_kernel = self.__nki__()
        if in_kernel is self:
            refuse(repr(self))
        return in_kernel(*args, **kwargs)

    def __nki__(self) -> Any:
        """Return its value in the kernel that Python evaluates; itself outside."""
        in_kernel = inside(self.__module__, self.__name__)
        return self if in_kernel is None else in_kernel

    def __eq__(self, other: object) -> bool:
        return self is other or other is self.__nki__()

    def __hash__(self) -> int:
        return hash(self.__name__)  # as in a kernel: tables of operators are made outside

    def __repr__(self) -> str:
        in_kernel = self.__nki__()
        return f"{self.__module__}.{self.__name__}" if in_kernel is self else repr(in_kernel)

    @property
    def name(self) -> str:
        """An operator's name, as in a kernel."""
        return self.__name__

    def __reduce__(self) -> str:
        return self.__qualname__  # by reference: a name of its module


class KernelType(type):
    """A class whose objects exist only in kernels."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        in_kernel = inside(cls.__module__, cls.__name__)
        if in_kernel is None:
            refuse(f"{cls.__module__}.{cls.__qualname__}")
        return in_kernel(*args, **kwargs)

    def __getitem__(cls, shape: Any) -> Any:
        in_kernel = inside(cls.__module__, cls.__name__)
        return cls if in_kernel is None else in_kernel[shape]  # the shape concerns only the kernel

    def __instancecheck__(cls, value: Any) -> bool:
        kind = cls.__dict__["inside"]
        return kind is not None and isinstance(value, kind)


def kernel_type(module: str, name: str, doc: str, inside: type | None = None) -> type:
    """Return a class of kernels, for annotations and isinstance. `inside` is its form in
    kernels.
    """
    return KernelType(name, (), {"__module__": module, "__doc__": doc, "inside": inside})


def annotation(module: str, name: str) -> type:
    return kernel_type(module, name, "A tensor argument: `tensor[128, 512]`.")


def enumeration(module: str, enum: type[Enum]) -> type[Enum]:
    """Make the enumeration a class of `module`, where unpickling finds it."""
    enum.__module__ = module  # kernels and host code share one class
    return enum


class MemoryRegion(Enum):
    """The memory of a tensor: `nl.sbuf`, `nl.psum`, `nl.private_hbm`, `nl.shared_hbm`."""

    sbuf = "sbuf"
    psum = "psum"
    private_hbm = "private_hbm"
    shared_hbm = "shared_hbm"

    def __str__(self) -> str:
        return str(self.value)

    def __eq__(self, other: object) -> bool:
        return self is other or other is self.__nki__()

    def __hash__(self) -> int:
        return hash(self.__nki__())

    def __nki__(self) -> Buffer:
        """Return the region's form in a kernel."""
        return BUFFERS[self.value]


MemoryRegion.__module__ = "nki.language"
_SAME = {Buffer.SBUF: "sbuf", Buffer.PSUM: "psum", Buffer.HBM: "private_hbm"}


def region(buffer: Buffer) -> MemoryRegion:
    return MemoryRegion(_SAME.get(buffer, "shared_hbm"))


class HostTileSize(TileSize):
    """`nl.tile_size`: sizes of the target that calls are compiled for."""

    @property
    def _target(self) -> Target:
        """The target of NEURON_PLATFORM_TARGET_OVERRIDE, or the default."""
        return target()

    # The check of which version has which name is meant for kernels.
    __getattribute__ = object.__getattribute__

    def _warn(self, name: str) -> None:
        """Do nothing: former names are reported in kernels, with a place."""


class NKIObject(objects.NKIObject):
    """Base of the classes whose objects kernels use.

    A class without `__init__` that is not a dataclass gets one from its fields, `name: type`.
    """


NKIObject.__module__ = "nki.language"


class ReplicaGroup(objects.ReplicaGroup):
    """Groups of ranks that exchange data with each other: `ReplicaGroup([[0, 1], [2, 3]])`."""


ReplicaGroup.__module__ = "nki.collectives"
