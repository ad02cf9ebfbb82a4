"""Microkernels as data: an instruction, its tiles, and the figures derived from its time.

Each runs one instruction several times, with separate results, while other engines are idle. Both
the kernel (`report/calibrate.py`) and the predicted time are generated from this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from nkic.machine.dtypes import DTYPES
from nkic.machine.instructions import ROWS
from nkic.machine.operands import Facts, Row, Tile
from nkic.machine.targets import Buffer, Engine, Target
from nkic.machine.timing import Timing, Warmth, semaphore_ps, timing

INTERVAL, DURATION, ARRIVAL, SPAN = ("interval", "duration", "arrival", "span")
PARTITIONS = 128
REPEATS = 6  # as many results as fit into PSUM beside a source
WARMING = 40  # unmeasured products first: more than the engine needs to warm up


@dataclass(frozen=True)
class Probe:
    """A microkernel.

    `tiles` maps operands to tiles such as "float32 512 psum"; `figures` are the figures it
    determines. `quantity` is the time measured: INTERVAL, from start to start; DURATION, from start
    to end; ARRIVAL, from the start of an instruction or the trigger of a transfer to the start of
    the instruction that waits for it; SPAN, from the start of a product on a cold engine, over
    WARMING more, to the start of the next. Every second repeat has the attributes `alternate`.
    `warm`: unmeasured products come first.
    """

    name: str
    row_name: str
    engine: Engine
    tiles: Mapping[str, str]
    attributes: Mapping[str, Any]
    quantity: str
    figures: tuple[str, ...]
    numbers: Mapping[str, float] = field(default_factory=dict)  # operands that are not tiles
    alternate: Mapping[str, Any] = field(default_factory=dict)
    warm: bool = True

    @property
    def row(self) -> Row:
        return ROWS[self.row_name]

    @cached_property
    def operands(self) -> dict[str, Tile]:
        return {name: tile_of(text) for name, text in self.tiles.items()}

    def predicted(self, target: Target) -> float:
        defaults = {a.name: a.default for a in self.row.attributes}
        facts = Facts(
            target,
            {**{o.name: None for o in self.row.operands}, **self.operands, **self.numbers},
            {**defaults, **self.attributes},
            self.engine,
        )
        times = timing(self.row, facts, self.engine)
        if not self.warm:
            count = 1 if self.quantity == INTERVAL else WARMING + 1
            warmth, now = Warmth(target), 0
            for _ in range(count):
                now += warmth.duration(now, times)
            return now / 1000
        table = target.figures["scalar.table_ns"] if self.alternate else 0.0
        return table + _quantity(self.quantity, times, target)


def _quantity(quantity: str, times: Timing, target: Target) -> float:
    if quantity == ARRIVAL:
        ps = times.start + times.hold + times.latency + semaphore_ps(target)
    elif quantity == DURATION:
        ps = times.hold + times.latency
    else:
        ps = max(times.hold, times.trigger) if not times.pool else max(times.trigger, times.pool)
    return ps / 1000


def tile_of(text: str) -> Tile:
    """Parse "float32 512 psum": columns of all partitions; in HBM, rows.

    A final "dynamic" means an address from a register.
    """
    dtype, columns, buffer, *flags = text.split()
    memory = Buffer(buffer)
    inner = (1, int(columns))
    if memory.on_chip:
        return Tile(memory, DTYPES[dtype], 0, PARTITIONS, (inner,), bool(flags))
    return Tile(memory, DTYPES[dtype], 0, 0, ((ROW_LENGTH, PARTITIONS), inner))


ROW_LENGTH = 4096  # elements of a row of the kernels' argument; transfers move a part of each row


V, S, G, T, D = Engine.VECTOR, Engine.SCALAR, Engine.GPSIMD, Engine.TENSOR, Engine.DMA
_ADD = {"op": "add", "axis": (1,)}
_EXP, _COPY = {"op": "exp"}, {"op": "copy"}


def _of(dst: str, **sources: str) -> dict[str, str]:
    return {"dst": dst, **sources}


def _product(name: str, columns: int, dtype: str, quantity: str, figure: str) -> Probe:
    """Return the probe of a product of 128 x 128 by 128 x `columns`."""
    tiles = _factors(columns, dtype)
    return Probe(name, "nc_matmul", T, tiles, {"accumulate": False}, quantity, (figure,))


def _factors(columns: int, dtype: str) -> dict[str, str]:
    sources = {"stationary": f"{dtype} 128 sbuf", "moving": f"{dtype} {columns} sbuf"}
    return _of(f"float32 {columns} psum", **sources)


def _cold_product(name: str, quantity: str, figure: str) -> Probe:
    """Return the probe of products on a cold engine: several, or a sum of many."""
    once, alternate = {"accumulate": False}, {"accumulate": quantity == SPAN}
    tiles = _factors(512, "bfloat16")
    return Probe(
        name, "nc_matmul", T, tiles, once, quantity, (figure,), alternate=alternate, warm=False
    )


def _transfer(name: str, columns: int, quantity: str, figure: str, mode: str) -> Probe:
    """Return the probe of a load of rows of `columns` float32."""
    tiles = _of(f"float32 {columns} sbuf", src=f"float32 {columns} hbm")
    queue = {"engine": "sync"} if mode == "hwdge" else {}
    return Probe(name, "dma_copy", D, tiles, {"dge_mode": mode, **queue}, quantity, (figure,))


def _dma_transpose(memory: str) -> Probe:
    tiles = _of("bfloat16 128 sbuf", src=f"bfloat16 128 {memory}")
    name, figure = f"dma_transpose_{memory}", f"dma.transpose_{memory}"
    return Probe(name, "dma_transpose", D, tiles, {}, ARRIVAL, (figure,))


def _probes(
    engine: Engine,
    name: str,
    row: str,
    tiles: str,
    attributes: Mapping[str, Any] | None = None,
    numbers: Mapping[str, float] | None = None,
    alternate: Mapping[str, Any] | None = None,
    **figures: str,
) -> list[Probe]:
    """Return a probe for each quantity whose figure is given.

    `tiles` are those of the operands: "dst float32 512 sbuf, src float32 512 psum".
    """
    operands = dict(tile.split(" ", 1) for tile in tiles.split(", "))
    more = numbers or {}, alternate or {}
    return [
        Probe(name, row, engine, operands, attributes or {}, quantity, (figure,), *more)
        for quantity, figure in figures.items()
    ]


def _long_stream(
    engine: Engine, row: str, source: str, attributes: Mapping[str, Any]
) -> list[Probe]:
    """Return the probe of a long stream, which determines the clock."""
    name, tiles = f"{engine.value}_long", f"dst float32 4096 sbuf, {source} float32 4096 sbuf"
    return _probes(engine, name, row, tiles, attributes, interval=f"{engine.value}.clock_mhz")


_TILE = "float32 512 sbuf"
PROBES: tuple[Probe, ...] = (
    *_probes(
        *(V, "vector_reduce", "tensor_reduce", f"dst float32 1 sbuf, data {_TILE}", _ADD),
        interval="vector.interval_sbuf",
        duration="vector.duration_sbuf",
    ),
    *_probes(
        *(V, "vector_copy_psum", "tensor_copy", f"dst {_TILE}, src float32 512 psum"),
        interval="vector.interval_psum",
        duration="vector.duration_psum",
    ),
    *_long_stream(V, "tensor_copy", "src", {}),
    *_probes(
        *(V, "vector_short", "tensor_copy", "dst float32 1 sbuf, src float32 1 sbuf"),
        interval="issue.least",
    ),
    *_probes(
        *(V, "vector_dynamic", "tensor_copy", "dst float32 64 sbuf, src float32 64 sbuf dynamic"),
        interval="issue.least_dynamic",
    ),
    *_probes(
        *(V, "vector_pointer", "tensor_scalar"),
        f"dst {_TILE}, data {_TILE}, operand0 float32 1 sbuf",
        {"op0": "multiply"},
        interval="vector.pointer",
        duration="vector.pointer",
    ),
    *(
        probe
        for n, figure in ((128, "vector.scan"), (2048, "vector.scan_per_element"))
        for probe in _probes(
            *(V, f"vector_scan_{n}", "tensor_tensor_scan"),
            f"dst float32 {n} sbuf, data0 float32 {n} sbuf, data1 float32 {n} sbuf",
            {"op0": "multiply", "op1": "add"},
            {"initial": 0.0},
            interval=figure,
        )
    ),
    *_probes(
        *(V, "vector_two_tiles", "tensor_tensor"),
        "dst float32 2048 sbuf, data1 float32 2048 sbuf, data2 float32 2048 sbuf",
        {"op": "add"},
        interval="vector.two_tiles_per_element",
    ),
    *_probes(
        *(V, "vector_scalar_tile", "scalar_tensor_tensor"),
        "dst float32 2048 sbuf, data float32 2048 sbuf, operand1 float32 2048 sbuf",
        {"op0": "multiply", "op1": "add"},
        {"operand0": 2.0},
        interval="vector.scalar_tile_per_element",
    ),
    *_probes(
        *(V, "vector_read_out", "tensor_scalar_reduce"),
        f"dst {_TILE}, data {_TILE}, reduce_res float32 1 sbuf",
        {"op0": "multiply", "reduce_op": "add"},
        {"operand0": 2.0},
        interval="vector.accumulator_read",
    ),
    *_probes(
        *(S, "scalar_copy", "activation", f"dst {_TILE}, data {_TILE}", _COPY),
        interval="scalar.interval_sbuf",
        duration="scalar.duration_sbuf",
    ),
    *_probes(
        *(S, "scalar_copy_psum", "activation", f"dst {_TILE}, data float32 512 psum", _COPY),
        interval="scalar.interval_psum",
        duration="scalar.duration_psum",
    ),
    *_probes(
        *(S, "scalar_exp", "activation", f"dst {_TILE}, data {_TILE}", _EXP),
        interval="scalar.function",
        duration="scalar.function",
    ),
    *_probes(
        *(S, "scalar_read_out", "activation"),
        f"dst {_TILE}, data {_TILE}, reduce_res float32 1 sbuf",
        {"op": "copy", "reduce_op": "add", "reduce_cmd": "reset_reduce"},
        interval="scalar.accumulator_read",
    ),
    *_long_stream(S, "activation", "data", _COPY),
    *_probes(
        *(S, "scalar_tables", "activation", f"dst {_TILE}, data {_TILE}", _EXP),
        alternate={"op": "sin"},
        interval="scalar.table_ns",
    ),
    *_probes(
        *(G, "gpsimd_copy", "tensor_copy", f"dst {_TILE}, src {_TILE}"),
        interval="gpsimd.interval",
        duration="gpsimd.duration",
    ),
    *_long_stream(G, "tensor_copy", "src", {}),
    *_probes(
        *(G, "gpsimd_iota", "iota", "dst int32 512 sbuf", {"pattern": ((1, 512),)}, {"offset": 0}),
        interval="gpsimd.start",
    ),
    *_probes(
        *(G, "gpsimd_signal", "tensor_copy", f"dst {_TILE}, src {_TILE}"),
        arrival="issue.semaphore_ns",
    ),
    _product("tensor_16", 512, "bfloat16", INTERVAL, "tensor.clock_mhz"),
    _product("tensor_16_short", 256, "bfloat16", INTERVAL, "tensor.issue"),
    _cold_product("tensor_cold", INTERVAL, "tensor.cold_rate"),
    _cold_product("tensor_warming", SPAN, "tensor.warm_up_ns"),
    _product("tensor_16", 512, "bfloat16", DURATION, "tensor.fill_ns"),
    _product("tensor_32", 512, "float32", INTERVAL, "tensor.passes_32"),
    _product("tensor_32_short", 128, "float32", INTERVAL, "tensor.load_32_ns"),
    _transfer("dma_hwdge", 128, ARRIVAL, "dma.start_hwdge_ns", "hwdge"),
    _transfer("dma_swdge", 128, ARRIVAL, "dma.start_swdge_ns", "swdge"),
    _transfer("dma_prepared", 128, ARRIVAL, "dma.start_prepared_ns", "none"),
    _transfer("dma_long", 4096, ARRIVAL, "dma.engine_rate", "hwdge"),
    _transfer("dma_rows", 512, ARRIVAL, "dma.descriptor_ns", "hwdge"),
    _dma_transpose("hbm"),
    _dma_transpose("sbuf"),
    _transfer("dma_trigger_hwdge", 16, INTERVAL, "dma.trigger_hwdge_ns", "hwdge"),
    _transfer("dma_trigger_swdge", 16, INTERVAL, "dma.trigger_swdge_ns", "swdge"),
)
