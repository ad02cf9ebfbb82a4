"""The names of `nki.collectives`: lists of tensors, and channels, become one instruction each.

Source: `nki.collectives`, which documents how many tensors each function's lists may have.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any, NamedTuple

from nkic.base.device import Identical
from nkic.base.diagnostics import did_you_mean
from nkic.base.profiles import Profile
from nkic.base.source import CallChain
from nkic.language.binder import Binder, CallRefused, shown
from nkic.language.hosted import ReplicaGroup, surface
from nkic.language.tensor import NkiTensor
from nkic.language.trace import Failed, NkiInstruction, Trace, active, complain, has_failed, here
from nkic.language.views import whole
from nkic.machine.dtypes import DTYPES
from nkic.machine.instructions import ROWS
from nkic.machine.instructions.collectives import MODULE, SLUG
from nkic.machine.operands import Row
from nkic.machine.targets import Buffer
from nkic.program.program import Item

# The parameter for each operand's list; lists by channel have names of their own.
_LISTS = {"dst": "dsts", "src": "srcs", "src0": "srcs0_by_channel", "src1": "srcs1_by_channel"}
_BY_CHANNEL = {"dst": "dsts_by_channel", "src": "srcs_by_channel"}


def names(profile: Profile) -> dict[str, Any]:
    rows = [row for row in ROWS.values() if row.module == MODULE and row.since <= profile]
    return {"ReplicaGroup": ReplicaGroup, **{row.name: _function(row) for row in rows}}


def _function(row: Row) -> Callable[..., Any]:
    if row.prepares:
        return Preparing(row, ROWS[row.prepares])
    if row.prepared_by:
        return Triggering(row)
    return Binder(row) if row.returns else Collective(row)


class CollectiveFunction(Identical):
    """A function of `nki.collectives`: binds the arguments of a call and reports refused calls."""

    __signature__: Signature

    def __init__(self, row: Row) -> None:
        self._row = row
        self._binder = Binder(row)

    def __repr__(self) -> str:
        return f"ncc.{self._row.name}"

    @property
    def __name__(self) -> str:
        return self._row.name

    def __hash__(self) -> int:
        return hash(self._row.name)

    def __call__(self, *args: Any, **keywords: Any) -> NkiInstruction:
        try:
            return self._invoke(_bound(self._row, self.__signature__, args, keywords))
        except CallRefused as refused:
            text = f"{self._row.name}: {refused.message}"
            complain(refused.slug, text, help=refused.help, argument=refused.argument)
            return Failed()

    def _invoke(self, arguments: dict[str, Any]) -> NkiInstruction:
        raise NotImplementedError


@surface("__name__")
class Collective(CollectiveFunction):
    """A function over lists of tensors."""

    def __init__(self, row: Row) -> None:
        super().__init__(row)
        self._channels = bool(row.channel)
        named = {**_LISTS, **_BY_CHANNEL} if self._channels else _LISTS
        tiles = [o.name for o in row.operands if o.name in _LISTS]
        self._lists = {name: named[name] for name in (*tiles[1:], tiles[0])}  # sources first
        self.__signature__ = Signature([*self._parameters()])

    def _parameters(self) -> Any:
        """Yield NKI's parameters: lists, the row's own, then the channels, priority, and name."""
        kind = Parameter.POSITIONAL_OR_KEYWORD
        later = [self._row.channel, "priority", "name"]
        for name in self._lists.values():
            yield Parameter(name, kind)
        defaults = {a.name: a.default for a in self._row.attributes if not a.required}
        for name in self._row.parameters:
            if name not in self._lists and name not in later:
                yield Parameter(name, kind, default=defaults.get(name, Parameter.empty))
        if self._channels:
            yield Parameter("channel_ids", kind, default=(0,))
        yield Parameter("priority", kind, default=None)
        yield Parameter("name", kind, default=None)

    def _invoke(self, arguments: dict[str, Any]) -> NkiInstruction:
        lists = {name: arguments.pop(called) for name, called in self._lists.items()}
        channels = self._channel_ids(arguments.pop("channel_ids")) if self._channels else None
        for index, tiles in enumerate(self._tiles(lists, channels)):
            extra = {self._row.channel: channels[index]} if channels is not None else {}
            self._binder(**tiles, **arguments, **extra)
        return Failed()  # several instructions have no handle

    def _channel_ids(self, value: Any) -> list[int]:
        """Check the channels, which must be consecutive from 0, and return them."""
        if isinstance(value, list | tuple) and list(value) == list(range(len(value))) and value:
            return list(value)
        text = f"`channel_ids` is {shown(value)}, but must be [0, 1, …]"
        raise CallRefused("argument-kind", text, "number the channels from 0")

    def _tiles(self, lists: dict[str, Any], channels: list[int] | None) -> list[dict[str, Any]]:
        operands = {name: self._tensor_list(name, value, channels) for name, value in lists.items()}
        counts = {len(tiles) for tiles in operands.values()}
        if len(counts) > 1:
            sizes = ", ".join(f"`{self._lists[n]}` {len(tiles)}" for n, tiles in operands.items())
            text = f"the lists differ in length: {sizes}"
            raise CallRefused("argument-kind", text, "give each source a destination")
        count = counts.pop()
        if count > 1 and channels is None:
            self._check_coalesced(count, operands)
        return [{name: tiles[i] for name, tiles in operands.items()} for i in range(count)]

    def _check_coalesced(self, count: int, operands: dict[str, list[Any]]) -> None:
        """Check that several tensors in one call are allowed: in HBM, for rows that coalesce."""
        on_chip = any(t._access.tensor.on_chip for tiles in operands.values() for t in tiles)
        if self._row.coalesces and not on_chip:
            return
        text = f"{count} tensors where only one is supported"
        raise CallRefused("argument-kind", text, "call it once for each tensor")

    def _tensor_list(self, name: str, value: Any, channels: list[int] | None) -> list[Any]:
        """Return a list of tensors; with channels, `value` is a list of one-element lists."""
        called = self._lists[name]
        if not isinstance(value, list | tuple) or not value:
            text = f"`{called}` is {shown(value)}, but must be a list of tensors"
            raise CallRefused("argument-kind", text, "put the tensor in a list: [tensor]")
        if channels is not None:
            value = [self._single(called, tensor) for tensor in value]
            if len(value) != len(channels):
                text = f"`{called}` has {len(value)} channels and `channel_ids` {len(channels)}"
                raise CallRefused("argument-kind", text, "give each channel its own tensors")
        for tensor in value:
            if not isinstance(tensor, NkiTensor):
                text = f"`{called}` holds {shown(tensor)}, but must hold tensors"
                raise CallRefused("argument-kind", text)
        return list(value)

    def _single(self, called: str, value: Any) -> Any:
        if isinstance(value, list | tuple) and len(value) == 1:
            return value[0]
        text = f"a channel of `{called}` is {shown(value)}, but must be a list of one tensor"
        raise CallRefused("argument-kind", text, "write [[tensor], [tensor], …]")


def _bound(
    row: Row, signature: Signature, args: tuple[Any, ...], keywords: dict[str, Any]
) -> dict[str, Any]:
    unknown = [name for name in keywords if name not in signature.parameters]
    if unknown:
        help = did_you_mean(unknown[0], signature.parameters)
        text = f"there is no parameter `{unknown[0]}`"
        raise CallRefused("wrong-call", text, help or _usage(row, signature), unknown[0])
    try:
        bound = signature.bind(*args, **keywords)
    except TypeError as error:
        raise CallRefused("wrong-call", f"{error}", _usage(row, signature)) from None
    bound.apply_defaults()
    return bound.arguments


def _usage(row: Row, signature: Signature) -> str:
    return f"the call is ncc.{row.name}{signature}"


class Prepared(NamedTuple):
    """The operands that a trigger needs, and the position in the program of their preparation."""

    instruction: NkiInstruction
    trigger: str
    operands: dict[str, Any]
    body: list[Item]
    at: CallChain


@surface("__name__")
class Preparing(Collective):
    """`all_to_all_v_prepare` and similar, called with the arguments of the collective `of`.

    The counts are copied to a separate tensor; the trigger receives the other operands.
    """

    def __init__(self, row: Row, of: Row) -> None:
        super().__init__(of)
        self._row, self._binder = row, Binder(row)
        (self._trigger,) = (
            trigger.name for trigger in ROWS.values() if trigger.prepared_by == row.name
        )

    def _invoke(self, arguments: dict[str, Any]) -> NkiInstruction:
        check_triggered(active())
        lists = {name: arguments.pop(called) for name, called in self._lists.items()}
        (tiles,) = self._tiles(lists, None)
        name, counts = arguments.pop("name"), arguments["metadata_tensor"]
        if not isinstance(counts, NkiTensor):
            text = f"`metadata_tensor` is {shown(counts)}, but must be a tensor"
            raise CallRefused("argument-kind", text)
        return self._record({**tiles, **arguments, "prepared": _counts_tensor(counts)}, name)

    def _record(self, operands: dict[str, Any], name: Any) -> NkiInstruction:
        trace = active()
        prepare_operands = {key: operands[key] for key in ("prepared", "metadata_tensor")}
        instruction: NkiInstruction = self._binder(**prepare_operands, name=name)
        trace.prepared = Prepared(instruction, self._trigger, operands, trace.body, here())
        return instruction


def _counts_tensor(counts: NkiTensor) -> NkiTensor:
    """Return a tensor for the counts that the kernel cannot name."""
    trace = active()
    shape = counts.shape
    return NkiTensor(whole(trace.declare(shape, DTYPES["uint32"], Buffer.HBM, "prepared", here())))


@surface("__name__")
class Triggering(CollectiveFunction):
    """`all_to_all_v_trigger` and similar."""

    __signature__ = Signature(
        [
            Parameter("prepare_instr", Parameter.POSITIONAL_OR_KEYWORD),
            Parameter("name", Parameter.POSITIONAL_OR_KEYWORD, default=None),
        ]
    )

    def _invoke(self, arguments: dict[str, Any]) -> NkiInstruction:
        prepared = self._pending(arguments["prepare_instr"])
        if prepared is None:
            return Failed()
        instruction: NkiInstruction = self._binder(**prepared.operands, name=arguments["name"])
        return instruction

    def _pending(self, instruction: Any) -> Prepared | None:
        """Return the pending preparation and clear it, or return None if it failed."""
        trace, name = active(), self._row.prepared_by
        if not isinstance(instruction, NkiInstruction):
            text = f"`prepare_instr` is {shown(instruction)}, but must be what ncc.{name} returned"
            raise CallRefused("argument-kind", text, f"pass what ncc.{name} returned")
        if has_failed(instruction):
            trace.prepared = None
            return None
        prepared: Prepared | None = trace.prepared
        if (
            prepared is None
            or prepared.instruction != instruction
            or prepared.trigger != self._row.name
        ):
            text = f"`prepare_instr` is not an ncc.{name} that waits for its trigger"
            raise CallRefused(SLUG, text, f"trigger the result of ncc.{name} exactly once")
        if prepared.body is not trace.body:
            text = "the prepare and its trigger are in different device loops"
            raise CallRefused(SLUG, text, "put both inside the same loop, or both outside")
        trace.prepared = None
        return prepared


def check_triggered(trace: Trace) -> None:
    """Check that the last preparation was triggered, before the next or at the kernel's end."""
    prepared, trace.prepared = trace.prepared, None
    if prepared is not None and not has_failed(prepared.instruction):
        complain(
            SLUG,
            f"this prepare has no matching ncc.{prepared.trigger}",
            help="trigger it once, before another prepare and before the kernel ends",
            at=prepared.at,
        )
