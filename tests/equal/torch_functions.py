"""Functions of PyTorch, equal and not equal to the kernels of `test_torch`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812

from tests.equal.test_pairs import ONLINE, PRODUCT, RMS, SOFTMAX, VARIANCE

NORM = """
    m = nl.mean(x, axis=1, keepdims=True)
    off = x - m
    out = off * nl.rsqrt(nl.mean(off * off, axis=1, keepdims=True) + 1e-5) * w
"""
GATE = "    out = nl.silu(x) * w"
ATTENTION = """
    xt = nl.ndarray((32, 24), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_transpose(dst=xt, data=x)
    wt = nl.ndarray((32, 24), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_transpose(dst=wt, data=w)
    s = nl.ndarray((24, 24), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=s, stationary=nl.copy(xt), moving=nl.copy(wt), accumulate=False)
    e = nl.exp(nl.copy(s) * 32 ** -0.5)
    p = e / nl.sum(e, axis=1, keepdims=True)
    pt = nl.ndarray((24, 24), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_transpose(dst=pt, data=p)
    whole = nl.ndarray((24, 32), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=whole, stationary=nl.copy(pt), moving=w, accumulate=False)
    out = nl.copy(whole)
"""
COPY = "    out = nl.multiply(x, 1.0)"
ONES = torch.ones(32)


def softmax(x: Any, w: Any) -> Any:
    return F.softmax(x, dim=-1)


def guarded(x: Any, w: Any) -> Any:
    e = (x - x.max(dim=-1, keepdim=True).values).exp()
    return e / e.sum(dim=-1, keepdim=True)


def unguarded(x: Any, w: Any) -> Any:
    e = torch.exp(x)
    return e / torch.sum(e, -1, keepdim=True)


def rms(x: Any, w: Any) -> Any:
    return x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6) * w.to(x.dtype)


def rms_norm(x: Any, w: Any) -> Any:
    return F.rms_norm(x, (32,), ONES, 1e-6) * w


def rms_without_eps(x: Any, w: Any) -> Any:
    return x / x.pow(2).mean(-1, keepdim=True).sqrt() * w


def variance(x: Any, w: Any) -> Any:
    return x.var(dim=1, keepdim=True, unbiased=False)


def unbiased(x: Any, w: Any) -> Any:
    return x.var(1, keepdim=True)


def layer_norm(x: Any, w: Any) -> Any:
    return F.layer_norm(x, x.shape[-1:]) * w


class Module(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(32)

    def forward(self, x: Any, w: Any) -> Any:
        return self.norm(x) * w


def products(x: Any, w: Any) -> Any:
    return x.t() @ w


def by_einsum(x: Any, w: Any) -> Any:
    return torch.einsum("ki,kj->ij", x, w)


def by_stores(x: Any, w: Any) -> Any:
    out = torch.zeros(32, 32)
    for i in range(0, 32, 8):
        out[i : i + 8] = torch.mm(x.mT[i : i + 8].contiguous(), w)
    return out


def by_wrong_stores(x: Any, w: Any) -> Any:
    out = torch.zeros(32, 32)
    out[:31] = x.T[:31] @ w
    return out


def gate(x: Any, w: Any) -> Any:
    return F.silu(x) * w


def by_sigmoid(x: Any, w: Any) -> Any:
    return x.bfloat16().float().mul(torch.sigmoid(x)).mul_(w)


def attention(x: Any, w: Any) -> Any:
    q, k, v = (a.view(1, 1, 24, 32) for a in (x, w, w))
    return F.scaled_dot_product_attention(q, k, v).squeeze(0).squeeze(0)


def written_out(x: Any, w: Any) -> Any:
    scores = x @ w.transpose(-2, -1) / 32**0.5
    return torch.softmax(scores, -1) @ w


def causal(x: Any, w: Any) -> Any:
    return F.scaled_dot_product_attention(x[None], w[None], w[None], is_causal=True)[0]


EQUAL: list[tuple[str, Callable[..., Any]]] = [
    *((body, f) for body in (SOFTMAX, ONLINE) for f in (softmax, guarded, unguarded)),
    *((RMS, f) for f in (rms, rms_norm)),
    *((NORM, f) for f in (layer_norm, Module())),
    *((PRODUCT, f) for f in (products, by_einsum, by_stores)),
    *((GATE, f) for f in (gate, by_sigmoid)),
    *((ATTENTION, f) for f in (attention, written_out)),
    (VARIANCE, variance),
]
DIFFERENT: list[tuple[str, Callable[..., Any]]] = [
    (SOFTMAX, lambda x, w: F.softmax(x, dim=0)),
    (RMS, rms_without_eps),
    (VARIANCE, unbiased),
    (NORM, lambda x, w: F.layer_norm(x, (32,), eps=1e-2) * w),
    (PRODUCT, by_wrong_stores),
    (GATE, lambda x, w: F.gelu(x) * w),
    (ATTENTION, causal),
]


def sorting(x: Any, w: Any) -> Any:
    return torch.sort(x, dim=1).values


def truncating(x: Any, w: Any) -> Any:
    return x + x.to(torch.int32) * 1e-12


def without_dimension(x: Any, w: Any) -> Any:
    return F.softmax(x)


def deciding(x: Any, w: Any) -> Any:
    return x if x.max() > 0 else x * 1


def indexing(x: Any, w: Any) -> Any:
    return x.gather(1, x.argmax(1, keepdim=True)) + 0 * x


def by_conversion(x: Any, w: Any) -> Any:
    """Take arrays of NumPy, and use torch on tensors made of them: not followed."""
    return torch.softmax(torch.from_numpy(x), -1).numpy()


def stored(a: Any, b: Any) -> Any:
    out = torch.zeros_like(a)
    out[1:, 0] = b[1:, 2]
    row = out[1]
    row += 3
    out[:, 1].mul_(0).add_(2.0)
    out.view(-1)[::7] = 7.0
    kept = out.clone()
    out.masked_fill_(torch.arange(6) > 3, 5.0)
    return out * 100 + kept


MASK = torch.arange(6) % 2 == 0
FIRST = torch.arange(3) == torch.tensor([[0], [0], [2]])  # of three keys, for each query
HALVES = torch.full((6,), 4.0, dtype=torch.bfloat16)
CALLS: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b + torch.add(a, b, alpha=2) + a.add(1) + HALVES,
    "reversed": lambda a, b: 100 - a + torch.ones(6) * b + HALVES.float() - a - (-a) + +b,
    "numbers of numpy": lambda a, b: np.float32(2) * a + np.float64(3) - b,
    "sub": lambda a, b: a.sub(b, alpha=2) - torch.rsub(a, 1) + torch.subtract(a, b).abs(),
    "divide": lambda a, b: (a * b) / b + (a * b).div(a) + 1 / (1 / a),
    "power": lambda a, b: a**3 + torch.pow(b, 2) + a.square() + a.pow(2.0).sqrt() ** 2,
    "extremes": lambda a, b: torch.maximum(a, b) - torch.min(a, b) + torch.max(a),
    "max": lambda a, b: a.max(dim=1)[0] + torch.max(b, 1, keepdim=True).values[:, 0] + b.amin(1),
    "clamp": lambda a, b: a.clamp(2, 5) + torch.clamp(b, max=4) + b.clip(min=3) + F.relu6(a),
    "where": lambda a, b: torch.where(a > 4, a, b) + torch.where(MASK, a, 0.0),
    "masks": lambda a, b: a.masked_fill(~MASK, 0.0) + b.masked_fill((a > 2) & (b < 5), 9.0),
    "comparisons": lambda a, b: (a >= b).float() + 2 * (a == b) + 4 * (a < b) + 8 * ~(a > b),
    "bool": lambda a, b: (a - b).bool().float() + (a != b).to(torch.float32),
    "sums": lambda a, b: a.sum() + torch.sum(b, dim=(0, 2), keepdim=True) + b.sum((0, 1)),
    "mean": lambda a, b: (a * 6).mean(2) + (b * 12).mean([0, 1], keepdim=True)[0, 0, 0],
    "product": lambda a, b: a[:, :, :3].prod(-1),
    "deviation": lambda a, b: torch.stack([a, a + 4]).std(0, unbiased=False),
    "moments": lambda a, b: sum(torch.var_mean(torch.stack([a, a + 4]), 0, correction=0)),
    "cumsum": lambda a, b: a.cumsum(1) + torch.cumsum(b, dim=-1),
    "matmul": lambda a, b: a @ b.transpose(1, 2) + torch.bmm(a, b.mT) + a.matmul(b.mT),
    "matrices": lambda a, b: torch.mm(a[0], b[0].T) + torch.addmm(a[0, :, :3], a[1], b[1].t()),
    "scaled": lambda a, b: torch.addmm(a[0, :, :3], a[1], b[1].T, beta=2, alpha=3),
    "attention": lambda a, b: F.scaled_dot_product_attention(a * 0, a, b * 3),
    "grouped": lambda a, b: F.scaled_dot_product_attention(
        a * 0, a[:2], b[:2] * 3, enable_gqa=True
    ),
    "masked": lambda a, b: (
        F.scaled_dot_product_attention(a * 0, a, b, FIRST)
        + F.scaled_dot_product_attention(a * 0, a, b, torch.where(FIRST, 0.0, -torch.inf))
    ),
    "constants": lambda a, b: torch.ones(2, 6) @ a.mT + F.linear(b, torch.ones(2, 6)).mT,
    "linear": lambda a, b: F.linear(a, b[0], b[1, :, 0]) + a[0] @ b[0, 0],
    "einsum": lambda a, b: torch.einsum("bij,bkj->ikb", a, b) + torch.einsum("ijb->b", [a])[:4],
    "einsum of one": lambda a, b: torch.einsum("bij->jb", a),
    "outer": lambda a, b: torch.outer(a[0, 0], b[0, 0]),
    "norm": lambda a, b: a[:1, :1, :1].expand(1, 4, 1).norm(dim=1),
    "triangle": lambda a, b: torch.tril(a) + b.triu(diagonal=1),
    "permute": lambda a, b: a.permute(2, 0, 1) + torch.permute(b, (2, 0, 1)) + a.movedim(2, 0),
    "transpose": lambda a, b: a.transpose(0, 2) + torch.swapaxes(b, 0, 2),
    "view": lambda a, b: a.view(2, -1, 6) + b.reshape((2, 6, 6)) + a.view(b.shape).view(2, 6, 6),
    "view_as": lambda a, b: a.view(2, 36).view_as(b) + b.reshape(72).reshape_as(a),
    "flatten": lambda a, b: a.flatten(1) + torch.flatten(b, start_dim=1) + a.view(a.size(0), -1),
    "unflatten": lambda a, b: a.unflatten(2, (2, -1)) + b.flatten().unflatten(0, (4, 3, 2, 3)),
    "squeeze": lambda a, b: (
        a[:1].squeeze(0) + b[:1].squeeze() + a[0][None].unsqueeze(-1)[0, ..., 0]
    ),
    "expand": lambda a, b: a[:, :1].expand(-1, 3, 6) + b[0].expand(4, -1, -1) + a[:1].expand_as(b),
    "repeat": lambda a, b: a.repeat(2, 1, 1) + b.repeat_interleave(2, dim=0) + a.tile(2, 1, 1),
    "join": lambda a, b: torch.cat([a, b, torch.ones(4, 3, 6)], dim=2) + torch.cat((b,) * 3, -1),
    "stack": lambda a, b: torch.stack([a, b], dim=1) + torch.stack((b, a), 1),
    "split": lambda a, b: (
        sum(a.split(2, dim=-1)) + b.split([2, 4], 2)[0] + torch.chunk(a, 3, -1)[1]
    ),
    "unbind": lambda a, b: sum(a.unbind(1)) + sum(x for x in b)[0] + a.select(1, 2) + a[:, 0],
    "narrow": lambda a, b: a.narrow(2, 1, 3) + b.index_select(2, torch.tensor([0, 5, 2])),
    "index": lambda a, b: a[[2, 0], :, None, 1:3] + b[torch.tensor([1, 3])][:, :, None, :2],
    "flip": lambda a, b: a.flip(0, 2) + torch.flip(b, [1]) + torch.roll(a, 1, 2),
    "diagonal": lambda a, b: (
        a[:3].diagonal(0, 1, 2) + torch.diagonal(b[:3], dim1=0, dim2=1)[:3, :3]
    ),
    "pad": lambda a, b: F.pad(a, (1, 2, 0, 1)) + F.pad(b, (3, 0, 1, 0), value=2.0),
    "embedding": lambda a, b: F.embedding(torch.tensor([[1, 0], [2, 2]]), a[0]),
    "like": lambda a, b: torch.ones_like(a) + torch.full_like(b, 3) + a.new_full((6,), 2.0),
    "types": lambda a, b: (
        a.half().float() + b.to(torch.bfloat16).to(a.dtype) + a.type_as(b).double()
    ),
    "device": lambda a, b: a.to(b.device).to("cpu", torch.float32).contiguous() + b.detach().cpu(),
    "shape": lambda a, b: a * len(a) + b.shape[1] + a.dim() + b.numel() + b.size()[2] + a.ndim,
    "dropout": lambda a, b: F.dropout(a, 0.5, training=False) + F.relu(b - 4) + F.hardtanh(a, 0, 3),
    "leaky": lambda a, b: F.leaky_relu(a - 4, 2.0) + a.sign() + torch.neg(b).neg(),
    "in place": stored,
}
