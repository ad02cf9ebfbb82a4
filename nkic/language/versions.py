"""The names of NKI that not every version has: additions, removals and deprecations.

One table says of each name, by module, what happened to it and what to write instead; the checks
of kernels, the editor, the host modules and the migration read it. Sources: release notes and
migration guides 0.1 to 0.7.0; the API reference of 0.6 for deprecations that it marks without a
version. Names that nothing dates are assumed to be in all versions; functions of tensors
(`library`) were all added in 0.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar

from nkic.base.device import KernelError
from nkic.base.diagnostics import Fix, Level
from nkic.base.profiles import Profile
from nkic.base.source import NOWHERE, SHIPPED, CallChain
from nkic.language.namespace import Absent
from nkic.language.trace import active, complain, here


class Added(NamedTuple):
    """An addition: the first version with a name, and an alternative for earlier versions."""

    since: Profile
    instead: str


class Removed(NamedTuple):
    """A removal: the first version without the name or parameter, and its replacement.

    `name` is the new name if renaming is enough; `idle` means that omitting it changes nothing.
    """

    since: Profile
    instead: str
    name: str = ""
    idle: bool = False


class Deprecated(NamedTuple):
    """A deprecation: the version, and the replacement as a sentence and as a name.

    `name` is empty if renaming is not enough. `removed_in` is the first version without the
    deprecated name. `python` is a replacement that is a name of Python.
    """

    since: Profile
    instead: str
    name: str = ""
    removed_in: Profile | None = None
    python: str = ""


Change = Added | Removed | Deprecated
Kind = TypeVar("Kind", Added, Removed, Deprecated)
BETA2, NKI_0_3, NKI_0_4 = Profile.BETA2, Profile.NKI_0_3, Profile.NKI_0_4
NKI_0_5, NKI_0_6, NKI_0_7 = Profile.NKI_0_5, Profile.NKI_0_6, Profile.NKI_0_7

_MAGNITUDE = Added(NKI_0_4, "compare the magnitudes, and choose with nisa.tensor_copy_predicated")
_SLICED = Added(NKI_0_7, "slice the tensor: t[i * 128:(i + 1) * 128, j * 512:(j + 1) * 512]")
_LISTED = Added(NKI_0_7, "make a list of tiles with nl.ndarray")
_INDEX = Added(NKI_0_5, "index with t[...]")
_PATTERN = Added(NKI_0_5, "write the pattern out: t.ap([[step, count], ...])")
_RESHAPE = Added(NKI_0_5, "use t.reshape(shape)")
_SLICES = "index with slices, `t[0:128, 0:512]`, or with `t.ap(pattern)` if slices are not enough"
_DYNAMIC = "use nisa.tensor_copy with `t.ap(pattern, scalar_offset=register)`"
_GRID = "write the grid as plain ints: `kernel[2](...)`"
_PYTHON = "compile with `nkic` and run with `nki-run`, which reports cycles"
_PLACED = "place a tensor with nl.ndarray(..., address=(partition, byte))"
_RANGE = Deprecated(NKI_0_6, "write `range`, which is the same", python="range")
NAMES: dict[str, dict[str, Change]] = {
    "nki.language": {
        "abs_max": _MAGNITUDE,
        "abs_min": _MAGNITUDE,
        "prelu": Added(
            NKI_0_4, "use nisa.scalar_tensor_tensor: max(x, slope x) for a slope below 1"
        ),
        "bypass": Added(NKI_0_4, "remove the operator"),
        "int64": Added(NKI_0_7, "use nl.int32, if the values fit"),
        "float8_e8m0fnu": Added(NKI_0_5, "keep scales of microscaling groups in nl.uint8"),
        "fori_loop": Added(NKI_0_6, "write `for i in nl.dynamic_range(start, stop, step):`"),
        "while_loop": Added(NKI_0_6, "write `while register:`"),
        "tiles": _SLICED,
        "blocks": _SLICED,
        "alloc_tiles": _LISTED,
        "alloc_blocks": _LISTED,
        "NkiGrid": _SLICED,
        "NkiTileGrid": _SLICED,
        "NkiBlockGrid": _SLICED,
        "arange": Removed(BETA2, f"{_SLICES}; nisa.iota writes such numbers into a tile"),
        "mgrid": Removed(BETA2, _SLICES),
        "static_cast": Removed(BETA2, "copy to a tensor of the other dtype with nisa.tensor_copy"),
        "loop_reduce": Removed(
            BETA2, "use nisa.tensor_reduce, or nc_matmul's accumulation in PSUM"
        ),
        "all_reduce": Removed(BETA2, "use nki.collectives.all_reduce"),
        "spmd_dim": Removed(BETA2, _GRID),
        "nc": Removed(BETA2, _GRID),
        "logical_shift_left": Removed(BETA2, "use nl.left_shift", "left_shift"),
        "logical_shift_right": Removed(BETA2, "use nl.right_shift", "right_shift"),
        "atomic_rmw": Removed(BETA2, "use nisa.dma_compute(dst, [src, dst], reduce_op=...)"),
        "broadcast": Removed(BETA2, "use t.broadcast(dim, size)"),
        "simulate_kernel": Removed(BETA2, _PYTHON),
        "tensor": Removed(BETA2, "use nl.ndarray, or nl.NkiTensor in annotations"),
        "fp32": Removed(
            BETA2, "write the number: `float(np.finfo(np.float32).min)` for nl.fp32.min"
        ),
        **dict.fromkeys(("affine_range", "sequential_range", "static_range"), _RANGE),
    },
    "nki.isa": {  # except instructions: their rows have the versions
        "NkiScalar": Added(NKI_0_7, "use a register: nisa.register_alloc, nisa.register_load"),
        "tensor_copy_dynamic_src": Removed(NKI_0_4, _DYNAMIC),
        "tensor_copy_dynamic_dst": Removed(NKI_0_4, _DYNAMIC),
        "tensor_tensor_reduce": Removed(BETA2, "use nisa.tensor_tensor, then nisa.tensor_reduce"),
        "tensor_scan": Removed(BETA2, "use nisa.tensor_tensor_scan", "tensor_tensor_scan"),
        "builtin_custom_op": Removed(BETA2, "write it with the instructions of nki.isa"),
        **{
            f"{name}_engine": Deprecated(NKI_0_6, f"write nisa.engine.{name}", f"engine.{name}")
            for name in ("tensor", "vector", "scalar", "gpsimd", "unknown")
        },
    },
    "nki": {
        "baremetal": Removed(BETA2, f"decorate the kernel with nki.jit, {_PYTHON}"),
        "benchmark": Removed(BETA2, f"decorate the kernel with nki.jit, {_PYTHON}"),
        "profile": Removed(BETA2, f"decorate the kernel with nki.jit, {_PYTHON}"),
        "trace": Removed(BETA2, "leave it out: functions that a kernel calls need no decorator"),
        "simulate_kernel": Removed(BETA2, _PYTHON),
        "tensor": Removed(BETA2, "use nl.ndarray, or nl.NkiTensor in annotations"),
    },
    "nki.compiler": {  # which has other names since 0.7
        **dict.fromkeys(("sbuf", "psum", "hbm"), Removed(BETA2, _PLACED)),
        "skip_middle_end_transformations": Removed(BETA2, "leave it out"),
        "enable_stack_allocator": Removed(BETA2, "leave it out: the compiler places tensors"),
        "force_auto_alloc": Removed(BETA2, "leave it out: the compiler places tensors"),
    },
    "nki.language.tile_size": {
        "psum_bank_fmax": Added(NKI_0_4, "write psum_fmax"),
        "psum_bank_fmax_bytes": Added(NKI_0_4, "write 4 * nl.tile_size.psum_fmax"),
        "sbuf_size_bytes": Added(NKI_0_4, "write 128 * nl.tile_size.total_available_sbuf_size"),
        "sbuf_fmax": Added(NKI_0_4, "write nl.tile_size.total_available_sbuf_size // 4"),
        "sbuf_fmax_bytes": Added(NKI_0_4, "write total_available_sbuf_size"),
        "psum_num_banks": Added(NKI_0_5, "write 8, its value on every target"),
        "psum_fmax": Deprecated(
            NKI_0_4, "write psum_bank_fmax: it is the size of one bank of PSUM", "psum_bank_fmax"
        ),
        "total_available_sbuf_size": Deprecated(
            NKI_0_4,
            "write sbuf_fmax_bytes, which is the same, or sbuf_size_bytes for all partitions "
            "together",
            "sbuf_fmax_bytes",
        ),
    },
    "NkiTensor": {
        "data": Added(NKI_0_7, "pass the tensor itself"),
        "slice": _INDEX,
        "select": Added(
            NKI_0_5, "index with t[...], or with t.ap(..., scalar_offset=...) at run time"
        ),
        "vector_select": Added(NKI_0_5, "use t.ap(..., vector_offset=...)"),
        "permute": _PATTERN,
        "broadcast": Added(NKI_0_5, "write a step of 0: t.ap([[step, count], [0, size], ...])"),
        "expand_dim": _RESHAPE,
        "squeeze_dim": _RESHAPE,
        "reshape_dim": _RESHAPE,
        "flatten_dims": _RESHAPE,
        "rearrange": _PATTERN,
        "indirect": Added(NKI_0_5, "gather with nisa.dma_copy and t.ap(..., vector_offset=...)"),
        "is_contiguous": Added(NKI_0_5, "compare t.get_pattern() with the shape"),
        "is_indirect": Added(NKI_0_5, "keep track of this in the kernel"),
    },
}
# Constructs and parameters.
NESTED = Added(NKI_0_3, "write one index of the whole tensor")
DYNAMIC_FOR = Deprecated(
    NKI_0_6,
    "write nl.fori_loop(start, stop, body, step), the body a function of i",
    removed_in=NKI_0_7,
)
DYNAMIC_WHILE = Deprecated(
    NKI_0_6,
    "write nl.while_loop(register, body), the body a function that returns the next condition",
    removed_in=NKI_0_7,
)
JIT_MODE = Deprecated(NKI_0_3, "remove it: nothing depends on it")


def of(module: str, kind: type[Kind]) -> dict[str, Kind]:
    return {name: c for name, c in NAMES.get(module, {}).items() if isinstance(c, kind)}


LANGUAGE, TILE_SIZE = of("nki.language", Added), of("nki.language.tile_size", Added)
TENSOR = of("NkiTensor", Added)


# ---- names that a version does not have ----------------------------------------------------------


def absent(module: str, profile: Profile) -> dict[str, Absent]:
    """Return the errors for the names that NKI has removed from `module`, or not yet added."""
    return {
        **{
            name: _gone(f"{module}.{name}", one, profile)
            for name, one in of(module, Removed).items()
        },
        **later(module, of(module, Added), profile),
    }


def later(module: str, names: Mapping[str, Added], profile: Profile) -> dict[str, Absent]:
    """Return the errors for `names` of a module that `profile` does not have yet."""
    return {
        name: added_later(f"`{module}.{name}`", addition, profile)
        for name, addition in names.items()
        if profile < addition.since
    }


def added_later(feature: str, addition: Added, profile: Profile) -> Absent:
    """Return the error for `feature`, which `profile` does not have yet."""
    text = f"NKI {profile.label} has no {feature}: it was added in NKI {addition.since.label}"
    return Absent("needs-profile", text, addition.instead)


def _gone(name: str, removal: Removed, profile: Profile) -> Absent:
    if profile >= removal.since:
        text = f"NKI {profile.label} has no `{name}`: it was removed in NKI {removal.since.label}"
    else:
        text = f"nkic has no `{name}`, which was removed in NKI {removal.since.label}"
    return Absent("removed-name", text, removal.instead)


def require(feature: str, addition: Added) -> None:
    """Raise `KernelError` if the kernel's version does not have `feature` yet.

    nkic's own library may use everything in every version.
    """
    if here().span.path.startswith(SHIPPED):
        return
    if active().profile < addition.since:
        error = added_later(feature, addition, active().profile)
        raise KernelError(error.slug, error.text, help=error.help)


def without_later(contents: Mapping[str, Any], profile: Profile) -> dict[str, Any]:
    """Return the names of `nki.language` that `profile` has."""
    return {
        name: value
        for name, value in contents.items()
        if name not in LANGUAGE or profile >= LANGUAGE[name].since
    }


# ---- deprecations --------------------------------------------------------------------------------


def refuse(feature: str, deprecation: Deprecated) -> None:
    """Raise `KernelError` if the kernel's version has removed `feature`."""
    if deprecation.removed_in is not None and active().profile >= deprecation.removed_in:
        text = f"there is no {feature.removeprefix('a ')} since NKI {deprecation.removed_in.label}"
        raise KernelError(
            "removed-name", text, help=f"{deprecation.instead}, or {_until(deprecation.removed_in)}"
        )


def _until(removed_in: Profile) -> str:
    last = max(profile for profile in Profile if profile < removed_in)
    return f"compile with `--nki {last.label}`, the last version that has it"


def warn(feature: str, deprecation: Deprecated, at: CallChain | None = None) -> None:
    """Report a use of `feature`, at the current expression or `at`, if it is deprecated.

    Raises `KernelError` if the kernel's version has removed it.
    """
    refuse(feature, deprecation)
    if active().profile < deprecation.since:
        return
    complain(
        "deprecated",
        f"{feature} is deprecated since NKI {deprecation.since.label}",
        help=deprecation.instead,
        level=Level.WARNING,
        fixes=_renamed(feature, deprecation),
        at=at,
    )


def _renamed(feature: str, deprecation: Deprecated) -> tuple[Fix, ...]:
    """Return a fix that renames the last word of the current expression, if it is the name."""
    span, word = here().primary, feature.strip("`").rpartition(".")[2]
    module = active().module_of(span.path)
    if not deprecation.name or module is None or not module.source.text_of(span).endswith(word):
        return ()
    end = span._replace(line=span.end_line, column=span.end_column - len(word))
    return (Fix(end, deprecation.name, f"write `{deprecation.name}`", sure=True),)


def watched(
    module: str, contents: dict[str, Any], profile: Profile
) -> dict[str, Callable[[], Any]]:
    """Remove the names that `profile` deprecates from `contents`; return values that warn on
    access.
    """
    return {
        name: partial(_deprecated_value, f"`{module}.{name}`", one, contents.pop(name))
        for name, one in of(module, Deprecated).items()
        if name in contents and profile >= one.since
    }


def _deprecated_value(feature: str, deprecation: Deprecated, value: Any) -> Any:
    if here().span is not NOWHERE:  # no location: access while explaining an error
        warn(feature, deprecation)
    return value


# ---- parameters ----------------------------------------------------------------------------------

_MASK = Removed(
    BETA2,
    "slice to the part that is there, `t[0:min(128, rows - start)]`, or use nisa.affine_select",
)
_DTYPE = Removed(
    BETA2, "the result has the dtype of dst: make dst with nl.ndarray(shape, dtype=...)", idle=True
)
_BUFFER = Removed(
    BETA2, "the result is in the buffer of dst: make dst with nl.ndarray(..., buffer=...)"
)
_SHAPE = Removed(BETA2, "the result has the shape of dst: make dst with nl.ndarray(shape, ...)")

# Of every instruction and function
_PARAMETERS = {"mask": _MASK, "dtype": _DTYPE, "buffer": _BUFFER}
# Of a single function
_OF = {
    ("dma_copy", "dst_rmw_op"): Removed(
        NKI_0_3, "use nisa.dma_compute(dst, [src, dst], reduce_op)"
    ),
    ("dma_copy", "unique_indices"): Removed(
        NKI_0_3, "use nisa.dma_compute, which has this parameter", idle=True
    ),
    ("sendrecv", "use_gpsimd_dma"): Removed(
        NKI_0_3, "write dma_engine=nisa.dma_engine.gpsimd_dma, or nisa.dma_engine.dma for False"
    ),
    ("register_move", "imm"): Removed(NKI_0_3, "write src=nisa.register_alloc(value)"),
    **{
        (f"{kind}_range", "directives"): Removed(
            BETA2, "leave it out: it was a hint to Beta 1's compiler", idle=True
        )
        for kind in ("affine", "sequential", "static")
    },
    **{
        (name, "lazy_initialization"): Removed(
            BETA2, "leave it out: the first matmul into a tile in PSUM overwrites it", idle=True
        )
        for name in ("zeros", "full")
    },
    ("nc_matmul", "psumAccumulateFlag"): Removed(
        BETA2, "leave it out: it had no effect", idle=True
    ),
    ("nc_matmul", "is_moving_zero"): Removed(
        BETA2, "write is_moving_onezero=", "is_moving_onezero"
    ),
    ("memset", "shape"): _SHAPE,
    ("iota", "expr"): Removed(
        BETA2, "describe the numbers by pattern=[[step, count], ...], offset, channel_multiplier"
    ),
    ("affine_select", "pred"): Removed(
        BETA2, "describe it by pattern=[[step, count], ...], offset, channel_multiplier, cmp_op"
    ),
    ("collective_permute_implicit_current_processing_rank_id", "num_channels"): Removed(
        NKI_0_3, "leave it out, and pass channel_ids to collective_permute_implicit", idle=True
    ),
    ("jit", "platform_target"): Removed(
        NKI_0_3,
        "leave it out: choose with `--target` or NEURON_PLATFORM_TARGET_OVERRIDE",
        idle=True,
    ),
}
# Help for values of the wrong kind: the call may use an earlier version's argument order.
_AFFINE = "since NKI 0.3 offset comes last: pass it by name, `offset=`"
_COMPUTE = "since NKI 0.3 the order is dma_compute(dst, srcs, reduce_op, scales)"
_ORDER = {
    ("affine_select", "on_true_tile"): _AFFINE,
    ("affine_select", "on_false_value"): _AFFINE,
    ("dma_compute", "reduce_op"): _COMPUTE,
    ("memset", "dst"): "the tensor to fill comes first, made with nl.ndarray: memset(dst, value)",
}

# Redundant parameters that published kernels still pass, with the last NKI version that accepts
# them. The result has the dtype of dst in any case.
_TOLERATED = {"dtype": Profile.NKI_0_3}


def tolerated(name: str, profile: Profile) -> bool:
    """Return whether the parameter is accepted although dst decides."""
    last = _TOLERATED.get(name)
    return last is not None and profile <= last


def parameter(function: str, name: str) -> Removed | None:
    return _OF.get((function, name)) or _PARAMETERS.get(name)


def own_parameter(function: str, name: str) -> Removed | None:
    """Return the removal of a parameter that only `function` had, or None if unknown."""
    return _OF.get((function, name))


def no_parameter(name: str, removal: Removed, profile: Profile) -> str:
    """Return the message for a removed parameter, with the first version that refuses it."""
    last = _TOLERATED.get(name)
    since = removal.since if last is None else min(p for p in Profile if p > last)
    if profile >= removal.since:
        return f"there is no parameter `{name}` since NKI {since.label}"
    return f"nkic does not have `{name}=`, which was removed in NKI {removal.since.label}"


def former_order(function: str, parameter: str) -> str:
    """Return help for an argument of the wrong kind, or "" if the order never changed."""
    return _ORDER.get((function, parameter), "")


# ---- Calls that later versions write in another form, beyond a renaming -------------------------
# Source: migration guide, 0.2.0 to 0.3.0, API breaking changes and parameter changes. `removed`
# has the removals and their versions; these tables have the new forms, for tools that rewrite
# source.


class Wrapped(NamedTuple):
    """A parameter replaced by another one, whose value an instruction makes."""

    name: str
    by: str


class Chosen(NamedTuple):
    """A flag replaced by a parameter with members of the enumeration of the same name."""

    name: str
    yes: str
    no: str


class Merged(NamedTuple):
    """A parameter that made an instruction accumulate into `dst`, replaced by an instruction.

    Instruction `by` takes the operator as `operator`, and dst among the sources. `kept` are the
    parameters that both have. The operator `None` means the plain instruction.
    """

    by: str
    operator: str
    kept: tuple[str, ...]


class Moved(NamedTuple):
    """A parameter whose position `place` now belongs to another one.

    A call has the former order if its argument at position `shown` (from 0) is not an nl operator,
    or, if the call is shorter, if `named` is passed by name after `place`. `swap` is the position
    that takes the value; None if it moves to the end, by name.
    """

    name: str
    place: int
    shown: int
    named: str
    swap: int | None = None


class Product(NamedTuple):
    """A function that is one instruction with arguments `names` if `flag` is True.

    If `flag` is False, the instructions of `turn` transpose the first argument before.
    """

    by: str
    flag: str
    names: tuple[str, ...]
    turn: tuple[str, ...]


WRAPPED = {("register_move", "imm"): Wrapped("src", "register_alloc")}
CHOSEN = {("sendrecv", "use_gpsimd_dma"): Chosen("dma_engine", "gpsimd_dma", "dma")}
MERGED = {
    ("dma_copy", "dst_rmw_op"): Merged(
        "dma_compute", "reduce_op", ("unique_indices", "oob_mode", "name")
    )
}
# Parameters that have an effect only together with another one.
WITH = {("dma_copy", "unique_indices"): "dst_rmw_op"}
ORDER = {
    "affine_select": Moved("offset", 2, 5, "channel_multiplier"),
    "dma_compute": Moved("scales", 2, 2, "reduce_op", swap=3),
}
ORDER_SINCE = Profile.NKI_0_3
# Values that must be integers if dst holds integers, and axes that default to the last one.
WHOLE = {"memset": "value"}
LAST_AXIS = {"tensor_reduce": "data"}

# Methods of Beta 1's tiles that are now functions of nl.
FUNCTIONS = ("broadcast_to", "expand_dims")
# Functions that Beta 1 accepts as operators, with the current operator. Reductions name the
# operator that they fold with; NumPy's functions are included.
OPERATORS = {
    **{"max": "maximum", "amax": "maximum", "min": "minimum", "amin": "minimum"},
    **{"sum": "add", "prod": "multiply", "all": "logical_and", "any": "logical_or"},
    **{"bitwise_not": "invert", "true_divide": "divide", "absolute": "abs"},
    **{"logical_shift_left": "left_shift", "logical_shift_right": "right_shift"},
    **{"float_power": "power", "remainder": "mod"},
}
PRODUCTS = {
    "matmul": Product(
        "nc_matmul", "transpose_x", ("stationary", "moving"), ("nc_transpose", "tensor_copy")
    )
}
# Decorators of Beta 1 and their replacements; "" for none.
FRAMEWORKS = ("torch_neuronx.nki_jit", "jax_neuronx.nki_jit")  # aliases of nki.jit
DECORATORS = {"baremetal": "jit", "benchmark": "jit", "profile": "jit", "trace": ""} | {
    f"compiler.{name}": ""
    for name in ("skip_middle_end_transformations", "enable_stack_allocator", "force_auto_alloc")
}
# Functions of Beta 1 with a dtype argument; today the NumPy array itself is converted.
CONVERTED = {"shared_constant": "dtype"}
# Strings of Beta 1 with a new spelling, by instruction and parameter, and former defaults of
# functions of `nki.language`.
WORDS = {("nc_matmul", "perf_mode"): {"double_row_gen3": "double_row"}}
DEFAULTS = {"rand": ("dtype", "float32")}

# Instructions of Beta 1 with an index expression, a comparison of two, or a shape: their
# parameters.
BY_INDEX = {"iota": ("expr", "dtype")}
BY_CONDITION = {"affine_select": ("pred", "on_true_tile", "on_false_value")}
# The parameters that express such an index today (step and size of each axis, offset, step over
# partitions), and the operands that a comparison chooses from.
AS_PATTERN = ("pattern", "offset", "channel_multiplier")
AS_CHOICE = ("on_true_tile", "on_false_value", "cmp_op")
BY_SHAPE = {"memset": ("shape", "value", "dtype")}
# The operand that such an instruction cannot read from PSUM; Beta 1 copied it first.
COPIED = {"affine_select": "on_true_tile"}
# The sizes of a result by dimension: an operand and its dimension, negative from the end.
SIZES = {
    "nc_matmul": {0: ("stationary", -1), 1: ("moving", -1)},
    "nc_transpose": {0: ("data", 1), 1: ("data", 0)},
    "dma_transpose": {0: ("src", 1), 1: ("src", 0)},
}
# Copies with a run-time offset, which a tile's index expresses today: now plain copies.
DYNAMIC = {"tensor_copy_dynamic_src": "tensor_copy", "tensor_copy_dynamic_dst": "tensor_copy"}
# Instructions whose results are in SBUF and resemble an operand: the operand that gives the dtype
# without `dtype=`, and the shape if SIZES has no entry.
MADE_LIKE = {
    "tensor_copy": "src",
    "dma_transpose": "src",
    "activation": "data",
    "reciprocal": "data",
    "tensor_scalar": "data",
    "affine_select": "on_true_tile",
}
# Operands that were broadcast along dimensions of size 1.
REPEATED = {"tensor_tensor": ("data1", "data2")}
# The function that combined a value with a tensor in HBM: its parameters, and its replacement.
COMBINED = ("atomic_rmw", ("dst", "value", "op"), "dma_compute")
# The instruction that moves data to partitions at which no engine can start.
BY_DMA = "dma_copy"
# Parameters for results.
OUTPUTS = ("dst", "reduce_res", "accumulate")
