"""The modules of Beta 1: `neuronxcc.nki`, `.language`, `.isa`, `.compiler` and `.typing`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import Any

from nkic.base.profiles import Profile
from nkic.language.beta1 import (
    ROOT,
    creation,
    functions,
    indices,
    isa,
    loops,
    more,
    moving,
    operators,
    recorded,
)
from nkic.language.beta1.operators import Function, fitting
from nkic.language.creation import ParDim, TensorClass
from nkic.language.dtypes_api import BUFFERS, named
from nkic.language.enums import ENUMS, OPERATORS, engine
from nkic.language.hosted import Decorator, Kernel, surface
from nkic.language.indexing import DynamicSlice
from nkic.language.isa import NkiValidationError, get_nc_version
from nkic.language.jit import check_option
from nkic.language.namespace import Namespace
from nkic.language.provide import NoReorder, TileSize, program_id, program_ndim
from nkic.language.trace import active
from nkic.machine import dtypes
from nkic.program.program import Instruction


@surface(public=True)
class TileSizes(TileSize):
    """`nl.tile_size`."""

    @property
    def psum_fmax(self) -> int:
        """float32 elements of a PSUM bank per partition."""
        return self.psum_bank_fmax

    @property
    def total_available_sbuf_size(self) -> int:
        """Bytes of SBUF per partition that a kernel may use."""
        return self._target.sbuf_usable

    __getattribute__ = object.__getattribute__


@surface("min")
class Limits:
    """`nl.fp32`: constants of a dtype."""

    def __init__(self, lowest: float) -> None:
        self.min = lowest


_BINARY = (
    *("add", "subtract", "multiply", "maximum", "minimum", "power", "divide"),
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
    *("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"),
    *("logical_and", "logical_or", "logical_xor"),
)
_UNARY = (
    *("abs", "arctan", "ceil", "cos", "erf", "erf_dx", "exp", "floor", "gelu", "gelu_dx"),
    *("gelu_apprx_sigmoid", "gelu_apprx_tanh", "invert", "log", "logical_not", "mish"),
    *("negative", "reciprocal", "relu", "rsqrt", "sigmoid", "sign", "silu", "silu_dx", "sin"),
    *("softplus", "sqrt", "square", "tan", "tanh", "trunc"),
)


def with_name(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add a parameter `name=`, for the name of the recorded instructions.

    Listings and profiles show it. Beta 2 documents it; the pages of Beta 1 only say that there are
    more parameters (assumed).
    """

    @wraps(function)
    def call(*args: Any, name: str = "", **more: Any) -> Any:
        if not name:
            return function(*args, **more)
        body = active().body
        start = len(body)
        result = function(*args, **more)
        recorded = body[start:]
        body[start:] = [
            i._replace(name=name) if isinstance(i, Instruction) else i for i in recorded
        ]
        return result

    return call


def _binary(name: str) -> Function:
    def call(x: Any, y: Any, *, dtype: Any = None, mask: Any = None) -> Any:
        return functions.binary(name, x, y, dtype, mask)

    return Function(name, call)


def _remainder(name: str) -> Function:
    """`nl.mod` and `nl.fmod`, whose further arguments may be positional."""

    def call(x: Any, y: Any, dtype: Any = None, mask: Any = None) -> Any:
        return functions.binary(name, x, y, dtype, mask)

    return Function(name, call)


def _unary(name: str) -> Function:
    def call(x: Any, *, dtype: Any = None, mask: Any = None) -> Any:
        return functions.unary(name, x, dtype, mask)

    return Function(name, call)


_NL: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (moving, ("load", "store", "load_transpose2d", "static_cast")),
    (functions, ("broadcast_to", "expand_dims")),
    (creation, ("ndarray", "zeros", "ones", "full", "zeros_like", "empty_like")),
    (creation, ("shared_constant", "shared_identity_matrix", "device_print")),
)


def language() -> dict[str, Any]:
    names: dict[str, Any] = {name: _binary(name) for name in _BINARY}
    names |= {name: _unary(name) for name in _UNARY}
    names |= {name: _remainder(name) for name in ("mod", "fmod")}
    names |= {name: Function(name, function) for name, function in more.REDUCTIONS.items()}
    plain = {name: getattr(more, name) for name in more.FUNCTIONS}
    plain |= {name: getattr(module, name) for module, listed in _NL for name in listed}
    names |= {name: fitting(f"nl.{name}", function) for name, function in plain.items()}
    names |= {name: OPERATORS[name] for name in ("gelu_apprx_sigmoid_dx", "prelu", "bypass")}
    return {
        **names,
        **named(Profile.BETA1),
        **BUFFERS,
        "bool_": dtypes.BOOL,
        "copy": Function("copy", moving.copy),
        "where": fitting("nl.where", functions.where_),
        "arange": fitting("nl.arange", indices.arange),
        "mgrid": indices.MakesGrids(),
        "ds": DynamicSlice,
        "par_dim": ParDim,
        "tile_size": TileSizes(),
        "fp32": Limits(dtypes.FLOAT32.lowest),
        "bfp16": Limits(dtypes.DTYPES["bfloat16"].lowest),
        "finfo": more.finfo,
        "affine_range": fitting("nl.affine_range", loops.affine),
        "sequential_range": fitting("nl.sequential_range", loops.traced),
        "static_range": fitting("nl.static_range", loops.unrolled),
        "loop_reduce": with_name(fitting("nl.loop_reduce", loops.loop_reduce)),
        "program_id": program_id,
        "num_programs": more.instances,
        "program_ndim": program_ndim,
        "nc": more.nc,
        "spmd_dim": more.spmd_dim,
        "Tensor": TensorClass,
        "tensor": TensorClass,
        "no_reorder": NoReorder,
    }


def instructions() -> dict[str, Any]:
    engines = (engine.tensor, engine.vector, engine.scalar, engine.gpsimd, engine.unknown)
    return {
        **{name: with_name(function) for name, function in isa.INSTRUCTIONS.items()},
        **ENUMS,
        **{f"{member.name}_engine": member for member in engines},
        "get_nc_version": get_nc_version,
        "NkiValidationError": NkiValidationError,
        "fp32": Limits(dtypes.FLOAT32.lowest),
    }


def compiler() -> dict[str, Any]:
    return {
        "sbuf": creation.Sbuf(),
        "psum": creation.Psum(),
        **{
            name: Decorator(name, fitting(f"nki.compiler.{name}", function))
            for name, function in creation.DECORATORS.items()
        },
        "no_reorder": NoReorder,
        "allocation_scope": creation.allocation_scope,
        "multi_buffer": creation.multi_buffer,
    }


# Options of decorators for runs on a device and for output files (Beta 1: nki.baremetal,
# nki.benchmark, nki.profile; nki.jit of v2.22 to v2.24 for `kernel_return`). They are for the
# runner: nkic.nki.measure honours or refuses them.
_RUN_OPTIONS = (
    *("warmup", "iters", "profile_nth", "working_directory", "artifacts_dir", "overwrite"),
    *("save_neff_name", "save_trace_name", "kernel_return"),
)


def jit(name: str, target: Any, **options: Any) -> Any:
    """Apply `nki.jit`, `nki.trace` or a similar decorator, by its name, to a function."""
    for option, value in options.items():
        if option not in _RUN_OPTIONS:
            check_option(f"nki.{name}", option, value)
    return target if isinstance(target, Kernel) else Kernel(target)


def namespaces(annotation: Any) -> Mapping[str, Namespace]:
    decorators = ("jit", "trace", "baremetal", "benchmark", "profile")
    nki: dict[str, Any] = {name: Decorator(name, partial(jit, name)) for name in decorators}
    nki["tensor"] = TensorClass
    nl, nisa = language(), instructions()
    constants = {**ENUMS, **{k: v for k, v in nisa.items() if k.endswith("_engine")}}
    spaces = {
        "": {},
        ".nki": nki,
        ".nki.language": nl,
        ".nki.isa": nisa,
        ".nki.compiler": compiler(),
        ".nki.typing": {
            "tensor": annotation,
            "mutable_tensor": annotation,
            "scalar": recorded.scalar,
        },
        ".nki.isa.constants": constants,
        ".nki.language.constants": {
            **{k: nl[k] for k in ("fp32", "bfp16", "tile_size")},
            "sizeinbytes": more.sizeinbytes,
        },
    }
    return {
        f"{ROOT}{name}": Namespace(f"{ROOT}{name}", contents) for name, contents in spaces.items()
    }


operators.install(language())  # once: all evaluations share the class of tiles
