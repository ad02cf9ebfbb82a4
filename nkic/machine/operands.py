"""The vocabulary of instruction rows: operands with roles, attributes with kinds, rules, rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

from nkic.base.profiles import Profile
from nkic.machine.dtypes import DType
from nkic.machine.targets import Buffer, Engine, Target

# ------------------------------------------------------------------------------------------------
# The abstract view of one instruction that rules, cost formulas and engine choices receive.
# The compiler builds `Facts` from views, before addresses exist; the runner builds them from the
# records of an untrusted file. Both then use the same rows. Operands are seen as tiles:
# partitions, and the free dimensions of each partition in elements.


class Tile(NamedTuple):
    """A tensor operand. In HBM, `partitions` is 0 and `dims` holds every dimension.

    `dims` are (step, num) pairs in elements, outermost first. `dynamic`: the address depends on a
    run-time offset. `indexed`: it depends on a vector of offsets, one per outermost element in HBM
    and one per element on chip. `offsets` is the tile that holds the offsets, if any.
    """

    buffer: Buffer
    dtype: DType
    start: int
    partitions: int
    dims: tuple[tuple[int, int], ...]
    dynamic: bool = False
    indexed: bool = False
    offsets: Tile | None = None

    @property
    def on_chip(self) -> bool:
        return self.buffer.on_chip

    @property
    def free(self) -> int:
        """Elements per partition; in HBM, all elements."""
        return prod(num for _, num in self.dims)

    @property
    def elements(self) -> int:
        return self.free * (self.partitions if self.on_chip else 1)

    @property
    def shape(self) -> tuple[int, ...]:
        sizes = tuple(num for _, num in self.dims)
        return (self.partitions, *sizes) if self.on_chip else sizes

    @property
    def contiguous(self) -> bool:
        """Whether the innermost dimension runs over adjacent elements."""
        inner = [step for step, num in self.dims if num > 1]
        return not inner or inner[-1] == 1

    def __str__(self) -> str:
        sizes = ", ".join(map(str, self.shape))
        return f"{self.dtype.name}[{sizes}] in {self.buffer.value}"


class Register(NamedTuple):
    """A scalar register, numbered within the program. Each engine has its own copy."""

    number: int


Value = Tile | Register | float | int | None


def trips(start: int | Register, stop: int | Register, step: int) -> int | None:
    """Return the trip count of a counted loop; None if a register determines it."""
    if isinstance(start, Register) or isinstance(stop, Register):
        return None
    return max(0, -((start - stop) // step))


@dataclass(frozen=True)
class Facts:
    """An instruction as the functions of the instruction table see it."""

    target: Target
    operands: Mapping[str, Value]
    attributes: Mapping[str, Any]
    engine: Engine | None = None

    def tile(self, name: str) -> Tile:
        """Return the operand `name`, which must be a tile."""
        value = self.operands[name]
        if not isinstance(value, Tile):
            raise TypeError(f"operand {name} is {value!r}, not a tile")
        return value

    def maybe(self, name: str) -> Tile | None:
        """Return the operand `name` if it is a tile, otherwise None."""
        value = self.operands.get(name)
        return value if isinstance(value, Tile) else None

    @cached_property
    def tiles(self) -> dict[str, Tile]:
        return {name: v for name, v in self.operands.items() if isinstance(v, Tile)}


# --------------------------------------------------------------------------------------------------


class Access(Enum):
    """The access of an instruction to a tile operand."""

    READ = "read"
    WRITE = "write"
    UPDATE = "update"  # reads, then writes the same bytes
    ORDER = "order"  # accesses nothing, but orders earlier and later accesses

    __hash__ = object.__hash__  # identity, as for Buffer

    @property
    def reads(self) -> bool:
        return self is Access.READ or self is Access.UPDATE

    @property
    def writes(self) -> bool:
        return self is Access.WRITE or self is Access.UPDATE


class Depends(Enum):
    """How elements of a row's results depend on elements of its sources.

    It determines which results an uninitialised byte poisons.
    """

    WHOLLY = "wholly"  # on every element read
    ELEMENTWISE = "elementwise"  # on the elements at the same place; in DMA, in the same order
    BY_PARTITION = "by partition"  # on the elements of the same partition
    BY_CORE = "by core"  # likewise, and of `index` on the 16 partitions of their GpSimd core
    FIRST_OF_CORE = "first of core"  # in partitions 0, 16, 32 …: on that partition of `src`
    SHUFFLED = "shuffled"  # partition by partition, according to `shuffle_mask` in each quadrant
    PRODUCT = "product"  # on a column of `stationary` and one of `moving`
    QUANTIZED = "quantized"  # on four elements of each partition of the group; scales too
    TRANSPOSED = "transposed"  # row i, column j on row j, column i


SBUF = frozenset({Buffer.SBUF})
PSUM = frozenset({Buffer.PSUM})
ON_CHIP = SBUF | PSUM
HBM = frozenset({Buffer.HBM, Buffer.SHARED_HBM})
SBUF_OR_HBM = SBUF | HBM


@dataclass(frozen=True)
class Operand:
    """A tile operand, or one that may also be a number or a register.

    `dtypes` are names of element types; empty means any. `number` allows a compile-time number in
    place of a tile; `column` requires a tile in that place to have one element per partition.
    `register` allows a register; with `buffers` empty, no tile. `optional`: None is a value, from
    the profile `optional_since` on. `default` is the value if a call omits the operand; `...` means
    required.

    `keep_rank` stops lower from merging dimensions that carry meaning. `indexed`: accepts a view
    with a vector of indices (in DMA: gather and scatter; elsewhere `.indirect()`, from
    NeuronCore-v4 on). `packed`: accepts packed types of four elements, which are moved or
    multiplied but not computed with. `wide`: accepts nl.int64, which is only moved. `max_rank` is
    the maximum number of dimensions, including partitions and excluding those of size 1; 0 means as
    many as `max_dims` can encode.

    `one_bank`: the tensor engine's result in PSUM must be within a bank, before NeuronCore-v4.
    `scales`: the operand holds the scales of microscaling groups, four partitions of every 32; the
    row's rules say where they may start. `into` names the operand whose type a number is converted
    to; float32 if empty. `since` is the first profile that has the parameter.
    """

    name: str
    access: Access
    buffers: frozenset[Buffer] = ON_CHIP
    dtypes: frozenset[str] = frozenset()
    number: bool = False
    column: bool = False
    optional: bool = False
    optional_since: Profile = Profile.BETA2
    keep_rank: bool = False
    max_dims: int = 4  # free dimensions that the instruction can encode
    register: bool = False
    default: Any = ...
    indexed: bool = False
    packed: bool = False
    wide: bool = False
    max_rank: int = 0
    one_bank: bool = False
    scales: bool = False
    into: str = ""
    since: Profile = Profile.BETA2

    @property
    def required(self) -> bool:
        return self.default is ...


MAX_TEXT = 4096
# The names under which kernels import the modules of instructions.
SHORT = {
    **{"nki.isa": "nisa", "nki.language": "nl", "nki.collectives": "ncc"},
    "nki.isa.NkiScalar": "NkiScalar",
}


class AttributeKind(Enum):
    ALU = "operator"  # a name in machine.operators.ALU
    ACTIVATION = "activation function"
    BOOL = "bool"
    INT = "int"
    INT32 = "32-bit int"
    NUMBER = "number"
    PATTERN = "list of [step, num] pairs"
    INTS = "tuple of ints"
    NUMBERS = "tuple of numbers"  # no NaN
    GROUPS = "list of lists of ranks"
    CHOICE = "choice"
    TEXT = "string"  # of at most MAX_TEXT bytes as UTF-8

    __hash__ = object.__hash__


@dataclass(frozen=True)
class Attribute:
    """A compile-time parameter. `default` is the value if a call omits it; `...` means required.

    `since` is the first profile that has it. An attribute that is not a parameter of its row has
    the value `former` before `since`, and the default from then on. `into` is as for operands.
    """

    name: str
    kind: AttributeKind
    default: Any = ...
    choices: tuple[Any, ...] = ()
    optional: bool = False  # None is allowed
    since: Profile = Profile.BETA2
    generation: int = 2  # first NeuronCore version that accepts values other than the default
    former: Any = None
    into: str = ""

    @property
    def required(self) -> bool:
        return self.default is ...


class Violation(NamedTuple):
    """A broken rule: its error code, the message (limit and actual number), and the operand.

    `offsets`: the error concerns the run-time offsets of that operand, not the operand itself.
    `other`: the operand whose partitions or elements that operand should equal.
    """

    slug: str
    message: str
    operand: str = ""
    help: str = ""
    offsets: bool = False
    other: str = ""


Rule = Callable[[Facts], Violation | None]


class Cost(NamedTuple):
    """The time one instruction takes.

    `interval`, in cycles of the engine, is how long it occupies the engine. The result is available
    `latency_ns` after that; on the tensor engine, `cold_interval` takes its place while the engine
    is cold. For DMA, instead of cycles: `busy_ns` from its first byte on, on `dma_engines` of the
    core's DMA engines at once, then `latency_ns` until the semaphore is set.
    """

    interval: int = 0
    latency_ns: float = 0.0
    busy_ns: float = 0.0
    dma_engines: int = 0
    cold_interval: int = 0


class Effects(NamedTuple):
    """Engine state read and written besides operands, under names like "scalar.accumulator"."""

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


def no_effects(facts: Facts) -> Effects:
    """Return no effects: most instructions access only their operands."""
    return Effects()


def no_access(name: str, facts: Facts) -> Access | None:
    """Return None: most operands are accessed as their row declares."""
    return None


@dataclass(frozen=True, repr=False)
class Row:
    """One instruction: everything nkic and nki-run know about it, except its arithmetic.

    The arithmetic is the function of the same name in simulate/semantics.

    `parameters` is the order of the Python call; if not given, the operands, the attributes and
    `name`. `source` is the documentation; if not given, the page of the instruction. `opcode`
    identifies the row in files: stable, never reused. `access` refines an operand's access by
    attributes (an accumulating matmul updates its dst). `engines` lists the engines that may run
    it. If the kernel names none, it is the first one, or that of `default_engine`, unless
    `by_workload` returns several: lower then balances their workloads. `since` and `until` are the
    first and last profiles that have it; `module` is the module in which kernels
    find it. `returns` names an operand that is not a parameter: the call creates and returns it.
    `spread` names a parameter that is a list of tiles: its elements are the operands that are not
    parameters. `rendezvous_rule` checks the operands of an instruction that all cores run together,
    one `Facts` per core. `in_blocks`: a transfer moves blocks, not rows with a descriptor each.
    `warn` reports legal uses that devices do not support or execute differently from what a kernel
    means, as far as the instruction and the number of cores show it. `depends` says how results
    depend on sources.

    The other fields are properties that stages query, so that no stage names an instruction:

    - `accumulates`: the attribute that selects adding to dst; lower decides if its value is None.
    - `accumulator`: the index of dst, to which the engine adds without waiting for the previous
      sum.
    - `pairs`: an attribute and the value with which elements are read in pairs.
    - `skips`: an attribute and the value with which rows with an index out of bounds are skipped.
    - `rows_last`: those rows are columns of dst.
    - `queue`: the attribute that holds the number of the queue that all cores use.
    - `moves`: results have the bits of a source of their type, or are constants.
    - `maps`: an element of dst is a function only of the elements at the same place, wherever that
      place is, and of numbers.
    - `copies`: dst is src, element by element in the order of both.
    - `selects`: the operands of which results depend on selected elements alone; another operand,
      or numbers, decide which.
    - `first` and `stages`: the operand that elementwise arithmetic begins with, and for each of its
      operators the attribute, the second operand, and the attribute that swaps the two, if any.
    - `coalesces`: one call takes several tensors in HBM.
    - `channel`: the attribute that holds the channel number; each channel is a call.
    - `loads_until`: the last profile that accepts a tensor in place of a register, and loads it.
    - `scalars`: its register is an NKI device scalar, which a call takes or returns.
    - `operations`: counts the additions and multiplications of a matrix product.
    - `transposing`: counts those of a product with an identity, which only moves data.
    - `prepares`: for the first half of a split collective, the complete collective.
    - `prepared_by`: for the second half of a split collective, the first half.
    """

    name: str
    opcode: int
    doc: str
    operands: tuple[Operand, ...]
    engines: tuple[Engine, ...]
    cost: Callable[[Facts], Cost]
    parameters: tuple[str, ...] = ()
    attributes: tuple[Attribute, ...] = ()
    default_engine: Callable[[Facts], Engine] | None = None
    by_workload: Callable[[Facts], tuple[Engine, ...]] | None = None
    rules: tuple[Rule, ...] = ()
    effects: Callable[[Facts], Effects] = no_effects
    access: Callable[[str, Facts], Access | None] = no_access
    since: Profile = Profile.BETA2
    until: Profile | None = None
    generation: int = 2  # first NeuronCore version that has it
    source: str = ""
    module: str = "nki.isa"
    returns: str = ""
    spread: str = ""
    rendezvous_rule: Callable[[Sequence[Facts]], Violation | None] | None = None
    in_blocks: bool = False
    warn: Callable[[Facts, int], Violation | None] | None = None
    depends: Depends = Depends.WHOLLY
    accumulates: str = ""
    pairs: tuple[str, Any] | None = None
    skips: tuple[str, Any] | None = None
    rows_last: bool = False
    queue: str = ""
    moves: bool = False
    maps: bool = False
    copies: bool = False
    selects: tuple[str, ...] = ()
    first: str = ""
    stages: tuple[tuple[str, str, str], ...] = ()
    coalesces: bool = False
    channel: str = ""
    loads_until: Profile | None = None
    scalars: bool = False
    operations: Callable[[Facts], int] | None = None
    transposing: Callable[[Facts], int] | None = None
    prepares: str = ""
    prepared_by: str = ""
    accumulator: int = field(init=False, repr=False, compare=False)
    operand_index: dict[str, int] = field(init=False, repr=False, compare=False)
    attribute_index: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        indexes = {
            "operand_index": {o.name: i for i, o in enumerate(self.operands)},
            "attribute_index": {a.name: i for i, a in enumerate(self.attributes)},
        }
        passed = [name for index in indexes.values() for name in index if name != self.returns]
        usual = {"parameters": (*passed, "name"), "source": f"{self.module}.{self.name}"}
        absent = {name: value for name, value in usual.items() if not getattr(self, name)}
        for name, value in {**indexes, **absent}.items():
            object.__setattr__(self, name, value)
        accumulator = indexes["operand_index"].get("dst", -1) if self.accumulates else -1
        object.__setattr__(self, "accumulator", accumulator)
        declared = {*indexes["operand_index"], *indexes["attribute_index"]}
        named = {self.accumulates, self.queue, self.channel}
        named |= {setting[0] for setting in (self.pairs, self.skips) if setting}
        if unknown := named - {"", *indexes["attribute_index"]}:
            raise ValueError(f"{self.name}: no such attributes: {sorted(unknown)}")
        targets = {o.into for o in self.operands} | {a.into for a in self.attributes}
        if unknown := targets - {"", *indexes["operand_index"]}:
            raise ValueError(f"{self.name}: no such operands: {sorted(unknown)}")
        declared |= {"engine", "name", self.spread}
        if unknown := set(self.parameters) - declared:
            raise ValueError(f"{self.name}: parameters without a row entry: {sorted(unknown)}")

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @cached_property
    def called(self) -> str:
        """The name in kernels, with the module as they import it: `nisa.memset`."""
        return f"{SHORT[self.module]}.{self.name}"

    @cached_property
    def has_engine_parameter(self) -> bool:
        """Whether the kernel may choose the engine. (In DMA, `engine` is the trigger.)"""
        return "engine" in self.parameters and "engine" not in self.attribute_index

    @cached_property
    def by_profile(self) -> frozenset[str]:
        """The attributes determined by the profile, not by the call."""
        return frozenset(self.attribute_index).difference(self.parameters)

    @cached_property
    def spread_operands(self) -> tuple[Operand, ...]:
        """The operands that come from the list parameter `spread`, in order."""
        named = set(self.parameters)
        return tuple(o for o in self.operands if o.name not in named) if self.spread else ()

    @cached_property
    def is_rendezvous(self) -> bool:
        """Whether all cores run it together: each waits until the others have reached it."""
        return self.rendezvous_rule is not None

    @cached_property
    def number_attributes(self) -> tuple[int, ...]:
        """The indices of attributes whose equal values may differ in the sign of zero."""
        kinds = (AttributeKind.NUMBER, AttributeKind.NUMBERS)
        return tuple(i for i, rule in enumerate(self.attributes) if rule.kind in kinds)

    @cached_property
    def constants(self) -> tuple[tuple[str, str], ...]:
        """The operands and attributes that may be fractional, with the operand that gives the type.

        Each is converted to the type of that operand, or to float32 if there is none.
        """
        operands = [(o.name, o.into) for o in self.operands if o.number and not o.register]
        numbers = [a for a in self.attributes if a.kind is AttributeKind.NUMBER]
        return (*operands, *((a.name, a.into) for a in numbers))

    @cached_property
    def streams(self) -> bool:
        """Whether a compute engine streams its tiles through access patterns."""
        return Engine.DMA not in self.engines and Engine.SYNC not in self.engines

    def has_setting(self, setting: tuple[str, Any] | None, attributes: Sequence[Any]) -> bool:
        """Return whether `attributes` have the value of `setting` (`pairs` or `skips`)."""
        return setting is not None and bool(
            attributes[self.attribute_index[setting[0]]] == setting[1]
        )

    def choose(self, facts: Facts) -> Engine:
        """Return the engine of this instance if the kernel names none."""
        return self.engines[0] if self.default_engine is None else self.default_engine(facts)

    def access_of(self, operand: Operand, facts: Facts) -> Access:
        """Return the access of this instance to `operand`."""
        return self.access(operand.name, facts) or operand.access
