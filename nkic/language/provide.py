"""The modules of NKI that kernels import, for one profile, and the names of `nki.language`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from nkic.base.device import KernelError, Missing
from nkic.base.diagnostics import did_you_mean
from nkic.base.profiles import Profile
from nkic.language import collectives, grids, isa, library, loops, versions, views
from nkic.language import jit as configs
from nkic.language.creation import ParDim, TensorClass, ndarray, shared_constant
from nkic.language.dtypes_api import BUFFERS, MemoryRegion, named, unsupported
from nkic.language.enums import ENUMS, OPERATORS, Operator
from nkic.language.foreign import OTHERWISE, as_instructions
from nkic.language.hosted import Decorator, brief, plain, surface
from nkic.language.indexing import DynamicSlice
from nkic.language.jit import jit
from nkic.language.namespace import Absent, Namespace, names_of
from nkic.language.tensor import NkiTensor
from nkic.language.trace import active
from nkic.language.views import volume
from nkic.machine import dtypes
from nkic.machine.targets import PARTITIONS, PSUM_BANK_BYTES, Buffer, Target
from nkic.program.program import Tensor

# ---- The names of `nki.language` that are not instructions, and access to those that are --------
# Functions made of instructions are kernel source in stdlib/; here they are operators that
# load the function when they are called.

FLOAT32_BYTES = 4
_FORMER_SIZES = versions.of("nki.language.tile_size", versions.Deprecated)


@surface(public=True)
class TileSize:
    """`nl.tile_size`: sizes of the target. Source: nki.language.tile_size."""

    pmax = PARTITIONS
    psum_bank_fmax = PSUM_BANK_BYTES // FLOAT32_BYTES
    psum_bank_fmax_bytes = PSUM_BANK_BYTES
    gemm_stationary_fmax = 128
    gemm_moving_fmax = 512
    bn_stats_fmax = 512
    psum_min_align = 4
    sbuf_min_align = 1

    @property
    def _target(self) -> Target:
        return active().target

    @property
    def psum_num_banks(self) -> int:
        """PSUM banks per partition."""
        return self._target.psum_banks

    @property
    def sbuf_size_bytes(self) -> int:
        """Bytes of SBUF over all partitions."""
        return self._target.sbuf_bytes * PARTITIONS

    @property
    def sbuf_fmax_bytes(self) -> int:
        """Bytes of SBUF per partition that a kernel may use."""
        return self._target.sbuf_usable

    @property
    def sbuf_fmax(self) -> int:
        """float32 elements of SBUF per partition that a kernel may use."""
        return self.sbuf_fmax_bytes // FLOAT32_BYTES

    @property
    def psum_fmax(self) -> int:
        """A former name of `psum_bank_fmax`."""
        self._warn("psum_fmax")
        return PSUM_BANK_BYTES // FLOAT32_BYTES

    @property
    def total_available_sbuf_size(self) -> int:
        """A former name of `sbuf_fmax_bytes`."""
        self._warn("total_available_sbuf_size")
        return self._target.sbuf_usable

    def __getattribute__(self, name: str) -> Any:
        if name in versions.TILE_SIZE:
            versions.require(f"`nki.language.tile_size.{name}`", versions.TILE_SIZE[name])
        return object.__getattribute__(self, name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # Python protocols probe for these
        near = [n for n in dir(self) if n not in _FORMER_SIZES]
        text = f"`nki.language.tile_size` has no `{name}`"
        raise Missing("unknown-attribute", text, name, lambda: did_you_mean(name, near))

    def _warn(self, name: str) -> None:
        versions.warn(f"`nki.language.tile_size.{name}`", _FORMER_SIZES[name])


def program_id(axis: int = 0) -> int:
    """Return this instance's index in the launch grid along `axis`; 0 without a grid."""
    trace = active()
    trace.lacks_grid = not trace.ids
    return trace.ids[_axis(axis)] if trace.ids else _no_grid(axis)


def num_programs(axes: Any = 0) -> int:
    """Return the size of the launch grid along one or several axes; 1 without a grid."""
    grid = active().grid
    if axes is None:
        return volume(grid)
    wanted = axes if isinstance(axes, tuple | list) else (axes,)
    return volume(grid[_axis(a)] if grid else 1 + _no_grid(a) for a in wanted)


def program_ndim() -> int:
    """Return the number of axes of the launch grid; 0 without a grid."""
    return len(active().grid)


def _axis(axis: Any) -> int:
    rank = len(active().grid)
    if type(axis) is int and 0 <= axis < rank:
        return axis
    raise KernelError(
        "bad-grid-axis",
        f"the launch grid has axes 0 to {rank - 1}, not {brief(axis)}",
        help="use one of them, or give `--grid` another size, as `--grid 4x2x2`",
    )


def _no_grid(axis: Any) -> int:
    if axis == 0:
        return 0
    raise KernelError(
        "bad-grid-axis",
        f"there is no axis {brief(axis)}: the kernel is compiled without a launch grid",
        help="give it one with `--grid`, as `--grid 4x2` for axes 0 and 1",
    )


def is_hbm(buffer: Any) -> bool:
    """Whether a buffer is any kind of HBM."""
    memory = plain(buffer)
    return memory is Buffer.HBM or memory is Buffer.SHARED_HBM


def is_on_chip(buffer: Any) -> bool:
    """Whether a buffer is SBUF or PSUM."""
    memory = plain(buffer)
    return memory is Buffer.SBUF or memory is Buffer.PSUM


def is_psum(buffer: Any) -> bool:
    """Whether a buffer is PSUM."""
    return plain(buffer) is Buffer.PSUM


def is_sbuf(buffer: Any) -> bool:
    """Whether a buffer is SBUF."""
    return plain(buffer) is Buffer.SBUF


# Host code has the same functions.
REGION_PREDICATES = {f.__name__: f for f in (is_hbm, is_on_chip, is_psum, is_sbuf)}
for _predicate in REGION_PREDICATES.values():
    _predicate.__module__ = "nki.language"


@surface("__enter__ __exit__", called=True)
class NoReorder(AbstractContextManager[None]):
    """`with nl.no_reorder():` keeps the program order of the instructions inside.

    Device loops are not allowed inside. A nested region belongs to the outer one.
    """

    def __init__(self) -> None:
        self.before = 0

    def __enter__(self) -> None:
        trace = active()
        self.before = trace.pinned
        trace.pinned = trace.pinned or trace.new_region()

    def __exit__(self, *error: object) -> None:
        active().pinned = self.before


_GRIDS = (
    *("tiles", "blocks", "alloc_tiles", "alloc_blocks"),
    *("NkiGrid", "NkiTileGrid", "NkiBlockGrid"),
)


def names(profile: Profile, library: tuple[str, ...]) -> dict[str, Any]:
    """Return all names of `nki.language` under `profile`; `library` lists those of the stdlib."""
    contents: dict[str, Any] = {
        **dtypes.DTYPES,
        "bool_": dtypes.BOOL,
        **BUFFERS,
        **OPERATORS,
        "NkiTensor": TensorClass,
        "MemoryRegion": MemoryRegion,
        "ndarray": ndarray,
        "tile_size": TileSize(),
        "par_dim": ParDim,
        "ds": DynamicSlice,
        "affine_range": loops.static_range,
        "sequential_range": loops.static_range,
        "static_range": loops.static_range,
        "range": loops.static_range,
        "dynamic_range": loops.dynamic_range,
        "no_reorder": NoReorder,
        "program_id": program_id,
        "num_programs": num_programs,
        "program_ndim": program_ndim,
        "shared_constant": shared_constant,
        **isa.functions("nki.language", profile),
        **REGION_PREDICATES,
        **{name: getattr(grids, name) for name in _GRIDS},
    }
    if profile >= Profile.NKI_0_3:
        contents |= {name: contents.get(name, Operator(name)) for name in library}
    contents |= {"fori_loop": loops.fori_loop, "while_loop": loops.while_loop}
    return versions.without_later(contents, profile)


# ---- The modules --------------------------------------------------------------------------------

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
    return {**_shared(profile, kernel_object), library.MODULE: library.namespace(load)}


@cache
def _shared(profile: Profile, kernel_object: Any) -> Mapping[str, Namespace]:
    """Return the modules that hold nothing of one kernel: what their functions do is in the trace.

    To make them takes a quarter of the time in which a small kernel is recorded.
    """
    kernel_profile = profile
    if profile is Profile.BETA1:  # for the library; Beta 1 has its own modules, see `_former`
        profile = Profile.NKI_0_6
    modules = [
        Namespace("nki", {"jit": Decorator("jit", jit)}, versions.absent("nki", profile)),
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
    return {**current, _CONSTANTS: constants, **former}


def _language_and_isa(profile: Profile, kernel_object: Any) -> tuple[Namespace, Namespace]:
    """Return nki.language and nki.isa; each knows the other's names, for its help texts."""
    functions = {**names(profile, library.public()), "NKIObject": kernel_object}
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
