"""`nki.compiler` of Beta 1: placement of tiles by the kernel.

Source: nki.compiler.sbuf, nki.compiler.psum and the direct allocation guide, SDK 2.21 to 2.26.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from math import prod
from typing import Any

from nkic.base.kernel_errors import KernelError
from nkic.language.hosted import plain
from nkic.language.texts import brief
from nkic.machine.memory import PSUM_BANK_BYTES, Buffer

Place = Callable[[tuple[int, ...], int, int], Any]


class Allocator:
    """The value of `buffer=`: a function from a block to its address, or None."""

    def __init__(self, buffer: Buffer, place: Place | None) -> None:
        self.buffer = buffer
        self._place = place

    def address(self, block: tuple[int, ...], partitions: int, size: int) -> Any:
        """Return (partition, byte) for a block of `partitions` partitions of `size` bytes."""
        if self._place is None:
            return None
        placed = self._place(block, partitions, size)
        numbers = [plain(n) for n in placed] if isinstance(placed, tuple | list) else []
        wanted = 3 if self.buffer is Buffer.PSUM else 2
        if len(numbers) != wanted or not all(isinstance(n, int) for n in numbers):
            words = "(bank, partition, byte)" if wanted == 3 else "(partition, byte)"
            text = f"an allocation function must return {words}, not {brief(placed)}"
            raise KernelError("bad-address", text)
        if wanted == 2:
            return tuple(numbers)
        bank, partition, byte = numbers
        return partition, bank * PSUM_BANK_BYTES + byte

    def __repr__(self) -> str:
        return f"<allocation in {self.buffer.value}>"


def _number(block: Sequence[int], counts: Sequence[int]) -> int:
    """Return the row-major number of a block in a grid of `counts`, modulo each count."""
    sizes = tuple(counts)
    return sum(
        at % size * prod(sizes[n + 1 :])
        for n, (at, size) in enumerate(zip(block, sizes, strict=False))
    )


class _Memory:
    """A memory: usable as `buffer=`, and a factory of allocators."""

    buffer: Buffer

    def alloc(self, func: Any) -> Allocator:
        """Place blocks by a function of block, partitions and bytes."""
        return Allocator(self.buffer, lambda block, p, f: func(idx=block, pdim_size=p, fdim_size=f))

    def auto_alloc(self) -> Allocator:
        """Leave the placement to the compiler."""
        return Allocator(self.buffer, None)


class Sbuf(_Memory):
    """`ncc.sbuf`."""

    buffer = Buffer.SBUF

    def mod_alloc(
        self,
        *,
        base_addr: int,
        base_partition: int = 0,
        num_par_tiles: Any = (),
        num_free_tiles: Any = (),
    ) -> Allocator:
        """Place blocks one after another from an address on, modulo the counts."""

        def place(block: tuple[int, ...], partitions: int, size: int) -> tuple[int, int]:
            first = base_partition + _number(block, num_par_tiles) * partitions
            return first, base_addr + _number(block, num_free_tiles) * size

        return Allocator(Buffer.SBUF, place)


class Psum(_Memory):
    """`ncc.psum`."""

    buffer = Buffer.PSUM

    def mod_alloc(
        self,
        *,
        base_bank: int,
        base_addr: int = 0,
        base_partition: int = 0,
        num_bank_tiles: Any = (),
        num_par_tiles: Any = (),
        num_free_tiles: Any = (),
    ) -> Allocator:
        """Place blocks one after another from a bank on, modulo the counts."""

        def place(block: tuple[int, ...], partitions: int, size: int) -> tuple[int, int, int]:
            bank = base_bank + _number(block, num_bank_tiles)
            first = base_partition + _number(block, num_par_tiles) * partitions
            return bank, first, base_addr + _number(block, num_free_tiles) * size

        return Allocator(Buffer.PSUM, place)


def allocation_scope() -> Nothing:
    """`nki.compiler.allocation_scope`: a block without effect in nkic."""
    return Nothing()


def multi_buffer(factor: int = 2) -> Nothing:
    """`nki.compiler.multi_buffer`: without effect, since nkic decides about multiple buffering."""
    return Nothing()


class Nothing(AbstractContextManager[None]):
    """A `with` block that affects only the vendor's compiler."""

    def __exit__(self, *error: object) -> None:
        return None


def _unchanged(func: Any = None) -> Any:
    return (lambda function: function) if func is None else func


def _enable_stack_allocator(func: Any = None, log_level: int = 50) -> Any:
    return _unchanged(func)


# Decorators of nki.compiler that affect only the vendor's compiler.
DECORATORS = {
    "enable_stack_allocator": _enable_stack_allocator,
    "force_auto_alloc": _unchanged,
    "skip_middle_end_transformations": _unchanged,
}
