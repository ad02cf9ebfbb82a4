"""Spills of tiles to HBM if a kernel of Beta 1 exceeds the capacity of SBUF.

Beta 1's compiler inserts them: "when the cumulative size of live data overflows the capacity of any
on-chip memory, the Neuron compiler inserts the necessary spills or refills" (programming model,
memory hierarchy). Later versions leave this to the kernel. The choice of tiles is not documented;
here it is the one whose next use is farthest.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from nkic.base.source import Span
from nkic.ir.program import Instruction, Item
from nkic.ir.tensors import Tensor, View
from nkic.language.beta1.emit import emit
from nkic.language.beta1.recorded import bodies
from nkic.language.beta1.tiles import Tile
from nkic.language.tensors.views import whole
from nkic.language.trace import Trace
from nkic.machine.memory import Buffer

# The fraction of SBUF to fill, and the number of largest tiles to leave free besides: tiles of
# different sizes leave gaps.
FILL_FRACTION, FREE_TILES = 0.85, 2
_MEMORIES = (Buffer.SBUF,)


def fit(trace: Trace, at: Span) -> None:
    """Insert spills and reloads into the bodies of a trace that exceed SBUF."""
    size = trace.target.sbuf_usable
    for body in trace.bodies:
        plain = [item for item in body if isinstance(item, Instruction)]
        if len(plain) < len(body) or bodies.has_fixed(plain, _MEMORIES) or _peak(plain) <= size:
            continue
        largest = max(t.bytes for t in bodies.uses(plain, _MEMORIES))
        spiller = _Spiller(trace, plain, int(FILL_FRACTION * size) - FREE_TILES * largest)
        body[:] = bodies.renumbered(spiller.body(), spiller.added)
        if spiller.stored:
            trace.report.warning(
                "sbuf-overflow",
                f"SBUF has no room for all tiles that are in use at once: tiles are "
                f"stored to HBM {spiller.stored} times and loaded again {spiller.loaded} times",
                at,
                help="use smaller blocks, or order the loops so that fewer tiles are in use at "
                "once",
            )


def _peak(body: Sequence[Instruction]) -> int:
    """Return the peak usage in bytes per partition, in program order."""
    change = [0] * (len(body) + 1)
    for tensor, indices in bodies.uses(body, _MEMORIES).items():
        change[indices[0]] += tensor.bytes
        change[indices[-1] + 1] -= tensor.bytes
    return max(accumulate(change))


@dataclass
class _Location:
    """The locations of a tile: `on_chip` in SBUF, `spilled` in HBM, or both."""

    on_chip: Tensor | None = None
    spilled: Tensor | None = None
    changed: bool = False


class _Spiller:
    """A rewriter of a body that inserts spills and reloads."""

    def __init__(self, trace: Trace, body: Sequence[Instruction], capacity: int) -> None:
        self.trace = trace
        self.items = body
        self.capacity = capacity
        self.stored = self.loaded = 0
        self.added: set[int] = set()
        self.uses = bodies.uses(body, _MEMORIES)
        self.locations: dict[Tensor, _Location] = {}
        self.next_uses: dict[Tensor, int] = {}  # in SBUF, with the index of the next use
        self.used = 0

    def body(self) -> list[Item]:
        """Return the body with the transfers inserted."""
        trace, before = self.trace, self.trace.body
        rewritten: list[Item] = []
        trace.body = rewritten
        for index, item in enumerate(self.items):
            needed = list(dict.fromkeys(bodies.tensors(item.operands, _MEMORIES)))
            self._make_room(needed, item)
            for tensor in needed:
                self._reload(tensor, item)
            locations = {
                t: on_chip for t in needed if (on_chip := self.locations[t].on_chip) is not None
            }
            rewritten.append(bodies.substituted(item, locations))
            self._update(index, item, needed)
        trace.body = before
        return rewritten

    def _make_room(self, needed: Sequence[Tensor], item: Instruction) -> None:
        missing = sum(t.bytes for t in needed if t not in self.next_uses)
        while self.used + missing > self.capacity:
            others = [t for t in self.next_uses if t not in needed]
            if not others:
                return
            self._evict(max(others, key=self.next_uses.__getitem__), item)

    def _evict(self, tensor: Tensor, item: Instruction) -> None:
        location = self.locations[tensor]
        assert location.on_chip is not None
        if location.changed:
            if location.spilled is None:
                location.spilled = self._declared(tensor, Buffer.HBM, item)
            self._transfer(location.spilled, location.on_chip, item)
            self.stored += 1
        location.on_chip, location.changed = None, False
        self.used -= tensor.bytes
        del self.next_uses[tensor]

    def _reload(self, tensor: Tensor, item: Instruction) -> None:
        if tensor in self.next_uses:
            return
        location = self.locations.setdefault(tensor, _Location())
        self.used += tensor.bytes
        self.next_uses[tensor] = 0
        if location.spilled is None:
            location.on_chip = tensor
            return
        location.on_chip = self._declared(tensor, Buffer.SBUF, item)
        self._transfer(location.on_chip, location.spilled, item)
        self.loaded += 1

    def _declared(self, like: Tensor, buffer: Buffer, item: Instruction) -> Tensor:
        return self.trace.declare(like.shape, like.dtype, buffer, like.name, item.at)

    def _transfer(self, dst: Tensor, src: Tensor, item: Instruction) -> None:
        emit("dma_copy", Tile(whole(dst)), src=Tile(whole(src)))
        self.added.add(bodies.attribute_last(self.trace, item))

    def _update(self, index: int, item: Instruction, needed: Sequence[Tensor]) -> None:
        for operand, spec in zip(item.operands, item.row.operands, strict=True):
            if (
                isinstance(operand, View)
                and spec.access.writes
                and operand.tensor in self.locations
            ):
                self.locations[operand.tensor].changed = True
        for tensor in needed:
            uses = self.uses[tensor]
            at = bisect_right(uses, index)
            if at < len(uses):
                self.next_uses[tensor] = uses[at]
            else:
                self.used -= tensor.bytes
                del self.next_uses[tensor]
