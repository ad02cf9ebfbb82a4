"""`nki.compiler` of Beta 1: where a kernel places its tiles.

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
    """What stands after `buffer=`: a function from a block to its address, or None."""

    def __init__(self, buffer: Buffer, place: Place | None) -> None:
        self.buffer = buffer
        self._place = place

    def address(self, block: tuple[int, ...], partitions: int, size: int) -> Any:
        """(partition, byte) of a block of so many partitions and bytes in each."""
        if self._place is None:
            return None
        found = self._place(block, partitions, size)
        numbers = [plain(n) for n in found] if isinstance(found, tuple | list) else []
        wanted = 3 if self.buffer is Buffer.PSUM else 2
        if len(numbers) != wanted or not all(isinstance(n, int) for n in numbers):
            words = "(bank, partition, byte)" if wanted == 3 else "(partition, byte)"
            text = f"an allocation function must return {words}, not {brief(found)}"
            raise KernelError("bad-address", text)
        if wanted == 2:
            return tuple(numbers)
        bank, partition, byte = numbers
        return partition, bank * PSUM_BANK_BYTES + byte

    def __repr__(self) -> str:
        return f"<allocation in {self.buffer.value}>"


def _number(block: Sequence[int], counts: Sequence[int]) -> int:
    """The place of a block among so many, row-major, counting round."""
    sizes = tuple(counts)
    return sum(
        at % size * prod(sizes[n + 1 :])
        for n, (at, size) in enumerate(zip(block, sizes, strict=False))
    )


class Sbuf:
    """`ncc.sbuf`: `buffer=ncc.sbuf`, or what its functions give."""

    buffer = Buffer.SBUF

    def alloc(self, func: Any) -> Allocator:
        """By a function of block, partitions and bytes."""
        return Allocator(Buffer.SBUF, lambda block, p, f: func(idx=block, pdim_size=p, fdim_size=f))

    def mod_alloc(
        self,
        *,
        base_addr: int,
        base_partition: int = 0,
        num_par_tiles: Any = (),
        num_free_tiles: Any = (),
    ) -> Allocator:
        """One after the other from an address on, counting round."""

        def place(block: tuple[int, ...], partitions: int, size: int) -> tuple[int, int]:
            first = base_partition + _number(block, num_par_tiles) * partitions
            return first, base_addr + _number(block, num_free_tiles) * size

        return Allocator(Buffer.SBUF, place)

    def auto_alloc(self) -> Allocator:
        """The compiler chooses."""
        return Allocator(Buffer.SBUF, None)


class Psum:
    """`ncc.psum`."""

    buffer = Buffer.PSUM

    def alloc(self, func: Any) -> Allocator:
        """By a function of block, partitions and bytes."""
        return Allocator(Buffer.PSUM, lambda block, p, f: func(idx=block, pdim_size=p, fdim_size=f))

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
        """One after the other from a bank on, counting round."""

        def place(block: tuple[int, ...], partitions: int, size: int) -> tuple[int, int, int]:
            bank = base_bank + _number(block, num_bank_tiles)
            first = base_partition + _number(block, num_par_tiles) * partitions
            return bank, first, base_addr + _number(block, num_free_tiles) * size

        return Allocator(Buffer.PSUM, place)

    def auto_alloc(self) -> Allocator:
        """The compiler chooses."""
        return Allocator(Buffer.PSUM, None)


def allocation_scope() -> Nothing:
    """`nki.compiler.allocation_scope`: a block that says nothing to nkic."""
    return Nothing()


def multi_buffer(factor: int = 2) -> Nothing:
    """`nki.compiler.multi_buffer`: nkic decides itself how many buffers a tile has in turn."""
    return Nothing()


class Nothing(AbstractContextManager[None]):
    """`with` blocks that steer the vendor's compiler alone."""

    def __exit__(self, *error: object) -> None:
        return None


DECORATORS = ("enable_stack_allocator", "force_auto_alloc", "skip_middle_end_transformations")


def enable_stack_allocator(func: Any = None, log_level: int = 50) -> Any:
    """`nki.compiler.enable_stack_allocator`, which steers the vendor's compiler alone."""
    return _unchanged(func)


def force_auto_alloc(func: Any = None) -> Any:
    """`nki.compiler.force_auto_alloc`, which steers the vendor's compiler alone."""
    return _unchanged(func)


def skip_middle_end_transformations(func: Any = None) -> Any:
    """`nki.compiler.skip_middle_end_transformations`, which steers the vendor's compiler alone."""
    return _unchanged(func)


def _unchanged(func: Any) -> Any:
    return (lambda function: function) if func is None else func
