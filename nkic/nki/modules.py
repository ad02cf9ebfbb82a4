"""The modules of NKI for host code, from the namespaces that kernels see, and every module that
can be imported once nkic is installed as `nki`.

There is one list of names: `nkic.language.provide`. Here each of its values gets a host form:
dtypes are their names, as NKI documents (`DType = str`), enumerations are classes of the module,
and functions have signatures and work inside kernels.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import Enum
from functools import cache, partial
from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn

from nkic.api.functions import OURS
from nkic.base.device import Missing
from nkic.base.profiles import Profile
from nkic.base.source import SourceFile
from nkic.language import jit as configs
from nkic.language import provide, versions
from nkic.language.beta1 import MODULES as BETA1
from nkic.language.collectives import CollectiveFunction
from nkic.language.enums import ENUMS, Operator
from nkic.language.namespace import Namespace, names_of
from nkic.language.provide import REGION_PREDICATES, TileSize
from nkic.language.tensor import NkiTensor
from nkic.language.trace import current
from nkic.machine.dtypes import DType
from nkic.machine.instructions import ROWS
from nkic.machine.targets import Buffer
from nkic.nki import measure, names
from nkic.nki.jit import NeuronCores, SpmdDim, former_jit, jit, nki_jit, simulate, simulate_kernel

OLD = "neuronxcc"
_DOCS = {
    "nki": "NKI kernels: `jit` makes them, `simulate` runs them. Provided by nkic.",
    "nki.language": "`nl`: tensors, dtypes, loops, and functions of tiles.",
    "nki.isa": "`nisa`: the instructions of the NeuronCore, and their enumerations.",
    "nki.isa.constants": "The enumerations of `nki.isa`.",
    "nki.collectives": "Exchange of data between devices.",
    "nki.typing": "Annotations of kernel arguments.",
    "nki.dtype": "Element types, by name.",
    "nki.tensor": "The type of tensors in kernels.",
    "nki.compiler": "What `jit` is told for the compiler behind NKI.",
}
_HOST: dict[str, Any] = {
    "jit": jit,
    "simulate": simulate,
    "baremetal": measure.baremetal,
    "benchmark": measure.benchmark,
    "profile": measure.profile,
}
_MEASURES = (measure.baremetal, measure.benchmark, measure.profile)
_FORMER: dict[str, Any] = {
    **{name: value for name, value in _HOST.items() if name != "simulate"},
    **{"jit": former_jit, "trace": former_jit, "simulate_kernel": simulate_kernel},
    **{decorator.__name__: measure.former(decorator) for decorator in _MEASURES},
}


def _no_library(file: SourceFile, name: str) -> NoReturn:
    raise AssertionError("the library can be used in kernels only")


def module_names() -> tuple[str, ...]:
    return tuple(_DOCS)


def contents(module: str) -> dict[str, Any]:
    if module == "nki":
        return dict(_HOST)
    if module == configs.MODULE:
        return dict(configs.NAMES)
    if module == "nki.isa.constants":
        isa = vars_of(built("nki.isa"))
        return {name: isa[name] for name in ENUMS}
    if module in ("nki.dtype", "nki.tensor"):
        language = vars_of(built("nki.language"))
        if module == "nki.tensor":
            return dict.fromkeys(("NkiTensor", "Tensor"), language["NkiTensor"])
        return {n: value for n, value in language.items() if type(value) is str} | {"DType": str}
    return dict(_of_space(module, provide.namespaces(max(Profile), _no_library)[module]))


def _of_space(module: str, space: Namespace) -> Iterator[tuple[str, Any]]:
    enums = {kind: names.enumeration("nki.isa", kind) for kind in ENUMS.values()}
    watched = space.__dict__["@watched"]
    for name in names_of(space):
        # The value of a deprecated name without the warning, which is meant for kernels.
        value = watched[name].args[-1] if name in watched else getattr(space, name)
        yield name, _host_value(module, name, value, enums)
    yield from _EXTRA.get(module, {}).items()


def _host_value(module: str, name: str, value: Any, enums: dict[Any, type[Enum]]) -> Any:
    if isinstance(value, type) and value in enums:
        return enums[value]
    if type(value) in enums:
        return enums[type(value)][value.name]
    for kind, make in _MAKERS:
        if isinstance(value, kind):
            return make(module, name, value)
    if name in _BY_NAME:
        return _BY_NAME[name]
    if isinstance(value, type):
        return names.kernel_type(module, name, inspect.getdoc(value) or "", value)
    return _function(module, name, value)


def _function(module: str, name: str, value: Any) -> names.Function:
    row = ROWS.get(name)
    if row is not None and row.module == module and isinstance(value, CollectiveFunction):
        signature, doc = value.__signature__, row.doc
    elif row is not None and row.module == module:
        signature, doc = names.of_row(row)
    elif name in names.library_functions() and module == "nki.language":
        signature, doc = names.library_functions()[name]
    elif isinstance(value, Operator):
        return names.Function(module, name, None, f"`nl.{name}`, for `op=` of instructions.")
    else:
        signature, doc = names.of_function(value)
    return names.Function(module, name, signature, doc)


def get_nc_version() -> Any:
    """Return the generation of the target that calls are compiled for."""
    versions = built("nki.isa").__dict__["nc_version"]
    return versions(names.target().generation)


get_nc_version.__module__ = "nki.isa"
_TENSOR = names.kernel_type("nki.language", "NkiTensor", "A tensor, or a view of one.", NkiTensor)
_BY_NAME: dict[str, Any] = {
    "get_nc_version": get_nc_version,
    "NKIObject": names.NKIObject,
    "MemoryRegion": names.MemoryRegion,
    "ReplicaGroup": names.ReplicaGroup,
    "NkiTensor": _TENSOR,
    **REGION_PREDICATES,
}
_MAKERS: tuple[tuple[Any, Callable[[str, str, Any], Any]], ...] = (
    (DType, lambda module, name, value: value.name),
    (Buffer, lambda module, name, value: names.region(value)),
    (TileSize, lambda module, name, value: names.HostTileSize()),
    (provide.TensorAnnotation, lambda module, name, value: names.annotation(module, name)),
)


class NkiValidationError(Exception):
    """NKI's exception for a rejected kernel; nkic raises `nkic.CompileError`."""


NkiValidationError.__module__ = "nki.isa"
_EXTRA: dict[str, dict[str, Any]] = {
    "nki.language": {"DType": str, "nc": NeuronCores, "spmd_dim": SpmdDim},
    "nki.isa": {"NkiValidationError": NkiValidationError},
    "nki.typing": {"mutable_tensor": names.annotation("nki.typing", "mutable_tensor")},
}


class Module(ModuleType):
    """A module of NKI. While Python evaluates a kernel, its names are those that kernels see."""

    def __getattribute__(self, name: str) -> Any:
        attributes = ModuleType.__getattribute__(self, "__dict__")
        trace = current()
        space = trace.spaces.get(attributes["__name__"]) if trace is not None else None
        if space is None or name.startswith("__"):
            return ModuleType.__getattribute__(self, name)
        if type(attributes.get(name)) is Module:  # `nki.language` after `import nki`
            return attributes[name]
        try:
            return _one_object(getattr(space, name), attributes.get(name))
        except Missing:
            if name in attributes and (
                name in _HOST or name in _EXTRA.get(attributes["__name__"], {})
            ):
                return attributes[name]  # names that only host code has
            raise


def _one_object(inside: Any, outside: Any) -> Any:
    """Return one object for an operator, so that `op is nl.add` holds wherever `op` was read."""
    is_operator = type(inside) is Operator and type(outside) is names.Function
    return outside if is_operator else inside


_built: dict[str, ModuleType] = {}


def built(name: str) -> ModuleType:
    """Return the module called `name`, always the same object; `neuronxcc.nki…` shares its
    values.
    """
    module = _built.get(name)
    if module is None:
        module = _built[name] = _make(name)
    return module


def _make(name: str) -> ModuleType:
    if name.endswith("nki.language"):
        with suppress(ImportError):  # so that host code can write `np.zeros(shape, nl.bfloat16)`
            import_module("ml_dtypes")
    current = name.removeprefix(f"{OLD}.")
    module = Module(name, _DOCS.get(current, "Former names of `nki`. Provided by nkic."))
    if name in BETA1:
        from nkic.nki import beta1  # rarely needed

        values = beta1.contents(name, _FORMER)
    elif current != name and current in _DOCS:
        values = dict(_FORMER) if current == "nki" else vars_of(built(current))
    else:
        values = contents(current) if current in _DOCS else {}
    module.__dict__.update(values)
    module.__dict__["__all__"] = sorted(values)
    module.__dict__["__getattr__"] = partial(_submodule, name)
    module.__dict__[OURS] = True
    return module


def _submodule(package: str, name: str) -> ModuleType:
    """Import a submodule on access: `nki.dtype` after `import nki`."""
    full = f"{package}.{name}"
    if full not in BETA1 and full.removeprefix(f"{OLD}.") not in _DOCS:
        raise AttributeError(
            f"module {package!r} has no attribute {name!r}{_instead(package, name)}"
        )
    return import_module(full)


def _instead(package: str, name: str) -> str:
    """Return a hint about a name that NKI has removed; empty for other names."""
    current = package.removeprefix(f"{OLD}.")
    removal = versions.of(current, versions.Removed).get(name)
    return f": it was removed in NKI {removal.since.label}; {removal.instead}" if removal else ""


def vars_of(module: ModuleType) -> dict[str, Any]:
    return {name: module.__dict__[name] for name in module.__all__}


Contents = dict[str, Any]


def module(name: str) -> ModuleType:
    """Return the module called `name`, built on first use; always the same object."""
    if name.startswith(OLD) or name in module_names():
        return built(name)
    return _beside(name)


@cache
def all_names() -> frozenset[str]:
    former = (f"{OLD}.{name}" for name in module_names())
    return frozenset({*module_names(), OLD, *former, *BETA1, *_BESIDE})


def is_package(name: str) -> bool:
    return any(other.startswith(f"{name}.") for other in all_names())


@cache
def _beside(name: str) -> ModuleType:
    module = ModuleType(name, "What host code of NKI imports. Provided by nkic.")
    module.__dict__.update(_BESIDE[name]())
    return module


def _jax_neuronx() -> Contents:
    from nkic.nki.jax_calls import nki_call

    return {"nki_call": nki_call}


def _torch_neuronx() -> Contents:
    return {"nki_jit": nki_jit, "nki_op": _nki_op, "nki": built("nki")}


def _nki_op(name: str, *, mutates_args: Any) -> Callable[[Callable[..., Any]], Any]:
    """Register a function that calls kernels as an operator of PyTorch.

    `@nki_op("library::operator", mutates_args={})` (source: About NKI).
    """
    custom_op: Any = import_module("torch").library.custom_op
    decorator: Callable[[Callable[..., Any]], Any] = custom_op(name, mutates_args=mutates_args)
    return decorator


def _device(*_: Any, **kwargs: Any) -> Any:
    return sys.modules["torch"].device("cpu")


def _nothing(*_: Any, **kwargs: Any) -> None:
    """Wait for a device: there is none to wait for."""


_BESIDE: dict[str, Callable[[], Contents]] = {
    "jax_neuronx": _jax_neuronx,
    "torch_neuronx": _torch_neuronx,
    "torch_neuronx.xla_impl": dict,
    "torch_neuronx.xla_impl.ops": _torch_neuronx,
    # Devices are the CPU, where the simulator runs, and steps run at once.
    "torch_xla": lambda: {"device": _device, "devices": lambda: [_device()], "sync": _nothing},
    "torch_xla.core": lambda: {"xla_model": _beside("torch_xla.core.xla_model")},
    "torch_xla.core.xla_model": lambda: {
        **{"xla_device": _device, "mark_step": _nothing, "wait_device_ops": _nothing}
    },
}
