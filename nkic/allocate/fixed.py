"""Addresses that the kernel requested: inside the memory and not in use by another tensor."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from nkic.allocate.liveness import Lifetime
from nkic.allocate.place import Space
from nkic.base.diagnostics import Label, Reporter
from nkic.ir.tensors import Tensor
from nkic.machine.memory import PARTITIONS, Address, Buffer
from nkic.machine.targets import Target

BLOCK = 1024  # bytes per partition


def check_fixed(lives: Sequence[Lifetime], space: Space, target: Target, report: Reporter) -> bool:
    """Report every impossible `address=`, and return whether there is none."""
    fixed = [life for life in lives if life.tensor.fixed is not None]
    inside = [_inside(life.tensor, space, target, report) for life in fixed]
    apart = [_apart(first, second, report) for first, second in _neighbours(fixed)]
    return all(inside) and all(apart)


def _neighbours(fixed: Sequence[Lifetime]) -> Iterator[tuple[Lifetime, Lifetime]]:
    """Yield each pair of tensors with overlapping live ranges and bytes in one block once.

    `fixed` is in order of first access. Live tensors are indexed by block, so the work grows with
    the number of tensors rather than of pairs.
    """
    blocks: dict[int, list[Lifetime]] = defaultdict(list)
    for life in fixed:
        neighbours: dict[int, Lifetime] = {}
        for block in _blocks(life.tensor):
            live = [neighbour for neighbour in blocks[block] if neighbour.last >= life.first]
            neighbours.update((neighbour.tensor.number, neighbour) for neighbour in live)
            blocks[block] = [*live, life]
        for neighbour in neighbours.values():
            yield neighbour, life


def _blocks(tensor: Tensor) -> range:
    first = _address(tensor).byte
    return range(first // BLOCK, -(-(first + tensor.bytes) // BLOCK))


def _address(tensor: Tensor) -> Address:
    return tensor.fixed or Address(0, 0)


def _inside(tensor: Tensor, space: Space, target: Target, report: Reporter) -> bool:
    partition, byte = _address(tensor)
    end = byte + tensor.bytes
    name = space.buffer.value.upper()
    if byte < 0 or end > space.capacity:
        report.error(
            "fixed-address",
            f"`{tensor.name}` at address ({partition}, {byte}) ends at byte {end:,} of each "
            f"partition; {name} of {target.name} has {space.capacity:,} usable bytes",
            tensor.at.primary,
            help=f"choose a start of at most {space.capacity - tensor.bytes:,}, or leave out "
            "`address=` and let nkic choose",
        )
        return False
    if partition < 0 or partition + tensor.partitions > PARTITIONS:
        report.error(
            "fixed-address",
            f"`{tensor.name}` at address ({partition}, {byte}) ends at partition "
            f"{partition + tensor.partitions}; {name} has {PARTITIONS}",
            tensor.at.primary,
            help=f"choose a start partition of at most {PARTITIONS - tensor.partitions}",
        )
        return False
    if byte % space.align and space.buffer is Buffer.PSUM:
        report.error(
            "fixed-address",
            f"`{tensor.name}` at address ({partition}, {byte}) starts inside a bank of PSUM; "
            f"an allocation starts at a bank, which is at a multiple of {space.align:,} bytes",
            tensor.at.primary,
            help=f"write address=({partition}, {byte // space.align * space.align}), and take the "
            "part that you need with a slice",
        )
        return False
    return True


def _apart(first: Lifetime, second: Lifetime, report: Reporter) -> bool:
    a, b = first.tensor, second.tensor
    (pa, ba), (pb, bb) = _address(a), _address(b)
    bytes_meet = ba < bb + b.bytes and bb < ba + a.bytes
    partitions_meet = pa < pb + b.partitions and pb < pa + a.partitions
    if not (bytes_meet and partitions_meet):
        return True
    report.error(
        "address-overlap",
        f"`{b.name}` at bytes {bb:,} to {bb + b.bytes:,} overlaps `{a.name}` at bytes "
        f"{ba:,} to {ba + a.bytes:,} while both are in use",
        b.at.primary,
        labels=[Label(a.at.primary, f"`{a.name}` is placed here")],
        help=f"move `{b.name}` to byte {ba + a.bytes:,}, or leave out `address=`",
    )
    return False
