"""Test data exchange between ranks of one kernel: values against NumPy, rejected calls, times."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nkic.artifact.read import read
from nkic.base.diagnostics import CompileFailed, ProgramFault
from nkic.base.profiles import Profile
from nkic.base.source import SourceFile
from nkic.compiler.pipeline import compile_source
from nkic.language import collectives
from nkic.machine.instructions import ROWS
from nkic.machine.targets import Target
from nkic.simulate import Result, simulate_ranks
from nkic.specialise.inline import parse_arg
from nkic.specialise.request import Request

Array = NDArray[Any]
RANKS = 4
RNG = np.random.default_rng(3)
DATA = RNG.standard_normal((RANKS, 8, 16)).astype(np.float32)
HEAD = """\
import nki
import nki.collectives as ncc
import nki.isa as nisa
import nki.language as nl
from nki.collectives import ReplicaGroup


@nki.jit
def kernel(a, counts=None):
    rows, columns = a.shape
    groups = ReplicaGroup({groups})
    src = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.{memory})
    dst = nl.ndarray({shape}, dtype=a.dtype, buffer=nl.{memory})
    nisa.dma_copy(dst=src, src=a)
"""
TAIL = """\
    out = nl.ndarray(dst.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=dst)
    return out
"""
EVERYBODY = [[0, 1, 2, 3]]
TWO = [[0, 2], [3, 1]]


def run(
    body: str,
    shape: str = "a.shape",
    groups: Any = EVERYBODY,
    memory: str = "shared_hbm",
    data: Array = DATA,
    lnc: int = 1,
    target: Target | None = None,
    **more: str,
) -> list[Result]:
    lines = body.strip().split("\n")
    text = HEAD.format(groups=groups, shape=shape, memory=memory)
    text += "".join(f"    {line}\n" for line in lines)
    text += "" if "return" in body else TAIL
    kinds = {"a": f"{data.dtype.name}[{data.shape[1]},{data.shape[2]}]", **more}
    args = dict(parse_arg(f"{name}={kind}") for name, kind in kinds.items())
    request = Request(lnc=lnc, grid=(lnc,), args=args)
    if target:
        request = replace(request, target=target)
    done = compile_source(SourceFile("k.py", text), request, lambda *_: None)
    return simulate_ranks(read(done.data), [{"a": one} for one in data])


def outputs(body: str, **how: Any) -> Array:
    return np.stack([result.outputs["output_0"] for result in run(body, **how)])


def members(groups: list[list[int]], rank: int) -> list[int]:
    return next(group for group in groups if rank in group)


MEMORIES = [("shared_hbm", 1), ("shared_hbm", 2), ("sbuf", 1), ("sbuf", 2)]


@pytest.mark.parametrize(("memory", "lnc"), MEMORIES)
@pytest.mark.parametrize("groups", [EVERYBODY, TWO], ids=["one", "two"])
@pytest.mark.parametrize(("op", "function"), [("add", np.sum), ("maximum", np.max)])
def test_all_reduce(memory: str, lnc: int, groups: Any, op: str, function: Any) -> None:
    body = f"ncc.all_reduce([src], [dst], groups, nl.{op})"
    found = outputs(body, groups=groups, memory=memory, lnc=lnc)
    for rank in range(RANKS):
        expected = function(DATA[members(groups, rank)].astype(np.float64), axis=0)
        assert np.allclose(found[rank], expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("memory", "lnc"), MEMORIES)
@pytest.mark.parametrize("groups", [EVERYBODY, TWO], ids=["one", "two"])
def test_all_gather_of_rows(memory: str, lnc: int, groups: Any) -> None:
    count = len(groups[0])
    body = "ncc.all_gather(srcs=[src], dsts=[dst], replica_group=groups, collective_dim=0)"
    how = {"groups": groups, "memory": memory, "lnc": lnc}
    found = outputs(body, shape=f"({count} * rows, columns)", **how)
    for rank in range(RANKS):
        assert np.array_equal(found[rank], np.concatenate(DATA[members(groups, rank)]))


def test_all_gather_of_columns_in_sbuf() -> None:
    body = "ncc.all_gather([src], [dst], groups, 1)"
    found = outputs(body, shape="(rows, 4 * columns)", memory="sbuf")
    assert all(np.array_equal(one, np.concatenate(list(DATA), axis=1)) for one in found)


@pytest.mark.parametrize("memory", ["shared_hbm", "sbuf"])
def test_reduce_scatter(memory: str) -> None:
    body = "ncc.reduce_scatter([src], [dst], groups, 0, nl.minimum)"
    found = outputs(body, shape="(rows // 4, columns)", memory=memory)
    assert np.array_equal(np.concatenate(list(found)), DATA.min(axis=0))


def test_all_to_all() -> None:
    found = outputs("ncc.all_to_all([src], [dst], groups, collective_dim=0)")
    parts = DATA.reshape(RANKS, RANKS, 2, 16)
    assert np.array_equal(found, parts.swapaxes(0, 1).reshape(DATA.shape))


def test_lists_of_tensors_go_together() -> None:
    body = """
more = nl.ndarray((rows, columns), dtype=a.dtype, buffer=nl.shared_hbm)
ncc.all_reduce([src, src], [dst, more], groups, nl.add)
ncc.all_reduce([more], [dst], groups, nl.add)
"""
    found = outputs(body, groups=TWO)
    expected = DATA[[0, 2]].sum(axis=0) * 2
    assert np.allclose(found[0], expected, rtol=1e-5)


def test_collective_permute_leaves_who_gets_nothing_as_it_was() -> None:
    body = """
nisa.dma_copy(dst=dst, src=a)
ncc.collective_permute([src], [dst], [(0, 1), (1, 3)])
"""
    found = outputs(body)
    assert np.array_equal(found, DATA[[0, 0, 2, 1]])


@pytest.mark.parametrize("memory", ["shared_hbm", "sbuf"])
def test_a_ring_and_whose_data_are_here(memory: str) -> None:
    """After two steps, the data are those of the rank that the register names."""
    body = """
other = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.MEMORY)
ncc.collective_permute_implicit([[src]], [[other]], groups)
ncc.collective_permute_implicit([[other]], [[dst]], groups, channel_ids=[0])
whose = ncc.collective_permute_implicit_current_processing_rank_id(2, groups)
word = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
nisa.register_store(word, whose)
out = nl.ndarray(dst.shape, dtype=a.dtype, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src=dst)
rank = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.shared_hbm)
nisa.dma_copy(dst=rank, src=word)
return out, rank
""".replace("MEMORY", memory)
    results = run(body, groups=[[0, 3, 1, 2]], memory=memory)
    whose = [int(result.outputs["output_1"][0, 0]) for result in results]
    assert whose == [1, 0, 3, 2]  # two positions before each rank in the ring 0 3 1 2
    for result, rank in zip(results, whose, strict=True):
        assert np.array_equal(result.outputs["output_0"], DATA[rank])


def test_a_ring_that_reduces_in_channels() -> None:
    body = """
half = columns // 2
parts = [slice(0, half), slice(half, columns)]
srcs = [[src[:, part]] for part in parts]
dsts = [[dst[:, part]] for part in parts]
ncc.collective_permute_implicit_reduce(srcs, srcs, dsts, groups, nl.add, [0, 1])
"""
    assert np.array_equal(outputs(body), 2 * np.roll(DATA, 1, axis=0))


def test_rank_id_as_an_offset() -> None:
    body = """
me = ncc.rank_id()
ncc.all_gather([src], [dst], groups, 0)
out = nl.ndarray((rows, columns), dtype=a.dtype, buffer=nl.shared_hbm)
view = dst.reshape((4, rows, columns))
nisa.dma_copy(dst=out, src=view.ap([[columns, rows], [1, columns]], scalar_offset=me,
                                   indirect_dim=0))
return out
"""
    assert np.array_equal(outputs(body, shape="(4 * rows, columns)"), DATA)


def test_bits_are_kept() -> None:
    data = RNG.integers(-(2**31), 2**31, DATA.shape).astype(np.int32)
    found = outputs("ncc.all_to_all([src], [dst], groups, 0)", data=data)
    assert np.array_equal(found[2, :2], data[0, 4:6])


def test_who_comes_last_is_waited_for() -> None:
    late = """
me = ncc.rank_id()
t = nl.ndarray((8, 16), dtype=nl.float32, buffer=nl.sbuf)
nisa.memset(t, 0.0)
def body(i):
    for j in range(10):
        nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=1.0)
    nisa.dma_copy(dst=src[0:8, 0:16], src=t)
nl.fori_loop(0, me, body)
ncc.all_gather([src], [dst], groups, 0)
"""
    results = run(late, shape="(4 * rows, columns)")
    expected = np.concatenate([DATA[0], *(np.full((8, 16), 10 * n) for n in (1, 2, 3))])
    assert all(np.array_equal(r.outputs["output_0"], expected) for r in results)
    assert len({result.time_ns for result in results}) == 1


UNEVEN = """
nisa.dma_copy(dst=dst, src=a)
me = ncc.rank_id()
nl.fori_loop(0, me, lambda i: ncc.all_reduce([src], [dst], groups, nl.add))
"""


def test_ranks_that_come_to_different_things() -> None:
    body = UNEVEN + "ncc.all_to_all([src], [dst], groups, 0)\n"
    with pytest.raises(ProgramFault, match="rank 0 reaches all_to_all here, but rank 1 reaches"):
        run(body)


def test_ranks_that_never_come() -> None:
    with pytest.raises(ProgramFault, match="that never come") as caught:
        run(UNEVEN)
    notes = caught.value.diagnostics[0].notes
    assert any("the other ranks of its group, one of which has ended" in note for note in notes)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([[0, 1, 2, 3, 4]], "for the ranks 0, 1, 2, 3, 4, and 4 are run"),
        ([[1, 2, 3]], "rank 0 is in no group"),
    ],
)
def test_groups_that_are_not_there(groups: Any, message: str) -> None:
    with pytest.raises(ProgramFault, match=message):
        run("ncc.all_reduce([src], [dst], groups, nl.add)", groups=groups)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("all_reduce(src, [dst], groups, nl.add)", "must be a list of tensors"),
        ("all_reduce([src], [dst, dst], groups, nl.add)", "the lists differ in length"),
        ("all_reduce([src], [dst], [0, 1], nl.add)", "must be a list of lists of ranks"),
        ("all_reduce([src], [dst], groups)", "missing a required argument: 'op'"),
        ("collective_permute([src, src], [dst, dst], [(0, 1)])", "2 tensors where only one"),
        ("collective_permute_implicit([[src]], [[dst]], groups, [1])", "`channel_ids` is"),
        ("collective_permute_implicit([src], [dst], groups)", "a list of one tensor"),
        ("all_reduce([src], [dst], groups, nl.multiply)", "`op` is multiply"),
        ("all_gather([src], [dst], groups, 0)", "must have 512"),
        ("all_to_all([src], [dst], groups, 1)", "`collective_dim` is 1, but must be 0"),
        ("all_gather_v([src], [dst], groups, src)", "all_gather_v"),
    ],
)
def test_calls_that_are_refused(call: str, message: str) -> None:
    with pytest.raises(CompileFailed) as caught:
        run(f"ncc.{call}")
    assert any(message in d.message for d in caught.value.diagnostics), caught.value.diagnostics


def test_both_cores_ask_for_the_same() -> None:
    body = "ncc.all_reduce([src], [dst], groups, nl.maximum if nl.program_id(0) else nl.add)"
    with pytest.raises(CompileFailed, match="`op` is add on core 0 and maximum on core 1"):
        run(body, lnc=2)


def test_every_function_is_tried_here() -> None:
    """The calls above, by name."""
    here = Path(__file__).read_text(encoding="utf-8")
    for name in (
        *("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "all_gather_v"),
        *("all_to_all_v", "collective_permute", "collective_permute_implicit", "rank_id"),
        "collective_permute_implicit_reduce",
        "collective_permute_implicit_current_processing_rank_id",
        *("all_to_all_v_prepare", "all_to_all_v_trigger"),
    ):
        assert ROWS[name].module == "nki.collectives"
        assert f"ncc.{name}(" in here or f'name="{name}"' in here


# Profile 0.7 of nki.collectives: the functions, and their parameters with defaults.
PUBLIC = """
all_reduce(srcs, dsts, replica_group, op, priority=None, name=None)
all_gather(srcs, dsts, replica_group, collective_dim, priority=None, name=None)
all_gather_v(srcs, dsts, replica_group, metadata_tensor, recv_counts_known=False,
 has_rdispls=False, priority=None, name=None)
reduce_scatter(srcs, dsts, replica_group, collective_dim, op, priority=None, name=None)
all_to_all(srcs, dsts, replica_group, collective_dim, priority=None, name=None)
all_to_all_v(srcs, dsts, replica_group, metadata_tensor, recv_counts_known=False,
 has_rdispls=False, priority=None, name=None)
all_gather_v_prepare(srcs, dsts, replica_group, metadata_tensor, recv_counts_known=False,
 has_rdispls=False, priority=None, name=None)
all_gather_v_trigger(prepare_instr, name=None)
all_to_all_v_prepare(srcs, dsts, replica_group, metadata_tensor, recv_counts_known=False,
 has_rdispls=False, priority=None, name=None)
all_to_all_v_trigger(prepare_instr, name=None)
collective_permute(srcs, dsts, source_target_pairs, priority=None, name=None)
collective_permute_implicit(srcs_by_channel, dsts_by_channel, replica_group, channel_ids=(0,),
 priority=None, name=None)
collective_permute_implicit_reduce(srcs0_by_channel, srcs1_by_channel, dsts_by_channel,
 replica_group, op, channel_ids=(0,), priority=None, name=None)
"""


def test_the_functions_are_the_published_ones() -> None:
    found = collectives.names(Profile.NKI_0_7)
    lines = PUBLIC.strip().replace("\n ", " ").split("\n")
    public = dict(line.removesuffix(")").split("(", 1) for line in lines)
    for name, parameters in public.items():
        assert str(found[name].__signature__) == f"({parameters})", name
    registers = ["rank_id", "collective_permute_implicit_current_processing_rank_id"]
    assert set(found) == {*public, *registers, "ReplicaGroup"}
    assert ROWS[registers[0]].parameters == ("name",)
    halves = {name for name in public if name.endswith(("_prepare", "_trigger"))}
    assert {*collectives.names(Profile.NKI_0_6)} == set(found) - halves and len(halves) == 4
    assert ROWS[registers[1]].parameters == ("iteration_id", "replica_group", "channel_id", "name")


# ------------------------------------------------------------------------------------------------
# Test chunks of counted lengths between ranks, whole and in two halves, against NumPy.

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
