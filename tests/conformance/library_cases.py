"""Cases of nki-library: at least one kernel of each of its core folders, on small shapes.

Compiled as NKI 0.4, as the suite's kernels are (tests/conformance/nkic_backend.py).
"""

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tests.conformance.worst_errors import Cases, Draw, Register, Wanted, collector, wide

Array = NDArray[Any]
PACKAGE = "nkilib_src.nkilib.core."
CASES: Cases = []
_case = collector(CASES)
TYPES = "utils.common_types:"
OWN = "/tests.conformance.library_kernels:"  # kernels of this folder


def case(name: str, kernel: str, limit: float = 2.0, refused: str = "", lnc: int = 1) -> Register:
    return _case(name, kernel, limit, refused, lnc=lnc, target="trn2", nki="0.4")


def softmax(x: Array) -> Array:
    weights = np.exp(x - x.max(axis=-1, keepdims=True))
    shares: Array = weights / weights.sum(axis=-1, keepdims=True)
    return shares


def silu(x: Array) -> Array:
    found: Array = x / (1 + np.exp(-x))
    return found


@case("cumsum", "cumsum.cumsum:cumsum", lnc=2)
def cumsum(draw: Draw) -> Wanted:
    x = draw.bf16(4, 256)
    return {"x": x}, np.cumsum(wide(x), axis=-1)


@case("cumsum float32", "cumsum.cumsum:cumsum", limit=64, lnc=2)
def cumsum_f32(draw: Draw) -> Wanted:
    x = draw.f32(2, 3, 3000)
    return {"x": x}, np.cumsum(wide(x), axis=-1)


@case("cascaded_max", "max.cascaded_max:cascaded_max", lnc=2)
def cascaded_max(draw: Draw) -> Wanted:
    x = draw.f32(4, 700)
    return {"input_tensor": x}, (wide(x).max(axis=1), x.argmax(axis=1))


@case("rotational_topk", "topk.rotational_topk:rotational_topk", lnc=2)
def topk(draw: Draw) -> Wanted:
    x = draw.f32(4, 512)
    config = draw.name("topk.rotational_topk_utils:create_topk_config")
    rotational = draw.name("topk.rotational_topk_utils:create_rotational_topk_config")
    order = np.argsort(-x, axis=1)[:, :16]
    made = rotational(x.shape, config(x.shape, "float32", 16, num_programs=2))
    made = draw.name("topk.rotational_topk:prepare_rotational_constants")(made)
    return {"inp": x, "config": made}, (np.take_along_axis(wide(x), order, 1), order)


# Rotary embeddings


def _rotated(x: Array, cos: Array, sin: Array) -> Array:
    """Rotate pairs of elements, one from each half of the last axis."""
    one, two = np.split(wide(x), 2, axis=-1)
    return np.concatenate([one * cos - two * sin, one * sin + two * cos], axis=-1)


@case("RoPE", "embeddings.rope:RoPE", lnc=2)
def rope(draw: Draw) -> Wanted:
    x, cos, sin = draw.bf16(64, 2, 2, 32), draw.bf16(32, 2, 32), draw.bf16(32, 2, 32)
    c, s = (wide(v).transpose(1, 2, 0)[:, None] for v in (cos, sin))
    out = _rotated(x.transpose(1, 2, 3, 0), c, s).transpose(3, 0, 1, 2)
    return {"x_in": x, "cos": cos, "sin": sin, "lnc_shard": True}, out


@case("rope_hf", "embeddings.rope_hf:rope_hf", lnc=2)
def rope_hf(draw: Draw) -> Wanted:
    q, k = draw.bf16(1, 2, 256, 64), draw.bf16(1, 1, 256, 64)
    half = [draw.bf16(256, 32) for _ in range(2)]
    cache = np.concatenate([half[0], half[0], half[1], half[1]], axis=1)
    inputs = {"q": q, "k": k, "q_out": np.zeros_like(q), "k_out": np.zeros_like(k)}
    outs = tuple(_rotated(x, wide(half[0]), wide(half[1])) for x in (q, k))
    return inputs | {"rope_cache": cache}, outs


# Norms


def _normed(x: Array, gamma: Array, eps: float = 1e-6) -> Array:
    deviation = np.sqrt((wide(x) ** 2).mean(axis=-1, keepdims=True) + eps)
    found: Array = wide(x) / deviation * wide(gamma)
    return found


def _tiled(x: Array) -> Array:
    """Reshape (tokens, hidden) to (128, tokens, hidden / 128)."""
    return x.reshape(len(x), 128, -1).transpose(1, 0, 2)


@case("rmsnorm_tkg", "subkernels.rmsnorm_tkg:rmsnorm_tkg")
def rmsnorm(draw: Draw) -> Wanted:
    x, gamma = draw.bf16(2, 4, 512), draw.bf16(1, 512)
    inputs = {"input": x, "gamma": gamma, "output": np.zeros((128, 8, 4), ml_dtypes.bfloat16)}
    return inputs, _tiled(_normed(x, gamma).reshape(8, 512))


@case("layernorm_tkg", "subkernels.layernorm_tkg:layernorm_tkg")
def layernorm(draw: Draw) -> Wanted:
    x, gamma, beta = draw.bf16(2, 4, 512), draw.bf16(1, 512), draw.bf16(1, 512)
    centred = wide(x) - wide(x).mean(axis=-1, keepdims=True)
    out = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-6)
    inputs = {"input": x, "gamma": gamma, "output": np.zeros((128, 8, 4), ml_dtypes.bfloat16)}
    return inputs | {"beta": beta}, _tiled((out * wide(gamma) + wide(beta)).reshape(8, 512))


@case("rmsnorm_quant", "rmsnorm.rmsnorm_quant:rmsnorm_quant_kernel", lnc=2, limit=1)
def rmsnorm_quant(draw: Draw) -> Wanted:
    """Rows scaled to 240; the last four bytes of each hold the scale and are not compared."""
    x, gamma = draw.bf16(1, 128, 512), draw.bf16(512)
    rows = _normed(x, gamma)
    scaled = rows / np.abs(rows).max(axis=-1, keepdims=True) * 240
    whole = np.concatenate([scaled, np.full((1, 128, 4), np.nan)], axis=-1)
    kargs = draw.name("rmsnorm.rmsnorm_quant:RmsNormQuantKernelArgs")()
    return {"hidden": x, "ln_w": gamma, "kargs": kargs}, whole


# Indices


@case("find_nonzero_indices", "subkernels.find_nonzero_indices:find_nonzero_indices", lnc=2)
def nonzero(draw: Draw) -> Wanted:
    x = (draw.rng.random((256, 4)) < 0.3).astype(np.float32)
    found = np.full((4, 256), -1)
    for column in range(4):
        rows = np.flatnonzero(x[:, column])
        found[column, : len(rows)] = rows
    return {"input_tensor": x}, (found, np.count_nonzero(x, axis=0))


@case("indexed_flatten", "subkernels.indexed_flatten:indexed_flatten", lnc=2)
def flattened(draw: Draw) -> Wanted:
    """Rows of 16 blocks of 8 are written at their offsets one after the other; later rows overwrite
    earlier ones.
    """
    x = draw.rng.integers(0, 1000, (4, 128)).astype(np.int32)
    offsets, out = np.array([0, 16, 32, 40], np.int32), np.full(64 * 8, -1)
    for row, at in zip(x, offsets, strict=True):
        out[at * 8 : at * 8 + 128] = row[: len(out) - at * 8]
    return {"input_tensor": x, "f_len": 8, "output_len": 512, "row_offsets": offsets}, out


# Attention


@case("attention_cte", "attention.attention_cte:attention_cte", lnc=2)
def attention(draw: Draw) -> Wanted:
    q, k, v = draw.bf16(2, 256, 64), draw.bf16(2, 64, 256), draw.bf16(2, 256, 64)
    scores = wide(q) @ wide(k) * 0.125
    scores[:, ~np.tri(256, dtype=bool)] = -np.inf
    return {"q": q, "k": k, "v": v, "scale": 0.125}, softmax(scores) @ wide(v)


def _gradients(q: Array, k: Array, v: Array, dy: Array) -> tuple[Array, ...]:
    """Return the result, its log-sums, dq, dk and dv of causal attention of (sequence, d)."""
    scale = q.shape[1] ** -0.5
    scores = q @ k.T * scale
    scores[~np.tri(len(q), dtype=bool)] = -np.inf
    p = softmax(scores)
    dp = dy @ v.T
    ds = p * (dp - (dp * p).sum(axis=1, keepdims=True)) * scale
    return p @ v, np.log(np.exp(scores).sum(axis=1)), ds @ k, ds.T @ q, p.T @ dy


@case("attention_bwd", "attention.attention_bwd:attention_bwd", limit=8)
def attention_bwd(draw: Draw) -> Wanted:
    """The results of the forward pass are rounded inputs; the gradients are those of the exact
    results.
    """
    given = [draw.bf16(1, 1, 64, 256) for _ in range(4)]
    out, lse, dq, dk, dv = _gradients(*(wide(x)[0, 0].T for x in given))
    names = ("q_ref", "k_ref", "v_ref", "dy_ref")
    inputs: dict[str, Any] = dict(zip(names, given, strict=True))
    inputs |= {"o_ref": out.T[None, None].astype(ml_dtypes.bfloat16), "use_causal_mask": True}
    tiles = lse.reshape(2, 128).T[None, None].astype(np.float32)
    inputs |= {"lse_ref": tiles, "mixed_precision": True}
    return inputs, tuple(x.T[None, None] for x in (dq, dk, dv))


@case("attention_tkg", OWN + "attend", lnc=2)
def attention_tkg(draw: Draw) -> Wanted:
    """The active token is the last of the prior tokens, 100 of which are valid."""
    q, k, v = draw.bf16(2, 64, 4, 1, scale=0.3), draw.bf16(2, 1, 64, 256), draw.bf16(2, 1, 256, 64)
    active_k, active_v = draw.bf16(2, 64, 1), draw.bf16(2, 1, 1, 64)
    mask = np.zeros((256, 2, 4, 1), np.uint8)
    mask[:100] = mask[-1] = 1
    config = draw.name("attention.attention_tkg_utils:AttnTKGConfig")
    sizes = {"bs": 2, "q_head": 4, "s_active": 1, "curr_sprior": 256, "full_sprior": 256}
    cfg = config(**sizes, d_head=64, qk_in_sb=True)
    keys, values = wide(k)[:, 0], wide(v)[:, 0]
    keys[:, :, -1:], values[:, -1:] = wide(active_k), wide(active_v)[:, 0]
    scores = wide(q)[..., 0].transpose(0, 2, 1) @ keys
    scores[:, :, 100:-1] = -np.inf
    inputs = {"q": q.transpose(1, 0, 2, 3).reshape(64, 8), "k_active": active_k[..., 0].T}
    inputs |= {"v_active": active_v, "k_prior": k, "v_prior": v}
    return inputs | {"mask": mask, "cfg": cfg}, (softmax(scores) @ values)[..., None]


@case("gen_mask_tkg", "attention.gen_mask_tkg:gen_mask_tkg_hbm")
def gen_mask(draw: Draw) -> Wanted:
    """Ones mark the positions before each batch's own; position 2 p + t is row p of tile t."""
    ends = np.array([[100, 17]], np.float32)
    positions = np.arange(256).reshape(128, 2).T.reshape(256, 1)
    mask = positions < ends
    inputs = {"pos_ids_hbm": ends, "bs": 2, "q_head": 4, "s_active": 1, "s_prior": 256}
    return inputs, np.broadcast_to(mask[:, :, None, None], (256, 2, 4, 1)).astype(float)


# Projections


@case(
    "output_projection_tkg", "output_projection.output_projection_tkg:output_projection_tkg", lnc=2
)
def projection_tkg(draw: Draw) -> Wanted:
    x, w, bias = draw.bf16(64, 2, 2, 4), draw.bf16(128, 512), draw.bf16(1, 512)
    rows = wide(x).transpose(1, 3, 2, 0).reshape(8, 128)
    return {"attention": x, "weight": w, "bias": bias}, rows @ wide(w) + wide(bias)


CTE = "output_projection.output_projection_cte.output_projection_cte:output_projection_cte"


@case("output_projection_cte", CTE, lnc=2)
def projection_cte(draw: Draw) -> Wanted:
    x, w, bias = draw.bf16(1, 2, 64, 128), draw.bf16(128, 1024), draw.bf16(1, 1024)
    rows = wide(x).transpose(0, 3, 1, 2).reshape(1, 128, 128)
    return {"attention": x, "weight": w, "bias": bias}, rows @ wide(w) + wide(bias)


def _qkv(draw: Draw, tokens: int) -> Wanted:
    x, w = draw.bf16(1, tokens, 512), draw.bf16(512, 384, scale=0.05)
    bias, gamma = draw.bf16(1, 384), draw.bf16(1, 512)
    inputs: dict[str, Any] = {
        "input": x,
        "fused_qkv_weights": w,
        "bias": bias,
        "gamma_norm_weights": gamma,
    }
    inputs |= {"fused_norm_type": draw.name(TYPES + "NormType").RMS_NORM}
    inputs |= {"d_head": 64, "num_q_heads": 4, "num_kv_heads": 1}
    return inputs, _normed(x, gamma) @ wide(w) + wide(bias)


@case("qkv, token generation", "qkv.qkv:qkv", lnc=2)
def qkv_tkg(draw: Draw) -> Wanted:
    return _qkv(draw, 4)


@case("qkv, context encoding", "qkv.qkv:qkv", lnc=2)
def qkv_cte(draw: Draw) -> Wanted:
    return _qkv(draw, 256)


def _mlp(draw: Draw, tokens: int) -> Wanted:
    x, gate, up, down = draw.bf16(1, tokens, 256), *_projections(draw, 256, 512)
    out = (silu(wide(x) @ wide(gate)) * (wide(x) @ wide(up))) @ wide(down)
    return {"hidden": x, "gate": gate, "up": up, "down": down}, out


def _projections(draw: Draw, hidden: int, inner: int) -> tuple[Array, Array, Array]:
    scale = hidden**-0.5
    gate, up = draw.bf16(hidden, inner, scale=scale), draw.bf16(hidden, inner, scale=scale)
    return gate, up, draw.bf16(inner, hidden)


@case("mlp, token generation", OWN + "mlp", lnc=2, limit=4)
def mlp_tkg(draw: Draw) -> Wanted:
    return _mlp(draw, 4)


@case("mlp, context encoding", OWN + "mlp", lnc=2, limit=4)
def mlp_cte(draw: Draw) -> Wanted:
    return _mlp(draw, 256)


@case("mlp", "mlp.mlp:mlp", refused="unexpected indent", lnc=2)
def mlp(draw: Draw) -> Wanted:
    return {}, None


# Mixtures of experts


@case("router_topk", "router_topk.router_topk:router_topk", lnc=2)
def router(draw: Draw) -> Wanted:
    x, w, bias = draw.bf16(256, 32), draw.bf16(256, 16, scale=0.1), draw.bf16(1, 16)
    logits = wide(x).T @ wide(w) + wide(bias)
    best = np.argsort(-logits, axis=1)[:, :4]
    kept = np.zeros_like(logits)
    np.put_along_axis(kept, best, softmax(np.take_along_axis(logits, best, 1)), 1)
    inputs: dict[str, Any] = {"x": x, "w": w, "w_bias": bias}
    inputs |= {"router_logits": np.zeros((32, 16), ml_dtypes.bfloat16)}
    inputs |= {"expert_affinities": np.zeros((32, 16), ml_dtypes.bfloat16)}
    inputs |= {"expert_index": np.zeros((32, 4), np.uint32), "x_hbm_layout": 0, "x_sb_layout": 0}
    more = {"act_fn": draw.name(TYPES + "RouterActFnType").SOFTMAX, "k": 4}
    return inputs | more | {"router_pre_norm": False}, (logits, best, kept)


def _experts(draw: Draw, experts: int, hidden: int, inner: int) -> tuple[Array, Array]:
    scale = hidden**-0.5
    return draw.bf16(experts, hidden, 2, inner, scale=scale), draw.bf16(experts, inner, hidden)


def _expert(x: Array, gate_up: Array, down: Array) -> Array:
    gated: Array = silu(x @ wide(gate_up[:, 0])) * (x @ wide(gate_up[:, 1]))
    return gated @ wide(down)


@case("moe_tkg", "moe.moe_tkg.moe_tkg:moe_tkg", lnc=2, limit=4)
def moe_tkg(draw: Draw) -> Wanted:
    """Each token is processed by its two experts, whose results are weighted."""
    x = draw.bf16(4, 512)
    gate_up, down = _experts(draw, 4, 512, 128)
    index = np.array([[0, 1], [1, 3], [2, 0], [3, 2]], np.int32)
    weights = softmax(draw.f32(4, 4))
    out = np.zeros((4, 512))
    for token, chosen in enumerate(index):
        for e in chosen:
            found = _expert(wide(x[token]), gate_up[e], down[e])
            out[token] += float(weights[token, e]) * found
    inputs: dict[str, Any] = {
        "hidden_input": x,
        "expert_gate_up_weights": gate_up,
        "expert_down_weights": down,
    }
    inputs |= {"expert_affinities": weights, "expert_index": index, "is_all_expert": False}
    eager = np.take_along_axis(weights, index, 1)
    mode = draw.name(TYPES + "ExpertAffinityScaleMode").POST_SCALE
    return inputs | {
        "expert_affinities_eager": eager,
        "expert_affinities_scaling_mode": mode,
    }, out


@case("moe_tkg, all experts", "moe.moe_tkg.moe_tkg:moe_tkg", lnc=2, limit=4)
def moe_tkg_all(draw: Draw) -> Wanted:
    inputs, _ = moe_tkg(draw)
    x, weights = wide(inputs["hidden_input"]), inputs["expert_affinities"]
    gate_up, down = inputs["expert_gate_up_weights"], inputs["expert_down_weights"]
    out = sum(wide(weights)[:, e, None] * _expert(x, gate_up[e], down[e]) for e in range(4))
    del inputs["expert_affinities_eager"]
    return inputs | {"is_all_expert": True, "rank_id": np.zeros((1, 1), np.uint32)}, out


@case("bwmm_shard_on_block", "moe.moe_cte.bwmm_shard_on_block:bwmm_shard_on_block", lnc=2, limit=4)
def bwmm(draw: Draw) -> Wanted:
    """Four blocks of 128 tokens, each of one expert; token 512 is padding."""
    x = draw.bf16(513, 512)
    x[512] = 0
    gate_up, down = _experts(draw, 2, 512, 256)
    weights = softmax(draw.f32(513, 2)).astype(ml_dtypes.bfloat16)
    order = draw.rng.permutation(512).astype(np.int32)
    chosen = np.array([0, 1, 1, 0], np.int32)
    out = np.zeros((513, 512))
    for tokens, e in zip(order.reshape(4, 128), chosen, strict=True):
        found = _expert(wide(x[tokens]), gate_up[e], down[e])
        out[tokens] = wide(weights)[tokens, e, None] * found
    inputs: dict[str, Any] = {
        "hidden_states": x,
        "expert_affinities_masked": weights.reshape(-1, 1),
    }
    inputs |= {"gate_up_proj_weight": gate_up, "down_proj_weight": down, "block_size": 128}
    inputs |= {"token_position_to_id": order, "block_to_expert": chosen[:, None]}
    both = np.stack([out, np.full_like(out, np.nan)], axis=1)  # the cores' sum, then any data
    return inputs, both


@case("moe_block_tkg", "moe_block.moe_block_tkg:moe_block_tkg", lnc=2, limit=4)
def moe_block(draw: Draw) -> Wanted:
    """A norm, a router to the best two of eight experts, and these experts."""
    x, gamma = draw.bf16(4, 1, 512), draw.bf16(1, 512)
    router = draw.bf16(512, 8, scale=0.1)
    gate_up, down = _experts(draw, 8, 512, 128)
    rows = _normed(x, gamma).reshape(4, 512)
    logits = rows @ wide(router)
    best = np.argsort(-logits, axis=1)[:, :2]
    weights = softmax(np.take_along_axis(logits, best, 1))
    out = np.zeros((4, 512))
    for token in range(4):
        for e, weight in zip(best[token], weights[token], strict=True):
            out[token] += weight * _expert(rows[token], gate_up[e], down[e])
    inputs: dict[str, Any] = {"inp": x, "gamma": gamma, "router_weights": router}
    inputs |= {"expert_gate_up_weights": gate_up, "expert_down_weights": down, "top_k": 2}
    inputs |= {"router_act_fn": draw.name(TYPES + "RouterActFnType").SOFTMAX}
    mode = draw.name(TYPES + "ExpertAffinityScaleMode").POST_SCALE
    more = {"router_pre_norm": False, "expert_affinities_scaling_mode": mode}
    return inputs | more, (out, logits)
