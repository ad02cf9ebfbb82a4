"""Cases of nki-samples: kernels of NKI 0.2 (`import nki`), and those of the betas before.

The kernels of 0.2 are compiled as such: they pass `dtype=` to tensor_copy and `platform_target` to
nki.jit, which went afterwards. Kernels that import `neuronxcc.nki` are of the first compiler,
whose masks, index grids and returned tiles nkic names and refuses; they are listed with what is
said.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tests.conformance.worst_errors import Cases, Draw, Wanted, collector, wide

Array = NDArray[Any]
CASES: Cases = []
case = collector(CASES)
TUTORIALS = (
    "matrix_multiplication",
    "mxfp-matmul",
    "average_pool2d",
    "transpose2d",
    "tensor_addition",
    "fused_mamba",
    "attention_fwd_performance",
)

MATMUL = "matrix_multiplication_nki_kernels:nki_matmul_"


MATMULS = (  # what it shows, the kernel, and the sizes k, m, n
    ("basic", "basic_", (128, 64, 512)),
    ("tiled", "tiled_", (256, 256, 1024)),
    ("hoist load", "hoist_load_", (256, 256, 1024)),
    ("block free", "block_free_dimension_", (256, 256, 1024)),
    ("fully optimised", "fully_optimized_", (1024, 2048, 1024)),
)


def _matmul(draw: Draw, sizes: tuple[int, int, int]) -> Wanted:
    k, m, n = sizes
    a, b = draw.bf16(k, m), draw.bf16(k, n)
    return {"lhsT": a, "rhs": b}, wide(a).T @ wide(b)


for _shows, _kernel, _sizes in MATMULS:
    case(f"matmul {_shows}", MATMUL + _kernel, nki="beta2")(partial(_matmul, sizes=_sizes))


# Microscaling: 4 elements of a group of 32 are in each of 8 partitions.

ELEMENTS: dict[str, tuple[Any, int]] = {
    "float8_e5m2": (ml_dtypes.float8_e5m2, 1),
    "float8_e4m3fn": (ml_dtypes.float8_e4m3fn, 1),
    "float4_e2m1fn": (ml_dtypes.float4_e2m1fn, 2),
}


def packed(draw: Draw, dtype: str, k: int, free: int) -> tuple[Array, Array, Array]:
    """Words of four elements, (k, free), scales (k / 8, free), and the numbers (k, free, 4)."""
    kind, per_byte = ELEMENTS[dtype]
    elements = draw.rng.standard_normal((k, free, 4)).astype(kind)
    scales = draw.rng.integers(120, 132, (k // 8, free)).astype(np.uint8)
    size = np.exp2(scales.astype(np.float64) - 127)
    numbers = wide(elements) * np.repeat(size, 8, axis=0)[..., None]
    codes = elements.view(np.uint8)
    if per_byte == 2:
        pairs = codes.reshape(k, free, 2, 2)
        words: Array = np.ascontiguousarray(pairs[..., 0] | pairs[..., 1] << 4).view(np.uint16)
    else:
        words = np.ascontiguousarray(codes).view(np.uint32)
    return words.reshape(k, free), scales, numbers


def quantised(x: Array, dtype: str) -> Array:
    """What `quantize_mx` of NKI 0.2 keeps of bfloat16 numbers (k, 4 free): (k, free, 4)."""
    kind, _ = ELEMENTS[dtype]
    info = ml_dtypes.finfo(kind)
    groups = wide(x).reshape(x.shape[0] // 8, 8, -1, 4)
    greatest = np.abs(groups).max(axis=(1, 3), keepdims=True)
    scale = np.exp2(np.floor(np.log2(greatest)) - np.floor(np.log2(float(info.max))))
    kept = np.clip(groups / scale, float(info.min), float(info.max)).astype(kind)
    return (wide(kept) * scale).reshape(x.shape[0], -1, 4)


def _mx(a: Array, b: Array) -> Array:
    return np.einsum("kmi,kni->mn", a, b)


MX: dict[str, Any] = {"target": "trn3", "nki": "beta2"}


def _offline(draw: Draw, dtype: str) -> Wanted:
    (a, a_scale, st), (b, b_scale, mv) = (
        packed(draw, dtype, 128, 128),
        packed(draw, dtype, 128, 512),
    )
    inputs = {"stationary_mx_data": a, "stationary_mx_scale": a_scale}
    inputs |= {"moving_mx_data": b, "moving_mx_scale": b_scale}
    return inputs | {"mx_dtype": f"{dtype}_x4"}, _mx(st, mv)


OFFLINE = (("fp8", "float8_e5m2"), ("e4m3", "float8_e4m3fn"), ("fp4", "float4_e2m1fn"))
for _shows, _dtype in OFFLINE:
    _kernel = "mx_kernels:kernel_offline_quantized_mx_matmul"
    case(f"mx offline {_shows}", _kernel, **MX)(partial(_offline, dtype=_dtype))


@case("mx quantised on device", "mx_kernels:kernel_on_device_quantize_matmul_mx", **MX)
def on_device(draw: Draw) -> Wanted:
    a, a_scale, st = packed(draw, "float4_e2m1fn", 128, 128)
    b = draw.bf16(128, 512 * 4)
    inputs = {"stationary_mx_data": a, "stationary_mx_scale": a_scale, "moving_data_bf16": b}
    inputs |= {"stationary_mx_dtype": "float4_e2m1fn_x4", "moving_mx_dtype": "float8_e5m2_x4"}
    return inputs, _mx(st, quantised(b, "float8_e5m2"))


def _strided(draw: Draw, copy: bool) -> Wanted:
    """Rows 4 i to 4 i + 3 make the elements of a word."""
    a, b = draw.bf16(512, 128), draw.bf16(512, 512)
    words = [x.reshape(4, 128, -1).transpose(1, 2, 0).reshape(128, -1) for x in (a, b)]
    kept = [quantised(x, "float8_e5m2") for x in words]
    inputs = {"stationary_hbm": a, "moving_hbm": b, "mx_dtype": "float8_e5m2_x4"}
    return inputs | {"use_tensor_copy": copy}, _mx(*kept)


@case("mx strided by copies", "mx_kernels:kernel_copy_strided_quantize_matmul_mx", **MX)
def strided_by_copies(draw: Draw) -> Wanted:
    return _strided(draw, True)


@case("mx strided by DMA", "mx_kernels:kernel_copy_strided_quantize_matmul_mx", **MX)
def strided_by_dma(draw: Draw) -> Wanted:
    return _strided(draw, False)


# Kernels of the first compiler.

# 0.3 is the last version with `neuronxcc.nki`.
FORMER: dict[str, Any] = {"nki": "0.3", "refused": "NKI"}


def attended(q: Array, k: Array, v: Array) -> Array:
    """Attention of (d, sequence) queries, keys and values: (sequence, d)."""
    scores = wide(q).T @ wide(k)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return (weights / weights.sum(axis=1, keepdims=True)) @ wide(v).T


def _attention(draw: Draw) -> Wanted:
    q, k, v = (draw.f32(128, 128) for _ in range(3))
    return {"q": q, "k": k, "v": v}, attended(q, k, v)


for _version in ("1", "2", "3", "4", "5", "6", "7", "8", "8a", "9", "10", "11"):
    case(f"attention v{_version}", f"attention_kernels:attn_fwd_v{_version}", **FORMER)(_attention)


def _mamba(draw: Draw) -> Wanted:
    """The state is exp(delta A) times itself plus delta u B; its product with C is summed."""
    delta, u = draw.f32(1, 128, 512, scale=0.1), draw.f32(1, 128, 512)
    a, b, c = draw.f32(128, 4), draw.f32(1, 4, 512), draw.f32(1, 4, 512)
    state, out = np.zeros((1, 128, 4)), np.zeros((1, 128, 512))
    for t in range(512):
        step = wide(delta)[:, :, t, None]
        state = np.exp(step * wide(a)) * state + step * wide(u)[:, :, t, None] * b[:, None, :, t]
        out[:, :, t] = (state * c[:, None, :, t]).sum(axis=2)
    return {"delta": delta, "u": u, "A": a, "B": b, "C": c}, out


for _version in ("1", "2", "3"):
    case(f"mamba v{_version}", f"mamba_nki_kernels:mamba_v{_version}", **FORMER)(_mamba)


@case(
    "tensor addition", "tensor_addition_nki_kernels:nki_tensor_add_kernel_", grid=(2, 2), **FORMER
)
def addition(draw: Draw) -> Wanted:
    a, b = draw.f32(256, 1024), draw.f32(256, 1024)
    return {"a_input": a, "b_input": b}, wide(a) + wide(b)


@case(
    "SPMD tensor addition",
    "spmd_tensor_addition_nki_kernels:nki_tensor_add_kernel_",
    grid=(2, 2),
    **FORMER,
)
def spmd_addition(draw: Draw) -> Wanted:
    return addition(draw)  # type: ignore[no-any-return]


@case("average pooling", "average_pool2d_nki_kernels:tensor_avgpool_kernel", **FORMER)
def pooling(draw: Draw) -> Wanted:
    x = draw.f32(2, 6, 6)
    return {"in_tensor": x, "pool_size": 2}, wide(x).reshape(2, 3, 2, 3, 2).mean(axis=(2, 4))


@case("transpose", "transpose2d_nki_kernels:tensor_transpose2D_kernel_", **FORMER)
def transposed(draw: Draw) -> Wanted:
    x = draw.f32(5, 12)
    flat = wide(x).reshape(5, 3, 4).transpose(0, 2, 1).reshape(5, 12)
    return {"in_tensor": x, "shape2D": (3, 4)}, flat


@case("bilinear interpolation", "interpolate_bilinear_fwd:interpolate_bilinear_2x_fwd", **FORMER)
def bilinear(draw: Draw) -> Wanted:
    return {"src_arr": draw.f32(1, 4, 20, 20), "chunk_size": 10}, None


@case("trilinear interpolation", "interpolate_trilinear_fwd:interpolate_trilinear_2x_fwd", **FORMER)
def trilinear(draw: Draw) -> Wanted:
    return {"src_arr": draw.f32(1, 4, 8, 8, 8), "chunk_size": 4}, None


@case("max pooling", "maxpooling:max_pooling_2d_stride_1", **FORMER)
def max_pooling(draw: Draw) -> Wanted:
    return {"in_tensor": draw.f32(64, 64), "pool_size": 3}, None


@case("pipelined attention", "pipelined_attention:flash_fwd", **FORMER)
def pipelined(draw: Draw) -> Wanted:
    q, k, v = draw.f32(1, 128, 2048), draw.f32(1, 128, 2048), draw.f32(1, 2048, 128)
    return {"q": q, "k": k, "v": v}, None
