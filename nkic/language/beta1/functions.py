"""Element-wise functions of Beta 1's tiles; each returns a new tile.

Sources: the pages of these functions of nki.language, SDK 2.20 to 2.26.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from nkic.base.device import KernelError
from nkic.language import library, tensor
from nkic.language.beta1 import access
from nkic.language.beta1.creation import full
from nkic.language.beta1.emit import (
    Part,
    Producer,
    count_write,
    covers,
    emit,
    hide,
    is_hidden,
    new,
    note_part,
    note_redirect,
    note_sum,
    operand,
    overlap,
    state,
    written_part,
)
from nkic.language.beta1.extents import (
    ALL,
    Extent,
    axes_of,
    check_inside,
    cut,
    expanded,
    extent,
    extent_of,
    part_inside,
    predicate,
    repeated_part,
    startable,
)
from nkic.language.beta1.moving import (
    Number,
    across_partitions,
    assign,
    copy,
    in_sbuf,
    kind,
    number,
    output_for,
    record,
    stdlib,
    tile,
)
from nkic.language.beta1.tiles import Tile
from nkic.language.dtypes_api import as_dtype
from nkic.language.enums import OPERATORS
from nkic.language.hosted import whole_numbers
from nkic.language.tensor import NkiTensor
from nkic.language.trace import active
from nkic.machine import dtypes
from nkic.machine.dtypes import DType
from nkic.machine.operators import ACTIVATIONS, ALU
from nkic.machine.targets import Buffer
from nkic.program.program import Instruction, View


def update(name: str, target: Tile, other: Any) -> Tile:
    """`target op= other`, in place."""
    if isinstance(other, NkiTensor):
        source = tile(other)
        if is_hidden(source):
            hide(target)
            return target
        check_inside(target, Extent(*written_part(source)[:2]))
        if name == "add" and _accumulated(target, source):
            return target
        if prod(source.shape) > prod(target.shape):
            result: Tile = binary(name, target, source)
            return result
        if name not in ALU or name == "power":
            assign(target, binary(name, target, source))
            return target
        right = readable_with(target, source)
        if _is_column(right, target):
            column = expanded(right, right.shape)
            emit("tensor_scalar", target, data=target, op0=OPERATORS[name], operand0=column)
        else:
            right = expanded(right, target.shape)
            emit("tensor_tensor", target, data1=target, data2=right, op=OPERATORS[name])
    elif name in ALU and name != "power":
        check_inside(target, ALL)
        emit("tensor_scalar", target, data=target, op0=OPERATORS[name], operand0=other)
    else:
        assign(target, binary(name, target, other))
    return target


def readable_with(first: Tile, second: Tile) -> Tile:
    """Return the second operand in a form that one instruction can read with the first.

    That is, not both in PSUM, and in all partitions of the first.
    """
    both_in_psum = first._access.tensor.buffer is second._access.tensor.buffer is Buffer.PSUM
    second = in_sbuf(second) if both_in_psum else second
    if second.shape[0] == 1 and first.shape[0] != 1 and len(second.shape) == len(first.shape):
        return across_partitions(second, first.shape[0])
    return second


def _accumulated(target: Tile, source: Tile) -> bool:
    """`psum += matmul`: redirect the matmul to accumulate into `target`; return whether it does."""
    producer: Producer | None = source._written_by
    item = producer.last_instruction() if producer is not None else None
    if producer is None or item is None or item.row.name != "nc_matmul":
        return False
    destination = _destination_of_sum(target._access, source)
    if destination is None:
        return False
    number_ = destination.tensor.number
    is_first = number_ not in active().written and number_ not in state().zeros
    part = producer.part_of(destination)
    if _is_foreign(part) or (producer.remaining is not None and not is_first):
        _add_on_vector(Tile(destination), source, Extent(producer.part, producer.remaining))
        return True
    accumulate = _prepare_sum(item, producer, part)
    # The matmul, recorded last, writes a part of the tile in PSUM instead.
    operands, attributes = list(item.operands), list(item.attributes)
    operands[producer.operand] = operand(Tile(part))._access
    attributes[item.row.attribute_index["accumulate"]] = accumulate
    last = producer.body[-1]
    assert isinstance(last, Instruction)
    producer.body[-1] = last._replace(operands=tuple(operands), attributes=tuple(attributes))
    note_sum()
    active().written.add(number_)
    producer = producer._replace(position=len(producer.body) - 1)
    note_redirect(source, destination, producer, item, accumulates=True)
    return True


def _is_foreign(part: View) -> bool:
    """Return whether an instruction other than a matmul wrote, or will write, some of `part`.

    A matmul accumulates only onto what matmuls wrote; zeros that it would overwrite do not count,
    unless it would overwrite some and add to others.
    """
    number = part.tensor.number
    if number in state().zeros:
        return False
    if number in state().accumulated:
        earlier = [view for view in state().accumulated[number] if overlap(view, part)]
        return bool(earlier) and not any(view == part or covers(view) for view in earlier)
    return any(overlap(part, view) for view in state().foreign.get(number, {}).values())


def _destination_of_sum(view: View, source: Tile) -> View | None:
    """Return a view in PSUM in the shape of a product that a matmul can add to it, or None."""
    if view.tensor.buffer is not Buffer.PSUM or view.tensor.number in active().out_of_bounds:
        return None
    destination = access.broadcast(view, source.shape)
    if destination is None or prod(destination.shape) != prod(view.shape):
        return None
    return destination if view.dtype is source.dtype else None


def _prepare_sum(item: Instruction, producer: Producer, part: View) -> bool | None:
    """Count the matmul's write to `part` and return the value of its attribute `accumulate`.

    Pending zeros of the tensor are dropped if the matmul covers them, and recorded before the
    matmul otherwise.
    """
    number_ = part.tensor.number
    fill = state().zeros.pop(number_, None)
    accumulate: bool | None = None
    if fill is not None and covers(part):
        accumulate = False
    elif fill is not None:
        producer.body.pop()
        fill()
        active().reappend(item)
        state().accumulated[number_] = []
    covered = state().accumulated.get(number_)
    count_write(part, True)
    if covered is not None:  # the first product in each place overwrites its zeros
        accumulate = any(overlap(earlier, part) for earlier in covered)
        state().accumulated[number_] = [*covered, part]
    return accumulate


def _add_on_vector(target: Tile, source: Tile, region: Extent) -> None:
    """`psum += matmul` on the vector engine, onto what no matmul wrote; masked elements keep their
    value.
    """
    destination, part = part_inside(target, region), part_inside(source, region)
    total = destination if region.remaining is None else new(destination.shape, target.dtype)
    emit("tensor_tensor", total, data1=destination, data2=in_sbuf(part), op=OPERATORS["add"])
    if region.remaining is not None:
        chosen = Tile(cut(predicate(region.remaining, source.shape)._access, region))
        emit("tensor_copy_predicated", destination, src=total, predicate=chosen)


def binary(name: str, x: Any, y: Any, dtype: Any = None, mask: Any = None) -> Any:
    """`x op y`, of which at least one is a tile."""
    first, second = (int(n) if isinstance(n, bool) else n for n in map(number, (x, y)))
    if not isinstance(first, NkiTensor) and not isinstance(second, NkiTensor):
        raise KernelError("argument-kind", f"nl.{name} takes at least one tensor")
    output: Tile = _binary(name, first, second, kind(dtype, _type(name, x, y)), mask)
    _note_computed(output, first, second)
    return output


def _note_computed(output: Tile, *operands: Any) -> None:
    """Record a result's operands, for errors about its value."""
    views = [value._access for value in operands if isinstance(value, NkiTensor)]
    tensor.computed(output._access, *views)


def _type(name: str, x: Any, y: Any) -> DType:
    """Return the dtype of the result of two tiles, or of a tile and a number.

    Comparisons are documented as bool, one byte. The bits of a tile and a number stay those of the
    tile, since the rule of promotion would make floats of some. A quotient of integers keeps its
    fraction if one is a number.
    """
    if name in _COMPARISONS:
        return dtypes.UINT8
    is_bits = name in ALU and ALU[name].group == "bitvec"
    known = [_dtype(one) for one in (x, y) if not is_bits or isinstance(one, NkiTensor)]
    promoted = library.promoted(known[0], known[-1])
    has_number = not (isinstance(x, NkiTensor) and isinstance(y, NkiTensor))
    is_cut = name == "divide" and has_number and not promoted.is_float
    return dtypes.FLOAT32 if is_cut else promoted


def _dtype(value: Any) -> DType:
    """Return the dtype of a tile or of NumPy's number; a Python number has its widest one."""
    if isinstance(value, NkiTensor):
        return value.dtype
    known = dtypes.find(str(getattr(value, "dtype", "")))
    if known is not None and known.size <= dtypes.FLOAT32.size:
        return known
    value = number(value)  # a loop's index is an int of a class of its own
    if isinstance(value, bool):
        return dtypes.UINT8
    return dtypes.INT32 if isinstance(value, int) else dtypes.FLOAT32


def _binary(name: str, first: Any, second: Any, dtype: DType, mask: Any) -> Any:
    if name == "divide":
        return _divide(first, second, dtype, mask)
    if name not in ALU or name == "power":
        return _from_library(name, [first, second], dtype, mask)
    if not isinstance(first, NkiTensor):
        return _with_number(name, tile(second), first, dtype, mask, True)
    if not isinstance(second, NkiTensor):
        return _with_number(name, tile(first), second, dtype, mask, False)
    return _of_tiles(name, tile(first), tile(second), dtype, mask)


def common_shape(x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...]:
    rank = max(len(x), len(y))
    left, right = ((1,) * (rank - len(shape)) + shape for shape in (x, y))
    if len(x) != len(y):  # the partition dimension stays first
        left, right = _aligned(x, rank), _aligned(y, rank)
    for a, b in zip(left, right, strict=True):
        if a != b and 1 not in (a, b):
            text = f"{x} and {y} cannot be broadcast together: sizes must be equal, or 1"
            raise KernelError("operand-shape", text, help="index or reshape one of them")
    return tuple(max(a, b) for a, b in zip(left, right, strict=True))


def _aligned(shape: tuple[int, ...], rank: int) -> tuple[int, ...]:
    return (shape[0], *(1,) * (rank - len(shape)), *shape[1:])


def _of_tiles(name: str, x: Tile, y: Tile, dtype: DType, mask: Any) -> Tile:
    shape = common_shape(x.shape, y.shape)
    left = readable_with(y, x) if x.shape[0] != shape[0] else x
    right = readable_with(left, y)
    output, region = output_for(shape, dtype, mask, x, y)
    if region == ALL and (_is_column(right, left) or _is_column(left, right)):
        data, column = (left, right) if _is_column(right, left) else (right, left)
        return record(
            "tensor_scalar",
            output,
            region,
            data=expanded(data, shape, region),
            op0=OPERATORS[name],
            operand0=expanded(column, column.shape, region),
            reverse0=data is right or None,
        )
    return record(
        "tensor_tensor",
        output,
        region,
        data1=expanded(left, shape, region),
        data2=expanded(right, shape, region),
        op=OPERATORS[name],
    )


def _is_column(column: Tile, data: Tile) -> bool:
    """Return whether tensor_scalar applies: one number per partition, of floats.

    It "has better performance than tensor_tensor in general" (nki.isa.tensor_tensor).
    """
    floats = column.dtype is dtypes.FLOAT32 and data.dtype.is_float
    same = column.shape == (data.shape[0], 1) and column._access.dynamic is None
    return floats and same and prod(data.shape[1:]) > 1


_COMPARISONS = frozenset(
    {
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
        *("logical_and", "logical_or", "logical_xor", "logical_not"),
    }
)


def _with_number(name: str, x: Tile, value: Number, dtype: DType, mask: Any, swap: bool) -> Tile:
    output, region = output_for(x.shape, dtype, mask, x)
    return record(
        "tensor_scalar",
        output,
        region,
        data=expanded(x, x.shape, region),
        op0=OPERATORS[name],
        operand0=value,
        reverse0=swap or None,
    )


def _divide(x: Any, y: Any, dtype: DType, mask: Any) -> Tile:
    """Multiply x by the reciprocal of y: no engine divides."""
    if not isinstance(y, NkiTensor):
        return _with_number("multiply", tile(x), 1.0 / y, dtype, mask, False)
    divisor, others = tile(y), [tile(x)] if isinstance(x, NkiTensor) else []
    shape = common_shape(others[0].shape, divisor.shape) if others else divisor.shape
    if divisor.shape == shape:
        inverse = unary("reciprocal", divisor, dtypes.FLOAT32, mask)
    else:  # the mask is one of the quotient, and may speak of dimensions that the divisor repeats
        region = startable(extent(mask, shape, axes_of(shape, *others, divisor)), shape)
        part = repeated_part(divisor.shape, shape, region)._replace(remaining=None)
        part = part if len(divisor.shape) == len(shape) else ALL
        inverse, _ = output_for(divisor.shape, dtypes.FLOAT32, not region.empty, divisor)
        if not region.empty:
            record("reciprocal", inverse, part, data=part_inside(divisor, part))
    return binary("multiply", x, inverse, dtype, mask)  # type: ignore[no-any-return]


def _from_library(name: str, operands: Sequence[Any], dtype: Any, mask: Any) -> Tile:
    """Compute a function composed of several instructions, on whole tiles.

    If there is a mask, the part that it leaves is copied.
    """
    output: Tile = stdlib(name, *operands, dtype=None if dtype is None else as_dtype(dtype))
    region = extent_of(output, mask)
    return output if region == ALL else copy(output, mask=mask)


# Activation functions that the scalar engine does not compute: `abs` is an operator, too, and the
# engine's `sin` is defined within ±pi only.
_NOT_ACTIVATED = frozenset({"abs", "sin"})


def unary(name: str, x: Any, dtype: Any = None, mask: Any = None) -> Tile:
    """Compute a function of one tile."""
    source = tile(x, "x")
    output = _unary(name, source, dtype, mask)
    _note_computed(output, source)
    return output


def _unary(name: str, source: Tile, dtype: Any, mask: Any) -> Tile:
    default = dtypes.UINT8 if name in _COMPARISONS else source.dtype
    is_activated = name in ACTIVATIONS and name not in _NOT_ACTIVATED
    if name == "negative":
        return _with_number("multiply", source, -1, kind(dtype, default), mask, False)
    if not is_activated and name not in ALU:
        return _from_library(name, [source], dtype, mask)
    output, region = output_for(source.shape, kind(dtype, default), mask, source)
    data = expanded(source, output.shape, region)
    if name == "reciprocal":
        return record("reciprocal", output, region, data=data)
    if is_activated:
        return record("activation", output, region, op=OPERATORS[name], data=data)
    return record("tensor_scalar", output, region, data=data, op0=OPERATORS[name])


def where_(condition: Any, x: Any, y: Any, *, dtype: Any = None, mask: Any = None) -> Tile:
    """Return x where the condition is not 0, else y."""
    selector = tile(condition, "condition")
    tiles = [tile(v) for v in (x, y) if isinstance(v, NkiTensor)]
    shape = selector.shape
    for operand_tile in tiles:
        shape = common_shape(shape, operand_tile.shape)
    default = library.promoted(tiles[0].dtype, tiles[-1].dtype) if tiles else dtypes.FLOAT32
    output, region = output_for(shape, kind(dtype, default), mask, selector, *tiles)
    if region.empty:
        return output
    selector = expanded(selector, shape, region)
    chosen = _with_number("not_equal", selector, 0.0, dtypes.UINT8, None, False)
    destination = part_inside(output, region)
    if isinstance(y, NkiTensor):
        emit("tensor_copy", destination, src=expanded(tile(y), shape, region))
    else:
        emit("memset", destination, value=y)
    is_tile = isinstance(x, NkiTensor)
    source = _converted(tile(x), output.dtype) if is_tile else full(shape, x, output.dtype)
    source = expanded(source, shape, region)
    emit("tensor_copy_predicated", destination, src=source, predicate=chosen)
    note_part(output, Part(region.box, region.remaining))
    return output


def _converted(value: Tile, dtype: DType) -> Tile:
    return value if value.dtype is dtype else copy(value, dtype=dtype)


def broadcast_to(src: Any, *, shape: Any) -> Tile:
    """Broadcast a tile to a shape: a view, except that partitions are copied."""
    source = tile(src, "src")
    check_inside(source, ALL)
    sizes = whole_numbers(shape, "the shape")
    view = access.broadcast(source._access, sizes)
    if view is not None:
        return Tile(view)
    if is_hidden(source):
        output = new(sizes, source.dtype)
        hide(output)
        return output
    if not source._access.tensor.on_chip:
        raise KernelError("operand-shape", f"{source.shape} cannot be repeated to {sizes}")
    return expanded(across_partitions(source, sizes[0]), sizes)


def expand_dims(data: Any, axis: int) -> Tile:
    """Return a view with a new dimension of size 1."""
    return tile(data, "data").expand_dims(axis)
