"""Loop-carried dependences between the iterations of a loop of Beta 1.

Iterations of an affine_range must be independent: if one reads what an earlier one wrote, the order
of the two is not defined. Associative reductions into one place are exempt
(nki.language.affine_range and sequential_range, SDK 2.20 to 2.26). And because a body is traced
once, a tile made in one iteration never reaches the next through a Python variable.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, NoReturn

from nkic.base.device import DeviceBound, KernelError
from nkic.base.diagnostics import Label, Level
from nkic.base.source import Span
from nkic.language.beta1.emit import Splice, binders, operand, state
from nkic.language.beta1.moving import tile
from nkic.language.hosted import brief, surface
from nkic.language.loops import DynamicRange
from nkic.language.registers import VirtualRegister
from nkic.language.trace import Trace, active, complain, here
from nkic.language.views import whole
from nkic.machine.operands import Register
from nkic.program.program import Instruction, Item, Tensor, View, in_order

# ---- Instructions that are inserted into a body when it is complete -----------------------------
# They restore results of redirected instructions (nkic/language/beta1/emit.py). Until then,
# indices of the body remain valid.


def finish(trace: Trace) -> None:
    """Complete the bodies of all cores, and number their instructions in order."""
    if not state().has_spliced and not state().splices:
        return
    for body in trace.bodies:
        insert(body)
        body[:] = in_order(tuple(body))


def insert(body: list[Item]) -> None:
    positions = sorted(s.position + (not s.is_before) for s in _of(body))
    if not positions:
        return

    pending = state()
    for n, rows in enumerate(pending.broadcasts):
        if rows.body is body:  # nothing is inserted among its instructions
            shift = bisect_right(positions, rows.first)
            pending.broadcasts[n] = rows._replace(first=rows.first + shift, end=rows.end + shift)
    body[:] = within(body, 0, len(body))
    pending.splices = [splice for splice in pending.splices if splice.body is not body]
    pending.has_spliced = True


def within(body: list[Item], start: int, end: int) -> list[Item]:
    """Return `body[start:end]` with the instructions that are to be inserted there."""
    before: dict[int, list[Item]] = {}
    after: dict[int, list[Item]] = {}
    for splice in _of(body):
        (before if splice.is_before else after).setdefault(splice.position, []).append(splice.item)
    if not before and not after:
        return body[start:end]
    result: list[Item] = []
    for index in range(start, end):
        result += (*before.get(index, ()), body[index], *after.get(index, ()))
    return result


def _of(body: list[Item]) -> Iterator[Splice]:
    return (splice for splice in state().splices if splice.body is body)


# --------------------------------------------------------------------------------------------------

# Limits of the analysis: iterations, and instructions in total.
ITERATIONS, MAX_INSTRUCTIONS = 3, 4096

Box = tuple[tuple[int, int], ...]
_ASSOCIATIVE = {
    **{name: name for name in ("add", "multiply", "maximum", "minimum")},
    **{name: name for name in ("bitwise_and", "bitwise_or", "bitwise_xor")},
    **{name: name for name in ("logical_and", "logical_or", "logical_xor")},
    "subtract": "add",
}


class _Access(NamedTuple):
    """A read or a write. `fold` is the operator if it is part of a reduction in place."""

    iteration: int
    item: Instruction
    view: View
    fold: str


class _Carried(NamedTuple):
    read: _Access
    written: _Access


class DependenceCheck:
    """The first iterations of a loop; `independent` for those of an affine_range."""

    def __init__(self, independent: bool) -> None:
        trace = active()
        self._body: list[Item] = trace.body
        self._first_local = len(trace.tensors)  # the number of the loop's first tensor
        self._starts: list[int] = []
        self._independent = independent

    def iteration(self) -> None:
        """Mark the start of an iteration, or the end of the loop."""
        if len(self._starts) <= ITERATIONS:
            self._starts.append(len(self._body))

    def report(self) -> None:
        """Report a dependence between iterations, once per source location."""
        checked, at = state().checked_loops, here()
        if at in checked or len(self._starts) < 3:
            return
        checked.add(at)
        dependence = next(self._carried(), None)
        if dependence is not None:
            _complain(dependence, self._is_local(dependence.written.view.tensor))

    def _carried(self) -> Iterator[_Carried]:
        written: dict[Tensor, list[_Access]] = {}
        for iteration, (start, end) in enumerate(pairwise(self._starts)):
            end = min(end, start + MAX_INSTRUCTIONS // ITERATIONS)
            for item in within(self._body, start, end):
                if not isinstance(item, Instruction):
                    return
                for read in _reads(iteration, item):
                    before = _reaching_write(read, written.get(read.view.tensor, ()))
                    if before is not None and self._is_relevant(read.view.tensor):
                        yield _Carried(read, before)
                for write in _writes(iteration, item):
                    written.setdefault(write.view.tensor, []).append(write)

    def _is_local(self, tensor: Tensor) -> bool:
        restored = state().restored.get(tensor)
        if restored is None:
            return tensor.number >= self._first_local
        return restored.body is self._body and restored.position >= self._starts[0]

    def _is_relevant(self, tensor: Tensor) -> bool:
        """Return whether dependences through the tensor matter: not for results of loop_reduce."""
        if not self._is_local(tensor):
            return self._independent
        shared = (*state().reduced.values(), *state().predicates.values())
        return all(tile._access.tensor is not tensor for tile in shared)


def _complain(dependence: _Carried, is_local: bool) -> None:
    """Warn of a dependence; `is_local`: through a tile that the loop itself makes."""
    read, written = dependence
    name = read.view.tensor.name
    if is_local:
        text = (
            f"iteration {read.iteration} of this loop reads `{name}`, a tile that iteration "
            f"{written.iteration} made: the body is traced once, when the variable still has its "
            "value from before the loop"
        )
        help = "make the tile before the loop, and assign to it in place: `t[...] = `"
    else:
        text = (
            f"iteration {read.iteration} of this affine_range reads `{name}` where iteration "
            f"{written.iteration} wrote it: iterations of an affine_range must not depend on each "
            "other"
        )
        help = "loop over nl.sequential_range, whose iterations run in order"
    labels = _labels(written.item.at.primary, read.item.at.primary)
    complain("loop-carried", text, help=help, level=Level.WARNING, labels=labels)


def _labels(write: Span, read: Span) -> list[Label]:
    if write == read:
        return [Label(write, "read and written here")]
    return [Label(write, "written here"), Label(read, "read here")]


# ---- accesses ------------------------------------------------------------------------------------


def _reads(iteration: int, item: Instruction) -> Iterator[_Access]:
    fold = _fold(item)
    for part, spec in zip(item.operands, item.row.operands, strict=True):
        if not isinstance(part, View):
            continue
        if part.dynamic is not None and isinstance(part.dynamic.source, View):
            yield _Access(iteration, item, part.dynamic.source, "")
        if not spec.access.writes or fold == "nc_matmul":
            is_update = fold and any(part == write.view for write in _writes(iteration, item))
            yield _Access(iteration, item, part, fold if is_update else "")


def _writes(iteration: int, item: Instruction) -> Iterator[_Access]:
    if item.number in state().zero_fills:
        return
    fold = _fold(item)
    for part, spec in zip(item.operands, item.row.operands, strict=True):
        if isinstance(part, View) and spec.access.writes:
            yield _Access(iteration, item, part, fold)


def _fold(item: Instruction) -> str:
    """Return the associative operator with which an instruction updates its dst, or ""."""
    if item.number in state().accumulations:
        return item.row.name if item.row.name == "nc_matmul" else "loop_reduce"
    name, index = _FOLDS.get(item.row.name), item.row.attribute_index
    if name is None:
        return ""
    dst = item.operands[item.row.operand_index["dst"]]
    if item.operands[1:].count(dst) != 1:
        return ""
    if "op1" in index and item.attributes[index["op1"]] is not None:
        return ""
    op = str(item.attributes[index[name]])
    is_reversed = "reverse0" in index and item.attributes[index["reverse0"]]
    if op == "subtract" and (is_reversed or item.operands[1] != dst):
        return ""  # what is subtracted from changes its sign in every iteration
    return _ASSOCIATIVE.get(op, "")


_FOLDS = {"tensor_tensor": "op", "tensor_scalar": "op0", "dma_compute": "reduce_op"}


# ---- reaching writes -----------------------------------------------------------------------------


def _reaching_write(read: _Access, writes: Sequence[_Access]) -> _Access | None:
    """Return the write of an earlier iteration that reaches a read, if that is certain."""
    box = _box(read.view)
    later: list[Box] = []  # written after it, in the iteration that reads
    for write in reversed(writes):
        other = _box(write.view)
        if write.iteration == read.iteration:
            if other is None or (box is None and not write.fold):
                return None
            if not write.fold:
                later.append(other)
        elif write.view == read.view or (box and other and _intersect(box, other)):
            if box and other and any(_hides(one, box, other) for one in later):
                continue
            return None if read.fold and read.fold == write.fold else write
    return None


def _intersect(first: Box, second: Box) -> bool:
    return all(a[0] <= b[1] and b[0] <= a[1] for a, b in zip(first, second, strict=True))


def _hides(later: Box, first: Box, second: Box) -> bool:
    """Return whether a box has all that two others have in common."""
    return all(
        c[0] <= max(a[0], b[0]) and min(a[1], b[1]) <= c[1]
        for c, a, b in zip(later, first, second, strict=True)
    )


def _box(view: View) -> Box | None:
    """Return the first and last index along each dimension, or None if a view is not a box."""
    tensor = view.tensor
    if view.dynamic is not None or view.dtype.size != tensor.dtype.size:
        return None
    pitches = whole(tensor).strides
    left = view.offset
    ranges: list[list[int]] = []
    for pitch in pitches:
        ranges.append([left // pitch, left // pitch])
        left %= pitch
    for count, step in zip(view.shape, view.strides, strict=True):
        if count == 1 or not step:
            continue
        at = next((n for n, pitch in enumerate(pitches) if pitch == step), -1)
        if at < 0 or ranges[at][0] != ranges[at][1]:
            return None
        ranges[at][1] += count - 1
    if any(last >= size for (_, last), size in zip(ranges, tensor.shape, strict=True)):
        return None
    return tuple((first, last) for first, last in ranges)


# ---- Run-time numbers: `nki.typing.scalar`, and loops with a run-time trip count ----------------
# No page of Beta 1 documents them; kernels of nki-samples loop over `range(scalar(tile))`. The
# loop is equivalent to nl.dynamic_range of later versions, and its body is recorded once
# (assumed).


@surface()
class Scalar(DeviceBound):
    """A number that is read from a tile at run time."""

    def __init__(self, register: Register) -> None:
        self._register = register

    def counted(self, bounds: tuple[object, ...]) -> DynamicRange:
        first, last = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
        step = bounds[2] if len(bounds) == 3 else 1
        if not isinstance(step, int) or isinstance(step, bool) or step < 1:
            text = f"the step of a device loop must be an int of at least 1, not {brief(step)}"
            raise KernelError("loop-bounds", text)
        return Counted(_bound(first), _bound(last), step)

    def __index__(self) -> NoReturn:
        raise KernelError(
            "register-value",
            "a scalar is known only on the device; Python's own range cannot use it",
            help="compile the file from the command line, or with evaluate='closed'",
        )


def scalar(value: Any) -> Scalar:
    """`nki.typing.scalar`: the single element of a tile, as a loop bound."""
    source = tile(value, "value")
    if source.size != 1:
        text = f"a scalar is loaded from a tile of one element; shape is {source.shape}"
        raise KernelError("operand-shape", text, help="index one element")
    register = active().register()
    binders()["register_load"](dst=VirtualRegister(register), src=operand(source))
    return Scalar(register)


def _bound(value: object) -> int | Register:
    if isinstance(value, Scalar):
        return value._register
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    raise KernelError(
        "loop-bounds", f"the bounds of a range must be ints or scalars, not {brief(value)}"
    )


class Counted(DynamicRange):
    """A device loop.

    Pending instructions are recorded before it and before its end, because an instruction in its
    body would run in every iteration, or in none.
    """

    def open(self) -> Register:
        _flush()
        self._predicates = dict(state().predicates)
        return super().open()

    def leave(self) -> None:
        _flush()
        insert(active().body)
        state().predicates = self._predicates
        super().leave()


def _flush() -> None:
    pending = state()
    fills = list(pending.zeros.values())
    pending.zeros.clear()
    for fill in fills:
        fill()
    pending.accumulated.clear()
