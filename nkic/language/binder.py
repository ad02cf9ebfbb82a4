"""Instructions as functions: build `nisa.<name>` from a row of the instruction table.

A call binds its arguments to the row's parameters by Python's rules, converts them to operands and
attributes, and records the instruction. A call that cannot be bound is reported and not recorded,
and evaluation continues. This is a hot path: about 10 µs per instruction in total.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from enum import Enum
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

from nkic.base.device import Identical
from nkic.base.diagnostics import Level
from nkic.base.profiles import DEFAULT, Profile
from nkic.base.text import kind_of
from nkic.language import versions
from nkic.language.dtypes_api import as_dtype
from nkic.language.enums import ENGINES, ENUMS, OF_ATTRIBUTE, OPERATORS, Operator, engine
from nkic.language.foreign import MEANT, parameter
from nkic.language.grids import NkiGrid
from nkic.language.hosted import ReplicaGroup, is_array, plain, surface
from nkic.language.registers import DeviceInteger, VirtualRegister
from nkic.language.tensor import NkiTensor
from nkic.language.trace import (
    POISON,
    RECORDED,
    RECORDING,
    Failed,
    NkiInstruction,
    active,
    complain,
)
from nkic.language.views import NOTHING_TO_DO
from nkic.machine.operands import Attribute, AttributeKind, Operand, Register, Row
from nkic.machine.rules import FOLDS, accepts, takes
from nkic.machine.targets import Engine
from nkic.program.program import Operand as Bound
from nkic.program.program import View

# ---- Values of attributes, from kernels' objects to the program's form --------------------------
# Operators and members of enumerations become their names, lists become tuples. `check` validates
# the result against the instruction table; this module refuses only values that the table cannot
# represent, such as a string in place of an operator, or an arbitrary object.


class CallRefused(Exception):
    """A call of an instruction that cannot be recorded; the message says why.

    `argument` is the name of the offending parameter, if there is one.
    """

    def __init__(self, slug: str, message: str, help: str = "", argument: str = "") -> None:
        super().__init__(message)
        self.slug = slug
        self.message = message
        self.help = help
        self.argument = argument


def attribute_value(attribute: Attribute, value: Any) -> Any:
    """Convert `value` to the program's form. Raises `CallRefused`."""
    if value is None or type(value) is bool:
        return value
    read = _READERS[attribute.kind]
    try:
        return read(attribute, value)
    except CallRefused:
        inside = plain(value)
        if inside is value:
            raise
    return attribute_value(attribute, inside)


def _operator(attribute: Attribute, value: Any) -> str:
    if isinstance(value, Operator):
        return value.name
    name = value if isinstance(value, str) else str(getattr(value, "__name__", ""))
    meant_name = MEANT.get(name, name)
    if attribute.kind is AttributeKind.ALU and meant_name != "mean":
        meant_name = FOLDS.get(meant_name, meant_name)
    if meant_name in OPERATORS:
        raise _refusal(attribute, value, f"write nl.{meant_name}")
    example = "exp" if attribute.kind is AttributeKind.ACTIVATION else "add"
    raise _refusal(attribute, value, f"pass the operator itself, uncalled, such as nl.{example}")


def _number(attribute: Attribute, value: Any) -> int | float:
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    raise _refusal(attribute, value)


def _text(attribute: Attribute, value: Any) -> str:
    if isinstance(value, str):
        return str.__str__(value)
    raise _refusal(attribute, value, "pass a string that is known while the kernel is compiled")


def _choice(attribute: Attribute, value: Any) -> Any:
    enumeration = OF_ATTRIBUTE.get(attribute.name)
    if enumeration is None:
        return value if isinstance(value, str | int) else _refuse(attribute, value)
    if isinstance(value, enumeration):
        return value.name
    plain = type(value) in (int, str)
    member = next((m for m in enumeration if plain and m.value == value), None)
    if member is not None:
        return _by_value(attribute, member)
    names = ", ".join(attribute.choices)
    raise _refusal(attribute, value, f"pass a member of nisa.{enumeration.__name__}: {names}")


def _by_value(attribute: Attribute, member: Enum) -> str:
    """Accept a member given by its value, with a warning since 0.3.

    The guide of NKI 0.3 refuses numbers, but published kernels still pass them, and strings for
    matmul_perf_mode, whose values are strings.
    """
    if active().profile >= Profile.NKI_0_3:
        complain(
            "number-for-enum",
            f"`{attribute.name}` is {_described(member.value)}; since NKI 0.3 it is a member of "
            f"nisa.{type(member).__name__}",
            help=f"write nisa.{type(member).__name__}.{member.name}",
            level=Level.WARNING,
            argument=attribute.name,
        )
    return member.name


def _described(value: int | str) -> str:
    return f"the string {value!r}" if isinstance(value, str) else f"the number {value}"


def _ints(attribute: Attribute, value: Any) -> tuple[Any, ...]:
    if isinstance(value, int):
        return (int(value),)
    return _tuple(attribute, value)


def _groups(attribute: Attribute, value: Any) -> tuple[Any, ...]:
    """Convert a `ReplicaGroup`, or its lists of ranks."""
    if isinstance(value, ReplicaGroup):
        value = value.ranks()
    if isinstance(value, tuple | list) and all(isinstance(g, tuple | list) for g in value):
        return _tuple(attribute, value)
    raise _refusal(attribute, value, "pass nki.collectives.ReplicaGroup([[0, 1, …]])")


def _tuple(attribute: Attribute, value: Any) -> tuple[Any, ...]:
    """Convert nested lists and tuples of numbers and strings to tuples."""
    if not isinstance(value, tuple | list):
        raise _refusal(attribute, value)
    return tuple(_tuple_item(attribute, item) for item in value)


def _tuple_item(attribute: Attribute, item: Any) -> Any:
    if isinstance(item, tuple | list):
        return _tuple(attribute, item)
    item = plain(item)
    return item if isinstance(item, int | float | str | None) else _refuse(attribute, item)


def _refuse(attribute: Attribute, value: Any) -> Any:
    raise _refusal(attribute, value)


def _refusal(attribute: Attribute, value: Any, help: str = "") -> CallRefused:
    if isinstance(value, Operator) and not help:
        help = f"this place is `{attribute.name}`'s: pass {shown(value)} by its parameter's name"
    return CallRefused(
        "argument-kind",
        f"`{attribute.name}` is {shown(value)}, but must be {takes(attribute)}",
        help or f"pass {takes(attribute)} as `{attribute.name}`",
        attribute.name,
    )


_READERS: dict[AttributeKind, Callable[[Attribute, Any], Any]] = {
    AttributeKind.ALU: _operator,
    AttributeKind.ACTIVATION: _operator,
    AttributeKind.BOOL: _number,
    AttributeKind.INT: _number,
    AttributeKind.INT32: _number,
    AttributeKind.NUMBER: _number,
    AttributeKind.PATTERN: _tuple,
    AttributeKind.INTS: _ints,
    AttributeKind.NUMBERS: _tuple,
    AttributeKind.GROUPS: _groups,
    AttributeKind.CHOICE: _choice,
    AttributeKind.TEXT: _text,
}


def shown(value: Any) -> str:
    """Describe a value briefly, for a message."""
    if isinstance(value, NkiTensor):
        return f"the tensor {value.name}"
    if isinstance(value, DeviceInteger):
        return "a register"
    if is_array(value):
        return "a NumPy array"
    if isinstance(value, str | int | float | None | Operator | Enum):
        text = repr(value) if not isinstance(value, Enum) else str(value)
        return text if len(text) <= 40 else f"{text[:40]}…"
    return kind_of(value)


# ---- Binding of a call --------------------------------------------------------------------------

REQUIRED: Any = object()
MAX_PLANS = 64  # cached per row
MAX_CONVERTED = 64  # attributes of calls, cached per plan
# Types of arguments that are immutable, and are converted to attributes without a warning.
_SILENT = frozenset({Operator, float, bool, type(None), *ENUMS.values()})

# The number of positional arguments, and the names of the others.
Form = tuple[int, tuple[str, ...]]


class Plan(NamedTuple):
    """How the arguments of calls of one form become operands and attributes.

    `operands` and `attributes` hold the values of the parameters that the call omits.
    `operand_slots` lists the operands that it passes (index in `operands`, index of the argument,
    operand, reads, writes), and `attribute_slots` the attributes (index in `attributes`, index of
    the argument, attribute, default). `given` returns the arguments for attributes; `converted`
    memoises the attributes of calls by the ids of these, which it keeps alive. `engine` and `name`
    are indices of arguments, negative if omitted.
    """

    operands: list[Bound]
    operand_slots: list[tuple[int, int, Operand, bool, bool]]
    attributes: tuple[Any, ...]
    attribute_slots: list[tuple[int, int, Attribute, Any]]
    given: Callable[[Sequence[Any]], Any]
    converted: dict[int | tuple[int, ...], tuple[tuple[Any, ...], Any]]
    engine: int
    name: int


@surface("__name__")
class Binder(Identical):
    """A callable that records one row's instruction."""

    def __init__(self, row: Row, profile: Profile = DEFAULT) -> None:
        self._row = row
        self._positions = {name: position for position, name in enumerate(row.parameters)}
        parameters: tuple[Operand | Attribute, ...] = (*row.operands, *row.attributes)
        self._future = {
            parameter.name: parameter.since
            for parameter in parameters
            if parameter.since > profile and parameter.name not in row.by_profile
        }
        self._defaults = [_parameter_default(row, name) for name in row.parameters]
        self._required = [n for n, default in enumerate(self._defaults) if default is REQUIRED]
        self._mandatory = [
            (self._positions[o.name], o)
            for o in row.operands
            if o.optional and o.optional_since > profile and o.name in self._positions
        ]
        self._list_position = self._positions.get(row.spread, -1)
        positions = self._positions | {
            o.name: len(row.parameters) + n for n, o in enumerate(row.spread_operands)
        }
        self._operands = [
            (positions[o.name], o, o.access.reads, o.access.writes)
            for o in row.operands
            if o.name != row.returns
        ]
        self._attributes = [
            (self._positions.get(a.name, -1), a, _attribute_default(row, a, profile))
            for a in row.attributes
        ]
        self._engine_position = self._positions["engine"] if row.has_engine_parameter else -1
        self._name_position = self._positions.get("name", -1)
        self._calls: dict[Form, Callable[[Sequence[Any]], Any]] = {}
        self._full_plan = self._plan({position: position for position in positions.values()})

    def __repr__(self) -> str:
        return self._row.called

    @property
    def __name__(self) -> str:
        return self._row.name

    def __hash__(self) -> int:
        return hash(self._row.name)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        try:
            values = self._bind(args, keywords)
        except CallRefused as refused:
            return self._complain(refused)
        return self._record(self._full_plan, values)

    def called(self, form: Form) -> Callable[[Sequence[Any]], Any]:
        """Return the function of the arguments of calls with `form[0]` positional ones, and the
        others under the names `form[1]`.
        """
        call = self._calls.get(form)
        if call is None:
            plan = self._plan_for(*form)
            call = partial(self._by_name, form) if plan is None else partial(self._record, plan)
            if len(self._calls) < MAX_PLANS:
                self._calls[form] = call
        return call

    def _by_name(self, form: Form, values: Sequence[Any]) -> Any:
        count, names = form
        return self(*values[:count], **dict(zip(names, values[count:], strict=True)))

    def _complain(self, refused: CallRefused) -> NkiInstruction:
        """Report the refusal and return a placeholder for the instruction."""
        row, argument = self._row.name, refused.argument
        complain(
            refused.slug,
            f"{row}: {refused.message}",
            help=versions.former_order(row, argument) or refused.help,
            argument=argument,
            position=self._positions.get(argument),
        )
        return Failed()

    # Plans

    def _plan_for(self, count: int, names: tuple[str, ...]) -> Plan | None:
        """Return the plan for calls of this form, or None if it depends on the values or is an
        error.
        """
        if count > len(self._defaults) or self._mandatory or self._list_position >= 0:
            return None
        if any(name in self._future for name in names):
            return None
        positions = [*range(count), *(self._positions.get(name, -1) for name in names)]
        if (
            -1 in positions
            or len(set(positions)) < len(positions)
            or set(self._required) - {*positions}
        ):
            return None
        return self._plan({position: index for index, position in enumerate(positions)})

    def _plan(self, indices: Mapping[int, int]) -> Plan:
        """Return the plan for a call, given the argument's index for each parameter's position."""
        operands: list[Bound] = []
        operand_slots = []
        for number, (position, operand, reads, writes) in enumerate(self._operands):
            index = indices.get(position, -1)
            if index >= 0:
                operand_slots.append((number, index, operand, reads, writes))
            operands.append(
                None if index >= 0 else _non_tensor(operand, self._defaults[position], writes)
            )
        attributes, attribute_slots = [], []
        for number, (position, attribute, default) in enumerate(self._attributes):
            index = indices.get(position, -1)
            if index >= 0:
                attribute_slots.append((number, index, attribute, default))
            attributes.append(default if position < 0 or index >= 0 else self._omitted(number))
        engine, name = indices.get(self._engine_position, -1), indices.get(self._name_position, -1)
        given = itemgetter(*[index for _, index, _, _ in attribute_slots] or [0])
        return Plan(
            operands, operand_slots, tuple(attributes), attribute_slots, given, {}, engine, name
        )

    def _omitted(self, number: int) -> Any:
        position, attribute, default = self._attributes[number]
        value = self._defaults[position]
        return default if value is default else attribute_value(attribute, value)

    # Binding

    def _bind(self, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> list[Any]:
        """Return one value per parameter, bound by Python's rules."""
        values = self._defaults.copy()
        count = len(args)
        if count > len(values):
            raise self._wrong_call(f"takes {len(values)} arguments, not {count}")
        values[:count] = args
        positions = self._positions
        former: dict[str, Any] = {}
        for name, value in keywords.items():
            position = positions.get(name)
            if position is None or name in self._future:
                if not versions.tolerated(name, active().profile):
                    raise self._unknown(name, {*self._row.parameters[:count], *keywords})
                former[name] = value
                continue
            if position < count:
                raise self._wrong_call(f"got two values for `{name}`, by position and by name")
            values[position] = value
        for position in self._required:
            if values[position] is REQUIRED:
                raise self._missing(values, "dst" in keywords)
        for position, operand in self._mandatory:
            if values[position] is None:
                raise _not_yet_optional(operand)
        for value in former.values():
            _former_dtype(self._row.name, values[0], value)
        at = self._list_position
        return values if at < 0 else [*values, *self._spread(values[at])]

    def _spread(self, value: Any) -> list[Any]:
        """Return the elements of a list of tiles as operands, padded with None."""
        name, limit = self._row.spread, len(self._row.spread_operands)
        if not isinstance(value, list | tuple):
            text = f"`{name}` is {shown(value)}, but must be a list of tiles"
        elif not 1 <= len(value) <= limit:
            text = f"`{name}` has {len(value)} elements, but must have 1 to {limit}"
        else:
            return [*value, *[None] * (limit - len(value))]
        raise CallRefused("argument-kind", text, f"pass a list of 1 to {limit} tiles", name)

    def _wrong_call(self, message: str, help: str = "") -> CallRefused:
        return CallRefused("wrong-call", message, help or self._signature())

    def _signature(self) -> str:
        parameters = (
            name if default is REQUIRED else f"{name}=…"
            for name, default in zip(self._row.parameters, self._defaults, strict=True)
        )
        return f"the call is {self._row.called}({', '.join(parameters)})"

    def _unknown(self, name: str, passed: Set[str]) -> CallRefused:
        """Return the error for an unknown parameter: not yet added, removed, or misspelt.

        A parameter that is `passed`, too, is not suggested: naming it twice would be an error.
        """
        if name in self._future:
            since = self._future[name].label
            return CallRefused(
                "wrong-call",
                f"there is no parameter `{name}` before NKI {since}",
                f"remove it, or compile with `--nki {since}`",
                name,
            )
        removal = versions.parameter(self._row.name, name)
        if removal is not None:
            text = versions.no_parameter(name, removal, active().profile)
            return CallRefused("removed-name", text, removal.instead, name)
        free = [parameter for parameter in self._row.parameters if parameter not in passed]
        near = parameter(name, free) or self._signature()
        return CallRefused("wrong-call", f"there is no parameter `{name}`", near, name)

    def _missing(self, values: list[Any], named: bool) -> CallRefused:
        """Return the error for missing required parameters.

        Older kernels omit dst and expect a result, so a missing dst that is not passed by name has
        its own help text.
        """
        pairs = zip(self._row.parameters, values, strict=True)
        names = [name for name, value in pairs if value is REQUIRED]
        listed = ", ".join(f"`{name}`" for name in names)
        text = f"{listed} {'is' if len(names) == 1 else 'are'} missing"
        if named or self._row.parameters[0] != "dst" or len(names) != 1:
            return self._wrong_call(text)
        if names != ["dst"]:
            text = f"{text}; the first argument is dst, the tensor to write to"
        advice = "an instruction does not return a tensor: make dst with nl.ndarray, and pass it"
        return self._wrong_call(text, f"{advice}: {self._signature()}")

    # Recording

    def _record(self, plan: Plan, values: Sequence[Any]) -> Any:
        """Convert the arguments and append the instruction to the program, or report an error."""
        trace = active()
        budget = trace.budget
        budget.left -= RECORDING
        budget.memory -= RECORDED
        if budget.left < 0 or budget.memory < 0:
            budget.check()
        try:
            omitted, operand_slots, attributes, attribute_slots, _, _, engine_index, name_index = (
                plan
            )
            operands, ghost = omitted.copy(), False
            for slot, index, operand, reads, writes in operand_slots:
                value = values[index]
                if type(value) is NkiTensor:
                    operands[slot] = view = value._access
                    tensor, shape, _, _, _, dynamic = view
                    number = tensor.number
                    if 0 in shape and number != POISON:
                        raise _empty(operand, view)
                    if number == POISON or tensor.scope or dynamic is not None:
                        ghost = not trace.accept(view) or ghost
                    if reads:
                        trace.read.add(number)
                    if writes:
                        trace.written.add(number)
                elif type(value) is Failed:
                    ghost = True  # the failed call has been reported
                else:
                    operands[slot] = _non_tensor(operand, value, writes)
            if attribute_slots:
                attributes = _attributes(plan, values)
            engine_ = self._engine(values[engine_index]) if engine_index >= 0 else None
            name = self._label(values[name_index]) if name_index >= 0 else ""
            if ghost:
                return Failed()
            if self._row.returns:
                register = active().register()
                operands.insert(self._row.operand_index[self._row.returns], register)
                active().record(self._row, tuple(operands), attributes)
                return VirtualRegister(register)
            return trace.record(self._row, tuple(operands), attributes, engine_, name)
        except CallRefused as refused:
            return Failed() if Failed in map(type, values) else self._complain(refused)

    def _engine(self, value: Any) -> Engine | None:
        if isinstance(value, engine):
            return ENGINES[value]
        if value is None:
            return None
        names = ", ".join(member.name for member in engine)
        raise CallRefused(
            "argument-kind",
            f"`engine` is {shown(value)}, but must be a member of nisa.engine",
            f"pass nisa.engine.NAME, NAME one of {names}",
            "engine",
        )

    def _label(self, value: Any) -> str:
        if value is None or isinstance(value, str):
            return value or ""
        text = f"`name` is {shown(value)}, but must be a string"
        raise CallRefused("argument-kind", text, argument="name")


def _attributes(plan: Plan, values: Sequence[Any]) -> tuple[Any, ...]:
    """Return the attributes of a call. Calls with the same arguments share them."""
    given = plan.given(values)
    key = id(given) if len(plan.attribute_slots) == 1 else tuple(map(id, given))
    known = plan.converted.get(key)
    if known is not None:
        return known[0]
    constants, is_constant = [*plan.attributes], True
    for slot, index, attribute, default in plan.attribute_slots:
        value = values[index]
        if value is not default:
            constants[slot] = attribute_value(attribute, value)
            silent = type(value) in _SILENT or (
                type(value) is int and attribute.kind is not AttributeKind.CHOICE
            )
            is_constant = is_constant and silent
    attributes = tuple(constants)
    if is_constant and len(plan.converted) < MAX_CONVERTED:
        plan.converted[key] = attributes, given
    return attributes


def _parameter_default(row: Row, name: str) -> Any:
    if name in row.attribute_index:
        attribute = row.attributes[row.attribute_index[name]]
        return REQUIRED if attribute.required else attribute.default
    if name == row.spread:
        return REQUIRED
    if name in row.operand_index:
        operand = row.operands[row.operand_index[name]]
        return REQUIRED if operand.required else operand.default
    return None


def _not_yet_optional(operand: Operand) -> CallRefused:
    since = operand.optional_since.label
    text = f"`{operand.name}` cannot be omitted before NKI {since}"
    advice = f"pass a tile, or compile with `--nki {since}`"
    return CallRefused("needs-profile", text, advice, operand.name)


def _former_dtype(row: str, dst: Any, former: Any) -> None:
    """Warn if the former parameter `dtype` differs from the dtype of dst, which decides."""
    wanted = as_dtype(former)
    if isinstance(dst, NkiTensor) and dst.dtype is not wanted:
        complain(
            "deprecated",
            f"{row}: `dtype` is {wanted.name}, but the result has the dtype of dst, "
            f"{dst.dtype.name}",
            help="make dst with that dtype, and remove the parameter",
            level=Level.WARNING,
            argument="dtype",
        )


def _empty(operand: Operand, view: View) -> CallRefused:
    text = f"`{operand.name}` is an empty part of {view.tensor.name}; its shape is {view.shape}"
    return CallRefused("empty-slice", text, NOTHING_TO_DO, operand.name)


def _attribute_default(row: Row, attribute: Attribute, profile: Profile) -> Any:
    former = attribute.name in row.by_profile and profile < attribute.since
    return attribute.former if former else attribute.default


def _non_tensor(operand: Operand, value: Any, writes: bool) -> float | int | Register | None:
    if isinstance(value, DeviceInteger):
        if writes and value._frozen:
            raise CallRefused(
                "register-value",
                f"`{operand.name}` is the counter of a loop or a scalar, which cannot be written",
                "write to a separate register, made with nisa.register_alloc",
                operand.name,
            )
        return value._register
    if isinstance(value, float):
        return float(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    if value is None:
        return None
    inside = plain(value)
    if inside is not value:
        return _non_tensor(operand, inside, writes)
    raise _wrong_kind(operand, value)


def _wrong_kind(operand: Operand, value: Any) -> CallRefused:
    advice = f"pass {accepts(operand)} as `{operand.name}`"
    if isinstance(value, NkiInstruction):
        advice = "an instruction does not return a tensor: pass the dst that it wrote"
    elif isinstance(value, NkiGrid):
        advice = "pass the elements of the grid: .data"
    elif is_array(value):
        advice = "load it into a tile: nisa.dma_copy(dst=tile, src=nl.shared_constant(array))"
    return CallRefused(
        "argument-kind",
        f"`{operand.name}` is {shown(value)}, but must be {accepts(operand)}",
        advice,
        operand.name,
    )
