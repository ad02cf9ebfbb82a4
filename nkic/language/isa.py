"""The names of `nki.isa`: every row of the instruction table as a function, and enumerations."""

from __future__ import annotations

from functools import cache
from typing import Any

from nkic.base.profiles import Profile
from nkic.language.binder import Binder
from nkic.language.enums import ENUMS, engine, nc_version
from nkic.language.namespace import Absent
from nkic.language.registers import VirtualRegister
from nkic.language.scalars import NkiScalar, ScalarLoad, ScalarStore
from nkic.language.tensors.tensor import NkiTensor
from nkic.language.trace import NkiInstruction, active
from nkic.language.versions import removed, since
from nkic.machine.instructions import ROWS
from nkic.machine.instructions.registers import LOAD
from nkic.machine.operands import Row


class NkiValidationError(Exception):
    """An exception for kernels to raise if the hardware does not support a request."""


def get_nc_version() -> nc_version:
    """Return the generation of the target."""
    return nc_version(active().target.generation)


def get_nc_sub_version() -> int:
    """Return the silicon revision: 0, the first one, for every target."""
    return 0


def names(profile: Profile) -> dict[str, Any]:
    """Return all names of `nki.isa` under `profile`."""
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
    """Return the instructions that NKI's `module` has under `profile`."""
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
    """Return the errors for names that `nki.isa` lacks under `profile`."""
    return {
        **removed.absent(module, removed.ISA, profile),
        **since.absent(module, since.ISA, profile),
        **of_others(module, profile),
    }


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
    return since.added_later(f"`{name}`", since.Addition(row.since, help), profile)
