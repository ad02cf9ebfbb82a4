"""Named cost formulas. A row names one; the scheduler and the runner's clock call it.

Figures come from `Target.figures` (`machine/clock`); what a formula says of them has a standing
and a source of its own. Sources, by letter:

F  The throughput formulas of the NKI API reference up to SDK 2.26 (`nki.isa`, "cost"). They
   were written for NeuronCore-v2 and speak of instructions that follow each other.
A  The architecture guides: Trainium2 "Vector Engine Performance Mode" (16-bit floats at 4 or
   2 elements per cycle and lane), Trainium3 "Performance mode", Trainium/Inferentia2
   "Performance Consideration" (half rate for innermost strides above 16 bytes).
M  Profiles that public guides and repositories print; test_costs.py holds the formulas to them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nkic.machine.clock import Standing
from nkic.machine.engines import Engine
from nkic.machine.facts import Facts, Tile
from nkic.machine.memory import PARTITIONS, Buffer
from nkic.machine.operands import Cost
from nkic.machine.patterns import merged


@dataclass(frozen=True)
class Formula:
    """What an instruction costs, how that is known, and from where."""

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
    """Makes a formula of a function that computes a cost."""
    return lambda compute: Formula(compute, *basis)


def per_element(
    operand: str,
    factor: float = 1.0,
    *,
    read_out: bool = False,
    starts: int = 0,
    basis: Basis = PUBLISHED,
) -> Formula:
    """factor x elements per partition; `read_out`: then reduce registers are read; `starts` of
    the gpsimd engine's programs come before it (F).
    """

    def cost(facts: Facts) -> Cost:
        tile = facts.tile(operand)
        more = starts * facts.target.figures["gpsimd.start"]
        more += accumulator_read(facts) if read_out else 0
        return engine_cost(facts, factor * tile.free, (tile,), more)

    return Formula(cost, *basis)


def copying(source: str) -> Formula:
    """One tile in, one tile `dst` out, in the engine's fast modes where they apply (F, A)."""

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
    """Two tiles in, `dst` out: N from SBUF and PSUM at once, more from one memory (F); on v3's
    vector engine half of that for 16-bit floats (A).
    """

    def cost(facts: Facts) -> Cost:
        tiles = (facts.tile(first), facts.tile(second), facts.tile("dst"))
        return engine_cost(facts, tiles[2].free * _pair_rate(facts, tiles), tiles)

    return Formula(cost, *basis)


def _pair_rate(facts: Facts, tiles: tuple[Tile, ...]) -> float:
    """Cycles per element of two tiles in."""
    if any(t.buffer is Buffer.PSUM for t in tiles[:2]):
        return 1
    if facts.engine is Engine.GPSIMD:
        return 2
    half = all(is_half(t) for t in tiles)
    slow = facts.target.figures["vector.two_tiles_per_element"]
    if facts.target.generation < 3:
        half = half and all(t.contiguous for t in tiles) and _simple(facts)
    return slow / 2 if half else slow


def _simple(facts: Facts) -> bool:
    return facts.attributes.get("op") in ("add", "multiply", "subtract")


@formula(PUBLISHED)
def scalar_then_tile(facts: Facts) -> Cost:
    """scalar_tensor_tensor: 2N, and N for 16-bit floats, subtract then multiply, N even (F); N on
    v3 (M).
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
    """tensor_reduce: N; N / 2 for 16-bit floats added or compared by maximum (F)."""
    data, dst = facts.tile("data"), facts.tile("dst")
    fast = is_half(data) and is_half(dst) and facts.attributes.get("op") in ("add", "maximum")
    return engine_cost(facts, data.free / 2 if fast else data.free, (data,))


@formula(PUBLISHED)
def predicated(facts: Facts) -> Cost:
    """tensor_copy_predicated: N with one of src and predicate in PSUM, else 2N (F), as for any two
    tiles out of one memory, which v3 reads at twice the width (A).
    """
    inputs = [t for name in ("src", "predicate") if (t := facts.maybe(name)) is not None]
    apart = len(inputs) == 1 or any(t.buffer is Buffer.PSUM for t in inputs)
    each = 1 if apart else facts.target.figures["vector.two_tiles_per_element"]
    return engine_cost(facts, each * facts.tile("dst").free, (*inputs,))


@formula(PUBLISHED)
def activating(facts: Facts) -> Cost:
    """activation: N (F), more for a function out of a table (M), and to read the reduce registers
    out (F).
    """
    data, op = facts.tile("data"), facts.attributes.get("op")
    more = 0 if facts.maybe("reduce_res") is None else accumulator_read(facts)
    if op not in (None, "copy"):
        more += facts.target.figures["scalar.function"]
    return engine_cost(facts, data.free, (data, facts.tile("dst")), more)


@formula(PUBLISHED)
def scalar_operands(facts: Facts) -> Cost:
    """tensor_scalar: as a copy (F, A), and on v3's vector engine a read of the pointer (M); on
    gpsimd (rsqrt) four times the scalar engine's N (F).
    """
    data, dst = facts.tile("data"), facts.tile("dst")
    if facts.engine is Engine.GPSIMD:
        return engine_cost(facts, 4 * data.free, (data,))
    pointed = any(facts.maybe(name) is not None for name in ("operand0", "operand1"))
    on_vector = pointed and facts.engine is Engine.VECTOR
    more = facts.target.figures["vector.pointer"] if on_vector else 0
    return engine_cost(facts, data.free / copy_rate(facts, data, dst), (data, dst), more)


def accumulator_read(facts: Facts) -> float:
    """Cycles to read reduce registers out."""
    engine = Engine.SCALAR if facts.engine is Engine.SCALAR else Engine.VECTOR
    return facts.target.figures[f"{engine.value}.accumulator_read"]


@formula(PUBLISHED)
def matmul(facts: Facts) -> Cost:
    """nc_matmul: max(min(64, columns held), columns streamed) x passes (F); steps of many bytes
    halve the rate at which an operand is read (A: of each engine's interface).
    """
    stationary, moving = facts.tile("stationary"), facts.tile("moving")
    pairs = 2 if facts.attributes.get("perf_mode") == "double_row" else 1
    held, streamed = stationary.free // pairs, moving.free // pairs
    passes = matmul_passes(facts, stationary, moving)
    least = min(facts.target.figures["issue.least"], held)
    cycles = max(least, streamed * _slowed(facts, moving)) * passes
    if stationary.dtype.name == "float32" and not _transposes(facts):
        return tensor_cost(facts, _not_hidden(facts, cycles, held), held, passes)
    loading = held * _slowed(facts, stationary) / facts.target.figures["tensor.load_rate"]
    return tensor_cost(facts, max(cycles, loading), held, passes)


def _not_hidden(facts: Facts, cycles: float, held: int) -> float:
    """Cycles of a product with both halves of 32-bit floats loaded. Only what streams against one
    half hides that: moving operands of less than about 450 columns are too short (M).
    """
    ns = facts.target.figures["tensor.load_32_ns"] * held / PARTITIONS
    load = ns * facts.target.clock_mhz[Engine.TENSOR] / 1000
    if facts.attributes.get("is_stationary_onezero"):
        return max(cycles, load)
    return max(cycles, cycles / 2 + 2 * load)


def matmul_passes(facts: Facts, stationary: Tile, moving: Tile) -> float:
    """4 for 32-bit floats; 2 where one operand holds only 0 and 1, or in v3's transposes (A)."""
    if stationary.dtype.name != "float32" and moving.dtype.name != "float32":
        return 1
    marked = facts.attributes.get("is_stationary_onezero") or facts.attributes.get(
        "is_moving_onezero"
    )
    passes = facts.target.figures["tensor.passes_32"]
    return passes / 2 if marked or _transposes(facts) else passes


def _transposes(facts: Facts) -> bool:
    """The array's own mode, which v3 brought."""
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
    interval = max(data.partitions, min(facts.target.figures["issue.least"], data.free))
    return tensor_cost(facts, interval * passes, data.free, passes)


def tensor_cost(facts: Facts, cycles: float, columns: int, passes: float = 1) -> Cost:
    """Some cycles for each instruction, of which there is one for two passes (M). The array fills
    before its first result leaves: a constant and a cycle per column (M).
    """
    clock, figures = facts.target.clock_mhz[Engine.TENSOR], facts.target.figures
    issue = figures["tensor.issue"] * max(1.0, passes / 2)
    return Cost(round(cycles + issue), figures["tensor.fill_ns"] + columns * 1000 / clock)


@formula(UNKNOWN)
def moving_register(facts: Facts) -> Cost:
    """register_alloc, register_move, scalar_compute."""
    return Cost(round(facts.target.figures["issue.register_cycles"]))


@formula(FITTED)
def accessing_register(facts: Facts) -> Cost:
    """Loads of registers and scalars, as measured for a word in SBUF; stores as loads, and in HBM
    as much more as a transfer takes (assumed).
    """
    target, engine = facts.target, facts.engine or Engine.SYNC
    held = target.figures[f"{engine.value}.register_load_ns"]
    cycles = round(held * target.clock_mhz[engine] / 1000)
    if all(tile.on_chip for tile in facts.tiles.values()):
        return Cost(cycles)
    return Cost(cycles, target.figures["dma.start_prepared_ns"] + target.figures["dma.done_ns"])


def copy_rate(facts: Facts, src: Tile, dst: Tile) -> int:
    """Elements per cycle and lane of a copy-like instruction (A; 32-bit: M)."""
    generation, engine = facts.target.generation, facts.engine
    narrow = _narrow(src, generation) and _narrow(dst, generation)
    first = 4 if engine is Engine.SCALAR else 3  # generation with modes; v4's are as v3's (A)
    if generation < first or engine is Engine.GPSIMD:
        return 1
    in_sbuf = (src.buffer is Buffer.SBUF) + (dst.buffer is Buffer.SBUF)
    contiguous = src.contiguous and dst.contiguous
    if in_sbuf < 2 or engine is Engine.SCALAR:
        return 2 if narrow and (in_sbuf == 2 or (contiguous and in_sbuf == 1)) else 1
    return (4 if contiguous else 2) if narrow else (2 if contiguous else 1)


def _narrow(tile: Tile, generation: int) -> bool:
    """Of the types that the widest mode takes: 16-bit floats, from v4 8-bit ones too (A)."""
    return is_half(tile) or (generation >= 4 and tile.dtype.size == 1 and _is_float(tile))


def engine_cost(facts: Facts, cycles: float, tiles: tuple[Tile, ...], more: float = 0.0) -> Cost:
    """The cost of streaming `tiles` in `cycles`, with `more` cycles of what does not stream."""
    figures, engine = facts.target.figures, facts.engine or Engine.VECTOR
    streamed = -(-cycles // 1) * max([_slowed(facts, tile) for tile in tiles], default=1) + more
    least = figures["issue.least_dynamic" if any(t.dynamic for t in tiles) else "issue.least"]
    apart, whole = _access(facts, engine, tiles)
    interval = round(max(least, streamed + apart))
    latency = max(0.0, streamed + whole - interval) * 1000 / facts.target.clock_mhz[engine]
    return Cost(interval, latency)


def _access(facts: Facts, engine: Engine, tiles: tuple[Tile, ...]) -> tuple[float, float]:
    """Cycles beyond streaming: of the interval, and of the duration."""
    figures = facts.target.figures
    if engine not in (Engine.VECTOR, Engine.SCALAR):
        return figures["gpsimd.interval"], figures["gpsimd.duration"]
    place = "psum" if any(t.buffer is Buffer.PSUM for t in tiles) else "sbuf"
    name = engine.value
    return figures[f"{name}.interval_{place}"], figures[f"{name}.duration_{place}"]


def _slowed(facts: Facts, tile: Tile) -> int:
    """By how much the step between neighbours makes reading or writing a tile slower (A)."""
    return 2 if _stride_bytes(tile) > facts.target.figures["issue.full_rate_stride"] else 1


def _stride_bytes(tile: Tile) -> int:
    dims = merged(tile.dims)
    return abs(dims[-1][0]) * tile.dtype.size if dims else 0


def is_half(tile: Tile) -> bool:
    """16-bit float, the width of the vector engine's fast modes."""
    return tile.dtype.size == 2 and _is_float(tile)


def _is_float(tile: Tile) -> bool:
    return tile.dtype.kind == "float"


@formula(UNKNOWN)
def core_barrier(facts: Facts) -> Cost:
    """core_barrier: the least interval, beside the semaphores."""
    return Cost(round(facts.target.figures["issue.least"]))
