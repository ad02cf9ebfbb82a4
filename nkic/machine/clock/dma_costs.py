"""Cost formulas of DMA.

Each DMA engine processes the descriptors of its own partitions: a constant time per descriptor, and
the bytes at its rate. Sources by letter as in `costs`.
"""

from __future__ import annotations

from typing import NamedTuple

from nkic.machine.clock import Standing
from nkic.machine.costs import UNKNOWN, Formula, engine_cost, formula
from nkic.machine.engines import Engine
from nkic.machine.facts import Facts, Tile
from nkic.machine.memory import PARTITIONS
from nkic.machine.operands import Cost
from nkic.machine.patterns import run

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
