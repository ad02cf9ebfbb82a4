"""Test the proof of an allocation: the faults that it must find, and its linear time."""

import sys
from collections.abc import Callable
from dataclasses import replace
from types import FrameType
from typing import Any

import pytest

from nkic.compiler.tight import movable
from nkic.machine.targets import Address, Buffer
from nkic.program.program import Program
from nkic.prove import prove_addresses, read
from tests.harness.proofs import Made, make
from tests.programs import copy, declare, op, program

WHOLE = "[0+128, 0; 1x256]"
KIB = 1024


def chain(buffer: Buffer = Buffer.SBUF) -> Made:
    """%0 → %1 → %2: each is live while it is written and while it is read."""
    tensors = [declare(i, f"t{i}", "128, 256", buffer) for i in range(3)]
    body = [op(0, "memset", dst=f"%0{WHOLE}", value="0.0")]
    body += [copy(i, f"%{i}{WHOLE}", f"%{i - 1}{WHOLE}") for i in (1, 2)]
    return make(program("\n".join([*tensors, "core", *(f"  {s}" for s in body)])))


def moved(made: Made, **addresses: tuple[int, int]) -> Program:
    new = {int(name[1:]): Address(*place) for name, place in addresses.items()}
    return replace(made.placed, addresses={**made.placed.addresses, **new})


@pytest.mark.parametrize("buffer", [Buffer.SBUF, Buffer.PSUM])
@pytest.mark.parametrize("offset", [-1020, -4, 0, 4, 1020])
def test_two_tensors_in_use_share_bytes(buffer: Buffer, offset: int) -> None:
    """Below the neighbour, at its address, and above it; by all bytes and by one element."""
    made = chain(buffer)
    assert made.addresses() == []
    found = made.addresses(moved(made, t0=(0, 4 * KIB), t1=(0, 4 * KIB + offset), t2=(0, 8 * KIB)))
    assert [one.rule for one in found] == ["overlap"]
    assert "`t1` and `t0` share bytes at instruction 1" in str(found[0])
    assert "k.py:2:1" in str(found[0])


@pytest.mark.parametrize("offset", [-1024, 1024])
def test_neighbours_may_touch(offset: int) -> None:
    made = chain()
    assert made.addresses(moved(made, t0=(0, 4 * KIB), t1=(0, 4 * KIB + offset))) == []


def test_who_is_no_longer_in_use_has_no_say() -> None:
    made = chain()
    assert made.addresses(moved(made, t0=(0, 0), t1=(0, KIB), t2=(0, 0))) == []


def test_partitions_side_by_side_share_no_bytes() -> None:
    tensors = [declare(i, f"t{i}", "64, 256") for i in range(2)]
    half = "[0+64, 0; 1x256]"
    body = [op(0, "memset", dst=f"%0{half}", value="0.0"), copy(1, f"%1{half}", f"%0{half}")]
    made = make(program("\n".join([*tensors, "core", *(f"  {s}" for s in body)])))
    assert made.addresses(moved(made, t0=(0, 0), t1=(64, 0))) == []
    (found,) = made.addresses(moved(made, t0=(0, 0), t1=(32, 0)))
    assert found.rule == "overlap"


@pytest.mark.parametrize(
    ("buffer", "place"),
    [
        (Buffer.SBUF, (1, 0)),
        (Buffer.SBUF, (-1, 0)),
        (Buffer.SBUF, (0, -4)),
        (Buffer.SBUF, (0, 212_728 - 1020)),
        (Buffer.PSUM, (0, 16_384 - 1020)),
    ],
)
def test_a_tensor_leaves_its_memory(buffer: Buffer, place: tuple[int, int]) -> None:
    made = chain(buffer)
    (found,) = made.addresses(moved(made, t1=place))
    assert found.rule == "address" and f"byte {place[1]:,} leaves its memory" in found.what


@pytest.mark.parametrize(("buffer", "end"), [(Buffer.SBUF, 212_728), (Buffer.PSUM, 16_384)])
def test_the_last_bytes_are_inside(buffer: Buffer, end: int) -> None:
    made = chain(buffer)
    assert made.addresses(moved(made, t1=(0, end - 1024))) == []


def test_a_tensor_without_an_address() -> None:
    made = chain()
    rest = {n: a for n, a in made.placed.addresses.items() if n != 1}
    (found,) = made.addresses(replace(made.placed, addresses=rest))
    assert (found.rule, found.what) == ("address", "`t1` has no address")


def accumulated() -> Made:
    """Return two reductions into one accumulator, which each lane has for itself."""
    tensors = [*(declare(i, f"t{i}", "32, 256") for i in range(2)), declare(2, "sums", "32, 1")]
    tile, column = "[0+32, 0; 1x256]", "[0+32, 0; 1x1]"
    body = [
        op(
            i,
            "activation",
            "scalar",
            dst=f"%{i}{tile}",
            op="'copy'",
            data=f"%{i}{tile}",
            bias="0.0",
            reduce_op="'add'",
            reduce_res=f"%2{column}",
            reduce_cmd=command,
        )
        for i, command in enumerate(("'reset_reduce'", "'reduce'"))
    ]
    return make(program("\n".join([*tensors, "core", *(f"  {s}" for s in body)])))


def test_what_accumulates_stays_in_its_lanes() -> None:
    made = accumulated()
    assert made.addresses() == []
    assert movable(made.lowered.cores[0], made.lowered.target) == set()
    (found,) = made.addresses(moved(made, t1=(32, 0)))
    assert found.rule == "lane" and "`t1` is at partition 32" in found.what


def test_what_does_not_accumulate_may_move() -> None:
    tensors = [declare(i, f"t{i}", "32, 256") for i in range(2)]
    body = [copy(0, "%1[0+32, 0; 1x256]", "%0[0+32, 0; 1x256]")]
    made = make(program("\n".join([*tensors, "core", *(f"  {s}" for s in body)])))
    assert movable(made.lowered.cores[0], made.lowered.target) == {0, 1}
    assert made.addresses(moved(made, t1=(32, 0))) == []


def loops(count: int) -> Program:
    """Return consecutive device loops, each with its own tensor and one from outside."""
    lines = [declare(0, "out", "128, 256"), "core"]
    tensors, body = [], [op(0, "memset", dst=f"%0{WHOLE}", value="0.0")]
    for i in range(1, count + 1):
        tensors.append(declare(i, f"t{i}", "128, 256", more=f" scope ({i},)"))
        body.append(f"loop {i} ${i} = 0 to 4 by 1")
        body.append("  " + copy(2 * i - 1, f"%{i}{WHOLE}", f"%0{WHOLE}"))
        body.append("  " + copy(2 * i, f"%0{WHOLE}", f"%{i}{WHOLE}"))
        body.append("end")
    return program("\n".join([lines[0], *tensors, "core", *(f"  {line}" for line in body)]))


def placed_loops(count: int) -> Program:
    found = loops(count)
    own = {i: Address(0, KIB * (1 + i % 16)) for i in range(1, count + 1)}
    return replace(found, addresses={0: Address(0, 0), **own})


def test_a_tensor_from_outside_is_in_use_throughout_a_loop() -> None:
    text = [
        *(declare(i, f"t{i}", "128, 256") for i in range(3)),
        "core",
        "  " + op(0, "memset", dst=f"%0{WHOLE}", value="0.0"),
        "  loop 1 $0 = 0 to 4 by 1",
        "    " + copy(1, f"%1{WHOLE}", f"%0{WHOLE}"),
        "    " + op(2, "memset", dst=f"%2{WHOLE}", value="0.0"),
        "  end",
    ]
    made = make(program("\n".join(text)))
    (found,) = made.addresses(moved(made, t0=(0, 0), t1=(0, KIB), t2=(0, 0)))
    assert found.rule == "overlap"


@pytest.mark.parametrize("own", ["", " scope (1,)"])
def test_a_tensor_of_a_loop_is_in_use_between_its_touches(own: str) -> None:
    """Also for the first tensor: another tensor owns its bytes before and after it, in each
    iteration.
    """
    text = [
        *(declare(i, f"t{i}", "128, 256", more=own) for i in range(2)),
        "core",
        "  loop 1 $0 = 0 to 4 by 1",
        *("    " + op(i, "memset", dst=f"%{i}{WHOLE}", value="0.0") for i in range(2)),
        "  end",
    ]
    made = make(program("\n".join(text)))
    found = made.addresses(moved(made, t0=(0, 0), t1=(0, 0)))
    assert [one.rule for one in found] == ([] if own else ["overlap"])


Trace = Callable[[FrameType, str, object], Any]


def work(action: Callable[[], object]) -> int:
    """Count the lines of nkic/prove that `action` runs."""
    count = 0

    def trace(frame: FrameType, event: str, arg: object) -> Trace | None:
        nonlocal count
        if "prove" not in frame.f_code.co_filename:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
    return count


def proof(count: int) -> int:
    found = placed_loops(count)
    readings = read(found)
    return work(lambda: prove_addresses(found, readings))


def test_ten_times_the_device_loops_are_ten_times_the_work() -> None:
    few, many = proof(400), proof(4_000)
    assert many <= 10.2 * few


def test_the_loops_are_proven_and_broken() -> None:
    found = placed_loops(20)
    assert prove_addresses(found, read(found)) == []
    broken = replace(found, addresses={**found.addresses, 7: Address(0, 512)})
    assert {f.rule for f in prove_addresses(broken, read(broken))} == {"overlap"}
