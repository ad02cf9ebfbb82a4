"""Test allocate with printed programs; its results are proven."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from random import Random

import ml_dtypes
import numpy as np
import pytest

from nkic import api
from nkic.api import CompileError
from nkic.base.diagnostics import CompileFailed, Reporter
from nkic.base.source import NOWHERE, CallChain, SourceFile, Span
from nkic.compiler import tight
from nkic.compiler.allocate import (
    Addresses,
    DoesNotFit,
    Lifetime,
    Space,
    _Owners,
    allocate,
    by_role,
    fit,
    peak,
    place,
    space_of,
)
from nkic.compiler.depend import depend
from nkic.compiler.tight import _by_area, _by_length, _by_size, _Overlaps, pack, sink
from nkic.machine.dtypes import DTYPES, FLOAT32
from nkic.machine.targets import PSUM_BANK_BYTES, TRN2, Address, Buffer
from nkic.program.program import AccessPattern, Edge, Program, Tensor, instructions
from nkic.prove import prove_addresses, read
from tests.harness.bless import compare_file
from tests.harness.proofs import allocated
from tests.programs import code, copy, declare, load, op, program

KIB = 1024
SBUF = space_of(Buffer.SBUF, TRN2)


def row(bytes_: int) -> str:
    """Return the number of free float32 elements that take this many bytes per partition."""
    return str(bytes_ // 4)


def chain(count: int, bytes_: int, more: str = "") -> Program:
    """%0 → %1 → %2 …: each tensor is live while it is written and while it is read."""
    shape = f"128, {row(bytes_)}"
    tensors = [declare(i, f"t{i}", shape, more=more) for i in range(count)]
    whole = f"[0+128, 0; 1x{row(bytes_)}]"
    fill = op(0, "memset", dst=f"%0{whole}", value="0.0")
    steps = [copy(i, f"%{i}{whole}", f"%{i - 1}{whole}") for i in range(1, count)]
    return program("\n".join([*tensors, "core", *(f"  {s}" for s in (fill, *steps))]))


def test_a_chain_longer_than_memory_reuses_it() -> None:
    done = allocated(chain(40, 20 * KIB))
    assert len(done.addresses) == 40
    assert all(a.byte + 20 * KIB <= 212_728 for a in done.addresses.values())


def test_small_programs_share_nothing() -> None:
    done = allocated(chain(4, KIB))
    assert len({a.byte for a in done.addresses.values()}) == 4


def test_taking_over_bytes_waits_for_the_last_reader() -> None:
    found = chain(40, 20 * KIB)
    done, (graph,) = allocate(found, depend(found), Reporter())
    by_start: dict[int, int] = {}
    for number in sorted(done.addresses):
        start = done.addresses[number].byte
        if start in by_start:
            former = by_start[start]  # last read by the instruction that writes its successor
            assert Edge(former + 1, "reuse") in graph.sources(number)
        by_start[start] = number
    assert len(by_start) < 40


def test_a_loop_takes_bytes_over_from_its_previous_iteration() -> None:
    tensors = [declare(i, f"t{i}", "128, 1", more=" fixed (0, 0) scope (1,)") for i in (0, 1)]
    body = [f"    {op(i, 'memset', dst=f'%{i}[0+128, 0; 1x1]', value='0.0')}" for i in (0, 1)]
    loop = ["core", "  loop 1 $0 = 0 to 4 by 1", *body, "  end"]
    found = program("\n".join([*tensors, *loop]))
    _, (graph,) = allocate(found, depend(found), Reporter())
    assert Edge(1, "reuse", 1) in graph.sources(0)
    assert Edge(0, "reuse") in graph.sources(1)


def test_psum_is_given_out_in_banks() -> None:
    tensors = [declare(i, f"t{i}", "128, 8", Buffer.PSUM) for i in range(8)]
    fills = [op(i, "memset", dst=f"%{i}[0+128, 0; 1x8]", value="0.0") for i in range(8)]
    reads = [
        op(8 + i, "reciprocal", dst=f"%{i}[0+128, 0; 1x8]", data=f"%{i}[0+128, 0; 1x8]")
        for i in range(8)
    ]
    done = allocated(program("\n".join([*tensors, "core", *(f"  {s}" for s in fills + reads)])))
    assert sorted(a.byte for a in done.addresses.values()) == [2048 * i for i in range(8)]


def test_a_full_memory_names_its_holders() -> None:
    tensors = [declare(i, f"t{i}", f"128, {row(100 * KIB)}") for i in range(3)]
    whole = f"[0+128, 0; 1x{row(100 * KIB)}]"
    fills = [op(i, "memset", dst=f"%{i}{whole}", value="0.0") for i in range(3)]
    last = op(
        3,
        "scalar_tensor_tensor",
        dst=f"%0{whole}",
        data=f"%1{whole}",
        operand0="1.0",
        operand1=f"%2{whole}",
        op0="'add'",
        op1="'add'",
    )
    found = program("\n".join([*tensors, "core", *(f"  {s}" for s in (*fills, last))]))
    report = Reporter()
    with pytest.raises(CompileFailed):
        allocate(found, depend(found), report)
    (error,) = report.errors
    assert error.code.slug == "sbuf-overflow"
    assert "`t2` in SBUF" in error.message
    assert "102,400 bytes per partition, 204,800 bytes are in use" in error.message
    assert "trn2 has 212,728" in error.message
    assert [label.text for label in error.labels] == [
        "`t0` holds 102,400 bytes",
        "`t1` holds 102,400 bytes",
    ]


def test_fixed_addresses_are_kept_and_avoided() -> None:
    fixed = declare(0, "fixed", "128, 256", more=" fixed (0, 0)")
    free = declare(1, "free", "128, 256")
    body = [
        op(0, "memset", dst="%0[0+128, 0; 1x256]", value="0.0"),
        copy(1, "%1[0+128, 0; 1x256]", "%0[0+128, 0; 1x256]"),
    ]
    done = allocated(program("\n".join([fixed, free, "core", *(f"  {s}" for s in body)])))
    assert done.addresses[0] == Address(0, 0)
    assert done.addresses[1].byte >= 1024


@pytest.mark.parametrize("first", [0, 64, 4096])
def test_what_is_used_begins_where_the_first_tensor_does(first: int) -> None:
    """The memory below it is free, and so is the memory between two tensors."""
    starts = (first, first + 1024, first + 8192)
    tensors = [
        declare(i, f"t{i}", "128, 256", more=f" fixed (0, {s})") for i, s in enumerate(starts)
    ]
    body = [op(i, "memset", dst=f"%{i}[0+128, 0; 1x256]", value="0.0") for i in range(3)]
    done = allocated(program("\n".join([*tensors, "core", *(f"  {line}" for line in body)])))
    assert peak(done, Buffer.SBUF) == 3 * 1024


def fixed_pair(first: str, second: str, shape: str = "64, 256") -> Reporter:
    tensors = [
        declare(0, "one", shape, more=f" fixed {first}"),
        declare(1, "two", shape, more=f" fixed {second}"),
    ]
    rows, columns = shape.split(", ")
    body = [
        op(0, "memset", dst=f"%0[0+{rows}, 0; 1x{columns}]", value="0.0"),
        op(1, "memset", dst=f"%1[0+{rows}, 0; 1x{columns}]", value="0.0"),
        copy(2, f"%1[0+{rows}, 0; 1x{columns}]", f"%0[0+{rows}, 0; 1x{columns}]"),
    ]
    found = program("\n".join([*tensors, "core", *(f"  {s}" for s in body)]))
    report = Reporter()
    try:
        done, _ = allocate(found, depend(found), report)
    except CompileFailed:
        return report
    assert prove_addresses(done, read(found)) == []
    return report


def test_side_by_side_partitions_may_share_bytes() -> None:
    assert fixed_pair("(0, 0)", "(64, 0)").errors == ()


def test_overlapping_fixed_addresses_name_both() -> None:
    (error,) = fixed_pair("(0, 0)", "(0, 512)").errors
    assert error.code.slug == "address-overlap"
    assert "`two` at bytes 512 to 1,536 overlaps `one` at bytes 0 to 1,024" in error.message


@pytest.mark.parametrize(
    ("one", "two"), list(product(product((0, 32, 64), (0, 256, 512, 4096)), repeat=2))
)
def test_fixed_addresses_overlap_where_a_byte_is_in_both(
    one: tuple[int, int], two: tuple[int, int]
) -> None:
    shape = "32, 128"
    cells = ({(p // 32, byte + n) for n in range(512)} for p, byte in (one, two))
    errors = fixed_pair(str(one), str(two), shape).errors
    assert len(errors) == bool(set.intersection(*cells))
    if errors:
        assert errors[0].help is not None
        end = re.findall(r"([\d,]+) while", errors[0].message)
        assert re.findall(r"to byte ([\d,]+), or", errors[0].help) == end
        assert f"move `{errors[0].message[1:4]}`" in errors[0].help


@pytest.mark.parametrize(
    ("address", "text"),
    [("(0, 212700)", "byte 213,724 .* 211,704, or"), ("(96, 0)", "partition 160; .* most 64$")],
)
def test_addresses_outside_the_memory(address: str, text: str) -> None:
    found = fixed_pair("(0, 0)", address)
    assert [e.code.slug for e in found.errors] == ["fixed-address"]
    assert re.search(text, f"{found.errors[0].message} {found.errors[0].help}")


@pytest.mark.parametrize(("partition", "beyond"), [(64, 0), (64, 1), (65, 0)])
def test_the_last_address_of_the_memory(partition: int, beyond: int) -> None:
    found = fixed_pair("(0, 0)", f"({partition}, {SBUF.capacity - KIB + beyond})")
    assert (found.errors == ()) == (partition == 64 and not beyond)


@pytest.mark.parametrize(
    ("addresses", "memory", "slug"),
    [
        (["(0, 300000)"], Buffer.SBUF, "fixed-address"),
        (["(32, 0)"], Buffer.SBUF, "fixed-address"),
        (["(0, 5000)"], Buffer.PSUM, "fixed-address"),
        (["(0, 0)", "(0, 512)"], Buffer.SBUF, "address-overlap"),
    ],
)
def test_where_an_address_is_impossible_nothing_else_is_said(
    addresses: list[str], memory: Buffer, slug: str
) -> None:
    """The rest of the memory, which is too small, is not filled."""
    size = row(150 * KIB) if memory is Buffer.SBUF else row(10 * KIB)
    count = len(addresses)
    fixed = [
        declare(i, f"fixed{i}", "128, 256", memory, f" fixed {at}")
        for i, at in enumerate(addresses)
    ]
    free = [declare(count + i, f"t{i}", f"128, {size}", memory) for i in range(2)]
    body = [
        *(op(i, "memset", dst=f"%{i}[0+128, 0; 1x256]", value="0.0") for i in range(count)),
        op(count, "memset", dst=f"%{count}[0+128, 0; 1x{size}]", value="0.0"),
        *(
            copy(count + 1 + i, f"%{count + 1}[0+128, 0; 1x256]", f"%{i}[0+128, 0; 1x256]")
            for i in range(count + 1)
        ),
    ]
    found = program("\n".join([*fixed, *free, "core", *(f"  {line}" for line in body)]))
    report = Reporter()
    with pytest.raises(CompileFailed):
        allocate(found, depend(found), report)
    assert [e.code.slug for e in report.errors] == [slug]


def test_the_bank_that_an_address_of_psum_is_in_is_proposed() -> None:
    tensor = declare(0, "sums", "64, 256", Buffer.PSUM, more=" fixed (32, 5000)")
    body = op(0, "memset", dst="%0[0+64, 0; 1x256]", value="0.0")
    found = program(f"{tensor}\ncore\n  {body}")
    report = Reporter()
    with pytest.raises(CompileFailed):
        allocate(found, depend(found), report)
    (error,) = report.errors
    assert "starts inside a bank of PSUM" in error.message
    assert "write address=(32, 4096)" in str(error.help)


def test_a_tensor_of_a_loop_keeps_its_bytes_during_the_loop() -> None:
    """%0 is only read in the loop: a tensor written later in the loop must not take over its
    bytes.
    """
    tensors = [declare(i, f"t{i}", f"128, {row(80 * KIB)}") for i in range(3)]
    whole = f"[0+128, 0; 1x{row(80 * KIB)}]"
    text = [
        *tensors,
        "core",
        "  " + op(0, "memset", dst=f"%0{whole}", value="0.0"),
        "  loop 1 $0 = 0 to 4 by 1",
        "    " + copy(1, f"%1{whole}", f"%0{whole}"),
        "    " + op(2, "memset", dst=f"%2{whole}", value="0.0"),
        "  end",
    ]
    report = Reporter()
    with pytest.raises(CompileFailed):
        allocate(program("\n".join(text)), depend(program("\n".join(text))), report)
    assert report.errors[0].code.slug == "sbuf-overflow"


# ------------------------------------------------------------------------------------------------
# Test allocate where program order leaves no room.
#
# It packs by size, places tensors side by side, and delays first writes. Kernels are compiled and
# run, and NumPy computes the expected results.

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


@pytest.mark.parametrize(
    ("columns", "at", "moves"), [(1, "", True), (2, "", False), (1, " fixed (0, 0)", False)]
)
def test_what_is_put_off_takes_no_other_memory(columns: int, at: str, moves: bool) -> None:
    """The sum takes at most what its source frees; one at a fixed address is held no longer."""
    tensors = [
        declare(0, "source", f"128, {columns}", more=at),
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


def test_what_frees_a_single_byte_is_put_off() -> None:
    tensors = [
        declare(0, "tile", "128, 1").replace("float32", "uint8"),
        declare(1, "other", "128, 1"),
    ]
    column = "[0+128, 0; 1x1]"
    body = [
        op(0, "memset", dst=f"%0{column}", value="1.0"),
        op(1, "memset", dst=f"%1{column}", value="1.0"),
        op(2, "memset", dst=f"%1{column}", value="2.0"),
        copy(3, f"%1{column}", f"%0{column}"),
    ]
    found = program("\n".join([*tensors, "core", *(f"  {line}" for line in body)]))
    (graph,) = depend(found)
    order, _ = sink(found.cores[0], graph, {Buffer.SBUF}, TRN2)
    written = [i.operand("dst") for i in instructions(order)]
    tiles = [isinstance(dst, AccessPattern) and dst.tensor.name == "tile" for dst in written]
    assert tiles == [False, False, True, False]


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


# ------------------------------------------------------------------------------------------------
# Test addresses for random live ranges, in memories of several sizes.
#
# A plain search tries every byte; packing is compared with tests/data/addresses.txt.

PAGE = Path(__file__).parents[2] / "data/addresses.txt"
Range = tuple[int, int]


def lives(seed: int, fixed: bool) -> list[Lifetime]:
    """Draw tensors of few sizes and types; some of them have a fixed address."""
    rng, found = Random(seed), []
    for number in range(28):
        dtype, rows = rng.choice(["uint8", "float32"]), rng.choice([1, 32, 33, 64, 65, 128])
        columns = rng.choice([1, 15, 16, 17, 63, 64, 65, 250])
        at = Address(0, 128 * (number // 9)) if fixed and number % 9 == 0 else None
        name, shape = f"t{number}", (rows, columns)
        where = (Buffer.SBUF, CallChain(NOWHERE), at)
        tensor = Tensor(number, name, DTYPES[dtype], shape, *where)
        first = rng.randrange(30)
        found.append(Lifetime(tensor, first, first + rng.randrange(12)))
    return sorted(found, key=lambda one: (one.first, one.tensor.number))


def most(found: Sequence[Lifetime]) -> int:
    """Return the most bytes in use at one time: no placement of whole columns takes less."""
    return max(
        sum(SBUF.size(o.tensor) for o in found if o.first <= one.first <= o.last) for one in found
    )


def spaces(found: Sequence[Lifetime]) -> Iterator[Space]:
    """Return memories from one with room for all tensors to one that is too small."""
    for percent in (400, 150, 120, 105, 100, 90):
        yield replace(SBUF, capacity=most(found) * percent // 100 // 64 * 64)


# The same by plain search.


def apart(low: int, high: int, taken: Sequence[Range]) -> bool:
    return all(high <= start or end <= low for start, end in taken)


def lowest(taken: Sequence[Range], capacity: int, size: int, after: int) -> int | None:
    """Return the first byte from `after` on at which there is room."""
    starts = range(after, capacity - size + 1)
    return next((at for at in starts if apart(at, at + size, taken)), None)


@pytest.mark.parametrize("seed", range(40))
def test_room_is_found_at_the_lowest_byte(seed: int) -> None:
    rng, taken, at = Random(seed), [], 0
    for _ in range(rng.randrange(6)):
        at += rng.randrange(5)
        taken.append((at, at + rng.randrange(1, 9)))
        at = taken[-1][1]
    for size in range(1, 8):
        for after in range(at + 3):
            assert fit(taken, at + 2, size, after) == lowest(taken, at + 2, size, after)


def slots(found: Sequence[Lifetime], space: Space, rest: int) -> Addresses | None:
    """Place in slots by size and type: in the slot that has been free longest, once `rest` slots
    are free.
    """
    held: dict[int, tuple[int, object]] = {}
    free: list[tuple[int, int, int, object]] = []  # end, order, start, kind
    addresses, top = Addresses(), 0
    for order, life in enumerate(found):
        kind = (space.size(life.tensor), life.tensor.dtype.name)
        over = [(one.last, i) for i, one in enumerate(found[:order]) if one.last < life.first]
        free += [(last, i, *held.pop(i)) for last, i in sorted(over) if i in held]
        same = [one for one in free if one[3] == kind]
        if same and (len(same) >= rest or top + kind[0] > space.capacity):
            free.remove(same[0])
            start = same[0][2]
        elif top + kind[0] <= space.capacity:
            start, top = top, top + kind[0]
        else:
            return None
        held[order] = (start, kind)
        addresses[life.tensor.number] = Address(0, start)
    return addresses


def swept(found: Sequence[Lifetime], space: Space, around: bool) -> Addresses | None:
    """Place in program order at the lowest free bytes, or at those after the preceding tensor."""
    addresses = {one.tensor.number: one.tensor.fixed for one in found if one.tensor.fixed}
    own = {number: at.byte for number, at in addresses.items()}
    after = 0
    for life in found:
        if life.tensor.fixed is not None:
            continue
        taken = [_range(one, own[one.tensor.number], space) for one in found
                 if one.tensor.number in own and one.first <= life.last and life.first <= one.last
                 and (one.tensor.fixed is not None or one.last >= life.first)]  # fmt: skip
        size = space.size(life.tensor)
        starts = [lowest(taken, space.capacity, size, at) for at in (after, 0)]
        start = starts[0] if starts[0] is not None else starts[1]
        if start is None:
            return None
        own[life.tensor.number] = start
        addresses[life.tensor.number] = Address(0, start)
        after = start + size if around else 0
    return addresses


def _range(one: Lifetime, byte: int, space: Space) -> Range:
    low = byte // space.align * space.align
    high = byte + one.tensor.bytes
    return low, max(low + space.align, -(-high // space.align) * space.align)


def or_none(strategy: Callable[[], Addresses]) -> Addresses | None:
    """Return the addresses, or None if there is no room."""
    try:
        return strategy()
    except DoesNotFit:
        return None


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("fixed", [False, True])
def test_places_are_those_of_a_plain_search(seed: int, fixed: bool) -> None:
    found = lives(seed, fixed)
    for space in spaces(found):
        for rest in (0, 1, 2, 8):
            wanted = None if fixed else slots(found, space, rest)
            if wanted is None:
                wanted = swept(found, space, True) or swept(found, space, False)
            assert or_none(lambda: place(found, space, rest)) == wanted  # noqa: B023


@pytest.mark.parametrize("seed", range(4))
def test_what_is_packed_first(seed: int) -> None:
    """Orders: the largest tensor, the largest for the longest time, the longest live range
    first.
    """
    for one in lives(seed, False):
        size, time = SBUF.size(one.tensor), one.last + 1 - one.first
        assert _by_size(SBUF, one) == (-size, one.first)
        assert _by_area(SBUF, one) == (-size * time, one.first)
        assert _by_length(SBUF, one) == (1 - time, -size)


@pytest.mark.parametrize("seed", range(3))
def test_the_more_pairs_the_fewer_orders_are_tried(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = lives(seed, False)
    space, pairs = next(spaces(found)), _Overlaps(found).pairs
    for most, is_tried in ((3 * pairs, True), (pairs, True), (pairs - 1, False)):
        monkeypatch.setattr(tight, "MAX_PAIRS", most)
        assert (or_none(lambda: pack(found, space)) is not None) == is_tried


@pytest.mark.parametrize("movable", [(), (3,)])
def test_fixed_tensors_side_by_side_leave_room_for_another(movable: Sequence[int]) -> None:
    """Each of the three takes most of the memory, but of 40 partitions only."""
    beside = [Address(partition, 0) for partition in (0, 40, 80)]
    found = []
    for number, at in enumerate([*beside, None]):
        shape, where = (40, 640) if at else (128, 384), (Buffer.SBUF, CallChain(NOWHERE), at)
        found.append(Lifetime(Tensor(number, "t", DTYPES["uint8"], shape, *where), 0, 9))
    placed = pack(found, replace(SBUF, capacity=1024), movable)
    assert placed == dict(enumerate([*beside, Address(0, 640)]))


def test_packing_chooses_as_it_did() -> None:
    text = ""
    for seed in range(8):
        found = lives(seed, seed % 2 == 1)
        every = {one.tensor.number for one in found}
        for space in spaces(found):
            for movable in ((), every):
                made = or_none(lambda: pack(found, space, movable))  # noqa: B023
                text += f"{seed} in {space.capacity}, {len(movable)} move: {_listed(made)}\n"
    compare_file(PAGE, text)


def _listed(found: Addresses | None) -> str:
    if found is None:
        return "no room"
    return " ".join(f"{n}={at.partition}+{at.byte}" for n, at in sorted(found.items()))


@pytest.mark.parametrize("seed", range(6))
def test_what_is_in_use_together_is_found_as_by_asking_each(seed: int) -> None:
    """A tensor may be its own neighbour; pairs are counted in both directions."""
    found = lives(seed, False)
    together = _Overlaps(found)
    count = 0
    for i, one in enumerate(found):
        wanted = {j for j, other in enumerate(found) if one.meets(other) and i != j}
        assert set(together.beside(one.tensor.number).tolist()) - {i} == wanted
        count += len(wanted)
    assert together.pairs == len(found) + count


@pytest.mark.parametrize("seed", range(20))
def test_former_owners_are_those_of_each_byte(seed: int) -> None:
    rng, ranges, bytes_ = Random(seed), _Owners(), dict[int, int]()
    for _ in range(60):
        low, tensor = rng.randrange(12), rng.randrange(12)
        span = range(low, low + rng.choice([1, 2, 2, 4]))
        formers = list(dict.fromkeys(bytes_[byte] for byte in span if byte in bytes_))
        assert list(ranges.take(low, span.stop, tensor)) == formers
        bytes_ |= dict.fromkeys(span, tensor)


# ------------------------------------------------------------------------------------------------
# Test banks of PSUM by role: how many each role gets, and that roles do not block each other.

SPACE = Space(Buffer.PSUM, 8 * PSUM_BANK_BYTES, PSUM_BANK_BYTES)
Made = tuple[int, int, int, int]  # line, banks, first and last access


def role_lives(*made: Made) -> list[Lifetime]:
    found = []
    for number, (line, banks, first, last) in enumerate(made):
        at = CallChain(Span("k.py", line, 1, line, 9))
        shape = (128, 512 * banks)
        found.append(Lifetime(Tensor(number, "t", FLOAT32, shape, Buffer.PSUM, at), first, last))
    return found


def banks(*made: Made) -> list[int]:
    found = by_role(role_lives(*made), SPACE)
    return [found[number].byte // PSUM_BANK_BYTES for number in range(len(made))]


def test_each_place_has_banks_of_its_own() -> None:
    """Iterations of a loop: one tile with a long live range, and three in succession."""
    iterations = [
        one
        for iteration in range(3)
        for one in (
            (1, 1, iteration * 10, iteration * 10 + 8),
            *((2, 1, iteration * 10 + n, iteration * 10 + n) for n in (1, 2, 3)),
        )
    ]
    found = banks(*iterations)
    long, short = found[::4], [bank for n, bank in enumerate(found) if n % 4]
    assert not set(long) & set(short)
    assert len(set(long)) == 3  # a bank for each turn, before the short ones get the rest
    assert len(set(short)) == 5


def test_the_longest_get_what_is_left_over() -> None:
    """These have the highest mean: how many tiles there are, or how late, does not matter."""
    assert banks((1, 3, 0, 9), (2, 1, 1, 2), (1, 3, 10, 19), (2, 1, 11, 12)) == [0, 6, 3, 7]
    short = [(2, 2, first, first + 4) for first in range(0, 25, 5)]
    assert banks((1, 3, 0, 9), (1, 3, 10, 19), *short) == [0, 3, *[6] * 5]


def test_places_one_after_the_other_share_all_banks() -> None:
    found = banks(*((1, 1, n, n) for n in range(8)), *((2, 1, 10 + n, 10 + n) for n in range(8)))
    assert found == [*range(8), *range(8)]


def test_what_is_in_use_at_once_must_fit() -> None:
    with pytest.raises(DoesNotFit):
        banks((1, 5, 0, 9), (2, 4, 1, 2))


@pytest.mark.parametrize("seed", range(30))
def test_no_two_tiles_meet(seed: int) -> None:
    rng = np.random.default_rng(seed)
    made: list[Made] = []
    for first in range(40):
        line = int(rng.integers(1, 4))
        made.append((line, 1 + line // 3, first, first + int(rng.integers(0, 2))))
    found = by_role(role_lives(*made), SPACE)
    for one, other in combinations(role_lives(*made), 2):
        if one.meets(other):
            low, high = (found[life.tensor.number].byte for life in (one, other))
            assert low + one.tensor.bytes <= high or high + other.tensor.bytes <= low
