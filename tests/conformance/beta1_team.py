"""Further cases of Beta 1: the Neuron team's contributions to nki-samples, and kernels whose
arguments are not only tensors and numbers.

The latter are called by a kernel of this project, `source`, which imports the checkout's. Files
that cannot be compiled unchanged are listed with the reason.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.conformance.beta1_cases import SAMPLES, Array, Wanted, case, softmax
from tests.conformance.worst_errors import Draw, wide

TEAM = "contributed/neuron-team-kernels/"
REFERENCE = "src/nki_samples/reference/"

PRIVATE = "asks for modules of the vendor's compiler that are not public: "
REASONS = {
    f"{TEAM}collective_matmul.py": f"{PRIVATE}nccl.collectives, _private.private_api (cc_div)",
    f"{TEAM}hw_ubench.py": f"{PRIVATE}_private.private_api (row_tiled_mm_kernel)",
}
"""Files that no case is about."""


@case(
    "attention, backward", SAMPLES, f"{TEAM}attention.py", "fused_self_attn_bwd", 512, grid=(1, 2)
)
def _attention_backward(draw: Draw) -> Wanted:
    q, k, v, dy = (draw.f32(1, 2, 128, 256, scale=0.5) for _ in range(4))
    scores = np.einsum("bhdq,bhdk->bhqk", wide(q), wide(k)) / np.sqrt(128)
    y = softmax(np.where(np.tril(np.ones((256, 256))), scores, -1e30))
    found = np.einsum("bhdq,bhdk->bhqk", wide(dy), wide(v))
    inner = y * (found - (y * found).sum(axis=-1, keepdims=True)) / np.sqrt(128)
    inputs = {"q_ref": q, "k_ref": k, "v_ref": v, "dy_ref": dy, "use_causal_mask": True}
    return inputs, [
        np.einsum("bhqk,bhdk->bhdq", inner, wide(k)),
        np.einsum("bhqk,bhdq->bhdk", inner, wide(q)),
        np.einsum("bhqk,bhdq->bhdk", y, wide(dy)),
    ]


def _quantised(draw: Draw) -> Wanted:
    """Return rows normalised, clipped to 1, and scaled to float8's largest number; their scale in 4
    bytes.
    """
    hidden, gamma = draw.bf16(1, 200, 1024), draw.bf16(1024)
    x = wide(hidden)
    x = np.clip(x / np.sqrt((x**2).mean(axis=-1, keepdims=True)) * wide(gamma), -1, 1)
    scale = np.abs(x).max(axis=-1, keepdims=True) / 240
    return {"hidden": hidden, "ln_w": gamma}, x / scale


_LIMITS = {"lower_bound": 1.0, "kernel_name": "RMSNormQuant"}


@case("rms norm to float8", SAMPLES, f"{TEAM}rmsnorm_quant.py", "compatible_rmsnorm_quant", 16)
def _rms_quant(draw: Draw) -> Wanted:
    inputs, wanted = _quantised(draw)
    return inputs | _LIMITS, [lambda found: (found[..., :1024], wanted)]


@case(
    "rms norm to float8, reference",
    SAMPLES,
    f"{REFERENCE}rmsnorm_quant/rmsnorm_quant.py",
    "rmsnorm_quant_kernel",
    16,
    include="src",
    uses=(
        f"{REFERENCE}rmsnorm_quant/rmsnorm_quant_constants.py",
        f"{REFERENCE}util/kernel_helpers.py",
    ),
    source="""
import neuronxcc.nki as nki
from nki_samples.reference.rmsnorm_quant import rmsnorm_quant as found


@nki.jit
def kernel(hidden, ln_w):
    return found.rmsnorm_quant_kernel(hidden, ln_w, found.RmsNormQuantKernelArgs(1.0))
""",
)
def _rms_quant_reference(draw: Draw) -> Wanted:
    inputs, wanted = _quantised(draw)
    return inputs, [lambda found: (found[..., :1024], wanted)]


for _width, _taps in ((300, 5), (40, 3)):

    @case(
        f"convolution of {_width}",
        SAMPLES,
        f"{TEAM}conv.py",
        "conv1d_depthwise_bf01_oi01_bf01",
        include=TEAM,
        source=f"""
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
from conv import conv1d_depthwise_bf01_oi01_bf01


@nki.jit
def kernel(image, taps):
    out = nl.ndarray((2, 64, 1, {_width - _taps + 1}), dtype=image.dtype, buffer=nl.shared_hbm)
    conv1d_depthwise_bf01_oi01_bf01(image, taps, out, padding=[[0, 0], [0, 0]])
    return out
""",
    )
    def _convolved(draw: Draw, width: int = _width, taps: int = _taps) -> Wanted:
        image, filters = draw.f32(2, 64, 1, width), draw.f32(64, 1, 1, taps)
        windows = np.lib.stride_tricks.sliding_window_view(wide(image), taps, axis=-1)
        wanted = np.einsum("nchwt,ct->nchw", windows, wide(filters[:, 0, 0]))
        return {"image": image, "taps": filters}, wanted


@case(
    "pipelined attention",
    SAMPLES,
    "contributed/pipelined_attention.py",
    "flash_fwd",
    64,
    grid=1,
)
def _pipelined(draw: Draw) -> Wanted:
    q, k = draw.bf16(1, 128, 16384, scale=0.3), draw.bf16(1, 128, 16384)
    v = draw.bf16(1, 16384, 128)
    scores = wide(q[0, :, ::64]).T @ wide(k[0]) / np.sqrt(128)
    inputs = {"q": q, "k": k, "v": v, "use_causal_mask": False}
    return inputs, [lambda found: (found[0, ::64], softmax(scores) @ wide(v[0]))]


# ---- mixtures of experts -------------------------------------------------------------------------


def experts(draw: Draw, skip: bool) -> tuple[dict[str, Array], Array]:
    """Return tokens in blocks, each with its own expert, and the experts' results for the tokens.

    The last block is padded with tokens that do not exist: the row after the last, or -1.
    """
    tokens, hidden, inner, experts, size = 200, 4096, 160, 3, 128
    x = draw.bf16(tokens + (not skip), hidden, scale=0.5)
    gate_up = draw.bf16(experts, hidden, 2, inner, scale=0.02)
    down = draw.bf16(experts, inner, hidden, scale=0.1)
    order = np.concatenate([draw.rng.permutation(tokens), draw.rng.permutation(tokens)[:30]])
    ids = np.full(2 * size, -1 if skip else tokens, np.int32)
    ids[: len(order)] = order
    owners = np.array([[2], [0]], np.int32)
    affinities = np.abs(draw.bf16((tokens + 1) * experts, 1))
    wanted = np.zeros((len(x), hidden))
    for block, expert in zip(ids.reshape(2, size), owners[:, 0], strict=True):
        block = block[(block >= 0) & (block < tokens)]
        sides = np.einsum("th,hsi->sti", wide(x[block]), wide(gate_up[expert]))
        made = sides[0] / (1 + np.exp(-sides[0])) * sides[1] @ wide(down[expert])
        wanted[block] += made * wide(affinities[block * experts + expert])
    inputs = {"x": x, "affinities": affinities, "gate_up": gate_up, "down": down}
    return inputs | {"ids": ids, "owners": owners}, wanted


for _skip in (False, True):

    @case(
        f"mixture of experts{', tokens left out' * _skip}",
        SAMPLES,
        f"{TEAM}blockwise_mm.py",
        "blockwise_mm_baseline",
        64,
        include=TEAM,
        source=f"""
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
from blockwise_mm import SkipMode, blockwise_mm_baseline


@nki.jit
def kernel(x, affinities, gate_up, down, ids, owners):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    blockwise_mm_baseline(
        x, affinities, gate_up, down, 128, ids, owners, out, skip_dma=SkipMode({_skip}, False)
    )
    return out
""",
    )
    def _mixed(draw: Draw, skip: bool = _skip) -> Wanted:
        inputs, wanted = experts(draw, skip)
        return inputs, [lambda found: (found[:200], wanted[:200])]


@case(
    "mixture of experts, backward",
    SAMPLES,
    f"{TEAM}blockwise_mm_bwd.py",
    "blockwise_mm_bwd_baseline",
    64,
    include=TEAM,
    source="""
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
from blockwise_mm_bwd import blockwise_mm_bwd_baseline


@nki.jit
def kernel(x, affinities, gate_up, states, down, made, ids, owners, dout):
    like = (x, affinities, gate_up, down)
    found = [nl.ndarray(one.shape, dtype=one.dtype, buffer=nl.shared_hbm) for one in like]
    blockwise_mm_bwd_baseline(
        x, found[0], affinities, found[1], gate_up, found[2], states, down, found[3], made, ids,
        owners, dout, block_size=512,
    )
    return tuple(found)
""",
)
def mixed_backward(draw: Draw) -> Wanted:
    tokens, hidden, inner, experts, size = 900, 1024, 256, 2, 512
    x, dout = draw.bf16(tokens + 1, hidden), draw.bf16(tokens + 1, hidden)
    gate_up = draw.bf16(experts, hidden, 2, inner, scale=0.03)
    down = draw.bf16(experts, inner, hidden, scale=0.1)
    affinities = np.abs(draw.bf16((tokens + 1) * experts, 1))
    ids = np.full(2 * size, tokens, np.int32)
    ids[:tokens] = draw.rng.permutation(tokens)
    owners = np.array([[1], [0]], np.int32)
    states = np.zeros((2, 2, inner, size), ml_dtypes.bfloat16)
    made = np.zeros((2, size, hidden), ml_dtypes.bfloat16)
    dx, daff = np.zeros(x.shape), np.zeros(affinities.shape)
    dup, ddown = np.zeros(gate_up.shape), np.zeros(down.shape)
    for n, (block, expert) in enumerate(zip(ids.reshape(2, size), owners[:, 0], strict=True)):
        states[n] = np.einsum("th,hsi->sit", wide(x[block]), wide(gate_up[expert]))
        gate, up = wide(states[n]).transpose(0, 2, 1)
        sigma = 1 / (1 + np.exp(-gate))
        inside = gate * sigma * up
        made[n] = inside @ wide(down[expert])
        places = block * experts + expert
        daff[places, 0] = (wide(dout[block]) * wide(made[n])).sum(axis=-1)
        back = wide(dout[block]) * wide(affinities[places])
        ddown[expert] += inside.T @ back
        within = back @ wide(down[expert]).T
        sides = [within * up * sigma * (1 + gate * (1 - sigma)), within * gate * sigma]
        dx[block] += np.einsum("sti,hsi->th", np.stack(sides), wide(gate_up[expert]))
        dup[expert] += np.einsum("th,sti->hsi", wide(x[block]), np.stack(sides))
    inputs = {"x": x, "affinities": affinities, "gate_up": gate_up, "states": states}
    inputs |= {"down": down, "made": made, "ids": ids, "owners": owners, "dout": dout}
    return inputs, [
        lambda found: (found[:tokens], dx[:tokens]),
        lambda found: (found[: tokens * experts], daff[: tokens * experts]),
        dup,
        ddown,
    ]


# ---- attention -----------------------------------------------------------------------------------


@case(
    "attention of a token",
    SAMPLES,
    f"{TEAM}attention_token_gen.py",
    "attention_token_gen_kernel",
    64,
    include=TEAM,
    source="""
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
from attention_token_gen import attention_token_gen_kernel


@nki.jit
def kernel(q, k, v, k_cache, v_cache, mask_cache, mask_active):
    b, d, h, s = q.shape
    out = nl.ndarray((d, b, h, s), dtype=q.dtype, buffer=nl.shared_hbm)
    attention_token_gen_kernel(q, k, v, k_cache, v_cache, mask_cache, mask_active, out)
    return out
""",
)
def _of_token(draw: Draw) -> Wanted:
    batch, heads, new, depth, length = 2, 2, 4, 128, 1024
    q = draw.bf16(batch, depth, heads, new, scale=0.3)
    k, v = draw.bf16(batch, depth, new), draw.bf16(batch, new, depth)
    keys, values = draw.bf16(batch, depth, length), draw.bf16(batch, length, depth)
    known = (draw.rng.random((batch, heads, new, length)) < 0.7).astype(np.uint8)
    active = np.broadcast_to(np.tril(np.ones((new, new), np.uint8)), (batch, heads, new, new))
    every = np.concatenate([wide(keys)[..., :-new], wide(k)], axis=-1)
    read = np.concatenate([wide(values)[:, :-new], wide(v)], axis=1)
    seen = np.concatenate([known[..., :-new], active], axis=-1)
    scores = np.einsum("bdhs,bdk->bhsk", wide(q), every)
    weights = softmax(np.where(seen, scores, -1e30))
    inputs = {"q": q, "k": k, "v": v, "k_cache": keys, "v_cache": values, "mask_cache": known}
    inputs["mask_active"] = np.ascontiguousarray(active)
    return inputs, np.einsum("bhsk,bkd->dbhs", weights, read)


@case(
    "a tile of flash attention",
    SAMPLES,
    f"{TEAM}attention_build_blocks.py",
    "_flash_attention_core",
    64,
    include=TEAM,
    source="""
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
from attention_build_blocks import FlashConfig, _flash_attention_core


@nki.jit
def kernel(q, k, v):
    out = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    seen = nl.load(q)
    sums = nl.ndarray((2, nl.par_dim(128), 128), dtype=nl.float32)
    logs = nl.ndarray((2, nl.par_dim(128), 1), dtype=nl.float32)
    most = nl.ndarray((2, nl.par_dim(128), 1), dtype=nl.float32)
    for tile in nl.static_range(2):
        keys = nl.load(k[:, tile * 1024 : (tile + 1) * 1024])
        values = nl.ndarray((8, nl.par_dim(128), 128), dtype=v.dtype)
        for part in nl.affine_range(8):
            first = tile * 1024 + part * 128
            values[part] = nl.load(v[first : first + 128])
        _flash_attention_core(
            seen, keys, values, 1, 2048, sums, logs, most, 0, 0, 0, 11, tile, nl.float32,
            nl.float32, FlashConfig(seq_tile_size=1024), use_causal_mask=True,
            initialize=tile == 0,
        )
    weight = nl.exp(nl.subtract(most[1], logs[1]))
    nl.store(out, nl.multiply(sums[1], weight))
    return out
""",
)
def _flash_tile(draw: Draw) -> Wanted:
    q, k, v = draw.f32(128, 128, scale=0.2), draw.f32(128, 2048), draw.f32(2048, 128)
    scores = wide(q).T @ wide(k)
    later = np.arange(2048) > 11 * 128 + np.arange(128)[:, None]
    return {"q": q, "k": k, "v": v}, softmax(np.where(later, -1e30, scores)) @ wide(v)


# ---- transposes and helpers ----------------------------------------------------------------------


@case(
    "transposes",
    SAMPLES,
    f"{TEAM}transpose.py",
    "transpose_to_last_dim",
    include=TEAM,
    source="""
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
from transpose import _tiled_dve_transpose_10, tiled_dve_transpose_210, transpose_to_last_dim


def copied(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    rows = x.shape[1]
    for at in nl.affine_range(x.shape[0]):
        for first in nl.affine_range((rows + 127) // 128):
            i, j = nl.mgrid[0:128, 0 : x.shape[2]]
            i = first * 128 + i
            nl.store(out[at, i, j], nl.load(x[at, i, j], mask=i < rows), mask=i < rows)
    return out


@nki.jit
def kernel(x, y, z):
    return (
        copied(transpose_to_last_dim(x, 1)),
        copied(_tiled_dve_transpose_10(y)),
        copied(tiled_dve_transpose_210(z).reshape((150, 7, 40))),
    )
""",
)
def _transposed(draw: Draw) -> Wanted:
    x, y, z = draw.f32(2, 150, 200), draw.f32(150, 20, 30), draw.f32(150, 8, 5, 7)
    wanted = [x.transpose(0, 2, 1), y.transpose(0, 2, 1), z.transpose(0, 3, 2, 1)]
    wanted[2] = wanted[2].reshape(150, 7, 40)
    return {"x": x, "y": y, "z": z}, [wide(one) for one in wanted]


@case(
    "helpers",
    SAMPLES,
    f"{TEAM}helper_kernels.py",
    "softmax_kernel",
    64,
    include=TEAM,
    source="""
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import helper_kernels as helpers


@nki.jit
def kernel(x, w, g):
    made = [nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm) for _ in range(3)]
    tile, weight, grad = nl.load(x), nl.load(w), nl.load(g)
    soft = helpers.softmax_kernel(tile, nl.float32, (1,), (), 0.5, None)
    nl.store(made[0], soft)
    normal = helpers.rmsnorm_tensor_reduce_kernel(
        tile, weight, nl.float32, (1,), (), 512, 1e-5, None
    )
    nl.store(made[1], normal)
    summed = helpers.softmax_exp_kernel(tile, nl.float32, (1,), (), 1, None)
    summed = nl.multiply(summed, helpers.softmax_rsum_kernel(summed, nl.float32, (1,), (), None))
    nl.store(made[2], nl.subtract(summed, grad))
    return tuple(made)
""",
)
def _helped(draw: Draw) -> Wanted:
    x, w, g = draw.f32(128, 512), draw.f32(128, 512), draw.f32(128, 512)
    root = np.sqrt((wide(x) ** 2).mean(axis=-1, keepdims=True) + 1e-5)
    low = wide(x).max(axis=-1, keepdims=True)
    first = np.exp(0.5 * (wide(x) - low))
    wanted = [first / first.sum(axis=-1, keepdims=True), wide(w) * wide(x) * root]
    return {"x": x, "w": w, "g": g}, [*wanted, softmax(wide(x)) - wide(g)]


@case(
    "projection and rotation of a transformer",
    SAMPLES,
    f"{TEAM}llama3_transformer.py",
    "matmul_o_proj",
    64,
    include=TEAM,
    source="""
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
from llama3_transformer import matmul_o_proj, transpose_and_RoPE


@nki.jit
def kernel(x, w, heads, cos, sin):
    out = nl.ndarray((1, 256, 512), dtype=x.dtype, buffer=nl.shared_hbm)
    matmul_o_proj(x, w, out)
    turned = nl.ndarray((1, 128, 256), dtype=x.dtype, buffer=nl.shared_hbm)
    transposed = nl.ndarray((1, 128, 256), dtype=x.dtype, buffer=nl.hbm)
    transpose_and_RoPE(heads, cos, sin, 1, 256, 128, 128, transposed, turned, True)
    return out, turned
""",
)
def _projected(draw: Draw) -> Wanted:
    x, w, heads = draw.f32(1, 256, 256), draw.f32(256, 512), draw.f32(1, 256, 384)
    cos, sin = draw.f32(64, 256), draw.f32(64, 256)
    head = wide(heads[0, :, 128:256]).T
    even, odd = head[:64], head[64:]
    turned = np.concatenate([even * cos - odd * sin, odd * cos + even * sin])
    inputs = {"x": x, "w": w, "heads": heads, "cos": cos, "sin": sin}
    return inputs, [(wide(x[0]).T @ wide(w))[None], turned[None]]
