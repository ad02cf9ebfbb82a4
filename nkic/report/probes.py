"""Microkernels as data: an instruction, its tiles, and the figures derived from its time.

Each runs one instruction several times, with separate results, while other engines are idle. Both
the kernel (`report/calibrate.py`) and the predicted time are generated from this table.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
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


# NAME, and "cold" for one without `warm`: what is measured, and the figure that it determines
#     ENGINE ROW(tiles, of float32 if nothing else is said; attributes and numbers; `alternate`)
_TABLE = """
vector_reduce: interval vector.interval_sbuf, duration vector.duration_sbuf
    vector tensor_reduce(dst 1 sbuf, data 512 sbuf; op='add', axis=(1,))
vector_copy_psum: interval vector.interval_psum, duration vector.duration_psum
    vector tensor_copy(dst 512 sbuf, src 512 psum)
vector_long: interval vector.clock_mhz
    vector tensor_copy(dst 4096 sbuf, src 4096 sbuf)
vector_short: interval issue.least
    vector tensor_copy(dst 1 sbuf, src 1 sbuf)
vector_dynamic: interval issue.least_dynamic
    vector tensor_copy(dst 64 sbuf, src 64 sbuf dynamic)
vector_pointer: interval vector.pointer, duration vector.pointer
    vector tensor_scalar(dst 512 sbuf, data 512 sbuf, operand0 1 sbuf; op0='multiply')
vector_scan_128: interval vector.scan
    vector tensor_tensor_scan(dst 128 sbuf, data0 128 sbuf, data1 128 sbuf;
        op0='multiply', op1='add', initial=0.0)
vector_scan_2048: interval vector.scan_per_element
    vector tensor_tensor_scan(dst 2048 sbuf, data0 2048 sbuf, data1 2048 sbuf;
        op0='multiply', op1='add', initial=0.0)
vector_two_tiles: interval vector.two_tiles_per_element
    vector tensor_tensor(dst 2048 sbuf, data1 2048 sbuf, data2 2048 sbuf; op='add')
vector_scalar_tile: interval vector.scalar_tile_per_element
    vector scalar_tensor_tensor(dst 2048 sbuf, data 2048 sbuf, operand1 2048 sbuf;
        op0='multiply', op1='add', operand0=2.0)
vector_read_out: interval vector.accumulator_read
    vector tensor_scalar_reduce(dst 512 sbuf, data 512 sbuf, reduce_res 1 sbuf;
        op0='multiply', reduce_op='add', operand0=2.0)
scalar_copy: interval scalar.interval_sbuf, duration scalar.duration_sbuf
    scalar activation(dst 512 sbuf, data 512 sbuf; op='copy')
scalar_copy_psum: interval scalar.interval_psum, duration scalar.duration_psum
    scalar activation(dst 512 sbuf, data 512 psum; op='copy')
scalar_exp: interval scalar.function, duration scalar.function
    scalar activation(dst 512 sbuf, data 512 sbuf; op='exp')
scalar_read_out: interval scalar.accumulator_read
    scalar activation(dst 512 sbuf, data 512 sbuf, reduce_res 1 sbuf;
        op='copy', reduce_op='add', reduce_cmd='reset_reduce')
scalar_long: interval scalar.clock_mhz
    scalar activation(dst 4096 sbuf, data 4096 sbuf; op='copy')
scalar_tables: interval scalar.table_ns
    scalar activation(dst 512 sbuf, data 512 sbuf; op='exp'; op='sin')
gpsimd_copy: interval gpsimd.interval, duration gpsimd.duration
    gpsimd tensor_copy(dst 512 sbuf, src 512 sbuf)
gpsimd_long: interval gpsimd.clock_mhz
    gpsimd tensor_copy(dst 4096 sbuf, src 4096 sbuf)
gpsimd_iota: interval gpsimd.start
    gpsimd iota(dst int32 512 sbuf; pattern=((1, 512),), offset=0)
gpsimd_signal: arrival issue.semaphore_ns
    gpsimd tensor_copy(dst 512 sbuf, src 512 sbuf)
tensor_16: interval tensor.clock_mhz
    tensor nc_matmul(dst 512 psum, stationary bfloat16 128 sbuf, moving bfloat16 512 sbuf;
        accumulate=False)
tensor_16_short: interval tensor.issue
    tensor nc_matmul(dst 256 psum, stationary bfloat16 128 sbuf, moving bfloat16 256 sbuf;
        accumulate=False)
tensor_cold cold: interval tensor.cold_rate
    tensor nc_matmul(dst 512 psum, stationary bfloat16 128 sbuf, moving bfloat16 512 sbuf;
        accumulate=False; accumulate=False)
tensor_warming cold: span tensor.warm_up_ns
    tensor nc_matmul(dst 512 psum, stationary bfloat16 128 sbuf, moving bfloat16 512 sbuf;
        accumulate=False; accumulate=True)
tensor_16: duration tensor.fill_ns
    tensor nc_matmul(dst 512 psum, stationary bfloat16 128 sbuf, moving bfloat16 512 sbuf;
        accumulate=False)
tensor_32: interval tensor.passes_32
    tensor nc_matmul(dst 512 psum, stationary 128 sbuf, moving 512 sbuf; accumulate=False)
tensor_32_short: interval tensor.load_32_ns
    tensor nc_matmul(dst 128 psum, stationary 128 sbuf, moving 128 sbuf; accumulate=False)
dma_hwdge: arrival dma.start_hwdge_ns
    dma dma_copy(dst 128 sbuf, src 128 hbm; dge_mode='hwdge', engine='sync')
dma_swdge: arrival dma.start_swdge_ns
    dma dma_copy(dst 128 sbuf, src 128 hbm; dge_mode='swdge')
dma_prepared: arrival dma.start_prepared_ns
    dma dma_copy(dst 128 sbuf, src 128 hbm; dge_mode='none')
dma_long: arrival dma.engine_rate
    dma dma_copy(dst 4096 sbuf, src 4096 hbm; dge_mode='hwdge', engine='sync')
dma_rows: arrival dma.descriptor_ns
    dma dma_copy(dst 512 sbuf, src 512 hbm; dge_mode='hwdge', engine='sync')
dma_transpose_hbm: arrival dma.transpose_hbm
    dma dma_transpose(dst bfloat16 128 sbuf, src bfloat16 128 hbm)
dma_transpose_sbuf: arrival dma.transpose_sbuf
    dma dma_transpose(dst bfloat16 128 sbuf, src bfloat16 128 sbuf)
dma_trigger_hwdge: interval dma.trigger_hwdge_ns
    dma dma_copy(dst 16 sbuf, src 16 hbm; dge_mode='hwdge', engine='sync')
dma_trigger_swdge: interval dma.trigger_swdge_ns
    dma dma_copy(dst 16 sbuf, src 16 hbm; dge_mode='swdge')
"""


def _probes(head: str, kernel: str) -> Iterator[Probe]:
    """Yield a probe for each figure of an entry of the table."""
    names, measured = head.split(": ")
    name, *cold = names.split()
    engine, call = kernel.split(" ", 1)
    row_name, inside = call.removesuffix(")").split("(", 1)
    tiles, values, alternate = [*inside.split("; "), "", ""][:3]
    given, operands = _values(values), {operand.name for operand in ROWS[row_name].operands}
    for quantity, figure in map(str.split, measured.split(", ")):
        yield Probe(
            *(name, row_name, Engine(engine)),
            dict(map(_tile, tiles.split(", "))),
            {key: value for key, value in given.items() if key not in operands},
            *(quantity, (figure,)),
            {key: value for key, value in given.items() if key in operands},
            *(_values(alternate), not cold),
        )


def _tile(text: str) -> tuple[str, str]:
    name, tile = text.split(" ", 1)
    return name, tile if tile.partition(" ")[0] in DTYPES else f"float32 {tile}"


def _values(text: str) -> dict[str, Any]:
    call = ast.parse(f"f({text})", mode="eval").body
    assert isinstance(call, ast.Call)
    return {keyword.arg or "": ast.literal_eval(keyword.value) for keyword in call.keywords}


_ENTRIES = (entry.split("\n", 1) for entry in re.split(r"\n(?=\w)", _TABLE.strip()))
PROBES = tuple(p for head, kernel in _ENTRIES for p in _probes(head, " ".join(kernel.split())))
