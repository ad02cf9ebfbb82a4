"""Recording for Beta 1, whose instructions return tiles, as rows with a dst.

An assignment `t[...] = instruction(...)` redirects the instruction to write `t`, which later
versions express by dst. This is possible while the instruction is the last one recorded; otherwise
its result is copied. If the kernel uses the result again (`x = instruction(...)`, `t[...] = x`, and
`x` later), the result is restored: the instruction writes `x` after all, and `x` is copied. What is
recorded depends on these uses alone, and not on how long a value lives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import prod
from typing import Any, NamedTuple

from nkic.base.device import KernelError
from nkic.base.profiles import Profile
from nkic.base.source import CallChain
from nkic.language import views
from nkic.language.beta1.access import part_of, permuted
from nkic.language.beta1.masks import Box, Mask
from nkic.language.beta1.tiles import Tile
from nkic.language.binder import Binder
from nkic.language.isa import functions as rows_of
from nkic.language.tensor import NkiTensor
from nkic.language.trace import POISON, NkiInstruction, active, here
from nkic.machine.dtypes import FLOAT32, DType
from nkic.machine.instructions import ROWS
from nkic.machine.patterns import merged
from nkic.machine.targets import Buffer
from nkic.machine.tiles import start_partitions
from nkic.program.program import Instruction, Item, Tensor, View

_PROFILE = Profile.NKI_0_6  # the version whose binders record instructions


def note_sum() -> None:
    """Record that the last instruction accumulates into its destination."""
    last = active().body[-1]
    assert isinstance(last, Instruction)
    state().accumulations.add(last.number)


class Producer(NamedTuple):
    """The instruction that wrote a tile, until something reads it.

    It wrote only `part` of the tile, and of that only what `remaining` does not mask.
    """

    body: list[Item]
    position: int
    operand: int
    part: Box | None = None
    remaining: Mask | None = None

    def last_instruction(self) -> Instruction | None:
        """Return the instruction if it is the last one recorded, and None otherwise."""
        if active().body is not self.body or self.position != len(self.body) - 1:
            return None
        item = self.body[self.position]
        return item if isinstance(item, Instruction) else None

    def part_of(self, view: View) -> View:
        """Return the part that the instruction writes of a view with the tile's shape."""
        return view if self.part is None else part_of(view, self.part.starts, self.part.sizes)


class Redirect(NamedTuple):
    """The redirection of the instruction `body[position]` from its tile to another place.

    `original` is the instruction before it was redirected, and `stamp` the number of writes to the
    target's tensor until then. With `is_in_target`, the result exists in the target alone.
    """

    body: list[Item]
    position: int
    original: Instruction
    tile: Tile
    target: View  # in the tile's shape
    part: Box | None
    accumulates: bool
    is_in_target: bool
    number: int | None  # the former number of the tile's tensor if it was released
    stamp: int
    at: CallChain


class Splice(NamedTuple):
    """An instruction to insert beside `body[position]` when the body is complete."""

    body: list[Item]
    position: int
    is_before: bool
    item: Instruction


class RowBroadcast(NamedTuple):
    """A row that the library broadcasts to all partitions, by `body[first:end]`."""

    body: list[Item]
    first: int
    end: int


@dataclass
class State:
    """Beta 1's state of one trace. Keys and sets of ints are tensor numbers unless noted."""

    zeros: dict[int, Callable[[], None]] = field(default_factory=dict)
    """Tiles in PSUM that were set to zero and not used since, with the functions that fill them."""
    redirects: dict[Tensor, Redirect] = field(default_factory=dict)
    """Redirected instructions by the tensor that each would have written."""
    splices: list[Splice] = field(default_factory=list)
    has_spliced: bool = False
    restored: dict[Tensor, Redirect] = field(default_factory=dict)
    """Former entries of `redirects`."""
    reduced: dict[Any, Tile] = field(default_factory=dict)
    loops: list[Any] = field(default_factory=list)
    """The variables of the enclosing loops, outermost first."""
    predicates: dict[Any, Tile] = field(default_factory=dict)
    hidden: set[int] = field(default_factory=set)
    """Tiles that only instructions under a false mask would have written."""
    accumulations: set[int] = field(default_factory=set)
    """Numbers of matmuls that accumulate into PSUM, and of instructions of loop_reduce."""
    zero_fills: set[int] = field(default_factory=set)
    """Numbers of instructions in a loop that fill zeros of before it."""
    checked_loops: set[Any] = field(default_factory=set)
    """Locations of loops whose iterations have been compared."""
    foreign: dict[int, dict[Any, View]] = field(default_factory=dict)
    """Parts of tensors in PSUM, by shape and place, that instructions other than matmuls wrote."""
    accumulated: dict[int, list[View]] = field(default_factory=dict)
    """Parts of zero tiles in PSUM into which matmuls, and nothing else, have accumulated."""
    writes: dict[int, list[View]] = field(default_factory=dict)
    """What was written of each tensor, in order."""
    broadcasts: list[RowBroadcast] = field(default_factory=list)
    """Rows that are broadcast to all partitions."""


def state() -> State:
    trace = active()
    result: State | None = trace.beta1
    if result is None:
        result = trace.beta1 = State()
    return result


@cache
def binders() -> Mapping[str, Binder]:
    return rows_of("nki.isa", _PROFILE) | rows_of("nki.language", _PROFILE)


def new(shape: Sequence[int], dtype: DType, buffer: Buffer = Buffer.SBUF, name: str = "") -> Tile:
    """Return a new, uninitialised tile. A single dimension is that of the partitions."""
    sizes = tuple(shape) if len(shape) > 1 or not buffer.on_chip else (*shape, 1)
    tensor = active().tensor(sizes, dtype, buffer, name)
    view = views.whole(tensor)
    if len(sizes) != len(shape):
        view = view._replace(shape=tuple(shape), strides=view.strides[: len(shape)])
    return Tile(view)


def operand(value: Any) -> Any:
    """Convert a value to an operand: fill pending zeros, refuse blocks out of bounds."""
    if not isinstance(value, NkiTensor):
        return value
    view = value._access
    if outside := active().out_of_bounds.get(view.tensor.number):
        text = "mask the elements outside: mask=(index < count)"
        raise KernelError("index-out-of-bounds", outside, help=text)
    view = _readable(view)
    fill = state().zeros.pop(view.tensor.number, None)
    if fill is not None:
        fill()
    return NkiTensor(_at_least_2d(view))


def _at_least_2d(view: View) -> View:
    if len(view.shape) > 1 or not view.tensor.buffer.on_chip:
        return view
    return view._replace(shape=(*view.shape, 1), strides=(*view.strides, 1))


def emit(row: str, dst: Any = None, **named: Any) -> NkiInstruction:
    if state().hidden and any(is_hidden(value) for value in named.values()):
        hide(dst)
        return NkiInstruction([], -1)
    written = [dst, *(named.get(name) for name in _further_outputs(row))]
    for view in (v._access for v in written if isinstance(v, NkiTensor)):
        restore(view.tensor)
    deep = dst is not None and len(dst.shape) > _DIMENSIONS + 1 and row in _ELEMENTWISE
    if deep and _too_deep(dst, *named.values()):
        return _emit_slices(row, dst, named)
    arguments = {name: operand(value) for name, value in named.items() if value is not None}
    if row == "tensor_scalar":
        arguments.setdefault("operand0", None)  # for operators with one input
    if dst is not None:
        arguments = {"dst": operand(dst), **arguments}
    for value in written:
        if isinstance(value, NkiTensor):
            count_write(value._access, row == "nc_matmul")
    form = (0, tuple(arguments))
    instruction: NkiInstruction = binders()[row].called(form)(list(arguments.values()))
    return instruction


@cache
def _further_outputs(row: str) -> tuple[str, ...]:
    """Return the operands other than dst that an instruction writes."""
    return tuple(o.name for o in ROWS[row].operands if o.access.writes and o.name != "dst")


def count_write(view: View, is_product: bool = False) -> None:
    number = view.tensor.number
    state().writes.setdefault(number, []).append(view)
    state().accumulated.pop(number, None)
    if view.tensor.buffer is Buffer.PSUM:
        foreign = state().foreign.setdefault(number, {})
        if covers(view):
            foreign.clear()
        if not is_product:
            foreign[view[1:]] = view


def fill_lazily(tile: Tile, value: Any) -> None:
    """Fill a whole tile in PSUM on its first use, unless that is a matmul that adds to zeros."""
    depth = len(state().loops)

    def fill() -> None:
        emit("memset", tile, value=value)
        last = active().body[-1]
        assert isinstance(last, Instruction)
        if len(state().loops) > depth:
            state().zero_fills.add(last.number)

    if value:
        fill()
        return
    restore(tile._access.tensor)
    count_write(tile._access)
    state().zeros[tile._access.tensor.number] = fill


def _stamp(number: int) -> int:
    return len(state().writes.get(number, ()))


class Part(NamedTuple):
    """The written part of a new tile: `box` without what `remaining` masks; None for all.

    With `bare`, masked elements are uninitialised.
    """

    box: Box | None = None
    remaining: Mask | None = None
    bare: bool = False


def note_part(tile: Tile, part: Part) -> None:
    """Record the written part of a new tile, valid until the next write to it."""
    number = tile._access.tensor.number
    tile._part = (part, number, _stamp(number))


def written_part(tile: Tile) -> Part:
    part, number, stamp = tile._part or (Part(), -1, 0)
    current = tile._access.tensor.number
    return part if number == current and stamp == _stamp(number) else Part()


_DIMENSIONS = 4  # free dimensions of an instruction


def _too_deep(*values: Any) -> bool:
    """Return whether a tile has too many free dimensions, after merging contiguous ones."""
    views_ = (value._access for value in values if isinstance(value, NkiTensor))
    pairs = (tuple(zip(v.strides[1:], v.shape[1:], strict=True)) for v in views_)
    return any(len(merged(dims)) > _DIMENSIONS for dims in pairs)


def _emit_slices(row: str, dst: Tile, named: Mapping[str, Any]) -> NkiInstruction:
    """Record an instruction for each index of the outermost free dimension."""
    shape = dst.shape

    def part(value: Any, at: int) -> Any:
        if not isinstance(value, NkiTensor) or value.shape != shape:
            return value
        view = part_of(value._access, (0, at, *(0 for _ in shape[2:])), shape)
        return Tile(permuted(view, (0, *range(2, len(shape)))))

    for at in range(shape[1]):
        emit(row, part(dst, at), **{name: part(value, at) for name, value in named.items()})
    return NkiInstruction([], -1)


def hide(tile: Any) -> None:
    """Record that a mask hides everything that would have been written to a tile."""
    if isinstance(tile, NkiTensor) and tile._access.tensor not in state().redirects:
        number = tile._access.tensor.number
        if number not in state().zeros and number not in active().out_of_bounds:
            state().hidden.add(number)


def is_hidden(value: Any) -> bool:
    """Return whether a mask has hidden all writes to a tile, or to its index.

    Values computed from such a tile are as undefined as the tile itself.
    """
    return isinstance(value, NkiTensor) and _hides(value._access)


def _hides(view: View) -> bool:
    """Return whether a view, or its index, would only have been written under a false mask."""
    index = view.dynamic.source if view.dynamic is not None else None
    if isinstance(index, View) and _hides(index):
        return True
    number = view.tensor.number
    return number in state().hidden and number not in active().written


def result(
    row: str,
    tile: Tile,
    *,
    part: Box | None = None,
    remaining: Mask | None = None,
    **named: Any,
) -> Tile:
    """Record an instruction that writes a new tile, or a part of one."""
    dst = tile if part is None else Tile(part_of(tile._access, part.starts, part.sizes))
    instruction = emit(row, dst, **named)
    if instruction._index >= 0:
        body, index = instruction._body, instruction._index
        position = ROWS[row].operand_index["dst"]
        tile._written_by = Producer(body, index, position, part, remaining)
    note_part(tile, Part(part, remaining))
    return tile


# ---- redirecting writes --------------------------------------------------------------------------


_ELEMENTWISE = frozenset(
    {
        *("tensor_tensor", "tensor_scalar", "scalar_tensor_tensor", "tensor_copy", "activation"),
        *("reciprocal", "affine_select", "memset", "iota", "dropout"),
    }
)


def redirect(value: Tile, target: Tile) -> bool:
    """Redirect the instruction that wrote `value` to `target` if possible; return whether it is."""
    producer: Producer | None = value._written_by
    if producer is None or producer.remaining is not None:
        return False
    restore(target._access.tensor)
    item = producer.last_instruction()
    aligned = shaped_like(target._access, value.shape)
    if item is None or aligned is None or not _can_redirect(item, value, aligned):
        return False
    view = producer.part_of(aligned)
    if view.tensor.on_chip and item.row.name != "dma_copy" and not can_start(view):
        return False
    inputs = (*item.operands[: producer.operand], *item.operands[producer.operand + 1 :])
    if any(_overwrites_input(item, read, view) for read in inputs):
        return False
    if not _drop_fill(view):
        return False
    _write_to(view, producer, item)
    note_redirect(value, aligned, producer, item)
    return True


def _drop_fill(view: View) -> bool:
    """Drop the pending zeros of a view's tensor; return False if the view does not cover them."""
    number = view.tensor.number
    if number in state().zeros and not covers(view):
        return False
    state().zeros.pop(number, None)
    return True


def _write_to(view: View, producer: Producer, item: Instruction) -> None:
    """Let the recorded instruction write a view instead of its tile. An assignment overwrites: left
    open, a matmul would add to what another one wrote there.
    """
    operands, attributes = list(item.operands), list(item.attributes)
    operands[producer.operand] = _at_least_2d(view)
    if item.row.accumulates:
        attributes[item.row.attribute_index[item.row.accumulates]] = False
    item = item._replace(operands=tuple(operands), attributes=tuple(attributes))
    producer.body[producer.position] = item
    active().written.add(view.tensor.number)
    count_write(view, item.row.name == "nc_matmul")


# ---- results that are used after their instruction was redirected --------------------------------

_RELEASED = -(1 << 40)  # the number of every tensor whose own number was released


def note_redirect(
    value: Tile, target: View, producer: Producer, item: Instruction, accumulates: bool = False
) -> None:
    """Record that the instruction `item`, which wrote `value`, writes `target` instead.

    Releases the tensor of `value`, and its number if it is the last one.
    """
    trace, tensor, number = active(), value._access.tensor, None
    trace.written.discard(tensor.number)
    if trace.tensors and trace.tensors[-1] is tensor:
        trace.tensors.pop()
        number, tensor.number = tensor.number, _RELEASED
    else:  # it stays, unused, and is no declaration of the kernel's
        tensor.at = target.tensor.at
    stamp = _stamp(target.tensor.number)
    body, position, _, part, _ = producer
    value._written_by = None
    note_part(value, Part(part))
    in_psum = target.tensor.buffer is Buffer.PSUM  # where matmuls may accumulate onto it
    state().redirects[tensor] = Redirect(
        body, position, item, value, target, part, accumulates, in_psum, number, stamp, here()
    )


def unchanged(view: View) -> View:
    """Return where the elements of a view are.

    That is where its instruction was redirected to, if the view is that instruction's whole result
    and nothing has been written there since.
    """
    redirect = state().redirects.get(view.tensor)
    if redirect is None or view != redirect.tile._access or redirect.part is not None:
        return view
    if redirect.accumulates:
        return view
    target = redirect.target
    same = target.dtype is view.dtype and target.tensor.buffer is view.tensor.buffer
    if not same or redirect.body is not active().body:
        return view
    later = state().writes[target.tensor.number][redirect.stamp :]
    return view if any(overlap(target, written) for written in later) else target


def follow(tensor: Tensor) -> None:
    """Note that the last instruction, a write to the target of a redirect, updated its result."""
    redirect = state().redirects[tensor]
    stamp, position = _stamp(redirect.target.tensor.number), len(redirect.body) - 1
    state().redirects[tensor] = redirect._replace(stamp=stamp, position=position, is_in_target=True)


def _readable(view: View) -> View:
    """Return a view with the same elements that instructions can read."""
    redirects = state().redirects
    if not redirects:
        return view
    if view.dynamic is not None and isinstance(view.dynamic.source, View):
        restore(view.dynamic.source.tensor)
    found = unchanged(view)
    if found is view:
        restore(view.tensor)
    return found


def restore(tensor: Tensor) -> None:
    """Give the result of a redirected instruction its own tensor again.

    The instruction writes it as before, and a copy follows, unless the result must be copied from
    the target. If the instruction accumulated onto the target, it is repeated.
    """
    redirect = state().redirects.pop(tensor, None)
    if redirect is None:
        return
    state().restored[tensor] = redirect
    trace, body, position = active(), redirect.body, redirect.position
    if redirect.number is not None:
        if tensor.name == f"t{redirect.number}":
            tensor.name = f"t{len(trace.tensors)}"
        tensor.number = len(trace.tensors)
        trace.tensors.append(tensor)
    else:
        tensor.at = redirect.original.at
    trace.written.add(tensor.number)
    note_part(redirect.tile, Part(redirect.part))
    if redirect.accumulates:
        state().splices.append(Splice(body, position, True, redirect.original))
        return
    own, target = redirect.tile._access, redirect.target
    if redirect.part is not None:
        box = redirect.part
        own, target = (part_of(view, box.starts, box.sizes) for view in (own, target))
    if redirect.is_in_target:
        copy = _copy_at(redirect.at, own, target)
    else:
        item = body[position]
        assert isinstance(item, Instruction)
        body[position] = item._replace(operands=redirect.original.operands)
        copy = _copy_at(redirect.at, target, own)
    state().splices.append(Splice(body, position, False, copy))


def can_start(view: View) -> bool:
    """Return whether an engine can start at the tile's first partition.

    If not, DMA performs the assignment.
    """
    return view.tile().start in start_partitions(view.shape[0])


def _copy_at(at: CallChain, dst: View, src: View) -> Instruction:
    trace, scratch = active(), list[Item]()
    before, trace.body = trace.body, scratch
    on_engine = all(view.tensor.on_chip and can_start(view) for view in (dst, src))
    name = "tensor_copy" if on_engine else "dma_copy"
    binders()[name](dst=NkiTensor(_at_least_2d(dst)), src=NkiTensor(_at_least_2d(src)))
    trace.body = before
    (item,) = scratch
    assert isinstance(item, Instruction)
    return item._replace(at=at)


def shaped_like(view: View, shape: tuple[int, ...]) -> View | None:
    """Return a target in the shape of the value written to it, ignoring sizes of 1."""
    if view.shape == shape:
        return view
    if [n for n in view.shape if n != 1] != [n for n in shape if n != 1]:
        return None
    on_chip = views.on_chip(view)
    if on_chip and view.shape[0] != shape[0]:
        return None
    real = [d for d in zip(view.shape, view.strides, strict=True) if d[0] != 1]
    if on_chip and shape[0] == 1:
        real.insert(0, (1, view.strides[0]))
    dims, left = [], iter(real)
    for axis, size in enumerate(shape):
        dims.append(next(left) if size != 1 or (axis == 0 and on_chip) else (1, 0))
    return view._replace(shape=shape, strides=tuple(step for _, step in dims))


def _can_redirect(item: Instruction, value: Tile, aligned: View) -> bool:
    """Return whether the instruction may write to the target without changing its result."""
    number = aligned.tensor.number
    if number == POISON or number in active().out_of_bounds or _too_deep(Tile(aligned)):
        return False
    row = item.row
    old = value._access
    buffers = row.operands[row.operand_index["dst"]].buffers
    if aligned.tensor.buffer not in buffers or aligned.dynamic is not None:
        return False
    if row.name == "nc_transpose" and aligned.tensor.buffer is not old.tensor.buffer:
        return False  # the copy would run on another engine
    if aligned.dtype is old.dtype:
        return True
    if row.name in ("dma_copy", "tensor_copy", "memset"):
        wider = aligned.dtype.size >= old.dtype.size
        return aligned.dtype.is_float == old.dtype.is_float and wider and _keeps_all(item, old)
    # Rounding to float32, in which engines compute, changes nothing; any other type is honoured.
    is_exact = old.dtype is FLOAT32 and aligned.dtype.is_float
    return is_exact and row.name in _ELEMENTWISE | {"nc_matmul"}


def _keeps_all(item: Instruction, old: View) -> bool:
    """Return whether a copy or a fill does not round what it writes."""
    if item.row.name == "memset":
        return abs(item.attribute("value")) in (0, 1)
    source = item.operand("src")
    return isinstance(source, View) and source.dtype is old.dtype


def _overwrites_input(item: Instruction, operand_: Any, view: View) -> bool:
    """Return whether the redirected instruction would overwrite other elements that it reads."""
    if not isinstance(operand_, View) or operand_.tensor is not view.tensor:
        return False
    if not overlap(operand_, view):
        return False
    same = _at_least_2d(view)[1:4] == operand_[1:4]
    return not (same and item.row.name in _ELEMENTWISE)


def overlap(first: View, second: View) -> bool:
    """Return whether two views may share elements: whether their bounding ranges intersect."""
    if first.tensor is not second.tensor:
        return False
    if first.dynamic is not None or second.dynamic is not None:
        return True
    return all(
        a[0] < b[1] and b[0] < a[1] for a, b in zip(_hull(first), _hull(second), strict=True)
    )


def _hull(view: View) -> list[tuple[int, int]]:
    """Return the byte range, preceded by the partition range on chip."""
    size = view.dtype.size
    if not views.on_chip(view):
        return [_reach(view.offset, view.shape, view.strides, size)]
    pitch = view.pitch or 1
    start, offset = divmod(view.offset, pitch)
    free = _reach(offset, view.shape[1:], view.strides[1:], size)
    return [(start, start + view.shape[0]), free]


def _reach(offset: int, shape: Sequence[int], strides: Sequence[int], size: int) -> tuple[int, int]:
    steps = [stride * (count - 1) for count, stride in zip(shape, strides, strict=True)]
    low = offset + sum(step for step in steps if step < 0)
    high = offset + sum(step for step in steps if step > 0)
    return low * size, (high + 1) * size


def covers(view: View) -> bool:
    """Return whether a view is all of its tensor, each element once."""
    tensor = view.tensor
    dense = 0 not in [s for n, s in zip(view.shape, view.strides, strict=True) if n > 1]
    return dense and prod(view.shape) * view.dtype.size == tensor.bytes * tensor.shape[0]
