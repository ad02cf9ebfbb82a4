"""Test allocate where program order leaves no room.

It packs by size, places tensors side by side, and delays first writes. Kernels are compiled and
run, and NumPy computes the expected results.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from nkic import api
from nkic.api import CompileError
from nkic.base.diagnostics import CompileFailed, Reporter
from nkic.base.source import SourceFile
from nkic.compiler.allocate import allocate
from nkic.compiler.depend import depend
from nkic.compiler.tight import sink
from nkic.machine.targets import TRN2, Buffer
from nkic.program.program import instructions
from tests.harness.proofs import allocated
from tests.programs import code, copy, declare, load, op, program

HEAD = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n\n\n"
BIG = 30_000  # float32 of 120,000 bytes: two of them do not fit into a partition of 212,728


def kernel(body: str) -> SourceFile:
    text = HEAD + "@nki.jit\ndef kernel(x):\n    " + body.strip().replace("\n", "\n    ")
    return SourceFile("k.py", text + "\n    return out\n")


def doubled(rows: int) -> SourceFile:
    return kernel(f"""
a = nl.ndarray(({rows}, {BIG}), dtype=nl.float32, buffer=nl.sbuf)
b = nl.ndarray(({rows}, {BIG}), dtype=nl.float32, buffer=nl.sbuf)
nisa.dma_copy(dst=a, src=x)
nisa.tensor_scalar(dst=b, data=a, op0=nl.multiply, operand0=2.0)
nisa.tensor_tensor(dst=b, data1=a, data2=b, op=nl.add)
out = nl.ndarray(({rows}, {BIG}), dtype=nl.float32, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src=b)
""")


def data(rows: int, columns: int = BIG) -> np.ndarray:
    return np.random.default_rng(rows).standard_normal((rows, columns)).astype(np.float32)


@pytest.mark.parametrize("serial", [False, True])
@pytest.mark.parametrize("rows", [5, 32, 64])
def test_tensors_of_few_partitions_lie_side_by_side(rows: int, serial: bool) -> None:
    x = data(rows)
    artifact = api.compile(doubled(rows), inputs={"x": x}, serial=serial)
    out = api.run(artifact, {"x": x}).outputs["output_0"]
    assert np.array_equal(np.asarray(out), x + 2 * x)


def test_tensors_of_many_partitions_do_not() -> None:
    with pytest.raises(CompileError, match=r"no room for `b` in SBUF: .* 120,000 bytes are in use"):
        api.compile(doubled(65), inputs={"x": data(65)})


def test_four_quadrants_share_bytes() -> None:
    tensors = [declare(i, f"t{i}", f"32, {BIG}") for i in range(4)]
    whole = f"[0+32, 0; 1x{BIG}]"
    fills = [op(i, "memset", dst=f"%{i}{whole}", value="0.0") for i in range(4)]
    reads = [copy(4 + i, f"%{i}{whole}", f"%{3 - i}{whole}") for i in range(4)]
    done = allocated(program("\n".join([*tensors, "core", *fills, *reads])))
    assert sorted(done.addresses.values()) == [(0, 0), (32, 0), (64, 0), (96, 0)]


def test_what_the_tensor_engine_reads_begins_at_partition_0() -> None:
    tensors = [
        *(declare(i, f"t{i}", f"64, {BIG}") for i in range(2)),
        "%2 p: float32[64, 512] psum",
    ]
    whole = f"[0+64, 0; 1x{BIG}]"
    part = "[0+64, 0; 1x64]"
    steps = [
        op(0, "memset", dst=f"%0{whole}", value="0.0"),
        copy(1, f"%1{whole}", f"%0{whole}"),
        op(2, "nc_matmul", "tensor", dst=f"%2{part}", stationary=f"%1{part}", moving=f"%1{part}"),
        copy(3, f"%0{whole}", f"%1{whole}"),
    ]
    done = allocated(program("\n".join([*tensors, "core", *steps])))
    assert done.addresses[0].partition == 64
    assert done.addresses[1].partition == 0


FILLED_EARLY = f"""
tiles = []
for i in range(3):
    t = nl.ndarray((128, {BIG}), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=t, value=0.0)
    nisa.dma_copy(dst=t[:, 1:{BIG}], src=x[:, 1:{BIG}])
    tiles.append(t)
out = nl.ndarray((3, 128, {BIG}), dtype=nl.float32, buffer=nl.shared_hbm)
for i in range(3):
    nisa.tensor_scalar(dst=tiles[i], data=tiles[i], op0=nl.add, operand0=float(i))
    nisa.dma_copy(dst=out[i], src=tiles[i])
"""


def test_tiles_that_are_filled_long_before_their_use_are_filled_later() -> None:
    x = data(128)
    expected = np.stack([np.where(np.arange(BIG) > 0, x, 0) + np.float32(i) for i in range(3)])
    for serial in (False, True):
        artifact = api.compile(kernel(FILLED_EARLY), inputs={"x": x}, serial=serial)
        out = api.run(artifact, {"x": x}).outputs["output_0"]
        assert np.array_equal(np.asarray(out), expected)


def test_what_fits_stays_in_program_order() -> None:
    found = program(
        "\n".join(
            [
                *(declare(i, f"t{i}", "128, 64") for i in range(2)),
                "core",
                op(0, "memset", dst="%0[0+128, 0; 1x64]", value="0.0"),
                op(1, "memset", dst="%1[0+128, 0; 1x64]", value="0.0"),
                copy(2, "%1[0+128, 0; 1x64]", "%0[0+128, 0; 1x64]"),
            ]
        )
    )
    assert allocated(found).cores == found.cores


def test_a_transfer_is_put_off_only_up_to_what_writes_its_source() -> None:
    """%1 is loaded from x before x is overwritten, long before %1 is used."""
    whole = f"[0+128, 0; 1x{BIG}]"
    hbm = f"[0; {BIG}x128, 1x{BIG}]"
    tensors = [
        f"%0 x: float32[128, {BIG}] shared_hbm",
        *(declare(i, f"t{i}", f"128, {BIG}") for i in range(1, 3)),
    ]
    body = [
        load(0, f"%1{whole}", f"%0{hbm}"),
        op(1, "memset", dst=f"%2{whole}", value="0.0"),
        load(2, f"%0{hbm}", f"%2{whole}"),
        copy(3, f"%1{whole}", f"%1{whole}"),
    ]
    needed = copy(3, f"%2{whole}", f"%1{whole}")  # so that no order lets %1 end before %2 begins
    late = program("\n".join([*tensors, "input x = %0", "core", *body[:3], needed]))
    report = Reporter()
    with pytest.raises(CompileFailed):
        allocate(late, depend(late), report)
    assert [e.code.slug for e in report.errors] == ["sbuf-overflow"]
    free = program("\n".join([*tensors, "input x = %0", "core", body[0], body[1], body[3]]))
    assert [one.row.name for one in code(allocated(free))] == ["memset", "dma_copy", "tensor_copy"]


def test_fixed_tensors_side_by_side_leave_the_rest() -> None:
    """Two tensors of 64 partitions at fixed addresses over the same bytes do not prevent
    packing.
    """
    fixed = [declare(i, f"f{i}", f"64, {BIG}", more=f" fixed ({64 * i}, 4096)") for i in range(2)]
    free = [declare(2, "low", "128, 1024"), declare(3, "high", "128, 20000")]
    parts = [f"%{i}[0+64, 0; 1x{BIG}]" for i in range(2)]
    fills = [op(i, "memset", dst=part, value="0.0") for i, part in enumerate(parts)]
    fills += [
        op(2, "memset", dst="%2[0+128, 0; 1x1024]", value="0.0"),
        op(3, "memset", dst="%3[0+128, 0; 1x20000]", value="0.0"),
        copy(4, "%3[0+128, 0; 1x1024]", "%2[0+128, 0; 1x1024]"),
        copy(5, *parts),
    ]
    done = allocated(program("\n".join([*fixed, *free, "core", *fills])))
    assert done.addresses[2].byte == 0
    assert done.addresses[3].byte >= 4096 + 4 * BIG


@pytest.mark.parametrize(("columns", "moves"), [(1, True), (2, False)])
def test_what_is_put_off_may_hold_no_more_of_another_memory(columns: int, moves: bool) -> None:
    """The sum takes at most as many bytes as the only use of its source frees."""
    tensors = [
        declare(0, "source", f"128, {columns}"),
        declare(1, "sum", "128, 1"),
        declare(2, "tile", "128, 1", Buffer.PSUM),
        declare(3, "other", "128, 1"),
    ]
    column = "[0+128, 0; 1x1]"
    reduce = {"op": "'copy'", "reduce_op": "'add'", "bias": "0.0", "scale": "1.0"}
    sums = {"dst": f"%2{column}", "data": f"%0{column}", "reduce_res": f"%1{column}"}
    body = [
        op(0, "memset", dst=f"%0{column}", value="1.0"),
        op(1, "activation_reduce", "scalar", **reduce, **sums),
        op(2, "memset", dst=f"%3{column}", value="1.0"),
        op(3, "memset", dst=f"%3{column}", value="2.0"),
        copy(4, f"%3{column}", f"%1{column}"),
        copy(5, f"%3{column}", f"%2{column}"),
    ]
    found = program("\n".join([*tensors, "core", *(f"  {line}" for line in body)]))
    (graph,) = depend(found)
    order, _ = sink(found.cores[0], graph, {Buffer.PSUM}, TRN2)
    assert [i.row.name for i in instructions(order)].index("activation_reduce") == 1 + 2 * moves


def test_an_order_is_found_in_which_less_is_in_use_at_once() -> None:
    """A rotation of halves, as in rotary embeddings.

    In program order a fourth product is live while both halves of the argument are needed. If one
    half is processed before the other, the argument's live range ends before the result's begins.
    """
    columns = 32_768  # bfloat16 of 65,536 bytes: SBUF holds three of 128 partitions
    text = f"""
h, n = 64, {columns}
whole = nl.ndarray((128, n), dtype=nl.bfloat16, buffer=nl.sbuf)
nisa.dma_copy(dst=whole, src=x)
turned = nl.ndarray((128, n), dtype=nl.bfloat16, buffer=nl.sbuf)
low = nl.ndarray((h, n), dtype=nl.bfloat16, buffer=nl.sbuf)
nisa.tensor_copy(dst=low, src=whole[h:, :])
parts = [nl.ndarray((h, n), dtype=nl.bfloat16, buffer=nl.sbuf) for _ in range(4)]
for i in range(4):
    half = low if i % 2 else whole[:h, :]
    nisa.tensor_scalar(dst=parts[i], data=half, op0=nl.multiply, operand0=float(i + 1))
nisa.tensor_tensor(dst=turned[:h, :], data1=parts[0], data2=parts[3], op=nl.subtract)
nisa.tensor_tensor(dst=turned[h:, :], data1=parts[1], data2=parts[2], op=nl.add)
out = nl.ndarray((128, n), dtype=nl.bfloat16, buffer=nl.shared_hbm)
nisa.dma_copy(dst=out, src=turned)
"""
    x = np.random.default_rng(1).integers(-3, 4, (128, columns)).astype(ml_dtypes.bfloat16)
    artifact = api.compile(kernel(text), inputs={"x": x})
    out = np.asarray(api.run(artifact, {"x": x}).outputs["output_0"], np.float32)
    top, bottom = x[:64].astype(np.float32), x[64:].astype(np.float32)
    assert np.array_equal(out, np.concatenate([top - 4 * bottom, 2 * bottom + 3 * top]))
