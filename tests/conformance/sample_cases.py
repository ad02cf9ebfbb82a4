"""Cases of nki-samples: kernels of NKI 0.2 (`import nki`).

They are compiled as NKI 0.2 because they pass `dtype=` to tensor_copy and `platform_target` to
nki.jit, which were removed later. Beta 1 kernels are in beta1_cases.py and beta1_samples.py.
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
)

MATMUL = "matrix_multiplication_nki_kernels:nki_matmul_"


MATMULS = (  # the subject, the kernel, and the sizes k, m, n
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


# Microscaling: each of 8 partitions holds 4 elements of a group of 32.

ELEMENTS: dict[str, tuple[Any, int]] = {
    "float8_e5m2": (ml_dtypes.float8_e5m2, 1),
    "float8_e4m3fn": (ml_dtypes.float8_e4m3fn, 1),
    "float4_e2m1fn": (ml_dtypes.float4_e2m1fn, 2),
}


def packed(draw: Draw, dtype: str, k: int, free: int) -> tuple[Array, Array, Array]:
    """Return words of four elements, (k, free), scales (k / 8, free), and numbers (k, free, 4)."""
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
    """Return NKI 0.2's `quantize_mx` of bfloat16 numbers (k, 4 free), dequantised: (k, free, 4)."""
    kind, _ = ELEMENTS[dtype]
    info = ml_dtypes.finfo(kind)
    groups = wide(x).reshape(x.shape[0] // 8, 8, -1, 4)
    greatest = np.abs(groups).max(axis=(1, 3), keepdims=True)
    scale = np.exp2(np.floor(np.log2(greatest)) - np.floor(np.log2(float(info.max))))
    kept = np.clip(groups / scale, float(info.min), float(info.max)).astype(kind)
    scaled: Array = wide(kept) * scale
    return scaled.reshape(x.shape[0], -1, 4)


def _mx(a: Array, b: Array) -> Array:
    product: Array = np.einsum("kmi,kni->mn", a, b)
    return product


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
    inputs: dict[str, Any] = {
        "stationary_mx_data": a,
        "stationary_mx_scale": a_scale,
        "moving_data_bf16": b,
    }
    inputs |= {"stationary_mx_dtype": "float4_e2m1fn_x4", "moving_mx_dtype": "float8_e5m2_x4"}
    return inputs, _mx(st, quantised(b, "float8_e5m2"))


def _strided(draw: Draw, copy: bool) -> Wanted:
    """Rows 4 i to 4 i + 3 hold the elements of a word."""
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
