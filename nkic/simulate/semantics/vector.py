"""Meanings of the vector engine's rows (some run on scalar and gpsimd as well).

Arithmetic is float32, one rounding to dst's type; bitvec operators work on bits; gpsimd adds
and multiplies 32-bit integers exactly. Sources: `nki.isa`, the instruction's own page.
"""

from __future__ import annotations

import numpy as np

from nkic.machine.engines import Engine
from nkic.simulate.decode import Decoded, Step, semantics
from nkic.simulate.numerics import vector as numerics
from nkic.simulate.numerics.alu import BITVEC, INTEGERS
from nkic.simulate.numerics.reduction import reduce, reduce_bits
from nkic.simulate.numerics.scan import tensor_tensor_scan as scan
from nkic.simulate.semantics.binding import (
    Array,
    Load,
    all_int32,
    binary,
    bit_rows,
    is_bitvec,
    put_rows,
    shape_of,
    vector,
)
from nkic.simulate.semantics.copying import copy_step, fill_step
from nkic.simulate.tile import Tile


@semantics("tensor_copy")
def tensor_copy(decoded: Decoded) -> Step:
    return copy_step(decoded.tile("dst"), decoded.tile("src"))


@semantics("memset")
def memset(decoded: Decoded) -> Step:
    return fill_step(decoded.tile("dst"), decoded.attributes["value"])


@semantics("tensor_tensor")
def tensor_tensor(decoded: Decoded) -> Step:
    op = decoded.attributes["op"]
    if is_bitvec(op):
        return _bits(decoded, "data1", [(op, "data2", False)])
    if decoded.engine is Engine.GPSIMD and all_int32(decoded) and op in INTEGERS:
        return _integers(decoded, "data1", [(op, "data2", False)])
    sizes = shape_of(decoded, "dst", "data1", "data2")
    a, b = decoded.tile("data1").source(sizes), decoded.tile("data2").source(sizes)
    sink = decoded.tile("dst").sink(sizes)
    function, out, store = binary(op, False), sink.out, sink.store
    if a.array is not None and b.array is not None and sink.direct:
        left, right = a.array, b.array
        return lambda: function(left, right, out)
    load_a, load_b = a.load, b.load

    def step() -> None:
        function(load_a(), load_b(), out)
        store()

    return step


@semantics("tensor_scalar")
def tensor_scalar(decoded: Decoded) -> Step:
    op0, op1 = decoded.attributes["op0"], decoded.attributes["op1"]
    reverses = decoded.attributes["reverse0"], decoded.attributes["reverse1"]
    stages = [(op0, "operand0", reverses[0])]
    if op1 is not None:
        stages.append((op1, "operand1", reverses[1]))
    if is_bitvec(op0):
        return _bits(decoded, "data", stages)
    if _is_address_arithmetic(decoded, stages):
        return _integers(decoded, "data", stages)
    sizes = shape_of(decoded, "dst", "data")
    data, sink = decoded.tile("data").source(sizes).load, decoded.tile("dst").sink(sizes)
    out, store = sink.out, sink.store
    first = binary(op0, reverses[0])
    operand0 = vector(decoded, "operand0", sizes)
    if op1 is None:

        def one() -> None:
            first(data(), operand0(), out)
            store()

        return one
    second = binary(op1, reverses[1])
    operand1 = vector(decoded, "operand1", sizes)
    # Between the stages in a place of its own: dst may hold operand1.
    between = np.empty(out.shape, np.float32) if decoded.maybe("operand1") else out

    def two() -> None:
        first(data(), operand0(), between)
        second(between, operand1(), out)
        store()

    return two


def _is_address_arithmetic(decoded: Decoded, stages: list[tuple[str, str, bool]]) -> bool:
    """32-bit integers throughout, vectors included: exact (assumed; docs/fidelity.md)."""
    vectors = any(decoded.maybe(name) is not None for _, name, _ in stages)
    return vectors and all_int32(decoded) and all(op in INTEGERS for op, _, _ in stages)


@semantics("scalar_tensor_tensor")
def scalar_tensor_tensor(decoded: Decoded) -> Step:
    sizes = shape_of(decoded, "dst", "data", "operand1")
    data, tensor = decoded.tile("data").source(sizes).load, decoded.tile("operand1").source(sizes)
    sink, scalar = decoded.tile("dst").sink(sizes), vector(decoded, "operand0", sizes)
    first = binary(decoded.attributes["op0"], decoded.attributes["reverse0"])
    second = binary(decoded.attributes["op1"], decoded.attributes["reverse1"])
    out, store, load = sink.out, sink.store, tensor.load
    between = np.empty(out.shape, np.float32)

    def step() -> None:
        first(data(), scalar(), between)
        second(between, load(), out)
        store()

    return step


@semantics("tensor_reduce")
def tensor_reduce(decoded: Decoded) -> Step:
    op, data, dst = decoded.attributes["op"], decoded.tile("data"), decoded.tile("dst")
    keep = 1 + len(data.sizes) - len(decoded.attributes["axis"])
    shape = (data.partitions, *data.sizes)[:keep]
    if is_bitvec(op):
        return _reduce_bits(op, data, dst, keep)
    load, sink = data.source(data.sizes).load, dst.sink()
    total = np.empty(shape, np.float32)
    flat = total.reshape(sink.out.shape)
    finish = np.negative if decoded.attributes["negate"] else np.positive

    def step() -> None:
        reduce(op, load(), total, keep)
        finish(flat, out=sink.out)
        sink.store()

    return step


def _reduce_bits(op: str, data: Tile, dst: Tile, keep: int) -> Step:
    def step() -> None:
        bits = bit_rows(data).reshape(data.partitions, *data.sizes)
        total = np.empty(bits.shape[:keep], bits.dtype)
        reduce_bits(op, bits, total, keep)
        put_rows(dst, total.reshape(dst.partitions, dst.free))

    return step


@semantics("tensor_tensor_scan")
def tensor_tensor_scan(decoded: Decoded) -> Step:
    data0, data1 = decoded.tile("data0").source().load, decoded.tile("data1").source().load
    initial, sink = vector(decoded, "initial", None), decoded.tile("dst").sink()
    names = ("op0", "op1", "reverse0", "reverse1")
    op0, op1, reverse0, reverse1 = (decoded.attributes[name] for name in names)

    def step() -> None:
        scan(data0(), data1(), initial(), sink.out, op0, op1, reverse0, reverse1)
        sink.store()

    return step


@semantics("bn_stats")
def bn_stats(decoded: Decoded) -> Step:
    data, sink = decoded.tile("data").source().load, decoded.tile("dst").sink()

    def step() -> None:
        numerics.bn_stats(data(), sink.out)
        sink.store()

    return step


@semantics("bn_aggr")
def bn_aggr(decoded: Decoded) -> Step:
    data, sink = decoded.tile("data").source().load, decoded.tile("dst").sink()

    def step() -> None:
        numerics.bn_aggr(np.array(data()), sink.out)
        sink.store()

    return step


@semantics("max8")
def max8(decoded: Decoded) -> Step:
    data, sink = decoded.tile("src").source().load, decoded.tile("dst").sink()

    def step() -> None:
        numerics.max8(data(), sink.out)
        sink.store()

    return step


@semantics("reciprocal")
def reciprocal(decoded: Decoded) -> Step:
    sizes = shape_of(decoded, "dst", "data")
    data, sink = decoded.tile("data").source(sizes).load, decoded.tile("dst").sink(sizes)
    one = np.ones((), np.float32)

    def step() -> None:
        np.divide(one, data(), out=sink.out)
        sink.store()

    return step


@semantics("tensor_copy_predicated")
def tensor_copy_predicated(decoded: Decoded) -> Step:
    dst, predicate = decoded.tile("dst"), decoded.tile("predicate")
    src = decoded.maybe("src")
    reverse = decoded.attributes["reverse_pred"]
    if dst.is_float32:
        load: Load = src.source().load if src else vector(decoded, "src", None)
    else:
        load = _bits_or_number(decoded, dst, src)
    window = dst.window()

    def step() -> None:
        chosen = (bit_rows(predicate) == 0) if reverse else (bit_rows(predicate) != 0)
        values = np.broadcast_to(load(), (dst.partitions, dst.free))
        np.copyto(window, values.reshape(window.shape), where=chosen.reshape(window.shape))

    return step


def _bits_or_number(decoded: Decoded, dst: Tile, src: Tile | None) -> Load:
    """What to copy into a tile of raw elements, in its storage type."""
    if src is not None:
        return lambda: src.bits().reshape(dst.partitions, dst.free)  # type: ignore[return-value]
    number = dst.element(decoded.number("src"))
    return lambda: number  # type: ignore[return-value]


def _bits(decoded: Decoded, data: str, stages: list[tuple[str, str, bool]]) -> Step:
    """Bitvec operators: on unsigned integers as wide as the data."""
    tile, dst = decoded.tile(data), decoded.tile("dst")
    operands = [(BITVEC[op], _word(decoded, name, tile), rev) for op, name, rev in stages]

    def step() -> None:
        bits: Array = bit_rows(tile)
        for function, operand, reverse in operands:
            other = operand()
            out = np.empty_like(bits)
            function(other, bits, out) if reverse else function(bits, other, out)
            bits = out
        put_rows(dst, bits)

    return step


def _word(decoded: Decoded, name: str, like: Tile) -> Load:
    """An integer operand as unsigned words as wide as `like`: a tile's bits, or a number."""
    kind = np.dtype(f"u{like.dtype.size}")
    tile = decoded.maybe(name)
    if tile is not None:
        return lambda: bit_rows(tile).astype(kind)
    mask = (1 << 8 * like.dtype.size) - 1
    number = np.array(int(decoded.number(name)) & mask, kind)
    return lambda: number


def _integers(decoded: Decoded, data: str, stages: list[tuple[str, str, bool]]) -> Step:
    """Exact 32-bit integer arithmetic, signed if dst is."""
    tile, dst = decoded.tile(data), decoded.tile("dst")
    kind = np.dtype(dst.dtype.name)
    operands = [(INTEGERS[op], _word(decoded, name, tile), rev) for op, name, rev in stages]

    def step() -> None:
        values: Array = bit_rows(tile).view(kind)
        for function, operand, reverse in operands:
            other = operand().view(kind)
            out = np.empty_like(values)
            function(other, values, out) if reverse else function(values, other, out)
            values = out
        put_rows(dst, values.view(np.uint32))

    return step
