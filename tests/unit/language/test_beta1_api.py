"""Beta 1 has every name of its documentation, with the documented parameters."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any

import pytest

from nkic.language.beta1 import names
from nkic.language.provide import TensorAnnotation

DOCUMENTED = """
nisa (op, data, *, bias=None, scale=1.0, reduce_op=None, reduce_res=None, reduce_cmd=...,
    mask=None, dtype=None): activation
nisa (op, data, *, reduce_op, reduce_res, bias=None, scale=1.0, mask=None, dtype=None):
    activation_reduce
nisa (pred, on_true_tile, on_false_value, *, mask=None, dtype=None): affine_select
nisa (data, *, mask=None, dtype=None): bn_aggr bn_stats
nisa (*, dst, src, mask=None, dst_rmw_op=None, oob_mode=..., dge_mode=...): dma_copy
nisa (src, *, axes=None, mask=None, dtype=None): dma_transpose
nisa (data, prob, *, mask=None, dtype=None): dropout
nisa (): get_nc_version
nisa (expr, dtype, *, mask=None): iota
nisa (src_buffer, index, num_elem_per_idx=1, num_valid_indices=None, *, mask=None):
    local_gather
nisa (*, src, mask=None, dtype=None): max8
nisa (shape, value, dtype, *, mask=None, engine=...): memset
nisa (*, data, vals, mask=None, dtype=None): nc_find_index8
nisa (*, data, vals, imm, dst_idx=None, mask=None, dtype=None): nc_match_replace8
nisa (stationary, moving, *, is_stationary_onezero=False, is_moving_onezero=False,
    is_transpose=False, tile_position=(), tile_size=(), mask=None): nc_matmul
nisa (src, dst, shuffle_mask, *, dtype=None, mask=None): nc_stream_shuffle
nisa (data, *, mask=None, dtype=None, engine=...): nc_transpose
nisa (*, on_true_tile, comp_op0, comp_op1, bound0, bound1, reduce_cmd=..., reduce_res=None,
    reduce_op=..., range_start=0, on_false_value=..., mask=None, dtype=None): range_select
nisa (data, *, dtype=None, mask=None): reciprocal
nisa (*, data, op0, operand0, op1, operand1, reverse0=False, reverse1=False, dtype=None,
    mask=None): scalar_tensor_tensor
nisa (*, dst, predicate, on_true, on_false, reduce_res=None, reduce_cmd=..., reduce_op=...,
    reverse_pred=False, mask=None, dtype=None): select_reduce
nisa (*, segment_ids, dtype=None): sequence_bounds
nisa (src, *, mask=None, dtype=None, engine=...): tensor_copy tensor_copy_dynamic_src
nisa (*, dst, src, mask=None, dtype=None, engine=...): tensor_copy_dynamic_dst
nisa (*, src, dst, predicate, reverse_pred=False, mask=None, dtype=None):
    tensor_copy_predicated
nisa (op, data, *, mask=None, dtype=None): tensor_partition_reduce
nisa (op, data, axis, *, mask=None, dtype=None, negate=False, keepdims=False): tensor_reduce
nisa (data, op0, operand0, reverse0=False, op1=None, operand1=None, reverse1=False, *,
    dtype=None, mask=None, engine=...): tensor_scalar
nisa (*, data, op0, operand0, reduce_op, reduce_res, reverse0=False, dtype=None, mask=None):
    tensor_scalar_reduce
nisa (data1, data2, op, *, dtype=None, mask=None, engine=...): tensor_tensor
nisa (data0, data1, initial, op0, op1, reverse0=False, reverse1=False, *, dtype=None,
    mask=None): tensor_tensor_scan
nl (x, *, dtype=None, mask=None): abs arctan ceil cos erf erf_dx exp floor gelu
    gelu_apprx_sigmoid gelu_apprx_tanh gelu_dx invert log mish negative reciprocal relu rsqrt
    sigmoid sign silu silu_dx sin softplus sqrt square tan tanh transpose trunc
nl (x, y, *, dtype=None, mask=None): add bitwise_and bitwise_or bitwise_xor divide left_shift
    maximum minimum multiply power right_shift subtract
nl (*args): affine_range arange sequential_range static_range
nl (x, axis, *, dtype=..., mask=None): all
nl (x, op, program_axes, *, dtype=None, mask=None, parallel_reduce=True, asynchronous=False):
    all_reduce
nl (dst, value, op, *, mask=None): atomic_rmw
nl (src, *, shape): broadcast_to
nl (src, *, mask=None, dtype=None): copy load load_transpose2d
nl (prefix, x, *, mask=None): device_print
nl (x, rate, *, dtype=None, mask=None): dropout
nl (start, size): ds
nl (a, dtype=None, *, buffer=None, name=''): empty_like zeros_like
nl (x, y, *, dtype=..., mask=None): equal greater greater_equal less less_equal logical_and
    logical_or logical_xor not_equal
nl (data, axis): expand_dims
nl (dtype): finfo
nl (x, y, dtype=None, mask=None): fmod mod
nl (shape, fill_value, dtype, *, buffer=None, name=''): full
nl (data, indices, *, mask=None, dtype=None): gather_flattened
nl (x, *, dtype=..., mask=None): logical_not
nl (x, op, loop_indices, *, dtype=None, mask=None): loop_reduce
nl (x, y, *, transpose_x=False, mask=None): matmul
nl (x, axis, *, dtype=None, mask=None, keepdims=False): max mean min prod sum
nl (shape, dtype, *, buffer=None, name=''): ndarray ones zeros
nl (axes=None): num_programs
nl (axis): program_id
nl (): program_ndim
nl (shape, dtype=...): rand
nl (seed, *, mask=None): random_seed
nl (x, w, axis, n, epsilon=1e-06, *, dtype=None, compute_dtype=None, mask=None): rms_norm
nl (constant, dtype=None): shared_constant
nl (n, dtype=...): shared_identity_matrix
nl (x, axis, *, dtype=None, compute_dtype=None, mask=None): softmax
nl (input_data, dtype): static_cast
nl (dst, value, *, mask=None): store
nl (x, axis, *, dtype=None, mask=None): var
nl (condition, x, y, *, dtype=None, mask=None): where
"""
"""Parameters of functions by the stubs of SDK 2.26; `...` is a default that has a name, and what a
function takes beside those (`**kwargs`) is left out.
"""
VALUES = {
    "nisa": "dge_mode dma_engine engine fp32 gpsimd_engine nc_version oob_mode reduce_cmd "
    "scalar_engine tensor_engine unknown_engine vector_engine",
    "nl": "bfloat16 bfp16 bool_ float16 float32 float8_e4m3 float8_e5m2 fp32 hbm int16 int32 int8 "
    "mgrid nc par_dim private_hbm psum sbuf shared_hbm spmd_dim tfloat32 tile_size uint16 uint32 "
    "uint8 prelu gelu_apprx_sigmoid_dx",
}
BESIDE = {  # names that public kernels use, and no page documents
    *(("nc_matmul", "perf_mode"), ("load", "mode"), ("store", "mode"), ("copy", "engine")),
    *((name, "lazy_initialization") for name in ("ndarray", "zeros", "full")),
    *((f"{kind}_range", "directives") for kind in ("affine", "sequential")),
    *((f"{kind}_range", "precise_schedule") for kind in ("affine", "sequential")),
}
"""Not here: builtin_custom_op takes a library of the vendor's compiler; gemm_grid and
gemm_stationary_grid are named on no page, and say of no argument or result.
"""


def functions() -> list[tuple[str, str, str]]:
    """Return module, name and parameters of each function."""
    text = DOCUMENTED.replace("\n    ", " ").strip()
    rows = [re.fullmatch(r"(\w+) \((.*)\): (.*)", line) for line in text.splitlines()]
    return [(one[1], name, one[2]) for one in rows if one for name in one[3].split()]


@pytest.fixture(scope="module")
def modules() -> dict[str, dict[str, Any]]:
    spaces = names.namespaces(TensorAnnotation())
    short = {"nisa": "isa", "nl": "language"}
    return {k: vars(spaces[f"neuronxcc.nki.{name}"]) for k, name in short.items()}


def described(signature: str) -> list[tuple[str, bool, Any]]:
    """Return, for each parameter, its name, whether it is keyword-only, and its default.

    The default is ... if it is not constant, and `required` if there is none.
    """
    args = ast.parse(f"def f({signature}): ...").body[0].args  # type: ignore[attr-defined]
    required = ["required"] * (len(args.args) - len(args.defaults))
    plain = zip(args.args, [*required, *map(_constant, args.defaults)], strict=True)
    named = zip(args.kwonlyargs, map(_constant, args.kw_defaults), strict=True)
    found = [(one.arg, False, default) for one, default in plain]
    found += [(args.vararg.arg, False, "required")] if args.vararg else []
    return [*found, *((one.arg, True, default) for one, default in named)]


def _constant(node: ast.expr | None) -> Any:
    return "required" if node is None else ast.literal_eval(node)


@pytest.mark.parametrize(("module", "name", "wanted"), functions())
def test_a_function_takes_what_its_page_says(
    modules: dict[str, dict[str, Any]], module: str, name: str, wanted: str
) -> None:
    function = modules[module][name]
    signature = inspect.signature(getattr(function, "_call", function))
    found = []
    for one in signature.parameters.values():
        if one.kind is not one.VAR_KEYWORD and (name, one.name) not in BESIDE:
            default = "required" if one.default is one.empty else one.default
            found.append((one.name, one.kind is one.KEYWORD_ONLY, default))
    documented = described(wanted)
    if documented and documented[0][0] == "args":
        assert len(found) == 1
        return
    assert [one[:2] for one in found] == [one[:2] for one in documented]
    for (parameter, _, default), (_, _, page) in zip(found, documented, strict=True):
        assert page is ... or (name, parameter) in AXES or default == page, parameter


AXES = {("program_id", "axis")}  # may be omitted in nkic


@pytest.mark.parametrize("module", VALUES)
def test_values_are_there(modules: dict[str, dict[str, Any]], module: str) -> None:
    assert set(VALUES[module].split()) <= modules[module].keys()
