"""Named cost formulas. A row names one; the scheduler and the runner's clock call it.

Unit of `Cost.cycles`: cycles of the engine that runs the instruction. Sources, by letter:

F  The throughput formulas of the NKI API reference up to SDK 2.26 (`nki.isa`, "cost"). They
   were written for NeuronCore-v2 and speak of instructions that follow each other.
A  The architecture guides: Trainium2 "Vector Engine Performance Mode" (16-bit floats at 4 or
   2 elements per cycle and lane), Trainium3 "Performance mode", Trainium/Inferentia2
   "Performance Consideration" (60 cycles to start an access, 100 static cycles per
   instruction, half rate for innermost strides above 16 bytes).
M  Fitted to profiles that public guides print: kernel optimisation tutorial and DMA overview
   (trn2), performance guide (trn1). docs/fidelity.md lists each figure; test_costs.py holds
   the formulas to them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from nkic.machine.engines import Engine
from nkic.machine.facts import Facts, Tile
from nkic.machine.memory import PARTITIONS, Buffer
from nkic.machine.operands import Cost
from nkic.machine.patterns import merged, run

MIN_INTERVAL = 64  # cycles: least issue interval, MIN_II (F)
MIN_INTERVAL_DYNAMIC = 600  # cycles: with an address from a register, MIN_II_DYNAMIC (F)
GPSIMD_START = 150  # cycles: start-up of iota, affine_select and their like (F)
ACCUMULATOR_READ = 64  # cycles: the extra instruction that reads reduce registers out (A)
ACCESS_START = 60  # cycles: to start an access; hidden while the one before streams (A)
PIPELINE = 100  # cycles: the other part of what an instruction takes beyond streaming (A)
SCALAR_PIPELINE_V3 = 298  # cycles: scalar engine from v3: 298 ns beyond streaming in all (M)
FULL_RATE_STRIDE = 16  # bytes: innermost steps above it halve a port's rate (A)
FP32_PASSES = 4  # passes of the tensor engine over 32-bit floats (A)
TENSOR_FILL_NS = {2: 140.0, 3: 118.0, 4: 118.0}  # by generation; v4 assumed (M)
ACT_TABLE_LOAD_NS = {2: 368.0, 3: 1285.0, 4: 1285.0}  # another activation table; v4 assumed (M)

DMA_DESCRIPTOR_BYTES = 2048  # longest element of a descriptor that fits the profiles (M)
DMA_DESCRIPTOR_NS = 15.0  # per descriptor, whatever its size (M)
DMA_START_NS = 1000.0  # trigger to first byte: 920 to 1000 ns (M)
DMA_DONE_NS = 300.0  # last byte to semaphore: 298 ns (M)
DMA_PARTITIONS = 8  # partitions that one DMA engine serves (A)
DMA_TRANSPOSE_SHARE = 0.9  # of the copy rate, from HBM; 0.5 from SBUF (A)
DMA_TRANSPOSE_SBUF_SHARE = 0.5
HWDGE_TRIGGER_NS = 600.0  # on the engine that commands the descriptor hardware (A)
DMA_TRIGGER_NS = 8.0  # every other trigger (M)

CostFormula = Callable[[Facts], Cost]


def per_element(operand: str, factor: float = 1.0, extra: int = 0, start: int = 0) -> CostFormula:
    """start + max(64, factor x elements per partition) + extra (F)."""

    def cost(facts: Facts) -> Cost:
        tile = facts.tile(operand)
        interval = streaming(facts, round(factor * tile.free), (tile,))
        return engine_cost(facts, start + interval + extra)

    return cost


def copying(source: str) -> CostFormula:
    """One tile in, one tile `dst` out, in the engine's fast modes where they apply (F, A)."""

    def cost(facts: Facts) -> Cost:
        src, dst = facts.tile(source), facts.tile("dst")
        return accelerated(facts, src.free, copy_rate(facts, src, dst), (src, dst))

    return cost


def filling(facts: Facts) -> Cost:
    """memset: max(64, N), half of it for zeros in a 16-bit float (F); v3: as a copy (M)."""
    dst = facts.tile("dst")
    rate = copy_rate(facts, dst, dst)
    if rate == 1 and is_half(dst) and facts.attributes.get("value") == 0:
        rate = 2
    return accelerated(facts, dst.free, rate, (dst,))


def two_tiles(first: str, second: str) -> CostFormula:
    """Two tiles in, `dst` out: 2N from one memory, N from SBUF and PSUM at once (F).

    A lane of the v3 vector engine takes two elements a cycle, four of 16 bits (A, the table
    of engine widths), so that both inputs from SBUF take N and N / 2.
    """

    def cost(facts: Facts) -> Cost:
        tiles = (facts.tile(first), facts.tile(second), facts.tile("dst"))
        n = tiles[2].free
        if any(t.buffer is Buffer.PSUM for t in tiles[:2]):
            return engine_cost(facts, streaming(facts, n, tiles))
        if facts.engine is Engine.GPSIMD:
            return engine_cost(facts, streaming(facts, 2 * n, tiles))
        half = all(is_half(t) for t in tiles)
        if facts.target.generation >= 3:
            return accelerated(facts, n, 2 if half else 1, tiles)
        fast = half and all(t.contiguous for t in tiles) and _simple(facts)
        return engine_cost(facts, streaming(facts, n if fast else 2 * n, tiles))

    return cost


def _simple(facts: Facts) -> bool:
    return facts.attributes.get("op") in ("add", "multiply", "subtract")


def scalar_then_tile(facts: Facts) -> Cost:
    """scalar_tensor_tensor: 2N; N for 16-bit floats, subtract then multiply, N even (F)."""
    tiles = (facts.tile("data"), facts.tile("operand1"), facts.tile("dst"))
    ops = (facts.attributes.get("op0"), facts.attributes.get("op1"))
    n = tiles[0].free
    fast = ops == ("subtract", "multiply") and n % 2 == 0 and all(map(is_half, tiles[:2]))
    return engine_cost(facts, streaming(facts, n if fast else 2 * n, tiles))


def reducing(facts: Facts) -> Cost:
    """tensor_reduce: N; N / 2 for 16-bit floats added or compared by maximum (F)."""
    data, dst = facts.tile("data"), facts.tile("dst")
    fast = is_half(data) and is_half(dst) and facts.attributes.get("op") in ("add", "maximum")
    n = -(-data.free // 2) if fast else data.free
    return engine_cost(facts, streaming(facts, n, (data,)))


def predicated(facts: Facts) -> Cost:
    """tensor_copy_predicated: N with one of src and predicate in PSUM, else 2N (F)."""
    inputs = [t for name in ("src", "predicate") if (t := facts.maybe(name)) is not None]
    apart = len(inputs) == 1 or any(t.buffer is Buffer.PSUM for t in inputs)
    n = facts.tile("dst").free
    return engine_cost(facts, streaming(facts, n if apart else 2 * n, (*inputs,)))


def activating(facts: Facts) -> Cost:
    """activation: max(64, N), and 64 to read the reduce registers out (F)."""
    data = facts.tile("data")
    extra = 0 if facts.maybe("reduce_res") is None else ACCUMULATOR_READ
    return engine_cost(facts, streaming(facts, data.free, (data, facts.tile("dst"))) + extra)


def scalar_operands(facts: Facts) -> Cost:
    """tensor_scalar: as a copy; on gpsimd (rsqrt) four times the scalar engine's N (F)."""
    if facts.engine is Engine.GPSIMD:
        return per_element("data", 4)(facts)
    return copying("data")(facts)


def matmul(facts: Facts) -> Cost:
    """nc_matmul: max(min(64, columns held), columns streamed) x passes (F)."""
    stationary, moving = facts.tile("stationary"), facts.tile("moving")
    pairs = 2 if facts.attributes.get("perf_mode") == "double_row" else 1
    held, streamed = stationary.free // pairs, moving.free // pairs
    cycles = max(min(MIN_INTERVAL, held), streamed) * matmul_passes(facts, stationary, moving)
    return tensor_cost(facts, cycles, held)


def matmul_passes(facts: Facts, stationary: Tile, moving: Tile) -> int:
    """4 for 32-bit floats; 2 where one operand holds only 0 and 1, or in v3's transposes (A)."""
    if stationary.dtype.name != "float32" and moving.dtype.name != "float32":
        return 1
    marked = facts.attributes.get("is_stationary_onezero") or facts.attributes.get(
        "is_moving_onezero"
    )
    native = facts.attributes.get("is_transpose") and facts.target.generation >= 3
    return FP32_PASSES // 2 if marked or native else FP32_PASSES


def transposing(facts: Facts) -> Cost:
    """nc_transpose: tensor max(P, min(64, F)) x passes; vector max(64, F) (F, A)."""
    data = facts.tile("data")
    if facts.engine is not Engine.TENSOR:
        return engine_cost(facts, streaming(facts, data.free, (data,)))
    passes = 1 if data.dtype.size < 4 else 4 if facts.target.generation < 3 else 2
    interval = max(data.partitions, min(MIN_INTERVAL, data.free))
    return tensor_cost(facts, interval * passes, data.free)


def tensor_cost(facts: Facts, cycles: int, columns: int) -> Cost:
    """The array fills before its first result leaves: a constant and a cycle per column (M)."""
    clock = facts.target.clock_mhz[Engine.TENSOR]
    fill = TENSOR_FILL_NS[facts.target.generation] + columns * 1000 / clock
    return Cost(cycles, fill)


def moving_register(facts: Facts) -> Cost:
    """register_alloc, register_move, scalar_compute: no public figure; assumed one least
    issue interval.
    """
    return Cost(MIN_INTERVAL)


def accessing_register(facts: Facts) -> Cost:
    """Loads and stores of registers and scalars: as much as an address from one (assumed)."""
    far = any(not tile.on_chip for tile in facts.tiles.values())
    return Cost(MIN_INTERVAL_DYNAMIC, DMA_START_NS + DMA_DONE_NS if far else 0.0)


def copy_rate(facts: Facts, src: Tile, dst: Tile) -> int:
    """Elements per cycle and lane of a copy-like instruction (A; 32-bit: M, fill and copy)."""
    generation, engine = facts.target.generation, facts.engine
    narrow = _narrow(src, generation) and _narrow(dst, generation)
    if engine is Engine.SCALAR:
        return 2 if generation >= 4 and narrow else 1
    if generation < 3 or engine is Engine.GPSIMD:
        return 1
    in_sbuf = (src.buffer is Buffer.SBUF) + (dst.buffer is Buffer.SBUF)
    contiguous = src.contiguous and dst.contiguous
    if in_sbuf == 2:
        return (4 if contiguous else 2) if narrow else (2 if contiguous else 1)
    return 2 if narrow and contiguous and in_sbuf == 1 else 1


def _narrow(tile: Tile, generation: int) -> bool:
    """Of the types that the widest mode takes: 16-bit floats, from v4 8-bit ones too (A)."""
    return is_half(tile) or (generation >= 4 and tile.dtype.size == 1 and _is_float(tile))


def accelerated(facts: Facts, n: int, rate: int, tiles: tuple[Tile, ...]) -> Cost:
    """`n` elements at `rate`; the access start is hidden only at rate 1 (M)."""
    if rate == 1:
        return engine_cost(facts, streaming(facts, n, tiles))
    fast = streaming(facts, -(-n // rate), tiles) + ACCESS_START
    slow = streaming(facts, n, tiles)
    return engine_cost(facts, fast, ACCESS_START) if fast < slow else engine_cost(facts, slow)


def streaming(facts: Facts, cycles: int, tiles: tuple[Tile, ...]) -> int:
    """The issue interval of an instruction that streams `tiles` in `cycles`."""
    if any(tile.dynamic for tile in tiles):
        return max(MIN_INTERVAL_DYNAMIC, cycles)
    halved = any(_stride_bytes(tile) > FULL_RATE_STRIDE for tile in tiles)
    return max(MIN_INTERVAL, 2 * cycles if halved else cycles)


def _stride_bytes(tile: Tile) -> int:
    dims = merged(tile.dims)
    return abs(dims[-1][0]) * tile.dtype.size if dims else 0


def engine_cost(facts: Facts, cycles: int, started: int = 0) -> Cost:
    """`cycles` on the engine, then the rest of the access start and the pipeline.

    `started` cycles of these are in `cycles` already.
    """
    engine = facts.engine or Engine.VECTOR
    deep = engine is Engine.SCALAR and facts.target.generation >= 3
    pipeline = SCALAR_PIPELINE_V3 if deep else PIPELINE
    clock = facts.target.clock_mhz[engine]
    return Cost(cycles, (ACCESS_START - started + pipeline) * 1000 / clock)


def is_half(tile: Tile) -> bool:
    """16-bit float, the width of the vector engine's fast modes."""
    return tile.dtype.size == 2 and _is_float(tile)


def _is_float(tile: Tile) -> bool:
    return tile.dtype.kind == "float"


def dma_copying(facts: Facts) -> Cost:
    """dma_copy: 15 ns per descriptor and bytes at the peak rate, on up to 16 engines (M)."""
    src, dst = facts.tile("src"), facts.tile("dst")
    size = max(src.dtype.size, dst.dtype.size)
    row = min(run(src.dims), run(dst.dims))
    rows = -(-dst.elements // row)
    descriptors = rows * -(-row * size // DMA_DESCRIPTOR_BYTES)
    engines, share = dma_spread(facts, src, dst, descriptors)
    moving = dst.elements * size / dma_peak_rate(facts.target.dma_rate)
    busy = (descriptors * DMA_DESCRIPTOR_NS + moving) * share
    return Cost(0, DMA_DONE_NS, busy, DMA_START_NS, engines)


def dma_printing(facts: Facts) -> Cost:
    """device_print: no public figure; assumed a copy of the tensor to a dense one in HBM."""
    tile = facts.tile("tensor")
    return dma_copying(Facts(facts.target, {"src": tile, "dst": tile}, {}))


def dma_computing(facts: Facts) -> Cost:
    """dma_compute: no public figure; assumed one copy per source, one after another."""
    dst, *sources = facts.tiles.values()
    copies = [dma_copying(Facts(facts.target, {"src": tile, "dst": dst}, {})) for tile in sources]
    return copies[0]._replace(busy_ns=sum(copy.busy_ns for copy in copies))


def core_barrier(facts: Facts) -> Cost:
    """core_barrier: no public figure; assumed the least interval, beside the semaphores."""
    return Cost(MIN_INTERVAL)


def swapping(facts: Facts) -> Cost:
    """sendrecv: as a copy within SBUF; by the gpsimd engine, its start and a copy (assumed)."""
    if facts.attributes["dma_engine"] == "gpsimd_dma":
        return per_element("src", start=GPSIMD_START)(facts)
    return dma_copying(facts)


def around_ring(passes: int) -> CostFormula:
    """A collective: no public figure; assumed a ring, around which a rank's part of the largest
    tile goes `passes` times, at this core's share of the chip's links.
    """

    def cost(facts: Facts) -> Cost:
        ranks = len(facts.attributes["replica_group"][0])
        return _hops(facts, passes * (ranks - 1), _largest(facts) / ranks)

    return cost


def to_another_rank(facts: Facts) -> Cost:
    """A permutation of ranks: one hop around the ring (assumed)."""
    return _hops(facts, 1, _largest(facts))


def _largest(facts: Facts) -> int:
    return max(tile.elements * tile.dtype.size for tile in facts.tiles.values())


def _hops(facts: Facts, count: int, size: float) -> Cost:
    """Transfers one after another, of `size` bytes each."""
    between = max(0, count - 1) * (DMA_START_NS + DMA_DONE_NS)
    busy = count * size / facts.target.link_rate
    return Cost(0, DMA_DONE_NS + between, busy, DMA_START_NS, facts.target.dma_engines)


def dma_peak_rate(effective: float) -> float:
    """Bytes per ns between descriptors, so that full descriptors give the published rate."""
    return DMA_DESCRIPTOR_BYTES / (DMA_DESCRIPTOR_BYTES / effective - DMA_DESCRIPTOR_NS)


def dma_spread(facts: Facts, src: Tile, dst: Tile, descriptors: int) -> tuple[int, float]:
    """How many DMA engines share a transfer, and the share of the one with the most (A)."""
    partitions = max(src.partitions, dst.partitions)
    if partitions:
        engines = min(facts.target.dma_engines, -(-partitions // DMA_PARTITIONS))
        return engines, min(DMA_PARTITIONS, partitions) / min(partitions, PARTITIONS)
    engines = max(1, min(facts.target.dma_engines, descriptors))
    return engines, -(-descriptors // engines) / max(1, descriptors)


def dma_transposing(facts: Facts) -> Cost:
    """dma_transpose: all engines together, at a share of the copy rate (A)."""
    src = facts.tile("src")
    share = DMA_TRANSPOSE_SBUF_SHARE if src.on_chip else DMA_TRANSPOSE_SHARE
    engines = facts.target.dma_engines
    rate = engines * facts.target.dma_rate * share
    moving = src.elements * src.dtype.size / rate
    return Cost(0, DMA_DONE_NS, DMA_DESCRIPTOR_NS + moving, DMA_START_NS, engines)


class Trigger(NamedTuple):
    """Who starts a DMA, and for how long that engine is busy with it."""

    engine: Engine
    busy_ns: float


def dma_trigger(facts: Facts) -> Trigger:
    """Descriptors made by hardware are commanded by `engine`, sync unless given; those made by
    software come from gpsimd; prepared ones are started by sync. Where the kernel leaves the
    mode open: hardware where there is one and types are equal (profiles of trn2 show it).
    """
    mode = facts.attributes.get("dge_mode")
    types = {tile.dtype.name for tile in facts.tiles.values()}
    if mode == "swdge" or any(tile.indexed for tile in facts.tiles.values()):
        return Trigger(Engine.GPSIMD, DMA_TRIGGER_NS)
    open_to = mode == "unknown" and facts.target.generation >= 3 and len(types) == 1
    if mode != "hwdge" and not open_to:
        return Trigger(Engine.SYNC, DMA_TRIGGER_NS)
    asked = facts.attributes.get("engine") == "scalar"
    return Trigger(Engine.SCALAR if asked else Engine.SYNC, HWDGE_TRIGGER_NS)
