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


def absent(profile: Profile) -> dict[str, str]:
    """Names that users may expect in `nki.isa`, and why they are not there."""
    others = {
        name: _when(row)
        for name, row in ROWS.items()
        if row.module == "nki.isa" and not _has(row, profile)
    }
    return {**removed.ISA, **others}


def _has(row: Row, profile: Profile) -> bool:
    return row.since <= profile and (row.until is None or profile <= row.until)


def _when(row: Row) -> str:
    last = f" and went after {row.until.label}" if row.until else ""
    return f"it came with NKI {row.since.label}{last}; choose with `--nki`"
