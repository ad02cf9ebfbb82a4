"""Names that `nki.language` gained after beta2, with the version that added each.

Sources: release notes 0.3.0 to 0.7.0. Names that they do not date are assumed to be in all
versions; functions of tensors (`library`) were all added in 0.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from nkic.base.device import KernelError
from nkic.base.profiles import Profile
from nkic.base.source import SHIPPED
from nkic.language.namespace import Absent
from nkic.language.trace import active, here


class Addition(NamedTuple):
    """An addition: the first version with a name, and an alternative for earlier versions."""

    since: Profile
    instead: str


NKI_0_3, NKI_0_4, NKI_0_5 = Profile.NKI_0_3, Profile.NKI_0_4, Profile.NKI_0_5
NKI_0_6, NKI_0_7 = Profile.NKI_0_6, Profile.NKI_0_7

_MAGNITUDE = Addition(
    NKI_0_4, "compare the magnitudes, and choose with nisa.tensor_copy_predicated"
)
_SLICED = Addition(NKI_0_7, "slice the tensor: t[i * 128:(i + 1) * 128, j * 512:(j + 1) * 512]")
_LISTED = Addition(NKI_0_7, "make a list of tiles with nl.ndarray")
LANGUAGE = {
    "abs_max": _MAGNITUDE,
    "abs_min": _MAGNITUDE,
    "prelu": Addition(
        NKI_0_4, "use nisa.scalar_tensor_tensor: max(x, slope x) for a slope below 1"
    ),
    "bypass": Addition(NKI_0_4, "remove the operator"),
    "int64": Addition(NKI_0_7, "use nl.int32, if the values fit"),
    "float8_e8m0fnu": Addition(NKI_0_5, "keep scales of microscaling groups in nl.uint8"),
    "fori_loop": Addition(NKI_0_6, "write `for i in nl.dynamic_range(start, stop, step):`"),
    "while_loop": Addition(NKI_0_6, "write `while register:`"),
    "tiles": _SLICED,
    "blocks": _SLICED,
    "alloc_tiles": _LISTED,
    "alloc_blocks": _LISTED,
    "NkiGrid": _SLICED,
    "NkiTileGrid": _SLICED,
    "NkiBlockGrid": _SLICED,
}
# In nki.isa, except instructions: their rows have the version
ISA = {"NkiScalar": Addition(NKI_0_7, "use a register: nisa.register_alloc, nisa.register_load")}
TILE_SIZE = {
    "psum_bank_fmax": Addition(NKI_0_4, "write psum_fmax"),
    "psum_bank_fmax_bytes": Addition(NKI_0_4, "write 4 * nl.tile_size.psum_fmax"),
    "sbuf_size_bytes": Addition(NKI_0_4, "write 128 * nl.tile_size.total_available_sbuf_size"),
    "sbuf_fmax": Addition(NKI_0_4, "write nl.tile_size.total_available_sbuf_size // 4"),
    "sbuf_fmax_bytes": Addition(NKI_0_4, "write total_available_sbuf_size"),
    "psum_num_banks": Addition(NKI_0_5, "write 8, its value on every target"),
}
_INDEX = Addition(NKI_0_5, "index with t[...]")
_PATTERN = Addition(NKI_0_5, "write the pattern out: t.ap([[step, count], ...])")
_RESHAPE = Addition(NKI_0_5, "use t.reshape(shape)")
# Methods of tensors
TENSOR = {
    "data": Addition(NKI_0_7, "pass the tensor itself"),
    "slice": _INDEX,
    "select": Addition(
        NKI_0_5, "index with t[...], or with t.ap(..., scalar_offset=...) at run time"
    ),
    "vector_select": Addition(NKI_0_5, "use t.ap(..., vector_offset=...)"),
    "permute": _PATTERN,
    "broadcast": Addition(NKI_0_5, "write a step of 0: t.ap([[step, count], [0, size], ...])"),
    "expand_dim": _RESHAPE,
    "squeeze_dim": _RESHAPE,
    "reshape_dim": _RESHAPE,
    "flatten_dims": _RESHAPE,
    "rearrange": _PATTERN,
    "indirect": Addition(NKI_0_5, "gather with nisa.dma_copy and t.ap(..., vector_offset=...)"),
    "is_contiguous": Addition(NKI_0_5, "compare t.get_pattern() with the shape"),
    "is_indirect": Addition(NKI_0_5, "keep track of this in the kernel"),
}
NESTED = Addition(NKI_0_3, "write one index of the whole tensor")


def later(feature: str, addition: Addition, profile: Profile) -> Absent | None:
    """Return the error for `feature` if `profile` does not have it yet."""
    return None if profile >= addition.since else added_later(feature, addition, profile)


def added_later(feature: str, addition: Addition, profile: Profile) -> Absent:
    """Return the error for `feature`, which `profile` does not have yet."""
    text = f"NKI {profile.label} has no {feature}: it was added in NKI {addition.since.label}"
    return Absent("needs-profile", text, addition.instead)


def absent(module: str, table: Mapping[str, Addition], profile: Profile) -> dict[str, Absent]:
    """Return the errors for the names of `table` that `profile` does not have yet."""
    errors = {
        name: later(f"`{module}.{name}`", addition, profile) for name, addition in table.items()
    }
    return {name: error for name, error in errors.items() if error is not None}


def require(feature: str, addition: Addition) -> None:
    """Raise `KernelError` if the kernel's version does not have `feature` yet.

    nkic's own library may use everything in every version.
    """
    if here().span.path.startswith(SHIPPED):
        return
    error = later(feature, addition, active().profile)
    if error is not None:
        raise KernelError(error.slug, error.text, help=error.help)


def without_later(contents: Mapping[str, Any], profile: Profile) -> dict[str, Any]:
    """Return the names of `nki.language` that `profile` has."""
    return {
        name: value
        for name, value in contents.items()
        if name not in LANGUAGE or profile >= LANGUAGE[name].since
    }
