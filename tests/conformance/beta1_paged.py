"""Further cases of Beta 1: attention over a paged cache, from nki-samples."""

from __future__ import annotations

import numpy as np

from tests.conformance.beta1_cases import SAMPLES, Array, Wanted, case, softmax
from tests.conformance.beta1_team import TEAM
from tests.conformance.worst_errors import Draw, wide

PAGED = f"{TEAM}flash_paged_attn_varlen/"


@case(
    "paged attention, a tile",
    SAMPLES,
    f"{PAGED}flash_attn_core.py",
    "_flash_attention_core",
    64,
    include=PAGED,
    source="""
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
from flash_attn_core import _flash_attention_core


@nki.jit
def kernel(q, k, v, mask):
    out = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    kept = nl.zeros((128, 130), dtype=nl.float32)
    kept[:, 129] = -9984.0
    seen = nl.load(q)
    for tile in nl.static_range(2):
        first = tile * 1024
        keys = nl.load(k[:, first : first + 1024])
        values = nl.ndarray((128, 8 * 128), dtype=v.dtype)
        for n in nl.affine_range(8):
            rows = first + n * 128
            values[:, n * 128 : n * 128 + 128] = nl.load(v[rows : rows + 128, :])
        _flash_attention_core(
            seen, keys, values, kept, nl.float32, nl.float32,
            nl.load(mask[:, first : first + 1024]), False, LARGE_KV_TILE_SIZE=1024,
        )
    nl.store(out, nl.divide(kept[:, 0:128], kept[:, 128]))
    return out
""",
)
def _paged_tile(draw: Draw) -> Wanted:
    q, k, v = draw.f32(128, 128, scale=0.2), draw.f32(128, 2048), draw.f32(2048, 128)
    mask = (draw.rng.random((128, 2048)) < 0.5).astype(np.uint8)
    scores = np.where(mask, wide(q).T @ wide(k), -1e30)
    return {"q": q, "k": k, "v": v, "mask": mask}, softmax(scores) @ wide(v)


@case(
    "paged attention, the cache",
    SAMPLES,
    f"{PAGED}paged_cache.py",
    "load_k_tile_from_cache",
    include=PAGED,
    source="""
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import paged_cache
from utils import load_indices


@nki.jit
def kernel(k, v, tables):
    keys, values, factor, size = paged_cache.prepare_kv_block_dim_tiling(k, v, 2048)
    where = paged_cache.transform_block_tables_for_indirect_load(
        load_indices(tables), factor, 2, 1, None
    )
    loaded = nl.ndarray((nl.par_dim(128), 2, 1, size * 64), dtype=k.dtype)
    paged_cache.load_k_tile_from_cache(keys, where, 1, 128, size, 64, loaded)
    read = nl.ndarray((nl.par_dim(128), 2, size * 64), dtype=v.dtype)
    tile = paged_cache.load_v_tile_from_cache(values, where, 1, 128, size, 64, v.dtype, read)
    turned = nl.ndarray((nl.par_dim(64), 2, 2048), dtype=k.dtype)
    paged_cache.transpose_k_cache_tile(turned, loaded, 1, 128, size, 64, k.dtype, None)
    out = nl.ndarray((128, size * 64), dtype=k.dtype, buffer=nl.shared_hbm)
    rest = nl.ndarray((128, size * 64), dtype=k.dtype, buffer=nl.shared_hbm)
    last = nl.ndarray((64, 2048), dtype=k.dtype, buffer=nl.shared_hbm)
    nl.store(out, loaded[:, 1, 0])
    nl.store(rest, tile)
    nl.store(last, turned[:, 1])
    return out, rest, last
""",
)
def _paged(draw: Draw) -> Wanted:
    k, v = draw.bf16(40, 2, 32, 64), draw.bf16(40, 2, 32, 64)
    tables = draw.rng.integers(0, 40, (3, 64)).astype(np.int32)
    found = [wide(one)[tables[1], 1].reshape(128, 16 * 64) for one in (k, v)]
    turned = found[0].reshape(128, 16, 64).transpose(2, 1, 0).reshape(64, 2048)
    return {"k": k, "v": v, "tables": tables}, [*found, turned]


@case(
    "paged attention, indices",
    SAMPLES,
    f"{PAGED}utils.py",
    "load_indices",
    include=PAGED,
    source="""
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import utils


@nki.jit
def kernel(indices, row):
    loaded = utils.load_indices(indices)
    out = nl.ndarray((128, 2, 20), dtype=indices.dtype, buffer=nl.shared_hbm)
    nl.store(out, loaded)
    rows = nl.ndarray((96, 30), dtype=row.dtype)
    utils.broadcast_partition_with_PE(nl.load(row), rows)
    spread = nl.ndarray((96, 30), dtype=row.dtype, buffer=nl.shared_hbm)
    nl.store(spread, rows)
    columns = nl.ndarray((30, 96), dtype=row.dtype)
    utils.PF_transpose_with_PE(rows, columns)
    turned = nl.ndarray((30, 96), dtype=row.dtype, buffer=nl.shared_hbm)
    nl.store(turned, columns)
    return out, spread, turned
""",
)
def _indices(draw: Draw) -> Wanted:
    indices, row = draw.rng.integers(0, 999, (200, 20)).astype(np.int32), draw.bf16(1, 30)
    padded = np.zeros((256, 20), np.int32)
    padded[:200] = indices
    spread = np.repeat(wide(row), 96, axis=0)
    wanted = [padded.reshape(2, 128, 20).transpose(1, 0, 2), spread, spread.T]
    return {"indices": indices, "row": row}, wanted


@case(
    "paged attention of several sequences",
    SAMPLES,
    f"{PAGED}varlen_attention_kernel.py",
    "flash_paged_attention_varlen",
    64,
    uses=(f"{PAGED}flash_attn_impl.py",),
    grid=(1, 1),
)
def _varlen(draw: Draw) -> Wanted:
    """A prompt of 100 tokens and two sequences of one token, after 700, 300 and 600 cached ones."""
    heads, depth, size, tile, many = 1, 64, 32, 512, 128
    starts, ends, before = (0, 100, 101), (100, 101, 102), (700, 300, 600)
    q = draw.bf16(1, heads, many, depth, scale=0.3)
    k, v = draw.bf16(1, 1, depth, many), draw.bf16(1, 1, many, depth)
    keys, values = draw.bf16(60, 1, size, depth), draw.bf16(60, 1, size, depth)
    pages = draw.rng.permutation(60).astype(np.int32)
    wanted = np.zeros((heads, many, depth))
    active = np.zeros((many, many), np.uint8)
    plans: list[list[tuple[Array, Array, Array]]] = [[], []]
    for n, (start, end, count) in enumerate(zip(starts, ends, before, strict=True)):
        blocks, pages = np.split(pages, [-(-count // size)])
        past = [wide(one)[blocks, 0].reshape(-1, depth)[:count] for one in (keys, values)]
        every = np.concatenate([past[0], wide(k[0, 0]).T[start:end]])
        read = np.concatenate([past[1], wide(v[0, 0])[start:end]])
        rows = np.arange(end - start)
        scores = wide(q[0, :, start:end]) @ every.T / np.sqrt(depth)
        later = np.arange(len(every)) - count > rows[:, None]
        wanted[:, start:end] = softmax(np.where(later, -1e30, scores)) @ read
        active[start:end, start:end] = np.tril(np.ones((end - start,) * 2))
        for first in range(0, count, tile):
            table = np.zeros(tile // size, np.int32)
            part = blocks[first // size : (first + tile) // size]
            table[: len(part)] = part
            there = (np.arange(tile) + first < count).reshape(many, -1).T.reshape(-1)
            last = first + tile >= count
            plans[min(n, 1)].append((table, there, np.array([0 if last else 1], np.uint8)))
    asked = np.full((len(plans[0]), many), 10 * many, np.int32)
    asked[:, :100] = np.arange(100)
    inputs = {"query": q, "key": k, "value": v, "key_cache": keys, "value_cache": values}
    inputs |= {"active_mask": active, "prefill_tile_q_indices": asked}
    for name, plan in zip(("prefill", "decode"), plans, strict=True):
        tables, there, on = (np.stack(part) for part in zip(*plan, strict=True))
        inputs |= {f"{name}_tile_block_tables": tables, f"{name}_q_update_pred": on}
        inputs[f"{name}_num_dynamic_loop_steps"] = np.array([[len(plan)]], np.int32)
        inputs[f"{name}_tile_masks"] = there.astype(np.uint8)
    masks = np.zeros((many, len(plans[0]), 1, tile), np.uint8)
    masks[:100] = inputs["prefill_tile_masks"][None, :, None]
    inputs["prefill_tile_masks"] = masks
    turned = inputs["decode_tile_masks"].reshape(len(plans[1]), tile // many, many)
    inputs["decode_tile_masks"] = np.ascontiguousarray(turned.transpose(2, 0, 1))
    inputs["decode_tile_q_indices"] = np.array([[100], [101], [101]], np.int32)
    inputs["prefill_last_tile_indices"] = np.array([[1]], np.int32)
    inputs["decode_last_tile_indices"] = np.array([[0], [2]], np.int32)
    return inputs, [lambda found: (found[0, :, :102], wanted[:, :102])]
