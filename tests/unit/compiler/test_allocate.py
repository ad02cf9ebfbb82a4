"""Test allocate with printed programs; its results are proven."""

import pytest

from nkic.base.diagnostics import CompileFailed, Reporter
from nkic.compiler.allocate import allocate, peak
from nkic.compiler.depend import depend
from nkic.machine.targets import Address, Buffer
from nkic.program.program import Edge, Program
from nkic.prove import prove_addresses, read
from tests.harness.proofs import allocated
from tests.programs import copy, declare, op, program

KIB = 1024


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
    rows = shape.split(",")[0]
    body = [
        op(0, "memset", dst=f"%0[0+{rows}, 0; 1x256]", value="0.0"),
        op(1, "memset", dst=f"%1[0+{rows}, 0; 1x256]", value="0.0"),
        copy(2, f"%1[0+{rows}, 0; 1x256]", f"%0[0+{rows}, 0; 1x256]"),
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
    ("address", "text"),
    [("(0, 212700)", "ends at byte 213,724"), ("(96, 0)", "ends at partition 160")],
)
def test_addresses_outside_the_memory(address: str, text: str) -> None:
    found = fixed_pair("(0, 0)", address)
    assert [e.code.slug for e in found.errors] == ["fixed-address"]
    assert text in found.errors[0].message


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
