"""The closed world with NKI: the API's modules mounted in the interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Any

from nkic.base.diagnostics import Reporter
from nkic.base.evaluation import Limits
from nkic.base.profiles import Profile
from nkic.base.source import SourceFile
from nkic.base.suggest import did_you_mean
from nkic.evaluate.attributes import ModuleNamespace
from nkic.evaluate.border import admitting
from nkic.evaluate.interpreter import Interpreter, provided_modules
from nkic.evaluate.library import records
from nkic.evaluate.objects import UNSET, Class, seal
from nkic.language import library, provide
from nkic.language.namespace import Namespace, names_of, submodule
from nkic.language.trace import Failed, Trace
from nkic.language.versions import memories
from nkic.machine.dtypes import DType
from nkic.machine.memory import Buffer
from nkic.specialise import surface
from nkic.specialise.iterations import Iterations
from nkic.specialise.numpy import functions, values
from nkic.specialise.numpy import names as numpy
from nkic.syntax.bindings import Resolved

PROVIDED = provided_modules((*provide.MODULES, "numpy"))


@cache
def kernel_object() -> Class:
    """`nl.NKIObject`."""
    return seal(records.field_class("NKIObject", "nki.language"))


class LanguageNamespace:
    """An API module as a `ModuleNamespace` of the interpreter."""

    def __init__(self, namespace: Namespace) -> None:
        self.namespace = namespace
        self._contents: dict[str, Any] = namespace.__dict__

    def get(self, m: Any, name: str) -> Any:
        """Return the value of a name, or UNSET."""
        if name.startswith("@"):
            return UNSET
        if name in self._contents:
            return surface.exposed(self._contents[name])
        if name in self._contents["@watched"]:
            return surface.exposed(self._contents["@watched"][name]())
        if name in self._contents["@lazy"]:
            self._contents[name] = self._contents["@lazy"][name]()
            return self._contents[name]
        return UNSET

    def missing(self, name: str) -> Exception:
        """Return the error for a name that does not exist."""
        return self.namespace._missing(name)

    def submodule(self, name: str) -> tuple[str, str, str]:
        """Return slug, message and help for a submodule that does not exist."""
        absent = submodule(self.namespace, name)
        within = f"{self._contents['@name']}."
        inner = [n.removeprefix(within) for n in provide.MODULES if n.startswith(within)]
        return absent.slug, absent.text, absent.help or did_you_mean(name, inner)

    def names(self) -> list[str]:
        """Return the public names."""
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
            machine.builtins = {**machine.builtins, **memories.MEMORIES}
        if trace.profile is Profile.BETA1:
            from nkic.specialise import beta1  # imported lazily: rarely needed

            machine.classes |= beta1.classes(machine.classes)
            machine.callables |= {k: admitting(call) for k, call in beta1.callers().items()}
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
    machine.classes |= surface.classes() | numpy.classes()
    callers = {**surface.callers(), **numpy.callers()}
    machine.callables |= {kind: admitting(call) for kind, call in callers.items()}
    machine.vectorcalls |= surface.CALLED_BY_PLACE
    machine.items |= surface.READ
    machine.hints.append(surface.hint)
    machine.formatting = frozenset({*numpy.classes(), DType})
    machine.quiet = (DType, values.NumpyDType, functions.Function, Buffer)
    machine.refused = (Failed,)
    return result
