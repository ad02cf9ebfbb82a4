"""Cases of Beta 1: kernels of checkouts, on small inputs, with references in NumPy.

    @case("softmax", SAMPLES, "tutorials/softmax/softmax_nki_kernels.py", "nki_softmax_kernel")
    def softmax(draw: Draw) -> Wanted:
        ...

Kernels are compiled from their files, as by the command: nothing of a checkout is imported.
A kernel that writes an argument, as kernels without `return` do, names it in the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.conformance.worst_errors import Draw, wide

Array = NDArray[Any]
Wanted = tuple[dict[str, Any], Any]
SDK, SAMPLES = "sdk", "samples"


@dataclass(frozen=True)
class Case:
    """One kernel on one set of inputs.

    `kernel` is its name, or several as `new|old`. `limit` is the allowed error, in units of the
    result's eps times its greatest magnitude. `why`: the reason why it cannot run. `host`: the
    function is called from Python, with its file imported. `source`: a kernel of this project that
    calls the function, with imports from the folder `include`; `uses`: further files with kernels
    that it calls. `refused`: the error of a kernel that must be rejected. A result may be a
    function, which returns the part to compare and the reference.
    """

    name: str
    checkout: str
    file: str
    kernel: str
    build: Callable[[Draw], Wanted]
    limit: float = 16.0
    how: dict[str, Any] = field(default_factory=dict)
    why: str = ""
    host: bool = False
    source: str = ""
    include: str = ""
    uses: tuple[str, ...] = ()
    refused: str = ""


CASES: list[Case] = []


def case(
    name: str,
    checkout: str,
    file: str,
    kernel: str,
    limit: float = 16.0,
    why: str = "",
    host: bool = False,
    source: str = "",
    include: str = "",
    uses: tuple[str, ...] = (),
    refused: str = "",
    **how: Any,
) -> Callable[[Callable[[Draw], Wanted]], Callable[[Draw], Wanted]]:
    """Add a case."""

    def register(build: Callable[[Draw], Wanted]) -> Callable[[Draw], Wanted]:
        more = (limit, how, why, host, source, include, uses, refused)
        CASES.append(Case(name, checkout, file, kernel, build, *more))
        return build

    return register


def both(folder: str, file: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """Add a tutorial that both checkouts have."""
    return (SDK, f"examples/{folder}/{file}"), (
        SAMPLES,
        f"src/nki_samples/tutorials/{folder}/{file}",
    )


# ---- tutorials -----------------------------------------------------------------------------------


def _added(draw: Draw) -> Wanted:
    a, b = draw.f32(256, 1024), draw.f32(256, 1024)
    return {"a_input": a, "b_input": b}, wide(a) + wide(b)


for _at in both("tensor_addition", "spmd_tensor_addition_nki_kernels.py"):
    case("SPMD addition", *_at, "nki_tensor_add_kernel_", grid=(2, 2))(_added)
for _at in both("tensor_addition", "tensor_addition_nki_kernels.py"):
    case("addition", *_at, "nki_tensor_add_kernel_", grid=(2, 2))(_added)
for _at in both("tensor_addition", "spmd_multiple_nc_tensor_addition_nki_kernels.py"):
    case("addition on two cores", *_at, "nki_tensor_add_nc2", host=True)(
        lambda draw: (
            {"a_input": (a := draw.f32(512, 1024)), "b_input": (b := draw.f32(512, 1024))},
            wide(a) + wide(b),
        )
    )
for _file in ("baremetal", "jax", "torch"):
    case(
        f"getting started, {_file}",
        SDK,
        f"examples/getting_started_{_file}.py",
        "nki_tensor_add_kernel",
    )(
        lambda draw: (
            {"a_input": (a := draw.f32(4, 3)), "b_input": (b := draw.f32(4, 3))},
            wide(a) + wide(b),
        )
    )


def _pooled(draw: Draw) -> Wanted:
    x = draw.f32(2, 6, 6)
    return {"in_tensor": x, "pool_size": 2}, wide(x).reshape(2, 3, 2, 3, 2).mean(axis=(2, 4))


for _at in both("average_pool2d", "average_pool2d_nki_kernels.py"):
    case("average pooling", *_at, "tensor_avgpool_kernel|tensor_avgpool_kernel_")(_pooled)


def _transposed(draw: Draw) -> Wanted:
    x = draw.f32(5, 12)
    flat = wide(x).reshape(5, 3, 4).transpose(0, 2, 1).reshape(5, 12)
    return {"in_tensor": x, "shape2D": (3, 4)}, flat


for _at in both("transpose2d", "transpose2d_nki_kernels.py"):
    case("transpose", *_at, "tensor_transpose2D_kernel_")(_transposed)


def _mamba(draw: Draw) -> Wanted:
    """The state decays by exp(delta A) and grows by delta u B; its product with C is summed."""
    delta, u = draw.f32(1, 128, 512, scale=0.1), draw.f32(1, 128, 512)
    a, b, c = draw.f32(128, 4), draw.f32(1, 4, 512), draw.f32(1, 4, 512)
    return {"delta": delta, "u": u, "A": a, "B": b, "C": c}, scanned(delta, u, a, b, c)


def scanned(delta: Array, u: Array, a: Array, b: Array, c: Array) -> Array:
    """Return the results of the mamba kernels: (batch, channels, sequence)."""
    state = np.zeros((*delta.shape[:2], a.shape[1]))
    out = np.zeros(delta.shape)
    for t in range(delta.shape[2]):
        step = wide(delta)[:, :, t, None]
        state = np.exp(step * wide(a)) * state + step * wide(u)[:, :, t, None] * b[:, None, :, t]
        out[:, :, t] = (state * c[:, None, :, t]).sum(axis=2)
    return out


for _at in both("fused_mamba", "mamba_nki_kernels.py"):
    for _version in ("1", "2", "3"):
        case(f"mamba v{_version}", *_at, f"mamba_v{_version}", limit=64)(_mamba)


def normalised(x: Array, epsilon: float) -> Array:
    """Return x less its mean, divided by its deviation."""
    x = wide(x)
    centred: Array = x - x.mean(axis=1, keepdims=True)
    deviation: Array = np.sqrt(x.var(axis=1, keepdims=True) + epsilon)
    return centred / deviation


def _layernorm(draw: Draw) -> Wanted:
    x, gamma, beta = draw.f32(300, 1024), draw.f32(1024), draw.f32(1024)
    inputs = {"input_tensor": x, "epsilon": 1e-5, "gamma_vector": gamma, "beta_vector": beta}
    return inputs, normalised(x, 1e-5) * gamma + beta


for _at in both("layernorm", "layernorm_nki_kernel.py"):
    for _version in ("v1", "v2"):
        case(f"layernorm {_version}", *_at, f"nki_layernorm_kernel_{_version}")(_layernorm)


def _rmsnorm(draw: Draw) -> Wanted:
    x, g = draw.f32(250, 512), draw.f32(512)
    scale = np.sqrt((wide(x) ** 2).mean(axis=1, keepdims=True))
    return {"a_tensor": x, "g_tensor": g}, wide(x) / scale * g


for _at in both("rmsnorm", "rmsnorm_nki_kernels.py"):
    case("rmsnorm", *_at, "nki_rmsnorm_kernel")(_rmsnorm)


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    shares: Array = powers / powers.sum(axis=-1, keepdims=True)
    return shares


@case(
    "softmax",
    SAMPLES,
    "src/nki_samples/tutorials/softmax/softmax_nki_kernels.py",
    "nki_softmax_kernel",
)
def _softmax(draw: Draw) -> Wanted:
    x = draw.f32(200, 256)
    return {"a_tensor": x}, softmax(wide(x))


def _matmul(draw: Draw, k: int, m: int, n: int) -> Wanted:
    a, b = draw.bf16(k, m), draw.bf16(k, n)
    return {"lhsT": a, "rhs": b}, wide(a).T @ wide(b)


MATMULS = (
    ("basic_", 128, 64, 512),
    ("tiled_", 256, 256, 1024),
    ("hoist_load_", 256, 256, 1024),
    ("block_free_dimension_", 256, 256, 1024),
    ("fully_optimized_", 1024, 2048, 1024),
)
for _at in both("matrix_multiplication", "matrix_multiplication_nki_kernels.py"):
    for _kernel, _k, _m, _n in MATMULS:
        case(f"matmul {_kernel}", *_at, f"nki_matmul_{_kernel}")(partial(_matmul, k=_k, m=_m, n=_n))


def attended(q: Array, k: Array, v: Array) -> Array:
    """Return the attention of (d, sequence) queries, keys and values: (sequence, d)."""
    return softmax(wide(q).T @ wide(k)) @ wide(v).T


def _attention(draw: Draw, length: int, dtype: Any = np.float32) -> Wanted:
    q, k, v = (draw.f32(128, length).astype(dtype) for _ in range(3))
    return {"q": q, "k": k, "v": v}, attended(q, k, v)


for _at in (
    (SDK, "examples/attention/attention_kernels.py"),
    (SAMPLES, "src/nki_samples/tutorials/attention_fwd_performance/attention_kernels.py"),
):
    for _version in ("1", "2", "3", "4", "5", "6", "7", "8", "8a", "9", "10", "11"):
        _length = {"1": 128, "2": 128}.get(_version, 512)
        case(f"attention v{_version}", *_at, f"attn_fwd_v{_version}", limit=65536)(
            partial(_attention, length=_length)
        )


def _sd_attention(draw: Draw, causal: bool) -> Wanted:
    q, k, v = (draw.f32(256, 64) for _ in range(3))
    scores = wide(q) @ wide(k).T / 8
    if causal:
        scores = np.where(np.tril(np.ones((256, 256))), scores, -1e30)
    inputs = {"q_ref": q, "k_ref": k, "v_ref": v, "mixed_precision": False}
    return inputs | {"use_causal_mask": causal}, softmax(scores) @ wide(v)


for _at in both("sd_attention", "sd_attention_nki_kernels.py"):
    for _causal in (False, True):
        case(
            f"attention of SD{', causal' * _causal}",
            *_at,
            "fused_self_attn_for_SD_small_head_size",
            limit=64,
        )(partial(_sd_attention, causal=_causal))
    case(
        "attention of SD in bfloat16", *_at, "fused_self_attn_for_SD_small_head_size", limit=65536
    )(lambda draw: _without(_sd_attention(draw, False), "mixed_precision"))


def _without(made: Wanted, name: str) -> Wanted:
    """Return the same case with one argument less."""
    return {key: value for key, value in made[0].items() if key != name}, made[1]


# ---- other examples of the SDK -------------------------------------------------------------------


@case("split", SDK, "examples/index-case-1.py", "tensor_split_kernel_")
def _split(draw: Draw) -> Wanted:
    x = draw.f32(4, 5)
    return {"in_tensor": x}, [wide(x[:, ::2]), wide(x[:, 1::2])]


@case("max pooling by index", SDK, "examples/index-case-3.py", "tensor_maxpool_kernel_")
def _maxpool(draw: Draw) -> Wanted:
    x = draw.f32(4, 6, 6)
    return {"in_tensor": x, "pool_size": 3}, wide(x).reshape(4, 2, 3, 2, 3).max(axis=(2, 4))


for _name, _rows in (("pass", 128), ("loop", 256), ("dynamic-loop", 250)):

    @case(
        f"exp, layout {_name}",
        SDK,
        f"examples/layout-{_name}.py",
        "tensor_exp_kernel_",
        64,
    )
    def _exp(draw: Draw, rows: int = _rows) -> Wanted:
        x = draw.f32(rows, 512)
        return {"in_tensor": x}, np.exp(wide(x))


for _name in ("", "-benchmark", "-profile"):

    @case(f"exp, profiled{_name}", SDK, f"examples/prof-kernel{_name}.py", "tensor_exp_kernel_", 64)
    def _exp_profiled(draw: Draw) -> Wanted:
        x = draw.f32(128, 512)
        return {"in_tensor": x}, np.exp(wide(x))


@case(
    "exp, layout violated",
    SDK,
    "examples/layout-violation.py",
    "tensor_exp_kernel_",
    refused="a tile has at most 128 partitions",
)
def _violated(draw: Draw) -> Wanted:
    x = draw.f32(256, 512)
    return {"in_tensor": x}, np.exp(wide(x))


@case("matmul, nisa", SDK, "examples/mm-nisa-spmd.py", "matmul_128x128x512_spmd", grid=(4, 2))
def _mm_nisa(draw: Draw) -> Wanted:
    a, b = draw.bf16(128, 512), draw.bf16(128, 1024)
    return {"A_T": a, "B": b}, wide(a).T @ wide(b)


@case("matmul, nl", SDK, "examples/mm-nl-spmd.py", "matmul_128x128x512_spmd", grid=(4, 2))
def _mm_nl(draw: Draw) -> Wanted:
    a, b = draw.bf16(512, 128), draw.bf16(128, 1024)
    return {"A": a, "B": b}, wide(a) @ wide(b)


@case("activation", SDK, "test/test_nki_isa_activation.py", "nki_activation", 65536)
def _activation(draw: Draw) -> Wanted:
    """The second result has an intermediate rounding to bfloat16."""
    a, b, c = draw.f32(128, 1024), draw.f32(128, 512), draw.f32(128, 1)
    given = {"a_tensor": a, "b_tensor": b, "c_tensor": c}
    return given, [np.exp(wide(a)), (wide(b) * 2 + wide(c)) ** 2]


for _name in ("hbm2sb", "sb2sb"):

    @case(
        f"DMA transpose, {_name}",
        SDK,
        "test/test_nki_isa_dma_transpose.py",
        f"nki_dma_transpose_2d_{_name}",
    )
    def _dma_transposed(draw: Draw) -> Wanted:
        a = draw.bf16(64, 128)
        return {"a": a}, wide(a).T
