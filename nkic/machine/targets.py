"""The three hardware generations that nkic supports, as data.

Sources, unless a line says otherwise: the architecture guides of Trainium/Inferentia2, Trainium2
and Trainium3 (sizes); `nki.language.tile_size` (tile limits). Timing figures come from
`machine/clock`. Figures without a public source are marked assumed here and listed in
docs/fidelity.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from hashlib import sha256
from types import MappingProxyType
from typing import Any, NamedTuple

from nkic.base import files
from nkic.base.diagnostics import bad_value, did_you_mean
from nkic.machine.clock import TABLE, Parameter, defaults

# ---- Engines: the units that execute instructions. Each runs its own in-order stream ------------
# Sources: Trainium architecture guide, engines; `nki.isa.engine` (names and numbers).


class Engine(Enum):
    """An execution unit. The value is `nki.isa.engine`'s name and appears in program text."""

    TENSOR = "tensor"  # PE: matrix multiplication, 128 x 128 array
    VECTOR = "vector"  # DVE: tile and reduction arithmetic
    SCALAR = "scalar"  # ACT: activation functions
    GPSIMD = "gpsimd"  # POOL: eight programmable cores, no PSUM access
    SYNC = "sync"  # SP: triggers DMA, synchronises the others
    DMA = "dma"  # the sixteen DMA engines, fed through queues

    __hash__ = object.__hash__  # identity, as for Buffer


ENGINE_CODES = {
    Engine.SCALAR: 2,
    Engine.TENSOR: 1,
    Engine.GPSIMD: 3,
    Engine.DMA: 4,
    Engine.VECTOR: 5,
    Engine.SYNC: 6,
}
ENGINE_OF_CODE = {code: engine for engine, code in ENGINE_CODES.items()}
SHORT_NAMES = {
    Engine.TENSOR: "PE",
    Engine.SCALAR: "ACT",
    Engine.VECTOR: "DVE",
    Engine.GPSIMD: "POOL",
    Engine.SYNC: "SP",
    Engine.DMA: "DMA",
}


# ---- The memories of a NeuronCore: their NKI names and their layout -----------------------------
# Sources: Trainium architecture guides (SBUF and PSUM: 128 partitions; PSUM: 8 banks of 2 KiB per
# partition); `nki.language` buffer names.

PARTITIONS = 128
PSUM_BANK_BYTES = 2048
MAX_RANK = 8  # dimensions of a tensor, in kernels and in files (docs/neff.md)
MAX_SIZE = 2**31 - 1  # elements along one dimension, likewise


class Buffer(Enum):
    """The memory that holds a tensor. The value is NKI's name and appears in program text."""

    SBUF = "sbuf"
    PSUM = "psum"
    HBM = "hbm"  # private to one core
    SHARED_HBM = "shared_hbm"  # visible to all cores of the kernel, and to the host

    # Identity hash: members are keys on hot paths, and Enum's own hash is a Python call.
    __hash__ = object.__hash__

    def __init__(self, name: str) -> None:
        self.on_chip = name in ("sbuf", "psum")  # has a partition dimension


SPILLED = ".spilled"  # ends the name of a tensor in HBM that holds a spilled tile
MEMORIES = (Buffer.SBUF, Buffer.PSUM)  # the on-chip memories

BUFFER_CODES = {Buffer.SBUF: 0, Buffer.PSUM: 1, Buffer.HBM: 2, Buffer.SHARED_HBM: 3}
BUFFER_OF_CODE = {code: buffer for buffer, code in BUFFER_CODES.items()}


class Address(NamedTuple):
    """An on-chip address: the first partition, and the byte offset within each partition."""

    partition: int
    byte: int


# --------------------------------------------------------------------------------------------------

KIB = 1024
ALONE, PAIR, ALL = CONTENTION = ("alone", "pair", "all")


@dataclass(frozen=True)
class Target:
    """One hardware generation.

    `figures` are its timing figures (`machine/clock`), by name. `contention` says which other cores
    access HBM: none ("alone"), the other core of a pair, or all cores of the chip. `machine` is the
    hash of the machine file that changed either; empty for the defaults. `queue_engines` trigger
    the transfers of each DMA queue, unless an instruction names an engine.
    """

    name: str
    generation: int  # NeuronCore version: 2, 3, 4
    sbuf_bytes: int  # per partition, physical
    sbuf_usable: int  # per partition, available to a kernel
    psum_banks: int
    base_clock_mhz: int  # of the "cycles" in reports
    dma_engines: int
    queue_engines: tuple[Engine, ...]  # of the queues nkic spreads transfers over (assumed)
    max_cores: int  # physical cores that one kernel may use
    chip_cores: int  # physical cores of a chip
    matmul_free: int  # elements of a moving operand per partition
    figures: Mapping[str, float]
    semaphores: int = 256  # assumed: no public figure
    registers: int = 64  # per engine
    contention: str = ALONE
    machine: str = ""
    sbuf_exclusive: tuple[Engine, ...] = ()  # engines of which one at a time accesses SBUF
    psum_exclusive: tuple[Engine, ...] = ()  # the same for PSUM

    @property
    def dma_queues(self) -> int:
        """The number of queues that nkic spreads a core's transfers over."""
        return len(self.queue_engines)

    @cached_property
    def clock_mhz(self) -> Mapping[Engine, float]:
        """The clock of each engine in MHz. The value for DMA is not used for timing."""
        clocks = {e: self.figures[f"{e.value}.clock_mhz"] for e in Engine if e is not Engine.DMA}
        return MappingProxyType({**clocks, Engine.DMA: clocks[Engine.SCALAR]})

    @property
    def dma_rate(self) -> float:
        """Bytes per ns of one DMA engine on long rows, under the target's contention."""
        alone = self.contention == ALONE
        return self.figures["dma.engine_rate" if alone else "dma.engine_rate_shared"]

    def used_by(self, cores: int) -> Target:
        """Return the target for a kernel on `cores` cores: two of them share a stack of HBM."""
        return replace(self, contention=PAIR) if cores > 1 and self.contention == ALONE else self

    @property
    def peak_operations(self) -> float:
        """The additions and multiplications of 16-bit floats that the array performs per ns."""
        return 2 * PARTITIONS * PARTITIONS * self.clock_mhz[Engine.TENSOR] / 1000

    @property
    def peak_rate(self) -> float:
        """The achievable bytes per ns of all DMA engines of a core together."""
        return self.dma_engines * self.dma_rate

    @property
    def psum_bytes(self) -> int:
        return self.psum_banks * PSUM_BANK_BYTES


GIVEN_ERROR = 0.05  # of a figure from a machine file, as of one that was measured


def likely_error(name: str, target: Target) -> float:
    """Return the likely error of a figure of `target`, as a share of its value."""
    figure = TABLE[name].of(target.generation)
    return figure.error if target.figures[name] == figure.value else GIVEN_ERROR


def _figures(generation: int) -> Mapping[str, float]:
    return MappingProxyType(defaults(generation))


# Hardware descriptor generation is commanded by sync or scalar, software generation by gpsimd
# (descriptor generation engine reference). If the kernel does not choose, sync triggers transfers,
# as in the figures of the kernel optimisation tutorial and of the DMA overview's first example (in
# its second example, gpsimd does). That stores are triggered by sync, too, is implied by published
# times of kernels bound by their triggers. The vendor's assignment is not published.
_TRIGGERS = (Engine.SYNC,) * 8

TRN1 = Target(
    name="trn1",
    generation=2,
    figures=_figures(2),
    sbuf_bytes=192 * KIB,
    sbuf_usable=(192 - 16) * KIB,  # direct allocation guide, NKI 0.1
    psum_banks=8,
    base_clock_mhz=1400,
    dma_engines=16,
    queue_engines=(Engine.SYNC,) * 8,  # descriptors are prepared before the run
    sbuf_exclusive=(Engine.VECTOR, Engine.GPSIMD),  # both: memory hierarchy; lifted from trn2 on
    psum_exclusive=(Engine.VECTOR, Engine.SCALAR),
    max_cores=1,
    chip_cores=2,
    matmul_free=512,
)
TRN2 = Target(
    name="trn2",
    generation=3,
    figures=_figures(3),
    sbuf_bytes=224 * KIB,
    sbuf_usable=224 * KIB - 16 * KIB - 8 - 256,  # nki-library, mlp_cte_constants.py
    psum_banks=8,
    base_clock_mhz=1200,
    dma_engines=16,
    queue_engines=_TRIGGERS,
    max_cores=2,
    chip_cores=8,
    matmul_free=512,
)
TRN3 = Target(
    name="trn3",
    generation=4,
    figures=_figures(4),
    sbuf_bytes=256 * KIB,
    sbuf_usable=256 * KIB - 16 * KIB - 8 - 256,  # assumed: the same reserve as on trn2
    psum_banks=8,
    base_clock_mhz=1200,
    dma_engines=16,
    queue_engines=_TRIGGERS,
    max_cores=2,
    chip_cores=8,
    matmul_free=4096,  # float32 dst; 8192 for bfloat16 (nc_matmul, nki.isa)
)
TARGETS: dict[str, Target] = {t.name: t for t in (TRN1, TRN2, TRN3)}
ALIASES = {"gen2": "trn1", "inf2": "trn1", "gen3": "trn2", "gen4": "trn3"}
DEFAULT = TRN2


def find(name: Any) -> Target | None:
    """Return the target called `name`, or None. `inf2` and `gen2` … `gen4` are accepted."""
    return TARGETS.get(ALIASES.get(name, name))


# ---- Machine files: TOML files that override timing figures -------------------------------------
# target = "trn2"        # optional: refuse other targets
# contention = "all"     # other cores that use HBM: alone, pair or all
#
# [vector]
# interval_sbuf = 58     # the parameter `vector.interval_sbuf`
#
# `nki-run calibrate --print machine` lists every parameter. An unknown name is an error.

MAX_BYTES = 1 << 20


@dataclass(frozen=True)
class MachineFile:
    """The contents of a machine file; `hash` is the sha256 of its meaning, in hex."""

    path: str
    figures: Mapping[str, float]
    contention: str | None = None
    target: str | None = None

    @property
    def hash(self) -> str:
        """Equal for files with equal meaning."""
        meaning = [*sorted(self.figures.items()), self.contention]
        return sha256(repr(meaning).encode()).hexdigest()

    def applied(self, target: Target) -> Target:
        """Return `target` with these figures. Raises `UsageFailed` if it is not the file's."""
        if self.target not in (None, target.name):
            text = (
                f"{self.path}: its figures are for {self.target}, but the kernel is for "
                f"{target.name}"
            )
            raise bad_value(
                text, "compile the kernel for that target, or pass another machine file"
            )
        return replace(
            target,
            figures=MappingProxyType({**target.figures, **self.figures}),
            contention=self.contention or target.contention,
            machine=self.hash,
        )


def load_machine(path: str) -> MachineFile:
    """Read and parse a machine file. Raises `UsageFailed`."""
    return read_machine(path, files.read_bytes(path, MAX_BYTES).decode("utf-8", "replace"))


def read_machine(path: str, text: str) -> MachineFile:
    """Parse the text of a machine file. Raises `UsageFailed`."""
    try:
        mapping = files.toml(text)
    except ValueError as error:
        raise bad_value(f"{path}: not valid TOML: {error}") from error
    return figures_of(path, mapping)


def figures_of(path: str, mapping: Mapping[str, Any]) -> MachineFile:
    """Return the machine file equivalent to a mapping, by section or by full names ("dma.done_ns").

    Raises `UsageFailed`.
    """
    sections = dict(mapping)
    target, contention = sections.pop("target", None), sections.pop("contention", None)
    if target is not None and (not isinstance(target, str) or find(target) is None):
        raise bad_value(
            f"{path}: there is no target `{target}`", f"known are: {', '.join(TARGETS)}"
        )
    if contention is not None and contention not in CONTENTION:
        text = f"{path}: contention is `{contention}`, which is not one of {', '.join(CONTENTION)}"
        raise bad_value(text)
    figures = {name: _value(path, name, value) for name, value in _flat(sections)}
    named = find(target) if target is not None else None
    return MachineFile(path, figures, contention, named.name if named is not None else None)


def written(figures: Mapping[str, float], target: str, contention: str | None = None) -> str:
    lines = [f'target = "{target}"', *([f'contention = "{contention}"'] if contention else [])]
    section = ""
    for name, value in sorted(figures.items()):
        group, _, key = name.partition(".")
        if group != section:
            lines += ["", f"[{group}]"]
            section = group
        lines.append(f"{key} = {value:.6g}  # {TABLE[name].unit}: {TABLE[name].says}")
    return "\n".join(lines) + "\n"


def _flat(sections: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for group, inner in sections.items():
        if not isinstance(inner, Mapping):
            yield group, inner
            continue
        for name, value in inner.items():
            yield f"{group}.{name}", value


def _value(path: str, name: str, value: Any) -> float:
    parameter = TABLE.get(name)
    if parameter is None:
        suggestion = did_you_mean(name, TABLE) or "`nki-run calibrate --print machine` lists them"
        raise bad_value(f"{path}: there is no parameter `{name}`", suggestion)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise bad_value(f"{path}: {name} is {value!r}, but must be a number ({parameter.unit})")
    return _in_range(path, parameter, float(value))


def _in_range(path: str, parameter: Parameter, value: float) -> float:
    if parameter.minimum <= value <= parameter.maximum:
        return value
    span = f"{parameter.minimum:g} to {parameter.maximum:g} {parameter.unit}"
    raise bad_value(f"{path}: {parameter.name} is {value:g}, outside {span}")


# ------------------------------------------------------------------------------------------------
# Listings of the timing figures, as `nki-run calibrate --print machine` prints them.

HEAD = ("target", "parameter", "value", "unit", "likely error", "standing", "source", "meaning")
FROM_FILE = "machine file"


def rows(machine: MachineFile | None = None) -> list[tuple[str, ...]]:
    """Return a header, then a row for each target's contention and parameters."""
    lines: list[tuple[str, ...]] = [HEAD]
    for record in records(machine):
        value = record["value"]
        shown = f"{value:g}" if isinstance(value, float | int) else str(value)
        error = record["likely_error"]
        percent = "" if error is None or not value else f"{100 * float(str(error)):.0f} %"
        cells = {**record, "value": shown, "likely error": percent}
        lines.append(tuple(str(cells[name]) for name in HEAD))
    return lines


def records(machine: MachineFile | None = None) -> list[dict[str, object]]:
    """Return the same as records for JSON, of the targets to which the machine file applies."""
    selected = [t for t in TARGETS.values() if machine is None or machine.target in (None, t.name)]
    return [record for target in selected for record in _of(target, machine)]


def _of(target: Target, machine: MachineFile | None) -> Iterator[dict[str, object]]:
    contention = machine.contention if machine is not None else None
    yield {
        "target": target.name,
        "parameter": "contention",
        "value": contention or target.contention,
        "unit": "alone, pair or all",
        "likely_error": None,
        "standing": "given" if contention else "documented",
        "source": FROM_FILE
        if contention
        else "two cores share a stack of HBM; architecture guides",
        "meaning": f"other cores that use HBM; a kernel on two cores is never {ALONE}",
    }
    for row in TABLE.values():
        yield _figure(row, target, machine)


def _figure(row: Parameter, target: Target, machine: MachineFile | None) -> dict[str, object]:
    figure = row.of(target.generation)
    target = machine.applied(target) if machine is not None else target
    override = machine.figures.get(row.name) if machine is not None else None
    return {
        "target": target.name,
        "parameter": row.name,
        "value": figure.value if override is None else override,
        "unit": row.unit,
        "likely_error": round(likely_error(row.name, target), 4),
        "standing": figure.standing.value if override is None else "given",
        "source": figure.source if override is None else FROM_FILE,
        "meaning": row.says,
    }
