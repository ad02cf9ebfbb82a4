"""The vocabulary of instruction rows: operands with roles, attributes with kinds, rules, rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple

from nkic.base.profiles import Profile
from nkic.machine.engines import Engine
from nkic.machine.facts import Facts
from nkic.machine.memory import Buffer


class Access(Enum):
    """What an instruction does to a tile operand."""

    READ = "read"
    WRITE = "write"
    UPDATE = "update"  # reads, then writes the same bytes
    ORDER = "order"  # touches nothing, but stands between earlier and later accesses

    __hash__ = object.__hash__  # identity, as for Buffer

    @property
    def reads(self) -> bool:
        return self is Access.READ or self is Access.UPDATE

    @property
    def writes(self) -> bool:
        return self is Access.WRITE or self is Access.UPDATE


class Depends(Enum):
    """How the elements of a row's results depend on those of its sources. It decides where
    uninitialised bytes become a mistake.
    """

    WHOLLY = "wholly"  # on everything that is read
    ELEMENTWISE = "elementwise"  # on those in the same place; in DMA, in the same order
    BY_PARTITION = "by partition"  # on those of the same partition
    FIRST_OF_CORE = "first of core"  # in partitions 0, 16, 32 …: on that partition of `src`
    SHUFFLED = "shuffled"  # partition by partition, as `shuffle_mask` has it in each quadrant
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

    `dtypes` are names of element types; empty means any. `number` allows a compile-time
    number in place of a tile, `column` asks a tile in that place to be one element per
    partition. `register` allows a register; with `buffers` empty, no tile. `optional`: None
    is a value, from the profile `optional_since` on. `default` is what a call that omits the
    operand means; `...` = required.
    `keep_rank` stops lower from merging dimensions that mean something. `indexed`: takes a
    view with a vector of indices (in DMA: gather and scatter; elsewhere `.indirect()`, from
    NeuronCore-v4). `packed`: takes types of four elements each, which are moved or multiplied
    as they are, but not computed with. `wide`: takes nl.int64, which is moved as it is.
    `max_rank` is the most dimensions of the tile, partitions included and those of size 1 left out;
    0: as many as `max_dims` can encode. `one_bank`: what the tensor engine writes into PSUM stays
    inside of a bank, before NeuronCore-v4. `scales` are those of microscaling groups, four
    partitions of every 32; the row's rules say where they may start. `into` names the operand of
    whose type a number becomes; without it, float32. `since` is the first profile that has the
    parameter.
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
        """A call must give it."""
        return self.default is ...


MAX_TEXT = 4096
# What kernels import the modules of instructions as.
SHORT = {
    **{"nki.isa": "nisa", "nki.language": "nl", "nki.collectives": "ncc"},
    "nki.isa.NkiScalar": "NkiScalar",
}


class AttributeKind(Enum):
    """What an attribute may be."""

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
    """A compile-time parameter. `default` is what an absent argument means; `...` = required.
    `since` is the first profile that has it. One that is not a parameter of its row says what the
    profile makes of the instruction: `former` before `since`, the default from then on. `into` is
    as for operands.
    """

    name: str
    kind: AttributeKind
    default: Any = ...
    choices: tuple[Any, ...] = ()
    optional: bool = False  # None is a value
    since: Profile = Profile.BETA2
    generation: int = 2  # first NeuronCore version that has values other than the default
    former: Any = None
    into: str = ""

    @property
    def required(self) -> bool:
        return self.default is ...


class Violation(NamedTuple):
    """A broken rule: which code, what to say (limit and actual number), about which operand.

    `offsets`: it is about the run-time offsets of that operand, not about the operand itself.
    """

    slug: str
    message: str
    operand: str = ""
    help: str = ""
    offsets: bool = False


Rule = Callable[[Facts], Violation | None]


class Cost(NamedTuple):
    """Time of one instruction.

    `interval`, in cycles of the engine, is how long it occupies the engine; `latency_ns` more
    pass before the result is there. DMA, instead of cycles: from its first byte on, `busy_ns` on
    `dma_engines` of the core's DMA engines at once, then `latency_ns` until the semaphore shows
    it.
    """

    interval: int = 0
    latency_ns: float = 0.0
    busy_ns: float = 0.0
    dma_engines: int = 0


class Effects(NamedTuple):
    """Beyond operands: engine state read and written, as names like "scalar.accumulator"."""

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


def no_effects(facts: Facts) -> Effects:
    """Most instructions touch their operands alone."""
    return Effects()


def no_access(name: str, facts: Facts) -> Access | None:
    """Most operands are accessed as their row declares."""
    return None


@dataclass(frozen=True, repr=False)
class Row:
    """One instruction. Everything that nkic and nki-run know of it, but for its arithmetic,
    which is the function of the same name in simulate/semantics.

    `parameters` is the order of the Python call. `opcode` is the number in files: stable,
    never reused. `access` refines an operand's access by attributes (a matmul that
    accumulates updates its dst). `engines` lists the engines that may run it; `choose` picks
    one where the kernel does not say, unless `by_workload` names several, among which the work that
    each has to do decides. `since` and `until` are the profiles that have it,
    `module` is where kernels find it.
    `returns` names an operand that is not a parameter: the call creates and returns it.
    `spread` names a parameter that is a list of tiles: its elements are the operands that
    are not parameters. `rendezvous_rule` judges, core by core, the operands of what all cores run
    at once. `in_blocks`: a transfer moves blocks, and not rows that each cost a descriptor. `warn`
    says what devices cannot do of what is legal, or do otherwise than a kernel
    means, as far as that is known from the instruction and the number of cores. `depends` says
    what of the results depends on what of the sources.

    What stages ask of a row, so that none of them knows one by name: `accumulates` is the attribute
    that says whether dst is added to, where None leaves it to lower, and `accumulator` the number
    of dst, to which the engine adds without waiting for the sum before. `pairs` and `skips` are an
    attribute with its value: those with which elements are read in pairs, and with which rows whose
    index is out of bounds are left out; `rows_last`, these are columns of dst. `queue` is the
    attribute that numbers the queue which all cores use. `moves`: results have the bits of a source
    of their type, or are constants. `maps`: an element of dst is a function of those in its place
    and of numbers, wherever that place is, and of nothing else. `copies`: dst is src, element by
    element in the order of both. `coalesces`: a call takes several tensors in HBM. `channel` is the
    attribute that numbers channels, each of which is a call. `loads_until` is the last profile that
    takes a tensor in place of a register, and loads it. `scalars`: its register is one of NKI's
    device scalars, which a call gives or takes. `operations` counts the additions and
    multiplications of a matrix product. Of a collective in two halves, `prepares` names the whole
    one of the first half, and `prepared_by` the first half of the second.
    """

    name: str
    opcode: int
    doc: str
    parameters: tuple[str, ...]
    operands: tuple[Operand, ...]
    attributes: tuple[Attribute, ...]
    engines: tuple[Engine, ...]
    choose: Callable[[Facts], Engine]
    cost: Callable[[Facts], Cost]
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
    coalesces: bool = False
    channel: str = ""
    loads_until: Profile | None = None
    scalars: bool = False
    operations: Callable[[Facts], int] | None = None
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
        for name, value in indexes.items():
            object.__setattr__(self, name, value)
        accumulator = indexes["operand_index"].get("dst", -1) if self.accumulates else -1
        object.__setattr__(self, "accumulator", accumulator)
        known = {*indexes["operand_index"], *indexes["attribute_index"]}
        named = {self.accumulates, self.queue, self.channel}
        named |= {asked[0] for asked in (self.pairs, self.skips) if asked}
        if unknown := named - {"", *indexes["attribute_index"]}:
            raise ValueError(f"{self.name}: no such attributes: {sorted(unknown)}")
        targets = {o.into for o in self.operands} | {a.into for a in self.attributes}
        if unknown := targets - {"", *indexes["operand_index"]}:
            raise ValueError(f"{self.name}: no such operands: {sorted(unknown)}")
        known |= {"engine", "name", self.spread}
        if unknown := set(self.parameters) - known:
            raise ValueError(f"{self.name}: parameters without a row entry: {sorted(unknown)}")

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @cached_property
    def called(self) -> str:
        """The name that kernels call, with the module as they import it: `nisa.memset`."""
        return f"{SHORT[self.module]}.{self.name}"

    @cached_property
    def has_engine_parameter(self) -> bool:
        """The kernel may choose the engine. (In DMA, `engine` is an attribute: the trigger.)"""
        return "engine" in self.parameters and "engine" not in self.attribute_index

    @cached_property
    def by_profile(self) -> frozenset[str]:
        """The attributes that the profile decides, not the call."""
        return frozenset(self.attribute_index).difference(self.parameters)

    @cached_property
    def spread_operands(self) -> tuple[Operand, ...]:
        """The operands that the list `spread` gives, first to last."""
        named = set(self.parameters)
        return tuple(o for o in self.operands if o.name not in named) if self.spread else ()

    @cached_property
    def is_rendezvous(self) -> bool:
        """All cores run it at once: each waits until the others have come to it."""
        return self.rendezvous_rule is not None

    @cached_property
    def number_attributes(self) -> tuple[int, ...]:
        """The attributes, by index, of which equal values may differ in the sign of zero."""
        kinds = (AttributeKind.NUMBER, AttributeKind.NUMBERS)
        return tuple(i for i, rule in enumerate(self.attributes) if rule.kind in kinds)

    @cached_property
    def constants(self) -> tuple[tuple[str, str], ...]:
        """The operands and attributes that may be numbers with a fraction, each with the operand of
        whose type it becomes; without one, it becomes a float32.
        """
        found = [(o.name, o.into) for o in self.operands if o.number and not o.register]
        numbers = [a for a in self.attributes if a.kind is AttributeKind.NUMBER]
        return (*found, *((a.name, a.into) for a in numbers))

    @cached_property
    def streams(self) -> bool:
        """A compute engine reads and writes its tiles through access patterns."""
        return Engine.DMA not in self.engines and Engine.SYNC not in self.engines

    def says(self, asked: tuple[str, Any] | None, attributes: Sequence[Any]) -> bool:
        """Whether the values of `attributes` have that of `pairs` or of `skips`."""
        return asked is not None and bool(attributes[self.attribute_index[asked[0]]] == asked[1])

    def access_of(self, operand: Operand, facts: Facts) -> Access:
        """What this instance does to `operand`."""
        return self.access(operand.name, facts) or operand.access


def always(engine: Engine) -> Callable[[Facts], Engine]:
    """A `choose` for instructions with one engine."""
    return lambda facts: engine
