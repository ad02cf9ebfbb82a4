"""Models of instructions: their documented behaviour, independent of the code.

    @model("reciprocal")
    def reciprocal(given: Given) -> Results:
        return {"dst": given.rounded("dst", apply("reciprocal", given.numbers("data"), None))}

Random instances are drawn from the table's row alone: operands of every accepted type and memory,
at any address, with any order of dimensions, dst overlapping a source; attributes with all their
values. Instances that a rule rejects are drawn again. A model helps where that is not enough:
`shapes` gives operand shapes, `settings` draw an attribute or operand, `fill` puts values into
tiles, `silent` names parameters that change no value, `program` draws several instructions.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nkic.machine.dtypes import DTYPES
from nkic.machine.instructions import ROWS
from nkic.machine.operands import Attribute, AttributeKind, Facts, Operand, Register, Row
from nkic.machine.operands import Tile as FactTile
from nkic.machine.operators import ACTIVATIONS, ALU
from nkic.machine.rules import violations
from nkic.machine.targets import PSUM_BANK_BYTES, TARGETS, Buffer, Engine
from tests.harness.displace import displace
from tests.harness.drawing import Draw
from tests.harness.instruction import Call, Tile
from tests.harness.reference import loaded, stored

Array = NDArray[Any]
Shape = tuple[int, ...]
Settings = dict[str, Any]


class Near(NamedTuple):
    """Elements that must lie between two bounds, both inclusive.

    If a bound is NaN, the element is NaN or within the other bound; elements that are not `known`
    may have any value.
    """

    low: Array
    high: Array
    known: Array | None = None


class Bits(NamedTuple):
    """Elements that must be equal bit for bit, including the sign and payload of NaN."""

    elements: Array


Results = dict[str, Array | Near | Bits]


class Given:
    """An instruction as a model sees it: the values before the run, by name."""

    def __init__(self, call: Call, target: str, state: dict[str, Any]) -> None:
        self.row, self.values, self.target = ROWS[call.row], call.values, target
        self.generation, self.state = TARGETS[target].generation, state
        self.engine = _engine(self.row, call, target).value
        self.used: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        """Return an attribute, a number, a register's name or None."""
        self.used.add(name)
        value = self.values[name]
        return self.elements(name) if isinstance(value, Tile) else value

    def elements(self, name: str) -> Array:
        """Return the elements of a tile, (partitions, free)."""
        of = self.tile(name)
        return np.ascontiguousarray(of.window(of.tensor.contents)).reshape(of.partitions, -1)

    def numbers(self, name: str) -> Array:
        """Return a tile's elements or a number, converted to float32, in float64."""
        value = self[name]
        given = value if isinstance(value, np.ndarray) else np.array(value)
        with np.errstate(invalid="ignore"):  # signalling NaN
            return loaded(given).astype(np.float64)

    def tile(self, name: str) -> Tile:
        self.used.add(name)
        found = self.values[name]
        assert isinstance(found, Tile)
        return found

    def is_tile(self, name: str) -> bool:
        self.used.add(name)
        return isinstance(self.values[name], Tile)

    def dtype(self, name: str) -> str:
        return self.tile(name).dtype

    def rounded(self, name: str, numbers: Array) -> Array:
        """Return float32 numbers as elements of the operand's type, in its shape."""
        of = self.tile(name)
        wanted = (of.partitions, int(np.prod(of.shape[1:])))
        return stored(np.broadcast_to(numbers, wanted), of.dtype)

    def near(self, name: str, numbers: Array, slack: Array | float) -> Near:
        """Return bounds for numbers whose error is at most `slack`."""
        with np.errstate(all="ignore"):
            low, high = numbers - slack, numbers + slack
        same = np.isinf(numbers)
        low, high = np.where(same, numbers, low), np.where(same, numbers, high)
        if self.dtype(name) == "bool":
            low = np.where((low <= 0) & (high >= 0), 0, low)
        found = Near(self.rounded(name, low), self.rounded(name, high))
        # In a type without infinities both bounds may be NaN: then nothing is known.
        lost = _nan(found.low) & _nan(found.high) & ~_nan(self.rounded(name, numbers))
        return found._replace(known=~lost) if lost.any() else found


def _nan(elements: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return np.isnan(elements.astype(np.float64))


Meaning = Callable[[Given], Results]
Shapes = Callable[[Draw, Row, Settings], dict[str, Shape]]


@dataclass(frozen=True)
class Model:
    """A model: its function and its options, described in the module's docstring."""

    meaning: Meaning
    shapes: Shapes
    settings: Mapping[str, Callable[[Draw], Any]] = field(default_factory=dict)
    fill: Callable[[Draw, Settings], None] | None = None
    silent: tuple[str, ...] = ()
    program: Callable[[Draw, str], list[Call]] | None = None


MODELS: dict[str, Model] = {}


def alike(draw: Draw, row: Row, settings: Settings) -> dict[str, Shape]:
    """Give all tiles one shape, except tiles with one element per partition."""
    shape = (draw.pick([1, 3, 32, 40, 128]), draw.pick([1, 5, 12, 24, 36]))
    return {o.name: (shape[0], 1) if o.column else shape for o in row.operands}


def model(name: str, shapes: Shapes = alike, **more: Any) -> Callable[[Meaning], Meaning]:
    """Register the decorated function as the semantics of a row."""

    def register(meaning: Meaning) -> Meaning:
        assert name in ROWS and name not in MODELS
        MODELS[name] = Model(meaning, shapes, **more)
        return meaning

    return register


# Instances.

NUMBERS = (0, 1, 3, -2, 0.0, 1.0, 0.5, -3.0, 0.1, 1e10, 200)
TRIES, REPAIRS = 60, 120


def instance(draw: Draw, name: str, target: str) -> Call:
    """Draw a random legal instruction."""
    for _ in range(TRIES):
        found = _attempt(draw, ROWS[name], target)
        if found is not None:
            return found
    raise AssertionError(f"no legal {name} was found: give its model `shapes` or `settings`")


def program(draw: Draw, name: str, target: str) -> list[Call]:
    """Draw one instruction, or several if they leave state for the next one."""
    given = MODELS[name].program
    return given(draw, target) if given else [instance(draw, name, target)]


class _Noted(Settings):
    """Settings that record which ones `shapes` has set: these are not drawn again."""

    def __init__(self, given: Iterable[tuple[str, Any]]) -> None:
        super().__init__(given)
        self.noted: set[str] = set()

    def __setitem__(self, name: str, value: Any) -> None:
        self.noted.add(name)
        super().__setitem__(name, value)


def _attempt(draw: Draw, row: Row, target: str) -> Call | None:
    chosen = MODELS[row.name]
    engines = ["any", *(e.value for e in row.engines)] if row.has_engine_parameter else ["any"]
    engine = draw.pick(engines)
    values = _Noted((a.name, _setting(draw, chosen, a)) for a in row.attributes)
    shapes = chosen.shapes(draw, row, values)
    coupled = set(values.noted)
    common = draw.pick(_types(any(o.wide for o in row.operands)))

    def value(name: str) -> Any:
        if name in row.attribute_index:
            return _setting(draw, chosen, row.attributes[row.attribute_index[name]])
        operand = row.operands[row.operand_index[name]]
        return _operand(draw, chosen, operand, shapes.get(operand.name), common)

    values |= {o.name: value(o.name) for o in row.operands if o.name not in values}
    for _ in range(REPAIRS):
        made = Call(row.name, values, engine)
        found = violations(row, facts(made, target))
        if not found and not _is_in_one_bank(row, values):
            return None
        if not found:
            _lay_over(draw, row, values, made, target)
            _fill(draw, chosen, values)
            displace(draw, row, values, partial(_legal, row, made, target))
            return made
        name = found[0].operand if draw.chance(0.8) else draw.pick([*values])
        if name not in values or name in coupled or draw.chance(0.02):
            return None
        values[name] = value(name)
    return None


def _legal(row: Row, made: Call, target: str) -> bool:
    return not violations(row, facts(made, target)) and _is_in_one_bank(row, made.values)


def _is_in_one_bank(row: Row, values: Mapping[str, Any]) -> bool:
    """Return whether the tensor engine's result is in one bank, as required before NeuronCore-v4: a
    separate tensor begins at a bank.
    """
    dst = values.get("dst")
    if Engine.TENSOR not in row.engines or not isinstance(dst, Tile) or dst.tensor.buffer != "psum":
        return True
    ends = [step * (count - 1) for step, count in dst.dims]
    low = dst.offset + sum(min(0, end) for end in ends)
    high = dst.offset + sum(max(0, end) for end in ends)
    size = DTYPES[dst.dtype].size
    return low * size // PSUM_BANK_BYTES == ((high + 1) * size - 1) // PSUM_BANK_BYTES


def _fill(draw: Draw, chosen: Model, values: Settings) -> None:
    for value in values.values():
        if isinstance(value, Tile):
            draw.contents(value)
    if chosen.fill:
        chosen.fill(draw, values)


def _setting(draw: Draw, chosen: Model, attribute: Attribute) -> Any:
    """Draw any value that an attribute may have, or its default if its kind does not list
    values.
    """
    if attribute.name in chosen.settings:
        return chosen.settings[attribute.name](draw)
    if attribute.optional and draw.chance(0.4):
        return None
    ranges: dict[AttributeKind, tuple[Any, ...]] = {
        AttributeKind.ALU: tuple(ALU),
        AttributeKind.ACTIVATION: tuple(ACTIVATIONS),
        AttributeKind.BOOL: (False, True),
        AttributeKind.CHOICE: attribute.choices,
        AttributeKind.NUMBER: NUMBERS,
        AttributeKind.INT: (0, 1, 2, 3, 7),
        AttributeKind.INT32: (0, 1, -7, 1000, 2**31 - 3),
    }
    return draw.pick(ranges.get(attribute.kind, (attribute.default,)))


def _operand(draw: Draw, chosen: Model, o: Operand, shape: Shape | None, common: str) -> Any:
    if o.name in chosen.settings:
        return chosen.settings[o.name](draw)
    if o.optional and draw.chance(0.25):
        return None
    if (o.number and draw.chance()) or not o.buffers:
        return draw.pick(NUMBERS)
    if shape is None:
        return None
    types = sorted(o.dtypes) or _types(o.wide)
    types = [t for t in types if o.packed or DTYPES[t].kind != "packed"]
    dtype = common if common in types and draw.chance(0.6) else draw.pick(types)
    buffer = draw.pick(sorted(b.value for b in o.buffers if b is not Buffer.SHARED_HBM))
    exact = o.keep_rank or len(shape) > 2
    return draw.tile(
        shape,
        dtype,
        buffer,
        dims=min(o.max_dims, 3),
        exact=exact,
        reads=not o.access.writes,
    )


def _types(wide: bool) -> list[str]:
    return [name for name, dtype in DTYPES.items() if wide or not dtype.is_wide]


def _lay_over(draw: Draw, row: Row, values: Settings, made: Call, target: str) -> None:
    """Sometimes place a result, or another source, in the memory of a source."""
    tiles = [o for o in row.operands if isinstance(values[o.name], Tile)]
    sources = [o.name for o in tiles if not o.access.writes]
    if not sources or not draw.chance(0.4):
        return
    under = draw.pick(sources)
    over = draw.pick([o for o in tiles if o.name != under] or tiles)
    old, new = values[under], values[over.name]
    if over.name == under or old.partitions < new.partitions:
        return
    room = -(-2 * new.tensor.bytes // DTYPES[old.dtype].size)
    below = draw.tile(
        old.shape[1:] if old.tensor.buffer == "hbm" else old.shape,
        old.dtype,
        old.tensor.buffer,
        exact=True,
        room=room,
    )
    above = _view(draw, below, new)
    if above is None:
        return
    changed = {**values, under: below, over.name: above}
    if _legal(row, made._replace(values=changed), target):
        values |= changed


def _view(draw: Draw, below: Tile, like: Tile) -> Tile | None:
    """Return a tile with the shape and type of `like` in the memory of `below`, in dense
    dimensions.
    """
    size, total = DTYPES[like.dtype].size, below.tensor.bytes
    free = int(np.prod([num for _, num in like.dims], dtype=int))
    if total % size or total // size < free or below.tensor.buffer != like.tensor.buffer:
        return None
    sizes = [num for _, num in like.dims]
    steps = [int(np.prod(sizes[i + 1 :], dtype=int)) for i in range(len(sizes))]
    start = draw.integer(0, total // size - free)
    return below.over(
        dtype=like.dtype,
        partitions=like.partitions,
        offset=start,
        dims=tuple(zip(steps, sizes, strict=True)),
    )


# The compiler's view of an instance.


def facts(call: Call, target: str) -> Facts:
    row = ROWS[call.row]
    operands = {o.name: _fact(call.values[o.name]) for o in row.operands}
    attributes = {a.name: call.values[a.name] for a in row.attributes}
    engine = None if call.engine == "any" else Engine(call.engine)
    return Facts(TARGETS[target], operands, attributes, engine)


def _engine(row: Row, call: Call, target: str) -> Engine:
    found = facts(call, target)
    return found.engine or row.choose(found)


def _fact(value: Any) -> Any:
    if isinstance(value, str):
        return Register(int(value[1:]))
    if not isinstance(value, Tile):
        return value
    buffer = Buffer(value.tensor.buffer)
    partitions = value.partitions if buffer.on_chip else 0
    plain = FactTile(buffer, DTYPES[value.dtype], value.start, partitions, value.dims)
    if value.by is None:
        return plain
    held, indexed = value.by.source, value.by.kind != "scalar"
    offsets = _fact(held) if isinstance(held, Tile) else None
    return plain._replace(dynamic=True, indexed=indexed, offsets=offsets)
