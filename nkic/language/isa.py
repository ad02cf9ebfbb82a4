"""The names of `nki.isa`: every row of the instruction table as a function, and enumerations."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NoReturn

from nkic.base.device import KernelError
from nkic.base.profiles import Profile
from nkic.language import versions
from nkic.language.binder import Binder, CallRefused, shown
from nkic.language.enums import ENUMS, engine, nc_version
from nkic.language.hosted import brief, plain, surface
from nkic.language.namespace import Absent
from nkic.language.registers import DeviceInteger, VirtualRegister
from nkic.language.tensor import NkiTensor
from nkic.language.trace import NkiInstruction, active
from nkic.machine.dtypes import INT32, INT64, DType
from nkic.machine.instructions import ROWS
from nkic.machine.instructions.control import LOAD
from nkic.machine.operands import Register, Row
from nkic.machine.targets import Buffer

# ---- `NkiScalar`: an integer of the device that supports arithmetic -----------------------------
# Sources: nki.isa.NkiScalar, scalar_load and scalar_store of NKI 0.7; "NKI Scalar Values". An
# nl.int64 scalar supports only `+`, `-` and `*`, being stored, and being an offset in HBM.


@surface("dtype __pos__ __neg__ __abs__ __int__ __float__ __index__")
class NkiScalar(DeviceInteger):
    """The read-only result of `nisa.scalar_load` and counter of `nl.fori_loop`.

    `+`, `-` and `*` record the operation and return a new scalar of the same width, which wraps
    around. The results of comparisons cannot be used (nki.isa.NkiScalar).
    """

    __slots__ = ("_dtype",)
    _noun = "scalar"

    def __init__(self, register: Register | None, dtype: DType = INT32) -> None:
        super().__init__(register, frozen=True)
        self._dtype = dtype

    @property
    def dtype(self) -> DType:
        """nl.int32 or nl.int64."""
        return self._dtype

    @property
    def _register(self) -> Register:
        """The register for loops, instructions and indices on chip, which take 32 bits."""
        if self._dtype is INT32:
            return super()._register
        raise KernelError(
            "register-value",
            "a scalar of nl.int64 has 64 bits, and loops, instructions and indices on chip take 32",
            help="load the number from an nl.int32 tile; 64 bits are for `+`, `-`, `*`, "
            "nisa.scalar_store and offsets in HBM",
        )

    @property
    def _any_register(self) -> Register:
        """The register for arithmetic and scalar_store, of either width."""
        return super()._register

    def _offset(self, buffer: Buffer) -> Register:
        """nki.isa.scalar_load: 64 bits on chip are rejected, not narrowed."""
        return self._register if buffer.on_chip else self._any_register

    def __pos__(self) -> NkiScalar:
        return NkiScalar(self._any_register, self._dtype)

    def __neg__(self) -> NkiScalar:
        return _compute("subtract", 0, self)

    def _unsupported(self, *_: object) -> NoReturn:
        raise KernelError(
            "register-value",
            "a scalar of the device supports `+`, `-`, `*` and comparisons only",
            help="compute in a (1, 1) tensor of nl.int32, and load it with nisa.scalar_load",
        )

    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _unsupported
    __pow__ = __rpow__ = __abs__ = __invert__ = _unsupported
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _unsupported
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _unsupported


def _operator(op: str, swapped: bool = False) -> Callable[[NkiScalar, Any], Any]:
    def apply(self: NkiScalar, other: Any) -> Any:
        number = _operand(other, self)
        if number is None:
            return NotImplemented
        return _compute(op, number, self) if swapped else _compute(op, self, number)

    return apply


for _python, _name in {"add": "add", "sub": "subtract", "mul": "multiply"}.items():
    setattr(NkiScalar, f"__{_python}__", _operator(_name))
    setattr(NkiScalar, f"__r{_python}__", _operator(_name, swapped=True))


def _comparison(self: NkiScalar, other: Any) -> Any:
    """Return a scalar without a register: nothing can read it, so nothing is recorded."""
    number = _operand(other, self)
    if number is None and isinstance(plain(other), bool | float):  # `==` would return False
        raise KernelError(
            "register-value",
            f"a scalar can be compared with ints and scalars only, not with {brief(other)}",
            help="compare with an int",
        )
    if number is None:
        return NotImplemented
    _registers(self, number)
    if self._dtype is INT32:
        return NkiScalar(None)
    raise KernelError(
        "register-value",
        "scalars of nl.int64 cannot be compared: NKI has only 32-bit comparisons",
        help="compare in a (1, 1) tensor of nl.int32, `nisa.tensor_scalar(t, t, nl.less, 3)`",
    )


for _python in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(NkiScalar, f"__{_python}__", _comparison)


def _operand(value: Any, scalar: NkiScalar) -> NkiScalar | int | None:
    """Convert an operand of arithmetic with `scalar`, or return None if it is unsupported."""
    value, dtype = plain(value), scalar.dtype
    if isinstance(value, VirtualRegister):
        raise KernelError(
            "register-value",
            "a register does not support arithmetic, not even with a scalar",
            help="load the number with nisa.scalar_load instead of nisa.register_load",
        )
    if isinstance(value, NkiScalar):
        if value.dtype is dtype:  # nki.isa.NkiScalar never widens
            return value
        raise KernelError(
            "register-value",
            f"arithmetic cannot combine a scalar of nl.{dtype} with one of nl.{value.dtype}",
            help="load both from tiles of one dtype",
        )
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    lowest, highest = int(dtype.lowest), int(dtype.highest)
    if lowest <= value <= highest:
        return int(value)
    raise KernelError(
        "register-value",
        f"{brief(value)} does not fit the {dtype.bits} bits of a scalar",
        help=f"compute with numbers from {lowest} to {highest}",
    )


def _compute(op: str, *operands: NkiScalar | int) -> NkiScalar:
    trace, registers = active(), _registers(*operands)
    dtype = next(o.dtype for o in operands if isinstance(o, NkiScalar))
    trace.recording()
    result = trace.register()
    trace.record(ROWS["scalar_compute"], (result, *registers), (op, dtype.name))
    return NkiScalar(result, dtype)


def _registers(*operands: NkiScalar | int) -> tuple[Register | int, ...]:
    return tuple(o._any_register if isinstance(o, NkiScalar) else o for o in operands)


@surface("__name__")
class ScalarLoad(Binder):
    """`nisa.scalar_load`, which returns a scalar of its source's dtype."""

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        result = super().__call__(*args, **keywords)
        if not isinstance(result, VirtualRegister):
            return result
        src = args[0] if args else keywords["src"]
        is_long = isinstance(src, NkiTensor) and src.dtype is INT64  # the row rejects other dtypes
        return NkiScalar(result._register, INT64 if is_long else INT32)


@surface("__name__")
class ScalarStore(Binder):
    """`nisa.scalar_store`, which accepts only scalars."""

    def _bind(self, args: tuple[Any, ...], keywords: Any) -> list[Any]:
        values = super()._bind(args, keywords)
        dst, value = values[:2]
        if not isinstance(value, NkiScalar):
            advice = "use nisa.memset for a number, nisa.register_store for a register"
            text = f"`value` is {shown(value)}, but must be a scalar of nisa.scalar_load"
            raise CallRefused("argument-kind", text, advice, "value")
        if isinstance(dst, NkiTensor) and dst.dtype is not value.dtype:
            _check_width(dst.dtype, value.dtype)
        return [dst, VirtualRegister(value._any_register, frozen=True), *values[2:]]


def _check_width(dst: DType, value: DType) -> None:
    """Check that nisa.scalar_store need not convert. The row rejects other dtypes."""
    if INT64 in (dst, value) and dst in (INT32, INT64):
        text = f"`dst` is {dst}, but the scalar is {value}, and is stored without conversion"
        raise CallRefused("dtype-mismatch", text, f"make `dst` an nl.{value} tile", "dst")


class NkiValidationError(Exception):
    """An exception for kernels to raise if the hardware does not support a request."""


def get_nc_version() -> nc_version:
    """Return the generation of the target."""
    return nc_version(active().target.generation)


def get_nc_sub_version() -> int:
    """Return the silicon revision: 0, the first one, for every target."""
    return 0


def names(profile: Profile) -> dict[str, Any]:
    instructions = functions("nki.isa", profile)
    former = (engine.tensor, engine.vector, engine.scalar, engine.gpsimd, engine.unknown)
    constants = {f"{member.name}_engine": member for member in former}
    later = {"NkiScalar": NkiScalar} if profile >= Profile.NKI_0_7 else {}
    return {
        **ENUMS,
        **constants,
        **later,
        **instructions,
        "get_nc_version": get_nc_version,
        "get_nc_sub_version": get_nc_sub_version,
        "NkiInstruction": NkiInstruction,
        "NkiValidationError": NkiValidationError,
        "VirtualRegister": VirtualRegister,
    }


def functions(module: str, profile: Profile) -> dict[str, Binder]:
    rows = [row for row in ROWS.values() if row.module == module and _exists(row, profile)]
    return {row.name: _binder(row, profile) for row in rows}


@cache
def _binder(row: Row, profile: Profile) -> Binder:
    """Return the row's binder. Binders hold no state of a kernel, so all kernels share them."""
    if row.loads_until is not None and profile <= row.loads_until:
        return RegisterAlloc(row, profile)
    if row.scalars:
        return (ScalarLoad if row.returns else ScalarStore)(row, profile)
    return Binder(row, profile)


@surface("__name__")
class RegisterAlloc(Binder):
    """register_alloc that also accepts a tensor: allocates a register and loads it."""

    def __init__(self, row: Row, profile: Profile) -> None:
        super().__init__(row, profile)
        self._load = _binder(LOAD, profile)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        values = [*args, *keywords.values()]
        if keywords.keys() - {"x"} or [type(value) for value in values] != [NkiTensor]:
            return super().__call__(*args, **keywords)
        register = super().__call__()
        self._load(register, values[0])
        return register


def absent(module: str, profile: Profile) -> dict[str, Absent]:
    return {**versions.absent(module, profile), **of_others(module, profile)}


def of_others(module: str, profile: Profile) -> dict[str, Absent]:
    """Return the errors for instructions of `module` that only other versions have."""
    rows = (r for r in ROWS.values() if r.module == module and not _exists(r, profile))
    return {row.name: _absent(row, module, profile) for row in rows}


def _exists(row: Row, profile: Profile) -> bool:
    return row.since <= profile and (row.until is None or profile <= row.until)


def _absent(row: Row, module: str, profile: Profile) -> Absent:
    name = f"{module}.{row.name}"
    if row.until is not None and profile > row.until:
        text = (
            f"NKI {profile.label} has no `{name}`: NKI {row.until.label} was the last version "
            "with it"
        )
        return Absent("removed-name", text, "`nkic --print ops` lists the instructions")
    help = f"if the kernel is written for it, compile with `--nki {row.since.label}`"
    return versions.added_later(f"`{name}`", versions.Added(row.since, help), profile)
