"""What to say when a memory is full: who holds it, declared where, and by how much it lacks."""

from __future__ import annotations

from collections.abc import Sequence

from nkic.allocate.liveness import Lifetime
from nkic.allocate.place import DoesNotFit, Space
from nkic.base.diagnostics import Label, Reporter
from nkic.machine.memory import PSUM_BANK_BYTES, Buffer
from nkic.machine.targets import Target

SHOWN = 5  # holders listed, largest first


def report_overflow(
    failure: DoesNotFit,
    lives: Sequence[Lifetime],
    space: Space,
    target: Target,
    report: Reporter,
) -> None:
    """One error at the tensor that found no place, with the largest holders as labels."""
    tensor = failure.life.tensor
    holders = sorted(failure.live, key=lambda life: (-space.size(life.tensor), life.first))
    held = sum(space.size(life.tensor) for life in holders)
    size = space.size(tensor)
    slug, unit = ("psum-overflow", "bank") if space.buffer is Buffer.PSUM else ("sbuf-overflow", "")
    message = (
        f"no room for `{tensor.name}` in {space.buffer.value.upper()}: it takes "
        f"{_amount(size, unit)} per partition, {_amount(held, unit)} are in use, and "
        f"{target.name} has {_amount(space.capacity, unit)}"
    )
    labels = [
        Label(h.tensor.at.span, f"`{h.tensor.name}` holds {_amount(space.size(h.tensor), unit)}")
        for h in holders[:SHOWN]
    ]
    report.error(
        slug,
        message,
        tensor.at.span,
        labels=labels,
        notes=_more(holders, space, unit),
        help=_advice(size, held, space),
    )


def _amount(size: int, unit: str) -> str:
    if unit == "bank":
        banks = size // PSUM_BANK_BYTES
        return f"{banks} bank" if banks == 1 else f"{banks} banks"
    return f"{size:,} bytes"


def _more(holders: Sequence[Lifetime], space: Space, unit: str) -> list[str]:
    rest = holders[SHOWN:]
    if not rest:
        return []
    total = sum(space.size(life.tensor) for life in rest)
    return [f"{len(rest)} more tensors hold {_amount(total, unit)}"]


def _advice(size: int, held: int, space: Space) -> str:
    if size > space.capacity:
        return "split the tensor into tiles along its free dimension"
    if held + size <= space.capacity:
        return "the free bytes are in pieces: declare the larger tensors first"
    return "use smaller tiles, or let tensors end earlier: one is in use until its last access"
