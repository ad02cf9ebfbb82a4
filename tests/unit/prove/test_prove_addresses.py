"""Test the proof of an allocation: the faults that it must find, and its linear time."""

import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from random import Random
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nkic.base.source import NOWHERE, CallChain
from nkic.compiler.tight import movable
from nkic.machine.dtypes import DTYPES
from nkic.machine.operands import Register
from nkic.machine.targets import Address, Buffer
from nkic.program.program import AccessPattern, Dynamic, Program, Tensor
from nkic.prove import effects, prove_addresses, read
from nkic.prove.addresses import _same
from nkic.prove.effects import Place, Places
from tests.faults import inject
from tests.harness.proofs import Made, edited, make, without_waits
from tests.programs import copy, declare, op, program

WHOLE = "[0+128, 0; 1x256]"
KIB = 1024


def chain(buffer: Buffer = Buffer.SBUF, count: int = 3) -> Made:
    """%0 → %1 → %2: each is live while it is written and while it is read."""
    tensors = [declare(i, f"t{i}", "128, 256", buffer) for i in range(count)]
    body = [op(0, "memset", dst=f"%0{WHOLE}", value="0.0")]
    body += [copy(i, f"%{i}{WHOLE}", f"%{i - 1}{WHOLE}") for i in range(1, count)]
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


@pytest.mark.parametrize("offset", [-1024, 1024])
def test_neighbours_may_touch_where_a_later_tensor_takes_bytes_of_both(offset: int) -> None:
    made, low = chain(count=4), 4 * KIB + min(0, offset)
    later = {"t2": (0, 8 * KIB), "t3": (0, low + 512)}
    assert made.addresses(moved(made, t0=(0, 4 * KIB), t1=(0, 4 * KIB + offset), **later)) == []


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


# ------------------------------------------------------------------------------------------------
# Test the places of tensors, and that those whose tensors take turns are proven like all others.
#
# The owners of all bytes can be followed one by one, in any program. Both ways must agree.

BYTE = DTYPES["uint8"]
AT = CallChain(NOWHERE)
TILE = "[0+128, 0; 1x512]"


def placed(drawn: list[tuple[Buffer, int, int, int, int]]) -> Places:
    """Return the places of tensors at (memory, partition, byte, partitions, bytes)."""
    tensors = {
        n: Tensor(n, "t", BYTE, (rows, size), buffer, AT)
        for n, (buffer, _, _, rows, size) in enumerate(drawn)
    }
    return Places(tensors, {n: Address(p, byte) for n, (_, p, byte, _, _) in enumerate(drawn)})


def is_common(one: Place, other: Place) -> bool:
    """Return whether two places share a byte, by the definition."""
    memory, row, byte, rows, size = one
    memory2, row2, byte2, rows2, size2 = other
    columns = byte < byte2 + size2 and byte2 < byte + size
    return memory == memory2 and row < row2 + rows2 and row2 < row + rows and columns


SPOTS = st.tuples(
    st.sampled_from((Buffer.SBUF, Buffer.PSUM)),
    st.integers(0, 4),
    st.integers(0, 12),
    st.integers(1, 3),
    st.integers(1, 6),
)


@given(st.lists(SPOTS, max_size=8))
@settings(max_examples=400)
def test_the_places_that_share_bytes_are_known(drawn: list[Any]) -> None:
    found = placed(drawn)
    everywhere = list(found.tenants)
    common = {a for a, b in product(everywhere, everywhere) if a != b and is_common(a, b)}
    assert found.shared == common
    apart = [number for tenants in found.exclusive() for number in tenants]
    together = [storage.key for storage in found.storages(found.shared)]
    assert sorted(apart + together) == list(range(len(drawn)))


def in_turn(seed: int) -> Program:
    """Return a program whose tiles take turns in a few places."""
    rng, count = Random(seed), 24
    tensors = [declare(i, f"t{i}", "128, 8192") for i in range(count)]
    body = [op(0, "memset", dst="%0[0+128, 0; 1x8192]", value="0.0")]
    for i in range(1, count):
        source, engine = rng.randrange(max(0, i - 2), i), rng.choice(("vector", "gpsimd", "scalar"))
        dst, src = f"%{i}[0+128, 0; 1x8192]", f"%{source}[0+128, 0; 1x8192]"
        body.append(copy(i, dst, src, engine))
    return program("\n".join([*tensors, "core", *(f"  {line}" for line in body)]))


@pytest.mark.parametrize("seed", range(4))
def test_turns_are_proven_as_bytes_are(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make(in_turn(seed))
    found = Places({t.number: t for t in made.placed.tensors}, made.placed.addresses)
    assert any(len(tenants) > 1 for tenants in found.exclusive())
    broken = [fault.make() for fault in inject.of_schedule(made.schedule)]
    rules = [made.rules(one) for one in broken]
    assert {"bytes"} < {rule for found in rules for rule in found}
    monkeypatch.setattr(effects, "_shared", lambda all_places, memory: list(all_places))
    assert [bool(made.rules(one)) for one in broken] == [*map(bool, rules)]


def test_a_tensor_that_is_read_first_waits_for_the_former_owner() -> None:
    text = [
        *(f"%{i} {name}: float32[128, 512] sbuf fixed (0, 0)" for i, name in ((1, "a"), (2, "b"))),
        *(declare(i, f"t{i}", "128, 512") for i in (3, 4)),
        "core",
        "  " + op(0, "memset", dst=f"%1{TILE}", value="0.0"),
        "  " + copy(1, f"%3{TILE}", f"%1{TILE}"),
        "  " + copy(2, f"%4{TILE}", f"%2{TILE}", "gpsimd"),
    ]
    made = make(program("\n".join(text)))
    assert made.order() == []
    (finding,) = made.order(edited(made.schedule, "gpsimd", without_waits(0)))
    assert finding.rule == "bytes" and "takes over bytes of `a`" in finding.what


# ------------------------------------------------------------------------------------------------
# Test which operands are equal except for their tensors, for the proof of spilling.

ONE, OTHER = (Tensor(n, "t", DTYPES["float32"], (8, 16), Buffer.SBUF, AT) for n in range(2))
WORD = AccessPattern(ONE, DTYPES["float32"], 0, 1, 0, ((1, 1),))


def patterns(tensor: Tensor) -> list[AccessPattern]:
    """Return patterns that all differ in more than the tensor; by a register, by a tile, and by
    none.
    """
    plain = AccessPattern(tensor, DTYPES["float32"], 0, 8, 0, ((1, 8),))
    offsets = [
        Dynamic("scalar", Register(0), 1, 16),
        Dynamic("scalar", Register(1), 1, 16),
        Dynamic("scalar", Register(0), 2, 16),
        Dynamic("scalar", WORD, 1, 16),
        Dynamic("scalar", WORD._replace(offset=1), 1, 16),
        Dynamic("vector", WORD, 1, 16),
    ]
    changes: list[dict[str, Any]] = [
        {"dtype": DTYPES["int32"]}, {"start": 1}, {"partitions": 7}, {"offset": 1},
        {"dims": ((1, 7),)}, *[{"dynamic": offset} for offset in offsets],
    ]  # fmt: skip
    return [plain, *(plain._replace(**change) for change in changes)]


def test_patterns_are_the_same_where_all_but_the_tensor_is() -> None:
    for (i, one), (j, other) in product(enumerate(patterns(ONE)), enumerate(patterns(OTHER))):
        assert _same(one, other) == (i == j), (one, other)


def test_numbers_are_the_same_where_they_are_written_alike() -> None:
    values = [0, 0.0, -0.0, 1, True, None, Register(0), Register(1), WORD]
    for (i, one), (j, other) in product(enumerate(values), repeat=2):
        assert _same(one, other) == (i == j), (one, other)
