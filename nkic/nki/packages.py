"""Every module that can be imported once nkic is installed as `nki`, by name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from nkic.language.beta1 import MODULES as BETA1
from nkic.nki import modules
from nkic.nki.jit import nki_jit

Contents = dict[str, Any]


def module(name: str) -> ModuleType:
    """Return the module called `name`, built on first use; always the same object."""
    if name.startswith(modules.OLD) or name in modules.module_names():
        return modules.built(name)
    return _beside(name)


@cache
def names() -> frozenset[str]:
    """Return the names of all modules."""
    return frozenset({*modules.module_names(), *_former(), *_BESIDE})


def is_package(name: str) -> bool:
    """Whether the module has submodules."""
    return any(other.startswith(f"{name}.") for other in names())


def _former() -> Iterator[str]:
    yield modules.OLD
    yield from (f"{modules.OLD}.{name}" for name in modules.module_names())
    yield from BETA1


@cache
def _beside(name: str) -> ModuleType:
    module = ModuleType(name, "What host code of NKI imports. Provided by nkic.")
    module.__dict__.update(_BESIDE[name]())
    return module


def _jax_neuronx() -> Contents:
    from nkic.nki.jax_calls import nki_call

    return {"nki_call": nki_call}


def _torch_neuronx() -> Contents:
    return {"nki_jit": nki_jit, "nki_op": _nki_op, "nki": modules.built("nki")}


def _nki_op(name: str, *, mutates_args: Any) -> Callable[[Callable[..., Any]], Any]:
    """Register a function that calls kernels as an operator of PyTorch.

    `@nki_op("library::operator", mutates_args={})` (source: About NKI).
    """
    custom_op: Any = import_module("torch").library.custom_op
    decorator: Callable[[Callable[..., Any]], Any] = custom_op(name, mutates_args=mutates_args)
    return decorator


def _torch_xla() -> Contents:
    """Return a torch_xla in which devices are the CPU, where the simulator runs, and steps run at
    once.
    """
    return {"device": _device, "devices": lambda: [_device()], "sync": _nothing}


def _xla_model() -> Contents:
    return {"xla_device": _device, "mark_step": _nothing, "wait_device_ops": _nothing}


def _xla_core() -> Contents:
    return {"xla_model": _beside("torch_xla.core.xla_model")}


def _device(*_: Any, **kwargs: Any) -> Any:
    return sys.modules["torch"].device("cpu")


def _nothing(*_: Any, **kwargs: Any) -> None:
    """Wait for a device: there is none to wait for."""


_BESIDE: dict[str, Callable[[], Contents]] = {
    "jax_neuronx": _jax_neuronx,
    "torch_neuronx": _torch_neuronx,
    "torch_neuronx.xla_impl": dict,
    "torch_neuronx.xla_impl.ops": _torch_neuronx,
    "torch_xla": _torch_xla,
    "torch_xla.core": _xla_core,
    "torch_xla.core.xla_model": _xla_model,
}
