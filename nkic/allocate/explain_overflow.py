"""The error for a full memory: the holders, their declarations, and the missing amount."""

from __future__ import annotations

from collections.abc import Sequence

from nkic.allocate.liveness import Lifetime
from nkic.allocate.place import DoesNotFit, Space
from nkic.base.diagnostics import Label, Reporter
from nkic.base.source import Span
from nkic.machine.memory import PSUM_BANK_BYTES, Buffer
from nkic.machine.targets import Target

SHOWN = 5  # source locations of holders that are listed, largest holder first


def report_overflow(failure: DoesNotFit, space: Space, target: Target, report: Reporter) -> None:
    """Report one error at the tensor that does not fit, with labels at the largest holders."""
    tensor = failure.life.tensor
    holders = sorted(failure.live, key=lambda life: (-space.size(life.tensor), life.first))
    used = sum(space.size(life.tensor) for life in holders)
    size = space.size(tensor)
    slug, unit = ("psum-overflow", "bank") if space.buffer is Buffer.PSUM else ("sbuf-overflow", "")
    message = (
        f"no room for `{tensor.name}` in {space.buffer.value.upper()}: it takes "
        f"{_amount(size, unit)} per partition, {_amount(used, unit)} are in use, and "
        f"{target.name} has {_amount(space.capacity, unit)}"
    )
    groups = _by_place(holders)
    report.error(
        slug,
        message,
        tensor.at.primary,
        labels=[
            *(_label(place, group, space, unit) for place, group in groups[:SHOWN]),
            *(Label(span, "called from here") for span in tensor.at.user_frames()[1:]),
        ],
        notes=_more(groups[SHOWN:], space, unit),
        help=_advice(size, used, space),
    )


_Group = tuple[Span, list[Lifetime]]


def _by_place(holders: Sequence[Lifetime]) -> list[_Group]:
    """Group the holders by their declaration, in the order of each group's largest holder."""
    groups: dict[Span, list[Lifetime]] = {}
    for life in holders:
        groups.setdefault(life.tensor.at.primary, []).append(life)
    return list(groups.items())


def _label(span: Span, group: list[Lifetime], space: Space, unit: str) -> Label:
    names = list(dict.fromkeys(f"`{life.tensor.name}`" for life in group))
    amount = _amount(sum(space.size(life.tensor) for life in group), unit)
    if len(group) == 1:
        return Label(span, f"{names[0]} holds {amount}")
    which = f" {names[0]}" if len(names) == 1 else ""
    return Label(span, f"{len(group)} tensors{which} from here hold {amount}")


def _amount(size: int, unit: str) -> str:
    if unit == "bank":
        banks = size // PSUM_BANK_BYTES
        return f"{banks} bank" if banks == 1 else f"{banks} banks"
    return f"{size:,} bytes"


def _more(groups: Sequence[_Group], space: Space, unit: str) -> list[str]:
    lives = [life for _, group in groups for life in group]
    if not lives:
        return []
    total = sum(space.size(life.tensor) for life in lives)
    return [f"{len(lives)} more tensors hold {_amount(total, unit)}"]


def _advice(size: int, used: int, space: Space) -> str:
    if size > space.capacity:
        return "split the tensor into tiles along its free dimension"
    if used + size <= space.capacity:
        return "the free bytes are fragmented: declare the larger tensors first"
    return "use smaller tiles, or end live ranges earlier: a tensor is live until its last access"
