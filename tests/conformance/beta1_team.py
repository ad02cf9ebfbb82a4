"""Further cases of Beta 1: what the Neuron team contributed to nki-samples, and kernels that take
more than tensors and numbers.

These are called by a kernel of ours, which imports the checkout's: `source`. Files that cannot be
compiled as they are are listed with the reason.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.conformance.beta1_cases import SAMPLES, Wanted, case, softmax
from tests.conformance.worst_errors import Draw, wide

TEAM = "contributed/neuron-team-kernels/"
REFERENCE = "src/nki_samples/reference/"

PRIVATE = "asks for modules of the vendor's compiler that are not public: "
IMPORTED = "has helpers alone, which rmsnorm_quant.py uses, and runs with it"
MODE = "gives nl.load a `mode=`, which no public version has"
REASONS = {
    f"{TEAM}attention_token_gen.py": f"{PRIVATE}_private.private_api, _private_kernels",
    f"{TEAM}blockwise_mm.py": MODE,
    f"{TEAM}blockwise_mm_bwd.py": "uses blockwise_mm.py",
    f"{TEAM}collective_matmul.py": f"{PRIVATE}nccl.collectives, _private.private_api",
    f"{TEAM}helper_kernels.py": "has functions alone, of tiles and their `shape_2d`; "
    f"{PRIVATE}language.iterators",
    f"{TEAM}hw_ubench.py": f"{PRIVATE}_private.private_api",
    f"{TEAM}llama3_transformer.py": f"{PRIVATE}nccl, _private.private_api, _private_kernels",
    f"{TEAM}transpose.py": "imports `nki.language.constants` beside neuronxcc",
    f"{TEAM}attention_build_blocks.py": "has functions alone, of tiles",
    **{
        f"{TEAM}flash_paged_attn_varlen/{name}.py": why
        for name, why in {
            "flash_attn_core": "has functions alone, of tiles",
            "flash_attn_impl": f"{PRIVATE}nki.typing.scalar",
            "paged_cache": "has functions alone, of tiles",
            "utils": MODE,
            "varlen_attention_kernel": f"{MODE}, and loops over nki.typing.scalar",
        }.items()
    },
    f"{REFERENCE}util/kernel_helpers.py": IMPORTED,
    f"{REFERENCE}rmsnorm_quant/rmsnorm_quant_constants.py": IMPORTED,
}


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
    """Rows normalised, clipped to 1, and scaled to float8's greatest; their scale in 4 bytes."""
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
    65536,
    why="gives instructions a `name=`, which no public version has, and is for sequences of 16,384",
)
def _pipelined(draw: Draw) -> Wanted:
    q, k = draw.bf16(1, 128, 16384), draw.bf16(1, 128, 16384)
    v = draw.bf16(1, 16384, 128)
    assert q.dtype == ml_dtypes.bfloat16
    return {"q": q, "k": k, "v": v, "use_causal_mask": False}, None
