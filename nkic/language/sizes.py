"""Products of sizes that kernels give."""

from __future__ import annotations

from collections.abc import Iterable

from nkic.base.kernel_errors import KernelError

_MOST_BITS = 1 << 13  # as many as an integer of a kernel may have


def volume(sizes: Iterable[int]) -> int:
    """Return the product of sizes. Raises `KernelError` before it takes long to compute."""
    result = 1
    for size in sizes:
        result *= size
        if result.bit_length() > _MOST_BITS:
            raise KernelError(
                "too-large",
                f"the product of these sizes has more than {_MOST_BITS:,} bits",
                help="give a shape that fits in memory",
            )
    return result
