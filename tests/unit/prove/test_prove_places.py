"""Test the places of tensors, and that those whose tensors take turns are proven like all others.

The owners of all bytes can be followed one by one, in any program. Both ways must agree.
"""

from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nkic.base.source import NOWHERE, CallChain
from nkic.machine.dtypes import DTYPES
from nkic.machine.targets import Address, Buffer
from nkic.program.program import Program, Tensor
from nkic.prove import effects
from nkic.prove.effects import Place, Places
from tests.faults import inject
from tests.harness.proofs import edited, make, without_waits
from tests.programs import copy, declare, op, program

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
