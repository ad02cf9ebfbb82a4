"""Run one instruction, or a few, on given tiles, and return the contents of memory.

    x = tile(values, dtype="bfloat16", steps=(2,), buffer="psum")
    out = run_one("reciprocal", dst=x.like(dtype="float32"), data=x)

A tile is a view of a separate tensor, unless it is created by `Tile.over`. Programs are printed
IR; they pass through lower and all later stages and the file format, and are verified.
The bytes around a tile are filled with a pattern, which must be intact afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, pairwise
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from nkic.artifact.encode import write
from nkic.artifact.read import read
from nkic.artifact.records import Executable
from nkic.artifact.verify import verify
from nkic.base.diagnostics import Reporter
from nkic.compiler.allocate import allocate
from nkic.compiler.depend import depend
from nkic.compiler.emit import emit
from nkic.compiler.lower import lower
from nkic.compiler.schedule import schedule
from nkic.machine.codecs import storage
from nkic.machine.dtypes import DTYPES
from nkic.machine.instructions import ROWS
from nkic.machine.patterns import reach
from nkic.machine.targets import TARGETS
from nkic.prove import prove_lowered
from nkic.simulate import Result, RunOptions, simulate_ranks
from nkic.simulate.memory import GRID_TYPES
from tests.harness.reference import numpy_type, stored
from tests.programs import op, program

Array = NDArray[Any]
FILL = 0x5A  # the value of every byte outside of tiles


@dataclass(eq=False)
class Tensor:
    """The storage of tiles: `bytes` per partition (in HBM: in all), with initial contents."""

    dtype: str
    partitions: int
    bytes: int
    buffer: str
    contents: Array = field(init=False)

    def __post_init__(self) -> None:
        self.contents = np.full((self.partitions, self.bytes), FILL, np.uint8)

    @property
    def shape(self) -> str:
        return f"{self.partitions}, {self.bytes // DTYPES[self.dtype].size}"


class By(NamedTuple):
    """The run-time part of a tile's address, in a tile or a register.

    "scalar": one offset, times `stride` elements. "columns": an offset for each element of a
    partition, the same for all partitions. "vector": in HBM, one offset for each outermost element.
    """

    kind: str
    offsets: tuple[int, ...]
    stride: int
    limit: int
    source: Tile | int


@dataclass(frozen=True, eq=False)
class Tile:
    """An operand: a view of a tensor. `dims` are (step, num), outermost first."""

    tensor: Tensor
    dtype: str
    start: int
    partitions: int
    offset: int
    dims: tuple[tuple[int, int], ...]
    by: By | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.partitions, *(num for _, num in self.dims))

    def window(self, contents: Array) -> Array:
        """Return the elements in `contents` of the tensor: a view, unless there are many
        offsets.
        """
        window = self._every(contents, numpy_type(self.dtype), ())
        return window if self._rows is None else window[self._rows]

    def mark(self, flags: Array) -> None:
        """Clear the flags of the tile's bytes."""
        self._every(flags, np.dtype(np.bool_), (1,))[self._rows or ()] = False

    @property
    def _rows(self) -> tuple[Any, ...] | None:
        """Select the elements at many offsets from `_every`."""
        if self.by is None or self.by.kind == "scalar":
            return None
        return (slice(None), list(self.by.offsets))

    def _every(self, memory: Array, kind: np.dtype[Any], more: tuple[int, ...]) -> Array:
        """Return the elements, or, with many offsets, those of every offset; flags of bytes have
        one dimension `more`.
        """
        size, offset, dims = DTYPES[self.dtype].size, self.offset, list(self.dims)
        if self.by is not None and self.by.kind == "scalar":
            offset += self.by.offsets[0] * self.by.stride
        elif self.by is not None:
            dims[0] = (self.by.stride, self.by.limit)
        shape = (self.partitions, *(num for _, num in dims), *(size for _ in more))
        strides = (memory.strides[0], *(step * size for step, _ in dims), *more)
        first = self.start * memory.strides[0] + offset * size
        return np.ndarray(shape, kind, memory, first, strides)

    def over(self, **changes: Any) -> Tile:
        """Return another view of the same tensor."""
        return replace(self, **changes)

    def like(self, **changes: Any) -> Tile:
        """Return a tile of this shape in a new tensor."""
        return tile(self.shape, **{"dtype": self.dtype, **changes})

    def text(self, tensors: list[Tensor]) -> str:
        number = 2 * len(tensors) + tensors.index(self.tensor)
        dims = ", ".join(f"{step}x{num}" for step, num in self.dims)
        start = "" if "hbm" in self.tensor.buffer else f"{self.start}+{self.partitions}, "
        kind = "" if self.dtype == self.tensor.dtype else f":{self.dtype}"
        text = f"%{number}[{start}{self.offset}; {dims}]{kind}"
        if self.by is None:
            return text
        way, _, stride, limit, held = self.by
        source = held.text(tensors) if isinstance(held, Tile) else f"${held}"
        return f"{text} by {way} {source} stride {stride} limit {limit} axis {way == 'columns':d}"


def tile(
    values: Array | tuple[int, ...],
    *,
    dtype: str | None = None,
    buffer: str = "sbuf",
    start: int = 0,
    offset: int = 0,
    steps: Sequence[int] | None = None,
    room: int = 0,
) -> Tile:
    """Return a tile that holds `values`, rounded to `dtype`, or an empty tile of a shape.

    `steps` of the free dimensions are in elements; without them, the elements are contiguous.
    `room` is the number of elements that the tensor has after the tile's last element.
    """
    shape = values if isinstance(values, tuple) else values.shape
    kind = dtype or (values.dtype.name if isinstance(values, np.ndarray) else "float32")
    partitions, *sizes = shape if buffer != "hbm" else (1, *shape)
    if steps is None:
        steps = [int(np.prod(sizes[i + 1 :], dtype=int)) for i in range(len(sizes))]
    dims = tuple(zip(steps, sizes, strict=True))
    first = offset - sum(step * (num - 1) for step, num in dims if step < 0)
    size = DTYPES[kind].size
    tensor = Tensor(kind, start + partitions, (offset + reach(dims) + room) * size, buffer)
    made = Tile(tensor, kind, start, partitions, first, dims)
    if isinstance(values, np.ndarray):
        exact = values.dtype == numpy_type(kind)
        elements = values if exact else stored(values, kind)
        made.window(tensor.contents)[...] = elements.reshape(made.shape)
    return made


class Call(NamedTuple):
    """An instruction: tiles, numbers and registers ("$1") as operands, attributes by name."""

    row: str
    values: dict[str, Any]
    engine: str = "any"


def call(row: str, engine: str = "any", **values: Any) -> Call:
    return Call(row, values, engine)


def run_one(row: str, *, engine: str = "any", target: str = "trn2", **values: Any) -> Array:
    """Run one instruction and return the elements of dst."""
    return run([call(row, engine, **values)], target=target)[values["dst"]]


def run(
    calls: Sequence[Call], *, target: str = "trn2", precise: bool = True, raw: bool = False
) -> Outcome:
    return built(calls, target).run(precise, raw)


Contents = Mapping[Tensor, Array]


class Outcome:
    """The memory after a run: the elements of each tile. No other bytes may have been written."""

    def __init__(self, build: Built, result: Result, contents: Contents) -> None:
        self.result = result
        self.memory = {
            tensor: np.ascontiguousarray(result.outputs[f"output_{i}"])
            .view(np.uint8)
            .reshape(tensor.contents.shape)
            for i, tensor in enumerate(build.tensors)
            if tensor in contents
        }
        for tensor, found in self.memory.items():
            changed = found != contents[tensor]
            for written in build.written:
                if written.tensor is tensor:
                    written.mark(changed)
            assert not changed.any(), "bytes beside the result have changed"

    def __getitem__(self, wanted: Tile) -> Array:
        return wanted.window(self.memory[wanted.tensor]).copy()


class Built(NamedTuple):
    """A compiled program. Tensors in shared HBM are neither loaded nor stored."""

    tensors: list[Tensor]
    written: list[Tile]
    executable: Executable

    def run(self, precise: bool = True, raw: bool = False, check_init: bool = True) -> Outcome:
        """Run the program. With `raw`, no memory is kept as decoded numbers."""
        kept = frozenset() if raw else GRID_TYPES
        options = RunOptions(precise=precise, check_init=check_init)
        with patch("nkic.simulate.memory.GRID_TYPES", kept):
            return self.run_ranks([{t: t.contents for t in self.own}], options)[0]

    @property
    def own(self) -> list[Tensor]:
        return [tensor for tensor in self.tensors if tensor.buffer != "shared_hbm"]

    def run_ranks(
        self, ranks: Sequence[Contents], options: RunOptions | None = None
    ) -> list[Outcome]:
        """Run several ranks together, each with its own contents."""
        inputs = [self._inputs(contents) for contents in ranks]
        results = simulate_ranks(self.executable, inputs, options)
        return [Outcome(self, *both) for both in zip(results, ranks, strict=True)]

    def _inputs(self, contents: Contents) -> dict[str, Array]:
        found = {}
        for tensor, port in zip(self.own, self.executable.inputs, strict=True):
            elements = contents[tensor].view(storage(DTYPES[tensor.dtype]))
            found[port.name] = elements.reshape(self.executable.tensors[port.tensor].shape)
        return found


def built(calls: Sequence[Call], target: str = "trn2") -> Built:
    """Compile and verify the program of one core."""
    return built_cores([calls], target)


def built_cores(cores: Sequence[Sequence[Call]], target: str = "trn2") -> Built:
    """Compile and verify a program of several cores."""
    tensors = list(dict.fromkeys(t for calls in cores for t in _tensors(calls)))
    text = replace(program("\n".join(_lines(cores, tensors))), target=TARGETS[target])
    report = Reporter()
    lowered = lower(text, report)
    assert prove_lowered(text, lowered) == []
    placed, graphs = allocate(lowered, depend(lowered), report)
    executable = read(write(emit(schedule(placed, graphs), {})))
    verify(executable)
    calls = [call for core in cores for call in core]
    return Built(tensors, [tile for c in calls for tile in _results(c)], executable)


def _tensors(calls: Sequence[Call]) -> dict[Tensor, None]:
    tiles = (t for c in calls for v in c.values.values() for t in _tiles(v))
    return dict.fromkeys(t.tensor for t in tiles)


def _tiles(value: Any) -> list[Tile]:
    """Return a tile operand followed by the tiles that hold its offsets."""
    if not isinstance(value, Tile):
        return []
    return [value, *_tiles(value.by.source if value.by else None)]


def _results(c: Call) -> list[Tile]:
    written = [o.name for o in ROWS[c.row].operands if o.access.writes]
    return [v for name in written if isinstance(v := c.values.get(name), Tile)]


# The text of the program. Tensor i is the input %i, the output %(n + i), and %(2 n + i) during the
# program; if that is in PSUM, %(3 n + i) is an intermediate copy in SBUF.


def _lines(cores: Sequence[Sequence[Call]], tensors: list[Tensor]) -> Iterator[str]:
    size, number = len(tensors), count()
    for block, name in enumerate(("in", "out", "t", "stop")):
        for i, t in enumerate(tensors):
            yield f"%{block * size + i} {name}{i}: {t.dtype}[{t.shape}] {_memory(t, name)}"
    own = [i for i, t in enumerate(tensors) if t.buffer != "shared_hbm"]
    yield from (f"input x{i} = %{i}" for i in own)
    yield from (f"output output_{i} = %{size + i}" for i in own)
    for calls in cores:
        yield "core"
        here = _tensors(calls)
        yield from _core(number, calls, tensors, [i for i in own if tensors[i] in here])


def _core(
    number: Iterator[int], calls: Sequence[Call], tensors: list[Tensor], own: list[int]
) -> Iterator[str]:
    """Return loads of the tensors in `own`, the instructions, and stores."""
    size = len(tensors)
    for i in own:
        yield from _moves(number, tensors[i], [i, 3 * size + i, 2 * size + i], size)
    for c in calls:
        for by in (v.by for v in c.values.values() if isinstance(v, Tile) and v.by):
            if isinstance(by.source, int):
                made = {"dst": f"${by.source}", "x": str(by.offsets[0])}
                yield op(next(number), "register_alloc", "sync", **made)
        yield _text(next(number), c, tensors)
    for i in own:
        yield from _moves(number, tensors[i], [2 * size + i, 3 * size + i, size + i], size)


def _memory(tensor: Tensor, name: str) -> str:
    return {"in": "shared_hbm", "out": "shared_hbm", "stop": "sbuf"}.get(name, tensor.buffer)


def _moves(number: Iterator[int], t: Tensor, way: list[int], size: int) -> Iterator[str]:
    if t.buffer != "psum":
        del way[1]
    for src, dst in pairwise(way):
        row = "tensor_copy" if min(src, dst) >= 2 * size else "dma_copy"
        engine = "vector" if row == "tensor_copy" else "dma"
        whole = {"dst": _whole(dst, t, size), "src": _whole(src, t, size)}
        yield op(next(number), row, engine, **whole)


def _whole(number: int, t: Tensor, size: int) -> str:
    elements = t.bytes // DTYPES[t.dtype].size
    if number < 2 * size or t.buffer == "hbm":
        return f"%{number}[0; {elements}x{t.partitions}, 1x{elements}]"
    return f"%{number}[0+{t.partitions}, 0; 1x{elements}]"


def _text(number: int, c: Call, tensors: list[Tensor]) -> str:
    row, values = ROWS[c.row], c.values
    operands = [
        f"{o.name}={_operand(values.get(o.name, o.default), tensors)}" for o in row.operands
    ]
    attributes = [f"{a.name}={values.get(a.name, a.default)!r}" for a in row.attributes]
    return f"#{number} {c.engine} {c.row}({', '.join(operands)}; {', '.join(attributes)})"


def _operand(value: Any, tensors: list[Tensor]) -> str:
    if isinstance(value, Tile):
        return value.text(tensors)
    return value if isinstance(value, str) and value.startswith("$") else repr(value)
