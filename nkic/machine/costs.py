"""Named cost formulas. A row names one; the scheduler and the runner's clock call it.

Figures come from `Target.figures` (`machine/clock`). Each formula has a standing and a source of
its own. Sources, by letter:

F  The throughput formulas of the NKI API reference up to SDK 2.26 (`nki.isa`, "cost"). They were
written for NeuronCore-v2 and describe back-to-back instructions. A  The architecture guides:
Trainium2 "Vector Engine Performance Mode" (16-bit floats at 4 or 2 elements per cycle and lane),
Trainium3 "Performance mode", Trainium/Inferentia2 "Performance Consideration" (half rate for
innermost strides above 16 bytes). M  Profiles printed in public guides and repositories;
test_costs.py checks the formulas against them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from nkic.machine.clock import Standing
from nkic.machine.operands import Cost, Facts, Tile
from nkic.machine.patterns import merged, run
from nkic.machine.targets import PARTITIONS, Buffer, Engine


@dataclass(frozen=True)
class Formula:
    """The cost of an instruction, the standing of that knowledge, and its source."""

    compute: Callable[[Facts], Cost]
    standing: Standing
    source: str

    def __call__(self, facts: Facts) -> Cost:
        return self.compute(facts)


Compute = Callable[[Facts], Cost]
PUBLISHED = (Standing.DOCUMENTED, "nki.isa until SDK 2.26, cost")
FITTED = (Standing.FITTED, "public profiles of trn2")
NEW_IN_V4 = (Standing.DOCUMENTED, "Trainium3 architecture guide")
UNKNOWN = (Standing.ASSUMED, "no public figure")
Basis = tuple[Standing, str]


def formula(basis: Basis) -> Callable[[Compute], Formula]:
    """Return a decorator that turns a function computing a cost into a formula."""
    return lambda compute: Formula(compute, *basis)


def per_element(
    operand: str,
    factor: float = 1.0,
    *,
    read_out: bool = False,
    starts: int = 0,
    basis: Basis = PUBLISHED,
) -> Formula:
    """Return a formula of `factor` cycles per element per partition.

    `read_out` adds reading the reduce registers; `starts` adds that many program starts of the
    gpsimd engine (F).
    """

    def cost(facts: Facts) -> Cost:
        tile = facts.tile(operand)
        extra = starts * facts.target.figures["gpsimd.start"]
        extra += accumulator_read(facts) if read_out else 0
        return engine_cost(facts, factor * tile.free, (tile,), extra)

    return Formula(cost, *basis)


def copying(source: str) -> Formula:
    """Return a formula for copying one tile to `dst`, in the engine's fast modes if they apply (F,
    A).
    """

    def cost(facts: Facts) -> Cost:
        src, dst = facts.tile(source), facts.tile("dst")
        return engine_cost(facts, src.free / copy_rate(facts, src, dst), (src, dst))

    return Formula(cost, *PUBLISHED)


@formula(PUBLISHED)
def filling(facts: Facts) -> Cost:
    """memset: N, half of it for zeros in a 16-bit float (F); v3: as a copy (M)."""
    dst = facts.tile("dst")
    rate = copy_rate(facts, dst, dst)
    if rate == 1 and is_half(dst) and facts.attributes.get("value") == 0:
        rate = 2
    return engine_cost(facts, dst.free / rate, (dst,))


def two_tiles(first: str, second: str, basis: Basis = PUBLISHED) -> Formula:
    """Return a formula for two input tiles and `dst`.

    N if one input is in PSUM, more if both are in SBUF (F); on v3's vector engine, half of that for
    16-bit floats (A).
    """

    def cost(facts: Facts) -> Cost:
        tiles = (facts.tile(first), facts.tile(second), facts.tile("dst"))
        return engine_cost(facts, tiles[2].free * _pair_rate(facts, tiles), tiles)

    return Formula(cost, *basis)


def _pair_rate(facts: Facts, tiles: tuple[Tile, ...]) -> float:
    """Return the cycles per element with two input tiles."""
    if any(t.buffer is Buffer.PSUM for t in tiles[:2]):
        return 1
    if facts.engine is Engine.GPSIMD:
        return 2
    half = all(is_half(t) for t in tiles)
    sbuf_cycles = facts.target.figures["vector.two_tiles_per_element"]
    if facts.target.generation < 3:
        half = half and all(t.contiguous for t in tiles) and _simple(facts)
    return sbuf_cycles / 2 if half else sbuf_cycles


def _simple(facts: Facts) -> bool:
    return facts.attributes.get("op") in ("add", "multiply", "subtract")


@formula(PUBLISHED)
def scalar_then_tile(facts: Facts) -> Cost:
    """scalar_tensor_tensor: 2N; N for 16-bit floats, subtract then multiply, N even (F).

    On v3: N (M).
    """
    tiles = (facts.tile("data"), facts.tile("operand1"), facts.tile("dst"))
    ops = (facts.attributes.get("op0"), facts.attributes.get("op1"))
    n = tiles[0].free
    fast = ops == ("subtract", "multiply") and n % 2 == 0 and all(map(is_half, tiles[:2]))
    rate = 1 if fast else facts.target.figures["vector.scalar_tile_per_element"]
    return engine_cost(facts, n * rate, tiles)


@formula(PUBLISHED)
def scanning(facts: Facts) -> Cost:
    """tensor_tensor_scan: 2N (F); on v3 about N + 170 (M)."""
    figures, dst = facts.target.figures, facts.tile("dst")
    cycles = dst.free * figures["vector.scan_per_element"]
    return engine_cost(facts, cycles, (dst,), figures["vector.scan"])


@formula(PUBLISHED)
def reducing(facts: Facts) -> Cost:
    """tensor_reduce: N; N / 2 for 16-bit floats with add or maximum (F)."""
    data, dst = facts.tile("data"), facts.tile("dst")
    fast = is_half(data) and is_half(dst) and facts.attributes.get("op") in ("add", "maximum")
    return engine_cost(facts, data.free / 2 if fast else data.free, (data,))


@formula(PUBLISHED)
def predicated(facts: Facts) -> Cost:
    """tensor_copy_predicated: N if src or predicate is in PSUM, otherwise 2N (F).

    As for any two tiles from one memory, which v3 reads at twice the width (A).
    """
    inputs = [t for name in ("src", "predicate") if (t := facts.maybe(name)) is not None]
    separate = len(inputs) == 1 or any(t.buffer is Buffer.PSUM for t in inputs)
    cycles_per_element = 1 if separate else facts.target.figures["vector.two_tiles_per_element"]
    return engine_cost(facts, cycles_per_element * facts.tile("dst").free, (*inputs,))


@formula(PUBLISHED)
def activating(facts: Facts) -> Cost:
    """activation: N (F), plus the table lookup (M), plus reading the reduce registers (F)."""
    data, op = facts.tile("data"), facts.attributes.get("op")
    extra = 0 if facts.maybe("reduce_res") is None else accumulator_read(facts)
    if op not in (None, "copy"):
        extra += facts.target.figures["scalar.function"]
    return engine_cost(facts, data.free, (data, facts.tile("dst")), extra)


@formula(PUBLISHED)
def scalar_operands(facts: Facts) -> Cost:
    """tensor_scalar: as a copy (F, A), plus a pointer read on v3's vector engine (M).

    On gpsimd (rsqrt): four times the scalar engine's N (F).
    """
    data, dst = facts.tile("data"), facts.tile("dst")
    if facts.engine is Engine.GPSIMD:
        return engine_cost(facts, 4 * data.free, (data,))
    pointed = any(facts.maybe(name) is not None for name in ("operand0", "operand1"))
    on_vector = pointed and facts.engine is Engine.VECTOR
    extra = facts.target.figures["vector.pointer"] if on_vector else 0
    return engine_cost(facts, data.free / copy_rate(facts, data, dst), (data, dst), extra)


def accumulator_read(facts: Facts) -> float:
    engine = Engine.SCALAR if facts.engine is Engine.SCALAR else Engine.VECTOR
    return facts.target.figures[f"{engine.value}.accumulator_read"]


@formula(PUBLISHED)
def matmul(facts: Facts) -> Cost:
    """nc_matmul: max(min(64, stationary columns), moving columns) x passes (F).

    Large strides halve the rate at which an operand is read (A, for each engine's interface).
    """
    stationary, moving = facts.tile("stationary"), facts.tile("moving")
    pairs = 2 if facts.attributes.get("perf_mode") == "double_row" else 1
    stationary_columns, moving_columns = stationary.free // pairs, moving.free // pairs
    passes = matmul_passes(facts, stationary, moving)
    minimum = min(facts.target.figures["issue.least"], stationary_columns)
    cycles = max(minimum, moving_columns * _slowed(facts, moving)) * passes
    loading = (
        stationary_columns * _slowed(facts, stationary) / facts.target.figures["tensor.load_rate"]
    )
    is_loaded_in_halves = stationary.dtype.name == "float32" and not _transposes(facts)

    def interval(cycles: float) -> float:
        if is_loaded_in_halves:
            return _not_hidden(facts, cycles, stationary_columns)
        return max(cycles, loading)

    return tensor_cost(facts, interval, cycles, stationary_columns, passes)


def _not_hidden(facts: Facts, cycles: float, columns: int) -> float:
    """Return the cycles of a 32-bit product, including loads of both halves of its floats.

    Only the columns that stream against one half hide the load of the other: moving operands of
    less than about 450 columns are too short (M).
    """
    ns = facts.target.figures["tensor.load_32_ns"] * columns / PARTITIONS
    load = ns * facts.target.clock_mhz[Engine.TENSOR] / 1000
    if facts.attributes.get("is_stationary_onezero"):
        return max(cycles, load)
    return max(cycles, cycles / 2 + 2 * load)


def matmul_passes(facts: Facts, stationary: Tile, moving: Tile) -> float:
    """Return 4 for 32-bit floats, 2 if an operand holds only 0 and 1 or in v3's transposes (A)."""
    if stationary.dtype.name != "float32" and moving.dtype.name != "float32":
        return 1
    onezero = facts.attributes.get("is_stationary_onezero") or facts.attributes.get(
        "is_moving_onezero"
    )
    passes = facts.target.figures["tensor.passes_32"]
    return passes / 2 if onezero or _transposes(facts) else passes


def _transposes(facts: Facts) -> bool:
    """Return whether the array's transpose mode is used, which v3 introduced."""
    return bool(facts.attributes.get("is_transpose")) and facts.target.generation >= 3


@formula(PUBLISHED)
def transposing(facts: Facts) -> Cost:
    """nc_transpose: tensor max(P, min(64, F)) x passes; vector max(64, F) (F, A)."""
    data = facts.tile("data")
    if facts.engine is not Engine.TENSOR:
        return engine_cost(facts, data.free, (data,))
    passes = facts.target.figures["tensor.passes_32"] if data.dtype.size == 4 else 1
    if data.dtype.size == 4 and facts.target.generation >= 3:
        passes /= 2
    cycles = max(data.partitions, min(facts.target.figures["issue.least"], data.free)) * passes
    return tensor_cost(facts, lambda cycles: cycles, cycles, data.free, passes)


def tensor_cost(
    facts: Facts, interval: Callable[[float], float], cycles: float, columns: int, passes: float
) -> Cost:
    """Return the cost of streaming for `cycles`, plus issue and fill time.

    `interval` gives the time that the array is occupied from that of streaming, which takes longer
    while the engine is cold; loads of stationary columns do not (implied: the limit is on the use
    of the array, and published products over one row take the same time per column at any length).
    Issue takes some cycles per instruction; two passes are one instruction (M). The array fills
    before its first result leaves: a constant plus a cycle per column (M).
    """
    clock, figures = facts.target.clock_mhz[Engine.TENSOR], facts.target.figures
    issue = figures["tensor.issue"] * max(1.0, passes / 2)
    return Cost(
        round(interval(cycles) + issue),
        figures["tensor.fill_ns"] + columns * 1000 / clock,
        cold_interval=round(
            interval(cycles / figures["tensor.cold_rate"]) + issue / figures["tensor.cold_rate"]
        ),
    )


@formula(UNKNOWN)
def moving_register(facts: Facts) -> Cost:
    """register_alloc, register_move, scalar_compute."""
    return Cost(round(facts.target.figures["issue.register_cycles"]))


@formula(FITTED)
def accessing_register(facts: Facts) -> Cost:
    """Loads and stores of registers and scalars.

    Loads as measured for a word in SBUF; stores as loads; in HBM, plus the latency of a transfer
    (assumed).
    """
    target, engine = facts.target, facts.engine or Engine.SYNC
    load_ns = target.figures[f"{engine.value}.register_load_ns"]
    cycles = round(load_ns * target.clock_mhz[engine] / 1000)
    if all(tile.on_chip for tile in facts.tiles.values()):
        return Cost(cycles)
    return Cost(cycles, target.figures["dma.start_prepared_ns"] + target.figures["dma.done_ns"])


def copy_rate(facts: Facts, src: Tile, dst: Tile) -> int:
    """Return the elements per cycle and lane of a copy-like instruction (A; 32-bit: M)."""
    generation, engine = facts.target.generation, facts.engine
    narrow = _narrow(src, generation) and _narrow(dst, generation)
    first = 4 if engine is Engine.SCALAR else 3  # first with fast modes; v4's equal v3's (A)
    if generation < first or engine is Engine.GPSIMD:
        return 1
    in_sbuf = (src.buffer is Buffer.SBUF) + (dst.buffer is Buffer.SBUF)
    contiguous = src.contiguous and dst.contiguous
    if in_sbuf < 2 or engine is Engine.SCALAR:
        return 2 if narrow and (in_sbuf == 2 or (contiguous and in_sbuf == 1)) else 1
    return (4 if contiguous else 2) if narrow else (2 if contiguous else 1)


def _narrow(tile: Tile, generation: int) -> bool:
    """Return whether the widest mode takes it: 16-bit floats, from v4 on also 8-bit ones (A)."""
    return is_half(tile) or (generation >= 4 and tile.dtype.size == 1 and _is_float(tile))


def engine_cost(facts: Facts, cycles: float, tiles: tuple[Tile, ...], extra: float = 0.0) -> Cost:
    """Return the cost of streaming `tiles` in `cycles`, plus `extra` cycles outside of it."""
    figures, engine = facts.target.figures, facts.engine or Engine.VECTOR
    streamed = -(-cycles // 1) * max([_slowed(facts, tile) for tile in tiles], default=1) + extra
    minimum = figures["issue.least_dynamic" if any(t.dynamic for t in tiles) else "issue.least"]
    interval_overhead, duration_overhead = _access(facts, engine, tiles)
    interval = round(max(minimum, streamed + interval_overhead))
    latency = (
        max(0.0, streamed + duration_overhead - interval) * 1000 / facts.target.clock_mhz[engine]
    )
    return Cost(interval, latency)


def _access(facts: Facts, engine: Engine, tiles: tuple[Tile, ...]) -> tuple[float, float]:
    """Return the cycles beyond streaming: of the interval, and of the duration."""
    figures = facts.target.figures
    if engine not in (Engine.VECTOR, Engine.SCALAR):
        return figures["gpsimd.interval"], figures["gpsimd.duration"]
    memory = "psum" if any(t.buffer is Buffer.PSUM for t in tiles) else "sbuf"
    name = engine.value
    return figures[f"{name}.interval_{memory}"], figures[f"{name}.duration_{memory}"]


def _slowed(facts: Facts, tile: Tile) -> int:
    """Return the factor by which a large innermost stride slows access to a tile (A)."""
    return 2 if _stride_bytes(tile) > facts.target.figures["issue.full_rate_stride"] else 1


def _stride_bytes(tile: Tile) -> int:
    dims = merged(tile.dims)
    return abs(dims[-1][0]) * tile.dtype.size if dims else 0


def is_half(tile: Tile) -> bool:
    """Return whether the tile holds 16-bit floats, the width of the vector engine's fast modes."""
    return tile.dtype.size == 2 and _is_float(tile)


def _is_float(tile: Tile) -> bool:
    return tile.dtype.kind == "float"


@formula(UNKNOWN)
def core_barrier(facts: Facts) -> Cost:
    """core_barrier: the minimum interval, in addition to the semaphores."""
    return Cost(round(facts.target.figures["issue.least"]))


# ---- Cost formulas of DMA -----------------------------------------------------------------------
# Each DMA engine processes the descriptors of its own partitions: a constant time per descriptor,
# and the bytes at its rate. Sources by letter as in `costs`.

COUNTED = (Standing.FITTED, "DMA overview; DMA bandwidth guide; public profiles of trn2")


@formula(COUNTED)
def dma_copying(facts: Facts) -> Cost:
    """dma_copy: a time per descriptor plus bytes at the peak rate, on up to 16 engines (M)."""
    figures, src, dst = facts.target.figures, facts.tile("src"), facts.tile("dst")
    size = max(src.dtype.size, dst.dtype.size)
    row = min(run(src.dims), run(dst.dims))
    rows = -(-dst.elements // row)
    descriptors = rows * -(-row * size // int(figures["dma.descriptor_bytes"]))
    engines, share = dma_spread(facts, src, dst, descriptors)
    moving = dst.elements * size / peak_rate(facts)
    busy = (descriptors * figures["dma.descriptor_ns"] + moving) * share
    return Cost(latency_ns=figures["dma.done_ns"], busy_ns=busy, dma_engines=engines)


@formula(UNKNOWN)
def dma_printing(facts: Facts) -> Cost:
    """device_print: as a copy of the tensor to a dense one in HBM."""
    tile = facts.tile("tensor")
    return dma_copying(Facts(facts.target, {"src": tile, "dst": tile}, {}))


@formula(UNKNOWN)
def dma_preparing(facts: Facts) -> Cost:
    """all_to_all_v_prepare and all_gather_v_prepare: as a copy of the counts."""
    counts, prepared = facts.tile("metadata_tensor"), facts.tile("prepared")
    return dma_copying(Facts(facts.target, {"src": counts, "dst": prepared}, {}))


@formula((Standing.DOCUMENTED, "Trainium3 guide: sums at 50 % of the rate before NeuronCore-v4"))
def dma_computing(facts: Facts) -> Cost:
    """dma_compute: one copy per source, in sequence, so that two take twice as long as one (A).

    v4's summation near SBUF at the full rate is not available to this instruction (A).
    """
    dst, *sources = facts.tiles.values()
    copies = [dma_copying(Facts(facts.target, {"src": tile, "dst": dst}, {})) for tile in sources]
    return copies[0]._replace(busy_ns=sum(copy.busy_ns for copy in copies))


@formula(UNKNOWN)
def swapping(facts: Facts) -> Cost:
    """sendrecv: as a copy within SBUF.

    On the gpsimd engine: its start-up, plus the bytes at the rate of its processors' DMA engines
    (A).
    """
    if facts.attributes["dma_engine"] != "gpsimd_dma":
        return dma_copying(facts)
    src, figures = facts.tile("src"), facts.target.figures
    ns = src.elements * src.dtype.size / figures["gpsimd.dma_rate"]
    cycles = ns * facts.target.clock_mhz[Engine.GPSIMD] / 1000
    return engine_cost(facts, cycles, (src,), figures["gpsimd.start"])


def around_ring(passes: int) -> Formula:
    """Return a formula for a collective, assumed to be a ring, as there is no public figure.

    A rank's part of the largest tile goes around `passes` times, at this core's share of the chip's
    links.
    """

    def cost(facts: Facts) -> Cost:
        ranks = len(facts.attributes["replica_group"][0])
        return _hops(facts, passes * (ranks - 1), _largest(facts) / ranks)

    return Formula(cost, *UNKNOWN)


@formula(UNKNOWN)
def to_another_rank(facts: Facts) -> Cost:
    """A permutation of ranks: one hop of the ring."""
    return _hops(facts, 1, _largest(facts))


def _largest(facts: Facts) -> int:
    return max(tile.elements * tile.dtype.size for tile in facts.tiles.values())


def _hops(facts: Facts, count: int, size: float) -> Cost:
    """Return the cost of `count` sequential transfers of `size` bytes each."""
    figures = facts.target.figures
    done = figures["dma.done_ns"]
    latency = done + max(0, count - 1) * (figures["dma.start_prepared_ns"] + done)
    busy = count * size / figures["dma.link_rate"]
    return Cost(latency_ns=latency, busy_ns=busy, dma_engines=facts.target.dma_engines)


def peak_rate(facts: Facts) -> float:
    """Return the bytes per ns within a descriptor, such that full ones give the published rate."""
    figures = facts.target.figures
    full = figures["dma.descriptor_bytes"]
    return full / max(full / facts.target.dma_rate - figures["dma.descriptor_ns"], 1e-3)


def dma_spread(facts: Facts, src: Tile, dst: Tile, descriptors: int) -> tuple[int, float]:
    """Return the number of DMA engines of a transfer, and the share of the busiest one (A)."""
    partitions = max(src.partitions, dst.partitions)
    per_engine = int(facts.target.figures["dma.partitions"])
    if partitions:
        engines = min(facts.target.dma_engines, -(-partitions // per_engine))
        return engines, min(per_engine, partitions) / min(partitions, PARTITIONS)
    engines = max(1, min(facts.target.dma_engines, descriptors))
    return engines, -(-descriptors // engines) / max(1, descriptors)


@formula((Standing.DOCUMENTED, "Trainium2 architecture guide, DMA transpose"))
def dma_transposing(facts: Facts) -> Cost:
    """dma_transpose: all engines together, at a fraction of the copy rate (A).

    v2's DMA engines do not transpose: each element has a descriptor (assumed; the performance
    guide, opt #10, says that this degrades the bandwidth significantly).
    """
    src, figures, engines = facts.tile("src"), facts.target.figures, facts.target.dma_engines
    share = figures["dma.transpose_sbuf" if src.on_chip else "dma.transpose_hbm"]
    moving = src.elements * src.dtype.size / (engines * facts.target.dma_rate * share)
    descriptors = 1 if facts.target.generation >= 3 else -(-src.elements // engines)
    busy = descriptors * figures["dma.descriptor_ns"] + moving
    return Cost(latency_ns=figures["dma.done_ns"], busy_ns=busy, dma_engines=engines)


class Trigger(NamedTuple):
    """The engine that triggers a DMA, the time this takes, and the time until the first byte."""

    engine: Engine
    busy_ns: float
    start_ns: float


def dma_trigger(facts: Facts, queue: Engine) -> Trigger:
    """Return the trigger of a transfer.

    Hardware descriptor generation is commanded by `engine` or, by default, by the engine of the
    `queue`; software generation runs on gpsimd; prepared descriptors are started by sync. The
    default mode is hardware if the target has it and types are equal, but software on a queue of
    gpsimd (profiles of trn2 show both). Instructions without a mode, such as dma_compute, are
    prepared (ISA dma_compute: static unless it is indirect).
    """
    mode = facts.attributes.get("dge_mode", "none")
    types = {tile.dtype.name for tile in facts.tiles.values()}
    if mode == "swdge" or any(tile.indexed for tile in facts.tiles.values()):
        return _trigger(facts, Engine.GPSIMD, "swdge")
    open_to = mode == "unknown" and facts.target.generation >= 3 and len(types) == 1
    if mode != "hwdge" and not open_to:
        return _trigger(facts, Engine.SYNC, "prepared")
    requested = {"scalar": Engine.SCALAR, "sync": Engine.SYNC}.get(
        facts.attributes.get("engine", "")
    )
    engine = requested or (Engine.SYNC if mode == "hwdge" and queue is Engine.GPSIMD else queue)
    return _trigger(facts, engine, "swdge" if engine is Engine.GPSIMD else "hwdge")


def _trigger(facts: Facts, engine: Engine, mode: str) -> Trigger:
    figures = facts.target.figures
    return Trigger(engine, figures[f"dma.trigger_{mode}_ns"], figures[f"dma.start_{mode}_ns"])
