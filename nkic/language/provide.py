"""The modules of NKI that kernels import, for one profile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nkic.base.profiles import Profile
from nkic.language import collectives, isa, library, versions, views
from nkic.language import jit as configs
from nkic.language import names as language
from nkic.language.dtypes_api import named, unsupported
from nkic.language.enums import ENUMS
from nkic.language.foreign import OTHERWISE, as_instructions
from nkic.language.hosted import surface
from nkic.language.jit import jit
from nkic.language.namespace import Absent, Namespace, names_of
from nkic.language.objects import Decorator
from nkic.language.tensor import NkiTensor
from nkic.machine import dtypes
from nkic.program.program import Tensor

OLD_ROOT = "neuronxcc"
_NKI = (
    *("nki", "nki.language", "nki.isa", "nki.typing", "nki.collectives"),
    *("nki.isa.constants", "nki.dtype"),
)
_OLD = tuple(f"{OLD_ROOT}.{name}" for name in _NKI)
_BETA1 = tuple(  # further modules of Beta 1
    f"{OLD_ROOT}.nki.{name}" for name in ("compiler", "language.constants")
)
_CONSTANTS = "nki.language.constants"  # a second name of the Beta 1 module
MODULES = (*_NKI, _CONSTANTS, configs.MODULE, OLD_ROOT, *_OLD, *_BETA1, library.MODULE)


@surface("shape __getitem__")
class TensorAnnotation:
    """`nt.tensor[128, 512]`: the shape of a kernel's argument."""

    def __init__(self, shape: tuple[Any, ...] = ()) -> None:
        self.shape = shape

    def __getitem__(self, shape: Any) -> TensorAnnotation:
        return TensorAnnotation(shape if isinstance(shape, tuple) else (shape,))

    __iter__ = None  # otherwise Python would iterate over shapes 0, 1, 2 … forever

    def __repr__(self) -> str:
        return f"nt.tensor[{', '.join(map(repr, self.shape))}]"


def namespaces(
    profile: Profile, load: library.Load, kernel_object: Any = None
) -> dict[str, Namespace]:
    """Return every module of NKI by name; `load` evaluates functions of the library.

    `kernel_object` is the evaluator's `NKIObject`, the base class of kernels' classes.
    """
    kernel_profile = profile
    if profile is Profile.BETA1:  # for the library; Beta 1 has its own modules, see `_former`
        profile = Profile.NKI_0_6
    modules = [
        Namespace(
            "nki",
            {"jit": Decorator("jit", jit)},
            versions.absent("nki", profile),
        ),
        *_language_and_isa(profile, kernel_object),
        Namespace("nki.typing", {"tensor": TensorAnnotation()}),
        _collectives(profile),
        Namespace("nki.isa.constants", dict(ENUMS)),  # aliases of names in nki.isa
        Namespace("nki.dtype", {**named(profile), "bool_": dtypes.BOOL}),
    ]
    current = dict(zip(_NKI, modules, strict=True)) | {configs.MODULE: configs.namespace(profile)}
    former = _former(current, kernel_profile)
    constants = (
        former[f"{OLD_ROOT}.{_CONSTANTS}"]
        if kernel_profile is Profile.BETA1
        else Namespace(_CONSTANTS, {}, advice="nki.language has what it had")
    )
    spaces = {**current, _CONSTANTS: constants, **former}
    return {**spaces, library.MODULE: library.namespace(load)}


def _language_and_isa(profile: Profile, kernel_object: Any) -> tuple[Namespace, Namespace]:
    """Return nki.language and nki.isa; each knows the other's names, for its help texts."""
    functions = {**language.names(profile, library.public()), "NKIObject": kernel_object}
    instructions = isa.names(profile)
    in_nl, in_nisa = _elsewhere("nl", functions), _elsewhere("nisa", instructions)
    name = "nki.language"
    only = _instructions_only(name, profile) if profile < Profile.NKI_0_3 else {}
    absent = {**only, **unsupported(), **versions.absent(name, profile)}
    watched = versions.watched(name, functions, profile)
    nl = Namespace(name, functions, absent, watched=watched, elsewhere=in_nisa, advice=_OF_NL)
    name = "nki.isa"
    watched = versions.watched(name, instructions, profile)
    absent = isa.absent(name, profile)
    nisa = Namespace(name, instructions, absent, watched=watched, elsewhere=in_nl, advice=_OF_NISA)
    return nl, nisa


_OF_NISA = "`nkic --print ops` lists the instructions"
_OF_NL = f"`nkic --print language` lists the names of nki.language; {_OF_NISA}"


def argument_tensor(tensor: Tensor, profile: Profile) -> NkiTensor:
    """Return a kernel's tensor argument as kernels of `profile` see it."""
    if profile is Profile.BETA1:
        from nkic.language.beta1.tiles import Tile

        return Tile(views.whole(tensor))
    return NkiTensor(views.whole(tensor))


def _elsewhere(short: str, contents: Mapping[str, Any]) -> dict[str, str]:
    return {name: f"write {short}.{name}: it is in the other module" for name in contents}


def _collectives(profile: Profile) -> Namespace:
    name = "nki.collectives"
    return Namespace(name, collectives.names(profile), isa.of_others(name, profile))


_AS_INSTRUCTIONS = {
    "load": "use nisa.dma_copy(dst=tile, src=tensor), tile made with nl.ndarray",
    "store": "use nisa.dma_copy(dst=tensor, src=tile)",
    "copy": "use nisa.tensor_copy(dst, src)",
    "matmul": "use nisa.nc_matmul(dst, stationary, moving)",
    "transpose": "use nisa.nc_transpose(dst, data)",
}


def _instructions_only(name: str, profile: Profile) -> dict[str, Absent]:
    """Return the errors for functions of tensors in a version that has only instructions."""
    advised = dict.fromkeys(library.public(), "write it with the instructions of nki.isa")
    additions = {
        function: versions.Added(Profile.NKI_0_3, text)
        for function, text in {**advised, **_AS_INSTRUCTIONS}.items()
    }
    foreign = {
        other: Absent("unknown-attribute", f"`{name}` has no `{other}`", instead)
        for other, (_, text) in OTHERWISE.items()
        if (instead := as_instructions(text)) != text
    }
    return {**foreign, **versions.later(name, additions, profile)}


def _former(current: Mapping[str, Namespace], profile: Profile) -> dict[str, Namespace]:
    """Return `neuronxcc.nki…`: aliases of the current modules until 0.3, errors from 0.4 on."""
    root = {OLD_ROOT: Namespace(OLD_ROOT, {})}
    if profile is Profile.BETA1:
        from nkic.language.beta1 import names as beta1  # imported lazily: rarely needed

        modules = beta1.namespaces(TensorAnnotation())
        return {f"{OLD_ROOT}.{name}": namespace for name, namespace in current.items()} | dict(
            modules
        )
    root |= {name: Namespace(name, {}) for name in _BETA1}
    if profile < Profile.NKI_0_4:
        return root | {f"{OLD_ROOT}.{name}": namespace for name, namespace in current.items()}
    moved = {}
    for name, namespace in current.items():
        old = f"{OLD_ROOT}.{name}"
        text = f"NKI {profile.label} has no `{old}`: it was removed in NKI 0.4"
        absent = Absent("removed-name", text, f"import `{name}` instead")
        moved[old] = Namespace(old, {}, dict.fromkeys(names_of(namespace), absent))
    return root | moved
