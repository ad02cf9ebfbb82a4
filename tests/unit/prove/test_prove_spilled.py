"""Test which operands are equal except for their tensors, for the proof of spilling."""

from itertools import product
from typing import Any

from nkic.base.source import NOWHERE, CallChain
from nkic.machine.dtypes import DTYPES
from nkic.machine.operands import Register
from nkic.machine.targets import Buffer
from nkic.program.program import AccessPattern, Dynamic, Tensor
from nkic.prove.addresses import _same

AT = CallChain(NOWHERE)
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
