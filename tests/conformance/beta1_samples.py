"""Further cases of Beta 1: the reference kernels and contributions of nki-samples."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tests.conformance.beta1_cases import SAMPLES, Wanted, case, softmax
from tests.conformance.worst_errors import Draw, wide

Array = NDArray[Any]

REFERENCE = "src/nki_samples/reference/"
TEAM = "contributed/neuron-team-kernels/"


@case("matmul in blocks", SAMPLES, "contributed/matmul.py", "matmul")
def _blocked(draw: Draw) -> Wanted:
    a, b = draw.bf16(512, 256), draw.bf16(512, 1024)
    sizes = {f"TILES_IN_BLOCK_{one}": 2 for one in "KMN"}
    return {"A_DRAM": a, "B_DRAM": b, **sizes}, wide(a).T @ wide(b)


@case("max pooling", SAMPLES, "contributed/maxpooling.py", "max_pooling_2d_stride_1")
def _max_pooled(draw: Draw) -> Wanted:
    x = draw.f32(150, 64)
    windows = np.lib.stride_tricks.sliding_window_view(wide(x), (3, 3))
    return {"in_tensor": x, "pool_size": 3}, windows.max(axis=(2, 3))


def doubled(x: Array, axis: int) -> Array:
    """Return the linear interpolation to twice the size along an axis, with edges repeated."""
    x = np.moveaxis(wide(x), axis, -1)
    before = np.concatenate([x[..., :1], x[..., :-1]], axis=-1)
    after = np.concatenate([x[..., 1:], x[..., -1:]], axis=-1)
    made = np.stack([0.75 * x + 0.25 * before, 0.75 * x + 0.25 * after], axis=-1)
    return np.moveaxis(made.reshape(*x.shape[:-1], -1), -1, axis)


for _kind, _sizes in (("bilinear", (1, 4, 20, 20)), ("trilinear", (1, 4, 8, 8, 8))):

    @case(
        f"{_kind} interpolation",
        SAMPLES,
        f"contributed/interpolate_{_kind}_fwd.py",
        f"interpolate_{_kind}_2x_fwd",
    )
    def _interpolated(draw: Draw, sizes: tuple[int, ...] = _sizes) -> Wanted:
        x = draw.f32(*sizes)
        wanted: Array = x
        for axis in range(2, len(sizes)):
            wanted = doubled(wanted, axis)
        return {"src_arr": x, "chunk_size": 10 if len(sizes) == 4 else 4}, wanted


@case(
    "rotary",
    SAMPLES,
    "src/nki_samples/tutorials/rotary/rotary_nki_kernels.py",
    "nki_apply_rotary_embedding",
    grid=(1, 2),
)
def _rotary(draw: Draw) -> Wanted:
    q, k = draw.f32(1, 2, 200, 64), draw.f32(1, 2, 200, 64)
    cos, sin = draw.f32(1, 200, 64), draw.f32(1, 200, 64)

    def turned(x: Array) -> Array:
        x = wide(x)
        half = np.concatenate([-x[..., 32:], x[..., :32]], axis=-1)
        rotated: Array = x * cos[:, None] + half * sin[:, None]
        return rotated

    return {"q": q, "k": k, "cos": cos, "sin": sin}, np.stack([turned(q), turned(k)])


@case("addition under a mask", SAMPLES, f"{REFERENCE}tutorial.py", "add_kernel_nx8x128x512", grid=2)
def _masked_addition(draw: Draw) -> Wanted:
    a, b = draw.f32(2, 8, 128, 512), draw.f32(2, 8, 128, 512)
    return {"a_ptr": a, "b_ptr": b, "n_elements": 2 * 8 * 128 * 512}, wide(a) + wide(b)


def _heads(draw: Draw, length: int, heads: int, causal: bool) -> tuple[list[Array], Array, Array]:
    q, k, v = (draw.f32(1, heads, 128, length, scale=0.5) for _ in range(3))
    scores = np.einsum("bhdq,bhdk->bhqk", wide(q), wide(k)) / np.sqrt(128)
    if causal:
        scores = np.where(np.tril(np.ones((length, length))), scores, -1e30)
    return [q, k, v], scores, np.einsum("bhqk,bhdk->bhqd", softmax(scores), wide(v))


@case("flash attention", SAMPLES, f"{REFERENCE}attention.py", "flash_fwd", 65536 * 8, grid=(1, 2))
def _flash(draw: Draw) -> Wanted:
    (q, k, v), _, wanted = _heads(draw, 2048, 2, True)
    inputs = {"q": q, "k": k, "v": np.ascontiguousarray(v.transpose(0, 1, 3, 2)), "seed": None}
    return inputs | {"mixed_precision": False}, [wanted]


@case(
    "flash attention, backward",
    SAMPLES,
    f"{REFERENCE}attention.py",
    "flash_attn_bwd",
    65536 * 8,
    grid=(1, 2),
)
def _flash_backward(draw: Draw) -> Wanted:
    (q, k, v), scores, out = _heads(draw, 1024, 2, True)
    dy = draw.f32(1, 2, 128, 1024)
    y = softmax(scores)
    greatest = scores.max(axis=-1)
    lse = greatest + np.log(np.exp(scores - greatest[..., None]).sum(axis=-1))
    found = np.einsum("bhdq,bhdk->bhqk", wide(dy), wide(v))
    inner = y * (found - (y * found).sum(axis=-1, keepdims=True)) / np.sqrt(128)
    inputs: dict[str, Any] = {"q_ref": q, "k_ref": k, "v_ref": v, "dy_ref": dy, "seed_ref": None}
    inputs["o_ref"] = out.transpose(0, 1, 3, 2).astype(np.float32)
    inputs["lse_ref"] = np.ascontiguousarray(
        lse.reshape(1, 2, 8, 128).transpose(0, 1, 3, 2).astype(np.float32)
    )
    inputs |= {"use_causal_mask": True, "mixed_precision": True}
    return inputs, [
        np.einsum("bhqk,bhdk->bhdq", inner, wide(k)),
        np.einsum("bhqk,bhdq->bhdk", inner, wide(q)),
        np.einsum("bhqk,bhdq->bhdk", y, wide(dy)),
    ]


def _small_heads(draw: Draw) -> Wanted:
    q, k, v = draw.f32(1, 128, 1024), draw.f32(1, 1024, 128), draw.f32(1, 1024, 128)
    scores = wide(q[0]).T @ wide(k[0]).T / 8
    inputs = {"q_ref": q, "k_ref": k, "v_ref": v, "mixed_precision": False}
    return inputs, (softmax(scores) @ wide(v[0]))[None]


case(
    "attention of SD, reference",
    SAMPLES,
    f"{REFERENCE}attention.py",
    "fused_self_attn_for_SD_small_head_size",
    64,
    grid=1,
)(_small_heads)


@case(
    "attention of SD, allocated",
    SAMPLES,
    f"{REFERENCE}allocated_attention.py",
    "allocated_fused_self_attn_for_SD_small_head_size",
    65536,
    grid=1,
)
def _allocated(draw: Draw) -> Wanted:
    q, k, v = draw.f32(1, 128, 2048), draw.f32(1, 128, 2048), draw.f32(1, 2048, 128)
    scores = wide(q[0]).T @ wide(k[0]) / 8
    return {"q_ref": q, "k_ref": k, "v_ref": v}, (softmax(scores) @ wide(v[0])).T[None]


@case(
    "rms norm and QKV, allocated",
    SAMPLES,
    f"{REFERENCE}allocated_fused_linear.py",
    "allocated_fused_rms_norm_qkv",
    32,
)
def _rms_qkv(draw: Draw) -> Wanted:
    hidden, weights = draw.bf16(1, 128, 1024), draw.bf16(1024, 512)
    x = wide(hidden)
    return {"hidden": hidden, "weights": weights}, (
        x / np.sqrt((x**2).mean(axis=-1, keepdims=True))
    ) @ wide(weights)


@case("select and scatter", SAMPLES, f"{REFERENCE}vision.py", "select_and_scatter_kernel")
def _scattered(draw: Draw) -> Wanted:
    x, source = np.abs(draw.f32(2, 64, 16, 16)), draw.f32(2, 64, 8, 8)
    padded = np.pad(wide(x), ((0, 0), (0, 0), (1, 1), (1, 1)))
    wanted = np.zeros(padded.shape)
    for h in range(8):
        for w in range(8):
            window = padded[:, :, 2 * h : 2 * h + 3, 2 * w : 2 * w + 3].reshape(2, 64, 9)
            row, column = np.divmod(window.argmax(axis=-1), 3)
            n, c = np.indices((2, 64))
            np.add.at(wanted, (n, c, 2 * h + row, 2 * w + column), wide(source[:, :, h, w]))
    return {"operand_tensor": x, "source_tensor": source}, wanted[:, :, 1:-1, 1:-1]


@case("resize", SAMPLES, f"{REFERENCE}vision.py", "resize_nearest_fixed_dma_kernel", grid=1)
def _resized(draw: Draw) -> Wanted:
    x = draw.f32(1, 30, 20, 128)
    rows = np.floor(np.arange(59) * np.float32(30 / 59)).astype(int)
    columns = np.floor(np.arange(38) * np.float32(20 / 38)).astype(int)
    return {"data_tensor": x, "out_shape": (1, 59, 38, 128)}, wide(x)[:, rows][:, :, columns]


@case(
    "adaptive pooling",
    SAMPLES,
    f"{REFERENCE}vision.py",
    "adaptive_avg_pool2d_kernel",
    why="computes with arrays of NumPy, which only Python itself does: it runs when called there",
)
def _adaptive(draw: Draw) -> Wanted:
    x = draw.f32(1, 256, 13, 13)
    edges = [(n * 13 // 6, -(-(n + 1) * 13 // 6)) for n in range(6)]
    wanted = np.stack(
        [
            np.stack([wide(x)[:, :, a:b, c:d].mean(axis=(2, 3)) for c, d in edges], axis=-1)
            for a, b in edges
        ],
        axis=-2,
    )
    return {"in_tensor": x, "output_size": 6}, wanted


@case(
    "matmul of double rows",
    SAMPLES,
    f"{REFERENCE}double_row_matmul.py",
    "quantized_double_row_matmul",
    64,
)
def _double_rows(draw: Draw) -> Wanted:
    lhs = np.abs(draw.bf16(256, 512))
    rhs = np.abs(draw.f32(512, 1024)).astype(ml_dtypes.float8_e4m3)
    tiles = rhs.reshape(2, 2, 128, 2, 512).transpose(0, 2, 3, 1, 4).reshape(256, 2048)
    scale = np.ones((128, 1024), ml_dtypes.bfloat16)
    counts = {f"TILES_IN_BLOCK_{one}": 2 for one in "MNK"} | {"TILES_IN_BLOCK_K": 4}
    inputs = {"lhs": lhs, "rhs_quantized": np.ascontiguousarray(tiles), "rhs_scale": scale}
    return inputs | counts, wide(lhs) @ wide(rhs)


@case("cumsum", SAMPLES, f"{TEAM}cumsum.py", "cumsum")
def _summed(draw: Draw) -> Wanted:
    x = draw.f32(200, 300)
    return {"x": x, "y": np.zeros_like(x)}, {"y": np.cumsum(wide(x), axis=-1)}


for _half in (True, False):

    @case(f"RoPE{', halves' * _half}", SAMPLES, f"{TEAM}RoPE.py", "RoPE")
    def _rope(draw: Draw, half: bool = _half) -> Wanted:
        x, cos, sin = draw.f32(64, 256), draw.f32(32, 256), draw.f32(32, 256)
        even, odd = (wide(x[:32]), wide(x[32:])) if half else (wide(x[::2]), wide(x[1::2]))
        first, second = even * cos - odd * sin, odd * cos + even * sin
        wanted = np.concatenate([first, second]) if half else np.stack([first, second], axis=1)
        inputs = {"x_in": x, "cos": cos, "sin": sin, "x_out": np.zeros_like(x)}
        return inputs | {"first_second_half_impl": half}, {"x_out": wanted.reshape(64, 256)}
