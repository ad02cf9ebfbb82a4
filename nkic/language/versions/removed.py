"""Names and parameters of earlier NKI versions, with their replacements.

Sources: the migration guides from 0.1 to 0.6, release notes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from nkic.base.profiles import Profile
from nkic.language.namespace import Absent


class Removal(NamedTuple):
    """A removal: the first version without the name or parameter, and its replacement.

    `name` is the new name if renaming is enough; `idle` means that omitting it changes nothing.
    """

    since: Profile
    instead: str
    name: str = ""
    idle: bool = False


BETA2, NKI_0_3, NKI_0_4 = Profile.BETA2, Profile.NKI_0_3, Profile.NKI_0_4

_SLICES = "index with slices, `t[0:128, 0:512]`, or with `t.ap(pattern)` if slices are not enough"
_DYNAMIC = "use nisa.tensor_copy with `t.ap(pattern, scalar_offset=register)`"
_GRID = "write the grid as plain ints: `kernel[2](...)`"
_PYTHON = "compile with `nkic` and run with `nki-run`, which reports cycles"

# In nki.language
LANGUAGE = {
    "arange": Removal(BETA2, _SLICES),
    "mgrid": Removal(BETA2, _SLICES),
    "static_cast": Removal(BETA2, "copy to a tensor of the other dtype with nisa.tensor_copy"),
    "loop_reduce": Removal(BETA2, "use nisa.tensor_reduce, or nc_matmul's accumulation in PSUM"),
    "all_reduce": Removal(BETA2, "use nki.collectives.all_reduce"),
    "spmd_dim": Removal(BETA2, _GRID),
    "nc": Removal(BETA2, _GRID),
    "logical_shift_left": Removal(BETA2, "use nl.left_shift", "left_shift"),
    "logical_shift_right": Removal(BETA2, "use nl.right_shift", "right_shift"),
    "atomic_rmw": Removal(BETA2, "use nisa.dma_compute(dst, [src, dst], reduce_op=...)"),
    "broadcast": Removal(BETA2, "use t.broadcast(dim, size)"),
    "simulate_kernel": Removal(BETA2, _PYTHON),
    "tensor": Removal(BETA2, "use nl.ndarray, or nl.NkiTensor in annotations"),
    "fp32": Removal(BETA2, "write the number: `float(np.finfo(np.float32).min)` for nl.fp32.min"),
}

# In nki.isa
ISA = {
    "tensor_copy_dynamic_src": Removal(NKI_0_4, _DYNAMIC),
    "tensor_copy_dynamic_dst": Removal(NKI_0_4, _DYNAMIC),
    "tensor_tensor_reduce": Removal(BETA2, "use nisa.tensor_tensor, then nisa.tensor_reduce"),
    "tensor_scan": Removal(BETA2, "use nisa.tensor_tensor_scan", "tensor_tensor_scan"),
    "builtin_custom_op": Removal(BETA2, "write it with the instructions of nki.isa"),
}

# In nki
NKI = {
    "baremetal": Removal(BETA2, f"decorate the kernel with nki.jit, {_PYTHON}"),
    "benchmark": Removal(BETA2, f"decorate the kernel with nki.jit, {_PYTHON}"),
    "profile": Removal(BETA2, f"decorate the kernel with nki.jit, {_PYTHON}"),
    "trace": Removal(BETA2, "leave it out: functions that a kernel calls need no decorator"),
    "simulate_kernel": Removal(BETA2, _PYTHON),
    "tensor": Removal(BETA2, "use nl.ndarray, or nl.NkiTensor in annotations"),
}
_PLACED = "place a tensor with nl.ndarray(..., address=(partition, byte))"
# In nki.compiler, which has other names since 0.7
COMPILER = {
    **dict.fromkeys(("sbuf", "psum", "hbm"), Removal(BETA2, _PLACED)),
    "skip_middle_end_transformations": Removal(BETA2, "leave it out"),
    "enable_stack_allocator": Removal(BETA2, "leave it out: the compiler places tensors"),
    "force_auto_alloc": Removal(BETA2, "leave it out: the compiler places tensors"),
}


def absent(module: str, table: Mapping[str, Removal], profile: Profile) -> dict[str, Absent]:
    """Return the errors for the names of `table` in `module`."""
    return {name: _absent(f"{module}.{name}", removal, profile) for name, removal in table.items()}


def _absent(name: str, removal: Removal, profile: Profile) -> Absent:
    if profile >= removal.since:
        text = f"NKI {profile.label} has no `{name}`: it was removed in NKI {removal.since.label}"
    else:
        text = f"nkic has no `{name}`, which was removed in NKI {removal.since.label}"
    return Absent("removed-name", text, removal.instead)


# ---- parameters ----------------------------------------------------------------------------------

_MASK = Removal(
    BETA2,
    "slice to the part that is there, `t[0:min(128, rows - start)]`, or use nisa.affine_select",
)
_DTYPE = Removal(
    BETA2,
    "the result has the dtype of dst: make dst with nl.ndarray(shape, dtype=...)",
    idle=True,
)
_BUFFER = Removal(
    BETA2, "the result is in the buffer of dst: make dst with nl.ndarray(..., buffer=...)"
)
_SHAPE = Removal(BETA2, "the result has the shape of dst: make dst with nl.ndarray(shape, ...)")

# Of every instruction and function
_PARAMETERS = {"mask": _MASK, "dtype": _DTYPE, "buffer": _BUFFER}
# Of a single function
_OF = {
    ("dma_copy", "dst_rmw_op"): Removal(
        NKI_0_3, "use nisa.dma_compute(dst, [src, dst], reduce_op)"
    ),
    ("dma_copy", "unique_indices"): Removal(
        NKI_0_3, "use nisa.dma_compute, which has this parameter", idle=True
    ),
    ("sendrecv", "use_gpsimd_dma"): Removal(
        NKI_0_3, "write dma_engine=nisa.dma_engine.gpsimd_dma, or nisa.dma_engine.dma for False"
    ),
    ("register_move", "imm"): Removal(NKI_0_3, "write src=nisa.register_alloc(value)"),
    **{
        (f"{kind}_range", "directives"): Removal(
            BETA2, "leave it out: it was a hint to Beta 1's compiler", idle=True
        )
        for kind in ("affine", "sequential", "static")
    },
    **{
        (name, "lazy_initialization"): Removal(
            BETA2, "leave it out: the first matmul into a tile in PSUM overwrites it", idle=True
        )
        for name in ("zeros", "full")
    },
    ("nc_matmul", "psumAccumulateFlag"): Removal(
        BETA2, "leave it out: it had no effect", idle=True
    ),
    ("nc_matmul", "is_moving_zero"): Removal(
        BETA2, "write is_moving_onezero=", "is_moving_onezero"
    ),
    ("memset", "shape"): _SHAPE,
    ("iota", "expr"): Removal(
        BETA2, "describe the numbers by pattern=[[step, count], ...], offset, channel_multiplier"
    ),
    ("affine_select", "pred"): Removal(
        BETA2, "describe it by pattern=[[step, count], ...], offset, channel_multiplier, cmp_op"
    ),
    ("collective_permute_implicit_current_processing_rank_id", "num_channels"): Removal(
        NKI_0_3, "leave it out, and pass channel_ids to collective_permute_implicit", idle=True
    ),
    ("jit", "platform_target"): Removal(
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


def parameter(function: str, name: str) -> Removal | None:
    """Return the removal of a parameter of `function`, or None if unknown."""
    return _OF.get((function, name)) or _PARAMETERS.get(name)


def own_parameter(function: str, name: str) -> Removal | None:
    """Return the removal of a parameter that only `function` had, or None if unknown."""
    return _OF.get((function, name))


def no_parameter(name: str, removal: Removal, profile: Profile) -> str:
    """Return the message for a removed parameter, with the first version that refuses it."""
    last = _TOLERATED.get(name)
    since = removal.since if last is None else min(p for p in Profile if p > last)
    if profile >= removal.since:
        return f"there is no parameter `{name}` since NKI {since.label}"
    return f"nkic does not have `{name}=`, which was removed in NKI {removal.since.label}"


def former_order(function: str, parameter: str) -> str:
    """Return help for an argument of the wrong kind, or "" if the order never changed."""
    return _ORDER.get((function, parameter), "")
