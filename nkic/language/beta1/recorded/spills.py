"""Tiles that wait in HBM where a kernel of Beta 1 uses more of SBUF than there is.

Beta 1's compiler does so: "when the cumulative size of live data overflows the capacity of any
on-chip memory, the Neuron compiler inserts the necessary spills or refills" (programming model,
memory hierarchy). Later versions leave it to the kernel. Which tiles go is not documented; here
it is the one that is used again last.
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

# How much of SBUF is filled, so that all of it can be laid out: tiles of other sizes leave gaps.
ROOM, GAPS = 0.85, 2
_MEMORIES = (Buffer.SBUF,)


def fit(trace: Trace, at: Span) -> None:
    """Adds what brings the bodies of a trace into SBUF, where they are too large for it."""
    size = trace.target.sbuf_usable
    for body in trace.bodies:
        plain = [item for item in body if isinstance(item, Instruction)]
        if len(plain) < len(body) or bodies.has_fixed(plain, _MEMORIES) or _peak(plain) <= size:
            continue
        largest = max(t.bytes for t in bodies.uses(plain, _MEMORIES))
        spilling = _Spilling(trace, plain, int(ROOM * size) - GAPS * largest)
        body[:] = bodies.renumbered(spilling.body(), spilling.added)
        if spilling.stored:
            trace.report.warning(
                "sbuf-overflow",
                f"SBUF has no room for all tiles that are in use at once: tiles are "
                f"stored to HBM {spilling.stored} times and loaded again {spilling.loaded} times",
                at,
                help="use smaller blocks, or order the loops so that fewer tiles are in use at "
                "once",
            )


def _peak(body: Sequence[Instruction]) -> int:
    """The most bytes of a partition in use at once, in the order of the program."""
    change = [0] * (len(body) + 1)
    for tensor, indices in bodies.uses(body, _MEMORIES).items():
        change[indices[0]] += tensor.bytes
        change[indices[-1] + 1] -= tensor.bytes
    return max(accumulate(change))


@dataclass
class _Home:
    """Where a tile is: in SBUF as `now`, in HBM as `kept`, or both."""

    now: Tensor | None = None
    kept: Tensor | None = None
    changed: bool = False


class _Spilling:
    """The walk through a body that puts tiles away and back."""

    def __init__(self, trace: Trace, body: Sequence[Instruction], room: int) -> None:
        self.trace = trace
        self.items = body
        self.room = room
        self.stored = self.loaded = 0
        self.added: set[int] = set()
        self.uses = bodies.uses(body, _MEMORIES)
        self.homes: dict[Tensor, _Home] = {}
        self.inside: dict[Tensor, int] = {}  # in SBUF, with the place of their next use
        self.used = 0

    def body(self) -> list[Item]:
        """The body with transfers in between."""
        trace, before = self.trace, self.trace.body
        made: list[Item] = []
        trace.body = made
        for place, item in enumerate(self.items):
            needed = list(dict.fromkeys(bodies.tensors(item.operands, _MEMORIES)))
            self._make_room(needed, item)
            for tensor in needed:
                self._bring(tensor, item)
            homes = {t: home.now for t, home in self.homes.items() if home.now is not None}
            made.append(bodies.substituted(item, homes))
            self._after(place, item, needed)
        trace.body = before
        return made

    def _make_room(self, needed: Sequence[Tensor], item: Instruction) -> None:
        missing = sum(t.bytes for t in needed if t not in self.inside)
        while self.used + missing > self.room:
            others = [t for t in self.inside if t not in needed]
            if not others:
                return
            self._put_away(max(others, key=self.inside.__getitem__), item)

    def _put_away(self, tensor: Tensor, item: Instruction) -> None:
        home = self.homes[tensor]
        assert home.now is not None
        if home.changed:
            if home.kept is None:
                home.kept = self._declared(tensor, Buffer.HBM, item)
            self._transfer(home.kept, home.now, item)
            self.stored += 1
        home.now, home.changed = None, False
        self.used -= tensor.bytes
        del self.inside[tensor]

    def _bring(self, tensor: Tensor, item: Instruction) -> None:
        if tensor in self.inside:
            return
        home = self.homes.setdefault(tensor, _Home())
        self.used += tensor.bytes
        self.inside[tensor] = 0
        if home.kept is None:
            home.now = tensor
            return
        home.now = self._declared(tensor, Buffer.SBUF, item)
        self._transfer(home.now, home.kept, item)
        self.loaded += 1

    def _declared(self, like: Tensor, buffer: Buffer, item: Instruction) -> Tensor:
        return self.trace.declare(like.shape, like.dtype, buffer, like.name, item.at)

    def _transfer(self, dst: Tensor, src: Tensor, item: Instruction) -> None:
        emit("dma_copy", Tile(whole(dst)), src=Tile(whole(src)))
        self.added.add(bodies.attribute_last(self.trace, item))

    def _after(self, place: int, item: Instruction, needed: Sequence[Tensor]) -> None:
        for operand, spec in zip(item.operands, item.row.operands, strict=True):
            if isinstance(operand, View) and spec.access.writes and operand.tensor in self.homes:
                self.homes[operand.tensor].changed = True
        for tensor in needed:
            uses = self.uses[tensor]
            at = bisect_right(uses, place)
            if at < len(uses):
                self.inside[tensor] = uses[at]
            else:
                self.used -= tensor.bytes
                del self.inside[tensor]
