"""What former versions of NKI had: names and parameters, and what replaced them.

Sources: the migration guides from Beta 1 to 0.6, release notes.
"""

from __future__ import annotations

from nkic.base.profiles import Profile

_SLICES = "use slices, `t[0:128, 0:512]`, or `t.ap(pattern)` for other accesses"
_DYNAMIC = "use nisa.tensor_copy with `t.ap(..., scalar_offset=register)`"

# Of nki.language.
LANGUAGE = {
    "arange": _SLICES,
    "mgrid": _SLICES,
    "static_cast": "pass dtype= to the instruction that writes the tensor",
    "loop_reduce": "use nisa.tensor_reduce, or nc_matmul's accumulation in PSUM",
    "spmd_dim": "write the grid as plain ints",
    "nc": "write the grid as plain ints",
    "logical_shift_left": "use nl.left_shift",
    "logical_shift_right": "use nl.right_shift",
    "atomic_rmw": "use nisa.dma_compute",
    "broadcast": "use t.broadcast(dim, size)",
    "simulate_kernel": "run the compiled kernel with nki-run",
    "tensor": "use nl.ndarray, or nl.NkiTensor in annotations",
}

# Of nki.isa.
ISA = {
    "tensor_copy_dynamic_src": _DYNAMIC,
    "tensor_copy_dynamic_dst": _DYNAMIC,
    "tensor_tensor_reduce": "use nisa.tensor_tensor, then nisa.tensor_reduce",
    "tensor_scan": "use nisa.tensor_tensor_scan",
    "builtin_custom_op": "there is no replacement",
}

# Of nki.
NKI = {
    "compiler": "place tensors with nl.ndarray(..., address=(partition, byte))",
    "baremetal": "compile with nkic and run with nki-run",
    "benchmark": "nki-run reports cycles",
    "profile": "nki-run --trace writes a profile",
    "trace": "helpers of a kernel need no decorator",
    "simulate_kernel": "compile with nkic and run with nki-run",
}

_MASK = (
    "masks are gone: slice to the part that is there, `t[0:min(128, rows - start)]`, or use "
    "nisa.affine_select"
)
_PARAMETERS = {
    "mask": _MASK,
    "dst_rmw_op": "use nisa.dma_compute(dst, srcs, reduce_op)",
    "unique_indices": "use nisa.dma_compute, which has it",
    "use_gpsimd_dma": "use dma_engine=nisa.dma_engine.gpsimd_dma",
    "imm": "allocate a register with the constant: src=nisa.register_alloc(value)",
    "dtype": "the result has the dtype of dst: make dst with nl.ndarray(shape, dtype=...)",
    "buffer": "the result is where dst is: make dst with nl.ndarray(..., buffer=...)",
}


# Parameters that published kernels still pass, and that say nothing new: the last version of
# NKI that takes them. The result has the dtype of dst in any case.
_TOLERATED = {"dtype": Profile.NKI_0_3}


def tolerated(name: str, profile: Profile) -> bool:
    """The parameter may be passed and is ignored."""
    last = _TOLERATED.get(name)
    return last is not None and profile <= last


def parameter(instruction: str, name: str) -> str:
    """What to write in place of a parameter that `instruction` does not have any more."""
    return _PARAMETERS.get(name, "")
