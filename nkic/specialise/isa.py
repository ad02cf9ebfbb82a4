"""The names of `nki.isa`: every row of the instruction table as a function, and enumerations."""

from __future__ import annotations

from typing import Any

from nkic.base.profiles import Profile
from nkic.machine.instructions import ROWS
from nkic.machine.operands import Row
from nkic.specialise import removed
from nkic.specialise.binder import Binder
from nkic.specialise.complain import complain
from nkic.specialise.enums import ENUMS, engine, nc_version
from nkic.specialise.namespace import Absent
from nkic.specialise.registers import VirtualRegister
from nkic.specialise.trace import NkiInstruction, active

# Instructions of NKI that nkic did not have from the start; those that got a row since are
# found there first. Source: nki.isa.
NOT_YET = (
    *("activate2", "core_barrier", "dma_compute", "dropout", "exponential", "get_nc_sub_version"),
    *("local_gather", "nc_find_index8", "nc_match_replace8", "nc_matmul_mx", "nc_n_gather"),
    *("nc_stream_shuffle", "nonzero_with_count", "quantize_mx", "rand2", "rand_get_state"),
    *("rand_set_state", "range_select", "rng", "select_reduce", "sendrecv", "sequence_bounds"),
    *("set_rng_seed", "tensor_partition_reduce", "tensor_scalar_cumulative"),
    *("tensor_scalar_reduce", "topk"),
)


class NotYet:
    """An instruction of NKI that nkic does not have: refused where it is called."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *args: Any, **more: Any) -> NkiInstruction:
        help = "`nkic --print ops` lists the instructions there are"
        complain("not-yet", f"nkic does not have {self!r} yet", help=help)
        return NkiInstruction([], -1)

    def __repr__(self) -> str:
        return f"nisa.{self._name}"


def get_nc_version() -> nc_version:
    """The generation of the target."""
    return nc_version(active().target.generation)


def names(profile: Profile) -> dict[str, Any]:
    """Everything in `nki.isa` under `profile`."""
    instructions = functions("nki.isa", profile)
    constants = {f"{member.name}_engine": member for member in engine if member is not engine.dma}
    return {
        **ENUMS,
        **constants,
        **{name: NotYet(name) for name in NOT_YET},
        **instructions,
        "get_nc_version": get_nc_version,
        "NkiInstruction": NkiInstruction,
        "VirtualRegister": VirtualRegister,
    }


def functions(module: str, profile: Profile) -> dict[str, Binder]:
    """The instructions that kernels of `profile` find in `module` of NKI."""
    rows = [row for row in ROWS.values() if row.module == module and _has(row, profile)]
    return {row.name: Binder(row) for row in rows}


def absent(module: str, profile: Profile) -> dict[str, Absent]:
    """Names that users may expect in `nki.isa`, and why they are not there."""
    others = (r for r in ROWS.values() if r.module == module and not _has(r, profile))
    found = {row.name: _not_in(row, module, profile) for row in others}
    return {**removed.absent(module, removed.ISA, profile), **found}


def _has(row: Row, profile: Profile) -> bool:
    return row.since <= profile and (row.until is None or profile <= row.until)


def _not_in(row: Row, module: str, profile: Profile) -> Absent:
    name = f"{module}.{row.name}"
    if row.until is not None and profile > row.until:
        text = f"NKI {profile.label} has no `{name}`: NKI {row.until.label} was the last with it"
        return Absent("removed-name", text, "`nkic --print ops` lists the instructions")
    help = f"if the kernel is written for it, compile with `--nki {row.since.label}`"
    return removed.newer(module, [row.name], row.since, profile, help)[row.name]
