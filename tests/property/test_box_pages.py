"""Record boxes of some thousand patterns, of depend and of the proofs.

They cover the accessed bytes, and their sizes are in tests/data/boxes.txt.
"""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from random import Random

import pytest

from nkic.base.source import NOWHERE, CallChain
from nkic.machine.dtypes import DTYPES
from nkic.machine.operands import Register
from nkic.machine.targets import Buffer
from nkic.program.overlap import axes_of, box
from nkic.program.program import AccessPattern, Dynamic, Tensor
from nkic.prove.effects import WHOLE, area_of
from nkic.prove.effects import axes_of as axes_of_proofs
from tests.harness.bless import compare_file, short_sum
from tests.pages.patterns import Bytes, drawn, touched

PAGE = Path(__file__).parents[1] / "data/boxes.txt"
SHAPES = ((), (5,), (12,), (3, 4), (4, 1), (2, 3, 4), (3, 2, 2), (2, 1, 6), (2, 2, 2, 3))
TYPES = (("float32", "float32"), ("uint8", "uint8"), ("float32", "uint8"), ("uint8", "float16"))
PATTERNS = 60  # of each shape, type and memory


def tensors() -> Iterator[tuple[Tensor, str]]:
    for on_chip, free, (own, dtype) in product((False, True), SHAPES, TYPES):
        shape, buffer = ((8, *free), Buffer.SBUF) if on_chip else (free, Buffer.HBM)
        tensor = Tensor(0, "t", DTYPES[own], shape, buffer, CallChain(NOWHERE))
        if tensor.bytes % DTYPES[dtype].size == 0:
            yield tensor, dtype


def covered(area: tuple[tuple[int, int], ...], axes: tuple[int, ...]) -> Bytes:
    """Return the covered bytes of one partition."""
    found = {0}
    for (low, high), length in zip(area, axes, strict=True):
        found = {byte * length + at for byte in found for at in range(low, high)}
    return found


def of_axes(area: tuple[tuple[int, int], ...], pattern: AccessPattern) -> Bytes:
    """Return the bytes that a box covers; its partitions are those of the pattern."""
    tensor = pattern.tensor
    if area == WHOLE:
        return set(range(tensor.bytes))
    if tensor.on_chip:
        assert area[0] == (pattern.start, pattern.start + pattern.partitions)
    return covered(area[1:] if tensor.on_chip else area, axes_of(tensor))


def line(tensor: Tensor, dtype: str) -> str:
    """Return the bytes that the boxes of a tensor's patterns cover, and a checksum of the boxes."""
    rng, exact, depends, proves, all_boxes = Random(tensor.bytes), 0, 0, 0, []
    for _ in range(PATTERNS):
        pattern = drawn(tensor, dtype, rng)
        mine, theirs = box(pattern), area_of(pattern)
        bytes_of = touched(pattern.offset, pattern.dims, pattern.dtype.size)
        first, second = of_axes(mine, pattern), of_axes(theirs, pattern)
        assert bytes_of <= first and bytes_of <= second, pattern
        assert max(first | second) < tensor.bytes, pattern
        exact, depends, proves = exact + len(bytes_of), depends + len(first), proves + len(second)
        all_boxes.append((mine, theirs))
    shape = ", ".join(map(str, tensor.shape))
    return (
        f"{tensor.buffer.value} {tensor.dtype.name}[{shape}] as {dtype}: {exact} bytes, "
        f"depend {depends}, proofs {proves}, {short_sum(repr(all_boxes))}"
    )


def test_boxes_are_as_large_as_they_were() -> None:
    compare_file(PAGE, "".join(f"{line(*one)}\n" for one in tensors()))


@pytest.mark.parametrize("on_chip", [False, True])
@pytest.mark.parametrize("free", [(), (5,), (3, 4)])
def test_what_is_known_at_run_time_only_may_be_anywhere(
    free: tuple[int, ...], on_chip: bool
) -> None:
    shape, buffer = ((8, *free), Buffer.SBUF) if on_chip else (free, Buffer.HBM)
    tensor = Tensor(0, "t", DTYPES["float32"], shape, buffer, CallChain(NOWHERE))
    dynamic: Dynamic = Dynamic("scalar", Register(0), 1, 0)
    pattern = AccessPattern(tensor, DTYPES["float32"], 2, 1, 0, ((1, 1),), dynamic)
    axes = ((*free[:-1], free[-1] * 4)) if free else (4,)
    assert axes_of(tensor) == axes_of_proofs(tensor) == axes
    whole = tuple((0, length) for length in axes)
    assert box(pattern) == (((0, 8), *whole) if on_chip else whole)
    assert area_of(pattern) == WHOLE
