"""Test chunks of counted lengths between ranks, whole and in two halves, against NumPy."""

import numpy as np
import pytest

from nkic.base.diagnostics import CompileFailed, ProgramFault
from tests.unit.language.test_collectives import DATA, RANKS, run

COUNTED = """
table = nl.ndarray((3, 4), dtype=nl.uint32, buffer=nl.shared_hbm)
start = nl.ndarray((1, 12), dtype=nl.uint32, buffer=nl.sbuf)
nisa.memset(start, 0)
counts = {counts}
for column in range(4):
    for row in range(2):
        index = row * 4 + column
        nisa.memset(start[:, index : index + 1], counts[row][column])
nisa.dma_copy(dst=table.reshape((1, 12)), src=start)
nisa.dma_copy(dst=dst, src=a)
ncc.{name}([src], [dst], groups, table)
out = nl.ndarray(dst.shape, dtype=a.dtype, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src=dst)
seen = nl.ndarray((3, 4), dtype=nl.uint32, buffer=nl.shared_hbm)
nisa.dma_copy(dst=seen, src=table)
return out, seen
"""


def test_all_to_all_v() -> None:
    counts = [[3, 0, 5, 32], [0, 9, 2, 90]]
    results = run(COUNTED.format(name="all_to_all_v", counts=counts))
    for rank, result in enumerate(results):
        expected = DATA[rank].ravel().copy()
        count, first = counts[0][rank], counts[1][rank]
        for sender in range(RANKS):
            expected[sender * 32 : sender * 32 + count] = DATA[sender].ravel()[first:][:count]
        assert np.array_equal(result.outputs["output_0"].ravel(), expected)
        assert result.outputs["output_1"][2].tolist() == [count] * RANKS


def test_all_gather_v() -> None:
    counts = [[7, 0, 0, 0], [5, 0, 0, 0]]
    results = run(COUNTED.format(name="all_gather_v", counts=counts), lnc=2)
    for rank, result in enumerate(results):
        expected = DATA[rank].ravel().copy()
        for sender in range(RANKS):
            expected[sender * 32 : sender * 32 + 7] = DATA[sender].ravel()[5:12]
        assert np.array_equal(result.outputs["output_0"].ravel(), expected)
        assert result.outputs["output_1"][2].tolist() == [7] * RANKS


SPLIT = COUNTED.replace(
    "ncc.{name}([src], [dst], groups, table)",
    """ready = ncc.{name}_prepare([src], [dst], groups, table)
nisa.memset(start, 9)
nisa.dma_copy(dst=table.reshape((1, 12)), src=start)
nisa.dma_copy(dst=src, src=a)
ncc.{name}_trigger(ready)""",
)


@pytest.mark.parametrize(("name", "lnc"), [("all_to_all_v", 1), ("all_gather_v", 2)])
def test_halves_go_by_the_counts_that_were_prepared(name: str, lnc: int) -> None:
    """Between the two halves the data arrive and the counts are overwritten."""
    counts = [[3, 1, 5, 32], [0, 9, 2, 90]]
    whole = run(COUNTED.format(name=name, counts=counts), lnc=lnc)
    split = run(SPLIT.format(name=name, counts=counts), lnc=lnc)
    for one, other in zip(whole, split, strict=True):
        assert np.array_equal(one.outputs["output_0"], other.outputs["output_0"])
        received = one.outputs["output_1"][2]
        assert other.outputs["output_1"].tolist() == [[9] * 4, [9] * 4, received.tolist()]


def test_counts_that_nobody_wrote_are_not_prepared() -> None:
    body = """
    ready = ncc.all_to_all_v_prepare([src], [dst], groups, counts)
    ncc.all_to_all_v_trigger(ready)
    """
    made = "counts = nl.ndarray((3, 4), dtype=nl.uint32, buffer=nl.private_hbm)"
    with pytest.raises((ProgramFault, CompileFailed), match="counts"):
        run("\n".join(line.strip() for line in (made + body).split("\n") if line.strip()))


def test_a_chunk_for_which_there_is_no_room() -> None:
    counts = [[33, 0, 0, 0], [0, 0, 0, 0]]
    with pytest.raises(ProgramFault, match="33 elements exceeds its space of 32"):
        run(COUNTED.format(name="all_to_all_v", counts=counts))


def test_a_chunk_that_its_source_does_not_have() -> None:
    counts = [[31, 0, 0, 0], [98, 0, 0, 0]]
    with pytest.raises(ProgramFault, match="a chunk of elements 98 to 129 exceeds its 128"):
        run(COUNTED.format(name="all_to_all_v", counts=counts))


ALL = "nisa.dma_copy(dst=out, src=dst)"
RECEIVED = "nisa.dma_copy(dst=out[0:1, 0:3], src=dst[0:1, 0:3])"


def test_elements_that_no_rank_sends_stay_uninitialised() -> None:
    """Each slot has 32 elements, of which 3 are sent."""
    counts = [[3, 3, 3, 3], [0, 0, 0, 0]]
    body = COUNTED.format(name="all_to_all_v", counts=counts)
    body = body.replace("nisa.dma_copy(dst=dst, src=a)\n", "")
    with pytest.raises(ProgramFault, match=r"dma_copy reads `dst` .*116 of the 128"):
        run(body)
    results = run(body.replace(ALL, RECEIVED))
    assert np.array_equal(results[2].outputs["output_0"][0, :3], DATA[0][0, :3])


def test_a_rank_that_receives_nothing_does_not_write_dst() -> None:
    exchange = "ncc.collective_permute([src], [dst], [[0, 1], [1, 0]])"
    with pytest.raises(ProgramFault, match="dma_copy reads `dst` before it is written"):
        run(exchange)
    results = run(f"nisa.dma_copy(dst=dst, src=a)\n{exchange}")
    for rank, sender in enumerate([1, 0, 2, 3]):
        assert np.array_equal(results[rank].outputs["output_0"], DATA[sender])
