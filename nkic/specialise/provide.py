"""The modules of NKI as kernels import them, for one profile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nkic.base.profiles import Profile
from nkic.specialise import isa, language, library, removed
from nkic.specialise.evaluate import provided_modules
from nkic.specialise.namespace import Namespace, names_of
from nkic.specialise.objects import Decorator, NKIObject, jit

OLD_ROOT = "neuronxcc"
_NKI = ("nki", "nki.language", "nki.isa", "nki.typing", "nki.collectives")
_OLD = tuple(f"{OLD_ROOT}.{name}" for name in _NKI)
PROVIDED = provided_modules((*_NKI, OLD_ROOT, *_OLD, library.MODULE))


class TensorAnnotation:
    """`nt.tensor[128, 512]`: the shape of a kernel's argument."""

    def __init__(self, shape: tuple[Any, ...] = ()) -> None:
        self.shape = shape

    def __getitem__(self, shape: Any) -> TensorAnnotation:
        return TensorAnnotation(shape if isinstance(shape, tuple) else (shape,))

    __iter__ = None  # or Python would go through the shapes 0, 1, 2 … for ever

    def __repr__(self) -> str:
        return f"nt.tensor[{', '.join(map(repr, self.shape))}]"


def namespaces(profile: Profile, load: library.Load) -> dict[str, Namespace]:
    """Every provided module of NKI by name; `load` evaluates functions of the library."""
    made = [
        Namespace("nki", {"jit": Decorator("jit", jit)}, removed.NKI),
        Namespace("nki.language", _language(profile), _not_in_language(profile)),
        Namespace("nki.isa", isa.names(profile), isa.absent(profile)),
        Namespace("nki.typing", {"tensor": TensorAnnotation()}),
        Namespace("nki.collectives", {}, _COLLECTIVES),
    ]
    current = dict(zip(_NKI, made, strict=True))
    return {**current, **_former(current, profile), library.MODULE: library.namespace(load)}


def _language(profile: Profile) -> dict[str, Any]:
    return {**language.names(profile, library.public()), "NKIObject": NKIObject}


def _not_in_language(profile: Profile) -> dict[str, str]:
    newer = (
        {}
        if profile >= Profile.NKI_0_6
        else dict.fromkeys(
            ("fori_loop", "while_loop"),
            "it came with NKI 0.6; write `for i in nl.dynamic_range(...)`",
        )
    )
    if profile < Profile.NKI_0_3:
        newer |= dict.fromkeys(library.public(), "it came with NKI 0.3; call nisa instructions")
    return {**removed.LANGUAGE, **newer}


_COLLECTIVES = dict.fromkeys(
    (
        *("all_reduce", "all_gather", "all_to_all", "all_to_all_v", "reduce_scatter"),
        *("collective_permute", "collective_permute_implicit", "rank_id"),
    ),
    "nkic compiles for one device; there is nothing to exchange data with",
)


def _former(current: Mapping[str, Namespace], profile: Profile) -> dict[str, Namespace]:
    """`neuronxcc.nki…`: other names for the same until 0.3, an error from 0.4 on."""
    root = {OLD_ROOT: Namespace(OLD_ROOT, {})}
    if profile < Profile.NKI_0_4:
        return root | {f"{OLD_ROOT}.{name}": space for name, space in current.items()}
    moved = {}
    for name, space in current.items():
        advice = f"`neuronxcc.nki` went with NKI 0.4: import `{name}` instead"
        gone = dict.fromkeys(names_of(space), advice)
        moved[f"{OLD_ROOT}.{name}"] = Namespace(f"{OLD_ROOT}.{name}", {}, gone)
    return root | moved
