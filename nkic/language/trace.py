"""Trace: the program under construction while a kernel is evaluated.

The API's tensors, instructions and loops reach the trace through `active()`. There is one trace per
compilation; `tracing` makes it the active one of its thread and restores the previous one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf
from typing import Any, Protocol

from nkic.base.device import Identical, KernelError, Missing
from nkic.base.diagnostics import Fix, Label, Level, Reporter, make, respelt, within
from nkic.base.profiles import Profile
from nkic.base.source import NOWHERE, CallChain, Span
from nkic.base.text import printable
from nkic.language.hosted import brief, surface
from nkic.language.views import interned, whole
from nkic.machine.dtypes import DType
from nkic.machine.operands import Register, Row
from nkic.machine.targets import Address, Buffer, Engine, Target
from nkic.program.program import Body, Instruction, Item, Loop, Operand, Tensor, View
from nkic.source.bindings import SourceModule

POISON = -1  # the number of a placeholder for a tensor that could not be made


RECORDING = 100  # steps for an instruction, a tensor, or a view that is not an index
COMPLAINING = 150  # steps for a diagnostic, even if it is merged with others
VIEWING = 20  # steps for an index of a tensor
RECORDED = 4096  # bytes of an instruction in all stages together, at most (2,200 were measured)


class Budget(Protocol):
    """Steps of an evaluation. Where many are spent, `left` is decremented directly."""

    left: Any  # an int, or infinity
    memory: float  # the remaining bytes

    def check(self) -> None:
        """Raise if steps or bytes are exhausted."""

    def charge(self, steps: int) -> None:
        """Spend steps; raise if there are too few."""


class Unlimited:
    """The budget of an evaluation by the Python interpreter."""

    left = memory = inf

    def check(self) -> None:
        """Raise nothing."""

    def charge(self, steps: int) -> None:
        """Spend nothing."""


class OpenLoop:
    def __init__(self, number: int, at: CallChain, head: Mapping[str, Any]) -> None:
        self.number = number
        self.at = at
        self.head = head
        self.body: list[Item] = []


@surface(public=True)
class NkiInstruction(Identical):
    """The result of an instruction call: a handle for ordering it after others."""

    # `_index` is the index in `_body`, or negative if an error prevented recording.
    __slots__ = ("_body", "_index")

    def __init__(self, body: list[Item], index: int) -> None:
        self._body = body
        self._index = index

    def __repr__(self) -> str:
        return "<the result of an instruction>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # Python protocols probe for these
        text = f"an instruction does not return a tensor: its result has no attribute `{name}`"
        raise Missing("unknown-attribute", text, name, "use the dst that the instruction wrote")

    def depends_on(self, *producers: NkiInstruction) -> NkiInstruction:
        """Order this instruction after `producers`."""
        for producer in producers:
            if not isinstance(producer, NkiInstruction):
                text = f"depends_on takes the results of instructions, not {brief(producer)}"
                raise KernelError("argument-kind", text)
        consumer = self._recorded()
        if consumer is not None:
            recorded = (producer._recorded() for producer in producers)
            numbers = tuple(
                instruction.number for instruction in recorded if instruction is not None
            )
            if any(number >= consumer.number for number in numbers):
                raise KernelError(
                    "bad-schedule",
                    "an instruction cannot wait for itself, or for one that comes after it",
                    help="an edge can only add to the order of the program; to reverse it, change "
                    "the program",
                )
            after = consumer.after + numbers
            self._body[self._index] = consumer._replace(after=after)
        return self

    def _recorded(self) -> Instruction | None:
        """Return the instruction in the program, or None."""
        item = self._body[self._index] if self._index >= 0 else None
        return item if isinstance(item, Instruction) else None


class Failed(NkiInstruction):
    """What a call that was refused returns: every use of it gives itself, without another error."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__([], -1)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def _itself(self, *_: Any, **__: Any) -> Any:
        return self

    def __setitem__(self, key: Any, value: Any) -> None:
        """Assign nothing."""

    def __iter__(self) -> Iterator[Any]:
        return iter((self,))

    def depends_on(self, *producers: NkiInstruction) -> NkiInstruction:
        """Order nothing."""
        return self

    __call__ = __getitem__ = _itself
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __matmul__ = __rmatmul__ = (
        _itself
    )
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _itself
    __pow__ = __rpow__ = __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _itself
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _itself
    __neg__ = __pos__ = __invert__ = __abs__ = __lt__ = __le__ = __gt__ = __ge__ = _itself


def has_failed(value: Any) -> bool:
    """Return whether a value is the result of a call that was refused, and reported."""
    return type(value) is Failed


class Trace:
    """The state of one compilation. `ids` differs between kernel instances."""

    def __init__(
        self, target: Target, profile: Profile, report: Reporter, grid: tuple[int, ...] = ()
    ) -> None:
        self.target = target
        self.profile = profile
        self.report = report
        self.grid = grid
        self.ids: tuple[int, ...] = ()
        self.lacks_grid = False  # whether the kernel asks for its place in a grid that it lacks
        self.lnc = 1  # cores that execute the kernel together
        self.library: Callable[[str], Callable[..., Any]] = _no_library
        self.name_of: Callable[[CallChain], str] = _no_name
        self.module_of: Callable[[str], SourceModule | None] = _no_module
        self.locate: Callable[[CallChain, str, int | None], Span] = _whole_call
        self.here: Callable[[], CallChain] = _nowhere  # the kernel's current expression
        self.loop_context: Callable[[], list[Label]] = list  # labels of the loops around it
        self.iterations: Callable[[], str] = str  # of those loops, for `Instruction`
        self.budget: Budget = Unlimited()  # the evaluation's steps
        self.spaces: Mapping[str, Any] = {}  # NKI's modules, if the Python interpreter evaluates
        self.decide: Callable[[Any], bool] | None = None  # decides `while register:` there
        self.prepared: Any = None  # the collective awaiting its trigger
        # For the Python interpreter: saves the variables' numbers. The result restores them and
        # returns the names of the variables that had changed.
        self.remember: Callable[[], Callable[[], Sequence[str]]] | None = None
        self.abandoned_loops: list[CallChain] = []  # device loops that Python left early
        self.tensors: list[Tensor] = []
        self.constants: dict[int, bytes] = {}
        self.messages: list[str] = []
        self.reads: dict[str, str] = {}
        self.computed: dict[int, tuple[Tensor, ...]] = {}  # operators' results: their inputs
        self.written: set[int] = set()
        self.beta1: Any = None  # Beta 1's own state: `emit.State`
        self.out_of_bounds: dict[int, str] = {}  # Beta 1: blocks out of bounds, with the reason
        self.read: set[int] = set()
        self.own_inputs: frozenset[int] = frozenset()
        self.body: list[Item] = []
        self.loops: list[OpenLoop] = []
        self.scope: tuple[int, ...] = ()
        self.pinned = 0
        self._cores: list[list[Item]] = []
        self._bodies: list[list[Item]] = []
        self._instructions = 0
        self._registers = 0
        self._loop_numbers = 0
        self._regions = 0
        self._shared: dict[tuple[CallChain, int], Tensor] = {}
        self._allocated: dict[CallChain, int] = {}
        self._constants: dict[tuple[tuple[int, ...], DType, bytes], Tensor] = {}

    # Steps of the evaluation

    def recording(self) -> None:
        """Spend the steps of an instruction, a tensor, or a view that is not an index."""
        self.budget.memory -= RECORDED
        self.budget.left -= RECORDING
        self.budget.check()

    def recorded(self) -> int:
        """Return the bytes of the tensors and instructions recorded so far."""
        return (self._instructions + len(self.tensors)) * RECORDED

    def viewing(self) -> None:
        """Spend the steps of an index of a tensor."""
        self.budget.charge(VIEWING)

    # Instances of the kernel

    def begin(self, ids: tuple[int, ...], core: int = 0) -> int:
        """Start the kernel instance with these program ids on a core.

        Returns the index in the core's body at which the instance begins.
        """
        self.ids = ids
        self._allocated.clear()
        if core == len(self._cores):
            self._cores.append([])
            self._instructions = 0
        self.body = self._cores[core]
        return len(self.body)

    @property
    def cores(self) -> tuple[Body, ...]:
        return tuple(tuple(body) for body in self._cores)

    @property
    def bodies(self) -> list[list[Item]]:
        """The bodies of all cores, mutable."""
        return self._cores

    # Tensors

    def is_own_input(self, tensor: Tensor) -> bool:
        """Return whether a tensor is an argument that no other core can access."""
        return tensor.number in self.own_inputs

    def tensor(
        self,
        shape: tuple[int, ...],
        dtype: DType,
        buffer: Buffer,
        name: str = "",
        fixed: Address | None = None,
    ) -> Tensor:
        """Declare a tensor at the kernel's current expression.

        The instances of a grid share tensors in shared HBM: the n-th evaluation of the same call
        returns the tensor that the first instance made in its n-th.
        """
        at = self.here()
        if buffer is Buffer.SHARED_HBM:
            return self._shared_tensor(shape, dtype, name, at)
        return self.declare(shape, dtype, buffer, name, at, fixed)

    def declare(
        self,
        shape: tuple[int, ...],
        dtype: DType,
        buffer: Buffer,
        name: str,
        at: CallChain,
        fixed: Address | None = None,
    ) -> Tensor:
        budget, tensors = self.budget, self.tensors
        budget.left -= RECORDING
        budget.memory -= RECORDED
        if budget.left < 0 or budget.memory < 0:
            budget.check()
        number = len(tensors)
        name = name or self.name_of(at) or f"t{number}"
        if not name.isprintable():  # it is one line of messages and of printed programs
            name = printable(name)
        tensor = Tensor(number, name, dtype, interned(shape), buffer, at, fixed, self.scope)
        tensors.append(tensor)
        return tensor

    def constant(self, shape: tuple[int, ...], dtype: DType, data: bytes) -> Tensor:
        """Return a tensor in shared HBM, initialised with `data`; interned by its contents."""
        key = (shape, dtype, data)
        tensor = self._constants.get(key)
        if tensor is None:
            self.budget.memory -= len(data)
            tensor = self.declare(shape, dtype, Buffer.SHARED_HBM, "", here())
            tensor.scope = ()  # it outlives every loop
            self._constants[key] = tensor
            self.constants[tensor.number] = data
        return tensor

    @property
    def has_no_results(self) -> bool:
        """Whether the kernel has made no tensor in shared HBM so far."""
        return not self._shared

    def _shared_tensor(
        self, shape: tuple[int, ...], dtype: DType, name: str, at: CallChain
    ) -> Tensor:
        count = self._allocated.get(at, 0)
        self._allocated[at] = count + 1
        tensor = self._shared.get((at, count))
        if tensor is None:
            tensor = self.declare(shape, dtype, Buffer.SHARED_HBM, name, at)
            self._shared[at, count] = tensor
        elif (tensor.shape, tensor.dtype) != (shape, dtype):
            self.report.fatal(
                "shared-tensor-differs",
                f"kernel instance {self.ids} makes this tensor {dtype.name}{list(shape)}, an "
                f"earlier one made it {tensor.dtype.name}{list(tensor.shape)}",
                at.primary,
                help="tensors in shared_hbm are the same for all instances of the grid; use "
                "nl.private_hbm for a tensor of one instance",
            )
        return tensor

    # Instructions

    def record(
        self,
        row: Row,
        operands: tuple[Operand, ...],
        attributes: tuple[Any, ...],
        engine: Engine | None = None,
        name: str = "",
        after: tuple[int, ...] = (),
    ) -> NkiInstruction:
        body = self.body
        number = self._instructions
        self._instructions = number + 1
        at, iterations = self.here(), self.iterations()
        fields = (
            row,
            operands,
            attributes,
            engine,
            at,
            number,
            name,
            after,
            self.pinned,
            None,
            iterations,
        )
        body.append(tuple.__new__(Instruction, fields))
        return NkiInstruction(body, len(body) - 1)

    def reappend(self, item: Instruction) -> None:
        """Append an instruction that was removed from the end, after others were recorded."""
        self.body.append(item._replace(number=self._instructions))
        self._instructions += 1

    def new_region(self) -> int:
        """Return the number of a new region of instructions that keep their order."""
        self._regions += 1
        return self._regions

    # Registers and device loops

    def register(self) -> Register:
        self._registers += 1
        return Register(self._registers - 1)

    def open_loop(self, **head: Any) -> OpenLoop:
        """Record into the body of a new device loop from now on; `head` has fields of `Loop`."""
        if self.pinned:
            raise KernelError(
                "loop-in-no-reorder",
                "a device loop cannot be inside nl.no_reorder()",
                help="put nl.no_reorder() inside the loop, or unroll the loop with range",
            )
        self._loop_numbers += 1
        loop = OpenLoop(self._loop_numbers, here(), head)
        self.loops.append(loop)
        self._bodies.append(self.body)
        self.body = loop.body
        self.scope = (*self.scope, loop.number)
        return loop

    def close_loop(self, expected: OpenLoop | None = None) -> None:
        """Close the innermost loop and append it to the enclosing body; it must be `expected`."""
        if expected is not None and self.loops[-1:] != [expected]:
            raise KernelError(
                "device-loop-misuse",
                "an inner device loop was left before its end",
                help="the body of the loop is compiled once; only its range or condition can end "
                "it",
            )
        loop = self.loops.pop()
        self.body = self._bodies.pop()
        self.scope = self.scope[:-1]
        self.body.append(Loop(loop.number, tuple(loop.body), loop.at, **loop.head))

    def accept(self, view: View) -> bool:
        """Return whether neither the view nor the tensor that indexes it is a ghost.

        Reports tensors whose loop has ended.
        """
        tensor, dynamic = view.tensor, view.dynamic
        if tensor.scope:
            self._check_scope(tensor)
        if dynamic is not None and isinstance(dynamic.source, View):
            self.read.add(dynamic.source.tensor.number)
            return self.accept(dynamic.source) and tensor.number != POISON
        return tensor.number != POISON

    def _check_scope(self, tensor: Tensor) -> None:
        """Check that a tensor declared in a device loop is used only in that loop's body."""
        depth = len(tensor.scope)
        if self.scope[:depth] != tensor.scope:
            self.report.error(
                "tensor-out-of-scope",
                f"{tensor.name} was declared in the body of a device loop that has ended",
                here().primary,
                labels=[Label(tensor.at.primary, "declared here")],
                help="declare it before the loop",
            )

    def ghost(self, view: View, shape: Sequence[int]) -> View:
        """Return a view of `shape` in place of one that could not be made because of an error.

        Instructions on it are not recorded, so that one mistake gives one error.
        """
        old = view.tensor
        return whole(Tensor(POISON, old.name, view.dtype, tuple(shape), old.buffer, old.at))


def _nowhere() -> CallChain:
    return CallChain(NOWHERE)


def _no_name(at: CallChain) -> str:
    return ""


def _no_module(path: str) -> SourceModule | None:
    return None


def _whole_call(at: CallChain, parameter: str, position: int | None) -> Span:
    return at.primary


def _no_library(name: str) -> Callable[..., Any]:
    raise LookupError(f"no standard library is loaded to take {name} from")


class _Active(threading.local):
    """The traces of one thread, innermost last."""

    def __init__(self) -> None:
        self.traces: list[Trace] = []


_active = _Active()


def active() -> Trace:
    return _active.traces[-1]


def current() -> Trace | None:
    """Return the active trace, or None outside kernels."""
    return _active.traces[-1] if _active.traces else None


def here() -> CallChain:
    """Return the expression being evaluated, with the calls that led to it.

    Equal chains are the same object.
    """
    return _active.traces[-1].here() if _active.traces else _nowhere()


@contextmanager
def tracing(trace: Trace) -> Iterator[Trace]:
    traces = _active.traces
    traces.append(trace)
    try:
        yield trace
    finally:
        traces.pop()


# ------------------------------------------------------------------------------------------------
# Errors and warnings that do not stop evaluation, reported at the kernel's current expression.


def complain(
    slug: str,
    message: str,
    *,
    help: str = "",
    about: Iterable[Tensor] = (),
    level: Level = Level.ERROR,
    fixes: Iterable[Fix] = (),
    argument: str = "",
    position: int | None = None,
    at: CallChain | None = None,
    labels: Iterable[Label] = (),
) -> None:
    """Report a problem at the kernel's current call, with the calls that led to it.

    `argument` names the parameter that is wrong, `position` its index among positional arguments:
    the message then points to that argument if the call spells it out. `at` overrides the location.
    """
    active().recording()
    active().budget.charge(COMPLAINING)
    at = at or here()
    locations = at.user_frames()
    labels = [*labels, *(Label(span, "called from here") for span in locations[1:])]
    labels += [Label(tensor.at.primary, f"`{tensor.name}` is {shown(tensor)}") for tensor in about]
    location = locations[0]
    if argument and at.span == location:
        location = active().locate(at, argument, position)
    labels += _iterations(slug, location)
    module = active().module_of(location.path)
    fixes = [*fixes, *respelt(help, module.source if module else None, location)]
    diagnostic = make(
        slug,
        message,
        location,
        help=help,
        labels=labels,
        level=level,
        fixes=fixes,
        notes=within(at),
    )
    active().report.add(diagnostic)


def _iterations(slug: str, span: Span) -> list[Label]:
    """Return labels with the current iterations of the enclosing loops.

    They cover the loops around `span` and around the nearest callers. Empty if the problem was
    already reported in an earlier iteration.
    """
    trace = active()
    return [] if trace.report.knows(slug, span) else trace.loop_context()


def shown(tensor: Tensor) -> str:
    """Describe a tensor: `float32[128, 512] in sbuf`."""
    sizes = ", ".join(map(str, tensor.shape))
    return f"{tensor.dtype.name}[{sizes}] in {tensor.buffer.value}"
