"""The closed world with NKI: the API's modules mounted in the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import cache, partial
from types import BuiltinFunctionType, FunctionType
from typing import Any

from nkic.base.diagnostics import Reporter, did_you_mean
from nkic.base.limits import Limits
from nkic.base.profiles import Profile
from nkic.base.source import SourceFile
from nkic.interpret import builtins
from nkic.interpret.attributes import ModuleNamespace
from nkic.interpret.interpreter import Interpreter, provided_modules
from nkic.interpret.library import dataclasses
from nkic.interpret.machine import Form, Machine, Vectorcall, admit, admitting
from nkic.interpret.objects import (
    UNSET,
    Builtin,
    Class,
    ErrorInstance,
    Getter,
    HostFunction,
    no_objects,
    seal,
)
from nkic.interpret.tables import OBJECT
from nkic.language import jit, library, provide
from nkic.language.binder import Binder
from nkic.language.creation import ParDim, TensorClass, make_tensor, ndarray
from nkic.language.dtypes_api import MemoryRegion
from nkic.language.enums import ENUMS
from nkic.language.grids import NkiGrid
from nkic.language.hosted import SURFACES, Kernel
from nkic.language.indexing import DynamicSlice
from nkic.language.isa import NkiValidationError
from nkic.language.namespace import Namespace, names_of, submodule
from nkic.language.tensor import NkiTensor
from nkic.language.trace import Failed, Trace
from nkic.machine.dtypes import DType
from nkic.machine.targets import Buffer
from nkic.source.bindings import Resolved, words
from nkic.specialise import numpy
from nkic.specialise.ordering import Iterations

# ------------------------------------------------------------------------------------------------
# The classes of API values: a class of nkic.language says which attributes kernels in the closed
# world may access. Others do not exist for such kernels. A natively traced kernel holds the same
# objects as Python objects.

_REGIONS = {name: getattr(MemoryRegion, name) for name in words("sbuf psum private_hbm shared_hbm")}
# Direct implementations of the most frequent operations, without a table lookup.
CALLED_BY_PLACE: dict[type, Callable[..., Any]] = {Binder: Binder.called}
READ: dict[type, Callable[[Any, Any], Any]] = {NkiTensor: NkiTensor.__getitem__}
# For classes: the functions that take the arguments of the usual forms of calls in one sequence.
_USUAL_CALLS: dict[type, dict[Form, Callable[[Sequence[Any]], Any]]] = {
    DynamicSlice: {(2, ()): DynamicSlice._make},
    ndarray: dict.fromkeys(
        [(1, ("dtype", "buffer")), (2, ("buffer",)), (3, ())], lambda values: make_tensor(*values)
    ),
}


_BETA1 = "nkic.language.beta1."


@cache
def surface_classes() -> dict[type, Class]:
    result = {kind: _class(kind) for kind in SURFACES if not kind.__module__.startswith(_BETA1)}
    result[MemoryRegion].members |= _REGIONS
    result[ParDim] = Class("par_dim", (OBJECT,), {}, payload=ParDim, make=_maker(ParDim))
    for host in (ndarray, TensorClass, MemoryRegion, NkiGrid):
        result[host].extra["accepts"] = _accepts(host)
    error = builtins.table()["Exception"]
    result[NkiValidationError] = Class(
        "NkiValidationError", (error,), {}, payload=ErrorInstance, make=error.make
    )
    result[NkiValidationError].extra |= error.extra
    return {kind: seal(cls) for kind, cls in result.items()}


@cache
def beta1_classes() -> dict[type, Class]:
    """Return the class of every Beta 1 value. Its dtypes have an attribute of NumPy's, too."""
    from nkic.language.beta1 import names  # makes the classes; imported lazily: rarely needed

    kinds = [kind for kind in SURFACES if kind.__module__.startswith(str(names.__package__))]
    dtype = surface_classes()[DType]
    number = Getter("type", lambda m, dtype: HostFunction("type", float if dtype.is_float else int))
    extended = Class(dtype.name, dtype.bases, {**dtype.members, "type": number}, payload=DType)
    classes = {**{kind: _class(kind) for kind in kinds}, DType: extended}
    return {kind: seal(cls) for kind, cls in classes.items()}


def _accepts(host: type) -> Callable[[Any, Any], bool]:
    return lambda m, value: isinstance(value, host)


def _maker(host: type) -> Callable[..., Any]:
    def make(m: Machine, cls: Class, *args: Any, **named: Any) -> Any:
        admit(m, (*args, *named.values()))
        return host(*args, **named)

    return make


def _class(host: type) -> Class:
    names, _, is_called = SURFACES[host]
    result = Class(
        host.__name__,
        (OBJECT,),
        {name: _member(host, name) for name in names},
        payload=host,
        make=_maker(host) if is_called or issubclass(host, Enum) else no_objects,
    )
    if host in _USUAL_CALLS:
        result.vectorcall = _vectorcall(host, _USUAL_CALLS[host])
    if issubclass(host, Enum):
        result.members |= {member.name: member for member in host}
        result.extra["iterate"] = lambda m, cls: iter(host)
        result.extra["length"] = lambda m, cls: len(host)
        result.extra["item"] = _member_by_name(host)
    return result


def _vectorcall(host: type, usual: Mapping[Form, Callable[[Sequence[Any]], Any]]) -> Vectorcall:
    def by_name(form: Form, values: Sequence[Any]) -> Any:
        count, names = form
        return host(*values[:count], **dict(zip(names, values[count:], strict=True)))

    return lambda cls, form: usual.get(form) or partial(by_name, form)


def _member_by_name(host: type[Enum]) -> Callable[..., Any]:
    def item(m: Any, cls: Class, key: Any) -> Any:
        if isinstance(key, str) and key in host.__members__:
            return host.__members__[key]
        raise KeyError(key)

    return item


def _member(host: type, name: str) -> Any:
    member = getattr(host, name, None)
    if callable(member) and not isinstance(member, property | Enum):
        function: Callable[..., Any] = member

        def call(m: Machine, owner: Any, *args: Any, **named: Any) -> Any:
            admit(m, (*args, *named.values()))
            return function(owner, *args, **named)

        return Builtin(name, call)
    return Getter(name, lambda m, owner: getattr(owner, name))


_HOST_FUNCTIONS = (FunctionType, BuiltinFunctionType, partial)


def exposed(value: Any) -> Any:
    """Return an API value in the form for kernels: classes and functions are wrapped once."""
    if isinstance(value, type):
        return surface_classes()[value]
    return _function(value) if isinstance(value, _HOST_FUNCTIONS) else value


@cache
def _function(value: Any) -> HostFunction:
    return HostFunction(value.__name__, value)


def surface_callers() -> dict[type, Callable[..., Any]]:
    """Return the functions by which the machine calls such values."""

    def plain(m: Any, function: Any, args: Any, named: Any) -> Any:
        return function(*args, **named)

    def kernel(m: Any, function: Kernel, args: Any, named: Any) -> Any:
        return m.call(function.function, args, named)

    called = [kind for kind, surface in SURFACES.items() if surface.has_calls]
    return {**dict.fromkeys(called, plain), Kernel: kernel}


def hint(owner: Any, name: str) -> Exception | None:
    """Return the error of an API value for an attribute that it does not have, or None."""
    if owner.__class__ is Class and owner.payload in ENUMS.values():
        owner = owner.payload  # its type lists the members
    is_listed = isinstance(owner, type) or any(kind in SURFACES for kind in type(owner).__mro__)
    getattribute = getattr(type(owner), "__getattr__", None) if is_listed else None
    if getattribute is None or name.startswith("__"):
        return None
    try:
        getattribute(owner, name)
    except AttributeError as error:
        return error
    return None


PROVIDED = provided_modules((*provide.MODULES, "numpy"))


@cache
def kernel_object() -> Class:
    """`nl.NKIObject`."""
    return seal(dataclasses.field_class())


class LanguageNamespace:
    def __init__(self, namespace: Namespace) -> None:
        self.namespace = namespace
        self._contents: dict[str, Any] = namespace.__dict__

    def get(self, m: Any, name: str) -> Any:
        if name.startswith("@"):
            return UNSET
        if name in self._contents:
            return exposed(self._contents[name])
        if name in self._contents["@watched"]:
            return exposed(self._contents["@watched"][name]())
        if name in self._contents["@lazy"]:
            self._contents[name] = self._contents["@lazy"][name]()
            return self._contents[name]
        return UNSET

    def missing(self, name: str) -> Exception:
        return self.namespace._missing(name)

    def submodule(self, name: str) -> tuple[str, str, str]:
        """Return slug, message and help for a submodule that does not exist."""
        absent = submodule(self.namespace, name)
        within = f"{self._contents['@name']}."
        inner = [n.removeprefix(within) for n in provide.MODULES if n.startswith(within)]
        return absent.slug, absent.text, absent.help or did_you_mean(name, inner)

    def names(self) -> list[str]:
        return names_of(self.namespace)

    def keeps(self, name: str) -> bool:
        """Return whether a value may be cached: deprecated names warn on every access."""
        return name not in self._contents["@watched"]


class World:
    """The environment of one kernel instance, with fresh module-level values."""

    def __init__(self, resolved: Resolved, trace: Trace, limits: Limits | None = None) -> None:
        self.namespaces = provide.namespaces(trace.profile, self._load, kernel_object())
        spaces: dict[str, ModuleNamespace] = {
            n: LanguageNamespace(s) for n, s in self.namespaces.items()
        }
        self.interpreter = interpreter(
            resolved, spaces, trace.report, trace.messages.append, limits
        )
        self.spaces = spaces
        machine = self.interpreter.machine
        machine.memory -= trace.recorded()  # by other instances of the kernel
        if trace.profile is Profile.BETA2:
            machine.builtins = {**machine.builtins, **jit.MEMORIES}
        if trace.profile is Profile.BETA1:
            from nkic.language.beta1.loops import LoopIndex  # imported lazily: rarely needed

            machine.classes |= {**beta1_classes(), LoopIndex: machine.classes[int]}
        trace.library = self._function
        trace.here = machine.here
        trace.loop_context = self.interpreter.loop_context
        iterations = Iterations(resolved)
        trace.iterations = partial(iterations.of, machine.stack)
        trace.budget = machine

    def _load(self, file: SourceFile, name: str) -> Any:
        return self.interpreter.library_function(file, name)

    def _function(self, name: str) -> Any:
        function = self.spaces[library.MODULE].get(self.interpreter.machine, name)
        if function is UNSET:
            raise self.spaces[library.MODULE].missing(name)
        return function


def interpreter(
    resolved: Resolved,
    spaces: Mapping[str, ModuleNamespace],
    report: Reporter,
    show: Any,
    limits: Limits | None = None,
) -> Interpreter:
    """Return an interpreter that supports the API's values."""
    modules = {"numpy": numpy.table(), **spaces}
    result = Interpreter(resolved, modules, report, show=show, limits=limits)
    machine = result.machine
    machine.classes |= surface_classes() | numpy.classes()
    callers = {**surface_callers(), **numpy.callers()}
    machine.callables |= {kind: admitting(call) for kind, call in callers.items()}
    machine.vectorcalls |= CALLED_BY_PLACE
    machine.items |= READ
    machine.hints.append(hint)
    machine.formatting = frozenset({*numpy.classes(), DType})
    machine.quiet = (DType, numpy.NumpyDType, numpy.Function, Buffer)
    machine.refused = (Failed,)
    return result
