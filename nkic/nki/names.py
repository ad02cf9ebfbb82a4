"""The host forms of NKI's names: values to pass on, to compare and to annotate with.

They are described to the compiler by module and name. Functions of tensors and instructions have
signatures and documentation, and raise an error if they are called outside a kernel.
"""

from __future__ import annotations

import ast
import inspect
import os
from enum import Enum
from functools import cache
from inspect import Parameter, Signature
from typing import Any, NoReturn

from nkic.compiler.request import COMPILER_FLAGS, TARGET_VARIABLE, compiler_flag, find_target
from nkic.language import hosted, library
from nkic.language.dtypes_api import BUFFERS
from nkic.language.provide import TileSize
from nkic.language.trace import current
from nkic.machine.dtypes import DTYPES
from nkic.machine.instructions import listing
from nkic.machine.operands import Attribute, AttributeKind, Facts, Operand, Row, Tile
from nkic.machine.rules import violations
from nkic.machine.targets import DEFAULT, PARTITIONS, Buffer, Target
from nkic.machine.timing import timing


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


class NKIObject(hosted.NKIObject):
    """Base of the classes whose objects kernels use.

    A class without `__init__` that is not a dataclass gets one from its fields, `name: type`.
    """


NKIObject.__module__ = "nki.language"


class ReplicaGroup(hosted.ReplicaGroup):
    """Groups of ranks that exchange data with each other: `ReplicaGroup([[0, 1], [2, 3]])`."""


ReplicaGroup.__module__ = "nki.collectives"

# ---- Signatures and documentation of NKI's functions --------------------------------------------
# They come from the instruction table and the library, with the cost of an instruction on plain
# tiles.

FREE, DTYPE = 512, "float32"
_CHOSEN = {AttributeKind.ALU: "add", AttributeKind.ACTIVATION: "exp", AttributeKind.NUMBER: 1.0}


def _cost(row: Row) -> str:
    """Return the cost on tiles of [128, 512] float32 as a sentence; empty if it takes no such
    tiles.
    """
    operands = {operand.name: _example(operand) for operand in row.operands}
    attributes = {attribute.name: _chosen(attribute) for attribute in row.attributes}
    facts = Facts(DEFAULT, operands, attributes, row.engines[0])
    if any(value is ... for value in (*operands.values(), *attributes.values())):
        return ""
    engine = row.choose(facts)
    facts = Facts(DEFAULT, operands, attributes, engine)
    if violations(row, facts):
        return ""
    hold = timing(row, facts, engine).hold / 1000
    size = f"[{PARTITIONS}, {FREE}] {DTYPE}"
    return f"On tiles of {size}, {DEFAULT.name}'s {engine.value} is busy for {hold:.0f} ns."


def _example(operand: Operand) -> Any:
    """Return a tile in SBUF, or the simplest other value that the operand allows."""
    if operand.default is not ...:
        return operand.default
    if operand.optional:
        return None
    if operand.number and operand.column:
        return 1.0
    fits = Buffer.SBUF in operand.buffers and (not operand.dtypes or DTYPE in operand.dtypes)
    dims = ((1, 1),) if operand.column else ((1, FREE),)
    return Tile(Buffer.SBUF, DTYPES[DTYPE], 0, PARTITIONS, dims) if fits else ...


def _chosen(attribute: Attribute) -> Any:
    return _CHOSEN.get(attribute.kind, ...) if attribute.required else attribute.default


Documented = tuple[Signature, str]
_BOTH = Parameter.POSITIONAL_OR_KEYWORD


class Written:
    """A default value as it is written in a signature: `engine.unknown`."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def of_row(row: Row) -> Documented:
    parameters = (
        Parameter(name, _BOTH, default=_default(row, name), annotation=_annotation(row, name))
        for name in row.parameters
    )
    signature = Signature([*parameters])
    lines = [
        f"{row.name}{_bare(signature)}",
        "",
        row.doc,
        "",
        f"On {listing.availability(row)}. A tile on chip has at most {PARTITIONS} partitions.",
        *filter(None, [_cost(row)]),
        "",
        *(f":param {name}: {text}" for name, text in listing.described(row).items()),
        "",
        f"Source: {row.source}.",
    ]
    return signature, "\n".join(lines)


def _bare(signature: Signature) -> Signature:
    bare = [p.replace(annotation=Parameter.empty) for p in signature.parameters.values()]
    return signature.replace(parameters=bare)


def _default(row: Row, name: str) -> Any:
    if name in ("engine", "name"):
        return Written("engine.unknown") if name == "engine" else None
    if name == row.spread:
        return Parameter.empty
    definition = _definition(row, name)
    if definition is None or definition.default is ...:
        return Parameter.empty
    return _plain(name, definition.default)


def _plain(name: str, default: Any) -> Any:
    if type(default) in (type(None), bool, int, float, str, tuple):
        return default
    return Written(str(getattr(default, "name", default)))


def _definition(row: Row, name: str) -> Operand | Attribute | None:
    definitions: tuple[Operand | Attribute, ...] = (*row.operands, *row.attributes)
    return next((definition for definition in definitions if definition.name == name), None)


def _annotation(row: Row, name: str) -> Any:
    definition = _definition(row, name)
    if name == "name":
        return "str | None"
    if name == row.spread:
        return "list[NkiTensor]"
    if not isinstance(definition, Operand):
        return Parameter.empty
    kinds = ["NkiTensor"] if definition.buffers else []
    kinds += ["float"] if definition.number else []
    kinds += ["VirtualRegister"] if definition.register else []
    return " | ".join([*kinds, *(["None"] if definition.optional else [])])


@cache
def library_functions() -> dict[str, Documented]:
    """Return the functions of `nki.language` that nkic implements as kernel source."""
    functions: dict[str, Documented] = {}
    for file in dict.fromkeys(library.sources().values()):
        for node in ast.parse(file.text).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                signature, doc = _of_definition(node), ast.get_docstring(node) or ""
                functions[node.name] = (signature, f"{node.name}{signature}\n\n{doc}")
    return functions


def _of_definition(node: ast.FunctionDef) -> Signature:
    args = node.args
    plain = [*args.posonlyargs, *args.args]
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(args.defaults))
    pairs = zip(plain, [*defaults, *args.defaults], strict=True)
    parameters = [Parameter(arg.arg, _BOTH, default=_written(value)) for arg, value in pairs]
    if args.vararg is not None:
        parameters.append(Parameter(args.vararg.arg, Parameter.VAR_POSITIONAL))
    for arg, value in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        parameters.append(Parameter(arg.arg, Parameter.KEYWORD_ONLY, default=_written(value)))
    return Signature(parameters)


def _written(value: ast.expr | None) -> Any:
    if value is None:
        return Parameter.empty
    try:
        return ast.literal_eval(value)
    except ValueError:
        return Written(ast.unparse(value))


def of_function(function: Any) -> Documented:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        signature = Signature([Parameter("args", Parameter.VAR_POSITIONAL)])
    return _bare(signature), inspect.getdoc(function) or ""
