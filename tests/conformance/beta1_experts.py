"""Further cases of Beta 1: mixtures of experts from nki-samples that run on two cores, which share
the hidden dimension or the blocks of tokens.
"""

from __future__ import annotations

import numpy as np

from tests.conformance.beta1_cases import SAMPLES, Wanted, case
from tests.conformance.beta1_team import TEAM, experts, mixed_backward
from tests.conformance.worst_errors import Draw, wide

for _skip in (False, True):

    @case(
        f"mixture of experts{', tokens left out' * _skip}, on two cores",
        SAMPLES,
        f"{TEAM}blockwise_mm.py",
        "blockwise_mm_baseline_shard_hidden",
        64,
        include=TEAM,
        lnc=2,
        source=f"""
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
from blockwise_mm import SkipMode, blockwise_mm_baseline_shard_hidden


@nki.jit
def kernel(x, affinities, gate_up, down, ids, owners):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    blockwise_mm_baseline_shard_hidden(
        x, affinities, gate_up, down, 128, ids, owners, out, skip_dma=SkipMode({_skip}, False)
    )
    return out
""",
    )
    def _mixed(draw: Draw, skip: bool = _skip) -> Wanted:
        inputs, wanted = experts(draw, skip)
        return inputs, [lambda found: (found[:200], wanted[:200])]


for _turns in (2, 6):

    @case(
        f"mixture of experts, {_turns} blocks shared by two cores",
        SAMPLES,
        f"{TEAM}blockwise_mm.py",
        "blockwise_mm_baseline_block_parallel",
        64,
        include=TEAM,
        lnc=2,
        source="""
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
from blockwise_mm import blockwise_mm_baseline_block_parallel


@nki.jit
def kernel(x, affinities, gate_up, down, ids, owners):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    blockwise_mm_baseline_block_parallel(
        x, affinities, gate_up, down, 512, ids, owners, out, is_tensor_update_accumulating=False
    )
    return out
""",
    )
    def _mixed_blocks(draw: Draw, turns: int = _turns) -> Wanted:
        hidden, inner, count = 1024, 256, 3
        tokens = 512 * turns - 100
        x = draw.bf16(tokens + 1, hidden, scale=0.5)
        gate_up = draw.bf16(count, hidden, 2, inner, scale=0.03)
        down = draw.bf16(count, inner, hidden, scale=0.1)
        ids = np.full(512 * turns, tokens, np.int32)
        ids[:tokens] = draw.rng.permutation(tokens)
        owners = draw.rng.integers(0, count, (turns, 1)).astype(np.int32)
        affinities = np.abs(draw.bf16((tokens + 1) * count, 1))
        wanted = np.zeros(x.shape)
        for block, expert in zip(ids.reshape(turns, 512), owners[:, 0], strict=True):
            scaled = wide(x[block]) * wide(affinities[block * count + expert])
            sides = np.einsum("th,hsi->sti", scaled, wide(gate_up[expert]))
            gate = sides[0] / (1 + np.exp(-sides[0]))
            wanted[block] = gate * sides[1] @ wide(down[expert])
        inputs = {"x": x, "affinities": affinities, "gate_up": gate_up, "down": down}
        inputs |= {"ids": ids, "owners": owners}
        return inputs, [lambda found: (found[:tokens], wanted[:tokens])]


@case(
    "mixture of experts, backward, on two cores",
    SAMPLES,
    f"{TEAM}blockwise_mm_bwd.py",
    "blockwise_mm_bwd_baseline_shard_hidden",
    64,
    include=TEAM,
    lnc=2,
    source="""
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
from blockwise_mm_bwd import blockwise_mm_bwd_baseline_shard_hidden


@nki.jit
def kernel(x, affinities, gate_up, states, down, made, ids, owners, dout):
    like = (x, affinities, gate_up, down)
    found = [nl.ndarray(one.shape, dtype=one.dtype, buffer=nl.shared_hbm) for one in like]
    blockwise_mm_bwd_baseline_shard_hidden(
        x, found[0], affinities, found[1], gate_up, found[2], states, down, found[3], made, ids,
        owners, dout, block_size=512,
    )
    return tuple(found)
""",
)
def _mixed_backward(draw: Draw) -> Wanted:
    return mixed_backward(draw)
